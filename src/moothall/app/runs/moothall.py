"""The one object that programs and doors hold: a store, settings that are read once, a clock, and who listens.

    async with Moothall() as hall:
        outcome = await hall.run(ARTICLE, Article(topic="tides"))
        async for news in hall.watch(outcome.run): ...

It decides nothing about a run: each method is a room of its own in `app.runs`. Several with different stores live side
by side in one process; all runs of one share its commits. `run`, `resume`, `answer` and `fork` are short ways in for
scripts, and share a `Moothall` per store while they work.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from moothall.app.config.access import opened
from moothall.app.config.settings import ReadSettings, Settings, current_files, reading_once, telemetry_setting
from moothall.app.kinds.bindings import Functions
from moothall.app.kinds.python import REMEDY, is_loading
from moothall.app.kinds.source import find
from moothall.app.notify.speech import SpeechReader, SpeechWriter, speech_folder
from moothall.app.report.account import Shown, show
from moothall.app.runs import begin as beginning
from moothall.app.runs import fork as forks
from moothall.app.runs import resume as resuming
from moothall.app.runs import retry as retries
from moothall.app.runs.begin import Terms
from moothall.app.runs.context import RunContext, new_hall
from moothall.app.runs.mirror import Mirroring, open_mirror
from moothall.app.runs.news import Broadcast, Listener, News, Noticed, Said
from moothall.app.runs.outcome import Outcome, R
from moothall.app.runs.view import Summary, Wanted, follow, summaries
from moothall.app.toolbox import Given
from moothall.errors import DefinitionError
from moothall.kernel.events import Event
from moothall.kernel.machine import Budget, Machine
from moothall.performers.own import OwnPerformers
from moothall.runtime.hall import let_go
from moothall.runtime.journal import Lane, RunId
from moothall.runtime.ports import Clock, Store
from moothall.stores.connections import public_address

T = TypeVar("T")


def print_notices(news: News) -> None:
    """Say on stderr what a person should know."""
    if isinstance(news, Noticed) and news.urgent:
        print(news.text, file=sys.stderr)


print_notices.minds_no_steps = True  # type: ignore[attr-defined]


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Stop tasks and wait until each has put its things away; what they worked with may be closed afterwards."""
    stopped = [task for task in tasks if task is not asyncio.current_task()]
    for task in stopped:
        task.cancel()
    await asyncio.gather(*stopped, return_exceptions=True)


