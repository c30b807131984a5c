"""What authors write: a machine as a table of states and moves.

The table reads like the diagram. Rows of one state are tried in order; the first whose event matches and
whose guard holds is taken. A guard is `(data, event) -> bool`. A move is `(data, event) -> new data`, or a
`Move` where it also wants effects. `enter` and `exit` take moves too, and effects such as `ask(...)`.

    On("reviewing", Replied,   to="approving", when=good_enough)
    On("reviewing", Replied,   to="drafting",  do=keep_notes, at_most=3)
    On("reviewing", otherwise, to="approving")

`otherwise` takes every event that earlier rows of its state name, and every event in which the state's own
effects end, where none of those rows was taken. A row with a spent bound (`at_most`) is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal

from moothall.errors import DefinitionError
from moothall.kernel import events as known
from moothall.kernel.chart import Chart, sequence
from moothall.kernel.codec import require_storable, schema
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.kernel.foreign import field_names, is_model
from moothall.kernel.nodes import Action, All, Final, History, Names, Node, On, Parallel, Row, State

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
    R = TypeVar("R", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    D, R = TypeVar("D"), TypeVar("R")

LARGEST = 2**53
"""The largest limit of a budget; numbers above it are not exact everywhere."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend; what is None has no limit."""

    _: KW_ONLY
    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None
    transitions: int | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            limit = getattr(self, item.name)
            if limit is not None and not (isinstance(limit, int | float) and 0 <= limit < math.inf):
                raise DefinitionError(f"budget: {item.name} must be a number of at least 0, not {limit!r}")
            if limit is not None and limit > LARGEST:
                raise DefinitionError(f"budget: {item.name} is at most 2**53, not {limit!r}; leave it out for no limit")

    def limits(self) -> dict[str, float]:
        """The limits that are set, by resource."""
        every = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: limit for name, limit in every.items() if limit is not None}


