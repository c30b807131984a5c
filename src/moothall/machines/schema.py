"""The shape of a definition file as JSON Schema, and everything about a file that does not have it.

A `Shape` is what `moot schema` prints, and what its `misfits` read: of JSON Schema it knows what the builders here
write. It goes on after the first fault, and a key that nobody reads is a warning with a guess at what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from moothall.kernel.frozen import Frozen
from moothall.machines.workflow.document import Problem, escape_key

Plain = Mapping[str, Any]
SNAKE_CASE = "^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$"
NAME = "^[A-Za-z][A-Za-z0-9_-]*$"


def text(description: str, pattern: str = "") -> Plain:
    """A text."""
    limits = {"pattern": pattern, "maxLength": 64} if pattern else {}
    return {"type": "string", "description": description, **limits}


def texts(description: str) -> Plain:
    """A list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def count(description: str, least: int = 1) -> Plain:
    """A whole number."""
    return {"type": "integer", "minimum": least, "description": description}


def number(description: str, least: float = 0, most: float | None = None) -> Plain:
    """A number."""
    highest = {} if most is None else {"maximum": most}
    return {"type": "number", "minimum": least, **highest, "description": description}


def above(description: str, least: float = 0) -> Plain:
    """A number that is larger than another."""
    return {"type": "number", "exclusiveMinimum": least, "description": description}


def flag(description: str) -> Plain:
    """Yes or no."""
    return {"type": "boolean", "description": description}


def choice(description: str, *values: str) -> Plain:
    """One of these texts."""
    return {"enum": list(values), "description": description}


def inner(of: str, description: str) -> Plain:
    """An object of a shape of its own."""
    return {"$ref": f"#/$defs/{of}", "description": description}


def objects(of: str, description: str) -> Plain:
    """A list of objects of a shape of their own."""
    return {"type": "array", "items": {"$ref": f"#/$defs/{of}"}, "description": description}


def shape(description: str, required: tuple[str, ...], properties: Mapping[str, Plain]) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "description": description,
        "properties": {**properties, "$comment": text("A note for readers; it means nothing.")},
        "required": list(required),
        "additionalProperties": False,
    }


class Shape(Frozen):
    """The shape of a kind of file: its parts by name, and which of them is the whole."""

    title: str
    whole: str
    parts: Mapping[str, Any]

    @property
    def plain(self) -> Plain:
        """The shape as JSON Schema."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.title,
            "$ref": f"#/$defs/{self.whole}",
            "$defs": self.parts,
        }

    def misfits(self, value: Any, part: str = "", pointer: str = "") -> Iterator[Problem]:
        """Everything about a value that does not have this shape, or that of a part."""
        return self._misfits(value, self.parts[part or self.whole], pointer)

    def cleaned(self, value: Any, part: str = "") -> Any:
        """A value of this shape, or of a part, without the keys that nobody reads."""
        return self._cleaned(value, self.parts[part or self.whole])

    def _part(self, schema: Plain) -> Plain:
        part: Plain = self.parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return part

    def _cleaned(self, value: Any, schema: Plain) -> Any:
        schema = self._part(schema)
        if isinstance(value, list) and "items" in schema:
            return [self._cleaned(item, schema["items"]) for item in value]
        known = schema.get("properties")
        if known is None or not isinstance(value, dict):
            return value
        return {key: self._cleaned(item, known[key]) for key, item in value.items() if key in known and key[0] != "$"}

    def _misfits(self, value: Any, schema: Plain, pointer: str) -> Iterator[Problem]:
        schema = self._part(schema)
        if "enum" in schema:
            if not isinstance(value, str) or value not in schema["enum"]:
                choices = ", ".join(schema["enum"])
                guess = _guess(value, schema["enum"]) or f"write one of {choices}"
                yield Problem("error", "E_ENUM", pointer, f"{format_value(value)} is not one of {choices}", guess)
            return
        kind = schema.get("type")
        if kind is None:
            return
        if type(value) not in _TYPES[kind]:
            given = _GIVEN.get(type(value), "null")
            yield Problem("error", "E_TYPE", pointer, f"it is {given}, not {_KINDS[kind]}", f"write {_KINDS[kind]}")
        elif kind == "object":
            yield from self._object_misfits(value, schema, pointer)
        elif kind == "array":
            if len(value) < schema.get("minItems", 0):
                yield Problem("error", "E_REQUIRED", pointer, "it is empty", "write at least one entry")
            for index, item in enumerate(value):
                yield from self._misfits(item, schema["items"], f"{pointer}/{index}")
        elif kind == "string":
            yield from _text_misfits(value, schema, pointer)
        elif kind != "boolean":
            yield from _number_misfits(value, schema, pointer)

    def _object_misfits(self, value: Plain, schema: Plain, pointer: str) -> Iterator[Problem]:
        known: Plain = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for key in schema.get("required", ()):
            if key not in value:
                yield Problem("error", "E_REQUIRED", f"{pointer}/{key}", f"{key} is missing", known[key]["description"])
        for key, item in value.items():
            place = f"{pointer}/{escape_key(key)}"
            if key in known:
                yield from self._misfits(item, known[key], place)
            elif isinstance(others, Mapping):
                yield from self._misfits(item, others, place)
            elif not others:
                remedy = _guess(key, known) or f"remove it; known are {', '.join(known)}"
                yield Problem("warning", "W_UNKNOWN_KEY", place, f"{format_value(key)} is not a known key here", remedy)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_KINDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}
_GIVEN = {str: "a text", int: "a number", float: "a number", bool: "true or false", dict: "an object", list: "a list"}


def _text_misfits(value: str, schema: Plain, pointer: str) -> Iterator[Problem]:
    pattern = schema.get("pattern")
    if pattern is not None and (len(value) > schema["maxLength"] or not re.fullmatch(pattern, value)):
        snake = "small letters, digits and single underscores" if pattern == SNAKE_CASE else "letters, digits, _ and -"
        first = "a letter" if pattern in (SNAKE_CASE, NAME) else "a letter or digit"
        remedy = f"use {snake}, {first} first, at most {schema['maxLength']} characters"
        yield Problem("error", "E_NAME", pointer, f"{format_value(value)} cannot be a name here", remedy)


def _number_misfits(value: float, schema: Plain, pointer: str) -> Iterator[Problem]:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if (least is not None and value < least) or (above is not None and value <= above):
        remedy = f"write a number above {above}" if least is None else f"write a number of at least {least}"
        yield Problem("error", "E_RANGE", pointer, f"{value} is too small", remedy)
    if "maximum" in schema and value > schema["maximum"]:
        yield Problem("error", "E_RANGE", pointer, f"{value} is too large", f"write at most {schema['maximum']}")


def _guess(given: Any, known: Any) -> str:
    close = get_close_matches(given[:64], list(known), 1) if isinstance(given, str) else []
    close = close or (get_close_matches(given[:64].lower(), list(known), 1) if isinstance(given, str) else [])
    return f"did you mean {close[0]!r}?" if close else ""


def format_value(value: Any) -> str:
    """A value as a finding shows it."""
    text = ascii(value)
    return text if len(text) < 60 else text[:57] + "…"
