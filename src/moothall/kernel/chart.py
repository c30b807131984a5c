"""A machine compiled for the interpreter: numbered states, resolved rows, nothing left to look up by name.

States are numbered in document order, so "is inside" is two comparisons: a state's descendants are the numbers
between its own and its `end`. States and rows are worked out once, when the machine is made; mistakes that
would leave a row without meaning (an unknown target, a name used twice) are collected and raised together.

Which rows an event could take where a run stands, and what taking them does, is worked out by the interpreter when it
is first needed, and remembered here: `candidates`, `choices`, and the plan of each choice. The same question has the
same answer in every run, so all of it may be forgotten at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import CO_COROUTINE, CO_VARARGS
from types import FunctionType, MethodType
from typing import Any, Literal

from moothall.errors import DefinitionError
from moothall.kernel.effects import Effect
from moothall.kernel.events import Done, Event, normalised
from moothall.kernel.frozen import Frozen
from moothall.kernel.nodes import (
    Action,
    Actions,
    All,
    Final,
    History,
    Names,
    Node,
    On,
    Parallel,
    State,
    When,
    always,
    anywhere,
    otherwise,
)
from moothall.kernel.step import Microstep, Scripted, Wanted

ROOT = 0
COMPOUND, PARALLEL, ATOMIC, FINAL, HISTORY = "compound", "parallel", "atomic", "final", "history"
_NOTHING: Mapping[str, int] = {}
_WITH_STATES = (State, Parallel)
_NO_STATES: list[int] = []


class Bound:
    """An action of the table with its place, for messages, the effects that it may emit and the keys it may write."""

    __slots__ = ("allowed", "asks_moment", "call", "late", "scripted", "where", "writes")

    def __init__(self, action: Action, where: str, allowed: Mapping[str, int] | None, writes: Names | None) -> None:
        self.asks_moment = takes_moment(action)
        self.scripted = isinstance(action, Scripted) or self.asks_moment
        self.late = isinstance(action, Scripted) and action.late
        self.call: Callable[..., Any]
        if isinstance(action, Scripted):
            self.call = action.run
        elif isinstance(action, Effect):
            self.call = lambda data, event: action
        elif not callable(action):
            raise DefinitionError(f"{where}: {action!r} is neither a function nor an effect")
        elif why := _unfit(action):
            raise DefinitionError(f"{where}: {why}")
        else:
            self.call = _entered(action)
        self.where = where
        self.allowed = emitted(action) if allowed is None else allowed
        self.writes = written(action) if writes is None else frozenset((writes,) if isinstance(writes, str) else writes)


def _entered(action: Any) -> Any:
    """What to call for an action: of an object its method, which Python enters without going by way of its type."""
    method = vars(type(action)).get("__call__")
    return MethodType(method, action) if isinstance(method, FunctionType) else action


def _unfit(function: object) -> str:
    """Why something cannot be a guard or a move, and where it stands; of a callable object nothing more is known."""
    if not isinstance(function, FunctionType):
        return "" if callable(function) else f"{function!r} is not a function"
    code, name = function.__code__, function.__qualname__
    place = f"{name} ({code.co_filename}:{code.co_firstlineno})"
    if code.co_flags & CO_COROUTINE:
        return f"{place} is async; agents and tools may wait, guards and moves are plain functions"
    needed = code.co_argcount - len(function.__defaults__ or ())
    named = code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    if named or needed > 3 or (code.co_argcount < 2 and not code.co_flags & CO_VARARGS):
        return f"{place} has to take two arguments, the data and the event, or three, with the moment behind them"
    return ""


def takes_moment(function: object) -> bool:
    """Whether a guard or a move wants to know the moment: whether it has a third parameter that must be given."""
    if not isinstance(function, FunctionType):
        return False
    return function.__code__.co_argcount - len(function.__defaults__ or ()) == 3


def emitted(action: Action) -> Mapping[str, int]:
    """The effects that an action says it may emit, by kind, with their greatest number."""
    if isinstance(action, Effect):
        return {action.kind: 1}
    found: Mapping[str, int] = getattr(action, "emits", _NOTHING)
    return found


def written(action: Action) -> frozenset[str] | None:
    """The keys of the data that an action says it may write; None where it does not say."""
    found = None if isinstance(action, Effect) else getattr(action, "writes", None)
    return None if found is None else frozenset(found)


class Row:
    """A compiled row: whence, on what, whither, and under which bounds."""

    __slots__ = (
        "actions",
        "at_most",
        "descriptors",
        "domain",
        "guard",
        "guard_scripted",
        "id",
        "internal",
        "is_free",
        "joins",
        "on",
        "source",
        "targets",
        "via_history",
    )

    def __init__(self, id: str, on: On, source: int, descriptors: tuple[str, ...] | None) -> None:
        self.id = id
        self.on = on
        self.source = source
        self.descriptors = descriptors
        self.at_most = on.at_most
        self.guard_scripted = isinstance(on.when, Scripted) or takes_moment(on.when)
        self.guard: Callable[..., Any] | None = on.when.run if isinstance(on.when, Scripted) else on.when
        self.is_free = on.when is None and on.at_most is None
        self.joins = _joins(on.event)
        self.targets: tuple[int, ...] = ()
        self.domain: int | None = None
        self.internal = on.internal
        self.via_history = False
        self.actions: tuple[Bound, ...] = ()

    def __repr__(self) -> str:
        return f"{self.on.state} on {trigger(self.on)}"


def _joins(event: When | Sequence[When]) -> tuple[All, ...]:
    """What a row waits for all of."""
    return () if isinstance(event, type) else tuple(item for item in sequence(event) if isinstance(item, All))


class Place:
    """A compiled state."""

    __slots__ = (
        "children",
        "default",
        "end",
        "enter",
        "exit",
        "histories",
        "index",
        "initial",
        "kind",
        "name",
        "node",
        "parent",
        "result",
        "rows",
        "starting",
    )

    def __init__(self, index: int, node: Node, kind: str, parent: int) -> None:
        self.index = index
        self.node = node
        self.name = node.name
        self.kind = kind
        self.parent = parent
        self.end = index + 1
        inside = kind in (COMPOUND, PARALLEL)
        self.children: list[int] = [] if inside else _NO_STATES
        self.histories: list[int] = [] if inside else _NO_STATES
        self.initial: tuple[int, ...] = ()
        self.default: tuple[int, ...] = ()
        self.enter: tuple[Bound, ...] = ()
        self.exit: tuple[Bound, ...] = ()
        self.starting: tuple[Bound, ...] = ()
        self.result: Bound | None = None
        self.rows: list[Row] = []

    def __repr__(self) -> str:
        return self.name


Operation = tuple[Any, str | None, frozenset[str] | None, tuple[str, ...] | None]
"""A move, the state that its effects belong to and, where it is scripted, the states that are active at its turn.

