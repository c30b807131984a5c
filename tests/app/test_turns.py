"""Agents with tools at work: every call an effect of its own, and nothing is done twice that need not be."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import (
    Budget,
    Final,
    GaveUp,
    Machine,
    Moothall,
    On,
    Replied,
    Reply,
    State,
    ToolCall,
    ask,
    run,
    tool,
)
from moothall.agents.ask import Tool
from moothall.analysis.certify import Certificate
from moothall.app.kinds.bindings import Provided, bind
from moothall.app.kinds.check import certificate
from moothall.errors import EffectFailed, Refused
from moothall.machines.turn import turn
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin, messages, questions, reopen
from moothall.runtime.hall import answer as tell_answer
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from moothall.testing import TestClock
from tests.runtime.clock import HastyClock
from tests.runtime.family import Killed, killed
from tests.runtime.world import PROCESSES, QUICK

RUN = "trip"
TURN = "trip-0-0"


@dataclass(frozen=True)
class Trip:
    to: str
    text: str = ""
    days: int = 0


@dataclass(frozen=True)
class Plan:
    days: int


class Desk:
    """Two tools that note every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failing: list[Exception] = []

    async def weather(self, city: str, key: str) -> dict[str, int]:
        """How cold it is in a city."""
        self.calls.append((f"weather {city}", key))
        if self.failing:
            raise self.failing.pop(0)
        return {"low": -3}

    async def book(self, hotel: str, key: str) -> str:
        """Book a room."""
        self.calls.append((f"book {hotel}", key))
        return "room 7"

    @property
    def called(self) -> list[str]:
        """What was called, in order."""
        return [what for what, _ in self.calls]


def keep(trip: Trip, reply: Replied) -> Trip:
    return replace(trip, text=reply.text)


def keep_plan(trip: Trip, reply: Replied) -> Trip:
    return replace(trip, days=reply.value.days)


def keep_reason(trip: Trip, gave_up: GaveUp) -> Trip:
    return replace(trip, text=gave_up.reason)


def trip(*tools: Any, rounds: int = 8, reply: Any = None, do: Callable[..., Trip] = keep) -> Machine:
    """A machine whose only state asks a guide with tools."""
    return Machine(
        "trip",
        data=Trip,
        result=lambda trip: trip.text,
        states=[
            State("asking", enter=ask("guide", "Plan a trip to {to}", tools=tools, rounds=rounds, reply=reply)),
            Final("planned"),
            Final("lost"),
        ],
        moves=[On("asking", Replied, to="planned", do=do), On("asking", GaveUp, to="lost", do=keep_reason)],
    )


def weather(city: str, id: str = "") -> dict[str, Any]:
    """A call of the weather, as a script has it."""
    return {"tool": "weather", "arguments": {"city": city}, "id": id}


def book(hotel: str, id: str = "") -> dict[str, Any]:
    return {"tool": "book", "arguments": {"hotel": hotel}, "id": id}


Line = str | Mapping[str, Any]
SCRIPT: Sequence[Line] = (
    {"text": "Let me see.", "calls": [weather("Oslo", "w1"), book("Bristol", "b1")], "usage": {"tokens": 5}},
    {"calls": [weather("Bergen", "w2")], "usage": {"tokens": 6}},
    {"text": "Pack a coat.", "usage": {"tokens": 7}},
)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[Sequence[Line]], str]:
    """Writes what the guide says, and gives the model's name."""

    def written(lines: Sequence[Line]) -> str:
        file = tmp_path / "script.json"
        file.write_text(json.dumps({"guide": lines}))
        return f"scripted:{file}"

    return written


def hall_for(machine: Machine, store: Store, model: str) -> Hall:
    """A hall in a process of its own, with the cast that the application gives."""
    hall = Hall(store, HastyClock(), {}, owner=next(PROCESSES))
    troupe = Provided(model)

    async def open_run(run: RunId) -> None:
        name = (await store.load(run)).record.machine
        mine = machine if name == machine.name else turn(int(name.removeprefix("turn-")))
        hall.bind(run, bind(mine, troupe if mine is machine else troupe.joined_by(machine)))
        await reopen(hall, run, mine)

    hall.opener = open_run
    hall.bind(RUN, bind(machine, troupe))
    return hall


