"""Scripts for teams: what personas reply, and what a person types."""

import json
from pathlib import Path
from typing import Any

Script = dict[str, list[Any]]


def says(content: str, **fields: Any) -> dict[str, Any]:
    """A reply with what it directs."""
    return {"value": {"content": content, **fields}}


def hands(content: str, to: str, **fields: Any) -> dict[str, Any]:
    return says(content, transition="HANDOFF_TO_AGENT", next_agent=to, **fields)


def approves(content: str, to: str, **fields: Any) -> dict[str, Any]:
    return says(content, transition="APPROVE_AND_HANDOFF", next_agent=to, approval_status="APPROVED", **fields)


def rejects(content: str, why: str, **fields: Any) -> dict[str, Any]:
    return says(content, transition="REQUEST_REWORK", rework_reason=why, **fields)


HAND_OFF: Script = {
    "creative_partner": [
        hands("A game about tides.", "game_designer"),
        hands("A game in which the tide is the clock.", "game_designer"),
    ],
    "game_designer": [
        rejects("There is no core loop.", "say what the player does every minute"),
        approves("Now there is one.", "ceo"),
    ],
    "ceo": [says("Worth a prototype.")],
}
"""The hand-off test of the document: concept, rework, approval, direction."""


def written(folder: Path, script: Script, name: str = "replies.json") -> str:
    """A script as the model that plays it."""
    path = folder / name
    path.write_text(json.dumps(script))
    return f"scripted:{path}"


def typed(folder: Path, *lines: str) -> str:
    """A file with what a person types."""
    path = folder / "typed.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)
