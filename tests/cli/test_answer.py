"""`moot answer`: one answer, of the right shape, to one question."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot


@pytest.fixture
def waiting(moot: Moot) -> Moot:
    """A run `mine` that asks whether to send a letter."""
    assert moot("run", "machines.py:SENT", "Ada", "--run-id", "mine").code == 5
    return moot


@pytest.mark.parametrize(("said", "state"), [("--yes", "posted"), ("--no", "kept")])
def test_yes_and_no_lead_where_they_should(waiting: Moot, said: str, state: str) -> None:
    ran = waiting("answer", "mine", said, "--json")
    assert ran.code == 0
    assert (ran.json["status"], ran.json["states"]) == ("done", [state])


def test_the_question_may_be_named(waiting: Moot) -> None:
    assert waiting("answer", "mine", "1.0", "--yes").code == 0


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
