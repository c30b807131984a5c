"""Gathers what several runs want written at once, for a server that takes long to keep something and can keep much.

- One batch is under way at a time. What comes meanwhile goes together in the next: one round trip, one flush of a log.
- Whoever is told that it is written may be back at once with the next step. The next batch waits a moment for those who
  were quick the last time, so that runs in step share every batch and do not take turns.
- Who is cancelled hears of that when what it wanted is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

MOST = 256
"""The most that goes in one batch."""
MOMENT = 0.5
"""How long those who were quick are waited for, as a share of the time that the last batch took."""

W = TypeVar("W")


class _Wish(Generic[W]):
    """Something to be written, who wants it, whether they were quick to come back, and the word that they wait for."""

    __slots__ = ("is_over", "is_quick", "what", "who", "word")

    def __init__(self, who: Hashable, what: W, word: asyncio.Future[Exception | None], *, is_quick: bool) -> None:
        self.who, self.what, self.word, self.is_quick, self.is_over = who, what, word, is_quick, False


class Batches(Generic[W]):
    """Writes in batches. `write` gives for each of a batch why it was not written, or None."""

    def __init__(self, write: Callable[[Sequence[W]], Awaitable[Sequence[Exception | None]]]) -> None:
        self._write = write
        self._loop: asyncio.AbstractEventLoop | None = None

    def _move_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work in another loop from now on; what another one left undone is nobody's."""
        self._loop = loop
        self._waiting: list[_Wish[W]] = []
        self._writing: asyncio.Task[None] | None = None
        self._told: set[Hashable] = set()
        self._expected: set[Hashable] = set()
        self._until = 0.0
        self._moment: asyncio.TimerHandle | None = None

    async def have_written(self, who: Hashable, what: W) -> None:
        """Have something written, together with what others want."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_in(loop)
        wish = _Wish(who, what, loop.create_future(), is_quick=who in self._told and loop.time() <= self._until)
        self._waiting.append(wish)
        self._expected.discard(who)
        if self._writing is None and not self._expected:
            self._flush()
        try:
            error = await wish.word
        except asyncio.CancelledError:
            if not wish.is_over:
                wish.word = loop.create_future()
                await wish.word
            raise
        if error is not None:
            raise error

    def _flush(self) -> None:
        """Write what waits, and wait for nobody any more."""
        if self._moment is not None:
            self._moment.cancel()
            self._moment = None
        self._expected = set()
        if self._waiting:
            self._writing = asyncio.get_running_loop().create_task(self._write_next())

    async def _write_next(self) -> None:
        """Write the next batch, and give the word to those who wait for it."""
        loop = asyncio.get_running_loop()
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        began = loop.time()
        ends: Sequence[Exception | None]
        try:
            ends = await self._write([wish.what for wish in batch])
        except Exception as error:  # whatever it is, those who wait must get their word
            ends = [error] * len(batch)
        except asyncio.CancelledError:  # the loop ends, and nothing more is written
            for wish in (*batch, *self._waiting):
                wish.is_over = True
                wish.word.cancel()
            raise
        for wish, end in zip(batch, ends, strict=True):
            wish.is_over = True
            if not wish.word.done():
                wish.word.set_result(end)
        now = loop.time()
        self._writing, self._until = None, now + (now - began) * MOMENT
        self._told = {wish.who for wish in batch}
        self._expected = {wish.who for wish in batch if wish.is_quick}.difference(wish.who for wish in self._waiting)
        if self._expected:
            self._moment = loop.call_at(self._until, self._flush)
        else:
            self._flush()