async def driven(machine: Machine, store: Store, model: str, limits: Mapping[str, float] | None = None) -> Hall:
    """The run in a new process, begun where it is not there, and driven with all that wants attention."""
    hall = hall_for(machine, store, model)
    try:
        await hall.open(RUN)
    except Refused:
        record = Record(RUN, machine.name, machine.digest, hall.clock.now(), model=model, limits=limits or {})
        await begin(hall, record, machine, Trip("Norway"))
    await drive(hall, RUN)
    gone = [owner for owner in await store.owners() if is_gone(owner)]
    for each in await store.due(hall.clock.now(), 10, gone):
        await hall.open(each)
        await drive(hall, each)
    await hall.open(RUN)
    return hall


# a whole turn


def test_tools_are_called_and_the_reply_takes_the_run_on(script: Callable[..., str]) -> None:
    desk = Desk()
    outcome = run(trip(desk.weather, desk.book), "Norway", model=script(SCRIPT))
    assert (outcome.status, outcome.result) == ("done", "Pack a coat.")
    assert desk.called[2] == "weather Bergen"
    assert sorted(desk.called[:2]) == ["book Bristol", "weather Oslo"]
    assert outcome.spent == {"calls": 3, "tokens": 18}


async def talk_of(hall: Hall) -> list[Any]:
    """What was said in the turn, which is over and no longer in the hall."""
    await hall.open(TURN)
    return await messages(hall, TURN, "turn")


@pytest.mark.anyio
async def test_the_thread_of_the_turn_holds_the_whole_talk(store: SqliteStore, script: Callable[..., str]) -> None:
    desk = Desk()
    hall = await driven(trip(desk.weather, desk.book), store, script(SCRIPT))
    talk = await talk_of(hall)
    assert [one["role"] for one in talk] == ["assistant", "tool", "tool", "assistant", "tool"]
    assert {one["id"]: one["value"] for one in talk if one["role"] == "tool"} == {
        "w1": {"low": -3},
        "b1": "room 7",
        "w2": {"low": -3},
    }


def test_an_agent_that_is_a_function_reads_what_was_said_and_calls_tools_too() -> None:
    desk, heard = Desk(), list[str]()

    async def guide(prompt: str) -> str | Reply:
        heard.append(prompt)
        if len(heard) == 1:
            return Reply(calls=(ToolCall("weather", {"city": "Oslo"}),))
        return "Pack a coat."

    assert run(trip(desk.weather), "Norway", agents={"guide": guide}).result == "Pack a coat."
    assert heard[0] == "Plan a trip to Norway"
    question, wanted, returned = heard[1].split("\n\n")
    assert question == heard[0]
    assert json.loads(wanted)["calls"] == [{"tool": "weather", "arguments": {"city": "Oslo"}, "id": "call-0"}]
    assert json.loads(returned) == {"role": "tool", "id": "call-0", "tool": "weather", "value": {"low": -3}}


def test_a_tool_may_be_named_in_the_table_and_brought_by_the_caller(script: Callable[..., str]) -> None:
    desk = Desk()
    model = script([{"calls": [weather("Oslo")]}, "Pack a coat."])
    assert run(trip("weather"), "Norway", agents={"weather": desk.weather}, model=model).status == "done"
    assert desk.called == ["weather Oslo"]


def test_a_tool_that_nobody_brings_is_shown_to_the_agent(script: Callable[..., str]) -> None:
    model = script([{"calls": [weather("Oslo")]}, "I cannot say."])
    assert run(trip("weather"), "Norway", model=model).result == "I cannot say."


