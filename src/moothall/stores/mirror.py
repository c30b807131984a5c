"""A mirror of records in a second SQLite file, which may be locked, slow or missing while the first goes on."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from moothall.errors import EffectFailed
from moothall.kernel.codec import encode
from moothall.kernel.events import SharedRecord

PATIENCE = 0.25
"""How long a file may be locked by others before it counts as out of reach, in seconds."""


class SqliteMirror:
    """Records in a file of their own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._sql = _statements()

    @property
    def name(self) -> str:
        """The address of the file."""
        return f"sqlite:{self._file}"

    async def put(self, records: Sequence[SharedRecord]) -> None:
        """Keep these records, each unless a newer version is there."""
        await asyncio.to_thread(self._put, records)

    def _put(self, records: Sequence[SharedRecord]) -> None:
        rows = [
            (record.collection, record.key, record.version, json.dumps(encode(record.value), ensure_ascii=False))
            for record in records
        ]
        try:
            with closing(sqlite3.connect(self._file, timeout=PATIENCE)) as db, db:
                db.execute(self._sql["make"])
                db.executemany(self._sql["put"], rows)
        except sqlite3.Error as error:
            raise EffectFailed(f"the mirror {self._file} cannot be written: {error}") from error

    def records(self) -> list[SharedRecord]:
        """Everything that is there."""
        with closing(sqlite3.connect(self._file, timeout=PATIENCE)) as db:
            db.execute(self._sql["make"])
            rows = db.execute(self._sql["all"]).fetchall()
        return [SharedRecord(collection, key, json.loads(body), version) for collection, key, body, version in rows]


def _statements() -> dict[str, str]:
    parts = files("moothall.stores").joinpath("mirror.sql").read_text().split("-- name: ")[1:]
    return {name.strip(): body for name, _, body in (part.partition("\n") for part in parts)}