Where there are done events, also none, it is not a move but the result of a final state, which travels with the first.
"""


class Flight(Frozen):
    """The effect that an event ends, the state that wanted it, and the effects that are still in flight."""

    ended: Effect | None = None
    owner: str | None = None
    others: tuple[Wanted, ...] = ()

    def ends(self, all_of: All) -> bool:
        """Whether the effect that ended is one of those that a row on `All` waits for."""
        return self.ended is not None and all_of.waits_for(self.ended)


class Plan:
    """What taking certain rows in a certain configuration does: worked out once, then followed."""

    __slots__ = ("active", "counted", "ends", "is_bounded", "microstep", "operations", "records", "visited")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.records: list[tuple[str, tuple[str, ...]]] = []
        self.visited: list[Place] = []
        self.counted: tuple[Row, ...] = ()
        self.is_bounded = False
        self.active: tuple[str, ...] = ()
        self.ends = False
        self.microstep: Microstep = _NO_MICROSTEP


_NO_MICROSTEP = Microstep("", (), (), ())


class Choice:
    """Rows that can be taken together in a configuration for an event ("" for none), and what that does, once known."""

    __slots__ = ("active", "event", "plan", "rows")

    def __init__(self, active: tuple[str, ...], event: str, rows: tuple[Row, ...]) -> None:
        self.active = active
        self.event = event
        self.rows = rows
        self.plan: Plan | None = None


Region = tuple[tuple[Row, Choice], ...]
"""The rows that an event could take in an active atomic state, in the order in which they are tried."""
Selection = Choice | Literal[False] | None
"""What an event brings about: a choice, or False where no row may be taken.

