"""Whether a value has the shape that a JSON Schema asks for: the keywords that schemas of tools have, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEEPEST = 50
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list, tuple),
    "null": (type(None),),
}


def misfit_of(schema: Any, value: Any, where: str, depth: int = 0) -> str:
    """Why a value does not have a shape, in words that can be shown to who gave it; "" where it has."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return ""
    if "enum" in schema and isinstance(schema["enum"], list | tuple) and value not in schema["enum"]:
        return f"{where} is one of {', '.join(map(repr, schema['enum']))}, not {_format_value(value)}"
    if "const" in schema and value != schema["const"]:
        return f"{where} is {schema['const']!r}, not {_format_value(value)}"
    if wrong := _type_problem(schema.get("type"), value, where):
        return wrong
    for keyword in ("anyOf", "oneOf"):
        several = schema.get(keyword)
        if isinstance(several, list | tuple) and several:
            reasons = [misfit_of(choice, value, where, depth + 1) for choice in several]
            if all(reasons):
                return reasons[0]
    if isinstance(value, dict):
        return _misfit_of_object(schema, value, where, depth)
    items = schema.get("items")
    if isinstance(value, list | tuple) and isinstance(items, Mapping):
        wrongs = (misfit_of(items, item, f"{where}[{at}]", depth + 1) for at, item in enumerate(value))
        return next(filter(None, wrongs), "")
    return ""


def _type_problem(kinds: Any, value: Any, where: str) -> str:
    names = [kinds] if isinstance(kinds, str) else list(kinds) if isinstance(kinds, list | tuple) else []
    known = [name for name in names if name in _TYPES]
    if not known or len(known) < len(names) or any(_is_of(name, value) for name in known):
        return ""
    return f"{where} is of type {' or '.join(known)}, not {_format_value(value)}"


def _is_of(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _misfit_of_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str, depth: int) -> str:
    required, properties = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in value:
            return f"{where}: {name!r} is missing"
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if name in value and (wrong := misfit_of(part, value[name], f"{where}.{name}", depth + 1)):
            return wrong
    return ""


def _format_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
