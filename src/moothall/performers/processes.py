"""Child processes for tools: what a cancelled call started is gone, with everything that it started in turn.

A process gets a group of its own. When the call is cancelled, also by its time-out, the group is asked to end, and
after a moment made to; what a process leaves behind in its group ends with it. Output beyond a limit is cut off.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from moothall.errors import EffectFailed
from moothall.kernel.frozen import Frozen

GRACE = 2.0
MOST = 1_000_000


class Completed(Frozen):
    """How a process ended and what it said."""

    code: int
    out: str
    err: str


async def run_process(
    command: Sequence[str],
    *,
    text: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Completed:
    """Run a program with arguments, give it a text, and wait for its end; nothing of it outlives the call."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise EffectFailed(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        out, err = await process.communicate(text.encode())
    finally:
        await _end_group(process)
    return Completed(process.returncode or 0, _shorten(out), _shorten(err))


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Ask a process and all that it started to end, then make them."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE)
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _shorten(output: bytes) -> str:
    kept = output[:MOST].decode(errors="replace")
    return kept if len(output) <= MOST else f"{kept}\n… {len(output) - MOST} bytes more"
