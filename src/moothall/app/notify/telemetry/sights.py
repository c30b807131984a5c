"""One entry of a run, with what was under way before and after it: what spans, counters and log are made of.

A run that is seen for the first time in the middle of its life is read up to there from its journal, so that it is
known since when its effects are wanted. Where that cannot be done, they count from when they were first heard of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from moothall.app.report.projections.costs import Players
from moothall.app.report.projections.flight import Flight, Span
from moothall.app.report.projections.hierarchy import Entry, Hierarchy, Moved, hierarchy_of
from moothall.app.runs.news import Committed
from moothall.kernel.events import Forked
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.journal import Record, RunId

Place = tuple[str, RunId]
"""Where a run is: the address of its store, and its id there."""
REMEMBERED = 1_000
"""How many runs are remembered; others are read again when they move."""
Past = Callable[[RunId, int], Iterable[Entry]]
"""The journal of a run, up to an entry and without it."""


class Subject(Frozen):
    """A run that is watched: in which store, how it began, its machine, and who plays its agents."""

    store: str
    record: Record
    machine: Machine
    players: Players

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.store, self.record.run


class Sight(Frozen):
    """One entry, and what was under way before and after it."""

    subject: Subject
    entry: Entry
    moved: Moved
    before: Flight
    after: Flight
    was_over: bool = False
    """Whether the run had come to its end before."""

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self.subject.record.run

    @property
    def effect(self) -> Span | None:
        """The effect that the event belongs to, where it does to one."""
        return self.before.of(self.entry["cause"])

    @property
    def is_over(self) -> bool:
        """Whether the run has come to its end."""
        return "status" in self.entry


class Views:
    """Makes sights of the entries of one store, run by run; the runs that moved last are remembered."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._seen: dict[RunId, Sight] = {}

    def of(self, subject: Subject, entry: Entry) -> Sight:
        """The sight of the next entry of a run."""
        run, seq = subject.record.run, entry["seq"]
        last = self._seen.pop(run, None)
        if last is None or last.entry["seq"] < seq - 1:  # others moved it meanwhile, or it was not seen yet
            last = None
            for missed in self._past(run, seq):
                last = _next(subject, last, missed)
        sight = self._seen[run] = _next(subject, last, entry)
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return sight


def _next(subject: Subject, last: Sight | None, entry: Entry) -> Sight:
    before = Flight() if last is None else last.after
    moved = _hierarchy(subject.machine).moved(entry)
    is_fork = entry["event"]["name"] == Forked.name
    after = before.parted(entry["at"]) if is_fork else before.after(entry, moved.left)
    return Sight(subject, entry, moved, before, after, last is not None and (last.is_over or last.was_over))


@lru_cache(maxsize=64)
def _hierarchy(machine: Machine) -> Hierarchy:
    return hierarchy_of(machine)


def subject_of(store: str, news: Committed) -> Subject:
    """What is known of a run where it is driven."""
    return Subject(store, news.record, news.machine, Players(news.record.model, news.functions))
