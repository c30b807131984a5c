"""What of a workflow file and its roles decides steps, and what is only said.

Only said are descriptions, what stands in a context before the workflow begins, what agents are told and people are
asked, and of roles their prompts, reminders and examples. Whether a state tells anything at all decides, and so does
the input of `stop`, which is the output, and a function of the author's, which may do anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.kernel.machine import schema_without_words
from moothall.machines.workflow.definition import STOP

FUNCTION = "py:"
"""What an input begins with that is a function of the author's."""


def deciding_part(workflow: Mapping[str, Any], roles: Mapping[str, Any]) -> tuple[Any, Any]:
    """A workflow and its roles as JSON, without what is only said."""
    plain = _without(workflow, "description")
    for name in ("input", "output"):
        plain[name] = _without(plain[name], "description")
    plain["contexts"] = [_without(context, "starting_messages") for context in plain["contexts"]]
    plain["states"] = [_deciding_state(state) for state in plain["states"]]
    return plain, {name: _deciding_role(role) for name, role in roles.items()}


def _deciding_state(state: Mapping[str, Any]) -> dict[str, Any]:
    plain = _without(state, "description")
    if state["name"] != STOP:
        plain["input"] = _unsaid(state["input"])
    if state["ask"] is not None:
        ask = state["ask"]
        plain["ask"] = {**ask, "question": _unsaid(ask["question"]), "schema": schema_without_words(ask["schema"])}
    for inside in ("states", "parallel"):
        plain[inside] = [_deciding_state(inner) for inner in state[inside]]
    return plain


def _unsaid(text: str | None) -> str | None:
    """Whether there is a text, in place of the text; the name of a function stays."""
    return text if text is None or text.startswith(FUNCTION) else ""


def _deciding_role(role: Mapping[str, Any]) -> dict[str, Any]:
    plain = _without(role, "systemMessage", "reminder", "examples")
    tools = [tool["function"] for tool in plain["parsingTools"]]
    plain["parsingTools"] = [
        {"name": tool["name"], "parameters": schema_without_words(tool["parameters"])} for tool in tools
    ]
    return plain


def _without(plain: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name not in names}
