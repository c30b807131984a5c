"""Two runs side by side: how far they went together, where they part, and what each took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.report.detail import Looking
from moothall.app.report.figures import plain_costs, plain_state
from moothall.app.report.measures import measure, pieces
from moothall.app.report.projections.hierarchy import Entry
from moothall.app.report.steps import Step, step_of
from moothall.app.runs.view import Summary, summary
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId

SHOWN = 200
"""How many steps behind the place where two runs part are shown of each."""


class Side(Frozen):
    """One of two runs."""

    summary: Summary
    states: tuple[Mapping[str, Any], ...]
    costs: Mapping[str, Any]
    seconds: float
    steps: tuple[Step, ...]
    """Those behind what both have in common."""


class Compared(Frozen):
    """Two runs: so many steps are alike, and why the next one is not."""

    common: int
    why: str
    left: Side
    right: Side


async def compare(looking: Looking, left: RunId, right: RunId) -> Compared:
    """Hold two runs side by side."""
    common, why = await _parting(looking, left, right)
    return Compared(common, why, await _side(looking, left, common), await _side(looking, right, common))


async def _parting(looking: Looking, left: RunId, right: RunId) -> tuple[int, str]:
    """How many steps are alike, and what differs then."""
    first = [entry async for piece in pieces(looking.store, left) for entry in piece]
    second = [entry async for piece in pieces(looking.store, right) for entry in piece]
    for number, (one, other) in enumerate(zip(first, second, strict=False)):
        if difference := _difference(one, other):
            return number, difference
    if len(first) == len(second):
        return len(first), "both are alike"
    return min(len(first), len(second)), f"{left if len(first) > len(second) else right} has more steps"


def _difference(left: Entry, right: Entry) -> str:
    for what, found in (("the event", "event"), ("where it led", "to"), ("the transition", "taken")):
        one, other = left[found], right[found]
        if found == "event":
            one, other = _essence(one), _essence(other)
        if one != other:
            return f"{what} of step {left['seq']} differs"
    return ""


def _essence(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event without what differs each time: what it cost."""
    return {name: value for name, value in event.items() if name not in ("usage", "seconds")}


async def _side(looking: Looking, run: RunId, common: int) -> Side:
    measured = await measure(looking.store, run)
    entries = await looking.store.entries(run, common, SHOWN)
    return Side(
        await summary(looking.store, await looking.store.load(run)),
        tuple(plain_state(figures) for figures in measured.states()),
        plain_costs(measured.metrics.costs),
        measured.metrics.seconds(measured.until),
        tuple(step_of(run, entry) for entry in entries),
    )
