"""Sends records to a mirror, from the store's outbox, in the order in which they were written.

A run never waits for a mirror: its step commits records and outbox together, and whoever has time pumps. What a mirror
has taken is noted afterwards, so that a crash in between sends some records twice; a mirror keeps the newer version,
and twice is as good as once. A mirror that cannot be reached raises, and nothing is lost: it stays in the outbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moothall.kernel.events import SharedRecord
from moothall.runtime.ports import Records

BATCH = 100


class Mirror(Protocol):
    """Keeps a copy of records elsewhere; its name is how the outbox knows how far it is."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    async def put(self, records: Sequence[SharedRecord]) -> None:
        """Keep these records, each unless a newer version is there, or raise EffectFailed."""
        ...


async def pump(store: Records, mirror: Mirror, *, batch: int = BATCH) -> int:
    """Send a mirror everything that it does not have yet; how many records that were."""
    sent = 0
    while outgoing := await store.outbox(mirror.name, batch):
        await mirror.put([out.record for out in outgoing])
        await store.mirrored(mirror.name, outgoing[-1].number)
        sent += len(outgoing)
    return sent
