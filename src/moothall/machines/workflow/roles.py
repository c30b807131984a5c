"""The shape of a file of roles as JSON Schema, and everything that is wrong with such a file.

`SCHEMA` is what `moot schema roles` prints; a test compares it with the fields that are read. Files of roles are also
written for other programs, so what nobody here reads is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moothall.agents.roles import COMMENT, tidy_role
from moothall.agents.roles import Role as ReadRole
from moothall.errors import Refused
from moothall.kernel.codec import decode
from moothall.machines.schema import NAME, Shape, choice, inner, objects, shape, text, texts
from moothall.machines.workflow.document import Document, Problem, escape_key

_TOOLS = "Tools by their exact names, with `*`, or as `/regular expression/`, with the flags `g`, `i`, `m`, `s`, `u`."
SHAPE = Shape(
    "File of roles",
    "Roles",
    {
        "Roles": {
            "type": "object",
            "description": "Roles by name. One that has the name of a shipped role is laid over it, field by field.",
            "properties": {COMMENT: text("A note for readers; it means nothing.")},
            "additionalProperties": {"$ref": "#/$defs/Role"},
        },
        "Role": shape(
            "A persona. Every field is optional.",
            (),
            {
                "systemMessage": text("Who it is and how it works: what the model is told first."),
                "level": choice("Which of the configured models plays it; base by default.", "base", "smart", "fast"),
                "reminder": text("What the model is told again with every request."),
                "examples": objects("Example", "What was said once, to show how it is meant."),
                "includedTools": texts(f"The only tools that it has. {_TOOLS}"),
                "excludedTools": texts(f"The tools that it does not have; not beside includedTools. {_TOOLS}"),
                "parsingTools": objects("ParsingTool", "What it can decide; conditions read it as `function.NAME`."),
                "rehearsal": {"type": "object", "description": "Values that the rehearsal model gives in its place."},
            },
        ),
        "Example": shape(
            "Something that was said once.",
            ("role", "content"),
            {"role": choice("Who said it.", "user", "assistant", "system"), "content": text("What was said.")},
        ),
        "ParsingTool": shape(
            "A decision: a function that the model calls to tell it.",
            ("function",),
            {"type": choice("Always function.", "function"), "function": inner("Shape", "The function.")},
        ),
        "Shape": shape(
            "A function that a model calls.",
            ("name",),
            {
                "name": text("Its name, for example `judge`; conditions read `function.judge.arguments`.", NAME),
                "description": text("When the model should call it."),
                "parameters": {"type": "object", "description": "The JSON Schema of its arguments."},
            },
        ),
    },
)
SCHEMA = SHAPE.plain
_PLACE = re.compile(r"^(?P<place>\S+?): ")


def is_file_of_roles(value: Any) -> bool:
    """Whether a file looks as if it had roles in it, and no workflow."""
    if not isinstance(value, dict) or not value or "workflow_name" in value or "states" in value:
        return False
    known = SHAPE.parts["Role"]["properties"]
    return any(isinstance(role, dict) and (not role or known.keys() & role.keys()) for role in value.values())


def role_problems(document: Document) -> Iterator[Problem]:
    """Everything that is wrong with a file of roles."""
    for name, plain in document.value.items():
        if name == COMMENT:
            continue
        try:
            read, notes = tidy_role(name, plain)
            decode(ReadRole, read, name)
        except (Refused, ValueError) as error:
            yield _problem_at(
                document, name, "error", "E_ROLE", str(error), "correct it; `moot schema roles` has the shape"
            )
        else:
            for note in notes:
                yield _problem_at(
                    document, name, "warning", "W_ROLES", note, "correct it, or leave it if others need it"
                )


def _problem_at(document: Document, name: str, level: Any, code: str, why: str, remedy: str) -> Problem:
    """A problem at the place that its text begins with."""
    found = _PLACE.match(why)
    inside = found["place"].removeprefix(name) if found is not None and found["place"].startswith(name) else ""
    steps = re.findall(r"\w+", inside)
    pointer = "".join(f"/{step}" for step in (escape_key(name), *steps))
    return Problem(level, code, pointer, why, remedy, document.line(pointer))
