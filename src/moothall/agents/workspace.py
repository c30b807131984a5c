"""What the agent world needs to act: a sandbox that runs one command in a workspace, and what came of it.

That a sandbox cannot work here is a matter of this machine and its settings: whoever runs Moothall has to act. It is
not an error of a tool, which a model would try again, and nothing falls back to less protection by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen

Policy = Literal["allow", "ask", "deny"]
"""Whether a tool is called at once, after a person agreed, or not at all."""

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


class SandboxUnavailable(DefinitionError):
    """Commands cannot be protected here; the message says why and what helps."""


class Sandbox(Protocol):
    """Runs commands; `level` names what protects the rest of the machine from them, `none` where nothing does."""

    @property
    def level(self) -> str:
        """What protects the machine."""
        ...

    async def run(self, command: Sequence[str], *, workspace: Path, within: float | None = None) -> Execution:
        """Run one command in a workspace to its end, or to that of its time; nothing of it is left behind."""
        ...
