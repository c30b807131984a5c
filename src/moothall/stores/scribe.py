"""What a store on a disk writes and reads, as values: entries, heads and records, packed and sealed.

Nothing here knows a database. Whoever writes puts these values into rows; whoever reads gives the rows back, and gets
what was once written, or learns that it was changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import orjson

from moothall.errors import Broken, Conflict, DefinitionError, Refused
from moothall.kernel.codec import decoder, encode
from moothall.kernel.events import Began, SharedRecord
from moothall.kernel.step import Status
from moothall.runtime.journal import (
    ANY_LANE,
    Entry,
    Head,
    Pending,
    Record,
    RunId,
    entry_shape,
    head_shape,
    pending_shape,
)
from moothall.runtime.ports import SET_ASIDE, Lease, Redaction
from moothall.stores.plain import digests_in, pack, pack_pair, read, to_bytes, unpack
from moothall.stores.seals import SIZE, Sealing
from moothall.stores.threads import appended_pieces

LARGEST = 1024 * 1024
"""The most bytes that a head may have."""
PLACES = 10_000
"""How many runs are remembered between their commits."""
LAST = 2**63 - 1
"""The greatest number that an entry can have in a store."""

Part = tuple[Pending, orjson.Fragment, int]
"""An effect in flight, as it stands in the store, and its size there."""
Sealed = tuple[bytes, bytes, bytes, bytes, Mapping[str, Part]]
"""An entry and its seal, the head after it and its seal, and the effects in flight that are encoded already."""
Link = tuple[int, str, bytes, bytes]
"""An entry's number, cause, body and seal."""
Text = Callable[[bytes], str]
"""Gives a long text by its digest."""

NO_PARTS: Mapping[str, Part] = {}
EFFECT = re.compile(r"(?:(\d{1,18})\.\d+(?:-|$)|\d.*\.\d)", re.ASCII | re.DOTALL)
"""A cause that is not in the index of causes; where it is that of an effect, the entry that wanted it."""


class Roots(NamedTuple):
    """How a run began: its record in the store, and the run that it was forked from with the last entry they share."""

    record: bytes
    origin: RunId = ""
    shared: int = -1


class Place:
    """What is remembered of a run between its commits.

    Its number in the store and how it began, its last entry and the seal of that, when it wants attention, and its
    effects in flight by key. `moves` says that the anchors know that it moves.
    """

    __slots__ = ("moves", "number", "parts", "roots", "run", "seq", "tip", "wake")

    def __init__(self, run: RunId, number: int, roots: Roots) -> None:
        self.run, self.number, self.roots = run, number, roots
        self.moves = False

    def stand(self, seq: int, tip: bytes, wake: float | None, parts: Mapping[str, Part]) -> None:
        """Remember where the run stands now."""
        self.seq, self.tip, self.wake, self.parts = seq, tip, wake, parts


class Redacted(NamedTuple):
    """What is to be written where texts of a run are taken out."""

    bodies: list[tuple[int, bytes]]
    """The entries with their new bodies."""
    head: bytes
    seal: bytes
    texts: Mapping[str, bytes]
    """Long texts that are new."""
    needed: set[bytes]
    """The digests of all that the run still refers to."""
    records: list[tuple[str, str, int, bytes, bytes]]
    """Collection, key, version, body and seal."""


