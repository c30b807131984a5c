"""What can happen to a store's file: values, rows and pages that are changed, swapped, doubled or lost, by chance."""

import sqlite3
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

Rows = Callable[[sqlite3.Connection, Random, int], None]
Pages = Callable[[bytes, Random], bytes]
PAGE = 4096
SEALS = ((("runs", "seal")), ("runs", "tip"), ("entries", "seal"))
HOLDING = ("seq", "status", "wake", "owner", "token", "until", "crashes", "machine", "run")


def changed(found: bytes, chance: Random) -> bytes:
    """These bytes with a bit flipped, a byte put in or left out, two swapped, or cut off; never the same."""
    place = chance.randrange(len(found))
    before, here, after = found[:place], found[place : place + 1], found[place + 1 :]
    made = chance.choice(
        (
            before + bytes((here[0] ^ (1 << chance.randrange(8)),)) + after,
            before + bytes((chance.randrange(256),)) + here + after,
            before + after,
            before + after[:1] + here + after[1:],
            before,
        )
    )
    return made if made != found else found[:-1]


def another(value: Any, chance: Random) -> Any:
    """Another value in the place of this one: changed a little, or of quite another kind."""
    others: list[Any] = [None, 0, -1, 2**40, 1e18, "", "rubbish", b"", b"\x00\xff"]
    if isinstance(value, bytes) and value:
        others += [changed(value, chance) for _ in range(20)]
    elif isinstance(value, int | float):
        others += [value + 1, value - 1, value + 2 ** chance.randrange(20), str(value) + "x"]
    return chance.choice([one for one in others if one != value])


def value_of(table: str, column: str) -> Rows:
    """Damage to one value of one row of the run."""

    def damage(db: sqlite3.Connection, chance: Random, run: int) -> None:
        owner = "number" if table == "runs" else "run"
        rows = db.execute(f"SELECT rowid FROM {table} WHERE {owner} = ?", (run,)).fetchall()
        if rows:
            (row,) = chance.choice(rows)
            value, kind = db.execute(
                f"SELECT {column}, typeof({column}) FROM {table} WHERE rowid = ?", (row,)
            ).fetchone()
            cast = "CAST(? AS TEXT)" if kind == b"text" and chance.random() < 0.9 else "?"
            db.execute(f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?", (another(value, chance), row))

    return damage


def any_of(*damages: Rows) -> Rows:
    """One of these, by chance."""

    def damage(db: sqlite3.Connection, chance: Random, run: int) -> None:
        chance.choice(damages)(db, chance, run)

    return damage


def _entries(db: sqlite3.Connection, run: int) -> int:
    found: int = db.execute("SELECT count(*) FROM entries WHERE run = ?", (run,)).fetchone()[0]
    return found


def _deleted(db: sqlite3.Connection, chance: Random, run: int) -> None:
    db.execute("DELETE FROM entries WHERE run = ? AND seq = ?", (run, chance.randrange(_entries(db, run))))


def _cut(db: sqlite3.Connection, chance: Random, run: int) -> None:
    db.execute("DELETE FROM entries WHERE run = ? AND seq >= ?", (run, chance.randrange(_entries(db, run))))


def _doubled(db: sqlite3.Connection, chance: Random, run: int) -> None:
    count = _entries(db, run)
    copy = "INSERT INTO entries SELECT run, ?, cause, body, seal FROM entries WHERE run = ? AND seq = ?"
    db.execute(copy, (count, run, chance.randrange(count)))


def _closed_gap(db: sqlite3.Connection, chance: Random, run: int) -> None:
    """An entry is taken out and those behind it move up; that the last one is gone, only an anchor could tell."""
    count = _entries(db, run)
    if count < 2:
        return
    gone = chance.randrange(count - 1)
    db.execute("DELETE FROM entries WHERE run = ? AND seq = ?", (run, gone))
    for seq in range(gone + 1, count):
        db.execute("UPDATE entries SET seq = ? WHERE run = ? AND seq = ?", (seq - 1, run, seq))
    db.execute("UPDATE runs SET seq = seq - 1 WHERE number = ?", (run,))


def _borrowed(db: sqlite3.Connection, chance: Random, run: int) -> None:
    """An entry of another run stands in the place of one of ours."""
    others = db.execute("SELECT run, seq FROM entries WHERE run <> ? AND seq < ?", (run, _entries(db, run))).fetchall()
    other, seq = chance.choice(others)
    theirs = "SELECT cause, body, seal FROM entries WHERE run = ? AND seq = ?"
    db.execute(f"UPDATE entries SET (cause, body, seal) = ({theirs}) WHERE run = ? AND seq = ?", (other, seq, run, seq))


def _strayed(db: sqlite3.Connection, chance: Random, run: int) -> None:
    """An entry belongs to a run that there is none of."""
    db.execute("UPDATE entries SET run = 99 WHERE run = ? AND seq = ?", (run, chance.randrange(_entries(db, run))))


def _lost_texts(db: sqlite3.Connection, chance: Random, run: int) -> None:
    db.execute("DELETE FROM texts WHERE run = ?", (run,))


def _lost_run(db: sqlite3.Connection, chance: Random, run: int) -> None:
    db.execute("DELETE FROM runs WHERE number = ?", (run,))


def _borrowed_head(db: sqlite3.Connection, chance: Random, run: int) -> None:
    """The head or the record of another run stands in the place of ours."""
    column = chance.choice(("head", "record", "head, tip, seal", "seal"))
    (other,) = chance.choice(db.execute("SELECT number FROM runs WHERE number <> ?", (run,)).fetchall())
    db.execute(
        f"UPDATE runs SET ({column}) = (SELECT {column} FROM runs WHERE number = ?) WHERE number = ?", (other, run)
    )


ROWS: Mapping[str, Rows] = {
    "head": value_of("runs", "head"),
    "record": value_of("runs", "record"),
    "seals": any_of(*(value_of(table, column) for table, column in SEALS)),
    "body of an entry": value_of("entries", "body"),
    "place of an entry": any_of(value_of("entries", "seq"), value_of("entries", "cause"), _strayed),
    "texts": any_of(value_of("texts", "body"), value_of("texts", "digest"), _lost_texts),
    "holding": any_of(*(value_of("runs", column) for column in HOLDING)),
    "rows": any_of(_deleted, _cut, _doubled, _closed_gap, _borrowed, _borrowed_head, _lost_run),
}


def _flipped(body: bytes, chance: Random) -> bytes:
    found = bytearray(body)
    for _ in range(chance.randrange(1, 5)):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _scribbled(body: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(body))
    return (body[:place] + chance.randbytes(32) + body[place + 32 :])[: len(body)]


def _truncated(body: bytes, chance: Random) -> bytes:
    return body[: chance.choice((chance.randrange(len(body)), PAGE * chance.randrange(len(body) // PAGE)))]


def _lost_page(body: bytes, chance: Random) -> bytes:
    place = PAGE * chance.randrange(len(body) // PAGE)
    return body[:place] + bytes(PAGE) + body[place + PAGE :]


def _stale_page(body: bytes, chance: Random) -> bytes:
    """One page is a copy of another, as after a write that went astray."""
    here, there = (PAGE * chance.randrange(len(body) // PAGE) for _ in range(2))
    return body[:here] + body[there : there + PAGE] + body[here + PAGE :]


PAGES: Mapping[str, Pages] = {
    "flipped bits of the file": _flipped,
    "scribbles in the file": _scribbled,
    "a truncated file": _truncated,
    "a lost page": _lost_page,
    "a stale page": _stale_page,
}
