"""Runs that are left to workers: by queue, by priority, by turns between tenants; and how a worker says how it is."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from moothall import Final, Machine, Moothall, On, Returned, State, call
from moothall.app.runs import view
from moothall.app.runs.worker import Duty, work
from moothall.errors import EffectFailed
from moothall.runtime.journal import Lane
from moothall.runtime.ports import Scope

SEEN: list[str] = []


@dataclass(frozen=True)
class Task:
    name: str


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # nobody tells of it
            await asyncio.sleep(0.01)


async def perform(name: str) -> str:
    SEEN.append(name)
    if name == "slow":
        await wait_until(lambda: "go" in SEEN)
    return name


TASK = Machine(
    "task",
    data=Task,
    states=[State("working", enter=call(perform, "name")), Final("over")],
    moves=[On("working", Returned, to="over")],
)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def hall(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Moothall]:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    SEEN.clear()
    address = "memory" if request.param == "memory" else f"sqlite:{tmp_path / 'runs.db'}"
    if request.param == "postgresql":
        address = request.getfixturevalue("database")
    async with Moothall(address, listeners=()) as hall:
        yield hall


async def worked(hall: Moothall, **duty: object) -> None:
    await asyncio.wait_for(work(hall.context(), asyncio.Event(), Duty(until_idle=True, **duty)), 120)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_five_tasks_of_a_small_tenant_among_sixty_of_a_large_one_are_among_the_first_fifteen(
    hall: Moothall,
) -> None:
    for number in range(60):
        await hall.submit(TASK, Task(f"large {number}"), tenant="large")
    for number in range(5):
        await hall.submit(TASK, Task(f"small {number}"), tenant="small")
    await worked(hall, most=1 if hall.address == "memory" else 3)
    places = [place for place, name in enumerate(SEEN, 1) if name.startswith("small")]
    assert len(SEEN) == 65
    assert len(places) == 5
    assert max(places) <= 15


@pytest.mark.anyio
async def test_a_worker_takes_its_own_queues_and_tenants_and_the_higher_priority_first(hall: Moothall) -> None:
    for name, queue, tenant, priority in (
        ("low", "night", "ann", 0),
        ("high", "night", "ann", 9),
        ("other queue", "day", "ann", 99),
        ("other tenant", "night", "ben", 99),
    ):
        await hall.submit(
            TASK, Task(name), run_id=name.replace(" ", "-"), queue=queue, tenant=tenant, priority=priority
        )
    assert (await hall.store.load("high")).record.lane == Lane("night", "ann", 9)
    due = await hall.store.due(1e12, 9)
    assert (sorted(due[:2]), due[2:]) == (["other-queue", "other-tenant"], ["high", "low"])
    assert await hall.store.due(1e12, 9, (), Scope(("day",))) == ["other-queue"]
    await worked(hall, most=1, queues=("night",), tenants=("ann",))
    assert SEEN == ["high", "low"]


@pytest.mark.anyio
async def test_a_worker_that_drains_takes_up_no_more_and_lets_what_is_under_way_end(hall: Moothall) -> None:
    stop = asyncio.Event()
    await hall.submit(TASK, Task("slow"), run_id="slow")
    working = asyncio.create_task(work(hall.context(), stop, Duty(drain=60)))
    await wait_until(lambda: "slow" in SEEN)
    stop.set()
    await hall.submit(TASK, Task("late"), run_id="late")
    done, _ = await asyncio.wait([working], timeout=1)
    assert not done
    SEEN.append("go")
    assert await asyncio.wait_for(working, 60) == 0
    assert (await hall.store.load("slow")).status == "done"
    assert (await hall.store.load("late")).status == "live"
    assert "late" not in SEEN


@pytest.mark.anyio
async def test_what_does_not_come_to_rest_in_time_is_let_go_of(hall: Moothall) -> None:
    stop = asyncio.Event()
    await hall.submit(TASK, Task("slow"), run_id="slow")
    working = asyncio.create_task(work(hall.context(), stop, Duty(drain=0.2)))
    await wait_until(lambda: "slow" in SEEN)
    stop.set()
    assert await asyncio.wait_for(working, 60) == 1
    stored = await hall.store.load("slow")
    assert (stored.status, stored.lease.owner) == ("live", "")


async def begin_old(hall: Moothall, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs that ended; from now on it is 31 days later for whoever looks for old ones."""
    for name in names:
        await hall.run(TASK, Task(name), run_id=name)
    monkeypatch.setattr(view, "time", SimpleNamespace(time=lambda: time.time() + 31 * 86_400))


async def kept(hall: Moothall) -> list[str]:
    return sorted(stored.record.run for stored in await hall.store.runs())


@pytest.mark.anyio
async def test_a_worker_deletes_old_runs_from_time_to_time_where_that_is_set(
    hall: Moothall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_PRUNE", "30")
    await begin_old(hall, ("one", "two"), monkeypatch)
    stop, notices = asyncio.Event(), list[str]()
    context = hall.context()
    monkeypatch.setattr(type(context.broadcast), "notice", lambda broadcast, text: notices.append(text))
    working = asyncio.create_task(work(context, stop, Duty(prune_every=0.05)))
    await wait_until(lambda: len(notices) == 1)
    assert await kept(hall) == []
    await hall.run(TASK, Task("three"), run_id="three")  # the next look finds it
    await wait_until(lambda: len(notices) == 2)
    assert await kept(hall) == []
    stop.set()
    await working
    assert notices == [f"deleted {runs} that ended more than 30 days ago" for runs in ("2 runs", "1 run")]


@pytest.mark.anyio
@pytest.mark.parametrize("days", ["", "32"], ids=["off until it is set", "not old enough"])
async def test_a_worker_deletes_nothing_else(hall: Moothall, days: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_PRUNE", days)
    await begin_old(hall, ("one",), monkeypatch)
    await hall.submit(TASK, Task("two"), run_id="two")
    await worked(hall, prune_every=0.01)
    assert await kept(hall) == ["one", "two"]


def fetched(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def first_word(port: int, working: asyncio.Task[int]) -> tuple[int, str]:
    """What a worker says as soon as it listens; why it never will, if it ended."""
    while not working.done():
        try:
            return await asyncio.to_thread(fetched, port, "/health")
        except urllib.error.URLError:
            await asyncio.sleep(0.01)
    raise AssertionError(f"the worker ended: {working.exception() or working.result()}")


async def out_of_reach() -> list[str]:
    raise EffectFailed("the disk is gone")


@pytest.mark.anyio
async def test_a_worker_says_how_it_is_and_that_its_store_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with Moothall(f"sqlite:{tmp_path / 'runs.db'}", listeners=()) as hall:
        stop = asyncio.Event()
        working = asyncio.create_task(work(hall.context(), stop, Duty(health=port)))
        await hall.submit(TASK, Task("one"), run_id="one")
        await hall.wait("one")
        async with asyncio.timeout(10):
            status, told = await first_word(port, working)
        assert (status, json.loads(told)["status"]) == (200, "ok")
        status, told = await asyncio.to_thread(fetched, port, "/metrics")
        assert "moothall_worker_store_up 1" in told
        assert (await asyncio.to_thread(fetched, port, "/else"))[0] == 404
        monkeypatch.setattr(hall.store, "owners", out_of_reach)
        status, told = await asyncio.to_thread(fetched, port, "/health")
        assert (status, json.loads(told)["status"]) == (503, "the store is out of reach: the disk is gone")
        status, told = await asyncio.to_thread(fetched, port, "/metrics")
        assert "moothall_worker_store_up 0" in told
        stop.set()
        await asyncio.gather(working, return_exceptions=True)
