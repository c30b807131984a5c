"""Who performs the effects of a team: personas with prompts that are read when they are needed, hooks, facts, files.

What a model is asked for has the shape of a reply of this persona: the colleagues whom it can reach and no others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moothall.agents.ask import AskAgent, CallTool
from moothall.agents.ports import Model, Reply, Request
from moothall.agents.roles import Role
from moothall.app.kinds.bindings import Provided, RunModels, child_part
from moothall.app.kinds.team.files import PERSONA, Prompts, roster_at
from moothall.app.toolbox import Toolbox, under_policies
from moothall.errors import words_of
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.machines.team.directives import REPLY_SCHEMA, USER
from moothall.machines.team.state import CallHooks, FactRead, FileWritten, HooksCalled, ReadFact, Summarise, WriteFile
from moothall.performers.agents import AgentPerformer
from moothall.performers.own import own_performers
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Cast
from moothall.runtime.ports import Context, Performer

REHEARSAL = "rehearsal"


def bind_team(machine: Machine, provided: Provided) -> Cast:
    """Who performs the effects of a conversation, and of what personas do together."""
    provided = provided.joined_by(machine)
    functions = {**_free_tools(provided.toolbox), **provided.functions}
    prompts = Prompts(provided.prompts)
    models = PersonaModels(provided.model) if provided.model else None
    agents = AgentPerformer(
        functions,
        models.own if models else None,
        provided.shapes,
        prompts=prompts,
        roles=lambda name: Role(),
        models=models,
    )
    performers = {
        AskAgent.kind: Performer(AskAgent, agents),
        Summarise.kind: Performer(Summarise, agents),
        CallTool.kind: Performer(CallTool, ToolPerformer(functions, provided.tool_checks)),
        CallHooks.kind: Performer(CallHooks, HookPerformer(functions)),
        ReadFact.kind: Performer(ReadFact, FactPerformer(functions)),
        WriteFile.kind: Performer(WriteFile, write_file),
        **own_performers(provided.performers),
    }
    return Cast(performers, child=lambda name: child_part(machine, name, provided), beside=True)


def _free_tools(toolbox: Toolbox) -> dict[str, Any]:
    """The tools of a run that may be called without asking anybody; others are not for personas."""
    tools = under_policies(tuple(toolbox.tools.values()), "", toolbox.workspace.policies)
    return {tool.name: tool.function for tool in tools if tool.policy == "allow" and tool.function is not None}


class PersonaModels:
    """The models of a run, told what a reply of the persona that is asked may say."""

    def __init__(self, named: str) -> None:
        self._models, self._named = RunModels(named), named
        self.own = self._models.own

    def __call__(self, asked: AskAgent, level: str) -> Model:
        """The model that plays a persona."""
        model = self._models(asked, level)
        if not asked.system.startswith(PERSONA) or asked.shape != "Any":
            return model
        source, _, persona = asked.system.removeprefix(PERSONA).rpartition(":")
        return _Shaped(model, source, persona, self._named == REHEARSAL)


class _Shaped:
    """A model that is told the shape of a persona's reply."""

    def __init__(self, model: Model, source: str, persona: str, rehearses: bool) -> None:
        self._model, self._source, self._persona, self._rehearses = model, source, persona, rehearses

    async def reply(self, request: Request) -> Reply:
        """The reply of the model within."""
        roster = roster_at(self._source)
        accepts_user = roster.personas[self._persona].accepts_user
        targets = [*roster.targets(self._persona), *([USER] if accepts_user else [])]
        shape = _choices(targets) if self._rehearses else _schema(targets)
        return await self._model.reply(replace(request, schema=shape))


def _schema(targets: list[str]) -> dict[str, Any]:
    properties = {**REPLY_SCHEMA["properties"]}
    if targets:
        properties["next_agent"] = {**properties["next_agent"], "enum": targets}
    return {**REPLY_SCHEMA, "properties": properties}


def _choices(targets: list[str]) -> dict[str, Any]:
    """The shapes that a stand-in may choose from, each of which can be followed."""
    content = {"type": "string"}
    talk = {"type": "object", "properties": {"content": content}, "required": ["content"]}
    if not targets:
        return talk
    hand = {"content": content, "transition": {"const": "HANDOFF_TO_AGENT"}, "next_agent": {"enum": targets}}
    return {"anyOf": [talk, {"type": "object", "properties": hand, "required": list(hand)}]}


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


async def write_file(effect: WriteFile, context: Context) -> Event:
    """Write a file into the workspace; a path that leads out of it is refused."""
    return await asyncio.to_thread(_written, effect)


def _written(effect: WriteFile) -> Event:
    root = Path(effect.root).resolve()
    path = (root / effect.path).resolve()
    if not effect.root or root not in path.parents:
        return FileWritten(path=effect.path, problem="it is outside the workspace and was not written")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(effect.text, encoding="utf-8")
    except OSError as error:
        return FileWritten(path=effect.path, problem=f"it cannot be written: {error.strerror}")
    return FileWritten(path=effect.path)
