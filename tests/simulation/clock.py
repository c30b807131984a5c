"""The clock of a process in a virtual loop.

It runs ten times as fast as the loop, so that a lease is over after six pulses of a worker and a world takes
milliseconds. It can be set wrong, as clocks are.
"""

from __future__ import annotations

import asyncio

from tests.simulation.loop import VirtualLoop

SPEED = 10.0
EPOCH = 1_000.0


class FastClock:
    """The loop's time, faster, and shifted by an offset."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.offset = 0.0

    def now(self) -> float:
        """The time."""
        return EPOCH + self._loop.time() * SPEED + self.offset

    async def wait_until(self, moment: float) -> None:
        """Come back when that much time has passed; a clock that is set meanwhile does not change it."""
        await asyncio.sleep(max(0.0, (moment - self.now()) / SPEED))
