"""`rehearsal`: a stand-in that needs no network and no key.

It sees only the request and invents a reply that fits the schema. The choice is seeded by the effect's key, so
the same call always gets the same reply. It exists to try a machine's paths; its prose is no goal.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from moothall.agents.ports import Reply, Request


class RehearsalModel:
    """Invents a reply of the right shape."""

    async def reply(self, request: Request) -> Reply:
        chance = random.Random(f"{request.key} {request.agent}")
        if request.schema is None:
            text = f"[rehearsal] {request.agent}, reply {request.nth}, to: {request.prompt[:60]}"
            return Reply(text, usage=_usage(request.prompt, text))
        value = invent(request.schema, chance, request.agent)
        return Reply(value=value, usage=_usage(request.prompt, str(value)))


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
