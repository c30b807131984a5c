"""How the result of a run is shown: in the way of its kind."""

from __future__ import annotations

from moothall.app.kinds.kind import Presented, kind_of
from moothall.app.runs.context import family_of
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.kernel.machine import Machine


async def present(hall: Moothall, outcome: Outcome, machine: Machine | None = None) -> Presented:
    """The result of a run for programs and for people; `machine` is given where it is not found by itself."""
    found, _ = await family_of(hall.store, (await hall.store.load(outcome.run)).record, {}, machine)
    return await kind_of(found).present(hall.store, found, outcome)
