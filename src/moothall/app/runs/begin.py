"""Beginning a run: its id, its model, its budget, and the first drive."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from moothall.agents.ask import Tool
from moothall.agents.workspace import BUILT_IN, Workspace
from moothall.app.config.models import BY_LEVEL, absolute_model, unpriced_models
from moothall.app.config.project import current_project
from moothall.app.config.settings import level_model, model_setting
from moothall.app.kinds.bindings import (
    Provided,
    bind,
    bound_functions,
    endless,
    endless_below,
    known_agents,
    missing_agents,
    own_limits,
    require_models,
    require_performers,
    slug,
)
from moothall.app.kinds.ends import why_bad
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.source import definition_of, source_of
from moothall.app.runs.context import RunContext, exists
from moothall.app.runs.outcome import Outcome, Question, outcome_of, questions_of
from moothall.app.runs.view import ending_event
from moothall.app.toolbox import Given, chosen_workspace, encode_workspace, toolbox_in, toolbox_of, unpinned_servers
from moothall.errors import DefinitionError, Refused
from moothall.kernel.effects import StartChild
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Budget, Machine
from moothall.runtime import hall as halls
from moothall.runtime.children import child_id
from moothall.runtime.cleaner import fitted
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall
from moothall.runtime.journal import ANY_LANE, FAMILY, CancelChild, Head, Lane, Reader, Record, RunId
from moothall.runtime.ports import Clean, Store, as_it_is

STAND_IN = "rehearsal"
LONGEST_ID = 128
"""How long an id may be that a run is given; those of its children add to it, and are still the name of a file."""
USABLE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9-]{{,{LONGEST_ID - 1}}}")


@slotted
class Terms(Frozen):
    """What the caller decides about one run. Where it is given no id, it gets a new one."""

    run: RunId | None = None
    model: str = ""
    budget: Budget | None = None
    workspace: Given = None
    lane: Lane = ANY_LANE


async def begin(context: RunContext, machine: Machine, data: Any, terms: Terms) -> Outcome:
    """Begin a run and drive it as far as it goes."""
    run, stay = await enter(context, machine, data, terms)
    with stay:
        machine = context.hall.runs[run].machine
        return note(context, machine, await driven(context.hall, run))


async def enter(context: RunContext, machine: Machine, data: Any, terms: Terms) -> tuple[RunId, ExitStack]:
    """Begin a run: it is kept with its first step, and what it wants can be performed until the stack is closed."""
    hall = context.hall
    warnings = tuple(warnings_of(context, machine, terms))
    terms = replace(terms, model=choose_model(context, machine, terms.model))
    machine, workspace = equip_machine(machine, terms.workspace)
    await require_new(hall.store, terms.run)
    run = chosen_id(context, machine, terms)
    with ExitStack() as stay:
        stay.enter_context(halls.visiting(hall, run))
        require_performers(machine, context.performers)
        limits = _limits(machine, terms.budget)
        agents = known_agents(machine, context.agents)
        record = _record(hall, machine, replace(terms, run=run, workspace=workspace), limits)
        toolbox = toolbox_in(record.tools, run)
        provided = Provided(terms.model, agents, performers=context.performers, toolbox=toolbox)
        first = _first_data(hall, run, machine, data, provided)
        hall.bind(run, bind(machine, provided))
        for warning in warnings:  # of a run that is refused, nobody has to know more
            context.broadcast.notice(warning)
        if toolbox.save is not None:
            await toolbox.save(kind_of(machine).save_name(machine))
        await halls.begin(hall, record, machine, first)
        return run, stay.pop_all()


def equip_machine(machine: Machine, workspace: Given) -> tuple[Machine, Workspace]:
    """The machine of a run whose agents work in this workspace, and the workspace as the run remembers it."""
    chosen = chosen_workspace(workspace)
    tools = tuple(toolbox_of(chosen, machine.name).tools.values())
    return kind_of(machine).equipped(machine, tools, chosen.policies), chosen


def choose_model(context: RunContext, machine: Machine, named: str) -> str:
    """The model of a run: the one that is named or set, else those of the levels, else a stand-in.

    It has none where every agent is a function.
    """
    if model := absolute_model(named or model_setting()):
        return model
    if not missing_agents(machine, context.agents):
        return ""
    return BY_LEVEL if level_model("base").value else STAND_IN


def warnings_of(context: RunContext, machine: Machine, terms: Terms) -> Iterator[str]:
    """What a person should know before a run begins with these terms, at whatever door."""
    if isinstance(terms.workspace, Workspace) and terms.workspace.policies:
        tools = tuple(toolbox_of(chosen_workspace(terms.workspace), machine.name).tools.values())
        yield from _misspelt_policies(machine, terms.workspace, tools)
    model = choose_model(context, machine, terms.model)
    if model == STAND_IN and not (terms.model or model_setting()):
        missing = ", ".join(missing_agents(machine, context.agents))
        yield f"no model is set: {STAND_IN} stands in for {missing}; its replies mean nothing"
    limits = {**own_limits(machine), **({} if terms.budget is None else terms.budget.limits())}
    yield from unpriced_warnings(model, limits)
    if names := unpinned_servers():
        yield f"{', '.join(names)} offers tools that you have not looked at; `moot trust --server NAME` shows them"


def warnings_of_run(model: str, limits: Mapping[str, float]) -> Iterator[str]:
    """What a person should know of a run that began with this model and these limits."""
    if model == STAND_IN:
        yield "this is a rehearsal: no model was asked, and the replies mean nothing"
    yield from unpriced_warnings(model, limits)


def unpriced_warnings(model: str, limits: Mapping[str, float]) -> Iterator[str]:
    """That a budget of money does not hold, where nobody knows what a model costs."""
    if "usd" in limits and (names := unpriced_models(model)):
        told = f"the price of {', '.join(names)} is not known: what it costs does not count towards the budget"
        yield told + (
            "" if {"calls", "tokens"} & limits.keys() else "; limit calls or tokens too, as in --budget calls=20"
        )


def _misspelt_policies(machine: Machine, workspace: Workspace, tools: Sequence[Tool]) -> Iterator[str]:
    """What a person should know of policies for tools that are not here, and whose names are nearly those of others."""
    here = (tool.name for tool in (*tools, *kind_of(machine).own_tools(machine)))
    known = {*BUILT_IN, *bound_functions(machine), *here}
    for name in workspace.policies:
        tool = name.rpartition(":")[2]
        if tool not in known and (close := get_close_matches(tool[:64], known, 1)):
            yield f"the policy of {tool!r} does nothing: there is no such tool here; is it {close[0]!r}?"


def chosen_id(context: RunContext, machine: Machine, terms: Terms) -> RunId:
    """The id that a run is given, or a new one."""
    clean = context.hall.clean
    return new_id(machine, clean) if terms.run is None else usable_id(terms.run, clean)


async def require_new(store: Store, run: RunId | None) -> None:
    """Refuse an id that somebody has chosen and that the anchors know, of a run that is gone: it may have done much."""
    if run is not None and (why := await store.behind(run)) and not await exists(store, run):
        remedy = f"choose another id, or, if it is to be so, `moot audit {run} --accept`"
        raise Refused(f"run {run} cannot begin: {why}; {remedy}")


def _limits(machine: Machine, budget: Budget | None) -> dict[str, float]:
    """What bounds a run; where nothing does, a machine that may never end is refused."""
    machine.require_types()
    limits = {**own_limits(machine), **({} if budget is None else budget.limits())}
    if not limits and (finding := endless(machine) or endless_below(machine)) is not None:
        raise DefinitionError(
            f"machine {machine.name} may never end: {finding.why}; {finding.remedy}, or give the run a budget"
        )
    return limits


def _record(hall: Hall, machine: Machine, terms: Terms, limits: Mapping[str, float]) -> Record:
    """What a store keeps of a run beside its journal."""
    assert terms.run is not None
    assert isinstance(terms.workspace, Workspace)
    return Record(
        terms.run,
        machine.name,
        machine.digest,
        time.time(),
        source_of(machine),
        hall.clean(terms.model),
        limits,
        endless(machine) is not None,
        lane=terms.lane,
        tools=encode_workspace(terms.workspace),
        definition=hall.clean(definition_of(machine)),
        project=hall.clean(current_project()),
        bad_ends=machine.bad_ends,
    )


def _first_data(hall: Hall, run: RunId, machine: Machine, data: Any, provided: Provided) -> Any:
    """The data that a run begins with; where something is lacking that they name, it is refused."""
    kind, toolbox = kind_of(machine), provided.toolbox
    first = fitted(partial(kind.data, machine), data, hall.clean)
    if reason := kind.refusal(machine, first, provided.tool_functions):
        raise DefinitionError(f"run {run} cannot begin: {reason}")
    require_models(machine, first, provided)
    tools = (*toolbox.tools.values(), *(Tool(name) for name in provided.functions))
    return kind.with_tools(machine, first, tools, toolbox.workspace.policies)


def note(context: RunContext, machine: Machine, outcome: Outcome) -> Outcome:
    """The same; what a person should know about it is told."""
    for text in kind_of(machine).notes(machine, outcome):
        context.broadcast.notice(text)
    return outcome


async def driven(hall: Hall, run: RunId, *, at_once: bool = False) -> Outcome:
    """Drive a run as far as it goes, and say how it stands; at once: what waits for its next attempt is tried now."""
    machine = hall.runs[run].machine
    head = await drive(hall, run, at_once=at_once)
    below = await questions_below(hall, run, head) if head.pending else ()
    outcome = outcome_of(machine, run, head, below)
    if head.snapshot.status == "live" or outcome.status not in ("failed", "limited"):
        return outcome
    event = await ending_event(hall.store, run, head.seq)
    if head.snapshot.status == "done":
        outcome = replace(outcome, reason=why_bad(source_of(machine), outcome.states, outcome.data, event))
    return (
        replace(outcome, fault=str(event.get("fault", "")) or outcome.fault) if outcome.status == "failed" else outcome
    )


async def questions_below(hall: Hall, run: RunId, head: Head) -> tuple[Question, ...]:
    """The questions that wait for a person in the children of a run, and in theirs."""
    questions: tuple[Question, ...] = ()
    for pending in head.pending:
        if pending.effect.kind in FAMILY and pending.began:
            child = child_id(run, pending.key)
            stored = await hall.store.load(child)
            assert isinstance(pending.effect, StartChild | CancelChild)
            part = hall.bindings_of(run).child(pending.effect.machine)
            with halls.visiting(hall, child):
                hall.bind(child, part.bindings)
                below = Reader(part.machine, hall.effects(child)).head(stored.head)
                questions += questions_of(child, below) + await questions_below(hall, child, below)
    return questions


def usable_id(run: RunId, clean: Clean) -> RunId:
    """A run id that can be written everywhere, or a refusal."""
    if not USABLE.fullmatch(run):
        raise Refused(f"{run[:LONGEST_ID]!r} is not a run id; use letters, digits and dashes, at most {LONGEST_ID}")
    if (shown := clean(run)) != run:
        raise Refused(f"the run id {shown} has a secret in it; choose another")
    return run


def new_id(machine: Machine, clean: Clean = as_it_is) -> RunId:
    """A new run id that says which machine it is; what is behind the name is chance, and has no secret."""
    return f"{usable_id(slug(machine), clean)}-{secrets.token_hex(4)}"
