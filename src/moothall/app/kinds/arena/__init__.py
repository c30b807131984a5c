"""The arena: a request is debated before anything is executed, and every run is audited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moothall.agents.ask import AskAgent
from moothall.app.kinds.arena.files import file_findings, is_configuration
from moothall.app.kinds.arena.place import found_locks, workspace_at
from moothall.app.kinds.arena.result import GOOD, result_of, text_of
from moothall.app.kinds.arena.sections import sections_of
from moothall.app.kinds.arena.standings import rating_measures, standings
from moothall.app.kinds.arena.workspace import LocalWorkspace, saves_at
from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.kind import Kind, Presented
from moothall.app.kinds.python import PythonKind
from moothall.app.report.projections.costs import Costs
from moothall.app.report.section import Chart, Section
from moothall.app.runs.outcome import Outcome
from moothall.errors import Refused
from moothall.kernel.effects import Effect
from moothall.kernel.machine import Machine
from moothall.machines.arena.case import Case
from moothall.machines.arena.declaration import DECLARATION, declaration
from moothall.machines.arena.definition import SHAPE
from moothall.machines.arena.effects import EFFECTS
from moothall.machines.arena.machine import NAME, arena
from moothall.machines.arena.plan import AGENTS
from moothall.machines.arena.review import REVIEW, review
from moothall.performers.arena import Surroundings
from moothall.runtime.hall import Bindings
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "request": {"type": "string", "title": "Request", "format": "text", "description": "what is to be done"},
        "workspace": {"type": "string", "title": "Workspace", "format": "path"},
        "bands": {"enum": ["seed", "cautious"], "title": "Bands", "default": "seed"},
        "dry_run": {"type": "boolean", "title": "Stop before anything is executed"},
    },
    "required": ["request", "workspace"],
}
"""What a person fills in who starts the arena."""
REHEARSED: Mapping[str, Any] = {
    "verdict": ["approve"],
    "confidence": [0.7, 0.8, 0.9],
    "plan": [None],
    "tasks": [[{"id": "say", "kind": "model", "prompt": "Say that this is a rehearsal."}]],
}
"""What agents who rehearse agree on: a plan that can be carried out anywhere and touches no file."""
FUNCTION = "function"
"""The model of an agent that is a function."""


class ArenaKind(PythonKind):
    """The arena."""

    name = NAME
    effects: Mapping[str, type[Effect]] = {AskAgent.kind: AskAgent, **EFFECTS}

    def find(self, source: str) -> Machine | None:
        """The machine that is called so."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The arena, the machine that locks a store, or the one by which a person judges a blocked plan."""
        make = {NAME: arena, DECLARATION: declaration, REVIEW: review}.get(name)
        return None if make is None else make()

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def data(self, machine: Machine, given: Any) -> Any:
        """A request and how it is to be dealt with; the workspace is the current folder where none is named."""
        case = super().data(machine, given)
        if not isinstance(case, Case):
            return case
        return replace(case, workspace=str(Path(case.workspace or ".").resolve()))

    def own_saves(self, data: Any) -> Any:
        """Those that its tasks are rolled back to."""
        folder = data.get("workspace") if isinstance(data, Mapping) else ""  # texts may be forgotten
        return saves_at(Path(folder)) if folder else None

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """The request, where it is carried out, and how careful to be."""
        if machine.data is not Case:
            return super().form(machine)
        told = f"the folder that is worked in and changed; `docs` means {Path('docs').absolute()}"
        fields = FORM["properties"]
        return {**FORM, "properties": {**fields, "workspace": {**fields["workspace"], "description": told}}}

    def filled_in(self, machine: Machine, given: Any) -> tuple[Machine, Any]:
        """A request in a folder that may be worked in; the person who names it is not in the server's own."""
        if machine.data is not Case:
            return machine, given
        plain = dict(given) if isinstance(given, Mapping) else {"request": given}
        request, folder = str(plain.get("request") or ""), str(plain.get("workspace") or "")
        if not folder.strip():
            raise Refused("no workspace is named; name the folder that is worked in and changed")
        return machine, {**plain, "request": request, "workspace": str(workspace_at(folder, request))}

    def folder(self, given: Any) -> str:
        """The workspace."""
        named = str(given.get("workspace") or "").strip() if isinstance(given, Mapping) else ""
        return str(Path(named).resolve()) if named else ""

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its agents, and who looks around, remembers and carries out tasks."""

        def model_of(agent: str, named: str) -> str:
            return FUNCTION if agent in provided.functions else named or provided.model

        bindings = bind_functions(machine, provided, lambda nth: REHEARSED)
        around = Surroundings(found_locks, model_of, LocalWorkspace)
        return replace(bindings, performers={**around.performers(), **bindings.performers})

    def asked(self, machine: Machine) -> frozenset[str]:
        """Its agents."""
        return frozenset(AGENTS) if machine.name == NAME else frozenset()

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """Those that its configuration names."""
        if isinstance(data, Case):
            players = data.config.agents.items()
            yield from (player.model for agent, player in players if player.model and agent not in given)

    def examine(self, source: str, check: Any) -> Iterator[Any] | None:
        """What is wrong with a configuration; None where the source is none."""
        return file_findings(Path(source)) if is_configuration(Path(source)) else None

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of a configuration."""
        return SHAPE.plain

    def template(self, name: str) -> str | None:
        """A configuration with what counts anyhow."""
        plain = {
            "$comment": f"{name}: an arena; moot schema arena tells what each key means",
            "bands": "cautious",
            "weights": {"security": 2.0, "critic": 1.5, "solution": 1.2, "analyst": 1.0, "optimizer": 0.8},
            "deadline": 86400,
            "timeout": 120,
        }
        return json.dumps(plain, indent=2) + "\n"

    def way_to_run(self, file: str) -> str:
        """The command that runs the arena as a file configures it."""
        return f"moot arena -c {file} 'some text'"

    async def sections(self, store: Store, run: RunId, data: Any, costs: Costs) -> tuple[Section, ...]:
        """How it was decided and what was done, and the ratings of its agents with their intervals."""
        ratings = await self.overview(store)
        return (*sections_of(data), *ratings) if isinstance(data, Case) else ratings

    async def overview(self, store: Store) -> tuple[Section, ...]:
        """The ratings of its agents, with their intervals."""
        measures = rating_measures(await standings(store))
        return (Section("The ratings", (Chart("Ratings", measures),)),) if measures else ()

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """What became of the request."""
        if not isinstance(outcome.data, Case):
            return await super().present(store, machine, outcome)
        plain = result_of(machine, outcome, await store.entries(outcome.run))
        if outcome.status != "done":
            text = "" if outcome.status in ("waiting", "running", "stuck") else text_of(outcome)
            return Presented(plain, text, outcome.status)
        return Presented(plain, text_of(outcome), "done" if outcome.data.outcome in GOOD else "failed")


KIND: Kind = ArenaKind()
