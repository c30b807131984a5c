"""Forking runs: what a fork brings with it, and what it may spend."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from moothall.agents.ask import AskAgent
from moothall.agents.conversation import Converse
from moothall.app.kinds.bindings import Functions, Provided, bind, endless, known_agents, require_models
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

ASKS = (AskAgent.kind, Converse.kind)
Repeats = bool | Literal["agents"]
"""What a fork may do again unasked that its origin has done since: all, what agents did, or only what models said."""


@dataclass(frozen=True, slots=True)
class Fork:
    """What the caller decides about a fork; `repeats` says what it may do again that its origin has done since."""

    run: RunId
    repeats: Repeats = False
    budget: Budget | None = None


async def performed_since(context: RunContext, run: RunId, at: int | None, machine: Machine | None = None) -> Origin:
    """Where a run stood after an entry, and what it has done since that a fork might do again."""
    hall = context.hall
    record = (await hall.store.load(run)).record
    machine, provided = await family_of(hall.store, record, context.agents, machine)
    hall.bind(run, bind(machine, provided))
    with halls.visiting(hall, run):
        return unless_models(await origin_of(hall, run, at, machine), provided)


def unless_models(origin: Origin, provided: Provided) -> Origin:
    """The same without what models said: asking one again costs something and changes nothing."""
    functions = provided.joined_by(origin.machine).functions
    return replace(
        origin, performed=tuple(effect for effect in origin.performed if not _is_of_model(effect, functions))
    )


def _is_of_model(performed: Performed, functions: Functions) -> bool:
    return performed.kind in ASKS and performed.effect["agent"] not in functions


def _unless(origin: Origin, repeats: Repeats) -> Origin:
    """The same without what may be done again."""
    if repeats != "agents":
        return origin
    return replace(origin, performed=tuple(effect for effect in origin.performed if effect.kind not in ASKS))


async def go_own_way(context: RunContext, origin: Origin, chosen: Fork) -> Outcome:
    """Begin a fork and drive it as far as it goes."""
    hall, machine, before = context.hall, origin.machine, origin.stored.record
    _, provided = await family_of(hall.store, before, context.agents, None if before.parent else machine)
    known_agents(machine, context.agents)
    hall.bind(before.run, bind(machine, provided))
    with halls.visiting(hall, before.run):
        latest = await origin_of(hall, before.run, origin.shared, machine)  # the run may have gone on meanwhile
    origin = _unless(unless_models(latest, provided), chosen.repeats)
    tools = await copy_for(hall.store, origin, chosen.run)
    provided = replace(provided, toolbox=toolbox_in(tools, chosen.run))
    require_models(machine, None, provided)
    limits = await _budget_left(hall, origin) if chosen.budget is None else chosen.budget.limits()
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
        lane=before.lane,
        tools=tools,
        definition=hall.clean(definition_of(machine)),
        project=before.project,
        bad_ends=machine.bad_ends,
    )
    with halls.visiting(hall, usable_id(chosen.run, hall.clean)):
        hall.bind(chosen.run, bind(machine, provided))
        await forking.fork(hall, origin, record, repeats=chosen.repeats is True)
        return await driven(hall, chosen.run)


async def _budget_left(hall: Hall, origin: Origin) -> Mapping[str, float]:
    """What the budget of a run has left today, without what its other forks were given, or have spent in the end."""
    record, head = origin.stored.record, origin.stored.head
    latest = (await hall.store.entries(record.run, origin.stored.seq))[-1]["at"]
    used = {"seconds": latest - record.began, "transitions": head["steps"]}
    runs = await hall.store.runs()
    bills = [
        head["spent"],
        *_reserved_shares(origin),
        *(_drawn_budget(fork, runs) for fork in _forks(record.run, runs)),
        used,
    ]
    return {name: max(0, limit - _sum(name, bills)) for name, limit in head.get("limits", record.limits).items()}


def _reserved_shares(origin: Origin) -> list[Mapping[str, float]]:
    """What the children of a run may still spend."""
    return [effect.get("share") or {} for effect in origin.stored.head["pending"] if not effect.get("denied")]


def _forks(run: RunId, runs: Sequence[Stored]) -> list[Stored]:
    return [stored for stored in runs if stored.record.origin == run]


def _drawn_budget(fork: Stored, runs: Sequence[Stored]) -> Mapping[str, float]:
    """What a fork takes of its origin's budget: all that it was given while it lives, then what it and its own spent.

    Time passes for all of them at once.
    """
    limits = fork.head.get("limits", fork.record.limits)
    given = {name: limit for name, limit in limits.items() if name not in ("seconds", "transitions")}
    if fork.status == "live" or not fork.head:
        return given
    bills = [fork.head["spent"], *(_drawn_budget(other, runs) for other in _forks(fork.record.run, runs))]
    return {name: _sum(name, bills) for name in given}


def _sum(name: str, bills: Sequence[Mapping[str, float]]) -> float:
    return sum(bill.get(name, 0) for bill in bills)


def format_performed(performed: tuple[Performed, ...]) -> list[str]:
    """What a run has done, a line each."""
    return [f"{effect.key:>6}  {effect.kind}  {_target_name(effect)}" for effect in performed]


def _target_name(performed: Performed) -> str:
    effect = performed.effect
    return str(next((effect[name] for name in ("agent", "tool", "machine") if effect.get(name)), ""))
