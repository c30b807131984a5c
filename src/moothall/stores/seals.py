"""Seals what a store keeps, so that what is read back can be checked and audited.

A seal is a hash, a MAC of it under a key that never enters the store, and four bytes that tell which key it was. The
hash finds what was damaged; whoever can write the file can make a new one, but not its MAC.

Entries form a chain that begins with the run's id, or for a fork also with the last entry that it shares: the seal of
each covers its body and the seal before it, so none can be changed, removed, put in between or taken from another run
without breaking the chain behind it. The record of how a run began has a seal of its own, and so has its head, which
covers the record and the seal of the latest entry: it stands for the whole run. Where a thread's messages stand is
sealed together with the entry that has them.

Where the texts of an entry were forgotten, another body stands in its place behind a note. The note is a seal too: it
covers the new body, the entry's own seal, which stays, and the seal before it. So the chain is as it was, and only who
has the key can say that an entry once held and was forgotten since.
"""

from __future__ import annotations

import hashlib
from hmac import compare_digest
from typing import Any, Literal

SIZE = 32
"""How many bytes a seal has: those of the hash, of its MAC and of the key's sign."""
_HASH, _MAC, _KEY = 16, 12, 4
_NO_KEY, _NO_MAC = bytes(_KEY), bytes(_MAC + _KEY)
_ENTRY, _HEAD, _RECORD, _PIECE, _SHARED = b"", b"head", b"record", b"piece", b"shared"
_NOTE, _PARCEL = b"forgotten", b"parcel"
_KINDS = (_ENTRY, _HEAD, _RECORD, _PIECE, _SHARED, _NOTE, _PARCEL)
"""The kinds of seals; none can stand for one of another kind."""
_ENTRY_TEXT, _HEAD_TEXT, _RECORD_TEXT, _PIECE_TEXT = b"%s%d %s", b"%s%s %s", b"%s %s", b"%s%d %s"
_SHARED_TEXT = b"%d %s %d %s %d %s"
_NOTE_TEXT = b"%d %s%d %s%s"
"""What they cover: seal before, number, body; seal of the entry, record, head; run, record; seal of the entry, place,
thread; length and name of a collection and of a key in it, version, body; length of the seal before, that seal, number,
seal of the entry, new body."""
_FORGOTTEN = b"\x00"
"""What the body of an entry begins with whose texts were forgotten; the note follows, and then the new body."""

Signed = Literal["ours", "wrong", "unknown"]


def chain_start(run: str, shared: bytes = b"") -> bytes:
    """What stands before the first entry that a run has itself; `shared` is the seal of the last that it shares."""
    return hashlib.blake2b(shared + run.encode(), digest_size=_HASH, person=b"chain").digest()


def note_of(body: bytes) -> bytes:
    """The note that a forgotten entry's body stands behind; nothing where the entry is as it was written."""
    return body[1 : SIZE + 1] if body[:1] == _FORGOTTEN else b""


def without_note(body: bytes) -> bytes:
    """The body of an entry, whether it was forgotten or not."""
    return body[SIZE + 1 :] if body[:1] == _FORGOTTEN else body


