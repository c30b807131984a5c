"""Driving every run of a store that wants attention."""

from __future__ import annotations

import asyncio

from moothall.app.runs.context import RunContext, exists, reopen_to_drive
from moothall.app.runs.idle import wait_for_end
from moothall.errors import MoothallError
from moothall.runtime.hall import looked
from moothall.runtime.journal import RunId
from moothall.runtime.serve import serve


async def work(context: RunContext, stop: asyncio.Event, most: int, *, until_idle: bool = False) -> int:
    """Drive every run of the store that wants attention, until told to stop or idle; how many it then let go of."""
    hall = context.hall
    await _leave_strays(context)
    tried: dict[RunId, int] | None = {} if until_idle else None
    ending = asyncio.create_task(wait_for_end(hall, stop, tried))

    async def open_run(run: RunId) -> None:
        if tried is not None:
            tried[run] = await hall.store.seq(run)
        try:
            await reopen_to_drive(context, run)
        except MoothallError as error:
            context.broadcast.notice(f"run {run} is left alone for now: {error}")
            raise

    await serve(hall, open_run, stop, most)
    return await ending


async def _leave_strays(context: RunContext) -> None:
    """Set the runs aside that are behind their anchors, and tell of them and of those that are gone."""
    store = context.hall.store
    for run, why in (await store.strays()).items():
        context.broadcast.notice(f"run {run}: {why}; {looked(run)}")
        if await exists(store, run) and (await store.load(run)).status == "live":
            await store.set_aside(run, why)
