"""Who performs a run's effects holds its lease: taken and given back with commits, lost when nobody renews it."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moothall.app.runs import view as looking
from moothall.errors import Broken, Conflict, Refused
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, Parallel, State
from moothall.runtime import hall as halls
from moothall.runtime.crew import PULSE
from moothall.runtime.decide import Incoming, decide
from moothall.runtime.drive import CRASHES, drive
from moothall.runtime.hall import Hall, advance, answer, cancel, reopen
from moothall.runtime.ports import LEASE, Lease, Store
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.world import (
    PROCESSES,
    QUICK,
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    asking,
    begun,
    decided,
    fan,
    hall_of,
    happened,
    keep,
    lease_in,
    line,
    pause,
)

ALIVE = f"{socket.gethostname()}:{os.getpid()}"
SOON = 10.0

ASKING_LATER = Machine(
    "asking later",
    data=Basket,
    states=[State("fetching", enter=Fetch("bread")), State("asking", enter=AskPerson("Well?")), Final("over")],
    moves=[On("fetching", Fetched, to="asking", do=keep), On("asking", "answered", to="over")],
)
TWO_SIDES = Machine(
    "two sides",
    data=Basket,
    states=[
        Parallel(
            "both",
            [
                State("left", [State("fetching", enter=Fetch("bread")), Final("fetched")]),
                State("right", [State("asking", enter=AskPerson("Well?")), State("adding", enter=Fetch("milk"))]),
            ],
        ),
        Final("home"),
    ],
    moves=[
        On("fetching", Fetched, to="fetched", do=keep),
        On("asking", "answered", to="adding"),
        On("adding", Fetched, to="home", do=keep),
    ],
)


@pytest.fixture
def elsewhere(file: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    """The same file, opened as another process would."""
    other = SqliteStore(file)
    yield other
    other.close()


@pytest.fixture(params=["memory", "sqlite"])
def any_store(request: pytest.FixtureRequest, file: Path) -> Iterator[Store]:
    store: Store = MemoryStore(strict=True) if request.param == "memory" else SqliteStore(file)
    yield store
    store.close()


def alive(hands: Hands, store: Store, clock: MovableClock, word: str, *, pulse: float = PULSE) -> Hall:
    """A hall whose process is there."""
    hall = hall_of(hands, store, clock, pulse=pulse)
    hall.owner = f"{ALIVE}:{word}"
    return hall


async def lease_of(store: Store) -> Lease:
    return (await store.load(RUN)).lease


async def until_true(check: Any) -> None:
    """Come back when this holds; every turn lets the pulse beat."""
    async with asyncio.timeout(SOON):
        while True:
            if await check():
                return
            await asyncio.sleep(QUICK)


def written(store: SqliteStore) -> list[str]:
    """Every transaction that the store begins from now on."""
    begun: list[str] = []
    store._db.set_trace_callback(lambda text: begun.append(text) if text.startswith("BEGIN") else None)
    return begun


@pytest.mark.anyio
async def test_a_run_is_born_held_by_whoever_begins_it(any_store: Store) -> None:
    hall = hall_of(Hands(), any_store)
    await begun(hall, line("bread"))
    assert await lease_of(any_store) == Lease(hall.owner, 1, hall.clock.now() + LEASE)


@pytest.mark.anyio
async def test_a_run_that_begins_with_a_question_is_born_free(any_store: Store) -> None:
    hall = hall_of(Hands(), any_store)
    await begun(hall, asking())
    assert (await lease_of(any_store)).owner == ""
    assert hall.runs[RUN].lease == await lease_of(any_store)


@pytest.mark.anyio
async def test_who_waits_for_a_person_lets_go_with_the_commit_itself(store: SqliteStore) -> None:
    hall = hall_of(Hands(), store)
    begun_ = written(store)
    await begun(hall, ASKING_LATER)
    await drive(hall, RUN)
    assert await lease_of(store) == Lease("", 1, 0.0)
    assert len(begun_) == len(await store.entries(RUN)) == 2


@pytest.mark.anyio
async def test_who_ends_a_run_lets_go_with_the_commit_itself(store: SqliteStore) -> None:
    hall = hall_of(Hands(), store)
    begun_ = written(store)
    await begun(hall, line("bread", "milk"))
    await drive(hall, RUN)
    assert (await lease_of(store)).owner == ""
    assert len(begun_) == 3


@pytest.mark.anyio
async def test_a_second_hall_whose_rival_is_alive_is_refused_and_told_who_drives_it(any_store: Store) -> None:
    clock, hands = MovableClock(), Hands()
    one, other = alive(Hands(), any_store, clock, "one"), alive(hands, any_store, clock, "other")
    await begun(one, line("bread"))
    await reopen(other, RUN, line("bread"))
    with pytest.raises(Refused, match=f"run trial is being driven by {ALIVE}:one; it goes on there"):
        await drive(other, RUN)
    assert hands.asked == []
    assert await lease_of(any_store) == one.runs[RUN].lease


@pytest.mark.anyio
async def test_a_holder_whose_process_is_gone_is_taken_over_at_once(any_store: Store) -> None:
    clock, hands = MovableClock(), Hands()
    gone = hall_of(Hands(), any_store, clock)
    await begun(gone, line("bread"))
    other = alive(hands, any_store, clock, "other")
    await reopen(other, RUN, line("bread"))
    assert (await drive(other, RUN)).snapshot.status == "done"
    assert hands.asked == ["bread"]
    assert clock.now() < lease_in(gone).until


@pytest.mark.anyio
async def test_a_holder_in_another_container_of_this_host_is_not_taken_for_gone(any_store: Store) -> None:
    clock = MovableClock()
    far, near = hall_of(Hands(), any_store, clock), hall_of(Hands(), any_store, clock)
    far.owner = f"{near.owner}@4026530000"
    await begun(far, line("bread"))
    await reopen(near, RUN, line("bread"))
    with pytest.raises(Refused, match=f"driven by {far.owner}"):
        await drive(near, RUN)


@pytest.mark.anyio
async def test_a_holder_on_another_host_is_left_alone_until_it_is_overdue(any_store: Store) -> None:
    clock = MovableClock()
    far, near = hall_of(Hands(), any_store, clock, pulse=QUICK), hall_of(Hands(), any_store, clock, pulse=QUICK)
    far.owner = "elsewhere:1:far"
    await begun(far, line("bread"))
    await reopen(near, RUN, line("bread"))
    with pytest.raises(Refused, match="driven by elsewhere:1:far"):
        await drive(near, RUN)
    clock.move(LEASE + 1)
    await reopen(near, RUN, line("bread"))
    assert (await drive(near, RUN)).snapshot.status == "done"


@pytest.mark.anyio
async def test_a_holder_that_is_alive_but_overdue_is_taken_over_and_who_waits_for_that_is_told(
    any_store: Store,
) -> None:
    clock, said = MovableClock(), list[str]()
    one = alive(Hands(), any_store, clock, "one", pulse=QUICK)
    other = alive(Hands(), any_store, clock, "other", pulse=QUICK)
    other.notice = said.append
    await begun(one, line("bread"))
    clock.move(LEASE + 1)
    await reopen(other, RUN, line("bread"))
    assert not said
    assert (await drive(other, RUN)).snapshot.status == "done"
    (text,) = said
    assert text.startswith(f"run {RUN} is held by {one.owner}, whose time is over")


@pytest.mark.anyio
async def test_who_looks_at_an_overdue_lease_waits_by_the_clock_of_the_hall(any_store: Store) -> None:
    clock = HastyClock()
    far, near = hall_of(Hands(), any_store, clock), hall_of(Hands(), any_store, clock)
    far.owner = "elsewhere:1:far"
    await begun(far, line("bread"))
    await clock.wait_until(clock.now() + LEASE + 1)
    await reopen(near, RUN, line("bread"))
    assert (await drive(near, RUN)).snapshot.status == "done"
    assert clock.jumps[1:] == [PULSE] * halls.FAR_LOOKS


@pytest.mark.anyio
async def test_the_token_grows_with_every_new_holder(any_store: Store) -> None:
    await begun(hall_of(Hands(), any_store), line("bread"))
    tokens = [(await lease_of(any_store)).token]
    for _ in range(3):
        seen = await lease_of(any_store)
        taken = await any_store.claim(RUN, seen, next(PROCESSES), 2_000.0)
        assert taken is not None
        assert await any_store.claim(RUN, seen, "late:1:x", 2_000.0) is None
        tokens.append(taken.token)
    assert tokens == [1, 2, 3, 4]


@pytest.mark.anyio
async def test_an_old_token_commits_nothing_renews_nothing_and_lets_go_of_nothing(any_store: Store) -> None:
    hall = hall_of(Hands(), any_store)
    await begun(hall, line("bread"))
    old = lease_in(hall)
    new = await any_store.claim(RUN, old, next(PROCESSES), 2_000.0)
    decision = decided(decide(hall.runs[RUN].run, hall.runs[RUN].head, Incoming(Fetched("bread"), "0.0", 1_001.0)))
    with pytest.raises(Conflict):
        await any_store.commit(RUN, decision.head, decision.entry, old, None)
    assert not await any_store.renew(RUN, old, 9_000.0)
    await any_store.release(RUN, old)
    assert await lease_of(any_store) == new
    assert len(await any_store.entries(RUN)) == 1


@pytest.mark.anyio
async def test_the_result_of_a_holder_that_paused_too_long_enters_once_and_the_new_holder_keeps_the_run(
    any_store: Store,
) -> None:
    clock, hands, others = MovableClock(), Hands(), Hands()
    hands.shut("bread")
    others.shut("bread", "milk")
    one = alive(hands, any_store, clock, "one", pulse=QUICK)
    other = alive(others, any_store, clock, "other", pulse=QUICK)
    machine = line("bread", "milk")
    await begun(one, machine)
    paused = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    pause(one)
    clock.move(LEASE + 1)
    await reopen(other, RUN, machine)
    driving = asyncio.create_task(drive(other, RUN))
    await others.wait_for_calls(1)
    hands.open("bread")
    with pytest.raises(Refused, match=f"driven by {ALIVE}:other"):
        await paused
    others.open("bread")
    others.open("milk")
    async with asyncio.timeout(SOON):
        head = await driving
    assert head.snapshot.data == Basket(("bread", "milk"))
    assert await happened(other) == ["run.started", "fetched", "fetched"]
    assert hands.asked == ["bread"]


@pytest.mark.anyio
async def test_a_hall_whose_lease_was_taken_and_given_back_holds_the_run_again_before_it_performs(
    any_store: Store,
) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    one = alive(hands, any_store, clock, "one")
    await begun(one, line("bread", "milk"))
    hands.shut("milk")
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    taken = await any_store.claim(RUN, lease_in(one), "other:1:x", clock.now() + LEASE)
    assert taken is not None
    await any_store.release(RUN, taken)
    hands.open("bread")
    await hands.wait_for_calls(2)
    assert ((await lease_of(any_store)).owner, (await lease_of(any_store)).token) == (one.owner, 3)
    hands.open("milk")
    assert (await driving).snapshot.status == "done"


@pytest.mark.anyio
async def test_every_commit_of_the_holder_renews_the_lease(any_store: Store) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread", "milk")
    hall = hall_of(hands, any_store, clock)
    await begun(hall, line("bread", "milk"))
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    clock.move(LEASE - 1)
    hands.open("bread")
    await hands.wait_for_calls(2)
    assert (await lease_of(any_store)).until == clock.now() + LEASE
    hands.open("milk")
    await driving


@pytest.mark.anyio
async def test_five_crashes_in_a_row_set_a_run_aside_and_say_why(any_store: Store) -> None:
    clock, machine = MovableClock(), line("bread")
    await begun(hall_of(Hands(), any_store, clock), machine)
    for _ in range(CRASHES - 1):
        await any_store.claim(RUN, await lease_of(any_store), next(PROCESSES), clock.now() + LEASE)
    hands = Hands()
    last = hall_of(hands, any_store, clock)
    await reopen(last, RUN, machine)
    with pytest.raises(Broken, match="run trial is set aside: it brought its worker down 5 times in a row"):
        await drive(last, RUN)
    assert hands.asked == []
    assert (await any_store.load(RUN)).status == "set aside: it brought its worker down 5 times in a row"
    assert (await lease_of(any_store)).owner == ""
    assert await any_store.due(clock.now() + 10 * LEASE, 10) == []
    (summary,) = await looking.summaries(any_store)
    assert summary.status == "set aside"
    assert "brought its worker down" in summary.reason


@pytest.mark.anyio
async def test_a_run_that_was_set_aside_can_still_be_cancelled(any_store: Store) -> None:
    hall = hall_of(Hands(), any_store)
    await begun(hall, line("bread"))
    await any_store.set_aside(RUN, "it was in the way")
    await reopen(hall, RUN, line("bread"))
    await cancel(hall, RUN, "enough", "stop-1")
    assert (await any_store.load(RUN)).status == "cancelled"


@pytest.mark.anyio
async def test_a_commit_begins_the_count_of_crashes_anew(any_store: Store) -> None:
    clock, machine = MovableClock(), line("bread", "milk")
    await begun(hall_of(Hands(), any_store, clock), machine)
    for _ in range(CRASHES - 2):
        await any_store.claim(RUN, await lease_of(any_store), next(PROCESSES), clock.now() + LEASE)
    hands = Hands()
    hands.shut("milk")
    hall = hall_of(hands, any_store, clock)
    await reopen(hall, RUN, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    await hands.wait_for_calls(2)
    assert (await lease_of(any_store)).crashes == 0
    hands.open("milk")
    assert (await driving).snapshot.status == "done"


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [line("bread"), fan("bread", "milk")], ids=["in place", "in tasks"])
async def test_a_cancelled_drive_lets_go_so_that_the_next_process_need_not_wait(
    any_store: Store, machine: Machine
) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread", "milk")
    one, other = alive(hands, any_store, clock, "one"), alive(Hands(), any_store, clock, "other")
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    lease = await lease_of(any_store)
    assert (lease.owner, lease.crashes) == ("", 0)
    assert await any_store.due(clock.now(), 10) == [RUN]
    await reopen(other, RUN, machine)
    assert (await drive(other, RUN)).snapshot.status == "done"


@pytest.mark.anyio
async def test_a_drive_that_is_cancelled_while_it_is_interrupted_still_stops(store: SqliteStore) -> None:
    hands = Hands()
    hands.shut("bread", "milk")
    hall = hall_of(hands, store, MovableClock())
    await begun(hall, line("bread", "milk"))
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    hall.crew.drives[RUN].interrupt()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(SOON):
            await driving
    assert hands.asked == ["bread"]


@pytest.mark.anyio
async def test_a_run_is_driven_once_in_one_hall(any_store: Store) -> None:
    hands = Hands()
    hands.shut("bread")
    hall = hall_of(hands, any_store)
    await begun(hall, line("bread"))
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    with pytest.raises(Refused, match="run trial is being driven here already"):
        await drive(hall, RUN)
    halls.leave(hall, RUN)
    hands.open("bread")
    assert (await driving).snapshot.status == "done"
    assert hands.asked == ["bread"]


@pytest.mark.anyio
async def test_what_is_told_in_the_same_hall_is_noticed_at_once(any_store: Store) -> None:
    hands = Hands()
    hands.shut("bread", "milk")
    hall = hall_of(hands, any_store)
    await begun(hall, TWO_SIDES)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    await answer(hall, RUN, True)
    async with asyncio.timeout(SOON):
        await hands.wait_for_calls(2)
    hands.open("milk")
    assert (await driving).snapshot.status == "done"
    assert hands.stopped == ["bread"]


# the pulse


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [line("bread"), fan("bread", "milk")], ids=["in place", "in tasks"])
async def test_a_cancel_by_another_hall_stops_what_is_performed_within_a_pulse(
    store: SqliteStore, elsewhere: SqliteStore, machine: Machine
) -> None:
    hands = Hands()
    hands.shut("bread", "milk")
    one, other = hall_of(hands, store, pulse=QUICK), hall_of(Hands(), elsewhere, pulse=QUICK)
    one.owner = f"{ALIVE}:one"
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(len(one.runs[RUN].head.pending))
    await reopen(other, RUN, machine)
    await cancel(other, RUN, "enough", "stop-1")
    async with asyncio.timeout(SOON):
        head = await driving
    assert head.snapshot.status == "cancelled"
    assert (hands.finished, sorted(hands.stopped)) == ([], sorted(hands.asked))
    assert await happened(one) == ["run.started", "run.cancelled"]
    assert (await lease_of(store)).owner == ""


@pytest.mark.anyio
async def test_an_answer_by_another_hall_is_noticed_and_what_is_still_wanted_is_not_repeated(
    store: SqliteStore, elsewhere: SqliteStore
) -> None:
    hands = Hands()
    hands.shut("bread", "milk")
    one, other = hall_of(hands, store, pulse=QUICK), hall_of(Hands(), elsewhere, pulse=QUICK)
    one.owner = f"{ALIVE}:one"
    await begun(one, TWO_SIDES)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    await reopen(other, RUN, TWO_SIDES)
    await answer(other, RUN, True)
    async with asyncio.timeout(SOON):
        await hands.wait_for_calls(2)
    assert hands.asked == ["bread", "milk"]
    assert hands.stopped == []
    hands.open("bread")
    await until_true(lambda: _finished(hands, "bread"))
    hands.open("milk")
    async with asyncio.timeout(SOON):
        head = await driving
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("bread", "milk")))
    assert hands.asked == ["bread", "milk"]


async def _finished(hands: Hands, what: str) -> bool:
    return what in hands.finished


@pytest.mark.anyio
async def test_news_that_leave_the_only_effect_wanted_do_not_interrupt_it(
    store: SqliteStore, elsewhere: SqliteStore
) -> None:
    machine = Machine(
        "patient",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("home")],
        moves=[On("fetching", "poked"), On("fetching", Fetched, to="home", do=keep)],
    )
    hands = Hands()
    hands.shut("bread")
    one, other = hall_of(hands, store, pulse=QUICK), hall_of(Hands(), elsewhere, pulse=QUICK)
    one.owner = f"{ALIVE}:one"
    await begun(one, machine)
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    await reopen(other, RUN, machine)
    await advance(other, RUN, (Named("poked"), "poke-1"))
    await until_true(lambda: _seen(one, 1))
    hands.open("bread")
    async with asyncio.timeout(SOON):
        await driving
    assert (hands.asked, hands.stopped) == (["bread"], [])
    assert await happened(one) == ["run.started", "poked", "fetched"]


async def _seen(hall: Hall, seq: int) -> bool:
    return hall.runs[RUN].head.seq >= seq


@pytest.mark.anyio
async def test_the_pulse_keeps_the_lease_of_a_long_effect(any_store: Store) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    one = alive(hands, any_store, clock, "one", pulse=QUICK)
    other = alive(Hands(), any_store, clock, "other", pulse=QUICK)
    await begun(one, line("bread"))
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    for _ in range(4):
        clock.move(LEASE / 2)

        async def renewed() -> bool:
            return (await lease_of(any_store)).until == clock.now() + LEASE

        await until_true(renewed)
    await reopen(other, RUN, line("bread"))
    with pytest.raises(Refused, match="driven by"):
        await drive(other, RUN)
    hands.open("bread")
    assert (await driving).snapshot.status == "done"
    assert hands.asked == ["bread"]


@pytest.mark.anyio
async def test_who_finds_its_lease_lost_stops_performing_and_says_who_has_the_run(any_store: Store) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    one = alive(hands, any_store, clock, "one", pulse=QUICK)
    await begun(one, line("bread"))
    driving = asyncio.create_task(drive(one, RUN))
    await hands.wait_for_calls(1)
    clock.move(LEASE + 1)
    await any_store.claim(RUN, lease_in(one), f"{ALIVE}:other", clock.now() + LEASE)
    with pytest.raises(Refused, match=f"driven by {ALIVE}:other"):
        async with asyncio.timeout(SOON):
            await driving
    assert hands.stopped == ["bread"]
    assert (await lease_of(any_store)).owner == f"{ALIVE}:other"


@pytest.mark.unreplayed("the store forgets an entry")
@pytest.mark.anyio
async def test_a_run_whose_store_has_lost_an_entry_is_set_aside_and_does_not_go_in_circles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, hands = MemoryStore(), Hands()
    hall = hall_of(hands, store)
    await begun(hall, line("bread", "milk", "eggs"))
    commit, taken = store.commit, []

    async def forget_the_second(run: str, head: Any, *given: Any) -> None:
        taken.append(head.seq)
        if len(taken) != 2:
            await commit(run, head, *given)

    monkeypatch.setattr(store, "commit", forget_the_second)
    with pytest.raises(Broken, match=r"its journal ends at entry 1, and entry 2 was committed here; nothing of it"):
        await asyncio.wait_for(drive(hall, RUN), SOON)
    assert "its journal ends at entry 1" in (await store.load(RUN)).status
    assert [what for what, _ in hands.calls] == ["bread", "milk", "eggs"]
