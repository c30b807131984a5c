"""Running workflow files: from the file to the machine, who plays in it, what it is given and what it gives.

A workflow is named `FILE.json`, `FILE.json:NAME`, `FOLDER:NAME` or by its name alone. Its source, by which a run finds
it again, also says which file of roles and which functions it was started with. The functions come from the user's
command line, and so does the file of roles, or it lies where such files are looked for; a workflow file itself never
names code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import iscoroutinefunction, isfunction
from os.path import isdir, realpath
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, quote

from moothall.agents.ask import CallTool, Tool, as_tool
from moothall.agents.conversation import Converse
from moothall.agents.ports import Model
from moothall.app.config.models import BY_LEVEL, at_level, open_model
from moothall.app.kinds.bindings import Troupe
from moothall.app.kinds.python import load, remember, source_of
from moothall.app.kinds.workflow.files import (
    Opened,
    Shelf,
    Stamps,
    file_in,
    file_of,
    named,
    names_at,
    roles_file,
    stamps_of,
)
from moothall.app.kinds.workflow.scripts import Evaluator
from moothall.app.runs.begin import Outcome
from moothall.errors import DefinitionError, Refused
from moothall.kernel.chart import HISTORY, PARALLEL, Chart, Place
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.machines.turn import Use
from moothall.machines.workflow.compiler import WorkflowMachine, first_work, machine_of
from moothall.machines.workflow.definition import Workflow
from moothall.machines.workflow.document import read
from moothall.machines.workflow.plan import typed
from moothall.machines.workflow.schema import cleaned
from moothall.machines.workflow.work import Work
from moothall.performers.conversation import ConversePerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Cast, Part
from moothall.runtime.ports import Performer, Store

Functions = Mapping[str, Callable[..., Any]]
SHOWN = 3
BUILT_IN = (
    "read_file",
    "write_file",
    "edit_file",
    "list_directory",
    "search_files",
    "execute_terminal",
    "git_status",
    "git_diff",
)
"""The names that built-in tools have; a filter may name one before it is there."""


class Spot(Frozen):
    """Where a workflow is found, and what it is started with."""

    path: Path
    name: str = ""
    roles: str = ""
    functions: str = ""

    @property
    def source(self) -> str:
        options = [
            f"{key}={quote(value)}" for key, value in (("roles", self.roles), ("functions", self.functions)) if value
        ]
        return f"{self.path}:{self.name}" + (f"?{'&'.join(options)}" if options else "")


def spot_of(source: str) -> Spot:
    """The spot that a source names."""
    place, _, options = source.partition("?")
    given = {key: values[0] for key, values in parse_qs(options).items()}
    path, name = (place, "") if place.endswith(".json") else (place.rpartition(":")[0], place.rpartition(":")[2])
    if path and not isdir(path):
        return Spot(Path(path), name, given.get("roles", ""), given.get("functions", ""))
    found = file_in(Path(path), name) if path else file_of(name)
    if found is None:
        where = f"in {path}" if path else "here; `moot workflows` lists them"
        raise DefinitionError(f"no workflow is called {name!r} {where}")
    return Spot(found, name, given.get("roles", ""), given.get("functions", ""))


def source_with(source: str, roles: str, functions: str) -> str:
    """A source as somebody starts it: with a file of roles, and with functions."""
    options = [f"{key}={quote(value)}" for key, value in (("roles", roles), ("functions", functions)) if value]
    return source + (f"?{'&'.join(options)}" if options else "")


def source_like(source: str, other: str) -> str:
    """A source with the file of roles and the functions of another, where it names none itself."""
    own, theirs = spot_of(source), spot_of(other)
    return replace(own, roles=own.roles or theirs.roles, functions=own.functions or theirs.functions).source


def machine_at(source: str, shelf: Shelf | None = None) -> WorkflowMachine:
    """The machine of the workflow at this source, from a file of this shelf where one is kept."""
    spot = spot_of(source)
    path = Path(realpath(spot.path))
    names = (spot.name,) if spot.name else names_at(path)
    if len(names) > 1:
        raise DefinitionError(f"{path} has {', '.join(names)}; name one as {path.name}:NAME")
    roles = spot.roles or roles_file(path)
    functions = realpath(spot.functions) if spot.functions.endswith(".py") else spot.functions
    whole = Spot(path, names[0] if names else "", realpath(roles) if roles else "", functions)
    return _compiled(whole, shelf or Shelf())


_machines: dict[str, tuple[Stamps, WorkflowMachine]] = {}
"""The machines that were compiled before, with the state of the files that they were compiled from."""


def _compiled(spot: Spot, shelf: Shelf) -> WorkflowMachine:
    known = _machines.get(spot.source)
    if known is not None and known[0] == stamps_of(spot.path, spot.roles):
        return known[1]
    opened = shelf.opened(spot.path, spot.roles)
    machine = _compile(spot, opened)
    _machines[spot.source] = (opened.stamps, machine)
    remember(machine, spot.source)
    return machine


def _compile(spot: Spot, opened: Opened) -> WorkflowMachine:
    wrong = [one for one in opened.checked.findings if one.level == "error"]
    if wrong:
        told = "; ".join(f"{one.code} {one.pointer or '/'} (line {one.line}): {one.why}" for one in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise DefinitionError(f"{spot.path}: {told}{more}; `moot check {spot.path.name}` tells all")
    plain = named(opened.document, spot.name)
    if plain is None:
        names = ", ".join(opened.checked.workflows)
        raise DefinitionError(f"{spot.path} has no workflow {spot.name!r}; it has {names}")
    workflow = decode(Workflow, cleaned(plain), spot.name)
    tools = [Use(one.name, one.repeats, one.timeout) for one in tools_in(spot.functions)]
    return machine_of(workflow, opened.roles([agent.agent_role for agent in workflow.agents]), tools)


def sub_workflow(source: str, name: str, shelf: Shelf | None = None) -> Machine | None:
    """The workflow of this name for one that starts it: in the same file, beside it, or known here."""
    spot = spot_of(source)
    path = spot.path if name in names_at(spot.path) else file_of(name, spot.path)
    return None if path is None else machine_at(Spot(path, name, spot.roles, spot.functions).source, shelf)


# functions


def tools_in(functions: str) -> list[Tool]:
    """The tools of a module: its async functions, and those that say themselves what a crash may repeat."""
    if not functions:
        return []
    module = load(functions)
    given = {name: one for name, one in vars(module).items() if not name.startswith("_")}
    tools = {one.name: one for one in given.values() if isinstance(one, Tool)}
    for name, one in given.items():
        if _is_own(module, one) and iscoroutinefunction(one):
            tools.setdefault(name, as_tool(one))
    return list(tools.values())


def functions_in(functions: str) -> Functions:
    """The functions of a module by name, for `py:NAME`."""
    if not functions:
        return {}
    module = load(functions)
    return {name: one for name, one in vars(module).items() if not name.startswith("_") and _is_own(module, one)}


def _is_own(module: ModuleType, one: Any) -> bool:
    return isfunction(one) and one.__module__ == module.__name__


# playing


def workflow_cast(machine: WorkflowMachine, troupe: Troupe) -> Cast:
    """Who performs the effects of a run of a workflow."""
    plan, functions = machine.plan, spot_of(source_of(machine)).functions
    tools = tools_in(functions)
    known = {**{one.name: one.function for one in tools if one.function is not None}, **troupe.functions}
    checks = {**{one.name: one.check for one in tools if one.check is not None}, **troupe.checks}
    parsing = frozenset(one.function.name for role in plan.roles.values() for one in role.parsingTools)
    played = ConversePerformer(plan.seats, plan.roles, known, _Models(troupe.model), troupe.hear, parsing)
    performers = {
        Converse.kind: Performer(Converse, played),
        CallTool.kind: Performer(CallTool, ToolPerformer(known, checks)),
    }
    evaluate = Evaluator(functions_in(functions))
    return Cast(performers, child=lambda name: _part(machine, name, troupe), evaluate=evaluate)


class _Models:
    """The models of a run, each opened once: the one that is named, or that of an agent's level."""

    def __init__(self, named: str) -> None:
        self._named = named
        self._open: dict[str, Model] = {}

    def __call__(self, level: str) -> Model:
        name = at_level(level) if self._named == BY_LEVEL else self._named
        if name not in self._open:
            self._open[name] = open_model(name)
        return self._open[name]


