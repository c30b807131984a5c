"""`moot` in a child process, as a person or a script starts it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which nothing is set but where runs live."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOTHALL_")}
    return {**kept, "MOOTHALL_HOME": str(home), "PYTHONUNBUFFERED": "1", **(more or {})}


def command(*arguments: str) -> list[str]:
    """The command line of `moot` with these arguments."""
    return [sys.executable, "-m", "moothall", *arguments]


def moot(
    *arguments: str, home: Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd or home,
        env=environment(home, more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def started(*arguments: str, home: Path) -> subprocess.Popen[str]:
    """Start one command and leave it running, its output in pipes."""
    return subprocess.Popen(
        command(*arguments),
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )


def hired(folder: Path, store: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a worker at a store; what it says goes to `worker.log` in the folder."""
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(
            command("worker", "--store", store, *options),
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=heed_signals,
        )


def heed_signals() -> None:
    """A test run in the background is deaf to Ctrl-C, and so would be its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
