"""The commands of the container files, run in their order against a server; no container engine is needed for that."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cli.process import EXAMPLES, command, environment, heed_signals, moot
from tests.postgres import PASSWORD, USER

FOLDER = Path(__file__).parents[2] / "containers"
COMPOSE: Any = yaml.safe_load((FOLDER / "compose.yaml").read_text())


def directives(name: str) -> list[str]:
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    return [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name} ")]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(address: str) -> str:
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as reply:
                return str(reply.read().decode())
        except OSError:
            assert time.monotonic() < until, f"nobody answers at {address}"
            time.sleep(0.1)


def test_the_container_file_starts_the_command_and_names_extras_that_there_are() -> None:
    assert json.loads(directives("ENTRYPOINT")[0]) == ["moot"]
    installed = next(line for line in directives("RUN") if line.startswith("pip install"))
    extras = next(word for word in shlex.split(installed) if word.startswith("/source["))[8:-1].split(",")
    project = (FOLDER.parent / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in project for extra in extras)
    assert "worker" in json.loads(directives("CMD")[0])
    assert PASSWORD not in (FOLDER / "compose.yaml").read_text()


def asked(port: int, token: str, path: str, sent: object = None) -> Any:
    """What the page says to whoever has the token."""
    body = None if sent is None else json.dumps(sent).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api{path}", body, headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def test_the_port_of_the_page_is_the_one_that_is_published_to_this_machine_alone() -> None:
    page = COMPOSE["services"]["page"]
    port = page["command"][page["command"].index("--port") + 1]
    assert page["ports"] == [f"127.0.0.1:{port}:{port}"]


@pytest.mark.slow
def test_what_the_compose_file_starts_works_together_on_one_database(tmp_path: Path, database: str) -> None:
    worker, page = COMPOSE["services"]["worker"], COMPOSE["services"]["page"]
    named = urlsplit(worker["environment"]["MOOTHALL_STORE"])
    assert (named.username, named.password, named.hostname) == (USER, None, "postgresql")
    there = urlsplit(database)
    more = {"MOOTHALL_STORE": f"postgresql://{USER}@{there.hostname}:{there.port}{there.path}", "PGPASSWORD": PASSWORD}
    health, web = free_port(), free_port()
    ports = {"8080": str(health), "8484": str(web), "0.0.0.0": "127.0.0.1"}
    started: dict[str, Any] = {"cwd": EXAMPLES, "env": environment(tmp_path, more), "preexec_fn": heed_signals}
    started |= {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True}
    working = subprocess.Popen(
        command(*(ports.get(word, word) for word in worker["command"])), stdout=subprocess.DEVNULL, **started
    )
    serving = subprocess.Popen(
        command(*(ports.get(word, word) for word in page["command"])), stdout=subprocess.PIPE, **started
    )
    try:
        assert json.loads(wait_for(f"http://127.0.0.1:{health}/health"))["status"] == "ok"
        assert serving.stdout is not None
        with serving.stdout as told:
            link = urlsplit(told.readline().strip())
        assert link.port == web
        token = link.query.removeprefix("token=")
        left = moot(
            "run", f"{EXAMPLES}/approval.py:OFFER", "Ada", "--detach", "--run-id", "a", home=tmp_path, more=more
        )
        assert left.returncode == 0, left.stderr
        until = time.monotonic() + 60
        while not asked(web, token, "/inbox"):
            assert time.monotonic() < until, "the worker does not come to the question"
            time.sleep(0.1)
        asked(web, token, "/runs/a/answer", {"value": True})
        while "sent" not in moot("show", "a", home=tmp_path, more=more).stdout:
            assert time.monotonic() < until, "the answer sets nothing off"
        begun = asked(web, token, "/runs", {"machine": f"{EXAMPLES}/approval.py:OFFER", "input": "Ben"})
        assert begun["run"] != "a"
        assert len(json.loads(moot("ls", "--json", home=tmp_path, more=more).stdout)) == 2
    finally:
        working.terminate()
        serving.terminate()
        assert (working.wait(60), serving.wait(60)) == (0, 0)