def _part(parent: Machine, name: str, troupe: Troupe) -> Part:
    machine = sub_workflow(source_of(parent), name)
    if not isinstance(machine, WorkflowMachine):
        raise DefinitionError(f"no workflow is called {name!r}, and {parent.name} starts it")
    workflow = machine.plan.workflow

    def read(given: Any) -> Work:
        return work_of(machine, given.get(workflow.input.name))

    return Part(machine, source_of(machine), endless=False, read=read, cast=workflow_cast(machine, troupe))


def work_of(machine: WorkflowMachine, given: Any) -> Work:
    """The data that a run begins with, if what it is given has the type that the workflow takes."""
    workflow = machine.plan.workflow
    name, wanted = workflow.input.name, workflow.input.type
    if given is None:
        raise Refused(f"{machine.name} takes {name!r}, a {wanted}, and was given nothing")
    if isinstance(given, str) and wanted != "string":
        document = read(given.encode("utf-8", "surrogatepass"))
        if document.problems:
            why = document.problems[0].why
            raise Refused(f"{machine.name} takes {name!r}, a {wanted}, and {given[:60]!r} is none: {why}")
        given = document.value
    if typed(given) != wanted:
        raise Refused(f"{machine.name} takes {name!r}, a {wanted}, and was given a {typed(given)}")
    return first_work(workflow, given)


