"""A question may say whose answer counts."""

from pathlib import Path

import pytest

from moothall import Refused, answer, run
from moothall.app.kinds.source import find
from tests.cli.ran import Moot

MACHINE = """
from moothall import Answered, Final, Machine, On, State, question

SIGNED = Machine(
    "signed",
    states=[State("asking", enter=question("Sign?", who="ada")), Final("over")],
    moves=[On("asking", Answered, to="over")],
)
"""


@pytest.fixture
def asked(moot: Moot) -> Moot:
    Path("signed.py").write_text(MACHINE)
    ran = moot("run", "signed.py:SIGNED", "--run-id", "mine")
    assert ran.code == 5
    assert "question 0.0 for ada: Sign?" in ran.err
    assert "moot answer mine --yes | --no --as ada" in ran.err
    return moot


@pytest.mark.parametrize("somebody", [(), ("--as", "bob")], ids=["nobody in particular", "somebody else"])
def test_the_answer_of_anybody_else_is_refused_and_the_question_stays_open(
    asked: Moot, somebody: tuple[str, ...]
) -> None:
    ran = asked("answer", "mine", "--yes", *somebody)
    assert (ran.code, "question 0.0 is for ada, not for " in ran.err) == (1, True)
    assert asked("show", "mine", "--json").json["summary"]["questions"][0]["who"] == "ada"


def test_the_answer_of_who_was_asked_counts_and_is_kept_with_the_name(asked: Moot) -> None:
    assert asked("answer", "mine", "--yes", "--as", "ada").code == 0
    assert asked("show", "mine", "--json").json["entries"][-1]["event"]["by"] == "ada"


def test_a_list_of_what_waits_says_who_else_is_asked(asked: Moot) -> None:
    hint = "other questions are for ada: moot ls --waiting --as NAME"
    for somebody in ((), ("--as", "bob")):
        assert hint in asked("ls", "--waiting", *somebody).err
    listed = asked("ls", "--waiting", "--as", "ada")
    assert ("mine" in listed.out, hint in listed.err) == (True, False)
    assert hint not in asked("ls").err


def test_in_python_too(moot: Moot) -> None:
    Path("signed.py").write_text(MACHINE)
    run(find("signed.py:SIGNED"), run_id="mine")
    with pytest.raises(Refused, match="is for ada"):
        answer("mine", True)
    assert answer("mine", True, by="ada").status == "done"


def test_a_list_of_what_waits_for_somebody_has_what_they_may_answer(asked: Moot) -> None:
    asked("run", "machines.py:SENT", "Ada", "--run-id", "anybody")

    def waiting(*person: str) -> set[str]:
        return {summary["run"] for summary in asked("ls", "--waiting", *person, "--json").json}

    assert waiting("--as", "ada") == {"mine", "anybody"}
    assert waiting("--as", "bob") == {"anybody"}
