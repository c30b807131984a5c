"""Where a workflow is found, and the machine that is compiled from it.

A workflow is named `FILE.json`, `FILE.json:NAME`, `FOLDER:NAME` or by its name alone. Its source, by which a run finds
it again, also says which file of roles and which functions it was started with. The functions come from the user's
command line, and so does the file of roles, or it lies where such files are looked for; a workflow file itself never
names code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import isdir, realpath
from pathlib import Path
from urllib.parse import parse_qs, quote

from moothall.app.kinds.functions import tools_in
from moothall.app.kinds.source import remember
from moothall.app.kinds.workflow.files import (
    Opened,
    Shelf,
    Stamps,
    file_in,
    file_of,
    names_at,
    roles_file,
    stamps_of,
    workflow_named,
)
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.machines.turn import Use
from moothall.machines.workflow.compiler import WorkflowMachine, machine_of
from moothall.machines.workflow.definition import Workflow
from moothall.machines.workflow.plan import Rules
from moothall.machines.workflow.schema import clean

SHOWN = 3


class Spot(Frozen):
    """Where a workflow is found, and what it is started with."""

    path: Path
    name: str = ""
    roles: str = ""
    functions: str = ""
    tools: str = ""
    """The tools that agents have besides, and the policies of those that are functions, as JSON."""

    @property
    def source(self) -> str:
        given = (("roles", self.roles), ("functions", self.functions), ("tools", self.tools))
        options = [f"{key}={quote(value)}" for key, value in given if value]
        return f"{self.path}:{self.name}" + (f"?{'&'.join(options)}" if options else "")


def spot_of(source: str) -> Spot:
    """The spot that a source names."""
    place, _, options = source.partition("?")
    given = {key: values[0] for key, values in parse_qs(options).items()}
    path, name = (place, "") if place.endswith(".json") else (place.rpartition(":")[0], place.rpartition(":")[2])
    if path and not isdir(path):
        return _spot(Path(path), name, given)
    found = file_in(Path(path), name) if path else file_of(name)
    if found is None:
        where = f"in {path}" if path else "here; `moot workflows` lists them"
        raise DefinitionError(f"no workflow is called {name!r} {where}")
    return _spot(found, name, given)


def _spot(path: Path, name: str, given: Mapping[str, str]) -> Spot:
    return Spot(path, name, given.get("roles", ""), given.get("functions", ""), given.get("tools", ""))


def source_with_tools(source: str, tools: Sequence[Use]) -> str:
    """A source whose agents have these tools besides."""
    plain = json.dumps([encode(use) for use in tools], separators=(",", ":"), sort_keys=True)
    return replace(spot_of(source), tools=plain).source


def source_with(source: str, roles: str, functions: str) -> str:
    """A source as somebody starts it: with a file of roles, and with functions."""
    options = [f"{key}={quote(value)}" for key, value in (("roles", roles), ("functions", functions)) if value]
    return source + (f"?{'&'.join(options)}" if options else "")


def source_like(source: str, other: str) -> str:
    """A source with the file of roles and the functions of another, where it names none itself."""
    own, theirs = spot_of(source), spot_of(other)
    functions, tools = own.functions or theirs.functions, own.tools or theirs.tools
    return replace(own, roles=own.roles or theirs.roles, functions=functions, tools=tools).source


def machine_at(source: str, shelf: Shelf | None = None) -> WorkflowMachine:
    """The machine of the workflow at this source, from a file of this shelf where one is kept."""
    spot = spot_of(source)
    path = Path(realpath(spot.path))
    names = (spot.name,) if spot.name else names_at(path)
    if len(names) > 1:
        raise DefinitionError(f"{path} has {', '.join(names)}; name one as {path.name}:NAME")
    roles = spot.roles or roles_file(path)
    functions = realpath(spot.functions) if spot.functions.endswith(".py") else spot.functions
    whole = Spot(path, names[0] if names else "", realpath(roles) if roles else "", functions, spot.tools)
    return _cached_machine(whole, shelf or Shelf())


_machines: dict[str, tuple[Stamps, WorkflowMachine]] = {}
"""The machines that were compiled before, with the state of the files that they were compiled from."""


def _cached_machine(spot: Spot, shelf: Shelf) -> WorkflowMachine:
    known = _machines.get(spot.source)
    if known is not None and known[0] == stamps_of(spot.path, spot.roles):
        return known[1]
    opened = shelf.opened(spot.path, spot.roles)
    machine = _compile(spot, opened)
    _machines[spot.source] = (opened.stamps, machine)
    remember(machine, spot.source)
    return machine


def _compile(spot: Spot, opened: Opened) -> WorkflowMachine:
    wrong = [finding for finding in opened.checked.findings if finding.level == "error"]
    if wrong:
        told = "; ".join(
            f"{finding.code} {finding.pointer or '/'} (line {finding.line}): {finding.why}" for finding in wrong[:SHOWN]
        )
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise DefinitionError(f"{spot.path}: {told}{more}; `moot check {spot.path.name}` tells all")
    require_name(spot.name, spot.path, opened.checked.workflows)
    plain = workflow_named(opened.document, spot.name)
    assert plain is not None
    workflow = decode(Workflow, clean(plain), spot.name)
    roles = opened.roles([agent.agent_role for agent in workflow.agents])
    rules = Rules(checks_output="type" in plain["output"], is_tight=True)
    return machine_of(workflow, roles, tools_at(spot), rules)


def require_name(name: str, path: Path, names: Sequence[str]) -> None:
    """Refuse a name that no workflow of a file has."""
    if name not in names:
        raise DefinitionError(f"{path} has no workflow {name!r}; it has {', '.join(names)}")


def tools_at(spot: Spot) -> list[Use]:
    """The tools of a workflow's agents: its functions, under the policies that are given, and what is given besides."""
    own = [Use(tool.name, tool.repeats, tool.timeout, policy=tool.policy) for tool in tools_in(spot.functions)]
    given = {use.name: use for use in decode(tuple[Use, ...], json.loads(spot.tools or "[]"), "tools")}
    ruled = [(use, given.pop(use.name, use)) for use in own]
    return [*(replace(use, policy=said.policy, roles=said.roles) for use, said in ruled), *given.values()]


def sub_workflow(source: str, name: str, shelf: Shelf | None = None) -> Machine | None:
    """The workflow of this name for one that starts it: in the same file, beside it, or known here."""
    spot = spot_of(source)
    path = spot.path if name in names_at(spot.path) else file_of(name, spot.path)
    return None if path is None else machine_at(replace(spot, path=path, name=name).source, shelf)


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
    return (file_in(Path(folder), name) if folder else file_of(name)) is not None
