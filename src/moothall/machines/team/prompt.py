"""The prompt of a persona: its own file inside a frame that all share.

The frame carries the shape of a reply and the colleagues whom this persona can reach, so that nobody has to guess how
to hand on and to whom. A persona that shows the user's word or previous work gets it from the conversation, not here.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

from moothall.errors import BadValue
from moothall.machines.team.definition import Persona, Roster
from moothall.machines.team.directives import REPLY_SCHEMA, USER


def persona_prompt(roster: Roster, persona: str, own_text: str) -> str:
    """The whole prompt of a persona, of which `own_text` is its own part."""
    known = roster.personas[persona]
    colleagues = [_line(roster.personas[target]) for target in roster.targets(persona)]
    if known.accepts_user:
        colleagues.append(f"- `{USER}`: the user, where you need an answer or a decision")
    parts = {
        "name": known.name,
        "team": roster.team.description or roster.team.team_name,
        "own": own_text.strip(),
        "schema": json.dumps(dict(REPLY_SCHEMA), indent=2),
        "colleagues": "\n".join(colleagues) or "- nobody; go on talking",
    }
    text = shipped_prompt("frame.md")
    for key, value in parts.items():
        text = text.replace(f"{{{key}}}", value, 1) if key != "own" else text
    # The persona's own words go in last: what they contain is text, never a place to fill in.
    return text.replace("{own}", parts["own"], 1)


def _line(persona: Persona) -> str:
    skills = f" ({', '.join(persona.capabilities)})" if persona.capabilities else ""
    return f"- `{persona.id}`: {persona.name}{skills}"


@lru_cache
def shipped_prompt(name: str) -> str:
    """The text of a prompt that ships."""
    if not has_shipped_prompt(name):
        raise BadValue(f"{name!r} is not a prompt that ships; write a file of that name beside the team file")
    return files(__package__).joinpath("prompts", name).read_text(encoding="utf-8").strip()


def has_shipped_prompt(name: str) -> bool:
    """Whether a prompt of this name ships."""
    return (
        name.replace("_", "").removesuffix(".md").isalnum() and files(__package__).joinpath("prompts", name).is_file()
    )
