"""Performs `AskAgent`: renders the prompt, asks a function or the model, and makes one `Replied` of the reply."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from moothall.agents.asking import AgentFunction, AskAgent, Replied, render
from moothall.agents.ports import Model, Reply, Request
from moothall.errors import DefinitionError, MoothallError
from moothall.kernel.codec import decode, encode, schema
from moothall.kernel.events import Event
from moothall.runtime.ports import Context


@dataclass(frozen=True, slots=True)
class AgentPerformer:
    """Asks the function that is known by the agent's name, else the model."""

    functions: Mapping[str, AgentFunction]
    model: Model | None
    shapes: Mapping[str, Any]

    async def __call__(self, effect: AskAgent, context: Context) -> Event:
        prompt = render(effect.template, effect.arguments)
        function = self.functions.get(effect.agent)
        if function is not None:
            reply = _as_reply(effect, await awaited(effect.agent, function(prompt)))
        elif self.model is not None:
            shape = self.shapes.get(effect.shape)
            wanted = None if shape is None else schema(shape)
            reply = await self.model.reply(Request(effect.agent, prompt, context.key, context.nth, wanted))
        else:
            raise DefinitionError(f"nobody plays {effect.agent!r}: pass agents={{{effect.agent!r}: …}} or a model")
        value = _whole(encode(reply.value)) if effect.shape else None
        text = _whole(reply.text) or (json.dumps(value, ensure_ascii=False) if effect.shape else "")
        return Replied(effect.agent, text, value, effect.shape, _usage(effect.agent, reply))


def awaited(name: str, work: Any) -> Awaitable[Any]:
    """What an async function gave, or a word to its author where it is not async."""
    if not isawaitable(work):
        raise DefinitionError(f"{name} is not async: write `async def {name}`")
    return work


def _as_reply(effect: AskAgent, given: Any) -> Reply:
    """What an agent's function returned: a whole Reply, a text, or the value itself."""
    if isinstance(given, Reply):
        return given
    if isinstance(given, str):
        return Reply(text=given, value=given)
    if not effect.shape:
        raise DefinitionError(
            f"{effect.agent} returned {type(given).__name__}; return a text, or ask for a value with reply="
        )
    return Reply(value=given)


def _whole(said: Any) -> Any:
    """What was said, with a question mark for half a character, as replies that were cut off have it."""
    if said is None or (isinstance(said, str) and said.isascii()):
        return said
    text = json.dumps(said, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode(errors="replace"))
    return said


def _usage(agent: str, reply: Reply) -> dict[str, float]:
    if not reply.usage:
        return {}
    try:
        return decode(dict[str, float], encode(reply.usage), "usage")
    except MoothallError as error:
        raise DefinitionError(f"the usage that {agent} reports cannot be counted: {error}") from error
