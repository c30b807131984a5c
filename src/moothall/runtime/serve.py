"""Drives every run of a store that wants attention, until told to stop.

A worker that dies leaves its runs to others, and only one of them may be to blame. So a run that lost its holder is on
trial until it has moved, or has been at work for a while; and the more often a run lost its holder, the fewer are on
trial beside it, in the end none. Then a run that brings its worker down takes no other along, and after five times in a
row it is set aside. A run whose journal is damaged is set aside at once: no worker can move it. So is one whose next
step cannot be kept: each worker would pay for it anew. Whatever else is wrong with one run, it is left alone for a
minute, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.errors import Broken, MoothallError
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, NotStorable, visiting
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import RunId
from moothall.runtime.ports import EVERYTHING, SET_ASIDE, Gone, Lease, Scope

REST = 60.0
TRIAL = 5.0
ROOM = (16, 16, 8, 4, 1)
"""How many runs may be on trial at once where one of them lost its holder so many times in a row; from four on, one."""
SOON = 0.02
Open = Callable[[RunId], Awaitable[object]]


async def serve(
    hall: Hall,
    open_run: Open,
    stop: asyncio.Event,
    most: int = 100,
    *,
    scope: Scope = EVERYTHING,
    drain: float = 0.0,
) -> int:
    """Drive every run of the store that wants attention, until told to stop; then let go of all; how many there were.

    Who drains takes up no more, and gives what is under way so many seconds to come to rest.
    """
    service = _Service(hall, open_run, most, scope)
    while not stop.is_set():
        try:
            await service.take_up(stop)
        except Gone:
            await service.let_go_of_all()
            raise
        except MoothallError:  # the store may be out of reach for a while
            pass
        await service.wait_for_work(stop, SOON if service.on_trial else hall.crew.interval)
    if drain and service.tasks:
        await asyncio.wait(service.tasks.values(), timeout=drain)
    left = len(hall.crew.drives)
    await service.let_go_of_all()
    return left


async def wait_for_first(waits: Sequence[asyncio.Future[Any]], tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Come back when one of the waits is over, or one of the tasks, which go on; the waits do not."""
    try:
        await asyncio.wait([*waits, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in waits:
            waiting.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


@dataclass
class _Service:
    """What a worker drives, what it leaves alone until when, and which run is on trial since when."""

    hall: Hall
    open_run: Open
    most: int
    scope: Scope = EVERYTHING
    latest: str = ""
    """The tenant that was served last."""
    tasks: dict[RunId, asyncio.Task[Exception | None]] = field(default_factory=dict)
    resting: dict[RunId, float] = field(default_factory=dict)
    on_trial: dict[RunId, tuple[float, int]] = field(default_factory=dict)

    async def take_up(self, stop: asyncio.Event) -> None:
        """Take up what wants attention and nobody holds, as far as there is room; nothing once it is time to stop."""
        hall, now = self.hall, self.hall.clock.now()
        self.resting = {run: until for run, until in self.resting.items() if until > now}
        for run in [run for run, task in self.tasks.items() if task.done()]:
            if self.tasks.pop(run).result() is not None:
                self.resting[run] = now + REST
        gone = [owner for owner in await hall.store.owners() if is_gone(owner)]
        suspects = await hall.store.suspects(now)
        await self._end_trials()
        due = await hall.store.due(
            now, self.most + len(self.resting) + len(suspects), gone, replace(self.scope, after=self.latest)
        )
        for run in due if not stop.is_set() else ():
            if len(self.tasks) < self.most and run not in self.tasks and run not in self.resting:
                self._take(run, suspects.get(run, 0))

    async def wait_for_work(self, stop: asyncio.Event, seconds: float) -> None:
        """Come back when there may be something to take up, a run here has ended, or it is time to stop."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
        if seconds < self.hall.crew.interval:
            waits.append(asyncio.ensure_future(asyncio.sleep(seconds)))
        else:
            waits.append(asyncio.ensure_future(self.hall.store.wait_for_work(self.hall.clock.now(), seconds)))
        await wait_for_first(waits, self.tasks.values())

    def _take(self, run: RunId, losses: int) -> None:
        """Drive a run; one that lost its holder only if there is room for one more on trial."""
        if losses:
            worst = max(losses, *(times for _, times in self.on_trial.values()), 0)
            if len(self.on_trial) >= ROOM[min(worst, len(ROOM) - 1)]:
                return
            self.on_trial[run] = (asyncio.get_running_loop().time(), losses)
        self.tasks[run] = asyncio.create_task(self._serve_one(run))

    async def _end_trials(self) -> None:
        """Acquit the runs on trial that have ended, moved, or been at work for a while."""
        now = asyncio.get_running_loop().time()
        for run, (since, _) in list(self.on_trial.items()):
            lease = self.hall.lease_of(run)
            if run not in self.tasks or (lease is not None and not lease.crashes):
                del self.on_trial[run]
            elif lease is not None and now - since > TRIAL:
                await self.hall.store.forgive(run, lease)
                self.hall.runs[run].lease = Lease(lease.owner, lease.token, lease.until)
                del self.on_trial[run]

    async def _serve_one(self, run: RunId) -> Exception | None:
        """Drive one run; what stands in the way is returned."""
        with visiting(self.hall, run):
            try:
                await self.open_run(run)
                if self.hall.has_open(run):
                    self.latest = self.hall.runs[run].record.lane.tenant
                await drive(self.hall, run)
            except (Broken, NotStorable) as error:
                with contextlib.suppress(MoothallError):
                    await self._set_aside(run, error)
                return error
            except Exception as error:  # whatever is wrong with one run, the others go on
                return error
        return None

    async def _set_aside(self, run: RunId, error: MoothallError) -> None:
        if not (await self.hall.store.load(run)).status.startswith(SET_ASIDE):
            await self.hall.store.set_aside(run, str(error))

    async def let_go_of_all(self) -> None:
        """Stop driving; every run can go on elsewhere."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
