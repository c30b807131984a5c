"""Temporal as the pump: it says which worker moves which run next, and the store says what that means.

One activity is one turn of a run: it takes the run's lease with the next token, performs what is due, advances the run
in the store and tells which effects are due now. What a turn means is decided by the runtime, as on one machine; a
worker whose token is stale neither begins nor commits anything. No text of a run reaches Temporal.

Every worker also looks in the store for runs that want attention, because they are new, were answered, or their time
has come, and starts a workflow for each, as far as it has room: the others wait in the store, where tenants take
turns. A run has one workflow at a time, by its id. So nothing is lost where a worker dies between a commit and the
start of a workflow, and not even where Temporal forgets everything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, WorkflowAlreadyStartedError
from temporalio.service import RPCError
from temporalio.worker import Worker

from moothall.cluster.workflow import KEYS, SILENCE, Pump
from moothall.errors import Broken, DefinitionError, EffectFailed, MoothallError, Refused
from moothall.kernel.frozen import Frozen
from moothall.runtime import drive as worker
from moothall.runtime.hall import Hall, NotStorable, visiting
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import Lane, RunId
from moothall.runtime.ports import SET_ASIDE, Gone, Scope
from moothall.runtime.serve import REST, TRIAL, wait_for_first

BEAT = 0.5
"""A worker is heard of so often, in seconds, and hears so soon that a turn is not wanted any more."""
PAUSE = 1.0
"""So long is a run left alone that somebody else pumps, or that did not move."""
SPARE = 2
"""So many runs more than it drives at once does a worker hand to Temporal. The others wait in the store, by turns."""
WORDS = 500
"""So many characters of an error reach Temporal."""
BENIGN = ApplicationErrorCategory.BENIGN
"""What went wrong with a run is told by whoever opens it, and not by the library again."""
ROOM = (16, 1)
"""How many runs may be on trial at once that lost their holder once or twice, and how many that did more often."""
Open = Callable[[RunId], Awaitable[object]]


class Engine(Frozen):
    """Where Temporal is, and under which name the workers of one store find each other there."""

    address: str
    namespace: str
    queue: str


async def pump(
    hall: Hall, open_run: Open, stop: asyncio.Event, engine: Engine, *, most: int = 100, drain: float = 0.0
) -> None:
    """Take turns of runs as Temporal gives them out, and tell it which runs want attention, until told to stop."""
    client = await _connected(engine)
    turns = Turns(hall, open_run)
    pumping = Worker(
        client,
        task_queue=engine.queue,
        workflows=[Pump],
        activities=[turns.perform_advance],
        max_concurrent_activities=most,
        max_concurrent_activity_task_polls=1,  # a worker that stands still loses what its open polls are given
        max_concurrent_workflow_task_polls=2,
        max_heartbeat_throttle_interval=timedelta(seconds=BEAT),
        default_heartbeat_throttle_interval=timedelta(seconds=BEAT),
        sticky_queue_schedule_to_start_timeout=SILENCE,
        graceful_shutdown_timeout=timedelta(seconds=drain),
        disable_eager_activity_execution=True,  # what a worker gives itself is not given by turns
    )
    feeder = _Feeder(hall, client, engine, most + SPARE)
    async with pumping:
        try:
            while not stop.is_set():
                try:
                    await worker.look_after_all(hall)
                    await feeder.feed()
                except Gone:
                    raise
                except MoothallError:  # the store may be out of reach for a while
                    pass
                await feeder.wait_for_work(stop)
        finally:
            await feeder.stop()


async def _connected(engine: Engine) -> Client:
    try:
        return await Client.connect(engine.address, namespace=engine.namespace)
    except (RuntimeError, RPCError) as error:
        raise EffectFailed(
            f"Temporal cannot be reached at {engine.address}; start it, or name another with --engine ({error})"
        ) from error


class Turns:
    """The turns that a worker takes."""

    def __init__(self, hall: Hall, open_run: Open) -> None:
        self._hall, self._open_run = hall, open_run
        self._trials = tuple(asyncio.Semaphore(room) for room in ROOM)

    @activity.defn
    async def perform_advance(self, run_id: str) -> list[str]:
        """Perform what is due of a run, advance it, and tell which effects are due then; none where it did not move."""
        hall, info = self._hall, activity.info()
        lost = list(info.heartbeat_details) if info.attempt > 1 else []
        if run_id in hall.crew.drives:  # an earlier attempt is still at it
            return []
        with visiting(hall, run_id):
            try:
                async with _heartbeat(hall):
                    return await self._turn(run_id, lost)
            except Refused:  # it is driven elsewhere, or gone
                return []
            except (Broken, NotStorable) as error:
                await self._set_aside(run_id, str(error))
                return []
            except DefinitionError as error:
                raise ApplicationError(
                    str(error)[:WORDS], type="DefinitionError", non_retryable=True, category=BENIGN
                ) from None
            except MoothallError as error:
                raise ApplicationError(str(error)[:WORDS], type=type(error).__name__, category=BENIGN) from None

    async def _turn(self, run: RunId, lost: list[Any]) -> list[str]:
        hall = self._hall
        if lost:
            await self._take_over(run, lost)
        await self._open_run(run)
        before = hall.runs[run].head.seq
        async with self._trial(run):
            head = await worker.drive(hall, run, by_turns=True)
        return worker.due_keys(head, hall.clock.now())[:KEYS] if head.seq > before else []

    async def _take_over(self, run: RunId, lost: list[Any]) -> None:
        """Take a run from the worker that was last heard of with it, where it has it still.

        Temporal has not heard of that worker for a while; on another host it might hold its lease for longer.
        """
        await self._open_run(run)
        lease = (await self._hall.store.load(run)).lease
        if [lease.owner] == lost and lease.owner != self._hall.owner:
            await worker.take(self._hall, run, lease)

    @contextlib.asynccontextmanager
    async def _trial(self, run: RunId) -> AsyncIterator[None]:
        """Let a run that lost its holder have few beside it for a while: it may bring this worker down too."""
        lease = self._hall.lease_of(run)
        losses = lease.crashes + bool(lease.owner) if lease is not None and lease.owner != self._hall.owner else 0
        if not losses:
            yield
            return
        room = self._trials[losses > 2]
        await room.acquire()
        trial = asyncio.create_task(self._acquit(run))
        trial.add_done_callback(lambda _: room.release())  # also where it is cancelled before it has begun
        try:
            yield
        finally:
            trial.cancel()
            await asyncio.gather(trial, return_exceptions=True)

    async def _acquit(self, run: RunId) -> None:
        """Forget what happened before, where a run has been at work for a while and the worker is still there."""
        await asyncio.sleep(TRIAL)
        lease = self._hall.lease_of(run)
        if lease is not None and lease.owner == self._hall.owner:
            await self._hall.store.forgive(run, lease)

    async def _set_aside(self, run: RunId, reason: str) -> None:
        store = self._hall.store
        with contextlib.suppress(MoothallError):
            if not (await store.load(run)).status.startswith(SET_ASIDE):
                await store.set_aside(run, reason)


@contextlib.asynccontextmanager
async def _heartbeat(hall: Hall) -> AsyncIterator[None]:
    """Be heard of, by the name under which leases are held here, for as long as a turn takes."""

    async def beat() -> None:
        while True:
            activity.heartbeat(hall.owner)
            await asyncio.sleep(BEAT / 2)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


@dataclass
class _Feeder:
    """Tells Temporal which runs want attention, and leaves those alone that it was told of."""

    hall: Hall
    client: Client
    engine: Engine
    room: int
    latest: str = ""
    """The tenant whose run was handed over last."""
    tasks: dict[RunId, asyncio.Task[float]] = field(default_factory=dict)
    resting: dict[RunId, float] = field(default_factory=dict)

    async def feed(self) -> None:
        """Start a workflow for each run that wants attention and has none, as far as is known here."""
        store, now = self.hall.store, self.hall.clock.now()
        for run in [run for run, task in self.tasks.items() if task.done()]:
            if pause := self.tasks.pop(run).result():
                self.resting[run] = now + pause
        self.resting = {run: until for run, until in self.resting.items() if until > now}
        gone = [owner for owner in await store.owners() if is_gone(owner)]
        most, scope = self.room + len(self.tasks) + len(self.resting), Scope(after=self.latest)
        for run in await store.due(now, most, gone, scope):
            if run not in self.tasks and run not in self.resting and len(self.tasks) < self.room:
                self.tasks[run] = asyncio.create_task(self._start(run))

    async def _start(self, run: RunId) -> float:
        """Have a run pumped until nothing of it is due; how long to leave it alone then."""
        try:
            lane = (await self.hall.store.load(run)).record.lane
            self.latest = lane.tenant
            handle = await self.client.start_workflow(
                Pump.run,
                args=[run],
                id=f"{self.engine.queue}-{run}",
                task_queue=self.engine.queue,
                task_timeout=SILENCE,
                priority=_priority(lane),
            )
            return 0.0 if await handle.result() else PAUSE
        except WorkflowFailureError:
            return REST
        except (WorkflowAlreadyStartedError, RPCError, MoothallError):
            return PAUSE

    async def wait_for_work(self, stop: asyncio.Event) -> None:
        """Come back when there may be something to start, or it is time to stop."""
        now = self.hall.clock.now()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
        waits.append(asyncio.ensure_future(self.hall.store.wait_for_work(now, self.hall.crew.interval)))
        if self.resting:
            waits.append(asyncio.ensure_future(asyncio.sleep(max(0.05, min(self.resting.values()) - now))))
        await wait_for_first(waits, self.tasks.values())

    async def stop(self) -> None:
        """Wait for no workflow any more; Temporal keeps them."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def _priority(lane: Lane) -> Priority:
    """The place of a run among others: Temporal knows five priorities, and takes tenants by turns."""
    return Priority(priority_key=min(5, max(1, 3 - lane.priority)), fairness_key=lane.tenant[:64] or None)
