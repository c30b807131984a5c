"""Benchmarks that a claim rests on still run."""

import subprocess
import sys

import pytest

from tests.cli.process import EXAMPLES


@pytest.mark.slow
def test_the_cost_of_a_turn_late_in_a_conversation_can_be_measured() -> None:
    command = [sys.executable, "benchmarks/conversation.py", "--turns", "150", "--around", "20"]
    ran = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 4
