"""Ctrl-C and SIGTERM stop a run cleanly, and the command that is shown then goes on with it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, moot, started

pytestmark = pytest.mark.slow

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
NEVER = 3_600


def script(folder: Path, seconds: float) -> str:
    """A model whose first reply comes at once and whose later ones take their time."""
    later = {"value": {"good": True, "notes": ""}, "seconds": seconds}
    found = {
        "writer": ["The sea rises."],
        "critic": [later],
        "press": ["a tide"],
        "papers": [{"text": "a paper", "seconds": seconds}],
        "patents": [{"text": "a patent", "seconds": seconds}],
        "editor": ["all of it"],
    }
    (folder / "script.json").write_text(json.dumps(found))
    return f"scripted:{folder / 'script.json'}"


def stopped(process: subprocess.Popen[str], number: signal.Signals, after: str) -> tuple[int, str, str]:
    """Stop a process once it has said this on stderr; its exit code and what it said afterwards."""
    assert process.stderr is not None
    said = ""
    while after not in said:
        line = process.stderr.readline()
        assert line, f"it ended before it said {after!r}: {said}"
        said += line
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@SIGNALS
@pytest.mark.parametrize(
    ("machine", "after", "end"),
    [("newsroom.py:NEWSROOM", "drafting → reviewing", 5), ("research.py:STUDY", "replied press", 0)],
    ids=["one call under way", "two calls under way"],
)
def test_a_stopped_run_says_how_to_go_on_and_that_works(
    tmp_path: Path, number: signal.Signals, machine: str, after: str, end: int
) -> None:
    process = started(
        "run", str(EXAMPLES / machine), "tides", "--model", script(tmp_path, NEVER), "--run-id", "mine", home=tmp_path
    )
    code, out, err = stopped(process, number, after)
    assert (code, out) == (1, "")
    assert err == "stopped; nothing is lost. Go on with:  moot resume mine\n"

    shown = json.loads(moot("show", "mine", "--json", home=tmp_path).stdout)
    assert (shown["summary"]["status"], len(shown["entries"])) == ("running", 2)

    script(tmp_path, 0)
    again = moot(*shlex.split(err.partition("Go on with:")[2])[1:], home=tmp_path)
    assert again.returncode == end
    assert "run mine goes on after entry 1" in again.stderr


@SIGNALS
def test_a_stop_while_a_file_is_loaded_is_no_traceback(tmp_path: Path, number: signal.Signals) -> None:
    slow = "import sys, threading\nprint('loading', file=sys.stderr, flush=True)\nthreading.Event().wait(3600)\n"
    (tmp_path / "slow.py").write_text(slow)
    code, out, err = stopped(started("run", "slow.py", home=tmp_path), number, "loading")
    assert (code, out, err) == (1, "", "moot run: stopped\n")


def test_a_stop_before_the_command_has_begun_is_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "settings.toml"
    os.mkfifo(pipe)
    process = started("ls", home=tmp_path)
    with pipe.open("w"):  # it is open once somebody reads the settings
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (1, "", "moot ls: stopped\n")


@SIGNALS
def test_a_stop_while_the_event_loop_is_made_is_no_traceback(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import asyncio, os, sys\n"
        "class Half(asyncio.SelectorEventLoop):\n"
        f"    def __init__(self): os.kill(os.getpid(), {int(number)})\n"
        "asyncio.events.new_event_loop = Half\n"
        "from moothall.cli.main import main\n"
        "sys.argv = ['moot', 'ls']\n"
        "sys.exit(main())"
    )
    environment = {**os.environ, "MOOTHALL_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "moot ls: stopped\n")


@SIGNALS
def test_the_shown_command_names_the_store_that_was_used(tmp_path: Path, number: signal.Signals) -> None:
    model, store = script(tmp_path, NEVER), f"sqlite:{tmp_path / 'my runs.db'}"
    process = started(
        "run",
        str(EXAMPLES / "newsroom.py"),
        "tides",
        "--model",
        model,
        "--run-id",
        "mine",
        "--store",
        store,
        home=tmp_path,
    )
    _, _, err = stopped(process, number, "drafting → reviewing")
    script(tmp_path, 0)
    resume = shlex.split(err.partition("Go on with:")[2])
    assert resume == ["moot", "resume", "mine", "--store", store]
    assert moot(*resume[1:], home=tmp_path).returncode == 5
