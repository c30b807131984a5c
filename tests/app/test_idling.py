"""When a worker may go home. How it behaves at work is tried with real processes, in the tests of the command."""

import asyncio

import pytest

from moothall import Final, Machine, On, State
from moothall.app.runs.context import SystemClock
from moothall.app.runs.idle import wait_for_end
from moothall.errors import EffectFailed
from moothall.kernel.effects import Alarm
from moothall.kernel.events import Expired
from moothall.kernel.step import Snapshot
from moothall.runtime.crew import Crew
from moothall.runtime.drive import Drive
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Head, Pending, Record, Run
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore

NAP = Machine("nap", states=[State("napping"), Final("awake")], moves=[On("napping", Expired, to="awake")])


class Faltering(MemoryStore):
    """A store that is out of reach at first."""

    looks = 0

    async def owners(self) -> list[str]:
        self.looks += 1
        if self.looks <= 3:
            raise EffectFailed("the store could not be read")
        return await super().owners()


def quick_hall(store: Store) -> Hall:
    """A hall that looks for work a hundred times a second."""
    return Hall(store, SystemClock(), {}, crew=Crew(interval=0.01))


@pytest.mark.anyio
async def test_a_store_out_of_reach_is_not_mistaken_for_one_with_nothing_to_do() -> None:
    store, stop = Faltering(), asyncio.Event()
    left = await asyncio.wait_for(wait_for_end(quick_hall(store), stop, {}), 10)
    assert (left, stop.is_set(), store.looks) == (0, True, 5)


@pytest.mark.anyio
@pytest.mark.parametrize(("seconds", "stays"), [(0, True), (10, True), (3600, False)])
async def test_a_worker_stays_for_what_comes_soon_and_not_for_what_is_far_off(seconds: float, stays: bool) -> None:
    hall, stop = quick_hall(MemoryStore()), asyncio.Event()
    rings = Pending("0.0", Alarm(Expired(), seconds), due=hall.clock.now() + seconds)
    known = hall.remember("mine")
    known.run = Run(Record("mine", NAP.name, NAP.digest, hall.clock.now()), NAP)
    known.head = Head(0, Snapshot(("napping",), None), (rings,))
    hall.crew.drives["mine"] = Drive(hall, "mine")
    ending = asyncio.create_task(wait_for_end(hall, stop, {}))
    await asyncio.wait([ending], timeout=0.3)
    assert ending.done() is not stays
    stop.set()
    assert await ending == 1


@pytest.mark.anyio
async def test_without_being_asked_a_worker_never_goes_home_by_itself() -> None:
    store, stop = Faltering(), asyncio.Event()
    ending = asyncio.create_task(wait_for_end(quick_hall(store), stop, None))
    await asyncio.sleep(0.05)
    assert (ending.done(), store.looks) == (False, 0)
    stop.set()
    assert await ending == 0
