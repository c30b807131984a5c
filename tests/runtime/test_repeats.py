"""What may happen to an effect that was under way when its worker was lost: four kinds, four answers."""

import asyncio
import os
import socket
from typing import Any

import pytest

from moothall.agents.ask import CallTool, Returned
from moothall.errors import EffectFailed, Refused
from moothall.kernel.effects import Effect, Repeats
from moothall.kernel.events import Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, Hall, advance, answer, questions, reopen
from moothall.runtime.ports import LEASE, Context, Performer
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.test_crashes import Died, mortal
from tests.runtime.till import ARGUMENTS, Till, in_doubt, keep_receipt, lost_in_the_middle, opened, paying
from tests.runtime.world import PROCESSES, QUICK, RUN, Basket, Fetched, begun, happened, journal, keep, lease_in

KEY = "trial.0.0"
ONCE = paying("at-most-once")
CHECKED = paying("check-first")
SOON = 10.0


# what each kind costs, and what it does after a crash


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("repeats", "entries"),
    [
        ("pure", ["run.started", "returned"]),
        ("idempotent", ["run.started", "returned"]),
        ("check-first", ["run.started", "effect.began", "returned"]),
        ("at-most-once", ["run.started", "effect.began", "returned"]),
    ],
)
async def test_only_what_must_not_simply_be_repeated_costs_an_entry_more(repeats: Repeats, entries: list[str]) -> None:
    till = Till()
    hall = till.hall()
    await begun(hall, paying(repeats))
    head = await drive(hall, RUN)
    assert await happened(hall) == entries
    assert (head.snapshot.active, head.snapshot.data) == (("paid",), Basket(("receipt 1",)))
    assert (till.paid, till.looked) == ([(3, KEY)], [])


@pytest.mark.anyio
@pytest.mark.parametrize("repeats", ["check-first", "at-most-once"])
async def test_the_mark_is_in_the_journal_before_the_call_is_made(repeats: Repeats) -> None:
    till, store = Till(), MemoryStore(strict=True)
    seen: list[list[bool]] = []
    till.before = lambda: seen.append([b"effect.began" in one for one in store._runs[RUN].entries])
    hall = till.hall(store)
    await begun(hall, paying(repeats))
    await drive(hall, RUN)
    assert seen == [[False, True]]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("repeats", "paid", "looked", "state"),
    [
        ("pure", 2, 0, "paid"),
        ("idempotent", 2, 0, "paid"),
        ("check-first", 2, 1, "paid"),
        ("at-most-once", 1, 0, "paying"),
    ],
)
async def test_after_a_crash_in_the_middle_of_a_call_each_kind_does_what_it_says(
    store: SqliteStore, repeats: Repeats, paid: int, looked: int, state: str
) -> None:
    till, machine = Till(), paying(repeats)
    await lost_in_the_middle(till, machine, store)
    hall = await opened(till, machine, store)
    head = await drive(hall, RUN)
    assert head.snapshot.active == (state,)
    assert (till.paid, till.looked) == ([(3, KEY)] * paid, [(3, KEY)] * looked)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("write", "before", "paid", "state"),
    [
        (1, False, 1, "paid"),
        (2, True, 1, "paid"),
        (2, False, 0, "paying"),
        (3, True, 1, "paying"),
        (3, False, 1, "paid"),
    ],
    ids=["begun", "before the mark", "after the mark", "before the end is kept", "after the end is kept"],
)
async def test_wherever_the_worker_dies_money_is_paid_at_most_once(
    store: SqliteStore, write: int, before: bool, paid: int, state: str
) -> None:
    till = Till()
    hall = till.hall(mortal(store, write, before=before))

    async def lived() -> None:
        await begun(hall, ONCE)
        await drive(hall, RUN)

    with pytest.raises(Died):
        await lived()
    head = await drive(await opened(till, ONCE, store), RUN)
    assert (len(till.paid), head.snapshot.active) == (paid, (state,))


# check first


@pytest.mark.anyio
@pytest.mark.parametrize("found", ["receipt 7", 0, False, "", [], {"of": None}], ids=repr)
async def test_what_the_check_finds_is_the_result_and_the_tool_is_not_called_again(found: Any) -> None:
    till, store = Till(), MemoryStore(strict=True)
    till.found = found
    await lost_in_the_middle(till, CHECKED, store)
    hall = await opened(till, CHECKED, store)
    await drive(hall, RUN)
    assert (len(till.paid), till.looked) == (1, [(3, KEY)])
    assert (await journal(hall))[-1]["event"]["value"] == found


