"""Workflow files as a kind of machine: found, given data, performed and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import isdir
from pathlib import Path
from typing import Any

from moothall.agents.ask import CallTool, Tool
from moothall.agents.conversation import Converse
from moothall.agents.workspace import BUILT_IN, Policy
from moothall.app.config.models import BY_LEVEL, at_level, daily_payment
from moothall.app.kinds.bindings import Provided, RunModels, child_part
from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.functions import functions_in, tools_in
from moothall.app.kinds.guests import adapt_guests
from moothall.app.kinds.kind import Kind, Offer, Presented
from moothall.app.kinds.source import source_of
from moothall.app.kinds.workflow.definitions import definition_with_all_below, machine_stored, stored_beside
from moothall.app.kinds.workflow.files import (
    Shelf,
    file_of,
    files_at,
    is_file_or_folder,
    list_workflows,
    names_at,
    template,
)
from moothall.app.kinds.workflow.result import result_of
from moothall.app.kinds.workflow.scripts import Evaluator
from moothall.app.kinds.workflow.spot import (
    Spot,
    is_workflow,
    machine_at,
    require_name,
    source_like,
    source_with,
    source_with_tools,
    spot_of,
    sub_workflow,
)
from moothall.app.runs.outcome import Outcome
from moothall.app.toolbox import Toolbox
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.effects import Effect
from moothall.kernel.machine import Machine
from moothall.machines.turn import Use
from moothall.machines.workflow.check import python_names
from moothall.machines.workflow.compiler import WorkflowMachine, first_work
from moothall.machines.workflow.data import WorkflowData
from moothall.machines.workflow.document import Problem, read
from moothall.machines.workflow.plan import type_name
from moothall.machines.workflow.roles import is_file_of_roles
from moothall.machines.workflow.schema import SCHEMA
from moothall.performers.conversation import ConversePerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Bindings
from moothall.runtime.ports import Performer, Store


class WorkflowKind(Kind):
    """Machines that are compiled from workflow files."""

    name = "workflow"
    effects: Mapping[str, type[Effect]] = {Converse.kind: Converse, CallTool.kind: CallTool}
    is_closed = True
    takes_text = True

    def find(self, source: str) -> Machine | None:
        """The machine of the workflow at this source."""
        return machine_at(source) if is_workflow(source) else None

    def named(self, name: str) -> Machine | None:
        """The machine of a workflow that is known by its name."""
        return machine_at(name) if ":" not in name and file_of(name) is not None else None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """The workflow of this name in the same file, or in one beside it."""
        return stored_beside(machine, name) or sub_workflow(source_of(machine), name, kept)

    def definition(self, machine: Machine) -> Mapping[str, Any]:
        """The workflow and its roles, and those of all workflows below it."""
        return definition_with_all_below(machine)

    def restored(self, source: str, definition: Mapping[str, Any]) -> Machine:
        """The machine of a workflow that was stored with a run."""
        return machine_stored(source, definition)

    def examine(self, source: str, check: Check) -> Iterator[Examined] | None:
        """What is wrong with workflow files, and what their workflows can take."""
        if not is_file_or_folder(source) and not is_workflow(source):
            return None
        shelf: Shelf = check.kept.setdefault(self.name, Shelf(check.functions))
        if isdir(source):
            return (examined for path in files_at(Path(source)) for examined in check.examine(str(path)))
        spot = Spot(Path(source)) if is_file_or_folder(source) else spot_of(source)
        [path] = files_at(spot.path)
        if spot.name and (names := names_at(path)):
            require_name(spot.name, path, names)
        return iter((_examine(path, shelf, check),))

    def like(self, source: str, other: str) -> str:
        """A workflow with the roles and the functions of another."""
        return source_like(source, other) if is_workflow(source) and is_workflow(other) else source

    def source_with(self, source: str, roles: str, functions: str) -> str | None:
        """A workflow with a file of roles and with functions."""
        return source_with(source, roles, functions) if is_workflow(source) else None

    def data(self, machine: Machine, given: Any) -> Any:
        """The data that a run begins with, if what it is given has the type that the workflow takes."""
        assert isinstance(machine, WorkflowMachine)
        assert machine.data is not None
        return given if isinstance(given, machine.data) else first_work_of(machine, given)

    def offers(self) -> Iterator[Offer]:
        """The workflows that have a name here."""
        yield from (Offer(known.name, known.description) for known in list_workflows() if known.is_usable)

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """The input of the workflow."""
        assert isinstance(machine, WorkflowMachine)
        given = machine.plan.workflow.input
        return {"type": given.type, "title": given.name, "description": given.description or "", "format": "text"}

    def child_data(self, machine: Machine, given: Any) -> Any:
        """What another run gives: the field that is called as the input, or the only one that there is."""
        assert isinstance(machine, WorkflowMachine)
        name = machine.plan.workflow.input.name
        only = next(iter(given.values())) if len(given) == 1 else None
        return first_work_of(machine, given.get(name, only))

    def equipped(self, machine: Machine, tools: Sequence[Tool], policies: Mapping[str, Policy]) -> Machine:
        """The same workflow, compiled with these tools for its agents, and with the policies of its own ones."""
        own = {tool.name: tool for tool in self.own_tools(machine)}
        uses = [use for tool in own.values() if (use := _use(tool, policies)) != _use(tool, {})]
        uses += [_use(tool, policies) for tool in tools if tool.name not in own]
        return machine_at(source_with_tools(source_of(machine), uses)) if uses else machine

    def own_tools(self, machine: Machine) -> Sequence[Tool]:
        """The tools of its functions."""
        return tools_in(spot_of(source_of(machine)).functions)

    def save_name(self, machine: Machine) -> str:
        """As workflow files have always called it."""
        return f"Workflow: {machine.name}"

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its agents in their conversations, its tools, and an engine for its scripts."""
        assert isinstance(machine, WorkflowMachine)
        return bind_workflow(machine, replace(provided, functions=adapt_guests(provided.functions)))

    def asked(self, machine: Machine) -> frozenset[str]:
        """The agents of the file."""
        assert isinstance(machine, WorkflowMachine)
        return frozenset(machine.plan.seats)

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """Those of the levels of its agents, where the run is played by levels."""
        assert isinstance(machine, WorkflowMachine)
        roles = machine.plan.roles.items() if named == BY_LEVEL else ()
        yield from {at_level(role.level) for name, role in roles if name not in given}

    def lacking(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a run cannot go on: a function is not here that the workflow or one below it names."""
        workflows = self.definition(machine)["workflows"]
        named = {name: called for called, kept in workflows.items() for name in python_names(kept["workflow"])}
        missing = sorted(named.keys() - functions_in(spot_of(source_of(machine)).functions).keys()) if named else []
        if not missing:
            return ""
        why = f"{named[missing[0]]} names py:{missing[0]}, and no function is called so"
        return f"{why}; --functions names the module that has it"

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of a workflow file."""
        return SCHEMA

    def resembles(self, content: Any) -> str:
        """A workflow, in whatever language."""
        workflows = content if isinstance(content, list) else [content]
        is_workflow = any(
            isinstance(workflow, dict) and workflow.keys() & {"workflow_name", "states"} for workflow in workflows
        )
        return "a workflow, which is written as JSON, for `moot run FILE.json`" if is_workflow else ""

    def template(self, name: str) -> str | None:
        """A workflow file to begin with."""
        return template(name)

    def notes(self, machine: Machine, outcome: Outcome) -> Iterator[str]:
        """Entries of filters that mean no tool, and an end without an output."""
        assert isinstance(machine, WorkflowMachine)
        return notes(machine, outcome)

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """The result with the names that workflows have."""
        assert isinstance(machine, WorkflowMachine)
        usual = await super().present(store, machine, outcome)
        return replace(usual, plain=await result_of(store, machine, outcome))


KIND: Kind = WorkflowKind()


def _examine(path: Path, shelf: Shelf, check: Check) -> Examined:
    checked = shelf.checked(path, check.roles)
    names = () if checked.is_wrong else checked.workflows
    spots = {name: Spot(path, name, check.roles, check.functions) for name in names}
    bounds = {name: check.certificate_or_reason(_machine_or_reason(spot, shelf)) for name, spot in spots.items()}
    told = tuple(
        Told(
            problem.level, problem.code, f"{checked.file}:{problem.line}", problem.why, problem.remedy, inside(problem)
        )
        for problem in checked.findings
    )
    errors = sum(problem.level == "error" for problem in checked.findings)
    warnings = len(checked.findings) - errors
    counts = f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}"
    has = "roles" if is_file_of_roles(shelf.opened(path, check.roles).document.value) else "no workflow"
    summary = f"{checked.file}: {', '.join(checked.workflows) or has}: {counts}"
    return Examined({**encode(checked), "certificates": encode(bounds)}, told, bounds, summary)


