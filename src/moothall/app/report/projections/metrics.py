"""What can be counted in a run: visits and time of each state, transitions, what was spent, who was waited for.

`Metrics` is a fold: `metrics = metrics.after(entry)`, one entry after the other, from the first on. The rules:

- A visit begins when a state enters the configuration and ends when it leaves it. A state that is left and entered
  again in one step is visited twice, one that is only passed through is visited for no time.
- The last visit of a run that is live is still open; how long it has taken depends on when one looks.
- When the run is over, all visits are; what comes later (a late reply, a word to the parent) costs, but takes no time.
- Tokens and money belong to the state that wanted the effect, so that their sum over all states is what was spent.
  Time is counted for a state and for those around it.
- A fork is measured from where it parts: what stands before that in its journal is its origin's, time and costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from moothall.app.report.projections.costs import Bill, Costs, Players
from moothall.app.report.projections.flight import Flight, Span
from moothall.app.report.projections.hierarchy import UNKNOWN, Entry, Hierarchy, Moved
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Forked
from moothall.kernel.frozen import Frozen


class Stay(Frozen):
    """The visits of one state: how many, how long, and since when the open one lasts."""

    visits: int = 0
    total: float = 0.0
    shortest: float | None = None
    longest: float = 0.0
    since: float | None = None

    def begun(self, at: float) -> Stay:
        """With a visit that begins."""
        return Stay(self.visits + 1, self.total, self.shortest, self.longest, at)

    def ended(self, at: float) -> Stay:
        """With its open visit at an end, where it has one."""
        if self.since is None:
            return self
        took = max(0.0, at - self.since)
        shortest = took if self.shortest is None else min(took, self.shortest)
        return Stay(self.visits, self.total + took, shortest, max(took, self.longest))


class StateFigures(Frozen):
    """What is known of one state: visits, seconds, how long people were waited for, what was spent for it."""

    state: str
    visits: int
    total: float
    shortest: float
    longest: float
    waited: float
    bill: Bill
    is_open: bool = False

    @property
    def average(self) -> float:
        """How long a visit took."""
        return self.total / self.visits if self.visits else 0.0

    def plus(self, other: StateFigures) -> StateFigures:
        """The same state in two runs together."""
        visited = [figures for figures in (self, other) if figures.visits]
        return StateFigures(
            self.state,
            self.visits + other.visits,
            self.total + other.total,
            min((figures.shortest for figures in visited), default=0.0),
            max(self.longest, other.longest),
            self.waited + other.waited,
            self.bill.plus(other.bill),
            self.is_open or other.is_open,
        )


class Metrics(Frozen):
    """What was counted so far."""

    hierarchy: Hierarchy = UNKNOWN
    players: Players = field(default_factory=Players)
    entries: int = 0
    began: float = 0.0
    over: float | None = None
    """When the run came to its end."""
    flight: Flight = field(default_factory=Flight)
    stays: Mapping[str, Stay] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    spells: Mapping[str, float] = field(default_factory=dict)
    transitions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)

    def after(self, entry: Entry) -> Metrics:
        """With one more entry."""
        if entry["event"]["name"] == Forked.name:
            return self._parted(max(self.at, entry["at"]))
        moved = self.hierarchy.moved(entry)
        flight = self.flight.after(entry, moved.left)
        costs = self.costs
        for charge in flight.charges:
            costs = costs.after(charge, self.players)
        ends = "status" in entry and self.over is None
        live = self.over is None
        return Metrics(
            self.hierarchy,
            self.players,
            self.entries + 1,
            self.began if self.entries else flight.at,
            flight.at if ends else self.over,
            flight,
            self._stays(moved, flight.at, ends) if live else self.stays,
            _add_waits(self.waited, flight.ended),
            self._spells(flight.at) if live and self.entries else self.spells,
            _add_transition(self.transitions, entry, moved) if entry["taken"] else self.transitions,
            costs,
        )

    def _parted(self, at: float) -> Metrics:
        stays = {state: _NEVER.begun(at) for state, stay in self.stays.items() if stay.since is not None}
        parts = (self.hierarchy, self.players, self.entries + 1)
        return Metrics(*parts, began=at, flight=self.flight.parted(at), stays=stays)

    def _stays(self, moved: Moved, at: float, ends: bool) -> Mapping[str, Stay]:
        if not (moved.entered or moved.left or moved.passed or ends):
            return self.stays
        stays = dict(self.stays)
        for state in moved.left:
            stays[state] = stays.get(state, _NEVER).ended(at)
        for state in moved.passed:
            stays[state] = stays.get(state, _NEVER).begun(at).ended(at)
        for state in moved.entered:
            stays[state] = stays.get(state, _NEVER).begun(at)
        return {state: stay.ended(at) for state, stay in stays.items()} if ends else stays

    def _spells(self, at: float) -> Mapping[str, float]:
        does = self.flight.does()
        return {**self.spells, does: self.spells.get(does, 0.0) + at - self.flight.at}

    def joined(self, key: str, child: Costs) -> Metrics:
        """With what the child of this effect spent, from its own journal; its end brings no other bill then."""
        state = self.flight.spans[key].state
        return replace(self, flight=self.flight.joined(key), costs=self.costs.joined(child, state))

    # what can be read out of it

    @property
    def at(self) -> float:
        """When the run was last heard of, or was over."""
        return self.flight.at if self.over is None else self.over

    def seconds(self, until: float | None = None) -> float:
        """How long the run took, or has taken so far."""
        return self._until(until) - self.began

    def spent_on(self, until: float | None = None) -> dict[str, float]:
        """Of its time, how long somebody worked, people were waited for, time was waited for, nothing was wanted."""
        spells = {name: self.spells.get(name, 0.0) for name in ("working", "waiting", "time", "nothing")}
        spells[self.flight.does()] += self._until(until) - self.at
        return spells

    def states(self, until: float | None = None) -> tuple[StateFigures, ...]:
        """The figures of every state, in the order of their first visits; costs of no state come last."""
        bills = self.costs.by("state")
        names = dict.fromkeys((*self.stays, *self.waited, *bills))
        found = [self._figures(name, bills.get(name, _FREE), self._until(until)) for name in names]
        return tuple(sorted(found, key=lambda figures: not figures.state))

    def _figures(self, state: str, bill: Bill, until: float) -> StateFigures:
        stay = self.stays.get(state, _NEVER)
        now = stay.ended(until)
        waiting = (span for span in self.flight.spans.values() if span.kind == AskPerson.kind and span.state == state)
        waited = self.waited.get(state, 0.0) + sum(span.seconds(until) for span in waiting)
        is_open = stay.since is not None
        return StateFigures(state, now.visits, now.total, now.shortest or 0.0, now.longest, waited, bill, is_open)

    def slowest(self, until: float | None = None) -> StateFigures | None:
        """The atomic state that took the most time."""
        atomic = [
            figures for figures in self.states(until) if figures.state and self.hierarchy.is_atomic(figures.state)
        ]
        return max(atomic, key=lambda figures: figures.total, default=None)

    def hungriest(self, until: float | None = None) -> StateFigures | None:
        """The state that took the most tokens, where any took some."""
        hungry = [figures for figures in self.states(until) if figures.bill.tokens]
        return max(hungry, key=lambda figures: figures.bill.tokens, default=None)

    def commonest(self) -> tuple[tuple[str, str], int] | None:
        """The transition that was taken most often."""
        return max(self.transitions.items(), key=lambda item: item[1], default=None)

    def _until(self, until: float | None) -> float:
        return self.at if self.over is not None or until is None else max(self.at, until)


def merge_figures(figures: Iterable[StateFigures]) -> tuple[StateFigures, ...]:
    """The figures of several runs of one machine, state by state."""
    found: dict[str, StateFigures] = {}
    for more in figures:
        found[more.state] = found[more.state].plus(more) if more.state in found else more
    return tuple(found.values())


def _add_waits(waited: Mapping[str, float], ended: tuple[Span, ...]) -> Mapping[str, float]:
    for span in ended:
        if span.kind == AskPerson.kind:
            waited = {**waited, span.state: waited.get(span.state, 0.0) + span.seconds(span.since)}
    return waited


def _add_transition(
    transitions: Mapping[tuple[str, str], int], entry: Entry, moved: Moved
) -> Mapping[tuple[str, str], int]:
    """The transitions with one more: from the atomic states that were left to those that were entered."""
    before = [state for state in entry["from"] if state in moved.left] or entry["from"]
    after = [state for state in entry["to"] if state in moved.entered] or entry["to"]
    way = (" + ".join(before), " + ".join(after))
    return {**transitions, way: transitions.get(way, 0) + 1}


_NEVER = Stay()
_FREE = Bill()