@pytest.mark.anyio
async def test_a_check_that_takes_no_key_gets_the_arguments_alone() -> None:
    asked: list[dict[str, Any]] = []

    async def look(**given: Any) -> str:
        asked.append(given)
        return "found"

    till, store = Till(), MemoryStore(strict=True)
    till.look = look  # type: ignore[assignment, method-assign]
    await lost_in_the_middle(till, CHECKED, store)
    await drive(await opened(till, CHECKED, store), RUN)
    assert asked == [ARGUMENTS]


@pytest.mark.anyio
async def test_the_check_comes_before_every_further_attempt_in_the_same_process() -> None:
    till = Till()
    till.raising = [EffectFailed("the line went dead")]
    till.found = "receipt 1, as the bank says"
    hall = till.hall()
    await begun(hall, CHECKED)
    head = await drive(hall, RUN)
    assert (len(till.paid), len(till.looked)) == (1, 1)
    assert head.snapshot.data == Basket(("receipt 1, as the bank says",))
    assert await happened(hall) == ["run.started", "effect.began", "effect.faltered", "returned"]


@pytest.mark.anyio
async def test_a_check_that_fails_is_an_attempt_that_failed_and_nothing_is_paid_meanwhile() -> None:
    till, store = Till(), MemoryStore(strict=True)
    await lost_in_the_middle(till, CHECKED, store)
    till.raising = [OSError("the bank is closed")]
    till.found = "receipt 1"
    hall = await opened(till, CHECKED, store)
    head = await drive(hall, RUN)
    assert (len(till.paid), len(till.looked), head.snapshot.active) == (1, 2, ("paid",))


# at most once: the question


@pytest.mark.anyio
async def test_a_call_whose_outcome_is_unknown_becomes_a_question_with_three_answers() -> None:
    hall = await in_doubt(Till(), ONCE)
    (question,) = questions(hall.runs[RUN].head)
    assert question.doubt == "pay had begun when its worker was lost; whether it was done is unknown"
    assert await happened(hall) == ["run.started", "effect.began", "effect.doubted"]
    assert hall.runs[RUN].head.rests()
    assert hall.runs[RUN].head.wake() is None


@pytest.mark.anyio
async def test_a_run_in_doubt_is_left_alone_by_workers_however_often_it_is_driven(store: SqliteStore) -> None:
    till = Till()
    await in_doubt(till, ONCE, store)
    for _ in range(3):
        hall = await opened(till, ONCE, store)
        await drive(hall, RUN)
    assert len(till.paid) == 1
    assert await happened(hall) == ["run.started", "effect.began", "effect.doubted"]
    assert await store.due(hall.clock.now() + 10_000, 10) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "state", "got", "paid"),
    [
        ({"outcome": "done", "value": "receipt 9"}, "paid", "receipt 9", 1),
        ({"outcome": "done"}, "paid", None, 1),
        ({"outcome": "failed", "reason": "no money came"}, "unpaid", "no money came", 1),
        ({"outcome": "failed"}, "unpaid", "a person says that it failed", 1),
        ({"outcome": "again"}, "paid", "receipt 2", 2),
    ],
    ids=["done", "done with nothing", "failed", "failed for no reason", "again"],
)
async def test_the_answer_decides_how_the_run_goes_on(
    said: dict[str, Any], state: str, got: str | None, paid: int
) -> None:
    till = Till()
    hall = await in_doubt(till, ONCE)
    await answer(hall, RUN, said, by="Ada")
    head = await drive(hall, RUN)
    assert head.snapshot.active == (state,)
    assert head.snapshot.data.got == (got,)
    assert till.paid == [(3, KEY)] * paid


