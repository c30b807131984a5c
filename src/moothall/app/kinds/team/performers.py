"""Who performs the effects of a team: personas with prompts that are read when they are needed, hooks, facts, files.

What a model is asked for has the shape of a reply of this persona: the colleagues whom it can reach and no others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied
from moothall.agents.ports import Model, Reply, Request, open_ahead
from moothall.agents.roles import Role
from moothall.app.config.models import daily_payment
from moothall.app.kinds.bindings import Provided, RunModels, child_part
from moothall.app.kinds.team.files import PERSONA, Prompts, persona_name, roster_at
from moothall.app.kinds.team.plan import PlanChecker, Planner, draft_schema
from moothall.app.toolbox import Toolbox, under_policies
from moothall.errors import MoothallError, words_of
from moothall.kernel.events import Event, GaveUp
from moothall.kernel.machine import Machine
from moothall.machines.team import lines
from moothall.machines.team.directives import (
    APPROVE_AND_HANDOFF,
    APPROVED,
    HANDOFF_TO_AGENT,
    REPLY_SCHEMA,
    REQUEST_REWORK,
    USER,
)
from moothall.machines.team.plans import PLANNER
from moothall.machines.team.state import (
    AskPlan,
    CallHooks,
    CheckPlan,
    FactRead,
    FileWritten,
    HooksCalled,
    ReadFact,
    Summarise,
    WarmedUp,
    WarmUp,
    WriteFile,
)
from moothall.machines.team.summary import PARTS, summary_in
from moothall.machines.team.summary import SCHEMA as SUMMARY_SCHEMA
from moothall.performers.agents import PROVIDER, AgentPerformer
from moothall.performers.own import own_performers
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Bindings
from moothall.runtime.ports import Context, Performer

REHEARSAL = "rehearsal"
REHEARSED_FILES = "rehearsal.md: a file to try it with"
"""The list of files that a stand-in gives who is asked for one."""


def bind_team(machine: Machine, provided: Provided) -> Bindings:
    """Who performs the effects of a conversation, and of what personas do together."""
    provided = provided.joined_by(machine)
    toolbox = provided.toolbox
    functions = provided.tool_functions
    facts = {**_free_tools(toolbox), **provided.functions}
    tools = ToolPerformer(functions, provided.tool_checks, toolbox.look, toolbox.save, toolbox.lacks)
    prompts = Prompts(provided.prompts)
    models = PersonaModels(provided.model) if provided.model else None
    agents = AgentPerformer(
        functions,
        None,
        provided.shapes,
        prompts=prompts,
        roles=lambda name: Role(),
        models=models,
        pay_for=daily_payment(),
    )
    performers = {
        AskAgent.kind: Performer(AskAgent, agents),
        Summarise.kind: Performer(Summarise, Summariser(agents)),
        CallTool.kind: Performer(CallTool, tools),
        AskPlan.kind: Performer(AskPlan, Planner(agents, is_played=_drafts(provided))),
        CheckPlan.kind: Performer(CheckPlan, PlanChecker(toolbox.workspace.folder)),
        CallHooks.kind: Performer(CallHooks, HookPerformer(provided.functions)),
        ReadFact.kind: Performer(ReadFact, FactPerformer(facts)),
        WarmUp.kind: Performer(WarmUp, Warmer(prompts, models, provided.functions)),
        WriteFile.kind: Performer(WriteFile, FileWriter(toolbox.workspace.folder)),
        **own_performers(provided.performers),
    }
    return Bindings(performers, child=lambda name: child_part(machine, name, provided), beside=True)


def _drafts(provided: Provided) -> bool:
    """Whether somebody is there who can draft a plan: a function, or a model that is more than a stand-in."""
    return PLANNER in provided.functions or provided.model not in ("", REHEARSAL)


def _free_tools(toolbox: Toolbox) -> dict[str, Any]:
    """The tools of a run that may be called without asking anybody; others say no facts."""
    tools = under_policies(tuple(toolbox.tools.values()), "", toolbox.workspace.policies)
    return {tool.name: tool.function for tool in tools if tool.policy == "allow" and tool.function is not None}


class PersonaModels:
    """The models of a run, told what a reply of the persona that is asked may say."""

    def __init__(self, named: str) -> None:
        self._models, self._named = RunModels(named), named

    def __call__(self, asked: AskAgent, level: str) -> Model:
        """The model that plays a persona, sums up or drafts."""
        model = self._models(asked, level)
        if asked.shape != "Any":
            return model
        if isinstance(asked, Summarise):
            return _Shaped(model, lambda _: dict(SUMMARY_SCHEMA))
        if isinstance(asked, AskPlan):
            return _Shaped(model, lambda _: draft_schema())
        if not asked.system.startswith(PERSONA):
            return model
        source, _, persona = asked.system.removeprefix(PERSONA).rpartition(":")
        return _Shaped(model, lambda request: self._persona_schema(asked, request, source, persona))

    def _persona_schema(self, asked: AskAgent, request: Request, source: str, persona: str) -> dict[str, Any]:
        roster = roster_at(source)
        targets = list(roster.targets(persona))
        if self._named == REHEARSAL:
            return _rehearsed_schema(asked, request, targets)
        return _schema([*targets, USER] if roster.personas[persona].accepts_user else targets)


class _Shaped:
    """A model that is told the shape of a reply."""

    def __init__(self, model: Model, schema_of: Callable[[Request], dict[str, Any]]) -> None:
        self._model, self._schema_of = model, schema_of

    async def open(self) -> None:
        """Open the model within."""
        await open_ahead(self._model)

    async def reply(self, request: Request) -> Reply:
        """The reply of the model within."""
        return await self._model.reply(replace(request, schema=self._schema_of(request)))


def _schema(targets: list[str]) -> dict[str, Any]:
    properties = {**REPLY_SCHEMA["properties"]}
    if targets:
        properties["next_agent"] = {**properties["next_agent"], "enum": targets}
    else:
        del properties["next_agent"]
        properties["transition"] = {**properties["transition"], "enum": [REQUEST_REWORK]}
    return {**REPLY_SCHEMA, "properties": properties}


def _rehearsed_schema(asked: AskAgent, request: Request, targets: list[str]) -> dict[str, Any]:
    """The shape of a stand-in's reply. Everybody hands on and speaks to the user in turns, so that talk has an end."""
    said = REHEARSED_FILES if lines.FILES in str(asked.arguments.get("task")) else f"[rehearsal] reply {request.nth}"
    properties: dict[str, Any] = {"content": {"const": said}}
    if targets and request.nth % 2 == 1:
        if asked.arguments.get("work"):
            properties |= {"transition": {"const": APPROVE_AND_HANDOFF}, "approval_status": {"const": APPROVED}}
        else:
            properties["transition"] = {"const": HANDOFF_TO_AGENT}
        properties["next_agent"] = {"enum": targets}
    return {"type": "object", "properties": properties, "required": list(properties)}


