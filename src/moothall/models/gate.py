"""The gate before a provider: how many calls it gets at once, and whether it gets any.

A provider that failed so many times in a row is left alone for a while. Then one call is let through to see: if it
succeeds the gate is open to all again, if it fails the provider is left alone once more. A refusal of one request is
no failure of the provider, and a call that was cancelled says nothing about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from moothall.agents.ports import Model, PayFor, Reply, Request, Turns, open_ahead, unlimited
from moothall.errors import EffectFailed
from moothall.kernel.frozen import Frozen
from moothall.models.purse import Purse
from moothall.runtime.turns import OwnTurns

SOON = 1.0
"""How long to wait, in seconds, while another call finds out whether the provider is back."""


class Measure(Frozen):
    """How many calls at once, how many failures in a row are too many, and how long the rest is then, in seconds.

    `per_minute` is how many calls may begin within a minute; 0 where that does not matter.
    """

    at_once: int = 16
    failures: int = 5
    rest: float = 30.0
    per_minute: int = 0


class Gate:
    """The state of one provider, shared by all models that ask it."""

    def __init__(self, name: str, measure: Measure, now: Callable[[], float]) -> None:
        self._name = name
        self._measure = measure
        self._now = now
        self._failures = 0
        self._last_failure = ""
        self._closed_until = 0.0
        self._is_probing = False
        self._turns = OwnTurns(now)
        self._rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def room(self) -> asyncio.Semaphore:
        """Room for so many calls at once, in the running event loop."""
        loop = asyncio.get_running_loop()
        return self._rooms.setdefault(loop, asyncio.Semaphore(self._measure.at_once))

    def enter(self) -> bool:
        """Be let through, or be told when to come back; whether this call is the one that is to find out."""
        if self._failures < self._measure.failures:
            return False
        left = self._closed_until - self._now()
        if left > 0 or self._is_probing:
            why = f"{self._name} failed {self._failures} times in a row and is left alone for a while"
            raise EffectFailed(f"{self._last_failure}; {why}", retry_after=max(left, SOON))
        self._is_probing = True
        return True

    def take_turn(self) -> float:
        """Begin a call now, and 0.0; or how many seconds it has to wait before there is room in the minute."""
        per_minute = self._measure.per_minute
        return self._turns.take(self._name, per_minute) if per_minute else 0.0

    async def wait_for_turn(self, turns: Turns | None) -> None:
        """Wait until a call may begin, by this process's own count, or by that of all who share one."""
        per_minute = self._measure.per_minute
        if not per_minute:
            return
        while True:
            pause = self.take_turn() if turns is None else await turns.take_turn(self._name, per_minute)
            if not pause:
                return
            await asyncio.sleep(pause)  # whoever waits besides may come first

    def succeeded(self) -> None:
        """The provider did its part."""
        self._failures = 0

    def failed(self, why: str) -> None:
        """The provider did not do its part."""
        self._failures += 1
        self._last_failure = why
        if self._failures >= self._measure.failures:
            self._closed_until = self._now() + self._measure.rest

    def probed(self) -> None:
        """The call that was to find out is over, also where it found nothing out."""
        self._is_probing = False


class GatedModel:
    """A model behind the gate of its provider; what it costs is paid from a purse, where there is one."""

    def __init__(self, model: Model, gate: Gate, purse: Purse | None = None) -> None:
        self._model = model
        self._gate = gate
        self._pay_for: PayFor = unlimited if purse is None else purse.pay_for

    async def open(self) -> None:
        """Open the model within."""
        await open_ahead(self._model)

    async def reply(self, request: Request) -> Reply:
        async with self._gate.room():
            return await self._pay_for(lambda: self._pass(request))

    async def _pass(self, request: Request) -> Reply:
        """Have the provider asked, and learn from how that ends."""
        is_probe = self._gate.enter()
        try:
            await self._gate.wait_for_turn(request.turns)
            reply = await self._model.reply(request)
        except EffectFailed as failure:
            if failure.final:
                self._gate.succeeded()
            else:
                self._gate.failed(str(failure))
            raise
        finally:
            if is_probe:
                self._gate.probed()
        self._gate.succeeded()
        return reply
