"""Reads what a command says: the first bytes are kept, the rest is counted, and too much of it is noticed.

Nothing is left unread, so that no command waits for its reader, and nothing beyond the first bytes is held.
"""

from __future__ import annotations

import asyncio

from moothall.sandboxes.limits import Limits

PIECE = 65_536


class Output:
    """Both streams of a command; `overflow` is set when they have said more than anybody wants to hear."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total = 0
        self._stopped = asyncio.Event()
        self.overflow = asyncio.Event()

    def stop(self) -> None:
        """Read no further, though somebody may still hold the other end."""
        self._stopped.set()

    async def read(self, stream: asyncio.StreamReader) -> str:
        """One stream to its end, as a text."""
        kept, size = bytearray(), 0
        while piece := await self._piece(stream):
            kept += piece[: max(0, self._limits.kept - size)]
            size += len(piece)
            self._total += len(piece)
            if self._total > self._limits.output:
                self.overflow.set()
        text = kept.decode(errors="replace")
        return text if size <= len(kept) else f"{text}\n[… {size - len(kept)} bytes more]\n"

    async def _piece(self, stream: asyncio.StreamReader) -> bytes:
        reading = asyncio.ensure_future(stream.read(PIECE))
        stopping = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()
            stopping.cancel()
