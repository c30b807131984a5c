"""Seals what a store keeps, so that what is read back can be checked.

Entries form a chain: the seal of each covers its body and the seal before it, so none can be changed, removed or
put in between without breaking the chain behind it. A head has a seal of its own. The key never enters the store.
"""

from __future__ import annotations

import hashlib
from hmac import compare_digest
from typing import Any

SIZE = 16
START = bytes(SIZE)


def entry_seal(key: bytes, before: bytes, seq: int, body: bytes) -> bytes:
    """The seal of an entry behind another."""
    return hashlib.blake2b(b"%s%d %s" % (before, seq, body), key=key, digest_size=SIZE).digest()


def head_seal(key: bytes, tip: bytes, run: str, head: bytes) -> bytes:
    """The seal of a head after the entry with this seal."""
    return hashlib.blake2b(b"%s%s %s" % (tip, run.encode(), head), key=key, digest_size=SIZE, person=b"head").digest()


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
