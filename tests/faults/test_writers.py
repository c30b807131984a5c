"""Eight processes write to one file at the same time: no commit is lost, and nobody sees an error."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.place import Place, begin_together, check_whole

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

async def part(store, writer, run, number):
    hall, before = Hall(store, HastyClock(), {}), store.conflicts
    try:
        await begin(hall, Record(run, COUNTING.name, COUNTING.digest, 1000.0), COUNTING, 0)
    except Conflict:
        await reopen(hall, run, COUNTING)
    received = []
    for nth in range(number):
        received.append((await tell(hall, run, Named("told"), f"{writer}-{nth}")).received)
        await asyncio.sleep(0.001)
    return {"conflicts": store.conflicts - before, "received": received}

async def main(file, writer, own, shared):
    store = Counted(Path(file))
    print("there", flush=True)
    sys.stdin.readline()
    print(json.dumps([await part(store, writer, f"run-{writer}", own), await part(store, writer, "shared", shared)]))
    store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


def written(place: Place, own: int, shared: int) -> list[list[dict[str, Any]]]:
    """What writers say who all begin at once, each with so many events for a run of its own and for one of all."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, str(place.file), f"writer-{nth}", str(own), str(shared)],
            cwd=SOURCE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for nth in range(WRITERS)
    ]
    place.processes.extend(writers)
    begin_together(writers)
    said = [writer.communicate(timeout=120) for writer in writers]
    assert [err for _, err in said] == [""] * len(writers)
    return [json.loads(out) for out, _ in said]


def check_written(place: Place, own: int, shared: int) -> list[str]:
    """Every event of every writer is there once; what was counted."""
    said = written(place, own, shared)
    for nth in range(WRITERS):
        entries = place.entries(f"run-writer-{nth}")
        check_whole(entries)
        assert [entry["cause"] for entry in entries] == ["start", *(f"writer-{nth}-{one}" for one in range(own))]
    entries = place.entries("shared")
    check_whole(entries)
    causes = {f"writer-{nth}-{one}" for nth in range(WRITERS) for one in range(shared)}
    assert {entry["cause"] for entry in entries} == {"start"} | causes
    assert {word for parts in said for one in parts for word in one["received"]} == {"taken"}
    assert sum(alone["conflicts"] for alone, _ in said) == 0
    conflicts = sum(together["conflicts"] for _, together in said)
    events = f"{WRITERS * shared} events, 0 lost, 0 doubled, {conflicts} conflicts decided again"
    return [
        f"{WRITERS} processes, a run each: {WRITERS * own} commits, 0 lost, 0 conflicts, 0 errors",
        f"{WRITERS} processes, one run: {events}",
    ]


def test_eight_writers_of_different_runs_and_of_the_same_lose_nothing(place: Place, figure: list[str]) -> None:
    figure.extend(check_written(place, 60, 30))


@pytest.mark.soak
def test_eight_writers_lose_nothing_in_ten_thousand_commits(place: Place, figure: list[str]) -> None:
    figure.extend(check_written(place, 1_000, 300))
