"""What a run leaves behind, as values, and their one form in JSON.

    Head      where the run stands: snapshot, effects in flight, what was spent
    Pending   an effect that a committed step wants and that has not ended yet
    Entry     one event, what it did, and what it wants: the journal is the sequence of these
    Record    how the run began: machine, definition, settings
    Run       a record together with the machine that it runs

Nothing here is decoded by a type name from the file: events and effects are looked up in what the machine and
the performers declare, and everything is checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, cast

import orjson

from moothall.errors import Broken, MoothallError, Refused
from moothall.kernel import effects as known
from moothall.kernel.codec import decode, decoder, encode
from moothall.kernel.effects import Effect
from moothall.kernel.events import ChildDone, Event, Named
from moothall.kernel.frozen import RARE, Frozen, maker, slotted, stored_fields
from moothall.kernel.machine import Machine
from moothall.kernel.step import Absent, Answer, Append, Failed, Snapshot, Value

RunId = str
FORGOTTEN = "forgotten"
"""What an entry or a head has whose texts were taken out: a list of notes, each with when, by whom and what."""
Same = Mapping[str, tuple[int, int, int]]
"""For each row what it last brought, the data it left then, and how often in a row."""


class TellParent(Effect):
    """Tell the run that started this one how it ended."""

    kind = "tell.parent"
    owned = False
    attempts = 1_000_000
    parent: RunId
    key: str
    status: str
    reason: str = ""
    output: Any = None
    spent: Mapping[str, float] = field(default_factory=dict)
    fault: str = "world"


class CancelChild(Effect):
    """Ask a child to stop, and wait until it says how it ended."""

    kind = "cancel.child"
    owned = False
    machine: str
    reason: str


@slotted
class Pending(Frozen):
    """An effect in flight. Its key is its place in the journal: the entry's number and its own.

    `denied` names what the budget lacks for it, `doubt` why its outcome is unknown. `began` says that it was about to
    be performed, or that the child is there. `share` is what a child may spend.
    """

    key: str
    effect: Effect
    owner: str | None = None
    nth: int = 1
    due: float | None = None
    denied: str = ""
    attempt: int = 1
    began: bool = False
    doubt: str = ""
    share: Mapping[str, float] | None = None

    def sleeps(self) -> bool:
        """Whether nothing is to be done for it now: people, time or a child will end it."""
        kind = self.effect.kind
        if kind in WAITING:
            return not self.denied or bool(self.doubt)
        return bool(self.doubt) or (self.began and kind in FAMILY)


@slotted
class Head(Frozen):
    """Where a run stands after its latest entry."""

    seq: int
    snapshot: Snapshot
    pending: tuple[Pending, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    issued: Mapping[str, int] = field(default_factory=dict)
    same: Same = field(default_factory=dict)
    """What came again and again: watched in runs that nothing else bounds."""
    steps: int = 0
    """How many events moved the run, or might have."""
    definition: str = ""
    """The digest of the definition that adopted the run; none where it is still the one that it began with."""
    limits: Mapping[str, float] | None = None
    """The limits of its budget since it was retried; none where they are still those that it began with."""

    def wake(self) -> float | None:
        """When the run wants attention: 0 is now, None is never unless somebody tells it something."""
        soonest: float | None = None
        for pending in self.pending:
            if pending.due is None:
                if not pending.sleeps():
                    return 0.0
            elif soonest is None or pending.due < soonest:
                soonest = pending.due
        return soonest

    def rests(self) -> bool:
        """Whether nothing is left to perform or to wait for but people and children."""
        for pending in self.pending:
            kind = pending.effect.kind
            if kind in TIMERS or (kind not in SLEEPY and not pending.doubt) or not pending.sleeps():
                return False
        return True


make_pending = maker(Pending)
make_head = maker(Head)
TIMERS = frozenset((known.Send.kind, known.Alarm.kind))
WAITING = TIMERS | {known.AskPerson.kind}
FAMILY = frozenset((known.StartChild.kind, CancelChild.kind))
SLEEPY = WAITING | FAMILY


@slotted
class Entry(Frozen):
    """One event of a run and what it did. `ignored` says why an event did nothing, `answers` what scripts said."""

    seq: int
    at: float
    cause: str
    event: Event
    before: tuple[str, ...]
    after: tuple[str, ...]
    taken: tuple[str, ...] = ()
    within: str | None = None
    effects: tuple[Pending, ...] = ()
    appends: tuple[Append, ...] = ()
    status: str = "live"
    reason: str = ""
    ignored: str = ""
    answers: tuple[Answer, ...] = ()
    raised: tuple[str, ...] = ()
    """The names of the events that the machine raised itself on the way, one for each row that took one."""


make_entry = maker(Entry)


class Lane(Frozen):
    """Which workers drive a run, for whom, and how soon.

    A higher priority comes first. Among runs of one priority, tenants take turns.
    """

    queue: str = ""
    tenant: str = ""
    priority: int = 0


ANY_LANE = Lane()


class Record(Frozen):
    """How a run began; the same for all its life."""

    run: RunId
    machine: str
    digest: str
    began: float
    source: str = ""
    model: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    endless: bool = False
    """Whether the machine alone does not bound the run, so that it is watched for going in circles."""
    parent: RunId = ""
    parent_key: str = ""
    depth: int = 0
    origin: RunId = ""
    """The run that this one was forked from; up to entry `shared` their journals are one."""
    shared: int = -1
    performed: tuple[str, ...] = ()
    """Fingerprints of what the origin has done behind that entry, which is not done again unasked."""
    tools: Mapping[str, Any] = field(default_factory=dict, metadata=RARE)
    """What the tools of its agents work with, as the floors above write it down."""
    definition: Mapping[str, Any] = field(default_factory=dict)
    """The definition itself, where it is data and no code; empty for machines that are written in Python."""
    lane: Lane = field(default=ANY_LANE, metadata=RARE)
    """Which workers drive it."""
    project: str = field(default="", metadata=RARE)
    """The folder of the project that the run was begun in; children are in that of their parent."""
    bad_ends: Mapping[str, str] = field(default_factory=dict, metadata=RARE)
    """The ends of its machine that are not good ones, and how the run is shown where it ended there."""


@slotted
class Run(Frozen):
    """One durable life of a machine: how it began, its definition, and the run that it was forked from.

    The origin is there where the whole journal is decided again.
    """

    record: Record
    machine: Machine
    origin: Run | None = None


class Reader(Frozen):
    """Decodes what a store holds of the runs of one machine."""

    machine: Machine
    effects: Mapping[str, type[Effect]]

    def head(self, plain: Any) -> Head:
        """A head from its JSON."""
        if FORGOTTEN in plain:
            raise Refused("its texts were forgotten: nothing can be decided, shown or continued from them")
        try:
            snapshot = plain["snapshot"]
            snapshot = {**snapshot, "data": self.data(snapshot["data"])}
            return Head(
                decode(int, plain["seq"], "seq"),
                decode(Snapshot, snapshot, "snapshot"),
                tuple(self.pending(effect) for effect in plain["pending"]),
                _amounts(plain["spent"], "spent"),
                _counts(plain["issued"], "issued"),
                _same(plain["same"], "same") if "same" in plain else {},
                decode(int, plain["steps"], "steps"),
                decode(str, plain.get("definition", ""), "definition"),
                _amounts(plain["limits"], "limits") if "limits" in plain else None,
            )
        except (KeyError, TypeError, MoothallError) as error:
            raise Broken(f"the stored snapshot cannot be read: {error}") from error

    def data(self, plain: Any) -> Any:
        """A run's data from their JSON."""
        return plain if self.machine.data is None else decode(self.machine.data, plain, "data")

    def pending(self, plain: Mapping[str, Any]) -> Pending:
        """An effect in flight from its JSON."""
        try:
            kind = self.effects.get(plain["kind"]) or _KNOWN.get(plain["kind"])
            if kind is None:
                raise Broken(f"no performer here knows the effect {plain['kind']!r}")
            values = _object(plain["effect"], "effect")
            around = {name: _around[name](part, name) for name, part in plain.items() if name not in _THE_EFFECT}
        except KeyError as error:
            raise Broken(f"an effect in flight cannot be read: {error}") from error
        if isinstance(values.get("event"), dict):
            values["event"] = self.event(values["event"])
        return Pending(effect=decode_effect(kind, values), **around)

    def event(self, plain: Mapping[str, Any]) -> Event:
        """An event from its JSON: its class by name, its value by the shape that the machine knows."""
        values = {name: value for name, value in plain.items() if name != "name"}
        kind = self.machine.vocabulary.get(plain["name"])
        if kind is None and plain["name"].startswith(ChildDone.name + ".") and "usage" in values:
            return decode(ChildDone, plain, plain["name"])
        message = getattr(self.machine, "message", None)
        if kind is None and message is not None and values.keys() > {"data"}:
            return cast(Event, decode(message, plain, plain["name"]))
        if kind is None or (values.keys() == {"data"} and "data" not in _names(kind)):
            return Named(plain["name"], values.get("data"))
        event = decode(kind, values, plain["name"])
        return shaped(self.machine, event)


