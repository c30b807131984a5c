"""`moot` and runs that belong together: one command starts them, either id answers, either id goes on."""

import json
from pathlib import Path

import pytest

from tests.app.families import FAMILY
from tests.cli.ran import Moot

TOOLS = """
from dataclasses import dataclass, replace
from moothall import Final, Machine, On, Replied, State, ask

@dataclass(frozen=True)
class Trip:
    to: str
    text: str = ""

async def weather(city: str) -> dict:
    "How cold it is in a city."
    return {"low": -3}

TRIP = Machine("trip", data=Trip, result=lambda trip: trip.text,
    states=[State("asking", enter=ask("guide", "Plan a trip to {to}", tools=[weather], rounds=2)), Final("planned")],
    moves=[On("asking", Replied, to="planned", do=lambda trip, reply: replace(trip, text=reply.text))])
"""


@pytest.fixture
def family(moot: Moot, tmp_path: Path) -> Moot:
    """A folder with machines that start each other by name."""
    (tmp_path / "family.py").write_text(FAMILY)
    (tmp_path / "tools.py").write_text(TOOLS)
    return moot


def test_a_child_is_found_by_its_name_beside_its_parent(family: Moot) -> None:
    ran = family("run", "family.py:OFFICE", "Ada", "--run-id", "mine", "--json")
    assert (ran.code, ran.json["result"]) == (0, "DEAR ADA")
    listed = family("ls", "--json").json
    assert {one["run"]: (one["machine"], one["status"]) for one in listed} == {
        "mine": ("office", "done"),
        "mine-0-0": ("writing", "done"),
    }


def test_a_parent_whose_child_asks_exits_with_5_and_shows_the_question(family: Moot) -> None:
    ran = family("run", "family.py:DESK", "Ada", "--run-id", "mine")
    assert (ran.code, ran.out) == (5, "")
    assert "question 0.0: Who signs for Ada?" in ran.err
    assert "moot answer mine-0-0 --text TEXT" in ran.err


@pytest.mark.parametrize("whom", ["mine", "mine-0-0"], ids=["the parent", "the child"])
def test_either_id_answers_and_the_parent_goes_on(family: Moot, whom: str) -> None:
    family("run", "family.py:DESK", "Ada", "--run-id", "mine")
    ran = family("answer", whom, "--text", "Eve", "--json")
    assert ran.code == 0
    assert (ran.json["run"], ran.json["status"], ran.json["result"]) == ("mine", "done", "signed Eve")


def test_three_generations_are_answered_from_the_top(family: Moot) -> None:
    family("run", "family.py:HOUSE", "Ada", "--run-id", "mine")
    ran = family("answer", "mine", "--text", "Eve")
    assert (ran.code, ran.out) == (0, "signed Eve\n")
    assert {one["status"] for one in family("ls", "--json").json} == {"done"}


def test_resume_of_a_child_alone_says_how_it_stands(family: Moot) -> None:
    family("run", "family.py:DESK", "Ada", "--run-id", "mine")
    ran = family("resume", "mine-0-0", "--json")
    assert (ran.code, ran.json["run"], ran.json["status"]) == (5, "mine-0-0", "waiting")
    family("answer", "mine-0-0", "--text", "Eve")
    ran = family("resume", "mine-0-0", "--json")
    assert (ran.code, ran.json["result"]) == (0, "signed Eve")


def test_two_children_that_ask_are_answered_by_their_own_ids(family: Moot) -> None:
    family("run", "family.py:TWO", "Ada", "--run-id", "mine")
    assert family("answer", "mine-0-0", "--text", "Eve").code == 5
    ran = family("answer", "mine-0-1", "--text", "Bob", "--json")
    assert (ran.code, ran.json["run"], ran.json["result"]) == (0, "mine", "signed Bob")


def test_the_command_that_is_shown_for_each_of_two_questions_answers_it(family: Moot) -> None:
    ran = family("run", "family.py:TWO", "Ada", "--run-id", "mine")
    commands = [line.partition("moot ")[2] for line in ran.err.splitlines() if line.startswith("answer with:")]
    for command in commands:
        ran = family(*command.replace("TEXT", "Eve").split())
        assert ran.code in (0, 5), ran.err
    assert ran.out == "signed Eve\n"


def test_a_parent_that_is_cancelled_says_so(family: Moot) -> None:
    family("run", "family.py:DESK", "Ada", "--run-id", "mine")
    assert family("cancel", "mine", "--json").json["status"] == "cancelled"


def test_the_check_counts_what_children_and_turns_can_take(family: Moot) -> None:
    ran = family("check", "family.py:OFFICE")
    assert ran.code == 0
    assert "bounded: at most 2 transitions, 1 call (3 with every retry), 1 child" in ran.out
    ran = family("check", "tools.py:TRIP", "--json")
    assert ran.json["certificate"]["resources"] == {"ask.agent": 4, "call.tool": 32, "calls": 12, "start.child": 1}


def test_an_agent_with_tools_plays_from_a_script(family: Moot, tmp_path: Path) -> None:
    lines = [{"calls": [{"tool": "weather", "arguments": {"city": "Oslo"}}]}, "Pack a coat."]
    (tmp_path / "script.json").write_text(json.dumps({"guide": lines}))
    ran = family("run", "tools.py:TRIP", "Oslo", "--model", "scripted:script.json", "--run-id", "mine")
    assert (ran.code, ran.out) == (0, "Pack a coat.\n")
    entries = family("show", "mine-0-0", "--json").json["entries"]
    assert [one["event"]["name"] for one in entries] == [
        "run.started",
        "replied",
        "returned",
        "replied",
        "effect.delivered",
    ]


def test_rehearsal_plays_an_agent_with_tools_to_the_end(family: Moot) -> None:
    ran = family("run", "tools.py:TRIP", "Oslo", "--model", "rehearsal")
    assert ran.code == 0
