"""What a run leaves behind, as values, and their one form in JSON.

    Head      where the run stands: snapshot, effects in flight, what was spent
    Pending   an effect that a committed step wants and that has not ended yet
    Entry     one event, what it did, and what it wants: the journal is the sequence of these
    Record    how the run began: machine, definition, settings

Nothing here is decoded by a type name from the file: events and effects are looked up in what the machine and
the performers declare, and everything is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any

from moothall.errors import Broken, MoothallError
from moothall.kernel import effects as known
from moothall.kernel.codec import decode, decoder, encode
from moothall.kernel.effects import Effect
from moothall.kernel.events import ChildDone, Event, Named
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.step import Append, Snapshot

RunId = str


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


class CancelChild(Effect):
    """Ask a child to stop, and wait until it says how it ended."""

    kind = "cancel.child"
    owned = False
    machine: str
    reason: str


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
        return (kind in WAITING and not self.denied) or (self.began and kind in FAMILY) or bool(self.doubt)


class Head(Frozen):
    """Where a run stands after its latest entry."""

    seq: int
    snapshot: Snapshot
    pending: tuple[Pending, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    issued: Mapping[str, int] = field(default_factory=dict)
    same: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """For each row what it last brought, and how often in a row; kept for runs that nothing else bounds."""

    def wake(self) -> float | None:
        """When the run wants attention: 0 is now, None is never unless somebody tells it something."""
        soonest: float | None = None
        for one in self.pending:
            if one.due is None:
                if not one.sleeps():
                    return 0.0
            elif soonest is None or one.due < soonest:
                soonest = one.due
        return soonest

    def rests(self) -> bool:
        """Whether nothing is left to perform or to wait for but people and children."""
        return not any(map(_moves_on, self.pending))


def _moves_on(pending: Pending) -> bool:
    return pending.effect.kind in TIMERS or not pending.sleeps()


TIMERS = frozenset((known.Send.kind, known.Alarm.kind))
WAITING = TIMERS | {known.AskPerson.kind}
FAMILY = frozenset((known.StartChild.kind, CancelChild.kind))


class Entry(Frozen):
    """One event of a run and what it did. `ignored` says why an event did nothing."""

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


class Reader(Frozen):
    """Decodes what a store holds of the runs of one machine."""

    machine: Machine
    effects: Mapping[str, type[Effect]]

    def head(self, plain: Any) -> Head:
        """A head from its JSON."""
        try:
            snapshot = plain["snapshot"]
            snapshot = {**snapshot, "data": self.data(snapshot["data"])}
            return Head(
                decode(int, plain["seq"], "seq"),
                decode(Snapshot, snapshot, "snapshot"),
                tuple(self.pending(one) for one in plain["pending"]),
                _amounts(plain["spent"], "spent"),
                _counts(plain["issued"], "issued"),
                _same(plain["same"], "same") if "same" in plain else {},
            )
        except (KeyError, TypeError, MoothallError) as error:
            raise Broken(f"the stored snapshot cannot be read: {error}") from error

    def data(self, plain: Any) -> Any:
        """A run's data from their JSON."""
        return plain if self.machine.data is None else decode(self.machine.data, plain, "data")

    def pending(self, plain: Mapping[str, Any]) -> Pending:
        """An effect in flight from its JSON."""
        head = {name: decoded(plain[name], name) for name, decoded in _around_an_effect.items() if name in plain}
        kind = self.effects.get(plain["kind"]) or _KNOWN.get(plain["kind"])
        if kind is None:
            raise Broken(f"no performer here knows the effect {plain['kind']!r}")
        values = _object(plain["effect"], "effect")
        if isinstance(values.get("event"), dict):
            values["event"] = self.event(values["event"])
        return Pending(effect=decode_effect(kind, values), **head)

    def event(self, plain: Mapping[str, Any]) -> Event:
        """An event from its JSON: its class by name, its value by the shape that the machine knows."""
        values = {name: value for name, value in plain.items() if name != "name"}
        kind = self.machine.vocabulary.get(plain["name"])
        if kind is None and plain["name"].startswith(ChildDone.name + ".") and "usage" in values:
            return decode(ChildDone, plain, plain["name"])
        if kind is None or (values.keys() == {"data"} and "data" not in _names(kind)):
            return Named(plain["name"], values.get("data"))
        event = decode(kind, values, plain["name"])
        return shaped(self.machine, event)


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
    return frozenset(one.name for one in fields(kind))


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
_around_an_effect = {name: decoder(kind) for name, kind in _AROUND_AN_EFFECT.items()}
_amounts, _counts, _object = decoder(dict[str, float]), decoder(dict[str, int]), decoder(dict[str, Any])
_same = decoder(dict[str, tuple[str, int]])
_KNOWN: dict[str, type[Effect]] = {
    one.kind: one for one in vars(known).values() if isinstance(one, type) and issubclass(one, Effect) and one.kind
} | {TellParent.kind: TellParent, CancelChild.kind: CancelChild}


