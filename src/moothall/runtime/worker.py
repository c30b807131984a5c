"""Performs what a run wants, until it ends or waits for a person.

The worker holds no truth: it reads what is in flight from the head, performs it, and tells the run how it ended.
One effect is awaited in place; from the second on each has a task. When a step drops an effect, its task is
cancelled. A denied effect ends after those that are being performed: what was paid for is not lost. A performer that
raises is tried again with the same key, after a pause; then the effect ends in `GaveUp`.
"""

from __future__ import annotations

import asyncio

from moothall.errors import Broken, DefinitionError, Refused
from moothall.kernel.effects import Alarm, AskPerson, Send
from moothall.kernel.events import Event, Exhausted, Expired, GaveUp
from moothall.runtime.hall import Hall, advance
from moothall.runtime.journal import Head, Pending, RunId, shaped
from moothall.runtime.ports import Context

ATTEMPTS = 3
PAUSE = 0.2


async def drive(hall: Hall, run: RunId) -> Head:
    """Perform what is wanted until the run ends, or only people can move it on."""
    flying: dict[str, asyncio.Task[Event]] = {}
    try:
        while True:
            head = hall.heads[run]
            ready = [one for one in head.pending if one.key not in flying and not _waits(hall, head, one)]
            if flying:
                for key in flying.keys() - {one.key for one in head.pending}:
                    flying.pop(key).cancel()
            elif len(ready) == 1:
                await _end(hall, run, ready[0].key, await perform(hall, run, ready[0]))
                continue
            for one in ready:
                flying[one.key] = asyncio.create_task(perform(hall, run, one))
            if not flying:
                return head
            await _wait_for_first(hall, run, flying)
    finally:
        for task in flying.values():
            task.cancel()


async def _wait_for_first(hall: Hall, run: RunId, flying: dict[str, asyncio.Task[Event]]) -> None:
    await asyncio.wait(flying.values(), return_when=asyncio.FIRST_COMPLETED)
    for key in [key for key, task in flying.items() if task.done()]:
        task = flying.pop(key)
        if not task.cancelled():
            await _end(hall, run, key, task.result())


async def _end(hall: Hall, run: RunId, key: str, event: Event) -> None:
    try:
        event = shaped(hall.runs[run].machine, event)
    except Refused as refusal:
        event = GaveUp(f"the reply has the wrong shape: {refusal}", usage=getattr(event, "usage", {}))
    await advance(hall, run, event, key)


def _waits(hall: Hall, head: Head, pending: Pending) -> bool:
    """Whether this effect does not end yet: a question before its deadline, a denied one beside others at work."""
    if pending.denied:
        return any(not one.denied and not isinstance(one.effect, AskPerson | Send | Alarm) for one in head.pending)
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
    performer = hall.performers.get(effect.kind)
    if performer is None:
        return GaveUp(f"nothing here performs {effect.kind}", "definition")
    attempt = 1
    while True:
        try:
            return await performer.perform(effect, Context(run, f"{run}.{pending.key}", pending.nth, attempt))
        except (DefinitionError, Broken) as error:
            return GaveUp(str(error), "definition")
        except (Exception, asyncio.CancelledError) as error:  # performers stand at the edge of the world
            if _is_stopping():
                raise asyncio.CancelledError from error
            if attempt >= ATTEMPTS:
                return GaveUp(f"{type(error).__name__}: {error}, after {attempt} attempts")
        await hall.clock.wait_until(hall.clock.now() + PAUSE * 4 ** (attempt - 1))
        attempt += 1


def _is_stopping() -> bool:
    """Whether it is us who are cancelled, and not something that a performer waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