def inside(problem: Problem) -> str:
    """Where in a file a problem is."""
    return (f"{problem.workflow}: " if problem.workflow else "") + (problem.pointer or "/")


def _machine_or_reason(spot: Spot, shelf: Shelf) -> Machine | DefinitionError:
    """The machine of a workflow; what is wrong may be in a file that it belongs with."""
    try:
        return machine_at(spot.source, shelf)
    except DefinitionError as error:
        return error


def bind_workflow(machine: WorkflowMachine, provided: Provided) -> Bindings:
    """Who performs the effects of a run of a workflow."""
    plan, functions = machine.plan, spot_of(source_of(machine)).functions
    tools = tools_in(functions)
    own = Toolbox({tool.name: tool for tool in tools})
    toolbox = provided.toolbox
    known = {**toolbox.functions, **own.functions, **provided.functions}
    checks = {**toolbox.checks, **own.checks, **provided.checks}
    parsing = frozenset(tool.function.name for role in plan.roles.values() for tool in role.parsingTools)
    played = ConversePerformer(
        plan.seats, plan.roles, known, RunModels(provided.model).at, parsing, pay_for=daily_payment()
    )
    performers = {
        Converse.kind: Performer(Converse, played),
        CallTool.kind: Performer(CallTool, ToolPerformer(known, checks, toolbox.look, toolbox.save, toolbox.lacks)),
    }
    provided = replace(provided, functions={**own.functions, **provided.functions}, checks=checks)
    evaluate = Evaluator(functions_in(functions))
    return Bindings(performers, child=lambda name: child_part(machine, name, provided), evaluate=evaluate)


