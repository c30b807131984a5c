"""Questions that a move makes of data: several in one, checked field by field, with what was answered before."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moothall import (
    Answered,
    AskPerson,
    DefinitionError,
    Expired,
    Final,
    FormField,
    Machine,
    Move,
    On,
    Outcome,
    Refused,
    State,
    always,
    answer,
    emitting,
    form,
    run,
)
from moothall.agents.ask import TEXT
from moothall.kernel.schema import misfits


@dataclass(frozen=True)
class Brief:
    questions: Mapping[str, str]
    earlier: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)


@emitting(AskPerson)
def clarify(brief: Brief, _: object) -> AskPerson:
    fields = [FormField(name, text, "ann", brief.earlier.get(name)) for name, text in brief.questions.items()]
    size = FormField("size", "How many?", schema={"type": "integer", "minimum": 1}, optional=True)
    return form("Please clarify", [*fields, size])


def keep(brief: Brief, answered: Answered) -> Brief:
    return replace(brief, answers=answered.value)


CLARIFY = Machine(
    "clarify",
    data=Brief,
    states=[State("asking", enter=clarify), Final("clear")],
    moves=[On("asking", Answered, to="clear", do=keep)],
)


def asked(**earlier: Any) -> Outcome:
    return run(CLARIFY, Brief({"db": "Which database?", "who": "For whom?"}, earlier))


def test_a_question_made_of_data_says_what_who_and_what_was_answered_before() -> None:
    question = asked(db="sqlite").questions[0]
    assert question.prompt == "Please clarify"
    assert question.schema["properties"]["db"] == {
        **TEXT,
        "description": "Which database?",
        "asked_by": "ann",
        "earlier": "sqlite",
    }
    assert question.schema["required"] == ["db", "who"]


@pytest.mark.parametrize(
    ("given", "complaints"),
    [
        ({"db": "", "who": "me"}, ["db: an empty text is not an answer"]),
        ({"db": "   ", "who": "me"}, [r"db: '   ' does not match '\\S'"]),
        (
            {"db": "", "size": 0},
            ["who: it is missing", "db: an empty text is not an answer", "size: expected at least 1"],
        ),
        ({"db": 3, "who": "me"}, ["db: expected a text, got 3"]),
        ({"db": "x", "who": "me", "why": "x"}, ["why: nobody asked for it; known are db, who, size"]),
        ("all of it", ["expected an object, got 'all of it'"]),
    ],
    ids=str,
)
def test_an_answer_is_refused_with_a_reason_for_every_field(given: Any, complaints: list[str]) -> None:
    outcome = asked()
    with pytest.raises(Refused) as refusal:
        answer(outcome.run, given, CLARIFY)
    assert [one in str(refusal.value) for one in complaints] == [True] * len(complaints), str(refusal.value)


def test_na_is_an_answer() -> None:
    outcome = answer(asked().run, {"db": "NA", "who": "me", "size": 2}, CLARIFY)
    assert (outcome.status, outcome.data.answers) == ("done", {"db": "NA", "who": "me", "size": 2})


def test_a_form_has_fields_and_each_an_id_of_its_own() -> None:
    with pytest.raises(DefinitionError, match="it asks nothing"):
        form("Well?", [])
    with pytest.raises(DefinitionError, match="two fields have the same id; they are a, a"):
        form("Well?", [FormField("a", "One?"), FormField("a", "Two?")])


def test_questions_at_once_are_told_apart_by_their_ids() -> None:
    @emitting(AskPerson, most=3)
    def ask_all(data: dict[str, Any], _: object) -> Move[dict[str, Any]]:
        soon = AskPerson("Quick?", TEXT, within=0.01, id="quick")
        return Move(data, effects=(AskPerson("Left?", TEXT, id="left"), AskPerson("Right?", TEXT, id="right"), soon))

    def note(data: dict[str, Any], event: Any) -> dict[str, Any]:
        return {**data, event.id: getattr(event, "value", None)}

    machine = Machine(
        "both",
        states=[State("asking", enter=ask_all), Final("end")],
        moves=[
            On("asking", Answered, do=note, at_most=2),
            On("asking", Expired, do=note, at_most=1),
            On("asking", always, to="end", when=lambda data, _: len(data) == 3),
        ],
    )
    outcome = run(machine, {})
    left, right = (one.id for one in outcome.questions if one.prompt != "Quick?")
    answer(outcome.run, "R", machine, question=right)
    outcome = answer(outcome.run, "L", machine, question=left)
    assert (outcome.status, outcome.data) == ("done", {"left": "L", "right": "R", "quick": None})


@pytest.mark.parametrize(
    ("schema", "value", "reasons"),
    [
        ({"type": "integer"}, True, ["expected a whole number, got True"]),
        ({"type": ["string", "null"]}, None, []),
        ({"type": "number", "exclusiveMinimum": 1, "multipleOf": 2}, 1, ["expected more than 1", "a multiple of 2"]),
        ({"enum": ["a", 1]}, True, ["expected one of 'a', 1, got True"]),
        ({"const": 3}, 4, ["expected 3, got 4"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, ["expected a text, got 3"]),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            ["x"],
            ["at least 2 entries", "[0]: expected"],
        ),
        ({"type": "array", "maxItems": 1, "uniqueItems": True}, [1, 1], ["at most 1 entries", "there twice"]),
        ({"type": "array", "prefixItems": [{}], "items": False}, [1, 2], ["[1]: there is nothing to be said here"]),
        ({"type": "string", "maxLength": 1}, "ab", ["at most 1 characters"]),
        ({"type": "string", "minLength": 3}, "ab", ["at least 3 characters"]),
        ({"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, {"a": {"b": 1}}, ["a.b: expected a text"]),
        ({"additionalProperties": {"type": "integer"}}, {"a": "x"}, ["a: expected a whole number"]),
        ({"allOf": [{"minimum": 1}, {"maximum": 0}]}, 0.5, ["at least 1", "at most 0"]),
        ({}, object(), []),
        (None, 3, []),
    ],
    ids=str,
)
def test_every_misfit_is_named_with_its_place(schema: Any, value: Any, reasons: list[str]) -> None:
    found = [str(misfit) for misfit in misfits(schema, value)]
    assert len(found) == len(reasons), found
    assert all(reason in said for reason, said in zip(reasons, found, strict=True)), found


def test_a_pattern_that_cannot_be_read_is_named() -> None:
    with pytest.raises(DefinitionError, match="the pattern '\\(' of a schema cannot be read"):
        misfits({"type": "string", "pattern": "("}, "x")
