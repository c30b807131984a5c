"""Machines served to a real client of the official SDK, over stdio and over HTTP."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.machines import MACHINES

pytestmark = pytest.mark.anyio
MOOT = (sys.executable, "-m", "moothall")
Call = Callable[..., Awaitable[Any]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machines.py").write_text(MACHINES)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MOOTHALL_HOME": str(folder / "home")}


@asynccontextmanager
async def client_of(folder: Path, *machines: str) -> AsyncIterator[Call]:
    """A client of a server over stdio: the structured output of each call."""
    arguments = ["-m", "moothall", "mcp", *machines]
    how = StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder), cwd=str(folder))
    async with Client(stdio_client(how), read_timeout_seconds=30) as client:
        yield calls_of(client)


def run_letter(folder: Path) -> None:
    """A run of a machine that is not served."""
    command = [*MOOT, "run", "machines.py:LETTER", "Ada", "--run-id", "other"]
    subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, check=True)


@contextmanager
def served_over_http(folder: Path) -> Iterator[dict[str, str]]:
    """The address and the token of a server over HTTP."""
    command = [*MOOT, "mcp", "machines.py:LETTER", "--http", "0", "--json"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=quiet, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())
        finally:
            server.kill()


def calls_of(client: Client) -> Call:
    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    return call


async def settled(call: Call, run: str) -> Any:
    """The status of a run once nothing is under way."""
    async with asyncio.timeout(30):
        while True:
            status = await call("status", run_id=run)
            if status["status"] != "working":
                return status


async def test_a_run_is_started_at_once_asks_is_answered_and_has_a_result(folder: Path) -> None:
    async with client_of(folder, "machines.py:SENT") as call:
        begun = await call("start", machine="sent", input={"to": "Ada"})
        run = begun["run_id"]
        waiting = await settled(call, run)
        assert waiting["status"] == "input_required"
        [question] = waiting["questions"]
        assert question["prompt"] == "Send DEAR ADA?"
        assert (await call("result", run_id=run))["result"] is None
        await call("answer", run_id=run, value=True)
        assert (await settled(call, run))["status"] == "completed"
        ended = await call("result", run_id=run)
        assert (ended["status"], ended["result"]) == ("completed", "DEAR ADA")


SLOW = """
import asyncio
from pathlib import Path
from moothall import Final, Machine, On, Replied, State, ask

async def sleeper(prompt: str) -> str:
    while not Path("woken").exists():
        await asyncio.sleep(0.01)
    return "awake"

SLOW = Machine("slow", states=[State("sleeping", enter=ask(sleeper, "Sleep.")), Final("awake")],
               moves=[On("sleeping", Replied, to="awake")])
"""


async def test_a_run_has_its_id_at_once_however_long_its_agents_take(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    async with client_of(folder, "slow.py:SLOW") as call:
        async with asyncio.timeout(10):
            run = (await call("start", machine="slow"))["run_id"]
        assert (await call("status", run_id=run))["status"] == "working"
        assert (await call("result", run_id=run))["status"] == "working"
        (folder / "woken").touch()
        assert (await settled(call, run))["status"] == "completed"


async def test_only_machines_that_were_named_can_be_started_and_only_their_runs_seen(folder: Path) -> None:
    run_letter(folder)
    arguments = ["-m", "moothall", "mcp", "mail=machines.py:SENT"]
    how = StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder), cwd=str(folder))
    async with Client(stdio_client(how), read_timeout_seconds=30) as client:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == {"start", "status", "answer", "result", "cancel"}
        assert all(tool.output_schema for tool in listed.tools)
        refused = await client.call_tool("start", {"machine": "letter", "input": "Ada"})
        assert refused.is_error
        assert "there are mail" in str(refused.content)
        hidden = await client.call_tool("status", {"run_id": "other"})
        assert hidden.is_error
        assert "there is no run" in str(hidden.content)


async def test_a_run_is_cancelled_and_a_wrong_answer_is_refused(folder: Path) -> None:
    arguments = ["-m", "moothall", "mcp", "machines.py:SENT"]
    how = StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder), cwd=str(folder))
    async with Client(stdio_client(how), read_timeout_seconds=30) as client:
        call = calls_of(client)
        run = (await call("start", machine="sent", input={"to": "Ada"}))["run_id"]
        assert (await settled(call, run))["status"] == "input_required"
        refused = await client.call_tool("answer", {"run_id": run, "value": {"perhaps": 1}})
        assert refused.is_error
        assert (await call("status", run_id=run))["status"] == "input_required"
        await call("cancel", run_id=run)
        assert (await settled(call, run))["status"] == "cancelled"


async def test_what_the_command_refuses_is_refused_and_a_rehearsal_is_named(folder: Path) -> None:
    arguments = ["-m", "moothall", "mcp", "arena", "debate", "pipeline"]
    how = StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder), cwd=str(folder))
    async with Client(stdio_client(how), read_timeout_seconds=30) as client:
        refused = await client.call_tool("start", {"machine": "arena", "input": "Write a table"})
        assert "no workspace is named" in str(refused.content)
        configuration = {"agents": [{"id": "a", "name": "a", "role": "nobody"}]}
        given = {"problem": "Tea?", "configuration": configuration}
        refused = await client.call_tool("start", {"machine": "debate", "input": given})
        assert "no role is called 'nobody'" in str(refused.content)
        begun = await calls_of(client)("start", machine="pipeline", input={"brief": "A haiku"})
        assert begun["warnings"] == ["this is a rehearsal: no model was asked, and the replies mean nothing"]


async def test_over_http_only_whoever_has_the_token_is_served(folder: Path) -> None:
    with served_over_http(folder) as place:
        async with httpx2.AsyncClient() as stranger:
            assert (await stranger.post(place["url"], json={})).status_code == 401
        headers = {"Authorization": f"Bearer {place['token']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(place["url"], http_client=http), read_timeout_seconds=30) as client,
        ):
            call = calls_of(client)
            run = (await call("start", machine="letter", input={"to": "Ada"}))["run_id"]
            assert (await settled(call, run))["status"] == "completed"