@pytest.mark.anyio
async def test_again_means_the_same_key_a_new_mark_and_a_performer_that_knows_it() -> None:
    contexts: list[Context] = []

    async def note(effect: Effect, context: Context) -> Event:
        contexts.append(context)
        return Returned("pay", "receipt")

    hall = await in_doubt(Till(), ONCE)
    hall.bind(RUN, Bindings({CallTool.kind: Performer(CallTool, note)}))
    await answer(hall, RUN, {"outcome": "again"}, by="Ada")
    await drive(hall, RUN)
    assert [(one.key, one.attempt, one.again) for one in contexts] == [(KEY, 2, True)]
    entries = await journal(hall)
    told = [(one["cause"], one["event"]["name"]) for one in entries]
    assert told[3:] == [("0.0-repeated-1", "effect.repeated"), ("0.0-began-2", "effect.began"), ("0.0", "returned")]
    assert entries[3]["event"]["by"] == "Ada"


@pytest.mark.anyio
async def test_a_second_crash_after_again_is_a_second_question() -> None:
    till, store = Till(), MemoryStore(strict=True)
    hall = await in_doubt(till, ONCE, store)
    await answer(hall, RUN, {"outcome": "again"})
    till.gate = asyncio.Event()
    till._called.clear()
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    driving.cancel()
    await asyncio.wait([driving])
    later = await opened(till, ONCE, store)
    await drive(later, RUN)
    assert len(questions(later.runs[RUN].head)) == 1
    assert len(till.paid) == 2
    await answer(later, RUN, {"outcome": "done", "value": "receipt 2"})
    assert later.runs[RUN].head.snapshot.active == ("paid",)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said",
    [
        {"outcome": "perhaps"},
        {"outcome": "Done"},
        {"outcome": "done", "worth": 3},
        {"outcome": "failed", "reason": 3},
        {"value": "receipt 9"},
        {},
        "done",
        True,
        None,
        ["again"],
    ],
    ids=repr,
)
async def test_a_wrong_finding_is_refused_and_the_question_stays_open(said: Any) -> None:
    till = Till()
    hall = await in_doubt(till, ONCE)
    before = hall.runs[RUN].head
    with pytest.raises(Refused, match="the answer"):
        await answer(hall, RUN, said)
    assert hall.runs[RUN].head == before
    assert len(questions(before)) == 1
    assert len(till.paid) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("second", ["done", "failed", "again"])
@pytest.mark.parametrize("first", ["done", "failed", "again"])
async def test_a_second_answer_from_someone_who_saw_the_same_question_changes_nothing(first: str, second: str) -> None:
    till, store = Till(), MemoryStore(strict=True)
    hall = await in_doubt(till, ONCE, store)
    late = await opened(till, ONCE, store)
    await answer(hall, RUN, {"outcome": first, "value": "receipt 9"}, "0.0")
    head = await drive(hall, RUN)
    paid = len(till.paid)
    await answer(late, RUN, {"outcome": second, "value": "receipt 8"}, "0.0")
    after = await reopen(late, RUN, ONCE)
    assert (after.snapshot, after.pending) == (head.snapshot, ())
    assert len(till.paid) == paid


@pytest.mark.anyio
async def test_answering_a_doubt_a_second_time_says_that_the_first_answer_stands() -> None:
    hall = await in_doubt(Till(), ONCE)
    await answer(hall, RUN, {"outcome": "done", "value": "receipt 9"}, "0.0")
    again = await answer(hall, RUN, {"outcome": "failed"}, "0.0")
    assert again.received == "duplicate"


@pytest.mark.anyio
async def test_a_late_done_does_not_settle_the_call_that_was_begun_again() -> None:
    till, store = Till(), MemoryStore(strict=True)
    hall = await in_doubt(till, ONCE, store)
    late = await opened(till, ONCE, store)
    await answer(hall, RUN, {"outcome": "again"}, "0.0")
    with pytest.raises(Refused):
        await answer(late, RUN, {"outcome": "done", "value": "receipt 8"}, "0.0")
    assert (await drive(hall, RUN)).snapshot.data == Basket(("receipt 2",))


@pytest.mark.anyio
@pytest.mark.parametrize("outcome", ["done", "failed", "again"])
async def test_an_answer_to_a_doubt_whose_state_was_left_is_kept_and_ignored(outcome: str) -> None:
    till, store = Till(), MemoryStore(strict=True)
    hall = await in_doubt(till, ONCE, store)
    late = await opened(till, ONCE, store)
    await advance(hall, RUN, (Named("closed"), "close-1"))
    told = await answer(late, RUN, {"outcome": outcome}, "0.0")
    assert told.received == "ignored"
    assert late.runs[RUN].head.snapshot.active == ("shut",)
    with pytest.raises(Refused, match="run trial is done; it accepts no answer"):
        await answer(late, RUN, {"outcome": outcome})
    assert len(till.paid) == 1


