"""Retrying a run that ended badly: what it needs around it, and how it stands then."""

from __future__ import annotations

from collections.abc import Sequence

from moothall.app.kinds.bindings import bind, known_agents, require_models
from moothall.app.runs.context import RunContext, family_of, login_name
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.resume import drive_with_parents
from moothall.app.runs.view import end_status
from moothall.errors import Refused
from moothall.kernel.machine import Budget, Machine
from moothall.runtime import hall as halls
from moothall.runtime import retry as retrying
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Stored
from moothall.runtime.retry import Retry


async def retry(
    context: RunContext, run: RunId, machine: Machine | None = None, budget: Budget | None = None
) -> Outcome:
    """Go on with a run that ended badly, once it is mended; what was answered is not asked again."""
    hall = context.hall
    stored = await hall.store.load(run)
    record = stored.record
    _require_no_bad_end(stored)
    own, provided = await family_of(hall.store, record, context.agents, machine)
    if not record.parent:
        known_agents(own, context.agents)
    require_models(own, None, provided)
    with halls.visiting(hall, run):
        hall.bind(run, bind(own, provided))
        limits = None if budget is None else budget.limits()
        head = await retrying.retry(hall, run, own, Retry(context.person or login_name(), limits))
        context.broadcast.tell(f"run {run} goes on after entry {head.seq}")
        return await drive_with_parents(context, run, machine)


def _require_no_bad_end(stored: Stored) -> None:
    """Refuse a run that ended where its machine wanted it to, although that is not a good end: nothing was broken."""
    states: Sequence[str] = stored.head["snapshot"]["active"] if stored.head else ()
    if stored.status == "done" and end_status(stored) != "done":
        run = stored.record.run
        raise Refused(
            f"run {run} took the way to {states[0]}, which its machine calls a bad end: nothing is left to retry; "
            f"go another way from an earlier entry:  moot fork {run} --at ENTRY"
        )