None where a guard went wrong, and that must not count as "no".
"""


class Chart:
    """The compiled form of one machine."""

    def __init__(self, name: str, states: Sequence[Node], start: Names | None, moves: Sequence[On]) -> None:
        self.places: list[Place] = []
        self.by_name: dict[str, int] = {}
        self.rows: list[Row] = []
        self.problems: list[str] = []
        self.candidates: dict[Any, tuple[Region, ...]] = {}
        self.choices: dict[Any, Choice] = {}
        self.beginning = Choice((), "", ())
        self._add(State(name, states, start=start), -1)
        self.by_name[anywhere] = ROOT
        for place in self.places:
            self._resolve(place)
        for on in moves:
            self._add_row(on)
        for row in self.rows:
            self._aim(row)
        self.eventless = any(row.descriptors is None for row in self.rows)
        self.late = any(action.late for place in self.places for action in place.enter)
        self.joins = tuple(
            dict.fromkeys((self.places[row.source].name, join) for row in self.rows for join in row.joins)
        )
        self.asks_moment = any(takes_moment(row.on.when) for row in self.rows) or any(
            action.asks_moment for action in self._actions()
        )
        if self.problems:
            raise DefinitionError(f"machine {name}: " + "; ".join(self.problems))

    def _actions(self) -> Iterator[Bound]:
        """All actions of the table."""
        for row in self.rows:
            yield from row.actions
        for place in self.places:
            yield from (*place.enter, *place.exit, *place.starting)
            if place.result is not None:
                yield place.result

    def _add(self, node: Node, parent: int) -> None:
        index = len(self.places)
        inner: Sequence[Node] = node.states if isinstance(node, _WITH_STATES) else ()
        place = Place(index, node, _kind(node, inner), parent)
        self.places.append(place)
        if parent >= 0:
            if self.by_name.setdefault(node.name, index) != index:
                self.problems.append(f"two states are called {node.name!r}")
            if not node.name or node.name == anywhere:
                self.problems.append(f"{node.name!r} is not a name for a state")
        for child in inner:
            siblings = place.histories if isinstance(child, History) else place.children
            siblings.append(len(self.places))
            self._add(child, index)
        place.end = len(self.places)

    def _resolve(self, place: Place) -> None:
        node, name = place.node, place.name
        if place.kind == COMPOUND or place.index == ROOT:
            place.initial = self._initial(place)
        if isinstance(node, History):
            place.default = self._default(place, node)
            place.starting = bind(node.do, f"{name}, default")
            return
        most = getattr(node, "max_visits", None)
        if most is not None and not _is_count(most):
            self.problems.append(f"{name}: max_visits must be a whole number, not {most!r}")
        if node.enter:
            place.enter = bind(node.enter, f"{name}, enter")
        if node.exit:
            place.exit = bind(node.exit, f"{name}, exit")
        if isinstance(node, State) and node.starting:
            place.starting = bind(node.starting, f"{name}, starting")
        if isinstance(node, Final) and node.result is not None:
            place.result = Bound(node.result, f"{name}, result", None, None)

    def _initial(self, place: Place) -> tuple[int, ...]:
        start = place.node.start if isinstance(place.node, State) else None
        if start is None:
            if not place.children:
                self.problems.append(f"{place.name} has no states inside to begin with")
            return tuple(place.children[:1])
        found = self._indexes(start, f"the start of {place.name}")
        for index in found:
            if not place.index < index < place.end:
                self.problems.append(f"{place.name} starts at {self.places[index].name}, which is not inside it")
        return found

    def _default(self, place: Place, node: History) -> tuple[int, ...]:
        parent = self.places[place.parent]
        found = self._indexes(node.default, f"history {place.name}")
        for index in found:
            if self.places[index].kind == HISTORY or not parent.index < index < parent.end:
                target, inside = self.places[index].name, f"a state inside {parent.name}"
                self.problems.append(f"history {place.name} begins at {target}, which is not {inside}")
        return found

    def _indexes(self, names: Names, where: object) -> tuple[int, ...]:
        if isinstance(names, str) and (index := self.by_name.get(names)):
            return (index,)
        found: list[int] = []
        for name in (names,) if isinstance(names, str) else names:
            index = self.by_name.get(name)
            if index is None or index == ROOT:
                self.problems.append(f"{where} names the unknown state {name!r}{self._nearest(name)}")
            else:
                if rival := next((sibling for sibling in found if self._exclusive(sibling, index)), None):
                    self.problems.append(f"{where}: {self.places[rival]} and {name} cannot be active together")
                found.append(index)
        return tuple(found)

    def _exclusive(self, one: int, other: int) -> bool:
        """Whether two states can never be active at once."""
        if one <= other < self.places[one].end or other <= one < self.places[other].end:
            return False
        common = next(place for place in self.ancestors(one) if place.index < other < place.end)
        return common.kind != PARALLEL

    def _nearest(self, name: str) -> str:
        known = [state for state in self.by_name if state != anywhere]
        close = max(known, key=lambda state: _alike(state, name), default="")
        if _alike(close, name) > 0.5:
            return f" (did you mean {close!r}?)"
        return f" (there are {', '.join(known)})" if len(known) <= 12 else ""

    def _add_row(self, on: On) -> None:
        source = self.by_name.get(on.state)
        if source is None:
            self.problems.append(f"a row begins at the unknown state {on.state!r}{self._nearest(on.state)}")
            return
        place = self.places[source]
        row = Row(f"{on.state}/{len(place.rows)}", on, source, self._descriptors(on, place))
        if row.descriptors == () and isinstance(on.event, Sequence):
            self.problems.append(f"a row of {place} names no event; for one that needs none write always")
        place.rows.append(row)
        self.rows.append(row)

    def _descriptors(self, on: On, place: Place) -> tuple[str, ...] | None:
        event = on.event
        if isinstance(event, type):
            return (f"done.state.{place.name}" if event is Done else event.name,)
        if isinstance(event, str):
            return tuple(normalised(part) for part in event.split())
        if isinstance(event, All):
            if place.index == ROOT:
                self.problems.append("All stands in a row of a state, whose asks it waits for, and not anywhere")
            return (event.name_in(place.name),)
        if event is otherwise:
            return self._remaining(place)
        if event is always:
            return None
        if isinstance(event, Sequence):
            inner = [self._descriptors(On(on.state, item), place) for item in event]
            if None in inner:
                self.problems.append(f"{on.state}: always stands alone, not among events")
            return tuple(part for parts in inner for part in parts or ())
        self.problems.append(f"a row of {place.name} names {event!r}; name the event's class, or its name as a text")
        return ()

    def _remaining(self, place: Place) -> tuple[str, ...]:
        """What `otherwise` takes: the events of the rows above it, and the ways the state's own effects end."""
        node = place.node
        named = [part for row in place.rows for part in row.descriptors or ()]
        if not isinstance(node, History):
            for action in sequence(node.enter):
                outcomes: tuple[type[Event], ...] = getattr(action, "outcomes", ())
                named += [event.name for event in outcomes]
        if not named:
            self.problems.append(f"otherwise in {place.name} has no row above it and nothing to wait for")
        return tuple(dict.fromkeys(named))

    def _aim(self, row: Row) -> None:
        on, place = row.on, self.places[row.source]
        if on.to is not None:
            row.targets = self._indexes(on.to, row)
            row.via_history = HISTORY in [self.places[target].kind for target in row.targets]
            if row.targets and not row.via_history:
                row.domain = self.domain(row, row.targets)
        if on.do:
            allowed = None if on.emits is None else {kind.kind: most for kind, most in on.emits.items()}
            row.actions = bind(on.do, str(row), allowed, on.writes)
        if row.guard is not None and not isinstance(on.when, Scripted) and (why := _unfit(row.guard)):
            self.problems.append(f"{row}: the guard {why}")
        if on.at_most is not None and not _is_count(on.at_most):
            self.problems.append(f"{row}: at_most must be a whole number, not {on.at_most!r}")
        if place.kind == FINAL or place.kind == HISTORY:
            self.problems.append(f"{row}: a {place.kind} state has no moves of its own")

    def domain(self, row: Row, targets: tuple[int, ...]) -> int:
        """The state whose inside a row rearranges: what is active below it is left, the targets are entered."""
        low, high = (min(targets), max(targets)) if len(targets) > 1 else (targets[0], targets[0])
        source = self.places[row.source]
        if row.source == ROOT:
            return ROOT
        if row.internal and source.kind == COMPOUND and source.index < low and high < source.end:
            return source.index
        above = self.places[source.parent]
        while above.index != ROOT and not (above.kind == COMPOUND and above.index < low and high < above.end):
            above = self.places[above.parent]
        return above.index

    def ancestors(self, index: int) -> Iterator[Place]:
        """The states around a state, innermost first, the machine itself last."""
        above = self.places[index].parent
        while above >= 0:
            yield self.places[above]
            above = self.places[above].parent

    def around(self, active: tuple[str, ...]) -> set[int]:
        """The whole configuration of these atomic states: themselves and all that is around them."""
        found = {ROOT}
        for name in active:
            index = self.by_name[name]
            while index not in found:
                found.add(index)
                index = self.places[index].parent
        return found


