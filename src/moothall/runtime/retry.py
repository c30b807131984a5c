"""Retrying a run that ended badly, once its code or its budget is mended.

What ended the run is taken back, with a note that says who did so, and decided again from what is in the journal: a
reply that was paid for is not asked for again. All of that is one transaction. The rules:

- The entry that ended the run is decided again under the definition of today, and so is what came in behind it.
- Where the world failed and the definition still has no row for that, the effect is tried again. What may be done at
  most once is not: a person is asked what became of it.
- Where a child failed, it is retried itself, and its parent waits for it.
- Where the budget was exhausted, a larger one is needed. The time in which the run was over does not count.
- A retry that would end in the same way is refused, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.errors import DefinitionError, Elsewhere, Refused
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Event, Exhausted, GaveUp, Note, Retried
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.adopt import refusal
from moothall.runtime.children import child_id
from moothall.runtime.decide import Decision, Incoming, go_back, in_flight, in_force
from moothall.runtime.hall import (
    Hall,
    OpenRun,
    counts_again,
    decide_again,
    is_free,
    keep_all,
    reopen,
    require_anchored,
    visiting,
    with_origin,
)
from moothall.runtime.journal import CancelChild, Head, Pending, Reader, Run, RunId
from moothall.runtime.ports import SET_ASIDE, Stored
from moothall.runtime.rebuild import Difference, Entries, compared, taken_back

BAD_ENDS = frozenset(("failed", "limited"))


class Retry(Frozen):
    """What the caller decides about a retry: who wants it, and what the run may spend from now on."""

    by: str = ""
    limits: Mapping[str, float] | None = None


class _Ended(Frozen):
    """How a run ended: the entry, where it stood before, and what came in from there on."""

    entry: int
    before: Head
    ends: tuple[tuple[Event, str], ...]
    reason: str


async def retry(hall: Hall, run: RunId, machine: Machine, chosen: Retry) -> Head:
    """Take back how a run ended, and decide again what is in its journal."""
    if run in hall.crew.drives:
        raise Refused(f"run {run} is being driven here; retry it when it has come to rest")
    stored = await hall.store.load(run)
    await require_anchored(hall.store, stored, is_to_go_on=True)
    if stored.status.startswith(SET_ASIDE):
        return await _take_back(hall, stored, machine, chosen)
    await _require_retriable(hall, stored)
    entries = await hall.store.entries(run)
    ended = await _ended(hall, Run(stored.record, machine), stored, entries)
    limits = _limits(hall, in_force(Run(stored.record, machine), ended.before), entries, chosen)
    key = ended.ends[0][1] if in_flight(ended.before, ended.ends[0][1]) is not None else ""
    note = Retried(ended.entry, machine.digest, chosen.by, key, ended.reason, False, limits, stored.head["spent"])
    known = hall.remember(run)
    known.run = Run(stored.record, machine)
    decisions = await _decisions(hall, known, stored, ended, note)
    known.lease = stored.lease
    del known.head  # it stands where it stood before only once that is kept
    decisions = [replace(decision, records=()) for decision in decisions]  # they were written when these events came
    await _keep(hall, run, decisions)
    await _retry_child(hall, run, note, chosen)
    return known.head


async def _take_back(hall: Hall, stored: Stored, machine: Machine, chosen: Retry) -> Head:
    """Let a run go on that was set aside; nothing of it counts less than before. One that cannot stays aside.

    The commit of the note is what takes it back.
    """
    run, head = stored.record.run, await _head_under(hall, stored, machine)
    known = hall.runs[run]
    seq, limits = head.seq + 1, None if chosen.limits is None else {**known.record.limits, **chosen.limits}
    note = Retried(seq, machine.digest, chosen.by, limits=limits, spent=head.spent)
    decision = go_back(known.run, head, Incoming(note, f"retried-{seq}", hall.clock.now()), seq)
    known.run = in_force(known.run, decision.head)
    await _keep(hall, run, [decision])
    return known.head


async def _head_under(hall: Hall, stored: Stored, machine: Machine) -> Head:
    """Where a run stands under a definition that would have taken its steps; the note will say that it adopts it."""
    run = stored.record.run
    if not stored.head or machine.is_defined_as(stored.definition()):
        return await reopen(hall, run, machine, stored)
    under, reader = Run(stored.record, machine), Reader(machine, hall.effects(run))
    head = compared(await with_origin(hall.store, under), reader, await hall.store.entries(run), hall.clean)
    if isinstance(head, Difference):
        raise refusal(under, head)
    known = hall.remember(run)
    known.run = under
    return known.stand(head, stored.lease)


async def _keep(hall: Hall, run: RunId, decisions: Sequence[Decision]) -> None:
    """Keep what a retry decided, in one transaction, or refuse it where others moved the run."""
    if not await keep_all(hall, run, decisions):
        raise Refused(
            f"run {run} was moved by somebody else meanwhile; look at it, and retry it if that is still needed"
        )


async def _require_retriable(hall: Hall, stored: Stored) -> None:
    """Refuse to retry a run that did not end badly, or that others have gone on without."""
    record, run = stored.record, stored.record.run
    if not is_free(hall, stored.lease):
        raise Elsewhere(f"run {run} is being driven by {stored.lease.owner}; it goes on there")
    if not stored.head:
        raise Refused(f"run {run}: its head is damaged; `moot resume {run}` makes it anew from the journal")
    pending = stored.head["pending"]
    if any(effect["kind"] == CancelChild.kind for effect in pending):
        raise Refused(f"run {run} still stops its children; `moot resume {run}` first")
    if stored.status == "live" and pending:
        raise Refused(f"run {run} has not ended; `moot resume {run}` goes on with it")
    if stored.status not in (*BAD_ENDS, "live"):
        raise Refused(f"run {run} is {stored.status}; only a run that failed or reached a limit can be retried")
    if record.parent and not await _is_awaited(hall, stored):
        raise Refused(f"run {run} is a child, and its parent went on without it; retry that one: {record.parent}")


async def _is_awaited(hall: Hall, stored: Stored) -> bool:
    """Whether the parent of a run waits for it."""
    record = stored.record
    above = await hall.store.load(record.parent)
    return any(
        effect["key"] == record.parent_key and effect["kind"] == StartChild.kind for effect in above.head["pending"]
    )


async def _ended(hall: Hall, run: Run, stored: Stored, entries: Entries) -> _Ended:
    """How a run ended, and where it stood before, under the definition of today."""
    run_id, reader, undone = run.record.run, Reader(run.machine, hall.effects(run.record.run)), taken_back(entries)
    valid = [entry for entry in entries if entry["seq"] not in undone]
    events = {entry["seq"]: reader.event(entry["event"]) for entry in valid if entry["seq"]}
    moved = [entry for entry in valid if not isinstance(events.get(entry["seq"]), Note)]
    last = next((entry for entry in valid if "status" in entry), moved[-1])
    if stored.status == "live":
        last = moved[-1]
    if not last["seq"] or last["seq"] <= run.record.shared:
        raise Refused(f"run {run_id} ended with its first step; begin it anew")
    head = compared(await with_origin(hall.store, run), reader, entries[: last["seq"]], hall.clean)
    if isinstance(head, Difference):
        raise DefinitionError(f"run {run_id} cannot be retried under this definition of {run.machine.name!r}: {head}")
    since = [entry for entry in moved if entry["seq"] >= last["seq"]]
    ends = tuple((events[entry["seq"]], str(entry["cause"])) for entry in since)
    return _Ended(last["seq"], head, ends, str(stored.head["snapshot"]["reason"]))


def _limits(hall: Hall, run: Run, entries: Entries, chosen: Retry) -> Mapping[str, float] | None:
    """The limits of the budget from now on; None where they stay. Time is counted from now on."""
    now, before = hall.clock.now(), run.record.limits
    limits = {**before, **(chosen.limits or {})}
    if "seconds" in limits:
        given = "seconds" in (chosen.limits or {})
        limits["seconds"] += now - run.record.began if given else max(0.0, now - entries[-1]["at"])
    return None if limits == before else limits


async def _decisions(hall: Hall, known: OpenRun, stored: Stored, ended: _Ended, note: Retried) -> list[Decision]:
    """The note and what follows from it: from the end that is in the journal, or from another attempt."""
    seq, first = stored.seq + 1, ended.ends[0][0]
    run, began = stored.record.run, known.run

    def noted(retried: Retried) -> Decision:
        incoming = Incoming(retried, f"retried-{seq}", hall.clock.now())
        decision = go_back(in_force(began, ended.before), ended.before, incoming, seq)
        known.run = in_force(began, decision.head)
        return decision

    known.head = ended.before
    if not isinstance(first, Exhausted) or not note.key:
        decisions = await decide_again(hall, run, noted(note), ended.ends)
        snapshot = decisions[-1].head.snapshot
        if snapshot.status not in BAD_ENDS and (snapshot.status != "live" or decisions[-1].head.pending):
            return decisions
        if not isinstance(first, GaveUp) or not note.key:
            again = f"{snapshot.status} again" if snapshot.status != "live" else "stuck again"
            why = f": {snapshot.reason}" if snapshot.reason else ""
            raise Refused(f"run {run} would be {again}{why}; mend it first")
    decision = noted(replace(note, again=True))
    denied = [pending for pending in decision.head.pending if pending.denied and pending.key == note.key]
    if denied:
        raise Refused(f"run {run} has no {denied[0].denied} left; name a larger budget, as in --budget calls=100")
    return await decide_again_rest(hall, run, decision, ended)


async def decide_again_rest(hall: Hall, run: RunId, decision: Decision, ended: _Ended) -> list[Decision]:
    """What came in behind the end that does not count."""
    rest = [end for end in ended.ends[1:] if counts_again(decision.head, *end)]
    return await decide_again(hall, run, decision, rest)


async def _retry_child(hall: Hall, run: RunId, note: Retried, chosen: Retry) -> None:
    """Retry the child whose bad end ended the run, where its parent waits for it again."""
    pending: Pending | None = in_flight(hall.runs[run].head, note.key)
    if pending is None or not isinstance(pending.effect, StartChild) or not pending.began:
        return
    part: Any = hall.bindings_of(run).child(pending.effect.machine)
    child = child_id(run, pending.key)
    with visiting(hall, child):
        hall.bind(child, part.bindings)
        await retry(hall, child, part.machine, Retry(chosen.by))
