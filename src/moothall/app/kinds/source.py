"""Where machines are found, and where a machine is found again.

A source is `FILE.py:NAME`, `package.module:NAME`, a file of another kind, or the name of a machine that comes with the
package. Each kind knows its own; a name that is nobody else's is a module in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os.path import exists, isabs
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from moothall.agents.ask import Starting
from moothall.app.kinds.document import YAML, read_document
from moothall.app.kinds.kind import DEFINED_IN_FILES, KINDS, PLAIN, Kind, kind_named, kind_of, kinds_for
from moothall.errors import DefinitionError, Refused
from moothall.kernel.machine import Machine

WITHOUT_MACHINES = sys.stdlib_module_names | {"moothall", "__main__"}
"""Where no machine of an author is: in the standard library, and with us. The program itself is looked at last."""
_sources: WeakKeyDictionary[Machine, str] = WeakKeyDictionary()


def find(source: str) -> Machine:
    """The machine at this source."""
    if ":" in source and (known := kind_named(PLAIN).named(source)) is not None:
        return known
    kinds = (kind_named(PLAIN),) if _is_python(source) else kinds_for(source)
    if source.endswith(YAML) and not any(kind.named(source) for kind in kinds if kind is not kind_named(PLAIN)):
        raise DefinitionError(unlike(source, "a file with a machine in it"))
    machine = next(filter(None, (kind.find(source) for kind in kinds)), None)
    if machine is None:
        raise DefinitionError(f"{source!r} names no machine; write FILE.py:NAME or package.module:NAME")
    return machine


def _is_python(source: str) -> bool:
    path = source.partition("?")[0]
    return path.endswith(".py") or ".py:" in path


def unlike(source: str, wanted: str) -> str:
    """That a file is not what was wanted, and what it looks like."""
    if not exists(source):
        return f"there is no file {source}"
    document = read_document(Path(source))
    if document.problems:
        return f"{source}:{document.problems[0].line}: {document.problems[0].why}; {document.problems[0].remedy}"
    known = (kind_named(name).resembles(document.value) for name in DEFINED_IN_FILES)
    if likeness := next(filter(None, known), ""):
        return f"{source} is not {wanted}; it looks like {likeness}"
    keys = ", ".join(str(key) for key in list(document.value)[:6]) if isinstance(document.value, dict) else "no fields"
    return f"{source} is not {wanted}, nor any other file that is known here; it has {keys}"


def kinds_at(source: str) -> list[Kind]:
    """The kinds that may have files at a source; each looks whether the content of a file is its own."""
    if _is_python(source):
        return []
    return [kind_named(name) for name, listing in KINDS.items() if listing.looks or listing.files]


def named_machine(name: str) -> Machine | None:
    """A machine that is known by its name alone: one that comes with the package, or a file that is looked for."""
    return next(filter(None, (kind.named(name) for kind in kinds_for(name))), None)


def with_files(source: str, *, roles: str, functions: str) -> str | None:
    """A source as somebody starts it, with a file of roles and with functions; None where it takes none."""
    return next(filter(None, (kind.source_with(source, roles, functions) for kind in kinds_at(source))), None)


def is_missing(source: str) -> bool:
    """Whether a source names a file by its whole path, with or without a name behind it, and there is none."""
    path = source.partition("?")[0]
    return isabs(path) and not exists(path) and not exists(path.rpartition(":")[0])


def child_machine(parent: Machine, name: str) -> Machine:
    """The machine that another starts by this name: it stands in its table, beside it, or is known everywhere."""
    machine = _started_in(parent).get(name) or kind_of(parent).beside(parent, name) or named_machine(name)
    if machine is None:
        raise DefinitionError(f"no machine is called {name!r}; put it into the same file as {parent.name!r}")
    return machine


def definition_of(machine: Machine) -> Mapping[str, Any]:
    """What is stored with a run of a machine, so that it needs no file to go on; empty where its definition is code."""
    content = kind_of(machine).definition(machine)
    return {"kind": machine.kind, "content": content} if content else {}


def restore_machine(source: str, definition: Mapping[str, Any]) -> Machine:
    """The machine of a definition that was stored with a run."""
    return kind_named(definition["kind"]).restored(source, definition["content"])


def _started_in(parent: Machine) -> dict[str, Machine]:
    """The machines that stand themselves in the table of another."""
    actions = (action for action in parent.actions() if isinstance(action, Starting))
    return {action.child: action.machine for action in actions if action.machine is not None}


def source_of(machine: Machine) -> str:
    """Where a machine can be found again from any folder; "" where it was made on the fly."""
    source = _sources.get(machine)
    if source is None:
        found = (_source_in(module, machine) for module in _modules())
        source = _sources[machine] = machine.name if is_built_in(machine) else next(filter(None, found), "")
    return source


def remember(machine: Machine, source: str) -> None:
    """Know where a machine that stands in no module is found again."""
    _sources[machine] = source


def is_built_in(machine: Machine) -> bool:
    """Whether a machine is the built-in one of its name, and not another that is called the same."""
    if KINDS[machine.kind].looks:
        return False
    known = kind_of(machine).named(machine.name)
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


def write_new(kind: Kind, name: str) -> tuple[Path, str]:
    """Write a file of a kind to begin with into the current folder; where it is, and the command that runs it."""
    text = kind.template(name)
    if text is None:
        raise Refused(f"nothing of the kind {kind.name} is written in a file")
    path = Path(f"{name}.json")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Refused(f"{path} is there already; choose another name, or remove it") from error
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written: {error.strerror}") from error
    return path, kind.way_to_run(str(path))
