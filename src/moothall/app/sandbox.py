"""Chooses what protects the machine from commands, and runs one: with bubblewrap, or with nothing if so asked.

The state directory holds the store, the audit key and the settings; no workspace may hold it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from moothall.agents.workspace import Execution, Sandbox
from moothall.app.config.settings import state_directory
from moothall.errors import Refused
from moothall.sandboxes.bubblewrap import LEVEL as BUBBLEWRAP
from moothall.sandboxes.bubblewrap import Bubblewrap
from moothall.sandboxes.cgroups import usable_trees
from moothall.sandboxes.none import GIVES_UP as GIVES_UP
from moothall.sandboxes.none import LEVEL as NONE
from moothall.sandboxes.none import Unprotected

LEVELS = (BUBBLEWRAP, NONE)


def choose_sandbox(level: str = BUBBLEWRAP) -> Sandbox:
    """The sandbox of this name."""
    if level == NONE:
        return Unprotected(environment=dict(os.environ))
    return Bubblewrap(hidden=(state_directory(),))


def counts_memory() -> bool:
    """Whether the memory of a command is limited for all its processes together, and not for each of them."""
    return "memory" in usable_trees().folders


def execute(
    command: Sequence[str], *, workspace: str = "", timeout: float | None = None, level: str = BUBBLEWRAP
) -> Execution:
    """Run one command in a workspace, by default the current folder, as an agent's `execute_terminal` would."""
    if any("\0" in word for word in command):
        raise Refused("a command cannot hold a null character")
    return asyncio.run(choose_sandbox(level).run(command, workspace=Path(workspace or "."), within=timeout))
