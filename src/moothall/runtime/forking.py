"""Forking a run: another one goes its own way from an entry on, and shares the journal up to there.

Nothing is copied: the fork begins with an entry of its own behind the one that it shares. What its origin has done
since then is not done again unasked: the fork knows the fingerprints of those effects, and wherever it wants the same
it waits for a person to say what is to become of it. What is pure may be done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.errors import DefinitionError, Refused
from moothall.kernel.effects import Effect
from moothall.kernel.events import Began, Forked
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Happening, Run, decide, is_effect_key
from moothall.runtime.hall import Hall, begin_with, is_free, with_origin
from moothall.runtime.journal import WAITING, CancelChild, Head, Reader, Record, RunId, TellParent, fingerprint
from moothall.runtime.ports import Stored
from moothall.runtime.rebuild import Difference, Entries, compared

UNREPEATED = WAITING | {CancelChild.kind, TellParent.kind}


class Performed(Frozen):
    """An effect that a run has performed, or may have: its key, its kind, and itself as JSON."""

    key: str
    kind: str
    effect: Mapping[str, Any]


class Origin(Frozen):
    """A run as it may be forked: where it stood after an entry, and what it has done since."""

    stored: Stored
    machine: Machine
    shared: int
    head: Head
    performed: tuple[Performed, ...]


async def origin_of(hall: Hall, run: RunId, at: int | None, machine: Machine) -> Origin:
    """What is to be known of a run before it is forked at an entry; at its latest where none is named."""
    stored = await hall.store.load(run)
    entries = await hall.store.entries(run)
    shared = len(entries) - 1 if at is None else at
    if not 0 <= shared < len(entries):
        raise Refused(f"run {run} has no entry {shared}; its entries are 0 to {len(entries) - 1}")
    if entries[shared].get("status", "live") != "live":
        raise Refused(f"run {run} is over after entry {shared}; fork it at an earlier one")
    reader = Reader(machine, hall.effects(run))
    known = await with_origin(hall.store, Run(stored.record, machine))
    head = compared(known, reader, entries[: shared + 1], hall.clean)
    if isinstance(head, Difference):
        raise DefinitionError(f"run {run} cannot be forked at {shared} under this definition: {head}")
    busy = not is_free(hall, stored.lease)
    return Origin(stored, machine, shared, head, tuple(_performed(entries, shared, busy, hall.effects(run))))


def _performed(entries: Entries, shared: int, busy: bool, effects: Mapping[str, type[Effect]]) -> list[Performed]:
    """What a run has done behind an entry, or may be doing: in the order in which it was wanted."""
    wanted: dict[str, Mapping[str, Any]] = {}
    begun, ended, touched = set[str](), set[str](), set[str]()
    for entry in entries:
        wanted |= {one["key"]: one for one in entry["effects"]}
        if is_effect_key(entry["cause"]):
            key = entry["cause"].partition("-")[0]
            if entry["seq"] > shared:
                touched.add(key)
            if entry["event"]["name"] == Began.name:
                begun.add(key)
            if key == entry["cause"] and entry["seq"] <= shared:
                ended.add(key)
    under_way = wanted.keys() if busy else begun
    done = touched | (under_way - ended)
    return [
        Performed(key, one["kind"], one["effect"])
        for key, one in wanted.items()
        if key in done and one["kind"] not in UNREPEATED and not one.get("denied") and not _is_pure(one, effects)
    ]


def _is_pure(pending: Mapping[str, Any], effects: Mapping[str, type[Effect]]) -> bool:
    kind = effects.get(pending["kind"], Effect)
    return bool(pending["effect"].get("repeats", kind.repeats) == "pure")


async def fork(hall: Hall, origin: Origin, record: Record, *, repeats: bool) -> Head:
    """Begin a run that goes its own way behind what it shares; `repeats` says that it may do again what was done."""
    performed = () if repeats else tuple(sorted({_fingerprint(one) for one in origin.performed}))
    record = replace(record, shared=origin.shared, performed=performed)
    run = Run(record, origin.machine)
    happening = Happening(Forked(record.origin), f"forked-{record.run}", record.began)
    return await begin_with(hall, run, decide(run, origin.head, happening))


def _fingerprint(performed: Performed) -> str:
    return fingerprint({"kind": performed.kind, "effect": performed.effect})
