"""Replaying a run: its machine decides every event of the journal again, and nobody is asked anything."""

from __future__ import annotations

from dataclasses import dataclass

from moothall.agents.asking import AskAgent, CallTool
from moothall.app.running import family_of
from moothall.kernel.machine import Machine
from moothall.runtime.decide import Run
from moothall.runtime.journal import Reader, RunId
from moothall.runtime.ports import Store
from moothall.runtime.rebuild import Difference, first_difference


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay went: so many entries, and the first that the machine decides differently today."""

    run: RunId
    machine: str
    entries: int
    difference: Difference | None
    is_changed: bool
    """Whether the definition is another than the one that the run began with."""


async def replay(store: Store, run: RunId, machine: Machine | None = None) -> Replayed:
    """Compare the journal of a run with what its machine says today; no agent, tool or person is asked."""
    record = (await store.load(run)).record
    machine, _ = await family_of(store, record, {}, machine)
    entries = await store.entries(run)
    reader = Reader(machine, {AskAgent.kind: AskAgent, CallTool.kind: CallTool})
    difference = first_difference(Run(record, machine), reader, entries)
    return Replayed(run, machine.name, len(entries), difference, record.digest != machine.digest)
