"""The wall clock jumps: forward things may expire, backward they may take longer; nothing is lost, doubled or stuck."""

import asyncio
import contextlib
import os
import socket
import time

import pytest

from moothall.app.runs.context import SystemClock
from moothall.errors import Refused
from moothall.kernel.effects import Alarm, AskPerson
from moothall.kernel.events import Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, Parallel, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, answer, reopen
from moothall.runtime.ports import LEASE
from moothall.runtime.serve import serve
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import MovableClock
from tests.runtime.world import (
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    asking,
    begun,
    fan,
    hall_of,
    happened,
    keep,
    lease_in,
    line,
)

NOW = 2_000_000_000.0
HOUR, YEAR = 3_600.0, 31_536_000.0
JUMPS = {
    "back an hour": (-HOUR,),
    "forward a year": (YEAR,),
    "forward a year and back again": (YEAR, -YEAR),
    "back an hour and forward again": (-HOUR, HOUR),
}
JUMPING = pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS)
QUICK, SOON = 0.005, 10.0
ALIVE = f"{socket.gethostname()}:{os.getpid()}"
ALARMED = Machine(
    "alarmed",
    data=Basket,
    states=[State("fetching", enter=[Fetch("bread"), Alarm(Named("rang"), 60)]), Final("home"), Final("late")],
    moves=[On("fetching", "rang", to="late"), On("fetching", Fetched, to="home", do=keep)],
)
BESIDE = Machine(
    "beside",
    data=Basket,
    states=[
        Parallel(
            "both",
            [
                State("left", [State("fetching", enter=Fetch("bread")), Final("fetched")]),
                State("right", [State("asking", enter=AskPerson("Well?", within=60)), Final("unanswered")]),
            ],
        )
    ],
    moves=[On("fetching", Fetched, to="fetched", do=keep), On("asking", "expired", to="unanswered")],
)


def hall_at(store: SqliteStore, clock: MovableClock, hands: Hands, word: str = "one") -> Hall:
    """A hall whose process is there."""
    hall = hall_of(hands, store, clock, pulse=QUICK)
    hall.owner = f"{ALIVE}:{word}"
    return hall


async def beats(number: int = 4) -> None:
    """Let the pulse beat a few times."""
    await asyncio.sleep(QUICK * number)


async def until_over(store: SqliteStore) -> None:
    """Come back when the run is over, or when it has had time enough for that."""
    for _ in range(200):
        if (await store.load(RUN)).status != "live":
            return
        await beats(1)


async def jumped(clock: MovableClock, jumps: tuple[float, ...]) -> None:
    for jump in jumps:
        clock.move(jump)
        await beats()


# leases


@pytest.mark.anyio
@JUMPING
@pytest.mark.parametrize("machine", [line("bread", "milk"), fan("bread", "milk")], ids=["in place", "in tasks"])
async def test_a_run_that_is_under_way_comes_to_its_end(
    store: SqliteStore, machine: Machine, jumps: tuple[float, ...]
) -> None:
    clock, hands = MovableClock(NOW), Hands()
    hands.shut("bread", "milk")
    hall = hall_at(store, clock, hands)
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    for number, what in enumerate(("bread", "milk"), start=1):
        await hands.wait_for_calls(number)
        await jumped(clock, jumps)
        hands.open(what)
    async with asyncio.timeout(SOON):
        assert (await driving).snapshot.status == "done"
    assert await happened(hall) == ["run.started", "fetched", "fetched"]
    assert (hands.asked, (await store.load(RUN)).lease.owner) == (["bread", "milk"], "")


