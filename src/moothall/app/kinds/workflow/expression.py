"""Evaluates one text as a workflow file would, over data from a file: for authors who want to try a condition.

The data have the names that texts see, `tool_calls` by agent, and `now` (seconds) and `seed`, from which `Date` and
`Math.random` come. What is not given is empty; time and seed are 0, so that the same text always has the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.errors import Refused
from moothall.kernel.step import Answer, Value
from moothall.machines.workflow.tokens import EVERYTHING
from moothall.scripting.workflow import Batch, Choice, Kind, Script, Scripts, apply_change

SHAPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "common_data": (dict, "an object"),
    "agents": (dict, "an object"),
    "contexts": (dict, "an object"),
    "tool_calls": (dict, "an object"),
    "last_tool_calls": (list, "a list"),
    "last_parsing_tool_calls": (list, "a list"),
    "now": ((int, float), "a number of seconds"),
    "seed": ((int, str), "a number or a text"),
}
KNOWN = EVERYTHING | set(SHAPES)


def evaluate(text: str, data: Any, kind: Kind = "expression") -> Answer:
    """The value of a text; of a script, what common_data is after it."""
    _check(data)
    scope = {name: value for name, value in data.items() if name in EVERYTHING}
    scope["agents"] = _agents(data)
    batch = Batch((Choice(then=(Script(kind, text),)),), scope, now=data.get("now", 0), seed=str(data.get("seed", 0)))
    with Scripts(most=1) as scripts:
        [answer] = scripts.evaluate_blocking(batch).then
    if kind == "script" and isinstance(answer, Value):
        return Value(apply_change(data.get("common_data", {}), answer.value))
    return answer


def _check(data: Any) -> None:
    if not isinstance(data, dict):
        raise Refused(f"the data must be an object with some of {', '.join(sorted(KNOWN))}")
    if unknown := sorted(set(data) - KNOWN):
        raise Refused(f"the data have {unknown[0]!r}, which no text can see; known are {', '.join(sorted(KNOWN))}")
    for name, (shape, words) in SHAPES.items():
        if name in data and (not isinstance(data[name], shape) or isinstance(data[name], bool)):
            raise Refused(f"{name} in the data must be {words}")
    if wrong := [name for name in ("agents", "contexts") if not _holds_objects(data.get(name, {}))]:
        raise Refused(f"{wrong[0]} in the data must hold an object for each name")


def _holds_objects(things: Mapping[str, Any]) -> bool:
    return all(isinstance(thing, dict) for thing in things.values())


def _agents(data: Mapping[str, Any]) -> dict[str, Any]:
    agents = dict(data.get("agents", {}))
    for role, calls in data.get("tool_calls", {}).items():
        agents[role] = {**agents.get(role, {}), "tool_calls": calls}
    return agents
