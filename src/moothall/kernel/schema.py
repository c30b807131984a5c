"""Whether a value fits a JSON Schema that was made at run time, place by place.

Types check what the code declares (`codec.decode`). This is for what is data: the fields of a question, the arguments
of a tool, a reply that a stand-in invents. Known are `type`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`, and the bounds
of numbers, texts, lists and objects; what else a schema says (`description`, `default`, …) is for readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen

SHOWN = 60
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict, Mapping),
}
_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


class Misfit(Frozen):
    """A place in a value that is not as its schema says; the place is "" for the value itself."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


def misfits(schema: Any, value: Any) -> tuple[Misfit, ...]:
    """Every place where a value is not as a schema says; none where it fits."""
    return tuple(_misfits(schema, value, "")) if isinstance(schema, Mapping) else ()


def _misfits(schema: Any, value: Any, place: str) -> Iterator[Misfit]:
    if schema is False:
        yield Misfit(place, "there is nothing to be said here")
    if type(schema) is not dict and not isinstance(schema, Mapping):
        return
    if not _has_type(schema, value):
        yield Misfit(place, f"expected {_wanted(schema)}, got {_shown(value)}")
        return
    if "enum" in schema and not any(_is_equal(value, choice) for choice in schema["enum"]):
        yield Misfit(place, f"expected one of {', '.join(map(repr, schema['enum']))}, got {_shown(value)}")
    if "const" in schema and not _is_equal(value, schema["const"]):
        yield Misfit(place, f"expected {schema['const']!r}, got {_shown(value)}")
    yield from _of_several(schema, value, place)
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        yield from (Misfit(place, reason) for reason in _of_text(schema, value))
    elif isinstance(value, Mapping):
        yield from _of_object(schema, value, place)
    elif isinstance(value, Sequence):
        yield from _of_list(schema, value, place)
    elif isinstance(value, int | float):
        yield from (Misfit(place, reason) for reason in _of_number(schema, value))


def _has_type(schema: Mapping[str, Any], value: Any) -> bool:
    names = _names(schema)
    return not names or any(_is_of(name, value) for name in names)


def _is_of(name: str, value: Any) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _names(schema: Mapping[str, Any]) -> tuple[str, ...]:
    given = schema.get("type", ())
    return (given,) if isinstance(given, str) else tuple(given)


def _wanted(schema: Mapping[str, Any]) -> str:
    return " or ".join(_WORDS.get(name, name) for name in _names(schema))


def _is_equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _of_several(schema: Mapping[str, Any], value: Any, place: str) -> Iterator[Misfit]:
    for part in schema.get("allOf", ()):
        yield from _misfits(part, value, place)
    for choices in (schema.get("anyOf", ()), schema.get("oneOf", ())):
        tried = [list(_misfits(choice, value, place)) for choice in choices]
        if tried and all(tried):
            yield from next((misfits for misfits in tried if misfits[0].place != place), tried[0])


def _of_text(schema: Mapping[str, Any], value: str) -> Iterator[str]:
    least, most, pattern = schema.get("minLength", 0), schema.get("maxLength"), schema.get("pattern")
    if least and not value:
        yield "an empty text is not an answer"
    elif len(value) < least:
        yield f"expected at least {least} characters, got {len(value)}"
    elif most is not None and len(value) > most:
        yield f"expected at most {most} characters, got {len(value)}"
    elif pattern is not None and not _compiled(pattern).search(value):
        yield f"{_shown(value)} does not match {pattern!r}"


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise DefinitionError(f"the pattern {pattern!r} of a schema cannot be read: {error}") from error


def _of_number(schema: Mapping[str, Any], value: float) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"expected at least {schema['minimum']}, got {value}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"expected at most {schema['maximum']}, got {value}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"expected more than {schema['exclusiveMinimum']}, got {value}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"expected less than {schema['exclusiveMaximum']}, got {value}"
    if "multipleOf" in schema and value % schema["multipleOf"]:
        yield f"expected a multiple of {schema['multipleOf']}, got {value}"


def _of_object(schema: Mapping[str, Any], value: Mapping[str, Any], place: str) -> Iterator[Misfit]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield Misfit(_inside(place, name), "it is missing")
    for name, item in value.items():
        if name in known:
            yield from _misfits(known[name], item, _inside(place, name))
        elif others is False:
            yield Misfit(_inside(place, name), f"nobody asked for it; known are {', '.join(known) or 'none'}")
        else:
            yield from _misfits(others, item, _inside(place, name))


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _of_list(schema: Mapping[str, Any], value: Sequence[Any], place: str) -> Iterator[Misfit]:
    if len(value) < schema.get("minItems", 0):
        yield Misfit(place, f"expected at least {schema['minItems']} entries, got {len(value)}")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield Misfit(place, f"expected at most {schema['maxItems']} entries, got {len(value)}")
    if schema.get("uniqueItems") and any(item in value[:number] for number, item in enumerate(value)):
        yield Misfit(place, "an entry is there twice")
    first: Sequence[Any] = schema.get("prefixItems", ())
    for number, item in enumerate(value):
        yield from _misfits(
            first[number] if number < len(first) else schema.get("items", {}), item, f"{place}[{number}]"
        )


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < SHOWN else f"{shown[: SHOWN - 3]}..."
