"""A budget is a limit, not a label: what it does not cover is not performed."""

import asyncio
from collections.abc import Mapping

import pytest

from moothall.kernel.effects import Effect
from moothall.kernel.events import Event, Exhausted
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, On, State, anywhere
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, reopen
from moothall.runtime.ports import Context, Performer
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.world import (
    ATTEMPTS,
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    begun,
    fan,
    hall_of,
    happened,
    journal,
    keep,
    line,
)

FIVE = ("a", "b", "c", "d", "e")


@pytest.mark.anyio
async def test_the_call_beyond_the_budget_is_not_made_and_the_run_ends_limited_with_what_it_has() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, line("bread", "milk", "salt"), limits={"calls": 2})
    head = await drive(hall, RUN)
    assert hands.asked == ["bread", "milk"]
    assert head.snapshot.status == "limited"
    assert head.snapshot.reason == "limit of 2 calls reached in fetching_salt"
    assert head.snapshot.data == Basket(("bread", "milk"))
    assert head.spent == {"calls": 2}
    assert await happened(hall) == ["run.started", "fetched", "fetched", "run.exhausted"]


@pytest.mark.anyio
async def test_the_journal_says_which_effect_was_denied_for_lack_of_what() -> None:
    hall = hall_of(Hands())
    await begun(hall, line("bread", "milk"), limits={"calls": 1})
    await drive(hall, RUN)
    denials = {effect["key"]: effect.get("denied") for entry in await journal(hall) for effect in entry["effects"]}
    assert denials == {"0.0": None, "1.0": "calls"}


@pytest.mark.anyio
async def test_a_row_for_exhausted_is_taken_instead_of_ending_the_run() -> None:
    machine = Machine(
        "frugal",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("adding", enter=Fetch("milk")), Final("home")],
        moves=[
            On("fetching", Fetched, to="adding", do=keep),
            On("adding", Fetched, to="home", do=keep),
            On("adding", Exhausted, to="home", do=lambda basket, event: Basket((*basket.got, f"no {event.resource}"))),
        ],
    )
    hall = hall_of(Hands())
    await begun(hall, machine, limits={"calls": 1})
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    assert head.snapshot.data == Basket(("bread", "no calls"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limits", "usage"),
    [({"tokens": 100}, {"tokens": 50}), ({"usd": 0.5}, {"usd": 0.25}), ({"tokens": 60, "usd": 9}, {"tokens": 31})],
    ids=["tokens", "usd", "the scarcer of two"],
)
async def test_reported_usage_counts_until_nothing_is_left(
    limits: Mapping[str, float], usage: Mapping[str, float]
) -> None:
    hands = Hands()
    hands.usage = dict.fromkeys(FIVE, usage)
    hall = hall_of(hands)
    await begun(hall, line(*FIVE), limits=limits)
    head = await drive(hall, RUN)
    resource = next(iter(limits))
    assert hands.asked == ["a", "b"]
    assert head.snapshot.status == "limited"
    assert head.snapshot.reason.startswith(f"limit of {limits[resource]:g} {resource} reached")


@pytest.mark.anyio
async def test_seconds_count_from_the_beginning_of_the_run() -> None:
    clock = MovableClock()

    async def slow(effect: Fetch, context: Context) -> Event:
        clock.move(40)
        return Fetched(effect.what)

    hall = hall_of(slow, clock=clock)
    await begun(hall, line(*FIVE), limits={"seconds": 60})
    head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("a", "b"))
    assert head.snapshot.reason.startswith("limit of 60 seconds reached")


@pytest.mark.anyio
@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "slowly"])
async def test_of_five_calls_at_once_a_budget_of_three_performs_exactly_three_and_keeps_their_replies(
    slowly: bool,
) -> None:
    hands = Hands()
    if slowly:
        hands.shut(*FIVE)
    hall = hall_of(hands)
    await begun(hall, fan(*FIVE), limits={"calls": 3})
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(3)
    for one in hands.gates:
        for _ in range(5):
            await asyncio.sleep(0)
        hands.open(one)
    head = await driving
    assert hands.asked == ["a", "b", "c"]
    assert head.snapshot.status == "limited"
    assert head.snapshot.data == Basket(("a", "b", "c"))
    assert head.spent == {"calls": 3}


@pytest.mark.anyio
async def test_a_table_of_costs_is_reserved_for_effects_in_flight() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, fan(*FIVE, costs={"fetch": {"usd": 0.1}}), limits={"usd": 0.25})
    await drive(hall, RUN)
    assert hands.asked == ["a", "b"]


@pytest.mark.anyio
async def test_what_an_event_reports_replaces_what_was_reserved() -> None:
    hands = Hands()
    hands.usage = {one: {"usd": 0.01} for one in FIVE}
    machine = line(*FIVE, costs={"fetch": {"usd": 0.2}})
    hall = hall_of(hands)
    await begun(hall, machine, limits={"usd": 0.25})
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    assert head.spent["usd"] == pytest.approx(0.05)


