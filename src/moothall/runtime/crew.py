"""Which runs are being driven in a hall, and by whom: shared by the hall, which knows the runs, and the worker.

Nothing here performs or decides anything. It knows the tasks in which effects are performed, and cancels them:

- An effect that is performed in place is stopped by cancelling the task that drives its run. That task goes on if we
  alone cancelled it (`heed`); who cancels it from outside is obeyed.
- Who is dismissed has a moment to put its things away, and nobody waits longer for it than that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moothall.kernel.events import Event
from moothall.runtime.journal import Head, Pending, RunId
from moothall.runtime.ports import Ear, Messages, Performer, nobody_listens

GRACE = 2.0
"""How long to wait for effects that were cancelled, in seconds."""
AT_ONCE = 4
"""How many runs begin before others have the loop."""


class Drive:
    """A run that is being driven here: by which task, what it performs in place, and the tasks of the others.

    `attempts` are the effects of these as they stood then, `leaving` those that were cancelled. `heard` says when each
    effect was last heard of (0 where nobody asks, for want of a time-out), `late` which were stopped and why, `begun`
    which were marked here as begun, `children` which are driven here as runs of their own, and `resting` which of
    these rest or are driven elsewhere. `said` is what was said so far in each effect, where somebody listens. `ends` is
    when the time of the run is over, `rationed` says that it may spend only so much of something else, and `metered`
    that this is something which only a reply tells.
    """

    __slots__ = (
        "attempts",
        "begun",
        "children",
        "ear",
        "ends",
        "flying",
        "heard",
        "interrupts",
        "key",
        "late",
        "leaving",
        "messages",
        "metered",
        "news",
        "now",
        "performers",
        "rationed",
        "resting",
        "said",
        "task",
    )

    def __init__(
        self,
        now: Callable[[], float],
        messages: Messages,
        performers: Mapping[str, Performer],
        ear: Ear = nobody_listens,
    ) -> None:
        self.task: asyncio.Task[object] | None = None
        self.now, self.messages, self.performers, self.ear = now, messages, performers, ear
        self.ends: float | None = None
        self.rationed = self.metered = False
        self.key = ""
        self.interrupts = 0
        self.news = asyncio.Event()
        self.flying: dict[str, asyncio.Task[Event | None]] = {}
        self.attempts: dict[str, Pending] = {}
        self.leaving: set[asyncio.Task[Event | None]] = set()
        self.heard: dict[str, float] = {}
        self.late: dict[str, str] = {}
        self.begun: set[str] = set()
        self.children: set[str] = set()
        self.resting: set[str] = set()
        self.said: dict[str, list[str]] = {}

    def listen(self, key: str, run: RunId, speaker: str) -> Callable[[str], None] | None:
        """Who hears what the performer with this key says, piece by piece; what was said so far is remembered."""
        ear = self.ear(run, speaker)
        if ear is None:
            return None
        pieces = self.said[key] = []

        def hear(piece: str) -> None:
            pieces.append(piece)
            ear(piece)

        return hear

    def beat(self, key: str) -> None:
        """A performer is still at work."""
        if key in self.heard:
            self.heard[key] = self.now()

    def hear(self, task: asyncio.Task[Event | None]) -> None:
        """An effect beside others has ended."""
        self.news.set()

    def notice(self, head: Head) -> None:
        """Others moved the run: look again, and stop what is no longer wanted."""
        self.news.set()
        if self.key and self.key not in {one.key for one in head.pending}:
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

    async def wait_for_leaving(self) -> None:
        """Dismiss whatever is still performed, and wait until it is gone, or long enough."""
        for task in self.flying.values():
            task.cancel()
        self.leaving |= set(self.flying.values())
        self.flying.clear()
        if self.leaving:
            done, late = await asyncio.wait(self.leaving, timeout=GRACE)
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


@dataclass
class Crew:
    """The runs that are driven in a hall, and the pulse that keeps their leases."""

    drives: dict[RunId, Drive] = field(default_factory=dict)
    pulse: asyncio.Task[None] | None = None
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
