"""What is read back is what was written, or it is said that it is not; never anything in between."""

import random
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import Broken, Conflict
from moothall.kernel.codec import encode
from moothall.stores.anchors import PLACES
from moothall.stores.plain import LONG, to_bytes
from moothall.stores.seals import Sealing
from moothall.stores.sqlite import SqliteStore
from tests.stores.values import entry, head, record

ENTRIES = 8
KEY = b"only we know it"
LENGTHY = "The sea rises. " * 60
Damage = Callable[[sqlite3.Connection, random.Random], None]


async def walked(store: SqliteStore, run: str, values: Mapping[int, Any] | None = None) -> None:
    """A run with eight entries, some of which say something."""
    said = values or {}
    await store.begin(record(run), head(0, said.get(0)), entry(0, said.get(0)))
    for seq in range(1, ENTRIES):
        await store.commit(run, head(seq, said.get(seq)), entry(seq, said.get(seq)))


def changed(found: bytes, chance: random.Random) -> bytes:
    """These bytes with one byte changed, put in, left out, or two of them swapped."""
    place, kind = chance.randrange(len(found)), chance.randrange(4)
    before, here, after = found[:place], found[place : place + 1], found[place + 1 :]
    if kind == 0:
        return before + bytes((here[0] ^ chance.randrange(1, 256),)) + after
    if kind == 1:
        return before + bytes((chance.randrange(256),)) + here + after
    if kind == 2:
        return before + after
    return before + after[:1] + here + after[1:]


def _bytes(table: str, column: str) -> Damage:
    def damage(db: sqlite3.Connection, chance: random.Random) -> None:
        where = "rowid = ?" if table != "entries" else "run = 1 AND seq = ?"
        place = chance.randrange(ENTRIES) if table == "entries" else 1
        (found,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", (place,)).fetchone()
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed(found, chance), place))

    return damage


def _long_text(db: sqlite3.Connection, chance: random.Random) -> None:
    digest, text = db.execute("SELECT digest, CAST(body AS BLOB) FROM texts WHERE run = 1").fetchone()
    broken = changed(text, chance)
    db.execute("UPDATE texts SET body = CAST(? AS TEXT) WHERE run = 1 AND digest = ?", (broken, digest))


def _lost_text(db: sqlite3.Connection, chance: random.Random) -> None:
    db.execute("DELETE FROM texts WHERE run = 1")


def _swapped(db: sqlite3.Connection, chance: random.Random) -> None:
    """Two entries change places, with or without their seals."""
    one, other = chance.sample(range(ENTRIES), 2)
    seals = chance.random() < 0.5
    read = "SELECT body, seal FROM entries WHERE run = 1 AND seq = ?"
    found = {seq: db.execute(read, (seq,)).fetchone() for seq in (one, other)}
    for here, there in ((one, other), (other, one)):
        seal = found[there if seals else here][1]
        db.execute("UPDATE entries SET body = ?, seal = ? WHERE run = 1 AND seq = ?", (found[there][0], seal, here))


def _deleted(db: sqlite3.Connection, chance: random.Random) -> None:
    db.execute("DELETE FROM entries WHERE run = 1 AND seq = ?", (chance.randrange(ENTRIES),))


def _closed_gap(db: sqlite3.Connection, chance: random.Random) -> None:
    """An entry is taken out, and those behind it move up."""
    gone = chance.randrange(ENTRIES)
    db.execute("DELETE FROM entries WHERE run = 1 AND seq = ?", (gone,))
    for seq in range(gone + 1, ENTRIES):
        db.execute("UPDATE entries SET seq = ? WHERE run = 1 AND seq = ?", (seq - 1, seq))


def _inserted(db: sqlite3.Connection, chance: random.Random) -> None:
    """A copy of an entry at the end, or from the other run in the place of one."""
    if chance.random() < 0.5:
        copied = chance.randrange(ENTRIES)
        copy = "INSERT INTO entries SELECT 1, ?, cause, body, seal FROM entries WHERE run = 1 AND seq = ?"
        db.execute(copy, (ENTRIES, copied))
        return
    place = chance.randrange(ENTRIES)
    db.execute("DELETE FROM entries WHERE run = 1 AND seq = ?", (place,))
    db.execute("INSERT INTO entries SELECT 1, seq, cause, body, seal FROM entries WHERE run = 2 AND seq = ?", (place,))


def _cut(db: sqlite3.Connection, chance: random.Random) -> None:
    """Only the first entries are left, or none."""
    db.execute("DELETE FROM entries WHERE run = 1 AND seq >= ?", (chance.randrange(ENTRIES),))


DAMAGES: Mapping[str, Damage] = {
    "bytes of an entry": _bytes("entries", "body"),
    "bytes of a seal": _bytes("entries", "seal"),
    "bytes of a long text": _long_text,
    "a lost text": _lost_text,
    "swapped entries": _swapped,
    "a deleted entry": _deleted,
    "a deleted entry and the gap closed": _closed_gap,
    "an inserted entry": _inserted,
    "the end cut off": _cut,
}
HEAD_DAMAGES: Mapping[str, Damage] = {
    "bytes of the head": _bytes("runs", "head"),
    "bytes of its seal": _bytes("runs", "seal"),
    "bytes of the tip": _bytes("runs", "tip"),
}


