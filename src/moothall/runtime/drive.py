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

from moothall.errors import (
    Broken,
    DefinitionError,
    EffectFailed,
    Elsewhere,
    MoothallError,
    Refused,
    whole_text,
    words_of,
)
from moothall.kernel.codec import read_back
from moothall.kernel.effects import Alarm, AskPerson, Effect, ReadRecords, Send, StartChild, WriteRecords
from moothall.kernel.events import (
    AttemptFailed,
    Began,
    Denied,
    Doubted,
    Event,
    Exhausted,
    Expired,
    GaveUp,
    Interrupted,
    Mark,
    RecordsRead,
)
from moothall.runtime.budget import ends_at, is_rationed, limit_of, used_up
from moothall.runtime.children import cancel_child, child_id, lost_child, open_child, start_child, tell_parent
from moothall.runtime.cleaner import misfit
from moothall.runtime.crew import Tasks
from moothall.runtime.decide import in_flight, mark_cause
from moothall.runtime.hall import (
    Hall,
    advance,
    is_forsaken,
    let_go,
    let_go_unless_driven,
    messages,
    reopen,
    visiting,
)
from moothall.runtime.journal import FAMILY, CancelChild, Head, Pending, RunId, TellParent, shaped
from moothall.runtime.ports import LEASE, Lease, Records, make_context

TURNS = 32
"""After so many turns a run lets others have the loop, also where it never had to wait."""
CHARACTERS = 4
"""How many characters of a text count as a token, where nobody has counted them."""
TOLD = frozenset(("tokens", "usd"))
"""What only a reply tells how much of it was used."""
CRASHES = 5
"""How many workers in a row a run may bring down before it is set aside."""
Performance = Callable[[Pending], Awaitable[Event]]
RECORDS = frozenset((ReadRecords.kind, WriteRecords.kind))
MARKED = frozenset(("check-first", "at-most-once"))
"""What is marked in the journal before it begins."""


async def drive(hall: Hall, run: RunId, *, by_turns: bool = False, at_once: bool = False) -> Head:
    """Perform what is wanted until the run ends, or only people can move it on.

    By turns: come back as soon as something has ended and nothing else is under way. Then whoever drives the run next
    waits for no time and drives no children: these are left to others. At once: what failed before and waits for its
    next attempt is tried now.
    """
    head = hall.runs[run].head
    if not head.pending or (head.rests() and not _has_family(head) and not _overdue(hall, head)):
        return head
    crew = hall.crew
    if run in crew.drives:
        raise Refused(f"run {run} is being driven here already; it goes on there")
    crew.drives[run] = driven = Drive(hall, run, by_turns=by_turns, at_once=at_once)
    hall.store.crowd += 1
    if crew.pulse is None:
        crew.pulse = asyncio.create_task(_pulse(hall))
    try:
        await driven.hold()
        return await driven.perform_all()
    finally:
        try:
            await driven.wait_for_leaving(crew.grace)
            await let_go(hall, run)
        finally:
            del crew.drives[run]
            hall.store.crowd -= 1
            if not crew.drives and crew.pulse is not None:
                crew.pulse.cancel()
                crew.pulse = None


