"""Replaying a run: its machine decides every event of the journal again, and nobody is asked anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moothall.app.config.settings import cleaner
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.python import looking
from moothall.app.kinds.source import find
from moothall.app.runs.context import exists, family_of
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Decision
from moothall.runtime.hall import with_origin
from moothall.runtime.journal import Reader, Record, Run, RunId
from moothall.runtime.ports import Store
from moothall.runtime.rebuild import Difference, compared, decided_again, remembered


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay went: so many entries, and the first that the machine decides differently today."""

    run: RunId
    machine: str
    entries: int
    difference: Difference | None
    is_changed: bool
    """Whether the definition is another than that of the run."""
    forgotten: int | None = None
    """The first entry whose texts were forgotten: from there on nothing can be decided again."""


async def replay(store: Store, run: RunId, machine: Machine | None = None) -> Replayed:
    """Compare the journal of a run with what its machine says today; no agent, tool or person is asked."""
    stored, entries = await store.load(run), await store.entries(run)
    known = remembered(entries)
    forgotten = entries[len(known)]["seq"] if len(known) < len(entries) else None
    if not known:
        return Replayed(run, stored.record.machine, 0, None, is_changed=False, forgotten=forgotten)
    with looking(machine):
        machine, _ = await family_of(store, stored.record, {}, machine)
    is_changed = not machine.is_defined_as(stored.definition())
    found = compared(await with_origin(store, Run(stored.record, machine)), _reader(machine), known, cleaner())
    difference = found if isinstance(found, Difference) else None
    return Replayed(run, machine.name, len(known), difference, is_changed, forgotten)


async def machine_instead(store: Store, run: RunId, source: str) -> Machine:
    """The machine that is named instead of a run's own, with what the run's was started with."""
    began = await _began_with(store, (await store.load(run)).record)
    machine = find(source)
    return find(kind_of(machine).like(source, began))


async def _began_with(store: Store, record: Record) -> str:
    """The source of a run's machine; a child has it from its parent, and a fork from its origin where it has none."""
    above = record.parent or ("" if record.source else record.origin)
    if not above or not await exists(store, above):
        return record.source
    return await _began_with(store, (await store.load(above)).record)


async def decisions_of(store: Store, run: RunId) -> list[Decision]:
    """Every decision of a run so far, made again from its journal."""
    record = (await store.load(run)).record
    with looking():
        machine, _ = await family_of(store, record, {})
    origin, entries = await with_origin(store, Run(record, machine)), await store.entries(run)
    return [decision for _, decision in decided_again(origin, _reader(machine), entries, cleaner())]


async def decided_until(store: Store, run: RunId, machine: Machine, seq: int) -> Any:
    """The data of a run after an entry, decided again from its journal."""
    record = (await store.load(run)).record
    origin, entries = await with_origin(store, Run(record, machine)), await store.entries(run, 0, seq + 1)
    data = None
    for _, decision in decided_again(origin, _reader(machine), entries, cleaner()):
        data = decision.head.snapshot.data
    return data


def _reader(machine: Machine) -> Reader:
    return Reader(machine, dict(kind_of(machine).effects))