def _use(tool: Tool, policies: Mapping[str, Policy]) -> Use:
    """A tool as the agents of a workflow, and of those that it starts, know it."""
    usual = policies.get(tool.name, tool.policy)
    named = [(*name.rpartition(":"), policy) for name, policy in policies.items()]
    others = {role: policy for role, _, name, policy in named if role and name == tool.name and policy != usual}
    return Use(tool.name, tool.repeats, tool.timeout, policy=usual, roles=others)


def first_work_of(machine: WorkflowMachine, given: Any) -> WorkflowData:
    """The data that a run begins with, if what it is given has the type that the workflow takes."""
    workflow = machine.plan.workflow
    name, wanted = workflow.input.name, workflow.input.type
    takes = f"{machine.name} takes {name!r}, {_one(wanted)}"
    if given is None:
        raise Refused(f"{takes}, and was given nothing")
    if isinstance(given, str) and wanted != "string":
        document = read(given.encode("utf-8", "surrogatepass"))
        if document.problems:
            raise Refused(f"{takes}, and {given[:60]!r} is not one: {document.problems[0].why}")
        given = document.value
    if (found := type_name(given)) != wanted:
        around = isinstance(given, Mapping) and name in given
        remedy = f"; give the {wanted} itself, without an object around it" if around else ""
        raise Refused(f"{takes}, and was given {_one(found)}{remedy}")
    return first_work(workflow, given)


def _one(type_: str) -> str:
    """A type with its article."""
    return type_ if type_ == "null" else f"an {type_}" if type_[0] in "ao" else f"a {type_}"


def notes(machine: WorkflowMachine, outcome: Outcome) -> Iterator[str]:
    """What a person should know: entries of filters that mean no tool, and an end without an output."""
    tools = [tool.name for tool in machine.plan.tools]
    for name, role in machine.plan.roles.items():
        idle = role.idle_entries((*tools, *BUILT_IN))
        yield from (f"role {name}: no tool fits {entry!r}; check the name" for entry in idle)
    if outcome.status == "done" and outcome.result is None:
        output = machine.plan.workflow.output.name
        yield f"{machine.name} gives nothing: what its stop says is null, or no script set {output}"
