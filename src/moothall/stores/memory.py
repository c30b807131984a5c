"""Keeps runs in memory: for tests, trials, and runs that need not survive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.errors import Conflict, Refused
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry, encode_head
from moothall.runtime.ports import Stored


class MemoryStore:
    """A store that is gone when the process is."""

    def __init__(self) -> None:
        self._records: dict[RunId, Record] = {}
        self._heads: dict[RunId, Head] = {}
        self._entries: dict[RunId, list[Entry]] = {}

    async def begin(self, record: Record, head: Head, entry: Entry) -> None:
        if record.run in self._records:
            raise Conflict(f"run {record.run} exists already")
        self._records[record.run] = record
        self._heads[record.run] = head
        self._entries[record.run] = [entry]

    async def commit(self, run: RunId, head: Head, entry: Entry) -> None:
        if self._heads[run].seq != head.seq - 1:
            raise Conflict(f"run {run} was moved by another writer")
        self._heads[run] = head
        self._entries[run].append(entry)

    async def load(self, run: RunId) -> Stored:
        if run not in self._records:
            raise Refused(f"there is no run {run!r} in this store")
        return Stored(self._records[run], encode_head(self._heads[run]))

    async def runs(self) -> list[Stored]:
        return [await self.load(run) for run in reversed(self._records)]

    async def entries(self, run: RunId) -> list[Mapping[str, Any]]:
        return [encode_entry(entry) for entry in self._entries.get(run, [])]

    def close(self) -> None:
        """Nothing to let go of."""
