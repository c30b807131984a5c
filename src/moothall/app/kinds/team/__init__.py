"""Teams: personas that hand off, approve and ask for rework, in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Tool
from moothall.agents.workspace import Policy
from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.kind import Kind, Presented
from moothall.app.kinds.python import PythonKind
from moothall.app.kinds.source import source_of
from moothall.app.kinds.team.files import is_team_file, machine_of, problems_of, roster_of, source_of_team, template
from moothall.app.kinds.team.performers import bind_team
from moothall.app.kinds.team.plan import drafted_machine
from moothall.app.kinds.team.present import figures, joined_figures, messages_of, result_of, sections_of
from moothall.app.kinds.team.session import Session
from moothall.app.kinds.team.tools import uses_of
from moothall.app.report.projections.costs import Costs
from moothall.app.report.section import Section
from moothall.app.runs.outcome import Outcome
from moothall.errors import Refused
from moothall.kernel.codec import encode
from moothall.kernel.effects import Effect
from moothall.kernel.machine import Machine
from moothall.machines.team.conversation import NAME
from moothall.machines.team.definition import SHIPPED, Approval
from moothall.machines.team.schema import SHAPE
from moothall.machines.team.state import (
    THREAD,
    TRANSITIONS,
    AskPlan,
    CallHooks,
    CheckPlan,
    Conversation,
    ReadFact,
    Summarise,
    WarmUp,
    WriteFile,
)
from moothall.runtime.hall import Bindings
from moothall.runtime.journal import Reader, RunId
from moothall.runtime.ports import Store

EFFECTS = (AskAgent, Summarise, AskPlan, CheckPlan, CallTool, CallHooks, ReadFact, WarmUp, WriteFile)
AUTONOMY = ("manual", "review", "auto")
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "autonomy": {
            "enum": list(AUTONOMY),
            "title": "Who approves",
            "description": "you each time, you where it is doubtful, or nobody",
        },
    },
}
"""What a person fills in who starts a conversation."""
FOLDER = "workspace"
"""Where files of a plan are written, beside where the conversation began."""


class TeamKind(PythonKind):
    """Conversations of teams that ship and of team files, and what personas do together."""

    name = NAME
    effects: Mapping[str, type[Effect]] = {effect.kind: effect for effect in EFFECTS}

    def find(self, source: str) -> Machine | None:
        """The machine of a team, or of something that personas do together."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The same, also by the name of a team that ships; None where it is none of a team."""
        return machine_of(source_of_team(name) if name in SHIPPED else name)

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """A drafted workflow, by its file; others are known by their names alone."""
        return drafted_machine(name) if name.endswith(".json") and not is_team_file(name) else None

    def examine(self, source: str, check: Check) -> Iterator[Examined] | None:
        """What is wrong with a team file."""
        return iter((_examine(source),)) if is_team_file(source) else None

    def data(self, machine: Machine, given: Any) -> Any:
        """A conversation at its beginning. A text is what the user says first, and comes as an event."""
        if isinstance(given, str) and machine.data is Conversation:
            return Conversation()
        return super().data(machine, given)

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """Who approves, and where files go; what a conversation is about is said in it."""
        if machine.data is not Conversation:
            return super().form(machine)
        told = f"where files of a plan are written, else {Path(FOLDER).absolute()}"
        files = {"type": "string", "title": "Folder", "description": told}
        return {**FORM, "properties": {**FORM["properties"], "folder": files}}

    def filled_in(self, machine: Machine, given: Any) -> tuple[Machine, Any]:
        """A conversation at its beginning."""
        if machine.data is not Conversation or not isinstance(given, Mapping):
            return machine, given
        who = given.get("autonomy")
        if who not in (None, *AUTONOMY):
            raise Refused(f"autonomy is {', '.join(AUTONOMY)}, not {who!r}")
        approval, workspace = Approval(who, who) if who else None, str(Path(given.get("folder") or FOLDER).absolute())
        return machine, Conversation(autonomy=approval, now=time(), workspace=workspace, seed=token_hex(8))

    def hears(self, machine: Machine) -> bool:
        """A conversation is typed to."""
        return machine.data is Conversation

    async def hear(self, hall: Any, machine: Machine, run: RunId, line: str, by: str) -> str:
        """Say it to the team, or give a command: `!handoff CEO`."""
        if machine.data is not Conversation:
            return await super().hear(hall, machine, run, line, by)
        return await Session(hall, machine, run, by=by).type(line)

    async def sections(self, store: Store, run: RunId, data: Any, costs: Costs) -> tuple[Section, ...]:
        """The conversation, where it stands in its team, what was approved, and every change."""
        if not isinstance(data, Conversation):
            return ()
        source = (await store.load(run)).record.source
        said, moves = await messages_of(store, run, THREAD), await messages_of(store, run, TRANSITIONS)
        return sections_of(roster_of(source), data, said, moves)

    def with_tools(self, machine: Machine, data: Any, tools: Sequence[Tool], policies: Mapping[str, Policy]) -> Any:
        """The conversation with the tools that its personas name, as far as they are here."""
        if not isinstance(data, Conversation):
            return data
        return replace(data, uses=uses_of(roster_of(source_of(machine)), tools, data.uses or (), policies))

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its personas, hooks and sources."""
        return bind_team(machine, provided)

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """Those of its personas."""
        if isinstance(data, Conversation):
            personas = roster_of(source_of(machine)).personas.items()
            yield from (persona.model for name, persona in personas if persona.model and name not in given)

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of a team file."""
        return SHAPE.plain

    def resembles(self, content: Any) -> str:
        """A team."""
        is_team = isinstance(content, Mapping) and "team_name" in content
        return f"a team, for `moot {NAME} -c FILE`" if is_team else ""

    def template(self, name: str) -> str | None:
        """A team file to begin with."""
        return template(name)

    def way_to_run(self, file: str) -> str:
        """The command that talks with the team of a file."""
        return f"moot team -c {file}"

    async def figures(self, store: Store, run: str, machine: Machine) -> Mapping[str, Any]:
        """How many transitions had been worked out before, and what preparing personas brought."""
        if machine.data is not Conversation:
            return {}
        head = Reader(machine, self.effects).head((await store.load(run)).head)
        return figures(head.snapshot.data, await messages_of(store, run, TRANSITIONS))

    def figures_together(self, before: Mapping[str, Any], figures: Mapping[str, Any]) -> Mapping[str, Any]:
        """How many transitions several conversations had, how many of them had been worked out before, and warming."""
        return joined_figures(before, figures) if figures else before

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """How a conversation stands."""
        if not isinstance(outcome.data, Conversation):
            return await super().present(store, machine, outcome)
        result = await result_of(store, roster_of(source_of(machine)), outcome)
        return Presented(result, result["reason"], outcome.status)


KIND: Kind = TeamKind()


def _examine(source: str) -> Examined:
    path = Path(source)
    problems = problems_of(path)
    told = tuple(
        Told(problem.level, problem.code, f"{path}:{problem.line}", problem.why, problem.remedy, problem.pointer or "/")
        for problem in problems
    )
    errors = sum(problem.level == "error" for problem in problems)
    summary = f"{path}: a team: {errors} errors, {len(problems) - errors} warnings"
    # What a conversation can take at most is not known: a person goes on with it as long as they like.
    return Examined({"file": str(path), "findings": encode(problems)}, told, {}, summary)
