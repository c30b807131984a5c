"""Whoever stops a command while somebody speaks sees no traceback: what is at work ends before the store is closed."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot, started
from tests.cli.terminal import Terminal, terminal
from tests.models.loopback import Fault, Loopback, loopback_aside

pytestmark = pytest.mark.slow

TROUBLE = re.compile(r"Traceback|Exception|closed database|after shutdown|never (retrieved|awaited)|[A-Z]\w+Error\b")
WAYS: dict[str, Callable[[Terminal], None]] = {
    "sigint": lambda screen: screen.process.send_signal(signal.SIGINT),
    "sigterm": lambda screen: screen.process.send_signal(signal.SIGTERM),
    "end of input": lambda screen: screen.type("\x04"),
    "exit": lambda screen: screen.type("!exit\n"),
    "quit": lambda screen: screen.type("!quit\n"),
}


def wait_for_call(served: Loopback, process: "subprocess.Popen[Any]") -> None:
    """Wait until the model was asked."""
    while not served.asked:
        assert process.poll() is None, "it ended before it asked anybody"


@pytest.mark.parametrize(
    ("line", "way"),
    [
        *(("Tell me a story", way) for way in WAYS),
        *(("!workflow panel tides", way) for way in WAYS),
        ("!plan a tide table", "sigint"),
        ("!plan a tide table", "exit"),
    ],
)
def test_a_team_that_is_left_while_somebody_works_ends_without_a_traceback(tmp_path: Path, way: str, line: str) -> None:
    with loopback_aside(Fault(hang=True)) as served:
        model = f"openai:tides@{served.address}"
        with terminal("team", "--model", model, "--run-id", "talk", home=tmp_path, keyboard=True) as screen:
            screen.read_until("> ")
            screen.type(f"{line}\n")
            wait_for_call(served, screen.process)
            WAYS[way](screen)
            said = screen.read_all()
    assert not TROUBLE.search(said), said
    assert screen.process.returncode in (0, 1, 5)
    assert moot("show", "talk", home=tmp_path).returncode == 0


STOPS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["sigint", "sigterm"])
BEGUN = {
    "run": ("run", "coder_reviewer", "tides"),
    "role": ("run", "--role", "coder", "tides"),
    "debate": ("debate", "Which till?"),
    "pipeline": ("pipeline", "a page about tides"),
    "arena": ("arena", "a page about tides", "--workspace", "work"),
}


def stop(process: "subprocess.Popen[str]", number: int) -> str:
    """Stop a process; all that it said on stderr."""
    process.send_signal(number)
    return process.communicate(timeout=30)[1]


@STOPS
@pytest.mark.parametrize("arguments", BEGUN.values(), ids=BEGUN)
def test_a_command_that_is_stopped_while_a_model_speaks_ends_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], number: int
) -> None:
    (tmp_path / "work").mkdir()
    with loopback_aside(Fault(hang=True)) as served:
        process = started(*arguments, "--model", f"openai:tides@{served.address}", "--run-id", "mine", home=tmp_path)
        wait_for_call(served, process)
        said = stop(process, number)
    assert not TROUBLE.search(said), said
    assert "nothing is lost" in said


@STOPS
@pytest.mark.parametrize("arguments", [("worker",), ("serve", "--port", "0")], ids=["worker", "serve"])
def test_who_drives_for_others_and_is_stopped_while_a_model_speaks_ends_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], number: int
) -> None:
    with loopback_aside(Fault(hang=True)) as served:
        model = f"openai:tides@{served.address}"
        assert moot("run", "coder_reviewer", "tides", "--model", model, "--detach", home=tmp_path).returncode == 0
        process = started(*arguments, home=tmp_path)
        wait_for_call(served, process)
        said = stop(process, number)
    assert not TROUBLE.search(said), said
