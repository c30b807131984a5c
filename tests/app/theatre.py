"""Workflows on a stage: agents that say what the test says, and a record of all that they were shown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.agents.conversation import Converse
from moothall.agents.ports import Reply, Request
from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.workflow.kind import bind_workflow, first_work_of
from moothall.app.kinds.workflow.result import WorkflowResult, result_of
from moothall.app.kinds.workflow.spot import machine_at, source_with
from moothall.app.runs.context import SystemClock
from moothall.app.runs.outcome import outcome_of
from moothall.machines.workflow.compiler import WorkflowMachine
from moothall.performers.conversation import ConversePerformer
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, Hall, begin
from moothall.runtime.journal import Head, Record
from moothall.runtime.ports import Performer, Store
from moothall.stores.memory import MemoryStore

RUN = "stage"
Said = str | Reply
Plain = dict[str, Any]


def calling(tool: str, text: str = "", id: str = "", **arguments: Any) -> Reply:
    """A reply that calls a tool."""
    return Reply(text, calls=(ToolCall(tool, arguments, id or f"{tool}-1"),))


class Prompter:
    """A model that says one line after the other for each agent, and remembers what it was shown."""

    def __init__(self, **lines: Sequence[Said]) -> None:
        self.lines = {agent: list(said) for agent, said in lines.items()}
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        said = self.lines[request.agent].pop(0)
        return Reply(said) if isinstance(said, str) else said

    def shown(self, agent: str) -> list[list[tuple[str, str]]]:
        """What an agent was shown, request by request, as roles and texts."""
        return [
            [(one["role"], one.get("text", json.dumps(one.get("value")))) for one in request.messages]
            for request in self.requests
            if request.agent == agent
        ]


@dataclass
class Played:
    """A run that has gone as far as it goes."""

    hall: Hall
    machine: WorkflowMachine
    head: Head
    entries: list[Mapping[str, Any]]
    result: WorkflowResult
    model: Prompter = field(default_factory=Prompter)

    @property
    def common(self) -> Mapping[str, Any]:
        return self.result.common_data


def compiled(folder: Path, *workflows: Plain, roles: Plain | None = None, functions: str = "") -> WorkflowMachine:
    """The machine of the first of these workflows, which stand in one file."""
    path = folder / "workflows.json"
    path.write_text(json.dumps(list(workflows)))
    named = {"roles": "", "functions": ""}
    if roles is not None:
        (folder / "roles.json").write_text(json.dumps(roles))
        named["roles"] = str(folder / "roles.json")
    if functions:
        (folder / "functions.py").write_text(functions)
        named["functions"] = str(folder / "functions.py")
    return machine_at(source_with(f"{path}:{workflows[0]['workflow_name']}", **named))


def stage(machine: WorkflowMachine, model: Prompter, store: Store | None = None) -> Hall:
    """A hall in which the agents of a workflow say what the model says."""
    bindings = bind_workflow(machine, Provided("rehearsal"))
    converse = bindings.performers[Converse.kind].perform
    assert isinstance(converse, ConversePerformer)
    performers = {
        **bindings.performers,
        Converse.kind: Performer(Converse, replace(converse, model=lambda level: model)),
    }
    hall = Hall(store or MemoryStore(), SystemClock(), {})
    hall.bind(RUN, Bindings(performers, child=bindings.child, evaluate=bindings.evaluate))
    return hall


def record_of(machine: WorkflowMachine, began: float = 0.0) -> Record:
    limits = machine.budget.limits() if machine.budget is not None else {}
    return Record(RUN, machine.name, machine.digest, began, limits=limits)


async def play(machine: WorkflowMachine, given: Any = "tea", model: Prompter | None = None) -> Played:
    """Run a workflow as far as it goes."""
    model = model or Prompter()
    hall = stage(machine, model)
    hall.store.crowd += 1  # the run stays in the hall, so that it can be looked at
    await begin(hall, record_of(machine, hall.clock.now()), machine, first_work_of(machine, given))
    head = await drive(hall, RUN)
    entries = await hall.store.entries(RUN)
    return Played(
        hall, machine, head, entries, await result_of(hall.store, machine, outcome_of(machine, RUN, head)), model
    )
