"""`rehearsal`: a stand-in that needs no network and no key.

It sees only the request and invents a reply that fits the schema. The choice is seeded by the effect's key, so
the same call always gets the same reply. It exists to try a machine's paths; its prose is no goal.

Where an agent has parsing tools it calls the one that it was asked for last, else the first. Yes and no take turns from
one reply of an agent to the next, so that a loop that waits for either comes to its end.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply, Request


class RehearsalModel:
    """Invents a reply of the right shape."""

    async def reply(self, request: Request) -> Reply:
        chance = random.Random(f"{request.key} {request.agent}")
        if request.schema is None:
            asked = request.prompt or _last(request.messages)
            text = f"[rehearsal] {request.agent}, reply {request.nth}, to: {asked[:60]}"
            return Reply(text, usage=_usage(asked, text), calls=_calls(request, asked, chance))
        value = invent(request.schema, chance, request.agent)
        return Reply(value=value, usage=_usage(request.prompt, str(value)))


def _last(messages: Sequence[Any]) -> str:
    """What was last said to the agent."""
    return next((str(one["text"]) for one in reversed(messages) if one["role"] == "user"), "")


def _calls(request: Request, asked: str, chance: random.Random) -> tuple[ToolCall, ...]:
    """The call of a parsing tool, where the agent has one."""
    tools = [one for one in request.tools if one.parsing]
    if not tools:
        return ()
    tool = next((one for one in tools if one.name in asked), tools[0])
    arguments = invent(tool.schema, chance, tool.name)
    run = request.key.partition(".")[0]
    for name in [name for name, value in arguments.items() if isinstance(value, bool)]:
        first = random.Random(f"{run} {request.agent} {name}").random() < 0.5
        arguments[name] = first == (request.nth % 2 == 1)
    return (ToolCall(tool.name, arguments, f"call-{request.nth}"),)


def _usage(prompt: str, text: str) -> dict[str, float]:
    return {"tokens": len(prompt) // 4 + len(text) // 4 + 1}


def invent(schema: Mapping[str, Any], chance: random.Random, label: str) -> Any:
    """A value that fits a JSON Schema."""
    if "enum" in schema:
        return chance.choice(list(schema["enum"]))
    if "anyOf" in schema:
        return invent(chance.choice(list(schema["anyOf"])), chance, label)
    match schema.get("type"):
        case "object":
            properties: Mapping[str, Any] = schema.get("properties", {})
            return {name: invent(part, chance, name) for name, part in properties.items()}
        case "array":
            parts = schema.get("prefixItems")
            if parts is None:
                parts = [schema.get("items", {})] * chance.randint(schema.get("minItems", 1), schema.get("maxItems", 3))
            return [invent(part, chance, label) for part in parts]
        case "integer":
            return chance.randint(schema.get("minimum", 0), schema.get("maximum", 10))
        case "number":
            return round(chance.uniform(schema.get("minimum", 0), schema.get("maximum", 10)), 2)
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
        case _:
            return f"[rehearsal] {label}"
