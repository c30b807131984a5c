"""What a store gives to another that takes its runs over: every row as it stands, seals and all.

The name of the store goes along, so that the anchors outside know the runs in their new place.
"""

from __future__ import annotations

from typing import Protocol

from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId
from moothall.stores.seals import Signed


class PackedRun(Frozen):
    """A run with all that is its own. Who held it stays behind; the token that fences others off does not."""

    run: RunId
    machine: str
    record: bytes
    seq: int
    status: str
    head: bytes
    tip: bytes
    seal: bytes
    wake: float | None
    token: int
    crashes: int
    entries: tuple[tuple[int, str, bytes, bytes], ...]
    """Number, cause, body and seal."""
    texts: tuple[tuple[bytes, bytes], ...]
    """Digest and text."""
    pieces: tuple[tuple[str, int, int, bytes], ...]
    """Thread, place, entry and seal."""


class PackedRecords(Frozen):
    """What outlives runs: records, the order in which they were written, and how far each mirror is."""

    name: str
    """What the store is called."""
    records: tuple[tuple[str, str, int, bytes, bytes], ...]
    """Collection, key, version, body and seal."""
    outbox: tuple[tuple[int, str, str, int, bytes, bytes], ...]
    """The same behind their numbers."""
    mirrors: tuple[tuple[str, int], ...]


class Portable(Protocol):
    """A store whose runs can be taken elsewhere."""

    async def seal_parcel(self, content: bytes) -> bytes:
        """The seal of runs that leave for another store."""
        ...

    async def examine_parcel(self, content: bytes, seal: bytes) -> Signed | None:
        """Who has sealed runs that came from another store; None where they are not what was sealed."""
        ...

    async def vouch(self, run: RunId) -> None:
        """Tell the anchors that a run rests where it stands."""
        ...

    async def pack_run(self, run: RunId) -> PackedRun:
        """A run as it stands."""
        ...

    async def unpack_run(self, packed: PackedRun) -> None:
        """Keep a run of another store; Conflict where its id is taken."""
        ...

    async def pack_records(self) -> PackedRecords:
        """What outlives runs, as it stands."""
        ...

    async def unpack_records(self, packed: PackedRecords) -> None:
        """Keep what outlives the runs of another store, and go by its name from now on."""
        ...
