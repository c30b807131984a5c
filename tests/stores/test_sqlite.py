"""The SQLite file itself: two writers, damage, and files that are something else."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from moothall.errors import Broken, Conflict, EffectFailed, MoothallError, Refused
from moothall.runtime.ports import Gone
from moothall.stores.sqlite import SqliteStore
from tests.stores.values import entry, head, record

NOBODY = 65534


async def begun(file: Path) -> None:
    store = SqliteStore(file)
    await store.begin(record(), head(0), entry(0))
    store.close()


def change(file: Path, statement: str) -> None:
    """Do to the file what a clumsy hand would."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(statement)
    db.close()


@pytest.mark.anyio
async def test_what_was_committed_is_there_for_the_next_process(file: Path) -> None:
    await begun(file)
    store = SqliteStore(file)
    await store.commit("one", head(1), entry(1))
    store.close()
    again = SqliteStore(file)
    assert (await again.load("one")).head["seq"] == 1
    assert len(await again.entries("one")) == 2
    again.close()


@pytest.mark.anyio
async def test_of_two_writers_the_second_conflicts_and_nothing_of_it_is_kept(file: Path) -> None:
    await begun(file)
    one, other = SqliteStore(file), SqliteStore(file)
    await one.commit("one", head(1, "winner"), entry(1, "winner"))
    with pytest.raises(Conflict):
        await other.commit("one", head(1, "loser"), entry(1, "loser"))
    for store in (one, other):
        assert (await store.load("one")).head["snapshot"]["data"] == "winner"
        assert "loser" not in str(await store.entries("one"))
        assert len(await store.entries("one")) == 2
        store.close()


@pytest.mark.anyio
async def test_of_two_who_begin_the_same_run_the_second_conflicts(file: Path) -> None:
    one, other = SqliteStore(file), SqliteStore(file)
    await one.begin(record(), head(0, "winner"), entry(0))
    with pytest.raises(Conflict, match="choose another id, or resume it"):
        await other.begin(record(), head(0, "loser"), entry(0))
    assert (await other.load("one")).head["snapshot"]["data"] == "winner"
    one.close()
    other.close()


@pytest.mark.anyio
async def test_the_loser_of_a_conflict_can_write_again_at_once(file: Path) -> None:
    await begun(file)
    one, other = SqliteStore(file), SqliteStore(file)
    await one.commit("one", head(1), entry(1))
    with pytest.raises(Conflict):
        await other.commit("one", head(1), entry(1))
    await other.commit("one", head(2), entry(2))
    await one.load("one")
    await one.commit("one", head(3), entry(3))
    assert [found["seq"] for found in await one.entries("one")] == [0, 1, 2, 3]
    one.close()
    other.close()


@pytest.mark.anyio
async def test_an_entry_that_cannot_be_kept_takes_its_head_back_with_it(file: Path) -> None:
    await begun(file)
    change(file, "INSERT INTO entries (run, seq, cause, body, seal) VALUES (1, 1, '', x'7b7d', x'00')")
    store = SqliteStore(file)
    with pytest.raises(MoothallError):
        await store.commit("one", head(1), entry(1))
    assert (await store.load("one")).seq == 0
    store.close()


@pytest.mark.anyio
async def test_every_commit_is_on_the_disk_before_it_counts(file: Path) -> None:
    store = SqliteStore(file)
    db = store._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_a_file_that_is_no_database_is_refused_with_a_remedy(file: Path) -> None:
    file.write_text("dear diary, " * 200)
    with pytest.raises(Refused) as refusal:
        SqliteStore(file)
    assert str(refusal.value).startswith(f"{file} cannot be opened as a store: ")
    assert "name another with --store sqlite:FILE" in str(refusal.value)
    assert file.read_text().startswith("dear diary")


def test_a_store_whose_pages_are_damaged_is_refused_with_the_advice_to_bring_back_a_copy(file: Path) -> None:
    SqliteStore(file).close()
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes(byte ^ 0x5A for byte in content[100:]))
    with pytest.raises(Refused, match="bring back a copy of it, or name another with --store sqlite:FILE"):
        SqliteStore(file)


