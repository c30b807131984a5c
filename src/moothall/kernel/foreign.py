"""Types that people have already, besides dataclasses: pydantic's models, and values that are written as texts.

A model is written and read by pydantic itself, and its JSON Schema is pydantic's. A date, a UUID, a decimal number or
a path is a text in JSON. Both are known by where their class comes from, so that nothing is imported to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from moothall.kernel.frozen import Frozen


class Written(Frozen):
    """How values of a class are written as texts and read again, and whether reading one gives the same value."""

    wanted: str
    schema: Mapping[str, Any]
    write: Callable[[Any], str]
    read: Callable[[Any, Any], Any]
    is_same: Callable[[Any, Any], bool]


def written_as(kind: object) -> Written | None:
    """How values of a class are written as texts; None where they are not."""
    return _written_as(kind) if isinstance(kind, type) else None


@lru_cache(maxsize=1024)
def _written_as(kind: type) -> Written | None:
    places = ((base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__)
    return next((_TEXTS[place] for place in places if place in _TEXTS), None)


def is_model(kind: object) -> bool:
    """Whether this is a class, and a model of pydantic."""
    return isinstance(kind, type) and _is_model(kind)


@lru_cache(maxsize=1024)
def _is_model(kind: type) -> bool:
    return any(base.__name__ == "BaseModel" and base.__module__ == "pydantic.main" for base in kind.__mro__[:-1])


def field_names(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a dataclass or a model, in order; none where it is neither."""
    if is_model(kind):
        return tuple(kind.model_fields)
    return tuple(item.name for item in fields(kind)) if is_dataclass(kind) else ()


def write_model(value: Any) -> Any:
    """A model as plain JSON, under the names that it is read by; what is wrong in it, its reader says."""
    return value.model_dump(mode="json", by_alias=True, warnings=False)


def model_misfit(error: Exception) -> tuple[str, str]:
    """Where a value is not as its model says, as a path into it, and why."""
    listed: Any = getattr(error, "errors", None)
    if not callable(listed):
        return "", str(error)
    first = listed(include_url=False, include_context=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    return place, str(first["msg"])


def model_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a model, with everything that it refers to in its place."""
    found = kind.model_json_schema()
    known = found.pop("$defs", {})
    inlined: dict[str, Any] = _inlined(found, known, ())
    return inlined


def _inlined(schema: Any, known: Mapping[str, Any], around: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(part, known, around) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(name := schema.get("$ref"), str):
        name = name.rpartition("/")[2]
        beside = {key: part for key, part in schema.items() if key != "$ref"}
        if name in around:  # a type that contains itself is described once, and named below
            return {"type": known[name].get("type", "object"), "title": name, **beside}
        return {**_inlined(known[name], known, (*around, name)), **_inlined(beside, known, around)}
    return {key: _inlined(part, known, around) for key, part in schema.items()}


def _read_text(kind: Any, value: Any) -> Any:
    if type(value) is not str:
        raise TypeError(value)
    return kind(value)


def _read_moment(kind: Any, value: Any) -> Any:
    if type(value) is not str:
        raise TypeError(value)
    return kind.fromisoformat(value)


def _read_decimal(kind: Any, value: Any) -> Any:
    if type(value) not in (str, int, float):
        raise TypeError(value)
    try:
        found = kind(str(value))
    except ArithmeticError as error:
        raise ValueError(str(error)) from error
    if not found.is_finite():
        raise ValueError(value)
    return found


def _write_decimal(value: Any) -> str:
    if not value.is_finite():
        raise ValueError(f"{value} has no place in JSON; use None where a number is missing")
    return str(value)


def _is_of(kind: Any, value: Any) -> bool:
    return type(value) is kind


def _is_path(kind: Any, value: Any) -> bool:
    return isinstance(value, kind)


def _has_plain_zone(kind: Any, value: Any) -> bool:
    """A time with the rules of a zone is read back with its offset alone."""
    return type(value) is kind and (value.tzinfo is None or type(value.tzinfo).__name__ == "timezone")


def _isoformat(value: Any) -> str:
    text: str = value.isoformat()
    return text


def _text(format_: str) -> dict[str, Any]:
    return {"type": "string", "format": format_}


_DECIMAL = {"anyOf": [_text("decimal"), {"type": "number"}]}
_TEXTS: Mapping[tuple[str, str], Written] = {
    ("datetime", "datetime"): Written(
        "a date and time such as '2026-01-31T12:00:00+00:00'",
        _text("date-time"),
        _isoformat,
        _read_moment,
        _has_plain_zone,
    ),
    ("datetime", "date"): Written("a date such as '2026-01-31'", _text("date"), _isoformat, _read_moment, _is_of),
    ("datetime", "time"): Written("a time such as '12:00'", _text("time"), _isoformat, _read_moment, _has_plain_zone),
    ("decimal", "Decimal"): Written(
        "a decimal number such as '12.50'", _DECIMAL, _write_decimal, _read_decimal, _is_of
    ),
    ("uuid", "UUID"): Written("a UUID", _text("uuid"), str, _read_text, _is_of),
    ("pathlib", "PurePath"): Written("a path", _text("path"), str, _read_text, _is_path),
}
