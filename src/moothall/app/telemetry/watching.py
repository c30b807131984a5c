"""Switches telemetry on: what a setting names is opened, and shown every entry that is committed.

- All of it stands aside, in one thread. A part that raises is left out from then on, and that is said once; one that
  hangs sees nothing more and holds up the other parts, but no run.
- Journals are read through a connection of that thread's own, never through the one that runs are committed by.
- Secrets are replaced once more: what a journal has from before they were registered does not get out.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

from moothall.app.projections.nesting import Entry
from moothall.app.running import Watcher, opened
from moothall.app.settings import cleaner, store_file
from moothall.app.telemetry.log import Log
from moothall.app.telemetry.parts import Part, parts_of
from moothall.app.telemetry.sights import Sight, Subject, Views, subject_of
from moothall.errors import MoothallError
from moothall.runtime.hall import Hall, Observer
from moothall.runtime.journal import Entry as Committed
from moothall.runtime.journal import Head, RunId, encode_entry
from moothall.runtime.observing import MOST, Aside

Notice = Callable[[str], None]
PIECE = 256


class Sink(Protocol):
    """A part at work."""

    def __call__(self, sight: Sight) -> None:
        """Take in what was seen."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Telemetry:
    """The parts that a setting names, watching the runs of one store."""

    def __init__(self, parts: tuple[Part, ...], address: str, notice: Notice) -> None:
        self._sinks: dict[Part, Sink] = {}
        self._address, self._notice = address, notice
        self._clean = cleaner()
        self._views = Views(self._past)
        self._subjects: dict[RunId, Subject] = {}
        self._aside = Aside(self._saw)
        try:
            for part in parts:
                self._sinks[part] = _opened(part, notice)
        except BaseException:
            self.close()
            raise

    def watching(self, hall: Hall) -> Observer:
        """An observer of the runs of a hall."""

        def saw(run: RunId, entry: Committed, head: Head) -> None:
            self._note(subject_of(hall, run))
            self._aside(run, entry, head)

        return saw

    def _note(self, subject: Subject) -> None:
        """Remember a run for as long as one of its entries may be waiting to be seen."""
        self._subjects.pop(subject.record.run, None)
        self._subjects[subject.record.run] = subject
        if len(self._subjects) > MOST + 1:
            del self._subjects[next(iter(self._subjects))]

    def _saw(self, run: RunId, entry: Committed, head: Head) -> None:
        sight = self._views.of(self._subjects[run], self._clean(encode_entry(entry)))
        for part, sink in tuple(self._sinks.items()):
            try:
                sink(sight)
            except Exception as error:  # whatever an exporter or a full disk raises
                del self._sinks[part]
                self._notice(f"telemetry: {part} is left out from now on: {type(error).__name__}: {error}")

    def _past(self, run: RunId, seq: int) -> Iterator[Entry]:
        """The journal of a run up to an entry, where it can be read."""
        if seq == 0 or store_file(self._address) is None:
            return
        try:
            with opened(self._address) as store:
                for start in range(0, seq, PIECE):
                    piece = asyncio.run(store.entries(run, start, min(PIECE, seq - start)))
                    yield from (self._clean(one) for one in piece)
        except MoothallError:
            return

    def wait_until_seen(self) -> None:
        """Give it a moment to see what is left."""
        self._aside.wait_until_seen()

    def close(self) -> None:
        """Give it a moment, and let go of everything."""
        self.wait_until_seen()
        while self._sinks:
            self._sinks.popitem()[1].close()


def _opened(part: Part, notice: Notice) -> Sink:
    if part.name == "log":
        return Log(part.where)
    if part.name == "spans":
        from moothall.app.telemetry.spans import Spans  # it loads OpenTelemetry

        return Spans()
    from moothall.app.telemetry.counters import Counters  # it loads the client of Prometheus

    counters = Counters(int(part.where))
    notice(f"counters at {counters.address}")
    return counters


@contextmanager
def telemetry(text: str, address: str, notice: Notice) -> Iterator[tuple[Watcher, ...]]:
    """Who watches the runs of a store while a command works."""
    at_work = Telemetry(parts_of(text), address, notice)
    try:
        yield (at_work.watching,)
    finally:
        at_work.close()


@lru_cache(maxsize=16)
def standing_telemetry(text: str, address: str) -> Telemetry:
    """The telemetry of a program that runs machines, one for all its runs; it ends with the program."""
    at_work = Telemetry(parts_of(text), address, lambda said: print(said, file=sys.stderr))
    atexit.register(at_work.close)
    return at_work
