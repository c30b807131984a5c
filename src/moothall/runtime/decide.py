"""What an event does to a run, decided without touching anything.

`decide` asks the kernel for the step and adds what the runtime answers for: the effects in flight, their keys,
their due times, and the budget. The rules:

- An event that ends an effect settles it; if the effect is no longer wanted, the event is kept and ignored.
- Leaving a state drops the effects that it wanted. What they may have cost is charged all the same: they were begun.
- What the budget does not cover is denied (`budget` says when): the effect is not performed and ends in `Exhausted`
  instead.
- A machine that answers `Exhausted` with nothing but more of what is exhausted has come to its end.
- A mark changes an effect in flight and moves nothing. An attempt that went wrong is charged, and followed by another
  or by `GaveUp`. What was filled in of a form that is left for later stands in its question. A note concerns the run
  and not its machine: a definition adopted it, or it was forked here.
- Who retries a run takes back how it ended. What was spent stays spent, and what was answered is decided again.
- What the origin of a fork has done since they parted is in doubt where the fork wants the same.
- A child whose state is left is asked to stop; its parent hears no more of it than that.
- Records are written by the decision on the event that says that they were, together with its entry.
- A script has to be evaluated first: then an `Ask` is returned. Its answer belongs to the event, and to its entry.
- When the run is over, nothing is in flight but what its last step wanted on the way out, and nothing that only the
  run itself could hear: no timer, no question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.errors import Broken, DefinitionError, place_of, words_of
from moothall.kernel.chart import Flight
from moothall.kernel.codec import encode, read_back
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild, WriteRecords
from moothall.kernel.events import (
    Adopted,
    Answered,
    AttemptFailed,
    Began,
    Denied,
    Doubted,
    Drafted,
    Event,
    Exhausted,
    Expired,
    Forked,
    GaveUp,
    Mark,
    Note,
    RecordsWritten,
    Repeated,
    Retried,
    SharedRecord,
)
from moothall.kernel.frozen import Frozen, maker, slotted
from moothall.kernel.interpreter import HOUSE, start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Answer, Ask, Instant, Snapshot, Step, Wanted
from moothall.runtime.backoff import NoMore, retry
from moothall.runtime.budget import (
    NOTHING,
    UNSHARED,
    charge,
    cost_of,
    denial,
    halt,
    reservation,
    share_of,
    shortage,
    shrink,
    watch,
)
from moothall.runtime.journal import (
    WAITING,
    CancelChild,
    Entry,
    Head,
    Pending,
    Run,
    Same,
    TellParent,
    encode_pending,
    fingerprint,
    make_entry,
    make_head,
    make_pending,
)


@slotted
class Incoming(Frozen):
    """An event with the cause that makes it unique in its run, the time, and what scripts answered to it so far."""

    event: Event
    cause: str
    at: float
    answers: tuple[Answer, ...] = ()


@slotted
class Decision(Frozen):
    """The entry to keep, the head after it, and the records to write with it."""

    head: Head
    entry: Entry
    records: tuple[SharedRecord, ...] = ()


Remains = tuple[tuple[Pending, ...], Mapping[str, float], Same, str | None]
"""What is left of a head when an effect has ended: those still in flight, what was spent, what is watched, and the
state that had wanted the effect."""


make_incoming = maker(Incoming)
make_decision = maker(Decision)


def first(run: Run, data: object, answers: tuple[Answer, ...] = ()) -> Decision | Ask:
    """The decision that begins a run, or the script that has to be evaluated first."""
    kind = run.machine.data
    data = read_back(Any if kind is None else kind, data)
    instant = Instant(run.record.began, f"{run.record.run}.0") if run.machine.chart.asks_moment else None
    step = start(run.machine, data, answers, instant=instant)
    if isinstance(step, Ask):
        return step
    incoming = Incoming(step.event, "start", run.record.began)
    return _concluded(run, Head(-1, Snapshot((), data), steps=-1), incoming, step, ((), NOTHING, {}, None))


def decide(run: Run, head: Head, incoming: Incoming) -> Decision | Ask:
    """The decision on one event, or the script that has to be evaluated first."""
    event, others = incoming.event, head.pending
    if isinstance(event, Note):
        return _marked(run, head, incoming) if isinstance(event, Mark) else note(run, head, incoming)
    settled = in_flight(head, incoming.cause)
    usage: Mapping[str, float] = getattr(event, "usage", NOTHING)
    within, spent, bill = None, head.spent, NOTHING
    if settled is not None:
        if settled.effect.kind == CancelChild.kind:
            return _stopped(run, replace(_without(head, settled), spent=charge(spent, usage)), incoming)
        if isinstance(event, _ENDS) and not event.id and (id := getattr(settled.effect, "id", "")):
            event = replace(event, id=id)
            incoming = replace(incoming, event=event)
        within, bill = settled.owner, reservation(run, settled)
        others = _all_but(settled, others) if len(others) > 1 else ()
    elif is_effect_key(incoming.cause):
        return _ignored(head, incoming, charge(spent, usage))
    chart = run.machine.chart
    flight = _flight(settled, others) if chart.joins else None
    instant = Instant(incoming.at, f"{run.record.run}.{head.seq + 1}") if chart.asks_moment else None
    step = transition(
        run.machine, head.snapshot, event, incoming.answers, within=within, flight=flight, instant=instant
    )
    if isinstance(step, Ask):
        return step
    if others:
        others, spent = _settled_with(run, step, others, spent)
    if bill or usage:
        spent = charge(spent, {**bill, **usage})
    same = watch(head.same, step, settled) if run.record.endless else head.same
    decision = _concluded(run, head, incoming, step, (others, spent, same, within))
    if settled is not None and settled.effect.kind == WriteRecords.kind and not settled.doubt:
        return _with_records(decision, settled.effect)
    return decision


def _with_records(decision: Decision, effect: Effect) -> Decision:
    """A decision that writes the records that were to be written, where that is what has happened."""
    assert isinstance(effect, WriteRecords)
    is_written = isinstance(decision.entry.event, RecordsWritten)
    return make_decision(decision.head, decision.entry, effect.records) if is_written else decision


def _flight(settled: Pending | None, others: tuple[Pending, ...]) -> Flight:
    """What a machine with rows on `All` has to know."""
    still = tuple(Wanted(pending.effect, pending.owner) for pending in others)
    return Flight(others=still) if settled is None else Flight(settled.effect, settled.owner, still)


def _settled_with(
    run: Run, step: Step, others: tuple[Pending, ...], spent: Mapping[str, float]
) -> tuple[tuple[Pending, ...], Mapping[str, float]]:
    """What a step leaves of the other effects in flight, and what was spent with those that it drops."""
    kept = _still_wanted(step, others)
    if len(kept) == len(others):
        return kept, spent
    dropped = [pending for pending in others if pending not in kept]
    kept += tuple(_called_off(run, pending) for pending in dropped if _is_child(pending))
    return kept, charge(spent, *(reservation(run, pending) for pending in dropped if not _is_child(pending)))


def _stopped(run: Run, head: Head, incoming: Incoming) -> Decision:
    """The decision on the end of a child that was called off: what it has not spent is there for what waits for it.

    A run that is over itself has its last word after that of its children.
    """
    granted = _granted_anew(run, head, incoming.at)
    decision = _ignored(replace(head, pending=granted), incoming, head.spent)
    if not run.record.parent or head.snapshot.status == "live" or any(map(_is_called_off, granted)):
        return decision
    new = (_last_word(run, head.snapshot, replace(head, pending=granted), ()),)
    entry, after = replace(decision.entry, effects=new), replace(decision.head, pending=granted + new)
    return Decision(after, entry)


def _granted_anew(run: Run, head: Head, at: float) -> tuple[Pending, ...]:
    """The effects in flight, with the budget's word today on those that were denied."""
    granted: tuple[Pending, ...] = ()
    for number, pending in enumerate(head.pending):
        before = replace(head, pending=granted + head.pending[number + 1 :], steps=head.steps - 1)
        if pending.denied:
            pending = unless_performed(run, replace(pending, denied=denial(run, pending, before, at)))
        granted += (pending,)
    return granted


