"""What can be said of a machine before it runs: `verify` lists findings, `certify` the most that a run can cost.

Everything is read off one graph. Its points are the leaves (states without states inside); an arc says that in this
leaf this row may be taken, its own or one of the states around it, and that it enters that leaf. A row that an
unguarded row before it covers has no arc from there. Every endless run goes round a cycle of this graph for ever:
a row that leads somewhere always leaves the leaf that chose it, so the leaf must be entered again.

Which events can come:
- `done.state.*` comes when a final state is entered: such a row's arcs begin at the final states.
- `error.*` and `run.exhausted.*` come where something can cause them: an effect that a performer does (not a
  question, a timer or an alarm) may give up or be denied; a function may go wrong; a bounded state may be full.
- Everything else may come at any time. What a move raises by itself counts as coming from outside.

Cycles without a bound. A row is bounded by `at_most`, or by entering a state that has `max_visits`; a cycle
needs one such row. Without it the cycle is
- an error where the machine can go round by itself: every row on it is eventless, or takes an event that an effect, a
  function or a final state *on a cycle* causes. Deadlines, timers and failures count: nobody has to be there;
- a warning where each turn waits for something from outside (an answer, a message): a person sets the pace.
A row without `to` is a cycle only where the machine feeds it. `run.cancelled` goes round nothing.

The certificate counts rows taken, effects by kind, and what the cost tables say they use. It takes guards as free
and lets everything that can come do so at any time. Small machines are enumerated with the interpreter itself;
for others each leaf is a token that a row trades for new ones, and bounded rows are paid as often as they may be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, cast

from moothall.kernel.chart import (
    ATOMIC,
    FINAL,
    HISTORY,
    PARALLEL,
    ROOT,
    Bound,
    Chart,
    Place,
    Row,
    emitted,
    sequence,
    trigger,
)
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild
from moothall.kernel.events import (
    Answered,
    Cancelled,
    Done,
    Event,
    Exhausted,
    Expired,
    GaveUp,
    Misbehaved,
    Named,
    Started,
    matches,
)
from moothall.kernel.interpreter import _domain, _effective, _Entering, _plan_start, _Turn
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import History, State
from moothall.kernel.step import Snapshot, Status, Wanted

Level = Literal["error", "warning"]
Amounts = Mapping[str, float]

_BY_THE_RUNTIME = frozenset(kind.kind for kind in (AskPerson, Send, Alarm, CancelSend))
_INNER = (GaveUp.name, Misbehaved.name, Exhausted.name, Done.name)
_ANY = "*"
_OTHER = "?"
_ROWS = "→"
_EFFORT = 200_000
_LONG = 16
_NODES = 20_000
_STEPS = 60_000
_NO_CHILDREN: Mapping[str, Certificate] = MappingProxyType({})
_NO_BOUND = "no row has at_most and no state has max_visits"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a machine, where, why, and what to do."""

    level: Level
    code: str
    place: str
    why: str
    remedy: str


def verify(machine: Machine) -> tuple[Finding, ...]:
    """What is wrong with a machine, errors first."""
    graph = _Graph(machine)
    found = [
        *_unreachable(graph),
        *_shadowed(graph),
        *_stuck(graph),
        *_endless(graph),
        *_falling_through(graph),
        *_unhandled(graph),
        *_contested(graph),
    ]
    return tuple(sorted(found, key=lambda finding: finding.level))


@dataclass(frozen=True, slots=True)
class Certificate:
    """The most that any run can do, with its children: rows taken, and each resource by name."""

    transitions: int
    resources: Mapping[str, float]
    exact: bool


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Why there is no certificate: the cycle that has no bound, or the child that nothing is known of."""

    cycle: tuple[str, ...]
    why: str


def certify(machine: Machine, children: Mapping[str, Certificate] = _NO_CHILDREN) -> Certificate | Unbounded:
    """The most that any run of a machine can do; children are the certificates of machines that it starts, by name."""
    graph = _Graph(machine)
    try:
        prices = _Prices(graph, children)
        best = _walked(graph, prices)
    except _Endless as endless:
        return _named(graph, endless)
    except _NoPrice as unknown:
        return Unbounded((), str(unknown))
    except _TooLarge:
        return _composed(graph, prices)
    return best


def reachable(machine: Machine) -> frozenset[str]:
    """The states that rows lead to from the start, whatever guards say."""
    seen = _reached(machine.chart)
    return frozenset(place.name for place in machine.chart.places if seen[place.index] and place.index != ROOT)


# what rows lead to


def _reached(chart: Chart) -> bytearray:
    places, seen = chart.places, bytearray(len(chart.places))
    fresh = [ROOT]

    def see(entering: _Entering) -> None:
        remembered = {history for above in entering.restored for history in places[above].histories}
        for index in entering.states | remembered:
            if not seen[index]:
                seen[index] = 1
                fresh.append(index)

    seen[ROOT] = 1
    see(_starting(chart))
    while fresh:
        for row in places[fresh.pop()].rows:
            for target in row.targets:
                if not _is_alone(places[target], row):
                    see(_entering(chart, row))
                    break
                if not seen[target]:
                    seen[target] = 1
                    fresh.append(target)
    return seen


def _is_alone(target: Place, row: Row) -> bool:
    """Whether a row that enters this target enters nothing else for it."""
    return target.parent == row.domain and (target.kind == ATOMIC or target.kind == FINAL)


def _starting(chart: Chart) -> _Entering:
    entering = _Entering(chart, {})
    entering.all_down(chart.places[ROOT].initial, ROOT)
    return entering


def _entering(chart: Chart, row: Row) -> _Entering:
    """What a row enters before there is any history."""
    entering = _Entering(chart, {})
    domain = _domain(chart, row, {})
    for target in row.targets:
        entering.down(target)
    for target in _effective(chart, row.targets, {}):
        entering.up(target, ROOT if domain is None else domain)
    return entering


class _Lead:
    """Where a row leads: the states that it may enter, the leaves among them, and one that counts its visits."""

    __slots__ = ("entered", "gate", "historic", "leaves")

    def __init__(self, chart: Chart, row: Row, seen: Sequence[int]) -> None:
        places, certain = chart.places, row.targets
        self.historic = False
        self.entered: Sequence[int] = certain
        if len(certain) != 1 or not _is_alone(places[certain[0]], row):
            entering = _entering(chart, row)
            certain = tuple(sorted(entering.states))
            self.entered = certain
            if entering.historic:
                self.historic, above = True, entering.restored
                remembered = (index for one in above for index in _remembered(chart, one) if seen[index])
                self.entered = sorted(entering.states.union(remembered))
                certain = tuple(one for one in certain if any(one <= inner < places[one].end for inner in above))
        self.leaves = [index for index in self.entered if places[index].kind in (ATOMIC, FINAL)]
        limits = {index: _visits(places[index]) for index in certain if _visits(places[index]) is not None}
        self.gate = min(limits, key=lambda index: limits[index] or 0) if limits else None


def _visits(place: Place) -> int | None:
    limit: int | None = getattr(place.node, "max_visits", None)
    return limit


def _remembered(chart: Chart, above: int) -> set[int]:
    """The states that the history of a state may bring back."""
    found: set[int] = set()
    todo, known = [above], set[int]()
    while todo:
        place = chart.places[todo.pop()]
        if place.index in known:
            continue
        known.add(place.index)
        if any(getattr(chart.places[one].node, "deep", False) for one in place.histories):
            found.update(one for one in range(place.index + 1, place.end) if chart.places[one].kind != HISTORY)
            continue
        for child in place.children:
            entering = _Entering(chart, {})
            entering.down(child)
            found |= entering.states
            todo += entering.restored
    return found


# what can cause events


class _Causes:
    """The events that something in the machine may cause, by the state that owns what causes them."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.owned: dict[int, set[str]] = {}
        self.adrift: set[str] = set()
        self._at: dict[int, set[str]] = {}

    def add(self, causes: Iterable[tuple[str, int | None]]) -> None:
        for name, owner in causes:
            (self.adrift if owner is None else self.owned.setdefault(owner, set())).add(name)

    def at(self, leaf: int) -> set[str]:
        """What may be caused while this leaf is active, and is offered to it."""
        found = self._at.get(leaf)
        if found is None:
            around = (leaf, *(place.index for place in self.chart.ancestors(leaf)))
            found = self.adrift.union(*(self.owned[one] for one in around if one in self.owned))
            self._at[leaf] = found
        return found