@pytest.mark.anyio
async def test_a_tool_that_fails_is_tried_and_then_shown_to_the_agent(script: Callable[..., str]) -> None:
    desk = Desk()
    desk.failing = [EffectFailed("the station is closed")] * 3
    model = script([{"calls": [weather("Oslo")]}, "I cannot say."])
    async with Moothall(clock=TestClock()) as hall:
        assert (await hall.run(trip(desk.weather), "Norway", model=model)).result == "I cannot say."
    assert len(desk.calls) == 3
    assert len({key for _, key in desk.calls}) == 1


# shapes


def test_a_reply_of_the_wrong_shape_is_shown_back_and_the_next_one_counts(script: Callable[..., str]) -> None:
    desk = Desk()
    model = script([{"value": {"days": "three"}}, {"value": {"days": 3}}])
    outcome = run(trip(desk.weather, reply=Plan, do=keep_plan), "Norway", model=model)
    assert (outcome.status, outcome.data.days) == ("done", 3)


def test_the_second_reply_of_the_wrong_shape_is_given_up_and_says_what_was_wrong(script: Callable[..., str]) -> None:
    desk = Desk()
    model = script([{"value": {"days": "three"}}, {"value": {}}])
    outcome = run(trip(desk.weather, reply=Plan, do=keep_plan), "Norway", model=model)
    assert outcome.states == ("lost",)
    assert outcome.result == "guide: its reply cannot be used: Plan: the field 'days' is missing"


def test_an_agent_that_wants_tools_for_ever_is_given_up(script: Callable[..., str]) -> None:
    desk = Desk()
    outcome = run(trip(desk.weather, rounds=2), "Norway", model=script([{"calls": [weather("Oslo")]}] * 5))
    assert outcome.result == "guide: it still wanted tools after its last round"
    assert (len(desk.calls), outcome.spent) == (2, {"calls": 3})


# budgets


@pytest.mark.parametrize(("calls", "called"), [(1, 2), (2, 3)])
def test_the_questions_of_a_turn_are_paid_out_of_its_parent_s_budget(
    script: Callable[..., str], calls: int, called: int
) -> None:
    desk = Desk()
    outcome = run(trip(desk.weather, desk.book), "Norway", model=script(SCRIPT), budget=Budget(calls=calls))
    assert outcome.states == ("lost",)
    assert outcome.result == f"child turn-8: limited: limit of {calls} calls reached in asking"
    assert (outcome.spent["calls"], len(desk.calls)) == (calls, called)


def test_the_certificate_of_a_machine_counts_what_a_turn_can_take() -> None:
    desk = Desk()
    bound = certificate(trip(desk.weather, rounds=2))
    assert isinstance(bound, Certificate)
    assert bound.resources == {"ask.agent": 4, "call.tool": 32, "calls": 12, "start.child": 1}
    assert bound.transitions == 71


# crashes


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_a_crash_at_any_write_repeats_at_most_the_calls_that_were_under_way(
    tmp_path: Path, script: Callable[..., str], before: bool
) -> None:
    model, write, log = script(SCRIPT), 0, tmp_path / "asked.log"
    while True:
        write += 1
        desk, store = Desk(), SqliteStore(tmp_path / f"{write}.db", durability="normal")
        machine = trip(desk.weather, desk.book)
        log.unlink(missing_ok=True)
        try:
            await driven(machine, killed(store, write, before=before), f"{model},log={log}")
            break
        except Killed:
            kept = {entry["cause"] for entry in await _entries(store, TURN)}
            known = len(desk.calls)
        hall = await driven(machine, store, f"{model},log={log}")
        assert hall.runs[RUN].head.snapshot.data.text == "Pack a coat."
        again = {key.removeprefix(f"{TURN}.") for _, key in desk.calls[known:]}
        assert not kept & again, f"write {write}: what had come back was called again"
        asked = Counter(log.read_text().splitlines())
        repeated = sum((Counter(desk.called) - Counter(set(desk.called))).values())
        assert repeated + asked.total() - len(asked) <= 2, f"write {write}"
        store.close()
    assert write > 10
    store.close()


