"""Seals what a store keeps, so that what is read back can be checked.

Entries form a chain that begins with the run's id: the seal of each covers its body and the seal before it, so none
can be changed, removed, put in between or taken from another run without breaking the chain behind it. A head has a
seal of its own, and so has the record of how a run began. The key never enters the store.
"""

from __future__ import annotations

import hashlib
from hmac import compare_digest
from typing import Any

SIZE = 16


def chain_start(key: bytes, run: str) -> bytes:
    """What stands before the first entry of a run."""
    return hashlib.blake2b(run.encode(), key=key, digest_size=SIZE, person=b"chain").digest()


def entry_seal(key: bytes, before: bytes, seq: int, body: bytes) -> bytes:
    """The seal of an entry behind another."""
    return hashlib.blake2b(b"%s%d %s" % (before, seq, body), key=key, digest_size=SIZE).digest()


def head_seal(key: bytes, tip: bytes, run: str, head: bytes) -> bytes:
    """The seal of a head after the entry with this seal."""
    return hashlib.blake2b(b"%s%s %s" % (tip, run.encode(), head), key=key, digest_size=SIZE, person=b"head").digest()


def record_seal(key: bytes, run: str, record: bytes) -> bytes:
    """The seal of the record of this run."""
    return hashlib.blake2b(b"%s %s" % (run.encode(), record), key=key, digest_size=SIZE, person=b"record").digest()


def record_holds(key: bytes, run: str, sealed: Any) -> bool:
    """Whether what was read as a record, behind its seal, is what was once written there."""
    return type(sealed) is bytes and compare_digest(sealed[:SIZE], record_seal(key, run, sealed[SIZE:]))


def entry_holds(key: bytes, before: Any, seq: Any, body: Any, seal: Any) -> bool:
    """Whether what was read as an entry is what was once written there."""
    if not (type(before) is bytes and type(seq) is int and type(body) is bytes and type(seal) is bytes):
        return False
    return compare_digest(seal, entry_seal(key, before, seq, body))


def head_holds(key: bytes, tip: Any, run: str, head: Any, seal: Any) -> bool:
    """Whether what was read as a head is what was once written there."""
    if not (type(tip) is bytes and type(head) is bytes and type(seal) is bytes):
        return False
    return compare_digest(seal, head_seal(key, tip, run, head))
