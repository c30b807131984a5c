"""The certificate of a machine: the most that any run can do, or the cycle that has no bound.

It counts rows taken, effects by kind, and what the cost tables say they use. It takes guards as free and lets
everything that can come do so at any time. Small machines are enumerated with the interpreter itself; for others
each leaf is a token that a row trades for new ones, and bounded rows are paid as often as they may be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from moothall.analysis.graph import (
    ANY_HISTORY,
    NO_BOUND,
    OTHER,
    Arcs,
    Graph,
    components_of,
    is_leaf,
    knots_of,
    path_of,
    shortest_of,
    starting_of,
    stations_of,
    union,
    visits_of,
)
from moothall.kernel.chart import (
    FINAL,
    HISTORY,
    Bound,
    Choice,
    Operation,
    Row,
    Selection,
    emitted,
    sequence,
)
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import (
    Cancelled,
    Event,
    ExecutionFailed,
    Named,
    Started,
    matches,
)
from moothall.kernel.frozen import RARE
from moothall.kernel.interpreter import _Turn
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import History, State
from moothall.kernel.step import Snapshot, Status, Wanted

Amounts = Mapping[str, float]
_Limit = tuple[int, str, int]
"""How often rows may be taken, with what counts them: the id of one of them, or the index of the state they enter."""

_ROWS = "→"
_ONCE = "once "
"""What stands before a resource where it is counted without retries."""
_PLACES = 10_000
"""Where a walk would come through about so many places, there is only an estimate."""
_STEPS = 60_000
"""The effort that a walk may take: turns rehearsed and choices made in them."""
_FEW = 64
"""Where more than the root of this are active at once, a turn counts as several: it looks at all of them, and again."""
_NO_CHILDREN: Mapping[str, Certificate] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Certificate:
    """The most that any run can do, with its children: rows taken, and each resource by name.

    `once` has the resources that retries use as well, without them.
    """

    transitions: int
    resources: Mapping[str, float]
    exact: bool
    once: Mapping[str, float] = field(default_factory=dict, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Why there is no certificate: the cycle that has no bound, or the child that nothing is known of."""

    cycle: tuple[str, ...]
    why: str


def certify(machine: Machine, children: Mapping[str, Certificate] = _NO_CHILDREN) -> Certificate | Unbounded:
    """The most that any run of a machine can do; children are the certificates of machines that it starts, by name."""
    graph = Graph(machine, cautious=True)
    try:
        prices = _Prices(graph, children)
        best = _walk_certificate(graph, prices)
    except _Endless as endless:
        return _named_cycle(graph, endless)
    except _NoPrice as unknown:
        return Unbounded((), str(unknown))
    except _TooLarge:
        return _compose_bound(graph, prices)
    return best


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
    outcomes: tuple[type[Event], ...] = ()


class _Prices:
    """What every action of a machine may want, at most."""

    def __init__(self, graph: Graph, children: Mapping[str, Certificate]) -> None:
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
            yield from (self._price(name, tuple(_classes(name)), child, action),) * most

    def _price(self, kind: str, classes: Sequence[type[Effect]], child: str | None, action: Any = None) -> _Price:
        amounts: dict[str, float] = {}
        for effect in classes:
            for resource, most in effect.costs.items():
                amounts[resource] = max(most, amounts.get(resource, 0))
        amounts |= self.costs.get(kind, {})
        attempts = max((effect.attempts for effect in classes), default=Effect.attempts)
        attempts = getattr(action, "attempts", None) or attempts
        is_repeat = getattr(action, "is_repeat", False)
        once = {} if is_repeat else {f"{_ONCE}{resource}": most for resource, most in amounts.items()}
        amounts = {resource: most * attempts for resource, most in amounts.items()} | once
        amounts = _sum(amounts, {kind: 1})
        if kind == StartChild.kind:
            amounts = _sum(amounts, self._child(child))
        outcomes = tuple(outcome for effect in classes for outcome in effect.outcomes)
        return _Price(amounts, bool(classes) and all(effect.owned for effect in classes), bool(classes), outcomes)

    def _child(self, name: str | None) -> Amounts:
        if name is None:
            raise _NoPrice("it starts a child, and the action does not say which: give it an attribute `child`")
        if name not in self.children:
            raise _NoPrice(f"it starts the child {name!r}, which has no certificate")
        certificate = self.children[name]
        self.exact = self.exact and certificate.exact
        once = {f"{_ONCE}{name}": certificate.once.get(name, most) for name, most in certificate.resources.items()}
        return _sum(certificate.resources, once, {_ROWS: certificate.transitions})

    def total(self, bounds: Iterable[Bound]) -> Amounts:
        return _sum(*(price.amounts for bound in bounds for price in self.of.get(bound, ())))


