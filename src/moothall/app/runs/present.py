"""How the result of a run is shown: in the way of its kind."""

from __future__ import annotations

from moothall.app.kinds.kind import Presented, kind_of
from moothall.app.runs.context import family_of
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome


async def present(hall: Moothall, outcome: Outcome) -> Presented:
    """The result of a run for programs and for people."""
    machine, _ = await family_of(hall.store, (await hall.store.load(outcome.run)).record, {})
    return await kind_of(machine).present(hall.store, machine, outcome)
