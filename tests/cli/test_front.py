"""`moot` itself: help, version, pipes, colours."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moothall import __version__
from moothall.cli.main import COMMANDS
from tests.cli.process import command, environment
from tests.cli.process import moot as process
from tests.cli.ran import Moot

ANSI = re.compile(r"\x1b\[")


def test_without_a_command_moot_lists_all_of_them(moot: Moot) -> None:
    ran = moot()
    assert ran.code == 0
    assert all(
        re.search(rf"^  {name} +{re.escape(one.help)}$", ran.out, re.MULTILINE) for name, one in COMMANDS.items()
    )


def test_moot_tells_its_version(moot: Moot) -> None:
    assert moot("--version").out == f"moothall {__version__}\n"


@pytest.mark.slow
def test_where_there_is_no_terminal_there_are_no_colour_codes(place: Path) -> None:
    for arguments in (
        ("run", "machines.py:SENT", "Ada", "--run-id", "mine"),
        ("ls",),
        ("show", "mine"),
        ("check", "machines.py:ENDLESS"),
        ("answer", "mine", "--yes"),
    ):
        ran = process(*arguments, home=place)
        assert not ANSI.search(ran.stdout + ran.stderr), arguments


def test_a_reader_that_goes_away_is_no_error(place: Path) -> None:
    process("run", "machines.py:LETTER", "Ada", "--run-id", "mine", home=place)
    ours, theirs = os.pipe()
    os.close(ours)
    ran = subprocess.run(
        command("show", "mine"), cwd=place, env=environment(place), stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_that_nobody_listens_to_ends_with_its_own_exit_code(place: Path, stream: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    out, err = (theirs if stream == one else subprocess.DEVNULL for one in ("stdout", "stderr"))
    asking = command("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--json")
    ran = subprocess.run(asking, cwd=place, env=environment(place), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    os.close(theirs)
    assert ran.returncode == 5
    assert json.loads(process("show", "mine", "--json", home=place).stdout)["summary"]["status"] == "waiting"


def test_notices_that_cannot_be_written_do_not_spoil_a_result(place: Path) -> None:
    running = command("run", "machines.py:LETTER", "Ada")
    with open("/dev/full", "w") as full:
        ran = subprocess.run(running, cwd=place, env=environment(place), stdout=subprocess.PIPE, stderr=full, text=True)
    assert (ran.returncode, ran.stdout) == (0, "DEAR ADA\n")


def test_an_input_that_is_closed_is_an_empty_one(place: Path) -> None:
    process("run", "machines.py:TOLD", "Ada", "--run-id", "mine", home=place)
    shell = f"{sys.executable} -m moothall answer mine --json - <&-"
    ran = subprocess.run(shell, shell=True, cwd=place, env=environment(place), stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("moot answer: - is not JSON: ")


@pytest.mark.slow
def test_output_in_an_encoding_that_lacks_arrows_is_no_error(place: Path) -> None:
    process("run", "machines.py:LETTER", "Ada", "--run-id", "mine", home=place)
    ran = process("show", "mine", home=place, more={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "written" in ran.stdout


@pytest.mark.parametrize(
    ("where", "code", "says"),
    [
        (">/dev/full", 3, "moot doctor: what it says cannot be written: No space left on device\n"),
        (">&-", 0, ""),
    ],
    ids=["full", "closed"],
)
def test_a_stream_that_cannot_be_written_is_told_and_one_that_is_closed_is_not_missed(
    tmp_path: Path, where: str, code: int, says: str
) -> None:
    shell = f"{sys.executable} -m moothall doctor {where}"
    home = {**os.environ, "MOOTHALL_HOME": str(tmp_path)}
    ran = subprocess.run(shell, shell=True, stderr=subprocess.PIPE, text=True, env=home)
    assert (ran.returncode, ran.stderr) == (code, says)
