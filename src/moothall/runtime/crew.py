"""Which runs are being driven in a hall, and by whom: shared by the hall, which knows the runs, and the worker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from moothall.kernel.events import Event
from moothall.runtime.journal import Head, RunId


@dataclass
class Drive:
    """A run that is being driven here: by which task, what it performs in place, and the tasks of the others."""

    task: asyncio.Task[object] | None
    key: str = ""
    interrupted: bool = False
    flying: dict[str, asyncio.Task[Event]] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def notice(self, head: Head) -> None:
        """Others moved the run: look again, and stop what is no longer wanted."""
        self.news.set()
        if self.key and self.key not in {one.key for one in head.pending}:
            self.interrupt()

    def interrupt(self) -> None:
        """Stop what the run performs, because it is no longer wanted or no longer ours."""
        if self.key and self.task is not None:
            self.interrupted = True
            self.task.cancel()
        for task in self.flying.values():
            task.cancel()


@dataclass
class Crew:
    """The runs that are driven in a hall, and the pulse that keeps their leases."""

    drives: dict[RunId, Drive] = field(default_factory=dict)
    pulse: asyncio.Task[None] | None = None
