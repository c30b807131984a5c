"""Performs `AskAgent`: renders the prompt, asks a function or the model, and makes one `Replied` of the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moothall.agents.asking import AgentFunction, AskAgent, Replied, render
from moothall.agents.ports import Model, Reply, Request
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode, schema
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
            reply = _as_reply(await function(prompt))
        elif self.model is not None:
            shape = self.shapes.get(effect.shape)
            wanted = None if shape is None else schema(shape)
            reply = await self.model.reply(Request(effect.agent, prompt, context.key, context.nth, wanted))
        else:
            raise DefinitionError(f"nobody plays {effect.agent!r}: pass agents={{{effect.agent!r}: …}} or a model")
        value = encode(reply.value) if effect.shape else None
        text = reply.text or (json.dumps(value, ensure_ascii=False) if effect.shape else "")
        return Replied(effect.agent, text, value, effect.shape, dict(reply.usage))


def _as_reply(given: Any) -> Reply:
    """What an agent's function returned: a whole Reply, a text, or the value itself."""
    if isinstance(given, Reply):
        return given
    return Reply(text=given, value=given) if isinstance(given, str) else Reply(value=given)
