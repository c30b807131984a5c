"""The functions that a user registers: tools, what `py:NAME` names in a workflow file, checks of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moothall.agents.ask import Tool
from moothall.app.functions import is_own, module_tools
from moothall.app.kinds.python import load

Functions = Mapping[str, Callable[..., Any]]


def tools_in(functions: str) -> list[Tool]:
    """The tools of a module: its async functions, and those that say themselves what a crash may repeat."""
    if not functions:
        return []
    return module_tools(load(functions))


def functions_in(functions: str) -> Functions:
    """The functions of a module by name."""
    if not functions:
        return {}
    module = load(functions)
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if is_own(module, value)}
