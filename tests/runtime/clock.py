"""The clocks of tests: one that moves when the test says so, one that jumps, and one of a process in a virtual loop.

The last runs ten times as fast as its loop, so that a lease is over after six pulses of a worker and a world takes
milliseconds. It can be set wrong, as clocks are.
"""

from __future__ import annotations

import asyncio

SPEED = 10.0
EPOCH = 1_000.0


class MovableClock:
    """Stands still until `move`; whoever waits comes back when the time has been reached."""

    def __init__(self, now: float = EPOCH) -> None:
        self._now = now
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._arrived = asyncio.Event()

    def now(self) -> float:
        """The time that the test has set."""
        return self._now

    async def wait_until(self, moment: float) -> None:
        """Come back once the test has moved the clock that far."""
        if moment <= self._now:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((moment, reached))
        self._arrived.set()
        await reached

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.move_to(self._now + seconds)

    def move_to(self, moment: float) -> None:
        """Let it be this time."""
        self._now = moment
        due = [waiting for waiting in self._waiting if waiting[0] <= moment]
        self._waiting = [waiting for waiting in self._waiting if waiting not in due]
        for _, reached in due:
            if not reached.done():
                reached.set_result(None)

    async def wait_for_waiting(self) -> None:
        """Come back when someone waits for a later time than now."""
        while not any(not reached.done() for _, reached in self._waiting):
            self._arrived.clear()
            await self._arrived.wait()


class HastyClock(MovableClock):
    """Moves by itself to whatever moment someone waits for, and remembers the jumps."""

    def __init__(self, now: float = EPOCH) -> None:
        super().__init__(now)
        self.jumps: list[float] = []

    async def wait_until(self, moment: float) -> None:
        """Be there at once."""
        await asyncio.sleep(0)
        self.jumps.append(max(0.0, moment - self.now()))
        self.move_to(max(self.now(), moment))


class FastClock:
    """The loop's time, faster, and shifted by an offset."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.offset = 0.0

    def now(self) -> float:
        """The time."""
        return EPOCH + self._loop.time() * SPEED + self.offset

    async def wait_until(self, moment: float) -> None:
        """Come back when that much time has passed; a clock that is set meanwhile does not change it."""
        await asyncio.sleep(max(0.0, (moment - self.now()) / SPEED))
