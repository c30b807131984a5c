"""Workflow files on the disk: reading them, checking them, finding them by name.

A name is looked for beside the file that uses it, in `workflows` and `config/workflows` of the current folder, and
among the shipped ones. Reading and checking executes nothing: scripts are only looked at, in a process of their own.

What lies in the current folder may be somebody else's. It takes the place of a shipped workflow, or lays roles over the
shipped ones for workflows that are not of that folder, only if it is trusted; and that is said either way.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from os.path import exists, isdir, isfile, realpath
from pathlib import Path
from typing import Any

from moothall.agents.roles import Role, over_shipped, role_notes, roles, shipped_roles
from moothall.app.config.project import read_project
from moothall.app.config.settings import state_directory, tell_once
from moothall.app.kinds.functions import functions_in
from moothall.app.kinds.kind import built_in
from moothall.app.kinds.roles import document_at, roles_in
from moothall.app.kinds.workflow.scripts import engine
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen
from moothall.machines.workflow.check import Around, Source, find_problems, workflows_in
from moothall.machines.workflow.document import LARGEST, Document, Problem, read
from moothall.machines.workflow.roles import is_file_of_roles, role_problems
from moothall.machines.workflow.schema import SCHEMA
from moothall.scripting.children import is_installed
from moothall.scripting.workflow import Script

FOLDERS = (Path("workflows"), Path("config/workflows"))
SHIPPED = Path(__file__).parents[3] / "machines" / "workflow" / "shipped"
ROLES = Path("config/roles/roles.json")
ROLES_BESIDE = "roles.json"
"""What a file of roles is called that lies beside a workflow file, or in the current folder."""
_NAME = re.compile(SCHEMA["$defs"]["Workflow"]["properties"]["workflow_name"]["pattern"])


Tell = Callable[[str], object]
"""Who is told what replaces something shipped."""
Stamps = tuple[tuple[str, int, int], ...]
"""The state of files: their paths, when they were changed, and how long they are."""


class Checked(Frozen):
    """A file that was checked: its workflows and all its problems."""

    file: str
    workflows: tuple[str, ...]
    findings: tuple[Problem, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the file cannot be used."""
        return any(finding.level == "error" for finding in self.findings)


def is_file_or_folder(source: str) -> bool:
    """Whether a source is a workflow file or a folder of them, and no machine."""
    return source.endswith(".json") or isdir(source)


def files_at(path: Path) -> list[Path]:
    """The workflow files at a path: itself, or those of a folder."""
    try:
        if stat.S_ISREG(mode := path.stat().st_mode):
            return [path]
        if not stat.S_ISDIR(mode):
            raise DefinitionError(f"{path} is neither a file nor a folder")
        found = sorted(file for file in path.iterdir() if file.suffix == ".json" and file.is_file())
        found = [file for file in found if not _goes_with_workflows(file)]
    except FileNotFoundError as error:
        raise DefinitionError(f"there is no file {path}") from error
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise DefinitionError(f"{path} has no workflow files")
    return found


def _goes_with_workflows(file: Path) -> bool:
    """Whether a file of a folder is there for its workflows: roles, or a script with what each agent says."""
    value = document_at(file).value
    if not isinstance(value, dict) or not value:
        return False
    if is_file_of_roles(value):
        return file.name == ROLES_BESIDE
    known = SCHEMA["$defs"]["Workflow"]["properties"]
    return not known.keys() & value.keys() and all(isinstance(said, list) for said in value.values())


class Opened(Frozen):
    """A file as it was read once, with the roles that belong to it: what was checked is what is compiled."""

    document: Document
    checked: Checked
    roles_from: str
    own_roles: Mapping[str, Any]
    stamps: Stamps

    def roles(self, used: Iterable[str]) -> Mapping[str, Role]:
        """The shipped roles with its own laid over them; only those that are used have to be right."""
        return roles(self.own_roles, self.roles_from or "the roles", used)


