"""Whoever breaks a promise is caught by the crash matrix: each mistake here is made on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import Broken
from moothall.runtime import drive as worker
from moothall.runtime.journal import Entry, Head, Pending, RunId
from moothall.runtime.ports import Context
from moothall.stores.sqlite import SqliteStore
from tests.crashes.mortal import Scenario
from tests.crashes.scenarios import SCENARIOS
from tests.crashes.test_crash_matrix import Matrix, difference
from tests.simulation.loop import here

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
Patch = pytest.MonkeyPatch


def acknowledges_what_it_does_not_write(patch: Patch) -> None:
    """A store that says yes to the last commit of a run and never writes it."""
    kept = SqliteStore.commit

    async def commit(self: Any, run: RunId, head: Head, entry: Entry, *held: Any) -> None:
        if head.snapshot.status == "live":
            await kept(self, run, head, entry, *held)

    patch.setattr(SqliteStore, "commit", commit)


def gives_an_effect_another_key_after_a_crash(patch: Patch) -> None:
    """A worker whose keys are its own."""

    def context(run: RunId, key: str, *given: Any) -> Context:
        process = here()
        assert process is not None
        return Context(run, f"{key}.{process.name}", *given)

    patch.setattr(worker, "make_context", context)


def begins_without_a_mark(patch: Patch) -> None:
    """A worker that begins what may be done once like anything else."""
    patch.setattr(worker, "MARKED", frozenset())


def has_no_doubts(patch: Patch) -> None:
    """A worker that takes every mark for its own."""
    prepared = worker.Drive._preparation

    async def preparation(drive: worker.Drive, pending: Pending) -> Any:
        return None if pending.began else await prepared(drive, pending)

    patch.setattr(worker.Drive, "_preparation", preparation)


def never_says_that_it_is_again(patch: Patch) -> None:
    """A worker that does not tell a tool that it may have been called before."""

    def context(run: RunId, key: str, nth: int, attempt: int, again: bool, *given: Any) -> Context:
        return Context(run, key, nth, attempt, False, *given)

    patch.setattr(worker, "make_context", context)


MISTAKES: dict[Callable[[Patch], None], tuple[str, str]] = {
    acknowledges_what_it_does_not_write: ("agents", "its journal ends at entry 3, and entry 4 was committed here"),
    gives_an_effect_another_key_after_a_crash: ("agents", "what was done outside"),
    begins_without_a_mark: ("tool, at-most-once", "done twice"),
    has_no_doubts: ("tool, at-most-once", "done twice"),
    never_says_that_it_is_again: ("tool, check-first", "done twice"),
}


def tried(matrix: Matrix, scenario: Scenario) -> None:
    """The first dimension of the matrix, for one scenario."""
    clean = matrix.lives(scenario, False)
    for point in range(1, len(clean.passed[0]) + 1):
        assert not (found := difference(matrix.lives(scenario, False, point), clean)), found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.__name__)
def test_the_matrix_notices_a_runtime_that(
    mistake: Callable[[Patch], None], tmp_path: Path, monkeypatch: Patch
) -> None:
    scenario, said = MISTAKES[mistake]
    mistake(monkeypatch)
    with pytest.raises((AssertionError, Broken), match=said):
        tried(Matrix(tmp_path), BY_NAME[scenario])
