"""Whoever is told that a run waits: a server on the loopback, and commands that write down what they get."""

import json
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Server:
    """A server that keeps what it gets, and answers with these codes in turn; then with 204."""

    url: str
    codes: list[int] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def listening(*codes: int) -> Iterator[Server]:
    """A server at work."""
    kept = Server("", list(codes))

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            kept.types.append(self.headers["Content-Type"])
            kept.paths.append(self.path)
            self.send_response(kept.codes.pop(0) if kept.codes else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    kept.url = f"http://127.0.0.1:{server.server_port}/hook?token=secret"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hanging() -> Iterator[str]:
    """The address of a server that takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"


def refusing() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/hook?token=secret"


def command(folder: Path, program: str, *arguments: str) -> str:
    """The command line of a program in Python that is run with these arguments."""
    file = folder / "hook program.py"
    file.write_text(program)
    return shlex.join([sys.executable, str(file), *arguments])


WRITES_DOWN = """
import sys
with open(sys.argv[1], "a") as file:
    file.write(sys.stdin.read() + "\\n")
print("this is not shown")
"""
