"""Tools that users write in Python: the async functions of a module, and those that say what a crash may repeat."""

from __future__ import annotations

import sys
from importlib.abc import InspectLoader
from importlib.util import decode_source, module_from_spec, spec_from_loader
from inspect import iscoroutinefunction, isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from moothall.agents.ask import Tool, as_tool
from moothall.errors import DefinitionError, words_of


def module_tools(module: ModuleType) -> list[Tool]:
    """The tools of a module."""
    given = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    tools = {value.name: value for value in given.values() if isinstance(value, Tool)}
    for name, value in given.items():
        if is_own(module, value) and iscoroutinefunction(value):
            tools.setdefault(name, as_tool(value))
    return list(tools.values())


def is_own(module: ModuleType, value: Any) -> bool:
    """Whether a function was written in this module."""
    return isfunction(value) and value.__module__ == module.__name__


class _Bytes(InspectLoader):
    """Loads a module from bytes that were read before."""

    def __init__(self, code: bytes) -> None:
        self._code = code

    def get_source(self, fullname: str) -> str:
        """The text of the module."""
        return decode_source(self._code)


def module_of(code: bytes, path: Path, digest: str) -> ModuleType:
    """A module of exactly these bytes, whatever stands in its file by now."""
    name = f"moothall_tools_{digest[:16]}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_loader(name, loader := _Bytes(code), origin=str(path))
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException as error:  # a user's file may raise anything while it is loaded
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise DefinitionError(f"{path} cannot be loaded: {words_of(error)}") from error
    return module
