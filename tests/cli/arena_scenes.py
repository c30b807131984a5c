"""Scripts for the arena: what its agents reply in a scene; where nothing is said, the panel approves."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PANEL = ("analyst", "solution", "critic", "security", "optimizer")
Reply = Mapping[str, Any]


def vote(verdict: str = "approve", confidence: float = 0.9, *reasons: str, **more: Any) -> dict[str, Any]:
    """What an agent of the panel replies."""
    return {"verdict": verdict, "confidence": confidence, "reasons": list(reasons), **more}


def command(id: str, text: str, **more: Any) -> dict[str, Any]:
    """A task that runs a command."""
    return {"id": id, "kind": "command", "command": text, **more}


def edit(id: str, path: str, content: str, **more: Any) -> dict[str, Any]:
    """A task that writes a file."""
    return {"id": id, "kind": "edit", "path": path, "content": content, **more}


def script(file: Path, *tasks: Reply, kind: str = "chore", model: Sequence[str] = (), **said: Sequence[Reply]) -> str:
    """A model that plans these tasks; whoever of the panel is not given replies approves of everything."""
    lines: dict[str, list[Any]] = {
        "classifier": [{"value": {"kind": kind, "tags": ["test"], "confidence": 0.9}}],
        "planner": [{"value": {"tasks": list(tasks)}}],
        "model": list(model),
    }
    for role in PANEL:
        lines[role] = [{"value": reply} for reply in said.get(role, [vote()] * 5)]
    file.write_text(json.dumps(lines))
    return f"scripted:{file}"