@pytest.mark.anyio
@JUMPING
async def test_a_rival_that_sees_the_jump_loses_and_doubles_nothing(
    store: SqliteStore, jumps: tuple[float, ...]
) -> None:
    clock, hands, others, machine = MovableClock(NOW), Hands(), Hands(), line("bread", "milk")
    hands.shut("bread")
    one, other = hall_at(store, clock, hands), hall_at(store, clock, others, "other")
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    for jump in jumps:
        clock.move(jump)
        await reopen(other, RUN, machine)
        with contextlib.suppress(Refused):
            await drive(other, RUN)
    hands.open("bread")
    async with asyncio.timeout(SOON):
        await asyncio.wait([driving])
    assert await happened(one) == ["run.started", "fetched", "fetched"]
    assert (await store.load(RUN)).status == "done"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "jumps",
    [
        (-HOUR,),
        (YEAR,),
        (YEAR, -YEAR),
        (-HOUR, HOUR),
    ],
    ids=JUMPS,
)
async def test_a_long_effect_keeps_its_lease_after_a_jump(store: SqliteStore, jumps: tuple[float, ...]) -> None:
    clock, hands, others, machine = MovableClock(NOW), Hands(), Hands(), line("bread", "milk")
    hands.shut("bread", "milk")
    one, other = hall_at(store, clock, hands), hall_at(store, clock, others, "other")
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    await jumped(clock, jumps)
    hands.open("bread")
    await hands.wait_for_calls(2)
    for _ in range(8):
        clock.move(LEASE / 4)
        await beats()
    try:
        assert (await store.load(RUN)).lease.until >= clock.now()
        await reopen(other, RUN, machine)
        with pytest.raises(Refused, match="driven by"):
            await drive(other, RUN)
    finally:
        hands.open("milk")
        await asyncio.wait([driving])
    assert (hands.asked, others.asked) == (["bread", "milk"], [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "jumps",
    [
        (-HOUR,),
        (YEAR,),
        (YEAR, -YEAR),
    ],
    ids=["back an hour", "forward a year", "forward a year and back again"],
)
async def test_a_lease_of_a_holder_that_nobody_can_ask_is_free_when_the_jump_has_been_lived_through(
    store: SqliteStore, jumps: tuple[float, ...]
) -> None:
    clock, hands = MovableClock(NOW), Hands()
    gone = hall_of(Hands(), store, clock, pulse=QUICK)
    gone.owner = "elsewhere:1:gone"
    clock.move(jumps[0] if jumps[0] > 0 else 0)
    await begun(gone, line("bread"))
    clock.move(jumps[-1] if jumps[-1] < 0 else 0)
    clock.move(HOUR + LEASE + 1)
    other, stop = hall_at(store, clock, hands), asyncio.Event()

    async def open_run(run: str) -> None:
        await reopen(other, run, line("bread"))

    serving = asyncio.create_task(serve(other, open_run, stop))
    await until_over(store)
    stop.set()
    await serving
    assert hands.asked == ["bread"]
    assert (await store.load(RUN)).status == "done"


@pytest.mark.anyio
@JUMPING
@pytest.mark.parametrize("name", [f"{ALIVE}:one", "elsewhere:1:one"], ids=["near", "far"])
@pytest.mark.parametrize("by", ["a command", "a worker"])
async def test_a_jump_takes_no_run_from_a_holder_that_is_at_work(
    store: SqliteStore, jumps: tuple[float, ...], name: str, by: str
) -> None:
    clock, hands, others, machine = MovableClock(NOW), Hands(), Hands(), line("bread", "milk")
    hands.shut("bread")
    one, other, stop = hall_at(store, clock, hands), hall_at(store, clock, others, "other"), asyncio.Event()
    one.owner = name
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)

    async def open_run(run: str) -> None:
        await reopen(other, run, machine)

    for jump in jumps:
        clock.move(jump)
        if by == "a worker":
            serving = asyncio.create_task(serve(other, open_run, stop))
            await beats(40)
            stop.set()
            await serving
            stop.clear()
        else:
            await open_run(RUN)
            with pytest.raises(Refused, match="driven by"):
                await drive(other, RUN)
    hands.open("bread")
    async with asyncio.timeout(SOON):
        await driving
    assert (hands.asked, others.asked) == (["bread", "milk"], [])
    assert (await store.load(RUN)).status == "done"


@pytest.mark.anyio
async def test_a_far_holder_under_another_clock_is_not_overdue_while_it_renews_its_lease(store: SqliteStore) -> None:
    clock, others, machine = MovableClock(NOW), Hands(), line("bread")
    far, other = hall_of(Hands(), store, clock, pulse=QUICK), hall_at(store, MovableClock(NOW + HOUR), others, "other")
    far.owner = "elsewhere:1:far"
    await begun(far, machine)
    await reopen(other, RUN, machine)
    trying = asyncio.create_task(drive(other, RUN))
    await beats(12)
    clock.move(LEASE / 3)
    assert await store.renew(RUN, lease_in(far), clock.now() + LEASE)
    with pytest.raises(Refused, match="driven by elsewhere:1:far"):
        await trying
    assert others.asked == []


