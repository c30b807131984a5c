"""Forking runs: what a fork brings with it, and what it may spend."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moothall.app.kinds.bindings import bind, endless, known_agents
from moothall.app.kinds.source import definition_of, source_of
from moothall.app.runs.begin import driven, usable_id
from moothall.app.runs.context import RunContext, family_of
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.saves import copy_for
from moothall.app.toolbox import toolbox_in
from moothall.kernel.machine import Budget, Machine
from moothall.runtime import fork as forking
from moothall.runtime import hall as halls
from moothall.runtime.fork import Origin, Performed, origin_of
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Stored


@dataclass(frozen=True, slots=True)
class Fork:
    """What the caller decides about a fork; `repeats` says that it may do again what its origin has done since."""

    run: RunId
    repeats: bool = False
    budget: Budget | None = None


async def performed_since(context: RunContext, run: RunId, at: int | None, machine: Machine | None = None) -> Origin:
    """Where a run stood after an entry, and what it has done since that a fork might do again."""
    hall = context.hall
    record = (await hall.store.load(run)).record
    machine, provided = await family_of(hall.store, record, context.agents, machine)
    hall.casts[run] = bind(machine, provided)
    with halls.visiting(hall, run):
        return await origin_of(hall, run, at, machine)


async def go_own_way(context: RunContext, origin: Origin, chosen: Fork) -> Outcome:
    """Begin a fork and drive it as far as it goes."""
    hall, machine, before = context.hall, origin.machine, origin.stored.record
    _, provided = await family_of(hall.store, before, context.agents, None if before.parent else machine)
    known_agents(machine, context.agents)
    hall.casts[before.run] = bind(machine, provided)
    with halls.visiting(hall, before.run):
        origin = await origin_of(hall, before.run, origin.shared, machine)  # the run may have gone on meanwhile
    tools = await copy_for(hall.store, origin, chosen.run)
    provided = replace(provided, toolbox=toolbox_in(tools, chosen.run))
    limits = await _left(hall, origin) if chosen.budget is None else chosen.budget.limits()
    record = Record(
        chosen.run,
        machine.name,
        machine.digest,
        time.time(),
        source_of(machine) or before.source,
        before.model,
        limits,
        endless(machine) is not None,
        origin=before.run,
        tools=tools,
        definition=hall.clean(definition_of(machine)),
    )
    with halls.visiting(hall, usable_id(chosen.run, hall.clean)):
        hall.casts[chosen.run] = bind(machine, provided)
        await forking.fork(hall, origin, record, repeats=chosen.repeats)
        return await driven(hall, chosen.run)


async def _left(hall: Hall, origin: Origin) -> Mapping[str, float]:
    """What the budget of a run has left today, without what its other forks were given, or have spent in the end."""
    record, head = origin.stored.record, origin.stored.head
    latest = (await hall.store.entries(record.run, origin.stored.seq))[-1]["at"]
    used = {"seconds": latest - record.began, "transitions": head["steps"]}
    runs = await hall.store.runs()
    bills = [head["spent"], *_reserved(origin), *(_drawn(one, runs) for one in _forks(record.run, runs)), used]
    return {name: max(0, limit - _sum(name, bills)) for name, limit in head.get("limits", record.limits).items()}


def _reserved(origin: Origin) -> list[Mapping[str, float]]:
    """What the children of a run may still spend."""
    return [one.get("share") or {} for one in origin.stored.head["pending"] if not one.get("denied")]


def _forks(run: RunId, runs: Sequence[Stored]) -> list[Stored]:
    return [one for one in runs if one.record.origin == run]


def _drawn(fork: Stored, runs: Sequence[Stored]) -> Mapping[str, float]:
    """What a fork takes of its origin's budget: all that it was given while it lives, then what it and its own spent.

    Time passes for all of them at once.
    """
    given = {name: limit for name, limit in fork.record.limits.items() if name not in ("seconds", "transitions")}
    if fork.status == "live" or not fork.head:
        return given
    bills = [fork.head["spent"], *(_drawn(one, runs) for one in _forks(fork.record.run, runs))]
    return {name: _sum(name, bills) for name in given}


def _sum(name: str, bills: Sequence[Mapping[str, float]]) -> float:
    return sum(bill.get(name, 0) for bill in bills)


def listed(performed: tuple[Performed, ...]) -> list[str]:
    """What a run has done, a line each."""
    return [f"{one.key:>6}  {one.kind}  {_named(one)}" for one in performed]


def _named(one: Performed) -> str:
    return str(next((one.effect[name] for name in ("agent", "tool", "machine") if one.effect.get(name)), ""))
