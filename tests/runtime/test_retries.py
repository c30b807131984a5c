"""Attempts are decisions: in the journal, paid for, with a pause that replay can repeat."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.errors import Broken, DefinitionError, EffectFailed
from moothall.kernel.events import AttemptFailed, Began, Doubted, Event, Exhausted, GaveUp, Named, Repeated
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.backoff import LONGEST, Again, NoMore, retry
from moothall.runtime.decide import Incoming, decide, first
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance, reopen
from moothall.runtime.journal import Pending, Reader, Record, Run, encode_entry
from moothall.runtime.ports import Context
from moothall.runtime.rebuild import rebuilt
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.till import Till, paying
from tests.runtime.world import (
    ATTEMPTS,
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    begun,
    decided,
    fan,
    hall_of,
    happened,
    journal,
    keep,
    line,
)

GONE = OSError("gone")
SOON = 10.0


class Patient(Fetch):
    """Fetch something, however long it takes."""

    kind = "fetch"
    attempts = 12


def pause(run: str = RUN, attempt: int = 1, key: str = "0.0", after: float = 0) -> float:
    """The pause after an attempt that went wrong."""
    decision = retry(run, Pending(key, Patient("bread"), attempt=attempt), AttemptFailed("gone", after))
    assert isinstance(decision, Again)
    return decision.after


# the decision


@pytest.mark.parametrize("attempt", range(1, 12))
def test_the_pause_grows_with_the_attempts_to_a_minute_and_a_quarter_at_most(attempt: int) -> None:
    middle = min(0.2 * 4 ** (attempt - 1), LONGEST)
    for number in range(50):
        assert 0.75 * middle <= pause(f"run-{number}", attempt) <= 1.25 * middle


def test_the_pause_differs_between_runs_effects_and_attempts_and_is_always_the_same_for_one_of_them() -> None:
    pauses = [pause(f"run-{number}", key=key) for number in range(100) for key in ("0.0", "0.1")]
    assert len(set(pauses)) == len(pauses)
    assert pauses == [pause(f"run-{number}", key=key) for number in range(100) for key in ("0.0", "0.1")]
    assert max(pauses) - min(pauses) > 0.08, "the pauses are hardly spread"


@pytest.mark.parametrize(
    ("after", "least", "most"), [(0, 0.15, 0.25), (0.1, 0.15, 0.25), (7, 7, 7), (3600, 3600, 3600)]
)
def test_who_asks_to_be_left_alone_for_a_while_is_and_never_for_less_than_the_pause(
    after: float, least: float, most: float
) -> None:
    assert least <= pause(after=after) <= most


@pytest.mark.parametrize(
    ("effect", "attempt", "decision"),
    [
        (Fetch("bread"), ATTEMPTS, NoMore(f"gone, {ATTEMPTS} attempts")),
        (Fetch("bread"), ATTEMPTS + 1, NoMore(f"gone, {ATTEMPTS + 1} attempts")),
        (Patient("bread"), 12, NoMore("gone, 12 attempts")),
    ],
)
def test_after_the_last_attempt_there_is_no_other(effect: Fetch, attempt: int, decision: NoMore) -> None:
    assert retry(RUN, Pending("0.0", effect, attempt=attempt), AttemptFailed("gone", after=5)) == decision


def test_what_may_be_done_once_is_never_tried_again() -> None:
    (pending,) = decided(first(run_of(paying("at-most-once")), Basket())).head.pending
    assert retry(RUN, pending, AttemptFailed("gone", after=5)) == NoMore("gone")


# in the journal


@pytest.mark.anyio
async def test_every_attempt_that_went_wrong_is_an_entry_with_its_reason_and_moves_nothing() -> None:
    hands = Hands()
    hands.raising = {"bread": [EffectFailed("busy", retry_after=2, usage={"tokens": 7}), GONE]}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    await drive(hall, RUN)
    faltered = [entry for entry in await journal(hall) if entry["event"]["name"] == "effect.faltered"]
    assert [entry["cause"] for entry in faltered] == ["0.0-1", "0.0-2"]
    assert [entry["from"] == entry["to"] == ["fetching_bread"] for entry in faltered] == [True, True]
    assert [(entry["taken"], entry["effects"]) for entry in faltered] == [([], [])] * 2
    assert "EffectFailed: busy" in faltered[0]["event"]["reason"]
    assert (faltered[0]["event"]["after"], faltered[0]["event"]["usage"]) == (2, {"tokens": 7})


@pytest.mark.anyio
async def test_the_pauses_of_a_run_are_those_that_its_name_decides() -> None:
    hands, clock = Hands(), HastyClock()
    hands.raising = {"bread": [GONE, GONE]}
    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread"))
    await drive(hall, RUN)
    assert clock.jumps == pytest.approx([pause(attempt=1), pause(attempt=2)])


@pytest.mark.anyio
async def test_a_pause_that_was_asked_for_is_kept_to_the_second() -> None:
    hands, clock = Hands(), MovableClock()
    hands.raising = {"bread": [EffectFailed("too many requests", retry_after=30)]}
    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread"))
    driving = asyncio.create_task(drive(hall, RUN))
    await clock.wait_for_waiting()
    assert hall.runs[RUN].head.wake() == clock.now() + 30
    clock.move(29.9)
    await asyncio.sleep(0)
    assert len(hands.calls) == 1
    clock.move(0.2)
    assert (await driving).snapshot.status == "done"
    assert len(hands.calls) == 2


@pytest.mark.anyio
async def test_attempts_beside_each_other_are_counted_apart() -> None:
    hands = Hands()
    hands.raising = {"bread": [GONE, GONE], "milk": [GONE]}
    hall = hall_of(hands)
    await begun(hall, fan("bread", "milk", "salt"))
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    attempts = {
        what: [one.attempt for asked, one in hands.calls if asked == what] for what in ("bread", "milk", "salt")
    }
    assert attempts == {"bread": [1, 2, 3], "milk": [1, 2], "salt": [1]}


@pytest.mark.anyio
@pytest.mark.parametrize("error", [DefinitionError("nobody sells bread here"), Broken("we are at fault")])
async def test_a_mistake_of_the_author_is_not_tried_again(error: Exception) -> None:
    hands = Hands()
    hands.raising = {"bread": [error]}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    await drive(hall, RUN)
    assert len(hands.calls) == 1
    assert await happened(hall) == ["run.started", "error.effect"]


@pytest.mark.anyio
async def test_a_failure_that_says_it_is_final_is_not_tried_again_and_what_it_used_is_charged() -> None:
    hands = Hands()
    hands.raising = {"bread": [EffectFailed("no such shop", final=True, usage={"tokens": 7})]}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    assert await happened(hall) == ["run.started", "error.effect"]
    assert head.spent == {"calls": 1, "tokens": 7}


@pytest.mark.anyio
async def test_an_attempt_that_goes_wrong_after_its_state_was_left_is_ignored_and_what_it_used_is_charged() -> None:
    machine = fan("bread", moves=[On("fetching", "closed", to="poor")])
    hall = hall_of(Hands())
    await begun(hall, machine)
    await advance(hall, RUN, (Named("closed"), "close-1"))
    told = await advance(hall, RUN, (AttemptFailed("gone", usage={"usd": 0.5}), "0.0-1"))
    assert told.received == "ignored"
    assert hall.runs[RUN].head.spent == {"calls": 1, "usd": 0.5}
    assert hall.runs[RUN].head.pending == ()


@pytest.mark.anyio
async def test_an_attempt_that_is_told_twice_counts_once() -> None:
    hall = hall_of(Hands())
    await begun(hall, line("bread"))
    assert (await advance(hall, RUN, (AttemptFailed("gone"), "0.0-1"))).received == "taken"
    assert (await advance(hall, RUN, (AttemptFailed("gone"), "0.0-1"))).received == "duplicate"
    assert [one.attempt for one in hall.runs[RUN].head.pending] == [2]


# across a crash


async def lost_in_the_pause(store: Any, hands: Hands, clock: MovableClock) -> None:
    """A run whose worker is gone while it waits before its second attempt."""
    hall = hall_of(hands, store, clock)
    await begun(hall, line("bread"))
    driving = asyncio.create_task(drive(hall, RUN))
    await clock.wait_for_waiting()
    driving.cancel()
    await asyncio.wait([driving])


@pytest.mark.anyio
async def test_a_resumed_run_goes_on_with_its_second_attempt_and_waits_out_the_pause(store: SqliteStore) -> None:
    hands, clock = Hands(), MovableClock()
    hands.raising = {"bread": [EffectFailed("busy", retry_after=30)]}
    await lost_in_the_pause(store, hands, clock)
    clock.move(10)
    later = hall_of(hands, store, clock)
    await reopen(later, RUN, line("bread"))
    assert await store.due(clock.now(), 10) == []
    assert await store.due(clock.now() + 20, 10) == [RUN]
    driving = asyncio.create_task(drive(later, RUN))
    await asyncio.sleep(0)
    await clock.wait_for_waiting()
    assert len(hands.calls) == 1
    clock.move(20)
    assert (await driving).snapshot.status == "done"
    assert [(one.attempt, one.again) for _, one in hands.calls] == [(1, False), (2, True)]


@pytest.mark.anyio
async def test_attempts_before_and_after_a_crash_are_not_more_than_those_without_one(store: SqliteStore) -> None:
    hands, clock = Hands(), MovableClock()
    hands.raising = {"bread": [GONE] * 10}
    await lost_in_the_pause(store, hands, clock)
    later = hall_of(hands, store)
    await reopen(later, RUN, line("bread"))
    head = await drive(later, RUN)
    assert (head.snapshot.status, len(hands.calls)) == ("failed", ATTEMPTS)
    assert head.spent == {"calls": ATTEMPTS}


@pytest.mark.anyio
@pytest.mark.parametrize(("jump", "calls"), [(10_000.0, 2), (-10_000.0, 1)], ids=["ahead", "back"])
async def test_a_clock_that_jumps_in_the_pause_brings_one_attempt_when_the_time_has_come(
    jump: float, calls: int
) -> None:
    hands, clock, store = Hands(), MovableClock(100_000), MemoryStore(strict=True)
    hands.raising = {"bread": [GONE]}
    await lost_in_the_pause(store, hands, clock)
    clock.move(jump)
    later = hall_of(hands, store, clock)
    await reopen(later, RUN, line("bread"))
    driving = asyncio.create_task(drive(later, RUN))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(hands.calls) == calls
    clock.move(20_000)
    assert (await driving).snapshot.status == "done"
    assert len(hands.calls) == 2


# paid for


@pytest.mark.anyio
async def test_an_attempt_that_the_budget_does_not_cover_is_not_made_and_the_run_ends_limited() -> None:
    hands = Hands()
    hands.raising = {"bread": [GONE] * 3}
    hall = hall_of(hands)
    await begun(hall, line("bread"), limits={"calls": 2})
    head = await drive(hall, RUN)
    assert len(hands.calls) == 2
    assert (head.snapshot.status, head.spent) == ("limited", {"calls": 2})
    assert head.snapshot.reason == "limit of 2 calls reached in fetching_bread"
    assert await happened(hall) == ["run.started", "effect.faltered", "effect.faltered", "run.exhausted"]


@pytest.mark.anyio
async def test_a_row_for_exhausted_takes_what_an_uncovered_attempt_leaves() -> None:
    machine = Machine(
        "frugal",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("home"), Final("poor")],
        moves=[On("fetching", Fetched, to="home", do=keep), On("fetching", Exhausted, to="poor")],
    )
    hands = Hands()
    hands.raising = {"bread": [GONE]}
    hall = hall_of(hands)
    await begun(hall, machine, limits={"calls": 1})
    assert (await drive(hall, RUN)).snapshot.active == ("poor",)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("errors", "spent"),
    [
        ([EffectFailed("cut off", usage={"tokens": 40})], {"calls": 2, "tokens": 40}),
        ([EffectFailed("cut off", usage={"tokens": 40, "calls": 0})], {"calls": 1, "tokens": 40}),
        ([EffectFailed("cut off", usage={"tokens": -40, "calls": -9, "usd": nan})], {"calls": 2}),
        ([EffectFailed("a", usage={"tokens": 4}), EffectFailed("b", usage={"tokens": 5})], {"calls": 3, "tokens": 9}),
        ([EffectFailed("a", usage={"tokens": 1})] * ATTEMPTS, {"calls": ATTEMPTS, "tokens": ATTEMPTS}),
        ([GONE], {"calls": 2}),
    ],
    ids=["reported", "reported as free", "less than nothing", "twice", "to the end", "not reported"],
)
async def test_what_attempts_used_that_went_wrong_is_charged(
    errors: list[Exception], spent: Mapping[str, float]
) -> None:
    hands = Hands()
    hands.raising = {"bread": list(errors)}
    hall = hall_of(hands)
    await begun(hall, line("bread"), limits={"tokens": 1_000, "calls": 9})
    assert (await drive(hall, RUN)).spent == spent


@pytest.mark.anyio
async def test_an_attempt_that_used_up_the_budget_is_the_last() -> None:
    hands = Hands()
    hands.raising = {"bread": [EffectFailed("cut off", usage={"tokens": 100})]}
    hall = hall_of(hands)
    await begun(hall, line("bread"), limits={"tokens": 100})
    head = await drive(hall, RUN)
    assert (len(hands.calls), head.snapshot.status) == (1, "limited")
    assert head.snapshot.reason == "limit of 100 tokens reached in fetching_bread"


@pytest.mark.anyio
async def test_an_attempt_beside_others_does_not_take_what_they_have_reserved() -> None:
    hands = Hands()
    hands.raising = {"bread": [GONE]}
    hands.shut("milk")
    hall = hall_of(hands)
    await begun(hall, fan("bread", "milk"), limits={"calls": 2})
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert [(one.effect, one.denied) for one in hall.runs[RUN].head.pending] == [
        (Fetch("bread"), "calls"),
        (Fetch("milk"), ""),
    ]
    hands.open("milk")
    head = await driving
    assert (hands.asked, head.snapshot.status) == (["bread", "milk"], "limited")
    assert head.snapshot.data == Basket(("milk",))


@pytest.mark.anyio
async def test_no_attempt_is_made_after_the_wall_time_is_over() -> None:
    hands, clock = Hands(), HastyClock()
    hands.raising = {"bread": [EffectFailed("busy", retry_after=3_600)]}
    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread"), limits={"seconds": 60})
    head = await drive(hall, RUN)
    assert (len(hands.calls), head.snapshot.status) == (1, "limited")


# what others raise


class Odd(Exception):
    """An error of some library that happens to have attributes of these names."""

    def __init__(self, retry_after: Any = 0, usage: Any = None) -> None:
        super().__init__("odd")
        self.retry_after = retry_after
        self.usage = {} if usage is None else usage


@pytest.mark.anyio
@pytest.mark.parametrize(
    "odd",
    [
        Odd("30"),
        Odd(None),
        Odd(float("inf")),
        Odd(float("nan")),
        Odd(usage=object()),
        Odd(usage={"tokens": "many"}),
        Odd(usage=[1]),
    ],
    ids=["text", "none", "for ever", "nan", "object", "text of tokens", "list"],
)
async def test_attributes_of_a_foreign_error_do_not_bring_the_worker_down(odd: Odd) -> None:
    hands = Hands()
    hands.raising = {"bread": [odd]}
    hall = hall_of(hands, MemoryStore(strict=True))
    await begun(hall, line("bread"))
    assert (await drive(hall, RUN)).snapshot.status == "done"


@pytest.mark.anyio
async def test_half_a_character_in_the_message_of_an_error_does_not_bring_the_worker_down() -> None:
    hands = Hands()
    hands.raising = {"bread": [OSError(b"caf\xe9 closed".decode("utf-8", "surrogateescape"))]}
    hall = hall_of(hands, MemoryStore(strict=True))
    await begun(hall, line("bread"))
    assert (await drive(hall, RUN)).snapshot.status == "done"


# replay

Story = Sequence[tuple[str, str, float, int]]
MARKS: Mapping[str, Any] = {
    "began": lambda number, after: Began(),
    "faltered": lambda number, after: AttemptFailed(
        f"reason {number}", after, {"usd": number / 8} if number % 2 else {}
    ),
    "doubted": lambda number, after: Doubted("unknown"),
    "repeated": lambda number, after: Repeated("Ada"),
    "fetched": lambda number, after: Fetched(f"thing {number}", {"tokens": number}),
    "gave up": lambda number, after: GaveUp("no", usage={"usd": 0.25}),
    "exhausted": lambda number, after: Exhausted("calls", 3, "fetching"),
    "closed": lambda number, after: Named("closed"),
    "poked": lambda number, after: Named("poked"),
}
ENDS = ("fetched", "gave up", "exhausted")
stories = st.lists(
    st.tuples(
        st.sampled_from(sorted(MARKS)),
        st.sampled_from(["0.0", "0.1", "0.2", "7.7"]),
        st.sampled_from([0.0, 0.5, 90.0]),
        st.integers(0, 5),
    ),
    max_size=14,
)
WALK = fan(
    "a",
    "b",
    "c",
    moves=[
        On("fetching", GaveUp, do=lambda basket, event: Basket((*basket.got, event.reason))),
        On("fetching", "closed", to="poor"),
        On("fetching", "poked"),
    ],
    costs={"fetch": {"usd": 0.125}},
)


def run_of(machine: Machine, limits: Mapping[str, float] | None = None, *, endless: bool = False) -> Run:
    """A run of this machine that exists nowhere."""
    return Run(Record(RUN, machine.name, machine.digest, 1_000.0, limits=limits or {}, endless=endless), machine)


def incoming(told: tuple[str, str, float, int], at: int) -> Incoming:
    """One thing that happens, with the cause that it has."""
    name, key, after, number = told
    event: Event = MARKS[name](number, after)
    if name in ("closed", "poked"):
        return Incoming(event, f"told-{at}", 1_000.0 + at)
    return Incoming(event, key if name in ENDS else f"{key}-{name}-{at}", 1_000.0 + at)


@given(story=stories, limits=st.sampled_from([{}, {"calls": 4.0}, {"usd": 0.5, "seconds": 8.0}, {"transitions": 6.0}]))
@settings(max_examples=200, deadline=None)
def test_whatever_marks_come_in_whatever_order_the_journal_makes_the_same_head_again(
    story: Story, limits: Mapping[str, float]
) -> None:
    run = run_of(WALK, limits, endless=True)
    decision = decided(first(run, Basket()))
    entries = [encode_entry(decision.entry)]
    heads = [decision.head]
    for at, told in enumerate(story, 1):
        decision = decided(decide(run, decision.head, incoming(told, at)))
        entries.append(encode_entry(decision.entry))
        heads.append(decision.head)
    reader = Reader(WALK, {"fetch": Fetch})
    for seq, head in enumerate(heads):
        assert rebuilt(run, reader, entries[: seq + 1]) == head


@given(story=stories)
@settings(max_examples=200, deadline=None)
def test_marks_move_nothing_and_an_effect_that_is_not_in_flight_is_never_brought_back(story: Story) -> None:
    run = run_of(WALK)
    head = decided(first(run, Basket())).head
    for at, told in enumerate(story, 1):
        after = decided(decide(run, head, incoming(told, at))).head
        assert {one.key for one in after.pending} <= {one.key for one in head.pending}
        if told[0] in ("began", "doubted", "repeated"):
            assert after.snapshot == head.snapshot
        if told[0] in ("began", "doubted"):
            assert after.spent == head.spent
        head = after


@pytest.mark.anyio
async def test_a_head_in_the_middle_of_a_pause_is_made_anew_with_the_same_pause(store: SqliteStore) -> None:
    hands, clock = Hands(), MovableClock()
    hands.raising = {"bread": [GONE]}
    await lost_in_the_pause(store, hands, clock)
    hall = hall_of(hands, store, clock)
    before = await reopen(hall, RUN, line("bread"))
    body = store._db.execute("SELECT head FROM runs").fetchone()[0]
    store._db.execute("UPDATE runs SET head = ?", (body[:-1] + b"!",))
    assert await reopen(hall, RUN, line("bread")) == before
    assert before.wake() == pytest.approx(1_000 + pause())


@pytest.mark.anyio
async def test_two_runs_that_fail_at_the_same_moment_do_not_come_back_at_the_same_moment() -> None:
    wakes = []
    for name in ("one", "two"):
        run = run_of(line("bread"))
        run = replace(run, record=replace(run.record, run=name))
        begun_with = decided(first(run, Basket())).head
        head = decided(decide(run, begun_with, Incoming(AttemptFailed("gone"), "0.0-1", 1_000.0))).head
        wakes.append(head.wake())
    assert wakes[0] != wakes[1]


@pytest.mark.anyio
async def test_a_failing_check_costs_attempts_like_the_call_itself() -> None:
    till = Till()
    till.raising = [GONE] * ATTEMPTS
    hall: Hall = till.hall()
    await begun(hall, paying("check-first"))
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("unpaid",)
    assert (len(till.paid), len(till.looked)) == (1, ATTEMPTS - 1)


@pytest.mark.anyio
async def test_the_performer_is_told_which_attempt_it_is() -> None:
    seen: list[tuple[int, bool]] = []

    async def moody(effect: Fetch, context: Context) -> Event:
        seen.append((context.attempt, context.again))
        if context.attempt < ATTEMPTS:
            raise GONE
        return Fetched(effect.what)

    hall = hall_of(moody)
    await begun(hall, line("bread"))
    assert (await drive(hall, RUN)).snapshot.status == "done"
    assert seen == [(1, False), (2, True), (3, True)]
