"""The life of a world: work under faults, then calm, then everybody is helped to the end, and the truth is told.

For a while everything that the seed has in store happens. Then the faults end, time runs on, and every run must come
to rest; then people do what the runs wait for, and every run must come to its end. What must always be true is looked
at both times.
"""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moothall.errors import MoothallError
from moothall.runtime.hall import with_origin
from moothall.runtime.journal import Run
from moothall.runtime.ports import LEASE, Store, Stored
from moothall.runtime.retry import BAD_ENDS
from tests.runtime.clock import SPEED
from tests.simulation.faults import Fault
from tests.simulation.loop import complete
from tests.simulation.machines import extended, reworded
from tests.simulation.people import People
from tests.simulation.truths import wrongs_of, wrongs_of_child, wrongs_of_records
from tests.simulation.world import EVER, PATIENCE, Place, World

ACTS = (6, 18)
ROUNDS = 40
ON_DISK = 16
"""Every so many worlds one has its store on a disk."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a world ended."""

    seed: int
    wrongs: tuple[str, ...]
    happened: Counter[Fault]
    trace: tuple[str, ...]
    entries: int

    @property
    def digest(self) -> str:
        """The same for the same seed."""
        return hashlib.blake2b("\n".join(self.trace).encode(), digest_size=16).hexdigest()


def world_of(seed: int, folder: Path, connect: Callable[[], Store] | None = None) -> Ended:
    """Let the world of a seed live and end, with the stores that `connect` gives where it is given."""
    world = World(seed, folder / f"{seed}.db" if seed % ON_DISK == 0 else None, connect)
    entries = 0
    try:
        entries = complete(world.loop, _live(world))
    except Exception as error:  # whatever a world breaks with is what is wrong with it; the next one lives all the same
        world.wrongs.append("".join(traceback.format_exception(error)))
    finally:
        world.close()
    return Ended(seed, tuple(world.wrongs), world.fate.happened, tuple(world.fate.trace), entries)


