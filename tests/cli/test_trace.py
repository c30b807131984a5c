"""What a command does that nobody sees: it reads settings once, has one event loop, looks machine and kind up once."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["run examples/newsroom.py tides", "run coder_reviewer tea --model rehearsal"])
def test_a_command_reads_settings_once_and_looks_its_machine_up_once(command: str) -> None:
    traced = [sys.executable, "tools/trace", *command.split()]
    done = subprocess.run(traced, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = {line[:30].strip(): line[30:].strip() for line in done.stdout.splitlines()[1:]}
    assert counts["settings files read"] == "{'settings.toml': 1}"
    assert counts["event loops made"] == "1"
    assert counts["the machine was looked up"] == "1"
    assert counts["kinds looked up"] == "1"
