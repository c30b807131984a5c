"""Anchors: the seals of a store's newest entries, kept outside the store.

A chain of signed seals shows every change inside a journal, but not that its end was cut off, and nothing at all to
whom the key is lost. So there is a file beside, which is only ever appended to: a line when a run begins to move, with
the entry where it stood, and a line when it has come to rest, with the entry where it stands and its head. A run that
moved and did not come to rest has an end that nobody can vouch for. A run that was deleted has a line that says so.
So has an entry after which something begins that must not be done twice, and a run that a person has accepted as it is.

What is said of an effect that must not be done twice, and of what a person did, is on the disk before anything follows
from it (`sync`). The other lines are on the disk a moment later: a crash of the machine in that moment costs certainty,
and raises no false alarm.

A store's file may be deleted, and its name is lost with it. So another file beside tells which stores were seen where.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import orjson

Said = Literal["moves", "rests", "mended", "gone", "accepted"]
SAID = frozenset(get_args(Said))
Tell = Callable[[str], None]
BEGINNING = -1
"""Where a run stands that is about to begin; whether it did, this line does not tell."""
PLACES = "stores.jsonl"
"""Which stores were seen where, by their names."""
MOMENT = 0.1
"""After so many seconds a line is brought to the disk that nothing waits for."""
FEW = 8
"""Of so many runs the lines are looked for one by one; of more, the ends of all are remembered."""


class Anchor(NamedTuple):
    """What was said about a run: that it moves on from an entry, rests after one, had its head mended, was deleted.

    Or that a person accepts it as it is; what was said before counts no more. The seal is that of the entry, the head
    that of the head after it, in lines about where it stands.
    """

    said: Said
    run: str
    seq: int
    seal: bytes = b""
    head: bytes = b""


Tip = tuple[int, bytes]
"""The latest entry of a run that anchors know, and its seal; empty where they know only its number."""


def nobody(text: str) -> None:
    """Nobody is told."""


def make_folder(folder: Path) -> None:
    """Make a folder that is nobody's but the user's, and those above it, where they are not there yet."""
    if not os.path.lexists(folder):
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class Anchors:
    """The anchors of one store, in one file of a folder; `tell` hears why nothing can be written there.

    `place` is the file of the store itself, or its address where it is none. Where its commits are not brought to the
    disk one by one (`is_lasting`), neither are these lines.
    """

    def __init__(
        self, folder: Path, name: str, place: Path | str, tell: Tell = nobody, *, is_lasting: bool = True
    ) -> None:
        self.file = folder / f"{name}.jsonl"
        self._path, self._folder, self._name = str(self.file), folder, name
        self._place = place if isinstance(place, str) else os.path.realpath(place)
        self._tell = tell
        self._is_lasting, self._is_new, self._syncing = is_lasting, False, threading.Lock()
        self._soon: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._descriptor: int | None = None
        self._known: Mapping[str, Sequence[Anchor]] = {}
        self._as_of: tuple[int, int] = (-1, -1)
        self._tips: dict[str, Tip] | None = None
        self._looks = self._read_to = 0

    def say(self, anchor: Anchor) -> None:
        """Append a line. Where that cannot be done the run goes on: its audit will not be able to tell."""
        line = orjson.dumps((*anchor[:3], anchor.seal.hex(), anchor.head.hex())) + b"\n"
        try:
            if self._descriptor is None:
                make_folder(self.file.parent)
                note_place(self.file.parent, self.file.stem, self._place)
                self._descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                line = b"\n" + line  # what is there may have been cut off in the middle of a line
            _write(self._descriptor, line)
            self._note_own(self._descriptor, anchor, len(line))
        except OSError as error:
            self._give_up(error)
            return
        if self._is_lasting:
            self._is_new = True
            self._sync_soon()

    def _note_own(self, descriptor: int, anchor: Anchor, length: int) -> None:
        """What is said here need not be read again, unless others have said something that was not read yet."""
        if self._tips is not None and os.lseek(descriptor, 0, os.SEEK_CUR) == self._read_to + length:
            _tip(self._tips, anchor)
            self._read_to += length

    def _give_up(self, error: OSError) -> None:
        told = f"the anchors {self.file} cannot be written: {error.strerror}"
        self._tell(f"{told}; runs go on, but audits cannot tell")
        self._is_new = False
        self.close()

    def _sync_soon(self) -> None:
        """Bring what was said to the disk in a moment, in a thread; who says more meanwhile shares it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # whoever says this closes the file soon
            return
        if self._soon is None or self._soon[0] is not loop:
            self._soon = loop, loop.call_later(MOMENT, self._sync_beside)

    def _sync_beside(self) -> None:
        if self._soon is not None:
            loop, self._soon = self._soon[0], None
            loop.run_in_executor(None, self.sync)

    def sync(self) -> None:
        """Come back when all that was said is on the disk."""
        with self._syncing:
            if not self._is_new or self._descriptor is None:
                return
            self._is_new = False
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                failed = error
            else:
                return
        self._give_up(failed)

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
            known: dict[str, list[Anchor]] = {}
            for anchor in self:
                _note(known, anchor)
            self._known, self._as_of = known, as_of
        return self._known

    def tip(self, run: str) -> Tip | None:
        """The latest entry of a run that was ever spoken of, since it began last or was accepted."""
        self._looks += 1
        if self._tips is None and self._looks <= FEW:
            needle, tips = orjson.dumps(run), dict[str, Tip]()
            for anchor in _anchors(line for line in self._lines() if needle in line):
                _tip(tips, anchor)
            return tips.get(run)
        return self.tips().get(run)

    def tips(self) -> Mapping[str, Tip]:
        """The latest entries of all runs; of the file only what is new is read."""
        if self._tips is None:
            self._tips = {}
        if lines := self._new_lines():
            for anchor in _anchors(lines):
                _tip(self._tips, anchor)
        return self._tips

    def _new_lines(self) -> list[bytes]:
        try:
            new = os.stat(self._path).st_size - self._read_to
            if new <= 0:
                return []
            whole = _read(self._path, self._read_to, new)
        except OSError:
            return []
        whole = whole[: whole.rfind(b"\n") + 1]
        self._read_to += len(whole)
        return whole.splitlines()

    def lost(self) -> Mapping[str, Anchors]:
        """The runs of other stores that once were where this one is, and that are nowhere now; with their anchors."""
        found: dict[str, Anchors] = {}
        for name in names_at(self._folder, self._place) - {self._name}:
            other = Anchors(self._folder, name, Path(self._place), self._tell)
            places = places_of(self._folder, name) - {self._place}
            kept = {run for place in places for run in _runs_in(place)}
            found |= {run: other for run in other.tips() if run not in kept}
        return found

    def _lines(self) -> Sequence[bytes]:
        try:
            return self.file.read_bytes().splitlines()
        except OSError:
            return ()

    def __iter__(self) -> Iterator[Anchor]:
        return _anchors(self._lines())

    def close(self) -> None:
        """Let go of the file; what was said there is on the disk."""
        self.sync()
        if self._soon is not None:
            self._soon[1].cancel()
            self._soon = None
        with self._syncing:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