class Summariser:
    """Has a stretch of the conversation summed up. A summary that says nothing is a failure, and told as one."""

    def __init__(self, agents: AgentPerformer) -> None:
        self._agents = agents

    async def __call__(self, effect: Summarise, context: Context) -> Event:
        event = await self._agents(effect, context)
        if not isinstance(event, Replied) or summary_in(event) is not None:
            return event
        reason = f"the reply of {event.model or effect.agent} says nothing in {', '.join(PARTS)}"
        return GaveUp(reason, PROVIDER, event.usage, effect.id, model=event.model)


class HookPerformer:
    """Calls hooks in order; one that fails is told and harms nothing."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    async def __call__(self, effect: CallHooks, context: Context) -> Event:
        failed: dict[str, str] = {}
        for call in effect.calls:
            function = self._functions.get(call.hook)
            name = f"{call.hook} ({call.when} of {call.state})"
            if function is None:
                failed[name] = "nobody registered a function of this name"
                continue
            try:
                await function(call.state)
            except Exception as error:  # a user's hook may raise anything, and the conversation goes on
                failed[name] = words_of(error)
        return HooksCalled(failed=failed)


class FactPerformer:
    """Asks a tool what a fact is; one that fails is told and harms nothing."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    async def __call__(self, effect: ReadFact, context: Context) -> Event:
        name = f"{effect.server}/{effect.tool}" if effect.server else effect.tool
        read = FactRead(fact=effect.fact, source=name, at=time.time())
        served = f"{effect.server}_{effect.tool}" if effect.server else effect.tool
        function = self._functions.get(served)
        if function is None:
            return replace(read, problem=f"nobody registered the tool {name!r}")
        try:
            value = await function(**effect.arguments)
            is_wrapped = isinstance(value, Mapping) and value.keys() == {"result"}
            return replace(read, value=value["result"] if is_wrapped else value)
        except Exception as error:  # a user's tool may raise anything, and the conversation goes on
            return replace(read, problem=words_of(error))


class Warmer:
    """Prepares personas while another speaks: their prompts are rendered, their models opened. Nothing is asked."""

    def __init__(self, prompts: Prompts, models: PersonaModels | None, functions: Mapping[str, Any]) -> None:
        self._prompts, self._models, self._functions = prompts, models, functions

    async def __call__(self, effect: WarmUp, context: Context) -> Event:
        ends = await asyncio.gather(*(self._why_not(persona, effect.source) for persona in effect.personas))
        now = time.time()
        ready = {persona: now for persona, why in zip(effect.personas, ends, strict=True) if not why}
        return WarmedUp(ready, {persona: why for persona, why in zip(effect.personas, ends, strict=True) if why})

    async def _why_not(self, persona: str, source: str) -> str:
        """Prepare one persona; why that was not possible. Whoever asks it later hears of it too."""
        try:
            prompt = persona_name(source, persona)
            await asyncio.to_thread(self._prompts.__getitem__, prompt)
            if self._models is not None and persona not in self._functions:
                known = roster_at(source).personas[persona]
                asked = AskAgent(persona, "", system=prompt, model=known.model, level=known.level)
                await open_ahead(await asyncio.to_thread(self._models, asked, known.level))
        except (MoothallError, OSError) as error:
            return words_of(error)
        return ""


class FileWriter:
    """Writes files of a plan into the workspace of the run, of which a branch has its own; never outside."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def __call__(self, effect: WriteFile, context: Context) -> Event:
        return await asyncio.to_thread(_write_file, effect, self._folder or effect.root)


def _write_file(effect: WriteFile, folder: str) -> Event:
    root = Path(folder).resolve()
    path = (root / effect.path).resolve()
    if not folder or root not in path.parents:
        return FileWritten(path=effect.path, problem="it is outside the workspace and was not written")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(effect.text, encoding="utf-8")
    except OSError as error:
        return FileWritten(path=effect.path, problem=f"it cannot be written: {error.strerror}")
    return FileWritten(path=effect.path)
