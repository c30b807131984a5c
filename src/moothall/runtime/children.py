"""Runs that belong together: a child is begun, asked to stop, and tells its parent how it ended.

All three are effects like others: the wish is committed first, by the parent or by the child's last step, and carried
out by whoever drives that run, as often as it takes. A child's id follows from its effect's key, so that it is begun
once; its end is an event with that key as its cause, so that it is heard once. Nobody waits for it in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from weakref import WeakValueDictionary

from moothall.errors import Conflict, DefinitionError, Refused
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Delivered, Event, GaveUp
from moothall.runtime.decide import in_flight
from moothall.runtime.hall import ChildSpec, Hall, advance, begin, cancel, leave, let_go_unless_driven, reopen, visiting
from moothall.runtime.journal import CancelChild, Pending, Record, RunId, TellParent, shaped

DEPTH = 16


def child_id(run: RunId, key: str) -> RunId:
    """The id of the child that an effect starts."""
    return f"{run}-{key.replace('.', '-')}"


async def start_child(hall: Hall, run: RunId, pending: Pending) -> Event | None:
    """Begin the child of an effect, unless it is there already; the event that says why that cannot be."""
    effect, record = pending.effect, hall.runs[run].record
    assert isinstance(effect, StartChild)
    if record.depth >= DEPTH:
        return _unbegun(pending, f"children are nested more than {DEPTH} deep")
    child = child_id(run, pending.key)
    try:
        part = hall.bindings_of(run).child(effect.machine)
        data = part.read(effect.input)
        hall.bind(child, part.bindings)
        await begin(hall, _record(hall, record, pending, part), part.machine, data)
    except Conflict:
        if (await hall.store.load(child)).record.parent != run:
            return _unbegun(pending, f"another run is called {child}")
    except (DefinitionError, Refused) as error:
        leave(hall, child)
        return _unbegun(pending, str(error))
    return None


def _unbegun(pending: Pending, why: str) -> Event:
    """The event in which a child ends that was never begun, and has spent nothing of its share."""
    assert isinstance(pending.effect, StartChild)
    nothing = dict.fromkeys(pending.share or {}, 0.0)
    return GaveUp(f"child {pending.effect.machine}: {why}", "definition", nothing)


def _record(hall: Hall, parent: Record, pending: Pending, part: ChildSpec) -> Record:
    machine, now = part.machine, hall.clock.now()
    return Record(
        child_id(parent.run, pending.key),
        machine.name,
        machine.digest,
        now,
        part.source,
        parent.model,
        _limits(parent, pending, part, now),
        part.endless,
        parent.run,
        pending.key,
        parent.depth + 1,
        lane=parent.lane,
        project=parent.project,
        bad_ends=machine.bad_ends,
    )


def _limits(parent: Record, pending: Pending, part: ChildSpec, now: float) -> Mapping[str, float]:
    """What a child may spend: its share, its machine's own budget where that is less, and the time that is left."""
    assert isinstance(pending.effect, StartChild)
    own = part.machine.budget.limits() if part.machine.budget is not None else {}
    shared = {**pending.effect.budget, **(pending.share or {})}
    if "seconds" in parent.limits:
        shared["seconds"] = min(shared.get("seconds", inf), parent.limits["seconds"] - (now - parent.began))
    return {resource: min(own.get(resource, inf), shared.get(resource, inf)) for resource in own.keys() | shared.keys()}


async def open_child(hall: Hall, run: RunId, pending: Pending) -> RunId:
    """Open the child of an effect here, with what its parent brings."""
    effect = pending.effect
    assert isinstance(effect, StartChild | CancelChild)
    child = child_id(run, pending.key)
    if not hall.has_open(child):
        part = hall.bindings_of(run).child(effect.machine)
        hall.bind(child, part.bindings)
        await reopen(hall, child, part.machine)
    return child


def lost_child(pending: Pending) -> Event:
    """The event in which a child ends that is not in the store any more."""
    if isinstance(pending.effect, StartChild):
        name = pending.effect.id or pending.effect.machine
        return GaveUp(f"child {name}: it is not there any more", usage=pending.share or {})
    return Delivered(pending.share or {})


async def cancel_child(hall: Hall, run: RunId, pending: Pending) -> Event | None:
    """Ask a child to stop; the event that settles the matter where it was never begun."""
    assert isinstance(pending.effect, CancelChild)
    with visiting(hall, child_id(run, pending.key)):
        try:
            child = await open_child(hall, run, pending)
        except Refused:
            return Delivered(dict.fromkeys(pending.share or {}, 0.0))
        if hall.runs[child].head.snapshot.status == "live":
            await cancel(hall, child, pending.effect.reason, "called-off")
    return None


async def tell_parent(hall: Hall, effect: TellParent) -> Event:
    """Tell the run that started this one how it ended, wherever that run is driven."""
    place = (id(hall), effect.parent)
    turn = _turns.get(place) or _turns.setdefault(place, asyncio.Lock())
    async with turn:
        return await _told(hall, effect)


_turns: WeakValueDictionary[tuple[int, RunId], asyncio.Lock] = WeakValueDictionary()
"""Children of one run tell it their ends one after the other: all at once, each would be a conflict for the others."""


async def _told(hall: Hall, effect: TellParent) -> Event:
    parent = effect.parent
    with visiting(hall, parent), suppress(Refused):  # it was deleted: nobody is left to tell
        if not hall.has_open(parent):
            await hall.open(parent)
        elif await hall.store.seq(parent) != hall.runs[parent].head.seq:
            await reopen(hall, parent, hall.runs[parent].machine)
        await advance(hall, parent, (_end_of(hall, effect), effect.key))
        await let_go_unless_driven(hall, parent)
    return Delivered()


def _end_of(hall: Hall, effect: TellParent) -> Event:
    """The event that the parent hears."""
    parent = hall.runs[effect.parent]
    pending = in_flight(parent.head, effect.key)
    if pending is None or not isinstance(pending.effect, StartChild):
        return Delivered(effect.spent)
    name = pending.effect.id or pending.effect.machine
    if effect.status != "done":
        return GaveUp(f"child {name}: {effect.status}: {effect.reason}", effect.fault, effect.spent)
    event = parent.bindings.child(pending.effect.machine).ended(pending.effect, effect.output)
    try:
        event = shaped(parent.machine, event)
    except Refused as refusal:
        return GaveUp(f"child {name}: what it gives has the wrong shape: {refusal}", usage=effect.spent)
    return type(event)(**{**event.__dict__, "usage": effect.spent})
