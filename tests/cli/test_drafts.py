"""What a person filled in of a form is kept when the rest of it is left for later."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot
from tests.cli.terminal import terminal
from tests.models.loopback import Asked, Said, loopback_aside

pytestmark = pytest.mark.slow

QUESTIONS = ["How many tills?", "Who counts the money?"]
BEGIN = ("debate", "Which till?", "-a", "architect", "-r", "1", "--clarify", "--run-id", "mine")
ENTER = "Enter answers later: "


def reply(asked: Asked) -> Said:
    """Whoever is to ask asks two questions, until it sees that both were answered; all else is a box."""
    fields = asked.body["response_format"]["json_schema"]["schema"]["properties"]
    if "questions" in fields:
        return Said(json.dumps({"questions": [] if "the boss" in json.dumps(asked.body) else QUESTIONS}))
    return Said(json.dumps({"text": "a box"} if "text" in fields else dict.fromkeys(fields, "a box")))


def events(home: Path) -> list[dict[str, Any]]:
    return [entry["event"] for entry in json.loads(moot("show", "mine", "--json", home=home).stdout)["entries"]]


@pytest.mark.covers("D12")
@pytest.mark.parametrize(("leaving", "code"), [("\x03", 1), ("\n", 5), ("\x04", 5)], ids=["ctrl-c", "enter", "end"])
@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_the_first_answer_is_kept_when_the_second_is_left_for_later(
    tmp_path: Path, leaving: str, code: int, kind: str
) -> None:
    with loopback_aside(reply) as served:
        begin = (*BEGIN, "--model", f"openai:tides@{served.address}")
        with terminal(*begin, home=tmp_path, keyboard=True, more={"TERM": kind}) as screen:
            screen.read_until(ENTER)
            screen.type("three\n")
            screen.read_until(QUESTIONS[1])
            screen.said = ""
            screen.read_until(ENTER)
            if leaving == "\x03" and kind == "dumb":
                screen.process.send_signal(2)  # this terminal belongs to no session, and sends no signal
            else:
                screen.type(leaving)
            said = screen.read_all()
        assert screen.process.returncode == code
        assert "kept: q1; still open: q2" in said
        [draft] = [event for event in events(tmp_path) if event["name"] == "effect.drafted"]
        assert draft["value"] == {"q1": "three"}
        assert 'q1: How many tills? (architect) [earlier: "three"]' in moot("show", "mine", home=tmp_path).stdout

        with terminal("resume", "mine", home=tmp_path, keyboard=True) as screen:
            screen.read_until("Enter keeps the earlier answer: ")
            screen.type("\n")
            screen.read_until(ENTER)
            screen.type("the boss\n")
            screen.read_all()
    assert screen.process.returncode == 0, screen.said
    [answered] = [event for event in events(tmp_path) if event["name"] == "answered"]
    assert answered["value"] == {"q1": "three", "q2": "the boss"}
    assert moot("replay", "mine", home=tmp_path).returncode == 0


def test_an_answer_without_a_terminal_needs_only_what_is_still_open(tmp_path: Path) -> None:
    with loopback_aside(reply) as served:
        begin = (*BEGIN, "--model", f"openai:tides@{served.address}")
        with terminal(*begin, home=tmp_path, keyboard=True) as screen:
            screen.read_until(ENTER)
            screen.type("three\n")
            screen.read_until(QUESTIONS[1])
            screen.said = ""
            screen.read_until(ENTER)
            screen.type("\n")
            screen.read_all()
        assert moot("answer", "mine", "--json", '{"q2": "the boss"}', home=tmp_path).returncode == 0
    [answered] = [event for event in events(tmp_path) if event["name"] == "answered"]
    assert answered["value"] == {"q1": "three", "q2": "the boss"}