def rows(db: sqlite3.Connection) -> list[list[Any]]:
    """All that a file holds."""
    return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("runs", "entries", "texts")]


class Copies:
    """A file with two runs, copied for every damage; the second run must stay as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count, self._whole = folder, 0, b""
        self.entries: list[Mapping[str, Any]] = []
        self.head: Mapping[str, Any] = {}
        self.other: list[Mapping[str, Any]] = []

    async def prepare(self) -> None:
        store = SqliteStore(self._folder / "whole.db", KEY, durability="normal")
        await walked(store, "one", {0: "short", 3: LENGTHY, 5: "\x00a NUL first", 7: LENGTHY})
        await walked(store, "two", {2: LENGTHY, 4: "quite another thing"})
        self.entries, self.other = await store.entries("one"), await store.entries("two")
        self.head = (await store.load("one")).head
        store.close()
        db = sqlite3.connect(self._folder / "whole.db")
        db.execute("PRAGMA journal_mode=DELETE")
        self._whole = db.serialize()
        db.close()

    def damaged(self, damage: Damage, chance: random.Random) -> SqliteStore | None:
        """A store on a damaged copy; None where the damage changed nothing."""
        db = sqlite3.connect(":memory:")
        db.deserialize(self._whole)
        db.text_factory = bytes
        before = rows(db)
        damage(db, chance)
        if rows(db) == before:
            db.close()
            return None
        db.commit()
        file = self._folder / f"copy-{self._count}.db"
        self._count += 1
        file.write_bytes(db.serialize())
        db.close()
        return SqliteStore(file, KEY, durability="normal")


@pytest.mark.anyio
async def test_three_hundred_damages_are_all_noticed_and_the_other_run_stays_readable(tmp_path: Path) -> None:
    copies, chance, noticed = Copies(tmp_path), random.Random(4), 0
    await copies.prepare()
    names = list(DAMAGES)
    while noticed < 300:
        name = names[noticed % len(names)]
        store = copies.damaged(DAMAGES[name], chance)
        if store is None:
            continue
        with pytest.raises(Broken):
            pytest.fail(f"{name} went unnoticed: {await store.entries('one')}")
        assert (await store.load("one")).head in ({}, copies.head)
        assert await store.entries("two") == copies.other
        assert [one.record.run for one in await store.runs()] == ["two", "one"]
        store.close()
        noticed += 1


@pytest.mark.anyio
@pytest.mark.parametrize("name", HEAD_DAMAGES)
async def test_a_head_that_was_changed_counts_as_missing_and_the_journal_stays_whole(tmp_path: Path, name: str) -> None:
    copies, chance = Copies(tmp_path), random.Random(5)
    await copies.prepare()
    for _ in range(20):
        store = copies.damaged(HEAD_DAMAGES[name], chance)
        if store is not None:
            assert (await store.load("one")).head == {}
            assert await store.entries("one") == copies.entries
            store.close()


@pytest.mark.anyio
async def test_a_head_of_another_entry_counts_as_missing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY)
    await walked(store, "one")
    store._db.execute("UPDATE runs SET seq = 3")
    assert (await store.load("one")).head == {}
    with pytest.raises(Broken):
        await store.entries("one")
    store.close()


@pytest.mark.anyio
async def test_a_journal_read_from_any_entry_on_is_the_end_of_the_whole(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY)
    await walked(store, "one", {3: LENGTHY})
    whole = await store.entries("one")
    for start in range(ENTRIES + 3):
        assert await store.entries("one", start) == whole[start:]
    assert await store.entries("nobody") == []
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [0, 1, 2, 3, ENTRIES, ENTRIES + 9])
async def test_a_journal_read_in_pieces_is_the_whole(tmp_path: Path, limit: int) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY)
    await walked(store, "one", {3: LENGTHY})
    whole = await store.entries("one")
    for start in range(ENTRIES + 3):
        assert await store.entries("one", start, limit) == whole[start : start + limit]
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("damage", "pieces_before"),
    [
        ("UPDATE entries SET body = x'7b7d' WHERE seq = 3", 1),
        ("DELETE FROM entries WHERE seq = 3", 1),
        ("UPDATE entries SET seal = x'00' WHERE seq = 3", 1),
        ("UPDATE runs SET seq = 3", 2),
        ("UPDATE runs SET seq = 'many'", 0),
    ],
)
async def test_a_piece_of_a_journal_is_checked_like_the_whole(tmp_path: Path, damage: str, pieces_before: int) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY)
    await walked(store, "one")
    store._db.execute(damage)
    for piece in range(pieces_before):
        await store.entries("one", 2 * piece, 2)
    with pytest.raises(Broken, match="run one: entr"):
        await store.entries("one", 2 * pieces_before, 2)
    store.close()


@pytest.mark.anyio
async def test_who_has_another_key_can_read_a_run_but_not_vouch_for_it(tmp_path: Path) -> None:
    anchors = tmp_path / "anchors"
    store = SqliteStore(tmp_path / "runs.db", KEY, anchors=anchors)
    await walked(store, "one")
    written = await store.entries("one")
    assert (await store.audit("one")).verdict == "intact"
    store.close()
    other = SqliteStore(tmp_path / "runs.db", b"a guess", anchors=anchors)
    assert await other.entries("one") == written
    assert (await other.audit("one")).verdict == "cannot tell"
    other.close()


# long texts


async def said(store: SqliteStore, value: Any, times: int = 1) -> None:
    """A run whose entries and heads say this so many times."""
    await store.begin(record(), head(0), entry(0))
    for seq in range(1, times + 1):
        await store.commit("one", head(seq, value), entry(seq, value))


def texts(store: SqliteStore) -> int:
    found: int = store._db.execute("SELECT COUNT(*) FROM texts").fetchone()[0]
    return found


@pytest.mark.anyio
async def test_a_long_text_is_kept_once_and_comes_back_exactly(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    value = {"deep": [{"down": LENGTHY}, LENGTHY, "short"]}
    await said(store, value, times=5)
    assert texts(store) == 1
    assert [one["event"]["data"] for one in await store.entries("one", 1)] == [value] * 5
    assert (await store.load("one")).head["snapshot"]["data"] == value
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(("length", "kept"), [(LONG, 0), (LONG + 1, 1)])
async def test_only_texts_beyond_the_limit_are_kept_apart(tmp_path: Path, length: int, kept: int) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    await said(store, "x" * length)
    assert texts(store) == kept
    assert (await store.entries("one"))[1]["event"]["data"] == "x" * length
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    [
        "\x00",
        "\x00\x00",
        "\x00" + "ab" * 16,
        "\x00\x00" + LENGTHY,
        "\x00" + LENGTHY,
        "a\x00b",
        "\\u0000" + "ab" * 16,
        "ä😀\u2028" * 300,
        ["\x00x", {"\x00key": "\x00y"}, "\x00" * 600],
        {LENGTHY: LENGTHY},
        "",
        None,
    ],
    ids=lambda value: ascii(value)[:24].replace("\\", "/"),
)
async def test_any_text_comes_back_exactly(tmp_path: Path, value: Any) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    await said(store, value)
    assert (await store.entries("one"))[1]["event"]["data"] == value
    assert (await store.load("one")).head["snapshot"]["data"] == value
    await store.repair("one", head(1, value))
    assert (await store.load("one")).head["snapshot"]["data"] == value
    store.close()


@pytest.mark.anyio
async def test_a_forgotten_run_takes_its_texts_along_and_leaves_those_of_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    for run in ("one", "two"):
        await walked(store, run, {1: LENGTHY})
    assert texts(store) == 2
    await store.forget("one")
    assert texts(store) == 1
    assert (await store.entries("two"))[1]["event"]["data"] == LENGTHY
    store.close()


# anchors


@pytest.mark.anyio
async def test_who_comes_late_says_nothing_wrong_to_the_anchors(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "runs.db", KEY, anchors=tmp_path / "anchors") for _ in range(2)]
    first, late = stores
    await walked(first, "one")
    await late.load("one")
    seq = await first.seq("one")
    await first.commit("one", head(seq + 1), entry(seq + 1))
    with pytest.raises(Conflict):  # it saw the new entry, and not the new head
        await late.commit("one", head(seq + 2), entry(seq + 2))
    assert [(await store.audit("one")).verdict for store in stores] == ["intact", "intact"]
    for store in stores:
        store.close()


@pytest.mark.anyio
async def test_a_line_that_was_cut_off_takes_no_other_with_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY, anchors=tmp_path / "anchors")
    await walked(store, "one")
    store.close()
    file = next(file for file in (tmp_path / "anchors").iterdir() if file.name != PLACES)
    file.write_bytes(file.read_bytes() + b'["rests","one",9,"ab')
    store = SqliteStore(tmp_path / "runs.db", KEY, anchors=tmp_path / "anchors")
    await store.load("one")
    seq = await store.seq("one")
    await store.commit("one", head(seq + 1), entry(seq + 1))
    assert (await store.audit("one")).verdict == "intact"
    store.close()


@pytest.mark.anyio
async def test_a_store_without_a_name_is_a_store_without_anchors(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", KEY, anchors=tmp_path / "anchors")
    await walked(store, "one")
    store._db.execute("DELETE FROM store")
    store.close()
    store = SqliteStore(tmp_path / "runs.db", KEY, anchors=tmp_path / "anchors")
    assert (await store.audit("one")).verdict == "cannot tell"
    store.close()


@pytest.mark.anyio
async def test_a_run_that_says_it_is_its_own_origin_is_broken(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    await walked(store, "one")
    kept = to_bytes(encode(replace(record("one"), origin="one", shared=3)))
    store._db.execute("UPDATE runs SET record = ?", (Sealing(b"").record("one", kept) + kept,))
    store._places.clear()
    with pytest.raises(Broken, match="cannot have been forked from one"):
        await store.entries("one")
    assert (await store.audit("one")).verdict == "broken"
    store.close()