def _classes(kind: str, above: type[Effect] = Effect) -> Iterator[type[Effect]]:
    for subclass in above.__subclasses__():
        if subclass.kind == kind:
            yield subclass
        yield from _classes(kind, subclass)


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
    names = [name for name in sorted(amounts) if name != _ROWS]
    resources = {name: amounts[name] for name in names if not name.startswith(_ONCE)}
    once = {name: least for name, most in resources.items() if (least := amounts.get(_ONCE + name, most)) != most}
    return Certificate(int(amounts.get(_ROWS, 0)), resources, exact, once)


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
    queue: deque[Event]

    def __init__(self, walk: _Walk, snapshot: Snapshot, event: Event, choices: Sequence[int]) -> None:
        self.at(walk.machine, snapshot, event, ())
        self.walk = walk
        self.choices = choices
        self.made = 0
        self.moved = self.tested = False
        self.guards: dict[Row, bool | None] = {}
        self.trail: dict[Any, tuple[Row, ...]] = {}
        self.asked_for: set[Any] = set()
        self.queue = _Leaking(self) if walk.leaks else deque()

    def run(self, within: str | None) -> int:
        """Go through the turn; how many options there are where a choice is missing, else 0."""
        try:
            if self.active:
                self.offer(self.event, within)
            else:
                super().take(self.machine.chart.beginning)
            self.settle()
        except _Undecided as undecided:
            return undecided.options
        return 0

    def choose(self, options: int) -> int:
        if self.made == len(self.choices):
            raise _Undecided(options)
        self.made += 1
        return self.choices[self.made - 1]

    def select(self, name: str | None, within: str | None) -> Selection:
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

    def misguarded(self, row: Row, reason: str, place: str = "") -> bool | None:
        held = super().misguarded(row, reason, place)
        wrong = [event for event in self.queue if event.name == ExecutionFailed.name]
        if len(wrong) > 1:  # one stands for all: a guard that was tried may be said to go wrong at any time
            self.queue.pop()
        return held

    def take(self, choice: Choice) -> None:
        key = (self.place, tuple(event.name for event in self.queue), choice.rows, choice.event)
        if key in self.trail:
            since = list(self.trail).index(key)
            raise _Endless([row.id for taken in list(self.trail.values())[since:] for row in taken])
        if len(self.trail) > 2 * self.machine.max_microsteps:
            raise _TooLarge
        self.trail[key] = choice.rows
        super().take(choice)

    def end(self, status: Status, reason: str) -> None:
        if len(self.microsteps) > self.machine.max_microsteps:
            raise _Endless([row for microstep in self.microsteps for row in microstep.taken])
        super().end(status, reason)

    def follow(self, operations: Iterable[Operation]) -> None:
        for action, owner, active, done in operations:
            if done is not None:
                self.finish(action, active, done)
                continue
            self.moved = self.moved or action in self.walk.prices.functions
            for price in self.walk.prices.of.get(action, ()):
                self.effects.append(Wanted(cast(Effect, price), owner if price.owned else None))

    def plain(self, result: Bound, active: frozenset[str] | None) -> None:
        self.tested = True

    def raisable(self) -> list[str]:
        """What may have been raised by now: anything by a move, an error by a guard or a result."""
        names = self.walk.names(self.active) if self.moved or self.tested else []
        return names if self.moved else [name for name in names if name == OTHER or matches(name, ExecutionFailed.name)]

    @property
    def place(self) -> _Standing:
        return self.walk.place(self.active, self.counts, self.history)

    @property
    def prices(self) -> Iterator[_Price]:
        return (cast(_Price, wanted.effect) for wanted in self.effects)


class _Standing(NamedTuple):
    """Where a run stands, without its data and without what can no longer matter."""

    active: tuple[str, ...] = ()
    counts: frozenset[tuple[str, int]] = frozenset()
    history: frozenset[tuple[str, tuple[str, ...]]] = frozenset()


