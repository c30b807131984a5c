"""Finds machines: `FILE.py:NAME`, `package.module:NAME`, built-in ones and workflows by name, and the other way round.

A file that is loaded to find its machine must not start runs while it is loaded; `run` asks `is_loading`.

Who only looks at runs loads nothing that a store names (`looking`): the store may be somebody else's.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os.path import exists, isabs, isdir, isfile, realpath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard
from weakref import WeakKeyDictionary

from moothall.errors import DefinitionError, MoothallError, words_of
from moothall.kernel.machine import Machine

if TYPE_CHECKING:
    from moothall.machines.workflow.compiler import WorkflowMachine

BUILT_IN = {"pipeline": "moothall.machines.pipeline", "turn": "moothall.machines.turn"}
"""The machines that come with the package: where the function is that makes one, in the size that it is given."""
DIGITS = 9
"""The most digits of such a size."""
WITHOUT_MACHINES = sys.stdlib_module_names | {"moothall", "__main__"}
"""Where no machine of an author is: in the standard library, and with us. The program itself is looked at last."""
REMEDY = 'put that under `if __name__ == "__main__":`'
_ELSEWHERE = "a file is written FILE.py:NAME, and `moot workflows` lists workflows"
_loading: list[str] = []
_loaded: dict[str, ModuleType] = {}
"""The modules of files that were found before, by their absolute path."""
_sources: WeakKeyDictionary[Machine, str] = WeakKeyDictionary()


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
        raise DefinitionError(f"the definition is in {source}, and looking loads no code; name it: --machine {source}")


def find(source: str) -> Machine:
    """The machine at this source. Without `:NAME` the file's only machine, or a built-in one."""
    path, _, name = source.rpartition(":") if ":" in source else (source, "", "")
    if name and (known := _known(path, name)) is not None:
        return known
    if (machine := built_in(source)) is not None:
        return machine
    if is_workflow(source):
        from moothall.app.kinds.workflow.runs import machine_at  # a machine in Python never needs it

        return machine_at(source)
    if not path:
        raise DefinitionError(f"{source!r} names no machine; write FILE.py:NAME or package.module:NAME")
    module = load(path)
    if isabs(path):
        _loaded[path] = module
    if name and isinstance(found := getattr(module, name, None), Machine):
        return found
    machines = {key: value for key, value in vars(module).items() if isinstance(value, Machine)}
    if name:
        raise DefinitionError(f"{path} has no machine {name!r}; {_listed(machines)}")
    if len(machines) != 1:
        raise DefinitionError(f"{path}: {_listed(machines)}; name one as {path}:NAME")
    return next(iter(machines.values()))


def _known(path: str, name: str) -> Machine | None:
    """A machine in a file that was found before and is still there, or in a module that is imported."""
    module = _loaded[path] if path in _loaded and isfile(path) else sys.modules.get(path)
    found = getattr(module, name, None)
    return found if isinstance(found, Machine) else None


def built_in(name: str) -> Machine | None:
    """The built-in machine of this name, `NAME` or `NAME-SIZE`; None where there is none."""
    family, _, size = name.partition("-")
    is_size = size.isascii() and size.isdigit() and len(size) <= DIGITS
    if family not in BUILT_IN or not (name == family or is_size):
        return None
    make: Callable[..., Machine] = getattr(importlib.import_module(BUILT_IN[family]), family)
    return make(int(size)) if size else make()


def is_workflow(source: str) -> bool:
    """Whether a source is a workflow: a JSON file or a folder, with a name behind it, or the name of a known one."""
    path = source.partition("?")[0]
    if not path or path.endswith(".py"):
        return False
    if path.endswith(".json") or ".json:" in path:
        return True
    folder, _, name = path.rpartition(":")
    if (folder and not isdir(folder)) or "/" in name:
        return False
    from moothall.app.kinds.workflow.files import file_in, file_of  # a machine in Python never needs it

    return (file_in(Path(folder), name) if folder else file_of(name)) is not None


def is_missing(source: str) -> bool:
    """Whether a source names a file by its whole path, with or without a name behind it, and there is none."""
    path = source.partition("?")[0]
    return isabs(path) and not exists(path) and not exists(path.rpartition(":")[0])


def is_of_workflow(machine: Machine) -> TypeGuard[WorkflowMachine]:
    """Whether a machine was compiled from a workflow file; what authors write in Python is a plain machine."""
    return type(machine) is not Machine and is_workflow(_sources.get(machine, ""))


def remember(machine: Machine, source: str) -> None:
    """Know where a machine that stands in no module is found again."""
    _sources[machine] = source


def beside(source: str, name: str) -> Machine | None:
    """The machine of this name in the same module as another; None where there is none."""
    if source and is_workflow(source):
        from moothall.app.kinds.workflow.runs import sub_workflow

        return sub_workflow(source, name)
    path, _, _ = source.rpartition(":")
    if not path:
        return None
    module = load(path)
    found = (value for value in vars(module).values() if isinstance(value, Machine) and value.name == name)
    return next(found, None)


def load(source: str) -> ModuleType:
    """A module, by its file or its name."""
    return _load_file(Path(source)) if source.endswith(".py") else _load_module(source)


def _listed(machines: dict[str, Machine]) -> str:
    return "its machines are " + ", ".join(machines) if machines else "it has no machine"


def _load_file(path: Path) -> ModuleType:
    if not isfile(path):
        raise DefinitionError(f"there is no file {path}{_barred(path)}")
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


def _barred(path: Path) -> str:
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
    return DefinitionError(f"{place}: {error}" if isinstance(error, MoothallError) else f"{place}: {_named(error)}")


def _named(error: BaseException) -> str:
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


def source_of(machine: Machine) -> str:
    """Where a machine can be found again from any folder; "" where it was made on the fly."""
    source = _sources.get(machine)
    if source is None:
        found = (_source_in(module, machine) for module in _modules())
        source = _sources[machine] = machine.name if is_built_in(machine) else next(filter(None, found), "")
    return source


def is_built_in(machine: Machine) -> bool:
    """Whether a machine is the built-in one of its name, and not another that is called the same."""
    known = built_in(machine.name)
    return known is not None and known.digest == machine.digest


def _modules() -> list[ModuleType]:
    """The modules that may have a machine, the program itself last."""
    others = [name for name in list(sys.modules) if name.partition(".")[0] not in WITHOUT_MACHINES]
    return [sys.modules[name] for name in (*others, "__main__") if name in sys.modules]


def _source_in(module: ModuleType, machine: Machine) -> str:
    file = getattr(module, "__file__", None) or ""
    if not file.endswith(".py") or id(machine) not in map(id, list(vars(module).values())):
        return ""
    for key, value in list(vars(module).items()):
        if value is machine:
            dotted = "." in module.__name__
            return f"{module.__name__}:{key}" if dotted else f"{Path(file).resolve()}:{key}"
    return ""
