"""Machines that authors write in Python: `FILE.py:NAME` and `package.module:NAME`, and who performs in them.

A file that is loaded to find its machine must not start runs while it is loaded; `run` asks `is_loading`.

Who only looks at runs loads nothing that a store names (`looking`): the store may be somebody else's.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from os.path import isabs, isfile, realpath
from pathlib import Path
from types import ModuleType
from typing import Any

from moothall.app.kinds.bindings import Provided, agents_in, bind_functions, models_in, unchanging_bindings
from moothall.app.kinds.kind import Kind
from moothall.app.kinds.source import source_of
from moothall.errors import DefinitionError, MoothallError, words_of
from moothall.kernel.machine import Machine
from moothall.runtime.hall import Bindings

REMEDY = 'put that under `if __name__ == "__main__":`'
_ELSEWHERE = "a file is written FILE.py:NAME, and `moot workflows` lists workflows"
_loading: list[str] = []
_loaded: dict[str, ModuleType] = {}
"""The modules of files that were found before, by their absolute path."""


class PythonKind(Kind):
    """Plain machines; their functions stand in their tables or are brought by whoever starts a run."""

    def find(self, source: str) -> Machine | None:
        """The machine at this source. Without `:NAME` the file's only machine."""
        path, _, name = source.rpartition(":") if ":" in source else (source, "", "")
        if (known := self.named(source)) is not None:
            return known
        if not path:
            raise DefinitionError(f"{source!r} names no machine; write FILE.py:NAME or package.module:NAME")
        module = load(path)
        if isabs(path):
            _loaded[path] = module
        if name and isinstance(value := getattr(module, name, None), Machine):
            return value
        machines = {key: value for key, value in vars(module).items() if isinstance(value, Machine)}
        if name:
            raise DefinitionError(f"{path} has no machine {name!r}; {_format_names(machines)}")
        if len(machines) != 1:
            raise DefinitionError(f"{path}: {_format_names(machines)}; name one as {path}:NAME")
        return next(iter(machines.values()))

    def named(self, name: str) -> Machine | None:
        """A machine in a file that was found before and is still there, or in a module that is imported."""
        path, _, name = name.rpartition(":")
        module = _loaded[path] if path in _loaded and isfile(path) else sys.modules.get(path)
        value = getattr(module, name, None) if path else None
        return value if isinstance(value, Machine) else None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """The machine of this name in the same module as another."""
        path, _, _ = source_of(machine).rpartition(":")
        if not path:
            return None
        values = vars(load(path)).values()
        return next((value for value in values if isinstance(value, Machine) and value.name == name), None)

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its functions, those of the caller, and the model for whoever is none."""
        return unchanging_bindings(machine) if provided.is_empty() else bind_functions(machine, provided)

    def asked(self, machine: Machine) -> frozenset[str]:
        """The agents that the table asks, by name."""
        return agents_in(machine)

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """Those that stand in the table."""
        yield from (model for agent, model in models_in(machine) if agent not in given)


KIND: Kind = PythonKind()


def is_loading() -> str:
    """The source that is being loaded right now; "" where none is."""
    return _loading[-1] if _loading else ""


_looking: ContextVar[tuple[Machine | None] | None] = ContextVar("looking", default=None)


@contextmanager
def looking(machine: Machine | None = None) -> Iterator[None]:
    """Load nothing meanwhile; where a run is of the machine that a person has named, that one is taken."""
    token = _looking.set((machine,))
    try:
        yield
    finally:
        _looking.reset(token)


def named_to_look(name: str) -> Machine | None:
    """The machine of this name that a person has named to look at a run with."""
    machine = (_looking.get() or (None,))[0]
    return machine if machine is not None and machine.name == name else None


def _require_loading(source: str) -> None:
    if _looking.get() is not None:
        raise DefinitionError(
            f"the definition is Python code, which is not loaded unless you name it: --machine {source}"
        )


def load(source: str) -> ModuleType:
    """A module, by its file or its name."""
    return _load_file(Path(source)) if source.endswith(".py") else _load_module(source)


def _format_names(machines: dict[str, Machine]) -> str:
    return "its machines are " + ", ".join(machines) if machines else "it has no machine"


def _load_file(path: Path) -> ModuleType:
    if not isfile(path):
        raise DefinitionError(f"there is no file {path}{_access_problem(path)}")
    if loaded := sys.modules.get(_module_name(path)):
        return loaded
    resolved = Path(realpath(path))
    name = _module_name(resolved)
    if name in sys.modules:
        return sys.modules[name]
    _require_loading(str(path))
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(resolved.parent))
    _loading.append(str(path))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's file may raise anything while it is loaded
        del sys.modules[name]
        raise _unloadable(f"{path}{_line(error, str(resolved))}", error) from error
    finally:
        _loading.pop()
        sys.path.remove(str(resolved.parent))
    return module


def _access_problem(path: Path) -> str:
    """Why nobody can see whether a file is there, where that is so."""
    try:
        path.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f": {error.strerror}"
    return ""


def _module_name(resolved: Path) -> str:
    return "moothall_file_" + hashlib.sha256(str(resolved).encode()).hexdigest()[:16]


def _unloadable(place: str, error: BaseException) -> DefinitionError:
    if isinstance(error, SystemExit):
        return DefinitionError(f"{place}: it ends the program while it is loaded; {REMEDY}")
    return DefinitionError(
        f"{place}: {error}" if isinstance(error, MoothallError) else f"{place}: {_format_error(error)}"
    )


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else words_of(error)


def _line(error: BaseException, path: str) -> str:
    """Where in the file an error came from, as `:LINE`."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f":{error.lineno}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _outermost(error: BaseException) -> str:
    """Where the module that was imported stood when it failed, as `FILE:LINE`."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and file not in (__file__, importlib.__file__):
            return f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return ""


def _load_module(name: str) -> ModuleType:
    if loaded := sys.modules.get(name):
        return loaded
    if not all(part.isidentifier() for part in name.split(".")):
        raise DefinitionError(f"{name!r} names no module; write FILE.py:NAME or package.module:NAME")
    _require_loading(name)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _loading.append(name)
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything while it is loaded
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise DefinitionError(f"there is no workflow or module {error.name!r}; {_ELSEWHERE}") from error
        raise _unloadable(_outermost(error) or name, error) from error
    finally:
        _loading.pop()
