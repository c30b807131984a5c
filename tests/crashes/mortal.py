"""Lives of processes that die at a point, on one file that outlives them.

The points are found, not listed: before and after every write of the store, and before and after every effect that is
performed. A first life passes all of them and counts them; other lives die at the k-th. Who dies runs not a single line
more: no `finally`, no release; only the file and the world outside remain.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.errors import Refused
from moothall.kernel.effects import Effect
from moothall.kernel.events import Adopted, Delivered, Event, Exhausted, Mark, Retried
from moothall.kernel.machine import Machine
from moothall.runtime.adopt import Insistence
from moothall.runtime.drive import MARKED, drive
from moothall.runtime.hall import Bindings, ChildSpec, Hall, begin, leave, let_go, reopen, with_origin
from moothall.runtime.journal import Head, Reader, Record, Run, RunId
from moothall.runtime.ports import Context, Performer, Store
from moothall.runtime.rebuild import rebuilt
from moothall.runtime.serve import serve
from tests.runtime.clock import FastClock
from tests.runtime.world import PROCESSES, RUN, machine_limits
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.shim import READS, Given, StoreShim

EVER = 1e12
OTHER = "other"
"""A second run beside the first."""
Told = Mapping[RunId, Sequence[Mapping[str, Any]]]
CHANGE = "change"
"""The deed of an author who has changed the machine meanwhile."""


class Cut(BaseException):
    """The process is dead; whatever it still calls is not there."""


class Points:
    """The points that a life passes; at the deadly one its process dies."""

    def __init__(self, process: Process, deadly: int) -> None:
        self.passed: list[str] = []
        self._process, self._deadly = process, deadly

    async def at(self, name: str) -> None:
        """Pass a point, or die there."""
        if not self._process.alive:
            raise Cut
        self.passed.append(name)
        if len(self.passed) == self._deadly:
            self._process.kill()
            await asyncio.sleep(0)


class MortalStore(StoreShim):
    """A store whose every write has a point before it and one after it."""

    def __init__(self, inner: Store, points: Points, kept: dict[RunId, int]) -> None:
        super().__init__(inner)
        self._points, self._kept = points, kept

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if name in READS:
            return await call()
        await self._points.at(f"before {name}")
        result = await call()
        if name in ("begin", "commit"):
            run = given["record"].run if name == "begin" else given["run"]
            self._kept[run] = given["entry"].seq
        await self._points.at(f"after {name}")
        return result


class Desk:
    """The world outside. It honours keys: it does what it is asked once, and says the same again for the same key.

    What is checked first or may be done at most once is done as often as it is asked for: that is up to the runtime.
    """

    def __init__(self) -> None:
        self.done: dict[str, tuple[Effect, Event]] = {}
        self.asked: Counter[str] = Counter()
        self.settled: set[str] = set()
        self.register: dict[str, list[Any]] = {}

    async def take(self, perform: Callable[..., Awaitable[Event]], effect: Effect, context: Context) -> Event:
        """Do this, unless it was done. Nobody asks for what the journal knew the end of when the process began."""
        assert context.key not in self.settled, f"{context.key} is performed again though its end is in the journal"
        self.asked[context.key] += 1
        if context.key not in self.done or effect.repeats in MARKED:
            self.done[context.key] = (effect, await perform(effect, context))
        first, event = self.done[context.key]
        assert first == effect, f"{context.key} stands for {first} and for {effect}"
        return event

    def enter(self, key: str, what: Any) -> Any:
        """Do something that must not be done twice."""
        self.register.setdefault(key, []).append(what)
        return what

    def mortal(self, performer: Performer, points: Points) -> Performer:
        """A performer that works at this desk, with a point before it begins and one when it has done its part."""

        async def perform(effect: Effect, context: Context) -> Event:
            await points.at(f"before {effect.kind}")
            event = await self.take(performer.perform, effect, context)
            await points.at(f"after {effect.kind}")
            return event

        return Performer(performer.effect, perform)

    def staffed(self, bindings: Bindings, points: Points) -> Bindings:
        """A cast that works at this desk, with the children that it may start."""

        def child(name: str) -> ChildSpec:
            part = bindings.child(name)
            return replace(part, bindings=self.staffed(part.bindings, points))

        performers = {kind: self.mortal(performer, points) for kind, performer in bindings.performers.items()}
        return Bindings(performers, bindings.effects, child)


desk_here: ContextVar[Desk] = ContextVar("desk")
"""The desk of the life that is being lived, for tools that do something at it."""


@dataclass(frozen=True)
class Scenario:
    """A machine, who performs its effects, and the story of a life with it.

    A story is told again from its beginning in the next life, and must be one that can be: it opens what is there,
    and its people say the same thing again.
    """

    name: str
    machine: Machine
    story: Callable[[Life], Awaitable[None]]
    bindings: Bindings
    data: Any
    others: Mapping[RunId, Machine] = field(default_factory=dict)
    same: Callable[[Told], Any] | None = None
    """What of the journals is the same whoever died; None where they tell nothing of a death at all."""
    later: Machine | None = None
    """What the author has made of the machine meanwhile, where the story says so."""
    insisted: Insistence | None = None
    """Who wants the run to go on under that machine though it would have decided otherwise."""

    def machine_after(self, run: RunId, entries: Sequence[Mapping[str, Any]]) -> Machine:
        """The machine of a run whose journal says this: the later one, once it has adopted or retried the run."""
        changed = any(entry["event"]["name"] in (Adopted.name, Retried.name) for entry in entries)
        return self.later if self.later and changed and run == RUN else self.runs[run]

    @property
    def runs(self) -> dict[RunId, Machine]:
        """Every run of the scenario and its machine."""
        return {RUN: self.machine, **self.others}

    def cast_of(self, run: RunId) -> Bindings:
        """Who performs the effects of a run."""
        if run in (RUN, OTHER):
            return self.bindings
        return self.bindings.child(self.runs[run].name).bindings


@dataclass
class Stage:
    """What outlives every process: the file, the world outside, and the time."""

    scenario: Scenario
    open_store: Callable[[], Store]
    """The store as a new process finds it."""
    loop: VirtualLoop
    serving: bool = False
    desk: Desk = field(default_factory=Desk)
    acknowledged: dict[RunId, int] = field(default_factory=dict)
    deaths: int = 0
    told: Told = field(default_factory=dict)
    """What the journals say after the latest life."""
    done_once: set[str] = field(default_factory=set)

    def machine(self, run: RunId) -> Machine:
        """The machine of a run as its author has it now."""
        later = self.scenario.later if run == RUN and CHANGE in self.done_once else None
        return later or self.scenario.runs[run]

    def once(self, deed: str) -> bool:
        """Whether this is the first time in all lives that somebody does this."""
        first = deed not in self.done_once
        self.done_once.add(deed)
        return first

    async def live(self, deadly: int = 0) -> list[str]:
        """One life, which ends well or dies at a point; the points that it passed."""
        life = Life(self, deadly)
        telling = life.process.start(_told(life))
        await asyncio.wait([telling, life.process.gone], return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
        self.deaths += not life.process.alive
        self.told = await journals(self.scenario, life.kept)
        life.kept.close()
        self._look()
        return life.points.passed

    def _look(self) -> None:
        """What was acknowledged is in the file; what the file knows the end of is not performed again."""
        for run, entries in self.told.items():
            assert len(entries) > self.acknowledged.get(run, -1), f"{run}: an acknowledged transition is lost"
            ended = [entry for entry in entries if entry["event"]["name"] != Exhausted.name]  # that was not performed
            self.desk.settled |= {f"{run}.{entry['cause']}" for entry in ended}


async def _told(life: Life) -> None:
    await life.stage.scenario.story(life)


class Life:
    """One process on the file of its stage."""

    def __init__(self, stage: Stage, deadly: int) -> None:
        self.stage = stage
        self.process = Process(f"life-{stage.deaths}", stage.loop)
        self.points = Points(self.process, deadly)
        self.kept = stage.open_store()
        store: Any = MortalStore(self.kept, self.points, stage.acknowledged)
        self.hall = Hall(store, FastClock(stage.loop), {}, owner=next(PROCESSES), opener=self.opened)
        self.process.bind(desk_here, stage.desk)

    async def opened(self, run: RunId = RUN) -> Head:
        """Open a run, or begin it where the file does not have it."""
        scenario, clock = self.stage.scenario, self.hall.clock
        machine = self.stage.machine(run)
        self.staff(run)
        try:
            return await reopen(self.hall, run, machine, insisted=scenario.insisted)
        except Refused:
            record = Record(run, machine.name, machine.digest, clock.now(), limits=machine_limits(machine))
            return await begin(self.hall, record, machine, self.stage.scenario.data)

    def staff(self, run: RunId) -> None:
        """Have somebody here who performs the effects of a run."""
        self.hall.bind(run, self.stage.desk.staffed(self.stage.scenario.cast_of(run), self.points))

    async def driven(self, *runs: RunId) -> None:
        """Drive runs as far as they go: by hand, or as a worker that is told of none of them."""
        runs = runs or (RUN,)
        if not self.stage.serving:
            await asyncio.gather(*(drive(self.hall, run) for run in runs))
            for run in await self.kept.due(EVER, 99):
                await self.opened(run)
                await drive(self.hall, run)
            return
        for run in runs:
            await let_go(self.hall, run)
            leave(self.hall, run)
        stop = asyncio.Event()
        working = asyncio.create_task(serve(self.hall, self.opened, stop))
        await self._wait_for_rest()
        stop.set()
        await working
        for run in runs:
            await self.opened(run)

    async def _wait_for_rest(self) -> None:
        while True:
            if not await self.kept.due(EVER, 99):
                return
            await asyncio.sleep(0.5)


async def journals(scenario: Scenario, store: Store) -> Told:
    """What the journals of a scenario say, without times; and their heads are those that they give."""
    told = {}
    for run in scenario.runs:
        entries = await store.entries(run)
        machine, performers = scenario.machine_after(run, entries), scenario.cast_of(run).performers
        reader = Reader(machine, {kind: one.effect for kind, one in performers.items()})
        told[run] = [_timeless(entry) for entry in entries]
        if entries and (stored := await store.load(run)).head:
            known = await with_origin(store, Run(stored.record, machine))
            assert rebuilt(known, reader, entries) == reader.head(stored.head)
    return told


def _timeless(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without its time and the due times of what it wants; everything else must be the same in any life."""
    effects = [{name: value for name, value in one.items() if name != "due"} for one in entry["effects"]]
    return {name: value for name, value in entry.items() if name != "at"} | {"effects": effects}


def unmarked(told: Told) -> Any:
    """Journals without marks, and without the numbers that depend on how many of them there are."""
    return {run: [_unnumbered(entry) for entry in entries if not _is_mark(entry)] for run, entries in told.items()}


def unretried(told: Told) -> Any:
    """Journals without marks and without notes of retries."""
    kept = {run: [one for one in entries if one["event"]["name"] != Retried.name] for run, entries in told.items()}
    return unmarked(kept)


def ends(told: Told) -> Any:
    """Where journals end."""
    return {run: entries[-1]["to"] for run, entries in told.items()}


def _is_mark(entry: Mapping[str, Any]) -> bool:
    name: str = entry["event"]["name"]
    return name.startswith(Mark.name + ".") and name != Delivered.name


def _unnumbered(entry: Mapping[str, Any]) -> dict[str, Any]:
    effects = [{name: value for name, value in one.items() if name != "key"} for one in entry["effects"]]
    return {name: value for name, value in entry.items() if name not in ("seq", "cause")} | {"effects": effects}