def note(run: Run, head: Head, incoming: Incoming) -> Decision:
    """The decision on something that concerns the run and not its machine."""
    match incoming.event:
        case Adopted(digest=digest):
            after = replace(head, seq=head.seq + 1, definition=digest)
        case Forked():
            after = _parted(run, replace(head, seq=head.seq + 1, definition="", limits=None), incoming.at)
        case _:
            raise Broken(f"nobody knows the note {incoming.event.name}")
    active = head.snapshot.active
    return Decision(after, Entry(after.seq, incoming.at, incoming.cause, incoming.event, active, active))


def in_force(run: Run, head: Head) -> Run:
    """A run with the limits that it has at this head."""
    if head.limits is None or head.limits == run.record.limits:
        return run
    return Run(replace(run.record, limits=head.limits), run.machine, run.origin)


def go_back(run: Run, before: Head, incoming: Incoming, seq: int) -> Decision:
    """The decision that takes back how a run ended, with this entry: it stands again where it stood before.

    A head before the note itself says that nothing is taken back. The budget has its word anew on what was denied.
    """
    retried = incoming.event
    assert isinstance(retried, Retried)
    pending = before.pending
    if retried.entry < seq:
        pending = tuple(
            _revived(effect, retried, incoming.at, f"{seq}.{number}") for number, effect in enumerate(pending)
        )
    limits = before.limits if retried.limits is None else retried.limits
    after = replace(
        before, seq=seq, pending=pending, spent=retried.spent, same={}, definition=retried.digest, limits=limits
    )
    after = replace(after, pending=_granted_anew(in_force(run, after), after, incoming.at))
    active = before.snapshot.active
    return Decision(after, Entry(seq, incoming.at, incoming.cause, retried, active, active))