async def _live(world: World) -> int:
    """Everything that happens in a world; the number of entries that its runs leave."""
    people = People(world)
    for _ in range(world.draw.randint(1, 3)):
        world.hire()
    runs = list(world.machines)
    for _ in range(world.draw.randint(*ACTS)):
        if runs and world.draw.random() < 0.8:
            _begin(world, runs.pop())
        else:
            world.draw.choice(_ACTS)(world, people)
        await asyncio.sleep(world.draw.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
    await _calm(world)
    await _rest(world)
    await _tell(world, people)
    await _help(world, people)
    await _tell(world, people)
    await _stop(world)
    return sum([stored.seq + 1 for stored in await world.truth.runs()])


def _door(world: World) -> Place:
    """A process of its own, or one in which a worker is at work."""
    if world.staff and world.draw.random() < 0.3:
        return world.draw.choice(world.staff)
    return world.place("door")


def _begin(world: World, run: str) -> None:
    place = _door(world)
    place.process.start(world.begin(place, run))


def _kill(world: World, people: People) -> None:
    """Somebody dies, now or a few steps later."""
    alive = [place for place in world.places if place.process.alive]
    if not alive:
        return
    process = world.draw.choice(alive).process
    if world.draw.random() < 0.3:
        process.kill()
    else:
        process.last_step = process.steps + world.draw.randint(1, 40)


def _pause(world: World, people: People) -> None:
    """Somebody stands still for longer than a lease."""
    if world.staff:
        process = world.draw.choice(world.staff).process
        process.pause()
        world.fate.note(Fault.WORKER_PAUSED)
        world.loop.call_later(LEASE / SPEED + world.draw.random() * 2, process.wake)


def _hire(world: World, people: People) -> None:
    world.hire()
    world.fate.note(Fault.WORKER_STARTED)


def _dismiss(world: World, people: People) -> None:
    if world.staff:
        world.draw.choice(world.staff).stop.set()
        world.fate.note(Fault.WORKER_STOPPED)


def _jump(world: World, people: People) -> None:
    if world.places:
        jump = world.draw.uniform(-60, 60)
        world.draw.choice(world.places).clock.offset += jump
        world.fate.note(Fault.CLOCK_FORWARD if jump > 0 else Fault.CLOCK_BACK)


def _answer(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.answers(door, world.draw.choice(world.runs)))


def _answer_twice(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.answers_twice(door, world.draw.choice(world.runs)))


def _redirect(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.redirects(door, world.draw.choice(world.runs)))


def _cancel(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.cancels(door, world.draw.choice(world.runs)))


def _retry(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.retries(door, world.draw.choice(world.ledger.ended_badly() or world.runs)))


def _fork(world: World, people: People) -> None:
    door = _door(world)
    door.process.start(people.forks(door, world.draw.choice(world.runs)))


def _redefine(world: World, people: People) -> None:
    """A machine is told in other words, mended, or made to decide otherwise somewhere."""
    name, number = world.draw.choice(list(world.known)), len(world.fate.trace)
    chance = world.draw.random()
    if name in world.mended and chance < 0.5:
        _mend(world, name)
    elif chance < 0.8:
        world.redefine(name, reworded(world.known[name], f"words-{number}"))
        world.fate.note(Fault.REWORDED)
    else:
        world.redefine(name, extended(world.known[name], f"never-{number}"))
        world.fate.note(Fault.EXTENDED)


def _mend(world: World, name: str) -> None:
    """A machine gets the rows that it lacks."""
    world.redefine(name, world.mended.pop(name))
    world.fate.note(Fault.MENDED)


_ACTS: tuple[Callable[[World, People], None], ...] = (
    _kill,
    _kill,
    _pause,
    _hire,
    _dismiss,
    _jump,
    _answer,
    _answer,
    _answer_twice,
    _answer_twice,
    _redirect,
    _redirect,
    _cancel,
    _retry,
    _retry,
    _fork,
    _redefine,
)


async def _calm(world: World) -> None:
    """No more faults: everybody who lives goes on, somebody works, and every run has begun."""
    world.fate.calm = True
    for place in world.places:
        place.process.last_step = 0
        place.process.wake()
    if not world.staff:
        world.hire()
    for run in world.machines:
        if not world.ledger.begun(run):
            place = world.place("door")
            await _done(place, world.begin(place, run))


async def _done(place: Place, work: Coroutine[Any, Any, None]) -> None:
    """Wait until somebody has done something, or died of it."""
    task = place.process.start(work)
    await asyncio.wait([task, place.process.gone], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()


async def _rest(world: World) -> None:
    """Wait until nobody wants attention any more."""
    until = world.loop.time() + PATIENCE
    while awake := await world.truth.due(EVER, 99):
        if world.loop.time() > until:
            world.wrongs.append(f"{', '.join(awake)}: nobody comes to drive it")
            return
        if not world.staff:
            world.hire()
        await asyncio.sleep(0.5)


async def _help(world: World, people: People) -> None:
    """Mend and retry what ended badly, answer every question and end what was set aside, until all is over."""
    for stored in await world.truth.runs():
        if stored.status in BAD_ENDS and world.draw.random() < 0.5:
            if stored.record.machine in world.mended:
                _mend(world, stored.record.machine)
            place = world.place("door")
            await _done(place, people.retries(place, stored.record.run))
            await _rest(world)
    for _ in range(ROUNDS):
        living = [stored.record.run for stored in await world.truth.runs() if _lives(stored)]
        if not living or world.wrongs:
            return
        for run in living:
            place = world.place("door")
            await _done(place, people.help(place, run))
        await asyncio.sleep(0.1)  # whoever has just let go may not be heard yet
        await _rest(world)
    world.wrongs.append("no end comes in sight, however often somebody answers")


def _lives(stored: Stored) -> bool:
    return stored.head["snapshot"]["status"] == "live" or bool(stored.head["pending"])


async def _tell(world: World, people: People) -> None:
    """What is wrong now, unless it was looked at and nothing has happened since."""
    await people.check()
    for stored in await world.truth.runs():
        record = stored.record
        entries = await world.truth.entries(record.run)
        if world.looked_at.get(record.run) != stored.seq:
            run = await with_origin(world.truth, Run(record, world.definitions[stored.definition()]))
            world.wrongs += wrongs_of(run, stored, entries, world.receiver)
            world.wrongs += world.ledger.differs(record.run, entries)
        if record.parent:
            world.wrongs += wrongs_of_child(record, await world.truth.entries(record.parent))
        world.looked_at[record.run] = stored.seq
    world.wrongs += await wrongs_of_records(world.truth, people.found_done)


async def _stop(world: World) -> None:
    """Everybody stops; when a lease has passed, whoever lives holds nothing and has raised nothing strange."""
    for worker in world.workers:
        worker.stop.set()
    await asyncio.sleep(5 * LEASE / SPEED)
    for stored in await world.truth.runs():
        run = stored.record.run
        world.fate.say(f"{run} is {stored.status} after entry {stored.seq}")
        holders = [place for place in world.places if place.hall.owner == stored.lease.owner and place.process.alive]
        if holders and stored.lease.until >= holders[0].clock.now():
            world.wrongs.append(f"{run}: {holders[0].process.name} has stopped and still holds it")
    if world.loop.circles:
        world.wrongs.append("somebody went in circles")
    for task in world.loop.unfinished():
        world.wrongs.append(f"somebody is still at work: {task}")
    for error in world.loop.faults():
        if not isinstance(error, MoothallError):
            world.wrongs.append("".join(traceback.format_exception(error)))
