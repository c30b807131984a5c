"""What a person says of something that a fork's origin did: it is the reply, the value or the result, in its shape."""

import json
from pathlib import Path

import pytest

from tests.cli.ran import Moot

OFFICE = """
from dataclasses import dataclass, replace
from moothall import Answered, Final, Machine, On, Replied, State, ask, question, yes, otherwise

@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str = ""

@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""
    good: bool = False

async def look_up(name: str) -> str:
    return f"{name} lives at the pier"

def keep(letter, reply):
    return replace(letter, text=reply.text)

def keep_verdict(letter, reply):
    return replace(letter, good=reply.value.good, text=reply.value.notes)

def office(name, enter, keep):
    return Machine(name, data=Letter, result=lambda letter: [letter.text, letter.good],
        states=[State("writing", enter=enter), State("asking", enter=question("Send? {text}")), Final("sent")],
        moves=[On("writing", Replied, to="asking", do=keep), On("asking", Answered, to="sent")])

async def clerk(prompt: str) -> str:
    return "Dear Ada"

async def critic(prompt: str) -> Verdict:
    return Verdict(True, "fine")

TEXT = office("text", ask(clerk, "Write to {to}"), keep)
SHAPED = office("shaped", ask(critic, "Judge {to}", reply=Verdict), keep_verdict)
TURN = office("turn", ask("helper", "Write to {to}", tools=[look_up]), keep)
"""


@pytest.fixture
def forked(moot: Moot, tmp_path: Path, request: pytest.FixtureRequest) -> Moot:
    """A run whose agent had replied, forked before that: `mine` asks what became of the reply."""
    (tmp_path / "office.py").write_text(OFFICE)
    moot("run", f"office.py:{request.param}", "Ada", "--run-id", "origin", "--model", "rehearsal", "--quiet")
    ran = moot("fork", "origin", "--at", "0", "--run-id", "mine", "--quiet", "--json")
    assert ran.code == 5, ran.err
    return moot


def result(moot: Moot, value: object) -> object:
    said = moot("answer", "mine", "--json", json.dumps({"outcome": "done", "value": value}), "--quiet")
    assert said.code == 5, said.err
    return json.loads(moot("answer", "mine", "--yes", "--quiet").out)


@pytest.mark.parametrize("forked", ["TEXT", "TURN"], indirect=True)
def test_the_text_that_a_person_reports_is_the_reply(forked: Moot) -> None:
    assert result(forked, "Dear Ada, twenty.") == ["Dear Ada, twenty.", False]
    shown = forked("show", "mine").out
    assert "replied clerk Dear Ada, twenty." in shown or "replied helper Dear Ada, twenty." in shown


@pytest.mark.parametrize("forked", ["SHAPED"], indirect=True)
def test_a_value_that_a_person_reports_is_the_value_of_the_reply(forked: Moot) -> None:
    assert result(forked, {"good": True, "notes": "by hand"}) == ["by hand", True]


@pytest.mark.parametrize(
    ("forked", "value"),
    [
        ("TEXT", {"a": 1}),
        ("TEXT", None),
        ("TURN", 7),
        ("SHAPED", "very good"),
        ("SHAPED", {"notes": "x"}),
        ("SHAPED", None),
    ],
    indirect=["forked"],
)
def test_what_is_not_the_reply_that_was_asked_for_is_refused_and_the_question_stays(
    forked: Moot, value: object
) -> None:
    said = forked("answer", "mine", "--json", json.dumps({"outcome": "done", "value": value}))
    assert said.code in (1, 2)
    assert "value" in said.err
    assert "Traceback" not in said.err
    assert forked("resume", "mine", "--json", "--quiet").json["questions"]
