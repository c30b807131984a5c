"""Replaying a run: its machine decides every event of the journal again, and nobody is asked anything."""

from __future__ import annotations

from dataclasses import dataclass

from moothall.app.config.settings import cleaner
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.python import looking
from moothall.app.kinds.source import find
from moothall.app.runs.context import exists, family_of
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Decision, Run
from moothall.runtime.hall import with_origin
from moothall.runtime.journal import Reader, Record, RunId
from moothall.runtime.ports import Store
from moothall.runtime.rebuild import Difference, compared, decided_again


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay went: so many entries, and the first that the machine decides differently today."""

    run: RunId
    machine: str
    entries: int
    difference: Difference | None
    is_changed: bool
    """Whether the definition is another than that of the run."""


async def replay(store: Store, run: RunId, machine: Machine | None = None) -> Replayed:
    """Compare the journal of a run with what its machine says today; no agent, tool or person is asked."""
    stored = await store.load(run)
    with looking(machine):
        machine, _ = await family_of(store, stored.record, {}, machine)
    entries = await store.entries(run)
    found = compared(await with_origin(store, Run(stored.record, machine)), _reader(machine), entries, cleaner())
    difference = found if isinstance(found, Difference) else None
    return Replayed(run, machine.name, len(entries), difference, not machine.is_defined_as(stored.definition()))


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


def _reader(machine: Machine) -> Reader:
    return Reader(machine, dict(kind_of(machine).effects))
