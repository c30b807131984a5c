"""A run that crashes at each of its commits, and goes on.

A first life passes all commits. Then the run is lived anew for every commit: once it dies just before it, once just
after. Whatever it still calls of its store is not there any more. A second life goes on from what was committed, and at
the end nobody may be able to tell: the same path, the same data, the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from moothall.app.config.settings import Settings
from moothall.app.runs.moothall import Moothall, wait_for
from moothall.app.runs.outcome import Outcome
from moothall.kernel.codec import schema
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.hall import Resolution
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from moothall.testing.clock import TestClock
from moothall.testing.fakes import Fake, fakes_of
from moothall.testing.paths import path_of

RUN = "trial"
MOST = 500
"""So many commits a run may have here."""


class Crashed(BaseException):
    """The process is dead."""


class MortalStore:
    """A store whose process dies just before or just after its n-th commit."""

    def __init__(self, inner: Store, deadly: int, *, before: bool) -> None:
        self._inner, self._deadly, self._before = inner, deadly, before
        self.commits = 0
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._guarded(name, found) if callable(found) else found

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        if name == "close":
            return call

        async def guarded(*given: Any, **named: Any) -> Any:
            self._require_alive()
            is_commit = name in ("begin", "commit")
            self.commits += is_commit
            is_deadly = is_commit and self.commits == self._deadly
            self.is_dead |= is_deadly and self._before
            self._require_alive()
            result = await call(*given, **named)
            self.is_dead |= is_deadly
            self._require_alive()
            return result

        return guarded

    def _require_alive(self) -> None:
        if self.is_dead:
            raise Crashed


class Lived(Frozen):
    """What a run left when it was over."""

    status: str
    path: tuple[str, ...]
    data: Any
    result: Any


def crash_everywhere(
    machine: Machine[Any, Any],
    data: Any = None,
    *,
    agents: Mapping[str, Any] | None = None,
    answers: Sequence[Any] = (),
    doubts: Any = "again",
    model: str = "",
) -> int:
    """Fail the test if a crash changes what becomes of a run; how many crashes were survived.

    `agents` as for a `Trial`; a script goes on where the journal ends. `answers` are given to the run's questions, in
    order. Where a call must not be repeated and a crash left its outcome unknown, `doubts` is what a person finds out:
    "again", or {"outcome": "done", "value": …}.
    """
    script = _Script(machine, data, fakes_of(agents), tuple(answers), doubts, model)
    store = MortalStore(MemoryStore(strict=True), 0, before=False)
    clean = script.live(store, TestClock())
    for commit, before in _points(store.commits):
        lived = script.live_twice(commit, before=before)
        if lived != clean:
            when = "before" if before else "after"
            raise AssertionError(f"a crash {when} commit {commit} changes the run: {_difference(clean, lived)}")
    return 2 * store.commits


def _points(commits: int) -> Iterator[tuple[int, bool]]:
    if commits > MOST:
        raise AssertionError(f"the run has {commits} commits, and {MOST} are the most that are tried; shorten it")
    for commit in range(1, commits + 1):
        yield commit, True
        yield commit, False


def _difference(clean: Lived, lived: Lived) -> str:
    names = [name for name in clean.__dict__ if getattr(clean, name) != getattr(lived, name)]
    return "; ".join(f"its {name} is {getattr(lived, name)!r}, and was {getattr(clean, name)!r}" for name in names)


class _Script(Frozen):
    """What a run is begun with, and what it is told."""

    machine: Machine[Any, Any]
    data: Any
    agents: Mapping[str, Any]
    answers: tuple[Any, ...]
    doubts: Any
    model: str

    def live_twice(self, commit: int, *, before: bool) -> Lived:
        """A life that dies at a commit, and one that goes on."""
        kept, clock = MemoryStore(strict=True), TestClock()
        mortal = MortalStore(kept, commit, before=before)
        with suppress(Crashed):
            self.live(mortal, clock)
        if not mortal.is_dead:
            raise AssertionError(f"the run came to no commit {commit} when it was repeated; is a fake left to chance?")
        wait_for(_let_go(kept))
        return self.live(kept, clock)

    def live(self, store: Any, clock: TestClock) -> Lived:
        """Begin the run or go on with it, until it is over or nobody has an answer."""

        async def program() -> Lived:
            async with Moothall(store, settings=Settings(), clock=clock, listeners=()) as hall:
                outcome = await self._begin(hall)
                while outcome.status == "waiting" and (answer := await self._answer_to(hall, outcome)):
                    agents = await self._fresh(hall)
                    outcome = await hall.answer(RUN, answer[0], machine=self.machine, agents=agents)
                return Lived(outcome.status, path_of(await hall.store.entries(RUN)), outcome.data, outcome.result)

        return wait_for(program())

    async def _begin(self, hall: Moothall) -> Outcome[Any]:
        agents = await self._fresh(hall)
        if any(stored.record.run == RUN for stored in await hall.store.runs()):
            return await hall.resume(RUN, self.machine, agents=agents)
        return await hall.run(self.machine, self.data, agents=agents, model=self.model, run_id=RUN)

    async def _answer_to(self, hall: Moothall, outcome: Outcome[Any]) -> tuple[Any] | None:
        """The answer to the run's first question; None where there is none."""
        if outcome.questions[0].schema == schema(Resolution):
            return ({"outcome": self.doubts} if isinstance(self.doubts, str) else self.doubts,)
        entries = await hall.store.entries(outcome.run)
        given = sum(entry["event"]["name"] == "answered" for entry in entries)
        return (self.answers[given],) if given < len(self.answers) else None

    async def _fresh(self, hall: Moothall) -> dict[str, Any]:
        """The fakes of another life: each goes on behind what the journals have of it."""
        heard: Counter[str] = Counter()
        for stored in await hall.store.runs():
            entries = await hall.store.entries(stored.record.run)
            heard.update(_agents_asked(entries))
        return {
            name: given.fresh(heard[name]) if isinstance(given, Fake) else given for name, given in self.agents.items()
        }


async def _let_go(store: Store) -> None:
    """Free the runs of a store of their holder, whose process is gone."""
    for stored in await store.runs():
        await store.release(stored.record.run, stored.lease)


def _agents_asked(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Who was asked, once for every attempt whose end is in the journal."""
    who = {
        wanted["key"]: wanted["effect"].get("agent") or wanted["effect"].get("tool")
        for entry in entries
        for wanted in entry.get("effects", ())
    }
    for entry in entries:
        key = next((key for key in who if entry["cause"] == key or entry["cause"].startswith(f"{key}-")), None)
        has_ended = not entry["event"]["name"].startswith("effect.") or entry["event"]["name"] == "effect.faltered"
        if key is not None and who[key] and has_ended:
            yield who[key]
