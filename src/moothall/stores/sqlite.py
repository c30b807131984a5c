"""Keeps runs in one SQLite file: write-ahead log, every commit on the disk before it counts.

The sequence number in the first UPDATE decides between two writers; whoever touches no row has lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from moothall.errors import Broken, Conflict, EffectFailed, Refused
from moothall.kernel.codec import decode, encode
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry, encode_head
from moothall.runtime.ports import Stored


def _statements() -> dict[str, str]:
    text = files("moothall.stores").joinpath("sqlite.sql").read_text()
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body for name, _, body in parts}


class SqliteStore:
    """A store in one file."""

    def __init__(self, path: Path) -> None:
        self._sql = _statements()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(self._sql["schema"])
        except (sqlite3.Error, OSError) as error:
            raise Refused(
                f"{path} cannot be opened as a store: {error}; name another with --store sqlite:FILE"
            ) from error

    async def begin(self, record: Record, head: Head, entry: Entry) -> None:
        row = (record.run, record.machine, _plain(encode(record)), head.seq, head.snapshot.status, _head(head))
        with _Writing(self._db):
            try:
                self._db.execute(self._sql["begin"], row)
            except sqlite3.IntegrityError as error:
                raise Conflict(f"run {record.run} exists already; choose another id, or resume it") from error
            self._db.execute(self._sql["append"], (record.run, entry.seq, _plain(encode_entry(entry))))

    async def commit(self, run: RunId, head: Head, entry: Entry) -> None:
        row = (head.seq, head.snapshot.status, _head(head), run, head.seq - 1)
        body = _plain(encode_entry(entry))
        with _Writing(self._db):
            if self._db.execute(self._sql["move"], row).rowcount != 1:
                raise Conflict(f"run {run} was moved by another writer")
            self._db.execute(self._sql["append"], (run, entry.seq, body))

    async def load(self, run: RunId) -> Stored:
        row = self._db.execute(self._sql["load"], (run,)).fetchone()
        if row is None:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        return _stored(row)

    async def runs(self) -> list[Stored]:
        return [_stored(row) for row in self._db.execute(self._sql["runs"])]

    async def entries(self, run: RunId) -> list[Mapping[str, Any]]:
        return [_read(body) for (body,) in self._db.execute(self._sql["entries"], (run,))]

    def close(self) -> None:
        self._db.close()


class _Writing:
    """One transaction: committed at its end, rolled back where anything was raised."""

    __slots__ = ("_db",)

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        else:
            self._db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
            raise EffectFailed(f"the store could not write: {error}; the run stands where it stood") from error


def _head(head: Head) -> bytes:
    return _plain(encode_head(head))


def _plain(value: Any) -> bytes:
    return orjson.dumps(value)


def _read(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"the store holds something that is no JSON: {error}") from error


def _stored(row: tuple[bytes, bytes]) -> Stored:
    try:
        return Stored(decode(Record, _read(row[0]), "record"), _read(row[1]))
    except Refused as refusal:
        raise Broken(f"the store holds a damaged run: {refusal}") from refusal
