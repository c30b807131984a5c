"""Machines whose guards and moves are scripts: who evaluates them, when, and what the journal keeps."""

from typing import Any

import pytest

from moothall.errors import DefinitionError
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Absent, Answer, Ask, Failed, Moment, Move, Scripted, Value
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, Hall, advance
from moothall.runtime.journal import Reader
from moothall.runtime.ports import LEASE, Performer, ScriptContext
from moothall.runtime.rebuild import compared, rebuilt
from tests.runtime.clock import MovableClock
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, hall_of, journal, keep


def is_enough(data: Basket, event: Any, moment: Moment) -> bool:
    match moment.evaluate("enough?", {"got": list(data.got)}):
        case Value(value=value):
            return bool(value)
        case Failed(reason=reason):
            raise ValueError(reason)
        case Absent():
            return False


def first_note(data: Basket, event: Any, moment: Moment) -> Any:
    answer = moment.evaluate("note", {})
    return Move(Basket((str(answer),)), (Fetch("bread"),))


SCRIPTED = Machine(
    "scripted",
    data=Basket,
    states=[State("fetching", enter=Scripted(first_note, "note", {Fetch.kind: 1})), Final("home")],
    moves=[
        On("fetching", Fetched, to="home", when=Scripted(is_enough, "enough?")),
        On("fetching", Fetched, to="fetching", do=keep, at_most=3),
    ],
)


class Engine:
    """Answers scripts as the test says, and remembers what it was asked."""

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any, str]] = []

    async def __call__(self, ask: Ask, around: ScriptContext) -> Answer:
        self.asked.append((ask.script, ask.scope, around.cause))
        return self.answers[ask.script.rstrip("?")].pop(0)


def connected(engine: Engine, hands: Hands) -> Hall:
    hall = hall_of(hands)
    hall.bind(RUN, Bindings({Fetch.kind: Performer(Fetch, hands)}, evaluate=engine))
    return hall


@pytest.mark.anyio
async def test_scripts_are_evaluated_before_the_commit_and_their_answers_stand_in_the_entry() -> None:
    engine = Engine(note=[Value("a"), Absent()], enough=[Value(False), Value(True)])
    hall = connected(engine, Hands())
    await begun(hall, SCRIPTED)
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    assert [entry.get("answers") for entry in await journal(hall)] == [
        [{"value": "a"}],
        [{"value": False}, {}],
        [{"value": True}],
    ]
    assert [(script, cause) for script, _, cause in engine.asked] == [
        ("note", "start"),
        ("enough?", "0.0"),
        ("note", "0.0"),
        ("enough?", "1.0"),
    ]


@pytest.mark.anyio
async def test_a_run_whose_scripts_took_long_is_held_as_long_as_any_other() -> None:
    clock, hands = MovableClock(), Hands()

    class Slow(Engine):
        async def __call__(self, ask: Ask, around: ScriptContext) -> Answer:
            if ask.script == "enough?":
                clock.move(LEASE * 0.8)
            return await super().__call__(ask, around)

    hall = hall_of(hands, clock=clock)
    engine = Slow(note=[Value("a"), Absent()], enough=[Value(False)])
    hall.bind(RUN, Bindings({Fetch.kind: Performer(Fetch, hands)}, evaluate=engine))
    await begun(hall, SCRIPTED)
    await advance(hall, RUN, (Fetched("bread"), "0.0"))
    assert (await hall.store.load(RUN)).lease.until > clock.now() + LEASE / 2


@pytest.mark.anyio
async def test_a_journal_is_decided_again_without_an_engine() -> None:
    engine = Engine(note=[Value("a"), Absent()], enough=[Value(False), Value(True)])
    hall = connected(engine, Hands())
    await begun(hall, SCRIPTED)
    head = await drive(hall, RUN)
    run, reader, entries = hall.runs[RUN].run, Reader(SCRIPTED, {Fetch.kind: Fetch}), await journal(hall)
    assert rebuilt(run, reader, entries) == head
    assert compared(run, reader, entries) == head
    without = [{name: part for name, part in entry.items() if name != "answers"} for entry in entries]
    with pytest.raises(DefinitionError, match="entry 0 has no answer of the script note"):
        rebuilt(run, reader, without)


@pytest.mark.anyio
async def test_a_script_that_fails_is_a_recorded_fact_and_names_its_place() -> None:
    engine = Engine(note=[Value("a")], enough=[Failed("x is not defined")])
    hall = connected(engine, Hands())
    await begun(hall, SCRIPTED)
    head = await drive(hall, RUN)
    assert (head.snapshot.status, "x is not defined" in head.snapshot.reason) == ("failed", True)
    assert "fetching on Fetched, guard enough?" in head.snapshot.reason
    assert (await journal(hall))[-1]["answers"] == [{"reason": "x is not defined"}]


@pytest.mark.anyio
async def test_where_another_writer_comes_first_the_script_is_asked_again_about_what_is_then_true() -> None:
    engine = Engine(note=[Value("a"), Value("b"), Value("c")], enough=[Value(False), Value(False), Value(True)])
    hall = connected(engine, Hands())
    await begun(hall, SCRIPTED)
    stale = hall.runs[RUN].head
    await advance(hall, RUN, (Fetched("milk"), "from-outside"))
    hall.runs[RUN].head = stale
    await advance(hall, RUN, (Fetched("milk"), "from-elsewhere"))
    assert [entry["cause"] for entry in await journal(hall)] == ["start", "from-outside", "from-elsewhere"]
    assert (await journal(hall))[-1]["answers"] == [{"value": True}]
