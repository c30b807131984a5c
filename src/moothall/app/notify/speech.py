"""What agents are saying, for listeners in other processes of the same store.

Pieces are in no journal: they lie in small files, one for each agent that speaks, and are gone when its reply is kept.
The folder is beside a store that is a file, and in the state directory for one that is a database: then it is shared
with the processes of this machine that have the same state directory, not with other machines.

Files are written only while somebody listens, who touches a beacon in that folder, and only up to `MOST` bytes; a disk
that does not take them holds no run up. What is heard has no secrets: models see to that.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from moothall.app.config.settings import state_directory
from moothall.app.runs.news import Committed, News, Said
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId

MOST = 64_000
BEACON = "listening"
ALIVE = 15.0
"""Seconds for which a beacon counts."""
OLD = 3_600.0


def speech_folder(address: str) -> Path | None:
    """Where speech of a store lies; None where no other process has the store. The address has no password."""
    kind, _, place = address.partition(":")
    if kind == "sqlite":
        return Path(f"{place}.speech") if place and not place.startswith((":", "file:")) else None
    if kind in ("postgresql", "postgres"):
        return state_directory() / f"speech-{sha256(place.encode()).hexdigest()[:16]}"
    return None


def _beginning(run: RunId) -> str:
    return sha256(run.encode()).hexdigest()[:16]


def _file(folder: Path, run: RunId, agent: str) -> Path:
    return folder / f"{_beginning(run)}-{sha256(agent.encode()).hexdigest()[:16]}"


class SpeechWriter:
    """A listener that writes down what agents say, as long as somebody in another process listens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[Path, int] = {}

    @property
    def hears(self) -> bool:
        """Whether somebody listens."""
        try:
            return time.time() - os.stat(self._folder / BEACON).st_mtime < ALIVE
        except OSError:
            return False

    @property
    def is_busy(self) -> bool:
        """Whether somebody's words lie there."""
        return bool(self._sizes)

    def __call__(self, news: News) -> None:
        """Something happened."""
        with suppress(OSError):
            if isinstance(news, Said):
                if self.hears:
                    self._write(news)
            elif isinstance(news, Committed) and self._sizes:
                self._forget(_file(self._folder, news.run, getattr(news.entry.event, "agent", "")))

    def _write(self, said: Said) -> None:
        path = _file(self._folder, said.run, said.agent)
        size = self._sizes.get(path, 0)
        if not said.piece or not size:
            head = json.dumps({"run": said.run, "agent": said.agent}).encode() + b"\n"
            _put(path, head, os.O_TRUNC)
            size = len(head)
        piece = said.piece.encode("utf-8", "replace")
        if piece and size + len(piece) <= MOST:
            _put(path, piece, os.O_APPEND)
            size += len(piece)
        self._sizes[path] = size

    def _forget(self, path: Path) -> None:
        if self._sizes.pop(path, 0):
            path.unlink(missing_ok=True)


def _put(path: Path, content: bytes, how: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


class Heard(Frozen):
    """What an agent of a run has said since the last time: more of it, or anew all of it."""

    agent: str
    text: str
    anew: bool


class SpeechReader:
    """Reads what agents of runs in other processes say. `listen` from time to time keeps them writing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, tuple[int, int]] = {}

    def listen(self) -> None:
        """Say that somebody is here; what was left behind long ago goes."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / BEACON).touch(mode=0o600)
            for entry in os.scandir(self._folder):
                if entry.name != BEACON and time.time() - entry.stat().st_mtime > OLD:
                    os.unlink(entry.path)

    def news(self, run: RunId) -> Iterator[Heard]:
        """What was said in a run since the last time."""
        beginning = _beginning(run)
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.name.startswith(beginning) and (heard := self._speech_of(entry)) is not None:
                    yield heard

    def _speech_of(self, entry: os.DirEntry[str]) -> Heard | None:
        file, place = self._places.get(entry.name, (0, 0))
        status = entry.stat(follow_symlinks=False)
        anew = status.st_ino != file or status.st_size < place or not place
        if not anew and status.st_size == place:
            return None
        content = Path(entry.path).read_bytes()
        head, _, text = content.partition(b"\n")
        agent = str(json.loads(head)["agent"])
        self._places[entry.name] = status.st_ino, len(content)
        fresh = text if anew else content[place:]
        return Heard(agent, fresh.decode("utf-8", "replace"), anew)

    def close(self) -> None:
        """Nobody listens any more."""
        with suppress(OSError):
            (self._folder / BEACON).unlink(missing_ok=True)
