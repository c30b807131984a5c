"""What is wanted: effects, as values.

A move returns effects; nothing happens until the step that wants them is committed. Each effect ends in
exactly one event. The kinds here are carried out by the runtime itself; all other kinds belong to performers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moothall.kernel.events import Answered, Event, Expired
from moothall.kernel.frozen import Frozen


class Effect(Frozen):
    """Something that a step wants done; subclass it with what the performer needs to know.

    An owned effect is no longer wanted when the state that wanted it is left.
    """

    kind: ClassVar[str] = ""
    outcomes: ClassVar[tuple[type[Event], ...]] = ()
    owned: ClassVar[bool] = True
    costs: ClassVar[Mapping[str, float]] = {}


class AskPerson(Effect):
    """Put a question to a person and wait for the answer, or for the deadline."""

    kind = "ask.person"
    outcomes = (Answered, Expired)
    prompt: str
    schema: Any = None
    shape: str = ""
    within: float | None = None
    who: str = ""


class Send(Effect):
    """Deliver an event to this run after a delay in seconds, wherever it stands then; `id` lets it be cancelled."""

    kind = "send"
    owned = False
    event: Event
    delay: float = 0
    id: str = ""


class Alarm(Effect):
    """Deliver an event to the state that set the alarm after a delay in seconds, unless it was left."""

    kind = "alarm"
    event: Event
    delay: float


class CancelSend(Effect):
    """Forget a delayed event that has not been delivered yet."""

    kind = "cancel.send"
    owned = False
    id: str


class StartChild(Effect):
    """Start another machine by name as a child of this run; it is cancelled when its state is left."""

    kind = "start.child"
    machine: str
    input: Any = None
    id: str = ""