@pytest.mark.anyio
async def test_two_calls_in_doubt_are_two_questions_and_have_to_be_named() -> None:
    wanted = [CallTool("pay", {"amount": amount}, f"call-{amount}", repeats="at-most-once") for amount in (3, 4)]
    machine = Machine(
        "twice",
        data=Basket,
        states=[State("paying", enter=wanted), Final("paid")],
        moves=[
            On("paying", Returned, to="paid", when=lambda basket, _: len(basket.got) == 1, do=keep_receipt),
            On("paying", Returned, do=keep_receipt),
        ],
    )
    till = Till()
    hall = await in_doubt(till, machine)
    with pytest.raises(Refused, match=r"open questions are 0\.0 \(pay had begun .*\), 0\.1 \(pay had begun"):
        await answer(hall, RUN, {"outcome": "done"})
    await answer(hall, RUN, {"outcome": "done", "value": "b"}, "0.1")
    await answer(hall, RUN, {"outcome": "done", "value": "a"}, "0.0")
    assert hall.runs[RUN].head.snapshot.data == Basket(("b", "a"))
    assert [entry["event"]["id"] for entry in (await journal(hall))[-2:]] == ["call-4", "call-3"]


@pytest.mark.anyio
async def test_what_stands_beside_a_call_in_doubt_goes_on() -> None:
    machine = Machine(
        "beside",
        data=Basket,
        states=[
            State(
                "paying", enter=[CallTool("pay", ARGUMENTS, repeats=repeats) for repeats in ("at-most-once", "pure")]
            ),
            Final("paid"),
        ],
        moves=[On("paying", Returned, do=keep_receipt)],
    )
    till = Till()
    hall = await in_doubt(till, machine)
    assert hall.runs[RUN].head.snapshot.data == Basket(("receipt 3",))
    assert [one.key for one in questions(hall.runs[RUN].head)] == ["0.0"]


@pytest.mark.anyio
async def test_a_doubt_is_made_anew_from_the_journal(store: SqliteStore) -> None:
    hall = await in_doubt(Till(), ONCE, store)
    before = hall.runs[RUN].head
    head = store._db.execute("SELECT head FROM runs").fetchone()[0]
    store._db.execute("UPDATE runs SET head = ?", (head[:-1] + b"!",))
    assert await reopen(hall, RUN, ONCE) == before
    assert len(questions(hall.runs[RUN].head)) == 1


# at most once: failures, time and leases


@pytest.mark.anyio
@pytest.mark.parametrize("error", [EffectFailed("busy", retry_after=1), OSError("gone"), ValueError("no such account")])
async def test_an_exception_of_a_call_that_may_be_made_once_is_its_end(error: Exception) -> None:
    till = Till()
    till.raising = [error]
    hall = till.hall()
    await begun(hall, ONCE)
    head = await drive(hall, RUN)
    assert (len(till.paid), head.snapshot.active) == (1, ("unpaid",))
    assert f"pay: {type(error).__name__}: {error}" in head.snapshot.data.got[0]
    assert "attempts" not in head.snapshot.data.got[0]
    assert await happened(hall) == ["run.started", "effect.began", "error.effect"]


@pytest.mark.anyio
async def test_a_time_out_of_a_call_that_may_be_made_once_is_a_doubt_and_not_an_end() -> None:
    till, clock = Till(), MovableClock()
    till.gate = asyncio.Event()
    hall = till.hall(clock=clock, pulse=QUICK)
    await begun(hall, paying("at-most-once", timeout=30))
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    clock.move(31)
    async with asyncio.timeout(SOON):
        head = await driving
    (question,) = questions(head)
    assert question.doubt == "pay: nothing was heard of it for 30 s"
    assert await happened(hall) == ["run.started", "effect.began", "effect.doubted"]
    till.gate = None
    await answer(hall, RUN, {"outcome": "again"})
    assert (await drive(hall, RUN)).snapshot.data == Basket(("receipt 2",))


