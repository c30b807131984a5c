"""Stores that are open in this process: whoever opens one in the same thread meanwhile shares it."""

from __future__ import annotations

import os
import threading

from moothall.app.config.settings import durability_of, is_in_memory, open_store, store_address
from moothall.errors import Refused
from moothall.runtime.ports import Store
from moothall.stores.connections import public_address


class _Opened:
    """A store that is open, how often, and with which durability."""

    __slots__ = ("durability", "store", "users")

    def __init__(self, store: Store, durability: str) -> None:
        self.store, self.durability, self.users = store, durability, 0


_open: dict[tuple[str, int, int], _Opened] = {}
"""By address, process and thread: a process that was forked off must not use the connection that it came with."""


class opened:
    """A store, closed again at the end; all who share it have its durability. `address` is there once it is open.

    A store that the caller brings is the caller's to close.
    """

    __slots__ = ("_key", "_named", "address")

    def __init__(self, address: str | Store | None, durability: str | None = None) -> None:
        self._named = address, durability

    def __enter__(self) -> Store:
        address, durability = self._named
        if address is not None and not isinstance(address, str):
            self.address, self._key = type(address).__name__, ("", -1, 0)
            return address
        self.address = store_address(address)
        self._key = self.address, os.getpid(), threading.get_ident()
        kept = _open.get(self._key)
        if kept is None:
            durability = durability_of(durability)
            kept = _open[self._key] = _Opened(open_store(self.address, durability), durability)
        elif durability not in (None, kept.durability):
            is_open = f"{public_address(self.address)} is open here with durability {kept.durability}"
            raise Refused(f"{is_open}; it cannot be {durability} at the same time")
        kept.users += 1
        return kept.store

    def __exit__(self, *error: object) -> None:
        if self._key[1] != os.getpid():  # forked off in between: it is for the process that opened the store to close
            return
        kept = _open[self._key]
        kept.users -= 1
        if not kept.users:
            del _open[self._key]
            kept.store.close()


def lasting_store(address: str | Store | None) -> str | Store | None:
    """A store for an object that opens it again and again; one in memory would be gone whenever it is closed."""
    if address is not None and not isinstance(address, str):
        return address
    return open_store(address) if is_in_memory(address) else address
