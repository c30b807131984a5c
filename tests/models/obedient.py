"""Models that obey: one does what the words of a prompt say and never looks at the schema, the other the reverse.

Both read the request that came over the wire, and nothing else. What neither is told, they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from tests.models.loopback import Asked, Said

Obedient = Callable[[Asked], Said]
DOTS = ["..."]
"""How a prompt shows a list that is to be filled."""
PLAN: dict[str, Any] = {
    "workflow_name": "tide_tables",
    "description": "Tables of the tide",
    "input": {"name": "task", "type": "string", "description": "what is to be done"},
    "output": {"name": "task", "type": "string", "description": "what was done"},
    "contexts": [{"name": "desk"}],
    "agents": [{"agent_role": "coder", "context": "desk", "role": "assistant"}],
    "states": [
        {
            "name": "start",
            "agent": "coder",
            "input": "common_data.task",
            "transition": [{"target": "stop", "condition": "true"}],
        },
        {"name": "stop"},
    ],
}
"""A workflow that can be run; who knows that one is wanted writes it."""


def obey_words(asked: Asked) -> Said:
    """Reply as the words say: after what the prompt shows at its end, else what the model is told about itself."""
    shown = [*objects_in(words_of(asked)), *objects_in(str(asked.body["messages"][-1]["content"]))]
    if any("workflow_name" in example for example in shown):
        return Said(json.dumps(PLAN))
    shapes = [shape for shape in shown if "properties" in shape or DOTS in shape.values()]
    if not shapes:
        return Said(sentence("words"))
    shape = shapes[-1]
    return Said(json.dumps(filled(shape) if "properties" in shape else {name: [sentence(name)] for name in shape}))


def obey_schema(asked: Asked) -> Said:
    """Reply as the schema of the request says, whatever the words are."""
    if "response_format" not in asked.body:
        return Said(sentence("words"))
    schema = asked.body["response_format"]["json_schema"]["schema"]
    reply = PLAN if "workflow_name" in schema.get("properties", {}) else filled(schema)
    jsonschema.validate(reply, schema)
    return Said(json.dumps(reply))


def words_of(asked: Asked) -> str:
    """All that a request says in words."""
    return "\n\n".join(str(message["content"]) for message in asked.body["messages"])


def objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Every JSON object that a text shows."""
    text = text.replace("[...]", json.dumps(DOTS))
    reader, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            shown, length = reader.raw_decode(text[place:])
        except ValueError:
            place = text.find("{", place + 1)
            continue
        yield shown
        place = text.find("{", place + length)


def filled(schema: Mapping[str, Any], name: str = "reply") -> Any:
    """The least that a schema asks for; where it leaves open what is wanted, a sentence."""
    match schema.get("type"):
        case "object":
            return {field: filled(schema["properties"][field], field) for field in schema.get("required", ())}
        case "array":
            return [filled(schema["items"], name)]
        case "number" | "integer":
            return schema.get("maximum", 0)
        case "boolean":
            return True
        case _:
            return schema["enum"][0] if "enum" in schema else sentence(name)


def sentence(name: str) -> str:
    """What is said in a field of this name."""
    return f"The tide decides, says {name}."
