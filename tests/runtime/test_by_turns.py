"""A run that is driven by turns: something ends, and whoever comes next goes on."""

from __future__ import annotations

import asyncio

import pytest

from moothall.kernel.effects import Send, StartChild
from moothall.kernel.events import Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive, due_keys
from moothall.runtime.hall import Hall, reopen
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import MovableClock
from tests.runtime.family import CHILD, errand, family_hall, parent_begun, sending
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, fan, hall_of, keep, line

pytestmark = pytest.mark.anyio

LATER = Machine(
    "later",
    data=Basket,
    states=[State("waiting", enter=Send(Named("rung"), 60)), Final("awake")],
    moves=[On("waiting", "rung", to="awake")],
)
RACE = Machine(
    "race",
    data=Basket,
    states=[State("racing", enter=[Fetch("slow"), Send(Named("rung"), 60)]), Final("late"), Final("home")],
    moves=[On("racing", "rung", to="late"), On("racing", Fetched, to="home", do=keep)],
)


async def turn(hall: Hall) -> list[str]:
    """Take a turn; what is due then."""
    head = await drive(hall, RUN, by_turns=True)
    return due_keys(head, hall.clock.now())


async def test_a_turn_performs_one_effect_and_another_process_takes_the_next() -> None:
    machine, hands, store = line("bread", "milk"), Hands(), MemoryStore()
    first, second = hall_of(hands, store), hall_of(hands, store)
    await begun(first, machine)
    assert await turn(first) == ["1.0"]
    assert hands.asked == ["bread"]
    assert (await store.load(RUN)).lease.owner == ""
    await reopen(second, RUN, machine)
    assert await turn(second) == []
    assert hands.asked == ["bread", "milk"]
    assert (await store.load(RUN)).status == "done"


async def test_the_token_grows_with_every_turn() -> None:
    machine, store, tokens = line("bread", "milk", "eggs"), MemoryStore(), list[int]()
    await begun(hall_of(Hands(), store), machine)
    for _ in range(3):
        hall = hall_of(Hands(), store)
        await reopen(hall, RUN, machine)
        await turn(hall)
        tokens.append((await store.load(RUN)).lease.token)
    assert tokens == sorted(set(tokens))


async def test_effects_at_once_are_one_turn() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, fan("bread", "milk", "eggs"))
    assert await turn(hall) == []
    assert sorted(hands.finished) == ["bread", "eggs", "milk"]
    assert hall.runs[RUN].head.snapshot.status == "done"


async def test_nobody_waits_for_a_time_in_a_turn() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, LATER)
    assert await turn(hall) == []
    assert hall.runs[RUN].head.snapshot.status == "live"
    clock.move(60)
    assert due_keys(hall.runs[RUN].head, clock.now()) == ["0.0"]
    assert await turn(hall) == []
    assert hall.runs[RUN].head.snapshot.active == ("awake",)


async def test_a_time_that_comes_while_something_is_under_way_is_noticed() -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("slow")
    hall = hall_of(hands, clock=clock)
    await begun(hall, RACE)
    taking = asyncio.create_task(turn(hall))
    await hands.wait_for_calls(1)
    await clock.wait_for_waiting()
    clock.move(60)
    assert await taking == []
    assert hall.runs[RUN].head.snapshot.active == ("late",)
    assert hands.stopped == ["slow"]


async def test_children_are_left_to_others() -> None:
    hands = Hands()
    parent = sending(StartChild("errand"))
    hall = family_hall(hands, parent, errand("bread"))
    await parent_begun(hall, parent)
    assert await turn(hall) == []
    assert hands.asked == []
    assert await hall.store.due(hall.clock.now(), 10) == [CHILD]
