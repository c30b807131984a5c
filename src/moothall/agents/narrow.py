"""What a field of a reply may be in one request, beyond its type: the options of a question, the labels of arguments.

`AskAgent.narrow` has it by the field's path, as keywords of JSON Schema: `{"answer": {"enum": ["yes", "no"]}}`. The
schema that a model is sent has it too, and a reply with something else is shown back once. What it says then is taken
as it is: whoever reads it decides what becomes of a value that is still none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.kernel.schema import misfits

Narrow = Mapping[str, Mapping[str, Any]]
AROUND = " \t\r\n.,:;!?()[]{}<>\"'`*_„“”‘’«»"
"""What may stand around a value without being a part of it."""
SHOWN = 60


def pick_choice(text: str, options: Sequence[str]) -> str:
    """The option that a text is, but for case, white space, quotes and punctuation around it; "" where it is none.

    A text that only contains an option is none: "not A" is not A.
    """
    bare = text.strip()
    if bare in options:
        return bare
    wanted = {_fold(bare), _fold(bare).removeprefix("option ")}
    same = [option for option in options if _fold(option) in wanted and _fold(option)]
    return same[0] if len(same) == 1 else ""


def bare_value(text: str) -> str:
    """A text without what stands around it; a point before a number belongs to it."""
    return text.strip(AROUND.replace(".", "")).removesuffix(".")


def _fold(text: str) -> str:
    return " ".join(text.strip(AROUND).casefold().split())


def narrow_schema(schema: Mapping[str, Any], narrow: Narrow) -> dict[str, Any]:
    """A schema in which these fields are required, and as narrow as they are in this request."""
    found = dict(schema)
    for path, keywords in narrow.items():
        found = _narrow_at(found, path.split("."), keywords)
    return found


def _narrow_at(schema: Mapping[str, Any], parts: Sequence[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {**schema, "items": _narrow_at(schema["items"], parts, keywords)}
    if not parts:
        return {**schema, **keywords}
    inner = _narrow_at(schema["properties"][parts[0]], parts[1:], keywords)
    required = dict.fromkeys((*schema.get("required", ()), parts[0]))
    return {**schema, "properties": {**schema["properties"], parts[0]: inner}, "required": list(required)}


def find_stray(value: Any, narrow: Narrow) -> str:
    """What is wrong with the first value that is none of those that this request allows; "" where all are."""
    return next((why for path, keywords in narrow.items() for why in _strays(value, path, keywords)), "")


def _strays(value: Any, path: str, keywords: Mapping[str, Any]) -> Iterator[str]:
    for text in _texts_at(value, path.split(".")):
        if options := keywords.get("enum"):
            if not pick_choice(text, options):
                shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
                yield f"{path}: expected one of {', '.join(map(repr, options))}, got {shown!r}"
        else:
            yield from (f"{path}: {misfit}" for misfit in misfits(keywords, bare_value(text)))


def _texts_at(value: Any, parts: Sequence[str]) -> Iterator[str]:
    """The texts at a path, in every item of a list; nothing counts as an empty one."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts_at(item, parts)
    elif parts:
        inner = value.get(parts[0], "") if isinstance(value, Mapping) else getattr(value, parts[0], "")
        yield from _texts_at(inner, parts[1:])
    else:
        yield str(value or "")
