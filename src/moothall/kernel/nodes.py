"""The rows and boxes of a machine, as authors write them: states of all kinds, and moves between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from enum import Enum
from typing import Any, TypeVar

from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Moment, Scripted

Guard = Callable[[Any, Any], bool] | Callable[[Any, Any, Moment], bool] | Scripted
Action = Callable[[Any, Any], Any] | Callable[[Any, Any, Moment], Any] | Scripted | Effect
Actions = Action | Sequence[Action]
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
otherwise = Trigger.OTHERWISE
always = Trigger.ALWAYS
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
    """An end: of the run at the top, of the surrounding state elsewhere. `result` makes the outcome from the data."""

    name: str
    _: KW_ONLY
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


class On(Frozen):
    """One row: in this state, on this event, if the guard holds, move there. Without `to` the state is not left."""

    state: str
    event: When | Sequence[When]
    _: KW_ONLY
    to: Names | None = None
    when: Guard | None = None
    do: Actions = ()
    at_most: int | None = None
    internal: bool = False
    emits: Mapping[type[Effect], int] | None = None
    writes: Sequence[str] | None = None


Function = TypeVar("Function", bound=Callable[..., Any])


def emitting(*effects: type[Effect], most: int = 1) -> Callable[[Function], Function]:
    """Say of a function in a table that it may want these effects, each so many times at most."""

    def marked(function: Function) -> Function:
        function.emits = {one.kind: most for one in effects}  # type: ignore[attr-defined]
        function.effects = effects  # type: ignore[attr-defined]
        function.outcomes = tuple(outcome for one in effects for outcome in one.outcomes)  # type: ignore[attr-defined]
        return function

    return marked
