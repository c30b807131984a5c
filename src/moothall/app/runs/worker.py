"""Driving every run of a store that wants attention."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from moothall.app.config.settings import prune_setting
from moothall.app.report.amounts import format_count
from moothall.app.runs.context import RunContext, exists, reopen_to_drive
from moothall.app.runs.engine import pump_of
from moothall.app.runs.health import serve_health
from moothall.app.runs.idle import wait_for_end
from moothall.app.runs.view import prune
from moothall.errors import MoothallError
from moothall.kernel.frozen import Frozen
from moothall.runtime.hall import looked
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Scope
from moothall.runtime.serve import serve


class Duty(Frozen):
    """What a worker is there for: how many runs at once, which ones, and how it ends."""

    most: int = 100
    queues: tuple[str, ...] = ()
    """The queues that it serves; all where none is named."""
    tenants: tuple[str, ...] = ()
    until_idle: bool = False
    drain: float = 0.0
    """So many seconds has what is under way to come to rest, once the worker was told to stop."""
    health: int | None = None
    """The port at which it says how it is."""
    engine: str = ""
    """The engine that pumps the runs, by its address; `own` takes the store back from one."""
    prune_every: float = 3600.0
    """So many seconds lie between two looks for runs that are to be deleted."""


async def work(context: RunContext, stop: asyncio.Event, duty: Duty) -> int:
    """Drive every run of the store that wants attention, until told to stop or idle; how many it then let go of."""
    hall, scope = context.hall, Scope(duty.queues, duty.tenants)
    pump = await pump_of(hall.store, duty.engine, scope)
    await _leave_strays(context)
    tried: dict[RunId, int] | None = {} if duty.until_idle else None
    ending = asyncio.create_task(wait_for_end(hall, stop, tried, scope))

    async def open_run(run: RunId) -> None:
        if tried is not None:
            tried[run] = await hall.store.seq(run)
        try:
            await reopen_to_drive(context, run)
        except MoothallError as error:
            context.broadcast.notice(f"run {run} is left alone for now: {error}")
            raise

    days = prune_setting()
    pruning = asyncio.create_task(_prune(context, days, duty.prune_every)) if days is not None else None
    async with serve_health(hall, stop, duty.health):
        if pump is None:
            left = await serve(hall, open_run, stop, duty.most, scope=scope, drain=duty.drain)
            await ending
        else:
            await pump(hall, open_run, stop, most=duty.most, drain=duty.drain)
            left = await ending
    if pruning is not None:
        pruning.cancel()
        await asyncio.gather(pruning, return_exceptions=True)
    return left


async def _prune(context: RunContext, days: float, every: float) -> None:
    """Delete what ended more than so many days ago, from time to time."""
    while True:
        with suppress(MoothallError):  # the store may be out of reach for a while
            if pruned := await prune(context.store, days, really=True):
                runs = format_count(len(pruned), "runs")
                context.broadcast.notice(f"deleted {runs} that ended more than {days:g} days ago")
        await asyncio.sleep(every)


async def _leave_strays(context: RunContext) -> None:
    """Set the runs aside that are behind their anchors, and tell of them and of those that are gone."""
    store = context.hall.store
    for run, why in (await store.strays()).items():
        context.broadcast.notice(f"run {run}: {why}; {looked(run)}")
        if await exists(store, run) and (await store.load(run)).status == "live":
            await store.set_aside(run, why)
