"""When a run pauses for people: nothing is under way in it or its children but questions, and the time that they have.

Who drives a run waits for its timers too. A command does not: it asks the person who sits there, or says what is asked
and ends. While nobody drives the run, the time at the prompt is not counted, and a late answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from moothall.app.runs.begin import questions_below
from moothall.app.runs.outcome import Outcome, outcome_of
from moothall.kernel.effects import AskPerson
from moothall.runtime.hall import Hall
from moothall.runtime.journal import FAMILY, TIMERS, Head

LOOK = 0.05
"""Seconds between two looks at the runs that are driven."""


async def wait_until_asked(hall: Hall, work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """How a run stands when its work is done, or when only people and time can move it on; nobody drives it then."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK)
            if not task.done() and (asking := await _asking_outcome(hall)) is not None:
                return asking
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _asking_outcome(hall: Hall) -> Outcome | None:
    """How the driven run at the top of its family stands, if the whole family waits for an answer; else None."""
    driven = {run: hall.runs[run] for run in hall.crew.drives}
    now = hall.clock.now()
    if not driven or not all(_is_idle(known.head, now) for known in driven.values()):
        return None
    run, top = next((run, known) for run, known in driven.items() if known.record.parent not in driven)
    outcome = outcome_of(top.machine, run, top.head, await questions_below(hall, run, top.head))
    return outcome if outcome.questions else None


def _is_idle(head: Head, now: float) -> bool:
    """Whether a run itself has nothing to do but to wait for people, for children or for a time that has not come."""
    for pending in head.pending:
        if pending.due is not None and pending.due <= now:
            return False
        kind = pending.effect.kind
        is_waiting = kind in TIMERS or kind == AskPerson.kind or (kind in FAMILY and pending.began) or pending.doubt
        if not is_waiting or pending.denied:
            return False
    return True
