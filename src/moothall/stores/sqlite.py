"""Keeps runs in one SQLite file: write-ahead log, every commit on the disk before it counts.

The sequence number in the first UPDATE decides between two writers; whoever touches no row has lost. A file that
holds something else is refused and left as it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from moothall.errors import Broken, Conflict, EffectFailed, Refused
from moothall.kernel.codec import decode, encode
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry, encode_head
from moothall.runtime.ports import Stored
from moothall.stores.plain import read, written


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
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error
        try:
            self._prepare()
        except (sqlite3.Error, Refused) as error:
            self._db.close()
            raise _unusable(path, error) from error

    def _prepare(self) -> None:
        tables = {name for (name,) in self._db.execute(self._sql["tables"])}
        if tables and not tables >= {"runs", "entries"}:
            raise Refused("it is the database of another program")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        if not tables:
            self._db.executescript(self._sql["schema"])
        self._db.execute(self._sql["columns"])

    async def begin(self, record: Record, head: Head, entry: Entry) -> None:
        kept = written(encode_head(head))
        row = (record.run, record.machine, written(encode(record)), head.seq, head.snapshot.status, kept)
        body = written(encode_entry(entry))
        with _Writing(self._db):
            try:
                self._db.execute(self._sql["begin"], row)
            except sqlite3.IntegrityError as error:
                raise Conflict(f"run {record.run} exists already; choose another id, or resume it") from error
            self._db.execute(self._sql["append"], (record.run, entry.seq, body))

    async def commit(self, run: RunId, head: Head, entry: Entry) -> None:
        row = (head.seq, head.snapshot.status, written(encode_head(head)), run, head.seq - 1)
        body = written(encode_entry(entry))
        with _Writing(self._db):
            if self._db.execute(self._sql["move"], row).rowcount != 1:
                raise Conflict(f"run {run} was moved by another writer")
            self._db.execute(self._sql["append"], (run, entry.seq, body))

    async def load(self, run: RunId) -> Stored:
        rows = self._found("load", run)
        if not rows:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        return _stored(rows[0])

    async def runs(self) -> list[Stored]:
        return [_stored(row) for row in self._found("runs")]

    async def entries(self, run: RunId) -> list[Mapping[str, Any]]:
        return [read(body) for (body,) in self._found("entries", run)]

    def _found(self, name: str, *values: str) -> list[Any]:
        try:
            return self._db.execute(self._sql[name], values).fetchall()
        except sqlite3.OperationalError as error:
            raise EffectFailed(f"the store could not be read: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Broken(f"the store is damaged: {error}; bring back a copy of the file") from error

    def close(self) -> None:
        self._db.close()


class _Writing:
    """One transaction: committed at its end, rolled back where anything was raised."""

    __slots__ = ("_db",)

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _unwritten(error) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        except sqlite3.Error as failure:
            error = failure
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if isinstance(error, sqlite3.IntegrityError):
            raise Broken(f"the journal holds an entry that its head does not know: {error}") from error
        if isinstance(error, sqlite3.Error):
            raise _unwritten(error) from error


def _unusable(path: Path, error: Exception) -> Refused:
    return Refused(f"{path} cannot be opened as a store: {error}; name another with --store sqlite:FILE")


def _unwritten(error: sqlite3.Error) -> EffectFailed:
    return EffectFailed(f"the store could not write: {error}; the run stands where it stood")


def _stored(row: tuple[bytes, bytes]) -> Stored:
    try:
        return Stored(decode(Record, read(row[0]), "record"), decode(dict[str, Any], read(row[1]), "head"))
    except Refused as refusal:
        raise Broken(f"the store holds a damaged run: {refusal}") from refusal