@dataclass(frozen=True, eq=False)
class Machine(Generic[D, R]):
    """A frozen definition: states, moves, the type of its data, its bounds."""

    name: str
    _: KW_ONLY
    states: Sequence[Node]
    moves: Sequence[On]
    data: type | None = None
    start: Names | None = None
    budget: Budget | None = None
    result: Callable[[Any], Any] | None = None
    events: Sequence[type[Event]] = ()
    replies: Sequence[Any] = ()
    """Types of replies and answers that moves ask for by name, besides those in the table."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Templates by name, for moves that ask: the journal has the name."""
    roles: Mapping[str, Any] = field(default_factory=dict)
    """Personas by name, as role files write them, besides those of the library."""
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    errors: Literal["strict", "scxml"] = "strict"
    max_microsteps: int = 1000
    inner: Sequence[str] = ()
    """Names of events that only its own moves raise: nobody tells them from outside. No part of its digest."""
    kind: str = "python"
    """What sort of machine it is, for those who find, bind and show it; no part of its digest."""
    chart: Chart = field(init=False, repr=False)
    restless: bool = field(init=False, repr=False)
    """Whether there may be more to do after a microstep that raised nothing."""

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            *,
            data: type[D] | None = None,
            states: Sequence[Node],
            moves: Sequence[Row[D, Callable[[D], D]]],
            start: Names | None = None,
            budget: Budget | None = None,
            result: Callable[[D], R] | None = None,
            events: Sequence[type[Event]] = (),
            replies: Sequence[Any] = (),
            prompts: Mapping[str, str] = ...,
            roles: Mapping[str, Any] = ...,
            costs: Mapping[str, Mapping[str, float]] = ...,
            errors: Literal["strict", "scxml"] = "strict",
            max_microsteps: int = 1000,
            inner: Sequence[str] = (),
            kind: str = "python",
        ) -> None: ...

    else:
        __class_getitem__ = classmethod(GenericAlias)  # `Machine[Article]`: the type of the result may be left out

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "scxml"):
            raise DefinitionError(f"machine {self.name}: errors must be 'strict' or 'scxml', not {self.errors!r}")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise DefinitionError(f"machine {self.name}: write budget=Budget(calls=20), not {self.budget!r}")
        if is_dataclass(type(self.data)) or is_model(type(self.data)):
            raise DefinitionError(f"machine {self.name}: write data={type(self.data).__name__}, the class itself")
        _require_list(self.name, "states", self.states, (State, Parallel, Final, History))
        _require_list(self.name, "moves", self.moves, (On,))
        object.__setattr__(self, "chart", Chart(self.name, self.states, self.start, self.moves))
        restless = self.chart.eventless or self.chart.late or bool(self.chart.joins) or self.max_microsteps < 1
        object.__setattr__(self, "restless", restless)
        if has := field_names(self.data):
            self._check_fields(set(has))
        # In a dictionary that shares its keys with those of other machines, as a cached property leaves it behind,
        # Python looks up an attribute twenty times slower, and every step reads some.
        object.__setattr__(self, "__dict__", {**self.__dict__})

    def _check_fields(self, known: set[str]) -> None:
        """Templates name fields of the data; a misspelt one is found now and not when it is first filled in."""
        for action in self.actions():
            for path in getattr(action, "paths", ()):
                if path.partition(".")[0] not in known:
                    has = f"{getattr(self.data, '__name__', 'its data')} has {', '.join(sorted(known))}"
                    raise DefinitionError(f"machine {self.name}: {label(action)!r} names {path!r}, but {has}")

    @cached_property
    def digest(self) -> str:
        """The two hashes of the definition: what decides steps, and behind a dot all of it with every word."""
        return f"{self.deciding}.{self.worded}"

    @cached_property
    def deciding(self) -> str:
        """The hash of what decides steps: states, moves, bounds, shapes of replies, names of guards and moves."""
        shapes = (f"shape {name} {_shape_text(kind)}" for name, kind in sorted(self.shapes.items()))
        return _hash((*self._around(), *_lines(self.chart, decides), *shapes))

    @cached_property
    def worded(self) -> str:
        """The hash of the definition as it is written, with prompts, questions and labels.

        Runs that began before there were two hashes know this one alone.
        """
        return _hash((*self._around(), *_lines(self.chart, label)))

    def _around(self) -> tuple[str, ...]:
        return self.name, self.errors, repr(self.budget), f"{self.max_microsteps}"

    def is_defined_as(self, digest: str) -> bool:
        """Whether a digest is that of this very definition."""
        return digest == (self.digest if "." in digest else self.worded)

    def decides_as(self, digest: str) -> bool:
        """Whether a digest is that of a definition that decides the same, perhaps in other words."""
        return digest.partition(".")[0] == self.deciding or self.is_defined_as(digest)

    @cached_property
    def bad_ends(self) -> Mapping[str, str]:
        """The ends at the top that are not good ones, and how a run is shown that came there; no part of the digest."""
        ends = (node for node in self.states if isinstance(node, Final))
        return {node.name: node.ends for node in ends if node.ends != "done"}

    @cached_property
    def words(self) -> Mapping[str, tuple[str, ...]]:
        """What is only said in effects of this table, by their kind: paths into them, besides what the effects name."""
        found: dict[str, tuple[str, ...]] = {}
        for action in self.actions():
            if not isinstance(action, Effect):
                for kind, paths in getattr(action, "words", {}).items():
                    found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *paths)))
        return found

    @cached_property
    def vocabulary(self) -> Mapping[str, type[Event]]:
        """The events that this machine can be told, by name."""
        found: dict[str, type[Event]] = {event.name: event for event in _KNOWN}
        for event in (*self.events, *self._named()):
            for kind in _with_subclasses(event):
                if found.setdefault(kind.name, kind) is not kind:
                    raise DefinitionError(f"machine {self.name}: two events are called {kind.name!r}")
        return found

    def _named(self) -> Iterator[type[Event]]:
        for on in self.moves:
            for event in (
                (on.event,) if isinstance(on.event, type | str) or not isinstance(on.event, Sequence) else on.event
            ):
                if isinstance(event, type):
                    yield event
                elif isinstance(event, All):
                    yield event.event
        for action in self.actions():
            yield from getattr(action, "outcomes", ())

    @cached_property
    def shapes(self) -> Mapping[str, Any]:
        """The types of replies and answers that the machine asks for, by name."""
        found: dict[str, Any] = {}
        named = [(getattr(kind, "__name__", str(kind)), kind) for kind in self.replies]
        for action in self.actions():
            named += getattr(action, "shapes", {}).items()
        for name, kind in named:
            if found.setdefault(name, kind) != kind:
                raise DefinitionError(f"machine {self.name}: two reply shapes are called {name!r}; rename one")
        return found

    def require_types(self) -> None:
        """Refuse types that cannot be stored. Not when the table is made: they may be defined below it."""
        _ = self._stored

    @cached_property
    def _stored(self) -> tuple[tuple[str, Any], ...]:
        """What is stored of a run, each with its type."""
        found = (("data", Any if self.data is None else self.data), *self.shapes.items())
        for name, kind in found:
            require_storable(kind, f"machine {self.name}: {name}")
        return found

    def actions(self) -> tuple[Action, ...]:
        """Every action of the table, as the author wrote it."""
        return self._actions

    @cached_property
    def _actions(self) -> tuple[Action, ...]:
        return tuple(self._each_action())

    def _each_action(self) -> Iterator[Action]:
        for place in self.chart.places:
            node = place.node
            if isinstance(node, History):
                yield from sequence(node.do)
                continue
            yield from sequence(node.enter)
            yield from sequence(node.exit)
            if isinstance(node, State):
                yield from sequence(node.starting)
        for on in self.moves:
            yield from sequence(on.do)


