"""Performs what a run wants, until it ends or waits for a person.

The worker holds no truth: it reads what is in flight from the head, performs it, and tells the run how it ended.
One effect is awaited in place; from the second on each has a task. When a step drops an effect, its task is
cancelled. A denied effect ends after those that are being performed: what was paid for is not lost. A performer that
raises is tried again with the same key, after a pause; then the effect ends in `GaveUp`.

Only who holds the lease of a run performs its effects. A pulse, one for all runs of a hall, renews the leases and
notices what others told the runs meanwhile; an effect that nobody wants any more is then cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from moothall.errors import Broken, DefinitionError, MoothallError, Refused
from moothall.kernel.effects import Alarm, AskPerson, Effect, Send
from moothall.kernel.events import Event, Exhausted, Expired, GaveUp
from moothall.runtime.crew import Drive
from moothall.runtime.hall import LEASE, Hall, advance, is_free, is_gone, leave, let_go, reopen
from moothall.runtime.journal import WAITING, Head, Pending, RunId, shaped
from moothall.runtime.ports import Context

ATTEMPTS = 3
PAUSE = 0.2
PULSE = 0.5
TURNS = 32
CRASHES = 5
REST = 60.0


async def drive(hall: Hall, run: RunId) -> Head:
    """Perform what is wanted until the run ends, or only people can move it on."""
    head = hall.heads[run]
    if head.rests() and not _overdue(hall, head):
        return head
    crew, doing = hall.crew, Drive(asyncio.current_task())
    if run in crew.drives:
        raise Refused(f"run {run} is being driven here already; it goes on there")
    await _hold(hall, run)
    crew.drives[run] = doing
    hall.store.crowd = len(crew.drives)
    if crew.pulse is None:
        crew.pulse = asyncio.create_task(_pulse(hall))
    try:
        return await _perform_all(hall, run, doing)
    finally:
        for task in doing.flying.values():
            task.cancel()
        await let_go(hall, run)
        del crew.drives[run]
        hall.store.crowd = len(crew.drives)
        if not crew.drives and crew.pulse is not None:
            crew.pulse.cancel()
            crew.pulse = None


async def serve(
    hall: Hall, open_run: Callable[[RunId], Awaitable[object]], stop: asyncio.Event, most: int = 100
) -> None:
    """Drive every run of the store that wants attention, until told to stop; then let go of all of them."""
    tasks: dict[RunId, asyncio.Task[MoothallError | None]] = {}
    resting: dict[RunId, float] = {}
    while not stop.is_set():
        now = hall.clock.now()
        resting = {run: until for run, until in resting.items() if until > now}
        for run in [run for run, task in tasks.items() if task.done()]:
            if tasks.pop(run).result() is not None:
                resting[run] = now + REST
        gone = [owner for owner in await hall.store.owners() if is_gone(owner)]
        for run in await hall.store.due(now, most + len(resting), gone):
            if len(tasks) < most and run not in tasks and run not in resting:
                tasks[run] = asyncio.create_task(_serve_one(hall, open_run, run))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PULSE)
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def _serve_one(hall: Hall, open_run: Callable[[RunId], Awaitable[object]], run: RunId) -> MoothallError | None:
    """Drive one run; what stands in the way is returned, so that the run is left alone for a while."""
    try:
        await open_run(run)
        await drive(hall, run)
    except MoothallError as error:
        return error
    finally:
        leave(hall, run)
    return None


async def _hold(hall: Hall, run: RunId) -> None:
    """Hold the lease of a run, or be refused."""
    lease = hall.leases.get(run)
    if lease is not None and lease.owner == hall.owner:
        return
    stored = (await hall.store.load(run)).lease
    if not is_free(hall, stored):
        raise Refused(f"run {run} is being driven by {stored.owner}; it goes on there")
    taken = await hall.store.claim(run, stored, hall.owner, hall.clock.now() + LEASE)
    if taken is None:
        raise Refused(f"run {run} is being driven by another worker; it goes on there")
    if taken.crashes >= CRASHES:
        await hall.store.set_aside(run, "set aside")
        raise Broken(f"run {run} brought its worker down {taken.crashes} times in a row and is set aside")
    await reopen(hall, run, hall.runs[run].machine)


async def _perform_all(hall: Hall, run: RunId, doing: Drive) -> Head:
    flying = doing.flying
    turn = 0
    while True:
        turn += 1
        if turn % TURNS == 0:
            await asyncio.sleep(0)
        head = hall.heads[run]
        ready = [one for one in head.pending if one.key not in flying and not _waits(hall, head, one)]
        if run not in hall.leases or (ready and hall.leases[run].owner != hall.owner):
            await _hold(hall, run)
            continue
        if flying:
            for key in flying.keys() - {one.key for one in head.pending}:
                flying.pop(key).cancel()
        elif len(ready) == 1 and len(head.pending) == 1:
            await _in_place(hall, run, doing, ready[0])
            continue
        for one in ready:
            flying[one.key] = asyncio.create_task(perform(hall, run, one))
        if not flying:
            return head
        await _wait_for_first(hall, run, doing)


async def _in_place(hall: Hall, run: RunId, doing: Drive, pending: Pending) -> None:
    """Perform the only effect of a run without a task of its own."""
    doing.key = pending.key
    try:
        event = await perform(hall, run, pending)
    except asyncio.CancelledError:
        if not doing.interrupted or doing.task is None:
            raise
        doing.interrupted = False
        if doing.task.uncancel() > 0:
            raise
        return
    finally:
        doing.key = ""
    await _end(hall, run, pending.key, event)


async def _pulse(hall: Hall) -> None:
    """Renew the leases of the runs that are driven here, and notice what others told them."""
    renewed = hall.clock.now()
    while True:
        await asyncio.sleep(PULSE)
        due = hall.clock.now() - renewed > LEASE / 3
        renewed = hall.clock.now() if due else renewed
        for run, doing in list(hall.crew.drives.items()):
            try:
                await _look_after(hall, run, doing, renew=due)
            except MoothallError:  # the store may be out of reach for a while; the next commit will tell
                continue


async def _look_after(hall: Hall, run: RunId, doing: Drive, *, renew: bool) -> None:
    lease = hall.leases.get(run)
    if renew and lease is not None and not await hall.store.renew(run, lease, hall.clock.now() + LEASE):
        hall.leases.pop(run, None)
        doing.interrupt()
        return
    if await hall.store.seq(run) == hall.heads[run].seq or hall.crew.drives.get(run) is not doing:
        return
    doing.notice(await reopen(hall, run, hall.runs[run].machine))


async def _wait_for_first(hall: Hall, run: RunId, doing: Drive) -> None:
    """Wait until an effect has ended or there is news, and tell the run."""
    doing.news.clear()
    news = asyncio.create_task(doing.news.wait())
    await asyncio.wait([*doing.flying.values(), news], return_when=asyncio.FIRST_COMPLETED)
    news.cancel()
    for key in [key for key, task in doing.flying.items() if task.done()]:
        task = doing.flying.pop(key)
        if not task.cancelled():
            await _end(hall, run, key, task.result())


def _overdue(hall: Hall, head: Head) -> bool:
    now = hall.clock.now()
    return any(one.due is not None and one.due <= now for one in head.pending)


async def _end(hall: Hall, run: RunId, key: str, event: Event) -> None:
    try:
        event = shaped(hall.runs[run].machine, event)
    except Refused as refusal:
        who = getattr(event, "agent", "the reply")
        event = GaveUp(f"{who}: the reply has the wrong shape: {refusal}", usage=getattr(event, "usage", {}))
    await advance(hall, run, event, key)


def _waits(hall: Hall, head: Head, pending: Pending) -> bool:
    """Whether this effect does not end yet: a question before its deadline, a denied one beside others at work."""
    if pending.denied:
        return any(not one.denied and one.effect.kind not in WAITING for one in head.pending)
    return isinstance(pending.effect, AskPerson) and (pending.due is None or pending.due > hall.clock.now())


async def perform(hall: Hall, run: RunId, pending: Pending) -> Event:
    """Perform one effect and return the event in which it ends."""
    effect = pending.effect
    if pending.denied:
        return Exhausted(pending.denied, hall.runs[run].record.limits[pending.denied], pending.owner or "")
    if isinstance(effect, AskPerson):
        return Expired()
    if isinstance(effect, Send | Alarm):
        await hall.clock.wait_until(pending.due or 0.0)
        return effect.event
    performer = hall.cast(run).get(effect.kind)
    if performer is None:
        return GaveUp(f"nothing here performs {effect.kind}", "definition")
    attempt = 1
    while True:
        try:
            return await performer.perform(effect, Context(run, f"{run}.{pending.key}", pending.nth, attempt))
        except (DefinitionError, Broken) as error:
            return GaveUp(f"{_who(effect)}: {error}", "definition")
        except (Exception, asyncio.CancelledError) as error:  # performers stand at the edge of the world
            if _is_stopping():
                raise asyncio.CancelledError from error
            if attempt >= ATTEMPTS:
                return GaveUp(f"{_who(effect)}: {type(error).__name__}: {error}{_where(error)}, {attempt} attempts")
        await hall.clock.wait_until(hall.clock.now() + PAUSE * 4 ** (attempt - 1))
        attempt += 1


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
