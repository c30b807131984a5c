"""The rows and boxes of a machine, as authors write them: states of all kinds, and moves between them.

A row is typed by the data and the event that it is for, `On[D, E]`: type checkers compare its guard and its moves with
both. Nobody has to write that down: the event stands in the row, and the data in the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from enum import Enum
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Moment, Move, Scripted

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
    E = TypeVar("E", bound=Event, covariant=True, default=Any)
    F = TypeVar("F", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    D, E, F = TypeVar("D"), TypeVar("E"), TypeVar("F")

Given = TypeVar("Given", contravariant=True)
Heard = TypeVar("Heard", contravariant=True)
Kept = TypeVar("Kept")


class TimedGuard(Protocol[Given, Heard]):
    """A guard that uses the moment: the time of the event, or chance."""

    def __call__(self, data: Given, event: Heard, moment: Moment, /) -> bool: ...


class TimedMove(Protocol[Kept, Heard]):
    """A move that uses the moment: the time of the event, or chance."""

    def __call__(self, data: Kept, event: Heard, moment: Moment, /) -> Kept | Move[Kept] | Effect: ...


# With a second `Callable` in these unions, mypy would not infer the parameters of a lambda.
Guard = Callable[[D, E], bool] | TimedGuard[D, E] | Scripted
Action = Callable[[D, E], D | Move[D] | Effect] | TimedMove[D, E] | Scripted | Effect
Actions = Action[Any, Any] | Sequence[Action[Any, Any]]
Names = str | Sequence[str]


class Trigger(Enum):
    """The two triggers of a row that are no event."""

    OTHERWISE = "otherwise"
    ALWAYS = "always"


class All(Frozen):
    """The trigger of a row that is taken when all have ended, well or not, that this state asked and that could end so.

    `All(Replied)` waits for every ask of the state, `All(Returned)` for every call of a tool; children count for both.
    Rows for the single ends come first. A state that asks nobody is not kept waiting.
    """

    event: type[Event]

    def waits_for(self, effect: Effect) -> bool:
        """Whether it waits for the end of this effect."""
        can_end_so = any(issubclass(outcome, self.event) for outcome in effect.outcomes)
        return can_end_so or isinstance(effect, StartChild)

    def name_in(self, state: str) -> str:
        """The name of the event that comes when all of a state have ended."""
        return f"{ALL}.{self.event.name}.{state}"


ALL = "all"
otherwise: Any = Trigger.OTHERWISE
always: Any = Trigger.ALWAYS
anywhere = "*"
When = type[Event] | str | Trigger | All


class State(Frozen):
    """A state; with `states` inside it is compound and begins at `start`, or at the first of them."""

    name: str
    states: Sequence[Node] = ()
    _: KW_ONLY
    start: Names | None = None
    starting: Actions = ()
    enter: Actions = ()
    exit: Actions = ()
    max_visits: int | None = None


class Parallel(Frozen):
    """A state whose inner states are all active at once; it is done when all of them are."""

    name: str
    states: Sequence[Node]
    _: KW_ONLY
    enter: Actions = ()
    exit: Actions = ()
    max_visits: int | None = None


class Final(Frozen):
    """An end: of the run at the top, of the surrounding state elsewhere. `result` makes the outcome from the data.

    `ends` says how a run is shown that ended here; a parent gets its result in any case.
    """

    name: str
    _: KW_ONLY
    ends: Literal["done", "failed", "limited"] = "done"
    result: Callable[[Any, Any], Any] | Callable[[Any, Any, Moment], Any] | Scripted | None = None
    enter: Actions = ()
    exit: Actions = ()


class History(Frozen):
    """Where the surrounding state stood when it was last left; `default` before it ever was."""

    name: str
    default: Names
    _: KW_ONLY
    deep: bool = False
    do: Actions = ()


Node = State | Parallel | Final | History


class Row(Frozen, Generic[D, F]):
    """A row for data of this type, whatever its event.

    `F` is always `Callable[[D], D]`. Because of it, mypy takes the data of a table from `data=` before it reads the
    rows, and one row that takes anything does not make the whole table untyped.
    """


class On(Row[D, Callable[[D], D]], Generic[D, E]):
    """One row: in this state, on this event, if the guard holds, move there. Without `to` the state is not left."""

    state: str
    event: When | Sequence[When]
    _: KW_ONLY
    to: Names | None = None
    when: Guard[Any, Any] | None = None
    do: Actions = ()
    at_most: int | None = None
    internal: bool = False
    emits: Mapping[type[Effect], int] | None = None
    writes: Sequence[str] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            state: str,
            event: type[E] | str | Trigger | All | Sequence[Any],
            *,
            to: Names | None = None,
            when: Guard[D, E] | None = None,
            do: Action[D, E] | Sequence[Action[D, E]] = (),
            at_most: int | None = None,
            internal: bool = False,
            emits: Mapping[type[Effect], int] | None = None,
            writes: Sequence[str] | None = None,
        ) -> None: ...

    else:
        __class_getitem__ = classmethod(GenericAlias)  # `On[Article]`: the event may be left out


Function = TypeVar("Function", bound=Callable[..., Any])


def emitting(*effects: type[Effect], most: int = 1) -> Callable[[Function], Function]:
    """Say of a function in a table that it may want these effects, each so many times at most."""

    def marked(function: Function) -> Function:
        function.emits = {effect.kind: most for effect in effects}  # type: ignore[attr-defined]
        function.effects = effects  # type: ignore[attr-defined]
        function.outcomes = tuple(outcome for effect in effects for outcome in effect.outcomes)  # type: ignore[attr-defined]
        return function

    return marked
