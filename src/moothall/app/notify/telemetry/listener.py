"""Switches telemetry on: what a setting names is opened, and shown every entry that is committed.

- All of it stands aside, in a thread for each store. A part that raises is left out from then on, and that is said
  once; one that hangs sees nothing more and holds up the other parts, but no run.
- Journals are read through a connection of that thread's own, never through the one that runs are committed by.
- Secrets are replaced once more: what a journal has from before they were registered does not get out.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock, Thread
from typing import Protocol

from moothall.app.config.access import opened
from moothall.app.config.settings import cleaner, is_in_memory
from moothall.app.notify.telemetry.log import Log
from moothall.app.notify.telemetry.parts import Part, parts_of
from moothall.app.notify.telemetry.sights import Sight, Subject, Views, subject_of
from moothall.app.report.projections.hierarchy import Entry
from moothall.app.runs.news import Committed, Listener, News
from moothall.errors import MoothallError, words_of
from moothall.runtime.journal import Entry as Kept
from moothall.runtime.journal import Head, RunId, encode_entry
from moothall.runtime.observer import GRACE, MOST, Aside

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
    """The parts that a setting names, at work."""

    def __init__(self, parts: tuple[Part, ...], notice: Notice) -> None:
        self._notice, self._turn = notice, Lock()
        self._sinks = {part: sink for part in parts if (sink := _open_sink(part, notice)) is not None}
        self._lookouts: dict[str, Lookout] = {}

    def listener(self, store: str) -> Listener:
        """Who listens to what happens in the store at this address."""
        return self._lookouts.setdefault(store, Lookout(store, self._show))

    def _show(self, sight: Sight) -> None:
        with self._turn:
            for part, sink in tuple(self._sinks.items()):
                try:
                    sink(sight)
                except Exception as error:  # whatever an exporter or a full disk raises
                    self._sinks.pop(part, None)
                    self._notice(f"telemetry: {part} is left out from now on: {words_of(error)}")

    def wait_until_seen(self) -> None:
        """Give it a moment to see what is left."""
        for lookout in self._lookouts.values():
            lookout.wait_until_seen()

    def close(self) -> None:
        """Give it a moment, and let go of everything; what hangs then is left behind."""
        self.wait_until_seen()
        closing = Thread(target=self._close, daemon=True, name="moothall-telemetry")
        closing.start()
        closing.join(GRACE)

    def _close(self) -> None:
        with self._turn:
            while self._sinks:
                with suppress(Exception):  # whatever an exporter raises
                    self._sinks.popitem()[1].close()


class Lookout:
    """Watches the runs of one store, from aside."""

    def __init__(self, store: str, show: Callable[[Sight], None]) -> None:
        self._store, self._show = store, show
        self._clean = cleaner()
        self._views = Views(self._past)
        self._subjects: dict[RunId, Subject] = {}
        self._noting = Lock()
        self._aside = Aside(self._saw)

    def __call__(self, news: News) -> None:
        """A step was committed: it is looked at from aside."""
        if isinstance(news, Committed):
            self._note(subject_of(self._store, news))
            self._aside(news.run, news.entry, news.head)

    def _note(self, subject: Subject) -> None:
        """Remember a run for as long as one of its entries may be waiting to be seen."""
        with self._noting:
            self._subjects.pop(subject.record.run, None)
            self._subjects[subject.record.run] = subject
            if len(self._subjects) > MOST + 1:
                del self._subjects[next(iter(self._subjects))]

    def _saw(self, run: RunId, entry: Kept, head: Head) -> None:
        self._show(self._views.of(self._subjects[run], self._clean(encode_entry(entry))))

    def _past(self, run: RunId, seq: int) -> Iterator[Entry]:
        """The journal of a run up to an entry, where it can be read."""
        if seq == 0 or is_in_memory(self._store):
            return
        try:
            with opened(self._store) as store:
                for start in range(0, seq, PIECE):
                    piece = asyncio.run(store.entries(run, start, min(PIECE, seq - start)))
                    yield from (self._clean(entry) for entry in piece)
        except MoothallError:
            return

    def wait_until_seen(self) -> None:
        """Give it a moment to see what is left."""
        self._aside.wait_until_seen()


def _open_sink(part: Part, notice: Notice) -> Sink | None:
    if part.name == "log":
        return Log(part.where)
    if part.name == "spans":
        from moothall.app.notify.telemetry.spans import Spans  # it loads OpenTelemetry

        return Spans()
    from moothall.app.notify.telemetry.counters import Counters  # it loads the client of Prometheus

    try:
        counters = Counters(int(part.where))
    except OSError as error:  # another process that is set up alike has the port; that is no reason to do nothing
        notice(f"telemetry: {part} is left out: {error.strerror}")
        return None
    notice(f"counters at {counters.address}")
    return counters


@contextmanager
def telemetry(text: str, store: str, notice: Notice) -> Iterator[tuple[Listener, ...]]:
    """Who watches the runs of a store while a command works."""
    at_work = Telemetry(parts_of(text), notice)
    try:
        yield (at_work.listener(store),)
    finally:
        at_work.close()


@lru_cache(maxsize=16)
def standing_telemetry(text: str) -> Telemetry:
    """The telemetry of a program that runs machines, one for all its runs; it ends with the program."""
    at_work = Telemetry(parts_of(text), lambda said: print(said, file=sys.stderr))
    atexit.register(at_work.close)
    return at_work
