"""Anchors: the seals of a store's newest entries, kept outside the store.

A chain of signed seals shows every change inside a journal, but not that its end was cut off, and nothing at all to
whom the key is lost. So there is a file beside, which is only ever appended to: a line when a run begins to move, with
the entry where it stood, and a line when it has come to rest, with the entry where it stands and its head. A run that
moved and did not come to rest has an end that nobody can vouch for. A run that was deleted has a line that says so.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import orjson

Said = Literal["moves", "rests", "mended", "gone"]
Tell = Callable[[str], None]
BEGINNING = -1
"""Where a run stands that is about to begin; whether it did, this line does not tell."""


class Anchor(NamedTuple):
    """What was said about a run: that it moves on from an entry, rests after one, had its head mended, was deleted.

    The first two have the seal of the entry, those about where it stands that of its head.
    """

    said: Said
    run: str
    seq: int
    seal: bytes = b""
    head: bytes = b""


def nobody(text: str) -> None:
    """Nobody is told."""


class Anchors:
    """The anchors of one store, in one file; `tell` hears why nothing can be written there."""

    def __init__(self, file: Path, tell: Tell = nobody) -> None:
        self.file = file
        self._tell = tell
        self._descriptor: int | None = None
        self._known: Mapping[str, Sequence[Anchor]] = {}
        self._as_of: tuple[int, int] = (-1, -1)

    def say(self, anchor: Anchor) -> None:
        """Append a line. Where that cannot be done the run goes on: its audit will not be able to tell."""
        line = orjson.dumps((*anchor[:3], anchor.seal.hex(), anchor.head.hex())) + b"\n"
        try:
            if self._descriptor is None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                line = b"\n" + line  # what is there may have been cut off in the middle of a line
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            told = f"the anchors {self.file} cannot be written: {error.strerror}"
            self._tell(f"{told}; runs go on, but audits cannot tell")
            self.close()

    def of(self, run: str) -> Sequence[Anchor]:
        """What was said about a run since it began last."""
        return self.runs().get(run, ())

    def runs(self) -> Mapping[str, Sequence[Anchor]]:
        """The runs that should be there, and what was said about each since it began last."""
        try:
            found = os.stat(self.file)
        except OSError:
            return {}
        if self._as_of != (as_of := (found.st_size, found.st_mtime_ns)):
            self._known, self._as_of = self._read(), as_of
        return self._known

    def _read(self) -> Mapping[str, Sequence[Anchor]]:
        known: dict[str, list[Anchor]] = {}
        for one in self:
            if one.said == "gone":
                known.pop(one.run, None)
            else:
                known.setdefault(one.run, []).append(one)
        return known

    def __iter__(self) -> Iterator[Anchor]:
        try:
            lines = self.file.read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            try:
                said, run, seq, seal, head = orjson.loads(line)
                anchor = Anchor(said, run, seq, bytes.fromhex(seal), bytes.fromhex(head))
            except (ValueError, TypeError):  # a line that a crash has cut off says nothing
                continue
            if said in get_args(Said) and type(run) is str and type(seq) is int:
                yield anchor

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