def _causes_of_place(place: Place) -> Iterator[tuple[str, int | None]]:
    """What entering and leaving a state may cause."""
    node, index = place.node, place.index
    if isinstance(node, History):
        yield from _causes(node.do, place.parent)
        return
    yield from _causes(node.enter, index)
    yield from ((name, None) for name, _ in _causes(node.exit, index))
    if isinstance(node, State):
        yield from _causes(node.starting, index)


def _causes_of_row(chart: Chart, row: Row) -> Iterator[tuple[str, int | None]]:
    """What taking a row may cause; what it wants belongs to the state that it leads to."""
    owner = row.targets[0] if row.targets else row.source
    if chart.places[owner].kind == HISTORY:
        owner = chart.places[owner].parent
    for action in sequence(row.on.do):
        if row.on.emits is None or isinstance(action, Effect):
            yield from _causes(action, owner)
        else:
            yield Misbehaved.name, owner
            for kind in row.on.emits:
                yield from _ends(kind.kind, _names(kind.outcomes), owner if kind.owned else None)


def _causes(actions: Any, owner: int) -> Iterator[tuple[str, int | None]]:
    for action in sequence(actions):
        match action:
            case Send(event=event):
                yield event.name, None
            case Alarm(event=event):
                yield event.name, owner
            case AskPerson(within=within):
                if within is not None:
                    yield Expired.name, owner
            case Effect():
                yield from _ends(action.kind, _names(action.outcomes), owner if action.owned else None)
            case _:
                yield Misbehaved.name, owner
                for kind in emitted(action):
                    outcomes = _names(getattr(action, "outcomes", ()))
                    yield from _ends(kind, outcomes, None if kind == Send.kind else owner)


def _names(events: Iterable[type[Event]]) -> tuple[str, ...]:
    return tuple(event.name for event in events)


def _ends(kind: str, outcomes: tuple[str, ...], owner: int | None) -> Iterator[tuple[str, int | None]]:
    """The events in which an effect may end without a person; without declared outcomes, any."""
    if kind == CancelSend.kind:
        return
    yield from ((name, owner) for name in outcomes if not matches(Answered.name, name))
    if not outcomes and kind != AskPerson.kind:
        yield _ANY, owner
    if kind not in _BY_THE_RUNTIME:
        yield GaveUp.name, owner
        yield Exhausted.name, owner


def _is_inner(descriptor: str) -> bool:
    """Whether only the machine itself and its effects cause such events."""
    return descriptor == "error" or any(matches(family, descriptor) for family in _INNER)


def _fits(descriptor: str, cause: str) -> bool:
    """Whether a caused event, or a subclass of it, can be meant by a descriptor."""
    if cause == _ANY:
        return not _is_inner(descriptor) and (not descriptor or not matches(Answered.name, descriptor))
    return matches(descriptor, cause) or matches(cause, descriptor)


# the graph

Arcs = dict[int, list[tuple[Row, int]]]