_KNOWN = tuple(
    value for value in vars(known).values() if isinstance(value, type) and issubclass(value, Event) and value.name
)


def _require_list(machine: str, what: str, given: object, kinds: tuple[type, ...]) -> None:
    names = ", ".join(kind.__name__ for kind in kinds)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise DefinitionError(f"machine {machine}: {what} is a list of {names}, not {given!r}")
    for item in given:
        if not isinstance(item, kinds):
            raise DefinitionError(f"machine {machine}: {item!r} in {what} is none of {names}")


def _with_subclasses(event: type[Event]) -> Iterator[type[Event]]:
    yield event
    for subclass in event.__subclasses__():
        yield from _with_subclasses(subclass)


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _lines(chart: Chart, name: Callable[[Any], str]) -> Iterator[str]:
    """The definition as text: what a hash covers, and nothing that a comment or a new path would change.

    `name` says what guards and actions are called there.
    """
    names = partial(labels, name=name)
    for place in chart.places:
        yield f"{place.parent} {place.kind} {place.name}{_details(place.node, names)}"
    for row in chart.rows:
        on = row.on
        guard = f" if {name(on.when)}" if on.when is not None else ""
        bounds = f" at most {on.at_most}" if on.at_most is not None else ""
        kind = " internal" if on.internal else ""
        events = "always" if row.descriptors is None else " ".join(row.descriptors)
        yield f"{row.id} on {events} to {on.to}{kind}{bounds}{guard}{labels(on.do, name)}{_declared(on)}"


def _details(node: Node, names: Callable[[Any], str]) -> str:
    """All of a state but its name and kind."""
    match node:
        case State(start=None, starting=(), enter=(), exit=(), max_visits=None):
            return ""
        case State():
            visits, start = node.max_visits, f" start {node.start}{names(node.starting)}"
            return f"{start} visits {visits} enter{names(node.enter)} exit{names(node.exit)}"
        case Parallel():
            return f" visits {node.max_visits} enter{names(node.enter)} exit{names(node.exit)}"
        case Final():
            return f" result {label(node.result)} enter{names(node.enter)} exit{names(node.exit)}"
        case History():
            return f" deep {node.deep} default {node.default}{names(node.do)}"


def _declared(on: On) -> str:
    """What a row says its moves may want and write, which the interpreter enforces."""
    emits = "" if on.emits is None else f" emits {sorted((kind.kind, most) for kind, most in on.emits.items())}"
    writes = "" if on.writes is None else f" writes {sorted((on.writes,) if isinstance(on.writes, str) else on.writes)}"
    return emits + writes


def _shape_text(kind: Any) -> str:
    return json.dumps(schema_without_words(schema(kind)), sort_keys=True, default=repr)


def schema_without_words(schema: Any) -> Any:
    """A JSON Schema without what it only says to readers: titles, descriptions, examples."""
    if isinstance(schema, list | tuple):
        return [schema_without_words(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    for name, part in schema.items():
        if name in _LITERAL:
            kept[name] = part
        elif name in _BY_NAME and isinstance(part, Mapping):
            kept[name] = {key: schema_without_words(inner) for key, inner in part.items()}
        elif name not in _ONLY_SAID:
            kept[name] = schema_without_words(part)
    return kept


_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""The parts of a schema whose keys are names that an author gave."""
_LITERAL = ("enum", "const", "default", "required")
_ONLY_SAID = ("title", "description", "examples", "$comment")


def labels(actions: Any, name: Callable[[Any], str] | None = None) -> str:
    """The names of some actions, a blank before each."""
    name = name or label
    return "".join(f" {name(action)}" for action in sequence(actions)) if actions != () else ""


def decides(action: Any) -> str:
    """What a guard or an action is called where words do not count: its label without what is only said."""
    if isinstance(action, Effect) and action.words:
        rest = {name: value for name, value in action.__dict__.items() if name not in action.words}
        return f"{action.kind} {rest!r}"
    return getattr(action, "decides", None) or label(action)


def label(action: Any) -> str:
    """What a guard or an action is called: its own label where it has one, else its name."""
    named = getattr(action, "label", None) or getattr(action, "__qualname__", None)
    if named:
        return str(named)
    if isinstance(action, partial):
        given = [*map(repr, action.args), *(f"{name}={value!r}" for name, value in action.keywords.items())]
        return f"{label(action.func)}({', '.join(given)})"
    shows_address = "__repr__" not in {name for kind in type(action).__mro__[:-1] for name in vars(kind)}
    return type(action).__qualname__ if shows_address else repr(action)
