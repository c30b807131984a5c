"""What an event does to a run, decided without touching anything.

`decide` asks the kernel for the step and adds what the runtime answers for: the effects in flight, their keys,
their due times, and the budget. The rules:

- An event that ends an effect settles it; if the effect is no longer wanted, the event is kept and ignored.
- Leaving a state drops the effects that it wanted. What they may have cost is charged all the same: they were begun.
- A reservation is part of the step that wants the effect. What the budget does not cover is denied: the effect is
  not performed and ends in `Exhausted` instead. What an event does not report is charged as reserved.
- A machine that answers `Exhausted` with nothing but more of what is exhausted has come to its end.
- When the run is over, nothing is in flight but what its last step wanted on the way out, and nothing that only the
  run itself could hear: no timer, no question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from moothall.errors import Broken
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send
from moothall.kernel.events import Event, Exhausted
from moothall.kernel.frozen import Frozen
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Ask, Step
from moothall.runtime.journal import WAITING, Entry, Head, Pending, Record


class Run(Frozen):
    """One durable life of a machine: how it began, and its definition."""

    record: Record
    machine: Machine


class Happening(Frozen):
    """An event with the cause that makes it unique in its run, and the time."""

    event: Event
    cause: str
    at: float


class Decision(Frozen):
    """The entry to keep and the head after it."""

    head: Head
    entry: Entry


def first(run: Run, data: object) -> Decision:
    """The decision that begins a run."""
    step = _decided(start(run.machine, data))
    happening = Happening(step.event, "start", run.record.began)
    return _committed(run, step, Head(-1, step.snapshot), happening, None)


def decide(run: Run, head: Head, happening: Happening) -> Decision:
    """The decision on one event."""
    settled = in_flight(head, happening.cause)
    usage: Mapping[str, float] = getattr(happening.event, "usage", _NOTHING)
    if settled is None and is_effect_key(happening.cause):
        return _ignored(head, happening, _charged(head.spent, usage))
    within = settled.owner if settled is not None else None
    step = _decided(transition(run.machine, head.snapshot, happening.event, within=within))
    kept: tuple[Pending, ...] = ()
    spent = head.spent
    bill = _reserved(run, settled)
    if settled is None or len(head.pending) > 1:
        others = tuple(one for one in head.pending if one is not settled)
        kept = _still_wanted(step, others)
        dropped = [_reserved(run, one) for one in others if one not in kept] if len(kept) < len(others) else ()
        spent = _charged(spent, *dropped)
    spent = _charged(spent, {**bill, **usage} if usage else bill)
    return _committed(run, step, Head(head.seq, step.snapshot, kept, spent, head.issued), happening, within)


def in_flight(head: Head, cause: str) -> Pending | None:
    """The effect in flight that has this key."""
    for one in head.pending:
        if one.key == cause:
            return one
    return None


def is_effect_key(cause: str) -> bool:
    """Whether a cause is the key of an effect, and not a command."""
    return cause[:1].isdigit()


def _decided(step: Step | Ask) -> Step:
    if isinstance(step, Ask):
        raise Broken("this machine needs a script engine, and none is connected")
    return step


def _still_wanted(step: Step, pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """The effects in flight that a step leaves in flight."""
    if _is_ending(step):
        return ()
    left = step.left
    forgotten = {wanted.effect.id for wanted in step.effects if isinstance(wanted.effect, CancelSend)}
    return tuple(
        one
        for one in pending
        if one.owner not in left and not (isinstance(one.effect, Send) and one.effect.id in forgotten)
    )


def _is_ending(step: Step) -> bool:
    return step.snapshot.status != "live" and (step.before is None or step.before.status == "live")


def _reserved(run: Run, pending: Pending | None) -> Mapping[str, float]:
    return _NOTHING if pending is None or pending.denied else _cost(run.machine, pending.effect)


def _charged(spent: Mapping[str, float], *bills: Mapping[str, float]) -> Mapping[str, float]:
    if not any(bills):
        return spent
    total = dict(spent)
    for bill in bills:
        for resource, amount in bill.items():
            total[resource] = round(total.get(resource, 0) + amount, 9)
    return total


def _committed(run: Run, step: Step, head: Head, happening: Happening, within: str | None) -> Decision:
    """The decision that a step makes: new effects with keys and due times, and the budget's word on each."""
    wanted: list[Pending] = []
    unperformed = _NEVER if step.snapshot.status == "live" else _NOT_AFTER_THE_END
    issued = dict(head.issued)
    for one in step.effects:
        effect = one.effect
        if effect.kind not in unperformed:
            subject = getattr(effect, "agent", effect.kind)
            issued[subject] = nth = issued.get(subject, 0) + 1
            denied = _denied(run, effect, head, wanted, happening.at) if run.record.limits else ""
            key = f"{head.seq + 1}.{len(wanted)}"
            wanted.append(Pending(key, effect, one.owner, nth, _due(effect, happening.at), denied))
    if isinstance(happening.event, Exhausted) and not head.pending and wanted and all(one.denied for one in wanted):
        step, wanted = _given_up(step, wanted[0].denied), []
    after = Head(head.seq + 1, step.snapshot, (*head.pending, *wanted), head.spent, issued)
    return Decision(after, _entry(step, after.seq, happening, within, tuple(wanted)))


