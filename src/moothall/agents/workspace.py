"""What the agent world needs to act: a sandbox that runs one command in a workspace, and what came of it.

That a sandbox cannot work here is a matter of this machine and its settings: whoever runs Moothall has to act. It is
not an error of a tool, which a model would try again, and nothing falls back to less protection by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol

from moothall.errors import DefinitionError
from moothall.kernel.effects import Repeats
from moothall.kernel.frozen import Frozen

Policy = Literal["allow", "ask", "deny"]
"""Whether a tool is called at once, after a person agreed, or not at all."""

BUILT_IN: Mapping[str, tuple[Repeats, Policy]] = {
    "read_file": ("pure", "allow"),
    "write_file": ("idempotent", "allow"),
    "edit_file": ("check-first", "allow"),
    "list_directory": ("pure", "allow"),
    "search_files": ("pure", "allow"),
    "execute_terminal": ("at-most-once", "ask"),
    "git_status": ("pure", "allow"),
    "git_diff": ("pure", "allow"),
}
"""The tools that come with Moothall: what a crash does to each, and whether a person is asked first."""
COMMANDS, PATH = frozenset(("execute_terminal",)), "path"
"""The built-in tools that take a command; the others take the path of a file."""
READS = ("read_file", "list_directory", "search_files")
"""The built-in tools that start no command and change nothing: all that there are in a folder to be read only."""

INFRASTRUCTURE = "infrastructure"
"""The fault of an effect that could not be done because of how this machine is set up."""

KILLED = 137
"""The exit code of a command that a limit ended: 128 and SIGKILL."""


class Execution(Frozen):
    """What came of a command: how it ended, what it said, and which level of protection it ran under.

    `killed` is true where a limit ended it.
    """

    exit_code: int
    stdout: str
    stderr: str
    duration: float
    level: str
    killed: bool = False
    held: tuple[str, ...] = ()
    """The names that empty folders held in the workspace meanwhile, so that no command could make them."""

    def note(self) -> str:
        """What a reader of the output should know, where it names something that is not in the workspace; else ""."""
        words = frozenset(re.split(r"[\s/]+", f"{self.stdout}\n{self.stderr}"))
        shown = [name for name in self.held if name in words]
        if not shown:
            return ""
        several = f"{', '.join(shown)} {'is' if len(shown) == 1 else 'are'} not in the workspace"
        return f"{several}: empty folders hold these names while a command runs, so that it cannot make them"


class Workspace(Frozen):
    """What the agents of a run work with: a folder, what protects the machine from commands, and the tools' policies.

    A policy is named by its tool, or by `ROLE:TOOL`. `project` is the folder of the project whose own tools they have.
    A folder that is `read_only` is looked into and nothing else: there are no tools that write, and no saves.
    """

    folder: str = ""
    sandbox: str = "bubblewrap"
    policies: Mapping[str, Policy] = field(default_factory=dict)
    project: str = ""
    read_only: bool = False


def policy_for(tool: str, role: str, policies: Mapping[str, Policy], usual: Policy) -> Policy:
    """Whether a role may use a tool: as is said of both, else of the tool, else as the tool itself says."""
    return policies.get(f"{role}:{tool}") or policies.get(tool) or usual


class Unequipped(DefinitionError):
    """What tools work with is not as it has to be on this machine: whoever runs Moothall has to act, not an agent."""


class SandboxUnavailable(Unequipped):
    """Commands cannot be protected here; the message says why and what helps.

    `problem` is the message without the way out that only some doors have: to do without a sandbox.
    """

    def __init__(self, problem: str, way_out: str = "") -> None:
        super().__init__(problem + way_out)
        self.problem = problem


class Sandbox(Protocol):
    """Runs commands; `level` names what protects the rest of the machine from them, `none` where nothing does."""

    @property
    def level(self) -> str:
        """What protects the machine."""
        ...

    async def run(self, command: Sequence[str], *, workspace: Path, within: float | None = None) -> Execution:
        """Run one command in a workspace to its end, or to that of its time; nothing of it is left behind."""
        ...
