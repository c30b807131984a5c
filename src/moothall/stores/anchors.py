"""Anchors: the seals of a store's newest entries, kept outside the store.

A chain of signed seals shows every change inside a journal, but not that its end was cut off, and nothing at all to
whom the key is lost. So there is a file beside, which is only ever appended to: a line when a run begins to move, with
the entry where it stood, and a line when it has come to rest, with the entry where it stands. A run that moved and did
not come to rest has an end that nobody can vouch for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import orjson

Said = Literal["moves", "rests", "gone"]


class Anchor(NamedTuple):
    """What was said about a run: that it moves on from an entry, that it rests after one, or that it was deleted."""

    said: Said
    run: str
    seq: int
    seal: bytes


class Anchors:
    """The anchors of one store, in one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._descriptor: int | None = None

    def say(self, said: Said, run: str, seq: int, seal: bytes) -> None:
        """Append a line. Where that cannot be done the run goes on: its audit will not be able to tell."""
        try:
            if self._descriptor is None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(self._descriptor, orjson.dumps((said, run, seq, seal.hex())) + b"\n")
        except OSError:
            self.close()

    def of(self, run: str) -> list[Anchor]:
        """What was said about a run since it began last."""
        said: list[Anchor] = []
        for one in self:
            if one.run == run:
                said = [] if one.said == "gone" else [*said, one]
        return said

    def runs(self) -> dict[str, None]:
        """The runs that should be there."""
        found: dict[str, None] = {}
        for one in self:
            if one.said == "gone":
                found.pop(one.run, None)
            else:
                found[one.run] = None
        return found

    def __iter__(self) -> Iterator[Anchor]:
        try:
            lines = self.file.read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            try:
                said, run, seq, seal = orjson.loads(line)
                anchor = Anchor(said, run, seq, bytes.fromhex(seal))
            except (ValueError, TypeError):  # a line that a crash has cut off says nothing
                continue
            if said in get_args(Said) and type(run) is str and type(seq) is int:
                yield anchor

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
