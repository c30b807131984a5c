"""The newsroom is killed with SIGKILL at random moments: its journal is that of a run which nobody touched.

No call whose reply was committed before a kill is made again after it: the model notes the key of every call in a
file that survives, and the journal at the moment of the kill says which of them were committed.
"""

import json
import random
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.process import EXAMPLES, moot, started
from tests.kills.survivors import Journal, Told, committed, entries, hang, kill_when, noted, told

pytestmark = pytest.mark.slow

RUN = "news"
SECONDS = 0.02
WAITING, DONE = 5, 0
CALLS = ["writer", "critic"] * 3
"""Who is asked, one after the other."""


class Kill(NamedTuple):
    """One kill: the effects whose ends were committed by then, and how many calls had been made."""

    committed: frozenset[str]
    calls: int


class Newsroom:
    """The example newsroom as real commands in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "calls.log"
        self.write_script()
        self.begin = (
            *("run", str(EXAMPLES / "newsroom.py"), "tides", "--run-id", RUN),
            *("--model", f"scripted:{folder / 'script.json'},log={self.log}"),
        )

    def write_script(self, hanging: int | None = None) -> None:
        """The example's script with quick replies; the reply to this call, counted from 0, never comes."""
        script = json.loads((EXAMPLES / "newsroom.json").read_text())
        for line in (*script["writer"], *script["critic"]):
            line["seconds"] = SECONDS
        if hanging is not None:
            hang(script, CALLS, hanging)
        (self.folder / "script.json").write_text(json.dumps(script))

    def entries(self) -> Journal:
        """The journal as it is in the file."""
        return entries(self.folder, RUN)

    def calls(self) -> list[str]:
        """The keys of all calls made so far."""
        return noted(self.log)

    def kill(self) -> Kill:
        """What is there after a kill."""
        return Kill(committed(self.folder, RUN), len(self.calls()))

    def next_command(self) -> tuple[str, ...]:
        """What a person would type now."""
        return ("resume", RUN) if self.entries() else self.begin

    def killed(self, arguments: tuple[str, ...], moment: "Moment") -> Kill | None:
        """Start a command and kill it at a moment; None where it had ended by then."""
        with started(*arguments, home=self.folder) as process:
            if moment.at_work and process.stderr is not None:
                process.stderr.readline()
            try:
                process.wait(moment.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        return self.kill() if process.returncode < 0 else None


class Whole(NamedTuple):
    """A run that nobody touched: its journal, how long it takes to start a command, and how long it worked."""

    journal: list[Told]
    starting: float
    working: float


class Moment(NamedTuple):
    """When to kill: so many seconds after the start, or after the first sign of work."""

    at_work: bool
    seconds: float


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    newsroom = Newsroom(tmp_path_factory.mktemp("whole"))
    assert moot(*newsroom.begin, home=newsroom.folder).returncode == WAITING
    drafted = newsroom.entries()
    asked = time.monotonic()
    assert moot("answer", RUN, "--yes", home=newsroom.folder).returncode == DONE
    return Whole(told(newsroom.entries()), time.monotonic() - asked, drafted[-1]["at"] - drafted[0]["at"])


def survive(newsroom: Newsroom, whole: Whole, seed: int) -> list[Kill]:
    """Kill the newsroom at random moments until it waits for a person, and once more while it is answered."""
    chance = random.Random(seed)
    kills: list[Kill] = []
    for _ in range(3):
        at_work = chance.random() < 0.8
        moment = Moment(at_work, chance.uniform(0, whole.working if at_work else whole.starting))
        kill = newsroom.killed(newsroom.next_command(), moment)
        if kill is None:
            break
        kills.append(kill)
    assert moot(*newsroom.next_command(), home=newsroom.folder).returncode == WAITING
    if kill := newsroom.killed(("answer", RUN, "--yes"), Moment(False, chance.uniform(0, whole.starting))):
        kills.append(kill)
    return kills


def check(newsroom: Newsroom, whole: Whole, kills: list[Kill]) -> None:
    """The journal is that of a run which nobody touched, and nothing that was committed was called again."""
    assert told(newsroom.entries()) == whole.journal
    calls = newsroom.calls()
    for kill in kills:
        assert not kill.committed & set(calls[kill.calls :])
    assert len(set(calls)) == len(CALLS)


def endure(folder: Path, whole: Whole, seed: int) -> None:
    newsroom = Newsroom(folder)
    kills = survive(newsroom, whole, seed)
    question = next(entry["effects"][0]["key"] for entry in newsroom.entries() if entry["to"] == ["approving"])
    assert moot("answer", RUN, question, "--yes", home=folder).returncode == DONE
    check(newsroom, whole, kills)


def test_a_run_that_nobody_touched_makes_six_calls_and_is_published(whole: Whole) -> None:
    names = [name for name, *_ in whole.journal]
    assert names == ["run.started", *["replied"] * 6, "answered"]
    assert whole.journal[-1][2] == ("published",)


@pytest.mark.parametrize("seed", range(5))
def test_a_newsroom_killed_at_random_moments_leaves_the_journal_of_one_that_was_not(
    tmp_path: Path, whole: Whole, seed: int
) -> None:
    endure(tmp_path, whole, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_newsroom_killed_at_many_random_moments_leaves_the_journal_of_one_that_was_not(
    tmp_path: Path, whole: Whole, seed: int
) -> None:
    endure(tmp_path, whole, seed)


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_newsroom_killed_in_the_middle_of_any_call_repeats_that_call_and_no_other(
    tmp_path: Path, whole: Whole, number: int
) -> None:
    newsroom = Newsroom(tmp_path)
    newsroom.write_script(hanging=number)
    kill_when(lambda: len(newsroom.calls()) > number, newsroom.begin, tmp_path)
    before, kill = newsroom.calls(), newsroom.kill()
    newsroom.write_script()
    assert moot("resume", RUN, home=tmp_path).returncode == WAITING
    assert moot("answer", RUN, "--yes", home=tmp_path).returncode == DONE
    assert set(before) & set(newsroom.calls()[kill.calls :]) == {before[-1]}
    check(newsroom, whole, [kill])
