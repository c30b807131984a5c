"""Replaying a run: its machine decides every event of the journal again, and nobody is asked anything."""

from __future__ import annotations

from dataclasses import dataclass

from moothall.agents.asking import AskAgent, CallTool
from moothall.agents.conversing import Converse
from moothall.app.finding import is_of_workflow
from moothall.app.running import family_of
from moothall.app.settings import cleaner
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Decision, Run
from moothall.runtime.hall import with_origin
from moothall.runtime.journal import Reader, RunId
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
    machine, _ = await family_of(store, stored.record, {}, machine)
    entries = await store.entries(run)
    found = compared(await with_origin(store, Run(stored.record, machine)), _reader(machine), entries, cleaner())
    difference = found if isinstance(found, Difference) else None
    return Replayed(run, machine.name, len(entries), difference, stored.definition() != machine.digest)


async def decisions_of(store: Store, run: RunId) -> list[Decision]:
    """Every decision of a run so far, made again from its journal."""
    record = (await store.load(run)).record
    machine, _ = await family_of(store, record, {})
    origin, entries = await with_origin(store, Run(record, machine)), await store.entries(run)
    return [decision for _, decision in decided_again(origin, _reader(machine), entries, cleaner())]


def _reader(machine: Machine) -> Reader:
    asking = Converse if is_of_workflow(machine) else AskAgent
    return Reader(machine, {AskAgent.kind: asking, CallTool.kind: CallTool})
