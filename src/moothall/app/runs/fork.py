"""Forking runs: what a fork brings with it, and what it may spend."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moothall.app.kinds.bindings import Functions, cast, endless, known_agents
from moothall.app.kinds.python import source_of
from moothall.app.runs.begin import (
    Outcome,
    Setting,
    driven,
    family_of,
    hall_of,
    new_id,
    opened_for,
    usable_id,
    wait_for,
)
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


def fork(
    run: RunId,
    machine: Machine | None = None,
    *,
    at: int | None = None,
    repeats: bool = False,
    budget: Budget | None = None,
    agents: Functions | None = None,
    store: str | None = None,
    run_id: RunId | None = None,
) -> Outcome:
    """Go another way from an entry of a run on. What the run has done since is not done again unasked."""

    async def work(setting: Setting) -> Outcome:
        origin = await performed_since(setting, run, at, machine)
        named = new_id(origin.machine) if run_id is None else run_id
        return await go_own_way(setting, origin, Fork(named, repeats, budget))

    return wait_for(opened_for(store, agents, work))


async def performed_since(setting: Setting, run: RunId, at: int | None, machine: Machine | None = None) -> Origin:
    """Where a run stood after an entry, and what it has done since that a fork might do again."""
    hall = hall_of(setting)
    record = (await hall.store.load(run)).record
    machine, troupe = await family_of(hall.store, record, setting.agents, machine)
    hall.casts[run] = cast(machine, troupe)
    with halls.visiting(hall, run):
        return await origin_of(hall, run, at, machine)


async def go_own_way(setting: Setting, origin: Origin, chosen: Fork) -> Outcome:
    """Begin a fork and drive it as far as it goes."""
    hall, machine, before = hall_of(setting), origin.machine, origin.stored.record
    _, troupe = await family_of(hall.store, before, setting.agents, None if before.parent else machine)
    known_agents(machine, setting.agents)
    hall.casts[before.run] = cast(machine, troupe)
    with halls.visiting(hall, before.run):
        origin = await origin_of(hall, before.run, origin.shared, machine)  # the run may have gone on meanwhile
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
    )
    with halls.visiting(hall, usable_id(chosen.run, hall.clean)):
        hall.casts[chosen.run] = cast(machine, troupe)
        await forking.fork(hall, origin, record, repeats=chosen.repeats)
        return await driven(hall, chosen.run)


async def _left(hall: Hall, origin: Origin) -> Mapping[str, float]:
    """What the budget of a run has left today, without what its other forks were given, or have spent in the end."""
    record, head = origin.stored.record, origin.stored.head
    latest = (await hall.store.entries(record.run, origin.stored.seq))[-1]["at"]
    used = {"seconds": latest - record.began, "transitions": head["steps"]}
    runs = await hall.store.runs()
    bills = [head["spent"], *_reserved(origin), *(_drawn(one, runs) for one in _forks(record.run, runs)), used]
    return {name: max(0, limit - _sum(name, bills)) for name, limit in record.limits.items()}


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