def answers_of(entry: Mapping[str, Any]) -> tuple[Answer, ...]:
    """What scripts answered to the event of an entry."""
    return tuple(
        Value(answer["value"])
        if "value" in answer
        else Failed(str(answer["reason"]))
        if "reason" in answer
        else Absent()
        for answer in entry.get("answers", ())
    )


def shaped(machine: Machine, event: Event) -> Event:
    """An event whose value has the type that its shape names; the same event where it has none."""
    shapes = machine.shapes
    shape = shapes.get(getattr(event, "shape", "")) if shapes else None
    if shape is None:
        return event
    value = getattr(event, "value", None)
    return type(event)(**{**event.__dict__, "value": decode(shape, encode(value), event.name)})


def decode_effect(kind: type[Effect], values: dict[str, Any]) -> Effect:
    """An effect of this class; an event inside it has been decoded already."""
    event = values.pop("event", None)
    if event is None:
        return decode(kind, values, kind.kind)
    return kind(event=event, **values)  # type: ignore[call-arg]


def _names(kind: type[Event]) -> frozenset[str]:
    return frozenset(part.name for part in fields(kind))


_THE_EFFECT = frozenset(("kind", "effect"))
_AROUND_AN_EFFECT: Mapping[str, Any] = {
    "key": str,
    "owner": str | None,
    "nth": int,
    "due": float | None,
    "denied": str,
    "attempt": int,
    "began": bool,
    "doubt": str,
    "share": dict[str, float] | None,
}
_around = {name: decoder(kind) for name, kind in _AROUND_AN_EFFECT.items()}
_amounts, _counts, _object = decoder(dict[str, float]), decoder(dict[str, int]), decoder(dict[str, Any])
_same = decoder(dict[str, tuple[int, int, int]])
_KNOWN: dict[str, type[Effect]] = {
    effect.kind: effect
    for effect in vars(known).values()
    if isinstance(effect, type) and issubclass(effect, Effect) and effect.kind
} | {TellParent.kind: TellParent, CancelChild.kind: CancelChild}


