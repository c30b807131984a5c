"""People at doors: they answer, answer again, answer too late, cancel, retry and fork. A door goes on with the run as
the app does, and forgets it in the end."""

from __future__ import annotations

import asyncio
from typing import Any

from moothall.errors import Broken, DefinitionError, EffectFailed, Refused
from moothall.kernel.events import Named
from moothall.runtime.drive import drive
from moothall.runtime.fork import fork, origin_of
from moothall.runtime.hall import answer, cancel, let_go_unless_driven, questions, tell, visiting
from moothall.runtime.journal import Pending, Record, RunId
from moothall.runtime.ports import SET_ASIDE
from moothall.runtime.retry import Retry, retry
from tests.simulation.faults import Fault
from tests.simulation.machines import FOUND, REDIRECTED
from tests.simulation.world import Place, World

EXPECTED = (Refused, EffectFailed, Broken, DefinitionError)
"""What a person may be told: not now, try again, that the run was set aside, or that it has another definition."""


class People:
    """Everybody who talks to the runs of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked: list[tuple[RunId, str, Any]] = []
        self._told: list[tuple[RunId, str, int]] = []
        self.found_done: set[tuple[RunId, str]] = set()
        """Effects in doubt of which somebody said that they were done, true or not."""
        self._cancels = self._redirects = self._forks = 0

    async def answers(self, place: Place, run: RunId) -> None:
        """Somebody answers a question of a run, if there is one, and the door goes on with the run."""
        with visiting(place.hall, run):
            try:
                head = await self._world.open(place, run)
                open_ = [(run, one.key, self._answer_to(one)) for one in questions(head)]
                self._asked += open_
                if open_:
                    await self._answer(place, *self._world.draw.choice(open_))
            except EXPECTED as error:
                if "berths: expected a whole number" in str(error):
                    self._world.fate.note(Fault.FORM_REFUSED)
                self._world.fate.say(f"answers {run}: {error}")

    async def answers_twice(self, place: Place, run: RunId) -> None:
        """Somebody answers, and after a while the same or somebody else answers something again."""
        await self.answers(place, run)
        await asyncio.sleep(self._world.draw.choice((0.0, 1.0, 3.0)))
        await self.answers_again(place)

    def _answer_to(self, question: Pending) -> Any:
        """A word, or where the outcome of an effect is unknown, what somebody found out about it."""
        draw = self._world.draw
        if not question.doubt and getattr(question.effect, "schema", None) is not None:
            is_whole = self._world.fate.calm or draw.random() < 0.7
            return {"when": "noon", "berths": 3} if is_whole else {"when": "noon", "berths": "three"}
        if not question.doubt:
            return "well"
        return {"outcome": self._world.draw.choice(("done", "failed", "again")), "value": FOUND}

    async def answers_again(self, place: Place) -> None:
        """Somebody answers what was asked some time ago."""
        if not self._asked:
            return
        run, question, value = self._world.draw.choice(self._asked)
        with visiting(place.hall, run):
            try:
                await self._world.open(place, run)
                await self._answer(place, run, question, value)
            except Refused as refusal:
                self._world.fate.note(Fault.ANSWERED_LATE)
                self._world.fate.say(f"answers {run} late: {refusal}")
            except EXPECTED as error:
                self._world.fate.say(f"answers {run} again: {error}")

    async def _answer(self, place: Place, run: RunId, question: str, value: Any) -> None:
        hall = place.hall
        if isinstance(value, dict) and value.get("outcome") == "done":
            self.found_done.add((run, question))
        told = await answer(hall, run, value, question)
        self._told.append((run, question, told.seq))
        self._world.fate.note(Fault.ANSWERED_AGAIN if told.received == "duplicate" else Fault.ANSWERED)
        if hall.lease_of(run) is not None and run not in hall.crew.drives:
            await drive(hall, run)

    async def cancels(self, place: Place, run: RunId) -> None:
        """Somebody cancels a run, sometimes twice with the same command."""
        self._cancels += 1
        with visiting(place.hall, run):
            try:
                await self._world.open(place, run)
                await self._cancel(place, run, f"cancel-{self._cancels}")
                await let_go_unless_driven(place.hall, run)
            except EXPECTED as error:
                self._world.fate.say(f"cancels {run}: {error}")

    async def _cancel(self, place: Place, run: RunId, cause: str) -> None:
        told = await cancel(place.hall, run, "enough", cause)
        self._told.append((run, cause, told.seq))
        self._world.fate.note(Fault.CANCELLED)
        if self._world.draw.random() < 0.5:
            again = await cancel(place.hall, run, "enough", cause)
            self._told.append((run, cause, again.seq))
            self._world.fate.note(Fault.CANCELLED_AGAIN)

    async def redirects(self, place: Place, run: RunId) -> None:
        """Somebody wants something else, and says so as long as nobody has heard it."""
        self._redirects += 1
        cause = f"redirect-{self._redirects}"
        with visiting(place.hall, run):
            try:
                await self._world.open(place, run)
                told = await tell(place.hall, run, Named(REDIRECTED), cause)
                self._told.append((run, cause, told.seq))
                self._world.fate.note(Fault.REDIRECTED)
                await let_go_unless_driven(place.hall, run)
            except EXPECTED as error:
                self._world.fate.say(f"redirects {run}: {error}")

    async def retries(self, place: Place, run: RunId) -> None:
        """Somebody retries a run, with more of everything or with what it has, and goes on with it or not."""
        world, hall = self._world, place.hall
        with visiting(hall, run):
            try:
                record = (await hall.store.load(run)).record
                more = {resource: limit * 2 for resource, limit in record.limits.items()}
                limits = more if more and world.draw.random() < 0.7 else None
                hall.bind(run, world.bindings(place))
                await retry(hall, run, world.known[record.machine], Retry("somebody", limits))
                if hall.lease_of(run) is not None and run not in hall.crew.drives and world.draw.random() < 0.7:
                    await drive(hall, run)
                await let_go_unless_driven(hall, run)
            except Refused as refusal:
                world.fate.note(Fault.RETRY_REFUSED)
                world.fate.say(f"retries {run}: {refusal}")
            except EXPECTED as error:
                world.fate.say(f"retries {run}: {error}")

    async def forks(self, place: Place, run: RunId) -> None:
        """Somebody forks a run at some entry, and goes on with the fork or leaves that to others."""
        world, hall = self._world, place.hall
        self._forks += 1
        own, began = f"fork-{self._forks}", place.clock.now()
        with visiting(hall, run), visiting(hall, own):
            try:
                stored = await hall.store.load(run)
                if stored.record.parent:
                    return
                machine = world.known[stored.record.machine]
                for known in (run, own):
                    hall.bind(known, world.bindings(place))
                origin = await origin_of(hall, run, world.draw.randint(0, stored.seq), machine)
                limits = origin.head.limits if origin.head.limits is not None else stored.record.limits
                record = Record(own, machine.name, machine.digest, began, limits=limits, origin=run)
                await fork(hall, origin, record, repeats=world.draw.random() < 0.5)
                if world.draw.random() < 0.7:
                    await drive(hall, own)
                await let_go_unless_driven(hall, own)
            except EXPECTED as error:
                world.fate.say(f"forks {run}: {error}")

    async def check(self) -> None:
        """What a person was told is what the journal says; who lets an effect be repeated is told of that."""
        for run, cause, seq in self._told:
            entries = await self._world.truth.entries(run)
            found = entries[seq]["cause"] if seq < len(entries) else "not there"
            if found != cause and not found.startswith(f"{cause}-repeated-"):
                self._world.wrongs.append(f"{run}: somebody was told that {cause} is entry {seq}, and it is {found}")

    async def help(self, place: Place, run: RunId) -> None:
        """Somebody with patience does what a run waits for: answers its question, takes it back or ends it."""
        stored = await self._world.truth.load(run)
        chance = self._world.draw.random()
        if not stored.status.startswith(SET_ASIDE):
            await self.answers(place, run)
        elif chance < 0.4:
            await self.cancels(place, run)
        elif chance < 0.7:
            await self.retries(place, run)
        else:
            await place.hall.store.take_back(run)
            self._world.fate.note(Fault.TAKEN_BACK)
