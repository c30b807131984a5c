"""The world outside: a receiver that honours keys, and hands that do errands with all that can go wrong on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from moothall.kernel.events import Event
from moothall.performers.own import own_performers
from moothall.runtime.drive import CRASHES
from moothall.runtime.ports import Context, Performer
from tests.runtime.world import Fetched
from tests.simulation.faults import SELDOM, Fate, Fault
from tests.simulation.ledger import Ledger
from tests.simulation.loop import here
from tests.simulation.machines import KINDS, OWN, SPOKEN, Sound

LONG = 4.0
"""Of the loop's time: longer than a lease."""


class Receiver:
    """Does what it is asked once per key, and says the same again where a key comes again."""

    def __init__(self) -> None:
        self.done: dict[str, Fetched] = {}
        self.asked: Counter[str] = Counter()
        self.poison: dict[str, int] = {}
        """How many workers will still die of what these keys want."""

    def take(self, key: str, what: str) -> Fetched:
        """Do this, unless it was done."""
        if key not in self.done:
            self.done[key] = Fetched(what, {"tokens": 1 + len(self.done) % 4} if len(self.done) % 3 else {})
        return self.done[key]


class Hands:
    """Does errands in one process of a world."""

    def __init__(self, owner: str, fate: Fate, ledger: Ledger, receiver: Receiver) -> None:
        self._owner, self._fate, self._ledger, self._receiver = owner, fate, ledger, receiver

    def performers(self) -> dict[str, Performer]:
        """These hands for every kind of errand."""
        return {kind.kind: Performer(kind, self) for kind in KINDS} | own_performers(dict.fromkeys(OWN, self.sound))

    async def sound(self, effect: Sound, context: Context) -> str:
        """What performs effects of an author's own: what it gives becomes the event."""
        event = await self(effect, context)
        assert isinstance(event, Fetched)
        return event.what

    async def __call__(self, effect: Any, context: Context) -> Event:
        key, asked = context.key, self._receiver.asked
        self._fate.say(f"performs {key} attempt {context.attempt}")
        await self._ledger.performing(effect, context, self._owner, asked[key])
        await self._die_of(key)
        if asked[key]:
            self._fate.note(Fault.PERFORM_AGAIN)
        asked[key] += 1
        try:
            if effect.what.startswith(SPOKEN):
                await self._speak(context)
            await self._before(effect.timeout)
        except asyncio.CancelledError:
            self._fate.note(Fault.PERFORM_STOPPED)
            raise
        event = self._receiver.take(key, effect.what)
        await self._after()
        return event

    async def _speak(self, context: Context) -> None:
        """Say something, and go on speaking for a while."""
        if (hear := context.ear("speaker")) is not None:
            hear(f"The sea rises twice a day, says {context.key}.")
        await asyncio.sleep(0 if self._fate.calm else self._fate.draw.choice((0.1, 1.0, LONG)))

    async def _die_of(self, key: str) -> None:
        """Some effects bring down every worker that performs them, however fine the weather is."""
        poison = self._receiver.poison
        if key not in self._receiver.asked and self._fate.strikes("poison", SELDOM):
            poison[key] = CRASHES + 1
        if poison.get(key):
            poison[key] -= 1
            await self._die()

    async def _die(self) -> None:
        process = here()
        assert process is not None
        self._fate.note(Fault.PERFORM_DEADLY)
        process.kill()
        await asyncio.sleep(0)

    async def _before(self, patience: float | None) -> None:
        fate = self._fate
        await asyncio.sleep(0 if fate.calm else fate.draw.choice((0, 0, 0.01, 0.3)))
        if fate.strikes("raises"):
            fate.note(Fault.PERFORM_RAISED)
            raise OSError("the line is down")
        if fate.strikes("hangs"):
            await self._hang(patience)
        if fate.strikes("late"):
            await asyncio.sleep(LONG)
            fate.note(Fault.PERFORM_LATE)

    async def _hang(self, patience: float | None) -> None:
        """Hang until a time-out of its own, or until the runtime has had enough."""
        self._fate.note(Fault.PERFORM_HUNG)
        async with asyncio.timeout(self._fate.draw.choice((0.5, LONG)) if patience is None else None):
            await asyncio.sleep(1000)

    async def _after(self) -> None:
        fate = self._fate
        if fate.strikes("deadly"):
            await self._die()
        if fate.strikes("breaks off"):
            fate.note(Fault.PERFORM_BROKE_OFF)
            broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            broken.cancel()
            await broken
        if fate.strikes("unheard"):
            fate.note(Fault.PERFORM_UNHEARD)
            raise ConnectionError("the line went down")