def _read(file: str, start: int, length: int) -> bytes:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.pread(descriptor, length, start)
    finally:
        os.close(descriptor)


def _write(descriptor: int, line: bytes) -> None:
    if os.write(descriptor, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _anchors(lines: Iterable[bytes]) -> Iterator[Anchor]:
    for line in lines:
        try:
            said, run, seq, seal, head = orjson.loads(line)
            anchor = Anchor(said, run, seq, bytes.fromhex(seal), bytes.fromhex(head))
        except (ValueError, TypeError):  # a line that a crash has cut off says nothing
            continue
        if said in SAID and type(run) is str and type(seq) is int:
            yield anchor


def _note(known: dict[str, list[Anchor]], anchor: Anchor) -> None:
    """Keep what an anchor says about its run."""
    if anchor.said in ("gone", "accepted"):
        known.pop(anchor.run, None)
    if anchor.said != "gone":
        known.setdefault(anchor.run, []).append(anchor)


def _tip(tips: dict[str, Tip], anchor: Anchor) -> None:
    """Keep the latest entry that an anchor knows of its run."""
    if anchor.said == "gone":
        tips.pop(anchor.run, None)
        return
    seq, seal = tips.get(anchor.run, (BEGINNING, b""))
    if anchor.said == "accepted" or anchor.seq > seq or (anchor.seq == seq and anchor.seal and not seal):
        tips[anchor.run] = (anchor.seq, anchor.seal)


# Which stores were seen where.


def note_place(folder: Path, name: str, place: str) -> None:
    """Remember that a store was seen in a place, where that is new."""
    if name in names_at(folder, place):
        return
    descriptor = os.open(folder / PLACES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        _write(descriptor, b"\n" + orjson.dumps((name, os.fsencode(place).decode(errors="replace"))) + b"\n")
    finally:
        os.close(descriptor)


def names_at(folder: Path, place: str) -> Set[str]:
    """The names of the stores that were seen in a place."""
    try:
        return _names_in(*_places_file(folder), place)
    except OSError:
        return frozenset()


def places_of(folder: Path, name: str) -> Set[str]:
    """The places where a store was seen."""
    try:
        return _places_in(*_places_file(folder)).get(name, frozenset())
    except OSError:
        return frozenset()


AsOf = tuple[int, int, int]


def _places_file(folder: Path) -> tuple[str, AsOf]:
    """The file of the places. Every begin of a run looks at it, and it is read again only where it has changed."""
    file = f"{folder}/{PLACES}"
    found = os.stat(file)
    return file, (found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _names_in(file: str, as_of: AsOf, place: str) -> Set[str]:
    seen = os.fsencode(place).decode(errors="replace")
    return {name for name, places in _places_in(file, as_of).items() if seen in places}


@lru_cache(maxsize=4)
def _places_in(file: str, as_of: AsOf) -> Mapping[str, Set[str]]:
    places: dict[str, set[str]] = {}
    for line in Path(file).read_bytes().splitlines():  # what cannot be read now is not remembered as empty
        try:
            name, place = orjson.loads(line)
        except (ValueError, TypeError):
            continue
        if type(name) is str and type(place) is str and name.isalnum():
            places.setdefault(name, set()).add(place)
    return places


def _runs_in(place: str) -> set[str]:
    """The runs in the file of a store; none where there is no such file."""
    if not os.path.isfile(place):
        return set()
    try:
        with closing(sqlite3.connect(f"{Path(place).as_uri()}?mode=ro", uri=True, timeout=1)) as db:
            return {str(run) for (run,) in db.execute("SELECT run FROM runs")}
    except (sqlite3.Error, UnicodeDecodeError):
        return set()
