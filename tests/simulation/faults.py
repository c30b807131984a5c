"""What can go wrong, how often it does, and a store in which it happens.

A seed does not turn everything on at once: some faults are likely in its world, others never happen there. Every
fault that happened is counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from moothall.errors import Conflict, EffectFailed
from moothall.kernel.events import Answered, Delivered
from moothall.runtime.journal import Entry
from moothall.runtime.ports import Store
from tests.simulation.ledger import Ledger
from tests.simulation.loop import Process, here
from tests.simulation.shim import READS, Given, StoreShim


class Fault(Enum):
    """What can happen to a world."""

    COMMIT_REFUSED = "a commit failed before it was written"
    COMMIT_UNHEARD = "a commit was written and its acknowledgement was lost"
    COMMIT_SLOW = "a commit took its time"
    COMMIT_RACED = "two writers met and one had to decide again"
    BEGIN_FAILED = "the beginning of a run failed or its acknowledgement was lost"
    CLAIM_FAILED = "a claim failed or its acknowledgement was lost"
    CLAIM_SLOW = "a claim took its time"
    CLAIM_RACED = "two workers claimed a run and one lost"
    RENEW_FAILED = "a renewal failed or its acknowledgement was lost"
    RENEW_SLOW = "a renewal took its time"
    RENEW_LOST = "a worker learnt at a renewal that it had lost a run"
    RELEASE_FAILED = "a release failed or its acknowledgement was lost"
    READ_FAILED = "something could not be read"
    READ_SLOW = "reading took its time"
    TAKEN_OVER = "a worker took a run from another"
    FENCED = "a worker that had lost its run tried to commit and could not"
    PERFORM_RAISED = "a provider raised before it had done anything"
    PERFORM_UNHEARD = "a provider had done its part and raised all the same"
    PERFORM_HUNG = "a provider hung until its time was out"
    PERFORM_LATE = "a provider replied when the lease was long over"
    PERFORM_STOPPED = "what a provider did was no longer wanted and it was stopped"
    PERFORM_BROKE_OFF = "a provider was cancelled from within"
    PERFORM_AGAIN = "a provider was asked again with the same key"
    PERFORM_DEADLY = "what a provider did brought its worker down"
    WORKER_KILLED = "a worker died at some await"
    WORKER_PAUSED = "a worker stood still for longer than its lease"
    WORKER_STARTED = "a new worker began"
    WORKER_STOPPED = "a worker was stopped and let go of everything"
    CLOCK_FORWARD = "the clock of a worker jumped forward"
    CLOCK_BACK = "the clock of a worker jumped back"
    ANSWERED = "a person answered"
    ANSWERED_AGAIN = "a person answered twice"
    ANSWERED_LATE = "a person answered when nobody waited for it any more"
    CANCELLED = "a person cancelled a run"
    CANCELLED_AGAIN = "a person cancelled twice"
    SET_ASIDE = "a run brought down too many workers"
    TAKEN_BACK = "somebody took back a run that was set aside"
    FALTERED = "an attempt went wrong, and the journal says so"
    TIMED_OUT = "nothing was heard of an effect for too long"
    DOUBTED = "nobody knows whether an effect was done"
    REPEATED = "a person said that an effect may be performed again"
    TOGETHER = "several entries shared a transaction"
    REDIRECTED = "a person wanted something else while somebody spoke"
    INTERRUPTED = "what was said until somebody was cut off is in the journal"
    RECORD_WRITTEN = "a record was written with the step that wanted it"
    RECORD_RACED = "a record had another version than the one that was to be replaced"
    CHILD_DONE = "a child ended, and its parent heard of it"
    RETRIED = "somebody retried a run that had ended badly or was set aside"
    RETRY_REFUSED = "somebody wanted to retry a run that could not be retried"
    ADOPTED = "a run goes on under another definition"
    REWORDED = "a machine says what it says in other words"
    MENDED = "a machine has rows for failures that it did not have before"
    EXTENDED = "a machine decides otherwise where no run has been yet"
    FORKED = "a run goes its own way from an entry of another"
    FORM_FILLED = "a person answered a question with several fields"
    FORM_REFUSED = "what a person filled in did not fit"
    OWN_PERFORMED = "a function of the author's performed an effect"
    CHILD_CALLED_OFF = "a child ended that nobody wanted any more"


OFTEN = (0.0, 0.0, 0.03, 0.1, 0.3)
SELDOM = (0.0, 0.0, 0.01, 0.04)


@dataclass
class Fate:
    """How likely everything is in one world, and what has happened there."""

    draw: Random
    calm: bool = False
    happened: Counter[Fault] = field(default_factory=Counter)
    rates: dict[str, float] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)

    def strikes(self, name: str, among: Sequence[float] = OFTEN) -> bool:
        """Whether this goes wrong now."""
        if self.calm:
            return False
        rate = self.rates.get(name)
        if rate is None:
            rate = self.rates[name] = self.draw.choice(among)
        return rate > 0 and self.draw.random() < rate

    def note(self, fault: Fault) -> None:
        """Count what happened."""
        self.happened[fault] += 1
        self.say(fault.name)

    def say(self, text: str) -> None:
        """Write down what happens, when and to whom."""
        process = here()
        who = "world" if process is None else process.name
        self.trace.append(f"{asyncio.get_running_loop().time():.6f} {who}: {text}")


_DELAYS = (0.0, 0.0, 0.001, 0.2, 1.0, 4.0)
"""Of the loop's time; the last is longer than a lease."""
_REFUSED = {
    "commit": Fault.COMMIT_REFUSED,
    "begin": Fault.BEGIN_FAILED,
    "claim": Fault.CLAIM_FAILED,
    "renew": Fault.RENEW_FAILED,
    "release": Fault.RELEASE_FAILED,
}
_UNHEARD = {**_REFUSED, "commit": Fault.COMMIT_UNHEARD}
_KEPT = {
    "effect.faltered": Fault.FALTERED,
    "effect.doubted": Fault.DOUBTED,
    "effect.repeated": Fault.REPEATED,
    "done.invoke": Fault.CHILD_DONE,
    "effect.interrupted": Fault.INTERRUPTED,
    "records.written": Fault.RECORD_WRITTEN,
    "error.effect.conflict": Fault.RECORD_RACED,
    "run.retried": Fault.RETRIED,
    "run.adopted": Fault.ADOPTED,
    "run.forked": Fault.FORKED,
    "sounded": Fault.OWN_PERFORMED,
}
_SLOW = {"commit": Fault.COMMIT_SLOW, "claim": Fault.CLAIM_SLOW, "renew": Fault.RENEW_SLOW}


