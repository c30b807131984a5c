"""Keeps runs in memory: for tests, trials, and runs that need not survive.

It keeps the same bytes as a store on a disk, so that whatever would not survive there does not survive here either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.errors import Conflict, Refused
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry, encode_head
from moothall.runtime.ports import Stored
from moothall.stores.plain import read, written


class MemoryStore:
    """A store that is gone when the process is."""

    def __init__(self) -> None:
        self._records: dict[RunId, Record] = {}
        self._heads: dict[RunId, tuple[int, bytes]] = {}
        self._entries: dict[RunId, list[bytes]] = {}

    async def begin(self, record: Record, head: Head, entry: Entry) -> None:
        if record.run in self._records:
            raise Conflict(f"run {record.run} exists already")
        kept = (head.seq, written(encode_head(head)))
        self._entries[record.run] = [written(encode_entry(entry))]
        self._heads[record.run] = kept
        self._records[record.run] = record

    async def commit(self, run: RunId, head: Head, entry: Entry) -> None:
        if run not in self._heads or self._heads[run][0] != head.seq - 1:
            raise Conflict(f"run {run} was moved by another writer")
        kept = (head.seq, written(encode_head(head)))
        self._entries[run].append(written(encode_entry(entry)))
        self._heads[run] = kept

    async def load(self, run: RunId) -> Stored:
        if run not in self._records:
            raise Refused(f"there is no run {run!r} in this store")
        return Stored(self._records[run], read(self._heads[run][1]))

    async def runs(self) -> list[Stored]:
        return [await self.load(run) for run in reversed(self._records)]

    async def entries(self, run: RunId) -> list[Mapping[str, Any]]:
        return [read(body) for body in self._entries.get(run, [])]

    def close(self) -> None:
        """Nothing to let go of."""
