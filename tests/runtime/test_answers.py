"""A question waits until a person answers it with the right shape; answering twice is harmless."""

from dataclasses import dataclass
from typing import Literal

import pytest

from moothall.agents.ask import question
from moothall.errors import Refused
from moothall.kernel.events import Answered, Expired
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance, answer, questions, reopen
from tests.runtime.clock import MovableClock
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, hall_of, journal, keep


@dataclass(frozen=True)
class Choice:
    """What a person is asked for."""

    colour: Literal["red", "green"]
    reason: str = ""


CHOOSING = Machine(
    "choosing",
    data=Basket,
    states=[
        State("fetching", enter=Fetch("paint")),
        State("choosing", enter=question("Which of {got}?", Choice, within=60)),
        Final("painted"),
        Final("plain"),
    ],
    moves=[
        On("fetching", Fetched, to="choosing", do=keep),
        On("choosing", Answered, to="painted", do=lambda basket, event: Basket((*basket.got, event.value.colour))),
        On("choosing", Expired, to="plain"),
    ],
)


async def waiting() -> Hall:
    hall = hall_of(Hands(), clock=MovableClock())
    await begun(hall, CHOOSING)
    await drive(hall, RUN)
    return hall


@pytest.mark.anyio
async def test_a_waiting_run_shows_its_question_with_its_shape_and_its_deadline() -> None:
    hall = await waiting()
    [asked] = questions(hall.runs[RUN].head)
    assert asked.key == "1.0"
    assert asked.due == 1_060
    assert getattr(asked.effect, "prompt", "") == 'Which of ["paint"]?'
    assert getattr(asked.effect, "schema", {})["properties"]["colour"] == {"enum": ["red", "green"]}


@pytest.mark.anyio
async def test_the_right_answer_moves_the_run_on_and_arrives_as_the_type_that_was_asked_for() -> None:
    hall = await waiting()
    received = await answer(hall, RUN, {"colour": "green"}, by="ada")
    assert received.received == "taken"
    assert hall.runs[RUN].head.snapshot.data == Basket(("paint", "green"))
    event = (await journal(hall))[-1]["event"]
    assert event == {
        "name": "answered",
        "value": {"colour": "green", "reason": ""},
        "shape": "Choice",
        "by": "ada",
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"colour": "blue"}, "the answer.colour: expected one of 'red', 'green', got 'blue'"),
        ({}, "the answer: the field 'colour' is missing"),
        ("green", "the answer: expected an object with the fields of Choice, got 'green'"),
        ({"colour": "red", "size": 3}, "the answer: unknown field 'size'"),
        (None, "the answer: expected an object"),
    ],
)
async def test_an_answer_of_the_wrong_shape_is_refused_and_changes_nothing(value: object, complaint: str) -> None:
    hall = await waiting()
    before = hall.runs[RUN].head
    with pytest.raises(Refused) as refusal:
        await answer(hall, RUN, value)
    assert str(refusal.value).startswith(complaint)
    assert hall.runs[RUN].head == before
    assert len(await journal(hall)) == 2


@pytest.mark.anyio
async def test_answering_twice_is_harmless_and_the_first_answer_stands() -> None:
    hall = await waiting()
    first = await answer(hall, RUN, {"colour": "green"}, "1.0")
    again = await answer(hall, RUN, {"colour": "red"}, "1.0")
    assert (again.received, again.seq) == ("duplicate", first.seq)
    assert hall.runs[RUN].head.snapshot.data == Basket(("paint", "green"))
    assert len(await journal(hall)) == 3


@pytest.mark.anyio
async def test_an_answer_that_a_deadline_overtakes_is_refused_and_not_taken_for_a_second_one() -> None:
    hall = await waiting()
    elsewhere = hall_of(Hands(), hall.store, MovableClock())
    await reopen(elsewhere, RUN, CHOOSING)
    await advance(elsewhere, RUN, (Expired(), "1.0"))
    with pytest.raises(Refused, match=r"the time to answer question 1\.0 is over"):
        await answer(hall, RUN, {"colour": "green"})
    assert hall.runs[RUN].head.snapshot.active == ("plain",)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["7.7", "0.0", "start", ""])
async def test_what_is_no_question_of_the_run_is_refused_and_the_open_ones_are_named(name: str) -> None:
    hall = await waiting()
    with pytest.raises(Refused, match=rf"no question '{name}'; open questions are 1\.0 \(Which of"):
        await answer(hall, RUN, {"colour": "red"}, name)
    assert hall.runs[RUN].head.seq == 1


@pytest.mark.anyio
async def test_an_expired_question_takes_no_answer_and_says_why() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, CHOOSING)
    await drive(hall, RUN)
    clock.move(61)
    await drive(hall, RUN)
    with pytest.raises(Refused, match=r"the time to answer question 1\.0 is over"):
        await answer(hall, RUN, {"colour": "red"}, "1.0")


@pytest.mark.anyio
async def test_an_answer_that_comes_after_the_deadline_is_refused_and_the_question_expires() -> None:
    clock = MovableClock()
    hall = hall_of(Hands(), clock=clock)
    await begun(hall, CHOOSING)
    await drive(hall, RUN)
    clock.move(60)
    with pytest.raises(Refused, match=r"the time to answer question 1\.0 is over"):
        await answer(hall, RUN, {"colour": "red"})
    assert hall.runs[RUN].head.snapshot.active == ("plain",)
    assert [entry["event"]["name"] for entry in await journal(hall)] == ["run.started", "fetched", "expired"]


@pytest.mark.anyio
async def test_a_run_that_is_over_takes_no_answer() -> None:
    hall = await waiting()
    await answer(hall, RUN, {"colour": "red"})
    with pytest.raises(Refused, match="run trial is done; it accepts no answer"):
        await answer(hall, RUN, {"colour": "red"})


@pytest.mark.anyio
async def test_a_run_that_asks_nothing_takes_no_answer() -> None:
    hall = hall_of(Hands())
    await begun(hall, CHOOSING)
    with pytest.raises(Refused, match="run trial: no question is open"):
        await answer(hall, RUN, {"colour": "red"})


TWO = Machine(
    "two",
    data=Basket,
    states=[State("asking", enter=[question("Tea?"), question("Milk?")]), Final("served")],
    moves=[
        On("asking", Answered, to="served", when=lambda basket, _: len(basket.got) == 1),
        On("asking", Answered, do=lambda basket, event: Basket((*basket.got, str(event.value)))),
    ],
)


@pytest.mark.anyio
async def test_where_several_questions_are_open_the_answer_must_name_one() -> None:
    hall = hall_of(Hands())
    await begun(hall, TWO)
    with pytest.raises(Refused, match=r"open questions are 0\.0 \(Tea\?\), 0\.1 \(Milk\?\)"):
        await answer(hall, RUN, True)
    await answer(hall, RUN, True, "0.1")
    assert [one.key for one in questions(hall.runs[RUN].head)] == ["0.0"]
    await answer(hall, RUN, False)
    assert hall.runs[RUN].head.snapshot.status == "done"
