"""What the agents of a run work with: the built-in tools in their workspace, and who saves it before they act.

A run remembers its workspace, so that whoever goes on with it has the same tools. Its saves are kept in the state
directory, one git directory for each workspace; the name of a save begins with the run that it was taken for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from hashlib import sha256
from os.path import isdir
from pathlib import Path
from typing import Any, get_args

from moothall.agents.approval import Look, no_files
from moothall.agents.ask import Tool
from moothall.agents.ports import Offered
from moothall.agents.toolserver import Pinned, Toolserver
from moothall.agents.workspace import BUILT_IN, READS, Policy, Workspace, policy_for
from moothall.app.config.pins import pins_of, remember_pins, server_key
from moothall.app.config.project import NAME, TOOLS, read_project
from moothall.app.config.settings import project, settings, state_directory
from moothall.app.functions import module_of, module_tools
from moothall.app.sandbox import LEVELS, choose_sandbox
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen
from moothall.performers.tools import Save as SaveNow
from moothall.sandboxes.none import LEVEL as NONE
from moothall.toolservers.mcp import MCPServer
from moothall.workspaces.operands import Operands
from moothall.workspaces.saves import Saves
from moothall.workspaces.tools import workspace_tools

Given = str | os.PathLike[str] | Workspace | None
"""A workspace as callers name it."""


class Toolbox(Frozen):
    """The tools of a run by name, who finds the files that a call names, and who saves the workspace."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    look: Look = no_files
    save: SaveNow | None = None
    workspace: Workspace = Workspace()
    lacks: str = ""
    """Why tools that a run began with may not be here."""

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions of the tools."""
        return {name: tool.function for name, tool in self.tools.items() if tool.function is not None}

    @property
    def checks(self) -> Mapping[str, Any]:
        """What tells whether a lost call was made."""
        return {name: tool.check for name, tool in self.tools.items() if tool.check is not None}

    @property
    def policies(self) -> Mapping[str, Policy]:
        """What is said of tools: by those that are not built in themselves, and over that by the workspace."""
        own = {name: tool.policy for name, tool in self.tools.items() if name not in BUILT_IN}
        said = {name: policy for name, policy in own.items() if policy != "allow"}
        return {**said, **self.workspace.policies}


EMPTY = Toolbox()
_USUAL = Workspace()
POLICIES = get_args(Policy)


def chosen_workspace(given: Given) -> Workspace:
    """The workspace that a run begins with, with the policies that are set."""
    workspace = given if isinstance(given, Workspace) else Workspace(os.fspath(given) if given is not None else "")
    if workspace.sandbox not in LEVELS:
        raise DefinitionError(f"there is no sandbox {workspace.sandbox!r}; there are {', '.join(LEVELS)}")
    policies = {**settings().policies, **workspace.policies}
    found = project()
    trusted = found is not None and not found.unused and bool(found.tools)
    folder = str(found.file.parent) if found is not None and trusted else workspace.project
    if workspace == _USUAL and not policies and not folder:
        return workspace
    return replace(workspace, folder=_real_folder(workspace.folder), policies=policies, project=folder)


def _real_folder(folder: str) -> str:
    if not folder:
        return ""
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise DefinitionError(f"the workspace {folder} is not a folder")
    if Path(os.path.realpath(state_directory())).is_relative_to(real):
        raise DefinitionError(
            f"the workspace {folder} holds {state_directory()}, which no tool may see; choose a folder below"
        )
    return real


def encode_workspace(workspace: Workspace) -> Mapping[str, Any]:
    """A workspace as the record of a run has it; nothing where there is none."""
    if workspace == _USUAL:
        return {}
    usual = encode(_USUAL)
    return {name: value for name, value in encode(workspace).items() if value != usual[name]}


def toolbox_in(plain: Mapping[str, Any], run: str) -> Toolbox:
    """The tools of a run, from what its record says."""
    return toolbox_of(decode(Workspace, plain, "tools"), run) if plain or settings().servers else EMPTY


def toolbox_of(workspace: Workspace, run: str) -> Toolbox:
    """The tools of a run in this workspace; those of its project are added."""
    own, lacks = _project_tools(workspace.project)
    served = _served_tools()
    if not workspace.folder:
        look = Operands(Path(workspace.project)) if own else no_files
        return Toolbox({**served, **own}, look, workspace=workspace, lacks=lacks)
    root = Path(workspace.folder)
    if not isdir(root):
        gone = f"the workspace {root} of run {run} is not there any more; put it back"
        return Toolbox({**served, **own}, workspace=workspace, lacks=lacks or gone)
    built_in = workspace_tools(root, choose_sandbox(workspace.sandbox))
    look = Operands(root, confined=workspace.sandbox != NONE)
    if workspace.read_only:
        reads = {name: built_in[name].tool for name in READS}
        return Toolbox({**served, **own, **reads}, look, workspace=workspace, lacks=lacks)
    tools = {**served, **own, **{name: tool.tool for name, tool in built_in.items()}}
    return Toolbox(tools, look, partial(save_for, workspace, run), workspace, lacks)


def _project_tools(folder: str) -> tuple[dict[str, Tool], str]:
    """The tools of a project's own, if it is trusted as it is now, and why there are none where it is not."""
    if not folder:
        return {}, ""
    project = read_project(Path(folder) / NAME, state_directory())
    if project.unused:
        return {}, f"{project.file}: {project.unused}; its tools are not used before"
    tools: dict[str, Tool] = {}
    for name, code in project.tools.items():
        for tool in module_tools(module_of(code, project.file.parent / TOOLS / name, project.digest)):
            if tool.name in tools or tool.name in BUILT_IN:
                raise DefinitionError(f"{folder}/{TOOLS}/{name}: another tool is called {tool.name!r}; rename it")
            tools[tool.name] = tool
    return tools, ""


