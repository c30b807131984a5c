"""The shape of a team file as JSON Schema, and everything about a file that does not have it.

`SCHEMA` is what `moot schema team` prints, and what `misfits` reads: of JSON Schema it understands what `SCHEMA` uses.
It goes on after the first fault, and a key that nobody reads is a warning with a guess at what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from moothall.machines.team.arbitration import TERMS
from moothall.machines.workflow.document import Problem, escaped

Plain = Mapping[str, Any]
SNAKE_CASE = "^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$"
NAME = "^[A-Za-z][A-Za-z0-9_-]*$"


def _text(description: str, pattern: str = "") -> Plain:
    limits = {"pattern": pattern, "maxLength": 64} if pattern else {}
    return {"type": "string", "description": description, **limits}


def _count(description: str, least: int = 1) -> Plain:
    return {"type": "integer", "minimum": least, "description": description}


def _number(description: str) -> Plain:
    return {"type": "number", "exclusiveMinimum": 0, "description": description}


def _flag(description: str) -> Plain:
    return {"type": "boolean", "description": description}


def _texts(description: str) -> Plain:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _list(of: str, description: str) -> Plain:
    return {"type": "array", "items": {"$ref": f"#/$defs/{of}"}, "description": description}


def _inner(of: str, description: str) -> Plain:
    return {"$ref": f"#/$defs/{of}", "description": description}


def _table(description: str) -> Plain:
    values = {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "additionalProperties": values, "description": description}


def _choice(description: str, *values: str) -> Plain:
    return {"enum": list(values), "description": description}


def _object(description: str, required: tuple[str, ...], properties: Mapping[str, Plain]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {**properties, "$comment": _text("A note for readers; it means nothing.")},
        "required": list(required),
        "additionalProperties": False,
    }


_AUTONOMY = ("manual", "review", "auto")
_DEFINITIONS: Mapping[str, dict[str, Any]] = {
    "Reach": _object(
        "Whom a persona may hand to; whoever fits one of these.",
        (),
        {
            "groups": _texts("Everybody in these groups and below them; * is the whole team."),
            "capabilities": _texts("Everybody with one of these capabilities."),
            "personas": _texts("These personas."),
        },
    ),
    "Hooks": _object(
        "Names of functions that the user registers.",
        (),
        {"entry": _text("Called when it is entered."), "exit": _text("Called when it is left.")},
    ),
    "Approval": _object(
        "Who approves what: manual, review or auto.",
        (),
        {
            "transitions": _choice("Who approves that another persona is next.", *_AUTONOMY),
            "replies": _choice("Who approves what a persona says.", *_AUTONOMY),
        },
    ),
    "Group": _object(
        "A state of the hierarchy.",
        ("name",),
        {
            "name": _text("Its name.", NAME),
            "description": _text("What it is for."),
            "personas": _texts("The ids of the personas in it."),
            "groups": _list("Group", "Groups inside."),
            "states": {
                "type": "array",
                "items": {"enum": ["RespondToUser", "AwaitApproval"]},
                "description": "States in which the user has the word.",
            },
            "reach": _inner("Reach", "Whom its personas may hand to, unless they say themselves."),
            "hooks": _inner("Hooks", "Called when the group is entered and left."),
        },
    ),
    "Persona": _object(
        "Somebody in the team.",
        ("id", "name", "prompt"),
        {
            "id": _text("How it is addressed: small letters, digits and underscores.", SNAKE_CASE),
            "name": _text("How it is shown."),
            "prompt": _text("The file with its prompt, beside the team file."),
            "capabilities": _texts("What it can do; others reach it by these."),
            "model": _text("Its model; the one of the run by default."),
            "level": _choice("How able a model it gets.", "base", "smart", "fast"),
            "tools": _texts("The tools it has: names, * or /regular expression/."),
            "reach": _inner("Reach", "Whom it may hand to."),
            "accepts_user": _flag("Whether it may give the word to the user. True by default."),
            "hooks": _inner("Hooks", "Called when it is entered and left."),
            "autonomy": _inner("Approval", "Who approves what it does, where that differs from the team."),
        },
    ),
    "FactTest": _object(
        "What a fact has to be.",
        ("fact",),
        {
            "fact": _text("The name of the fact."),
            "is": {"description": "The value that it has to have."},
            "at_least": {"type": "number", "description": "The least that it may be."},
            "at_most": {"type": "number", "description": "The most that it may be."},
        },
    ),
    "When": _object(
        "Conditions; all that are given have to hold.",
        (),
        {
            "context": _texts("One of these words stands in the conversation so far."),
            "action": _texts("One of these words stands in what is proposed now."),
            "speaker": _texts("One of these personas speaks."),
            "facts": _list("FactTest", "These facts are so."),
        },
    ),
    "Rule": _object(
        "Who is next where something holds; it comes before arbitration.",
        ("name", "when", "route"),
        {
            "name": _text("Its name, which decisions show.", NAME),
            "description": _text("Why it is there."),
            "when": _inner("When", "When it holds."),
            "route": _text("The persona that is next."),
            "back": _flag("Whether the one who was interrupted speaks next. True by default."),
        },
    ),
    "Arbitration": _object(
        "How competing proposals are settled.",
        (),
        {
            "weights": {
                "type": "object",
                "properties": {
                    term: {"type": "number", "minimum": 0, "maximum": 1, "description": f"The weight of {term}."}
                    for term in TERMS
                },
                "additionalProperties": False,
                "description": "Weights of the terms, together at most 1; .3, .4, .3, 0 and 0 by default.",
            },
            "blocking": _flag("Whether a dependency of 0.9 and more pre-empts. True by default."),
            "cooldown": _count("After how many turns a persona may be chosen again.", 0),
        },
    ),
    "Warming": _object(
        "How the next persona is foreseen.",
        (),
        {
            "dependencies": _table("On whom each persona depends."),
            "keywords": _table("To whom a word leads."),
            "keep_turns": _count("For how many turns a prepared persona is kept."),
        },
    ),
    "Source": _object(
        "Where a fact comes from.",
        ("fact", "tool"),
        {
            "fact": _text("The name of the fact."),
            "tool": _text("The tool that says it."),
            "server": _text("The MCP server that has the tool."),
            "arguments": {"type": "object", "description": "What the tool is given."},
        },
    ),
    "Memory": _object(
        "What the conversation keeps.",
        (),
        {
            "compression_threshold": _count("How many raw items are summarised.", 3),
            "max_embeddings": _count("How many summaries are kept apart."),
            "prompt_characters": _count("The most characters of memory in a prompt.", 100),
        },
    ),
    "Limits": _object(
        "What ends a conversation or asks the user.",
        (),
        {
            "turns": _count("Turns of all personas together. 100 by default."),
            "visits": _count("Turns of one persona. 30 by default."),
            "repeats": _count("The same handoff without anything new. 3 by default.", 2),
            "calls": _count("Calls of models."),
            "tokens": _count("Tokens of models."),
            "usd": _number("Money, in US dollars."),
            "seconds": _number("Time since the run began."),
        },
    ),
}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Moothall team",
    "$ref": "#/$defs/Team",
    "$defs": {
        "Team": _object(
            "A team: personas in a hierarchy, and the rules by which they hand work on.",
            ("team_name", "start", "groups", "personas"),
            {
                "$schema": _text("The address of this schema, for editors."),
                "team_name": _text("Its name: letters, digits, underscores and dashes.", NAME),
                "description": _text("What it is for."),
                "start": _text("The persona that speaks first."),
                "groups": {**_list("Group", "The major states."), "minItems": 1},
                "personas": {**_list("Persona", "Everybody; their order settles ties."), "minItems": 1},
                "reach": _inner("Reach", "Whom personas may hand to, unless a group or they say; else everybody."),
                "rules": _list("Rule", "Rules that come before arbitration; the first that holds counts."),
                "arbitration": _inner("Arbitration", "How competing proposals are settled."),
                "warming": _inner("Warming", "How the next persona is foreseen."),
                "sources": _list("Source", "Where facts come from."),
                "memory": _inner("Memory", "What the conversation keeps."),
                "autonomy": _inner("Approval", "Who approves what."),
                "limits": _inner("Limits", "What ends a conversation or asks the user."),
            },
        ),
        **_DEFINITIONS,
    },
}
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


def misfits(value: Any, name: str = "Team", pointer: str = "") -> Iterator[Problem]:
    """Everything about a value that does not have the shape of this name."""
    yield from _misfits(value, SCHEMA["$defs"][name], pointer)


def cleaned(value: Any, name: str = "Team") -> Any:
    """A value of this shape without the keys that nobody reads."""
    return _cleaned(value, SCHEMA["$defs"][name])


def _cleaned(value: Any, schema: Plain) -> Any:
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list) and "items" in schema:
        return [_cleaned(item, schema["items"]) for item in value]
    known = schema.get("properties")
    if known is None or not isinstance(value, dict):
        return value
    return {key: _cleaned(item, known[key]) for key, item in value.items() if key in known and key[0] != "$"}


def _misfits(value: Any, schema: Plain, pointer: str) -> Iterator[Problem]:
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        if not isinstance(value, str) or value not in schema["enum"]:
            choices = ", ".join(schema["enum"])
            guess = _guess(value, schema["enum"]) or f"write one of {choices}"
            yield Problem("error", "E_ENUM", pointer, f"{shown(value)} is not one of {choices}", guess)
        return
    kind = schema.get("type")
    if kind is None:
        return
    if type(value) not in _TYPES[kind]:
        given = _GIVEN.get(type(value), "null")
        yield Problem("error", "E_TYPE", pointer, f"it is {given}, not {_KINDS[kind]}", f"write {_KINDS[kind]}")
    elif kind == "object":
        yield from _object_misfits(value, schema, pointer)
    elif kind == "array":
        if len(value) < schema.get("minItems", 0):
            yield Problem("error", "E_REQUIRED", pointer, "it is empty", "write at least one entry")
        for index, item in enumerate(value):
            yield from _misfits(item, schema["items"], f"{pointer}/{index}")
    elif kind == "string":
        yield from _text_misfits(value, schema, pointer)
    elif kind != "boolean":
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
            remedy = _guess(key, known) or f"remove it; known are {', '.join(known)}"
            yield Problem("warning", "W_UNKNOWN_KEY", place, f"nobody reads {shown(key)} here", remedy)


def _text_misfits(value: str, schema: Plain, pointer: str) -> Iterator[Problem]:
    pattern = schema.get("pattern")
    if pattern is not None and (len(value) > schema["maxLength"] or not re.fullmatch(pattern, value)):
        snake = "small letters, digits and single underscores" if pattern == SNAKE_CASE else "letters, digits, _ and -"
        remedy = f"use {snake}, a letter first, at most {schema['maxLength']} characters"
        yield Problem("error", "E_NAME", pointer, f"{shown(value)} cannot be a name here", remedy)


def _number_misfits(value: float, schema: Plain, pointer: str) -> Iterator[Problem]:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if (least is not None and value < least) or (above is not None and value <= above):
        remedy = f"write a number above {above}" if least is None else f"write a number of at least {least}"
        yield Problem("error", "E_RANGE", pointer, f"{value} is too small", remedy)
    if "maximum" in schema and value > schema["maximum"]:
        yield Problem("error", "E_RANGE", pointer, f"{value} is too large", f"write at most {schema['maximum']}")


def _guess(given: Any, known: Any) -> str:
    close = get_close_matches(given[:64], list(known), 1) if isinstance(given, str) else []
    return f"did you mean {close[0]!r}?" if close else ""


def shown(value: Any) -> str:
    """A value as a finding shows it."""
    text = ascii(value)
    return text if len(text) < 60 else text[:57] + "…"
