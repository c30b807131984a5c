"""Keeps runs in memory: for tests, trials, and runs that need not survive.

It keeps the values themselves and encodes them when they are read. `strict=True` encodes every commit as a store on a
disk does, so that whatever would not survive there does not survive here either.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.errors import Broken, Conflict, Refused
from moothall.kernel.codec import encode
from moothall.kernel.events import SharedRecord
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry, encode_head
from moothall.runtime.ports import (
    EVERYTHING,
    LEASE,
    SET_ASIDE,
    Audit,
    Lease,
    Outdated,
    Outgoing,
    Redaction,
    Scope,
    Stored,
)
from moothall.runtime.turns import OwnTurns
from moothall.stores.plain import read, to_bytes
from moothall.stores.threads import Piece, appended_pieces, cut, join_parts, said_in, within

_FREE = Lease("", 1, 0.0)


class _Kept:
    """One run in memory."""

    __slots__ = ("aside", "causes", "entries", "head", "lease", "length", "record", "threads")

    def __init__(self, record: Record, lease: Lease) -> None:
        self.record = record
        self.head: Any = None
        self.entries: list[Any] = []
        self.causes: dict[str, int] = {}
        self.threads: dict[str, list[Piece]] = {}
        self.lease = lease
        self.aside = ""
        self.length = record.shared + 1
        """How many entries the journal has, with those that it shares."""


class MemoryStore:
    """A store that is gone when the process is."""

    def __init__(self, *, strict: bool = False) -> None:
        self.crowd = 0
        self._strict = strict
        self._runs: dict[RunId, _Kept] = {}
        self._records: dict[tuple[str, str], SharedRecord] = {}
        self._outbox: list[Outgoing] = []
        self._mirrors: dict[str, int] = {}
        self._turns = OwnTurns(time.monotonic)

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        if record.run in self._runs:
            raise Conflict(f"run {record.run} exists already; choose another id, or resume it")
        kept = _Kept(record, lease or _FREE)
        self._keep(kept, head, (entry,))
        self._runs[record.run] = kept

    async def commit(
        self,
        run: RunId,
        head: Head,
        entry: Entry,
        lease: Lease | None = None,
        after: Lease | None = None,
        earlier: Sequence[Entry] = (),
        records: Sequence[SharedRecord] = (),
    ) -> None:
        kept = self._runs.get(run)
        if kept is None or kept.length != head.seq - len(earlier):
            raise Conflict(f"run {run} was moved by another writer, or is not there")
        if lease is not None and lease.token != kept.lease.token:
            raise Conflict(f"run {run} is held by another")
        if records:
            records = self._replaced(records)
        self._keep(kept, head, (*earlier, entry) if earlier else (entry,))
        for record in records:
            self._records[record.collection, record.key] = record
            self._outbox.append(Outgoing(len(self._outbox) + 1, record))
        kept.aside = ""
        if lease is not None:
            kept.lease = after or Lease("", lease.token, 0.0)

    def _replaced(self, records: Sequence[SharedRecord]) -> list[SharedRecord]:
        """Records as they are kept, if each is still what it was when it was read."""
        for record in records:
            there = self._records.get((record.collection, record.key))
            if (version := there.version if there is not None else 0) != record.version:
                raise Outdated(record, version)
        return [
            replace(record, value=read(to_bytes(encode(record.value))), version=record.version + 1)
            for record in records
        ]

    async def records(
        self, collection: str, *, key: str | None = None, prefix: str = "", most: int = 1000
    ) -> list[SharedRecord]:
        if key is not None:
            there = self._records.get((collection, key))
            return [there] if there is not None else []
        alike = (place for place in self._records if place[0] == collection and place[1].startswith(prefix))
        return [self._records[place] for place in sorted(alike)[:most]]

    async def outbox(self, mirror: str, most: int = 100) -> list[Outgoing]:
        upto = self._mirrors.get(mirror, 0)
        return self._outbox[upto : upto + most]

    async def mirrored(self, mirror: str, upto: int) -> None:
        self._mirrors[mirror] = max(self._mirrors.get(mirror, 0), upto)

    def _keep(self, kept: _Kept, head: Head, entries: Sequence[Entry]) -> None:
        if self._strict:
            body, bodies = to_bytes(encode_head(head)), [to_bytes(encode_entry(entry)) for entry in entries]
            kept.head = (head.wake(), body)
            kept.entries += bodies
        else:
            kept.head = head
            kept.entries += entries
        if entries[-1].appends or len(entries) > 1:
            for piece in appended_pieces(head, entries):
                pieces = kept.threads.setdefault(piece.thread, [])
                while pieces and pieces[-1].start >= piece.start:  # the run was retried from before it
                    pieces.pop()
                pieces.append(piece)
        causes, kept.length = kept.causes, head.seq + 1
        for entry in entries:
            causes.setdefault(entry.cause, entry.seq)

    async def load(self, run: RunId) -> Stored:
        kept = self._runs.get(run)
        if kept is None:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        plain = kept.head if isinstance(kept.head, dict) else self._head_of(kept)
        status = kept.aside or plain["snapshot"]["status"]
        return Stored(kept.record, plain, plain["seq"], status, kept.lease)

    def _head_of(self, kept: _Kept) -> Any:
        return read(kept.head[1]) if self._strict else encode_head(kept.head)

    def _entry_of(self, entry: Any) -> Mapping[str, Any]:
        if isinstance(entry, dict):
            return entry
        plain: Mapping[str, Any] = read(entry) if self._strict else encode_entry(entry)
        return plain

    async def runs(self) -> list[Stored]:
        return [await self.load(run) for run in reversed(self._runs)]

    async def entries(self, run: RunId, start: int = 0, limit: int | None = None) -> list[Mapping[str, Any]]:
        kept = self._runs.get(run)
        if kept is None:
            return []
        shared = kept.record.shared + 1
        end = kept.length if limit is None else start + limit
        above = await self.entries(kept.record.origin, start, min(end, shared) - start) if start < shared else []
        own = kept.entries[max(start - shared, 0) : max(end - shared, 0)]
        return above + [self._entry_of(entry) for entry in own]

    async def thread(self, run: RunId, name: str, start: int, end: int) -> list[Any]:
        parts: list[list[Any]] = []
        owner, upto, last, is_of_another_past = run, end, sys.maxsize, False
        while start < upto and owner in self._runs:
            kept = self._runs[owner]
            for piece in reversed(within(kept.threads.get(name, ()), start, upto)):
                entry = kept.entries[piece.seq - kept.record.shared - 1]
                parts.append(cut(piece, self._entry_of(entry), start, upto))
                upto = piece.start
                is_of_another_past = is_of_another_past or piece.seq > last
            owner, last = kept.record.origin, min(last, kept.record.shared)
        said = join_parts(parts)
        if len(said) != end - start or is_of_another_past:
            said = said_in(await self.entries(run), name)[start:end]
        if len(said) != end - start:
            raise Broken(f"run {run}: messages of its thread {name!r} are missing")
        return said

    async def find(self, run: RunId, cause: str) -> int | None:
        kept = self._runs.get(run)
        if kept is None:
            return None
        if cause in kept.causes:
            return kept.causes[cause]
        found = await self.find(kept.record.origin, cause)
        return found if found is not None and found <= kept.record.shared else None

    async def due(self, now: float, limit: int, gone: Sequence[str] = (), scope: Scope = EVERYTHING) -> list[RunId]:
        free = [
            kept
            for kept in self._runs.values()
            if scope.has(kept.record.lane) and (not _is_held(kept.lease, now) or kept.lease.owner in gone)
        ]
        due = [(wake, kept.record) for kept in free if (wake := self._wake(kept)) is not None and wake <= now]
        turns: Counter[str] = Counter()
        order: list[tuple[int, int, bool, str, float, RunId]] = []
        for wake, record in sorted(due, key=lambda known: (-known[1].lane.priority, known[0], known[1].run)):
            tenant = record.lane.tenant
            turns[tenant] += 1
            order.append((-record.lane.priority, turns[tenant], tenant <= scope.after, tenant, wake, record.run))
        return [run for *_, run in sorted(order)[:limit]]

    async def suspects(self, now: float) -> Mapping[RunId, int]:
        return {
            run: kept.lease.crashes + bool(kept.lease.owner)
            for run, kept in self._runs.items()
            if (wake := self._wake(kept)) is not None and wake <= now and (kept.lease.owner or kept.lease.crashes)
        }

    async def forgive(self, run: RunId, lease: Lease) -> None:
        kept = self._runs[run]
        if kept.lease.token == lease.token:
            kept.lease = Lease(kept.lease.owner, kept.lease.token, kept.lease.until)

    async def take_turn(self, name: str, per_minute: int) -> float:
        return self._turns.take(name, per_minute)

    async def wait_for_work(self, now: float, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def owners(self) -> list[str]:
        return sorted({kept.lease.owner for kept in self._runs.values()} - {""})

    def _wake(self, kept: _Kept) -> float | None:
        if kept.aside or isinstance(kept.head, dict):
            return None
        wake: float | None = kept.head[0] if self._strict else kept.head.wake()
        return wake

    async def seq(self, run: RunId) -> int:
        return self._runs[run].length - 1 if run in self._runs else -1

    async def claim(self, run: RunId, seen: Lease, owner: str, until: float) -> Lease | None:
        kept = self._runs[run]
        if kept.lease.token != seen.token or (kept.lease.owner and kept.lease.until != seen.until):
            return None
        lost = kept.lease.owner not in ("", owner)
        kept.lease = Lease(owner, kept.lease.token + 1, until, kept.lease.crashes + lost)
        return kept.lease

    async def renew(self, run: RunId, lease: Lease, until: float) -> bool:
        kept = self._runs[run]
        if kept.lease.token != lease.token:
            return False
        kept.lease = Lease(lease.owner, lease.token, until, kept.lease.crashes)
        return True

    async def release(self, run: RunId, lease: Lease) -> None:
        kept = self._runs[run]
        if kept.lease.token == lease.token:
            kept.lease = Lease("", lease.token, 0.0, kept.lease.crashes)

    async def repair(self, run: RunId, head: Head) -> None:
        kept = self._runs[run]
        kept.head = (head.wake(), to_bytes(encode_head(head))) if self._strict else head

    async def set_aside(self, run: RunId, reason: str) -> None:
        kept = self._runs[run]
        kept.aside = SET_ASIDE + reason
        kept.lease = Lease("", kept.lease.token + 1, 0.0, kept.lease.crashes)

    async def take_back(self, run: RunId) -> None:
        kept = self._runs[run]
        if kept.aside:
            kept.aside = ""
            kept.lease = Lease(kept.lease.owner, kept.lease.token, kept.lease.until)

    async def forget(self, run: RunId) -> None:
        self._runs.pop(run, None)

    async def redact(self, redaction: Redaction) -> None:
        kept = self._runs[redaction.run]
        if kept.length != redaction.head["seq"] + 1:
            raise Conflict(f"run {redaction.run} was moved by another writer")
        kept.head = read(to_bytes(redaction.head))
        for seq, entry in redaction.entries.items():
            kept.entries[seq - kept.record.shared - 1] = read(to_bytes(entry))
        for record in redaction.records:
            self._outbox = [Outgoing(out.number, _newer(out.record, record)) for out in self._outbox]
            place = (record.collection, record.key)
            if place in self._records and self._records[place].version == record.version:
                self._records[place] = record
                self._outbox.append(Outgoing(len(self._outbox) + 1, record))

    async def scrub(self) -> str:
        return ""

    async def audit(self, run: RunId, digest: tuple[int, bytes] | None = None) -> Audit:
        await self.load(run)
        return Audit(run, "cannot tell", "a store in memory seals nothing", entries=self._runs[run].length)

    async def anchored(self) -> list[RunId]:
        return []

    async def behind(self, run: RunId) -> str:
        return ""

    async def strays(self) -> Mapping[RunId, str]:
        return {}

    async def accept(self, run: RunId) -> None:
        await self.load(run)

    def close(self) -> None:
        """Nothing to let go of."""


def _newer(old: SharedRecord, new: SharedRecord) -> SharedRecord:
    is_same = (old.collection, old.key, old.version) == (new.collection, new.key, new.version)
    return new if is_same else old


def _is_held(lease: Lease, now: float) -> bool:
    return bool(lease.owner) and 0 <= lease.until - now <= 2 * LEASE
