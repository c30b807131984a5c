"""What has happened: events, their dotted names, and the events that the kernel itself knows.

An event is a frozen dataclass with a dotted name. A subclass's name extends its parent's, so that "is a
subclass of" and "has this prefix" are one notion, and a row that names a class also takes its subclasses.
The kernel reads `event.name` and nothing else of an event.

Three families of names end a run that has no row for them:

    error.*           the run fails (machines with errors="strict")
    run.exhausted.*   the run ends at a limit
    run.cancelled     the run ends cancelled

Constructing an event has no side effect; time and ids come in with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from moothall.errors import DefinitionError
from moothall.kernel.frozen import RARE, Frozen

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    V = TypeVar("V")

SIGNED = {**RARE, "signed": True}
"""The metadata of a field that has who told an event: whoever passes it on fills it in, and nobody can choose it."""
_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")


class Event(Frozen):
    """Something that has happened; subclass it with the fields that it carries."""

    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        own = cls.__dict__
        if "name" not in own.get("__annotations__", {}):
            cls.name = _extended(getattr(cls.__mro__[1], "name", ""), own.get("name"), cls.__name__)
        super().__init_subclass__()


def _extended(parent: str, given: str | None, title: str) -> str:
    """The full name of an event class: given or taken from its title, and always below its parent's."""
    if given is None:
        given = re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower()
        given = f"{parent}.{given}" if parent else given
    if given and not _NAME.fullmatch(given):
        raise DefinitionError(f"event {title}: {given!r} is not a dotted name; use letters, digits, '_', '-' and dots")
    if parent and given and not given.startswith(parent + "."):
        raise DefinitionError(f"event {title}: its name {given!r} must begin with its parent's: {parent + '.'!r}")
    return given


class Named(Event):
    """An event known by its name alone, as documents send them."""

    name: str  # type: ignore[misc]
    data: Any = None


class Started(Event):
    """The run began, with these data."""

    name = "run.started"
    data: Any = None


class Done(Event):
    """A state reached its end. In a row: the row's own state."""

    name = "done.state"


class GaveUp(Event):
    """An effect was tried and could not be done; `id` is the effect's own, where it has one.

    `fault` says where to look: at the `definition`, at the `provider` of a model, or somewhere in the `world`.
    """

    name = "error.effect"
    reason: str = ""
    fault: str = "world"
    usage: Mapping[str, float] = field(default_factory=dict)
    id: str = ""
    model: str = field(default="", kw_only=True, metadata=RARE)
    """The model that failed, where a run has several."""


class ExecutionFailed(Event):
    """A guard, a move or a script of the machine went wrong."""

    name = "error.execution"
    where: str = ""
    reason: str = ""
    place: str = ""
    """The function, file and line; they change with every edit of the file."""


class ChildDone(Event):
    """A child came to its end; its name ends with the child's id, and its data are the child's outcome."""

    name: str = "done.invoke"  # type: ignore[misc]
    data: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)


class Exhausted(Event):
    """A bound was reached: a budget, the visits of a state, the transitions of a run.

    `id` is that of the effect which was denied for it, where it has one.
    """

    name = "run.exhausted"
    resource: str = ""
    limit: float = 0
    where: str = ""
    id: str = field(default="", kw_only=True, metadata=RARE)


class Cancelled(Event):
    """Someone asked the run to stop."""

    name = "run.cancelled"
    reason: str = ""


class Answered(Event, Generic[V]):
    """A person answered a question; `id` is the question's own, where it has one.

    A move may say what was asked for: `answer: Answered[bool]`.
    """

    value: V = None  # type: ignore[assignment]
    shape: str = ""
    by: str = ""
    id: str = field(default="", kw_only=True, metadata=RARE)


class Expired(Event):
    """A question's deadline passed without an answer; `id` is the question's own, where it has one."""

    id: str = field(default="", kw_only=True, metadata=RARE)