class Drive(Tasks):
    """A run that is being driven here: performs what it wants, and tells it how that ended.

    `heard` says when each effect was last heard of (0 where nobody asks, for want of a time-out), `begun` which were
    marked here as begun, and `resting` which children rest or are driven elsewhere. `said` is what was said so far in
    each effect, where somebody listens. `ends` is when the time of the run is over, `rationed` says that it may spend
    only so much of something else, and `metered` that this is something which only a reply tells. Of a run that is
    driven `by_turns`, `ended` says that something has ended in this turn; of one that is driven `at_once`, `hurried`
    has the attempts that are made before they are due.
    """

    __slots__ = (
        "at_once",
        "by_turns",
        "ended",
        "ends",
        "hall",
        "heard",
        "hurried",
        "known",
        "messages",
        "metered",
        "now",
        "performers",
        "rationed",
        "resting",
        "run_id",
        "said",
    )

    def __init__(self, hall: Hall, run_id: RunId, *, by_turns: bool = False, at_once: bool = False) -> None:
        super().__init__(asyncio.current_task())
        self.hall, self.run_id, self.known = hall, run_id, hall.runs[run_id]
        record = self.known.record
        self.now, self.messages = hall.clock.now, partial(messages, hall, run_id)
        self.performers = self.known.bindings.performers
        self.ends, self.rationed = ends_at(record), is_rationed(record)
        self.metered = not TOLD.isdisjoint(record.limits)
        self.by_turns, self.ended, self.at_once = by_turns, False, at_once
        waiting = self.known.head.pending if at_once else ()
        self.hurried = {(pending.key, pending.attempt) for pending in waiting if pending.attempt > 1}
        self.heard: dict[str, float] = {}
        self.resting: set[str] = set()
        self.said: dict[str, list[str]] = {}

    def listen(self, key: str, run: RunId, speaker: str) -> Callable[[str], None] | None:
        """Who hears what the performer with this key says, piece by piece; what was said so far is remembered."""
        ear = self.hall.ear(run, speaker)
        if ear is None:
            return None
        pieces = self.said[key] = []

        def hear(piece: str) -> None:
            pieces.append(piece)
            ear(piece)

        return hear

    def beat(self, key: str) -> None:
        """A performer is still at work."""
        if key in self.heard:
            self.heard[key] = self.now()

    async def hold(self) -> None:
        """Hold the lease of the run, or be refused."""
        hall, run, lease = self.hall, self.run_id, self.known.lease
        if lease is not None and lease.owner == hall.owner:
            return
        stored = (await hall.store.load(run)).lease
        if not await is_forsaken(hall, run, stored):
            raise Elsewhere(f"run {run} is being driven by {stored.owner}; it goes on there")
        await take(hall, run, stored)

    async def perform_all(self) -> Head:
        """Perform what is in flight, turn by turn, until nothing is left that can be performed here and now.

        Every turn looks at the head anew. Most have one plain effect; the rest of the turn is for all others.
        """
        flying, beside = self.flying, self.known.bindings.beside
        turn = 0
        while True:
            turn += 1
            if turn % TURNS == 0:
                await asyncio.sleep(0)
            head = self.known.head
            if self.by_turns and self.ended and not flying:
                return head
            if len(head.pending) == 1 and not flying and not beside and self._is_plain(head.pending[0]):
                work = self.perform if head.pending[0].effect.kind in RECORDS else self._attempt
                await self._in_place(head.pending[0], work)
                continue
            if not head.pending and not flying and self.known.lease is not None:
                return head
            ready = [
                pending for pending in head.pending if pending.key not in flying and not self._waits(head, pending)
            ]
            lease = self.known.lease
            if lease is None or (ready and lease.owner != self.hall.owner):
                await self.hold()
                self.begun.clear()
                continue
            if flying:
                for key in flying.keys() - {pending.key for pending in head.pending}:
                    attempt = self.attempts[key]
                    self.dismiss(key)
                    await self._keep_said(attempt)
            unprepared = [pending for pending in head.pending if self._needs_preparing(pending)]
            if unprepared and await self._prepare_any(unprepared):
                continue
            is_alone = not flying and not beside and len(ready) == 1 and len(head.pending) == 1
            if is_alone and ready[0].effect.kind not in FAMILY:
                await self._in_place(ready[0], self.perform)
                continue
            if ready:
                self._begin_beside(ready)
            if not flying:
                return head
            await self._wait_for_first()

    def _begin_beside(self, ready: list[Pending]) -> None:
        """Begin effects beside others, each in a task of its own."""
        for pending in ready:
            is_child = pending.effect.kind in FAMILY and not pending.denied
            task = asyncio.create_task(self._drive_child(pending) if is_child else self.perform(pending))
            self.flying[pending.key] = task
            self.attempts[pending.key] = pending
            task.add_done_callback(self.hear)

    def _is_plain(self, pending: Pending) -> bool:
        """Whether an effect can be performed at once by whoever holds the run: nothing has to be known or awaited."""
        lease, kind = self.known.lease, pending.effect.kind
        if lease is None or lease.owner != self.hall.owner:
            return False
        if pending.denied or pending.doubt or pending.due is not None:
            return False
        return (kind in self.performers and pending.effect.repeats not in MARKED) or kind in RECORDS

    def _needs_preparing(self, pending: Pending) -> bool:
        """Whether the journal may have to know something before this effect begins.

        A child that is called off is driven here perhaps, and is told all the same.
        """
        effect = pending.effect
        if pending.denied or pending.doubt:
            return False
        if effect.kind in FAMILY:
            return not pending.began
        return effect.repeats in MARKED and pending.key not in self.flying

    async def _prepare_any(self, unprepared: list[Pending]) -> bool:
        """Commit what has to be known before an effect begins, for the first that needs it; whether there was one."""
        for pending in unprepared:
            event = await self._preparation(pending)
            if event is not None:
                what = "called-off" if pending.effect.kind == CancelChild.kind else event.name.rpartition(".")[2]
                cause = mark_cause(self.known.run, pending, what) if isinstance(event, Mark) else pending.key
                told = await advance(self.hall, self.run_id, (event, cause))
                if isinstance(event, Began) and told.received == "taken":
                    self.begun.add(pending.key)
                return True
        return False

    async def _preparation(self, pending: Pending) -> Event | None:
        """What the journal has to know before this effect begins: a mark, or the event in which it ends at once."""
        effect = pending.effect
        if not pending.began:
            if isinstance(effect, StartChild):
                return await start_child(self.hall, self.run_id, pending) or Began()
            if isinstance(effect, CancelChild):
                self.resting.discard(pending.key)
                return await cancel_child(self.hall, self.run_id, pending) or Began()
            return Began()
        if effect.repeats == "at-most-once" and pending.key not in self.begun:
            return Doubted(f"{_who(effect)} had begun when its worker was lost; whether it was done is unknown")
        return None

    async def _drive_child(self, pending: Pending) -> Event | None:
        """Drive a child beside its parent, which hears of its end by itself."""
        with visiting(self.hall, child_id(self.run_id, pending.key)):
            try:
                child = await open_child(self.hall, self.run_id, pending)
            except Refused:
                return lost_child(pending)
            if self.by_turns:
                await let_go_unless_driven(self.hall, child)
                return None
            self.children.add(pending.key)
            with contextlib.suppress(Refused):  # it is driven elsewhere
                await drive(self.hall, child, at_once=self.at_once)
        return None

    async def _in_place(self, pending: Pending, work: Performance) -> None:
        """Perform the only effect of the run without a task of its own, and tell the run."""
        self.key = pending.key
        try:
            event = await work(pending)
            if self.interrupts:  # it ended all the same
                self.heed()
                self.late.pop(pending.key, None)
        except asyncio.CancelledError:
            if not self.heed():
                raise
            stopped = self._stopped(pending)
            if stopped is None:
                self.key = ""
                await self._keep_said(pending)
                return
            event = stopped
        finally:
            self.key = ""
        await advance(self.hall, self.run_id, self._end(pending, event))
        self.ended = True

    async def _keep_said(self, pending: Pending) -> None:
        """Note what was said until an effect was cut off that nobody wants any more."""
        text = whole_text("".join(self.said.pop(f"{self.run_id}.{pending.key}", ())))
        if text and in_flight(self.known.head, pending.key) is None:
            said = Interrupted(_who(pending.effect), text, {"tokens": float(-(-len(text) // CHARACTERS))})
            await advance(self.hall, self.run_id, (said, mark_cause(self.known.run, pending, "interrupted")))

    def _stopped(self, pending: Pending) -> Event | None:
        """The event in which an effect ends that took too long; None where it is not wanted any more."""
        effect, why = pending.effect, self.late.pop(pending.key, "")
        if not why:
            return None
        if why == "timeout":
            reason = f"{_who(effect)}: nothing was heard of it for {effect.timeout:g} s"
            return Doubted(reason) if effect.repeats == "at-most-once" else AttemptFailed(reason)
        if effect.repeats == "at-most-once":
            stopped = f"{_who(effect)} was stopped when the time of the run was over"
            return Doubted(f"{stopped}; whether it was done is unknown")
        return Exhausted("seconds", limit_of(self.known.run, "seconds"), pending.owner or "")

    def stop_late(self) -> None:
        """Stop the effects of a run whose time is up."""
        now = self.hall.clock.now()
        is_over = self.ends is not None and now >= self.ends
        for pending in self.known.head.pending:
            heard, timeout = self.heard.get(f"{self.run_id}.{pending.key}"), pending.effect.timeout
            if heard is not None and is_over:
                self.stop(pending.key, "seconds")
            elif heard is not None and timeout is not None and now - heard > timeout:
                self.stop(pending.key, "timeout")

    async def look_after(self, *, renew: bool) -> None:
        """Renew the lease, and notice what others told the run."""
        store, lease, until = self.hall.store, self.known.lease, self.hall.clock.now() + LEASE
        if renew and lease is not None and not await store.renew(self.run_id, lease, until):
            self.known.lease = None
            self.interrupt()
            return
        latest = await store.seq(self.run_id)
        if self.hall.crew.drives.get(self.run_id) is not self or latest == self.known.head.seq:
            return
        await reopen(self.hall, self.run_id, self.known.machine)

    async def _wait_for_first(self) -> None:
        """Wait until an effect has ended or there is news, and tell the run."""
        deadlines = [
            pending.due
            for pending in self.known.head.pending
            if pending.due and not pending.denied and pending.key not in self.flying
        ]
        alarm = asyncio.create_task(self._ring(min(deadlines))) if deadlines else None
        try:
            await self.news.wait()
        finally:
            if alarm is not None:
                alarm.cancel()
        self.news.clear()
        landed = [key for key, task in self.flying.items() if task.done()]
        ends = [end for key in landed if (end := self._landed(key)) is not None]
        if ends:
            await advance(self.hall, self.run_id, *ends)
            self.ended = True

    async def _ring(self, moment: float) -> None:
        """Have the run looked at when the deadline of a question has come."""
        await self.hall.clock.wait_until(moment)
        self.news.set()

    def _landed(self, key: str) -> tuple[Event, str] | None:
        """How an effect beside others ended, and its cause; also if it is not wanted any more, for what it cost."""
        task, attempt = self.flying.pop(key), self.attempts.pop(key)
        if not task.cancelled() and (event := task.result()) is not None:
            return self._end(attempt, event)
        pending = in_flight(self.known.head, key)
        if pending is not None and task.cancelled() and (event := self._stopped(attempt)) is not None:
            return self._end(attempt, event)
        if pending is not None and pending.effect.kind in FAMILY:
            self.resting.add(key)
        return None

    def _end(self, pending: Pending, event: Event) -> tuple[Event, str]:
        """What a run is told about how an attempt at one of its effects ended, and the cause."""
        if isinstance(event, Mark):
            if isinstance(event, Denied):
                return event, f"{pending.key}-denied-{self.known.head.seq}"
            return event, mark_cause(self.known.run, pending)
        try:
            return shaped(self.known.run.machine, event), pending.key
        except Refused:
            why = misfit(partial(shaped, self.known.machine), event, self.hall.clean)
            if pending.effect.repeats in MARKED:
                doubt = f"{_who(pending.effect)} returned, but not what it says it returns: {why}"
                return Doubted(doubt), mark_cause(self.known.run, pending)
            reason = f"{getattr(event, 'agent', 'the reply')}: the reply has the wrong shape: {why}"
            usage, model = getattr(event, "usage", {}), str(getattr(event, "model", ""))
            return GaveUp(reason, usage=usage, model=model), pending.key

    def _waits(self, head: Head, pending: Pending) -> bool:
        """Whether this effect is not begun yet: a question before its deadline, a denied one beside others at work."""
        if pending.denied:
            return any(not other.denied and self._is_at_work(other) for other in head.pending)
        if pending.effect.kind == AskPerson.kind and not pending.doubt:
            return pending.due is None or pending.due > self.hall.clock.now()
        if self.by_turns and pending.due is not None and pending.due > self.hall.clock.now():
            return True
        return bool(pending.doubt) or pending.key in self.resting

    def _is_at_work(self, pending: Pending) -> bool:
        return not pending.sleeps() or (pending.effect.kind in FAMILY and pending.key not in self.resting)

    async def perform(self, pending: Pending) -> Event:
        """Perform one effect, once, when it is due, and return the event in which that ends."""
        effect = pending.effect
        if pending.denied:
            return Exhausted(pending.denied, limit_of(self.known.run, pending.denied), pending.owner or "")
        if pending.due is not None and (pending.key, pending.attempt) not in self.hurried:
            await self.hall.clock.wait_until(pending.due)
        if effect.kind not in self.performers:
            return await _perform_here(self.hall, effect)
        return await self._attempt(pending)

    async def _attempt(self, pending: Pending) -> Event:
        """Have an effect performed now, and return the event in which that ends."""
        effect, hall = pending.effect, self.hall
        if self.rationed and (lacking := used_up(self.known.run, self.known.head, effect)):
            return Denied(lacking)
        key, attempt, deadline, heard = f"{self.run_id}.{pending.key}", pending.attempt, self.ends, 0.0
        if effect.timeout is not None:
            heard = self.now()
            deadline = min(deadline or inf, heard + effect.timeout)
        self.heard[key] = heard
        again = attempt > 1 or (pending.began and pending.key not in self.begun)
        try:
            context = make_context(
                self.run_id,
                key,
                pending.nth,
                attempt,
                again,
                deadline,
                self,
                hall.clean,
                hall.store,
                self.metered,
                hall.store,
            )
            event = await self.performers[effect.kind].perform(effect, context)
        except (DefinitionError, Broken) as error:
            return GaveUp(f"{_who(effect)}: {error}", "definition")
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # performers stand at the edge of the world
            if _is_stopping():
                raise asyncio.CancelledError from error
            return _went_wrong(effect, error)
        else:
            if self.said:
                self.said.pop(key, None)
            return event
        finally:
            self.heard.pop(key, None)


async def take(hall: Hall, run: RunId, stored: Lease) -> None:
    """Take the lease of a run, as it was seen, from whoever had it: from now on, what they commit is refused."""
    taken = await hall.store.claim(run, stored, hall.owner, hall.clock.now() + LEASE)
    if taken is None:
        raise Elsewhere(f"run {run} is being driven by another worker; it goes on there")
    if taken.crashes >= CRASHES:
        reason = f"it brought its worker down {taken.crashes} times in a row"
        await hall.store.set_aside(run, reason)
        raise Broken(f"run {run} is set aside: {reason}")
    await reopen(hall, run, hall.runs[run].machine)


async def _pulse(hall: Hall) -> None:
    """Renew the leases of the runs that are driven here, stop what takes too long, and notice what others told them."""
    renewed, seen = 0.0, hall.clock.now()
    while True:
        await asyncio.sleep(hall.crew.interval)
        last, seen = seen, hall.clock.now()
        renewed += abs(seen - last)
        due = renewed > LEASE / 3
        renewed = 0.0 if due else renewed
        await look_after_all(hall, renew=due)


async def look_after_all(hall: Hall, *, renew: bool = False) -> None:
    """Stop what takes too long in the runs that are driven here, and notice what others told them."""
    for run, driven in list(hall.crew.drives.items()):
        if hall.crew.drives.get(run) is not driven:
            continue
        driven.stop_late()
        try:
            await driven.look_after(renew=renew)
        except MoothallError:  # the store may be out of reach for a while; the next commit will tell
            continue


def _has_family(head: Head) -> bool:
    return any(pending.effect.kind in FAMILY for pending in head.pending)


def due_keys(head: Head, now: float) -> list[str]:
    """The effects in flight for which something is to be done now, by their keys."""
    return [
        pending.key for pending in head.pending if (not pending.sleeps() if pending.due is None else pending.due <= now)
    ]


def _overdue(hall: Hall, head: Head) -> bool:
    now = hall.clock.now()
    return any(pending.due is not None and pending.due <= now for pending in head.pending)


def _went_wrong(effect: Effect, error: BaseException) -> Event:
    """The event in which an attempt ends whose performer raised."""
    reason = whole_text(f"{_who(effect)}: {words_of(error)}{_where(error)}")
    if not isinstance(error, EffectFailed):
        return AttemptFailed(reason)
    return GaveUp(reason, usage=error.usage) if error.final else AttemptFailed(reason, error.retry_after, error.usage)


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
