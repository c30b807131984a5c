"""What agents are saying, for listeners in other processes of the same store.

Pieces are in no journal: they lie in small files, one for each agent that speaks, and are gone when its reply is kept.
The folder is beside a store that is a file, and in the state directory for one that is a database: then it is shared
with the processes of this machine that have the same state directory, not with other machines.

Files are written only while somebody listens, who touches a beacon in that folder, and only up to `MOST` bytes; whoever
comes in the middle gets the text so far. A disk that does not take them holds no run up. What is heard has no secrets:
models see to that.
"""

from __future__ import annotations

import json
import os
import secrets
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
        self._unwritten: dict[Path, bytes] = {}
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
        """Whether somebody is speaking."""
        return bool(self._sizes or self._unwritten)

    def __call__(self, news: News) -> None:
        """Something happened."""
        with suppress(OSError):
            if isinstance(news, Said):
                self._say(news)
            elif isinstance(news, Committed) and self.is_busy:
                self._forget(_file(self._folder, news.run, getattr(news.entry.event, "agent", "")))

    def _say(self, said: Said) -> None:
        path = _file(self._folder, said.run, said.agent)
        if not said.piece or (path not in self._sizes and path not in self._unwritten):
            self._sizes.pop(path, None)
            head = {"agent": said.agent, "speech": secrets.token_hex(8)}
            self._unwritten[path] = json.dumps(head).encode() + b"\n"
        words, size = self._unwritten.get(path, b""), self._sizes.get(path, 0)
        piece = said.piece.encode("utf-8", "replace")
        if size + len(words) + len(piece) <= MOST:
            words += piece
        self._unwritten[path] = words
        if words and self.hears:
            _put(path, words, os.O_APPEND if size else os.O_TRUNC)
            self._sizes[path] = size + len(words)
            del self._unwritten[path]

    def _forget(self, path: Path) -> None:
        self._unwritten.pop(path, None)
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


def _agent(head: bytes) -> str:
    return str(json.loads(head)["agent"])


class SpeechReader:
    """Reads what agents of runs in other processes say. `listen` from time to time keeps them writing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, tuple[bytes, int]] = {}
        self._looked: dict[str, tuple[int, int]] = {}

    def listen(self) -> None:
        """Say that somebody is here; what was left behind long ago goes."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / BEACON).touch(mode=0o600)
            for entry in os.scandir(self._folder):
                if entry.name != BEACON and time.time() - entry.stat().st_mtime > OLD:
                    os.unlink(entry.path)

    def news(self, run: RunId) -> Iterator[Heard]:
        """What was said in a run since the last time; nothing anew where a reply is kept, and its words are gone."""
        beginning = _beginning(run)
        gone = {name for name in self._places if name.startswith(beginning)}
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.name.startswith(beginning):
                    gone.discard(entry.name)
                    if (heard := self._speech_of(entry)) is not None:
                        yield heard
        for name in gone:
            head, _ = self._places.pop(name)
            self._looked.pop(name, None)
            yield Heard(_agent(head), "", True)

    def _speech_of(self, entry: os.DirEntry[str]) -> Heard | None:
        status = entry.stat(follow_symlinks=False)
        looks = status.st_mtime_ns, status.st_size
        if self._looked.get(entry.name) == looks:
            return None
        content = Path(entry.path).read_bytes()
        head, is_whole, text = content.partition(b"\n")
        if not is_whole:  # it is being written at this moment
            return None
        before, place = self._places.get(entry.name, (b"", 0))
        anew = head != before
        self._places[entry.name], self._looked[entry.name] = (head, len(content)), looks
        fresh = text if anew else content[place:]
        return Heard(_agent(head), fresh.decode("utf-8", "replace"), anew)

    def close(self) -> None:
        """Nobody listens any more."""
        with suppress(OSError):
            (self._folder / BEACON).unlink(missing_ok=True)