class SharedRecord(Frozen):
    """What outlives a run and is shared by many: a value by its name in a collection.

    The version counts how often it was written. Of a record that is to be written, it is the version that is replaced,
    0 where there must be none yet.
    """

    collection: str
    key: str
    value: Any = None
    version: int = 0


class RecordsRead(Event):
    """Records were read, in the order of their keys; one that is not there is left out."""

    name = "records.read"
    records: tuple[SharedRecord, ...] = ()


class RecordsWritten(Event):
    """Records were written together with the step that this event makes; these are their versions now."""

    name = "records.written"
    versions: tuple[int, ...] = ()


class Conflicted(GaveUp):
    """No record was written: one of them has another version now than the one that was to be replaced.

    Read it again and decide again; without a row for it, it is an effect that could not be done.
    """

    name = "error.effect.conflict"
    collection: str = ""
    key: str = ""
    version: int = 0


class Note(Event):
    """Something that is kept in the journal, and that the machine does not hear of."""

    name = ""


class Adopted(Note):
    """The run goes on under another definition, which would have taken the same steps so far.

    Where it would not have, somebody insisted: who, why, what the first difference was, and the head from which the
    new definition went on, because it cannot be made anew from what came before.
    """

    name = "run.adopted"
    digest: str
    was: str
    reason: str = ""
    by: str = ""
    difference: str = ""
    head: Any = None


class Forked(Note):
    """The run goes its own way from here; up to here its journal is that of another run."""

    name = "run.forked"
    run: str


class Retried(Note):
    """Somebody has mended what ended the run: what was decided from this entry on counts no more, and is decided again.

    It ended for this reason, with the end of the effect with this key where it was one; `again` says that this effect
    is performed anew, so that its end does not count either. `limits` are those of the budget from now on, and
    `spent` is what was spent until now.
    """

    name = "run.retried"
    entry: int
    digest: str
    by: str = ""
    key: str = ""
    reason: str = ""
    again: bool = False
    limits: Mapping[str, float] | None = None
    spent: Mapping[str, float] = field(default_factory=dict)


class Mark(Note):
    """Something about an effect in flight."""

    name = "effect"


class Began(Mark):
    """The effect is about to be performed; after a crash this tells that it may have been."""

    name = "effect.began"


class AttemptFailed(Mark):
    """An attempt went wrong. `after` is how long the other side asks to be left alone, in seconds."""

    name = "effect.faltered"
    reason: str = ""
    after: float = 0
    usage: Mapping[str, float] = field(default_factory=dict)
    fault: str = "world"
    model: str = field(default="", kw_only=True, metadata=RARE)
    """The model that failed, where a run has several."""


class Denied(Mark):
    """When the effect was to begin, others had used up what it was granted a part of: it does not begin."""

    name = "effect.denied"
    resource: str = ""


class Doubted(Mark):
    """The effect had begun when its worker was lost: whether it was done, only a person can find out."""

    name = "effect.doubted"
    reason: str = ""


class Interrupted(Mark):
    """The effect was cut off because nobody wants it any more: what was said until then, and what that cost at least.

    What the provider counts for the rest is not known; the tokens of the text are an estimate.
    """

    name = "effect.interrupted"
    agent: str = ""
    text: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)


class Repeated(Mark):
    """A person said that the effect was not done and may be performed again."""

    name = "effect.repeated"
    by: str = ""


class Drafted(Mark):
    """A person filled in some fields of a form and left the rest for later."""

    name = "effect.drafted"
    value: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""


class Delivered(Event):
    """What a run had to say to another has arrived there."""

    name = "effect.delivered"
    usage: Mapping[str, float] = field(default_factory=dict)


def matches(descriptor: str, name: str) -> bool:
    """Whether a normalised descriptor takes an event of this name."""
    return not descriptor or name == descriptor or (name.startswith(descriptor) and name[len(descriptor)] == ".")


def normalised(descriptor: str) -> str:
    """A descriptor without its wildcard: "a.*" and "a." are "a", and "*" is "", which takes everything."""
    return "" if descriptor == "*" else descriptor.removesuffix(".*").removesuffix(".")
