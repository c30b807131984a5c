"""A person with a seat in a debate is asked, whichever command goes on with it, or the question is told."""

import json
from pathlib import Path

import pytest

from tests.cli.process import moot
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow

DEBATE = ("debate", "Which till?", "--model", "rehearsal", "-r", "1", "--run-id", "mine")
SEAT = (*DEBATE, "--seat", "pat")
ASKED = "Enter answers later: "


def status(home: Path) -> str:
    return str(json.loads(moot("show", "mine", "--json", home=home).stdout)["summary"]["status"])


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A debate whose seat was asked and left with Ctrl-C."""
    with terminal(*SEAT, home=tmp_path, keyboard=True) as screen:
        screen.read_until(ASKED)
        screen.type("\x03")
        assert "Go on with:  moot resume mine --as pat" in screen.read_all()
    assert screen.process.returncode == 1
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [("resume", "mine"), ("resume", "mine", "--as", "pat"), ("answer", "mine", "--as", "pat"), ("answer", "mine")],
    ids=" ".join,
)
def test_whoever_comes_back_at_a_terminal_is_asked_again_and_the_debate_ends(
    left: Path, arguments: tuple[str, ...]
) -> None:
    with terminal(*arguments, home=left, keyboard=True) as screen:
        screen.read_until(ASKED)
        screen.type("on paper\n")
        screen.read_until("Your proposal now")
        screen.type("still on paper\n")
        said = screen.read_all()
    assert (screen.process.returncode, status(left)) == (0, "done")
    assert ("who answers it here answers as pat" in said) is ("--as" not in arguments)


def test_nobody_else_is_asked(left: Path) -> None:
    with terminal("resume", "mine", "--as", "eve", home=left, keyboard=True) as screen:
        assert ASKED not in screen.read_all()
    assert screen.process.returncode == 5


@pytest.mark.parametrize(
    "arguments",
    [
        ("resume", "mine"),
        ("fork", "mine", "--repeat"),
        ("resume", "mine", "--json"),
        ("send", "mine", "STEER", "--text", "on paper"),
    ],
    ids=" ".join,
)
def test_without_a_terminal_the_question_is_told_and_the_command_exits_with_5(
    left: Path, arguments: tuple[str, ...]
) -> None:
    ran = moot(*arguments, home=left)
    assert ran.returncode == 5
    assert "for pat: Which till?" in ran.stderr
    assert "--as pat" in ran.stderr


def test_a_debate_without_a_terminal_tells_the_question_of_a_seat_and_exits_with_5(tmp_path: Path) -> None:
    ran = moot(*SEAT, home=tmp_path)
    assert ran.returncode == 5
    assert "answer with:  moot answer mine --json" in ran.stderr
    answered = moot("answer", "mine", "--as", "pat", "--json", '{"text": "on paper"}', home=tmp_path)
    assert answered.returncode == 5
    assert "text: Your proposal now" in answered.stderr


def test_two_seats_at_one_terminal_are_asked_one_after_the_other(tmp_path: Path) -> None:
    seats = [{"id": name, "role": "generalist", "person": name in ("ann", "bob")} for name in ("ann", "bob", "kiss")]
    (tmp_path / "config.json").write_text(json.dumps({"agents": seats, "debate": {"rounds": 1}}))
    with terminal(*DEBATE, "-c", "config.json", home=tmp_path, keyboard=True) as screen:
        for name in ("ann", "bob") * 2:
            screen.read_until(f"this question is for {name}")
            screen.read_until(ASKED)
            screen.said = ""
            screen.type(f"says {name}\n")
        screen.read_all()
    assert (screen.process.returncode, status(tmp_path)) == (0, "done")


def test_a_question_that_is_put_off_leads_to_the_next_and_both_stay_open(tmp_path: Path) -> None:
    seats = [{"id": name, "role": "generalist", "person": name in ("ann", "bob")} for name in ("ann", "bob", "kiss")]
    (tmp_path / "config.json").write_text(json.dumps({"agents": seats, "debate": {"rounds": 1}}))
    with terminal(*DEBATE, "-c", "config.json", home=tmp_path, keyboard=True) as screen:
        for name in ("ann", "bob"):
            screen.read_until(f"this question is for {name}")
            screen.read_until(ASKED)
            screen.said = ""
            screen.type("\n")
        said = screen.read_all()
    assert screen.process.returncode == 5
    assert ("for ann: Which till?" in said, "for bob: Which till?" in said) == (True, True)
