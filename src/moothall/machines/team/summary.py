"""The summary of a stretch of a conversation: what a model is asked for, in words and as a schema, and how it is read.

All three come from the same names. A summary that says nothing is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from moothall.agents.ask import Replied
from moothall.agents.memory import Summary
from moothall.machines.team.prompt import shipped_prompt

PARTS: Mapping[str, str] = {
    "decisions": "What was decided, each in a short sentence.",
    "discussions": "The main points of discussion, each in a short sentence.",
    "pending": "What is left open, each in a short sentence.",
}
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": {"type": "string"}, "description": text} for name, text in PARTS.items()
        },
        "required": [*PARTS],
        "additionalProperties": False,
    }
)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def summary_prompt() -> str:
    """What whoever sums up is told; the items are filled in."""
    shape = json.dumps(dict(SCHEMA), indent=2).replace("{", "{{").replace("}", "}}")
    return shipped_prompt("summarise.md").replace("{shape}", shape)


def summary_in(replied: Replied) -> Summary | None:
    """The summary of a reply; None where it is not of the shape, or says nothing."""
    given = object_in(replied)
    if given is None:
        return None
    parts = {name: _sentences(given.get(name)) for name in PARTS}
    if None in parts.values() or not any(parts.values()):
        return None
    decisions, discussions, pending = (parts[name] or () for name in PARTS)
    return Summary(decisions, discussions, pending)


def _sentences(given: Any) -> tuple[str, ...] | None:
    """The sentences of a part, without empty ones; None where it is not a list of texts."""
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or not all(isinstance(text, str) for text in given):
        return None
    return tuple(text for text in given if text.strip())


def object_in(replied: Replied) -> Mapping[str, Any] | None:
    """The object of a reply: its value, its text as JSON, or the only block of JSON in it; None where it has none."""
    if isinstance(replied.value, Mapping):
        return dict(replied.value)
    blocks = _FENCED.findall(replied.text)
    try:
        given = json.loads(blocks[0] if len(blocks) == 1 else replied.text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, Mapping) else None
