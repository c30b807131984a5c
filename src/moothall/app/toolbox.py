"""What the agents of a run work with: the built-in tools in their workspace, and who saves it before they act.

A run remembers its workspace, so that whoever goes on with it has the same tools. Its saves are kept in the state
directory, one git directory for each workspace; the name of a save begins with the run that it was taken for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from moothall.agents.approval import Look, no_files
from moothall.agents.ask import Tool
from moothall.agents.workspace import Policy, Workspace, policy_for
from moothall.app.config.settings import settings, state_directory
from moothall.app.sandbox import LEVELS, choose_sandbox
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen
from moothall.performers.tools import Save as SaveNow
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

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions of the tools."""
        return {name: tool.function for name, tool in self.tools.items() if tool.function is not None}

    @property
    def checks(self) -> Mapping[str, Any]:
        """What tells whether a lost call was made."""
        return {name: tool.check for name, tool in self.tools.items() if tool.check is not None}


EMPTY = Toolbox()
POLICIES = get_args(Policy)


def chosen_workspace(given: Given) -> Workspace:
    """The workspace that a run begins with, with the policies that are set."""
    workspace = given if isinstance(given, Workspace) else Workspace(os.fspath(given) if given is not None else "")
    if workspace.sandbox not in LEVELS:
        raise DefinitionError(f"there is no sandbox {workspace.sandbox!r}; there are {', '.join(LEVELS)}")
    policies = {**settings().policies, **workspace.policies}
    return replace(workspace, folder=_real_folder(workspace.folder), policies=policies)


def _real_folder(folder: str) -> str:
    if not folder:
        return ""
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise DefinitionError(f"the workspace {folder} is not a folder")
    if state_directory().resolve().is_relative_to(real):
        raise DefinitionError(
            f"the workspace {folder} holds {state_directory()}, which no tool may see; choose a folder below"
        )
    return real


def written(workspace: Workspace) -> Mapping[str, Any]:
    """A workspace as the record of a run has it; nothing where there is none."""
    usual = encode(Workspace())
    return {name: value for name, value in encode(workspace).items() if value != usual[name]}


def toolbox_in(plain: Mapping[str, Any], run: str) -> Toolbox:
    """The tools of a run, from what its record says."""
    return toolbox_of(decode(Workspace, plain, "tools"), run) if plain else EMPTY


def toolbox_of(workspace: Workspace, run: str) -> Toolbox:
    """The tools of a run in this workspace."""
    if not workspace.folder:
        return Toolbox(workspace=workspace)
    root = Path(workspace.folder)
    if not root.is_dir():
        raise DefinitionError(f"the workspace {root} of run {run} is not there any more; put it back")
    built_in = workspace_tools(root, choose_sandbox(workspace.sandbox))
    tools = {name: tool.tool for name, tool in built_in.items()}
    return Toolbox(tools, Operands(root), partial(save_for, workspace, run), workspace)


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
