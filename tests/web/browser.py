"""A real browser at a real server: Debian's chromium, and `moot serve` in a process of its own."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.cli.process import command, environment, heed_signals

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def require_browser() -> None:
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed; tools/system-packages installs it where that is permitted")


@contextmanager
def browser() -> Iterator[Any]:
    require_browser()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield found
        finally:
            found.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`moot serve`, which can be killed and started again at the same address."""

    def __init__(self, home: Path, *more: str, cwd: Path | None = None) -> None:
        self.home, self.cwd, self.port = home, cwd or home, free_port()
        home.mkdir(parents=True, exist_ok=True)
        self._more = more
        self.complaints = home / "stderr"
        self.start()

    def start(self) -> None:
        arguments = ("serve", "--port", str(self.port), "--json", "--store", f"sqlite:{self.home / 'runs.db'}")
        with self.complaints.open("ab") as complaints:
            process = subprocess.Popen(
                command(*arguments, *self._more),
                cwd=self.cwd,
                env=environment(self.home),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                preexec_fn=heed_signals,
            )
        assert process.stdout is not None
        self._process = process
        told = json.loads(process.stdout.readline())
        self.url, self.token, self.link = told["url"], told["token"], told["link"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> int:
        self._process.terminate()
        code = self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


@contextmanager
def serving(home: Path, *more: str, cwd: Path | None = None) -> Iterator[Server]:
    server = Server(home, *more, cwd=cwd)
    try:
        yield server
    finally:
        server.stop()


def started(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run that somebody begins at a terminal, in the store of the page."""
    return subprocess.run(
        command(*arguments, "--store", f"sqlite:{server.home / 'runs.db'}", "-q"),
        cwd=server.cwd,
        env=environment(server.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def lit(page: Any) -> Sequence[str]:
    """The states that glow in the picture."""
    return list(page.eval_on_selector_all(".moot .active", "found => found.map(one => one.dataset.state)"))


def begin(page: Any, server: Server, machine: str, **fields: str) -> str:
    """Start a run from the form."""
    page.goto(f"{server.url}/start?machine={machine}")
    for name, value in fields.items():
        page.get_by_label(name, exact=False).first.fill(value)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/run/**")
    return str(page.url.rsplit("/", 1)[1].partition("#")[0])