def _revived(pending: Pending, retried: Retried, at: float, key: str) -> Pending:
    """An effect that was in flight when a run ended, in flight again.

    A child that was called off then is begun anew, under another key.
    """
    effect = pending.effect
    if pending.key == retried.key:
        if not retried.again or isinstance(effect, StartChild):
            return pending
        doubt = f"it had begun, and ended in: {retried.reason}" if effect.repeats == "at-most-once" else ""
        return replace(pending, attempt=pending.attempt + 1, began=False, doubt=doubt, due=None)
    if isinstance(effect, StartChild) and pending.began:
        return replace(pending, key=key, began=False)
    return replace(pending, due=_due(effect, at))


def without_bill(run: Run, head: Head, event: Event, cause: str) -> Event:
    """An event that was paid for before: what it brings, at no charge."""
    if not hasattr(event, "usage"):
        return event
    settled = in_flight(head, cause)
    bill = NOTHING if settled is None else reservation(run, settled)
    return type(event)(**{**event.__dict__, "usage": dict.fromkeys(bill, 0.0)})


def mark_cause(run: Run, pending: Pending, what: str = "") -> str:
    """The cause of a note about an attempt at an effect; a fork counts anew, and has its origin's notes besides."""
    said = f"{what}-" if what else ""
    own = f"-after-{run.record.shared}" if run.record.origin else ""
    return f"{pending.key}-{said}{pending.attempt}{own}"


