"""A store on a real server, for those who live in a loop with a time of its own.

The server knows no such time: each call is made from a thread with a loop of its own, and the caller's loop stands
still until it is answered. So a world remains the same for the same seed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

from moothall.runtime.ports import Store
from moothall.stores.postgresql import PostgresStore
from tests.simulation.shim import Given, StoreShim

TABLES = "runs, entries, texts, threads, records, outbox, mirrors"


class Shore:
    """A thread in which calls to a server are made, and the stores of one database that were opened there."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._spare = [PostgresStore(address)]

    def call(self, work: Any) -> Any:
        """What a call gives; nobody else moves meanwhile."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def open_store(self) -> Store:
        """The store as a new process finds it: it remembers nothing."""
        kept = self._spare.pop() if self._spare else PostgresStore(self._address)
        kept._places.clear()
        kept._held.clear()
        return cast(Store, Ashore(kept, self))

    def give_back(self, store: PostgresStore) -> None:
        """Have a store at hand for the next process: connections cost more than anything else."""
        self._spare.append(store)

    def clear(self) -> None:
        """Forget every run."""
        self.call(self._spare[0].runs())
        self.call(self._spare[0]._connections.fetch(f"TRUNCATE {TABLES} RESTART IDENTITY"))

    def close(self) -> None:
        """Let go of everything."""
        for store in self._spare:
            self._loop.call_soon_threadsafe(store.close)
        self.call(asyncio.sleep(0.01))
        self.call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Ashore(StoreShim):
    """A store that is called from elsewhere."""

    def __init__(self, inner: PostgresStore, shore: Shore) -> None:
        super().__init__(inner)
        self._shore = shore

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if name == "wait_for_work":
            await asyncio.sleep(given["seconds"])
            return None
        return self._shore.call(call())

    def spoil_heads(self) -> None:
        """Damage what the store knows of where its runs stand."""
        inner: Any = self.inner
        self._shore.call(inner._connections.fetch("UPDATE runs SET head = '\\x00'"))

    def close(self) -> None:
        """Leave it to the next process."""
        kept: Any = self.inner
        self._shore.give_back(kept)
