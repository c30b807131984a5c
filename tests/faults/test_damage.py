"""Whatever happens to the file: a run is read back as it was, made anew from its journal, or refused by name."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moothall.app.runs import view as looking
from moothall.errors import Broken, EffectFailed, Refused
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.runtime.drive import drive
from moothall.runtime.hall import answer, begin, cancel, let_go, reopen
from moothall.runtime.journal import Entry, Head, Record
from moothall.runtime.ports import Context
from moothall.stores.sqlite import SqliteStore
from tests.cli.ran import Moot
from tests.faults.damages import PAGES, ROWS, Rows
from tests.faults.machines import STEPS
from tests.faults.place import RUN, Place
from tests.runtime.clock import MovableClock
from tests.runtime.world import Basket, Fetch, Fetched, asking, fan, hall_of, line

LONG = "The sea rises. " * 80
MACHINES: Mapping[str, Machine] = {
    "ada": line("bread", "milk"),
    "bob": line("salt", "tea", "rice"),
    "eve": asking(within=60),
    "zoe": fan("a", "b", "c"),
}
OVER, LIVE, ASKS = "ada", "bob", "eve"


async def fetch(effect: Fetch, context: Context) -> Event:
    return Fetched(f"{effect.what} {LONG}" if effect.what in ("milk", "salt", "a") else effect.what)


class Original:
    """A file with four runs: one is over, one is under way, one asks, one was cancelled; and copies of it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self.body, self.unsettled, self.log = b"", b"", b""
        self.heads: dict[str, Head] = {}
        self.records: dict[str, Record] = {}
        self.statuses: dict[str, str] = {}
        self.entries: dict[str, list[Mapping[str, Any]]] = {}
        self.summaries: dict[str, looking.Summary] = {}

    async def prepare(self) -> None:
        store = SqliteStore(self._folder / "original.db")
        for run in MACHINES:
            await self._walk(store, run)
        self.summaries = {one.run: one for one in await looking.summaries(store)}
        self.unsettled = (self._folder / "original.db").read_bytes()
        self.log = (self._folder / "original.db-wal").read_bytes()
        store.close()
        self.body = (self._folder / "original.db").read_bytes()

    async def _walk(self, store: SqliteStore, run: str) -> None:
        hall, machine = hall_of(fetch, store, MovableClock()), MACHINES[run]
        hall.observers.append(lambda _, entry, head: self.heads.__setitem__(run, head))
        await begin(hall, Record(run, machine.name, machine.digest, 1_000.0, limits={"calls": 20}), machine, Basket())
        task = asyncio.create_task(drive(hall, run))

        def stop(_: str, entry: Entry, head: Head) -> None:
            if run == LIVE and entry.seq == 2:
                task.cancel()

        hall.observers.append(stop)
        await asyncio.wait([task])
        if run == "zoe":
            await cancel(hall, run, "enough", "stop-1")
        await let_go(hall, run)
        stored = await store.load(run)
        self.records[run], self.statuses[run] = stored.record, stored.status
        self.entries[run] = await store.entries(run)

    def file(self, body: bytes, log: bytes = b"") -> Path:
        """A file of its own with these bytes, and a write-ahead log that was not written back yet."""
        self._count += 1
        file = self._folder / f"copy-{self._count}.db"
        file.write_bytes(body)
        if log:
            file.with_name(f"{file.name}-wal").write_bytes(log)
        return file

    def with_rows(self, damage: Rows, chance: Random, run: str) -> bytes | None:
        """The file after this happened to rows of a run; None where it cannot happen or changes nothing."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.deserialize(logged(self.body, ahead=False))
        db.text_factory = bytes
        before = db.total_changes
        try:
            damage(db, chance, 1 + list(MACHINES).index(run))
            return logged(db.serialize(), ahead=True) if db.total_changes > before else None
        except sqlite3.IntegrityError:
            return None
        finally:
            db.close()


def logged(body: bytes, *, ahead: bool) -> bytes:
    """The same file, said to be written with a write-ahead log or without: a database in memory has none."""
    return body[:18] + bytes((1 + ahead,)) * 2 + body[20:]


def opened(file: Path) -> SqliteStore:
    return SqliteStore(file, durability="normal")


async def judged(original: Original, store: SqliteStore, run: str) -> str:
    """What became of a run: as it was, made anew, refused, or the whole file refused. Anything else fails."""
    try:
        stored = await store.load(run)
        head = await reopen(hall_of(fetch, store, MovableClock()), run, MACHINES[run])
        entries = await store.entries(run)
    except (Broken, Refused, EffectFailed) as refusal:
        return refused(run, str(refusal))
    assert stored.record == original.records[run]
    assert stored.status == original.statuses[run] or (not stored.head and stored.status == "live")
    assert head == original.heads[run]
    assert entries == original.entries[run]
    return "as it was" if stored.head else "made anew"


def refused(run: str, said: str) -> str:
    """Whether a run or its whole file is refused; either must be said plainly."""
    if (
        said.startswith(("the store is damaged", "the store could not be read"))
        or "cannot be opened as a store" in said
    ):
        return "file refused"
    assert f"run {run}" in said or f"no run {run!r}" in said, said
    return "run refused"


async def goes_on(store: SqliteStore, run: str) -> None:
    """A run that was spared can be moved."""
    hall = hall_of(fetch, store, MovableClock())
    await reopen(hall, run, MACHINES[run])
    if run == ASKS:
        await answer(hall, run, "yes")
    assert (await drive(hall, run)).snapshot.status == "done"


async def after_rows(original: Original, body: bytes, run: str) -> str:
    """What became of a run whose rows were damaged; all others are as they were and go on."""
    store = opened(original.file(body))
    try:
        listed = {one.run: one for one in await looking.summaries(store)}
        what = await judged(original, store, run)
        for other in MACHINES.keys() - {run}:
            assert await judged(original, store, other) == "as it was"
            assert listed[other] == original.summaries[other]
        await goes_on(store, LIVE if run != LIVE else ASKS)
        return what
    finally:
        store.close()


async def after_pages(original: Original, body: bytes) -> list[str]:
    """What became of every run of a file whose pages were damaged."""
    try:
        store = opened(original.file(body))
    except Refused as refusal:
        return [refused("", str(refusal))] * len(MACHINES)
    try:
        return [await judged(original, store, run) for run in MACHINES]
    finally:
        store.close()


@pytest.fixture
async def original(tmp_path: Path) -> Original:
    original = Original(tmp_path)
    await original.prepare()
    return original


async def damaged_rows(original: Original, number: int, seed: int) -> Counter[tuple[str, str]]:
    chance, found, names = Random(seed), Counter[tuple[str, str]](), list(ROWS)
    while found.total() < number:
        name, run = names[found.total() % len(names)], chance.choice(list(MACHINES))
        body = original.with_rows(ROWS[name], chance, run)
        if body is not None:
            found[name, await after_rows(original, body, run)] += 1
    return found


async def damaged_pages(original: Original, number: int, seed: int) -> Counter[tuple[str, str]]:
    chance, found, names = Random(seed), Counter[tuple[str, str]](), list(PAGES)
    for nth in range(number):
        name = names[nth % len(names)]
        for what in await after_pages(original, PAGES[name](original.body, chance)):
            found[name, what] += 1
    return found


async def damaged_logs(original: Original, number: int, seed: int) -> Counter[str]:
    """What became of the runs of files whose write-ahead log was damaged: entries at the end may be gone, no others."""
    chance, found = Random(seed), Counter[str]()
    for nth in range(number):
        damage = list(PAGES.values())[nth % 3]
        store = opened(original.file(original.unsettled, damage(original.log, chance)))
        for run, machine in MACHINES.items():
            kept = await store.entries(run)
            assert kept == original.entries[run][: len(kept)]
            if kept:
                head = await reopen(hall_of(fetch, store, MovableClock()), run, machine)
                assert head.seq == len(kept) - 1
            found["whole" if kept == original.entries[run] else "an earlier moment" if kept else "not begun"] += 1
        store.close()
    return found


def figures(what: str, found: Counter[tuple[str, str]]) -> list[str]:
    """The counts in all, and kind by kind."""
    kinds = {name: Counter[str]() for name, _ in found}
    total = Counter[str]()
    for (name, end), number in found.items():
        kinds[name][end] += number
        total[end] += number
    return [f"{name}: {dict(sorted(ends.items()))}" for name, ends in ((what, total), *kinds.items())]


@pytest.mark.anyio
async def test_seven_hundred_damaged_rows_each_harm_one_run_at_most_and_never_unnoticed(
    original: Original, figure: list[str]
) -> None:
    found = await damaged_rows(original, 700, 1)
    figure.extend(figures("700 damaged rows", found))
    ends = {name: {end for one, end in found if one == name} for name in ROWS}
    assert ends["head"] == {"made anew"}
    assert ends["record"] == ends["body of an entry"] == ends["place of an entry"] == ends["texts"] == {"run refused"}
    assert ends["seals"] == ends["rows"] == {"made anew", "run refused"}
    assert ends["holding"] == {"as it was", "run refused"}


@pytest.mark.anyio
async def test_three_hundred_damaged_files_never_show_a_run_as_it_was_not(
    original: Original, figure: list[str]
) -> None:
    found = await damaged_pages(original, 300, 2)
    figure.extend(figures("300 damaged files with 4 runs each", found))
    assert found.total() == 300 * len(MACHINES)


@pytest.mark.anyio
async def test_a_damaged_log_leaves_every_run_at_a_moment_at_which_it_really_was(
    original: Original, figure: list[str]
) -> None:
    found = await damaged_logs(original, 60, 3)
    figure.append(f"60 damaged write-ahead logs with 4 runs each: {dict(found)}")
    assert found.total() == 60 * len(MACHINES)


@pytest.mark.soak
@pytest.mark.anyio
async def test_twenty_thousand_damages(original: Original, figure: list[str]) -> None:
    figure.extend(figures("5,000 damaged rows", await damaged_rows(original, 5_000, 11)))
    figure.extend(figures("14,000 damaged files", await damaged_pages(original, 14_000, 12)))
    figure.append(f"1,000 damaged logs: {dict(await damaged_logs(original, 1_000, 13))}")


@pytest.mark.anyio
async def test_a_long_text_that_was_damaged_is_put_right_by_the_next_commit_that_needs_it(original: Original) -> None:
    store = opened(original.file(original.body))
    store._db.execute("UPDATE texts SET body = 'rubbish'")
    assert (await store.load(OVER)).head == {}
    await store.repair(OVER, original.heads[OVER])
    assert (await store.load(OVER)).head["snapshot"]["data"]["got"][1].endswith(LONG)
    assert await store.entries(OVER) == original.entries[OVER]
    store.close()


# commands on a store in which one run is damaged

DAMAGES = {
    "an unreadable record": "UPDATE runs SET record = x'7b' WHERE run = 'mine'",
    "a lost head": "UPDATE runs SET head = x'' WHERE run = 'mine'",
    "a changed entry": "UPDATE entries SET body = x'7b7d' WHERE run = 1 AND seq = 3",
    "lost entries": "DELETE FROM entries WHERE run = 1",
    "an unreadable holder": "UPDATE runs SET owner = x'ff', token = 'x' WHERE run = 'mine'",
    "an unreadable name": "UPDATE runs SET run = CAST(x'ff6d' AS TEXT) WHERE run = 'mine'",
}
ENDS = {
    "an unreadable record": [1, 1, 1],
    "a lost head": [0, 0, 0],
    "a changed entry": [1, 0, 1],
    "lost entries": [1, 0, 1],
    "an unreadable holder": [1, 1, 1],
    "an unreadable name": [1, 1, 1],
}
UNSUMMED = ("a changed entry", "lost entries")


@pytest.fixture
def two_runs(place: Place, here: Moot) -> Moot:
    for run in (RUN, "other"):
        assert here("run", "machines.py:WALK", "ada", "--run-id", run).code == 0
    return here


@pytest.mark.parametrize("name", DAMAGES)
def test_ls_shows_every_run_where_one_is_damaged(place: Place, two_runs: Moot, name: str) -> None:
    place.change(DAMAGES[name])
    other, mine = two_runs("ls", "--json").json
    assert (other["run"], other["status"], other["seq"]) == ("other", "done", STEPS)
    assert mine["status"] == ("done" if name in UNSUMMED else "damaged")


@pytest.mark.parametrize("name", DAMAGES)
def test_prune_deletes_the_others_where_one_is_damaged(place: Place, two_runs: Moot, name: str) -> None:
    place.change(DAMAGES[name])
    ran = two_runs("prune", "--days", "0", "--yes", "--json")
    assert ran.code == 0, ran.err
    assert "other" in ran.json["runs"]


@pytest.mark.parametrize("name", DAMAGES)
def test_every_command_on_a_damaged_run_ends_with_a_sentence(place: Place, two_runs: Moot, name: str) -> None:
    place.change(DAMAGES[name])
    said = [two_runs(command, RUN) for command in ("show", "resume", "export")]
    assert [ran.code for ran in said] == ENDS[name]
    assert all(ran.code == 0 or (RUN in ran.err and "Traceback" not in ran.err) for ran in said)


def test_real_commands_on_a_store_with_an_unreadable_record_go_on_with_the_others(place: Place, two_runs: Moot) -> None:
    place.change(DAMAGES["an unreadable record"])
    assert [one["status"] for one in place.listed()] == ["done", "damaged"]
    ran = place.moot("resume", RUN)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"moot resume: run {RUN}: the record of how it began")
    assert place.moot("prune", "--days", "0", "--yes").stderr == "2 runs deleted\n"