def _given_up(step: Step, resource: str) -> Step:
    """A step that ends the run: what a machine wants because its budget is exhausted cannot be more of the same."""
    reason = f"no {resource} left, not even for what is to be done when it is exhausted"
    return replace(step, snapshot=replace(step.snapshot, status="limited", reason=reason))


_NOTHING: Mapping[str, float] = {}
_NEVER = frozenset((CancelSend.kind,))
_NOT_AFTER_THE_END = _NEVER | WAITING


def _due(effect: Effect, at: float) -> float | None:
    if isinstance(effect, Send | Alarm):
        return at + effect.delay
    if isinstance(effect, AskPerson) and effect.within is not None:
        return at + effect.within
    return None


def _denied(run: Run, effect: Effect, head: Head, wanted: Sequence[Pending], at: float) -> str:
    """The resource that the budget lacks for this effect; "" where it is covered."""
    if effect.kind in WAITING:
        return ""
    cost = _cost(run.machine, effect)
    spent = {**head.spent, "seconds": at - run.record.began}
    others = [_cost(run.machine, one.effect) for one in (*head.pending, *wanted) if not one.denied]
    limits = run.record.limits
    for resource, limit in limits.items() if cost else [("seconds", limits.get("seconds", spent["seconds"] + 1))]:
        used = spent.get(resource, 0)
        reserved = sum(other.get(resource, 0) for other in others)
        if used >= limit or used + reserved + cost.get(resource, 0) > limit:
            return resource
    return ""


def _cost(machine: Machine, effect: Effect) -> Mapping[str, float]:
    declared = machine.costs.get(effect.kind)
    return {**effect.costs, **declared} if declared else effect.costs


def _ignored(head: Head, happening: Happening, spent: Mapping[str, float]) -> Decision:
    active = head.snapshot.active
    after = Head(head.seq + 1, head.snapshot, head.pending, spent, head.issued)
    reason = "its effect is no longer wanted: the state that wanted it was left"
    entry = Entry(after.seq, happening.at, happening.cause, happening.event, active, active, ignored=reason)
    return Decision(after, entry)


def _entry(step: Step, seq: int, happening: Happening, within: str | None, wanted: tuple[Pending, ...]) -> Entry:
    before = step.before.active if step.before is not None else ()
    snapshot = step.snapshot
    return Entry(
        seq,
        happening.at,
        happening.cause,
        happening.event,
        before,
        snapshot.active,
        step.taken,
        within,
        wanted,
        step.appends,
        snapshot.status,
        snapshot.reason,
    )
