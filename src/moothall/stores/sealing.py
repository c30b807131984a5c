"""Seals what a store keeps, so that what is read back can be checked.

Entries form a chain: the seal of each covers its body and the seal before it, so none can be changed, removed or
put in between without breaking the chain behind it. A head has a seal of its own. The key never enters the store.
"""

from __future__ import annotations

import hashlib
from hmac import compare_digest

SIZE = 16
START = bytes(SIZE)


def entry_seal(key: bytes, before: bytes, seq: int, body: bytes) -> bytes:
    """The seal of an entry behind another."""
    return hashlib.blake2b(b"%s%d %s" % (before, seq, body), key=key, digest_size=SIZE).digest()


def head_seal(key: bytes, tip: bytes, run: str, head: bytes) -> bytes:
    """The seal of a head after the entry with this seal."""
    return hashlib.blake2b(b"%s%s %s" % (tip, run.encode(), head), key=key, digest_size=SIZE, person=b"head").digest()


def holds(seal: bytes, expected: bytes) -> bool:
    """Whether a seal is the one that it should be."""
    return compare_digest(seal, expected)
