"""A mirror of records in a PostgreSQL database, for whoever wants to read them with SQL.

The table is `moothall.mirror`. It may be out of reach while the store goes on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from moothall.kernel.codec import encode
from moothall.kernel.events import SharedRecord
from moothall.stores.connections import LOCK, Connections
from moothall.stores.scribe import statements_in


class PostgresMirror:
    """Records in a table of their own."""

    def __init__(self, address: str) -> None:
        self._sql = statements_in(files("moothall.stores").joinpath("postgresql_mirror.sql").read_text())
        self._connections = Connections(address, {"application_name": "moothall-mirror"}, self._prepare)

    @property
    def name(self) -> str:
        """The address of the database, without a password."""
        return self._connections.address

    async def _prepare(self, connection: Any) -> None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)  # two that make it at once collide
            await connection.execute(self._sql["make"])

    async def put(self, records: Sequence[SharedRecord]) -> None:
        """Keep these records, each unless a newer version is there."""
        in_order = sorted(records, key=lambda record: record.version)
        newest = {(record.collection, record.key): record for record in in_order}
        columns = [
            [_plain(record.collection) for record in newest.values()],
            [_plain(record.key) for record in newest.values()],
            [record.version for record in newest.values()],
            [json.dumps(encode(record.value)) for record in newest.values()],
        ]
        await self._connections.fetch(self._sql["put"], *columns)

    async def records(self) -> list[SharedRecord]:
        """Everything that is there."""
        rows = await self._connections.fetch(self._sql["all"])
        return [SharedRecord(collection, key, json.loads(body), version) for collection, key, body, version in rows]


def _plain(name: str) -> str:
    """A name in a column of the database, which holds no NUL: the sign for it stands in its place."""
    return name.replace("\x00", "\u2400")
