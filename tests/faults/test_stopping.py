"""A run can be cancelled and its process stopped at any moment: it ends or goes on, and nothing is half-written."""

import asyncio
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import On
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, cancel, reopen
from moothall.runtime.journal import Reader
from moothall.runtime.ports import Context
from moothall.runtime.rebuild import rebuilt
from moothall.stores.sqlite import SqliteStore
from tests.faults.machines import STEPS
from tests.faults.place import RUN, Place, check_whole, wait_for
from tests.faults.walks import left, statuses
from tests.runtime.clock import MovableClock
from tests.runtime.world import QUICK, Fetch, Fetched, Hands, begun, fan, hall_of, line
from tests.runtime.world import RUN as TRIAL

pytestmark = pytest.mark.slow

STOPS = ("a", "b", "c", "d", "e")
LINE, FAN = line(*STOPS), fan(*STOPS, moves=[On("fetching", "error")])
ALIVE = f"{socket.gethostname()}:{os.getpid()}"
SOON = 10.0
STOPPED = 1
CANCELLED = 8
CROWD = 20


@asynccontextmanager
async def two_halls(file: Path, hands: Callable[..., Awaitable[Event]]) -> AsyncIterator[tuple[Hall, Hall]]:
    """One hall that drives and one that cancels, on the same file, both alive."""
    stores = [SqliteStore(file, durability="normal") for _ in range(2)]
    halls = [hall_of(hands, store, MovableClock(), pulse=QUICK) for store in stores]
    for word, hall in zip(("one", "other"), halls, strict=True):
        hall.owner = f"{ALIVE}:{word}"
    yield halls[0], halls[1]
    for store in stores:
        store.close()


async def cancelled_by(hall: Hall, machine: Machine) -> None:
    await reopen(hall, TRIAL, machine)
    await cancel(hall, TRIAL, "enough", "stop-1")


async def check_cancelled(hall: Hall, machine: Machine) -> list[str]:
    """The run is over, nobody holds it, its journal says the same as its head; the names of its events."""
    stored, entries = await hall.store.load(TRIAL), await hall.store.entries(TRIAL)
    check_whole(entries)
    assert (stored.status, stored.lease.owner, stored.lease.crashes) == ("cancelled", "", 0)
    head = await reopen(hall, TRIAL, machine)
    assert (head.seq, head.pending) == (len(entries) - 1, ())
    assert rebuilt(hall.runs[TRIAL].run, Reader(machine, hall.effects(TRIAL)), entries) == head
    return [entry["event"]["name"] for entry in entries]


@pytest.mark.anyio
async def test_a_run_that_nobody_drives_is_cancelled_after_any_entry(tmp_path: Path, figure: list[str]) -> None:
    for seq, stop in enumerate(STOPS):
        hands = Hands()
        async with two_halls(tmp_path / f"{seq}.db", hands) as (one, other):
            hands.shut(stop)
            await begun(one, LINE)
            driving = asyncio.create_task(drive(one, TRIAL))
            await hands.wait_for_calls(seq + 1)
            driving.cancel()
            await asyncio.wait([driving])
            await cancelled_by(other, LINE)
            assert await check_cancelled(one, LINE) == ["run.started", *["fetched"] * seq, "run.cancelled"]
            assert (await drive(one, TRIAL)).snapshot.status == "cancelled"
    figure.append(f"cancelled between entries at {len(STOPS)} of {len(STOPS)} places: 0 half-written")


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [LINE, FAN], ids=["in place", "in tasks"])
async def test_a_run_is_cancelled_in_the_middle_of_any_effect(
    tmp_path: Path, machine: Machine, figure: list[str]
) -> None:
    for position, stop in enumerate(STOPS):
        hands = Hands()
        async with two_halls(tmp_path / f"{stop}.db", hands) as (one, other):
            hands.shut(stop)
            await begun(one, machine)
            driving = asyncio.create_task(drive(one, TRIAL))
            before = position if machine is LINE else len(STOPS) - 1
            await hands.wait_for_calls(before + 1)
            await until(one, before)
            await cancelled_by(other, machine)
            async with asyncio.timeout(SOON):
                assert (await driving).snapshot.status == "cancelled"
            assert await check_cancelled(one, machine) == ["run.started", *["fetched"] * before, "run.cancelled"]
            assert hands.stopped == [stop]
    figure.append(f"cancelled in the middle of {len(STOPS)} of {len(STOPS)} effects of {machine.name}: 0 half-written")


async def until(hall: Hall, seq: int) -> None:
    """Come back when the run has this entry."""
    async with asyncio.timeout(SOON):
        while True:
            if await hall.store.seq(TRIAL) >= seq:
                return
            await asyncio.sleep(0.001)


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [LINE, FAN], ids=["in place", "in tasks"])
async def test_a_result_that_comes_after_the_cancel_is_kept_and_does_nothing(
    tmp_path: Path, machine: Machine, figure: list[str]
) -> None:
    for position, stop in enumerate(STOPS):

        async def fetch(effect: Fetch, context: Context, last: str = stop) -> Event:
            if effect.what == last:
                await cancelled_by(other, machine)
            return Fetched(effect.what)

        async with two_halls(tmp_path / f"{stop}.db", fetch) as (one, other):
            await begun(one, machine)
            async with asyncio.timeout(SOON):
                assert (await drive(one, TRIAL)).snapshot.status == "cancelled"
            names = await check_cancelled(one, machine)
            late = await one.store.entries(TRIAL, names.index("run.cancelled") + 1)
            assert names[: position + 1] == ["run.started", *["fetched"] * position] or machine is FAN
            assert all("no longer wanted" in entry["ignored"] for entry in late)
            assert machine is FAN or len(late) == 1
    figure.append(f"results after the cancel at {len(STOPS)} of {len(STOPS)} effects of {machine.name}: all ignored")