@pytest.mark.anyio
async def test_a_lease_that_was_renewed_since_it_was_seen_cannot_be_claimed(store: SqliteStore) -> None:
    clock = MovableClock(NOW)
    hall = hall_at(store, clock, Hands())
    await begun(hall, line("bread"))
    seen = (await store.load(RUN)).lease
    await store.renew(RUN, seen, clock.now() + LEASE + 1)
    assert await store.claim(RUN, seen, "elsewhere:1:far", clock.now() + LEASE) is None


# timers and questions


@pytest.mark.anyio
@JUMPING
async def test_an_alarm_rings_once_and_not_before_its_time(store: SqliteStore, jumps: tuple[float, ...]) -> None:
    clock, hands = MovableClock(NOW), Hands()
    hands.shut("bread")
    hall = hall_at(store, clock, hands)
    await begun(hall, ALARMED)
    driving = asyncio.create_task(drive(hall, RUN))
    await clock.wait_for_waiting()
    passed, rung = 0.0, False
    for jump in jumps:
        clock.move(jump)
        await beats()
        passed += jump
        rung = rung or passed >= 60
        assert driving.done() == rung
    clock.move(max(0.0, 61 - passed))
    async with asyncio.timeout(SOON):
        assert (await driving).snapshot.active == ("late",)
    assert await happened(hall) == ["run.started", "rang"]


@pytest.mark.anyio
@JUMPING
async def test_an_alarm_that_nobody_waits_for_rings_once_when_a_worker_comes(
    store: SqliteStore, jumps: tuple[float, ...]
) -> None:
    clock, hands, stop = MovableClock(NOW), Hands(), asyncio.Event()
    hands.shut("bread")
    machine = Machine(
        "later",
        data=Basket,
        states=[State("waiting", enter=Alarm(Named("rang"), 60)), Final("awake")],
        moves=[On("waiting", "rang", to="awake")],
    )
    await begun(hall_of(Hands(), store, clock, pulse=QUICK), machine)
    hall = hall_at(store, clock, hands)

    async def open_run(run: str) -> None:
        await reopen(hall, run, machine)

    serving = asyncio.create_task(serve(hall, open_run, stop))
    await jumped(clock, jumps)
    clock.move(HOUR + 61)
    await until_over(store)
    stop.set()
    await serving
    assert [entry["event"]["name"] for entry in await store.entries(RUN)] == ["run.started", "rang"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("jumps", "answered"), [((-HOUR,), True), ((-HOUR, HOUR), True), ((YEAR,), False), ((YEAR, -YEAR), True)]
)
async def test_a_question_is_answered_or_expires_by_the_clock_of_that_moment(
    store: SqliteStore, jumps: tuple[float, ...], answered: bool
) -> None:
    clock = MovableClock(NOW)
    hall = hall_at(store, clock, Hands())
    await begun(hall, asking(within=60))
    for jump in jumps:
        clock.move(jump)
    if not answered:
        with pytest.raises(Refused, match=r"the time to answer question 0\.0 is over"):
            await answer(hall, RUN, True)
    else:
        assert (await answer(hall, RUN, True)).received == "taken"
    assert await happened(hall) == ["run.started", "answered" if answered else "expired"]
    clock.move(YEAR)
    assert (await drive(hall, RUN)).snapshot.active == ("answered" if answered else "expired",)
    assert len(await store.entries(RUN)) == 2


@pytest.mark.anyio
async def test_a_question_beside_a_long_effect_expires_in_its_time(store: SqliteStore) -> None:
    clock, hands = MovableClock(NOW), Hands()
    hands.shut("bread")
    hall = hall_at(store, clock, hands)
    await begun(hall, BESIDE)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    clock.move(61)
    await beats(20)
    before = await happened(hall)
    hands.open("bread")
    async with asyncio.timeout(SOON):
        await driving
    assert await happened(hall) == ["run.started", "expired", "fetched"]
    assert before == ["run.started", "expired"]


# the machine's own clock


@pytest.mark.anyio
async def test_the_machines_own_clock_does_not_come_back_before_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    real, jump = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + jump[0])
    clock = SystemClock()
    moment = clock.now() + 0.05
    waiting = asyncio.create_task(clock.wait_until(moment))
    await asyncio.sleep(0)
    jump[0] = -0.2
    await waiting
    assert clock.now() >= moment


@pytest.mark.anyio
async def test_the_machines_own_clock_notices_that_the_moment_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, jump = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + jump[0])
    waiting = asyncio.create_task(SystemClock().wait_until(time.time() + HOUR))
    await asyncio.sleep(0)
    jump[0] = YEAR
    done, _ = await asyncio.wait([waiting], timeout=1.5)
    waiting.cancel()
    assert done