class Moothall:
    """A place where runs are begun, driven, told things and looked at.

    Without listeners, what a person should know is said on stderr.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        listeners: Iterable[Listener] | None = None,
        durability: str | None = None,
        telemetry: str | None = None,
    ) -> None:
        self._files = current_files() if settings is None else ReadSettings(settings)
        self._clock, self._broadcast = clock, Broadcast((print_notices,) if listeners is None else listeners)
        self._place: opened = opened(store, durability)
        self._under_way: dict[RunId, asyncio.Task[Outcome]] = {}
        self._telemetry_named = telemetry
        self._telemetry: Any = None
        self._mirroring: Mirroring | None = None

    async def __aenter__(self) -> Moothall:
        self.context()
        self._mirror_records()
        return self

    def _mirror_records(self) -> None:
        """Begin to send records to the mirror that is configured, if there is one."""
        with self._settings():
            mirror = open_mirror()
        if mirror is not None and self._mirroring is None:
            self._mirroring = Mirroring(self.store, mirror)

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @cached_property
    def _context(self) -> RunContext:
        with self._settings():
            store = self._place.__enter__()
            if parts := telemetry_setting(self._telemetry_named):
                from moothall.app.notify.telemetry.listener import standing_telemetry  # most programs are not watched

                self._telemetry = standing_telemetry(parts)
                self._broadcast.listeners.append(self._telemetry.listener(self._place.address))
            if (folder := speech_folder(public_address(self._place.address))) is not None:
                self._broadcast.occasional[:] = [SpeechWriter(folder)]
            return RunContext(new_hall(store, self._broadcast, self._clock), self._broadcast)

    def _settings(self) -> AbstractContextManager[ReadSettings]:
        return reading_once(self._files)

    @property
    def store(self) -> Store:
        """Where the runs are kept."""
        return self._context.store

    @property
    def address(self) -> str:
        """The address of the store, without a password."""
        self.context()
        return public_address(self._place.address)

    def listen(self, listener: Listener) -> None:
        """Tell somebody of everything from now on."""
        self._broadcast.listeners.append(listener)

    @contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """Tell somebody of everything meanwhile."""
        self.listen(listener)
        try:
            yield
        finally:
            if listener in self._broadcast.listeners:  # one that raised is left out already
                self._broadcast.listeners.remove(listener)

    def hear_others(self) -> SpeechReader | None:
        """Hear what agents say in other processes of the same store; None where no other has it.

        What they say here is heard by whoever listens, and written down no more.
        """
        self.context()
        self._broadcast.occasional.clear()
        folder = speech_folder(self.address)
        return None if folder is None else SpeechReader(folder)

    def context(
        self,
        agents: Functions | None = None,
        person: str = "",
        performers: OwnPerformers | None = None,
        adopt: str = "",
    ) -> RunContext:
        """What is around the runs of a caller who brings these functions."""
        known = self._context
        if agents is None and not person and performers is None and not adopt:
            return known
        return replace(known, agents=agents or {}, person=person, performers=performers or {}, adopt=adopt)

    async def close(self) -> None:
        """Let go of the runs that are under way, which others may go on with, and of the store."""
        await stop_tasks(self._under_way.values())
        if "_context" in self.__dict__:
            await stop_tasks(drive.task for drive in self._context.hall.crew.drives.values() if drive.task is not None)
            try:
                self._mirror_records()
                if self._mirroring is not None and (behind := await self._mirroring.finish()):
                    self._broadcast.notice(behind)
            finally:
                self._mirroring = None
                del self.__dict__["_context"]
                self._place.__exit__(None, None, None)
            if self._telemetry is not None:
                await asyncio.to_thread(self._telemetry.wait_until_seen)

    async def run(
        self,
        machine: Machine[Any, R] | str,
        data: Any = None,
        *,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        model: str = "",
        budget: Budget | None = None,
        run_id: RunId | None = None,
        workspace: Given = None,
    ) -> Outcome[R]:
        """Run a machine to its end, or until it waits for a person; its agents have the tools of the workspace."""
        with self._settings():
            context, terms = self.context(agents, performers=performers), Terms(run_id, model, budget, workspace)
            return await beginning.begin(context, _check_machine(machine, budget), data, terms)

    def warnings(
        self, machine: Machine | str, *, model: str = "", budget: Budget | None = None, workspace: Given = None
    ) -> tuple[str, ...]:
        """What a person should know before a run of this machine begins; it is told again when it does."""
        with self._settings():
            terms = Terms(None, model, budget, workspace)
            return tuple(beginning.warnings_of(self.context(), _check_machine(machine, budget), terms))

    async def start(
        self,
        machine: Machine | str,
        data: Any = None,
        *,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        model: str = "",
        budget: Budget | None = None,
        run_id: RunId | None = None,
        workspace: Given = None,
    ) -> RunId:
        """Begin a run and come back at once; it goes on beside, for as long as this object is open."""
        with self._settings():
            context, terms = self.context(agents, performers=performers), Terms(run_id, model, budget, workspace)
            run, stay = await beginning.enter(context, _check_machine(machine, budget), data, terms)
            self._go_on_beside(run, self._driven(context, run, stay))
            return run

    async def submit(
        self,
        machine: Machine | str,
        data: Any = None,
        *,
        model: str = "",
        budget: Budget | None = None,
        run_id: RunId | None = None,
        workspace: Given = None,
        queue: str = "",
        tenant: str = "",
        priority: int = 0,
    ) -> RunId:
        """Begin a run and leave it to the workers of its queue: the higher priority first, and tenants by turns."""
        with self._settings():
            context, lane = self.context(), Lane(queue, tenant, priority)
            terms = Terms(run_id, model, budget, workspace, lane)
            run, stay = await beginning.enter(context, _check_machine(machine, budget), data, terms)
            with stay:
                await let_go(context.hall, run)
            return run

    async def _driven(self, context: RunContext, run: RunId, stay: ExitStack) -> Outcome:
        with stay:
            return await resuming.drive_with_parents(context, run)

    def _go_on_beside(self, run: RunId, work: Coroutine[Any, Any, Outcome]) -> None:
        task = self._under_way[run] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._under_way.pop(run, None))

    async def wait(self, run: RunId) -> Outcome:
        """Wait until a run that was started here has gone as far as it goes; else go on with it."""
        task = self._under_way.get(run)
        return await task if task is not None else await self.resume(run)

    async def resume(
        self,
        run: RunId,
        machine: Machine | None = None,
        *,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        by: str = "",
        adopt: str = "",
    ) -> Outcome:
        """Go on with a run where its journal ends.

        `adopt` says why it is to go on although its machine, as it is defined now, would have decided otherwise.
        """
        with self._settings():
            context = self.context(agents, by, performers, adopt)
            return await resuming.resume(context, run, machine)

    async def answer(
        self,
        run: RunId,
        value: Any,
        *,
        question: str | None = None,
        machine: Machine | None = None,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        by: str = "",
        adopt: str = "",
    ) -> Outcome:
        """Answer a question of a waiting run and go on; `adopt` as for `resume`."""
        with self._settings():
            context = self.context(agents, by, performers, adopt)
            return await resuming.answer(context, run, value, question=question, machine=machine)

    async def draft(
        self, run: RunId, fields: Mapping[str, Any], *, question: str, machine: Machine | None = None, by: str = ""
    ) -> Outcome:
        """Keep what was filled in of a form whose other fields are answered later; nothing else happens."""
        with self._settings():
            return await resuming.draft(self.context(person=by), run, fields, question, machine)

    async def send(
        self,
        run: RunId,
        event: Event | str,
        data: Any = None,
        *,
        key: str = "",
        machine: Machine | None = None,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        by: str = "",
    ) -> Outcome:
        """Tell a run an event of its machine's vocabulary from outside and go on; it is refused where none is due.

        An event is given itself, or by its name with its fields. The same `key` twice is told once.
        """
        with self._settings():
            context = self.context(agents, by, performers)
            return await resuming.send(context, run, (event, data), key=key, machine=machine)

    async def cancel(
        self,
        run: RunId,
        reason: str = "asked for by the program",
        *,
        machine: Machine | None = None,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
    ) -> Outcome:
        """Ask a run to stop, wherever it is driven."""
        with self._settings():
            return await resuming.cancel(self.context(agents, performers=performers), run, reason, machine)

    async def retry(
        self,
        run: RunId,
        machine: Machine | None = None,
        *,
        budget: Budget | None = None,
        agents: Functions | None = None,
        performers: OwnPerformers | None = None,
        by: str = "",
    ) -> Outcome:
        """Go on with a run that ended badly, once it is mended; what was answered is not asked again."""
        with self._settings():
            return await retries.retry(self.context(agents, by, performers), run, machine, budget)

    async def fork(
        self,
        run: RunId,
        machine: Machine | None = None,
        *,
        at: int | None = None,
        repeats: forks.Repeats = False,
        budget: Budget | None = None,
        agents: Functions | None = None,
        run_id: RunId | None = None,
    ) -> Outcome:
        """Go another way from an entry of a run on. What the run has done since is not done again unasked.

        Models are asked again. `repeats` says that what agents did may be done again, or everything.
        """
        with self._settings():
            context = self.context(agents)
            origin = await forks.performed_since(context, run, at, machine)
            named = beginning.new_id(origin.machine) if run_id is None else run_id
            return await forks.go_own_way(context, origin, forks.Fork(named, repeats, budget))

    async def watch(self, run: RunId, *, start: int = 0) -> AsyncIterator[Mapping[str, Any] | Said]:
        """The journal of a run from an entry on, each new entry as it comes, and between them what agents say."""
        pieces: asyncio.Queue[Said] = asyncio.Queue()
        with self.heard_by(_Ear(run, pieces)):
            with self._settings():
                store = self.store
            async for news in follow(store, run, start, pieces):
                yield news

    async def list(self, wanted: Wanted | None = None) -> tuple[Summary, ...]:
        """Every run of the store, or those that are wanted, the newest first."""
        with self._settings():
            every = await summaries(self.store)
        return every if wanted is None else tuple(summary for summary in every if wanted.fits(summary))

    async def show(self, run: RunId) -> Shown:
        """One run with its journal."""
        with self._settings():
            return await show(self.store, run)


class _Ear:
    """Hears what agents of one run say."""

    hears = True

    def __init__(self, run: RunId, pieces: asyncio.Queue[Said]) -> None:
        self._run, self._pieces = run, pieces

    def __call__(self, news: News) -> None:
        if isinstance(news, Said) and news.run == self._run:
            self._pieces.put_nowait(news)


def _check_machine(machine: Machine | str, budget: Budget | None) -> Machine:
    """The machine that is named; what cannot be meant is refused before anything begins."""
    if isinstance(machine, str):
        machine = find(machine)
    if not isinstance(machine, Machine):
        raise DefinitionError(f"run takes a Machine, not {machine!r}")
    if budget is not None and not isinstance(budget, Budget):
        raise DefinitionError(f"write budget=Budget(calls=20), not {budget!r}")
    if source := is_loading():
        raise DefinitionError(f"{source} starts a run while it is loaded; {REMEDY}")
    return machine


# The short ways in.


_shared: dict[tuple[str | int, int, int], tuple[Moothall, list[None]]] = {}
"""Those that are at work now, by the store that was named, process and thread, and one None for each who uses it."""


@asynccontextmanager
async def shared_hall(store: str | Store | None) -> AsyncIterator[Moothall]:
    """The Moothall of a store, for as long as somebody uses it."""
    key = store if isinstance(store, str) else id(store), os.getpid(), threading.get_ident()
    hall, users = _shared.setdefault(key, (Moothall(store), []))
    users.append(None)
    try:
        yield hall
    finally:
        users.pop()
        if not users:
            del _shared[key]
            await hall.close()


def run(
    machine: Machine[Any, R],
    data: Any = None,
    *,
    agents: Functions | None = None,
    performers: OwnPerformers | None = None,
    model: str = "",
    budget: Budget | None = None,
    store: str | Store | None = None,
    run_id: RunId | None = None,
    workspace: Given = None,
) -> Outcome[R]:
    """Run a machine to its end, or until it waits for a person. Durable: `moot resume` goes on after a crash."""
    work = arun(
        machine,
        data,
        agents=agents,
        performers=performers,
        model=model,
        budget=budget,
        store=store,
        run_id=run_id,
        workspace=workspace,
    )
    return wait_for(work)


async def arun(
    machine: Machine[Any, R],
    data: Any = None,
    *,
    agents: Functions | None = None,
    performers: OwnPerformers | None = None,
    model: str = "",
    budget: Budget | None = None,
    store: str | Store | None = None,
    run_id: RunId | None = None,
    workspace: Given = None,
) -> Outcome[R]:
    """The same as `run`, for code that is already async."""
    _check_machine(machine, budget)
    async with shared_hall(store) as hall:
        return await hall.run(
            machine,
            data,
            agents=agents,
            performers=performers,
            model=model,
            budget=budget,
            run_id=run_id,
            workspace=workspace,
        )


def resume(
    run: RunId,
    machine: Machine | None = None,
    *,
    agents: Functions | None = None,
    performers: OwnPerformers | None = None,
    store: str | Store | None = None,
) -> Outcome:
    """Go on with a run where its journal ends. The machine is found by itself where it stands in a module."""

    async def work() -> Outcome:
        async with shared_hall(store) as hall:
            return await hall.resume(run, machine, agents=agents, performers=performers)

    return wait_for(work())


def answer(
    run: RunId,
    value: Any,
    machine: Machine | None = None,
    *,
    question: str | None = None,
    agents: Functions | None = None,
    performers: OwnPerformers | None = None,
    store: str | Store | None = None,
    by: str = "",
) -> Outcome:
    """Answer a question of a waiting run and go on. A machine that stands in no module is named."""

    async def work() -> Outcome:
        async with shared_hall(store) as hall:
            return await hall.answer(
                run, value, question=question, machine=machine, agents=agents, performers=performers, by=by
            )

    return wait_for(work())


def fork(
    run: RunId,
    machine: Machine | None = None,
    *,
    at: int | None = None,
    repeats: forks.Repeats = False,
    budget: Budget | None = None,
    agents: Functions | None = None,
    store: str | Store | None = None,
    run_id: RunId | None = None,
) -> Outcome:
    """Go another way from an entry of a run on. What the run has done since is not done again unasked."""

    async def work() -> Outcome:
        async with shared_hall(store) as hall:
            return await hall.fork(run, machine, at=at, repeats=repeats, budget=budget, agents=agents, run_id=run_id)

    return wait_for(work())


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Wait for async work from sync code, also where a loop is already running, as in notebooks."""
    if not _loop_is_running():
        return asyncio.run(work)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as aside:
        waiting = aside.submit(asyncio.run, noted())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for loop, task in begun:
                loop.call_soon_threadsafe(task.cancel)
            wait([waiting])
            raise


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
