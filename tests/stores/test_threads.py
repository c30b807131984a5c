"""A thread is read by window, from an index that the store keeps beside the journal."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import Broken
from moothall.kernel.step import Append, Snapshot, Tail
from moothall.runtime.journal import Entry, Head
from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore
from tests.stores.values import entry, head, record

LONG = "long " * 300
SAID = [["a0", "a1"], [], ["a2"], [LONG, "a4", "a5"], ["a6"]]
"""What the entries of a run append to the thread `talk`."""
ALL = [message for messages in SAID for message in messages]
OLD = (
    *(f"DROP TABLE {table}" for table in ("threads", "records", "outbox", "mirrors", "turns")),
    "DROP INDEX entries_by_cause",
    *(f"ALTER TABLE runs DROP COLUMN {column}" for column in ("queue", "tenant", "priority")),
    "PRAGMA user_version = 2",
)
"""Makes of a file what it would have been before there was an index of threads."""


def saying(seq: int, *messages: Any, thread: str = "talk") -> Entry:
    """An entry that appends these messages, and one to a thread beside."""
    appends = (Append("aside", f"aside {seq}"), *(Append(thread, message) for message in messages))
    return replace(entry(seq), appends=appends)


def grown(seq: int, count: int, thread: str = "talk") -> Head:
    """The head after this entry, when so much was said."""
    snapshot = Snapshot((f"state-{seq}",), None, threads={thread: Tail(count, "x"), "aside": Tail(seq + 1, "y")})
    return replace(head(seq), snapshot=snapshot)


async def tell(store: Store, run: str, said: Sequence[Sequence[Any]] = SAID, first: int = 0, count: int = 0) -> None:
    """Have a run say this, entry by entry; its last two entries share a commit."""
    entries = [saying(first + at, *messages) for at, messages in enumerate(said)]
    for new in entries[:-2]:
        count += len(said[new.seq - first])
        if new.seq == 0:
            await store.begin(record(run), grown(0, count), new)
        else:
            await store.commit(run, grown(new.seq, count), new)
    count += sum(len(messages) for messages in said[-2:])
    await store.commit(run, grown(entries[-1].seq, count), entries[-1], earlier=(entries[-2],))


async def fork(store: Store, run: str, origin: str, shared: int, count: int) -> None:
    """Fork a run behind an entry, after which so much was said."""
    await store.begin(replace(record(run), origin=origin, shared=shared), grown(shared + 1, count), saying(shared + 1))


@pytest.mark.anyio
@pytest.mark.parametrize("start", range(len(ALL) + 1))
async def test_every_window_of_a_thread_has_its_messages_in_order(each_store: Store, start: int) -> None:
    await tell(each_store, "one")
    for end in range(start, len(ALL) + 1):
        assert await each_store.thread("one", "talk", start, end) == ALL[start:end]
    assert await each_store.thread("one", "aside", 1, 4) == ["aside 1", "aside 2", "aside 3"]


@pytest.mark.anyio
async def test_threads_of_other_runs_and_names_do_not_mix(each_store: Store) -> None:
    await tell(each_store, "one")
    await tell(each_store, "two", [["b0"], ["b1"], ["b2"]])
    assert await each_store.thread("two", "talk", 0, 3) == ["b0", "b1", "b2"]
    assert await each_store.thread("one", "talk", 0, 7) == ALL
    await each_store.forget("one")
    assert await each_store.thread("two", "talk", 1, 3) == ["b1", "b2"]


@pytest.mark.anyio
@pytest.mark.parametrize(("run", "thread", "end"), [("one", "talk", 8), ("one", "nothing", 1)])
async def test_messages_that_are_not_there_are_reported_as_missing(
    each_store: Store, run: str, thread: str, end: int
) -> None:
    await tell(each_store, "one")
    with pytest.raises(Broken, match=f"run one: messages of its thread '{thread}' are missing"):
        await each_store.thread(run, thread, 0, end)


@pytest.mark.anyio
async def test_a_fork_has_what_was_said_before_it_and_its_own(each_store: Store) -> None:
    await tell(each_store, "one")
    await fork(each_store, "two", "one", 2, 3)
    assert await each_store.thread("two", "talk", 1, 3) == ["a1", "a2"]
    await tell(each_store, "two", [["b3"], ["b4"]], first=4, count=3)
    await fork(each_store, "three", "two", 4, 4)
    await tell(each_store, "three", [["c4"], ["c5"]], first=6, count=4)
    assert await each_store.thread("two", "talk", 0, 5) == ["a0", "a1", "a2", "b3", "b4"]
    assert await each_store.thread("three", "talk", 1, 6) == ["a1", "a2", "b3", "c4", "c5"]
    assert await each_store.thread("three", "talk", 5, 6) == ["c5"]
    assert await each_store.thread("one", "talk", 0, 7) == ALL


# the file


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


async def written(file: Path) -> None:
    """A store with a run and a fork of it."""
    store = SqliteStore(file, b"key")
    await tell(store, "one")
    await fork(store, "two", "one", 2, 3)
    await tell(store, "two", [["b3"], ["b4"]], first=4, count=3)
    store.close()


async def read(file: Path) -> tuple[list[Any], list[Any]]:
    store = SqliteStore(file, b"key")
    try:
        return await store.thread("one", "talk", 0, 7), await store.thread("two", "talk", 0, 5)
    finally:
        store.close()


THREADS = (ALL, ["a0", "a1", "a2", "b3", "b4"])


@pytest.mark.anyio
async def test_a_file_from_before_the_index_is_filled_when_it_is_opened(file: Path) -> None:
    await written(file)
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute("SELECT * FROM threads ORDER BY run, thread, start").fetchall()
    change(file, *OLD)
    assert await read(file) == THREADS
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT * FROM threads ORDER BY run, thread, start").fetchall() == rows


@pytest.mark.anyio
async def test_a_file_from_before_the_index_opens_although_an_entry_is_damaged(file: Path) -> None:
    await written(file)
    change(file, *OLD, "UPDATE entries SET body = CAST('\"appends\"' AS BLOB) WHERE run = 1 AND seq = 3")
    store = SqliteStore(file, b"key")
    assert await store.thread("two", "talk", 0, 5) == THREADS[1]
    with pytest.raises(Broken, match="run one: entry 3"):
        await store.thread("one", "talk", 0, 7)
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM threads",
        "DELETE FROM threads WHERE seq = 3",
        "DELETE FROM threads WHERE start = 0",
        "UPDATE threads SET start = start + 10",
        "UPDATE threads SET seq = 0 WHERE seq = 2",
        "UPDATE threads SET seq = seq + 1",
        "UPDATE threads SET thread = 'other' WHERE thread = 'talk'",
        "UPDATE threads SET seal = x'00'",
    ],
)
async def test_where_the_index_is_damaged_the_journal_is_read(file: Path, damage: str) -> None:
    await written(file)
    change(file, damage)
    assert await read(file) == THREADS


@pytest.mark.anyio
async def test_a_message_that_was_changed_in_the_file_is_not_shown(file: Path) -> None:
    await written(file)
    change(file, "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'a2', 'A2') AS BLOB) WHERE seq = 2")
    with pytest.raises(Broken, match="run one: entry 2 of its journal was changed"):
        await read(file)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["find", "find_end", "window"])
async def test_what_every_turn_looks_up_is_found_by_an_index(file: Path, name: str) -> None:
    await written(file)
    store = SqliteStore(file, b"key")
    statement = store._sql[name]
    with closing(sqlite3.connect(file)) as db:
        values: Any = {"run": 1, "thread": "talk", "start": 0, "end": 1}
        given = values if name == "window" else ("one", "c", 1)[: statement.count("?")]
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + statement, given)]
    store.close()
    assert not [line for line in plan if line.startswith("SCAN")], plan
    index = {
        "find": "INDEX entries_by_cause",
        "find_end": "(run=? AND seq>?)",
        "window": "PRIMARY KEY (run=? AND thread=?",
    }
    assert [line for line in plan if index[name] in line], plan


@pytest.mark.anyio
@pytest.mark.parametrize("cause", ["tell-1", "3.0", "0.1-began-1", "3x.5", "77.0", "9" * 30 + ".1", "3e1f", ""])
async def test_every_cause_is_found_again_and_no_other(each_store: Store, cause: str) -> None:
    await each_store.begin(record("one"), head(0), entry(0))
    for seq in range(1, 8):
        await each_store.commit("one", head(seq), replace(entry(seq), cause=f"{seq - 1}.0"))
    assert await each_store.find("one", cause) == (4 if cause == "3.0" else None)
    if cause != "3.0":
        await each_store.commit("one", head(8), replace(entry(8), cause=cause))
        assert await each_store.find("one", cause) == 8