class Sealing:
    """Seals with a key; without one there is no MAC, and nobody can vouch for a seal."""

    __slots__ = ("_hashes", "_key", "_keyed")

    def __init__(self, key: bytes) -> None:
        key = hashlib.blake2b(key).digest() if key else b""
        self._key = hashlib.blake2b(key, digest_size=_KEY, person=b"key").digest() if key else _NO_KEY
        self._keyed = hashlib.blake2b(key=key, digest_size=_MAC) if key else None
        self._hashes = {kind: _hash(kind, self._key) for kind in _KINDS}

    def entry(self, before: bytes, seq: int, body: bytes) -> bytes:
        """The seal of an entry behind another."""
        return self._sealed(_ENTRY, _ENTRY_TEXT % (before, seq, body))

    def head(self, tip: bytes, record: bytes, head: bytes) -> bytes:
        """The seal of a head after the entry with this seal, of the run with this record."""
        return self._sealed(_HEAD, _HEAD_TEXT % (tip, record, head))

    def record(self, run: str, record: bytes) -> bytes:
        """The seal of the record of this run."""
        return self._sealed(_RECORD, _RECORD_TEXT % (run.encode(), record))

    def piece(self, entry: bytes, start: int, thread: str) -> bytes:
        """The seal of the word that what the entry with this seal appends to a thread begins at this place of it."""
        return self._sealed(_PIECE, _PIECE_TEXT % (entry, start, thread.encode()))

    def piece_holds(self, entry: Any, start: Any, thread: str, seal: Any) -> bool:
        """Whether what was read as the place of an entry's messages is what was once written there."""
        if not (type(entry) is bytes and type(start) is int and type(seal) is bytes):
            return False
        return self._holds(seal, _PIECE, _PIECE_TEXT % (entry, start, thread.encode()))

    def entry_holds(self, before: Any, seq: Any, body: Any, seal: Any) -> bool:
        """Whether what was read as an entry is what was once written there."""
        if not (type(before) is bytes and type(seq) is int and type(body) is bytes and type(seal) is bytes):
            return False
        if note := note_of(body):
            return self._note_holds(before, seq, body, seal, note)
        return self._holds(seal, _ENTRY, _ENTRY_TEXT % (before, seq, body))

    def forgotten(self, before: bytes, seq: int, body: bytes, seal: bytes) -> bytes:
        """This body behind a note that vouches for it in the place of the entry that once had this seal."""
        return _FORGOTTEN + self._sealed(_NOTE, _NOTE_TEXT % (len(before), before, seq, seal, body)) + body

    def _note_holds(self, before: bytes, seq: int, body: bytes, seal: bytes, note: bytes) -> bool:
        """Whether an entry was forgotten by somebody who has the key; what we have signed, only we can forget."""
        if len(seal) != SIZE or (signed := self.signed(seal)) == "wrong":
            return False
        if signed == "ours" and self.signed(note) != "ours":
            return False
        return self._holds(note, _NOTE, _NOTE_TEXT % (len(before), before, seq, seal, without_note(body)))

    def parcel(self, content: bytes) -> bytes:
        """The seal of runs that leave for another store."""
        return self._sealed(_PARCEL, content)

    def parcel_holds(self, content: bytes, seal: bytes) -> bool:
        """Whether runs that came from another store are those that left there."""
        return self._holds(seal, _PARCEL, content)

    def head_holds(self, tip: Any, record: bytes, head: Any, seal: Any) -> bool:
        """Whether what was read as a head is what was once written there."""
        if not (type(tip) is bytes and type(head) is bytes and type(seal) is bytes):
            return False
        return self._holds(seal, _HEAD, _HEAD_TEXT % (tip, record, head))

    def record_holds(self, run: str, sealed: Any) -> bool:
        """Whether what was read as a record, behind its seal, is what was once written there."""
        if type(sealed) is not bytes:
            return False
        return self._holds(sealed[:SIZE], _RECORD, _RECORD_TEXT % (run.encode(), sealed[SIZE:]))

    def shared(self, collection: str, key: str, version: int, body: bytes) -> bytes:
        """The seal of a record that runs share."""
        return self._sealed(_SHARED, _shared_text(collection, key, version, body))

    def shared_holds(self, collection: Any, key: Any, version: Any, body: Any, seal: Any) -> bool:
        """Whether what was read as a record that runs share is what was once written there."""
        if not (type(collection) is str and type(key) is str and type(version) is int):
            return False
        if not (type(body) is bytes and type(seal) is bytes):
            return False
        return self._holds(seal, _SHARED, _shared_text(collection, key, version, body))

    def signed(self, seal: bytes) -> Signed:
        """Whose MAC is in a seal: ours, one that pretends to be ours, or one that we cannot judge."""
        if seal[-_KEY:] == _NO_KEY:
            return "unknown" if seal[_HASH:] == _NO_MAC else "wrong"
        if self._keyed is None or seal[-_KEY:] != self._key:
            return "unknown"
        return "ours" if compare_digest(self._signed(seal[:_HASH]), seal) else "wrong"

    def _holds(self, seal: bytes, kind: bytes, text: bytes) -> bool:
        """Whether this is the seal of a text. The seal tells which key it was made with."""
        if (key := seal[-_KEY:]) == self._key:
            return compare_digest(seal, self._sealed(kind, text))
        if len(seal) != SIZE or self.signed(seal) == "wrong":
            return False
        hashed = _hash(kind, key)
        hashed.update(text)
        return compare_digest(seal[:_HASH], hashed.digest())

    def _sealed(self, kind: bytes, text: bytes) -> bytes:
        hashed = self._hashes[kind].copy()
        hashed.update(text)
        return self._signed(hashed.digest())

    def _signed(self, digest: bytes) -> bytes:
        if self._keyed is None:
            return digest + _NO_MAC
        mac = self._keyed.copy()
        mac.update(digest)
        return digest + mac.digest() + self._key


def _shared_text(collection: str, key: str, version: int, body: bytes) -> bytes:
    where, name = collection.encode(), key.encode()
    return _SHARED_TEXT % (len(where), where, len(name), name, version, body)


def _hash(kind: bytes, key: bytes) -> hashlib.blake2b:
    """The hash of a kind of seal made with this key, before anything was put into it: a copy of it costs less."""
    return hashlib.blake2b(digest_size=_HASH, salt=key, person=kind)
