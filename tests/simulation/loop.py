"""A loop in which one seed decides everything: time is a number, and who runs next is drawn.

Nothing sleeps: where nobody is ready, time jumps to the next timer. What belongs to a process runs in its context, so
that the loop can let a process die at any await, without a single line of clean-up, or stand still for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")
Task = asyncio.Task[Any]


class Process:
    """What lives, stands still and dies as a whole: every task that was started in it, and all that those start."""

    def __init__(self, name: str, loop: VirtualLoop) -> None:
        self.name = name
        self.alive = True
        self.steps = 0
        self.last_step = 0
        self.gone: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._paused = False
        self._parked: list[asyncio.Handle] = []
        self._context = copy_context()
        self._context.run(_process.set, self)

    def bind(self, variable: ContextVar[T], value: T) -> None:
        """Give a variable a value for all that this process does."""
        self._context.run(variable.set, value)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let this process do something."""
        return self._loop.create_task(work, context=self._context)

    def kill(self) -> None:
        """End the process here and now: nothing of it ever runs again."""
        self.alive = False
        self._parked.clear()
        if not self.gone.done():
            self.gone.set_result(None)

    def pause(self) -> None:
        """Let the process stand still; its timers go off when it wakes."""
        self._paused = True

    def wake(self) -> None:
        """Let the process go on."""
        self._paused = False
        for handle in self._parked:
            self._loop.ready.append(handle)
        self._parked.clear()

    def admits(self, handle: asyncio.Handle) -> bool:
        """Whether the process runs this now."""
        if self.alive and self._paused:
            self._parked.append(handle)
        if not self.alive or self._paused:
            return False
        self.steps += 1
        if self.steps == self.last_step:
            self.kill()
        return self.alive


_process: ContextVar[Process | None] = ContextVar("process", default=None)


def here() -> Process | None:
    """The process that is running now."""
    return _process.get()


SPINS = 300
"""Who does so many turns at one and the same time goes in circles."""


class Stuck(Exception):
    """What is awaited never comes: nobody waits for a time, or all go in circles and no time passes."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop with a clock of its own. `draw` picks who runs next; without it the queue is a queue."""

    def __init__(self, draw: Callable[[], float] | None = None) -> None:
        super().__init__()
        self.ready = _Ready(self, draw)
        self._ready = self.ready
        self._selector = self
        self._now = 0.0
        self._spins = 0
        self.circles = 0
        """How often somebody went in circles until the next timer went off."""
        self._draw = draw
        self._tasks: list[tuple[Task, Process | None]] = []
        self.set_task_factory(self._made)  # type: ignore[arg-type]

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def select(self, timeout: float | None) -> tuple[()]:
        """Jump to the next timer, in place of waiting for a file."""
        if timeout is None:
            raise Stuck("nobody is ready and nobody waits for a time")
        self._spins += 1
        if timeout > 0 or (self._spins > SPINS and self._scheduled):  # type: ignore[attr-defined]
            self.circles += self._spins > SPINS
            self._now, self._spins = max(self._now, self._scheduled[0].when()), 0  # type: ignore[attr-defined]
        if self._spins > SPINS:
            raise Stuck("everybody goes in circles and no time passes")
        return ()

    def _process_events(self, events: object) -> None:
        """There are no files."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do in a while what a thread would do."""
        done = self.create_future()

        def work() -> None:
            try:
                done.set_result(func(*args))
            except Exception as error:  # whatever it is, it belongs to whoever waits
                done.set_exception(error)

        self.call_later(0.0 if self._draw is None else 0.01 * self._draw(), work)
        return done

    def _made(self, loop: VirtualLoop, work: Any, context: Any = None) -> Task:
        task: Task = asyncio.Task(work, loop=loop, context=context)
        self._tasks.append((task, here() if context is None else context.get(_process)))
        return task

    def unfinished(self) -> list[Task]:
        """The tasks of the living that have not ended, but for the one that asks."""
        mine = asyncio.current_task()
        living = [task for task, process in self._tasks if process is None or process.alive]
        return [task for task in living if not task.done() and task is not mine]

    def faults(self) -> list[BaseException]:
        """What tasks raised, or gave back as what went wrong."""
        ended = [task for task, _ in self._tasks if task.done() and not task.cancelled()]
        raised = [task.exception() or task.result() for task in ended]
        return [error for error in raised if isinstance(error, BaseException)]

    def bury(self) -> None:
        """Close what the dead left behind, and the loop."""
        for task, _ in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self.close()


class _Ready(deque[asyncio.Handle]):
    """Who is ready; the next is drawn."""

    def __init__(self, loop: VirtualLoop, draw: Callable[[], float] | None) -> None:
        super().__init__()
        self._draw = draw
        self._nothing = asyncio.Handle(lambda: None, (), loop)
        self._nothing.cancel()

    def popleft(self) -> asyncio.Handle:
        if self._draw is not None and len(self) > 1:
            drawn = int(self._draw() * len(self))
            self[0], self[drawn] = self[drawn], self[0]
        handle = super().popleft()
        process = handle._context.get(_process)  # type: ignore[attr-defined]
        return handle if process is None or process.admits(handle) else self._nothing


def complete(loop: VirtualLoop, work: Coroutine[Any, Any, T]) -> T:
    """Do something in a loop of its own, and leave nothing behind."""
    try:
        return loop.run_until_complete(work)
    finally:
        loop.bury()