@dataclass(frozen=True, slots=True)
class _Stride:
    """One turn of a walk: what it uses, the rows that it takes, and where it leads; None where the run is over."""

    used: Amounts
    rows: tuple[str, ...]
    place: _Standing | None


class _Visit:
    """A place on the way, what is still to be tried from it, and the most that was found beyond it."""

    __slots__ = ("best", "stride", "strides")

    def __init__(self, stride: _Stride, strides: Iterator[_Stride]) -> None:
        self.stride = stride
        self.strides = strides
        self.best: Amounts = {}


class _Walk:
    """All runs of a machine, data left out: the places that they come through, and the most that each can use."""

    def __init__(self, graph: Graph, prices: _Prices, *, leaks: bool) -> None:
        self.graph = graph
        self.machine = copy(graph.machine)
        chart = copy(graph.chart)
        chart.candidates, chart.choices = {}, {}
        object.__setattr__(self.machine, "chart", chart)
        self.prices = prices
        self.leaks = leaks
        self.exact = prices.exact
        self.effort = 0
        self.event_names: dict[tuple[str, ...], list[str]] = {}
        self._ahead: dict[tuple[str, ...], int] = {}

    def most(self) -> Amounts:
        """The most that any run can use; walks in depth, each place once, and comes back to none."""
        start = _Stride({}, (), _Standing())
        path, known = [_Visit(start, self.strides(_Standing()))], dict[_Standing | None, Amounts]()
        way: dict[_Standing | None, int] = {start.place: 0}
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
                raise _Endless([row for visit in since for row in visit.stride.rows] + list(stride.rows))
            else:
                way[stride.place] = len(path)
                path.append(_Visit(stride, self.strides(stride.place)))

    def strides(self, here: _Standing) -> Iterator[_Stride]:
        """Every different turn that may come next."""
        found: dict[Any, _Stride] = {}
        snapshot = Snapshot(here.active, None, counts=dict(here.counts), history=dict(here.history))
        for event, within in self.offers(here.active):
            for turn in self.rehearsed(snapshot, event, within):
                place = turn.place if turn.status == "live" else None
                if turn.microsteps or place is None:
                    rows = tuple(row for microstep in turn.microsteps for row in microstep.taken)
                    used = _sum({_ROWS: len(rows)}, *(price.amounts for price in turn.prices))
                    found.setdefault((place, frozenset(used.items())), _Stride(used, rows, place))
        return iter(found.values())

    def rehearsed(self, snapshot: Snapshot, event: Event, within: str | None) -> Iterator[_Rehearsal]:
        """The turns that an event may cause, one for each way in which the choices may fall."""
        todo: list[tuple[int, ...]] = [()]
        weight = max(1, len(snapshot.active) ** 2 // _FEW)
        while todo:
            choices = todo.pop()
            turn = _Rehearsal(self, snapshot, event, choices)
            self.effort += weight * (1 + len(choices))
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

    def place(self, active: tuple[str, ...], counts: Mapping[str, int], history: Mapping[str, Any]) -> _Standing:
        ahead = self._ahead.get(active)
        if ahead is None:
            leaves = (self.graph.chart.by_name[name] for name in active)
            ahead = self._ahead[active] = union(self.graph.ahead[leaf] for leaf in leaves)
        bits = self.graph.counters
        counted = frozenset(count for count in counts.items() if bits.get(count[0], 0) & ahead)
        return _Standing(active, counted, frozenset(history.items() if bits.get(ANY_HISTORY, 0) & ahead else ()))

    def offers(self, active: tuple[str, ...]) -> Iterator[tuple[Event, str | None]]:
        if not active:
            yield Started(), None
            return
        for scope in self.scopes(active):
            yield from ((Named(name), scope) for name in self.names(active))
        yield Cancelled(), None

    def names(self, active: tuple[str, ...]) -> list[str]:
        """The events that can come to these leaves; others would do as one of these."""
        found = self.event_names.get(active)
        if found is None:
            graph = self.graph
            leaves = [graph.chart.by_name[name] for name in active]
            named = (
                (leaf, descriptor)
                for leaf in leaves
                for row in graph.open(leaf)
                for descriptor in row.descriptors or ()
            )
            found = list(dict.fromkeys(name for leaf, descriptor in named for name in graph.coming(leaf, descriptor)))
            eventless = any(row.descriptors is None for leaf in leaves for row in graph.open(leaf))
            if eventless and OTHER not in found:  # an event that nobody takes has rows on always tried again
                found.append(OTHER)
            self.event_names[active] = found
        return found

    def scopes(self, active: tuple[str, ...]) -> Iterator[str | None]:
        """The states to which an event may be offered alone: one for each part of what is active."""
        yield None
        if len(active) > 1:
            leaves = [self.graph.chart.by_name[name] for name in active]
            parts: dict[frozenset[int], str] = {}
            for leaf in leaves:
                for place in (self.graph.places[leaf], *self.graph.chart.ancestors(leaf)):
                    parts.setdefault(frozenset(leaf for leaf in leaves if place.index <= leaf < place.end), place.name)
            parts.pop(frozenset(leaves))
            yield from parts.values()


def _walk_certificate(graph: Graph, prices: _Prices) -> Certificate:
    """The certificate of a machine small enough to enumerate.

    Functions may raise events or go wrong while rows on always, a done event or a full state are still to be seen to.
    Where that could matter, a second walk lets it happen; if it finds more, the certificate holds but is not exact.
    """
    if _places_ahead(graph) > _PLACES:
        raise _TooLarge
    walk = _Walk(graph, prices, leaks=False)
    best = walk.most()
    raises = any(graph.places[leaf].kind == FINAL and not graph.is_end(leaf) for leaf in graph.leaves)
    guarded = any(row.descriptors is None and row.guard is not None for row in graph.rows)
    if raises or guarded or any(lead.gate is not None for lead in graph.leads.values()):
        wider = _Walk(graph, prices, leaks=True).most()
        return _certificate(wider, walk.exact and wider == best)
    return _certificate(best, walk.exact)


def _places_ahead(graph: Graph) -> int:
    """About how many places a walk will come through: a leaf is another one after each counted row that stays in it.

    Counted before walking, because a walk that will not come to its end is time for nothing.
    """
    total = 0
    for leaf in graph.leaves:
        staying = [row for row in graph.open(leaf) if not row.targets and row.descriptors is not None]
        total += prod(1 + row.at_most for row in staying if row.at_most is not None and graph.is_possible(leaf, row))
    return total


def _named_cycle(graph: Graph, endless: _Endless) -> Unbounded:
    """The cycle that a walk found: the shortest of its kind, or the walk's own."""
    rows = {row.id: row for row in graph.rows}
    taken = [rows[row] for row in endless.rows]
    for knot in knots_of(graph.unbounded()):
        cycle = shortest_of(knot)
        if any(row in taken for row, _ in cycle):
            return _unbounded_cycle(stations_of(graph, cycle))
    names = [graph.places[row.targets[0] if row.targets else row.source].name for row in taken]
    return _unbounded_cycle((names[-1], *names))


def _unbounded_cycle(stations: tuple[str, ...]) -> Unbounded:
    return Unbounded(stations, f"{path_of(stations)}: {NO_BOUND}")


# composition


def _compose_bound(graph: Graph, prices: _Prices) -> Certificate | Unbounded:
    """A bound for a machine too large to enumerate: no run uses more, though perhaps none uses as much.

    Every set of bounded rows without which no cycle is left gives a bound; of two, the lesser counts for each resource.
    """
    if knots := knots_of(graph.unbounded()):
        return _unbounded_cycle(stations_of(graph, shortest_of(knots[0])))
    every = {leaf: graph.arcs(leaf) for leaf in graph.leaves}
    bounded = frozenset(row for row in graph.rows if graph.is_bounded(row))
    whole, few = (_bound(graph, prices, every, paid) for paid in (bounded, _needed(graph, every, bounded)))
    least = {name: min(most, few.get(name, 0)) for name, most in whole.items()}
    return _certificate(least, exact=False)


def _needed(graph: Graph, every: Arcs, bounded: frozenset[Row]) -> frozenset[Row]:
    """Bounded rows without which no cycle is left: those with the largest bounds are passed over first."""
    knotted = {row for knot in knots_of(every) for out in knot.values() for row, _ in out}
    paid = bounded & knotted
    groups: dict[_Limit, set[Row]] = {}
    for row in paid:
        if row.targets:  # one that stays where it is is a cycle by itself
            groups.setdefault(_limit(graph, row), set()).add(row)
    tries = 5 * _STEPS // max(1, sum(map(len, every.values())))
    for _, group in sorted(groups.items(), reverse=True)[:tries]:
        fewer = paid - group
        if not knots_of(_arcs_beside(every, fewer)):
            paid = fewer
    return frozenset(paid)


def _limit(graph: Graph, row: Row) -> _Limit:
    """How often a row may be taken, and what counts it."""
    if row.at_most is not None:
        return row.at_most, row.id, -1
    gate = graph.leads[row].gate
    assert gate is not None
    return visits_of(graph.places[gate]) or 0, "", gate


def _arcs_beside(every: Arcs, paid: Set[Row]) -> Arcs:
    return {leaf: [arc for arc in out if arc[0] not in paid] for leaf, out in every.items()}


def _bound(graph: Graph, prices: _Prices, every: Arcs, paid: frozenset[Row]) -> Amounts:
    """What a run uses at most, where these rows are paid as often as they may be, and the others make no cycle."""
    tally = _Tally(graph, prices, paid)
    for [leaf] in components_of(_arcs_beside(every, paid)):
        tally.weigh(leaf)
    starting = starting_of(graph.chart)
    total = tally.entering(starting.states, starting.historic)
    through: dict[_Limit, list[Amounts]] = {}
    for row, gain in tally.gains().items():
        through.setdefault(_limit(graph, row), []).append(gain)
    for (limit, *_), values in through.items():
        total = _sum(total, _times(limit, _most(values)))
    return total


def _times(number: int, amounts: Amounts) -> Amounts:
    return {name: number * amount for name, amount in amounts.items()}


class _Tally:
    """What a leaf is worth: the most that can follow from its being active, as long as no row is taken that is paid.

    A row that leads somewhere trades the leaf that chose it for the leaves that it enters. Without a cycle the
    trade comes to an end, so the worth is a sum. A row that is paid may gain: what it costs and leads to, less the
    worth of the leaf that it takes away. What a run uses is at most what its start is worth and what paid rows gain.
    """

    def __init__(self, graph: Graph, prices: _Prices, paid: frozenset[Row]) -> None:
        self.graph = graph
        self.prices = prices
        self.paid = paid
        self.worth: dict[int, Amounts] = {}
        self.ending: dict[int, Amounts] = {}
        places = graph.places
        self.memories = prices.total(action for place in places if place.kind == HISTORY for action in place.starting)
        self.places = [
            prices.total((*place.enter, *place.exit, *(place.starting if place.kind != HISTORY else ())))
            for place in places
        ]

    def weigh(self, leaf: int) -> None:
        """Work out what a leaf is worth, and what rows on done may use because it was entered."""
        graph = self.graph
        chances = [] if graph.is_end(leaf) else graph.chances(leaf)
        self.worth[leaf] = _most(self.row(row) for row in chances if row not in self.paid)
        self.ending[leaf] = _sum(*(self.row(row) for row in graph.after(leaf) if row not in self.paid))

    def gains(self) -> dict[Row, Amounts]:
        """What taking a row once that is paid may add."""
        found: dict[Row, Amounts] = {}
        graph = self.graph
        for leaf in graph.leaves:
            for row in [] if graph.is_end(leaf) else graph.chances(leaf):
                if row in self.paid:
                    lost = self.worth[leaf] if row.targets else {}
                    gain = {name: max(0, most - lost.get(name, 0)) for name, most in self.row(row).items()}
                    found[row] = _most((gain, found.get(row, {})))
            for row in graph.after(leaf):
                if row in self.paid:
                    found[row] = self.row(row)
        return found

    def row(self, row: Row) -> Amounts:
        own = _sum({_ROWS: 1}, self.prices.total(row.actions))
        if not row.targets:
            return own
        lead = self.graph.leads[row]
        return _sum(own, self.entering(lead.entered, lead.historic))

    def entering(self, states: Iterable[int], historic: bool) -> Amounts:
        """What entering these states uses, leaving them again, and all that follows from their leaves."""
        entered = list(states)
        leaves = [index for index in entered if is_leaf(self.graph.places[index])]
        return _sum(
            *(self.places[index] for index in entered),
            *(self.worth[leaf] for leaf in leaves),
            *(self.ending[leaf] for leaf in leaves),
            self.memories if historic else {},
        )
