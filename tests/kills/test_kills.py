"""The real command, killed with SIGKILL at random moments and resumed: the journals are those of a run that was not.

Marks tell of attempts, so a kill may add some; all else is equal: event, from, to, effects, content. Two events of
parallel states may change places. What was paid is paid once, whatever was killed.

A child tells its parent of its end and notes that in its own journal: two runs, two commits. Whoever dies between them
leaves the note to the next who drives the child, and the parent goes on without it.
"""

import json
import random
import shutil
import subprocess
import time
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot, started
from tests.kills.survivors import Journal, entries

pytestmark = pytest.mark.slow

RUN, CHILD = "job", "job-0-0"
BEGIN = ("run", "workshop.py:WORKSHOP", "a lamp", "--run-id", RUN)
DONE, WAITING = 0, 5
DELIVERED = "effect.delivered"
MARKS = ("effect.began", "effect.faltered", "effect.doubted", "effect.repeated")
CI, SOAK = 10, 100
Whole = tuple[Counter[tuple[Any, ...]], list[tuple[Any, ...]]]


def workshop(folder: Path) -> Path:
    """A folder with the machine in it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("workshop.py"), folder)
    return folder


def told(journal: Journal) -> list[tuple[Any, ...]]:
    """What a journal says, without times, keys and marks."""
    return [
        (
            entry["event"]["name"],
            tuple(entry["from"]),
            tuple(entry["to"]),
            tuple(sorted((effect["kind"], effect["effect"].get("tool", "")) for effect in entry["effects"])),
            blake2b(json.dumps([entry["event"].get(name) for name in ("text", "value", "data")]).encode()).hexdigest(),
        )
        for entry in journal
        if entry["event"]["name"] not in MARKS
    ]


def in_any_order(journal: Journal) -> Counter[tuple[Any, ...]]:
    """The same where events of parallel states came in any order: each counts by itself, whatever stood beside it."""
    free = {"measuring", "storing", "measured", "stored"}
    return Counter(
        (name, set(before) <= free or before, effects, content) for name, before, _, effects, content in told(journal)
    )


def killed(folder: Path, arguments: tuple[str, ...], seconds: float) -> bool:
    """Start a command and kill it after so many seconds; whether it was still there."""
    with started(*arguments, home=folder) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    return process.returncode < 0


def next_command(folder: Path) -> tuple[str, ...]:
    """What a person would type now."""
    return ("resume", RUN) if (folder / "moothall.db").exists() and entries(folder, RUN) else BEGIN


def received(folder: Path) -> list[tuple[str, str]]:
    """What the world outside has seen: tool and key, call by call."""
    log = folder / "receiver.log"
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def finished(folder: Path) -> None:
    """Go on as a person would until the run is over: answer what is asked, look outside what became of a payment."""
    for _ in range(12):
        ran = moot(*next_command(folder), "--json", home=folder)
        assert ran.returncode in (DONE, WAITING), ran.stderr
        if ran.returncode == DONE:
            return note_delivery(folder)
        for asked in json.loads(ran.stdout)["questions"]:
            answer: tuple[str, ...] = ("--yes",)
            if "outcome" in json.dumps(asked["schema"]):
                was_paid = any(tool == "pay" for tool, _ in received(folder))
                finding = {"outcome": "done", "value": "a lamp paid"} if was_paid else {"outcome": "again"}
                answer = ("--json", json.dumps(finding))
            moot("answer", asked["run"], asked["id"], *answer, home=folder)
    raise AssertionError("the run does not come to its end")


def note_delivery(folder: Path) -> None:
    """Drive the child where nobody has noted yet that its parent knows of its end."""
    if entries(folder, CHILD)[-1]["event"]["name"] != DELIVERED:
        assert moot("resume", CHILD, home=folder).returncode == DONE


@pytest.fixture(scope="module")
def longest(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a command takes here: whoever kills later kills nobody, and on a slow machine a second is early."""
    folder = workshop(tmp_path_factory.mktemp("timed"))
    begun = time.monotonic()
    moot(*BEGIN, home=folder)
    return 1.2 * (time.monotonic() - begun)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The journals of a run that nobody killed, and of its child."""
    folder = workshop(tmp_path_factory.mktemp("whole"))
    finished(folder)
    return in_any_order(entries(folder, RUN)), told(entries(folder, CHILD))


def endure(folder: Path, seed: int, longest: float) -> int:
    """Kill the command at random moments, then let it finish; how often it was killed."""
    chance, kills = random.Random(seed), 0
    for _ in range(chance.randint(1, 3)):
        kills += killed(folder, next_command(folder), chance.uniform(0.1, longest))
        if entries(folder, CHILD) and chance.random() < 0.5:
            kills += killed(folder, ("answer", CHILD, "--yes"), chance.uniform(0.1, longest))
    finished(folder)
    return kills


def check(folder: Path, whole: Whole) -> None:
    assert (in_any_order(entries(folder, RUN)), told(entries(folder, CHILD))) == whole
    for journal in (entries(folder, RUN), entries(folder, CHILD)):
        assert [entry["seq"] for entry in journal] == list(range(len(journal)))
        assert len({entry["cause"] for entry in journal}) == len(journal)
    keys = {tool: {key for one, key in received(folder) if one == tool} for tool, _ in received(folder)}
    assert {tool: len(found) for tool, found in keys.items()} == dict.fromkeys(keys, 1)
    assert sum(tool == "pay" for tool, _ in received(folder)) == 1


def survive(folder: Path, whole: Whole, longest: float, kills: int, seed: int) -> tuple[int, int]:
    """Kill as often as this, in as many runs as that takes; how often and how many it were."""
    done = runs = 0
    while done < kills:
        runs += 1
        done += endure(workshop(folder / str(runs)), seed + runs, longest)
        check(folder / str(runs), whole)
    return done, runs


def test_a_workshop_that_is_killed_leaves_the_journals_of_one_that_was_not(
    tmp_path: Path, whole: Whole, longest: float, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, runs = survive(tmp_path, whole, longest, CI, seed=0)
    assert kills >= CI
    with capsys.disabled():
        print(f"\n{kills} kills in {runs} runs, nothing lost, nothing doubled")


@pytest.mark.soak
def test_a_workshop_that_is_killed_a_hundred_times_does_too(
    tmp_path: Path, whole: Whole, longest: float, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, runs = survive(tmp_path, whole, longest, SOAK, seed=1_000)
    assert kills >= SOAK
    with capsys.disabled():
        print(f"\n{kills} kills in {runs} runs, nothing lost, nothing doubled")
