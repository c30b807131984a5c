"""The algorithm of the Recommendation (Appendix D), read naively: sets and loops as they stand there, nothing kept.

It knows the machines of `tests.kernel.machines` and no others: their moves count and raise, their guards count. It
differs from the letter of the algorithm in one place: where a row leads is worked out once, before states are left.
There, what a history has just remembered could make it another place, and a state that was left would not be entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moothall.kernel.chart import sequence
from moothall.kernel.events import Event, Named, Started, matches, normalised
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, anywhere
from moothall.kernel.step import Microstep, Move
from tests.kernel.machines import Count, Draft


class TooLong(Exception):
    """More microsteps than the machine allows."""


@dataclass(eq=False)
class Spot:
    """A state with the states around and inside it."""

    node: Node
    parent: Spot | None
    order: int
    inside: list[Spot] = field(default_factory=list)
    rows: list[tuple[str, On]] = field(default_factory=list)

    @property
    def children(self) -> list[Spot]:
        return [spot for spot in self.inside if not isinstance(spot.node, History)]

    @property
    def is_compound(self) -> bool:
        return isinstance(self.node, State) and bool(self.children)

    @property
    def is_atomic(self) -> bool:
        return not self.children

    def ancestors(self, until: Spot | None = None) -> list[Spot]:
        found, above = [], self.parent
        while above is not None and above is not until:
            found.append(above)
            above = above.parent
        return found

    def is_inside(self, other: Spot) -> bool:
        return other in self.ancestors()


@dataclass(eq=False)
class Transition:
    """A row, where it stands, and where it leads."""

    id: str
    on: On
    source: Spot
    targets: list[Spot]
    domain: Spot | None = None


class Naive:
    """A run of a random machine."""

    def __init__(self, draft: Draft, limit: int) -> None:
        self.limit = limit
        self.spots: dict[str, Spot] = {}
        self.root = self._add(State("random", draft.states), None)
        self.spots[anywhere] = self.root
        for row in draft.rows:
            spot = self.spots[row.state]
            spot.rows.append((f"{row.state}/{len(spot.rows)}", row))
        self.active: set[Spot] = set()
        self.history: dict[str, list[Spot]] = {}
        self.counts: dict[str, int] = {}
        self.queue: list[Event] = []
        self.microsteps: list[Microstep] = []
        self.data = Count()
        self.event: Event = Started()
        self.running = True

    def _add(self, node: Node, parent: Spot | None) -> Spot:
        spot = self.spots[node.name] = Spot(node, parent, len(self.spots))
        spot.inside = [self._add(inner, spot) for inner in getattr(node, "states", ())]
        return spot

    # the interpreter

    def begin(self) -> None:
        self._enter([Transition("", On(anywhere, always), self.root, self.root.children[:1], self.root)], (), ())
        self._settle()

    def tell(self, name: str) -> None:
        self.microsteps = []
        if self.running:
            self._offer(Named(name))
            self._settle()

    def _settle(self) -> None:
        while self.running:
            if len(self.microsteps) > self.limit:
                raise TooLong
            if enabled := self._select(None):
                self._microstep(enabled)
            elif self.queue:
                self._offer(self.queue.pop(0))
            else:
                return
        for spot in _inner_first(self.active):
            self._do(getattr(spot.node, "exit", ()))

    def _offer(self, event: Event) -> None:
        self.event = event
        if enabled := self._select(event.name):
            self._microstep(enabled)

    def _select(self, name: str | None) -> list[Transition]:
        enabled: dict[str, Transition] = {}
        for state in _outer_first(spot for spot in self.active if spot.is_atomic):
            first = next(
                (transition for spot in (state, *state.ancestors()) for transition in self._held(spot, name)), None
            )
            if first is not None:
                enabled.setdefault(first.id, first)
        return self._without_conflicts(list(enabled.values()))

    def _held(self, spot: Spot, name: str | None) -> Iterable[Transition]:
        for id, on in spot.rows:
            named = None if on.event is always else normalised(str(on.event))
            fits = named is None if name is None else named is not None and matches(named, name)
            free = on.at_most is None or self.counts.get(id, 0) < on.at_most
            if fits and free and (on.when is None or on.when(self.data, self.event)):  # type: ignore[operator,call-arg]
                targets = [] if on.to is None else [self.spots[str(on.to)]]
                found = Transition(id, on, spot, targets)
                found.domain = self._domain(found)
                yield found

    def _without_conflicts(self, enabled: list[Transition]) -> list[Transition]:
        kept: list[Transition] = []
        for transition in enabled:
            rivals = [other for other in kept if self._left_by(transition) & self._left_by(other)]
            if all(transition.source.is_inside(other.source) for other in rivals):
                kept = [other for other in kept if other not in rivals] + [transition]
        return kept

    def _domain(self, transition: Transition) -> Spot | None:
        targets = self._effective(transition.targets)
        if not targets:
            return None
        if transition.source is self.root:
            return self.root
        if (
            transition.on.internal
            and transition.source.is_compound
            and all(to.is_inside(transition.source) for to in targets)
        ):
            return transition.source
        around = (spot for spot in transition.source.ancestors() if spot.is_compound)
        return next(spot for spot in around if all(to.is_inside(spot) for to in targets))

    def _effective(self, targets: Iterable[Spot]) -> list[Spot]:
        found: list[Spot] = []
        for target in targets:
            if not isinstance(target.node, History):
                found.append(target)
            elif target.node.name in self.history:
                found += self.history[target.node.name]
            else:
                found += self._effective([self.spots[str(target.node.default)]])
        return found

    def _left_by(self, transition: Transition) -> set[Spot]:
        return (
            set() if transition.domain is None else {spot for spot in self.active if spot.is_inside(transition.domain)}
        )

    # one microstep

    def _microstep(self, enabled: list[Transition]) -> None:
        left = _inner_first({spot for transition in enabled for spot in self._left_by(transition)})
        for spot in left:
            for memory in spot.inside:
                if isinstance(memory.node, History):
                    deep = memory.node.deep
                    kept = (
                        inner
                        for inner in self.active
                        if (inner.is_atomic and inner.is_inside(spot) if deep else inner.parent is spot)
                    )
                    self.history[memory.node.name] = _outer_first(kept)
        for spot in left:
            self._do(getattr(spot.node, "exit", ()))
            self.active.discard(spot)
        for transition in enabled:
            if transition.on.at_most is not None:
                self.counts[transition.id] = self.counts.get(transition.id, 0) + 1
            self._do(transition.on.do)
        self._enter(enabled, tuple(transition.id for transition in enabled), tuple(spot.node.name for spot in left))

    def _enter(self, enabled: list[Transition], taken: tuple[str, ...], left: tuple[str, ...]) -> None:
        self.entering: set[Spot] = set()
        for transition in enabled:
            for target in transition.targets:
                self._down(target)
            for target in self._effective(transition.targets):
                self._up(target, transition.domain)
        entered = _outer_first(self.entering - self.active)
        event = "" if not taken or enabled[0].on.event is always else self.event.name
        self.microsteps.append(Microstep(event, taken, left, tuple(spot.node.name for spot in entered)))
        for spot in entered:
            self.active.add(spot)
            self._do(getattr(spot.node, "enter", ()))
            if isinstance(spot.node, Final):
                self._finish(spot)

    def _down(self, spot: Spot) -> None:
        if isinstance(spot.node, History):
            found = self.history.get(spot.node.name) or [self.spots[str(spot.node.default)]]
            self._both(found, spot.parent)
            return
        self.entering.add(spot)
        if spot.is_compound:
            self._both(spot.children[:1], spot)
        elif isinstance(spot.node, Parallel):
            self._regions(spot)

    def _both(self, spots: Sequence[Spot], until: Spot | None) -> None:
        for spot in spots:
            self._down(spot)
        for spot in spots:
            self._up(spot, until)

    def _up(self, spot: Spot, until: Spot | None) -> None:
        for above in spot.ancestors(until):
            self.entering.add(above)
            if isinstance(above.node, Parallel):
                self._regions(above)

    def _regions(self, spot: Spot) -> None:
        for child in spot.children:
            if not any(entered.is_inside(child) for entered in self.entering):
                self._down(child)

    def _finish(self, spot: Spot) -> None:
        parent = spot.parent
        if parent is None or parent.parent is None:
            self.running = False
            return
        self.queue.append(Named(f"done.state.{parent.node.name}"))
        around = parent.parent
        if isinstance(around.node, Parallel) and all(map(self._is_over, around.children)):
            self.queue.append(Named(f"done.state.{around.node.name}"))

    def _is_over(self, spot: Spot) -> bool:
        if spot.is_compound:
            return any(isinstance(child.node, Final) and child in self.active for child in spot.children)
        return isinstance(spot.node, Parallel) and all(map(self._is_over, spot.children))

    def _do(self, actions: Any) -> None:
        for action in sequence(actions):
            given: Any = action(self.data, self.event)
            if isinstance(given, Move):
                self.queue += given.raises
            self.data = given.data if isinstance(given, Move) else given


def _outer_first(spots: Iterable[Spot]) -> list[Spot]:
    return sorted(spots, key=lambda spot: spot.order)


def _inner_first(spots: Iterable[Spot]) -> list[Spot]:
    return sorted(spots, key=lambda spot: -spot.order)
