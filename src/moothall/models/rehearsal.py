"""`rehearsal`: a stand-in that needs no network and no key.

It sees only the request and invents a reply that fits the schema. The choice is seeded by the effect's key, so
the same call always gets the same reply. It exists to try a machine's paths; its prose is not a goal.

Where an agent has parsing tools it calls the one that it was asked for last, else the first. Yes and no take turns from
one reply of an agent to the next, so that a loop that waits for either comes to its end.

A role or a machine may say what is likely: for the name of a field a list of examples, or weights by value. Those that
do not fit the schema are left out. A role has them below `rehearsal`:

    "rehearsal": {"approved": {"true": 4, "false": 1}, "reason": ["Too long.", "Well done."]}
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply, Request
from moothall.kernel.schema import misfits
from moothall.models.pattern import matching_text

Hints = Mapping[str, Any]
NO_HINTS: Hints = {}
DRAWS = 100
"""How often something is drawn that no other entry of a list may be equal to."""


class RehearsalModel:
    """Invents a reply of the right shape."""

    async def reply(self, request: Request) -> Reply:
        chance = random.Random(f"{request.key} {request.agent}")
        if request.schema is None:
            asked = request.prompt or _last(request.messages)
            text = f"[rehearsal] {request.agent}, reply {request.nth}, to: {asked[:60]}"
            return Reply(text, usage=_usage(asked, text), calls=_calls(request, asked, chance))
        value = invent(request.schema, chance, request.agent, request.hints)
        return Reply(value=value, usage=_usage(request.prompt, str(value)))


def _last(messages: Sequence[Any]) -> str:
    """What was last said to the agent."""
    return next((str(message["text"]) for message in reversed(messages) if message["role"] == "user"), "")


def _calls(request: Request, asked: str, chance: random.Random) -> tuple[ToolCall, ...]:
    """The call of a parsing tool, where the agent has one."""
    tools = [tool for tool in request.tools if tool.parsing]
    if not tools:
        return ()
    tool = next((tool for tool in tools if tool.name in asked), tools[0])
    arguments = invent(tool.schema, chance, tool.name, request.hints)
    run = request.key.partition(".")[0]
    for name in [name for name, value in arguments.items() if isinstance(value, bool) and name not in request.hints]:
        first = random.Random(f"{run} {request.agent} {name}").random() < 0.5
        arguments[name] = first == (request.nth % 2 == 1)
    return (ToolCall(tool.name, arguments, f"call-{request.nth}"),)


def _usage(prompt: str, text: str) -> dict[str, float]:
    return {"tokens": len(prompt) // 4 + len(text) // 4 + 1}


def invent(schema: Mapping[str, Any], chance: random.Random, label: str, hints: Hints = NO_HINTS) -> Any:
    """A value that fits a JSON Schema; where there are hints for a field of this name, one of these that fits."""
    return _Inventor(chance, hints).value(schema, label)


class _Inventor:
    """Invents values. Within an entry of a list that has nothing twice, `number` tells its texts from the others'."""

    def __init__(self, chance: random.Random, hints: Hints, number: str = "") -> None:
        self._chance, self._hints, self._number = chance, hints, number

    def value(self, schema: Any, label: str) -> Any:
        """A value that fits a schema, for a field of this name."""
        schema = schema if isinstance(schema, Mapping) else {}
        chance = self._chance
        if label in self._hints:
            likely = [
                (value, weight) for value, weight in _weighted_values(self._hints[label]) if not misfits(schema, value)
            ]
            if likely:
                return chance.choices([value for value, _ in likely], [weight for _, weight in likely])[0]
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chance.choice(list(schema["enum"]))
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return self.value(self._choice(list(schema[name])), label)
        if "allOf" in schema:
            return self.value({name: part for subschema in schema["allOf"] for name, part in subschema.items()}, label)
        kind = schema.get("type")
        match kind if isinstance(kind, str) or kind is None else chance.choice(list(kind)):
            case "object":
                return self._object(schema)
            case "array":
                return self._list(schema, label)
            case "integer":
                return _whole(schema, chance)
            case "number":
                return _number(schema, chance)
            case "boolean":
                return chance.random() < 0.5
            case "null":
                return None
            case _:
                return self._text(schema, label)

    def _choice(self, choices: list[Any]) -> Any:
        plain = [choice for choice in choices if "pattern" not in choice]  # a pattern is hard to invent for
        if {"type": "number"} in plain:  # a text beside it may have to be a number too, as of a decimal
            plain = [choice for choice in plain if choice.get("type") != "string"]
        return self._chance.choice(plain or choices)

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        unknown = {name: others for name in schema.get("required", ()) if name not in properties}
        return {name: self.value(part, name) for name, part in {**properties, **unknown}.items()}

    def _list(self, schema: Mapping[str, Any], label: str) -> list[Any]:
        first, rest = list(schema.get("prefixItems", ())), schema.get("items", {})
        least = max(schema.get("minItems", 0 if first else 1), 0)
        most = min(schema.get("maxItems", 3), max(least, 3))
        length = len(first) if first else self._chance.randint(min(least, most), most)
        if not schema.get("uniqueItems"):
            return [self.value(part, label) for part in first or [rest] * length]
        made: list[Any] = []
        for draw in range(1, DRAWS + 1):
            if len(made) >= length:
                break
            item = _Inventor(self._chance, self._hints, f"{self._number} {draw}").value(rest, label)
            made += [item] if item not in made else []
        return made

    def _text(self, schema: Mapping[str, Any], label: str) -> str:
        if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        if "pattern" in schema and (matching := matching_text(schema["pattern"], self._chance)) is not None:
            return matching
        text = f"[rehearsal] {label}"
        most: int | None = schema.get("maxLength")
        room = None if most is None else max(most - len(self._number), 0)
        return (f"{text:.<{schema.get('minLength', 0)}}"[:room] + self._number)[:most]


def _weighted_values(given: Any) -> list[tuple[Any, float]]:
    """What is likely for a field, each with its weight: a list of examples, or weights by value."""
    if not isinstance(given, Mapping):
        return [(value, 1.0) for value in (given if isinstance(given, Sequence) and given != "" else ())]
    return [(value, weight) for name, weight in given.items() for value in _meanings(name)]


def _meanings(name: str) -> list[Any]:
    """What the name of a weight may stand for: a text, and the value that it is as JSON, such as `true`."""
    try:
        value = json.loads(name)
    except ValueError:
        return [name]
    return [name] if isinstance(value, str) else [value, name]


def _whole(schema: Mapping[str, Any], chance: random.Random) -> int:
    low, high = _bounds(schema, 1)
    step = schema.get("multipleOf", 1)
    return int(chance.randint(ceil(low / step), max(ceil(low / step), floor(high / step))) * step)


def _number(schema: Mapping[str, Any], chance: random.Random) -> float:
    low, high = _bounds(schema, 0.01)
    value = round(chance.uniform(low, high), 2)
    return value if low <= value <= high else low


def _bounds(schema: Mapping[str, Any], step: float) -> tuple[float, float]:
    """The least and the greatest number that fit, with some room between where one is open."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    if low is None:
        low = 0 if high is None or high >= 0 else high - 10
    return low, max(low, low + 10 if high is None else high)


FORMATS: Mapping[str, str] = {
    "date-time": "2026-01-31T12:00:00+00:00",
    "date": "2026-01-31",
    "time": "12:00:00",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "12.50",
    "path": "rehearsal.txt",
}
"""A text of each format that a schema may ask for."""
