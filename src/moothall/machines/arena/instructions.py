"""What the agents of the arena are told, from files, and the hash by which an agent's definition is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from moothall.kernel.codec import schema
from moothall.machines.arena.plan import AGENTS
from moothall.machines.arena.replies import (
    ClassificationReply,
    DiagnosisReply,
    OpinionReply,
    PlanReply,
    SolutionReply,
)

DIAGNOSE = "diagnose"
SHAPES: dict[str, type] = {
    "classifier": ClassificationReply,
    "planner": PlanReply,
    "analyst": OpinionReply,
    "solution": SolutionReply,
    "critic": OpinionReply,
    "security": OpinionReply,
    "optimizer": OpinionReply,
    DIAGNOSE: DiagnosisReply,
}
"""The shape of each agent's reply; the critic has another one where it is asked for a failure's cause."""
BOUNDS = ("minimum", "maximum", "minLength", "maxItems", "uniqueItems", "description")
"""What a shape says of what the reader refuses anyway. An agent with other words for it is the same agent."""


@cache
def prompt(name: str) -> str:
    """A prompt by its name."""
    folder = files(__package__).joinpath("prompts")
    return folder.joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


@cache
def prompts() -> dict[str, str]:
    """Every prompt by its name."""
    return {name: prompt(name) for name in (*AGENTS, DIAGNOSE)}


@cache
def definition_of(agent: str) -> str:
    """The hash of an agent's definition: what it is told and the shape of its reply."""
    parts = (agent, DIAGNOSE) if agent == "critic" else (agent,)
    shapes = {part: _without_bounds(schema(SHAPES[part])) for part in parts if part in SHAPES}
    told = [(prompt(part), json.dumps(shape, sort_keys=True)) for part, shape in shapes.items()]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


def _without_bounds(shape: Any) -> Any:
    if isinstance(shape, list | tuple):
        return [_without_bounds(part) for part in shape]
    if not isinstance(shape, Mapping):
        return shape
    kept = {key: part for key, part in shape.items() if key not in BOUNDS}
    fields = {name: _without_bounds(part) for name, part in kept.pop("properties", {}).items()}
    plain = {key: _without_bounds(part) for key, part in kept.items()}
    return {**plain, "properties": fields} if "properties" in shape else plain
