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
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, get_args

import orjson

from moothall.errors import Broken, Conflict, DefinitionError, EffectFailed, MoothallError, Refused
from moothall.kernel.codec import decoder, encode
from moothall.kernel.events import Began, SharedRecord
from moothall.kernel.step import Status
from moothall.runtime.journal import (
    Entry,
    Head,
    Pending,
    Record,
    RunId,
    encode_head,
    entry_shape,
    head_shape,
    pending_shape,
)
from moothall.runtime.ports import LEASE, SET_ASIDE, Audit, Gone, Lease, Outdated, Outgoing, Stored
from moothall.stores.anchors import BEGINNING, Anchor, Anchors, Tell, make_folder, nobody
from moothall.stores.audit import Crown, Link, Trail, behind, verdict
from moothall.stores.plain import digest_of, packed, packed_pair, read, unpacked, written
from moothall.stores.seals import SIZE, Sealing, chain_start
from moothall.stores.threads import Piece, counted, cut, grown, joined, said_in
from moothall.stores.writer import Undone, Writing, damaged

LARGEST = 1024 * 1024
"""The most bytes that a head may have."""
PLACES = 10_000
"""How many runs are remembered between their commits."""
LAST = 2**63 - 1
"""The greatest number that an entry can have in the file."""
TAKEN_AWAY = "its file was deleted or replaced while it was in use"
TABLES = frozenset(("runs", "entries", "texts"))


Blob = bytearray
"""How bytes are given to sqlite3: it takes these as they are, and looks for a converter for each `bytes`."""


Part = tuple[Pending, orjson.Fragment, int]
"""An effect in flight, as it stands in the file, and its size there."""
_Sealed = tuple[bytes, bytes, bytes, bytes, Mapping[str, Part]]
"""An entry and its seal, the head after it and its seal, and the effects in flight that are encoded already."""


class _Roots(NamedTuple):
    """How a run began: its record in the file, and the run that it was forked from with the last entry they share."""

    record: bytes
    origin: RunId = ""
    shared: int = -1


class _Place:
    """What is remembered of a run between its commits.

    Its number in the file and how it began, its last entry and the seal of that, when it wants attention, and its
    effects in flight by key. `moves` says that the anchors know that it moves.
    """

    __slots__ = ("moves", "number", "parts", "roots", "run", "seq", "tip", "wake")

    def __init__(self, run: RunId, number: int, roots: _Roots) -> None:
        self.run, self.number, self.roots = run, number, roots
        self.moves = False

    def stand(self, seq: int, tip: bytes, wake: float | None, parts: Mapping[str, Part]) -> None:
        """Remember where the run stands now."""
        self.seq, self.tip, self.wake, self.parts = seq, tip, wake, parts