class Shelf:
    """Workflow files, each of which is read and checked once.

    Files change: a shelf is kept while one command looks at them, and never by what lives longer. Where the user names
    functions, what the files call `py:NAME` has to be among them. `tell` is told which shipped roles are replaced.
    """

    def __init__(self, functions: str = "", tell: Tell = tell_once) -> None:
        self._tell = tell
        self._functions = frozenset(functions_in(functions)) if functions else None
        self._opened: dict[tuple[str, str], Opened] = {}

    def opened(self, path: Path, roles_from: str = "") -> Opened:
        """The file, with the roles of this file, or of the one that belongs to it."""
        resolved = Path(realpath(path))
        roles_from = roles_from or roles_file(resolved, self._tell)
        key = str(resolved), realpath(roles_from) if roles_from else ""
        if key not in self._opened:
            self._opened[key] = _open(path, roles_from, self._functions)
        return self._opened[key]

    def checked(self, path: Path, roles_from: str = "") -> Checked:
        """Everything that is wrong with a file, under the name that it is given here."""
        return replace(self.opened(path, roles_from).checked, file=str(path))


def check_file(path: Path) -> Checked:
    """Everything that is wrong with a file, with the roles that belong to it."""
    return Shelf().checked(path)


def _open(path: Path, roles_from: str, functions: frozenset[str] | None) -> Opened:
    stamps = stamps_of(path, roles_from)  # before the content: what changes in between is then read again
    document, given = document_at(path), roles_in(roles_from)
    if is_file_of_roles(document.value) and not document.problems:
        return Opened(document, Checked(str(path), (), tuple(role_problems(document))), "", {}, stamps)
    known_roles = over_shipped({name: role for name, role in given.items() if isinstance(role, dict)})
    resolved = Path(realpath(path))
    faults = _faults if is_installed() else None
    around = Around(
        faults,
        lambda name: find_workflow(name, resolved),
        known_roles,
        has=lambda name: built_in(name) is not None,
        functions=functions,
    )
    findings = (*find_problems(document, around), *_role_findings(given, roles_from, document))
    found = Checked(str(path), _names(document), findings)
    return Opened(document, found, roles_from, given, stamps)


def _role_findings(given: Mapping[str, Any], roles_from: str, document: Document) -> Iterator[Problem]:
    """What is passed over in the file of roles."""
    workflows = [workflow for _, workflow in workflows_in(document.value) if isinstance(workflow, dict)]
    agents = [agent for workflow in workflows for agent in workflow.get("agents") or () if isinstance(agent, dict)]
    used = {str(agent.get("agent_role")) for agent in agents}
    for note in role_notes(given, used):
        yield Problem("warning", "W_ROLES", "", f"{roles_from}: {note}", "correct it, or leave it if others need it")


def stamps_of(path: Path, roles_from: str) -> Stamps:
    """The state of a workflow file and of its roles."""
    files = [realpath(file) for file in (str(path), roles_from) if file]
    return tuple((file, *_stamp(Path(file))) for file in files if exists(file))


def _stamp(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size


def names_at(path: Path) -> tuple[str, ...]:
    """The names of the workflows of a file, in its order."""
    resolved = Path(realpath(path))
    try:
        return _names_in(resolved, _stamp(resolved))
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror}") from error


def find_workflow(name: str, beside: Path) -> Mapping[str, Any] | None:
    """A workflow by its name, as plain JSON; None where there is none."""
    path = file_of(name, beside)
    return None if path is None else workflow_named(document_at(path), name)


def file_of(name: str, beside: Path | None = None) -> Path | None:
    """The file that has a workflow of this name; None where there is none."""
    if not _NAME.fullmatch(name):
        return None
    if beside is not None and (path := file_in(beside.parent, name)) is not None:
        return path
    shipped_one = file_in(SHIPPED, name)
    own = next(filter(None, (file_in(folder, name) for folder in FOLDERS)), None)
    if own is None or shipped_one is None:
        return own or shipped_one
    return own if _may_replace(own, f"the shipped workflow {name}") else shipped_one


def _may_replace(path: Path, what: str, tell: Tell = tell_once) -> bool:
    """Whether a file of the current folder takes the place of something shipped: it is trusted. That is told."""
    found = read_project(Path(realpath(path)), state_directory())
    if found.unused:
        tell(f"not used: {found.file} would replace {what}: {found.unused}")
    else:
        tell(f"{found.file} replaces {what}")
    return not found.unused


