"""Runs that somebody looks for: by words, by how they stand, by machine, by project, by who is waited for."""

from __future__ import annotations

from moothall.app.report.detail import project_of
from moothall.app.runs.view import Summary, summary
from moothall.kernel.frozen import Frozen
from moothall.runtime.ports import Store, Stored


class Wish(Frozen):
    """Which runs are wanted; what is empty does not matter."""

    search: str = ""
    status: str = ""
    machine: str = ""
    project: str = ""
    waiting_for: str | None = None
    children: bool = False
    """Whether runs are wanted that others have started."""


class Found(Frozen):
    """A run that fits, and the project that it belongs to."""

    summary: Summary
    project: str
    parent: str
    at: float


class Listing(Frozen):
    """Some of the runs that fit, how many there are, and what they could be chosen by."""

    runs: tuple[Found, ...]
    total: int
    machines: tuple[str, ...]
    projects: tuple[str, ...]
    statuses: tuple[str, ...]


async def listing(store: Store, wish: Wish, start: int = 0, limit: int = 100) -> Listing:
    """The runs that fit, the newest first."""
    stored = [run for run in await store.runs() if wish.children or not run.record.parent]
    found = [
        Found(await summary(store, run), project_of(run.record), run.record.parent, run.record.began) for run in stored
    ]
    fitting = [run for run, kept in zip(found, stored, strict=True) if _fits(wish, run, kept)]
    return Listing(
        tuple(fitting[start : start + limit]),
        len(fitting),
        tuple(sorted({run.summary.machine for run in found})),
        tuple(sorted({run.project for run in found} - {""})),
        tuple(sorted({run.summary.status for run in found})),
    )


def _fits(wish: Wish, found: Found, stored: Stored) -> bool:
    summary, words = found.summary, wish.search.casefold().split()
    if wish.status and summary.status != wish.status:
        return False
    if wish.machine and summary.machine != wish.machine:
        return False
    if wish.project and found.project != wish.project:
        return False
    if wish.waiting_for is not None and not any(
        question["who"] in ("", wish.waiting_for) for question in summary.questions
    ):
        return False
    text = " ".join((summary.run, summary.machine, summary.reason, *summary.states, found.project)).casefold()
    return all(word in text for word in words)
