"""Teams: personas that hand off, approve and ask for rework, in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moothall.agents.ask import AskAgent, CallTool
from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.kind import Kind, Presented
from moothall.app.kinds.python import PythonKind
from moothall.app.kinds.source import find
from moothall.app.kinds.team.files import is_team_file, machine_of, problems_of, template
from moothall.app.kinds.team.performers import bind_team
from moothall.app.kinds.team.present import figures, messages_of, result_of
from moothall.app.runs.outcome import Outcome
from moothall.kernel.codec import encode
from moothall.kernel.effects import Effect
from moothall.kernel.machine import Machine
from moothall.machines.team.conversation import NAME
from moothall.machines.team.schema import SHAPE
from moothall.machines.team.state import TRANSITIONS, CallHooks, Conversation, ReadFact, Summarise, WriteFile
from moothall.runtime.hall import Cast
from moothall.runtime.journal import Reader
from moothall.runtime.ports import Store


class TeamKind(PythonKind):
    """Conversations of teams that ship and of team files, and what personas do together."""

    name = NAME
    effects: Mapping[str, type[Effect]] = {
        effect.kind: effect for effect in (AskAgent, Summarise, CallTool, CallHooks, ReadFact, WriteFile)
    }

    def find(self, source: str) -> Machine | None:
        """The machine of a team, or of something that personas do together."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The same; None where it is none of a team."""
        return machine_of(name)

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """A drafted workflow, by its file; others are known by their names alone."""
        return find(name) if name.endswith(".json") and not is_team_file(name) else None

    def examine(self, source: str, check: Check) -> Iterator[Examined] | None:
        """What is wrong with a team file."""
        return iter((_examined(source),)) if is_team_file(source) else None

    def data(self, machine: Machine, given: Any) -> Any:
        """A conversation at its beginning. A text is what the user says first, and comes as an event."""
        if isinstance(given, str) and machine.data is Conversation:
            return Conversation()
        return super().data(machine, given)

    def bind(self, machine: Machine, provided: Provided) -> Cast:
        """Its personas, hooks and sources."""
        return bind_team(machine, provided)

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of a team file."""
        return SHAPE.plain

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

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """How a conversation stands."""
        if not isinstance(outcome.data, Conversation):
            return await super().present(store, machine, outcome)
        result = await result_of(store, outcome)
        return Presented(result, result["reason"], outcome.status)


KIND: Kind = TeamKind()


def _examined(source: str) -> Examined:
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