def encode_event(event: Event) -> dict[str, Any]:
    """An event as JSON: its name and its fields."""
    return {"name": event.name, **encode(event)}


def encode_pending(pending: Pending) -> dict[str, Any]:
    """An effect in flight as JSON; what is empty is left out."""
    effect = pending.effect
    values = encode(effect)
    if "event" in values and isinstance(event := getattr(effect, "event", None), Event):
        values["event"] = encode_event(event)
    plain: dict[str, Any] = {"key": pending.key, "kind": effect.kind, "effect": values, "nth": pending.nth}
    if pending.owner is not None:
        plain["owner"] = pending.owner
    if pending.due is not None:
        plain["due"] = pending.due
    if pending.denied:
        plain["denied"] = pending.denied
    if pending.attempt > 1:
        plain["attempt"] = pending.attempt
    if pending.began:
        plain["began"] = True
    if pending.doubt:
        plain["doubt"] = pending.doubt
    if pending.share is not None:
        plain["share"] = pending.share
    return plain


def encode_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as JSON; what is empty is left out."""
    plain: dict[str, Any] = {"active": list(snapshot.active), "data": encode(snapshot.data), "status": snapshot.status}
    plain["reason"] = snapshot.reason
    if snapshot.output is not None:
        plain["output"] = encode(snapshot.output)
    if snapshot.counts:
        plain["counts"] = encode(snapshot.counts)
    if snapshot.history:
        plain["history"] = encode(snapshot.history)
    if snapshot.threads:
        plain["threads"] = encode(snapshot.threads)
    return plain


def encode_head(head: Head, pending: Sequence[Any] | None = None) -> dict[str, Any]:
    """A head as JSON; its effects in flight may have been encoded already."""
    plain = {
        "seq": head.seq,
        "snapshot": encode_snapshot(head.snapshot),
        "pending": [encode_pending(one) for one in head.pending] if pending is None else pending,
        "spent": encode(head.spent) if head.spent else {},
        "issued": dict(head.issued),
    }
    if head.same:
        plain["same"] = encode(head.same)
    return plain


def encode_entry(entry: Entry, effects: Sequence[Any] | None = None) -> dict[str, Any]:
    """An entry as JSON; what is empty is left out. Its effects may have been encoded already."""
    plain: dict[str, Any] = {
        "seq": entry.seq,
        "at": entry.at,
        "cause": entry.cause,
        "event": encode_event(entry.event),
        "from": list(entry.before),
        "to": list(entry.after),
        "taken": list(entry.taken),
        "effects": [encode_pending(one) for one in entry.effects] if effects is None else effects,
    }
    if entry.within:
        plain["within"] = entry.within
    if entry.appends:
        plain["appends"] = [encode(one) for one in entry.appends]
    if entry.status != "live":
        plain["status"] = entry.status
    if entry.reason:
        plain["reason"] = entry.reason
    if entry.ignored:
        plain["ignored"] = entry.ignored
    return plain
