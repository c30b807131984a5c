"""Two writers of one run: the second reads again and decides again, and nothing is taken twice."""

import asyncio

import pytest

from moothall.errors import DefinitionError, Refused
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import advance, cancel, reopen
from moothall.runtime.journal import Head
from moothall.stores.memory import MemoryStore
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, fan, hall_of, happened, journal, keep, line


@pytest.mark.anyio
async def test_who_comes_second_with_the_same_cause_gets_the_first_decision() -> None:
    store, machine = MemoryStore(), line("bread", "milk")
    one, other = hall_of(Hands(), store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    await advance(one, RUN, (Fetched("bread"), "0.0"))
    second = await advance(other, RUN, (Fetched("stale bread"), "0.0"))
    assert (second.received, second.seq) == ("duplicate", 1)
    assert other.runs[RUN].head == one.runs[RUN].head
    assert other.runs[RUN].head.snapshot.data == Basket(("bread",))


@pytest.mark.anyio
async def test_who_comes_second_with_another_cause_decides_again_on_what_the_first_left() -> None:
    store, machine = MemoryStore(), fan("bread", "milk", "salt")
    one, other = hall_of(Hands(), store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    await advance(one, RUN, (Fetched("bread"), "0.0"))
    second = await advance(other, RUN, (Fetched("milk"), "0.1"))
    assert (second.received, second.seq) == ("taken", 2)
    assert other.runs[RUN].head.snapshot.data == Basket(("bread", "milk"))
    assert [entry["seq"] for entry in await journal(other)] == [0, 1, 2]


@pytest.mark.anyio
async def test_who_comes_second_after_the_run_has_ended_is_ignored() -> None:
    store, machine = MemoryStore(), line("bread")
    one, other = hall_of(Hands(), store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    await cancel(one, RUN, "enough", "stop-1")
    second = await advance(other, RUN, (Fetched("bread"), "0.0"))
    assert second.received == "ignored"
    assert other.runs[RUN].head.snapshot.status == "cancelled"
    assert other.runs[RUN].head.snapshot.data == Basket()


@pytest.mark.anyio
async def test_who_cancels_only_a_run_that_lives_leaves_one_alone_that_has_ended_meanwhile() -> None:
    def still_lives(head: Head) -> None:
        if head.snapshot.status != "live":
            raise Refused("it is over already")

    store, machine = MemoryStore(), line("bread")
    one, other = hall_of(Hands(), store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    await drive(one, RUN)
    with pytest.raises(Refused, match="it is over already"):
        await cancel(other, RUN, "too late", "stop-1", still_lives)
    assert await happened(other) == ["run.started", "fetched"]


@pytest.mark.anyio
async def test_two_workers_on_one_run_leave_a_journal_without_gaps_or_repeats() -> None:
    store, machine = MemoryStore(), fan("a", "b", "c", "d")
    one, other = hall_of(Hands(), store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    heads = await asyncio.gather(drive(one, RUN), drive(other, RUN))
    entries = await journal(one)
    causes = [entry["cause"] for entry in entries]
    assert {head.snapshot.status for head in heads} == {"done"}
    assert [entry["seq"] for entry in entries] == list(range(5))
    assert sorted(causes) == sorted({*causes})


@pytest.mark.anyio
async def test_a_worker_stops_what_another_writer_made_pointless() -> None:
    store, hands = MemoryStore(), Hands()
    machine = Machine(
        "interrupted",
        data=Basket,
        states=[State("fetching", enter=[Fetch("bread"), Fetch("milk")]), Final("home")],
        moves=[On("fetching", Fetched, do=keep)],
    )
    hands.shut("bread", "milk")
    one, other = hall_of(hands, store), hall_of(Hands(), store)
    await begun(one, machine)
    await reopen(other, RUN, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(2)
    await cancel(other, RUN, "enough", "stop-1")
    hands.open("bread")
    head = await driving
    assert head.snapshot.status == "cancelled"
    assert hands.finished == ["bread"]
    assert await happened(one) == ["run.started", "run.cancelled", "fetched"]


@pytest.mark.anyio
async def test_a_run_is_not_opened_under_a_definition_that_would_have_gone_another_way() -> None:
    store = MemoryStore()
    await begun(hall_of(Hands(), store), line("bread"))
    with pytest.raises(DefinitionError, match="run trial cannot go on under this definition of 'line': entry 0"):
        await reopen(hall_of(Hands(), store), RUN, line("milk", "bread"))


@pytest.mark.anyio
async def test_a_run_that_the_store_does_not_hold_is_not_opened() -> None:
    with pytest.raises(Refused, match="there is no run 'trial'"):
        await reopen(hall_of(Hands()), RUN, line("bread"))
