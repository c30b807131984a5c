"""A disk that fills up stops a run where it stands; with room again it goes on, and nothing is lost or doubled."""

import asyncio
import contextlib
import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.errors import EffectFailed
from moothall.kernel.events import Event
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, Observer, begin, reopen
from moothall.runtime.journal import Entry, Head, Record, RunId
from moothall.runtime.ports import SET_ASIDE, Context
from moothall.stores.sqlite import SqliteStore
from tests.cli.process import command, environment
from tests.faults.machines import STEPS
from tests.faults.place import RUN, Entries, Place, check_whole, told
from tests.runtime.world import Basket, Fetch, Fetched, hall_of, line

pytestmark = pytest.mark.slow

BULKY = "x" * 9_000
LINE = line("a", "b", "c", "d", "e", "f")
ENTRIES = 7
BOUNDLESS = 2**30
CROWD = [f"run-{number}" for number in range(5)]
PROVIDER = 3


class Porter:
    """Fetches heavy things, so that every commit needs room, and notes every call."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        self.keys.append(context.key)
        return Fetched(context.key + BULKY)


def fill(store: SqliteStore) -> None:
    """From now on the file cannot grow by a single page."""
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")


def make_room(store: SqliteStore) -> None:
    store._db.execute(f"PRAGMA max_page_count = {BOUNDLESS}")


def filling_after(store: SqliteStore, seq: int) -> Observer:
    """An observer that sees to it that the disk is full once this entry has been committed."""

    def observe(run: RunId, entry: Entry, head: Head) -> None:
        if entry.seq == seq:
            fill(store)

    return observe


async def begun(hall: Hall, run: RunId = RUN) -> None:
    await begin(hall, Record(run, LINE.name, LINE.digest, hall.clock.now()), LINE, Basket((run + BULKY,)))


async def begun_and_driven(hall: Hall) -> Head:
    await begun(hall)
    return await drive(hall, RUN)


async def whole(folder: Path) -> Entries:
    """The journal of a run that always had room."""
    store = SqliteStore(folder / "whole.db")
    await begun_and_driven(hall_of(Porter(), store))
    entries = await store.entries(RUN)
    store.close()
    return entries


async def driven_into_the_wall(store: SqliteStore, porter: Porter, position: int) -> Hall:
    """A run whose entry at this position finds no room."""
    hall = hall_of(porter, store)
    hall.observers.append(filling_after(store, position - 1))
    if position == 0:
        fill(store)
    with pytest.raises(
        EffectFailed, match="the store could not write: database or disk is full; the run is as it was before"
    ):
        await begun_and_driven(hall)
    assert [entry["seq"] for entry in await store.entries(RUN)] == list(range(position))
    return hall


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["in the same process", "in another process"])
async def test_a_full_disk_at_any_commit_loses_and_doubles_nothing(
    tmp_path: Path, where: str, figure: list[str]
) -> None:
    expected = told(await whole(tmp_path))
    repeated = 0
    for position in range(ENTRIES):
        store, porter = SqliteStore(tmp_path / f"{position}.db"), Porter()
        hall = await driven_into_the_wall(store, porter, position)
        make_room(store)
        if where == "in another process":
            hall = hall_of(porter, store)
        await (begun(hall) if position == 0 else reopen(hall, RUN, LINE))
        assert (await drive(hall, RUN)).snapshot.status == "done"
        assert told(await store.entries(RUN)) == expected
        repeated += len(porter.keys) - len(set(porter.keys))
        store.close()
    assert repeated == ENTRIES - 1
    figure.append(
        f"full disk at {ENTRIES} of {ENTRIES} commits, {where}: 0 lost, 0 doubled, only the call in flight repeated"
    )


@pytest.mark.anyio
async def test_a_full_disk_stops_every_run_of_a_crowd_and_all_go_on(store: SqliteStore, figure: list[str]) -> None:
    porter, failures = Porter(), 0
    for position in range(1, ENTRIES):
        runs = [f"{run}-{position}" for run in CROWD]
        hall = hall_of(porter, store)
        for run in runs:
            await begun(hall, run)
        hall.observers.append(filling_after(store, position - 1))
        if position == 1:
            fill(store)
        ends = await asyncio.gather(*(drive(hall, run) for run in runs), return_exceptions=True)
        assert {type(end) for end in ends} == {EffectFailed}
        failures += len(ends)
        hall.observers.clear()
        make_room(store)
        for run in runs:
            await reopen(hall, run, LINE)
        heads = await asyncio.gather(*(drive(hall, run) for run in runs))
        assert {head.snapshot.status for head in heads} == {"done"}
        for run in runs:
            entries = await store.entries(run)
            check_whole(entries)
            assert len(entries) == ENTRIES
    assert failures == len(CROWD) * (ENTRIES - 1)
    figure.append(
        f"full disk under {len(CROWD)} runs at once: {failures} commits failed, {failures} runs went on to their end"
    )


@pytest.mark.anyio
async def test_a_store_out_of_reach_for_a_while_does_not_keep_a_run_from_going_on_here(
    store: SqliteStore, file: Path
) -> None:
    hall, other = hall_of(Porter(), store), sqlite3.connect(file, isolation_level=None)
    store._db.execute("PRAGMA busy_timeout = 1")

    def lock(run: RunId, entry: Entry, head: Head) -> None:
        if entry.seq == 2:
            other.execute("BEGIN IMMEDIATE")

    hall.observers.append(lock)
    await begun(hall)
    with pytest.raises(EffectFailed, match="the store could not write: database is locked"):
        await drive(hall, RUN)
    other.execute("ROLLBACK")
    other.close()
    try:
        await reopen(hall, RUN, LINE)
        assert (await drive(hall, RUN)).snapshot.status == "done"
    finally:
        if hall.crew.pulse is not None:
            hall.crew.pulse.cancel()


@pytest.mark.anyio
async def test_what_cannot_be_written_of_one_run_leaves_the_others_their_word(store: SqliteStore) -> None:
    for run in CROWD:
        await begun(hall_of(Porter(), store), run)
    store.crowd = len(CROWD)
    async with asyncio.timeout(10):
        wrong, *others = await asyncio.gather(
            store.set_aside(CROWD[0], "\udcff"),
            *(store.set_aside(run, "") for run in CROWD[1:]),
            return_exceptions=True,
        )
    assert isinstance(wrong, UnicodeEncodeError)
    assert others == [None] * len(others)
    assert {(await store.load(run)).status for run in CROWD[1:]} == {SET_ASIDE}


def test_a_store_that_is_closed_after_a_full_disk_lets_go_of_its_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    asyncio.run(driven_into_the_wall(store, Porter(), 3))
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]


# real commands on a disk that is really full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_command_on_a_disk_that_fills_up_says_so_and_resume_goes_on(
    place: Place, small_disk: Path, figure: list[str]
) -> None:
    whole = place.moot("run", "machines.py:WALK", "ada", "--run-id", RUN, "--json")
    expected, calls = told(place.entries()), STEPS
    assert whole.returncode == 0
    for step in range(1, STEPS + 1):
        file, order = small_disk / f"{step}.db", place.folder / f"fill-{step}"
        order.write_text(str(small_disk / "ballast"))
        ran = place.moot("run", "machines.py:WALK", "ada", "--run-id", RUN, "--store", f"sqlite:{file}")
        assert (ran.returncode, ran.stdout) == (PROVIDER, "")
        assert (
            "moot run: the store could not write: database or disk is full; the run is as it was before" in ran.stderr
        )
        assert "Traceback" not in ran.stderr
        order.unlink()
        (small_disk / "ballast").unlink()
        assert len(place.entries(file=file)) == step
        again = place.moot("resume", RUN, "--store", f"sqlite:{file}")
        assert again.returncode == 0, again.stderr
        assert told(place.entries(file=file)) == expected
        calls += STEPS + 1
    assert len(place.calls()) == calls
    figure.append(
        f"full disk under `moot run` at {STEPS} of {STEPS} steps: exit 3, and `moot resume` ended all of them"
    )


def test_a_command_that_finds_the_disk_full_says_so_and_leaves_nothing_behind(place: Place, small_disk: Path) -> None:
    for size in (4096, 1):
        with contextlib.suppress(OSError), (small_disk / "ballast").open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(size))
    store = f"sqlite:{small_disk / 'new.db'}"
    ran = place.moot("run", "machines.py:WALK", "ada", "--run-id", RUN, "--store", store)
    assert (ran.returncode, ran.stdout, place.calls()) == (1, "", [])
    assert "new.db cannot be opened as a store: " in ran.stderr
    assert "Traceback" not in ran.stderr
    (small_disk / "ballast").unlink()
    assert place.moot("run", "machines.py:WALK", "ada", "--run-id", RUN, "--store", store).returncode == 0


def test_a_file_that_may_not_grow_is_a_failure_of_the_world_and_resume_goes_on(place: Place) -> None:
    whole = place.moot("run", "machines.py:WALK", "ada", "--run-id", "whole")
    size = place.file.stat().st_size + 10_000
    assert whole.returncode == 0
    ran = subprocess.run(
        command("run", "machines.py:WALK", "ada", "--run-id", RUN),
        cwd=place.folder,
        env=environment(place.folder),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    assert (ran.returncode, ran.stdout) == (PROVIDER, "")
    assert "the store could not write: disk I/O error" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert 0 < len(place.entries()) <= STEPS
    assert place.moot("resume", RUN).returncode == 0
    check_whole(place.entries())
    assert len(place.entries()) == STEPS + 1
