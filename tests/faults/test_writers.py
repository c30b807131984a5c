"""Eight processes write to one file at the same time: no commit is lost, and nobody sees an error."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.place import Place, check_whole

WRITERS = 8
SOURCE = Path(__file__).parents[2]
# Waits until everybody is there, then does its part; says how often it was told that another had come first.
TOGETHER = """
import asyncio, json, sys
from pathlib import Path
from moothall.errors import Conflict
from moothall.kernel.events import Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.hall import Hall, begin, reopen, tell
from moothall.runtime.journal import Record
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock

COUNTING = Machine("counting", data=int, states=[State("counting"), Final("over")],
    moves=[On("counting", "told", do=lambda number, _: number + 1), On("counting", "ended", to="over")])

class Counted(SqliteStore):
    conflicts = 0

    async def commit(self, *given):
        try:
            await super().commit(*given)
        except Conflict:
            self.conflicts += 1
            raise

async def main(file, writer, run, number):
    store = Counted(Path(file))
    hall = Hall(store, HastyClock(), {})
    print("there", flush=True)
    sys.stdin.readline()
    record = Record(run, COUNTING.name, COUNTING.digest, 1000.0)
    try:
        await begin(hall, record, COUNTING, 0)
    except Conflict:
        await reopen(hall, run, COUNTING)
    received = []
    for nth in range(number):
        received.append((await tell(hall, run, Named("told"), f"{writer}-{nth}")).received)
        await asyncio.sleep(0.001)
    store.close()
    print(json.dumps({"conflicts": store.conflicts, "received": received}))

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


def written(place: Place, runs: list[str], number: int) -> list[dict[str, Any]]:
    """What writers say who all begin at once, one per name of a run, each with so many events."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, str(place.file), f"writer-{nth}", run, str(number)],
            cwd=SOURCE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for nth, run in enumerate(runs)
    ]
    place.processes.extend(writers)
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "there\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("now\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=120) for writer in writers]
    assert [err for _, err in said] == [""] * len(writers)
    return [json.loads(out) for out, _ in said]


def to_different_runs(place: Place, number: int) -> str:
    runs = [f"run-{nth}" for nth in range(WRITERS)]
    said = written(place, runs, number)
    for nth, run in enumerate(runs):
        entries = place.entries(run)
        check_whole(entries)
        assert [entry["cause"] for entry in entries] == ["start", *(f"writer-{nth}-{one}" for one in range(number))]
    assert sum(one["conflicts"] for one in said) == 0
    return f"{WRITERS} processes, a run each: {WRITERS * number} commits, 0 lost, 0 conflicts, 0 errors"


def to_the_same_run(place: Place, number: int) -> str:
    said = written(place, ["shared"] * WRITERS, number)
    entries = place.entries("shared")
    check_whole(entries)
    causes = {entry["cause"] for entry in entries}
    assert causes == {"start", *(f"writer-{nth}-{one}" for nth in range(WRITERS) for one in range(number))}
    assert Counter(word for one in said for word in one["received"]) == {"taken": WRITERS * number}
    conflicts = sum(one["conflicts"] for one in said)
    events = f"{WRITERS * number} events, 0 lost, 0 doubled"
    return f"{WRITERS} processes, one run: {events}, {conflicts} conflicts decided again"


def test_eight_writers_of_different_runs_lose_nothing(place: Place, figure: list[str]) -> None:
    figure.append(to_different_runs(place, 60))


def test_eight_writers_of_the_same_run_lose_nothing(place: Place, figure: list[str]) -> None:
    figure.append(to_the_same_run(place, 30))


@pytest.mark.soak
def test_eight_writers_lose_nothing_in_thousands_of_commits(place: Place, figure: list[str]) -> None:
    figure.append(to_different_runs(place, 1_000))
    figure.append(to_the_same_run(place, 300))
