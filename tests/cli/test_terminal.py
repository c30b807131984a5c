"""At a terminal there are colours, and the person who is there is asked at once."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.cli.machines import MACHINES
from tests.cli.process import moot
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow

COLOUR = re.compile(r"\x1b\[\d+m")


def standing(place: Path, run: str) -> list[str]:
    states: list[str] = json.loads(moot("show", run, "--json", home=place).stdout)["summary"]["states"]
    return states


@pytest.mark.parametrize(
    ("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)], ids=str
)
def test_a_terminal_gets_colours_unless_they_are_turned_off(place: Path, more: dict[str, str], coloured: bool) -> None:
    moot("run", "machines.py:LETTER", "Ada", home=place)
    with terminal("ls", home=place, more=more) as screen:
        assert bool(COLOUR.search(screen.read_all())) is coloured


def test_a_dumb_terminal_gets_no_line_that_is_taken_back(place: Path) -> None:
    with terminal("run", "machines.py:LETTER", "Ada", home=place, more={"TERM": "dumb"}) as screen:
        assert "\x1b" not in screen.read_all()


STEERING = "\x1b[2J\x9b31m\x07{to}\u202e"


def test_nothing_that_an_agent_or_an_author_wrote_steers_a_terminal(place: Path) -> None:
    steering = MACHINES.replace('"Dear {to}"', repr(STEERING)).replace('"Send {text}?"', repr(f"Send? {STEERING}"))
    (place / "machines.py").write_text(steering)
    plain = {"NO_COLOR": "1", "TERM": "dumb"}
    for arguments in (
        ("run", "machines.py:SENT", "Ada", "--run-id", "mine"),
        ("show", "mine"),
        ("answer", "mine", "--no"),
    ):
        with terminal(*arguments, home=place, more=plain) as screen:
            said = screen.read_all()
        assert "�[2J�31M�ADA�" in said.upper(), arguments
        assert not set("\x1b\x9b\x07\u202e") & set(said), arguments


@pytest.mark.parametrize(
    ("typed", "state", "code"),
    [
        (["y\n"], "posted", 0),
        (["NO\n"], "kept", 0),
        (["\n"], "approving", 5),
        (["perhaps\n", "\n"], "approving", 5),
        (["perhaps\n", "yes\n"], "posted", 0),
        (["\x04"], "approving", 5),
    ],
    ids=["yes", "no", "later", "neither", "neither at first", "end of input"],
)
@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_person_at_the_terminal_is_asked_and_the_run_goes_on(
    place: Path, typed: list[str], state: str, code: int, kind: str
) -> None:
    begin = ("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    with terminal(*begin, home=place, keyboard=True, more={"TERM": kind}) as screen:
        for text in typed:
            screen.read_until("[y]es, [n]o, or Enter to answer later: ")
            screen.said = ""
            screen.type(text)
        screen.read_all()
    assert screen.process.returncode == code
    assert standing(place, "mine") == [state]


def test_a_question_for_a_text_takes_what_is_typed(place: Path) -> None:
    with terminal("run", "machines.py:TOLD", "Ada", "--run-id", "mine", home=place, keyboard=True) as screen:
        screen.read_until("your answer, or Enter to answer later: ")
        screen.type("Eve\n")
        screen.read_all()
    assert screen.process.returncode == 0
    entries = json.loads(moot("show", "mine", "--json", home=place).stdout)["entries"]
    assert entries[-1]["event"]["value"] == "Eve"


def test_whoever_answers_in_the_wrong_shape_is_told_why_and_asked_again(place: Path) -> None:
    with terminal("run", "machines.py:PAINTED", "Ada", "--run-id", "mine", home=place, keyboard=True) as screen:
        screen.read_until('your answer as JSON, {"colour": "red" | "green"}, or Enter to answer later: ')
        screen.type('{"colour": "blue"}\n')
        screen.read_until("the answer.colour: expected one of 'red', 'green', got 'blue'")
        screen.read_until("Which colour for Ada?")
        screen.type('{"colour": "green"}\n')
        screen.read_all()
    assert screen.process.returncode == 0
    assert standing(place, "mine") == ["painted"]


def test_whoever_answers_when_the_run_is_over_is_not_asked_again(place: Path) -> None:
    with terminal("run", "machines.py:SENT", "Ada", "--run-id", "mine", home=place, keyboard=True) as screen:
        screen.read_until("Enter to answer later: ")
        moot("cancel", "mine", home=place)
        screen.type("yes\n")
        said = screen.read_all()
    assert screen.process.returncode == 1
    assert "moot run: run mine has no question '1.0'; no question is open" in said
    assert said.count("Enter to answer later") == 1


def test_nobody_is_asked_where_there_is_no_keyboard(place: Path) -> None:
    with terminal("run", "machines.py:SENT", "Ada", home=place) as screen:
        assert "Enter to answer later" not in screen.read_all()
    assert screen.process.returncode == 5


def test_ctrl_c_at_the_question_leaves_the_run_waiting(place: Path) -> None:
    with terminal("run", "machines.py:SENT", "Ada", "--run-id", "mine", home=place, keyboard=True) as screen:
        screen.read_until("[y]es, [n]o")
        screen.process.send_signal(signal.SIGINT)
        said = screen.read_all()
    assert screen.process.returncode == 1
    assert "Traceback" not in said
    assert "moot resume mine" in said
    assert standing(place, "mine") == ["approving"]


NEVER = """
import asyncio
from moothall import Final, Machine, On, Replied, State, ask

async def sleeper(prompt: str) -> str:
    await asyncio.sleep(3600)
    return prompt

SLEEPY = Machine("sleepy",
    states=[State("dreaming", enter=ask(sleeper, "Sleep")), Final("awake")],
    moves=[On("dreaming", Replied, to="awake")])
"""


def test_a_line_says_what_the_run_waits_for_and_what_it_has_spent_and_goes_away_at_the_end(place: Path) -> None:
    (place / "sleepy.py").write_text(NEVER)
    budget = ("--budget", "usd=0.5,calls=20")
    with terminal("run", "sleepy.py", "--run-id", "mine", *budget, home=place, more={"COLUMNS": "120"}) as screen:
        screen.read_until("… sleeper (0 s), in dreaming, step 0, 0.")
        screen.read_until(" s; spent: usd 0.00 of 0.50, calls 0 of 20")
        screen.read_until("… sleeper (1 s)")
        screen.process.send_signal(signal.SIGINT)
        said = screen.read_all()
    assert said.rpartition("\x1b[2K")[2].strip("\r\n").endswith("moot resume mine\x1b[0m")


def test_that_line_is_cut_where_the_terminal_ends(place: Path) -> None:
    (place / "sleepy.py").write_text(NEVER)
    budget = ("--budget", "usd=0.5,calls=20")
    with terminal("run", "sleepy.py", *budget, home=place, more={"COLUMNS": "40", "NO_COLOR": "1"}) as screen:
        screen.read_until("in dreaming, s…\r")
        screen.process.send_signal(signal.SIGINT)
        line = screen.said.rpartition("       … ")[2].partition("\r")[0]
        screen.read_all()
    assert len(f"       … {line}") == 39


def test_nothing_of_that_line_is_seen_where_there_is_no_terminal(place: Path) -> None:
    assert "…" not in moot("run", "machines.py:LETTER", "Ada", home=place).stderr