# real commands


def test_a_command_that_is_stopped_in_the_middle_of_any_step_goes_on_with_the_next(
    place: Place, figure: list[str]
) -> None:
    place.hold(*range(1, STEPS + 1))
    begin: tuple[str, ...] = ("run", "machines.py:WALK", "ada", "--run-id", RUN)
    for step in range(1, STEPS + 1):
        process = place.start(*begin)
        place.under_way(2 * step - 1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == STOPPED
        assert err.endswith(f"stopped; nothing is lost. Go on with:  moot resume {RUN}\n")
        check_whole(place.entries())
        assert len(place.entries()) == step
        assert (place.row()["owner"], place.row()["crashes"]) == (None, 0)
        place.let(step)
        begin = ("resume", RUN)
    ran = place.moot(*begin)
    assert (ran.returncode, len(place.entries())) == (0, STEPS + 1)
    assert Counter(place.calls()) == {f"ada {step}": 2 for step in range(1, STEPS + 1)}
    figure.append(f"SIGTERM in the middle of {STEPS} of {STEPS} steps: exit 1 each, then done; only that call repeated")


class Moment(NamedTuple):
    """When to stop a command: so many seconds after its start, or after its first sign of work."""

    at_work: bool
    seconds: float


def next_command(place: Place) -> tuple[str, ...]:
    """What a person would type now."""
    return ("resume", RUN) if place.entries() else ("run", "machines.py:WALK", "ada", "--run-id", RUN)


def stopped_at(place: Place, moment: Moment) -> int:
    """Stop the run's next command at this moment; its exit code."""
    process = place.start(*next_command(place))
    if moment.at_work and process.stderr is not None:
        process.stderr.readline()
    time.sleep(moment.seconds)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert process.returncode in (0, STOPPED, -signal.SIGTERM), err
    entries = place.entries()
    check_whole(entries)
    if process.returncode == STOPPED and entries:
        assert (place.row()["owner"], place.row()["crashes"]) == (None, 0)
    return process.returncode


def stopped_at_moments(place: Place, seed: int, number: int) -> str:
    """Stop a run again and again, then let it come to its end."""
    chance = random.Random(seed)
    for step in range(1, STEPS + 1):
        (place.folder / f"pause-{step}").write_text("0.05")
    at_work = [chance.random() < 0.7 for _ in range(number)]
    ends = Counter(stopped_at(place, Moment(one, chance.uniform(0, 0.12 if one else 0.3))) for one in at_work)
    ran = place.moot(*next_command(place))
    assert (ran.returncode, len(place.entries())) == (0, STEPS + 1)
    assert set(place.calls()) == {f"ada {step}" for step in range(1, STEPS + 1)}
    assert len(place.calls()) <= STEPS + ends[STOPPED]
    return f"SIGTERM at {number} moments: exits {dict(ends)}, then done, {len(place.calls()) - STEPS} calls repeated"


def test_a_command_that_is_stopped_at_any_moment_leaves_a_run_that_goes_on(place: Place, figure: list[str]) -> None:
    figure.append(stopped_at_moments(place, seed=1, number=6))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_command_that_is_stopped_at_many_moments_leaves_a_run_that_goes_on(
    place: Place, seed: int, figure: list[str]
) -> None:
    figure.append(stopped_at_moments(place, seed=seed, number=20))


@pytest.mark.soak
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_real_cancel_in_the_middle_of_any_step_ends_the_run(place: Place, step: int) -> None:
    place.hold(step)
    driving = place.start("run", "machines.py:WALK", "ada", "--run-id", RUN)
    place.under_way(step)
    assert place.moot("cancel", RUN, "--reason", "enough").returncode == 0
    _, err = driving.communicate(timeout=30)
    assert driving.returncode == CANCELLED
    assert f"{RUN} is cancelled: enough" in err
    assert [entry["event"]["name"] for entry in place.entries()][-1] == "run.cancelled"
    assert len(place.entries()) == step + 1


def test_a_worker_that_is_stopped_again_and_again_loses_nothing(place: Place, figure: list[str]) -> None:
    runs = [f"run-{number}" for number in range(CROWD)]
    asyncio.run(left(place, "WALK", runs))
    for step in range(1, STEPS + 1):
        (place.folder / f"pause-{step}").write_text("0.05")
    moments = (1, 2 * CROWD, 4 * CROWD)
    for calls in moments:
        process = place.start("worker", "--quiet")
        place.under_way(calls)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (0, "", "")
        rows = [place.row(run) for run in runs]
        assert {(one["owner"], one["crashes"]) for one in rows} == {(None, 0)}
    place.start("worker", "--quiet")
    wait_for(lambda: statuses(place) == {"done": CROWD}, "the end of all runs")
    for run in runs:
        check_whole(place.entries(run))
        assert len(place.entries(run)) == STEPS + 1
    repeated = len(place.calls()) - CROWD * STEPS
    assert 0 <= repeated <= CROWD * len(moments)
    figure.append(f"a worker with {CROWD} runs stopped {len(moments)} times: 0 lost, {repeated} calls repeated")
