"""A workspace as the arena's tasks see it: commands in the sandbox, files by descriptors, saves beside the store."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from moothall.agents.workspace import Execution
from moothall.app.config.settings import state_directory
from moothall.app.sandbox import choose_sandbox
from moothall.errors import EffectFailed, Refused
from moothall.sandboxes.shield import Shield
from moothall.workspaces.files import Folder
from moothall.workspaces.saves import Saves
from moothall.workspaces.tools import workspace_tools


class LocalWorkspace:
    """A folder of this machine."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        if not self._root.is_dir():
            raise Refused(f"the workspace {root} is not a folder; name one with --workspace")
        self._sandbox = choose_sandbox()

    async def run(self, command: str, *, within: float | None) -> Execution:
        """Run a shell command in the sandbox."""
        return await self._sandbox.run(("sh", "-c", command), workspace=self._root, within=within)

    async def write(self, path: str, content: str) -> None:
        """Give a file this content."""
        await self.call("write_file", {"path": path, "content": content})

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a built-in tool."""
        tools = workspace_tools(self._root, self._sandbox)
        if tool not in tools:
            raise EffectFailed(f"there is no tool {tool!r}; there are {', '.join(tools)}", final=True)
        try:
            return await tools[tool].function(**arguments)
        except TypeError as error:
            raise EffectFailed(f"{tool}: {error}", final=True) from error

    async def has_file(self, path: str) -> bool:
        """Whether there is something at a path of the workspace."""
        folder = Folder(self._root)
        for opening in (folder.file, folder.folder):
            with suppress(EffectFailed), opening(path):
                return True
        return False

    async def save(self, name: str) -> str:
        """Save everything as it is, and note what no save has, as git ignores it: nobody could bring that back."""
        saves = self._saves()
        save = (await saves.save(name)).id
        unsaved = await asyncio.to_thread(stamps, self._root, await saves.paths(save))
        self._note(save).write_text(json.dumps(unsaved))
        return save

    async def restore(self, save: str) -> tuple[str, ...]:
        """Make everything again what it was; what is left."""
        saves = self._saves()
        left = (await saves.restore(save)).left
        before: dict[str, list[int]] = json.loads(self._note(save).read_text())
        after = await asyncio.to_thread(stamps, self._root, await saves.paths(save))
        lost = {path for path in (*before, *after) if before.get(path) != after.get(path)}
        return tuple(sorted({*left, *lost}))

    def _note(self, save: str) -> Path:
        return saves_folder(self._root) / f"unsaved-{save}.json"

    def _saves(self) -> Saves:
        """The saves of this workspace, without what a command that was killed has left in it."""
        with suppress(Refused):
            Shield(self._root).close()
        return saves_at(self._root)


def stamps(workspace: Path, saved: Collection[str]) -> dict[str, list[int]]:
    """Size and time of every file of a workspace that a save does not have; git's own folder is nobody's business."""
    found: dict[str, list[int]] = {}
    for top, folders, files in os.walk(workspace):
        if top == str(workspace) and ".git" in folders:
            folders.remove(".git")
        for name in files:
            path = os.path.relpath(os.path.join(top, name), workspace)
            if path not in saved:
                with suppress(OSError):  # it went meanwhile
                    there = os.lstat(os.path.join(top, name))
                    found[path] = [there.st_size, there.st_mtime_ns]
    return found


def saves_at(workspace: Path) -> Saves:
    """The saves of a workspace."""
    return Saves(workspace, saves_folder(workspace))


def saves_folder(workspace: Path) -> Path:
    """Where the saves of a workspace are kept."""
    name = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:16]
    return state_directory() / "saves" / name
