"""Measuring runs: their journals are read piece by piece and folded, children and all.

What a child spent is taken from its own journal where the store has it, so that a child at work counts too; else from
its last word to its parent. A machine that was changed since the run began does not explain its states any more; the
run is then measured by what its entries say alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.python import looking
from moothall.app.report.projections.costs import Costs, Line, Players
from moothall.app.report.projections.hierarchy import UNKNOWN, Entry, hierarchy_of
from moothall.app.report.projections.metrics import Metrics, StateFigures, merge_figures
from moothall.app.runs.context import family_of
from moothall.app.runs.view import summary
from moothall.errors import Broken, MoothallError, Refused
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Forked
from moothall.kernel.machine import Machine
from moothall.runtime.children import child_id
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store, Stored

PIECE = 256
Join = Callable[[RunId], Awaitable[Costs | None]]
Saw = Callable[[Entry, Metrics, Metrics], None]
"""Is shown an entry and the metrics before and after it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run, its metrics, and when they were looked at."""

    run: RunId
    machine: str
    status: str
    metrics: Metrics
    until: float
    notes: tuple[str, ...] = ()
    """What could not be read and is counted by hearsay."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What is counted in runs of its kind alone."""

    def states(self) -> tuple[StateFigures, ...]:
        """The figures of its states."""
        return self.metrics.states(self.until)