class _Graph:
    """The leaves of a machine, and the rows that lead from one to the next."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.chart = chart = machine.chart
        self.places = chart.places
        self.seen = _reached(chart)
        self.rows = [row for row in chart.rows if self.seen[row.source]]
        self.leads = {row: _Lead(chart, row, self.seen) for row in self.rows if row.targets}
        self.leaves = [place.index for place in chart.places if self.seen[place.index] and _is_leaf(place)]
        self.after_done = [row for row in self.rows if any(_is_done(one) for one in row.descriptors or ())]
        self.by_place = {place.index: tuple(_causes_of_place(place)) for place in chart.places}
        self.by_row = {row: tuple(_causes_of_row(chart, row)) for row in self.rows}
        self.causes = _Causes(chart)
        for place in chart.places:
            if self.seen[place.index]:
                self.causes.add(self.by_place[place.index])
        for row in self.rows:
            self.causes.add(self.by_row[row])
        if machine.budget is not None and machine.budget.seconds is not None:
            self.causes.add([(Exhausted.name, None)])
        self._leaving: dict[int, list[Row]] = {}
        self._open: dict[int, list[Row]] = {}
        self._arcs: dict[int, list[tuple[Row, int]]] = {}

    def open(self, leaf: int) -> list[Row]:
        """The rows that a leaf may choose: its own and those around it, without what rows before them cover."""
        found = self._open.get(leaf)
        if found is None:
            found = self._open[leaf] = list(self._uncovered(leaf))
            eventless = [row for row in found if row.descriptors is None]
            # A guard that goes wrong stops the selection, so that an event may come before a sure row is taken.
            if any(map(self.is_sure, eventless)) and all(row.guard is None for row in eventless):
                found[:] = eventless
        return found

    def _uncovered(self, leaf: int) -> Iterator[Row]:
        covers: set[str | None] = set()
        for place in (self.places[leaf], *self.chart.ancestors(leaf)):
            for row in place.rows:
                named: Sequence[str | None] = (None,) if row.descriptors is None else row.descriptors
                if not all(_is_covered(one, covers) for one in named):
                    yield row
                if _is_unconditional(row):
                    covers.update(named)

    def is_sure(self, row: Row) -> bool:
        """Whether a row is taken whenever it is its turn: no guard, no bound of its own or of a state it enters."""
        return _is_unconditional(row) and not self.is_bounded(row)

    def is_bounded(self, row: Row) -> bool:
        return row.at_most is not None or (bool(row.targets) and self.leads[row].gate is not None)

    def arcs(self, leaf: int) -> list[tuple[Row, int]]:
        """The rows that may be taken in a leaf, each with a leaf that it enters; itself where a row has no target."""
        found = self._arcs.get(leaf)
        if found is None:
            found = self._arcs[leaf] = [] if self.is_end(leaf) else list(self._arcs_of(leaf))
        return found

    def _arcs_of(self, leaf: int) -> Iterator[tuple[Row, int]]:
        for row in self.chances(leaf):
            yield from ((row, to) for to in (self.leads[row].leaves if row.targets else (leaf,)))
        for row in self.after(leaf):
            if row.targets:
                yield from ((row, to) for to in self.leads[row].leaves)

    def chances(self, leaf: int) -> list[Row]:
        """The rows that may be taken in a leaf on events that can come to it."""
        return [row for row in self.open(leaf) if self.is_possible(leaf, row)]

    def after(self, leaf: int) -> list[Row]:
        """The rows that may be taken because this leaf, a final state, was entered."""
        if self.places[leaf].kind != FINAL or self.is_end(leaf):
            return []
        raised = self.raised(leaf)
        return [row for row in self.after_done if _takes_one(row, raised)]

    def unbounded(self) -> Arcs:
        """The arcs of rows that nothing bounds."""
        return {leaf: [arc for arc in self.arcs(leaf) if not self.is_bounded(arc[0])] for leaf in self.leaves}

    def leaving(self, parallel: Place) -> list[Row]:
        """The rows inside a parallel state that leave it."""
        found = self._leaving.get(parallel.index)
        if found is None:
            found = self._leaving[parallel.index] = [
                row
                for row, lead in self.leads.items()
                if parallel.index < row.source < parallel.end
                and not parallel.index < min(lead.entered) <= max(lead.entered) < parallel.end
            ]
        return found

    def is_end(self, leaf: int) -> bool:
        place = self.places[leaf]
        return place.kind == FINAL and place.parent == ROOT

    def is_possible(self, leaf: int, row: Row) -> bool:
        """Whether an event that this row takes can come here; done events are seen to at final states."""
        return row.descriptors is None or any(True for one in row.descriptors for _ in self.coming(leaf, one))

    def coming(self, leaf: int, descriptor: str) -> Iterator[str]:
        """The names of events that a descriptor may take in this leaf."""
        if not _is_inner(descriptor):
            yield descriptor or _OTHER
        elif not _is_done(descriptor):
            causes = (cause for cause in self.causes_at(leaf) if _fits(descriptor, cause))
            yield from (cause if matches(descriptor, cause) else descriptor for cause in causes)

    def causes_at(self, leaf: int) -> set[str]:
        tried = {name for row in self.open(leaf) for name in self.tried(row)}
        return self.causes.at(leaf) | tried

    def tried(self, row: Row) -> Iterator[str]:
        """What trying a row may cause even where it is not taken."""
        if row.guard is not None:
            yield Misbehaved.name
        if row.targets and self.leads[row].gate is not None:
            yield Exhausted.name

    def raised(self, leaf: int) -> tuple[str, ...]:
        """The done events that may come when this final state is entered."""
        parent = self.places[self.places[leaf].parent]
        grand = self.places[parent.parent] if parent.index != ROOT else parent
        if grand.kind == PARALLEL and self.can_finish(grand):
            return f"{Done.name}.{parent.name}", f"{Done.name}.{grand.name}"
        return (f"{Done.name}.{parent.name}",)

    def can_finish(self, place: Place) -> bool:
        if place.kind == PARALLEL:
            return all(self.can_finish(self.places[child]) for child in place.children)
        return any(self.places[child].kind == FINAL and self.seen[child] for child in place.children)


def _takes_one(row: Row, names: Iterable[str]) -> bool:
    return any(matches(one, name) for name in names for one in row.descriptors or ())


def _is_leaf(place: Place) -> bool:
    return place.kind == ATOMIC or place.kind == FINAL


def _is_done(descriptor: str) -> bool:
    return matches(Done.name, descriptor)


def _is_unconditional(row: Row) -> bool:
    return row.guard is None and row.at_most is None


def _is_covered(descriptor: str | None, covers: set[str | None]) -> bool:
    """Whether rows that cover these descriptors leave nothing of this one."""
    if not covers or descriptor is None:
        return descriptor in covers
    if "" in covers:
        return True
    parts = descriptor.split(".")
    return any(".".join(parts[:length]) in covers for length in range(1, len(parts) + 1))


def _names_only(row: Row, family: str) -> bool:
    return bool(row.descriptors) and all(matches(family, one) for one in row.descriptors or ())


def _knots(arcs: Arcs) -> list[Arcs]:
    """The parts of a graph in which every point can be reached from every other, with the arcs inside them."""
    found: list[Arcs] = []
    arcs = {point: out for point, out in arcs.items() if out}
    for component in _components(arcs):
        inside = set(component)
        knot = {point: [arc for arc in arcs[point] if arc[1] in inside] for point in component}
        if len(component) > 1 or knot[component[0]]:
            found.append(knot)
    return found


def _components(arcs: Arcs) -> Iterator[list[int]]:
    """Tarjan's strongly connected components, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in arcs:
        if root in number:
            continue
        work = [(root, iter(arcs[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            point, rest = work[-1]
            for _, to in rest:
                if to in on_stack:
                    low[point] = min(low[point], number[to])
                elif to not in number and to in arcs:
                    number[to] = low[to] = len(number)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(arcs[to])))
                    break
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[point])
                if low[point] == number[point]:
                    component = [stack.pop()]
                    while component[-1] != point:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    yield component


def _shortest(knot: Arcs) -> list[tuple[Row, int]]:
    """The shortest cycle of a knot; of a very large one, the shortest that a fixed effort finds."""
    best: list[tuple[Row, int]] = []
    effort = 0
    for start in sorted(knot):
        came: dict[int, tuple[int, tuple[Row, int]]] = {}
        wave, depth = [start], 0
        while wave and not (best and depth + 1 >= len(best)):
            depth += 1
            ahead: list[int] = []
            for point in wave:
                for arc in knot[point]:
                    effort += 1
                    if arc[1] not in came:
                        came[arc[1]] = point, arc
                        ahead.append(arc[1])
            if start in came:
                best = _back(came, start)
                break
            wave = ahead
        if len(best) == 1 or effort > _EFFORT:
            break
    return best


def _back(came: Mapping[int, tuple[int, tuple[Row, int]]], start: int) -> list[tuple[Row, int]]:
    point, arc = came[start]
    path = [arc]
    while point != start:
        point, arc = came[point]
        path.append(arc)
    return path[::-1]


def _stations(graph: _Graph, cycle: Sequence[tuple[Row, int]]) -> tuple[str, ...]:
    """The states of a cycle as the table names them, the first again at the end."""
    names = [_station(graph.places, row, to) for row, to in cycle]
    return (names[-1], *names)


def _station(places: Sequence[Place], row: Row, to: int) -> str:
    for target in row.targets:
        if places[target].kind != HISTORY and target <= to < places[target].end:
            return places[target].name
    return places[to].name


# the findings


def _unreachable(graph: _Graph) -> Iterator[Finding]:
    for place in graph.places:
        if not graph.seen[place.index] and graph.seen[place.parent]:
            what = "no row leads to it" if place.kind != HISTORY else "no row leads to this history"
            yield Finding(
                "error", "unreachable", place.name, f"{what} from the start", "add a row that leads there, or remove it"
            )


def _shadowed(graph: _Graph) -> Iterator[Finding]:
    for place in graph.places:
        if not graph.seen[place.index] or not place.rows:
            continue
        at_once = next((row for row in place.rows if row.descriptors is None and graph.is_sure(row)), None)
        covers: dict[str | None, Row] = {}
        for row in place.rows:
            named: Sequence[str | None] = (None,) if row.descriptors is None else row.descriptors
            if covers and all(_is_covered(one, set(covers)) for one in named):
                yield _shadow(
                    row, f"{trigger(next(iter(covers.values())).on)} above it has no guard and takes it first"
                )
            elif at_once is not None and at_once.targets and row.descriptors is not None:
                yield _shadow(row, "the state is left at once by its row on always, before any event comes")
            elif named and all(one is not None and _is_done(one) for one in named) and not _can_be_done(graph, row):
                yield Finding(
                    "error",
                    "never-done",
                    _row_place(row),
                    f"{', '.join(row.descriptors or ())} never comes: no final state inside can be reached",
                    "give the state a Final inside and a row that leads to it, or remove the row",
                )
            if _is_unconditional(row):
                covers.update((one, row) for one in named if one not in covers)


def _shadow(row: Row, why: str) -> Finding:
    remedy = "put the row above the one that takes its events, give that one a guard, or remove this one"
    return Finding("error", "shadowed", _row_place(row), f"it is never taken: {why}", remedy)


def _row_place(row: Row) -> str:
    return f"{row.on.state} on {trigger(row.on)}"


def _can_be_done(graph: _Graph, row: Row) -> bool:
    finals = (leaf for leaf in graph.leaves if graph.places[leaf].kind == FINAL)
    return any(_takes_one(row, graph.raised(leaf)) for leaf in finals)


def _stuck(graph: _Graph) -> Iterator[Finding]:
    """Dead ends, and parts of the machine that no final state can be reached from."""
    arcs = {leaf: list(_onward(graph, leaf)) for leaf in graph.leaves}
    ends = [leaf for leaf in graph.leaves if graph.is_end(leaf)]
    lost = set(arcs) - _leading_to(arcs, ends)
    for leaf in sorted(lost):
        if not arcs[leaf] and not _waits_for_others(graph, graph.places[leaf]):
            yield _dead_end(graph, graph.places[leaf])
    for knot in _knots({leaf: arcs[leaf] for leaf in sorted(lost)}):
        if any(arc[1] not in knot for leaf in knot for arc in arcs[leaf]):
            continue
        if not ends:
            why = "it has no final state that can be reached: a run never ends by itself"
            yield Finding("warning", "no-end", graph.machine.name, why, "add a Final and a row that leads to it")
            return
        names = [graph.places[leaf].name for leaf in sorted(knot)]
        why = f"no path leads from {', '.join(names[:5])}{' …' if len(names) > 5 else ''} to a final state"
        yield Finding("error", "no-end", names[0], why, "add a row that leads out")


def _waits_for_others(graph: _Graph, place: Place) -> bool:
    """Whether a final state ends a region while another region has no end, which is the one to name."""
    around = graph.places[graph.places[place.parent].parent]
    return place.kind == FINAL and around.kind == PARALLEL and not graph.can_finish(around)


def _onward(graph: _Graph, leaf: int) -> Iterator[tuple[Row, int]]:
    """What may take a leaf further: its own arcs, and rows of other regions that leave the state around them all."""
    yield from (arc for arc in graph.arcs(leaf) if not _names_only(arc[0], Cancelled.name))
    inner = graph.places[leaf]
    for place in graph.chart.ancestors(leaf):
        if place.kind == PARALLEL:
            for row in graph.leaving(place):
                if not inner.index <= row.source < inner.end:
                    yield from ((row, to) for to in graph.leads[row].leaves)
        inner = place


def _leading_to(arcs: Arcs, ends: Iterable[int]) -> set[int]:
    back: dict[int, list[int]] = {}
    for leaf, out in arcs.items():
        for _, to in out:
            back.setdefault(to, []).append(leaf)
    found = set(ends)
    todo = list(found)
    while todo:
        for leaf in back.get(todo.pop(), ()):
            if leaf not in found:
                found.add(leaf)
                todo.append(leaf)
    return found


def _dead_end(graph: _Graph, place: Place) -> Finding:
    if place.kind == FINAL:
        above = graph.places[place.parent].name
        why = f"it ends {above}, and no row takes Done of {above}: the run stays there for ever"
        return Finding("error", "dead-end", place.name, why, f"add On({above!r}, Done, to=…)")
    why = "no row leads out of it or of a state around it: the run stays there for ever"
    return Finding("error", "dead-end", place.name, why, "add a row that leads out, or make it a Final")


def _endless(graph: _Graph) -> Iterator[Finding]:
    """Cycles without a bound, the shortest of each knot."""
    arcs = {
        leaf: [arc for arc in out if not _names_only(arc[0], Cancelled.name)] for leaf, out in graph.unbounded().items()
    }
    eventless = _knots({leaf: [arc for arc in out if arc[0].descriptors is None] for leaf, out in arcs.items()})
    for knot in eventless:
        yield _cycle(graph, knot, "eventless-cycle")
    arcs = _without(arcs, eventless)
    driven = _driven(graph, arcs)
    for knot in driven:
        yield _cycle(graph, knot, "unbounded-cycle")
    arcs = _without(arcs, driven)
    for knot in _knots({leaf: [arc for arc in out if arc[0].targets] for leaf, out in arcs.items()}):
        yield _cycle(graph, knot, "paced-cycle")


def _without(arcs: Arcs, knots: Sequence[Arcs]) -> Arcs:
    if not knots:
        return arcs
    tied = {row for knot in knots for out in knot.values() for row, _ in out}
    return {leaf: [arc for arc in out if arc[0] not in tied] for leaf, out in arcs.items()}


def _driven(graph: _Graph, arcs: Arcs) -> list[Arcs]:
    """The knots that the machine can go round by itself: what their rows take is caused on a cycle, again and again."""
    causes = graph.causes
    while True:
        knots = _knots(arcs)
        fed = _fed(graph, knots, causes)
        before = {leaf: out for knot in knots for leaf, out in knot.items()}
        arcs = {leaf: [arc for arc in out if _is_driven(graph, leaf, arc[0], fed)] for leaf, out in before.items()}
        if arcs == before and fed.owned == causes.owned and fed.adrift == causes.adrift:
            return knots
        causes = fed


def _fed(graph: _Graph, knots: Sequence[Arcs], before: _Causes) -> _Causes:
    """What is caused on these cycles, given what was thought to be caused before."""
    fed = _Causes(graph.chart)
    for leaf, out in ((leaf, out) for knot in knots for leaf, out in knot.items()):
        for row, _ in out:
            fed.add(graph.by_row[row])
            for entered in graph.leads[row].entered if row.targets else ():
                fed.add(graph.by_place[entered])
        for row in graph.open(leaf):
            if _is_driven(graph, leaf, row, before):
                fed.add((name, leaf) for name in graph.tried(row))
    return fed


def _is_driven(graph: _Graph, leaf: int, row: Row, causes: _Causes) -> bool:
    if row.descriptors is None:
        return True
    if graph.places[leaf].kind == FINAL and row in graph.after_done:
        return True
    return any(_fits(one, cause) for one in row.descriptors for cause in causes.at(leaf))


def _cycle(graph: _Graph, knot: Arcs, code: str) -> Finding:
    stations = _stations(graph, _shortest(knot))
    path = _path(stations)
    why = f"{path}: {_NO_BOUND}"
    remedy = "give one of its rows at_most=…, or one of its states max_visits=…"
    if code == "eventless-cycle":
        why = f"{path}: these rows wait for no event, and {_NO_BOUND}"
    if code == "paced-cycle":
        return Finding("warning", code, stations[0], why + "; it turns as often as someone outside makes it", remedy)
    return Finding("error", code, stations[0], why, remedy)


def _path(stations: Sequence[str]) -> str:
    if len(stations) <= _LONG:
        return " → ".join(stations)
    return " → ".join((*stations[:3], "…", *stations[-2:])) + f" ({len(stations) - 1} rows)"


def _falling_through(graph: _Graph) -> Iterator[Finding]:
    """Events that a state waits for, and that no row may take in the end."""
    for place in graph.places:
        if not graph.seen[place.index] or not place.rows:
            continue
        for name, row in _conditional(graph, place).items():
            why = f"every row for {name or 'it'} has a guard or a bound: it may come and be taken by none"
            remedy = f"add On({row.on.state!r}, otherwise, …) below, or a row without a guard"
            yield Finding("warning", "no-otherwise", _row_place(row), why, remedy)
        rows = graph.open(place.index) if _is_leaf(place) else []
        if rows and all(row.descriptors is None and not _is_unconditional(row) for row in rows):
            why = "only guarded or bounded rows on always lead out: where none holds, the run stays for ever"
            yield Finding("warning", "no-otherwise", _row_place(rows[-1]), why, "leave the last one without a guard")


def _conditional(graph: _Graph, place: Place) -> dict[str, Row]:
    """The descriptors that only rows with a guard or a bound name, in a state and around it."""
    found: dict[str, Row] = {}
    for row in place.rows:
        if not _is_unconditional(row):
            for one in row.descriptors or ():
                if not (_is_inner(one) and not _is_done(one)) and not matches(Cancelled.name, one):
                    found.setdefault(one, row)
    if found:
        rows = [row for around in (place, *graph.chart.ancestors(place.index)) for row in around.rows]
        covers: set[str | None] = {one for row in rows if _is_unconditional(row) for one in row.descriptors or ()}
        return {one: row for one, row in found.items() if not _is_covered(one, covers)}
    return found


def _unhandled(graph: _Graph) -> Iterator[Finding]:
    """Effects that may give up where nothing takes it."""
    if graph.machine.errors != "strict":
        return
    for place in graph.places:
        if not graph.seen[place.index]:
            continue
        around = [place, *graph.chart.ancestors(place.index)]
        if any(matches(one, GaveUp.name) for above in around for row in above.rows for one in row.descriptors or ()):
            continue
        owned = GaveUp.name in graph.causes.owned.get(place.index, ())
        if owned or (GaveUp.name, None) in graph.by_place[place.index]:
            why = "its effect may give up, and no row in it or around it takes GaveUp: the run then fails"
            yield Finding("warning", "unhandled-failure", place.name, why, f"add On({place.name!r}, GaveUp, …)")


def _contested(graph: _Graph) -> Iterator[Finding]:
    """Keys that two regions of a parallel state write."""
    for place in graph.places:
        if place.kind != PARALLEL or not graph.seen[place.index]:
            continue
        regions = {graph.places[child].name: _written(graph, place, child) for child in place.children}
        writing = {name: keys for name, keys in regions.items() if keys}
        keys = sorted({key for keys in writing.values() for key in keys if key is not None})
        for key in keys:
            both = [name for name, written in writing.items() if key in written]
            if len(both) > 1:
                why = f"its regions {' and '.join(both)} both write {key!r}: the later one wins"
                yield Finding("error", "contested-key", place.name, why, "let one region write it, or write two keys")
        unknown = [name for name, written in writing.items() if None in written]
        if unknown and len(writing) > 1:
            why = f"its regions {' and '.join(writing)} write, and {' and '.join(unknown)} does not say what"
            yield Finding(
                "warning", "undeclared-writes", place.name, why, "declare writes=[…] on the rows of its regions"
            )


def _written(graph: _Graph, parallel: Place, region: int) -> set[str | None]:
    """The keys that moves of a region write while the others are active; None for a move that does not say."""
    found: set[str | None] = set()
    for index in range(region, graph.places[region].end):
        place = graph.places[index]
        node = place.node
        if graph.seen[index] and not isinstance(node, History):
            starting = node.starting if isinstance(node, State) else ()
            for actions in (node.enter, node.exit, starting):
                found |= _writes(actions)
        for row in place.rows if graph.seen[index] else ():
            domain = _domain(graph.chart, row, {})
            if domain is None or domain >= region:
                found |= _writes(row.on.do) if row.on.writes is None or not row.on.do else set(row.on.writes)
    return found


def _writes(actions: Any) -> set[str | None]:
    """What actions say that they write; what only wants effects writes nothing."""
    found: set[str | None] = set()
    for action in sequence(actions):
        if isinstance(action, Effect):
            continue
        declared: Iterable[str] | None = getattr(action, "writes", None)
        if declared is not None:
            found.update(declared)
        elif not hasattr(action, "outcomes"):
            found.add(None)
    return found


# what a run can cost


class _NoPrice(Exception):
    """An effect starts a child of which nothing is known."""


class _Endless(Exception):
    """A walk came back to where it had been; the rows that it took in between."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)


class _TooLarge(Exception):
    """The machine has more to enumerate than is worth the time."""


@dataclass(frozen=True, slots=True)
class _Price:
    """What one wanted effect uses at most, and whether it is forgotten when its state is left."""

    amounts: Amounts
    owned: bool
    known: bool = True


class _Prices:
    """What every action of a machine may want, at most."""

    def __init__(self, graph: _Graph, children: Mapping[str, Certificate]) -> None:
        self.costs = graph.machine.costs
        self.children = children
        self.exact = True
        self.of: dict[Bound, tuple[_Price, ...]] = {}
        self.functions: set[Bound] = set()
        for place in graph.places:
            node = place.node
            if isinstance(node, History):
                self._list(place.starting, node.do)
                continue
            self._list(place.enter, node.enter)
            self._list(place.exit, node.exit)
            if isinstance(node, State):
                self._list(place.starting, node.starting)
        for row in graph.chart.rows:
            self._list(row.actions, row.on.do, row.on.emits)

    def _list(self, bounds: Iterable[Bound], actions: Any, declared: Mapping[type[Effect], int] | None = None) -> None:
        for bound, action in zip(bounds, sequence(actions), strict=False):
            if not isinstance(action, Effect):
                self.functions.add(bound)
            if prices := tuple(self._wanted(action, declared)):
                self.of[bound] = prices

    def _wanted(self, action: Any, declared: Mapping[type[Effect], int] | None) -> Iterator[_Price]:
        child = getattr(action, "child", None)
        if isinstance(action, Effect):
            child = action.machine if isinstance(action, StartChild) else None
            declared = {type(action): 1}
        if declared is not None:
            for kind, most in declared.items():
                yield from (self._price(kind.kind, (kind,), child),) * most
            return
        for name, most in emitted(action).items():
            yield from (self._price(name, tuple(_classes(name)), child),) * most

    def _price(self, kind: str, classes: Sequence[type[Effect]], child: str | None) -> _Price:
        amounts: dict[str, float] = {}
        for one in classes:
            for resource, most in one.costs.items():
                amounts[resource] = max(most, amounts.get(resource, 0))
        amounts |= self.costs.get(kind, {})
        amounts = _sum(amounts, {kind: 1})
        if kind == StartChild.kind:
            amounts = _sum(amounts, self._child(child))
        return _Price(amounts, bool(classes) and all(one.owned for one in classes), bool(classes))

    def _child(self, name: str | None) -> Amounts:
        if name is None:
            raise _NoPrice("it starts a child, and the action does not say which: give it an attribute `child`")
        if name not in self.children:
            raise _NoPrice(f"it starts the child {name!r}, which has no certificate")
        certificate = self.children[name]
        self.exact = self.exact and certificate.exact
        return _sum(certificate.resources, {_ROWS: certificate.transitions})

    def total(self, bounds: Iterable[Bound]) -> Amounts:
        return _sum(*(price.amounts for bound in bounds for price in self.of.get(bound, ())))


def _classes(kind: str, above: type[Effect] = Effect) -> Iterator[type[Effect]]:
    for one in above.__subclasses__():
        if one.kind == kind:
            yield one
        yield from _classes(kind, one)


def _sum(*all_amounts: Amounts) -> dict[str, float]:
    total: dict[str, float] = {}
    for amounts in all_amounts:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(all_amounts: Iterable[Amounts]) -> dict[str, float]:
    most: dict[str, float] = {}
    for amounts in all_amounts:
        for name, amount in amounts.items():
            most[name] = max(amount, most.get(name, 0))
    return most


def _certificate(amounts: Amounts, exact: bool) -> Certificate:
    resources = {name: amounts[name] for name in sorted(amounts) if name != _ROWS}
    return Certificate(int(amounts.get(_ROWS, 0)), resources, exact)


# enumeration


class _Undecided(Exception):
    """The rehearsal met a choice that it has not been given."""

    def __init__(self, options: int) -> None:
        self.options = options


class _Idle(Exception):
    """The rehearsal goes round without taking anything: what it could still do is done by others."""


class _Leaking(deque[Event]):
    """A queue of raised events into which functions may have put more: another event may come before the next."""

    def __init__(self, rehearsal: _Rehearsal) -> None:
        super().__init__()
        self.rehearsal = rehearsal
        self.leaked = -1

    def popleft(self) -> Event:
        rehearsal = self.rehearsal
        names = rehearsal.raisable() if self.leaked < len(rehearsal.microsteps) else []
        choice = rehearsal.choose(len(names) + 1) if names else 0
        if not choice:
            return super().popleft()
        self.leaked = len(rehearsal.microsteps)
        return Named(names[choice - 1])


class _Rehearsal(_Turn):
    """A turn of the interpreter that does no move: guards are chosen, effects are priced."""

    __slots__ = ("asked_for", "choices", "guards", "made", "moved", "tested", "trail", "walk")

    def __init__(self, walk: _Walk, snapshot: Snapshot, event: Event, choices: Sequence[int]) -> None:
        super().__init__(walk.machine, snapshot, event, ())
        self.walk = walk
        self.choices = choices
        self.made = 0
        self.moved = self.tested = False
        self.guards: dict[Row, bool | None] = {}
        self.trail: dict[Any, tuple[Row, ...]] = {}
        self.asked_for: set[Any] = set()
        if walk.leaks:
            self.queue = _Leaking(self)

    def run(self, within: str | None) -> int:
        """Go through the turn; how many options there are where a choice is missing, else 0."""
        try:
            if self.active:
                self.offer(self.event, within)
            else:
                self.begin(_plan_start(self.chart))
            self.settle()
        except _Undecided as undecided:
            return undecided.options
        return 0

    def choose(self, options: int) -> int:
        if self.made == len(self.choices):
            raise _Undecided(options)
        self.made += 1
        return self.choices[self.made - 1]

    def select(self, name: str | None, within: str | None) -> tuple[Row, ...] | None:
        self.guards = {}
        if self.walk.leaks:
            key = (len(self.microsteps), name, tuple(event.name for event in self.queue))
            if key in self.asked_for:
                raise _Idle
            self.asked_for.add(key)
        return super().select(name, within)

    def holds(self, row: Row) -> bool | None:
        if row.guard is None or (row.at_most is not None and self.counts.get(row.id, 0) >= row.at_most):
            return super().holds(row)
        self.tested = True
        if row not in self.guards:
            choice = self.choose(3 if self.walk.leaks else 2)
            self.guards[row] = choice == 1 if choice < 2 else self.misguarded(row, "it went wrong")
        return self.guards[row]

    def misguarded(self, row: Row, reason: str) -> bool | None:
        held = super().misguarded(row, reason)
        wrong = [event for event in self.queue if event.name == Misbehaved.name]
        if len(wrong) > 1:  # one stands for all: a guard that was tried may be said to go wrong at any time
            self.queue.pop()
        return held

    def take(self, rows: tuple[Row, ...], name: str) -> None:
        key = (self.place, tuple(event.name for event in self.queue), rows, name)
        if key in self.trail:
            since = list(self.trail).index(key)
            raise _Endless([row.id for taken in list(self.trail.values())[since:] for row in taken])
        if len(self.trail) > 2 * self.machine.max_microsteps:
            raise _TooLarge
        self.trail[key] = rows
        super().take(rows, name)

    def end(self, status: Status, reason: str) -> None:
        if len(self.microsteps) > self.machine.max_microsteps:
            raise _Endless([row for microstep in self.microsteps for row in microstep.taken])
        super().end(status, reason)

    def act(self, action: Bound, owner: str | None, active: frozenset[str] | None) -> None:
        self.moved = self.moved or action in self.walk.prices.functions
        for price in self.walk.prices.of.get(action, ()):
            self.effects.append(Wanted(cast(Effect, price), owner if price.owned else None))

    def attempt(self, action: Bound, active: frozenset[str] | None) -> Any:
        self.tested = True

    def raisable(self) -> list[str]:
        """What may have been raised by now: anything by a move, an error by a guard or a result."""
        names = self.walk.names(self.active) if self.moved or self.tested else []
        return names if self.moved else [name for name in names if name == _OTHER or matches(name, Misbehaved.name)]

    @property
    def place(self) -> Any:
        """Where the run stands, without its data."""
        return self.active, frozenset(self.counts.items()), frozenset(self.history.items())

    @property
    def prices(self) -> Iterator[_Price]:
        return (cast(_Price, wanted.effect) for wanted in self.effects)


@dataclass(frozen=True, slots=True)
class _Stride:
    """One turn of a walk: what it uses, the rows that it takes, and where it leads; None where the run is over."""

    used: Amounts
    rows: tuple[str, ...]
    place: Any
    snapshot: Snapshot


class _Visit:
    """A place on the way, what is still to be tried from it, and the most that was found beyond it."""

    __slots__ = ("best", "stride", "strides")

    def __init__(self, stride: _Stride, strides: Iterator[_Stride]) -> None:
        self.stride = stride
        self.strides = strides
        self.best: Amounts = {}


class _Walk:
    """All runs of a machine, data left out: the places that they come through, and the most that each can use."""

    def __init__(self, graph: _Graph, prices: _Prices, *, leaks: bool) -> None:
        self.graph = graph
        self.machine = copy(graph.machine)
        chart = copy(graph.chart)
        chart.candidates, chart.plans = {}, {}
        object.__setattr__(self.machine, "chart", chart)
        self.prices = prices
        self.leaks = leaks
        self.exact = prices.exact
        self.effort = 0
        self._names: dict[tuple[str, ...], list[str]] = {}

    def most(self) -> Amounts:
        """The most that any run can use; walks in depth, each place once, and comes back to none."""
        start = _Stride({}, (), "start", Snapshot((), None))
        path, known = [_Visit(start, self.strides(start))], dict[Any, Amounts]()
        way: dict[Any, int] = {start.place: 0}
        while True:
            visit = path[-1]
            stride = next(visit.strides, None)
            if stride is None:
                path.pop()
                way.pop(visit.stride.place)
                known[visit.stride.place] = visit.best
                if not path:
                    return visit.best
                stride, visit = visit.stride, path[-1]
            if stride.place is None or stride.place in known:
                visit.best = _most((visit.best, _sum(stride.used, known.get(stride.place, {}))))
            elif stride.place in way:
                since = path[way[stride.place] + 1 :]
                raise _Endless([row for one in since for row in one.stride.rows] + list(stride.rows))
            else:
                way[stride.place] = len(path)
                path.append(_Visit(stride, self.strides(stride)))
            if len(known) + len(path) > _NODES:
                raise _TooLarge

    def strides(self, here: _Stride) -> Iterator[_Stride]:
        """Every different turn that may come next."""
        found: dict[Any, _Stride] = {}
        for event, within in self.offers(here.snapshot.active):
            for turn in self.rehearsed(here.snapshot, event, within):
                place = turn.place if turn.status == "live" else None
                if turn.microsteps or place is None:
                    rows = tuple(row for microstep in turn.microsteps for row in microstep.taken)
                    used = _sum({_ROWS: len(rows)}, *(price.amounts for price in turn.prices))
                    after = Snapshot(turn.active, None, counts=turn.counts, history=turn.history)
                    found.setdefault((place, frozenset(used.items())), _Stride(used, rows, place, after))
        return iter(found.values())

    def rehearsed(self, snapshot: Snapshot, event: Event, within: str | None) -> Iterator[_Rehearsal]:
        """The turns that an event may cause, one for each way in which the choices may fall."""
        todo: list[tuple[int, ...]] = [()]
        while todo:
            choices = todo.pop()
            turn = _Rehearsal(self, snapshot, event, choices)
            self.effort += 1 + len(choices)
            if self.effort > _STEPS:
                raise _TooLarge
            try:
                options = turn.run(within)
            except _Idle:
                continue
            if options:
                todo += [(*choices, option) for option in range(options)]
                continue
            if len(turn.microsteps) > 1 and not all(price.known for price in turn.prices):
                self.exact = False
            yield turn

    def offers(self, active: tuple[str, ...]) -> Iterator[tuple[Event, str | None]]:
        if not active:
            yield Started(), None
            return
        for scope in self.scopes(active):
            yield from ((Named(name), scope) for name in self.names(active))
        yield Cancelled(), None

    def names(self, active: tuple[str, ...]) -> list[str]:
        """The events that can come to these leaves; others would do as one of these."""
        found = self._names.get(active)
        if found is None:
            graph = self.graph
            leaves = [graph.chart.by_name[name] for name in active]
            named = ((leaf, one) for leaf in leaves for row in graph.open(leaf) for one in row.descriptors or ())
            found = list(dict.fromkeys(name for leaf, one in named for name in graph.coming(leaf, one)))
            eventless = any(row.descriptors is None for leaf in leaves for row in graph.open(leaf))
            if eventless and _OTHER not in found:  # an event that nobody takes has rows on always tried again
                found.append(_OTHER)
            self._names[active] = found
        return found

    def scopes(self, active: tuple[str, ...]) -> Iterator[str | None]:
        """The states to which an event may be offered alone: one for each part of what is active."""
        yield None
        if len(active) > 1:
            leaves = [self.graph.chart.by_name[name] for name in active]
            parts: dict[frozenset[int], str] = {}
            for leaf in leaves:
                for place in (self.graph.places[leaf], *self.graph.chart.ancestors(leaf)):
                    parts.setdefault(frozenset(one for one in leaves if place.index <= one < place.end), place.name)
            parts.pop(frozenset(leaves))
            yield from parts.values()


def _walked(graph: _Graph, prices: _Prices) -> Certificate:
    """The certificate of a machine small enough to enumerate.

    Functions may raise events or go wrong while rows on always, a done event or a full state are still to be seen to.
    Where that could matter, a second walk lets it happen; if it finds more, the certificate holds but is not exact.
    """
    walk = _Walk(graph, prices, leaks=False)
    best = walk.most()
    raises = any(graph.places[leaf].kind == FINAL and not graph.is_end(leaf) for leaf in graph.leaves)
    guarded = any(row.descriptors is None and row.guard is not None for row in graph.rows)
    if raises or guarded or any(lead.gate is not None for lead in graph.leads.values()):
        wider = _Walk(graph, prices, leaks=True).most()
        return _certificate(wider, walk.exact and wider == best)
    return _certificate(best, walk.exact)


def _named(graph: _Graph, endless: _Endless) -> Unbounded:
    """The cycle that a walk found: the shortest of its kind, or the walk's own."""
    rows = {row.id: row for row in graph.rows}
    taken = [rows[one] for one in endless.rows]
    for knot in _knots(graph.unbounded()):
        cycle = _shortest(knot)
        if any(row in taken for row, _ in cycle):
            return _unbounded(_stations(graph, cycle))
    names = [graph.places[row.targets[0] if row.targets else row.source].name for row in taken]
    return _unbounded((names[-1], *names))


def _unbounded(stations: tuple[str, ...]) -> Unbounded:
    return Unbounded(stations, f"{_path(stations)}: {_NO_BOUND}")


# composition


def _composed(graph: _Graph, prices: _Prices) -> Certificate | Unbounded:
    """A bound for a machine too large to enumerate: no run uses more, some bounds may be higher than any run."""
    arcs = graph.unbounded()
    if knots := _knots(arcs):
        return _unbounded(_stations(graph, _shortest(knots[0])))
    tally = _Tally(graph, prices)
    for [leaf] in _components(arcs):
        tally.tokens[leaf] = tally.token(leaf)
    starting = _starting(graph.chart)
    total = tally.entering(starting.states, starting.historic)
    through: dict[int, list[Amounts]] = {}
    for row in graph.rows:
        gate = graph.leads[row].gate if row.targets else None
        if row.at_most is not None:
            total = _sum(total, _times(row.at_most, tally.row(row)))
        elif gate is not None:
            through.setdefault(gate, []).append(tally.row(row))
    for gate, values in through.items():
        total = _sum(total, _times(_visits(graph.places[gate]) or 0, _most(values)))
    return _certificate(total, exact=False)


def _times(number: int, amounts: Amounts) -> Amounts:
    return {name: number * amount for name, amount in amounts.items()}


class _Tally:
    """What a leaf is worth: the most that can follow from its being active, as long as bounded rows are paid elsewhere.

    A row that leads somewhere trades the leaf that chose it for the leaves that it enters. As there is no cycle
    without a bound, the trade comes to an end, and its worth is a sum over what rows and entries cost.
    """

    def __init__(self, graph: _Graph, prices: _Prices) -> None:
        self.graph = graph
        self.prices = prices
        self.tokens: dict[int, Amounts] = {}
        places = graph.places
        self.memories = prices.total(one for place in places if place.kind == HISTORY for one in place.starting)
        self.places = [
            prices.total((*place.enter, *place.exit, *(place.starting if place.kind != HISTORY else ())))
            for place in places
        ]

    def token(self, leaf: int) -> Amounts:
        graph = self.graph
        if graph.is_end(leaf):
            return {}
        free = [self.row(row) for row in graph.chances(leaf) if not graph.is_bounded(row)]
        after = [self.row(row) for row in graph.after(leaf) if not graph.is_bounded(row)]
        return _sum(_most(free), *after)

    def row(self, row: Row) -> Amounts:
        own = _sum({_ROWS: 1}, self.prices.total(row.actions))
        if not row.targets:
            return own
        lead = self.graph.leads[row]
        return _sum(own, self.entering(lead.entered, lead.historic))

    def entering(self, states: Iterable[int], historic: bool) -> Amounts:
        """What entering these states costs, leaving them again, and all that follows from their leaves."""
        entered = list(states)
        costs = [self.places[index] for index in entered]
        worth = [self.tokens[index] for index in entered if _is_leaf(self.graph.places[index])]
        return _sum(*costs, *worth, self.memories if historic else {})
