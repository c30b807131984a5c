"""The shape of a reply where a library wants an object: anything else goes into a field of one, and comes out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VALUE = "value"
"""The field around a value that is not an object: the arguments of a tool are one."""


def wrap_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as that of a tool's arguments, which are an object."""
    if schema.get("type") == "object":
        return dict(schema)
    return {"type": "object", "properties": {VALUE: dict(schema)}, "required": [VALUE], "additionalProperties": False}


def value_of(schema: Mapping[str, Any], arguments: Any) -> Any:
    """The value in the arguments of the tool that gives it."""
    is_wrapped = schema.get("type") != "object" and isinstance(arguments, dict) and arguments.keys() == {VALUE}
    return arguments[VALUE] if is_wrapped else arguments
