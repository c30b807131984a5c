"""A worker drives every run of a store that wants attention, and shares them with other workers."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import DefinitionError
from moothall.kernel.effects import Send
from moothall.kernel.events import Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.hall import Hall, begin, leave, let_go, reopen
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import LEASE, Context, Gone, Store
from moothall.runtime.serve import REST, serve
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import MovableClock
from tests.runtime.world import QUICK, Basket, Fetch, Fetched, Hands, asking, hall_of, line

SOON = 20.0
LATER = Machine(
    "later",
    data=Basket,
    states=[State("waiting", enter=Send(Named("rung"), 60)), Final("awake")],
    moves=[On("waiting", "rung", to="awake")],
)
GREEDY = Machine(
    "greedy",
    data=Basket,
    states=[State("fetching", enter=Fetch("gold")), Final("home")],
    moves=[On("fetching", Fetched, to="home", do=lambda basket, _: Basket((2**70,)))],  # type: ignore[arg-type]
)
TWO = line("bread", "milk")
MACHINES = {machine.name: machine for machine in (LATER, GREEDY, TWO, asking(within=60))}


async def left(store: Store, clock: MovableClock, run: RunId, machine: Machine) -> None:
    """A run that somebody began and left."""
    hall = hall_of(Hands(), store, clock)
    await begin(hall, Record(run, machine.name, machine.digest, clock.now()), machine, Basket())
    await let_go(hall, run)
    leave(hall, run)


def opening(hall: Hall) -> Callable[[RunId], Awaitable[object]]:
    async def open_run(run: RunId) -> None:
        machine = MACHINES.get((await hall.store.load(run)).record.machine)
        if machine is None or run.startswith("strange"):
            raise DefinitionError(f"nobody knows the machine of {run}")
        await reopen(hall, run, machine)

    return open_run


@asynccontextmanager
async def serving(*halls: Hall, most: int = 100) -> Any:
    """Workers at work; stopped and gone at the end."""
    stop = asyncio.Event()
    working = [asyncio.create_task(serve(hall, opening(hall), stop, most)) for hall in halls]
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(SOON):
            await asyncio.gather(*working)


async def until_status(store: Store, status: str, *runs: RunId) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if {(await store.load(run)).status for run in runs} == {status}:
                return
            await asyncio.sleep(QUICK)


@pytest.mark.anyio
async def test_a_worker_drives_all_runs_that_are_due(store: SqliteStore) -> None:
    clock, hands = MovableClock(), Hands()
    runs = [f"run-{number}" for number in range(7)]
    for run in runs:
        await left(store, clock, run, TWO)
    async with serving(hall_of(hands, store, clock, pulse=QUICK), most=3):
        await until_status(store, "done", *runs)
    assert Counter(hands.asked) == {"bread": 7, "milk": 7}


@pytest.mark.anyio
async def test_a_run_that_begins_later_is_driven_too(store: SqliteStore, file: Path) -> None:
    clock, elsewhere = MovableClock(), SqliteStore(file)
    async with serving(hall_of(Hands(), store, clock, pulse=QUICK)):
        await left(elsewhere, clock, "late", TWO)
        await until_status(store, "done", "late")
    assert (await elsewhere.load("late")).status == "done"
    elsewhere.close()


@pytest.mark.anyio
async def test_a_worker_rings_timers_and_ends_overdue_questions_when_their_time_has_come(store: SqliteStore) -> None:
    clock = MovableClock()
    await left(store, clock, "timer", LATER)
    await left(store, clock, "question", MACHINES["asking"])
    async with serving(hall_of(Hands(), store, clock, pulse=QUICK)):
        await left(store, clock, "marker", TWO)
        await until_status(store, "done", "marker")
        await until_status(store, "live", "timer", "question")
        clock.move(61)
        await until_status(store, "done", "timer", "question")
    assert [entry["event"]["name"] for entry in await store.entries("timer")] == ["run.started", "rung"]
    assert [entry["to"] for entry in await store.entries("question")] == [["asking"], ["expired"]]


@pytest.mark.anyio
@pytest.mark.parametrize("most", [1, 100])
async def test_a_run_that_cannot_be_opened_is_left_alone_and_does_not_stop_the_others(
    store: SqliteStore, most: int
) -> None:
    clock, tried = MovableClock(), list[str]()
    for run in ("strange-1", "strange-2", "good-1", "good-2"):
        await left(store, clock, run, TWO)
    hall = hall_of(Hands(), store, clock, pulse=QUICK)
    inner, stop = opening(hall), asyncio.Event()

    async def open_run(run: RunId) -> None:
        tried.append(run)
        await inner(run)

    working = asyncio.create_task(serve(hall, open_run, stop, most))
    await until_status(store, "done", "good-1", "good-2")
    assert Counter(tried) == {"strange-1": 1, "strange-2": 1, "good-1": 1, "good-2": 1}
    async with asyncio.timeout(SOON):
        while Counter(tried)["strange-1"] < 2:
            clock.move(REST + 1)
            await asyncio.sleep(QUICK)
    stop.set()
    await working
    assert {(await store.load(run)).status for run in ("strange-1", "strange-2")} == {"live"}


@pytest.mark.anyio
async def test_a_worker_that_stops_lets_go_of_every_run(store: SqliteStore) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    runs = [f"run-{number}" for number in range(5)]
    for run in runs:
        await left(store, clock, run, TWO)
    hall = hall_of(hands, store, clock, pulse=QUICK)
    async with serving(hall):
        await hands.wait_for_calls(5)
        assert {(await store.load(run)).lease.owner for run in runs} == {hall.owner}
    assert {(await store.load(run)).lease.owner for run in runs} == {""}
    assert {(await store.load(run)).lease.crashes for run in runs} == {0}
    assert sorted(await store.due(clock.now(), 10)) == runs
    assert (hall.runs, hall.crew.drives, store.crowd) == ({}, {}, 0)


@pytest.mark.anyio
async def test_a_worker_that_stops_in_the_middle_of_commits_lets_go_of_every_run(store: SqliteStore) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread", "milk")
    runs = [f"run-{number}" for number in range(5)]
    for run in runs:
        await left(store, clock, run, TWO)
    async with serving(hall_of(hands, store, clock, pulse=QUICK)):
        await hands.wait_for_calls(5)
        hands.open("bread")
        for _ in range(1_000):
            if store._writing._waiting:
                break
            await asyncio.sleep(0)
        assert store._writing._waiting
    stored = [await store.load(run) for run in runs]
    assert {one.lease.owner for one in stored} == {""}
    assert {len(await store.entries(run)) for run in runs} == {2}


@pytest.mark.anyio
async def test_a_worker_takes_over_what_another_left_without_a_word_once_it_is_overdue(store: SqliteStore) -> None:
    clock = MovableClock()
    gone = hall_of(Hands(), store, clock, pulse=QUICK)
    await begin(gone, Record("lost", TWO.name, TWO.digest, clock.now()), TWO, Basket())
    async with serving(hall_of(Hands(), store, clock, pulse=QUICK)):
        clock.move(LEASE + 1)
        await until_status(store, "done", "lost")
    assert (await store.load("lost")).status == "done"


@pytest.mark.anyio
async def test_two_workers_share_thirty_runs_and_perform_nothing_twice(store: SqliteStore, file: Path) -> None:
    clock, elsewhere, performed = MovableClock(), SqliteStore(file, durability="normal"), list[str]()

    async def fetch(effect: Fetch, context: Context) -> Event:
        performed.append(context.key)
        await asyncio.sleep(QUICK / 10)
        return Fetched(effect.what)

    runs = [f"run-{number:02}" for number in range(30)]
    for run in runs:
        await left(store, clock, run, TWO)
    halls = [hall_of(fetch, store, clock, pulse=QUICK), hall_of(fetch, elsewhere, clock, pulse=QUICK)]
    for number, hall in enumerate(halls):
        hall.owner = f"{socket.gethostname()}:{os.getpid()}:{number}"
    async with serving(*halls, most=8):
        await until_status(store, "done", *runs)
    assert sorted(performed) == sorted(f"{run}.{seq}.0" for run in runs for seq in (0, 1))
    for run in runs:
        assert [entry["cause"] for entry in await elsewhere.entries(run)] == ["start", "0.0", "1.0"]
    elsewhere.close()


@pytest.mark.anyio
async def test_runs_begin_while_others_are_committed_in_groups(store: SqliteStore) -> None:
    clock, hands = MovableClock(), Hands()
    runs = [f"run-{number:02}" for number in range(20)]
    hall = hall_of(hands, store, clock, pulse=QUICK)
    async with serving(hall):
        for run in runs:
            await left(store, clock, run, TWO)
            await asyncio.sleep(0)
        await until_status(store, "done", *runs)
    assert len(hands.calls) == 40


@pytest.mark.anyio
async def test_a_run_whose_next_step_cannot_be_kept_is_set_aside_and_not_paid_for_again(store: SqliteStore) -> None:
    clock, hands = MovableClock(), Hands()
    await left(store, clock, "greedy", GREEDY)
    async with serving(hall_of(hands, store, clock, pulse=QUICK)):
        await until_status(
            store, "set aside: a value of the run cannot be stored as JSON: Integer exceeds 64-bit range", "greedy"
        )
        clock.move(REST + 1)
        await left(store, clock, "modest", TWO)
        await until_status(store, "done", "modest")
    assert hands.asked == ["gold", "bread", "milk"]


@pytest.mark.anyio
async def test_a_worker_ends_when_the_file_of_its_store_is_taken_away(store: SqliteStore, file: Path) -> None:
    clock = MovableClock()
    await left(store, clock, "one", TWO)
    hall = hall_of(Hands(), store, clock, pulse=QUICK)
    os.unlink(file)
    async with asyncio.timeout(SOON):
        with pytest.raises(Gone):
            await serve(hall, opening(hall), asyncio.Event())
