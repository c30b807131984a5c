"""The shape of a team file: what `moot schema team` prints, and what a file is checked against first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.machines.schema import (
    NAME,
    SNAKE_CASE,
    Plain,
    Shape,
    choice,
    count,
    flag,
    inner,
    objects,
    shape,
    text,
    texts,
)
from moothall.machines.team.arbitration import TERMS


def _amount(description: str) -> Plain:
    return {"type": "number", "exclusiveMinimum": 0, "description": description}


def _table(description: str) -> Plain:
    return {"type": "object", "additionalProperties": texts(""), "description": description}


_AUTONOMY = ("manual", "review", "auto")
_DEFINITIONS: Mapping[str, dict[str, Any]] = {
    "Reach": shape(
        "Whom a persona may hand to; whoever fits one of these.",
        (),
        {
            "groups": texts("Everybody in these groups and below them; * is the whole team."),
            "capabilities": texts("Everybody with one of these capabilities."),
            "personas": texts("These personas."),
        },
    ),
    "Hooks": shape(
        "Names of functions that the user registers.",
        (),
        {"entry": text("Called when it is entered."), "exit": text("Called when it is left.")},
    ),
    "Approval": shape(
        "Who approves what: manual, review or auto.",
        (),
        {
            "transitions": choice("Who approves that another persona is next.", *_AUTONOMY),
            "replies": choice("Who approves what a persona says.", *_AUTONOMY),
        },
    ),
    "Group": shape(
        "A state of the hierarchy.",
        ("name",),
        {
            "name": text("Its name.", NAME),
            "description": text("What it is for."),
            "personas": texts("The ids of the personas in it."),
            "groups": objects("Group", "Groups inside."),
            "states": {
                "type": "array",
                "items": {"enum": ["RespondToUser", "AwaitApproval"]},
                "description": "States in which the user has the word.",
            },
            "reach": inner("Reach", "Whom its personas may hand to, unless they say themselves."),
            "hooks": inner("Hooks", "Called when the group is entered and left."),
        },
    ),
    "Persona": shape(
        "Somebody in the team.",
        ("id", "name", "prompt"),
        {
            "id": text("How it is addressed: small letters, digits and underscores.", SNAKE_CASE),
            "name": text("How it is shown."),
            "prompt": text("The file with its prompt, beside the team file."),
            "capabilities": texts("What it can do; others reach it by these."),
            "model": text("Its model; the one of the run by default."),
            "level": choice("How able a model it gets.", "base", "smart", "fast"),
            "tools": texts("The tools it has: names, * or /regular expression/."),
            "reach": inner("Reach", "Whom it may hand to."),
            "accepts_user": flag("Whether it may give the word to the user. True by default."),
            "hooks": inner("Hooks", "Called when it is entered and left."),
            "autonomy": inner("Approval", "Who approves what it does, where that differs from the team."),
        },
    ),
    "FactTest": shape(
        "What a fact has to be.",
        ("fact",),
        {
            "fact": text("The name of the fact."),
            "is": {"description": "The value that it has to have."},
            "at_least": {"type": "number", "description": "The least that it may be."},
            "at_most": {"type": "number", "description": "The most that it may be."},
        },
    ),
    "When": shape(
        "Conditions; all that are given have to hold.",
        (),
        {
            "context": texts("One of these words stands in the conversation so far."),
            "action": texts("One of these words stands in what is proposed now."),
            "speaker": texts("One of these personas speaks."),
            "facts": objects("FactTest", "These facts are so."),
        },
    ),
    "Rule": shape(
        "Who is next where something holds; it comes before arbitration.",
        ("name", "when", "route"),
        {
            "name": text("Its name, which decisions show.", NAME),
            "description": text("Why it is there."),
            "when": inner("When", "When it holds."),
            "route": text("The persona that is next."),
            "back": flag("Whether the one who was interrupted speaks next. True by default."),
        },
    ),
    "Arbitration": shape(
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
            "blocking": flag("Whether a dependency of 0.9 and more pre-empts. True by default."),
            "cooldown": count("After how many turns a persona may be chosen again.", 0),
        },
    ),
    "Warming": shape(
        "How the next persona is foreseen.",
        (),
        {
            "dependencies": _table("On whom each persona depends."),
            "keywords": _table("To whom a word leads."),
            "keep_turns": count("For how many turns a prepared persona is kept."),
            "predictor": choice("Who foresees: the rule of fixed weights, or one that learns.", "seed", "learned"),
        },
    ),
    "Source": shape(
        "Where a fact comes from.",
        ("fact", "tool"),
        {
            "fact": text("The name of the fact."),
            "tool": text("The tool that says it."),
            "server": text("The MCP server that has the tool."),
            "arguments": {"type": "object", "description": "What the tool is given."},
        },
    ),
    "Memory": shape(
        "What the conversation keeps.",
        (),
        {
            "compression_threshold": count("How many raw items are summarised.", 3),
            "max_embeddings": count("How many summaries are kept apart."),
            "prompt_characters": count("The most characters of memory in a prompt.", 100),
        },
    ),
    "Limits": shape(
        "What ends a conversation or asks the user.",
        (),
        {
            "turns": count("Turns of all personas together. 100 by default."),
            "visits": count("Turns of one persona. 30 by default."),
            "repeats": count("The same handoff without anything new. 3 by default.", 2),
            "calls": count("Calls of models."),
            "tokens": count("Tokens of models."),
            "usd": _amount("Money, in US dollars."),
            "seconds": _amount("Time since the run began."),
        },
    ),
}
SHAPE = Shape(
    "Moothall team",
    "Team",
    {
        "Team": shape(
            "A team: personas in a hierarchy, and the rules by which they hand work on.",
            ("team_name", "start", "groups", "personas"),
            {
                "$schema": text("The address of this schema, for editors."),
                "team_name": text("Its name: letters, digits, underscores and dashes.", NAME),
                "description": text("What it is for."),
                "start": text("The persona that speaks first."),
                "groups": {**objects("Group", "The major states."), "minItems": 1},
                "personas": {**objects("Persona", "Everybody; their order settles ties."), "minItems": 1},
                "reach": inner("Reach", "Whom personas may hand to, unless a group or they say; else everybody."),
                "rules": objects("Rule", "Rules that come before arbitration; the first that holds counts."),
                "arbitration": inner("Arbitration", "How competing proposals are settled."),
                "warming": inner("Warming", "How the next persona is foreseen."),
                "sources": objects("Source", "Where facts come from."),
                "memory": inner("Memory", "What the conversation keeps."),
                "autonomy": inner("Approval", "Who approves what."),
                "limits": inner("Limits", "What ends a conversation or asks the user."),
            },
        ),
        **_DEFINITIONS,
    },
)