def file_in(folder: Path, name: str) -> Path | None:
    """The file of a folder that has a workflow of this name; None where there is none."""
    return next((path for path, stamp in _candidates(folder, name) if name in _names_in(path, stamp)), None)


@lru_cache(maxsize=4096)
def _names_in(path: Path, stamp: tuple[int, int]) -> tuple[str, ...]:
    """The names of the workflows of a file, in the state that its stamp stands for."""
    return _names(document_at(path))


def _names(document: Document) -> tuple[str, ...]:
    every = (
        workflow.get("workflow_name") for _, workflow in workflows_in(document.value) if isinstance(workflow, dict)
    )
    return tuple(name for name in every if isinstance(name, str))


def workflow_named(document: Document, name: str) -> Mapping[str, Any] | None:
    """The workflow of this name in a file."""
    every = (workflow for _, workflow in workflows_in(document.value) if isinstance(workflow, dict))
    return next((workflow for workflow in every if workflow.get("workflow_name") == name), None)


def _candidates(folder: Path, name: str) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The files of a folder that may have a workflow of this name, the likeliest first, each with its state."""
    if not isdir(folder):
        return
    resolved = Path(realpath(folder))
    likely = resolved / f"{name}.json"
    for path in (likely, *sorted(path for path in resolved.glob("*.json") if path != likely)):
        if isfile(path) and (stamp := _stamp(path))[1] <= LARGEST:
            yield path, stamp


class Listed(Frozen):
    """A workflow that can be run by name."""

    name: str
    description: str
    file: str
    is_usable: bool


def list_workflows() -> list[Listed]:
    """The workflows that can be run by name from here, each once: the user's own before the shipped ones."""
    found: dict[str, Listed] = {}
    shelf = Shelf(tell=lambda text: None)  # which roles are replaced, who runs a workflow is told
    for folder in (*FOLDERS, SHIPPED):
        for path in sorted(folder.glob("*.json")) if isdir(folder) else ():
            checked_file = shelf.checked(path)
            for _, workflow in workflows_in(document_at(path).value):
                name = workflow.get("workflow_name") if isinstance(workflow, dict) else None
                if isinstance(name, str) and name not in found and (found_at := file_of(name)) is not None:
                    if realpath(found_at) != realpath(path):
                        continue
                    told = str(workflow.get("description", ""))
                    found[name] = Listed(name, told, str(path), not checked_file.is_wrong)
    return [found[name] for name in sorted(found)]


def template(name: str) -> str:
    """A workflow to begin with, if it can be called so."""
    text = (SHIPPED / "templates" / "workflow.json").read_text(encoding="utf-8").replace("my_workflow", name)
    wrong = [problem for problem in find_problems(read(text.encode()), Around()) if problem.level == "error"]
    if wrong:
        raise Refused(f"{wrong[0].why}; {wrong[0].remedy}")
    return text


def _faults(sources: Sequence[Source]) -> Sequence[str]:
    """What is wrong with each script; nothing of it is run."""
    asked = [Script("expression" if source.kind == "input" else source.kind, source.text) for source in sources]
    return [fault or "" for fault in engine().syntax_all(asked)]


def roles_file(path: Path, tell: Tell = tell_once) -> str:
    """The file of roles where none is named: beside the workflow, of the current folder, or of a folder around it."""
    here, folder = Path.cwd(), path.parent
    beside = folder / ROLES_BESIDE
    if isfile(beside) and beside != path and folder != here:
        _tell_of_replaced(beside, tell)
        return str(beside)
    for own in (Path(ROLES_BESIDE), ROLES):
        if not isfile(own) or here / own == path:
            continue
        if path.is_relative_to(here):
            _tell_of_replaced(own, tell)
            return str(own)
        if _may_replace(own, "the shipped roles", tell):
            return str(own)
    around = (folder / ROLES, folder.parent / "roles" / ROLES_BESIDE)
    return next((str(file) for file in around if isfile(file)), "")


def _tell_of_replaced(path: Path, tell: Tell) -> None:
    replaced = sorted(shipped_roles().keys() & roles_in(str(path)).keys())
    if replaced:
        tell(f"{path} replaces the shipped role{'s' if len(replaced) > 1 else ''} {', '.join(replaced)}")
