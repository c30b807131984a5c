"""Keeps runs in a PostgreSQL database, which many hosts may share.

- A commit is one statement: the sequence number, the seal of the latest entry and the lease's token stand in the
  condition of its UPDATE, and everything else is written only where that touched a row. Commits of several runs that
  come while the server is busy share the next statement; each stands or falls alone.
- A commit whose answer was lost is tried again. Where it touches no row, the seal of the latest entry tells whether it
  was written the first time.
- Whoever tells a run something from outside, or leaves it to others, tells a channel too: nobody has to look again and
  again. A worker believes what it knows of a run that it holds for as long as it can hear that channel.
- What is read back is checked against its seal, as in every store.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from moothall.errors import Broken, Conflict, MoothallError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.events import SharedRecord
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_head
from moothall.runtime.ports import (
    EVERYTHING,
    LEASE,
    MINUTE,
    SET_ASIDE,
    Audit,
    Lease,
    Outdated,
    Outgoing,
    Redaction,
    Scope,
    Stored,
)
from moothall.stores.anchors import BEGINNING, Anchor, Anchors, Tell, nobody
from moothall.stores.audit import Crown, Link, Trail, behind, verdict
from moothall.stores.batches import Batches
from moothall.stores.connections import LOCK, Connections, News, Unreachable
from moothall.stores.luggage import PackedRecords, PackedRun
from moothall.stores.plain import digest_of, digests_in, pack, to_bytes
from moothall.stores.scribe import (
    EFFECT,
    LAST,
    NO_PARTS,
    PLACES,
    Place,
    Redacted,
    Roots,
    Scribe,
    Sealed,
    Text,
    begins,
    first_beyond,
    head_of,
    is_readable,
    lane_row,
    lease_of,
    roots_of,
    statements_in,
    status_of,
)
from moothall.stores.seals import SIZE, Signed, chain_start
from moothall.stores.threads import Piece, cut, join_parts, said_in

BY_INDEX = {"enable_seqscan": "off"}
"""Who looks for work goes by the index, also before the server has counted how many runs only wait for people."""
QUIET = 10
"""Who can hear what is told looks so many times less often."""


class _Commit(NamedTuple):
    """One commit, encoded and ready to be written, and what is to be remembered of it."""

    place: Place
    row: tuple[Any, ...]
    links: Sequence[tuple[Any, ...]]
    texts: Mapping[str, bytes]
    pieces: Sequence[tuple[str, int, int, bytes]]
    records: Sequence[tuple[SharedRecord, tuple[Any, ...]]]
    token: int | None
    wake: float | None
    sealed: Sealed

    @property
    def is_plain(self) -> bool:
        """Whether it is one entry and the head after it, and nothing else."""
        return len(self.links) == 1 and not self.texts and not self.pieces


class PostgresStore:
    """A store in one database."""

    def __init__(
        self,
        address: str,
        key: bytes = b"",
        *,
        durability: str = "full",
        anchors: Path | None = None,
        tell: Tell = nobody,
    ) -> None:
        self.crowd = 0
        self._sql = statements_in(files("moothall.stores").joinpath("postgresql.sql").read_text())
        self._scribe = Scribe(key)
        self._sealing = self._scribe.seals
        self._places: dict[RunId, Place] = {}
        self._held: set[RunId] = set()
        self._anchors: Anchors | None = None
        self._anchoring = anchors, tell
        settings = {"search_path": "moothall", "application_name": "moothall", **BY_INDEX}
        if durability == "normal":
            settings["synchronous_commit"] = "off"
        self._connections = Connections(address, settings, self._prepare)
        self._news = News(self._connections)
        self._batches = Batches(self._write)

    @property
    def address(self) -> str:
        """Where the database is, without a password."""
        return self._connections.address

    async def _prepare(self, connection: Any) -> None:
        """Bring the tables up to date, and find out what the store is called."""
        await migrate(connection)
        folder, tell = self._anchoring
        if folder is not None and self._anchors is None:
            name = await connection.fetchval(self._sql["name"])
            self._anchors = Anchors(folder, re.sub(r"\W", "", str(name)) or "nameless", self.address, tell)

    async def _fetch(self, name: str, *values: Any) -> list[Any]:
        try:
            return await self._connections.fetch(self._sql[name], *values)
        except ValueError as error:  # a name that cannot be written was never kept
            if isinstance(error, MoothallError) or not isinstance(error.__cause__, UnicodeEncodeError):
                raise
            return []

    async def _ready(self) -> None:
        """Have the store open: its anchors are known once the database has told its name."""
        if self._anchors is None and self._anchoring[0] is not None:
            await self._fetch("name")

    # writing

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        await self._ready()
        run, wake, texts = record.run, head.wake(), dict[str, bytes]()
        began = to_bytes(encode(record))
        roots = Roots(began, record.origin, record.shared)
        place, before = Place(run, 0, roots), await self._chain_start(run, roots)
        place.stand(record.shared, before, None, NO_PARTS)
        body, tip, kept, seal, parts = self._scribe.sealed(place, before, head, entry, texts)
        named = (run, _plain(record.machine), self._sealing.record(run, began) + began)
        stands = (head.seq, head.snapshot.status, kept, tip, seal, wake)
        held = (lease.owner, lease.until) if lease is not None else (None, 0.0)
        pieces = self._scribe.placed(head, (entry,), (tip,)) if entry.appends else ()
        row = (
            *named,
            *stands,
            *held,
            *_link((entry.seq, entry.cause, body, tip))[1:4],
            *_texts(texts),
            *_pieces(pieces),
            *lane_row(record),
        )
        if self._anchors is not None:
            self._anchors.say(Anchor("moves", run, BEGINNING))
        place.number = await self._begin(run, tip, row)
        place.stand(head.seq, tip, wake, parts)
        self._remember(place, is_held=lease is not None)
        self._anchor(place, seal)

    async def _begin(self, run: RunId, tip: bytes, row: tuple[Any, ...]) -> int:
        rows, was_cut = await self._connections.try_hard(lambda link: link.fetch(self._sql["begin"], *row))
        if not rows and was_cut:
            rows = [
                there for there in await self._fetch("load", run) if (there["tip"], there["owner"]) == (tip, row[9])
            ]
        if not rows:
            raise Conflict(f"run {run} exists already; choose another id, or resume it")
        return int(rows[0]["number"])

    def _anchor(self, place: Place, seal: bytes) -> None:
        """Where nothing is to be done now for a run that has moved, tell the anchors that it rests there."""
        if self._anchors is not None:
            place.moves = place.wake == 0.0
            if not place.moves:
                self._anchors.say(Anchor("rests", place.run, place.seq, place.tip, seal))

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
        place = self._places.get(run) or await self._place(run)
        if not place.moves and self._anchors is not None:
            self._anchors.say(Anchor("moves", run, place.seq, place.tip))
        commit = self._encoded(place, head, (*earlier, entry) if earlier else (entry,), lease, after)
        if records:
            commit = commit._replace(records=[self._row_of(record) for record in records])
        try:
            if records:
                await self._move_with_records(commit)
            else:
                await self._batches.have_written(run, commit)
        except BaseException:
            self._forget_place(run)
            raise
        _, tip, _, seal, parts = commit.sealed
        place.stand(head.seq, tip, commit.wake, parts)
        self._remember(place, is_held=lease is not None and after is not None)
        self._anchor(place, seal)
        if place.moves and (begins(entry) or any(map(begins, earlier))) and self._anchors is not None:
            self._anchors.say(Anchor("moves", run, place.seq, place.tip))
            await asyncio.to_thread(self._anchors.sync)

    def _encoded(
        self, place: Place, head: Head, entries: Sequence[Entry], lease: Lease | None, after: Lease | None
    ) -> _Commit:
        """Entries of a run and the head after the last of them, as they will be written behind those before."""
        texts: dict[str, bytes] = {}
        wake, entry = head.wake(), entries[-1]
        links, last = self._scribe.chained(place.tip, entries[:-1], texts) if len(entries) > 1 else ([], place.tip)
        sealed = self._scribe.sealed(place, last, head, entry, texts)
        body, tip, kept, seal, _ = sealed
        links.append((entry.seq, entry.cause, body, tip))
        token = None if lease is None else after.token if after else lease.token
        row = (
            *(place.number, head.seq - len(entries), place.tip, lease.token if lease is not None else None),
            *(head.seq, head.snapshot.status, kept, tip, seal, wake),
            *(after.owner if after else None, token, None if lease is None else after.until if after else 0.0),
        )
        pieces: Sequence[tuple[str, int, int, bytes]] = ()
        if entry.appends or len(entries) > 1:
            pieces = self._scribe.placed(head, entries, [link[3] for link in links])
        return _Commit(place, row, [_link(link) for link in links], texts, pieces, (), token, wake, sealed)

    async def _write(self, commits: Sequence[_Commit]) -> list[Exception | None]:
        """Write commits, each unless another writer came first; where they fail together, one by one.

        All writers take the runs in the order of their numbers, so that no two wait for each other.
        """
        order = sorted(range(len(commits)), key=lambda index: commits[index].place.number)
        try:
            in_order = [commits[index] for index in order]
            kept, was_cut = await self._connections.keep_trying(lambda link: self._move(link, in_order))
            ends: list[Exception | None] = [None] * len(commits)
            for place, index in enumerate(order, 1):
                if place not in kept and not (was_cut and await self._was_written(commits[index])):
                    ends[index] = _too_late(commits[index])
            return ends
        except Unreachable:
            raise
        except Exception as error:  # whatever one of them brings, the others must not suffer from it
            if len(commits) == 1:
                return [error]
        return [(await self._write((commit,)))[0] for commit in commits]

    async def _move(self, connection: Any, commits: Sequence[_Commit]) -> set[int]:
        """Write commits; the places, counted from 1, of those to which no other writer came first."""
        if all(commit.is_plain for commit in commits):
            rows = [(*commit.row, *commit.links[0][1:4]) for commit in commits]
            name, values = ("move", rows[0]) if len(rows) == 1 else ("move_many", _columns(rows, 16))
            return {row[0] for row in await connection.fetch(self._sql[name], *values)}
        links, texts, pieces = list[Any](), list[Any](), list[Any]()
        for place, commit in enumerate(commits, 1):
            links += [(place, *link) for link in commit.links]
            texts += [(place, digest, text.encode()) for text, digest in commit.texts.items()]
            pieces += [(place, thread.encode(), *rest) for thread, *rest in commit.pieces]
        columns = (
            *_columns([commit.row for commit in commits], 13),
            *(*_columns(links, 6), *_columns(texts, 3), *_columns(pieces, 5)),
        )
        return {row[0] for row in await connection.fetch(self._sql["move_all"], *columns)}

    async def _move_with_records(self, commit: _Commit) -> None:
        """Write a commit and its records in a transaction of their own, unless another writer came first."""

        async def write(connection: Any) -> bool:
            async with connection.transaction():
                if not await self._move(connection, (commit,)):
                    return False
                await self._write_records(connection, commit)
                return True

        is_written, was_cut = await self._connections.try_hard(write)
        if not is_written and not (was_cut and await self._was_written(commit)):
            raise _too_late(commit)

    async def _was_written(self, commit: _Commit) -> bool:
        """Whether a commit was written although its answer was lost."""
        rows = await self._fetch("stands", commit.place.run)
        return bool(rows) and rows[0]["tip"] == commit.sealed[1] and commit.token in (None, rows[0]["token"])

    async def _write_records(self, connection: Any, commit: _Commit) -> None:
        """Write the records of a commit, unless one of them is not what it was when it was read."""
        names = [row[:2] for _, row in commit.records]
        rows = await connection.fetch(self._sql["versions"], *_columns(names, 2))
        versions = {(row[0], row[1]): row[2] for row in rows}
        for record, row in commit.records:
            if (version := versions.get(row[:2], 0)) != record.version:
                raise Outdated(record, version)
        for record, row in sorted(commit.records, key=lambda known: known[1][:2]):
            if not await connection.fetch(self._sql["write"], *row):
                found = await connection.fetch(self._sql["record"], *row[:2])
                raise Outdated(record, found[0]["version"])
        await connection.execute(self._sql["order_outbox"])
        for _, row in commit.records:
            await connection.execute(self._sql["send"], *row)

    def _row_of(self, record: SharedRecord) -> tuple[SharedRecord, tuple[Any, ...]]:
        """A record that is to be written, and the row that it will have."""
        body, seal, version = self._scribe.shared(record)
        return record, (record.collection.encode(), record.key.encode(), version, body, seal)

    def _remember(self, place: Place, *, is_held: bool | None = None) -> None:
        if len(self._places) >= PLACES:
            self._places.clear()
            self._held.clear()
        self._places[place.run] = place
        if is_held is not None:
            (self._held.add if is_held else self._held.discard)(place.run)

    def _forget_place(self, run: RunId) -> None:
        self._places.pop(run, None)
        self._held.discard(run)

    # reading

    async def load(self, run: RunId) -> Stored:
        await self._ready()
        rows = await self._fetch("load", run)
        if not rows:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        self._news.told.discard(run)
        row = rows[0]
        stored = self._stored(row, await self._texts_in(run, row["number"], row["head"]))
        if not stored.record.digest:
            raise Broken(f"run {run}: the record of how it began, or of who holds it, is damaged; bring back a copy")
        place = Place(run, row["number"], roots_of(stored.record, row["record"]))
        place.stand(stored.seq, row["tip"], row["wake"], NO_PARTS)
        self._remember(place)
        return stored

    async def runs(self) -> list[Stored]:
        """All runs, the newest first. One whose record is damaged has a record without a digest, and no head."""
        rows = await self._fetch("runs")
        wanted = [(row["number"], digest) for row in rows for digest in digests_in(row["head"])]
        known: dict[int, dict[bytes, bytes]] = {}
        if wanted:
            for number, digest, body in await self._fetch("texts_of_all", *_columns(wanted, 2)):
                known.setdefault(number, {})[digest] = body
        return [self._stored(row, _text_in(row["run"], known.get(row["number"], {}))) for row in rows]

    def _stored(self, row: Any, text: Text) -> Stored:
        _, run, machine, sealed, seq, status, head, tip, seal, _, *held = row
        began, lease = self._scribe.record(run, sealed), lease_of(*held)
        if began is None or lease is None:
            return Stored(Record(run, machine, "", 0.0), {}, -1, status_of(status, {}), Lease("", 0, 0.0))
        plain = head_of(seq, head, text) if self._sealing.head_holds(tip, sealed[SIZE:], head, seal) else {}
        return Stored(began, plain, seq, status_of(status, plain), lease)

    async def _texts_in(self, run: RunId, number: int, *bodies: bytes) -> Text:
        """Gives the long texts of some entries or heads of a run."""
        wanted = {digest for body in bodies for digest in digests_in(body)}
        rows = await self._fetch("texts", number, list(wanted)) if wanted else ()
        return _text_in(run, {row[0]: row[1] for row in rows})

    async def entries(self, run: RunId, start: int = 0, limit: int | None = None) -> list[Mapping[str, Any]]:
        last = LAST if limit is None else start + limit - 1
        found: list[Mapping[str, Any]] = []
        for name, first, end in await self._pieces_of(run):
            if first <= last and start <= end:
                found += await self._own_entries(name, first, max(start, first), min(last, end))
        return found

    async def _pieces_of(self, run: RunId) -> list[tuple[RunId, int, int]]:
        """Where the journal of a run stands: with the runs that it was forked from, and with itself."""
        if run not in self._places and not await self._fetch("seq", run):
            return []
        place = await self._place(run)
        _, origin, shared = place.roots
        if origin and (await self._place(origin)).number >= place.number:
            raise Broken(f"run {run}: it cannot have been forked from {origin}, which is younger")
        above = [(one, first, min(end, shared)) for one, first, end in await self._pieces_of(origin)] if origin else []
        return [*above, (run, shared + 1, LAST)]

    async def _own_entries(self, run: RunId, first: int, start: int, last: int) -> list[Mapping[str, Any]]:
        """The entries of a run from one to another, of those that it has itself."""
        latest = await self.seq(run)
        since, last = max(start - 1, first), min(latest, last)
        if last < since:
            return []
        place = await self._place(run)
        rows = [_row(row) for row in await self._fetch("entries", place.number, since, last)]
        if [row[0] for row in rows] != list(range(since, last + 1)):
            raise Broken(f"run {run}: entries of its journal are missing or do not belong there")
        text = await self._texts_in(run, place.number, *(row[2] for row in rows))
        before = await self._chain_start(run, place.roots) if since == start else rows[0][3]
        found: list[Mapping[str, Any]] = []
        for row in rows if since == start else rows[1:]:
            found.append(self._scribe.entry(run, row, before, text))
            before = row[3]
        return found

    async def _chain_start(self, run: RunId, roots: Roots) -> bytes:
        """What stands before the first entry that a run has itself."""
        _, name, shared = roots
        if not name:
            return chain_start(run)
        while shared <= (await self._place(name)).roots.shared:
            name = (await self._place(name)).roots.origin
        rows = await self._fetch("entries", (await self._place(name)).number, shared, shared)
        if not rows:
            raise Broken(f"run {run}: entry {shared} of run {name}, which it was forked from, is lost")
        return chain_start(run, rows[0]["seal"])

    async def thread(self, run: RunId, name: str, start: int, end: int) -> list[Any]:
        said = await self._window(run, name, start, end)
        if len(said) != end - start:  # the index is damaged, or of another past than this fork's; the journal knows
            said = said_in(await self.entries(run), name)[start:end]
        if len(said) != end - start:
            raise Broken(f"run {run}: messages of its thread {name!r} are missing")
        return said

    async def _window(self, run: RunId, thread: str, start: int, end: int) -> list[Any]:
        """The messages of a thread from one place up to another, or fewer where the index does not fit."""
        parts: list[list[Any]] = []
        last = LAST
        while run and start < end:
            place = await self._place(run)
            rows = await self._fetch("window", place.number, thread.encode(), start, end)
            if any(row["seq"] is None for row in rows):
                return []
            text = await self._texts_in(run, place.number, *(row["body"] for row in rows))
            for at, sign, seq, cause, body, seal, before in rows:
                if seq == place.roots.shared + 1:
                    before = await self._chain_start(run, place.roots)
                if not self._sealing.piece_holds(seal, at, thread, sign) or seq > last:
                    return []
                entry = self._scribe.entry(run, (seq, cause.decode(), body, seal), before, text)
                part = cut(Piece(thread, at, seq), entry, start, end)
                if len(part) != end - max(at, start):
                    return []
                parts.append(part)
                end = at
            run, last = place.roots.origin, min(last, place.roots.shared)
        return join_parts(parts)

    async def find(self, run: RunId, cause: str) -> int | None:
        effect, named = EFFECT.match(cause), cause.encode()
        for name, _, end in await self._pieces_of(run):
            place = await self._place(name)
            if effect is None:
                rows = await self._fetch("find", place.number, named)
            else:
                wanted = int(effect[1] or LAST)
                rows = await self._fetch("find_end", place.number, named, wanted if wanted < place.seq else -1)
            if rows and rows[0][0] <= end:
                seq: int = rows[0][0]
                return seq
        return None

    async def due(self, now: float, limit: int, gone: Sequence[str] = (), scope: Scope = EVERYTHING) -> list[RunId]:
        wanted = (list(gone), limit, list(scope.queues), list(scope.tenants), scope.after)
        return [row[0] for row in await self._fetch("due", now, now + 2 * LEASE, *wanted)]

    async def suspects(self, now: float) -> Mapping[RunId, int]:
        return {row[0]: row[1] for row in await self._fetch("suspects", now)}

    async def owners(self) -> list[str]:
        return [row[0] for row in await self._fetch("owners")]

    async def wait_for_work(self, now: float, seconds: float) -> None:
        rows = await self._fetch("next_wake", now)
        wake = rows[0][0]
        await self._news.wait(min(seconds * QUIET, max(wake - now, 0.0)) if wake is not None else seconds * QUIET)

    async def _place(self, run: RunId) -> Place:
        """Where a run stands in the database; looked up where it is not remembered."""
        if run not in self._places:
            rows = await self._fetch("load", run)
            if not rows:
                raise Conflict(f"run {run} is not there any more")
            row = rows[0]
            place = Place(run, row["number"], roots_of(self._scribe.record(run, row["record"]), row["record"]))
            place.stand(row["seq"], row["tip"], row["wake"], NO_PARTS)
            self._remember(place)
        return self._places[run]

    # records

    async def records(
        self, collection: str, *, key: str | None = None, prefix: str = "", most: int = 1000
    ) -> list[SharedRecord]:
        named = collection.encode()
        if key is not None:
            rows = await self._fetch("record", named, key.encode())
        elif beyond := first_beyond(prefix):
            rows = await self._fetch("records_between", named, prefix.encode(), beyond.encode(), most)
        else:
            rows = await self._fetch("records", named, prefix.encode(), most)
        return [self._shared_record(row) for row in rows]

    def _shared_record(self, row: Sequence[Any]) -> SharedRecord:
        collection, key, *rest = row
        return self._scribe.shared_record((collection.decode(), key.decode(), *rest))

    async def outbox(self, mirror: str, most: int = 100) -> list[Outgoing]:
        rows = await self._fetch("outbox", mirror, most)
        return [Outgoing(number, self._shared_record(row)) for number, *row in rows]

    async def mirrored(self, mirror: str, upto: int) -> None:
        await self._fetch("mirrored", mirror, upto)

    # holding

    async def seq(self, run: RunId) -> int:
        if run in self._held and run not in self._news.told and not self._news.is_deaf:
            return self._places[run].seq
        rows = await self._fetch("seq", run)
        return rows[0][0] if rows else -1

    async def claim(self, run: RunId, seen: Lease, owner: str, until: float) -> Lease | None:
        row = (owner, until, run, seen.token, seen.until)
        rows, was_cut = await self._connections.try_hard(lambda link: link.fetch(self._sql["claim"], *row))
        if not rows and was_cut:
            ours = (owner, seen.token + 1, until)
            found = await self._fetch("stands", run)
            rows = [there for there in found if (there["owner"], there["token"], there["until"]) == ours]
        if not rows:
            return None
        return Lease(owner, rows[0]["token"], until, rows[0]["crashes"])

    async def renew(self, run: RunId, lease: Lease, until: float) -> bool:
        return bool(await self._fetch("renew", until, run, lease.token))

    async def release(self, run: RunId, lease: Lease) -> None:
        self._held.discard(run)
        await self._fetch("release", run, lease.token)

    async def forgive(self, run: RunId, lease: Lease) -> None:
        await self._fetch("forgive", run, lease.token)

    async def take_turn(self, name: str, per_minute: int) -> float:
        wanted = (name.encode(), per_minute, MINUTE)
        rows = await self._fetch("take_turn", *wanted) or await self._fetch("first_turn", *wanted)
        return float(rows[0][0]) if rows else 0.0

    async def repair(self, run: RunId, head: Head) -> None:
        place = await self._place(run)
        rows = await self._fetch("entries", place.number, head.seq, head.seq)
        if not rows:
            raise Broken(f"run {run}: its journal has no entry {head.seq}")
        tip, texts = rows[0]["seal"], dict[str, bytes]()
        kept = pack(encode_head(head), texts)
        seal = self._sealing.head(tip, place.roots.record, kept)
        row = (kept, seal, tip, head.seq, head.snapshot.status, head.wake(), run)

        async def put_back(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute(self._sql["repair"], *row)
                await connection.execute(self._sql["keep"], place.number, *_texts(texts))

        if self._anchors is not None:
            self._anchors.say(Anchor("mended", run, head.seq, head=seal))
        await self._connections.do(put_back)
        self._forget_place(run)

    async def set_aside(self, run: RunId, reason: str) -> None:
        await self._fetch("set_aside", SET_ASIDE + _plain(reason), run)
        self._forget_place(run)

    async def take_back(self, run: RunId) -> None:
        await self._fetch("take_back", SET_ASIDE, run)
        self._forget_place(run)

    async def forget(self, run: RunId) -> None:
        await self._fetch("forget", run)
        self._forget_place(run)
        if self._anchors is not None:
            self._anchors.say(Anchor("gone", run, BEGINNING))
            self._anchors.sync()

    async def redact(self, redaction: Redaction) -> None:
        await self._ready()
        self._forget_place(redaction.run)
        place = await self._place(redaction.run)
        rows = [_row(row) for row in await self._fetch("entries", place.number, -1, LAST)]
        before = await self._chain_start(redaction.run, place.roots)
        new = self._scribe.redacted(redaction, place, before, rows)

        async def write(connection: Any) -> None:
            async with connection.transaction():
                await self._redact(connection, place, new)

        if self._anchors is not None:
            self._anchors.say(Anchor("mended", redaction.run, place.seq, head=new.seal))
        await self._connections.do(write)

    async def _redact(self, connection: Any, place: Place, new: Redacted) -> None:
        row = (new.head, new.seal, place.number, place.seq, place.tip)
        if not await connection.fetch(self._sql["redact_head"], *row):
            raise Conflict(f"run {place.run} was moved by another writer")
        await connection.execute(self._sql["redact_entries"], place.number, *_columns(new.bodies, 2))
        await connection.execute(self._sql["keep"], place.number, *_texts(new.texts))
        await connection.execute(self._sql["drop_texts"], place.number, list(new.needed))
        for collection, key, version, body, seal in new.records:
            kept = (collection.encode(), key.encode(), version, body, seal)
            await connection.execute(self._sql["redact_outgoing"], *kept)
            if await connection.fetch(self._sql["redact_record"], *kept):  # mirrors have the old one, and get this one
                await connection.execute(self._sql["order_outbox"])
                await connection.execute(self._sql["send"], *kept)

    async def scrub(self) -> str:
        async def clear(connection: Any) -> None:
            for table in ("entries", "runs", "texts", "records", "outbox"):
                await connection.execute(f"VACUUM {table}")

        await self._connections.do(clear)
        return (
            "PostgreSQL overwrites replaced rows when it needs their place; VACUUM FULL at a quiet time does it at once"
        )

    # auditing

    async def audit(self, run: RunId, digest: tuple[int, bytes] | None = None) -> Audit:
        await self._ready()
        trails = await self._trails(run)
        anchors = self._anchors
        if not trails and (anchors is None or run not in anchors.runs()):
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        names = {run, *(trail.run for trail in trails)}
        said = {name: anchors.of(name) if anchors is not None else () for name in names}
        return verdict(run, trails, said, self._sealing, digest)

    async def anchored(self) -> list[RunId]:
        await self._ready()
        return [*self._anchors.runs()] if self._anchors is not None else []

    async def behind(self, run: RunId) -> str:
        await self._ready()
        tip = self._anchors.tip(run) if self._anchors is not None else None
        if tip is None:
            return ""
        rows = await self._fetch("seq", run)  # read after the anchors: another process may write both meanwhile
        latest = rows[0][0] if rows else -1
        return behind(tip, latest, await self._seal_of(run, tip[0]) if tip[0] <= latest else None)

    async def _seal_of(self, run: RunId, seq: int) -> bytes | None:
        for name, first, end in await self._pieces_of(run):
            if first <= seq <= end:
                rows = await self._fetch("entries", (await self._place(name)).number, seq, seq)
                return rows[0]["seal"] if rows else None
        return None

    async def strays(self) -> Mapping[RunId, str]:
        await self._ready()
        if self._anchors is None:
            return {}
        tips = dict(self._anchors.tips())
        stands = {row[0]: row[1] for row in await self._fetch("seqs")}
        found = {run: behind(tip, stands.get(run, -1), tip[1]) for run, tip in tips.items()}
        return {run: why for run, why in found.items() if why}

    async def accept(self, run: RunId) -> None:
        await self._ready()
        anchors, rows = self._anchors, await self._fetch("load", run)
        if anchors is None or (not rows and anchors.tip(run) is None):
            raise Refused(f"there is no run {run!r} in this store, nor do the anchors know one")
        if rows:
            anchors.say(Anchor("accepted", run, rows[0]["seq"], rows[0]["tip"], rows[0]["seal"]))
        else:
            anchors.say(Anchor("gone", run, BEGINNING))
        anchors.sync()

    async def _trails(self, run: RunId, last: int = LAST, younger: int = LAST) -> list[Trail]:
        """All that the database has of a run, and of those that it was forked from, which are older than it."""
        rows = await self._fetch("load", run)
        if not rows or rows[0][0] >= younger:
            return []
        number, _, _, sealed, latest, _, head, tip, seal, *_ = rows[0]
        record = self._scribe.record(run, sealed)
        found = [_row(row) for row in await self._fetch("entries", number, 0, last)]
        text = await self._texts_in(run, number, head, *(row[2] for row in found))
        links = tuple(Link(*row, is_readable(row[0], row[1], row[2], text)) for row in found)
        crown = Crown(head, tip, seal, bool(head_of(latest, head, text))) if last == LAST else None
        trail = Trail(run, record, sealed, latest if crown is not None else last, links, crown)
        if record is None or not record.origin:
            return [trail]
        above = await self._trails(record.origin, min(record.shared, last), number)
        return [*above, trail] if last > record.shared else above

    # moving to another store

    async def seal_parcel(self, content: bytes) -> bytes:
        """The seal of runs that leave for another store."""
        return self._sealing.parcel(content)

    async def examine_parcel(self, content: bytes, seal: bytes) -> Signed | None:
        """Who has sealed runs that came from another store; None where they are not what was sealed."""
        return self._sealing.signed(seal) if self._sealing.parcel_holds(content, seal) else None

    async def vouch(self, run: RunId) -> None:
        """Tell the anchors that a run rests where it stands."""
        await self._ready()
        rows = await self._fetch("load", run)
        if self._anchors is not None:
            self._anchors.say(Anchor("rests", run, rows[0]["seq"], rows[0]["tip"], rows[0]["seal"]))

    async def pack_run(self, run: RunId) -> PackedRun:
        """A run as it stands."""
        rows = await self._fetch("load", run)
        if not rows:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        number, name, machine, record, seq, status, head, tip, seal, wake, _, token, _, crashes = rows[0]
        entries = tuple(_row(row) for row in await self._fetch("entries", number, -1, LAST))
        texts = tuple((row[0], row[1]) for row in await self._fetch("pack_texts", number))
        pieces = tuple((row[0].decode(), row[1], row[2], row[3]) for row in await self._fetch("pack_pieces", number))
        stands = (seq, status, head, tip, seal, wake, token, crashes)
        return PackedRun(name, machine, record, *stands, entries, texts, pieces)

    async def unpack_run(self, packed: PackedRun) -> None:
        """Keep a run of another store; Conflict where its id is taken."""
        named = (packed.run, _plain(packed.machine), packed.record, packed.seq, _plain(packed.status), packed.head)
        row = (*named, packed.tip, packed.seal, packed.wake, packed.token, packed.crashes)
        links = _columns([_link(entry) for entry in packed.entries], 5)
        parts = (*links, *_columns(packed.texts, 2), *_pieces(packed.pieces))
        lane = lane_row(self._scribe.record(packed.run, packed.record))
        if not await self._fetch("unpack_run", *row, *parts, *lane):
            raise Conflict(f"run {packed.run} exists already")

    async def pack_records(self) -> PackedRecords:
        """What outlives runs, as it stands."""
        name = (await self._fetch("name"))[0][0]
        records = tuple((row[0].decode(), row[1].decode(), *row[2:]) for row in await self._fetch("pack_records"))
        outbox = tuple((row[0], row[1].decode(), row[2].decode(), *row[3:]) for row in await self._fetch("pack_outbox"))
        return PackedRecords(name, records, outbox, tuple(tuple(row) for row in await self._fetch("pack_mirrors")))

    async def unpack_records(self, packed: PackedRecords) -> None:
        """Keep what outlives the runs of another store, and go by its name from now on."""
        records = [(row[0].encode(), row[1].encode(), *row[2:]) for row in packed.records]
        outbox = [(row[0], row[1].encode(), row[2].encode(), *row[3:]) for row in packed.outbox]

        async def write(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute(self._sql["rename"], packed.name)
                await connection.execute(self._sql["clear_records"])
                await connection.execute(self._sql["clear_outbox"])
                await connection.execute(self._sql["clear_mirrors"])
                await connection.execute(self._sql["unpack_records"], *_columns(records, 5))
                await connection.execute(self._sql["unpack_outbox"], *_columns(outbox, 6))
                await connection.execute(self._sql["number_outbox"])
                await connection.execute(self._sql["unpack_mirrors"], *_columns(packed.mirrors, 2))

        await self._connections.do(write)
        folder, tell = self._anchoring
        if folder is not None:
            self._anchors = Anchors(folder, packed.name, self.address, tell)

    async def clock(self) -> float:
        """What time the server has, in seconds since 1970."""
        rows = await self._fetch("clock")
        return float(rows[0][0])

    async def name(self) -> str:
        """The name of the store, which no other has."""
        return str((await self._fetch("name"))[0][0])

    async def engine(self) -> str:
        """The address of the engine that pumps the runs of this store; "" where its own workers do."""
        return str((await self._fetch("engine"))[0][0])

    async def set_engine(self, engine: str, before: str) -> bool:
        """Have the runs pumped by another engine from now on; False where it is not the one of before any more."""
        return bool(await self._fetch("set_engine", engine, before))

    def close(self) -> None:
        self._connections.close()
        if self._anchors is not None:
            self._anchors.close()


def _too_late(commit: _Commit) -> Conflict:
    return Conflict(f"run {commit.place.run} was moved by another writer")


def _row(row: Any) -> tuple[int, str, bytes, bytes]:
    """An entry as it was read: number, cause, body and seal."""
    seq, cause, body, seal = row
    return seq, cause.decode(), body, seal


def _link(link: tuple[int, str, bytes, bytes]) -> tuple[int, bytes, bool, bytes, bytes]:
    """An entry as it is written: number, cause, whether that is of a command, body and seal."""
    seq, cause, body, seal = link
    return seq, cause.encode(), EFFECT.match(cause) is None, body, seal


def _columns(rows: Sequence[Sequence[Any]], width: int) -> tuple[list[Any], ...]:
    """Rows as columns, of which there are so many also where there is no row."""
    return tuple([row[column] for row in rows] for column in range(width))


def _texts(texts: Mapping[str, bytes]) -> tuple[list[bytes], list[bytes]]:
    return list(texts.values()), [text.encode() for text in texts]


def _pieces(pieces: Sequence[tuple[str, int, int, bytes]]) -> tuple[list[Any], ...]:
    return _columns([(thread.encode(), start, seq, seal) for thread, start, seq, seal in pieces], 4)


def _plain(text: str) -> str:
    """A text for people in a column of the database, which holds no NUL."""
    return text.replace("\x00", "\ufffd")


def _text_in(run: RunId, known: Mapping[bytes, bytes]) -> Text:
    def text(digest: bytes) -> str:
        body = known.get(digest)
        if body is None or digest_of(body) != digest:
            raise Broken(f"run {run}: a long text was lost or changed")
        return body.decode()

    return text


async def migrate(connection: Any) -> None:
    """Bring the tables up to date: the files of the folder in order, each once; several who come at once take turns."""
    folder = files("moothall.stores").joinpath("postgresql_migrations")
    steps = sorted((step for step in folder.iterdir() if step.name.endswith(".sql")), key=lambda step: step.name)
    if await _done(connection) == len(steps):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        await connection.execute("CREATE SCHEMA IF NOT EXISTS moothall")
        await connection.execute("CREATE TABLE IF NOT EXISTS moothall.migrations (name text PRIMARY KEY)")
        done = await _done(connection)
        if done > len(steps):
            raise Refused("the store was written by a newer Moothall; install that one:  pip install -U moothall")
        for step in steps[done:]:
            await connection.execute(step.read_text())
            await connection.execute("INSERT INTO moothall.migrations VALUES ($1)", step.name)


async def _done(connection: Any) -> int:
    """How many migrations were done."""
    there = await connection.fetchval("SELECT to_regclass('moothall.migrations')::text")
    count: int = await connection.fetchval("SELECT count(*) FROM moothall.migrations") if there else 0
    return count
