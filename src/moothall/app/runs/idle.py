"""When a worker may go home: nothing is due, and nothing that it drives wants anything soon.

A run that only waits for a time that is far off is let go of, and whoever works then goes on with it. The pause
before another attempt is not far off.
A run that was tried here and has not moved since cannot be helped from here: it keeps nobody at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from moothall.errors import MoothallError
from moothall.runtime.hall import Hall
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import RunId
from moothall.runtime.ports import EVERYTHING, Scope

LOOKS = 2
SOON = 30.0


async def wait_for_end(
    hall: Hall, stop: asyncio.Event, tried: Mapping[RunId, int] | None, scope: Scope = EVERYTHING
) -> int:
    """Wait until it is time to stop; how many runs are driven here then. With `tried`, that is when all is idle."""
    if tried is not None:
        await _wait_until_idle(hall, stop, tried, scope)
        stop.set()
    await stop.wait()
    return len(hall.crew.drives)


async def _wait_until_idle(hall: Hall, stop: asyncio.Event, tried: Mapping[RunId, int], scope: Scope) -> None:
    """Come back when nothing was to be done in several looks: between two steps it may seem so once."""
    quiet = 0
    while quiet < LOOKS and not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), hall.crew.interval)
        quiet = quiet + 1 if await _is_idle(hall, tried, scope) else 0


async def _is_idle(hall: Hall, tried: Mapping[RunId, int], scope: Scope) -> bool:
    now = hall.clock.now()
    wakes = [hall.runs[run].head.wake() for run in hall.crew.drives if hall.has_open(run)]
    if any(wake is not None and wake <= now + SOON for wake in wakes):
        return False
    try:
        gone = [owner for owner in await hall.store.owners() if is_gone(owner)]
        due = await hall.store.due(now, len(tried) + 1, gone, scope)
        return all([tried.get(run) == await hall.store.seq(run) for run in due])
    except MoothallError:  # the store may be out of reach for a while; whoever serves it will say so
        return False