def notes(machine: WorkflowMachine, outcome: Outcome) -> Iterator[str]:
    """What a person should know: entries of filters that mean no tool, and an end without an output."""
    tools = [one.name for one in tools_in(spot_of(source_of(machine)).functions)]
    for name, role in machine.plan.roles.items():
        idle = role.idle_entries((*tools, *BUILT_IN))
        yield from (f"role {name}: no tool fits {one!r}; check the name" for one in idle)
    if outcome.status == "done" and outcome.result is None:
        output = machine.plan.workflow.output.name
        yield f"{machine.name} gives nothing: what its stop says is null, or no script set {output}"


# what a run gives


class WorkflowResult(Frozen):
    """How a run of a workflow ended."""

    success: bool
    workflow_name: str
    final_state: str
    execution_time: float
    states_visited: tuple[str, ...]
    output: Any
    common_data: Mapping[str, Any]
    run_id: str
    usage: Mapping[str, float]
    status: str
    error: str = ""
    questions: tuple[Any, ...] = ()


async def result_of(store: Store, machine: WorkflowMachine, outcome: Outcome) -> WorkflowResult:
    """The result of a run, with the states that its journal says it visited."""
    entries = await store.entries(outcome.run)
    chart = machine.chart
    rows = {row.id: row.targets for row in chart.rows if row.targets}
    entered = [target for entry in entries for taken in entry["taken"] for target in rows.get(taken, ())]
    visited = [place.name for target in entered for place in _entered(chart, target)]
    return WorkflowResult(
        outcome.status == "done",
        machine.name,
        " + ".join(outcome.states),
        round(entries[-1]["at"] - entries[0]["at"], 3),
        (*(place.name for first in chart.places[0].initial for place in _entered(chart, first)), *visited),
        outcome.result,
        outcome.data.common_data,
        outcome.run,
        outcome.spent,
        outcome.status,
        f"limit_exceeded: {outcome.reason}" if outcome.status == "limited" else outcome.reason,
        outcome.questions,
    )


def _entered(chart: Chart, index: int) -> Iterator[Place]:
    """A state and those that it begins with; a history stands for what it begins with too."""
    place = chart.places[index]
    inside = (
        place.default if place.kind == HISTORY else place.initial or (place.children if place.kind == PARALLEL else ())
    )
    yield chart.places[place.parent] if place.kind == HISTORY else place
    for one in inside:
        yield from _entered(chart, one)
