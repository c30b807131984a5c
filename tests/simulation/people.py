"""People at doors: they answer, answer again, answer too late, and cancel. A door goes on with the run as the app does,
and forgets it in the end."""

from __future__ import annotations

import asyncio
from typing import Any

from moothall.errors import Broken, EffectFailed, Refused
from moothall.kernel.events import Named
from moothall.runtime.drive import drive
from moothall.runtime.hall import answer, cancel, let_go_unless_driven, questions, tell, visiting
from moothall.runtime.journal import Pending, RunId
from moothall.runtime.ports import SET_ASIDE
from tests.simulation.faults import Fault
from tests.simulation.machines import REDIRECTED
from tests.simulation.world import Place, World

EXPECTED = (Refused, EffectFailed, Broken)
"""What a person may be told: not now, try again, or that the run was set aside."""


class People:
    """Everybody who talks to the runs of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked: list[tuple[RunId, str, Any]] = []
        self._told: list[tuple[RunId, str, int]] = []
        self._cancels = self._redirects = 0

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
                self._world.fate.say(f"answers {run}: {error}")

    async def answers_twice(self, place: Place, run: RunId) -> None:
        """Somebody answers, and after a while the same or somebody else answers something again."""
        await self.answers(place, run)
        await asyncio.sleep(self._world.draw.choice((0.0, 1.0, 3.0)))
        await self.answers_again(place)

    def _answer_to(self, question: Pending) -> Any:
        """A word, or where the outcome of an effect is unknown, what somebody found out about it."""
        if not question.doubt:
            return "well"
        return {"outcome": self._world.draw.choice(("done", "failed", "again")), "value": "found"}

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
        told = await answer(hall, run, value, question)
        self._told.append((run, question, told.seq))
        self._world.fate.note(Fault.ANSWERED_AGAIN if told.received == "duplicate" else Fault.ANSWERED)
        if run in hall.leases and run not in hall.crew.drives:
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
        if not stored.status.startswith(SET_ASIDE):
            await self.answers(place, run)
        elif self._world.draw.random() < 0.5:
            await self.cancels(place, run)
        else:
            await place.hall.store.take_back(run)
            self._world.fate.note(Fault.TAKEN_BACK)