@pytest.mark.anyio
@pytest.mark.parametrize("repeats", ["pure", "idempotent", "check-first"])
async def test_a_time_out_of_any_other_call_is_followed_by_another_attempt(repeats: Repeats) -> None:
    till, clock = Till(), MovableClock()
    till.gate = asyncio.Event()
    hall = till.hall(clock=clock, pulse=QUICK)
    await begun(hall, paying(repeats, timeout=30))
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    clock.move(31)
    async with asyncio.timeout(SOON):
        await clock.wait_for_waiting()
        till.gate = None
        clock.move(1)
        head = await driving
    assert (head.snapshot.active, len(till.paid)) == (("paid",), 2)
    faltered = [entry["event"] for entry in await journal(hall) if entry["event"]["name"] == "effect.faltered"]
    assert [one["reason"] for one in faltered] == ["pay: nothing was heard of it for 30 s"]


@pytest.mark.anyio
async def test_wall_time_that_stops_a_call_that_may_be_made_once_leaves_a_doubt() -> None:
    till, clock = Till(), MovableClock()
    till.gate = asyncio.Event()
    hall = till.hall(clock=clock, pulse=QUICK)
    await begun(hall, ONCE, limits={"seconds": 60})
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    clock.move(61)
    async with asyncio.timeout(SOON):
        head = await driving
    assert len(questions(head)) == 1


@pytest.mark.anyio
async def test_who_lost_the_lease_in_the_middle_and_got_it_back_does_not_pay_twice() -> None:
    till, store, clock = Till(), MemoryStore(strict=True), MovableClock()
    till.gate = asyncio.Event()
    hall = till.hall(store, clock, pulse=QUICK)
    hall.owner = f"{socket.gethostname()}:{os.getpid()}:one"
    await begun(hall, ONCE)
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    taken = await store.claim(RUN, lease_in(hall), next(PROCESSES), clock.now() + 60)
    assert taken is not None
    await store.release(RUN, taken)
    till.gate = None
    clock.move(LEASE / 3 + 1)
    async with asyncio.timeout(SOON):
        await driving
    assert len(till.paid) == 1


class Pour(Effect):
    """An effect of a user's own that may be done at most once."""

    kind = "pour"
    repeats = "at-most-once"
    outcomes = (Fetched,)


POURING = Machine(
    "pouring",
    data=Basket,
    states=[State("pouring", enter=Pour()), Final("poured")],
    moves=[On("pouring", Fetched, to="poured", do=keep)],
)


async def pouring_in_doubt(store: MemoryStore) -> Hall:
    """A run that was lost while it poured."""

    async def lost(effect: Pour, context: Context) -> Event:
        raise Died

    performers = {"pour": Performer(Pour, lost)}
    hall = Hall(store, HastyClock(), performers, owner=next(PROCESSES))
    await begun(hall, POURING)
    with pytest.raises(Died):
        await drive(hall, RUN)
    later = Hall(store, HastyClock(), performers, owner=next(PROCESSES))
    await reopen(later, RUN, POURING)
    await drive(later, RUN)
    return later


@pytest.mark.anyio
async def test_an_effect_of_the_users_own_ends_in_its_first_outcome_with_the_value_that_was_found() -> None:
    hall = await pouring_in_doubt(MemoryStore(strict=True))
    await answer(hall, RUN, {"outcome": "done", "value": "a pint"})
    assert hall.runs[RUN].head.snapshot.data == Basket(("a pint",))


@pytest.mark.anyio
async def test_a_found_value_that_the_event_cannot_carry_is_refused() -> None:
    hall = await pouring_in_doubt(MemoryStore(strict=True))
    with pytest.raises(Refused, match="expected a text"):
        await answer(hall, RUN, {"outcome": "done", "value": {"pints": 1}})
    assert len(questions(hall.runs[RUN].head)) == 1


@pytest.mark.anyio
async def test_a_call_that_is_made_again_is_paid_for_again() -> None:
    till = Till()
    hall = await in_doubt(till, paying("at-most-once", costs={"call.tool": {"usd": 0.2}}))
    await answer(hall, RUN, {"outcome": "again"})
    assert (await drive(hall, RUN)).spent == {"usd": 0.4}
