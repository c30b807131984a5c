"""Workflows from Python: load files, execute one by name, look at its agents and conversations afterwards.

Each execution is a durable run of the workflow's machine; nothing here decides. Agents and contexts are views of the
latest run, made from its data and from the threads in its journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from moothall.agents.conversation import Seat, shown_to_scripts
from moothall.app.kinds.bindings import Functions
from moothall.app.kinds.roles import document_at
from moothall.app.kinds.workflow.files import files_at, list_workflows, names_at, workflow_named
from moothall.app.kinds.workflow.result import WorkflowResult, result_of
from moothall.app.kinds.workflow.spot import Spot, machine_at
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.errors import Refused
from moothall.kernel.machine import Budget
from moothall.machines.workflow.compiler import WorkflowMachine
from moothall.machines.workflow.data import LastReply
from moothall.runtime.journal import RunId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkflowAgent:
    """A role at work in a context, as the latest run left it."""

    role: str
    context: str
    context_role: str
    _spoken: LastReply = field(default_factory=LastReply)

    def get_last_response(self) -> str:
        """What it said last; "" where it has not spoken."""
        return self._spoken.last_response

    def get_tool_calls(self) -> tuple[Any, ...]:
        """The calls of tools in its last reply."""
        return self._spoken.tool_calls

    def get_parsing_tool_calls(self) -> tuple[Any, ...]:
        """The calls of parsing tools in its last reply."""
        return self._spoken.parsing_tool_calls

    def get_role(self) -> str:
        """The name of its role."""
        return self.role

    def get_context_role(self) -> str:
        """The side it takes in its context: user or assistant."""
        return self.context_role


@dataclass(frozen=True, slots=True)
class WorkflowContext:
    """A conversation that agents share, as the latest run left it."""

    name: str
    max_length: int
    agents: tuple[str, ...]
    messages: tuple[Mapping[str, Any], ...]
    """What is kept of it, with the roles and contents that scripts see."""


@dataclass(frozen=True, slots=True)
class WorkflowTerms:
    """What workflows are executed with; whoever is not a function in `agents` is played by the model."""

    agents: Functions = field(default_factory=dict)
    model: str = ""
    budget: Budget | None = None
    roles: str = ""
    functions: str = ""


class WorkflowStateMachine:
    """Executes workflows by name. Give it a `Moothall` to share a store; else it opens the usual one each time."""

    def __init__(self, terms: WorkflowTerms | None = None, *, hall: Moothall | None = None) -> None:
        self.terms = terms or WorkflowTerms()
        self.workflow_configs: dict[str, Mapping[str, Any]] = {}
        self.common_data: Mapping[str, Any] = {}
        self.run_id: RunId = ""
        self._hall = hall
        self._paths: dict[str, Path] = {}
        self._agents: dict[str, WorkflowAgent] = {}
        self._contexts: dict[str, WorkflowContext] = {}

    def load_workflow_configs(self, path: str | Path | None = None) -> tuple[str, ...]:
        """Know the workflows of a file or a folder, else all that can be run by name from here; their names."""
        files = [Path(known.file) for known in list_workflows()] if path is None else files_at(Path(path))
        for file in dict.fromkeys(files):
            document = document_at(file)
            for name in names_at(file):
                config = workflow_named(document, name)
                if config is not None and (path is not None or name not in self._paths):
                    self.workflow_configs[name], self._paths[name] = config, file
        return tuple(self.workflow_configs)

    async def execute_workflow(
        self, workflow_name: str, input_params: Any, *, run_id: RunId | None = None
    ) -> WorkflowResult:
        """Run a workflow to its end, or until it waits for a person. Durable: `moot resume` goes on after a crash."""
        if workflow_name not in self._paths:
            known = ", ".join(self.workflow_configs) or "none; call load_workflow_configs first"
            raise Refused(f"no workflow {workflow_name!r} is loaded; there are: {known}")
        terms = self.terms
        spot = Spot(self._paths[workflow_name], workflow_name, terms.roles, terms.functions)
        machine = machine_at(spot.source)
        if self._hall is not None:
            return await self._execute(self._hall, machine, input_params, run_id)
        async with Moothall() as hall:
            return await self._execute(hall, machine, input_params, run_id)

    async def _execute(
        self, hall: Moothall, machine: WorkflowMachine, given: Any, run_id: RunId | None
    ) -> WorkflowResult:
        terms = self.terms
        outcome = await hall.run(
            machine, given, agents=terms.agents, model=terms.model, budget=terms.budget, run_id=run_id
        )
        await self._look(hall, machine, outcome)
        return await result_of(hall.store, machine, outcome)

    async def _look(self, hall: Moothall, machine: WorkflowMachine, outcome: Outcome) -> None:
        """Remember how a run left its agents and conversations."""
        self.run_id, self.common_data = outcome.run, outcome.data.common_data
        seats = machine.plan.seats
        self._agents = {
            name: WorkflowAgent(name, seat.thread, seat.side, outcome.data.agents.get(name, LastReply()))
            for name, seat in seats.items()
        }
        self._contexts = {}
        grown = (await hall.store.load(outcome.run)).head["snapshot"].get("threads", {})
        for context in machine.plan.workflow.contexts:
            count = grown[context.name]["count"] if context.name in grown else 0
            said = await hall.store.thread(outcome.run, context.name, 0, count)
            present = tuple(name for name, seat in seats.items() if seat.thread == context.name)
            seat = seats[present[0]] if present else Seat("", context.name, "user", context.max_length)
            kept = shown_to_scripts(replace(seat, most=context.max_length), said)
            self._contexts[context.name] = WorkflowContext(context.name, context.max_length, present, tuple(kept))

    def get_agent(self, role: str) -> WorkflowAgent:
        """An agent of the latest execution, by its role."""
        return self._require_known(self._agents, "agent", role)

    def get_context(self, name: str) -> WorkflowContext:
        """A conversation of the latest execution, by its name."""
        return self._require_known(self._contexts, "context", name)

    def get_tool_calls(self, agent_role: str) -> tuple[Any, ...]:
        """The calls of tools in an agent's last reply."""
        return self.get_agent(agent_role).get_tool_calls()

    def _require_known(self, known: Mapping[str, T], what: str, name: str) -> T:
        if not self.run_id:
            raise Refused(f"there is no {what} {name!r} yet; execute a workflow first")
        if name not in known:
            raise Refused(f"run {self.run_id} has no {what} {name!r}; it has {', '.join(known) or 'none'}")
        return known[name]
