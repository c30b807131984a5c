"""Workflows from Python: load files, execute one by name, look at its agents and conversations.

Each execution is a durable run of the workflow's machine; nothing here decides. Agents, contexts and the other names
are views of the latest run: of its data and of what was said in its threads, as of the latest entry of its journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from moothall.agents.conversation import Seat, shown_to_scripts
from moothall.app.kinds.bindings import Functions
from moothall.app.kinds.roles import document_at
from moothall.app.kinds.workflow.expression import evaluate
from moothall.app.kinds.workflow.files import files_at, list_workflows, names_at, workflow_named
from moothall.app.kinds.workflow.result import WorkflowResult, result_of
from moothall.app.kinds.workflow.spot import Spot, machine_at
from moothall.app.runs.begin import new_id
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Committed, News
from moothall.app.toolbox import Given
from moothall.errors import Refused
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget
from moothall.kernel.step import Failed, Value
from moothall.machines.workflow.compiler import WorkflowMachine
from moothall.machines.workflow.data import LastReply, WorkflowData
from moothall.machines.workflow.definition import Context
from moothall.machines.workflow.plan import Plan
from moothall.runtime.journal import RunId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkflowAgent:
    """A role at work in a context, as of the latest entry of the run."""

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
    """A conversation that agents share, as of the latest entry of the run."""

    name: str
    max_length: int
    agents: tuple[str, ...]
    messages: tuple[Mapping[str, Any], ...]
    """What is kept of it, with the roles and contents that scripts see."""


@dataclass(frozen=True, slots=True)
class WorkflowTerms:
    """What workflows are executed with; whoever is not a function in `agents` is played by the model.

    `workspace` is the folder that agents work in with their tools, or a `Workspace` that also says how a command is
    protected and which tools need a person's word.
    """

    agents: Functions = field(default_factory=dict)
    model: str = ""
    budget: Budget | None = None
    roles: str = ""
    functions: str = ""
    workspace: Given = None


class WorkflowStateMachine:
    """Executes workflows by name. Give it a `Moothall` to share a store; else it opens the usual one each time.

    What it tells of a run is true at the latest entry of its journal, also while the run goes on.
    """

    def __init__(self, terms: WorkflowTerms | None = None, *, hall: Moothall | None = None) -> None:
        self.terms = terms or WorkflowTerms()
        self.workflow_configs: dict[str, Mapping[str, Any]] = {}
        self._hall = hall
        self._paths: dict[str, Path] = {}
        self._seen = _Seen()

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
        terms, seen = self.terms, _Seen(new_id(machine) if run_id is None else run_id)
        self._seen = seen
        with hall.heard_by(seen):
            outcome = await hall.run(
                machine,
                given,
                agents=terms.agents,
                model=terms.model,
                budget=terms.budget,
                run_id=seen.run_id,
                workspace=terms.workspace,
            )
        return await result_of(hall.store, seen.machine or machine, outcome)

    @property
    def run_id(self) -> RunId:
        """The id of the latest run; "" before one has begun."""
        return self._seen.run_id if self._seen.machine is not None else ""

    @property
    def common_data(self) -> Mapping[str, Any]:
        """What the agents and scripts of the workflow share."""
        return self._seen.data.common_data

    @property
    def agents(self) -> Mapping[str, WorkflowAgent]:
        """The agents of the workflow, by their roles."""
        plan, spoken = self._seen.plan, self._seen.data.agents
        seats = {} if plan is None else plan.seats
        return {
            name: WorkflowAgent(name, seat.thread, seat.side, spoken.get(name, LastReply()))
            for name, seat in seats.items()
        }

    @property
    def contexts(self) -> Mapping[str, WorkflowContext]:
        """The conversations of the workflow, by their names."""
        plan = self._seen.plan
        return (
            {} if plan is None else {context.name: self._context(plan, context) for context in plan.workflow.contexts}
        )

    def _context(self, plan: Plan, context: Context) -> WorkflowContext:
        starting = tuple({"role": message.role, "text": message.content} for message in context.starting_messages)
        seat = Seat("", context.name, "assistant", context.max_length, starting)
        present = tuple(name for name, known in plan.seats.items() if known.thread == context.name)
        kept = shown_to_scripts(seat, self._seen.threads.get(context.name, ()))
        return WorkflowContext(context.name, context.max_length, present, tuple(kept))

    @property
    def sub_workflow_result(self) -> Any:
        """What the last sub-workflow gave."""
        return self._seen.data.sub_workflow_result

    @property
    def last_agent_response(self) -> str:
        """What was said in the last reply of an agent."""
        return self._seen.last_reply.last_response

    @property
    def last_tool_calls(self) -> tuple[Any, ...]:
        """The calls of tools in the last reply of an agent."""
        return self._seen.last_reply.tool_calls

    @property
    def last_parsing_tool_calls(self) -> tuple[Any, ...]:
        """The calls of parsing tools in the last reply of an agent."""
        return self._seen.last_reply.parsing_tool_calls

    def evaluate_expression(self, expression: str) -> Any:
        """The value of a text as the workflow itself would evaluate it now: JavaScript in a process of its own.

        None where it has no value. A text that is not an expression is its own value. It blocks for a moment.
        """
        scope = {
            "common_data": self.common_data,
            "agents": {
                name: {**encode(self._seen.data.agents.get(name, LastReply())), "role": agent.context_role}
                for name, agent in self.agents.items()
            },
            "contexts": {
                name: {"messages": context.messages, "max_length": context.max_length}
                for name, context in self.contexts.items()
            },
            "sub_workflow_result": self.sub_workflow_result,
            "last_agent_response": self.last_agent_response,
            "last_tool_calls": self.last_tool_calls,
            "last_parsing_tool_calls": self.last_parsing_tool_calls,
            "now": self._seen.at,
            "seed": self.run_id,
        }
        match evaluate(expression, encode(scope), "output"):
            case Value(value=value):
                return value
            case Failed(reason=reason):
                raise Refused(f"{expression!r} cannot be evaluated: {reason}")
            case _:
                return None

    def get_agent(self, role: str) -> WorkflowAgent:
        """An agent of the latest execution, by its role."""
        return self._require_known(self.agents, "agent", role)

    def get_context(self, name: str) -> WorkflowContext:
        """A conversation of the latest execution, by its name."""
        return self._require_known(self.contexts, "context", name)

    def get_tool_calls(self, agent_role: str) -> tuple[Any, ...]:
        """The calls of tools in an agent's last reply."""
        return self.get_agent(agent_role).get_tool_calls()

    def _require_known(self, known: Mapping[str, T], what: str, name: str) -> T:
        if not self.run_id:
            raise Refused(f"there is no {what} {name!r} yet; execute a workflow first")
        if name not in known:
            raise Refused(f"run {self.run_id} has no {what} {name!r}; it has {', '.join(known) or 'none'}")
        return known[name]


class _Seen:
    """A run as far as its journal goes: its machine, its data, and what was said in its conversations."""

    def __init__(self, run_id: RunId = "") -> None:
        self.run_id = run_id
        self.machine: WorkflowMachine | None = None
        self.data = WorkflowData()
        self.threads: dict[str, list[Any]] = {}
        self.at = 0.0

    def __call__(self, news: News) -> None:
        """Something happened, perhaps in another run."""
        if isinstance(news, Committed) and news.run == self.run_id:
            assert isinstance(news.machine, WorkflowMachine)
            self.machine, self.data, self.at = news.machine, news.head.snapshot.data, news.entry.at
            for append in news.entry.appends:
                self.threads.setdefault(append.thread, []).append(append.message)

    @property
    def plan(self) -> Plan | None:
        """The plan of the workflow; None before its first entry."""
        return None if self.machine is None else self.machine.plan

    @property
    def last_reply(self) -> LastReply:
        """The last reply of whoever spoke last."""
        return self.data.agents.get(self.data.speaker, LastReply())
