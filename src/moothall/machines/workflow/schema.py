"""The shape of a workflow file as JSON Schema, and everything about a file that does not have it.

`SCHEMA` is what `moot schema workflow` prints, and what `misfits` reads: of JSON Schema it understands what `SCHEMA`
uses. Unlike most validators it goes on after the first fault, and a key that nobody reads is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from moothall.machines.workflow.document import Problem, escaped

Plain = Mapping[str, Any]


def _text(description: str) -> Plain:
    return {"type": "string", "description": description}


def _number(description: str, least: float = 0) -> Plain:
    return {"type": "number", "exclusiveMinimum": least, "description": description}


def _count(description: str, least: int = 1) -> Plain:
    return {"type": "integer", "minimum": least, "description": description}


def _list(of: str, description: str) -> Plain:
    return {"type": "array", "items": {"$ref": f"#/$defs/{of}"}, "description": description}


def _inner(of: str, description: str) -> Plain:
    return {"$ref": f"#/$defs/{of}", "description": description}


def _object(description: str, required: tuple[str, ...], properties: Mapping[str, Plain]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {**properties, "$comment": _text("A note for readers; it means nothing.")},
        "required": list(required),
        "additionalProperties": False,
    }


_SCRIPT = "JavaScript, as `() => { … }` or as statements, or py:NAME for a function that the user registered."
_ON_NO_MATCH: Plain = {
    "enum": ["fail", "stop"],
    "description": "What happens where no condition holds: the run fails and says why (default), or it goes to stop.",
}
_PARAMETER: Mapping[str, Plain] = {
    "name": _text("Its name in common_data."),
    "type": {"enum": ["string", "number", "object", "array"], "description": "Its type."},
    "description": _text("What it is."),
}
_DEFINITIONS: Mapping[str, dict[str, Any]] = {
    "Input": _object("What a run is given.", ("name", "type"), _PARAMETER),
    "Output": _object("What a run gives.", ("name",), _PARAMETER),
    "Message": _object(
        "Something that was said before.",
        ("role", "content"),
        {
            "role": {"enum": ["system", "user", "assistant"], "description": "Who said it."},
            "content": _text("What was said."),
        },
    ),
    "Context": _object(
        "A conversation; agents that name the same context share it.",
        ("name",),
        {
            "name": _text("Its name."),
            "starting_messages": _list("Message", "What was said before the run begins."),
            "max_length": _count("The most characters that are kept; the oldest messages go first. 50000 by default."),
        },
    ),
    "Agent": _object(
        "A role at work in a context.",
        ("agent_role", "context", "role"),
        {
            "agent_role": _text("The name of the role."),
            "context": _text("The name of its context."),
            "role": {
                "enum": ["user", "assistant"],
                "description": "As whom it speaks there; one that is user sees the others swapped.",
            },
        },
    ),
    "Transition": _object(
        "A way on. The first whose condition holds is taken.",
        ("target", "condition"),
        {
            "target": _text("The next state."),
            "condition": _text("A JavaScript expression, or py:NAME."),
            "before": _text(f"Done when it is taken. {_SCRIPT}"),
        },
    ),
    "Action": _object(
        "What a state does when it is entered.",
        (),
        {
            "function": {
                "enum": ["sendUserMessage", "addUserMessage", "clearConversation", "script"],
                "description": "What the agent does with the input; sendUserMessage by default.",
            },
            "script": _text(f"Done first. {_SCRIPT}"),
            "sub_workflow": _text("The name of a workflow to run, alone and to its end."),
            "sub_workflow_input": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Its input: the name of its parameter, and an expression.",
            },
        },
    ),
    "Question": _object(
        "A question to a person; the run waits for the answer.",
        ("question",),
        {
            "question": _text("An expression, or a text."),
            "schema": {"type": "object", "description": "The JSON Schema of the answer; yes or no by default."},
            "answer": _text("The name in common_data under which the answer is kept; `answer` by default."),
            "within": _number("The seconds after which the question is over and on_error is taken."),
            "who": _text("The only one whose answer counts."),
        },
    ),
    "Retry": _object("How often a call that fails is tried.", ("attempts",), {"attempts": _count("All attempts.")}),
    "Limits": _object(
        "The most that may be spent.",
        (),
        {
            "usd": _number("Money, in US dollars."),
            "tokens": _count("Tokens of models."),
            "calls": _count("Calls of models."),
            "seconds": _number("Time since the run began."),
            "transitions": _count("Steps."),
        },
    ),
    "State": _object(
        "One state.",
        ("name",),
        {
            "name": _text("Its name. A run begins in `start` and ends in `stop`."),
            "description": _text("What happens there."),
            "agent": _text("The role that speaks there."),
            "input": _text("What it is told: an expression, or a text. In `stop`: what the run gives."),
            "action": _inner("Action", "What is done there."),
            "ask": _inner("Question", "What a person is asked there."),
            "transition": _list("Transition", "Where it leads."),
            "states": _list("State", "States inside; the first is entered, and one without transition ends them."),
            "parallel": _list("State", "States inside that are all active at once, each with states of its own."),
            "join": {
                "enum": ["all", "first"],
                "description": "Which end of the parallel ones counts: that of all (default), or the first.",
            },
            "history": {
                "enum": ["none", "shallow", "deep"],
                "description": "Whether the states inside go on where they were left when this one is entered again.",
            },
            "on_entry": _text(f"Done when it is entered. {_SCRIPT}"),
            "on_exit": _text(f"Done when it is left. {_SCRIPT}"),
            "on_error": _text("The state to go to when something fails here; common_data.error then says what."),
            "on_no_match": _ON_NO_MATCH,
            "timeout": _number("The seconds after which what it waits for has failed."),
            "retry": _inner("Retry", "How often a call that fails is tried."),
            "budget": _inner("Limits", "What a sub-workflow may spend."),
            "max_visits": _count("How often it may be entered."),
        },
    ),
}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Moothall workflow",
    "anyOf": [{"$ref": "#/$defs/Workflow"}, {"type": "array", "items": {"$ref": "#/$defs/Workflow"}, "minItems": 1}],
    "$defs": {
        "Workflow": _object(
            "A workflow: contexts, agents, and the states that say who speaks next.",
            ("workflow_name", "input", "output", "contexts", "agents", "states"),
            {
                "$schema": _text("The address of this schema, for editors."),
                "workflow_name": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$",
                    "maxLength": 64,
                    "description": "Its name: letters, digits, underscores and dashes.",
                },
                "description": _text("What it is for."),
                "input": _inner("Input", "What a run is given."),
                "output": _inner("Output", "What a run gives."),
                "variables": {
                    "type": "object",
                    "description": "First values in common_data. max_iterations bounds the visits of every state.",
                },
                "contexts": _list("Context", "The conversations."),
                "agents": _list("Agent", "Who takes part."),
                "states": {**_list("State", "The states."), "minItems": 1},
                "on_error": _text("The state to go to when something fails and the state itself does not say."),
                "on_no_match": _ON_NO_MATCH,
                "max_tool_rounds": _count("How often an agent may have tools called before it has to go on. 50."),
                "budget": _inner("Limits", "What a run may spend."),
            },
        ),
        **_DEFINITIONS,
    },
}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "object": (dict,),
    "array": (list,),
}
_NAMES = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}
_WANTED = {"string": "a text", "number": "a number", "integer": "a whole number", "object": "an object"}


def misfits(value: Any, name: str = "Workflow", pointer: str = "") -> Iterator[Problem]:
    """Everything about a value that does not have the shape of this name."""
    yield from _misfits(value, SCHEMA["$defs"][name], pointer)


def cleaned(value: Any, name: str = "Workflow") -> Any:
    """A value of this shape without the keys that nobody reads."""
    return _cleaned(value, SCHEMA["$defs"][name])


def _cleaned(value: Any, schema: Plain) -> Any:
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list) and "items" in schema:
        return [_cleaned(one, schema["items"]) for one in value]
    known = schema.get("properties")
    if known is None or not isinstance(value, dict):
        return value
    return {key: _cleaned(one, known[key]) for key, one in value.items() if key in known and key[0] != "$"}


def _misfits(value: Any, schema: Plain, pointer: str) -> Iterator[Problem]:
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        if value not in schema["enum"] or not isinstance(value, str):
            choices = ", ".join(schema["enum"])
            yield Problem(
                "error", "E_ENUM", pointer, f"{_shown(value)} is none of {choices}", f"write one of {choices}"
            )
        return
    kind: str = schema["type"]
    if type(value) not in _TYPES[kind]:
        wanted = _WANTED.get(kind, "a list")
        yield Problem("error", "E_TYPE", pointer, f"it is {_NAMES[type(value)]}, not {wanted}", f"write {wanted}")
    elif kind == "object":
        yield from _object_misfits(value, schema, pointer)
    elif kind == "array":
        yield from _list_misfits(value, schema, pointer)
    elif kind == "string":
        yield from _text_misfits(value, schema, pointer)
    else:
        yield from _number_misfits(value, schema, pointer)


def _object_misfits(value: Plain, schema: Plain, pointer: str) -> Iterator[Problem]:
    known: Plain = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem("error", "E_REQUIRED", f"{pointer}/{key}", f"{key} is missing", known[key]["description"])
    for key, item in value.items():
        place = f"{pointer}/{escaped(key)}"
        if key in known:
            yield from _misfits(item, known[key], place)
        elif isinstance(others, Mapping):
            yield from _misfits(item, others, place)
        elif not others:
            yield Problem("warning", "W_UNKNOWN_KEY", place, f"nobody reads {_shown(key)} here", _meant(key, known))


def _meant(key: str, known: Plain) -> str:
    close = get_close_matches(key[:64].lower(), known, 1)
    return f"did you mean {close[0]!r}?" if close else f"remove it; known are {', '.join(known)}"


def _list_misfits(value: list[Any], schema: Plain, pointer: str) -> Iterator[Problem]:
    if len(value) < schema.get("minItems", 0):
        yield Problem("error", "E_REQUIRED", pointer, "it is empty", "write at least one")
    for index, item in enumerate(value):
        yield from _misfits(item, schema["items"], f"{pointer}/{index}")


def _text_misfits(value: str, schema: Plain, pointer: str) -> Iterator[Problem]:
    pattern, most = schema.get("pattern"), schema.get("maxLength", len(value))
    if len(value) > most or (pattern is not None and not re.fullmatch(pattern, value)):
        remedy = f"use letters, digits, '_' and '-', at most {most} of them, a letter or digit first"
        yield Problem("error", "E_NAME", pointer, f"{_shown(value)} is no name", remedy)


def _number_misfits(value: float, schema: Plain, pointer: str) -> Iterator[Problem]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", value))
    if value < least or (value == least and "exclusiveMinimum" in schema):
        word = "above" if "exclusiveMinimum" in schema else "of at least"
        yield Problem("error", "E_RANGE", pointer, f"{value} is too small", f"write a number {word} {least}")


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) < 60 else text[:57] + "…"