def _alike(one: str, other: str) -> float:
    """How much two names are alike, from 0 to 1, by the pairs of letters that they share."""
    pairs = [{text[at : at + 2].lower() for at in range(len(text) - 1)} for text in (one, other)]
    return 2 * len(pairs[0] & pairs[1]) / (len(pairs[0]) + len(pairs[1]) or 1)


def _kind(node: Node, inner: Sequence[Node]) -> str:
    if isinstance(node, State):
        return COMPOUND if inner else ATOMIC
    if isinstance(node, Parallel):
        return PARALLEL
    return FINAL if isinstance(node, Final) else HISTORY


def _is_count(number: object) -> bool:
    return type(number) is int and number >= 0


LISTS = (tuple, list)
"""The usual sequences; whether something is any other takes long to find out."""


def sequence(actions: Any) -> Sequence[Any]:
    """Actions as a sequence, also where the author wrote a single one."""
    is_list = type(actions) in LISTS or (isinstance(actions, Sequence) and not isinstance(actions, str))
    return actions if is_list else (actions,)


def bind(
    actions: Actions, where: str, allowed: Mapping[str, int] | None = None, writes: Names | None = None
) -> tuple[Bound, ...]:
    """Actions with their place."""
    return tuple(Bound(action, where, allowed, writes) for action in sequence(actions))


def trigger(on: On) -> str:
    """The event of a row as a reader would say it."""
    event = on.event
    if isinstance(event, type):
        return event.__name__
    if isinstance(event, str):
        return event
    if isinstance(event, Sequence):
        return ", ".join(trigger(On(on.state, item)) for item in event)
    return f"All({event.event.__name__})" if isinstance(event, All) else event.value
