"""The type of an answer from the JSON Schema that an author wrote for it; what is not understood takes anything.

`unreadable` says what is wrong with such a schema. `shape_of` is for those with which nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, make_dataclass
from typing import Any, Literal

from moothall.machines.workflow.document import escape_key

_SIMPLE: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}


_KINDS = frozenset((*_SIMPLE, "array", "object"))


def unreadable(schema: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """The places of a schema that mean nothing, each with what should stand there."""
    if not isinstance(schema, dict):
        yield pointer, 'an object, such as {"type": "string"}'
        return
    if "type" in schema and str(schema["type"]) not in _KINDS:
        yield f"{pointer}/type", f"one of {', '.join(sorted(_KINDS))}"
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        yield f"{pointer}/enum", "a list of values"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield f"{pointer}/required", "a list of names"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{pointer}/properties", "an object: names, and the schema of each"
    else:
        for name, part in properties.items():
            yield from unreadable(part, f"{pointer}/properties/{escape_key(name)}")
    if "items" in schema:
        yield from unreadable(schema["items"], f"{pointer}/items")


def shape_of(schema: Mapping[str, Any], name: str) -> Any:
    """A type that takes what fits a schema."""
    if (
        isinstance(choices := schema.get("enum"), list)
        and choices
        and all(isinstance(choice, str | int) for choice in choices)
    ):
        return Literal[tuple(choices)]
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            return list[shape_of(items if isinstance(items, dict) else {}, f"{name} item")]  # type: ignore[misc]
        case "object" if isinstance(schema.get("properties"), dict) and _are_names(schema["properties"]):
            return _object(schema, name)
        case "object":
            return dict[str, Any]
        case str() as kind:
            return _SIMPLE.get(kind, Any)
        case _:
            return Any


def _are_names(properties: Mapping[str, Any]) -> bool:
    return all(name.isidentifier() and isinstance(part, dict) for name, part in properties.items())


def _object(schema: Mapping[str, Any], name: str) -> Any:
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required") or ()
    needed = [(key, shape_of(part, f"{name} {key}")) for key, part in properties.items() if key in required]
    optional = [
        (key, shape_of(part, f"{name} {key}") | None, field(default=None))
        for key, part in properties.items()
        if key not in required
    ]
    return make_dataclass(name, [*needed, *optional], frozen=True)
