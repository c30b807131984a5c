"""Eight processes whose runs all update one rating: no update is lost, and none is made twice."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from moothall.stores.sqlite import SqliteStore
from tests.faults.place import begin_together
from tests.runtime.rated import ANN, RATINGS

PROCESSES = 8
SOURCE = Path(__file__).parents[2]
# Waits until everybody is there, then drives its runs, a few at a time.
PLAYING = """
import asyncio, sys
from pathlib import Path
from moothall.app.runs.context import SystemClock
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin
from moothall.runtime.journal import Record
from moothall.stores.sqlite import SqliteStore
from tests.runtime.rated import RATED, Game

async def play(hall, run):
    await begin(hall, Record(run, RATED.name, RATED.digest, hall.clock.now()), RATED, Game(run))
    await drive(hall, run)

async def main(file, process, runs, at_once):
    hall = Hall(SqliteStore(Path(file), durability="normal"), SystemClock(), {})
    print("there", flush=True)
    sys.stdin.readline()
    for first in range(0, runs, at_once):
        numbers = range(first, min(first + at_once, runs))
        await asyncio.gather(*(play(hall, f"{process}-{number}") for number in numbers))
    hall.store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


def play(file: Path, runs: int, at_once: int) -> None:
    """Have every process drive so many runs, all beginning at the same time."""
    SqliteStore(file).close()
    players = [
        subprocess.Popen(
            [sys.executable, "-c", PLAYING, str(file), f"process-{nth}", str(runs), str(at_once)],
            cwd=SOURCE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for nth in range(PROCESSES)
    ]
    begin_together(players)
    for player in players:
        player.communicate()
        assert player.returncode == 0


async def look(file: Path, runs: int) -> int:
    """Compare the rating, the journals and the outbox with each other; how often somebody came too late."""
    store = SqliteStore(file)
    stored = await store.runs()
    assert len(stored) == runs
    assert {run.status for run in stored} == {"done"}
    (rating,) = await store.records(RATINGS, key=ANN)
    assert rating.version == rating.value["games"] == runs
    assert sorted(rating.value["by"]) == sorted(run.record.run for run in stored)
    journals = [[entry["event"]["name"] for entry in await store.entries(run.record.run)] for run in stored]
    assert all(names.count("records.written") == 1 for names in journals)
    sent = await store.outbox("mirror", runs + 1)
    assert [one.record.version for one in sent] == list(range(1, runs + 1))
    versions = sorted(run.head["snapshot"]["data"]["version"] for run in stored)
    assert versions == list(range(1, runs + 1))
    lost: int = sum(run.head["snapshot"]["data"]["lost"] for run in stored)
    assert lost == sum(names.count("error.effect.conflict") for names in journals)
    store.close()
    return lost


def test_of_a_few_runs_that_update_one_rating_none_is_lost_and_none_counts_twice(tmp_path: Path) -> None:
    play(tmp_path / "runs.db", 5, 5)
    lost = asyncio.run(look(tmp_path / "runs.db", 5 * PROCESSES))
    print(f"{5 * PROCESSES} updates of one rating, {lost} of them after others had been quicker")


@pytest.mark.soak
def test_of_a_thousand_runs_that_update_one_rating_none_is_lost_and_none_counts_twice(tmp_path: Path) -> None:
    play(tmp_path / "runs.db", 125, 5)
    lost = asyncio.run(look(tmp_path / "runs.db", 1000))
    print(f"1,000 updates of one rating, {lost} of them after others had been quicker")