def _parted(run: Run, head: Head, at: float) -> Head:
    """The head of a run that leaves its origin here: what that has done since is in doubt, its children stay with it.

    It has a budget of its own, of which nothing is spent yet, and which has its word on everything anew. Timers and
    deadlines begin anew as well: those of the origin may be long over.
    """
    own = [pending for pending in head.pending if pending.effect.kind not in _THE_ORIGINS]
    left = run.record.limits
    shared = charge(NOTHING, *(pending.share for pending in own if pending.share is not None))
    anew = tuple(
        replace(pending, attempt=1, began=False, denied="?", doubt="", due=_due(pending.effect, at), share=share)
        for pending in own
        for share in [shrink(pending.share, shared, left) if pending.share is not None else None]
    )
    head = replace(head, pending=anew, spent={}, steps=0)
    return replace(head, pending=_granted_anew(run, head, at))


def unless_performed(run: Run, pending: Pending) -> Pending:
    """An effect that is granted; in doubt where the origin of the run has done the same since."""
    performed = run.record.performed
    if not performed or pending.denied or fingerprint(encode_pending(pending)) not in performed:
        return pending
    doubt = f"run {run.record.origin} did the same after entry {run.record.shared}"
    return replace(pending, doubt=doubt)


def _is_called_off(pending: Pending) -> bool:
    return pending.effect.kind == CancelChild.kind


def _is_child(pending: Pending) -> bool:
    return isinstance(pending.effect, StartChild) and not pending.denied


def _called_off(run: Run, pending: Pending) -> Pending:
    """A child that is no longer wanted: it keeps its share until it has said what it spent."""
    assert isinstance(pending.effect, StartChild)
    effect = CancelChild(pending.effect.machine, f"{run.machine.name} left {pending.owner}")
    return Pending(pending.key, effect, share=pending.share if pending.began else None)


def _marked(run: Run, head: Head, incoming: Incoming) -> Decision | Ask:
    """The decision on something that concerns one effect in flight and not the machine."""
    pending = in_flight(head, incoming.cause.partition("-")[0])
    spent = head.spent
    match incoming.event:
        case _ if pending is None or pending.denied:
            return _ignored(head, incoming, charge(spent, getattr(incoming.event, "usage", NOTHING)))
        case Began():
            changed = replace(pending, began=True)
        case Denied(resource=resource):
            changed = replace(pending, denied=resource, due=None)
        case Doubted(reason=reason):
            changed = replace(pending, doubt=reason, due=None)
        case Drafted(value=value):
            assert isinstance(pending.effect, AskPerson)
            changed = replace(pending, effect=_with_earlier(pending.effect, value))
        case Repeated() if not pending.began:  # it was never tried: a fork did not want to do again what was done
            changed = replace(pending, doubt="")
        case Repeated():
            spent = charge(spent, reservation(run, pending))
            again_at = _next_attempt(run, replace(head, spent=spent), pending, incoming.at)
            changed = replace(again_at, doubt="", began=False)
        case AttemptFailed() as failed:
            again = retry(run.record.run, pending, failed)
            if isinstance(again, NoMore):
                gave_up = GaveUp(again.reason, failed.fault, failed.usage, model=failed.model)
                return decide(run, head, Incoming(gave_up, pending.key, incoming.at, incoming.answers))
            spent = charge(spent, {**reservation(run, pending), **failed.usage})
            after, due = replace(head, spent=spent), incoming.at + again.after
            changed = _next_attempt(run, after, pending, due)
            if not changed.denied:
                changed = replace(changed, due=due)
        case _:
            raise Broken(f"nobody knows the mark {incoming.event.name}")
    others = tuple(changed if other is pending else other for other in head.pending)
    active = head.snapshot.active
    after = replace(head, seq=head.seq + 1, pending=others, spent=spent)
    return Decision(after, Entry(after.seq, incoming.at, incoming.cause, incoming.event, active, active))


def _with_earlier(effect: AskPerson, value: Mapping[str, Any]) -> AskPerson:
    """A form of which some fields were filled in before: what is in these is kept, and may be changed."""
    fields = {
        name: {**inner, "earlier": value[name]} if name in value else inner
        for name, inner in effect.schema["properties"].items()
    }
    return replace(effect, schema={**effect.schema, "properties": fields})


