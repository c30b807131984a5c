"""An audit raises no false alarm: what was killed, pruned, mended or written by many at once is never broken."""

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.process import moot, started
from tests.cli.ran import Moot
from tests.faults.place import wait_for
from tests.kills.test_kills import RUN, finished, killed, next_command, workshop

pytestmark = pytest.mark.slow

PROCESSES = 8
CI, SOAK = 4, 60


def verdicts(folder: Path) -> int:
    """The exit code of a real audit of everything, which finds nothing broken."""
    audit = moot("audit", home=folder)
    assert "broken" not in audit.stdout, audit.stdout
    assert audit.returncode in (0, 6), audit.stderr
    return audit.returncode


def endure(folder: Path, kills: int, seed: int) -> int:
    chance, done, runs = random.Random(seed), 0, 0
    while done < kills:
        runs += 1
        place = workshop(folder / str(runs))
        for _ in range(2):
            done += killed(place, next_command(place), chance.uniform(0.1, 0.9))
            verdicts(place)
        finished(place)
        assert moot("audit", RUN, home=place).returncode == 0
        verdicts(place)
    return done


def test_runs_that_were_killed_are_never_broken_and_intact_when_they_rest(tmp_path: Path, figure: list[str]) -> None:
    figure.append(f"{endure(tmp_path, CI, seed=5)} kills, no false alarm")


@pytest.mark.soak
def test_runs_that_were_killed_often_are_never_broken(tmp_path: Path, figure: list[str]) -> None:
    figure.append(f"{endure(tmp_path, SOAK, seed=500)} kills, no false alarm")


def test_many_processes_on_one_store_raise_no_alarm(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("works.py"), tmp_path)
    command = ("run", "works.py:WATCH", "sail", "--quiet", "--run-id")
    all_of_them = [started(*command, f"run-{number}", home=tmp_path) for number in range(PROCESSES)]
    told = [process.communicate() for process in all_of_them]
    assert {process.returncode for process in all_of_them} == {5}, told
    hold = tmp_path / "hold"
    hold.touch()
    answers = [started("answer", "run-0", "--no", "--quiet", home=tmp_path) for _ in range(PROCESSES)]
    wait_for(lambda: sum(process.poll() is not None for process in answers) == PROCESSES - 1, "the end of all but one")
    hold.unlink()
    told = [process.communicate() for process in answers]
    taken, *others = sorted(process.returncode for process in answers)
    assert taken == 0, told
    assert {*others} <= {1, 9}, "answered before, or by the one that drives the run now"
    assert verdicts(tmp_path) == 0


def test_what_was_pruned_is_not_missed_and_its_id_may_be_used_again(moot: Moot) -> None:
    for _ in range(2):
        moot("run", "works.py:WATCH", "sail", "--run-id", "mine", "--quiet")
        assert moot("answer", "mine", "--no", "--quiet").code == 0
        assert moot("audit", "mine").code == 0
        moot("prune", "--days", "0", "--yes")
        assert (moot("audit").code, moot("audit", "mine").code) == (0, 1)


def test_a_head_that_was_mended_is_intact_again(moot: Moot) -> None:
    moot("run", "works.py:WATCH", "sail", "--run-id", "mine", "--quiet")
    db = sqlite3.connect("moothall.db")
    db.execute("UPDATE runs SET head = x'00'")
    db.commit()
    db.close()
    broken = moot("audit", "mine")
    assert (broken.code, "its head was changed" in broken.out) == (1, True)
    assert moot("resume", "mine", "--quiet").code == 5
    assert moot("audit", "mine").code == 0
    assert moot("answer", "mine", "--no", "--quiet").code == 0
    assert moot("audit", "mine").code == 0


def test_a_run_whose_id_was_taken_is_none_the_worse(moot: Moot) -> None:
    moot("run", "works.py:WATCH", "sail", "--run-id", "mine", "--quiet")
    assert moot("run", "works.py:WATCH", "sail", "--run-id", "mine", "--quiet").code == 1
    assert moot("audit").code == 0