class Cut(BaseException):
    """The process is dead; whatever it still calls is not there."""


class FaultyStore(StoreShim):
    """The store as one process sees it: far away, slow at times, and not always there."""

    def __init__(self, inner: Store, process: Process, fate: Fate, ledger: Ledger) -> None:
        super().__init__(inner)
        self._process, self._fate, self._ledger = process, fate, ledger

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if not self._process.alive:
            raise Cut
        self._fate.say(f"{name} {given.get('run', '')} {given.get('cause', '')}")
        if name in READS:
            return await self._read(name, call)
        await self._delay(name)
        self._fail(name, "refused", _REFUSED)
        try:
            result = await call()
        except Conflict:
            self._conflict(name, given)
            raise
        self._ledger.written(name, given, result)
        for entry in (*given.get("earlier", ()), given["entry"]) if "entry" in given else ():
            self._note_entry(entry)
        self._note_lease(name, given, result)
        if given.get("earlier"):
            self._fate.note(Fault.TOGETHER)
        await self._delay(name)
        self._fail(name, "unheard", _UNHEARD)
        self._ledger.acknowledged(name, given)
        return result

    async def _read(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Read something; what was read may be old when it arrives."""
        late = self._fate.strikes(f"slow {name}", SELDOM)
        pause = self._fate.draw.choice(_DELAYS) if late else 0.0
        if late:
            self._fate.note(Fault.READ_SLOW)
            await asyncio.sleep(pause)
        if self._fate.strikes(f"unreadable {name}", SELDOM):
            self._fate.note(Fault.READ_FAILED)
            raise EffectFailed(f"the store could not be read: {name} was lost on the way")
        found = await call()
        if late:
            await asyncio.sleep(pause)
        return found

    async def _delay(self, name: str) -> None:
        if self._fate.strikes(f"slow {name}"):
            if name in _SLOW:
                self._fate.note(_SLOW[name])
            await asyncio.sleep(self._fate.draw.choice(_DELAYS))

    def _fail(self, name: str, how: str, faults: dict[str, Fault]) -> None:
        if self._fate.strikes(f"{how} {name}"):
            if name in faults:
                self._fate.note(faults[name])
            raise EffectFailed(f"the store could not write: {name} was {how}")

    def _conflict(self, name: str, given: Given) -> None:
        self._fate.note(Fault.COMMIT_RACED)
        lease = given.get("lease")
        if name == "commit" and lease is not None and self._ledger.is_fenced(given["run"], lease):
            self._fate.note(Fault.FENCED)

    def _note_entry(self, entry: Entry) -> None:
        event = entry.event
        if event.name in _KEPT:
            self._fate.note(_KEPT[event.name])
        if "nothing was heard" in getattr(event, "reason", ""):
            self._fate.note(Fault.TIMED_OUT)
        if isinstance(event, Answered) and isinstance(event.value, Mapping):
            self._fate.note(Fault.FORM_FILLED)
        if event.name == Delivered.name and entry.ignored:
            self._fate.note(Fault.CHILD_CALLED_OFF)

    def _note_lease(self, name: str, given: Given, result: Any) -> None:
        if name == "claim" and result is None:
            self._fate.note(Fault.CLAIM_RACED)
        if name == "claim" and result is not None and given["seen"].owner not in ("", given["owner"]):
            self._fate.note(Fault.TAKEN_OVER)
        if name == "renew" and result is False:
            self._fate.note(Fault.RENEW_LOST)
        if name == "set_aside":
            self._fate.note(Fault.SET_ASIDE)