def encode_event(event: Event) -> dict[str, Any]:
    """An event as JSON: its name and its fields."""
    return {"name": event.name, **encode(event)}


def encode_pending(pending: Pending) -> Any:
    """An effect in flight as JSON."""
    return encode(pending_shape(pending))


def fingerprint(pending: Mapping[str, Any]) -> str:
    """What an effect in flight, as JSON, has in common with every other that would do the same."""
    wanted = orjson.dumps((pending["kind"], pending["effect"]), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(wanted, digest_size=8).hexdigest()


def encode_head(head: Head) -> Any:
    """A head as JSON."""
    return encode(head_shape(head, list(map(pending_shape, head.pending))))


def encode_entry(entry: Entry) -> Any:
    """An entry as JSON."""
    return encode(entry_shape(entry, list(map(pending_shape, entry.effects))))


# The shapes that these have as JSON, with the values inside still as they are; what is empty is left out.


def pending_shape(pending: Pending) -> dict[str, Any]:
    """The shape of an effect in flight."""
    effect: Any = pending.effect
    if isinstance(event := getattr(effect, "event", None), Event):
        values: Any = {**effect.__dict__, "event": {"name": event.name, **stored_fields(event)}}
    else:
        values = effect
    shape: dict[str, Any] = {"key": pending.key, "kind": effect.kind, "effect": values, "nth": pending.nth}
    if pending.owner is not None:
        shape["owner"] = pending.owner
    if pending.due is not None:
        shape["due"] = pending.due
    if pending.denied:
        shape["denied"] = pending.denied
    if pending.attempt > 1:
        shape["attempt"] = pending.attempt
    if pending.began:
        shape["began"] = True
    if pending.doubt:
        shape["doubt"] = pending.doubt
    if pending.share is not None:
        shape["share"] = pending.share
    return shape


def head_shape(head: Head, pending: Sequence[Any]) -> dict[str, Any]:
    """The shape of a head, around its effects in flight."""
    snapshot = head.snapshot
    inner = {"active": snapshot.active, "data": snapshot.data, "status": snapshot.status, "reason": snapshot.reason}
    if snapshot.output is not None:
        inner["output"] = snapshot.output
    if snapshot.counts:
        inner["counts"] = snapshot.counts
    if snapshot.history:
        inner["history"] = snapshot.history
    if snapshot.threads:
        inner["threads"] = snapshot.threads
    shape = {
        "seq": head.seq,
        "steps": head.steps,
        "snapshot": inner,
        "pending": pending,
        "spent": head.spent,
        "issued": head.issued,
    }
    if head.same:
        shape["same"] = head.same
    if head.definition:
        shape["definition"] = head.definition
    if head.limits is not None:
        shape["limits"] = head.limits
    return shape


def entry_shape(entry: Entry, effects: Sequence[Any]) -> dict[str, Any]:
    """The shape of an entry, around the effects that it wants."""
    event = entry.event
    shape = {
        "seq": entry.seq,
        "at": entry.at,
        "cause": entry.cause,
        "event": {"name": event.name, **stored_fields(event)},
        "from": entry.before,
        "to": entry.after,
        "taken": entry.taken,
        "effects": effects,
    }
    if entry.within:
        shape["within"] = entry.within
    if entry.appends:
        shape["appends"] = entry.appends
    if entry.status != "live":
        shape["status"] = entry.status
    if entry.reason:
        shape["reason"] = entry.reason
    if entry.ignored:
        shape["ignored"] = entry.ignored
    if entry.answers:
        shape["answers"] = entry.answers
    if entry.raised:
        shape["raised"] = entry.raised
    return shape
