"""A machine as a graph, for what is said of it before it runs.

Its points are the leaves (states without states inside); an arc says that in this leaf this row may be taken, its own
or one of the states around it, and that it enters that leaf. A row that an unguarded row before it covers has no
arc from there. Every endless run goes round a cycle of this graph for ever: a row that leads somewhere always leaves
the leaf that chose it, so the leaf must be entered again.

Which events can come:
- `done.state.*` comes when a final state is entered: such a row's arcs begin at the final states.
- `error.*` and `run.exhausted.*` come where something can cause them: an effect that a performer does (not a
  question, a timer or an alarm) may give up or be denied; a function may go wrong; a bounded state may be full.
- Everything else may come at any time. What a move raises by itself counts as coming from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any

from moothall.kernel.chart import (
    ATOMIC,
    FINAL,
    HISTORY,
    PARALLEL,
    ROOT,
    Chart,
    Place,
    Row,
    emitted,
    sequence,
)
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send
from moothall.kernel.events import (
    Answered,
    Done,
    Event,
    ExecutionFailed,
    Exhausted,
    Expired,
    GaveUp,
    matches,
)
from moothall.kernel.interpreter import _domain, _effective, _Entering, _innermost
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import History, State

_BY_THE_RUNTIME = frozenset(kind.kind for kind in (AskPerson, Send, Alarm, CancelSend))
_INNER = (GaveUp.name, ExecutionFailed.name, Exhausted.name, Done.name)
_ANY = "*"
OTHER = "?"
ANY_HISTORY = "*"
_EFFORT = 200_000
NO_BOUND = "no row has at_most and no state has max_visits"
_LONG = 16


def reachable(machine: Machine) -> frozenset[str]:
    """The states that rows lead to from the start, whatever guards say."""
    seen = _reachable(machine.chart)
    return frozenset(place.name for place in machine.chart.places if seen[place.index] and place.index != ROOT)


# what rows lead to


def _reachable(chart: Chart) -> bytearray:
    places, seen = chart.places, bytearray(len(chart.places))
    fresh = [ROOT]

    def see(entering: _Entering) -> None:
        remembered = {history for above in entering.restored for history in places[above].histories}
        for index in entering.states | remembered:
            if not seen[index]:
                seen[index] = 1
                fresh.append(index)

    seen[ROOT] = 1
    see(starting_of(chart))
    while fresh:
        for row in places[fresh.pop()].rows:
            for target in row.targets if row.at_most != 0 else ():
                if not _is_alone(places[target], row):
                    entering = _entering(chart, row)
                    if entering.historic or all(visits_of(places[state]) != 0 for state in entering.states):
                        see(entering)
                    break
                if not seen[target] and visits_of(places[target]) != 0:
                    seen[target] = 1
                    fresh.append(target)
    return seen


def _is_alone(target: Place, row: Row) -> bool:
    """Whether a row that enters this target enters nothing else for it."""
    return target.parent == row.domain and (target.kind == ATOMIC or target.kind == FINAL)


def starting_of(chart: Chart) -> _Entering:
    entering = _Entering(chart, {})
    entering.all_down(chart.places[ROOT].initial, ROOT)
    return entering


def _entering(chart: Chart, row: Row) -> _Entering:
    """What a row enters before there is any history."""
    entering = _Entering(chart, {})
    domain = _domain(chart, row, {})
    for target in _innermost(chart, row.targets):
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
                remembered = (
                    index for ancestor in above for index in _remembered_states(chart, ancestor) if seen[index]
                )
                self.entered = sorted(entering.states.union(remembered))
                certain = tuple(
                    state for state in certain if any(state <= inner < places[state].end for inner in above)
                )
        self.leaves = [index for index in self.entered if places[index].kind in (ATOMIC, FINAL)]
        limits = {index: visits_of(places[index]) for index in certain if visits_of(places[index]) is not None}
        self.gate = min(limits, key=lambda index: limits[index] or 0) if limits else None


def visits_of(place: Place) -> int | None:
    limit: int | None = getattr(place.node, "max_visits", None)
    return limit


def _remembered_states(chart: Chart, above: int) -> set[int]:
    """The states that the history of a state may bring back."""
    found: set[int] = set()
    todo, known = [above], set[int]()
    while todo:
        place = chart.places[todo.pop()]
        if place.index in known:
            continue
        known.add(place.index)
        if any(getattr(chart.places[history].node, "deep", False) for history in place.histories):
            found.update(index for index in range(place.index + 1, place.end) if chart.places[index].kind != HISTORY)
            continue
        for child in place.children:
            entering = _Entering(chart, {})
            entering.down(child)
            found |= entering.states
            todo += entering.restored
    return found


# what can cause events


class Causes:
    """The events that something in the machine may cause, by the state that owns what causes them."""

    def __init__(self, chart: Chart, *, cautious: bool) -> None:
        self.chart = chart
        self.cautious = cautious
        self.owned: dict[int, set[str]] = {}
        self.adrift: set[str] = set()
        self._at: dict[int, set[str]] = {}

    def add(self, causes: Iterable[tuple[str, int | None]]) -> None:
        for name, owner in causes:
            if owner is None or (self.cautious and name == ExecutionFailed.name):
                self.adrift.add(name)
            else:
                self.owned.setdefault(self.heard(owner) if name == ExecutionFailed.name else owner, set()).add(name)

    def heard(self, index: int) -> int:
        """The state in which all hear of what the interpreter raises here: the outermost parallel one, or this."""
        above = [place.index for place in self.chart.ancestors(index) if place.kind == PARALLEL]
        return above[-1] if above else index

    def at(self, leaf: int) -> set[str]:
        """What may be caused while this leaf is active, and is offered to it."""
        found = self._at.get(leaf)
        if found is None:
            around = (leaf, *(place.index for place in self.chart.ancestors(leaf)))
            found = self.adrift.union(*(self.owned[state] for state in around if state in self.owned))
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
            yield ExecutionFailed.name, owner
            for kind in row.on.emits:
                yield from _ends(kind.kind, event_names(kind.outcomes), owner if kind.owned else None)


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
                yield from _ends(action.kind, event_names(action.outcomes), owner if action.owned else None)
            case _:
                yield ExecutionFailed.name, owner
                for kind in emitted(action):
                    outcomes = event_names(getattr(action, "outcomes", ()))
                    yield from _ends(kind, outcomes, None if kind == Send.kind else owner)


def event_names(events: Iterable[type[Event]]) -> tuple[str, ...]:
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


def is_inner(descriptor: str) -> bool:
    """Whether only the machine itself and its effects cause such events."""
    return descriptor == "error" or any(matches(family, descriptor) for family in _INNER)


def fits(descriptor: str, cause: str) -> bool:
    """Whether a caused event, or a subclass of it, can be meant by a descriptor."""
    if cause == _ANY:
        return not is_inner(descriptor) and (not descriptor or not matches(Answered.name, descriptor))
    return matches(descriptor, cause) or matches(cause, descriptor)


# the graph

Arcs = dict[int, list[tuple[Row, int]]]


class Graph:
    """The leaves of a machine, and the rows that lead from one to the next.

    What goes wrong in a function is mostly heard of where it happened. But the run may have gone on by rows on always
    and by what functions raised: a cautious graph lets it be heard of anywhere.
    """

    def __init__(self, machine: Machine, *, cautious: bool = False) -> None:
        self.machine = machine
        self.cautious = cautious
        self.chart = chart = machine.chart
        self.places = chart.places
        self.seen = _reachable(chart)
        self.rows = [row for row in chart.rows if self.seen[row.source]]
        self.leads = {row: _Lead(chart, row, self.seen) for row in self.rows if row.targets}
        self.leaves = [place.index for place in chart.places if self.seen[place.index] and is_leaf(place)]
        self.raises = any(
            not isinstance(action, Effect) and not hasattr(action, "outcomes") for action in machine.actions()
        )
        self._guarded_always = [row for row in self.rows if row.descriptors is None and row.guard is not None]
        self.after_done = [row for row in self.rows if any(is_done(descriptor) for descriptor in row.descriptors or ())]
        self.by_place = {place.index: tuple(dict.fromkeys(_causes_of_place(place))) for place in chart.places}
        self.by_row = {row: tuple(_causes_of_row(chart, row)) for row in self.rows}
        self.causes = Causes(chart, cautious=cautious)
        for place in chart.places:
            if self.seen[place.index]:
                self.causes.add(self.by_place[place.index])
        for row in self.rows:
            self.causes.add(self.by_row[row])
            self.causes.add((all_of.name_in(self.places[row.source].name), row.source) for all_of in row.joins)
        if machine.budget is not None and machine.budget.seconds is not None:
            self.causes.add([(Exhausted.name, None)])
        self._leaving: dict[int, list[Row]] = {}
        self.always_leaves: dict[int, bool] = {}
        self._open: dict[int, list[Row]] = {}
        self._arcs: dict[int, list[tuple[Row, int]]] = {}
        for leaf in self.leaves:
            for row in self.open(leaf):
                self.causes.add((name, self.causes.heard(leaf)) for name in self.tried(row))

    def open(self, leaf: int) -> list[Row]:
        """The rows that a leaf may choose: its own and those around it, without what rows before them cover."""
        found = self._open.get(leaf)
        if found is None:
            found = self._open[leaf] = list(self._uncovered(leaf))
            eventless = [row for row in found if row.descriptors is None]
            # A guard that goes wrong stops the selection, also that of other regions: an event may then come first.
            if any(map(self.is_sure, eventless)) and not self._may_stop(leaf, eventless):
                found[:] = eventless
        return found

    def _may_stop(self, leaf: int, eventless: Iterable[Row]) -> bool:
        """Whether a guard may go wrong when rows on always are tried here or in regions that are active with it."""
        top = self.places[self.causes.heard(leaf)]
        around = (row for row in self._guarded_always if top.index <= row.source < top.end)
        return any(row.guard is not None for row in (*around, *eventless))

    def _uncovered(self, leaf: int) -> Iterator[Row]:
        covers: set[str | None] = set()
        for place in (self.places[leaf], *self.chart.ancestors(leaf)):
            for row in place.rows:
                named: Sequence[str | None] = (None,) if row.descriptors is None else row.descriptors
                if not all(is_covered(descriptor, covers) for descriptor in named):
                    yield row
                if is_unconditional(row):
                    covers.update(named)

    def is_sure(self, row: Row) -> bool:
        """Whether a row is taken whenever it is its turn: no guard, no bound of its own or of a state it enters."""
        return is_unconditional(row) and not self.is_bounded(row)

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

    def is_closed(self, row: Row) -> bool:
        """Whether a row is never taken, because its own bound or that of a state it enters is 0."""
        gate = self.leads[row].gate if row.targets else None
        return row.at_most == 0 or (gate is not None and visits_of(self.places[gate]) == 0)

    def chances(self, leaf: int) -> list[Row]:
        """The rows that may be taken in a leaf on events that can come to it."""
        return [row for row in self.open(leaf) if not self.is_closed(row) and self.is_possible(leaf, row)]

    def after(self, leaf: int) -> list[Row]:
        """The rows that may be taken because this leaf, a final state, was entered."""
        if self.places[leaf].kind != FINAL or self.is_end(leaf):
            return []
        raised = self.raised(leaf)
        return [row for row in self.after_done if not self.is_closed(row) and takes_one(row, raised)]

    @cached_property
    def counters(self) -> Mapping[str, int]:
        """Everything that a run counts or remembers, each with a bit of its own."""
        return {name: 1 << bit for bit, name in enumerate({name: 0 for row in self.rows for name in self.counted(row)})}

    @cached_property
    def ahead(self) -> Mapping[int, int]:
        """The counters that a run may still come to from a leaf."""
        own: dict[int, int] = {}
        arcs: Arcs = {}
        for leaf in self.leaves:
            every = () if self.is_end(leaf) else (*self.open(leaf), *self.after(leaf))
            rows = [row for row in every if not self.is_closed(row)]
            own[leaf] = union(self.counters[name] for row in rows for name in self.counted(row))
            arcs[leaf] = [(row, to) for row in rows if row.targets for to in self.leads[row].leaves]
        found: dict[int, int] = {}
        for component in components_of(arcs):
            inside = set(component)
            beyond = {to for leaf in component for _, to in arcs[leaf] if to not in inside}
            bits = union((*(own[leaf] for leaf in component), *(found[to] for to in beyond)))
            found |= dict.fromkeys(component, bits)
        return found

    def counted(self, row: Row) -> Iterator[str]:
        if row.at_most is not None:
            yield row.id
        if row.targets:
            lead = self.leads[row]
            yield from (self.places[state].name for state in lead.entered if visits_of(self.places[state]) is not None)
            if lead.historic:
                yield ANY_HISTORY

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
        return row.descriptors is None or any(
            True for descriptor in row.descriptors for _ in self.coming(leaf, descriptor)
        )

    def coming(self, leaf: int, descriptor: str) -> Iterator[str]:
        """The names of events that a descriptor may take in this leaf."""
        if not is_inner(descriptor):
            yield descriptor or OTHER
        elif not is_done(descriptor):
            causes = (cause for cause in self.causes.at(leaf) if fits(descriptor, cause))
            yield from (cause if matches(descriptor, cause) else descriptor for cause in causes)

    def tried(self, row: Row) -> Iterator[str]:
        """What trying a row may cause even where it is not taken."""
        if row.guard is not None:
            yield ExecutionFailed.name
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


def union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def takes_one(row: Row, names: Iterable[str]) -> bool:
    return any(matches(descriptor, name) for name in names for descriptor in row.descriptors or ())


def is_leaf(place: Place) -> bool:
    return place.kind == ATOMIC or place.kind == FINAL


def is_done(descriptor: str) -> bool:
    return matches(Done.name, descriptor)


def is_unconditional(row: Row) -> bool:
    return row.guard is None and row.at_most is None


def is_covered(descriptor: str | None, covers: set[str | None]) -> bool:
    """Whether rows that cover these descriptors leave nothing of this one."""
    if not covers or descriptor is None:
        return descriptor in covers
    if "" in covers:
        return True
    parts = descriptor.split(".")
    return any(".".join(parts[:length]) in covers for length in range(1, len(parts) + 1))


def names_only(row: Row, family: str) -> bool:
    return bool(row.descriptors) and all(matches(family, descriptor) for descriptor in row.descriptors or ())


def knots_of(arcs: Arcs) -> list[Arcs]:
    """The parts of a graph in which every point can be reached from every other, with the arcs inside them."""
    found: list[Arcs] = []
    arcs = {point: out for point, out in arcs.items() if out}
    for component in components_of(arcs):
        inside = set(component)
        knot = {point: [arc for arc in arcs[point] if arc[1] in inside] for point in component}
        if len(component) > 1 or knot[component[0]]:
            found.append(knot)
    return found


def components_of(arcs: Arcs) -> Iterator[list[int]]:
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


def shortest_of(knot: Arcs) -> list[tuple[Row, int]]:
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


def stations_of(graph: Graph, cycle: Sequence[tuple[Row, int]]) -> tuple[str, ...]:
    """The states of a cycle as the table names them, the first again at the end."""
    names = [_station(graph.places, row, to) for row, to in cycle]
    return (names[-1], *names)


def _station(places: Sequence[Place], row: Row, to: int) -> str:
    for target in row.targets:
        if places[target].kind != HISTORY and target <= to < places[target].end:
            return places[target].name
    return places[to].name


def path_of(stations: Sequence[str]) -> str:
    if len(stations) <= _LONG:
        return " → ".join(stations)
    return " → ".join((*stations[:3], "…", *stations[-2:])) + f" ({len(stations) - 1} rows)"