class Scribe:
    """Packs and seals with a key, and checks what comes back."""

    __slots__ = ("seals",)

    def __init__(self, key: bytes) -> None:
        self.seals = Sealing(key)

    def sealed(self, place: Place, before: bytes, head: Head, entry: Entry, texts: dict[str, bytes]) -> Sealed:
        """An entry, behind another with this seal, and the head after it."""
        old = len(head.pending) - len(entry.effects)
        if old:
            parts = _parts(head, place.parts, texts)
            pending: list[Any] = [part[1] for part in parts.values()]
            size = sum([part[2] for part in parts.values()])
        else:
            parts, pending, size = NO_PARTS, list(map(pending_shape, head.pending)), 0
        shapes = entry_shape(entry, pending[old:] if old else pending), head_shape(head, pending)
        body, kept = pack_pair(*shapes, texts, size)
        if len(kept) > LARGEST:
            raise DefinitionError(
                f"run {place.run}: its snapshot would have {len(kept) // 1024} KB, and at most {LARGEST // 1024} can "
                "be kept at every step; what grows belongs into a thread, which a move appends to"
            )
        tip = self.seals.entry(before, entry.seq, body)
        return body, tip, kept, self.seals.head(tip, place.roots.record, kept), parts

    def chained(self, before: bytes, entries: Sequence[Entry], texts: dict[str, bytes]) -> tuple[list[Link], bytes]:
        """Entries without the heads after them, sealed one behind the other, and the seal of the last."""
        links: list[Link] = []
        for entry in entries:
            body = pack(entry_shape(entry, list(map(pending_shape, entry.effects))), texts)
            before = self.seals.entry(before, entry.seq, body)
            links.append((entry.seq, entry.cause, body, before))
        return links, before

    def placed(self, head: Head, entries: Sequence[Entry], seals: Sequence[Any]) -> list[tuple[str, int, int, bytes]]:
        """Where in their threads stands what these entries with these seals append: thread, place, entry, seal."""
        seal_of = {entry.seq: bytes(seal) for entry, seal in zip(entries, seals, strict=True)}
        return [
            (new.thread, new.start, new.seq, self.seals.piece(seal_of[new.seq], new.start, new.thread))
            for new in appended_pieces(head, entries)
        ]

    def redacted(self, redaction: Redaction, place: Place, before: bytes, rows: Sequence[Link]) -> Redacted:
        """What is to be written where texts are taken out of a run with these entries, if each of them holds."""
        if redaction.head["seq"] != place.seq:
            raise Conflict(f"run {redaction.run} was moved by another writer")
        texts: dict[str, bytes] = {}
        bodies: list[tuple[int, bytes]] = []
        needed: set[bytes] = set()
        for seq, _, body, seal in rows:
            if not self.seals.entry_holds(before, seq, body, seal):
                raise Broken(f"run {redaction.run}: entry {seq} of its journal was changed or does not belong there")
            if seq in redaction.entries:
                body = self.seals.forgotten(before, seq, pack(dict(redaction.entries[seq]), texts), seal)
                bodies.append((seq, body))
            needed |= digests_in(body)
            before = seal
        head = pack(dict(redaction.head), texts)
        seal = self.seals.head(before, place.roots.record, head)
        records = [self._redacted_record(record) for record in redaction.records]
        return Redacted(bodies, head, seal, texts, needed | digests_in(head), records)

    def _redacted_record(self, record: SharedRecord) -> tuple[str, str, int, bytes, bytes]:
        body = to_bytes(encode(record.value))
        seal = self.seals.shared(record.collection, record.key, record.version, body)
        return record.collection, record.key, record.version, body, seal

    def shared(self, record: SharedRecord) -> tuple[bytes, bytes, int]:
        """A record that is to be written: its body, its seal and its next version."""
        body, version = to_bytes(encode(record.value)), record.version + 1
        return body, self.seals.shared(record.collection, record.key, version, body), version

    def shared_record(self, row: Sequence[Any]) -> SharedRecord:
        """A record that was read: collection, key, version, body and seal."""
        collection, key, version, body, _ = row
        if not self.seals.shared_holds(*row):
            raise Broken(f"the record {key!r} of {collection!r} was changed or damaged; bring back a copy of the store")
        return SharedRecord(collection, key, read(body), version)

    def record(self, run: Any, sealed: Any) -> Record | None:
        """How a run began; None where that cannot be told any more."""
        if type(run) is not str or not self.seals.record_holds(run, sealed):
            return None
        try:
            record: Record = _decoded_record(read(sealed[SIZE:]), "record")
            return record
        except Refused:
            return None

    def entry(self, run: RunId, row: Sequence[Any], before: Any, text: Text) -> Mapping[str, Any]:
        """An entry as JSON, if it is as it was once written behind another with this seal."""
        seq, cause, body, seal = row
        if not self.seals.entry_holds(before, seq, body, seal):
            raise Broken(f"run {run}: entry {seq} of its journal was changed or does not belong there")
        entry: Mapping[str, Any] = unpack(body, text)
        if entry["cause"] != cause:
            raise Broken(f"run {run}: the cause of entry {seq} of its journal was changed")
        return entry


def head_of(seq: int, head: bytes, text: Text) -> Mapping[str, Any]:
    """A head with its long texts; nothing where one of them is lost or it is not the head of this entry."""
    try:
        plain = unpack(head, text)
    except Broken:
        return {}
    return plain if type(plain) is dict and plain.get("seq") == seq else {}


def roots_of(record: Record | None, sealed: Any) -> Roots:
    """How a run began, from its record as it stands in the store."""
    kept = sealed[SIZE:] if type(sealed) is bytes else b""
    return Roots(kept, record.origin, record.shared) if record is not None else Roots(kept)


def begins(entry: Entry) -> bool:
    """Whether something begins after an entry that may not be done twice: a store that forgets it might do it again."""
    return isinstance(entry.event, Began)


def is_readable(seq: Any, cause: Any, body: Any, text: Text) -> bool:
    """Whether an entry, with its long texts, says of itself what the store says of it."""
    try:
        entry = unpack(body, text)
        return bool(entry["seq"] == seq and entry["cause"] == cause)
    except (Broken, TypeError, KeyError, AttributeError, ValueError):
        return False


def first_beyond(prefix: str) -> str:
    """The first key behind all those that begin like this; "" where there is none."""
    for place in range(len(prefix), 0, -1):
        point = ord(prefix[place - 1]) + 1
        if point <= 0x10FFFF:
            return prefix[: place - 1] + chr(0xE000 if point == 0xD800 else point)
    return ""


def lane_row(record: Record | None) -> tuple[str, str, int]:
    """The lane of a run as it stands beside its record: queue, tenant and priority."""
    lane = record.lane if record is not None else ANY_LANE
    return lane.queue, lane.tenant, lane.priority


def lease_of(owner: Any, token: Any, until: Any, crashes: Any) -> Lease | None:
    """Who holds a run; None where that cannot be told any more."""
    if type(token) is not int or type(crashes) is not int or type(until) is not float:
        return None
    if owner is None:
        return Lease("", token, 0.0, crashes)
    return Lease(owner, token, until, crashes) if type(owner) is str else None


def status_of(found: Any, head: Mapping[str, Any]) -> str:
    """A run's status: set aside, as its head says, or, without a head, as the row says where that is a status."""
    if type(found) is str and found.startswith(SET_ASIDE):
        return found
    status: str = head["snapshot"]["status"] if head else found
    return status if status in _STATUSES else "live"


def statements_in(text: str) -> dict[str, str]:
    """The statements of a file of SQL, by their names."""
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body for name, _, body in parts}


def _parts(head: Head, known: Mapping[str, Part], texts: dict[str, bytes]) -> Mapping[str, Part]:
    """The effects in flight, by key; those that stay from commit to commit are encoded once."""
    parts: dict[str, Part] = {}
    for pending in head.pending:
        part = known.get(pending.key)
        if part is None or part[0] is not pending:
            plain = pack(pending_shape(pending), texts)
            part = (pending, orjson.Fragment(plain), len(plain))
        parts[pending.key] = part
    return parts


_decoded_record = decoder(Record)
_STATUSES = frozenset(get_args(Status))