@pytest.mark.anyio
async def test_what_an_event_does_not_report_is_charged_as_reserved() -> None:
    machine = line(*FIVE, costs={"fetch": {"usd": 0.2}})
    hall = hall_of(Hands())
    await begun(hall, machine, limits={"usd": 0.5})
    head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("a", "b"))
    assert head.spent["usd"] == pytest.approx(0.4)


class Knock(Effect):
    """An effect that costs nothing by itself."""

    kind = "knock"
    outcomes = (Fetched,)


@pytest.mark.anyio
async def test_a_table_of_costs_also_counts_for_an_effect_that_has_no_cost_of_its_own() -> None:
    machine = Machine(
        "knocking",
        data=Basket,
        states=[State("knocking", enter=[Knock(), Knock(), Knock()]), Final("home")],
        moves=[On("knocking", Fetched, do=keep)],
        costs={"knock": {"calls": 1}},
    )

    async def knocked(effect: Knock, context: Context) -> Event:
        return Fetched(context.key)

    hall = Hall(MemoryStore(), HastyClock(), {"knock": Performer(Knock, knocked)})
    await begun(hall, machine, limits={"calls": 2})
    head = await drive(hall, RUN)
    assert head.snapshot.data == Basket(("trial.0.0", "trial.0.1"))
    assert head.snapshot.status == "limited"


@pytest.mark.anyio
async def test_a_denied_effect_reserves_nothing() -> None:
    machine = Machine(
        "choosy",
        data=Basket,
        states=[State("buying", enter=[Fetch("gold"), Knock()]), Final("home")],
        moves=[On("buying", Fetched, to="home", do=keep)],
        costs={"fetch": {"usd": 9}, "knock": {"usd": 0.1}},
    )

    async def knocked(effect: Knock, context: Context) -> Event:
        return Fetched("a nod")

    hands = Hands()
    hall = Hall(MemoryStore(), HastyClock(), {"fetch": Performer(Fetch, hands), "knock": Performer(Knock, knocked)})
    await begun(hall, machine, limits={"usd": 0.5})
    head = await drive(hall, RUN)
    assert hands.asked == []
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("a nod",)))


@pytest.mark.anyio
async def test_a_budget_of_nothing_allows_no_call_at_all() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, line("bread"), limits=Budget(usd=0).limits())
    head = await drive(hall, RUN)
    assert hands.asked == []
    assert head.snapshot.status == "limited"


@pytest.mark.anyio
async def test_every_attempt_is_charged_also_those_that_failed() -> None:
    hands = Hands()
    hands.raising = {"bread": [OSError("closed")] * ATTEMPTS}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    assert (await drive(hall, RUN)).spent == {"calls": ATTEMPTS}


@pytest.mark.anyio
async def test_calls_dropped_by_leaving_their_state_are_gone_from_the_budget() -> None:
    racing = State("racing", enter=[Fetch("hare"), Fetch("fox")])
    machine = Machine(
        "races",
        data=Basket,
        states=[racing, State("betting", enter=Fetch("money")), Final("home")],
        moves=[On("racing", Fetched, to="betting", do=keep), On("betting", Fetched, to="racing", do=keep)],
    )
    hands = Hands()
    hands.shut("fox")
    hall = hall_of(hands)
    await begun(hall, machine, limits={"calls": 6})
    head = await drive(hall, RUN)
    assert len(hands.calls) == 6
    assert head.spent == {"calls": 6}


@pytest.mark.anyio
async def test_what_was_spent_survives_a_new_process() -> None:
    store = MemoryStore()
    machine = line("bread", "milk", "salt")
    hands = Hands()
    hands.shut("milk")
    hall = hall_of(hands, store)
    await begun(hall, machine, limits={"calls": 2})
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(2)
    driving.cancel()
    await asyncio.wait([driving])

    again = Hands()
    later = hall_of(again, store)
    await reopen(later, RUN, machine)
    head = await drive(later, RUN)
    assert again.asked == ["milk"]
    assert head.snapshot.status == "limited"
    assert head.snapshot.data == Basket(("bread", "milk"))


@pytest.mark.anyio
async def test_a_machine_that_only_wants_more_of_what_is_exhausted_comes_to_an_end() -> None:
    hands = Hands()
    machine = Machine(
        "stubborn",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("again", enter=Fetch("milk")), Final("home")],
        moves=[
            On("fetching", Fetched, to="fetching", do=keep),
            On(anywhere, Exhausted, to="again"),
            On("again", Fetched, to="home"),
        ],
    )
    hall = hall_of(hands)
    await begun(hall, machine, limits={"calls": 2})
    head = await drive(hall, RUN)
    assert (head.snapshot.status, hands.asked) == ("limited", ["bread", "bread"])
    assert head.snapshot.reason == "no calls left, not even for what is to be done when it is exhausted"
    assert head.snapshot.data == Basket(("bread", "bread"))
