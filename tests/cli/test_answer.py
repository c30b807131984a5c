"""`moot answer`: one answer, of the right shape, to one question."""

import re
from pathlib import Path
from typing import Any

import pytest

from moothall.cli.questions import format_question
from tests.cli.ran import Moot


@pytest.mark.parametrize(("said", "state"), [("--yes", "posted"), ("--no", "kept")])
def test_yes_and_no_lead_where_they_should(waiting: Moot, said: str, state: str) -> None:
    ran = waiting("answer", "mine", said, "--json")
    assert ran.code == 0
    assert (ran.json["status"], ran.json["states"]) == ("done", [state])


def test_the_question_may_be_named(waiting: Moot) -> None:
    assert waiting("answer", "mine", "1.0", "--yes").code == 0


def test_no_option_takes_a_question_behind_two_dashes_for_its_own(waiting: Moot) -> None:
    assert waiting("answer", "mine", "--yes", "--json", "--", "1.0").json["states"] == ["posted"]


def test_a_text_answers_a_question_for_a_text(moot: Moot) -> None:
    moot("run", "machines.py:TOLD", "Ada", "--run-id", "mine")
    assert moot("answer", "mine", "--text", "Eve", "--json").json["data"]["text"] == "Eve"


def test_json_in_a_file_answers_a_question_for_a_shape(moot: Moot) -> None:
    moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    Path("answer.json").write_text('{"colour": "green"}')
    assert moot("answer", "mine", "--json", "answer.json", "--json").json["data"]["text"] == "green"


def test_an_answer_of_the_wrong_shape_exits_with_1_says_where_and_changes_nothing(moot: Moot) -> None:
    moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    Path("answer.json").write_text('{"colour": "blue"}')
    ran = moot("answer", "mine", "--json", "answer.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "moot answer: the answer.colour: expected one of 'red', 'green', got 'blue'\n"
    assert moot("show", "mine", "--json").json["summary"]["status"] == "waiting"


def test_whoever_is_asked_for_a_shape_is_shown_it(moot: Moot) -> None:
    asked = moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    assert asked.err.splitlines()[-2:] == [
        "answer with:  moot answer mine --json FILE (or - for stdin, or the JSON itself)",
        'of the shape: {"colour": "red" | "green"}',
    ]
    assert moot("show", "mine").out.endswith('of the shape: {"colour": "red" | "green"}\n')


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "boolean"}, ""),
        ({"type": "string"}, ""),
        ({"enum": ["red", "green"]}, ""),
        ({}, ""),
        ({"type": "integer"}, "integer"),
        ({"enum": [1, 2]}, "1 | 2"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number | null"),
        ({"type": "array", "items": {"type": "boolean"}}, "[true | false, …]"),
        ({"type": "array"}, "[…, …]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False}, '["…", …]'),
        ({"type": "object"}, "{…}"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["null"]}}, "required": ["a"]},
            '{"a": "…", "b"?: …}',
        ),
        ({"enum": ["\x1b[2J", 1]}, '"\\u001b[2J" | 1'),
        (True, "…"),
    ],
    ids=str,
)
def test_a_schema_is_shown_as_one_would_write_the_json_down(schema: Any, form: str) -> None:
    question = {"id": "1.0", "prompt": "Well?", "schema": schema, "due": None}
    _, _, shape = format_question(question, "moot answer mine").partition("\nof the shape: ")
    assert shape == form


def test_the_command_that_answers_can_be_copied_whoever_is_asked() -> None:
    question = {"id": "1.0", "prompt": "Well?", "schema": {"type": "boolean"}, "due": None, "who": "Ada Lovelace"}
    assert format_question(question, "moot answer mine").endswith("moot answer mine --yes | --no --as 'Ada Lovelace'")


@pytest.mark.parametrize("given", ['{"colour": red}', "[1,", '"red'])
def test_json_that_is_none_is_not_taken_for_the_name_of_a_file(moot: Moot, given: str) -> None:
    moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    ran = moot("answer", "mine", "--json", given)
    assert ran.code == 1
    assert ran.err.startswith(f"moot answer: {given} is not JSON: ")


def test_yes_to_a_question_for_a_shape_is_refused(moot: Moot) -> None:
    moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    ran = moot("answer", "mine", "--yes")
    assert ran.code == 1
    assert "the answer: expected an object with the fields of Choice, got True" in ran.err


def test_answering_twice_says_that_the_first_answer_stands(waiting: Moot) -> None:
    waiting("answer", "mine", "--no")
    ran = waiting("answer", "mine", "1.0", "--yes")
    assert ran.code == 0
    assert "this question was answered before; the first answer stands" in ran.err
    assert waiting("show", "mine", "--json").json["summary"]["states"] == ["kept"]


@pytest.mark.parametrize("question", ["9.9", "0.0", "start", "Send"])
def test_a_question_that_was_never_asked_is_refused_and_the_open_one_named(waiting: Moot, question: str) -> None:
    ran = waiting("answer", "mine", question, "--yes")
    assert ran.code == 1
    assert f"run mine has no question {question!r}; open questions are 1.0 (Send DEAR ADA?)" in ran.err


TWO = """
from moothall import Answered, Final, Machine, On, State, question

TWO = Machine("two",
    states=[State("asking", enter=[question("Tea?"), question("Milk?")]), Final("served")],
    moves=[On("asking", Answered, at_most=1), On("asking", Answered, to="served")])
"""


def test_of_several_questions_each_has_a_command_of_its_own_that_can_be_copied(moot: Moot) -> None:
    Path("two.py").write_text(TWO)
    asked = moot("run", "two.py", "--run-id", "mine")
    ways = [f"answer with:  moot answer mine {question} --yes | --no" for question in ("0.0", "0.1")]
    assert [line for line in asked.err.splitlines() if line.startswith("answer")] == ways
    assert [line for line in moot("show", "mine").out.splitlines() if line.startswith("answer")] == ways
    refused = moot("answer", "mine", "--yes")
    assert refused.code == 1
    assert "open questions are 0.0 (Tea?), 0.1 (Milk?); name the one that is answered" in refused.err
    last = moot("answer", "mine", "0.1", "--yes")
    assert last.err.splitlines()[-1] == "answer with:  moot answer mine --yes | --no"


def test_a_run_that_is_over_takes_no_answer(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    ran = moot("answer", "mine", "--yes")
    assert (ran.code, ran.err) == (1, "moot answer: run mine is done; it accepts no answer\n")


@pytest.mark.parametrize("said", [(), ("--yes", "--no"), ("--yes", "--text", "x"), ("--text", "x", "--json", "f.json")])
def test_no_answer_or_two_answers_are_wrong_usage(waiting: Moot, said: tuple[str, ...]) -> None:
    ran = waiting("answer", "mine", *said)
    assert ran.code == 2
    assert "give one answer: --yes, --no, --text TEXT or --json FILE" in ran.err
    assert waiting("show", "mine", "--json").json["summary"]["status"] == "waiting"


def test_the_deadline_of_a_question_is_told_with_its_zone(moot: Moot) -> None:
    Path("late.py").write_text(
        "from moothall import Answered, Expired, Final, Machine, On, State, hours, question\n"
        "LATE = Machine('late', states=[State('asking', enter=question('Now?', within=hours(1))), Final('over')],\n"
        "    moves=[On('asking', (Answered, Expired), to='over')])\n"
    )
    ran = moot("run", "late.py")
    assert re.search(r"question 0\.0 \(until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d\): Now\?", ran.err)
