"""Retrying a run that ended badly: what it needs around it, and how it stands then."""

from __future__ import annotations

import getpass

from moothall.app.kinds.bindings import bind, known_agents
from moothall.app.runs.context import RunContext, family_of
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.resume import drive_with_parents
from moothall.kernel.machine import Budget, Machine
from moothall.runtime import hall as halls
from moothall.runtime import retry as retrying
from moothall.runtime.journal import RunId
from moothall.runtime.retry import Retry


async def retry(
    context: RunContext, run: RunId, machine: Machine | None = None, budget: Budget | None = None
) -> Outcome:
    """Go on with a run that ended badly, once it is mended; what was answered is not asked again."""
    hall = context.hall
    record = (await hall.store.load(run)).record
    own, provided = await family_of(hall.store, record, context.agents, machine)
    if not record.parent:
        known_agents(own, context.agents)
    with halls.visiting(hall, run):
        hall.casts[run] = bind(own, provided)
        limits = None if budget is None else budget.limits()
        head = await retrying.retry(hall, run, own, Retry(context.person or _user(), limits))
        context.broadcast.tell(f"run {run} goes on after entry {head.seq}")
        return await drive_with_parents(context, run, machine)


def _user() -> str:
    """Who is logged in here; nobody where the system does not say."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
