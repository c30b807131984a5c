"""Whoever breaks a rule of the runtime is caught: each mistake here is made on purpose, and some world notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moothall.kernel.events import Event, Retried
from moothall.runtime import decide as deciding
from moothall.runtime import drive as worker
from moothall.runtime import hall as halls
from moothall.runtime import retry as retrying
from moothall.runtime.decide import Decision
from moothall.runtime.drive import Drive
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Entry, Head, Pending, RunId
from moothall.runtime.ports import Context, Lease
from moothall.stores.memory import MemoryStore
from tests.runtime.world import decided
from tests.simulation.story import world_of

SEEDS = 200
Patch = pytest.MonkeyPatch
_commit, _perform = MemoryStore.commit, Drive.perform


def fences_nobody(patch: Patch) -> None:
    """A store that does not look at the token."""

    async def commit(self: Any, run: RunId, head: Head, entry: Entry, *held: Any) -> None:
        kept, (lease, *rest) = self._runs.get(run), held
        seen = lease if lease is None or kept is None else replace(lease, token=kept.lease.token)
        await _commit(self, run, head, entry, seen, *rest)

    patch.setattr(MemoryStore, "commit", commit)


def forgets(patch: Patch) -> None:
    """A store that says yes and forgets a commit now and then; at a fixed beat, a run could go in circles with it."""
    draw = Random(9)

    async def commit(self: Any, run: RunId, head: Head, entry: Entry, *held: Any) -> None:
        if draw.random() < 8 / 9:
            await _commit(self, run, head, entry, *held)

    patch.setattr(MemoryStore, "commit", commit)


def finds_nothing(patch: Patch) -> None:
    """A store that knows no cause."""

    async def find(self: Any, run: RunId, cause: str) -> None:
        return None

    patch.setattr(MemoryStore, "find", find)


def forgets_that_it_is_held(patch: Patch) -> None:
    """A store that loses its lease with every release, and with it what the next token would be."""

    async def release(self: Any, run: RunId, lease: Lease) -> None:
        self._runs[run].lease = Lease("", 1, 0.0)

    patch.setattr(MemoryStore, "release", release)


def changes_its_key(patch: Patch) -> None:
    """A worker that tries again with another key."""

    def context(run: RunId, key: str, nth: int, attempt: int, *given: Any) -> Context:
        return Context(run, key if attempt == 1 else f"{key}-{attempt}", nth, attempt, *given)

    patch.setattr(worker, "make_context", context)


def performs_what_is_denied(patch: Patch) -> None:
    """A worker that does not heed the budget."""

    async def perform(drive: Drive, pending: Pending) -> Event:
        return await _perform(drive, replace(pending, denied=""))

    patch.setattr(Drive, "perform", perform)
    patch.setattr(worker, "used_up", lambda *given: "")


def takes_nothing_over(patch: Patch) -> None:
    """A worker that leaves the runs of the dead alone."""
    free: Callable[[Hall, Lease], bool] = lambda hall, lease: lease.owner in ("", hall.owner)  # noqa: E731

    async def forsaken(hall: Hall, run: RunId, lease: Lease) -> bool:
        return free(hall, lease)

    patch.setattr(halls, "is_free", free)
    patch.setattr(worker, "is_forsaken", forsaken)


def keeps_no_account(patch: Patch) -> None:
    """A hall that keeps a head in which nothing was spent."""

    def decide(*given: Any) -> Decision:
        decision = decided(deciding.decide(*given))
        return replace(decision, head=replace(decision.head, spent={}))

    patch.setattr(halls, "decide", decide)


def forgets_what_a_retry_has_cost(patch: Patch) -> None:
    """A retry that begins with a full purse."""
    patch.setattr(retrying, "Retried", lambda *given, **named: replace(Retried(*given, **named), spent={}))


def pays_again(patch: Patch) -> None:
    """A retry that charges what it decides again as if it had come for the first time."""
    patch.setattr(halls, "without_bill", lambda run, head, event, cause: event)


MISTAKES: dict[Callable[[Patch], None], str] = {
    fences_nobody: "after it had lost the run",
    forgets: "was acknowledged and is lost",
    finds_nothing: "a cause was taken twice",
    forgets_that_it_is_held: "after it had lost the run",
    changes_its_key: "performed before the step that wants it was written",
    performs_what_is_denied: "is performed though there is no",
    takes_nothing_over: "nobody comes to drive it",
    keeps_no_account: "by the journal",
    forgets_what_a_retry_has_cost: "was spent, and it was",
    pays_again: "is paid for again",
}


@pytest.mark.unreplayed("the runtime makes a mistake while this test runs")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.__name__)
def test_some_world_notices_it_when_the_runtime(
    mistake: Callable[[Patch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    noticed = (wrong for seed in range(1, SEEDS) for wrong in world_of(seed, tmp_path).wrongs)
    assert any(MISTAKES[mistake] in wrong for wrong in noticed)
