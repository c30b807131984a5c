"""Forking a run: another one goes its own way from an entry on, and shares the journal up to there.

Nothing is copied: the fork begins with an entry of its own behind the one that it shares. What its origin has done
since then is not done again unasked: the fork knows the fingerprints of those effects, and wherever it wants the same
it waits for a person to say what is to become of it. What is pure may be done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from moothall.errors import DefinitionError, Refused
from moothall.kernel.effects import Effect
from moothall.kernel.events import Exhausted, Forked
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Incoming, is_effect_key, note
from moothall.runtime.hall import Hall, begin_with, with_origin
from moothall.runtime.journal import WAITING, CancelChild, Head, Reader, Record, Run, RunId, TellParent, fingerprint
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
    if not stored.head:
        raise Refused(
            f"run {run}: its head is damaged; `moot resume {run}` makes it anew from the journal, then fork it"
        )
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
    lines = await _lines(hall, stored.record, shared)
    performed = _performed(lines, {pending.key for pending in head.pending}, hall.effects(run))
    return Origin(stored, machine, shared, head, tuple(performed))


async def _lines(hall: Hall, record: Record, shared: int) -> list[tuple[Entries, int]]:
    """The journals of a run and of those that it was forked from, each with the last entry that a fork has of it."""
    lines: list[tuple[Entries, int]] = [(await hall.store.entries(record.run), shared)]
    while record.origin:
        shared = min(shared, record.shared)
        lines.append((await hall.store.entries(record.origin), shared))
        record = (await hall.store.load(record.origin)).record
    return lines


def _performed(
    lines: list[tuple[Entries, int]], in_flight: set[str], effects: Mapping[str, type[Effect]]
) -> Iterator[Performed]:
    """What these runs have done behind what a fork has of them, or may have begun: in the order in which it was wanted.

    Whether something that is in flight has begun, only its performer knows: whoever held the run may have been lost.
    """
    for entries, shared in lines:
        begun = in_flight | {_ended_or_marked(entry) for entry in entries if entry["seq"] > shared}
        for entry in entries:
            for effect in entry["effects"]:
                is_new = entry["seq"] > shared and not effect.get("denied")
                if (
                    (is_new or effect["key"] in begun)
                    and effect["kind"] not in UNREPEATED
                    and not _is_pure(effect, effects)
                ):
                    yield Performed(effect["key"], effect["kind"], effect["effect"])
        in_flight = set()


def _ended_or_marked(entry: Mapping[str, Any]) -> str:
    """The key of the effect that an entry says something about."""
    cause: str = entry["cause"]
    name = entry["event"]["name"]
    return cause.partition("-")[0] if is_effect_key(cause) and name != Exhausted.name else ""


def _is_pure(pending: Mapping[str, Any], effects: Mapping[str, type[Effect]]) -> bool:
    kind = effects.get(pending["kind"], Effect)
    return bool(pending["effect"].get("repeats", kind.repeats) == "pure")


async def fork(hall: Hall, origin: Origin, record: Record, *, repeats: bool) -> Head:
    """Begin a run that goes its own way behind what it shares; `repeats` says that it may do again what was done."""
    known = {*origin.stored.record.performed, *map(_fingerprint, origin.performed)}
    performed = () if repeats else tuple(sorted(known))
    record = replace(record, shared=origin.shared, performed=performed)
    run = Run(record, origin.machine)
    incoming = Incoming(Forked(record.origin), f"forked-{record.run}", record.began)
    return await begin_with(hall, run, note(run, origin.head, incoming))


def _fingerprint(performed: Performed) -> str:
    return fingerprint({"kind": performed.kind, "effect": performed.effect})
