"""Performs what a run wants, until it ends or waits for a person.

The worker holds no truth: it reads what is in flight from the head, performs it, and tells the run how it ended.
One effect is awaited in place; from the second on each has a task. When a step drops an effect, its task is
cancelled. A denied effect ends after those that are being performed: what was paid for is not lost. When a performer
raises, the run is told, and decides whether there is another attempt with the same key.

What may be done at most once, or is to be checked first, is marked in the journal before it begins. Who finds such a
mark that is not their own has the second checked, and does not perform the first: its outcome is unknown. Children are
begun by their parent's driver and driven beside it, as runs of their own.

Only who holds the lease of a run performs its effects. A pulse, one for all runs of a hall, renews the leases and
notices what others told the runs meanwhile; an effect that nobody wants any more is then cancelled, and so is one that
takes too long, again and again if it does not heed that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf

from moothall.errors import Broken, DefinitionError, EffectFailed, MoothallError, Refused, whole_text, words_of
from moothall.kernel.codec import read_back
from moothall.kernel.effects import Alarm, AskPerson, Effect, ReadRecords, Send, StartChild, WriteRecords
from moothall.kernel.events import (
    Began,
    Denied,
    Doubted,
    Event,
    Exhausted,
    Expired,
    Faltered,
    GaveUp,
    Interrupted,
    Mark,
    RecordsRead,
)
from moothall.runtime.children import cancel_child, child_id, lost_child, open_child, start_child, tell_parent
from moothall.runtime.cleaner import misfit
from moothall.runtime.crew import Drive
from moothall.runtime.decide import ends_at, in_flight, is_rationed, limit_of, mark_cause, used_up
from moothall.runtime.hall import Hall, advance, advance_all, is_forsaken, let_go, messages, reopen, visiting
from moothall.runtime.journal import FAMILY, CancelChild, Head, Pending, RunId, TellParent, shaped
from moothall.runtime.ports import LEASE, Records, make_context

PULSE = 0.5
TURNS = 32
"""After so many turns a run lets others have the loop, also where it never had to wait."""
CHARACTERS = 4
"""How many characters of a text count as a token, where nobody has counted them."""
TOLD = frozenset(("tokens", "usd"))
"""What only a reply tells how much of it was used."""
CRASHES = 5
"""How many workers in a row a run may bring down before it is set aside."""
Work = Callable[[Hall, RunId, Drive, Pending], Awaitable[Event]]
RECORDS = frozenset((ReadRecords.kind, WriteRecords.kind))
MARKED = frozenset(("check-first", "at-most-once"))
"""What is marked in the journal before it begins."""


async def drive(hall: Hall, run: RunId) -> Head:
    """Perform what is wanted until the run ends, or only people can move it on."""
    head = hall.heads[run]
    if not head.pending or (head.rests() and not _has_family(head) and not _overdue(hall, head)):
        return head
    crew, record = hall.crew, hall.runs[run].record
    doing = Drive(hall.clock.now, partial(messages, hall, run), hall.cast(run).performers, hall.ear)
    doing.ends, doing.rationed = ends_at(record), is_rationed(record)
    doing.metered = not TOLD.isdisjoint(record.limits)
    if run in crew.drives:
        raise Refused(f"run {run} is being driven here already; it goes on there")
    crew.drives[run], doing.task = doing, asyncio.current_task()
    hall.store.crowd += 1
    if crew.pulse is None:
        crew.pulse = asyncio.create_task(_pulse(hall))
    try:
        await _hold(hall, run)
        return await _perform_all(hall, run, doing)
    finally:
        try:
            await doing.wait_for_leaving()
            await let_go(hall, run)
        finally:
            del crew.drives[run]
            hall.store.crowd -= 1
            if not crew.drives and crew.pulse is not None:
                crew.pulse.cancel()
                crew.pulse = None


async def _hold(hall: Hall, run: RunId) -> None:
    """Hold the lease of a run, or be refused."""
    lease = hall.leases.get(run)
    if lease is not None and lease.owner == hall.owner:
        return
    stored = (await hall.store.load(run)).lease
    if not await is_forsaken(hall, run, stored, PULSE):
        raise Refused(f"run {run} is being driven by {stored.owner}; it goes on there")
    taken = await hall.store.claim(run, stored, hall.owner, hall.clock.now() + LEASE)
    if taken is None:
        raise Refused(f"run {run} is being driven by another worker; it goes on there")
    if taken.crashes >= CRASHES:
        reason = f"it brought its worker down {taken.crashes} times in a row"
        await hall.store.set_aside(run, reason)
        raise Broken(f"run {run} is set aside: {reason}")
    await reopen(hall, run, hall.runs[run].machine)


async def _perform_all(hall: Hall, run: RunId, doing: Drive) -> Head:
    """Perform what is in flight, turn by turn, until nothing is left that can be performed here and now.

    Every turn looks at the head anew. Most have one plain effect; the rest of the turn is for all others.
    """
    flying, beside = doing.flying, hall.cast(run).beside
    turn = 0
    while True:
        turn += 1
        if turn % TURNS == 0:
            await asyncio.sleep(0)
        head = hall.heads[run]
        if len(head.pending) == 1 and not flying and not beside and _is_plain(hall, run, doing, head.pending[0]):
            work = perform if head.pending[0].effect.kind in RECORDS else _attempt
            await _in_place(hall, run, doing, head.pending[0], work)
            continue
        if not head.pending and not flying and run in hall.leases:
            return head
        ready = [one for one in head.pending if one.key not in flying and not _waits(hall, doing, head, one)]
        lease = hall.leases.get(run)
        if lease is None or (ready and lease.owner != hall.owner):
            await _hold(hall, run)
            doing.begun.clear()
            continue
        if flying:
            for key in flying.keys() - {one.key for one in head.pending}:
                attempt = doing.attempts[key]
                doing.dismiss(key)
                await _keep_said(hall, run, doing, attempt)
        unprepared = [one for one in head.pending if _needs_preparing(doing, one)]
        if unprepared and await _prepare_any(hall, run, doing, unprepared):
            continue
        is_alone = not flying and not beside and len(ready) == 1 and len(head.pending) == 1
        if is_alone and ready[0].effect.kind not in FAMILY:
            await _in_place(hall, run, doing, ready[0], perform)
            continue
        if ready:
            _begin_beside(hall, run, doing, ready)
        if not flying:
            return head
        await _wait_for_first(hall, run, doing)


def _begin_beside(hall: Hall, run: RunId, doing: Drive, ready: list[Pending]) -> None:
    """Begin effects beside others, each in a task of its own."""
    for one in ready:
        work = _drive_child if one.effect.kind in FAMILY and not one.denied else perform
        doing.flying[one.key] = task = asyncio.create_task(work(hall, run, doing, one))
        doing.attempts[one.key] = one
        task.add_done_callback(doing.hear)


def _is_plain(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> bool:
    """Whether an effect can be performed at once by whoever holds the run: nothing has to be known or waited for."""
    lease = hall.leases.get(run)
    if lease is None or lease.owner != hall.owner or pending.denied or pending.doubt or pending.due is not None:
        return False
    kind = pending.effect.kind
    return (kind in doing.performers and pending.effect.repeats not in MARKED) or kind in RECORDS


def _needs_preparing(doing: Drive, pending: Pending) -> bool:
    """Whether the journal may have to know something before this effect begins.

    A child that is called off is driven here perhaps, and is told all the same.
    """
    effect = pending.effect
    if pending.denied or pending.doubt:
        return False
    if effect.kind in FAMILY:
        return not pending.began
    return effect.repeats in MARKED and pending.key not in doing.flying


async def _prepare_any(hall: Hall, run: RunId, doing: Drive, unprepared: list[Pending]) -> bool:
    """Commit what has to be known before an effect begins, for the first that needs it; whether there was one."""
    for one in unprepared:
        event = await _preparation(hall, run, doing, one)
        if event is not None:
            what = "called-off" if one.effect.kind == CancelChild.kind else event.name.rpartition(".")[2]
            cause = mark_cause(hall.runs[run], one, what) if isinstance(event, Mark) else one.key
            told = await advance(hall, run, event, cause)
            if isinstance(event, Began) and told.received == "taken":
                doing.begun.add(one.key)
            return True
    return False


async def _preparation(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> Event | None:
    """What the journal has to know before this effect begins: a mark, or the event in which it ends at once."""
    effect = pending.effect
    if not pending.began:
        if isinstance(effect, StartChild):
            return await start_child(hall, run, pending) or Began()
        if isinstance(effect, CancelChild):
            doing.resting.discard(pending.key)
            return await cancel_child(hall, run, pending) or Began()
        return Began()
    if effect.repeats == "at-most-once" and pending.key not in doing.begun:
        return Doubted(f"{_who(effect)} had begun when its worker was lost; whether it was done is unknown")
    return None


async def _drive_child(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> Event | None:
    """Drive a child beside its parent, which hears of its end by itself."""
    with visiting(hall, child_id(run, pending.key)):
        try:
            child = await open_child(hall, run, pending)
        except Refused:
            return lost_child(pending)
        doing.children.add(pending.key)
        with contextlib.suppress(Refused):  # it is driven elsewhere
            await drive(hall, child)
    return None


async def _in_place(hall: Hall, run: RunId, doing: Drive, pending: Pending, work: Work) -> None:
    """Perform the only effect of a run without a task of its own, and tell the run."""
    doing.key = pending.key
    try:
        event = await work(hall, run, doing, pending)
        if doing.interrupts:  # it ended all the same
            doing.heed()
            doing.late.pop(pending.key, None)
    except asyncio.CancelledError:
        if not doing.heed():
            raise
        stopped = _stopped(hall, run, doing, pending)
        if stopped is None:
            doing.key = ""
            await _keep_said(hall, run, doing, pending)
            return
        event = stopped
    finally:
        doing.key = ""
    await advance_all(hall, run, (_end(hall, run, pending, event),))


async def _keep_said(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> None:
    """Note what was said until an effect was cut off that nobody wants any more."""
    text = whole_text("".join(doing.said.pop(f"{run}.{pending.key}", ())))
    if text and in_flight(hall.heads[run], pending.key) is None:
        said = Interrupted(_who(pending.effect), text, {"tokens": float(-(-len(text) // CHARACTERS))})
        await advance(hall, run, said, mark_cause(hall.runs[run], pending, "interrupted"))


def _stopped(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> Event | None:
    """The event in which an effect ends that took too long; None where it is not wanted any more."""
    effect, why = pending.effect, doing.late.pop(pending.key, "")
    if not why:
        return None
    if why == "timeout":
        reason = f"{_who(effect)}: nothing was heard of it for {effect.timeout:g} s"
        return Doubted(reason) if effect.repeats == "at-most-once" else Faltered(reason)
    if effect.repeats == "at-most-once":
        return Doubted(f"{_who(effect)} was stopped when the time of the run was over; whether it was done is unknown")
    return Exhausted("seconds", limit_of(hall.runs[run], "seconds"), pending.owner or "")


async def _pulse(hall: Hall) -> None:
    """Renew the leases of the runs that are driven here, stop what takes too long, and notice what others told them."""
    renewed, seen = 0.0, hall.clock.now()
    while True:
        await asyncio.sleep(PULSE)
        last, seen = seen, hall.clock.now()
        renewed += abs(seen - last)
        due = renewed > LEASE / 3
        renewed = 0.0 if due else renewed
        for run, doing in list(hall.crew.drives.items()):
            if hall.crew.drives.get(run) is not doing:
                continue
            _stop_late(hall, run, doing)
            try:
                await _look_after(hall, run, doing, renew=due)
            except MoothallError:  # the store may be out of reach for a while; the next commit will tell
                continue


def _stop_late(hall: Hall, run: RunId, doing: Drive) -> None:
    """Stop the effects of a run whose time is up."""
    now = hall.clock.now()
    is_over = doing.ends is not None and now >= doing.ends
    for pending in hall.heads[run].pending:
        heard, timeout = doing.heard.get(f"{run}.{pending.key}"), pending.effect.timeout
        if heard is not None and is_over:
            doing.stop(pending.key, "seconds")
        elif heard is not None and timeout is not None and now - heard > timeout:
            doing.stop(pending.key, "timeout")


async def _look_after(hall: Hall, run: RunId, doing: Drive, *, renew: bool) -> None:
    lease = hall.leases.get(run)
    if renew and lease is not None and not await hall.store.renew(run, lease, hall.clock.now() + LEASE):
        hall.leases.pop(run, None)
        doing.interrupt()
        return
    latest = await hall.store.seq(run)
    if hall.crew.drives.get(run) is not doing or latest == hall.heads[run].seq:
        return
    doing.notice(await reopen(hall, run, hall.runs[run].machine))


async def _wait_for_first(hall: Hall, run: RunId, doing: Drive) -> None:
    """Wait until an effect has ended or there is news, and tell the run."""
    deadlines = [one.due for one in hall.heads[run].pending if one.due and one.effect.kind == AskPerson.kind]
    alarm = asyncio.create_task(_ring(hall, doing, min(deadlines))) if deadlines else None
    try:
        await doing.news.wait()
    finally:
        if alarm is not None:
            alarm.cancel()
    doing.news.clear()
    landed = [key for key, task in doing.flying.items() if task.done()]
    ends = [end for key in landed if (end := _landed(hall, run, doing, key)) is not None]
    if ends:
        await advance_all(hall, run, ends)


async def _ring(hall: Hall, doing: Drive, moment: float) -> None:
    """Have the run looked at when the deadline of a question has come."""
    await hall.clock.wait_until(moment)
    doing.news.set()


def _landed(hall: Hall, run: RunId, doing: Drive, key: str) -> tuple[Event, str] | None:
    """How an effect beside others ended, and its cause; also if it is not wanted any more, for what it cost."""
    task, attempt = doing.flying.pop(key), doing.attempts.pop(key)
    if not task.cancelled() and (event := task.result()) is not None:
        return _end(hall, run, attempt, event)
    pending = in_flight(hall.heads[run], key)
    if pending is not None and task.cancelled() and (event := _stopped(hall, run, doing, attempt)) is not None:
        return _end(hall, run, attempt, event)
    if pending is not None and pending.effect.kind in FAMILY:
        doing.resting.add(key)
    return None


def _has_family(head: Head) -> bool:
    return any(one.effect.kind in FAMILY for one in head.pending)


def _overdue(hall: Hall, head: Head) -> bool:
    now = hall.clock.now()
    return any(one.due is not None and one.due <= now for one in head.pending)


def _end(hall: Hall, run: RunId, pending: Pending, event: Event) -> tuple[Event, str]:
    """What a run is told about how an attempt at one of its effects ended, and the cause."""
    if isinstance(event, Mark):
        if isinstance(event, Denied):
            return event, f"{pending.key}-denied-{hall.heads[run].seq}"
        return event, mark_cause(hall.runs[run], pending)
    try:
        return shaped(hall.runs[run].machine, event), pending.key
    except Refused:
        why = misfit(partial(shaped, hall.runs[run].machine), event, hall.clean)
        if pending.effect.repeats in MARKED:
            doubt = f"{_who(pending.effect)} returned, but not what it says it returns: {why}"
            return Doubted(doubt), mark_cause(hall.runs[run], pending)
        reason = f"{getattr(event, 'agent', 'the reply')}: the reply has the wrong shape: {why}"
        return GaveUp(reason, usage=getattr(event, "usage", {})), pending.key


def _waits(hall: Hall, doing: Drive, head: Head, pending: Pending) -> bool:
    """Whether this effect does not end yet: a question before its deadline, a denied one beside others at work."""
    if pending.denied:
        return any(not one.denied and _is_at_work(doing, one) for one in head.pending)
    if pending.effect.kind == AskPerson.kind and not pending.doubt:
        return pending.due is None or pending.due > hall.clock.now()
    return bool(pending.doubt) or pending.key in doing.resting


def _is_at_work(doing: Drive, pending: Pending) -> bool:
    return not pending.sleeps() or (pending.effect.kind in FAMILY and pending.key not in doing.resting)


async def perform(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> Event:
    """Perform one effect, once, when it is due, and return the event in which that ends."""
    effect = pending.effect
    if pending.denied:
        return Exhausted(pending.denied, limit_of(hall.runs[run], pending.denied), pending.owner or "")
    if pending.due is not None:
        await hall.clock.wait_until(pending.due)
    if effect.kind not in doing.performers:
        return await _perform_here(hall, effect)
    return await _attempt(hall, run, doing, pending)


async def _attempt(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> Event:
    """Have an effect performed now, and return the event in which that ends."""
    effect = pending.effect
    if doing.rationed and (lacking := used_up(hall.runs[run], hall.heads[run], effect)):
        return Denied(lacking)
    key, attempt, deadline, heard = f"{run}.{pending.key}", pending.attempt, doing.ends, 0.0
    if effect.timeout is not None:
        heard = doing.now()
        deadline = min(deadline or inf, heard + effect.timeout)
    doing.heard[key] = heard
    again = attempt > 1 or (pending.began and pending.key not in doing.begun)
    try:
        context = make_context(
            run, key, pending.nth, attempt, again, deadline, doing, hall.clean, hall.store, doing.metered
        )
        event = await doing.performers[effect.kind].perform(effect, context)
    except (DefinitionError, Broken) as error:
        return GaveUp(f"{_who(effect)}: {error}", "definition")
    except (Exception, asyncio.CancelledError, SystemExit) as error:  # performers stand at the edge of the world
        if _is_stopping():
            raise asyncio.CancelledError from error
        return _went_wrong(effect, error)
    else:
        if doing.said:
            doing.said.pop(key, None)
        return event
    finally:
        doing.heard.pop(key, None)


def _went_wrong(effect: Effect, error: BaseException) -> Event:
    """The event in which an attempt ends whose performer raised."""
    reason = whole_text(f"{_who(effect)}: {words_of(error)}{_where(error)}")
    if not isinstance(error, EffectFailed):
        return Faltered(reason)
    return GaveUp(reason, usage=error.usage) if error.final else Faltered(reason, error.retry_after, error.usage)


async def _perform_here(hall: Hall, effect: Effect) -> Event:
    """Perform what the runtime itself answers for: what is due, a child's last word, and records."""
    match effect:
        case AskPerson():
            return Expired()
        case Send() | Alarm():
            event: Event = read_back(type(effect.event), effect.event)
            return event
        case TellParent():
            return await tell_parent(hall, effect)
        case ReadRecords():
            return await _read_records(hall.store, effect)
        case WriteRecords():  # the commit of this event writes them, or finds that it cannot
            return effect.settled(None)
        case _:
            return GaveUp(f"nothing here performs {effect.kind}", "definition")


async def _read_records(store: Records, effect: ReadRecords) -> Event:
    """What is in the store of these records; what is damaged there concerns those alone who read it."""
    try:
        return RecordsRead(
            tuple(await store.records(effect.collection, key=effect.key, prefix=effect.prefix, most=effect.most))
        )
    except Broken as error:
        return GaveUp(str(error))


def _who(effect: Effect) -> str:
    """Whose effect it is, as a person would name it."""
    return getattr(effect, "agent", "") or getattr(effect, "tool", "") or effect.kind


def _where(error: BaseException) -> str:
    """The place that raised an error, as file and line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace is not None else ""


def _is_stopping() -> bool:
    """Whether it is us who are cancelled, and not something that a performer waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
