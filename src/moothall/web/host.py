"""What the routes have behind them: the one object, who looks, who acts, and what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from moothall.app.report.detail import Looking
from moothall.app.runs.acts import Acts
from moothall.app.runs.feed import Feed, FeedItem, Form
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.worker import Duty, work

T = TypeVar("T")
AT_ONCE = 100
"""How many runs are driven at once."""


class Hosting:
    """Opened with the server and closed with it. Unless it only reads, it drives the runs that want attention."""

    def __init__(self, hall: Moothall, render: Callable[[FeedItem], bytes], *, read_only: bool, version: str) -> None:
        self.hall, self.read_only, self.version = hall, read_only, version
        self.folder = Path.cwd()
        self._render = render
        self._stop: asyncio.Event | None = None
        self._work: asyncio.Task[Any] | None = None

    async def open(self) -> None:
        """Begin to listen, and to work where that is allowed."""
        self.feed: Feed[bytes, bytes] = Feed(self.hall, Form(self._render, b"".join))
        self.acts = Acts(self.hall)
        self.looking = Looking(self.hall, loads=not self.read_only)
        if not self.read_only:
            self._stop = asyncio.Event()
            self._work = asyncio.create_task(work(self.hall.context(), self._stop, Duty(AT_ONCE)))

    def release(self) -> None:
        """Send home whoever watches: the server is about to stop."""
        self.feed.close()

    async def close(self) -> None:
        """Let go of everything; others may go on with it."""
        self.feed.close()
        await self.acts.close()
        if self._stop is not None and self._work is not None:
            self._stop.set()
            with suppress(asyncio.CancelledError):
                await self._work

    async def aside(self, task: Callable[[], T]) -> T:
        """Do what takes a while in a thread of its own."""
        return await asyncio.to_thread(task)
