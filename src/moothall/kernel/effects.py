"""What is wanted: effects, as values.

A move returns effects; nothing happens until the step that wants them is committed. Each effect ends in
exactly one event. The kinds here are carried out by the runtime itself; all other kinds belong to performers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal

from moothall.errors import DefinitionError
from moothall.kernel.events import (
    Answered,
    ChildDone,
    Conflicted,
    Event,
    Expired,
    RecordsRead,
    RecordsWritten,
    SharedRecord,
)
from moothall.kernel.frozen import RARE, Frozen

Repeats = Literal["pure", "idempotent", "check-first", "at-most-once"]
"""What may happen to an effect that was under way when its worker was lost.

A pure one changes nothing and an idempotent one nothing twice, as long as its key is the same: both are performed
again. One that is checked first is too, after its tool was asked whether it was done. One that may be done at most
once is not: its outcome is unknown, and a person is asked.
"""


class Effect(Frozen):
    """Something that a step wants done; subclass it with what the performer needs to know.

    An owned effect is no longer wanted when the state that wanted it is left. `timeout` is the longest silence of its
    performer in seconds.
    """

    kind: ClassVar[str] = ""
    outcomes: ClassVar[tuple[type[Event], ...]] = ()
    owned: ClassVar[bool] = True
    costs: ClassVar[Mapping[str, float]] = {}
    repeats: ClassVar[Repeats] = "idempotent"
    attempts: ClassVar[int] = 3
    timeout: ClassVar[float | None] = None
    words: ClassVar[tuple[str, ...]] = ()
    """The fields that are only said: another text there does not make another step."""

    def settled(self, value: Any) -> Event:
        """The event in which it ends with this value, where others than its performer say so."""
        return self.outcomes[0](value)  # type: ignore[call-arg]


class AskPerson(Effect):
    """Put a question to a person and wait for the answer, or for the deadline.

    The answer has to fit `schema`, a JSON Schema, and is decoded as the type of the machine's that `shape` names.
    """

    kind = "ask.person"
    outcomes = (Answered, Expired)
    words = ("prompt",)
    prompt: str
    schema: Any = None
    shape: str = ""
    within: float | None = None
    who: str = ""
    id: str = field(default="", kw_only=True, metadata=RARE)


class Send(Effect):
    """Deliver an event to this run after a delay in seconds, wherever it stands then; `id` is for `CancelSend`."""

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
    """Forget the delayed event that was sent with this id, if it has not been delivered yet."""

    kind = "cancel.send"
    owned = False
    id: str


class StartChild(Effect):
    """Start another machine by name as a child of this run; it is cancelled when its state is left.

    `budget` is what it may spend at most; it is carved out of what this run has left. Without it, children that are
    started together share what is left.
    """

    kind = "start.child"
    machine: str
    input: Any = None
    id: str = ""
    budget: Mapping[str, float] = field(default_factory=dict)

    def settled(self, value: Any) -> Event:
        return ChildDone(f"{ChildDone.name}.{self.id}" if self.id else ChildDone.name, value)


class ReadRecords(Effect):
    """Read the records of a collection whose keys begin like this, or the one with this key; so many at most."""

    kind = "read.records"
    outcomes = (RecordsRead,)
    repeats = "pure"
    collection: str
    key: str | None = None
    prefix: str = ""
    most: int = 1000


class WriteRecords(Effect):
    """Write records, all or none, each over the version that was read; it ends in the step that writes them."""

    kind = "write.records"
    outcomes = (RecordsWritten, Conflicted)
    records: tuple[SharedRecord, ...]

    def __post_init__(self) -> None:
        places = [(record.collection, record.key) for record in self.records]
        for collection, key in places:
            if places.count((collection, key)) > 1:
                raise DefinitionError(f"the record {key!r} of {collection!r} is to be written twice at once")

    def settled(self, value: Any) -> Event:
        return RecordsWritten(tuple(record.version + 1 for record in self.records))