def _next_attempt(run: Run, head: Head, pending: Pending, at: float) -> Pending:
    """An effect before its next attempt, which the budget may not cover.

    What children have reserved and not spent yet does not stand in its way: they get all that is left when they begin.
    """
    changed = replace(pending, attempt=pending.attempt + 1, due=None, denied="")
    others = tuple(other for other in head.pending if other is not pending and not _is_child(other))
    before = replace(head, pending=others, steps=head.steps - 1)
    denied = denial(run, changed, before, at) if run.record.limits else ""
    return replace(changed, denied=denied)


def _without(head: Head, pending: Pending) -> Head:
    return replace(head, pending=_all_but(pending, head.pending))


def _all_but(settled: Pending, pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    if pending[0] is settled:  # ends come mostly in the order in which they were wanted
        return pending[1:]
    return tuple([other for other in pending if other is not settled])


def in_flight(head: Head, cause: str) -> Pending | None:
    """The effect in flight that has this key."""
    for pending in head.pending:
        if pending.key == cause:
            return pending
    return None


def is_effect_key(cause: str) -> bool:
    """Whether a cause is the key of an effect, and not a command."""
    return _KEY.match(cause) is not None


def _still_wanted(step: Step, pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """The effects in flight that a step leaves in flight."""
    if _is_ending(step):
        return tuple(other for other in pending if other.effect.kind == CancelChild.kind)
    left = step.left
    forgotten = {wanted.effect.id for wanted in step.effects if isinstance(wanted.effect, CancelSend)}
    if not left and not forgotten:
        return pending
    return tuple(
        other
        for other in pending
        if other.owner not in left and not (isinstance(other.effect, Send) and other.effect.id in forgotten)
    )


def _is_ending(step: Step) -> bool:
    return step.snapshot.status != "live" and (step.before is None or step.before.status == "live")


def _concluded(run: Run, head: Head, incoming: Incoming, step: Step, remains: Remains) -> Decision:
    """The decision that a step makes: new effects with keys and due times, and the budget's word on each."""
    flying, spent, same, within = remains
    record, seq, issued = run.record, head.seq + 1, head.issued
    new: tuple[Pending, ...] = ()
    if step.effects:
        new, issued = _wanted(run, head, incoming, step, remains)
        if isinstance(incoming.event, Exhausted) and not flying and new and all(pending.denied for pending in new):
            step, new = _given_up(step, new[0].denied), ()
    if record.parent and _is_ending(step) and not any(map(_is_called_off, flying)):
        new = (*new, _last_word(run, step.snapshot, replace(head, pending=flying, spent=spent), new, incoming.event))
    snapshot = step.snapshot
    if run.machine.data is None and snapshot.data is not head.snapshot.data:
        data = read_back(Any, snapshot.data)
        if data is not snapshot.data:
            snapshot = replace(snapshot, data=data)
    entry = make_entry(
        seq,
        incoming.at,
        incoming.cause,
        incoming.event,
        head.snapshot.active,
        snapshot.active,
        step.taken,
        within,
        new,
        step.appends,
        snapshot.status,
        snapshot.reason,
        "",  # it is not ignored
        step.answers,
        step.raised if len(step.microsteps) > 1 else (),
    )
    after = make_head(seq, snapshot, flying + new, spent, issued, same, head.steps + 1, head.definition, head.limits)
    return make_decision(after, entry, ())


def _wanted(
    run: Run, head: Head, incoming: Incoming, step: Step, remains: Remains
) -> tuple[tuple[Pending, ...], Mapping[str, int]]:
    """The effects that a step wants, in flight from now on, and how often each subject was asked by then."""
    wanted: list[Pending] = []
    flying, spent, same, _ = remains
    record, entry, issued = run.record, head.seq + 1, dict(head.issued)
    halted = halt(record, head.steps, same, incoming.at)
    for new in step.effects:
        effect, due, denied, share = new.effect, None, "", None
        kind = effect.kind
        if kind in _UNUSUAL:
            if kind in (_NEVER_IN_FLIGHT if step.snapshot.status == "live" else _NOT_AFTER_THE_END):
                continue
            due = _due(effect, incoming.at)
            if isinstance(effect, StartChild):
                share = share_of(run, step, replace(head, pending=flying, spent=spent), wanted, effect)
        if kind not in WAITING:
            cost = cost_of(run.machine, effect) if share is None else share
            denied = halted or (shortage(run, cost, (*flying, *wanted), spent) if cost else "")
        subject = getattr(effect, "agent", kind)
        issued[subject] = nth = issued.get(subject, 0) + 1
        key = f"{entry}.{len(wanted)}"
        # the first attempt, which has not begun, and of which nothing is in doubt
        pending = make_pending(key, effect, new.owner, nth, due, denied, 1, False, "", share)
        wanted.append(unless_performed(run, pending) if record.performed else pending)
    return tuple(wanted), issued


def outcome(machine: Machine, output: Any, data: Any) -> Any:
    """What a run gives: what its final state says, else what the machine makes of its data, else these."""
    if output is not None or machine.result is None:
        return data if output is None else output
    try:
        return machine.result(data)
    except (Exception, SystemExit) as error:  # the author's code may raise anything
        place = place_of(error, HOUSE)
        where = f" (in {place})" if place else ""
        raise DefinitionError(f"machine {machine.name}, result: {words_of(error)}{where}") from error


def _last_word(run: Run, end: Snapshot, head: Head, wanted: Sequence[Pending], event: Event | None = None) -> Pending:
    """What a child that has come to its end, with this event, has to tell its parent."""
    spent: Mapping[str, float] = dict.fromkeys(run.record.limits.keys() - UNSHARED, 0.0)
    spent = charge(spent, head.spent, *(reservation(run, pending) for pending in (*head.pending, *wanted)))
    record = run.record
    status, reason, output = end.status, end.reason, None
    try:
        output = encode(outcome(run.machine, end.output, end.data))
    except DefinitionError as error:
        status, reason = "failed", str(error)
    fault = event.fault if isinstance(event, GaveUp) else TellParent.fault
    effect = TellParent(record.parent, record.parent_key, status, reason, output, spent, fault)
    return Pending(f"{head.seq + 1}.{len(wanted)}", effect)


def _given_up(step: Step, resource: str) -> Step:
    """A step that ends the run: what a machine wants because its budget is exhausted cannot be more of the same."""
    reason = f"no {resource} left, not even for what is to be done when it is exhausted"
    return replace(step, snapshot=replace(step.snapshot, status="limited", reason=reason))


_KEY = re.compile(r"\d+\.\d+(-|$)")
_ENDS = (GaveUp, Exhausted, Answered, Expired)
"""The ends of effects that the runtime tells, and not who performs them."""
_THE_ORIGINS = frozenset((CancelChild.kind, TellParent.kind))
"""What a fork leaves to the run that it was forked from."""
_NEVER_IN_FLIGHT = frozenset((CancelSend.kind,))
_NOT_AFTER_THE_END = _NEVER_IN_FLIGHT | WAITING
_UNUSUAL = _NOT_AFTER_THE_END | {StartChild.kind}
"""What is not always wanted, or has a due time or a share; most effects are not among these, and that is soon seen."""


def _due(effect: Effect, at: float) -> float | None:
    if isinstance(effect, Send | Alarm):
        return at + effect.delay
    if isinstance(effect, AskPerson) and effect.within is not None:
        return at + effect.within
    return None


def _ignored(head: Head, incoming: Incoming, spent: Mapping[str, float]) -> Decision:
    active = head.snapshot.active
    after = replace(head, seq=head.seq + 1, spent=spent)
    status = head.snapshot.status
    why = "the state that wanted it was left" if status == "live" else f"the run was already {status}"
    reason = f"its effect is no longer wanted: {why}"
    entry = Entry(after.seq, incoming.at, incoming.cause, incoming.event, active, active, ignored=reason)
    return Decision(after, entry)
