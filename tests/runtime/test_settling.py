"""Every effect that a committed step wants ends in exactly one event."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.kernel.events import GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, fan, hall_of, journal, keep, line

FIRST_WINS = Machine(
    "first-wins",
    data=Basket,
    states=[
        State("racing", enter=[Fetch("fast"), Fetch("slow")]),
        State("resting", enter=Fetch("water")),
        Final("home"),
    ],
    moves=[On("racing", Fetched, to="resting", do=keep), On("resting", Fetched, to="home", do=keep)],
)


async def wanted_and_ended(hall: Hall) -> tuple[Counter[str], Counter[str]]:
    """How often each effect's key was issued, and how often it was the cause of an entry."""
    entries = await journal(hall)
    keys = Counter(effect["key"] for entry in entries for effect in entry["effects"])
    return keys, Counter(entry["cause"] for entry in entries if entry["cause"] in keys)


@pytest.mark.anyio
async def test_a_line_of_effects_settles_each_of_them_once() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, line("bread", "milk", "salt"))
    head = await drive(hall, RUN)
    wanted, ended = await wanted_and_ended(hall)
    assert head.snapshot.data == Basket(("bread", "milk", "salt"))
    assert wanted == ended == Counter({"0.0": 1, "1.0": 1, "2.0": 1})
    assert hands.asked == ["bread", "milk", "salt"]


@pytest.mark.anyio
async def test_effects_wanted_together_are_under_way_together() -> None:
    hands = Hands()
    hands.shut("bread", "milk", "salt")
    hall = hall_of(hands)
    await begun(hall, fan("bread", "milk", "salt"))
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(3)
    for one in ("salt", "bread", "milk"):
        hands.open(one)
    head = await driving
    assert head.snapshot.status == "done"
    assert sorted(head.snapshot.data.got) == ["bread", "milk", "salt"]


@given(order=st.permutations(["a", "b", "c", "d"]), failing=st.sets(st.sampled_from(["a", "b", "c", "d"])))
@settings(max_examples=40, deadline=None)
def test_whatever_the_order_and_the_failures_every_effect_settles_exactly_once(
    order: list[str], failing: set[str]
) -> None:
    machine = fan(
        "a", "b", "c", "d", moves=[On("fetching", GaveUp, do=lambda basket, _: Basket((*basket.got, "nothing")))]
    )

    async def scenario() -> None:
        hands = Hands()
        hands.shut(*order)
        hands.raising = {one: [OSError("no")] * 3 for one in failing}
        hall = hall_of(hands)
        await begun(hall, machine)
        driving = asyncio.create_task(drive(hall, RUN))
        for one in order:
            hands.open(one)
            for _ in range(3):
                await asyncio.sleep(0)
        await driving
        wanted, ended = await wanted_and_ended(hall)
        assert wanted == ended
        assert sum(wanted.values()) == 4

    asyncio.run(scenario())


@pytest.mark.anyio
async def test_leaving_a_state_stops_the_effects_that_it_wanted() -> None:
    hands = Hands()
    hands.shut("slow")
    hall = hall_of(hands)
    await begun(hall, FIRST_WINS)
    head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("fast", "water"))
    assert hands.finished == ["fast", "water"]
    assert hands.stopped == ["slow"]
    assert head.pending == ()


@pytest.mark.anyio
async def test_a_late_reply_of_a_left_state_is_journaled_as_ignored_and_its_cost_is_charged() -> None:
    hands = Hands()
    hands.usage = {"slow": {"tokens": 70}, "fast": {"tokens": 5}, "water": {"tokens": 1}}
    hall = hall_of(hands)
    await begun(hall, FIRST_WINS)
    head = await drive(hall, RUN)
    late = [entry for entry in await journal(hall) if "ignored" in entry]
    assert [(entry["event"]["what"], entry["cause"]) for entry in late] == [("slow", "0.1")]
    assert "the state that wanted it was left" in late[0]["ignored"]
    assert late[0]["from"] == late[0]["to"] == ["resting"]
    assert late[0]["taken"] == late[0]["effects"] == []
    assert head.spent["tokens"] == 76
    assert head.snapshot.data == Basket(("fast", "water"))


@pytest.mark.anyio
async def test_a_call_that_was_begun_counts_against_the_budget_even_if_its_state_was_left() -> None:
    hall = hall_of(Hands())
    await begun(hall, FIRST_WINS)
    head = await drive(hall, RUN)
    assert head.spent["calls"] == 3


@pytest.mark.anyio
async def test_a_repeated_cause_returns_the_first_decision_and_changes_nothing() -> None:
    hall = hall_of(Hands())
    await begun(hall, line("bread", "milk"))
    first = await advance(hall, RUN, (Fetched("bread"), "0.0"))
    before = hall.runs[RUN].head
    again = await advance(hall, RUN, (Fetched("something else"), "0.0"))
    assert (first.received, first.seq) == ("taken", 1)
    assert (again.received, again.seq) == ("duplicate", 1)
    assert hall.runs[RUN].head == before
    assert len(await journal(hall)) == 2


@pytest.mark.anyio
async def test_a_key_that_was_never_issued_moves_nothing() -> None:
    hall = hall_of(Hands())
    head = await begun(hall, line("bread"))
    received = await advance(hall, RUN, (Fetched("bread"), "7.3"))
    assert received.received == "ignored"
    assert hall.runs[RUN].head.snapshot == head.snapshot
    assert hall.runs[RUN].head.pending == head.pending


FAREWELL = Machine(
    "farewell",
    data=Basket,
    states=[State("fetching", enter=Fetch("bread")), Final("home", enter=[Fetch("note"), Fetch("flowers")])],
    moves=[On("fetching", Fetched, to="home", do=keep)],
)


@pytest.mark.anyio
async def test_every_effect_that_the_last_step_wanted_is_still_performed() -> None:
    hands = Hands()
    hands.shut("flowers")
    hall = hall_of(hands)
    hall.observers.append(lambda run, entry, head: hands.open("flowers") if entry.cause == "1.0" else None)
    await begun(hall, FAREWELL)
    head = await drive(hall, RUN)
    wanted, ended = await wanted_and_ended(hall)
    assert head.snapshot.status == "done"
    assert head.snapshot.data == Basket(("bread",))
    assert wanted == ended
    assert hands.finished == ["bread", "note", "flowers"]
    assert not [entry for entry in await journal(hall) if "ignored" in entry]
