"""A child is a run of its own: begun once, heard once, given a share, and called off when nobody waits for it."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import DefinitionError, Refused
from moothall.kernel.effects import Alarm, Effect, StartChild
from moothall.kernel.events import ChildDone, Exhausted, GaveUp, Named
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, On, Parallel, State
from moothall.runtime.children import DEPTH, child_id, start_child, tell_parent
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance, answer, begin, cancel, reopen
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import Head, Reader, Record, Run, RunId, TellParent
from moothall.runtime.ports import Store
from moothall.runtime.rebuild import rebuilt
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import MovableClock
from tests.runtime.family import (
    ASKING_CHILD,
    CHILD,
    Killed,
    errand,
    family_hall,
    gather,
    killed,
    names,
    parent_begun,
    sending,
)
from tests.runtime.world import ATTEMPTS, QUICK, RUN, Basket, Fetch, Fetched, Hands, happened, journal, keep

ALIVE = f"{socket.gethostname()}:{os.getpid()}"
SOON = 10.0
ERRAND = errand("bread", "milk")
PARENT = sending(StartChild("errand"))


def impatient(start: StartChild) -> Machine:
    """A parent that may have enough, and then fetches its coat."""
    leaving = State("leaving", enter=Fetch("coat"))
    return sending(start, moves=[On("waiting", "enough", to="leaving")], more=[leaving])


IMPATIENT = impatient(StartChild("errand", budget={"calls": 4}))
LIMITS = Mapping[str, float]


async def driven(hall: Hall, run: RunId = RUN) -> Any:
    """The snapshot of a run that was driven as far as it goes."""
    async with asyncio.timeout(SOON):
        return (await drive(hall, run)).snapshot


async def child_driven(hall: Hall, run: RunId = CHILD) -> Any:
    """The snapshot of a child that was opened and driven alone."""
    await hall.open(run)
    return await driven(hall, run)


async def at_work(hall: Hall, machine: Machine, hands: Hands, limits: LIMITS | None = None) -> asyncio.Task[Any]:
    """A parent that is driven while its child performs its first effect."""
    await parent_begun(hall, machine, limits=limits)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    return driving


async def lost(driving: asyncio.Task[Any]) -> None:
    """The worker is gone."""
    driving.cancel()
    await asyncio.wait([driving])


# beginning


@pytest.mark.parametrize(
    ("run", "key", "child"),
    [("trial", "0.0", "trial-0-0"), ("trial", "12.3", "trial-12-3"), ("trial-0-0", "4.0", "trial-0-0-4-0")],
)
def test_a_child_s_id_follows_from_its_parent_s_and_the_key_of_its_effect(run: str, key: str, child: str) -> None:
    assert child_id(run, key) == child


@pytest.mark.anyio
async def test_a_child_is_a_run_of_its_own_that_knows_its_parent(store: SqliteStore) -> None:
    hall = family_hall(Hands(), PARENT, ERRAND, store=store)
    await parent_begun(hall, PARENT)
    assert (await driven(hall)).data == Basket(("bread", "milk"))
    record = (await store.load(CHILD)).record
    assert (record.machine, record.digest) == ("errand", ERRAND.digest)
    assert (record.parent, record.parent_key, record.depth) == (RUN, "0.0", 1)
    assert await names(store, RUN) == ["run.started", "effect.began", "done.invoke"]
    assert await names(store, CHILD) == ["run.started", "fetched", "fetched", "effect.delivered"]


@pytest.mark.anyio
async def test_a_child_that_is_there_already_is_not_begun_a_second_time() -> None:
    hall = family_hall(Hands(), PARENT, ERRAND)
    (pending,) = (await parent_begun(hall, PARENT)).pending
    assert await start_child(hall, RUN, pending) is None
    assert await start_child(hall, RUN, pending) is None
    assert await names(hall.store, CHILD) == ["run.started"]
    assert (await driven(hall)).status == "done"


@pytest.mark.anyio
async def test_an_id_that_another_run_has_is_no_child() -> None:
    hall = family_hall(Hands(), PARENT, ERRAND)
    stranger = Record(CHILD, ERRAND.name, ERRAND.digest, hall.clock.now())
    await begin(hall, stranger, ERRAND, Basket())
    await parent_begun(hall, PARENT)
    snapshot = await driven(hall)
    assert (snapshot.status, snapshot.reason) == ("failed", f"child errand: another run is called {CHILD}")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (StartChild("nobody"), "child nobody: no machine is called 'nobody'"),
        (StartChild("errand", {"got": 3}), "child errand: input.got: expected a list, got 3"),
        (StartChild("errand", {"gold": []}), "child errand: input: unknown field 'gold'; known are got"),
        (StartChild("errand", "text"), "child errand: input: expected an object with the fields of Basket, got 'text'"),
    ],
    ids=["unknown machine", "wrong input", "unknown field", "text"],
)
async def test_a_child_that_cannot_be_begun_is_given_up_and_the_reason_says_why(start: StartChild, reason: str) -> None:
    machine = sending(start)
    hall = family_hall(Hands(), machine, ERRAND)
    await parent_begun(hall, machine)
    snapshot = await driven(hall)
    assert (snapshot.status, snapshot.reason) == ("failed", reason)
    assert (await journal(hall))[-1]["event"]["fault"] == "definition"
    assert [one.record.run for one in await hall.store.runs()] == [RUN]


@pytest.mark.anyio
async def test_a_child_whose_first_step_cannot_be_stored_is_given_up() -> None:
    unstorable = Machine(
        "errand",
        data=Basket,
        states=[State("thinking", enter=lambda basket, _: Basket((object(),))), Final("back")],  # type: ignore[arg-type]
        moves=[On("thinking", Fetched, to="back")],
    )
    hall = family_hall(Hands(), PARENT, unstorable, store=MemoryStore(strict=True))
    await parent_begun(hall, PARENT)
    snapshot = await driven(hall)
    assert snapshot.status == "failed"
    assert snapshot.reason.startswith("child errand: a object cannot be stored")


@pytest.mark.anyio
async def test_a_machine_that_starts_itself_stops_at_the_depth_limit() -> None:
    endless = sending(StartChild("sending"))
    hall = family_hall(Hands(), endless)
    await parent_begun(hall, endless)
    snapshot = await driven(hall)
    assert snapshot.status == "failed"
    assert snapshot.reason.endswith(f"children are nested more than {DEPTH} deep")
    runs = await hall.store.runs()
    assert sorted(one.record.depth for one in runs) == list(range(DEPTH + 1))
    assert {one.status for one in runs} == {"failed"}


# ending


async def failing(hall: Hall, hands: Hands) -> None:
    hands.raising = {"bread": [OSError("the shop is closed")] * ATTEMPTS}
    await driven(hall)


async def limited(hall: Hall, hands: Hands) -> None:
    await driven(hall)


async def cancelled(hall: Hall, hands: Hands) -> None:
    hands.shut("bread")
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    await cancel(hall, CHILD, "a person said so", "stop-1")
    async with asyncio.timeout(SOON):
        await driving


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("start", "story", "reason"),
    [
        (StartChild("errand"), failing, "child errand: failed: fetch: OSError: the shop is closed"),
        (StartChild("errand", id="left"), failing, "child left: failed: fetch: OSError: the shop is closed"),
        (
            StartChild("errand", budget={"calls": 1}),
            limited,
            "child errand: limited: limit of 1 calls reached in fetching_milk",
        ),
        (StartChild("errand"), cancelled, "child errand: cancelled: a person said so"),
    ],
    ids=["failed", "failed, by its id", "limited", "cancelled"],
)
async def test_a_child_that_does_not_come_to_its_end_is_given_up_and_named(
    start: StartChild, story: Any, reason: str
) -> None:
    machine = sending(start, moves=[On("waiting", GaveUp, to="home", do=lambda basket, event: Basket((event.reason,)))])
    hands = Hands()
    hall = family_hall(hands, machine, ERRAND)
    await parent_begun(hall, machine)
    await story(hall, hands)
    head = hall.runs[RUN].head
    assert head.snapshot.active == ("home",)
    assert head.snapshot.data.got[0].startswith(reason)
    assert (await journal(hall))[-1]["event"]["id"] == start.id


@pytest.mark.anyio
async def test_without_a_row_for_it_a_failed_child_fails_its_parent() -> None:
    hands = Hands()
    hands.raising = {"bread": [OSError("closed")] * ATTEMPTS}
    hall = family_hall(hands, PARENT, ERRAND)
    await parent_begun(hall, PARENT)
    snapshot = await driven(hall)
    assert snapshot.status == "failed"
    assert snapshot.reason.startswith("child errand: failed: fetch: OSError: closed")


@pytest.mark.anyio
async def test_children_with_ids_are_told_apart_by_the_names_of_their_ends() -> None:
    machine = Machine(
        "two",
        data=Basket,
        states=[
            State("waiting", enter=[StartChild("errand", id="left"), StartChild("errand", id="right")]),
            Final("home"),
        ],
        moves=[
            On("waiting", "done.invoke.left", do=lambda basket, event: Basket((*basket.got, "left"))),
            On("waiting", "done.invoke.right", do=lambda basket, event: Basket((*basket.got, "right"))),
        ],
    )
    hall = family_hall(Hands(), machine, ERRAND, store=MemoryStore(strict=True))
    await parent_begun(hall, machine)
    assert sorted((await driven(hall)).data.got) == ["left", "right"]
    assert await reopen(hall, RUN, machine) == hall.runs[RUN].head


@pytest.mark.anyio
async def test_a_child_that_is_over_at_once_is_heard_of() -> None:
    short = Machine("errand", data=Basket, states=[Final("back", result=lambda basket, _: {"got": ["air"]})], moves=[])
    hall = family_hall(Hands(), PARENT, short)
    await parent_begun(hall, PARENT)
    assert (await driven(hall)).data == Basket(("air",))


@pytest.mark.anyio
async def test_what_a_machine_makes_of_its_data_is_what_the_parent_gets() -> None:
    telling = Machine(
        "errand",
        data=Basket,
        states=ERRAND.states,
        moves=ERRAND.moves,
        result=lambda basket: {"got": [" and ".join(basket.got)]},
    )
    hall = family_hall(Hands(), PARENT, telling)
    await parent_begun(hall, PARENT)
    assert (await driven(hall)).data == Basket(("bread and milk",))


@pytest.mark.anyio
async def test_an_end_that_is_told_twice_is_heard_and_charged_once(store: SqliteStore) -> None:
    hall = family_hall(Hands(), PARENT, ERRAND, store=store)
    await parent_begun(hall, PARENT)
    await driven(hall)
    before = await names(store, RUN), hall.runs[RUN].head.spent
    (told,) = [one for entry in await store.entries(CHILD) for one in entry["effects"] if one["kind"] == "tell.parent"]
    effect = TellParent(**told["effect"])
    for _ in range(2):
        await hall.open(RUN)
        await tell_parent(hall, effect)
    await hall.open(RUN)
    assert (await names(store, RUN), hall.runs[RUN].head.spent) == before == (before[0], {"calls": 2})


@pytest.mark.anyio
@pytest.mark.parametrize("form", [3, "text", [1, [2]], {"deep": {"er": None}}, False], ids=repr)
async def test_what_a_child_gives_may_have_any_form_that_can_be_stored(form: Any) -> None:
    short = Machine("errand", states=[Final("back", result=lambda data, _: form)], moves=[])
    machine = sending(StartChild("errand"), moves=[On("waiting", ChildDone, to="home")])
    hall = family_hall(Hands(), machine, short, store=MemoryStore(strict=True))
    await parent_begun(hall, machine)
    await driven(hall)
    assert (await journal(hall))[-1]["event"]["data"] == form


@pytest.mark.anyio
async def test_a_child_whose_result_goes_wrong_is_given_up_and_its_parent_goes_on() -> None:
    misprinted = Machine(
        "errand",
        data=Basket,
        states=ERRAND.states,
        moves=ERRAND.moves,
        result=lambda basket: basket.misprint,  # type: ignore[attr-defined]
    )
    hall = family_hall(Hands(), PARENT, misprinted)
    await parent_begun(hall, PARENT)
    snapshot = await driven(hall)
    assert snapshot.status == "failed"
    assert "misprint" in snapshot.reason


@pytest.mark.anyio
@pytest.mark.parametrize("opened", [False, True], ids=["unknown here", "open here"])
async def test_a_child_whose_parent_was_deleted_ends_in_peace(opened: bool) -> None:
    store, hands = MemoryStore(strict=True), Hands()
    hands.shut("bread")
    first = family_hall(hands, PARENT, ERRAND, store=store)
    await lost(await at_work(first, PARENT, hands))
    hall = family_hall(Hands(), PARENT, ERRAND, store=store)
    if opened:
        await hall.open(RUN)
    await store.forget(RUN)
    snapshot = await child_driven(hall)
    assert (snapshot.status, hall.runs[CHILD].head.pending) == ("done", ())


@pytest.mark.anyio
async def test_a_child_that_was_deleted_is_given_up() -> None:
    store = MemoryStore(strict=True)
    hall = family_hall(Hands(), PARENT, ASKING_CHILD, store=store)
    await parent_begun(hall, PARENT)
    await driven(hall)
    await store.forget(CHILD)
    later = family_hall(Hands(), PARENT, ASKING_CHILD, store=store)
    await later.open(RUN)
    snapshot = await driven(later)
    assert (snapshot.status, "child errand" in snapshot.reason) == ("failed", True)


# leaving


@pytest.mark.anyio
async def test_a_child_at_work_is_called_off_when_its_state_is_left() -> None:
    hands = Hands()
    hands.shut("bread")
    hall = family_hall(hands, IMPATIENT, ERRAND)
    driving = await at_work(hall, IMPATIENT, hands)
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    try:
        async with asyncio.timeout(SOON):
            await driving
    finally:
        await lost(driving)
    assert hands.stopped == ["bread"]
    stored = await hall.store.load(CHILD)
    assert (stored.status, stored.head["snapshot"]["reason"]) == ("cancelled", "sending left waiting")
    assert hall.runs[RUN].head.spent == {"calls": 2}
    assert "done.invoke" not in await happened(hall)


@pytest.mark.anyio
@pytest.mark.parametrize("child", [ERRAND, ASKING_CHILD], ids=["at work", "waiting for a person"])
async def test_a_child_is_called_off_by_whoever_drives_its_parent_next(child: Machine) -> None:
    hands, store = Hands(), MemoryStore(strict=True)
    hands.shut("bread")
    first = family_hall(hands, IMPATIENT, child, store=store)
    await parent_begun(first, IMPATIENT)
    driving = asyncio.create_task(drive(first, RUN))
    for _ in range(50):
        await asyncio.sleep(0)
    await lost(driving)
    hall = family_hall(Hands(), IMPATIENT, child, store=store)
    await hall.open(RUN)
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    await driven(hall)
    assert (await store.load(CHILD)).status == "cancelled"
    assert hall.runs[RUN].head.pending == ()


@pytest.mark.anyio
async def test_a_child_that_was_never_begun_is_not_begun_to_be_called_off() -> None:
    hands = Hands()
    hall = family_hall(hands, IMPATIENT, ERRAND)
    await parent_begun(hall, IMPATIENT)
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    await driven(hall)
    assert hands.asked == ["coat"]
    assert [one.record.run for one in await hall.store.runs()] == [RUN]
    assert (hall.runs[RUN].head.spent, hall.runs[RUN].head.pending) == ({"calls": 1}, ())


@pytest.mark.anyio
async def test_what_a_called_off_child_has_not_spent_is_there_for_what_comes_instead() -> None:
    machine, hands = impatient(StartChild("errand")), Hands()
    hall = family_hall(hands, machine, ERRAND)
    await parent_begun(hall, machine, limits={"calls": 5})
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    await driven(hall)
    assert hands.asked == ["coat"]


@pytest.mark.anyio
async def test_what_a_child_at_work_has_not_spent_is_there_for_what_comes_instead_once_it_has_stopped() -> None:
    machine, hands = impatient(StartChild("errand")), Hands()
    hands.shut("bread")
    hall = family_hall(hands, machine, ERRAND)
    driving = await at_work(hall, machine, hands, {"calls": 5})
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    async with asyncio.timeout(SOON):
        await driving
    assert hands.asked == ["bread", "coat"]
    assert hall.runs[RUN].head.spent == {"calls": 2}


@pytest.mark.anyio
async def test_three_generations_are_called_off_together_and_only_what_they_spent_is_charged() -> None:
    top, *below = nested(2)
    machine = Machine(
        top.name,
        data=Basket,
        states=[*top.states, Final("left")],
        moves=[*top.moves, On("waiting", "enough", to="left")],
    )
    hands = Hands()
    hands.shut("a")
    hall = family_hall(hands, machine, *below)
    driving = await at_work(hall, machine, hands, {"calls": 9})
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    async with asyncio.timeout(SOON):
        await driving
    runs = await hall.store.runs()
    assert {one.record.machine: one.status for one in runs} == {
        "level 1": "done",
        "level 2": "cancelled",
        "errand": "cancelled",
    }
    assert [one.head["pending"] for one in runs] == [[], [], []]
    assert hall.runs[RUN].head.spent == {"calls": 1}


@pytest.mark.anyio
async def test_the_end_of_a_child_that_nobody_waits_for_is_ignored_and_its_spending_charged_once() -> None:
    hands, store = Hands(), MemoryStore(strict=True)
    hands.shut("bread")
    first = family_hall(hands, IMPATIENT, ERRAND, store=store)
    await lost(await at_work(first, IMPATIENT, hands, {"calls": 9}))
    hall = family_hall(Hands(), IMPATIENT, ERRAND, store=store)
    await hall.open(RUN)
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    share = {one.key: one.share for one in hall.runs[RUN].head.pending}["0.0"]
    assert share == {"calls": 4}
    assert hall.runs[RUN].head.spent == {}
    assert (await child_driven(hall)).status == "done"
    await hall.open(RUN)
    head = hall.runs[RUN].head
    assert head.spent == {"calls": 2}
    assert [one.key for one in head.pending] == ["2.0"]
    (end,) = [entry for entry in await store.entries(RUN) if entry["cause"] == "0.0"]
    assert (end["event"]["name"], end["event"]["usage"]) == ("effect.delivered", {"calls": 2})
    assert end["ignored"]
    assert (await driven(hall)).data == Basket()
    assert hall.runs[RUN].head.spent == {"calls": 3}


@pytest.mark.anyio
async def test_a_child_of_a_cancelled_parent_is_cancelled() -> None:
    hands, store = Hands(), MemoryStore(strict=True)
    hall = family_hall(hands, PARENT, ASKING_CHILD, store=store)
    await parent_begun(hall, PARENT)
    await driven(hall)
    await cancel(hall, RUN, "enough", "stop-1")
    snapshot = await driven(hall)
    assert snapshot.status == "cancelled"
    assert (await store.load(CHILD)).status == "cancelled"
    assert hall.runs[RUN].head.pending == ()
    assert await store.due(hall.clock.now(), 10) == []


@pytest.mark.anyio
async def test_the_other_children_are_called_off_when_the_first_has_won() -> None:
    machine = Machine(
        "race",
        data=Basket,
        states=[State("racing", enter=[StartChild("hare"), StartChild("snail")]), Final("won")],
        moves=[On("racing", ChildDone, to="won", do=gather)],
    )
    hands = Hands()
    hands.shut("slowly")
    hall = family_hall(hands, machine, errand("fast", name="hare"), errand("slowly", name="snail"))
    await parent_begun(hall, machine)
    snapshot = await driven(hall)
    assert (snapshot.status, snapshot.data) == ("done", Basket(("fast",)))
    assert hands.stopped == ["slowly"]
    assert (await hall.store.load(f"{RUN}-0-1")).status == "cancelled"
    assert hall.runs[RUN].head.spent == {"calls": 2}


@pytest.mark.anyio
async def test_a_child_that_tidies_up_before_it_stops_is_waited_for_and_paid_for() -> None:
    careful = Machine(
        "errand",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("tidying", enter=Fetch("broom")), Final("back")],
        moves=[
            On("fetching", Fetched, to="back", do=keep),
            On("fetching", "run.cancelled", to="tidying"),
            On("tidying", Fetched, to="back", do=keep),
        ],
    )
    hands = Hands()
    hands.shut("bread")
    hall = family_hall(hands, IMPATIENT, careful)
    driving = await at_work(hall, IMPATIENT, hands, {"calls": 9})
    await advance(hall, RUN, (Named("enough"), "enough-1"))
    try:
        async with asyncio.timeout(SOON):
            await driving
    finally:
        await lost(driving)
    assert sorted(hands.asked) == ["bread", "broom", "coat"]
    assert (await hall.store.load(CHILD)).status == "done"
    assert hall.runs[RUN].head.spent == {"calls": 3}
    assert hall.runs[RUN].head.snapshot.data == Basket()


# asking a person


@pytest.mark.anyio
async def test_while_a_child_waits_for_a_person_its_parent_waits_too_and_nobody_is_busy(store: SqliteStore) -> None:
    hall = family_hall(Hands(), PARENT, ASKING_CHILD, store=store)
    await parent_begun(hall, PARENT)
    assert (await driven(hall)).active == ("waiting",)
    assert hall.crew.drives == {}
    assert await store.due(hall.clock.now() + 10_000, 10) == []
    assert await store.owners() == []


@pytest.mark.anyio
async def test_the_answer_to_a_child_takes_its_parent_on(store: SqliteStore) -> None:
    await_answer = family_hall(Hands(), PARENT, ASKING_CHILD, store=store)
    await parent_begun(await_answer, PARENT)
    await driven(await_answer)
    hall = family_hall(Hands(), PARENT, ASKING_CHILD, store=store)
    await hall.open(CHILD)
    await answer(hall, CHILD, "the baker's")
    assert (await driven(hall, CHILD)).status == "done"
    await hall.open(RUN)
    assert hall.runs[RUN].head.snapshot.data == Basket(("the baker's",))
    assert hall.runs[RUN].head.snapshot.status == "done"


# shares


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limits", "starts", "shares"),
    [
        ({}, [{}], [{}]),
        ({"calls": 10}, [{}], [{"calls": 10}]),
        ({"calls": 10}, [{}, {}], [{"calls": 5}, {"calls": 5}]),
        ({"calls": 10}, [{}, {}, {}], [{"calls": 3}, {"calls": 3}, {"calls": 4}]),
        ({"tokens": 7}, [{}, {}], [{"tokens": 3}, {"tokens": 4}]),
        ({"usd": 1.0}, [{}, {}, {}, {}], [{"usd": 0.25}] * 4),
        ({"calls": 10}, [{"calls": 4}], [{"calls": 4}]),
        ({"calls": 10}, [{"calls": 4}, {}, {}], [{"calls": 4}, {"calls": 3}, {"calls": 3}]),
        ({"calls": 10, "usd": 1.0}, [{"calls": 4}, {}], [{"calls": 4, "usd": 0.5}, {"calls": 6, "usd": 0.5}]),
        ({}, [{"calls": 4}], [{"calls": 4}]),
        ({"seconds": 60, "transitions": 9}, [{}], [{}]),
    ],
    ids=repr,
)
async def test_a_child_gets_what_its_effect_says_and_of_the_rest_as_much_as_the_others(
    limits: LIMITS, starts: Sequence[LIMITS], shares: Sequence[LIMITS]
) -> None:
    machine = sending(*(StartChild("errand", budget=budget) for budget in starts))
    head = await parent_begun(family_hall(Hands(), machine, ERRAND), machine, limits=limits)
    assert [one.share for one in head.pending] == shares
    assert [one.denied for one in head.pending] == [""] * len(starts)


@pytest.mark.anyio
async def test_what_one_child_was_promised_is_set_aside_before_the_others_share_the_rest() -> None:
    machine = sending(StartChild("errand"), StartChild("errand", budget={"calls": 4}))
    head = await parent_begun(family_hall(Hands(), machine, ERRAND), machine, limits={"calls": 10})
    assert [(one.share, one.denied) for one in head.pending] == [({"calls": 6}, ""), ({"calls": 4}, "")]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wanted",
    [
        [Fetch("bread"), StartChild("errand")],
        [StartChild("errand"), Fetch("bread")],
    ],
    ids=["before it", "after it"],
)
async def test_what_stands_beside_a_child_is_not_the_child_s(wanted: list[Effect]) -> None:
    machine = Machine("both", data=Basket, states=[State("at work", enter=wanted)], moves=[])
    head = await parent_begun(family_hall(Hands(), machine, ERRAND), machine, limits={"calls": 10})
    assert [one.denied for one in head.pending] == ["", ""]
    assert [one.share for one in head.pending if one.effect == StartChild("errand")] == [{"calls": 9}]


@pytest.mark.anyio
async def test_a_child_that_the_budget_does_not_cover_is_not_begun_and_its_parent_hears_exhausted() -> None:
    machine = sending(
        StartChild("errand", budget={"calls": 11}),
        moves=[On("waiting", Exhausted, to="home", do=lambda basket, event: Basket((event.resource,)))],
    )
    hands = Hands()
    hall = family_hall(hands, machine, ERRAND)
    (pending,) = (await parent_begun(hall, machine, limits={"calls": 10})).pending
    assert pending.denied == "calls"
    assert (await driven(hall)).data == Basket(("calls",))
    assert hands.asked == []
    assert [one.record.run for one in await hall.store.runs()] == [RUN]


@pytest.mark.anyio
async def test_what_the_budget_denies_ends_after_the_children_that_are_at_work() -> None:
    machine = sending(StartChild("errand", budget={"calls": 2}), StartChild("errand", budget={"calls": 2}))
    hands = Hands()
    hands.shut("bread")
    hall = family_hall(hands, machine, ERRAND)
    driving = await at_work(hall, machine, hands, {"calls": 3})
    for _ in range(20):
        await asyncio.sleep(0)
    hands.open("bread")
    async with asyncio.timeout(SOON):
        snapshot = (await driving).snapshot
    assert (snapshot.status, snapshot.data) == ("limited", Basket(("bread", "milk")))


@pytest.mark.anyio
async def test_a_child_cannot_spend_more_than_its_share_however_much_its_parent_has() -> None:
    machine = sending(
        StartChild("errand", budget={"calls": 2}), moves=[On("waiting", GaveUp, to="home", do=lambda basket, _: basket)]
    )
    hands = Hands()
    hall = family_hall(hands, machine, errand("a", "b", "c", "d"))
    await parent_begun(hall, machine, limits={"calls": 100})
    await driven(hall)
    assert hands.asked == ["a", "b"]
    assert hall.runs[RUN].head.spent == {"calls": 2}
    assert (await hall.store.load(CHILD)).status == "limited"


@pytest.mark.anyio
async def test_a_machine_s_own_budget_counts_where_it_is_less_than_its_share() -> None:
    frugal = Machine("errand", data=Basket, states=ERRAND.states, moves=ERRAND.moves, budget=Budget(calls=1, usd=9.0))
    hall = family_hall(Hands(), PARENT, frugal)
    await parent_begun(hall, PARENT, limits={"calls": 5, "usd": 2.0})
    await driven(hall)
    assert (await hall.store.load(CHILD)).record.limits == {"calls": 1, "usd": 2.0}
    assert hall.runs[RUN].head.snapshot.reason.startswith("child errand: limited: limit of 1 calls")


TWO_AFTER_ANOTHER = Machine(
    "two",
    data=Basket,
    states=[State("one", enter=StartChild("errand")), State("two", enter=StartChild("errand")), Final("home")],
    moves=[On("one", ChildDone, to="two", do=gather), On("two", ChildDone, to="home", do=gather)],
)


@pytest.mark.anyio
async def test_what_a_child_did_not_spend_is_there_for_the_next() -> None:
    hall = family_hall(Hands(), TWO_AFTER_ANOTHER, ERRAND)
    await parent_begun(hall, TWO_AFTER_ANOTHER, limits={"calls": 5})
    assert (await driven(hall)).status == "done"
    runs = {one.record.run: one.record.limits for one in await hall.store.runs()}
    assert (runs[CHILD], runs[f"{RUN}-2-0"]) == ({"calls": 5}, {"calls": 3})
    assert hall.runs[RUN].head.spent == {"calls": 4}


@pytest.mark.anyio
async def test_what_children_report_they_used_is_their_parent_s_spending() -> None:
    hands = Hands()
    hands.usage = {"bread": {"tokens": 30, "usd": 0.125}, "milk": {"tokens": 12}}
    hall = family_hall(hands, PARENT, ERRAND)
    await parent_begun(hall, PARENT, limits={"usd": 1.0})
    await driven(hall)
    assert hall.runs[RUN].head.spent == {"calls": 2, "tokens": 42, "usd": 0.125}


@pytest.mark.anyio
async def test_time_that_a_child_was_given_is_nothing_that_its_parent_spends() -> None:
    machine = sending(StartChild("errand", budget={"seconds": 60, "calls": 5}))
    hall = family_hall(Hands(), machine, ERRAND)
    await parent_begun(hall, machine)
    await driven(hall)
    assert hall.runs[RUN].head.spent == {"calls": 2}


def nested(deep: int) -> list[Machine]:
    """Machines that start each other, so many deep, and an errand at the bottom."""
    above = [
        Machine(
            f"level {level}",
            data=Basket,
            states=[
                State("waiting", enter=StartChild(f"level {level + 1}" if level < deep else "errand")),
                Final("home"),
            ],
            moves=[On("waiting", ChildDone, to="home", do=gather)],
        )
        for level in range(1, deep + 1)
    ]
    return [*above, errand("a", "b", "c")]


@pytest.mark.anyio
@pytest.mark.parametrize(("calls", "status", "asked"), [(3, "done", 3), (2, "failed", 2)])
async def test_a_share_is_passed_down_and_what_was_spent_is_passed_up(calls: int, status: str, asked: int) -> None:
    machines, hands = nested(3), Hands()
    hall = family_hall(hands, *machines, store=MemoryStore(strict=True))
    await parent_begun(hall, machines[0], limits={"calls": calls})
    snapshot = await driven(hall)
    runs = [one.record for one in await hall.store.runs()]
    assert sorted(record.depth for record in runs) == [0, 1, 2, 3]
    assert {tuple(record.limits.items()) for record in runs} == {(("calls", calls),)}
    assert (snapshot.status, len(hands.calls)) == (status, asked)
    assert hall.runs[RUN].head.spent == {"calls": asked}


@pytest.mark.anyio
async def test_the_reason_of_a_failure_far_below_is_told_level_by_level() -> None:
    machines = nested(3)
    hall = family_hall(Hands(), *machines)
    await parent_begun(hall, machines[0], limits={"calls": 1})
    reason = "limit of 1 calls reached in fetching_b"
    whole = f"child level 2: failed: child level 3: failed: child errand: limited: {reason}"
    assert (await driven(hall)).reason == whole


@pytest.mark.anyio
async def test_the_wall_time_that_is_left_is_passed_down() -> None:
    clock = MovableClock()
    machine = Machine(
        "late",
        data=Basket,
        states=[State("fetching", enter=Fetch("coat")), State("waiting", enter=StartChild("level 1")), Final("home")],
        moves=[On("fetching", Fetched, to="waiting"), On("waiting", ChildDone, to="home", do=gather)],
    )
    hands = Hands()
    hands.shut("coat", "a")
    hall = family_hall(hands, machine, *nested(1), clock=clock)
    driving = await at_work(hall, machine, hands, {"seconds": 60})
    clock.move(20)
    hands.open("coat")
    await hands.wait_for_calls(2)
    limits = {one.record.machine: one.record.limits for one in await hall.store.runs()}
    assert limits == {"late": {"seconds": 60}, "level 1": {"seconds": 40}, "errand": {"seconds": 40}}
    hands.open("a")
    assert (await driving).snapshot.status == "done"


@pytest.mark.anyio
async def test_a_child_is_stopped_when_the_wall_time_of_its_parent_is_over() -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    hall = family_hall(hands, PARENT, ERRAND, clock=clock, pulse=QUICK)
    driving = await at_work(hall, PARENT, hands, {"seconds": 60})
    clock.move(61)
    async with asyncio.timeout(SOON):
        snapshot = (await driving).snapshot
    assert hands.stopped == ["bread"]
    assert snapshot.reason == "child errand: limited: limit of 60 seconds reached in fetching_bread"


# other workers and crashes


@pytest.mark.anyio
async def test_a_child_may_be_driven_by_another_worker_and_its_parent_by_a_third(store: SqliteStore) -> None:
    hands = Hands()
    hands.shut("bread")
    first = family_hall(hands, PARENT, ERRAND, store=store)
    await lost(await at_work(first, PARENT, hands))
    assert sorted(await store.due(first.clock.now(), 10)) == [CHILD]
    second = family_hall(Hands(), PARENT, ERRAND, store=store)
    assert (await child_driven(second)).status == "done"
    third = family_hall(Hands(), PARENT, ERRAND, store=store)
    await third.open(RUN)
    assert third.runs[RUN].head.snapshot.data == Basket(("bread", "milk"))
    assert await store.owners() == []


BUSY = Machine(
    "busy",
    data=Basket,
    states=[
        Parallel(
            "both",
            [
                State("left", [State("waiting", enter=StartChild("errand")), Final("back")]),
                State("right", [State("fetching", enter=Fetch("tea")), Final("sipped")]),
            ],
        ),
        Final("home"),
    ],
    moves=[
        On("waiting", ChildDone, to="back", do=gather),
        On("fetching", Fetched, to="sipped", do=keep),
        On("both", "done.state.both", to="home"),
    ],
)


async def until_there(hall: Hall, state: str) -> None:
    """Come back when the run has reached a state; every turn lets the pulse beat."""
    async with asyncio.timeout(SOON):
        while True:
            if state in hall.runs[RUN].head.snapshot.active:
                return
            await asyncio.sleep(QUICK)


@pytest.mark.anyio
async def test_a_parent_at_work_hears_of_a_child_that_is_driven_elsewhere(tmp_path: Path) -> None:
    here, there = (SqliteStore(tmp_path / "runs.db", durability="normal") for _ in range(2))
    hands, others = Hands(), Hands()
    hands.shut("bread", "tea")
    first = family_hall(hands, BUSY, ERRAND, store=here, pulse=QUICK)
    first.owner = f"{ALIVE}:first"
    await parent_begun(first, BUSY)
    driving = asyncio.create_task(drive(first, RUN))
    await hands.wait_for_calls(2)
    await lost(driving)
    others.shut("milk")
    elsewhere = family_hall(others, BUSY, ERRAND, store=there, pulse=QUICK)
    elsewhere.owner = f"{ALIVE}:elsewhere"
    away = asyncio.create_task(child_driven(elsewhere))
    await others.wait_for_calls(2)
    await first.open(RUN)
    driving = asyncio.create_task(drive(first, RUN))
    await hands.wait_for_calls(3)
    others.open("milk")
    assert (await away).status == "done"
    await until_there(first, "back")
    hands.open("tea")
    async with asyncio.timeout(SOON):
        head = await driving
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("bread", "milk", "tea")))
    here.close()
    there.close()


@pytest.mark.anyio
@pytest.mark.parametrize("run", [RUN, CHILD], ids=["the parent", "the child"])
async def test_who_drives_a_child_at_work_holds_its_parent_too(store: SqliteStore, run: RunId) -> None:
    hands = Hands()
    hands.shut("bread")
    here = family_hall(hands, PARENT, ERRAND, store=store)
    here.owner = f"{ALIVE}:here"
    driving = await at_work(here, PARENT, hands)
    there = family_hall(Hands(), PARENT, ERRAND, store=store)
    await there.open(run)
    with pytest.raises(Refused, match=f"run {run} is being driven by {ALIVE}:here; it goes on there"):
        await driven(there, run)
    hands.open("bread")
    assert (await driving).snapshot.status == "done"
    assert hands.asked == ["bread", "milk"]


FAMILY_TREE = Machine(
    "sending",
    data=Basket,
    states=[State("waiting", enter=StartChild("errand")), State("dressing", enter=Fetch("coat")), Final("home")],
    moves=[On("waiting", ChildDone, to="dressing", do=gather), On("dressing", Fetched, to="home", do=keep)],
)
WRITES = 8


async def told(store: Store, run: RunId) -> list[tuple[Any, ...]]:
    """A journal without its times."""
    return [
        (entry["cause"], entry["event"], entry["from"], entry["to"], entry["taken"], entry["effects"])
        for entry in await store.entries(run)
    ]


async def all_driven(store: Store, hands: Hands) -> None:
    """Everything that wants attention, driven in a new process."""
    hall = family_hall(hands, FAMILY_TREE, ERRAND, store=store)
    try:
        await hall.open(RUN)
    except Refused:
        await parent_begun(hall, FAMILY_TREE)
    await drive(hall, RUN)
    gone = [owner for owner in await store.owners() if is_gone(owner)]
    for run in await store.due(hall.clock.now(), 10, gone):
        await hall.open(run)
        await drive(hall, run)


async def undisturbed() -> dict[RunId, list[tuple[Any, ...]]]:
    """The journals of a family that nothing interrupted."""
    store = MemoryStore(strict=True)
    await all_driven(store, Hands())
    return {run: await told(store, run) for run in (RUN, CHILD)}


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_family_whose_worker_died_at_any_write_leaves_the_journals_of_one_that_did_not(
    tmp_path: Path, write: int, before: bool
) -> None:
    hands, store = Hands(), SqliteStore(tmp_path / "runs.db", durability="normal")
    with pytest.raises(Killed):
        await all_driven(killed(store, write, before=before), hands)
    store.close()
    store = SqliteStore(tmp_path / "runs.db", durability="normal")
    await all_driven(store, hands)
    whole = await undisturbed()
    assert {run: await told(store, run) for run in (RUN, CHILD)} == whole
    assert await store.due(10_000.0, 10) == []
    assert await store.owners() == []
    assert len(hands.calls) <= 4
    store.close()


@pytest.mark.anyio
async def test_a_family_that_dies_at_every_single_write_still_comes_home(tmp_path: Path) -> None:
    hands, deaths = Hands(), 0
    while True:
        store = SqliteStore(tmp_path / "runs.db", durability="normal")
        try:
            await all_driven(killed(store, 1, before=False), hands)
            break
        except Killed:
            deaths += 1
        finally:
            store.close()
    assert deaths == WRITES
    assert hands.asked == ["bread", "milk", "coat"]


HURRIED = Machine(
    "hurried",
    data=Basket,
    states=[
        State("waiting", enter=[StartChild("errand", budget={"calls": 2}), Alarm(Named("rung"), 5)]),
        State("leaving", enter=Fetch("coat")),
        Final("home"),
    ],
    moves=[On("waiting", "rung", to="leaving"), On("leaving", Fetched, to="home", do=keep)],
)


async def hurried(store: Store, hands: Hands) -> None:
    """A parent that calls its child off, driven with all that wants attention in a new process."""
    hall = family_hall(hands, HURRIED, ASKING_CHILD, store=store)
    try:
        await hall.open(RUN)
    except Refused:
        await parent_begun(hall, HURRIED, limits={"calls": 5})
    await drive(hall, RUN)
    gone = [owner for owner in await store.owners() if is_gone(owner)]
    for run in await store.due(hall.clock.now(), 10, gone):
        await hall.open(run)
        await drive(hall, run)


@pytest.mark.anyio
async def test_a_child_is_called_off_wherever_the_worker_of_its_parent_died(tmp_path: Path) -> None:
    for write, before in [(write, before) for write in range(1, 10) for before in (True, False)]:
        hands, file = Hands(), tmp_path / f"{write}-{before}.db"
        with closing(SqliteStore(file, durability="normal")) as store:
            async with asyncio.timeout(SOON):
                with pytest.raises(Killed):
                    await hurried(killed(store, write, before=before), hands)
                await hurried(store, hands)
            assert [one.status for one in await store.runs()] == ["cancelled", "done"], (write, before)
            assert (await store.load(RUN)).head["spent"] == {"calls": 1}, (write, before)
            assert len(hands.calls) <= 2
            assert await store.due(10_000.0, 10) == []


@pytest.mark.anyio
@pytest.mark.parametrize("limits", [{}, {"calls": 20}], ids=["free", "one call each"])
async def test_twenty_children_at_once_are_all_heard_and_none_spends_what_is_another_s(
    store: SqliteStore, limits: LIMITS
) -> None:
    machine = sending(*(StartChild("errand") for _ in range(20)))
    hands = Hands()
    hall = family_hall(hands, machine, errand("bread"), store=store)
    await parent_begun(hall, machine, limits=limits)
    async with asyncio.timeout(SOON):
        head = await drive(hall, RUN)
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("bread",) * 20))
    assert head.spent == {"calls": 20}
    runs = await store.runs()
    assert [one.status for one in runs] == ["done"] * 21
    assert len({one.record.run for one in runs}) == 21
    assert await store.owners() == []


@pytest.mark.anyio
async def test_twenty_children_whose_worker_is_lost_in_the_middle_are_all_heard_once(store: SqliteStore) -> None:
    machine = sending(*(StartChild("errand") for _ in range(20)))
    hands = Hands()
    hands.shut("bread")
    first = family_hall(hands, machine, errand("bread"), store=store)
    await parent_begun(first, machine)
    driving = asyncio.create_task(drive(first, RUN))
    await hands.wait_for_calls(20)
    await lost(driving)
    hall = family_hall(Hands(), machine, errand("bread"), store=store)
    await hall.open(RUN)
    async with asyncio.timeout(SOON):
        head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("bread",) * 20)
    causes = [entry["cause"] for entry in await store.entries(RUN) if entry["event"]["name"] == "done.invoke"]
    assert sorted(causes) == sorted(f"0.{number}" for number in range(20))


@pytest.mark.anyio
async def test_children_that_end_at_the_same_moment_tell_a_parent_that_is_not_driven_here(store: SqliteStore) -> None:
    machine = sending(*(StartChild("errand") for _ in range(20)))
    hands, others = Hands(), Hands()
    hands.shut("bread")
    others.shut("bread")
    first = family_hall(hands, machine, errand("bread"), store=store)
    await parent_begun(first, machine)
    driving = asyncio.create_task(drive(first, RUN))
    await hands.wait_for_calls(20)
    await lost(driving)
    hall = family_hall(others, machine, errand("bread"), store=store)
    children = [asyncio.create_task(child_driven(hall, f"{RUN}-0-{number}")) for number in range(20)]
    await others.wait_for_calls(20)
    others.open("bread")
    assert [one.status for one in await asyncio.gather(*children)] == ["done"] * 20
    await hall.open(RUN)
    assert hall.runs[RUN].head.snapshot.data == Basket(("bread",) * 20)
    assert await store.owners() == []


@pytest.mark.anyio
async def test_children_that_end_at_the_same_moment_do_not_stand_in_each_other_s_way(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, tried = store.commit, list[RunId]()

    async def counted(run: RunId, *given: Any) -> None:
        tried.append(run)
        await commit(run, *given)

    monkeypatch.setattr(store, "commit", counted)
    machine, hands = sending(*(StartChild("errand") for _ in range(20))), Hands()
    hands.shut("bread")
    hall = family_hall(hands, machine, errand("bread"), store=store)
    await parent_begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(20)
    hands.open("bread")
    async with asyncio.timeout(SOON):
        assert (await driving).snapshot.status == "done"
    assert tried.count(RUN) == len(await store.entries(RUN)) - 1


async def watched(hall: Hall, machine: Machine) -> dict[RunId, list[Head]]:
    """The heads that an observer sees of a run and its children, run by run."""
    heads: dict[RunId, list[Head]] = {}
    hall.observers.append(lambda run, entry, head: heads.setdefault(run, []).append(head))
    await parent_begun(hall, machine, limits={"calls": 5, "usd": 1.0})
    await driven(hall)
    return heads


@pytest.mark.anyio
async def test_every_head_of_a_parent_and_its_child_is_the_one_that_its_journal_makes(store: SqliteStore) -> None:
    heads = await watched(family_hall(Hands(), TWO_AFTER_ANOTHER, ERRAND, store=store), TWO_AFTER_ANOTHER)
    for run, machine in ((RUN, TWO_AFTER_ANOTHER), (CHILD, ERRAND)):
        entries = await store.entries(run)
        known, reader = Run((await store.load(run)).record, machine), Reader(machine, {"fetch": Fetch})
        assert reader.head((await store.load(run)).head) == rebuilt(known, reader, entries)
        for seq, head in enumerate(heads[run]):
            assert rebuilt(known, reader, entries[: seq + 1]) == head


@pytest.mark.anyio
async def test_an_observer_sees_every_entry_of_a_child_to_the_last(store: SqliteStore) -> None:
    heads = await watched(family_hall(Hands(), TWO_AFTER_ANOTHER, ERRAND, store=store), TWO_AFTER_ANOTHER)
    assert {run: len(seen) for run, seen in heads.items()} == {RUN: 5, CHILD: 4, f"{RUN}-2-0": 4}


@pytest.mark.anyio
async def test_a_mistake_in_the_middle_of_a_child_reaches_who_drives_the_parent() -> None:
    wrong = Machine(
        "errand",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("back")],
        moves=[On("fetching", Fetched, to="back", do=lambda basket, _: Basket((object(),)))],  # type: ignore[arg-type]
    )
    hall = family_hall(Hands(), PARENT, wrong, store=MemoryStore(strict=True))
    await parent_begun(hall, PARENT)
    with pytest.raises(DefinitionError, match="cannot be stored"):
        await driven(hall)
