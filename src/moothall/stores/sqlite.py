"""Keeps runs in one SQLite file: write-ahead log, every commit on the disk before it counts.

- The sequence number and the lease's token stand in the first UPDATE; whoever touches no row has lost.
- While others write, reading has a connection of its own and never waits for them. Otherwise it uses the writer's,
  which still knows the pages that it wrote.
- What is remembered of a run between its commits saves looking it up. It may be forgotten at any time, and is when a
  commit fails: what the file says decides.
- What is read back is checked against its seal. A head that does not fit counts as missing; a journal or a record
  that does not fit is reported as broken, for that run only. Who holds a run and when it wants attention has no seal.
- A file that holds something else is refused and left as it was. One that is taken away while it is in use is noticed
  from time to time, and nothing is written beside it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from moothall.errors import Broken, Conflict, EffectFailed, MoothallError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.events import SharedRecord
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_head
from moothall.runtime.ports import (
    EVERYTHING,
    LEASE,
    MINUTE,
    SET_ASIDE,
    Audit,
    Gone,
    Lease,
    Outdated,
    Outgoing,
    Redaction,
    Scope,
    Stored,
)
from moothall.stores.anchors import BEGINNING, Anchor, Anchors, Tell, make_folder, nobody
from moothall.stores.audit import Crown, Link, Trail, behind, verdict
from moothall.stores.luggage import PackedRecords, PackedRun
from moothall.stores.plain import digest_of, pack, to_bytes, unpack
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
from moothall.stores.threads import Piece, count_pieces, cut, join_parts, said_in
from moothall.stores.writer import Undone, Writing, damage_error

TAKEN_AWAY = "its file was deleted or replaced while it was in use"
TABLES = frozenset(("runs", "entries", "texts"))


Blob = bytearray
"""How bytes are given to sqlite3: it takes these as they are, and looks for a converter for each `bytes`."""


class _Commit(NamedTuple):
    """One commit, encoded and ready to be written, and what is to be remembered of it.

    The statement moves the run; `wakes` says that `wake`, when it wants attention, has to be written beside that.
    """

    place: Place
    statement: str
    row: tuple[Any, ...]
    entries: list[tuple[Any, ...]]
    texts: Mapping[str, bytes]
    pieces: Sequence[tuple[Any, ...]]
    records: Sequence[tuple[SharedRecord, tuple[Any, ...]]]
    wakes: bool
    wake: float | None
    sealed: Sealed


class SqliteStore:
    """A store in one file."""

    def __init__(
        self,
        path: Path,
        key: bytes = b"",
        *,
        durability: str = "full",
        anchors: Path | None = None,
        tell: Tell = nobody,
    ) -> None:
        self._sql = statements_in(files("moothall.stores").joinpath("sqlite.sql").read_text())
        self._scribe = Scribe(key)
        self._sealing = self._scribe.seals
        self._places: dict[RunId, Place] = {}
        self._anchoring = anchors, tell
        try:
            _make_private(path)
            self._db = _connect(path)
            self._db.text_factory = _text
            self._writing = Writing(self._db)
            self._execute = self._writing.execute
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error
        try:
            self._prepare(durability)
            self._anchors = None
            if anchors is not None:
                self._anchors = Anchors(anchors, self._name(), path, tell, is_lasting=durability != "normal")
            self._reading = _connect(path)
            self._reading.text_factory = _text
            self._looking = self._reading.cursor()
            self._look = self._looking.execute
            self._file = os.path.abspath(path)
            self._number = os.stat(path).st_ino
        except (sqlite3.Error, OSError, UnicodeDecodeError, Refused) as error:  # what is damaged may be quoted in it
            self._db.close()
            raise _unusable(path, error) from error

    @property
    def crowd(self) -> int:
        """How many runs are busy with the store."""
        return self._writing.crowd

    @crowd.setter
    def crowd(self, busy: int) -> None:
        self._writing.crowd = busy

    def _prepare(self, durability: str) -> None:
        tables = {name for (name,) in self._db.execute(self._sql["tables"])}
        if tables and not tables >= TABLES:
            raise Refused("it is the database of another program, or of an older Moothall")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=" + ("NORMAL" if durability == "normal" else "FULL"))
        _migrate(self._db, {"0003-threads.sql": self._fill_threads})
        self._db.execute(self._sql["columns"])

    def _fill_threads(self) -> None:
        """Write down where the messages stand of journals that are older than the index of them."""
        for number, run, sealed in self._found("numbers"):
            record = self._scribe.record(run, sealed)
            places = self._grown_until(record.origin, record.shared) if record is not None and record.origin else {}
            for seq, seal, entry in self._appending(run, number):
                for piece in count_pieces(seq, entry, places):
                    row = (number, piece.thread, piece.start, seq, self._sealing.piece(seal, piece.start, piece.thread))
                    self._execute(self._sql["place_messages"], row)

    def _grown_until(self, run: RunId, last: int) -> dict[str, int]:
        """How many messages the threads of a run had after an entry."""
        rows = self._found("place", run)
        record = self._scribe.record(run, rows[0][4]) if rows else None
        if record is None:
            return {}
        places = self._grown_until(record.origin, min(record.shared, last)) if record.origin else {}
        for seq, _, entry in self._appending(run, rows[0][0]):
            if seq <= last:
                count_pieces(seq, entry, places)
        return places

    def _appending(self, run: RunId, number: int) -> Iterator[tuple[int, bytes, Mapping[str, Any]]]:
        """The entries of a run that append something, with their seals, up to the first that cannot be read."""
        text = self._text_of(run, number)
        for seq, cause, body, seal in self._found("appending", number):
            if type(seal) is not bytes or not is_readable(seq, cause, body, text):
                return
            yield seq, seal, unpack(body, text)

    def _name(self) -> str:
        """The store's own name."""
        row = self._db.execute(self._sql["name"]).fetchone()
        return re.sub(r"\W", "", str(row[0]) if row is not None else "") or "nameless"

    # writing

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        run, wake, texts = record.run, head.wake(), dict[str, bytes]()
        began = to_bytes(encode(record))
        roots = Roots(began, record.origin, record.shared)
        place, before = Place(run, 0, roots), self._chain_start(run, roots)
        place.stand(record.shared, before, None, NO_PARTS)
        body, tip, kept, seal, parts = self._scribe.sealed(place, before, head, entry, texts)
        named = (run, record.machine, Blob(self._sealing.record(run, began) + began), *lane_row(record))
        stands = (head.seq, head.snapshot.status, Blob(kept), Blob(tip), Blob(seal), wake)
        held = (lease.owner, lease.until) if lease is not None else (None, 0.0)
        row = (*named, *stands, *held)
        appended = (entry.seq, entry.cause, Blob(body), Blob(tip))
        if self._anchors is not None:
            self._anchors.say(Anchor("moves", run, BEGINNING))
        pieces = self._placed(head, (entry,), (tip,)) if entry.appends else ()
        place.number = await self._writing.have_written(self._begin, (row, appended, texts, pieces))
        place.stand(head.seq, tip, wake, parts)
        self._remember(place)
        self._anchor(place, seal)

    def _anchor(self, place: Place, seal: bytes) -> None:
        """Where nothing is to be done now for a run that has moved, tell the anchors that it rests there."""
        if self._anchors is not None:
            place.moves = place.wake == 0.0
            if not place.moves:
                self._anchors.say(Anchor("rests", place.run, place.seq, place.tip, seal))

    def _begin(self, new: tuple[tuple[Any, ...], tuple[Any, ...], Mapping[str, bytes], Sequence[Any]]) -> int:
        row, entry, texts, pieces = new
        try:
            number = self._execute(self._sql["begin"], row).lastrowid or 0
        except sqlite3.IntegrityError as error:
            raise Conflict(f"run {row[0]} exists already; choose another id, or resume it") from error
        self._execute(self._sql["append"], (number, *entry))
        self._keep_texts(number, texts)
        for piece in pieces:
            self._execute(self._sql["place_messages"], (number, *piece))
        return number

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
        place = self._places.get(run) or self._place(run)
        if not place.moves and self._anchors is not None:
            self._anchors.say(Anchor("moves", run, place.seq, place.tip))
        commit = self._encoded(place, head, (*earlier, entry) if earlier else (entry,), lease, after)
        if records:
            commit = commit._replace(records=[self._row_of(record) for record in records])
        try:
            await self._writing.have_written(self._move, commit)
        except (MoothallError, asyncio.CancelledError):
            self._places.pop(run, None)
            raise
        _, tip, _, seal, parts = commit.sealed
        place.stand(head.seq, tip, commit.wake, parts)
        self._places[run] = place
        self._anchor(place, seal)
        if place.moves and (begins(entry) or any(map(begins, earlier))) and self._anchors is not None:
            self._anchors.say(Anchor("moves", run, place.seq, place.tip))
            if self.crowd > 1:
                await asyncio.to_thread(self._anchors.sync)
            else:
                self._anchors.sync()

    def _encoded(
        self, place: Place, head: Head, entries: Sequence[Entry], lease: Lease | None, after: Lease | None
    ) -> _Commit:
        """Entries of a run and the head after the last of them, as they will be written behind those before."""
        texts: dict[str, bytes] = {}
        number, before, wake, entry = place.number, Blob(place.tip), head.wake(), entries[-1]
        appended: list[tuple[Any, ...]] = []
        last = place.tip
        if len(entries) > 1:
            links, last = self._scribe.chained(last, entries[:-1], texts)
            appended = [(number, seq, cause, Blob(link), Blob(seal)) for seq, cause, link, seal in links]
        body, tip, kept, seal, _ = sealed = self._scribe.sealed(place, last, head, entry, texts)
        new, old, status, newest = head.seq, head.seq - len(entries), head.snapshot.status, Blob(tip)
        appended.append((number, entry.seq, entry.cause, Blob(body), newest))
        row: tuple[Any, ...]
        if lease is None:
            statement, wakes = self._sql["tell"], False
            row = (new, status, Blob(kept), newest, Blob(seal), wake, number, old, before)
        else:
            statement, wakes = self._sql["move"], wake != place.wake
            owner, token, until = (after.owner, after.token, after.until) if after else (None, lease.token, 0.0)
            row = (new, status, Blob(kept), newest, Blob(seal), owner, token, until, number, old, before, lease.token)
        pieces: Sequence[tuple[Any, ...]] = ()
        if entry.appends or len(entries) > 1:
            pieces = self._placed(head, entries, [row[4] for row in appended])
        return _Commit(place, statement, row, appended, texts, pieces, (), wakes, wake, sealed)

    def _placed(self, head: Head, entries: Sequence[Entry], seals: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Where in their threads stands what these entries with these seals append, as it will be written."""
        pieces = self._scribe.placed(head, entries, seals)
        return [(thread, start, seq, Blob(seal)) for thread, start, seq, seal in pieces]

    def _move(self, commit: _Commit) -> None:
        """Write a commit, unless another writer came first."""
        place, statement, row, entries, texts, pieces, records, wakes, wake, _ = commit
        if len(records) > 1:
            for record, _ in records:
                if (version := self._version(record)) != record.version:
                    raise Outdated(record, version)
        for record, kept in records:
            self._write_record(record, kept)
        if self._execute(statement, row).rowcount != 1:
            late = Undone if records else Conflict
            raise late(f"run {place.run} was moved by another writer")
        for entry in entries:
            self._execute(self._sql["append"], entry)
        for piece in pieces:
            self._execute(self._sql["take_back_messages"], (place.number, piece[0], piece[1]))
            self._execute(self._sql["place_messages"], (place.number, *piece))
        if wakes:
            self._execute(self._sql["wake"], (wake, place.number))
        if texts:
            self._keep_texts(place.number, texts)

    def _row_of(self, record: SharedRecord) -> tuple[SharedRecord, tuple[Any, ...]]:
        """A record that is to be written, and the row that it will have."""
        body, seal, version = self._scribe.shared(record)
        return record, (Blob(body), Blob(seal), version, record.collection, record.key)

    def _write_record(self, record: SharedRecord, kept: tuple[Any, ...]) -> None:
        """Write a record, unless it is not what it was when it was read; of several that was looked at before."""
        if not record.version:
            changed = self._execute(self._sql["write_new"], kept).rowcount
        else:
            changed = self._execute(self._sql["write"], (*kept, record.version)).rowcount
        if not changed:
            raise Outdated(record, self._version(record))
        self._execute(self._sql["send"], kept)

    def _version(self, record: SharedRecord) -> int:
        """How often a record was written by now."""
        there = self._execute(self._sql["version"], (record.collection, record.key)).fetchone()
        return there[0] if there is not None else 0

    def _keep_texts(self, number: int, texts: Mapping[str, bytes]) -> None:
        for text, digest in texts.items():
            self._execute(self._sql["keep"], (number, Blob(digest), text))

    def _remember(self, place: Place) -> None:
        if len(self._places) >= PLACES:
            self._places.clear()
        self._places[place.run] = place

    # reading

    async def load(self, run: RunId) -> Stored:
        rows = self._found("load", run)
        if not rows and not self._found("astray", run):
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        if not rows or rows[0][1] != run:
            raise Broken(f"run {run}: the store is damaged, its index does not fit; bring back a copy of the file")
        stored = self._stored(rows[0])
        if not stored.record.digest:
            raise Broken(f"run {run}: the record of how it began, or of who holds it, is damaged; bring back a copy")
        place = Place(run, rows[0][0], roots_of(stored.record, rows[0][3]))
        place.stand(stored.seq, rows[0][7], rows[0][9], NO_PARTS)
        self._remember(place)
        return stored

    async def runs(self) -> list[Stored]:
        """All runs, the newest first. One whose record is damaged has a record without a digest, and no head."""
        return [self._stored(row) for row in self._found("runs")]

    def _stored(self, row: Sequence[Any]) -> Stored:
        number, run, machine, sealed, seq, status, head, tip, seal, _, *held = row
        began, lease = self._scribe.record(run, sealed), lease_of(*held)
        if began is None or lease is None or type(seq) is not int:
            return Stored(Record(str(run), str(machine), "", 0.0), {}, -1, status_of(status, {}), Lease("", 0, 0.0))
        plain = (
            head_of(seq, head, self._text_of(run, number))
            if self._sealing.head_holds(tip, sealed[SIZE:], head, seal)
            else {}
        )
        return Stored(began, plain, seq, status_of(status, plain), lease)

    async def entries(self, run: RunId, start: int = 0, limit: int | None = None) -> list[Mapping[str, Any]]:
        last = LAST if limit is None else start + limit - 1
        found: list[Mapping[str, Any]] = []
        for owner, first, end in self._pieces(run):
            if first <= last and start <= end:
                found += self._own_entries(owner, first, max(start, first), min(last, end))
        return found

    def _pieces(self, run: RunId) -> list[tuple[RunId, int, int]]:
        """Where the journal of a run stands: with the runs that it was forked from, and with itself."""
        if not self._found("seq", run):
            return []
        _, origin, shared = self._place(run).roots
        if origin and self._place(origin).number >= self._place(run).number:
            raise Broken(f"run {run}: it cannot have been forked from {origin}, which is younger")
        above = [(owner, first, min(end, shared)) for owner, first, end in self._pieces(origin)] if origin else []
        return [*above, (run, shared + 1, LAST)]

    def _own_entries(self, run: RunId, first: int, start: int, last: int) -> Iterator[Mapping[str, Any]]:
        """The entries of a run from one to another, of those that it has itself."""
        since = max(start - 1, first)
        rows = self._found("entries", since, last, run)
        latest, after = rows[0][0] if rows else -1, since + len(rows)
        last = min(latest, last) if type(latest) is int else -1
        if type(latest) is int and last < since:
            return
        if after - 1 != last or [row[1] for row in rows] != list(range(since, after)):
            raise Broken(f"run {run}: entries of its journal are missing or do not belong there")
        place = self._place(run)
        text = self._text_of(run, place.number)
        before = self._chain_start(run, place.roots) if since == start else rows[0][4]
        for row in rows if since == start else rows[1:]:
            yield self._scribe.entry(run, row[1:], before, text)
            before = row[4]

    def _chain_start(self, run: RunId, roots: Roots) -> bytes:
        """What stands before the first entry that a run has itself."""
        _, name, shared = roots
        if not name:
            return chain_start(run)
        while shared <= self._place(name).roots.shared:
            name = self._place(name).roots.origin
        rows = self._found("entries", shared, shared, name)
        if not rows or type(rows[0][4]) is not bytes:
            raise Broken(f"run {run}: entry {shared} of run {name}, which it was forked from, is lost")
        return chain_start(run, rows[0][4])

    async def thread(self, run: RunId, name: str, start: int, end: int) -> list[Any]:
        said = self._window(run, name, start, end)
        if len(said) != end - start:  # the index is damaged, or of another past than this fork's; the journal knows
            said = said_in(await self.entries(run), name)[start:end]
        if len(said) != end - start:
            raise Broken(f"run {run}: messages of its thread {name!r} are missing")
        return said

    def _window(self, run: RunId, thread: str, start: int, end: int) -> list[Any]:
        """The messages of a thread from one place up to another, or fewer where the index does not fit."""
        parts: list[list[Any]] = []
        last = LAST
        while run and start < end:
            place = self._place(run)
            names = {"run": place.number, "thread": thread, "start": start, "end": end}
            text, first = self._text_of(run, place.number), place.roots.shared + 1
            for at, sign, seq, cause, body, seal, before in self._named("window", names):
                if seq == first:
                    before = self._chain_start(run, place.roots)
                if not self._sealing.piece_holds(seal, at, thread, sign) or seq > last:
                    return []
                part = cut(
                    Piece(thread, at, seq), self._scribe.entry(run, (seq, cause, body, seal), before, text), start, end
                )
                if len(part) != end - max(at, start):
                    return []
                parts.append(part)
                end = at
            run, last = place.roots.origin, min(last, place.roots.shared)
        return join_parts(parts)

    async def find(self, run: RunId, cause: str) -> int | None:
        place = self._places.get(run)
        is_whole = place is not None and not place.roots.origin
        effect = EFFECT.match(cause)
        for owner, _, end in [(run, 0, LAST)] if is_whole else self._pieces(run):
            if effect is None:
                rows = self._found("find", owner, cause)
            else:
                wanted = int(effect[1] or LAST)
                rows = self._found("find_end", owner, cause, wanted if wanted < self._place(owner).seq else -1)
            if rows and rows[0][0] <= end:
                seq: int = rows[0][0]
                return seq
        return None

    async def due(self, now: float, limit: int, gone: Sequence[str] = (), scope: Scope = EVERYTHING) -> list[RunId]:
        absent, queues, tenants = (to_bytes(list(part)).decode() for part in (gone, scope.queues, scope.tenants))
        wanted = (absent, queues, queues, tenants, tenants, scope.after, limit)
        return [run for (run,) in self._found("due", now, now, now + 2 * LEASE, *wanted)]

    async def suspects(self, now: float) -> Mapping[RunId, int]:
        return dict(self._found("suspects", now))

    async def wait_for_work(self, now: float, seconds: float) -> None:
        await asyncio.sleep(seconds)  # whoever else writes to the file tells nobody

    async def owners(self) -> list[str]:
        self._look_for_file()
        return [owner for (owner,) in self._found("owners")]

    def _place(self, run: RunId) -> Place:
        """Where a run stands in the file; looked up where it is not remembered."""
        if run not in self._places:
            rows = self._found("place", run)
            if not rows:
                raise Conflict(f"run {run} is not there any more")
            number, seq, tip, wake, sealed = rows[0]
            place = Place(run, number, roots_of(self._scribe.record(run, sealed), sealed))
            place.stand(seq, tip, wake, NO_PARTS)
            self._remember(place)
        return self._places[run]

    def _text_of(self, run: RunId, number: int) -> Callable[[bytes], str]:
        def text(digest: bytes) -> str:
            rows = self._found("text", number, digest)
            body = rows[0][0] if rows else None
            if type(body) is not bytes or digest_of(body) != digest:
                raise Broken(f"run {run}: a long text was lost or changed")
            return body.decode()

        return text

    def _found(self, name: str, *values: Any) -> list[Any]:
        return self._named(name, values)

    def _named(self, name: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        try:
            look = self._look if self._writing.is_busy else self._execute
            return look(self._sql[name], values).fetchall()
        except UnicodeEncodeError:  # a name that cannot be written was never kept
            return []
        except sqlite3.OperationalError as error:
            raise EffectFailed(f"the store could not be read: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise damage_error(error) from error

    def _look_for_file(self) -> None:
        """Have nothing written any more where the file was deleted or replaced: SQLite would not notice."""
        try:
            if os.stat(self._file).st_ino == self._number:
                return
        except FileNotFoundError:
            pass
        except OSError:  # it cannot be seen for a while, and is there all the same
            return
        self._execute = self._look = _taken_away
        raise Gone(f"the store could not be read: {TAKEN_AWAY}")

    # records

    async def records(
        self, collection: str, *, key: str | None = None, prefix: str = "", most: int = 1000
    ) -> list[SharedRecord]:
        if key is not None:
            rows = self._found("record", collection, key)
        elif beyond := first_beyond(prefix):
            rows = self._found("records_between", collection, prefix, beyond, most)
        else:
            rows = self._found("records", collection, prefix, most)
        return [self._scribe.shared_record(row) for row in rows]

    async def outbox(self, mirror: str, most: int = 100) -> list[Outgoing]:
        return [
            Outgoing(number, self._scribe.shared_record(row)) for number, *row in self._found("outbox", mirror, most)
        ]

    async def mirrored(self, mirror: str, upto: int) -> None:
        await self._changed("mirrored", mirror, upto)

    # holding

    async def seq(self, run: RunId) -> int:
        self._look_for_file()
        rows = self._found("seq", run)
        return rows[0][0] if rows else -1

    async def claim(self, run: RunId, seen: Lease, owner: str, until: float) -> Lease | None:
        values = (owner, owner, until, run, seen.token, seen.until)
        try:
            rows = await self._writing.have_written(
                lambda row: self._execute(self._sql["claim"], row).fetchall(), values
            )
        except asyncio.CancelledError:  # it is written all the same, and nobody would know
            await self.release(run, Lease(owner, seen.token + 1, until))
            raise
        return Lease(owner, rows[0][0], until, rows[0][1]) if rows else None

    async def renew(self, run: RunId, lease: Lease, until: float) -> bool:
        return await self._changed("renew", until, run, lease.token)

    async def release(self, run: RunId, lease: Lease) -> None:
        await self._changed("release", run, lease.token)

    async def forgive(self, run: RunId, lease: Lease) -> None:
        await self._changed("forgive", run, lease.token)

    async def take_turn(self, name: str, per_minute: int) -> float:
        now = time.time()
        window = {"name": name, "now": now, "since": now - MINUTE, "most": per_minute}

        def begin_unless_full(window: dict[str, Any]) -> list[Any]:
            self._execute(self._sql["drop_turns"], window)
            if self._execute(self._sql["take_turn"], window).rowcount:
                return []
            return self._execute(self._sql["first_turn"], window).fetchall()

        rows = await self._writing.have_written(begin_unless_full, window)
        return rows[0][0] + MINUTE - now if rows else 0.0

    async def repair(self, run: RunId, head: Head) -> None:
        _, seq, _, _, tip = self._found("entries", head.seq, head.seq, run)[0]
        if seq != head.seq:
            raise Broken(f"run {run}: its journal has no entry {head.seq}")
        texts: dict[str, bytes] = {}
        kept = pack(encode_head(head), texts)
        place = self._place(run)
        seal, number = self._sealing.head(tip, place.roots.record, kept), place.number
        row = (kept, seal, tip, head.seq, head.snapshot.status, head.wake(), run)

        def put_back(row: tuple[Any, ...]) -> None:
            self._execute(self._sql["repair"], row)
            self._keep_texts(number, texts)

        if self._anchors is not None:
            self._anchors.say(Anchor("mended", run, head.seq, head=seal))
        await self._writing.have_written(put_back, row)
        self._places.pop(run, None)

    async def set_aside(self, run: RunId, reason: str) -> None:
        await self._changed("set_aside", SET_ASIDE + reason, run)
        self._places.pop(run, None)

    async def take_back(self, run: RunId) -> None:
        await self._changed("take_back", SET_ASIDE, SET_ASIDE, run)
        self._places.pop(run, None)

    async def forget(self, run: RunId) -> None:
        statements = [statement for statement in self._sql["forget"].split(";\n") if statement.strip()]
        await self._writing.have_written(
            lambda name: [self._execute(statement, {"run": name}) for statement in statements], run
        )
        self._places.pop(run, None)
        if self._anchors is not None:
            self._anchors.say(Anchor("gone", run, BEGINNING))
            self._anchors.sync()

    async def redact(self, redaction: Redaction) -> None:
        run = redaction.run
        self._places.pop(run, None)
        place = self._place(run)
        rows = self._found("pack_entries", place.number)
        new = self._scribe.redacted(redaction, place, self._chain_start(run, place.roots), rows)
        if self._anchors is not None:
            self._anchors.say(Anchor("mended", run, place.seq, head=new.seal))
        await self._writing.have_written(self._redact, (place, new))

    def _redact(self, what: tuple[Place, Redacted]) -> None:
        place, new = what
        moved = self._execute(self._sql["redact_head"], (new.head, new.seal, place.number, place.seq, place.tip))
        if moved.rowcount != 1:
            raise Conflict(f"run {place.run} was moved by another writer")
        for seq, body in new.bodies:
            self._execute(self._sql["redact_entry"], (body, place.number, seq))
        self._keep_texts(place.number, new.texts)
        for digest, _ in self._execute(self._sql["pack_texts"], (place.number,)).fetchall():
            if digest not in new.needed:
                self._execute(self._sql["drop_text"], (place.number, digest))
        for record in new.records:
            collection, key, version, body, seal = record
            kept = (body, seal, collection, key, version)
            self._execute(self._sql["redact_outgoing"], kept)
            if self._execute(self._sql["redact_record"], kept).rowcount:  # mirrors have the old one, and get this one
                self._execute(self._sql["send"], (body, seal, version, collection, key))

    async def scrub(self) -> str:
        try:
            self._db.execute("VACUUM")
            is_blocked = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            return f"the file could not be written anew: {error}"
        return "others have the file open, and its -wal file still has old pages" if is_blocked else ""

    # auditing

    async def audit(self, run: RunId, digest: tuple[int, bytes] | None = None) -> Audit:
        trails = self._trails(run)
        anchors = self._anchors_of(run) if not trails else self._anchors
        if not trails and (anchors is None or run not in anchors.runs()):
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        names = {run, *(trail.run for trail in trails)}
        said = {name: anchors.of(name) if anchors is not None else () for name in names}
        return verdict(run, trails, said, self._sealing, digest)

    async def anchored(self) -> list[RunId]:
        return [*self._anchors.runs(), *self._anchors.lost()] if self._anchors is not None else []

    def _anchors_of(self, run: RunId) -> Anchors | None:
        """The anchors that know a run: those of this store, or of one that was here before it."""
        if self._anchors is None or self._anchors.tip(run) is not None:
            return self._anchors
        return self._anchors.lost().get(run, self._anchors)

    async def behind(self, run: RunId) -> str:
        if self._anchors is None:
            return ""
        tip = self._anchors.tip(run)
        if tip is None and (lost := self._anchors.lost().get(run)) is not None:
            tip = lost.tip(run)
        if tip is None:
            return ""
        rows = self._found("stands", tip[0], run)  # read after the anchors: another process may write both meanwhile
        latest, seal = rows[0] if rows else (-1, None)
        if seal is None and type(latest) is int and tip[0] <= latest:
            seal = self._seal_of(run, tip[0])  # it is an entry of a run that this one was forked from
        return behind(tip, latest if type(latest) is int else -1, seal)

    def _seal_of(self, run: RunId, seq: int) -> bytes | None:
        for owner, first, end in self._pieces(run):
            if first <= seq <= end:
                rows = self._found("entries", seq, seq, owner)
                return rows[0][4] if rows else None
        return None

    async def strays(self) -> Mapping[RunId, str]:
        if self._anchors is None:
            return {}
        lost = {run: anchors.tips()[run] for run, anchors in self._anchors.lost().items()}
        tips = {**lost, **self._anchors.tips()}
        stands = dict(self._found("seqs"))
        found = {run: behind(tip, stands.get(run, -1), tip[1]) for run, tip in tips.items()}
        return {run: why for run, why in found.items() if why}

    async def accept(self, run: RunId) -> None:
        anchors = self._anchors_of(run)
        rows = self._found("load", run)
        if anchors is None or (not rows and anchors.tip(run) is None):
            raise Refused(f"there is no run {run!r} in this store, nor do the anchors know one")
        if rows:
            anchors.say(Anchor("accepted", run, rows[0][4], rows[0][7], rows[0][8]))
        else:
            anchors.say(Anchor("gone", run, BEGINNING))
        anchors.sync()
        if anchors is not self._anchors:
            anchors.close()

    def _trails(self, run: RunId, last: int = LAST, younger: int = LAST) -> list[Trail]:
        """All that the file has of a run, and of those that it was forked from, which are older than it."""
        rows = self._found("load", run)
        if not rows or rows[0][0] >= younger:
            return []
        number, _, _, sealed, latest, _, head, tip, seal, *_ = rows[0]
        record = self._scribe.record(run, sealed)
        text = self._text_of(run, number)
        found = self._found("entries", 0, last, run)
        links = tuple(
            Link(seq, cause, body, seal, is_readable(seq, cause, body, text))
            for _, seq, cause, body, seal in found
            if seq is not None
        )
        crown = Crown(head, tip, seal, self._is_head(run, number, latest, head)) if last == LAST else None
        trail = Trail(run, record, sealed, latest if crown is not None else last, links, crown)
        if record is None or not record.origin:
            return [trail]
        above = self._trails(record.origin, min(record.shared, last), number)
        return [*above, trail] if last > record.shared else above

    def _is_head(self, run: RunId, number: int, seq: Any, head: Any) -> bool:
        return type(head) is bytes and bool(head_of(seq, head, self._text_of(run, number)))

    # moving to another store

    async def seal_parcel(self, content: bytes) -> bytes:
        """The seal of runs that leave for another store."""
        return self._sealing.parcel(content)

    async def examine_parcel(self, content: bytes, seal: bytes) -> Signed | None:
        """Who has sealed runs that came from another store; None where they are not what was sealed."""
        return self._sealing.signed(seal) if self._sealing.parcel_holds(content, seal) else None

    async def vouch(self, run: RunId) -> None:
        """Tell the anchors that a run rests where it stands."""
        place, seal = self._place(run), self._found("load", run)[0][8]
        if self._anchors is not None:
            self._anchors.say(Anchor("rests", run, place.seq, place.tip, seal))

    async def pack_run(self, run: RunId) -> PackedRun:
        """A run as it stands."""
        rows = self._found("load", run)
        if not rows:
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        number, name, machine, record, seq, status, head, tip, seal, wake, _, token, _, crashes = rows[0]
        entries, texts = tuple(self._found("pack_entries", number)), tuple(self._found("pack_texts", number))
        stands = (seq, status, head, tip, seal, wake, token, crashes)
        pieces = tuple(self._found("pack_pieces", number))
        return PackedRun(name, machine, record, *stands, entries, texts, pieces)

    async def unpack_run(self, packed: PackedRun) -> None:
        """Keep a run of another store; Conflict where its id is taken."""
        await self._writing.have_written(self._unpack_run, packed)

    def _unpack_run(self, packed: PackedRun) -> None:
        stands = (packed.seq, packed.status, packed.head, packed.tip, packed.seal, packed.wake)
        lane = lane_row(self._scribe.record(packed.run, packed.record))
        row = (packed.run, packed.machine, packed.record, *lane, *stands, packed.token, packed.crashes)
        try:
            number = self._execute(self._sql["unpack_run"], row).lastrowid or 0
        except sqlite3.IntegrityError as error:
            raise Conflict(f"run {packed.run} exists already") from error
        for entry in packed.entries:
            self._execute(self._sql["append"], (number, *entry))
        for digest, text in packed.texts:
            self._execute(self._sql["keep"], (number, digest, text.decode()))
        for piece in packed.pieces:
            self._execute(self._sql["place_messages"], (number, *piece))

    async def pack_records(self) -> PackedRecords:
        """What outlives runs, as it stands."""
        records, outbox = tuple(self._found("pack_records")), tuple(self._found("pack_outbox"))
        return PackedRecords(self._name(), records, outbox, tuple(self._found("pack_mirrors")))

    async def unpack_records(self, packed: PackedRecords) -> None:
        """Keep what outlives the runs of another store, and go by its name from now on."""
        await self._writing.have_written(self._unpack_records, packed)
        folder, tell = self._anchoring
        if folder is not None:
            self._anchors = Anchors(folder, packed.name, Path(self._file), tell)

    def _unpack_records(self, packed: PackedRecords) -> None:
        for table in ("records", "outbox", "mirrors"):
            self._execute(self._sql[f"clear_{table}"])
        self._execute(self._sql["rename"], (packed.name,))
        for record in packed.records:
            self._execute(self._sql["unpack_record"], record)
        for outgoing in packed.outbox:
            self._execute(self._sql["unpack_outgoing"], outgoing)
        for mirror in packed.mirrors:
            self._execute(self._sql["mirrored"], mirror)

    async def _changed(self, name: str, *values: Any) -> bool:
        return await self._writing.have_written(lambda row: self._execute(self._sql[name], row).rowcount == 1, values)

    def close(self) -> None:
        self._writing.close()
        if self._anchors is not None:
            self._anchors.close()
        self._looking.close()
        self._reading.close()
        self._db.close()


def _taken_away(*_: Any) -> Any:
    raise sqlite3.OperationalError(TAKEN_AWAY)


def _make_private(path: Path) -> None:
    """Make the file, for the user alone, where it is not there yet; the files that SQLite puts beside it are alike."""
    make_folder(path.parent)
    if not os.path.lexists(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)


def _text(found: bytes) -> str:
    """A text as it stands in the file; what is none any more must not keep the other rows from being read."""
    return found.decode("utf-8", "replace")


def _migrate(db: sqlite3.Connection, fill: Mapping[str, Callable[[], None]]) -> None:
    """Bring the tables up to date: the files of the folder in order, each once, each whole and filled."""
    folder = files("moothall.stores").joinpath("migrations")
    steps = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    if db.execute("PRAGMA user_version").fetchone()[0] == len(steps):
        return
    db.execute("BEGIN IMMEDIATE")
    done = db.execute("PRAGMA user_version").fetchone()[0]
    if done > len(steps):
        db.execute("ROLLBACK")
        raise Refused("it was written by a newer Moothall")
    for step in steps[done:]:
        for statement in step.read_text().split(";\n"):
            if statement.strip():
                db.execute(statement)
        if done and step.name in fill:
            fill[step.name]()
    db.execute(f"PRAGMA user_version = {len(steps)}")
    db.execute("COMMIT")


def _unusable(path: Path, error: Exception) -> Refused:
    remedy = "name another with --store sqlite:FILE"
    if getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_READONLY:  # even who only reads writes locks
        remedy = f"copy it to a folder that you may write to, with its -wal file if there is one, and {remedy}"
    elif getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_CORRUPT:
        remedy = f"bring back a copy of it, or {remedy}"
    return Refused(f"{path} cannot be opened as a store: {error}; {remedy}")


_PRIMARY = 0xFF
"""The part of an error code of SQLite that is the same for all errors of a kind."""
