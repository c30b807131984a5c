"""Going on with a run: from where its journal ends, with an answer, with an event from outside, or to its end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.agents.ask import Replied, Returned, Unusable
from moothall.app.runs.begin import driven, note, questions_below
from moothall.app.runs.context import RunContext, exists, reopen, reopen_to_drive, require_models_of
from moothall.app.runs.outcome import Outcome, Question, outcome_of
from moothall.errors import Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.events import (
    Answered,
    Cancelled,
    ChildDone,
    Delivered,
    Done,
    Event,
    ExecutionFailed,
    Exhausted,
    Expired,
    GaveUp,
    Named,
    Note,
    RecordsRead,
    RecordsWritten,
    Started,
)
from moothall.kernel.machine import Machine
from moothall.runtime import hall as halls
from moothall.runtime.drive import drive
from moothall.runtime.journal import FAMILY, Head, RunId
from moothall.runtime.ports import SET_ASIDE

LIVE = ("waiting", "running", "stuck")
ENDS = (Answered, Expired, Replied, Returned, Unusable, GaveUp, ChildDone, Delivered, RecordsRead, RecordsWritten)
OWN = (Started, Done, ExecutionFailed, Exhausted, Cancelled, Note)
"""What only the end of something wanted makes, and what only the run itself does: nobody can tell these."""


async def resume(context: RunContext, run: RunId, machine: Machine | None = None) -> Outcome:
    """Go on with a run where its journal ends."""
    hall = context.hall
    stored = await hall.store.load(run)
    if stored.status.startswith(SET_ASIDE):
        await halls.require_anchored(hall.store, stored)
        context.broadcast.notice(f"run {run} was set aside; it is tried once more")
        await hall.store.take_back(run)
    with halls.visiting(hall, run):
        await reopen_to_drive(context, run, machine)
        head = hall.runs[run].head
        if head.snapshot.status != "live":
            context.broadcast.tell(f"run {run} is over")
        elif hall.lease_of(run) is not None:
            context.broadcast.tell(f"run {run} goes on after entry {head.seq}")
        return await drive_with_parents(context, run, machine, at_once=True)


async def drive_with_parents(
    context: RunContext, run: RunId, machine: Machine | None = None, *, at_once: bool = False
) -> Outcome:
    """Drive a run as far as it goes, and where that ends it, the run that started it, and so on."""
    hall = context.hall
    outcome = note(context, hall.runs[run].machine, await driven(hall, run, at_once=at_once))
    parent = hall.runs[run].record.parent
    if not parent or outcome.status in LIVE or not await exists(hall.store, parent):
        return outcome
    with halls.visiting(hall, parent):
        await reopen(context, parent, machine)
        return await drive_with_parents(context, parent, machine) if hall.lease_of(parent) is not None else outcome


async def answer(
    context: RunContext, run: RunId, value: Any, *, question: str | None = None, machine: Machine | None = None
) -> Outcome:
    """Answer a question of a run, or of its child where the run itself has none, and go on.

    `machine` is that of the run at the top of the family, where it stands in no module.
    """
    hall = context.hall
    with halls.visiting(hall, run):
        opened_machine = await reopen(context, run, machine)
        if (child := await _asking_child(context, run, question)) is not None:
            return await answer(context, child.run, value, question=child.id, machine=machine)
        if hall.lease_of(run) is not None:
            require_models_of(context, run, opened_machine)
        advanced = await halls.answer(hall, run, value, question, context.person)
        if advanced.received == "duplicate":
            context.broadcast.notice("this question was answered before; the first answer stands")
        return await _go_on(context, run, opened_machine, machine)


async def draft(
    context: RunContext, run: RunId, fields: Mapping[str, Any], question: str, machine: Machine | None = None
) -> Outcome:
    """Keep what a person filled in of a form that is left for later; how the run stands then."""
    hall = context.hall
    with halls.visiting(hall, run):
        opened_machine = await reopen(context, run, machine)
        await halls.draft(hall, run, fields, question, context.person)
        await halls.let_go_unless_driven(hall, run)
        return outcome_of(opened_machine, run, hall.runs[run].head)


async def send(
    context: RunContext, run: RunId, said: tuple[Event | str, Any], *, key: str = "", machine: Machine | None = None
) -> Outcome:
    """Tell a run something from outside, if it accepts it now, and go on; the same key twice is told once.

    What is said is an event, or the name of one with its fields.
    """
    hall = context.hall
    with halls.visiting(hall, run):
        opened_machine = await reopen(context, run, machine)
        event = signed(event_of(opened_machine, *said), context.person)
        await halls.tell(hall, run, event, key or f"sent-{secrets.token_hex(4)}")
        return await _go_on(context, run, opened_machine, machine)


def event_of(machine: Machine, event: Event | str, data: Any = None) -> Event:
    """An event of a machine's vocabulary, by its name; a text fills its first field."""
    if isinstance(event, Event):
        return event
    kind = machine.vocabulary.get(event)
    if kind is None:
        return Named(event, encode(data))
    fields = [name for name in kind.__dataclass_fields__ if name != "name"]
    if data is not None and not isinstance(data, Mapping):
        if not fields:
            raise Refused(f"{event} carries nothing; leave the text out")
        data = {fields[0]: data}
    return decode(kind, {**(data or {})}, event)


def signed(event: Event, person: str) -> Event:
    """An event as somebody may tell it, with the name of who does where it has a place for one."""
    if isinstance(event, Answered):
        raise Refused("an answer is not told as an event; `moot answer` gives it, and the run knows who gave it")
    if isinstance(event, ENDS + OWN):
        raise Refused(f"{event.name} is what the run hears when something ends; it cannot be told from outside")
    places = (name for name, field in event.__dataclass_fields__.items() if field.metadata.get("signed"))
    return replace(event, **dict.fromkeys(places, person))


async def _go_on(context: RunContext, run: RunId, opened_machine: Machine, machine: Machine | None) -> Outcome:
    """Drive a run that was told something, unless somebody else drives it."""
    hall = context.hall
    if hall.lease_of(run) is None or run in hall.crew.drives:
        context.broadcast.notice("a worker drives this run; it goes on there")
        return outcome_of(opened_machine, run, hall.runs[run].head)
    return await drive_with_parents(context, run, machine)


async def _asking_child(context: RunContext, run: RunId, question: str | None) -> Question | None:
    """The only question of a run's children, where the run itself has none and none is named."""
    head = context.hall.runs[run].head
    if question is not None or halls.questions(head):
        return None
    asked = await questions_below(context.hall, run, head)
    return asked[0] if len(asked) == 1 else None


async def cancel(context: RunContext, run: RunId, reason: str, machine: Machine | None = None) -> Outcome:
    """Ask a run to stop, wherever it is driven; one that is over, or gets there first, is left as it is."""

    def still_lives(head: Head) -> None:
        if head.snapshot.status != "live":
            raise Refused(f"run {run} is {head.snapshot.status} already")

    hall = context.hall
    with halls.visiting(hall, run):
        machine = await reopen(context, run, machine)
        await halls.cancel(hall, run, reason, f"cancel-{secrets.token_hex(4)}", still_lives)
        pending = hall.runs[run].head.pending
        if run not in hall.crew.drives and any(wanted.effect.kind in FAMILY for wanted in pending):
            await drive(hall, run)
        await halls.let_go_unless_driven(hall, run)
        return outcome_of(machine, run, hall.runs[run].head)
