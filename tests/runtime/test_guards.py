"""What stops a run that would not stop by itself: steps, circles, time, and performers that do not heed."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

import pytest

from moothall.agents.ask import CallTool, Returned
from moothall.errors import DefinitionError
from moothall.kernel.effects import Alarm, AskPerson, Effect
from moothall.kernel.events import Answered, Event, Exhausted, Named
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, On, Parallel, State, anywhere, otherwise
from moothall.kernel.step import Append, Move
from moothall.runtime import budget, decide
from moothall.runtime.decide import Incoming, first
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance, answer, begin, questions, reopen
from moothall.runtime.journal import Head, Record, Run
from moothall.runtime.ports import Context, Performer
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.world import (
    QUICK,
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

SOON = 10.0


def replace_all(basket: Basket, event: Fetched) -> Basket:
    """The move that keeps only what was fetched last."""
    return Basket((event.what,))


def circle(*more: On, states: Sequence[Any] = ()) -> Machine:
    """A machine that writes and has it judged, for ever."""
    return Machine(
        "circle",
        data=Basket,
        states=[State("writing", enter=Fetch("draft")), State("judging", enter=Fetch("no")), *states],
        moves=[
            *more,
            On("writing", Fetched, to="judging", do=replace_all),
            On("judging", Fetched, to="writing"),
        ],
    )


async def watched(hall: Hall, machine: Machine, *, calls: int = 100, data: Any = None) -> Head:
    """A run that only its budget bounds, begun and not yet driven."""
    record = Record(RUN, machine.name, machine.digest, hall.clock.now(), limits={"calls": calls}, endless=True)
    return await begin(hall, record, machine, data or Basket())


def saying(texts: Iterable[str]) -> Callable[[Fetch, Context], Any]:
    """Hands that fetch these things, whatever is asked for."""
    left = iter(texts)

    async def say(effect: Fetch, context: Context) -> Event:
        return Fetched(next(left))

    return say


# steps


@pytest.mark.anyio
@pytest.mark.parametrize(("transitions", "asked"), [(0, 0), (1, 1), (2, 2), (4, 4), (5, 5), (9, 5)])
async def test_a_budget_of_steps_allows_so_many_and_keeps_what_there_is(transitions: int, asked: int) -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, line("a", "b", "c", "d", "e"), limits=Budget(transitions=transitions).limits())
    head = await drive(hall, RUN)
    assert len(hands.calls) == asked == len(head.snapshot.data.got)
    if asked < 5:
        assert head.snapshot.status == "limited"
        assert head.snapshot.reason.startswith(f"limit of {transitions} transitions reached")
    else:
        assert head.snapshot.status == "done"


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "many"])
def test_a_budget_of_steps_is_a_number(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match="transitions must be a number of at least 0"):
        Budget(transitions=wrong)


@pytest.mark.anyio
async def test_a_row_may_take_the_end_of_the_steps() -> None:
    machine = circle(On(anywhere, Exhausted, to="tired"), states=[Final("tired")])
    hall = hall_of(saying(str(number) for number in range(1_000)))
    await begun(hall, machine, limits={"transitions": 10})
    head = await drive(hall, RUN)
    assert head.snapshot.active == ("tired",)
    assert head.snapshot.data == Basket(("8",))


@pytest.mark.anyio
@pytest.mark.unreplayed("the bound is a lower one while this test runs")
async def test_a_run_that_says_something_new_for_ever_is_stopped_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TRANSITIONS", 30)
    hall = hall_of(saying(str(number) for number in range(1_000)))
    await watched(hall, circle(), calls=900)
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.seq) == ("limited", 31)
    assert head.snapshot.reason == "limit of 30 transitions reached in writing"


@pytest.mark.anyio
async def test_attempts_that_went_wrong_are_no_steps() -> None:
    hands = Hands()
    hands.raising = {"a": [OSError("gone"), OSError("gone")]}
    hall = hall_of(hands)
    await begun(hall, line("a", "b"), limits={"transitions": 2})
    assert (await drive(hall, RUN)).snapshot.status == "done"


# circles


@pytest.mark.anyio
async def test_a_run_that_brings_the_same_for_the_third_time_ends_limited_with_what_it_has() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await watched(hall, circle())
    head = await drive(hall, RUN)
    assert hands.asked == ["draft", "no", "draft", "no", "draft"]
    assert head.snapshot.status == "limited"
    assert head.snapshot.reason == "limit of 3 repetitions reached in judging"
    assert head.snapshot.data == Basket(("draft",))
    event = (await journal(hall))[-1]["event"]
    assert (event["name"], event["resource"], event["limit"]) == ("run.exhausted", "repetitions", 3)


@pytest.mark.anyio
async def test_a_row_may_take_the_end_of_a_circle_and_ask_a_person_who_lets_it_go_on() -> None:
    machine = circle(
        On(anywhere, Exhausted, to="asking"),
        On("asking", Answered, to="writing", when=lambda basket, event: event.value),
        On("asking", otherwise, to="over"),
        states=[State("asking", enter=AskPerson("We go in circles. Go on?")), Final("over")],
    )
    hands = Hands()
    hall = hall_of(hands)
    await watched(hall, machine)
    await drive(hall, RUN)
    (question,) = questions(hall.runs[RUN].head)
    assert isinstance(question.effect, AskPerson)
    assert len(hands.calls) == 5
    await answer(hall, RUN, True)
    await drive(hall, RUN)
    assert len(hands.calls) == 10
    assert len(questions(hall.runs[RUN].head)) == 1
    await answer(hall, RUN, False)
    assert (await drive(hall, RUN)).snapshot.active == ("over",)


@pytest.mark.anyio
@pytest.mark.parametrize("texts", [["a", "a", "b"], ["a", "b"], ["a", "b", "c", "d"]], ids="-".join)
async def test_what_is_new_begins_the_count_anew(texts: list[str]) -> None:
    machine = Machine(
        "trying",
        data=Basket,
        states=[State("trying", enter=Fetch("a draft"))],
        moves=[On("trying", Fetched, to="trying", do=replace_all)],
    )
    hall = hall_of(saying(texts * 30))
    await watched(hall, machine, calls=30)
    head = await drive(hall, RUN)
    assert head.snapshot.reason == "limit of 30 calls reached in trying"


@pytest.mark.anyio
async def test_data_that_grow_are_new() -> None:
    machine = Machine(
        "gathering",
        data=Basket,
        states=[State("gathering", enter=Fetch("a shell"))],
        moves=[On("gathering", Fetched, to="gathering", do=keep)],
    )
    hall = hall_of(Hands())
    await watched(hall, machine, calls=20)
    head = await drive(hall, RUN)
    assert head.snapshot.reason == "limit of 20 calls reached in gathering"
    assert len(head.snapshot.data.got) == 20


@pytest.mark.anyio
async def test_a_thread_that_grows_is_new() -> None:
    machine = Machine(
        "talking",
        data=Basket,
        states=[State("talking", enter=Fetch("hm"))],
        moves=[
            On("talking", Fetched, to="talking", do=lambda basket, _: Move(basket, appends=(Append("talk", "hm"),)))
        ],
    )
    hall = hall_of(Hands())
    await watched(hall, machine, calls=20)
    assert (await drive(hall, RUN)).snapshot.reason == "limit of 20 calls reached in talking"


POLLING = Machine(
    "polling",
    data=Basket,
    states=[State("looking", enter=Fetch("nothing yet")), State("waiting", enter=Alarm(Named("rung"), 60))],
    moves=[On("looking", Fetched, to="waiting", do=replace_all), On("waiting", "rung", to="looking")],
)


@pytest.mark.anyio
async def test_looking_again_after_a_while_is_no_circle() -> None:
    clock = HastyClock()
    hall = hall_of(Hands(), clock=clock)
    await watched(hall, POLLING, calls=20)
    head = await drive(hall, RUN)
    assert head.snapshot.reason == "limit of 20 calls reached in looking"
    assert clock.now() == 1_000 + 20 * 60


@pytest.mark.anyio
async def test_what_comes_from_outside_is_news() -> None:
    hall = hall_of(Hands())
    machine = circle(On("writing", "poked"), On("judging", "poked"))
    head = await watched(hall, machine)
    for number in range(12):
        await advance(hall, RUN, (Named("poked"), f"poke-{number}"))
        (pending,) = hall.runs[RUN].head.pending
        assert isinstance(pending.effect, Fetch)
        await advance(hall, RUN, (Fetched(pending.effect.what), pending.key))
        head = hall.runs[RUN].head
    assert [one.denied for one in head.pending] == [""]


@pytest.mark.anyio
async def test_a_machine_that_bounds_itself_is_never_stopped_for_going_in_circles() -> None:
    machine = Machine(
        "patient",
        data=Basket,
        states=[State("trying", enter=Fetch("the same")), Final("home")],
        moves=[
            On("trying", Fetched, to="trying", do=replace_all, at_most=9),
            On("trying", Fetched, to="home"),
        ],
    )
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, machine, limits={"calls": 100, "seconds": 1_000})
    assert (await drive(hall, RUN)).snapshot.status == "done"
    assert len(hands.calls) == 10
    assert hall.runs[RUN].head.same == {}


@pytest.mark.anyio
@pytest.mark.parametrize("entry", range(1, 5))
async def test_the_count_survives_a_crash_anywhere_in_the_circle(entry: int) -> None:
    store, hands, machine = MemoryStore(strict=True), Hands(), circle()
    hall = hall_of(hands, store)
    await watched(hall, machine)
    for _ in range(entry):
        (pending,) = hall.runs[RUN].head.pending
        assert isinstance(pending.effect, Fetch)
        await advance(hall, RUN, (Fetched(pending.effect.what), pending.key))
    later = hall_of(hands, store)
    await reopen(later, RUN, machine)
    head = await drive(later, RUN)
    assert (len(hands.calls), head.snapshot.reason) == (5 - entry, "limit of 3 repetitions reached in judging")


@pytest.mark.anyio
async def test_circles_of_two_regions_are_counted_apart_and_the_first_ends_the_run() -> None:
    machine = Machine(
        "two circles",
        data=Basket,
        states=[
            Parallel(
                "both",
                [
                    State("left", [State("lefting", enter=Fetch("l"))]),
                    State("right", [State("righting", enter=Fetch("r"))]),
                ],
            ),
        ],
        moves=[On("lefting", Fetched, to="lefting"), On("righting", Fetched, to="righting")],
    )
    hands = Hands()
    hall = hall_of(hands)
    await watched(hall, machine)
    head = await drive(hall, RUN)
    assert head.snapshot.status == "limited"
    assert "limit of 3 repetitions reached in" in head.snapshot.reason
    assert sorted(hands.asked) == ["l"] * 3 + ["r"] * 3


def few(basket: Basket, _: Fetched) -> bool:
    """Whether less than eight things were gathered."""
    return len(basket.got) < 8


@pytest.mark.anyio
async def test_a_circle_in_one_region_does_not_stop_what_another_is_getting_on_with() -> None:
    machine = Machine(
        "one of two",
        data=Basket,
        states=[
            Parallel(
                "both",
                [
                    State("left", [State("lefting", enter=Fetch("l")), Final("tired")]),
                    State("right", [State("righting", enter=Fetch("r")), Final("home")]),
                ],
            ),
        ],
        moves=[
            On("lefting", Exhausted, to="tired"),
            On("lefting", Fetched, to="lefting", do=lambda basket, _: basket),
            On("righting", Fetched, to="righting", do=keep, when=few),
            On("righting", Fetched, to="home"),
        ],
    )
    hall = hall_of(Hands())
    await watched(hall, machine)
    head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("r",) * 8)


@pytest.mark.anyio
async def test_a_race_that_is_run_again_and_again_is_a_circle_although_the_losers_come_late() -> None:
    machine = Machine(
        "races",
        data=Basket,
        states=[State("racing", enter=[Fetch("hare"), Fetch("fox")])],
        moves=[On("racing", Fetched, to="racing")],
    )
    hands = Hands()
    hall = hall_of(hands)
    await watched(hall, machine)
    assert "repetitions" in (await drive(hall, RUN)).snapshot.reason


@pytest.mark.anyio
async def test_the_same_words_at_another_price_are_nothing_new() -> None:
    prices = iter(range(1_000))

    async def dearer(effect: Fetch, context: Context) -> Event:
        return Fetched(effect.what, {"tokens": 100 + next(prices)})

    hall = hall_of(dearer)
    await watched(hall, circle(), calls=30)
    assert (await drive(hall, RUN)).snapshot.reason == "limit of 3 repetitions reached in judging"


class Missed(Event):
    """Something was not there."""

    reason: str


@pytest.mark.anyio
async def test_the_same_word_said_as_something_else_is_new() -> None:
    machine = Machine(
        "either",
        data=Basket,
        states=[State("trying", enter=Fetch("bread")), Final("home")],
        moves=[
            On("trying", (Fetched, Missed), to="trying", at_most=6),
            On("trying", (Fetched, Missed), to="home"),
        ],
    )
    ends = cycle((Fetched("no"), Missed("no")))

    async def either(effect: Fetch, context: Context) -> Event:
        return next(ends)

    hall = hall_of(either)
    await watched(hall, machine)
    assert (await drive(hall, RUN)).snapshot.status == "done"


def test_a_late_reply_that_is_ignored_does_not_begin_the_count_anew() -> None:
    machine = circle()
    run = Run(Record(RUN, machine.name, machine.digest, 0.0, limits={"calls": 9}, endless=True), machine)
    begun_with = decided(first(run, Basket())).head
    head = decided(decide.decide(run, begun_with, Incoming(Fetched("draft"), "0.0", 1.0))).head
    late = decided(decide.decide(run, head, Incoming(Fetched("old"), "0.7", 2.0)))
    assert late.entry.ignored
    assert late.head.same == head.same


# wall time


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [line("bread"), fan("bread", "milk")], ids=["in place", "in tasks"])
async def test_wall_time_stops_a_slow_effect_within_a_pulse(machine: Machine) -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread", "milk")
    hall = hall_of(hands, clock=clock, pulse=QUICK)
    head = await begun(hall, machine, limits={"seconds": 60})
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(len(head.pending))
    clock.move(60)
    async with asyncio.timeout(SOON):
        head = await driving
    assert sorted(hands.stopped) == sorted(hands.asked)
    assert head.snapshot.status == "limited"
    assert head.snapshot.reason.startswith("limit of 60 seconds reached in fetching")


@pytest.mark.anyio
async def test_a_row_may_take_the_end_of_the_time_and_what_costs_nothing_may_follow() -> None:
    machine = Machine(
        "hurried",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("asking", enter=AskPerson("Well?")), Final("home")],
        moves=[
            On("fetching", Fetched, to="home", do=keep),
            On("fetching", Exhausted, to="asking", do=lambda basket, event: Basket((event.resource,))),
            On("asking", Answered, to="home"),
        ],
    )
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    hall = hall_of(hands, clock=clock, pulse=QUICK)
    await begun(hall, machine, limits={"seconds": 60})
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    clock.move(61)
    async with asyncio.timeout(SOON):
        head = await driving
    assert (head.snapshot.active, head.snapshot.data) == (("asking",), Basket(("seconds",)))
    await answer(hall, RUN, "well")
    assert hall.runs[RUN].head.snapshot.status == "done"


# time-outs and beats


class Slow(Fetch):
    """A fetch of which one should hear every half minute."""

    kind = "fetch"
    timeout = 30.0


SLOW = Machine(
    "slow",
    data=Basket,
    states=[State("fetching", enter=Slow("bread")), Final("home")],
    moves=[On("fetching", Fetched, to="home", do=keep)],
)


def pulse(hall: Hall) -> None:
    """What a pulse does about effects that take too long."""
    hall.crew.drives[RUN].stop_late()


@pytest.mark.anyio
async def test_who_is_heard_of_is_not_stopped_however_long_it_takes() -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    hall = hall_of(hands, clock=clock)
    await begun(hall, SLOW)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    context = hands.calls[0][1]
    for _ in range(20):
        clock.move(29)
        context.beat()
        pulse(hall)
        await asyncio.sleep(0)
    assert hands.stopped == []
    hands.open("bread")
    assert (await driving).snapshot.status == "done"
    assert await happened(hall) == ["run.started", "fetched"]


@pytest.mark.anyio
async def test_who_falls_silent_is_stopped_and_tried_again() -> None:
    clock, hands = MovableClock(), Hands()
    hands.shut("bread")
    hall = hall_of(hands, clock=clock)
    await begun(hall, SLOW)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    clock.move(29)
    hands.calls[0][1].beat()
    clock.move(30)
    pulse(hall)
    await asyncio.sleep(0)
    assert hands.stopped == [], "it was heard of thirty seconds ago, not more"
    clock.move(1)
    pulse(hall)
    await clock.wait_for_waiting()
    assert hands.stopped == ["bread"]
    hands.open("bread")
    clock.move(60)
    assert (await driving).snapshot.status == "done"
    (faltered,) = [entry["event"] for entry in await journal(hall) if entry["event"]["name"] == "effect.faltered"]
    assert faltered["reason"] == "fetch: nothing was heard of it for 30 s"


@pytest.mark.anyio
async def test_a_beat_after_the_end_changes_nothing() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, SLOW)
    await drive(hall, RUN)
    hands.calls[0][1].beat()
    assert await happened(hall) == ["run.started", "fetched"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limits", "deadline"),
    [({}, 1_030.0), ({"seconds": 10}, 1_010.0), ({"seconds": 90}, 1_030.0)],
    ids=["its time-out", "the wall time", "the earlier"],
)
async def test_the_deadline_that_a_performer_is_told_is_the_earlier_of_the_two(
    limits: dict[str, float], deadline: float
) -> None:
    hands = Hands()
    hall = hall_of(hands, clock=MovableClock())
    await begun(hall, SLOW, limits=limits)
    await drive(hall, RUN)
    assert hands.calls[0][1].deadline == deadline


# performers that do not heed


class Stubborn:
    """Hands that put off being stopped so many times, and then heed or return."""

    def __init__(self, times: int, *, returning: bool = False) -> None:
        self.times, self.returning = times, returning
        self.put_off = 0
        self.called = asyncio.Event()
        self.attempts = 0

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        self.attempts += 1
        self.called.set()
        if self.attempts > 1:
            return Fetched(effect.what)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.put_off == self.times:
                    raise
                self.put_off += 1
                if self.returning:
                    return Fetched(effect.what)


BESIDE = Machine(
    "beside",
    data=Basket,
    states=[State("fetching", enter=[Slow("bread"), Alarm(Named("rung"), 100_000)]), Final("home")],
    moves=[On("fetching", Fetched, to="home", do=keep)],
)


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [SLOW, BESIDE], ids=["in place", "in tasks"])
async def test_who_does_not_heed_being_stopped_is_stopped_again(machine: Machine) -> None:
    clock, hands, faltered = MovableClock(), Stubborn(3), asyncio.Event()
    hall = hall_of(hands, clock=clock, pulse=QUICK)
    await begun(hall, machine)
    hall.observers.append(lambda run, entry, head: faltered.set())
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.called.wait()
    clock.move(31)
    async with asyncio.timeout(SOON):
        await faltered.wait()
        clock.move(60)
        head = await driving
    assert (hands.put_off, hands.attempts) == (3, 2)
    assert head.snapshot.status == "done"
    assert await happened(hall) == ["run.started", "effect.faltered", "fetched"]


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [SLOW, BESIDE], ids=["in place", "in tasks"])
async def test_what_someone_returns_who_was_to_be_stopped_still_counts(machine: Machine) -> None:
    clock, hands = MovableClock(), Stubborn(1, returning=True)
    hall = hall_of(hands, clock=clock)
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.called.wait()
    clock.move(31)
    pulse(hall)
    async with asyncio.timeout(SOON):
        assert (await driving).snapshot.data == Basket(("bread",))
    assert await happened(hall) == ["run.started", "fetched"]


@pytest.mark.anyio
async def test_who_returned_although_it_was_stopped_leaves_no_trace_on_the_next_effect() -> None:
    clock, attempts = HastyClock(), list[str]()

    async def hands(effect: Fetch, context: Context) -> Event:
        attempts.append(effect.what)
        if effect.what == "bread":
            hall.crew.drives[RUN].stop("0.0", "timeout")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return Fetched("bread")
        if attempts.count("milk") == 1:
            raise OSError("sour")
        return Fetched(effect.what)

    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread", "milk"))
    await drive(hall, RUN)
    assert await happened(hall) == ["run.started", "fetched", "effect.faltered", "fetched"]


# tidying up


class Tidy:
    """Hands that are stopped in the middle of everything but bread, and put their things away first."""

    def __init__(self) -> None:
        self.tidying, self.may_go = asyncio.Event(), asyncio.Event()
        self.begun = 0
        self.all_begun = asyncio.Event()
        self.tidied: list[str] = []

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        self.begun += 1
        if self.begun == 2:
            self.all_begun.set()
        await self.all_begun.wait()
        if effect.what == "bread":
            return Fetched("bread")
        try:
            await asyncio.Event().wait()
        finally:
            self.tidying.set()
            await self.may_go.wait()
            self.tidied.append(effect.what)
        raise AssertionError("nobody opens that gate")


FIRST_WINS = Machine(
    "first wins",
    data=Basket,
    states=[State("racing", enter=[Fetch("bread"), Fetch("milk")]), Final("home")],
    moves=[On("racing", Fetched, to="home", do=keep)],
)


@pytest.mark.anyio
async def test_what_is_dropped_at_the_end_has_a_moment_to_put_its_things_away() -> None:
    hands = Tidy()
    hall = hall_of(hands)
    await begun(hall, FIRST_WINS)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.tidying.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert hall.runs[RUN].head.snapshot.status == "done"
    assert not driving.done(), "the run is over, but not everybody is gone"
    hands.may_go.set()
    await driving
    assert hands.tidied == ["milk"]


@pytest.mark.anyio
async def test_the_moment_is_short() -> None:
    hands = Tidy()
    hall = hall_of(hands)
    hall.crew.grace = QUICK
    await begun(hall, FIRST_WINS)
    async with asyncio.timeout(SOON):
        assert (await drive(hall, RUN)).snapshot.status == "done"
    assert hands.tidied == []
    hands.may_go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert hands.tidied == ["milk"]


@pytest.mark.anyio
async def test_what_is_dropped_on_the_way_does_not_hold_the_run_up() -> None:
    machine = Machine(
        "on the way",
        data=Basket,
        states=[
            State("racing", enter=[Fetch("bread"), Fetch("milk")]),
            State("eating", enter=Fetch("bread")),
            Final("home"),
        ],
        moves=[On("racing", Fetched, to="eating", do=keep), On("eating", Fetched, to="home", do=keep)],
    )
    hands = Tidy()
    hall = hall_of(hands)
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.tidying.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert hall.runs[RUN].head.snapshot.status == "done"
    hands.may_go.set()
    await driving
    assert hands.tidied == ["milk"]


@pytest.mark.anyio
async def test_a_tool_that_falls_silent_beside_others_does_not_take_them_along() -> None:
    wanted: list[Effect] = [CallTool("slow", {}, "s", timeout=30), CallTool("quick", {}, "q")]
    machine = Machine(
        "both",
        data=Basket,
        states=[State("calling", enter=wanted), Final("home")],
        moves=[On("calling", Returned, do=lambda basket, event: Basket((*basket.got, event.tool)))],
    )
    under_way, clock = asyncio.Event(), MovableClock()

    async def call(effect: CallTool, context: Context) -> Event:
        if effect.tool == "slow" and context.attempt == 1:
            under_way.set()
            await asyncio.Event().wait()
        return Returned(effect.tool, id=effect.id)

    hall = Hall(MemoryStore(strict=True), clock, {CallTool.kind: Performer(CallTool, call)})
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await under_way.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    clock.move(31)
    pulse(hall)
    await clock.wait_for_waiting()
    clock.move(60)
    assert (await driving).snapshot.data == Basket(("quick", "slow"))
