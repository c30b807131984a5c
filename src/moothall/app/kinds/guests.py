"""Takes in agents of other libraries; the adapter is loaded when there is one, and the library has been then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moothall.agents.outside import library_of


def adapt_guests(functions: Mapping[str, Any]) -> Mapping[str, Callable[..., Any]]:
    """Functions by name, with those of other libraries made one of ours."""
    if not any(map(library_of, functions.values())):
        return functions
    return {name: _guest(function) if library_of(function) else function for name, function in functions.items()}


def _guest(one: Any) -> Callable[..., Any]:
    if library_of(one) == "pydantic_ai":
        from moothall.models.pydantic_agents import PydanticAgent

        return PydanticAgent(one)
    from moothall.models.runnables import RunnableAgent

    return RunnableAgent(one)
