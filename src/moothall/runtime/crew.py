"""Which runs are being driven in a hall, and by whom: shared by the hall, which knows the runs, and the worker.

Nothing here performs or decides anything. It knows the tasks in which effects are performed, and cancels them:

- An effect that is performed in place is stopped by cancelling the task that drives its run. That task goes on if we
  alone cancelled it (`heed`); who cancels it from outside is obeyed.
- Who is dismissed has a moment to put its things away, and nobody waits longer for it than that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from moothall.kernel.events import Event
from moothall.runtime.journal import Head, Pending, RunId

PULSE = 0.5
GRACE = 2.0
AT_ONCE = 4
"""How many runs begin before others have the loop."""


class Tasks:
    """The tasks in which the effects of a run are performed: the one that drives it, and those of effects beside it.

    `key` is the effect that is performed in place. `flying` are the tasks of the others, `attempts` their effects as
    they stood then, `leaving` those that were cancelled. `late` says which were stopped and why, `begun` which were
    marked here as begun, and `children` which are driven here as runs of their own.
    """

    __slots__ = (
        "attempts",
        "begun",
        "children",
        "flying",
        "interrupts",
        "key",
        "late",
        "leaving",
        "news",
        "task",
    )

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.task = task
        self.key = ""
        self.interrupts = 0
        self.news = asyncio.Event()
        self.flying: dict[str, asyncio.Task[Event | None]] = {}
        self.attempts: dict[str, Pending] = {}
        self.leaving: set[asyncio.Task[Event | None]] = set()
        self.late: dict[str, str] = {}
        self.begun: set[str] = set()
        self.children: set[str] = set()

    def hear(self, task: asyncio.Task[Event | None]) -> None:
        """An effect beside others has ended."""
        self.news.set()

    def notice(self, head: Head) -> None:
        """Others moved the run: look again, and stop what is no longer wanted."""
        self.news.set()
        if self.key and self.key not in {pending.key for pending in head.pending}:
            self.interrupt()

    def interrupt(self) -> None:
        """Stop what the run performs, because it is no longer wanted or no longer ours."""
        self._interrupt_in_place()
        for task in self.flying.values():
            task.cancel()

    def stop(self, key: str, why: str) -> None:
        """Stop one effect that takes too long; if it does not heed that, again each time."""
        self.late[key] = why
        if key == self.key:
            self._interrupt_in_place()
        elif key in self.flying:
            self.flying[key].cancel()

    def dismiss(self, key: str) -> None:
        """Cancel an effect that is not wanted any more; it has a moment to put its things away.

        A child that is gone from what its run wants has told its end, and has only that to keep.
        """
        task = self.flying.pop(key)
        self.attempts.pop(key, None)
        if key not in self.children:
            task.cancel()
        self.leaving.add(task)

    async def wait_for_leaving(self, seconds: float) -> None:
        """Dismiss whatever is still performed, and wait until it is gone, but no longer than that."""
        for task in self.flying.values():
            task.cancel()
        self.leaving |= set(self.flying.values())
        self.flying.clear()
        if self.leaving:
            done, late = await asyncio.wait(self.leaving, timeout=seconds)
            for task in late:
                if not task.cancelling():
                    task.cancel()
            for task in done:
                task.cancelled() or task.exception()

    def _interrupt_in_place(self) -> None:
        if self.key and self.task is not None:
            self.interrupts += 1
            self.task.cancel()

    def heed(self) -> bool:
        """Whether it was us who cancelled the task, and nobody else beside us; then it may go on."""
        if not self.interrupts or self.task is None:
            return False
        left = 1
        while self.interrupts:
            self.interrupts -= 1
            left = self.task.uncancel()
        return left == 0


class Driven(Protocol):
    """A run that is being driven, as others here have to do with it."""

    task: asyncio.Task[object] | None
    key: str
    flying: dict[str, asyncio.Task[Event | None]]
    begun: set[str]

    def notice(self, head: Head) -> None:
        """Others moved the run: look again, and stop what is no longer wanted."""
        ...

    def interrupt(self) -> None:
        """Stop what the run performs, because it is no longer wanted or no longer ours."""
        ...

    def stop(self, key: str, why: str) -> None:
        """Stop one effect that takes too long."""
        ...

    def stop_late(self) -> None:
        """Stop the effects whose time is up."""
        ...

    async def look_after(self, *, renew: bool) -> None:
        """Renew the lease where that is due, and notice what others told the run."""
        ...


@dataclass
class Crew:
    """The runs that are driven in a hall, and the pulse that keeps their leases."""

    drives: dict[RunId, Driven] = field(default_factory=dict)
    pulse: asyncio.Task[None] | None = None
    interval: float = PULSE
    """How many seconds are between two beats of the pulse, and between two looks for work."""
    grace: float = GRACE
    """How many seconds to wait for effects that were cancelled."""
    entering: deque[asyncio.Future[None]] = field(default_factory=deque)

    async def wait_for_turn(self) -> None:
        """Come in a few at a time, so that whoever else uses the loop is not kept waiting."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self.entering:
            loop.call_soon(self._let_in, loop)
        self.entering.append(turn)
        await turn

    def _let_in(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(min(AT_ONCE, len(self.entering))):
            turn = self.entering.popleft()
            if not turn.done():
                turn.set_result(None)
        if self.entering:
            loop.call_soon(self._let_in, loop)
