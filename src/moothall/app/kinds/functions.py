"""The functions that a user registers: tools, what `py:NAME` names in a workflow file, checks of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction, isfunction
from types import ModuleType
from typing import Any

from moothall.agents.ask import Tool, as_tool
from moothall.app.kinds.python import load

Functions = Mapping[str, Callable[..., Any]]


def tools_in(functions: str) -> list[Tool]:
    """The tools of a module: its async functions, and those that say themselves what a crash may repeat."""
    if not functions:
        return []
    module = load(functions)
    given = {name: one for name, one in vars(module).items() if not name.startswith("_")}
    tools = {one.name: one for one in given.values() if isinstance(one, Tool)}
    for name, one in given.items():
        if _is_own(module, one) and iscoroutinefunction(one):
            tools.setdefault(name, as_tool(one))
    return list(tools.values())


def functions_in(functions: str) -> Functions:
    """The functions of a module by name."""
    if not functions:
        return {}
    module = load(functions)
    return {name: one for name, one in vars(module).items() if not name.startswith("_") and _is_own(module, one)}


def _is_own(module: ModuleType, one: Any) -> bool:
    return isfunction(one) and one.__module__ == module.__name__
