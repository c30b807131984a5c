"""Runs a command without protection, for whoever asked for that in so many words (`--sandbox none`).

Time and output are limited, and what stays in the command's process group ends with it. That is all: `GIVES_UP` says
what is missing, and every door says it before the first command.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from subprocess import DEVNULL, PIPE

from moothall.agents.workspace import KILLED, Execution
from moothall.errors import Refused
from moothall.kernel.frozen import Frozen
from moothall.sandboxes.limits import Limits
from moothall.sandboxes.output import Output

LEVEL = "none"
NOT_FOUND, NOT_EXECUTABLE = 127, 126
LEFTOVERS = 1.0
"""How long the output may stay open after the end, in seconds: somebody outside the group may hold it."""
GIVES_UP = (
    "no sandbox: the command can read, change and delete whatever you can, use the network, see your environment and "
    "leave processes behind; only its time and its output are limited"
)


class Unprotected(Frozen):
    """Runs commands as if they were typed; `environment` is what they get."""

    limits: Limits = Limits()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """Nothing protects the machine."""
        return LEVEL

    async def run(self, command: Sequence[str], *, workspace: Path, within: float | None = None) -> Execution:
        """Run one command in a workspace; what leaves its process group may outlive the call."""
        begun, output = time.monotonic(), Output(self.limits)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                cwd=workspace,
                env=self.environment,
                start_new_session=True,
            )
        except OSError as error:
            if not await asyncio.to_thread(workspace.is_dir):
                raise Refused(f"the workspace {workspace} is not a folder") from error
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            return Execution(code, "", f"{command[0]}: {error.strerror}\n", time.monotonic() - begun, LEVEL)
        assert process.stdout is not None
        assert process.stderr is not None
        reading = [asyncio.ensure_future(output.read(stream)) for stream in (process.stdout, process.stderr)]
        ending, flooding = asyncio.ensure_future(process.wait()), asyncio.ensure_future(output.overflow.wait())
        try:
            patience = self.limits.wall if within is None else within
            await asyncio.wait((ending, flooding), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            killed = not ending.done()
        finally:
            flooding.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = await process.wait()
            await asyncio.wait(reading, timeout=LEFTOVERS)
            output.stop()
        stdout, stderr = await asyncio.gather(*reading)
        shown = KILLED if killed else code if code >= 0 else 128 - code
        return Execution(shown, stdout, stderr, time.monotonic() - begun, LEVEL, killed)