@pytest.fixture
def sealed_off() -> Iterator[Path]:
    """A folder that this process may read and not write, even where it is started as root."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        os.seteuid(os.getuid())
        folder.chmod(0o755)


def test_a_store_in_a_folder_that_cannot_be_written_is_refused_with_a_remedy_that_helps(
    sealed_off: Path, file: Path
) -> None:
    asyncio.run(begun(sealed_off / "runs.db"))
    (sealed_off / "runs.db").chmod(0o644)
    sealed_off.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    with pytest.raises(Refused, match="readonly database; copy it to a folder that you may write to"):
        SqliteStore(sealed_off / "runs.db")
    os.seteuid(os.getuid())
    file.write_bytes((sealed_off / "runs.db").read_bytes())
    copied = SqliteStore(file)
    assert len(asyncio.run(copied.entries("one"))) == 1
    copied.close()


def test_a_folder_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="name another with --store"):
        SqliteStore(tmp_path)


def test_a_path_through_a_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("hello")
    with pytest.raises(Refused, match="name another with --store"):
        SqliteStore(tmp_path / "note" / "runs.db")


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a" / "b" / "runs.db").close()
    assert (tmp_path / "a" / "b" / "runs.db").exists()


@pytest.mark.parametrize(
    "tables",
    [
        ("bookmarks (url TEXT)",),
        ("runs (run TEXT PRIMARY KEY, miles REAL)",),
        ("runs (run TEXT)", "entries (day TEXT)"),
    ],
    ids=["none of ours", "one of our names", "both of our names"],
)
def test_a_database_of_another_program_is_refused_and_left_alone(file: Path, tables: tuple[str, ...]) -> None:
    for table in tables:
        change(file, f"CREATE TABLE {table}")
    with pytest.raises(Refused, match="name another with --store"):
        SqliteStore(file)
    db = sqlite3.connect(file)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (len(tables),)
    db.close()


def test_many_processes_may_open_a_new_store_at_the_same_moment(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from moothall.stores.sqlite import SqliteStore; sys.stdin.read(); "
        "SqliteStore(Path(sys.argv[1])).close()"
    )
    opening = [
        subprocess.Popen([sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    for process in opening:
        assert process.stdin is not None
        process.stdin.close()
    for process in opening:
        with process:
            assert process.stderr is not None
            complaint = process.stderr.read().decode()
        assert process.returncode == 0, complaint


@pytest.mark.anyio
@pytest.mark.parametrize("damage", ["{half", "", "[]", '{"run": 3}', "\x00\xff"])
async def test_a_damaged_record_is_broken_and_not_a_surprise(file: Path, damage: str) -> None:
    await begun(file)
    change(file, f"UPDATE runs SET record = x'{damage.encode('latin-1').hex()}'")
    store = SqliteStore(file)
    with pytest.raises(Broken, match="run one: the record of how it began"):
        await store.load("one")
    [listed] = await store.runs()
    assert (listed.record.run, listed.record.machine, listed.record.digest, listed.head) == ("one", "walk", "", {})
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("damage", ["{half", "", "\x00\xff"])
async def test_a_damaged_head_counts_as_missing_and_a_damaged_entry_is_named(file: Path, damage: str) -> None:
    await begun(file)
    change(file, f"UPDATE runs SET head = x'{damage.encode('latin-1').hex()}'")
    change(file, f"UPDATE entries SET body = x'{damage.encode('latin-1').hex()}'")
    store = SqliteStore(file)
    assert (await store.load("one")).head == {}
    with pytest.raises(Broken, match="run one: entry 0 of its journal was changed"):
        await store.entries("one")
    store.close()


def overwrite(file: Path, page: int) -> None:
    """Write rubbish over the file from this page on."""
    body = bytearray(file.read_bytes())
    body[4096 * page :] = b"\xa5" * (len(body) - 4096 * page)
    file.write_bytes(body)


async def read_all(file: Path) -> None:
    store = SqliteStore(file)
    try:
        await store.runs()
        await store.entries("run-39")
    finally:
        store.close()


@pytest.mark.anyio
async def test_a_file_that_is_damaged_inside_is_broken_and_not_a_surprise(file: Path) -> None:
    store = SqliteStore(file)
    for number in range(40):
        await store.begin(record(f"run-{number}"), head(0, "x" * 2_000), entry(0))
    store.close()
    overwrite(file, 3)
    with pytest.raises(Broken, match="the store is damaged"):
        await read_all(file)


@pytest.mark.anyio
async def test_a_file_that_somebody_else_holds_is_a_failure_of_the_world_and_the_run_stands(file: Path) -> None:
    await begun(file)
    store = SqliteStore(file)
    store._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(EffectFailed, match="the run is as it was before"):
        await store.commit("one", head(1), entry(1))
    other.execute("ROLLBACK")
    await store.commit("one", head(1), entry(1))
    other.close()
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "taking", [Path.unlink, lambda file: (file.parent / "other.db").replace(file)], ids=["deleted", "replaced"]
)
async def test_nothing_is_written_any_more_once_it_is_seen_that_the_file_was_taken_away(
    file: Path, taking: Any
) -> None:
    (file.parent / "other.db").touch()
    store = SqliteStore(file)
    await store.begin(record(), head(0), entry(0))
    taking(file)
    with pytest.raises(Gone, match="its file was deleted or replaced while it was in use"):
        await store.seq("one")
    with pytest.raises(EffectFailed, match="the store could not write: its file was deleted or replaced"):
        await store.commit("one", head(1), entry(1))
    store.close()


@pytest.mark.anyio
async def test_a_store_is_still_there_for_who_has_gone_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(Path("runs.db"))
    await store.begin(record(), head(0), entry(0))
    monkeypatch.chdir("/")
    assert await store.seq("one") == 0
    store.close()


def test_a_new_store_and_its_folder_are_for_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "moothall" / "runs.db"
    before = os.umask(0o002)
    try:
        store = SqliteStore(file, anchors=tmp_path / "anchors")
    finally:
        os.umask(before)
    made = [one for one in tmp_path.rglob("*") if one != tmp_path]
    store.close()
    assert {one.name for one in made} >= {"state", "moothall", "runs.db", "runs.db-wal"}
    assert not [one for one in (file, file.parent, file.parent.parent) if one.stat().st_mode & 0o077]
