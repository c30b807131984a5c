"""What is typed at a terminal answers the question that was shown before it, and nothing else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.cli.process import command, environment, moot
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow

LINES = "first\nsecond\ntouch leaked"
PASTES = {"marked": "\x1b[200~" + LINES.replace("\n", "\r") + "\x1b[201~\r", "not marked": LINES + "\n"}
SEAT = ("debate", "Which till?", "--model", "rehearsal", "-r", "1", "--seat", "pat", "--run-id", "mine")


def answers(home: Path) -> list[Any]:
    entries = json.loads(moot("show", "mine", "--json", home=home).stdout)["entries"]
    return [entry["event"]["value"] for entry in entries if entry["event"]["name"] == "answered"]


@contextmanager
def shell(home: Path, *arguments: str) -> Iterator["pexpect.spawn[str]"]:
    """A shell in which a command was typed."""
    line = " ".join(f"'{word}'" for word in command(*arguments))
    child: pexpect.spawn[str] = pexpect.spawn(
        "sh", ["-i"], cwd=str(home), env=environment(home, {"TERM": "xterm", "PS1": "$ "}), encoding="utf-8", timeout=30
    )
    try:
        child.sendline(line)
        yield child
    finally:
        child.close(force=True)


@pytest.mark.parametrize("paste", PASTES.values(), ids=PASTES)
def test_a_paste_of_three_lines_at_a_seat_is_one_proposal_and_nothing_is_left_for_later(
    tmp_path: Path, paste: str
) -> None:
    with shell(tmp_path, *SEAT) as child:
        child.expect("Your proposal\r\n")
        child.expect("Enter answers later: ")
        child.send(paste)
        child.expect("Your proposal now")
        child.expect("Enter answers later: ")
        child.sendline("mine")
        child.expect("mine is")
        child.sendline("echo over-$((1 + 1))")
        child.expect("over-2")
    assert answers(tmp_path) == [{"text": LINES}, {"text": "mine"}]
    assert not (tmp_path / "leaked").exists()


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_lines_that_come_at_once_never_answer_a_later_question(place: Path, kind: str) -> None:
    with terminal(
        "run", "machines.py:SENT", "Ada", "--run-id", "mine", home=place, keyboard=True, more={"TERM": kind}
    ) as screen:
        screen.read_until("Enter to answer later: ")
        screen.type("perhaps\nyes\n")
        screen.read_until("'perhaps\\nyes' is not an answer to this")
        screen.type("\n")
        screen.read_all()
    assert screen.process.returncode == 5


SLOW = """
import asyncio, pathlib
from moothall import Answered, Final, Machine, On, Replied, State, ask, question

async def clerk(prompt: str) -> str:
    print("working", flush=True)
    while not pathlib.Path("typed").exists():
        await asyncio.sleep(0.01)
    return prompt

SLOW = Machine("slow",
    states=[State("working", enter=ask(clerk, "Work")), State("asking", enter=question("Send it?")), Final("over")],
    moves=[On("working", Replied, to="asking"), On("asking", Answered, to="over")])

ALONE = Machine("alone",
    states=[State("working", enter=ask(clerk, "Work")), Final("over")],
    moves=[On("working", Replied, to="over")])
"""


def test_what_was_typed_before_a_question_is_told_and_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with terminal("run", "slow.py:SLOW", "--run-id", "mine", home=tmp_path, keyboard=True) as screen:
        screen.read_until("working")
        screen.type("yes\nand half a li")
        screen.read_until("half a li")
        (tmp_path / "typed").touch()
        screen.read_until("not used, because it was typed before it was asked for: yes and half a li")
        screen.read_until("Enter to answer later: ")
        screen.type("no\n")
        screen.read_all()
    assert (screen.process.returncode, answers(tmp_path)) == (0, [False])


def test_what_was_typed_and_not_asked_for_does_not_reach_the_shell(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with shell(tmp_path, "run", "slow.py:ALONE") as child:
        child.expect("working")
        child.sendline("touch leaked")
        child.expect("touch leaked")
        (tmp_path / "typed").touch()
        child.expect("not used, because it was typed before it was asked for: touch leaked")
        child.sendline("echo over-$((1 + 1))")
        child.expect("over-2")
    assert not (tmp_path / "leaked").exists()


def test_a_paste_is_one_message_to_a_team_and_a_command_in_it_is_none(tmp_path: Path) -> None:
    with terminal("team", "--model", "rehearsal", "--run-id", "mine", home=tmp_path, keyboard=True) as screen:
        screen.read_until("> ")
        screen.type("A game about tides\n!exit\n")
        screen.read_until("[rehearsal]")
        screen.type("!quit\n")
        screen.read_all()
    entries = json.loads(moot("show", "mine", "--json", home=tmp_path).stdout)["entries"]
    said = [entry["event"]["text"] for entry in entries if entry["event"]["name"] == "USER_SAID"]
    assert said == ["A game about tides\n!exit"]