async def _entries(store: Store, run: RunId) -> Sequence[Mapping[str, Any]]:
    try:
        await store.load(run)
    except Refused:
        return ()
    return await store.entries(run)


@pytest.mark.anyio
async def test_a_crash_in_the_middle_of_one_of_two_calls_repeats_that_one_alone(script: Callable[..., str]) -> None:
    desk, store, hangs = Desk(), MemoryStore(strict=True), asyncio.Event()
    under_way = asyncio.Event()

    async def slow(city: str) -> int:
        desk.calls.append((f"slow {city}", ""))
        if not hangs.is_set():
            under_way.set()
            await hangs.wait()
        return 1

    machine = trip(Tool("weather", slow), desk.book)
    model = script(SCRIPT)
    driving = asyncio.create_task(driven(machine, store, model))
    await under_way.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    driving.cancel()
    await asyncio.wait([driving])
    hangs.set()
    await driven(machine, store, model)
    assert Counter(desk.called) == {"slow Oslo": 2, "book Bristol": 1, "slow Bergen": 1}


# at most once


async def lost_while_booking(desk: Desk, machine: Machine, store: Store, model: str) -> None:
    """A worker that is gone in the middle of a booking."""
    booking = desk.book

    async def hanging(hotel: str, key: str) -> str:
        await booking(hotel, key)
        under_way.set()
        await asyncio.Event().wait()
        return "never heard"

    under_way = asyncio.Event()
    hall = hall_for(machine, store, model)
    hall.bind(RUN, bind(machine, Provided(model, {"book": hanging})))
    record = Record(RUN, machine.name, machine.digest, hall.clock.now(), model=model)
    await begin(hall, record, machine, Trip("Norway"))
    driving = asyncio.create_task(drive(hall, RUN))
    await under_way.wait()
    driving.cancel()
    await asyncio.wait([driving])


@pytest.mark.anyio
async def test_a_booking_that_was_lost_is_a_question_and_the_answer_takes_both_runs_on(
    store: SqliteStore, script: Callable[..., str]
) -> None:
    desk = Desk()
    machine = trip(tool(desk.book, repeats="at-most-once"))
    model = script([{"calls": [book("Bristol")]}, "All booked."])
    await lost_while_booking(desk, machine, store, model)
    hall = await driven(machine, store, model)
    assert hall.runs[RUN].head.snapshot.active == ("asking",)
    await hall.open(TURN)
    (question,) = questions(hall.runs[TURN].head)
    assert question.doubt.startswith("book had begun when its worker was lost")
    await tell_answer(hall, TURN, {"outcome": "done", "value": "room 9"})
    await drive(hall, TURN)
    hall = await driven(machine, store, model)
    assert hall.runs[RUN].head.snapshot.data.text == "All booked."
    assert desk.called == ["book Bristol"]
    assert (await talk_of(hall))[1]["value"] == "room 9"


@pytest.mark.anyio
async def test_a_booking_that_takes_too_long_is_asked_about_and_answered_through_the_run_that_asked(
    script: Callable[..., str],
) -> None:
    model = script([{"calls": [{"tool": "slow_book", "arguments": {"hotel": "Bristol"}}]}, "All booked."])
    async with Moothall() as hall:
        hall.context().hall.crew.interval = QUICK
        outcome = await hall.run(BOOKED, "Norway", model=model, run_id=RUN)
        assert outcome.status == "waiting"
        (question,) = outcome.questions
        assert (question.run, question.id) == (TURN, "1.0")
        assert question.prompt == "slow_book: nothing was heard of it for 0.02 s. What became of it?"
        assert question.schema["properties"]["outcome"]["enum"] == ["done", "failed", "again"]
        assert (await hall.answer(RUN, {"outcome": "done", "value": "room 9"})).result == "All booked."


async def slow_book(hotel: str) -> str:
    """Book a room; nobody ever hears back."""
    await asyncio.Event().wait()
    return "never heard"


BOOKED = trip(tool(slow_book, repeats="at-most-once", timeout=0.02))
