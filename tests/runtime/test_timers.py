"""Alarms, delayed events and deadlines come when their time has come, and only while they are wanted."""

import asyncio

import pytest

from moothall.kernel.effects import Alarm, CancelSend, Send
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Move
from moothall.runtime.drive import drive
from moothall.runtime.hall import reopen, tell
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import MovableClock
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, asking, begun, hall_of, happened, keep


class Rang(Event):
    """A bell rang."""

    times: int = 1


class Hurried(Event):
    """Somebody is in a hurry."""


PATIENT = Machine(
    "patient",
    data=Basket,
    states=[State("fetching", enter=[Fetch("bread"), Alarm(Rang(3), 60)]), Final("home"), Final("late")],
    moves=[
        On("fetching", Rang, to="late", when=lambda _, event: event.times == 3),
        On("fetching", Fetched, to="home", do=keep),
    ],
)


def reminding(*, cancelled: bool) -> Machine:
    """A machine that sends itself a reminder, moves on, and may cancel it there."""
    return Machine(
        "reminding",
        data=Basket,
        states=[
            State("leaving", enter=[Send(Rang(), 60, "bell"), Fetch("bread")]),
            State("resting", enter=[CancelSend("bell"), Send(Hurried(), 90)] if cancelled else ()),
            Final("called"),
            Final("rested"),
        ],
        moves=[
            On("leaving", Fetched, to="resting", do=keep),
            On("resting", Rang, to="called"),
            On("resting", Hurried, to="rested"),
        ],
    )


@pytest.mark.anyio
async def test_an_alarm_rings_when_its_time_has_come_and_not_before() -> None:
    hands, clock = Hands(), MovableClock()
    hands.shut("bread")
    hall = hall_of(hands, clock=clock)
    await begun(hall, PATIENT)
    driving = asyncio.create_task(drive(hall, RUN))
    await clock.wait_for_waiting()
    clock.move(59.9)
    await clock.wait_for_waiting()
    assert hall.runs[RUN].head.seq == 0
    clock.move(0.1)
    assert (await driving).snapshot.active == ("late",)


@pytest.mark.anyio
async def test_an_alarm_is_dropped_when_its_state_is_left() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, PATIENT)
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("home",)
    assert head.pending == ()
    assert clock.now() == 1_000
    assert "rang" not in await happened(hall)


@pytest.mark.anyio
async def test_a_delayed_event_is_delivered_wherever_the_run_stands_then() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    hall.observers.append(lambda run, entry, head: clock.move(60 * (entry.seq == 1)))
    await begun(hall, reminding(cancelled=False))
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("called",)
    assert await happened(hall) == ["run.started", "fetched", "rang"]


@pytest.mark.anyio
async def test_a_cancelled_delayed_event_is_never_delivered() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    hall.observers.append(lambda run, entry, head: clock.move(90 * (entry.seq == 1)))
    await begun(hall, reminding(cancelled=True))
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("rested",)
    assert await happened(hall) == ["run.started", "fetched", "hurried"]


@pytest.mark.anyio
async def test_a_timer_keeps_its_due_time_over_a_crash() -> None:
    store, machine = MemoryStore(), reminding(cancelled=False)
    await begun(hall_of(Hands(), store, MovableClock(1_000)), machine)
    clock = MovableClock(1_030)
    later = hall_of(Hands(), store, clock)
    later.observers.append(lambda run, entry, head: clock.move(30 * (entry.seq == 1)))
    await reopen(later, RUN, machine)
    head = await drive(later, RUN)
    assert head.snapshot.active == ("called",)


@pytest.mark.anyio
async def test_a_timer_that_came_due_while_nobody_was_there_fires_at_once() -> None:
    store, hands = MemoryStore(), Hands()
    hands.shut("bread")
    await begun(hall_of(hands, store, MovableClock(1_000)), PATIENT)
    later = hall_of(hands, store, MovableClock(9_999))
    await reopen(later, RUN, PATIENT)
    assert (await drive(later, RUN)).snapshot.active == ("late",)


@pytest.mark.anyio
async def test_an_event_inside_a_timer_is_the_same_after_a_crash() -> None:
    store = MemoryStore()
    head = await begun(hall_of(Hands(), store), PATIENT)
    later = hall_of(Hands(), store)
    assert (await reopen(later, RUN, PATIENT)).pending == head.pending


@pytest.mark.anyio
async def test_a_run_that_is_over_waits_for_no_timer() -> None:
    machine = Machine(
        "forgetful",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("home")],
        moves=[
            On(
                "fetching",
                Fetched,
                to="home",
                do=lambda basket, _: Move(basket, effects=(Send(Rang(), 3_600),)),
                emits={Send: 1},
            )
        ],
    )
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, machine)
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    assert head.pending == ()


@pytest.mark.anyio
async def test_a_question_waits_without_anyone_being_there() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, asking(within=60))
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("asking",)
    assert [one.due for one in head.pending] == [1_060]


@pytest.mark.anyio
async def test_a_question_expires_when_its_deadline_has_passed() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, asking(within=60))
    clock.move(61)
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("expired",)
    assert await happened(hall) == ["run.started", "expired"]


@pytest.mark.anyio
async def test_an_event_from_outside_goes_before_a_timer_that_is_not_due() -> None:
    machine = Machine(
        "dozing",
        data=Basket,
        states=[State("dozing", enter=Alarm(Rang(), 60)), Final("awake"), Final("pushed")],
        moves=[On("dozing", Rang, to="awake"), On("dozing", Hurried, to="pushed")],
    )
    hall = hall_of(Hands(), clock=MovableClock())
    await begun(hall, machine)
    await tell(hall, RUN, Hurried(), "push-1")
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("pushed",)
