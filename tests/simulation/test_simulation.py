"""Worlds in which one seed decides everything: whatever fails, no transition is lost, doubled or made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import moothall
from tests.simulation.faults import Fault

ROOT = Path(__file__).parents[2]
SOURCE = Path(moothall.__file__).parents[1]
PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """What many worlds came to."""

    happened: Counter[str]
    wrongs: dict[str, list[str]]
    entries: int
    digest: str

    def never(self) -> list[str]:
        """The faults that should happen and did not happen once."""
        return [fault.name for fault in Fault if not self.happened[fault.name]]

    def complaint(self) -> str:
        """What is wrong, and how to see it happen again."""
        return "\n".join(
            f"seed {seed}: {' | '.join(wrongs)}\n    to see it: python -m tests.simulation {seed}"
            for seed, wrongs in self.wrongs.items()
        )


def lived(first: int, last: int) -> Summary:
    """Let the worlds of these seeds live, in two processes."""
    middle = (first + last) // 2
    halves = [begun(first, middle), begun(middle, last)]
    found = [ended(half) for half in halves]
    return Summary(
        sum((Counter(one["happened"]) for one in found), Counter()),
        {seed: wrongs for one in found for seed, wrongs in one["wrongs"].items()},
        sum(one["entries"] for one in found),
        " ".join(one["digest"] for one in found),
    )


def begun(first: int, last: int, words: str = "0") -> subprocess.Popen[str]:
    """A process in which the worlds of these seeds live; texts are hashed as `words` says."""
    paths = os.pathsep.join([str(SOURCE), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": words}
    command = [sys.executable, "-m", "tests.simulation", str(first), str(last)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> Any:
    """What a process says at its end."""
    said, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(said)


@pytest.fixture(scope="module")
def worlds() -> Summary:
    return lived(0, 300)


def test_in_three_hundred_worlds_nothing_is_lost_doubled_or_made_up(worlds: Summary) -> None:
    assert not worlds.wrongs, worlds.complaint()
    assert worlds.entries > 2500


def test_every_fault_that_there_is_happened_in_some_world(worlds: Summary) -> None:
    assert not worlds.never()


def test_the_same_seed_is_the_same_world_in_every_process() -> None:
    one, other, another = begun(0, 33), begun(0, 33, words="7"), begun(1, 34)
    assert ended(one)["digest"] == ended(other)["digest"] != ended(another)["digest"]


@pytest.mark.soak
def test_in_twenty_thousand_worlds_nothing_is_lost_doubled_or_made_up() -> None:
    worlds = lived(0, 20_000)
    print(f"{worlds.entries} entries, {worlds.happened}")
    assert not worlds.wrongs, worlds.complaint()
    assert not worlds.never()