class _Commit(NamedTuple):
    """One commit, encoded and ready to be written, and what is to be remembered of it.

    The statement moves the run; `wakes` says that `wake`, when it wants attention, has to be written beside that.
    """

    place: _Place
    statement: str
    row: tuple[Any, ...]
    entries: list[tuple[Any, ...]]
    texts: Mapping[str, bytes]
    pieces: Sequence[tuple[Any, ...]]
    records: Sequence[tuple[SharedRecord, tuple[Any, ...]]]
    wakes: bool
    wake: float | None
    sealed: _Sealed


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
        self._sql = _statements()
        self._sealing = Sealing(key)
        self._places: dict[RunId, _Place] = {}
        try:
            _make_private(path)
            self._db = _connected(path)
            self._db.text_factory = _text
            self._writing = Writing(self._db)
            self._execute = self._writing.execute
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error
        try:
            self._prepare(durability)
            self._anchors = Anchors(anchors, self._name(), path, tell) if anchors is not None else None
            self._reading = _connected(path)
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
            record = self._record(run, sealed)
            places = self._grown_until(record.origin, record.shared) if record is not None and record.origin else {}
            for seq, seal, entry in self._appending(run, number):
                for piece in counted(seq, entry, places):
                    row = (number, piece.thread, piece.start, seq, self._sealing.piece(seal, piece.start, piece.thread))
                    self._execute(self._sql["place_messages"], row)

    def _grown_until(self, run: RunId, last: int) -> dict[str, int]:
        """How many messages the threads of a run had after an entry."""
        rows = self._found("place", run)
        record = self._record(run, rows[0][4]) if rows else None
        if record is None:
            return {}
        places = self._grown_until(record.origin, min(record.shared, last)) if record.origin else {}
        for seq, _, entry in self._appending(run, rows[0][0]):
            if seq <= last:
                counted(seq, entry, places)
        return places

    def _appending(self, run: RunId, number: int) -> Iterator[tuple[int, bytes, Mapping[str, Any]]]:
        """The entries of a run that append something, with their seals, up to the first that cannot be read."""
        text = self._text_of(run, number)
        for seq, cause, body, seal in self._found("appending", number):
            if type(seal) is not bytes or not _is_readable(seq, cause, body, text):
                return
            yield seq, seal, unpacked(body, text)

    def _name(self) -> str:
        """The store's own name."""
        row = self._db.execute(self._sql["name"]).fetchone()
        return re.sub(r"\W", "", str(row[0]) if row is not None else "") or "nameless"

    # writing

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        run, wake, texts = record.run, head.wake(), dict[str, bytes]()
        began = written(encode(record))
        roots = _Roots(began, record.origin, record.shared)
        place, before = _Place(run, 0, roots), self._chain_start(run, roots)
        place.stand(record.shared, before, None, _NO_PARTS)
        body, tip, kept, seal, parts = self._sealed(place, before, head, entry, texts)
        named = (run, record.machine, Blob(self._sealing.record(run, began) + began))
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

    def _anchor(self, place: _Place, seal: bytes) -> None:
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
            commit = commit._replace(records=[self._shared(record) for record in records])
        try:
            await self._writing.have_written(self._move, commit)
        except (MoothallError, asyncio.CancelledError):
            self._places.pop(run, None)
            raise
        _, tip, _, seal, parts = commit.sealed
        place.stand(head.seq, tip, commit.wake, parts)
        self._places[run] = place
        self._anchor(place, seal)
        if place.moves and (_begins(entry) or any(map(_begins, earlier))) and self._anchors is not None:
            self._anchors.say(Anchor("moves", run, place.seq, place.tip))

    def _encoded(
        self, place: _Place, head: Head, entries: Sequence[Entry], lease: Lease | None, after: Lease | None
    ) -> _Commit:
        """Entries of a run and the head after the last of them, as they will be written behind those before."""
        texts: dict[str, bytes] = {}
        number, before, wake, entry = place.number, Blob(place.tip), head.wake(), entries[-1]
        appended, last = self._chained(place, entries[:-1], texts) if len(entries) > 1 else ([], place.tip)
        body, tip, kept, seal, _ = sealed = self._sealed(place, last, head, entry, texts)
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
        seal_of = {entry.seq: bytes(seal) for entry, seal in zip(entries, seals, strict=True)}
        return [
            (new.thread, new.start, new.seq, Blob(self._sealing.piece(seal_of[new.seq], new.start, new.thread)))
            for new in grown(head, entries)
        ]

    def _chained(
        self, place: _Place, entries: Sequence[Entry], texts: dict[str, bytes]
    ) -> tuple[list[tuple[Any, ...]], bytes]:
        """Entries without the heads after them, sealed one behind the other, and the seal of the last."""
        rows: list[tuple[Any, ...]] = []
        tip = place.tip
        for one in entries:
            body = packed(entry_shape(one, list(map(pending_shape, one.effects))), texts)
            tip = self._sealing.entry(tip, one.seq, body)
            rows.append((place.number, one.seq, one.cause, Blob(body), Blob(tip)))
        return rows, tip

    def _sealed(self, place: _Place, before: bytes, head: Head, entry: Entry, texts: dict[str, bytes]) -> _Sealed:
        """An entry, behind another with this seal, and the head after it."""
        old = len(head.pending) - len(entry.effects)
        if old:
            parts = _parts(head, place.parts, texts)
            pending: list[Any] = [part[1] for part in parts.values()]
            size = sum([part[2] for part in parts.values()])
        else:
            parts, pending, size = _NO_PARTS, list(map(pending_shape, head.pending)), 0
        shapes = entry_shape(entry, pending[old:] if old else pending), head_shape(head, pending)
        body, kept = packed_pair(*shapes, texts, size)
        if len(kept) > LARGEST:
            raise DefinitionError(
                f"run {place.run}: its snapshot would have {len(kept) // 1024} KB, and at most {LARGEST // 1024} can "
                "be kept at every step; what grows belongs into a thread, which a move appends to"
            )
        tip = self._sealing.entry(before, entry.seq, body)
        return body, tip, kept, self._sealing.head(tip, place.roots.record, kept), parts

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

    def _shared(self, record: SharedRecord) -> tuple[SharedRecord, tuple[Any, ...]]:
        """A record that is to be written, and the row that it will have."""
        collection, key, version, body = (
            record.collection,
            record.key,
            record.version + 1,
            written(encode(record.value)),
        )
        seal = self._sealing.shared(collection, key, version, body)
        return record, (Blob(body), Blob(seal), version, collection, key)

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

    def _remember(self, place: _Place) -> None:
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
        place = _Place(run, rows[0][0], _roots(stored.record, rows[0][3]))
        place.stand(stored.seq, rows[0][7], rows[0][9], _NO_PARTS)
        self._remember(place)
        return stored

    async def runs(self) -> list[Stored]:
        """All runs, the newest first. One whose record is damaged has a record without a digest, and no head."""
        return [self._stored(row) for row in self._found("runs")]

    def _stored(self, row: Sequence[Any]) -> Stored:
        number, run, machine, sealed, seq, status, head, tip, seal, _, *held = row
        began, lease = self._record(run, sealed), _lease(*held)
        if began is None or lease is None or type(seq) is not int:
            return Stored(Record(str(run), str(machine), "", 0.0), {}, -1, _status(status, {}), Lease("", 0, 0.0))
        plain = self._head(run, number, seq, head) if self._sealing.head_holds(tip, sealed[SIZE:], head, seal) else {}
        return Stored(began, plain, seq, _status(status, plain), lease)

    def _record(self, run: Any, sealed: Any) -> Record | None:
        """How a run began; None where that cannot be told any more."""
        if type(run) is not str or not self._sealing.record_holds(run, sealed):
            return None
        try:
            record: Record = _decoded_record(read(sealed[SIZE:]), "record")
            return record
        except Refused:
            return None

    def _head(self, run: RunId, number: int, seq: int, head: bytes) -> Mapping[str, Any]:
        """A head with its long texts; nothing where one of them is lost or it is not the head of this entry."""
        try:
            plain = unpacked(head, self._text_of(run, number))
        except Broken:
            return {}
        return plain if type(plain) is dict and plain.get("seq") == seq else {}

    async def entries(self, run: RunId, start: int = 0, limit: int | None = None) -> list[Mapping[str, Any]]:
        last = LAST if limit is None else start + limit - 1
        found: list[Mapping[str, Any]] = []
        for one, first, end in self._pieces(run):
            if first <= last and start <= end:
                found += self._own_entries(one, first, max(start, first), min(last, end))
        return found

    def _pieces(self, run: RunId) -> list[tuple[RunId, int, int]]:
        """Where the journal of a run stands: with the runs that it was forked from, and with itself."""
        if not self._found("seq", run):
            return []
        _, origin, shared = self._place(run).roots
        if origin and self._place(origin).number >= self._place(run).number:
            raise Broken(f"run {run}: it cannot have been forked from {origin}, which is younger")
        above = [(one, first, min(end, shared)) for one, first, end in self._pieces(origin)] if origin else []
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
            yield self._entry(run, row[1:], before, text)
            before = row[4]

    def _entry(self, run: RunId, row: Sequence[Any], before: Any, text: Callable[[bytes], str]) -> Mapping[str, Any]:
        """An entry as JSON, if it is as it was once written behind another with this seal."""
        seq, cause, body, seal = row
        if not self._sealing.entry_holds(before, seq, body, seal):
            raise Broken(f"run {run}: entry {seq} of its journal was changed or does not belong there")
        entry: Mapping[str, Any] = unpacked(body, text)
        if entry["cause"] != cause:
            raise Broken(f"run {run}: the cause of entry {seq} of its journal was changed")
        return entry

    def _chain_start(self, run: RunId, roots: _Roots) -> bytes:
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
                part = cut(Piece(thread, at, seq), self._entry(run, (seq, cause, body, seal), before, text), start, end)
                if len(part) != end - max(at, start):
                    return []
                parts.append(part)
                end = at
            run, last = place.roots.origin, min(last, place.roots.shared)
        return joined(parts)

    async def find(self, run: RunId, cause: str) -> int | None:
        place = self._places.get(run)
        is_whole = place is not None and not place.roots.origin
        effect = _EFFECT.match(cause)
        for one, _, end in [(run, 0, LAST)] if is_whole else self._pieces(run):
            if effect is None:
                rows = self._found("find", one, cause)
            else:
                wanted = int(effect[1] or LAST)
                rows = self._found("find_end", one, cause, wanted if wanted < self._place(one).seq else -1)
            if rows and rows[0][0] <= end:
                seq: int = rows[0][0]
                return seq
        return None

    async def due(self, now: float, limit: int, gone: Sequence[str] = ()) -> list[RunId]:
        absent = written(list(gone)).decode()
        return [run for (run,) in self._found("due", now, now, now + 2 * LEASE, absent, limit)]

    async def suspects(self, now: float) -> Mapping[RunId, int]:
        return dict(self._found("suspects", now))

    async def owners(self) -> list[str]:
        self._look_for_file()
        return [owner for (owner,) in self._found("owners")]

    def _place(self, run: RunId) -> _Place:
        """Where a run stands in the file; looked up where it is not remembered."""
        if run not in self._places:
            rows = self._found("place", run)
            if not rows:
                raise Conflict(f"run {run} is not there any more")
            number, seq, tip, wake, sealed = rows[0]
            place = _Place(run, number, _roots(self._record(run, sealed), sealed))
            place.stand(seq, tip, wake, _NO_PARTS)
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
            raise damaged(error) from error

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
        elif beyond := _behind(prefix):
            rows = self._found("records_between", collection, prefix, beyond, most)
        else:
            rows = self._found("records", collection, prefix, most)
        return [self._shared_record(row) for row in rows]

    def _shared_record(self, row: Sequence[Any]) -> SharedRecord:
        collection, key, version, body, _ = row
        if not self._sealing.shared_holds(*row):
            raise Broken(f"the record {key!r} of {collection!r} was changed or damaged; bring back a copy of the file")
        return SharedRecord(collection, key, read(body), version)

    async def outbox(self, mirror: str, most: int = 100) -> list[Outgoing]:
        return [Outgoing(number, self._shared_record(row)) for number, *row in self._found("outbox", mirror, most)]

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

    async def repair(self, run: RunId, head: Head) -> None:
        _, seq, _, _, tip = self._found("entries", head.seq, head.seq, run)[0]
        if seq != head.seq:
            raise Broken(f"run {run}: its journal has no entry {head.seq}")
        texts: dict[str, bytes] = {}
        kept = packed(encode_head(head), texts)
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
        statements = [one for one in self._sql["forget"].split(";\n") if one.strip()]
        await self._writing.have_written(lambda name: [self._execute(one, {"run": name}) for one in statements], run)
        self._places.pop(run, None)
        if self._anchors is not None:
            self._anchors.say(Anchor("gone", run, BEGINNING))

    # auditing

    async def audit(self, run: RunId, digest: tuple[int, bytes] | None = None) -> Audit:
        trails = self._trails(run)
        anchors = self._anchors_of(run) if not trails else self._anchors
        if not trails and (anchors is None or run not in anchors.runs()):
            raise Refused(f"there is no run {run!r} in this store; `moot ls` shows what there is")
        names = {run, *(one.run for one in trails)}
        said = {one: anchors.of(one) if anchors is not None else () for one in names}
        return verdict(run, trails, said, self._sealing, digest)

    async def anchored(self) -> list[RunId]:
        return [*self._anchors.runs(), *self._anchors.lost()] if self._anchors is not None else []

    def _anchors_of(self, run: RunId) -> Anchors | None:
        """The anchors that know a run: those of this store, or of one that was here before it."""
        if self._anchors is None or self._anchors.tip(run) is not None:
            return self._anchors
        return self._anchors.lost().get(run, self._anchors)

    async def behind(self, run: RunId) -> str:
        tip = self._anchors.tip(run) if self._anchors is not None else None
        if tip is None and (anchors := self._anchors_of(run)) is not None:
            tip = anchors.tip(run)
        if tip is None:
            return ""
        rows = self._found("stands", tip[0], run)  # read after the anchors: another process may write both meanwhile
        latest, seal = rows[0] if rows else (-1, None)
        if seal is None and type(latest) is int and tip[0] <= latest:
            seal = self._seal_of(run, tip[0])  # it is an entry of a run that this one was forked from
        return behind(tip, latest if type(latest) is int else -1, seal)

    def _seal_of(self, run: RunId, seq: int) -> bytes | None:
        for one, first, end in self._pieces(run):
            if first <= seq <= end:
                rows = self._found("entries", seq, seq, one)
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
        if anchors is not self._anchors:
            anchors.close()

    def _trails(self, run: RunId, last: int = LAST, younger: int = LAST) -> list[Trail]:
        """All that the file has of a run, and of those that it was forked from, which are older than it."""
        rows = self._found("load", run)
        if not rows or rows[0][0] >= younger:
            return []
        number, _, _, sealed, latest, _, head, tip, seal, *_ = rows[0]
        record = self._record(run, sealed)
        text = self._text_of(run, number)
        found = self._found("entries", 0, last, run)
        links = tuple(
            Link(seq, cause, body, seal, _is_readable(seq, cause, body, text))
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
        return type(head) is bytes and bool(self._head(run, number, seq, head))

    async def _changed(self, name: str, *values: Any) -> bool:
        return await self._writing.have_written(lambda row: self._execute(self._sql[name], row).rowcount == 1, values)

    def close(self) -> None:
        self._writing.close()
        if self._anchors is not None:
            self._anchors.close()
        self._looking.close()
        self._reading.close()
        self._db.close()


_NO_PARTS: Mapping[str, Part] = {}
_EFFECT = re.compile(r"(?:(\d{1,18})\.\d+(?:-|$)|\d.*\.\d)", re.ASCII | re.DOTALL)
"""A cause that is not in the index of causes; where it is that of an effect, the entry that wanted it."""


def _begins(entry: Entry) -> bool:
    """Whether something begins after an entry that may not be done twice: a store that forgets it might do it again."""
    return isinstance(entry.event, Began)


def _parts(head: Head, known: Mapping[str, Part], texts: dict[str, bytes]) -> Mapping[str, Part]:
    """The effects in flight, by key; those that stay from commit to commit are encoded once."""
    parts: dict[str, Part] = {}
    for one in head.pending:
        part = known.get(one.key)
        if part is None or part[0] is not one:
            plain = packed(pending_shape(one), texts)
            part = (one, orjson.Fragment(plain), len(plain))
        parts[one.key] = part
    return parts


def _is_readable(seq: Any, cause: Any, body: Any, text: Callable[[bytes], str]) -> bool:
    """Whether an entry, with its long texts, says of itself what the file says of it."""
    try:
        entry = unpacked(body, text)
        return bool(entry["seq"] == seq and entry["cause"] == cause)
    except (Broken, TypeError, KeyError, AttributeError, ValueError):
        return False


def _behind(prefix: str) -> str:
    """The first key behind all those that begin like this; "" where there is none."""
    for place in range(len(prefix), 0, -1):
        point = ord(prefix[place - 1]) + 1
        if point <= 0x10FFFF:
            return prefix[: place - 1] + chr(0xE000 if point == 0xD800 else point)
    return ""


def _roots(record: Record | None, sealed: Any) -> _Roots:
    kept = sealed[SIZE:] if type(sealed) is bytes else b""
    return _Roots(kept, record.origin, record.shared) if record is not None else _Roots(kept)


def _taken_away(*_: Any) -> Any:
    raise sqlite3.OperationalError(TAKEN_AWAY)


def _make_private(path: Path) -> None:
    """Make the file, for the user alone, where it is not there yet; the files that SQLite puts beside it are alike."""
    make_folder(path.parent)
    if not os.path.lexists(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)


def _lease(owner: Any, token: Any, until: Any, crashes: Any) -> Lease | None:
    """Who holds a run; None where that cannot be told any more."""
    if type(token) is not int or type(crashes) is not int or type(until) is not float:
        return None
    if owner is None:
        return Lease("", token, 0.0, crashes)
    return Lease(owner, token, until, crashes) if type(owner) is str else None


def _status(found: Any, head: Mapping[str, Any]) -> str:
    """A run's status: set aside, as its head says, or, without a head, as the row says where that is a status."""
    if type(found) is str and found.startswith(SET_ASIDE):
        return found
    status: str = head["snapshot"]["status"] if head else found
    return status if status in _STATUSES else "live"


_decoded_record = decoder(Record)
_STATUSES = frozenset(get_args(Status))


def _text(found: bytes) -> str:
    """A text as it stands in the file; what is none any more must not keep the other rows from being read."""
    return found.decode("utf-8", "replace")


def _statements() -> dict[str, str]:
    text = files("moothall.stores").joinpath("sqlite.sql").read_text()
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body for name, _, body in parts}


def _migrate(db: sqlite3.Connection, fill: Mapping[str, Callable[[], None]]) -> None:
    """Bring the tables up to date: the files of the folder in order, each once, each whole and filled."""
    folder = files("moothall.stores").joinpath("migrations")
    steps = sorted((one for one in folder.iterdir() if one.name.endswith(".sql")), key=lambda one: one.name)
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
    return Refused(f"{path} cannot be opened as a store: {error}; {remedy}")


_PRIMARY = 0xFF
"""The part of an error code of SQLite that is the same for all errors of a kind."""