@dataclass(frozen=True, slots=True)
class AllMeasured:
    """All runs of a store: the figures of each machine's states, the costs, and the runs that cannot be read."""

    runs: Mapping[str, int]
    states: Mapping[str, tuple[StateFigures, ...]]
    costs: Costs
    unread: Mapping[RunId, str]
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What kinds count in runs of their own, machine by machine."""
    ways: Mapping[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    """How often each transition was taken, machine by machine."""


@dataclass(slots=True)
class Tally:
    """The metrics of a run up to an entry, kept by whoever measures it again and again; none where it has children.

    A child at work spends behind the back of its parent's journal, so its parent is measured anew.
    """

    machine: Machine | None = None
    metrics: Metrics | None = None
    next: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    """How often each row was taken."""


async def pieces(store: Store, run: RunId, start: int = 0) -> AsyncIterator[list[Entry]]:
    """The journal of a run, a few entries at a time; others have their turn in between."""
    while piece := await store.entries(run, start, PIECE):
        yield piece
        start += len(piece)
        await asyncio.sleep(0)


async def measure(
    store: Store, run: RunId, saw: Saw | None = None, *, machine: Machine | None = None, tally: Tally | None = None
) -> Measured:
    """The metrics of a run; what its children spent is in its costs. `saw` is shown each of its entries.

    Its machine is found without loading code, or is the one that is named. A tally goes on where it was.
    """
    notes: list[str] = []

    async def join(child: RunId) -> Costs | None:
        try:
            stored = await store.load(child)
            return (
                (await _fold_journal(store, stored, join, machine=machine)).costs if _is_child(stored.record) else None
            )
        except Refused:
            return None
        except Broken as error:
            notes.append(f"{error}; what it told its parent is counted")
            return None

    stored = await store.load(run)
    metrics = await _fold_journal(store, stored, join, saw, machine=machine, tally=tally)
    stands = (await summary(store, stored)).status
    notes += await _unseen(store, stored.record, machine)
    family = await _family(store, stored.record, machine)
    own = await kind_of(family[0]).figures(store, run, family[0]) if family is not None else {}
    return Measured(run, stored.record.machine, stands, metrics, time.time(), tuple(notes), own)


def _is_child(record: Record) -> bool:
    """Whether a run is the child that its id says; anybody may call a run like that."""
    return bool(record.parent) and record.run == child_id(record.parent, record.parent_key)


async def _unseen(store: Store, record: Record, machine: Machine | None) -> list[str]:
    """What a figure lacks where the machine stands in code that nobody has named."""
    if await _family(store, record, machine) is not None or not record.source:
        return []
    lacks = "without it nested states, and functions that play agents, cannot be told apart"
    return [f"the machine is code, which is not loaded unless you name it: --machine {record.source}; {lacks}"]


async def measure_all(store: Store, *, machine: Machine | None = None) -> AllMeasured:
    """The metrics of every run of a store, those of one machine together. Children are runs like others here."""
    stored = await store.runs()
    known = {run.record.run for run in stored if _is_child(run.record)}
    now, costs = time.time(), Costs()
    runs: dict[str, int] = {}
    states: dict[str, tuple[StateFigures, ...]] = {}
    unread: dict[RunId, str] = {}
    own: dict[str, Mapping[str, Any]] = {}
    ways: dict[str, Counter[tuple[str, str]]] = {}

    async def join(child: RunId) -> Costs | None:
        return Costs() if child in known and child not in unread else None

    for run in sorted(stored, key=lambda run: -run.record.depth):
        record = run.record
        try:
            metrics = await _fold_journal(store, run, join, machine=machine)
        except MoothallError as error:
            unread[record.run] = str(error)
            continue
        runs[record.machine] = runs.get(record.machine, 0) + 1
        states[record.machine] = merge_figures((*states.get(record.machine, ()), *metrics.states(now)))
        ways.setdefault(record.machine, Counter()).update(metrics.transitions)
        costs = costs.plus(metrics.costs.called(partial(_among_others, record)))
        if (family := await _family(store, record, machine)) is not None:
            kind = kind_of(family[0])
            figures = await kind.figures(store, record.run, family[0])
            own[record.machine] = kind.figures_together(own.get(record.machine, {}), figures)
    return AllMeasured(runs, states, costs, unread, {name: known for name, known in own.items() if known}, ways)


def _among_others(record: Record, line: Line) -> Line:
    """A line of a run where states of several machines stand side by side."""
    return line._replace(state=f"{record.machine}.{line.state}", child=line.child or bool(record.parent))


async def _fold_journal(
    store: Store,
    stored: Stored,
    join: Join,
    saw: Saw | None = None,
    *,
    machine: Machine | None,
    tally: Tally | None = None,
) -> Metrics:
    run, at, tally = stored.record.run, -1, tally or Tally()
    if tally.metrics is None or tally.machine is not machine:
        tally.next, tally.taken = 0, Counter()
        tally.metrics, tally.machine = await initial_metrics(store, stored, machine), machine
    metrics, has_children = tally.metrics, False
    try:
        async for piece in pieces(store, run, tally.next):
            for entry in piece:
                at = entry["seq"]
                before, metrics = metrics, metrics.after(entry)
                tally.taken.update(entry["taken"])
                if saw is not None:
                    saw(entry, before, metrics)
                for key in _children(entry, metrics):
                    has_children = True
                    if (costs := await join(child_id(run, key))) is not None:
                        metrics = metrics.joined(key, costs)
    except (KeyError, TypeError, AttributeError) as error:
        raise Broken(f"run {run}: entry {at} of its journal cannot be read: {error!r}") from error
    tally.metrics, tally.next = (None, 0) if has_children else (metrics, max(tally.next, at + 1))
    return metrics


def _children(entry: Entry, after: Metrics) -> Collection[str]:
    """The children that an entry wants; a fork starts those anew that are under way where it parts."""
    if entry["event"]["name"] == Forked.name:
        return [key for key, span in after.flight.spans.items() if span.kind == StartChild.kind]
    return [
        effect["key"] for effect in entry["effects"] if effect["kind"] == StartChild.kind and not effect.get("denied")
    ]


async def initial_metrics(store: Store, stored: Stored, named: Machine | None = None) -> Metrics:
    """The metrics of a run before its first entry."""
    record = stored.record
    family = await _family(store, record, named)
    if family is None:
        return Metrics(players=Players(record.model))
    machine, provided = family
    players = Players(record.model, frozenset(provided.joined_by(machine).functions))
    return Metrics(hierarchy_of(machine) if machine.decides_as(stored.definition()) else UNKNOWN, players)


async def machine_of(store: Store, record: Record, named: Machine | None = None) -> Machine | None:
    """The machine of a run as it is today, where it can still be found without loading code, or is named."""
    family = await _family(store, record, named)
    return family[0] if family is not None else None


async def _family(store: Store, record: Record, machine: Machine | None) -> tuple[Machine, Provided] | None:
    """The machine of a run and what it brings; None where it cannot be found without loading code."""
    try:
        with looking(machine):
            return await family_of(store, record, {})
    except MoothallError:
        return None
