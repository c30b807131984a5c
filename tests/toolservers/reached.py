"""Servers for tests that are processes of their own: where they stand, and that they listen."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVED = Path(__file__).with_name("served.py")


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, serving: "subprocess.Popen[bytes]") -> None:
    """Wait until a server listens."""
    until = time.monotonic() + 60
    while time.monotonic() < until and serving.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("the server does not listen")


@contextmanager
def served_over_http(mode: str, folder: Path) -> Iterator[str]:
    """A server at work in this folder; its address."""
    port = free_port()
    with (folder / "server.log").open("w") as log:
        serving = subprocess.Popen([sys.executable, str(SERVED), mode, str(port)], cwd=folder, stdout=log, stderr=log)
        try:
            wait_for(port, serving)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serving.kill()
            serving.wait()
