"""The roles that the agents of workflows can have from here: listing them, and writing one to begin with."""

from __future__ import annotations

import json
import re
from os.path import realpath
from pathlib import Path
from textwrap import indent

from moothall.agents.roles import COMMENT, role_notes, roles, shipped_roles
from moothall.app.kinds.roles import document_at, roles_in
from moothall.app.kinds.workflow.files import ROLES_BESIDE, SHIPPED, file_of, names_at, roles_file, workflow_named
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen
from moothall.machines.schema import NAME
from moothall.machines.workflow.roles import SCHEMA

__all__ = ["SCHEMA", "FoundRoles", "ListedRole", "found_roles", "write_role"]

FROM_MOOTHALL = "shipped"


class ListedRole(Frozen):
    """A role that is found: where, at which level, what it can decide, and how its system message begins."""

    name: str
    found_in: str
    is_over_shipped: bool
    level: str
    decides: tuple[str, ...]
    begins: str
    agents: tuple[str, ...] = ()


class FoundRoles(Frozen):
    """The roles that are found, the file that those of the user are in, and what is passed over in it."""

    file: str
    roles: tuple[ListedRole, ...]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """The roles that a workflow names and nobody has."""


def found_roles(workflow: str = "", roles_from: str = "") -> FoundRoles:
    """The roles for workflows of the current folder, or those that the agents of one workflow file have."""
    path = _workflow_path(workflow)
    file = roles_from or roles_file(Path(realpath(path)))
    given = {name: role for name, role in roles_in(file).items() if name != COMMENT}
    known = roles(given, file or "the roles", () if not workflow else _agents_of(path))
    used = sorted(_agents_of(path)) if workflow else sorted(known)
    rows = tuple(
        ListedRole(
            name,
            file if name in given else FROM_MOOTHALL,
            name in given and name in shipped_roles(),
            known[name].level,
            tuple(tool.function.name for tool in known[name].parsingTools),
            " ".join(known[name].systemMessage.split()),
        )
        for name in used
        if name in known
    )
    notes = tuple(role_notes(given, None if not workflow else used))
    broken = (
        ()
        if workflow
        else tuple(f"{name} cannot be read; `moot check {file}` says why" for name in given.keys() - known)
    )
    return FoundRoles(file, rows, (*notes, *broken), tuple(name for name in used if name not in known))


def _workflow_path(workflow: str) -> Path:
    """The file of a workflow; where none is named, one that could stand in the current folder."""
    if not workflow:
        return Path.cwd() / "workflow.json"
    if workflow.endswith(".json"):
        return Path(workflow)
    found = file_of(workflow)
    if found is None:
        raise DefinitionError(f"no workflow is called {workflow!r}; name a file, or one that `moot workflows` lists")
    return found


def _agents_of(path: Path) -> frozenset[str]:
    """The roles that the workflows of a file name."""
    document = document_at(path)
    workflows = [workflow_named(document, name) or {} for name in names_at(path)]
    agents = [agent for workflow in workflows for agent in workflow.get("agents") or () if isinstance(agent, dict)]
    return frozenset(name for agent in agents if isinstance(name := agent.get("agent_role"), str))


def write_role(name: str) -> Path:
    """Add a role to begin with to the file of roles of the current folder, which is made where there is none."""
    if not re.fullmatch(NAME, name) or len(name) > 64:
        raise Refused(f"{name!r} cannot be the name of a role; use letters, digits, _ and -, a letter first")
    path = Path(roles_file(Path.cwd() / "workflow.json") or ROLES_BESIDE)
    if name in (roles_in(str(path)) if path.exists() else {}):
        raise Refused(f"{path} has a role {name!r} already; choose another name, or change that one")
    role = (SHIPPED / "templates" / "role.json").read_text(encoding="utf-8").replace("my_role", name).strip()
    entry = indent(f"{json.dumps(name)}: {role}", "    ")
    try:
        before = path.read_text(encoding="utf-8-sig").rstrip().removesuffix("}").rstrip() if path.exists() else "{"
        comma = "" if before.endswith("{") else ","
        path.write_text(f"{before}{comma}\n{entry}\n}}\n", encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written: {error.strerror}") from error
    return path
