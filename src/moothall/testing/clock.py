"""A clock that a test moves. Where a run has nothing else to do than wait, it jumps to what is waited for."""

from __future__ import annotations

import asyncio

START = 1_767_268_800.0
"""The first of January 2026, at noon."""
GRACE = 0.01
"""How long, in real seconds, others have to get something done before the clock jumps."""


class TestClock:
    """Stands still until `advance`; who waits for a retry or an alarm need not wait."""

    __test__ = False  # pytest takes it for a test otherwise

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._awaited: list[float] = []

    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError(f"time does not go back by {-seconds} seconds; give a number of at least 0")
        self._now += seconds

    async def wait_until(self, moment: float) -> None:
        """Come back at that time. The clock jumps there if nothing happens before."""
        self._awaited.append(moment)
        try:
            while self._now < moment:
                await asyncio.sleep(GRACE)
                if moment == min(self._awaited):
                    self._now = max(self._now, moment)
        finally:
            self._awaited.remove(moment)
