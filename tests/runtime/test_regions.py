"""Parallel regions that want the same kind of effect each hear their own reply."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from moothall.kernel.events import Done, Exhausted, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, Parallel, State
from moothall.runtime.drive import drive
from tests.runtime.world import ATTEMPTS, RUN, Fetch, Fetched, Hands, begun, hall_of, journal


@dataclass(frozen=True, slots=True)
class Table:
    """What each region brought."""

    drink: str = ""
    food: str = ""


LAYING = Machine(
    "laying",
    data=Table,
    states=[
        Parallel(
            "laying",
            [
                State("drinks", [State("pouring", enter=Fetch("tea")), Final("poured")]),
                State("foods", [State("baking", enter=Fetch("cake")), Final("baked")]),
            ],
        ),
        Final("laid"),
    ],
    moves=[
        On("pouring", Fetched, to="poured", do=lambda table, event: replace(table, drink=event.what)),
        On("pouring", [GaveUp, Exhausted], to="poured", do=lambda table, event: replace(table, drink="water")),
        On("baking", Fetched, to="baked", do=lambda table, event: replace(table, food=event.what)),
        On("laying", Done, to="laid"),
    ],
)


@pytest.mark.anyio
@pytest.mark.parametrize("order", [("tea", "cake"), ("cake", "tea")], ids=" before ".join)
async def test_each_reply_goes_to_the_region_that_asked_whichever_comes_first(order: tuple[str, str]) -> None:
    hands = Hands()
    hands.shut("tea", "cake")
    hall = hall_of(hands)
    hall.observers.append(lambda run, entry, head: hands.open(order[1]) if entry.seq == 1 else None)
    await begun(hall, LAYING, Table())
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(2)
    hands.open(order[0])
    head = await driving
    assert head.snapshot.data == Table("tea", "cake")
    assert head.snapshot.status == "done"


@pytest.mark.anyio
async def test_the_journal_says_within_which_state_a_reply_was_heard() -> None:
    hall = hall_of(Hands())
    await begun(hall, LAYING, Table())
    await drive(hall, RUN)
    heard = [(entry["event"]["what"], entry["within"], entry["taken"]) for entry in (await journal(hall))[1:]]
    assert heard == [("tea", "pouring", ["pouring/0"]), ("cake", "baking", ["baking/0", "laying/0"])]


@pytest.mark.anyio
async def test_a_failure_in_one_region_is_heard_there_and_nowhere_else() -> None:
    hands = Hands()
    hands.raising = {"tea": [OSError("spilt")] * ATTEMPTS}
    hall = hall_of(hands)
    await begun(hall, LAYING, Table())
    head = await drive(hall, RUN)
    assert head.snapshot.data == Table("water", "cake")


@pytest.mark.anyio
async def test_a_failure_that_its_own_region_does_not_handle_fails_the_run() -> None:
    hands = Hands()
    hands.raising = {"cake": [OSError("burnt")] * ATTEMPTS}
    hall = hall_of(hands)
    await begun(hall, LAYING, Table())
    head = await drive(hall, RUN)
    assert head.snapshot.status == "failed"
    assert "burnt" in head.snapshot.reason