class ServedTool:
    """A tool of a server, as a function that says itself what it takes."""

    def __init__(self, server: MCPServer, tool: str, offer: Offered) -> None:
        self._server, self._tool, self.offer = server, tool, offer
        self.__name__ = offer.name

    def __call__(self, **arguments: Any) -> Awaitable[Any]:
        """Call it."""
        return self._server.call(self._tool, arguments)


_servers: dict[str, MCPServer] = {}
"""The servers that were reached from here, by their keys and pins: one task talks to each."""


def _served_tools() -> dict[str, Tool]:
    """The tools of the servers that are set and were trusted, as they were pinned."""
    tools: dict[str, Tool] = {}
    for name, server in settings().servers.items():
        offered = pins_of(name, server)
        if offered is None:
            continue
        key = f"{server_key(name, server)} {server.timeout} {encode(offered)}"
        session = _servers.setdefault(key, MCPServer(name, server, offered, os.environ))
        for pin in offered:
            called = f"{name}_{pin.name}"
            function = ServedTool(session, pin.name, Offered(called, pin.description, pin.schema))
            tools[called] = Tool(called, function, server.repeats, policy=server.policy)
    return tools


def unpinned_servers() -> list[str]:
    """The servers that are set, and whose tools nobody has looked at."""
    return [name for name, server in settings().servers.items() if pins_of(name, server) is None]


async def pin_servers(servers: Mapping[str, Toolserver]) -> Mapping[str, tuple[Pinned, ...]]:
    """Reach servers, and remember what they offer now."""
    found = {name: await MCPServer(name, server, None, os.environ).tools() for name, server in servers.items()}
    remember_pins({server_key(name, servers[name]): offered for name, offered in found.items()})
    return found


def saves_of(workspace: Workspace) -> Saves:
    """The saves of a workspace."""
    folder = Path(workspace.folder)
    place = f"{folder.name}-{sha256(os.fsencode(folder)).hexdigest()[:16]}"
    return Saves(folder, state_directory() / "workspaces" / place)


def save_for(workspace: Workspace, run: str, name: str) -> Any:
    """Save a workspace for a run."""
    return saves_of(workspace).save(f"{run}: {name}")


def under_policies(tools: Sequence[Tool], role: str, policies: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Tools with the policies that count for a role."""
    return tuple(replace(tool, policy=policy_for(tool.name, role, policies, tool.policy)) for tool in tools)


def pin_now(servers: Mapping[str, Toolserver]) -> Mapping[str, tuple[Pinned, ...]]:
    """Reach servers, and remember what they offer now; from code that is not async."""
    return asyncio.run(pin_servers(servers)) if servers else {}


def set_server(name: str) -> Mapping[str, Toolserver]:
    """The server of this name that is set."""
    servers = settings().servers
    if name not in servers:
        raise DefinitionError(f"no server is called {name!r}; there are {', '.join(sorted(servers)) or 'none'}")
    return {name: servers[name]}


def served_lines(offered: Mapping[str, tuple[Pinned, ...]]) -> Iterator[str]:
    """What servers offer, for whoever is to trust it."""
    for name, tools in offered.items():
        for tool in tools:
            summary = " ".join(tool.description.split())
            yield f"tool {name}_{tool.name}: {summary}"
