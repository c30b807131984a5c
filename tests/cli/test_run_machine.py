"""The machine that ran is the machine that is read: with the tools that a workspace or a server gave to it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.app.kinds.source import find
from tests.cli.ran import Moot
from tests.cli.terminal import terminal
from tests.models.loopback import Asked, Loopback, Said, loopback_aside

SERVED = Path(__file__).parents[1] / "toolservers" / "served.py"
WAY = ["start", "code", "review", "stop"]


def offered(asked: Asked) -> set[str]:
    return {tool["function"]["name"] for tool in asked.body.get("tools", ())}


def work_as_asked(asked: Asked) -> Said:
    """A reviewer has a tool for its verdict, and so is told apart; everybody else just speaks."""
    if "review_work" in offered(asked):
        return Said("", [("r1", "review_work", json.dumps({"improvement_needed": False, "work_summary": "tea"}))])
    return Said("I boil water.")


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with loopback_aside(work_as_asked) as served:
        yield served


@pytest.fixture
def model(provider: Loopback) -> str:
    return f"openai:m@{provider.address}"


@pytest.fixture
def harbour(home: Path) -> None:
    """A server of tools, set and not yet trusted."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    home.mkdir(parents=True, exist_ok=True)
    command = json.dumps([sys.executable, str(SERVED), "plain"])
    (home / "settings.toml").write_text(f"[servers.harbour]\ncommand = {command}\n")


def visited(moot: Moot, *arguments: str) -> Any:
    ran = moot("run", "coder_reviewer", "make tea", "--json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json["states_visited"]


def test_the_states_of_a_workflow_are_told_with_and_without_a_workspace(moot: Moot, model: str, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    assert visited(moot, "--model", model) == WAY
    assert visited(moot, "--model", model, "--workspace", "desk") == WAY
    assert visited(moot, "--model", model, "--workspace", "desk", "--policy", "write_file=deny") == WAY


@pytest.mark.slow
def test_the_states_of_a_workflow_are_told_where_a_server_adds_tools(
    moot: Moot, harbour: None, provider: Loopback, model: str
) -> None:
    assert moot("trust", "--server", "harbour").code == 0
    assert visited(moot, "--model", model) == WAY
    assert "harbour_tide" in offered(provider.asked[0])


@pytest.mark.slow
def test_a_tool_of_a_server_is_not_taken_for_a_misspelt_one(moot: Moot, harbour: None, model: str) -> None:
    assert moot("trust", "--server", "harbour").code == 0
    roles = {"coder": {"systemMessage": "You sail.", "includedTools": ["harbour_tide", "harbour_tied"]}}
    Path("roles.json").write_text(json.dumps(roles))
    ran = moot("run", "coder_reviewer", "make tea", "--model", model, "--roles", "roles.json")
    assert "no tool fits 'harbour_tied'" in ran.err
    assert "'harbour_tide'" not in ran.err


@pytest.mark.anyio
async def test_a_run_keeps_its_tools_when_it_is_answered_with_the_plain_machine(
    home: Path, provider: Loopback, model: str, tmp_path: Path
) -> None:
    (tmp_path / "desk").mkdir()
    machine = find("approved_release")
    async with Moothall() as hall:
        asked = await hall.run(machine, "a new door", model=model, workspace=tmp_path / "desk", run_id="notes")
        assert asked.status == "waiting"
        before = len(provider.asked)
        again = await hall.answer("notes", {"publish": False, "wish": "shorter"}, machine=machine)
        entries = await hall.store.entries("notes")
    assert again.status == "waiting"
    assert "run.adopted" not in [entry["event"]["name"] for entry in entries]
    assert "read_file" in offered(provider.asked[0])
    assert offered(provider.asked[before]) == offered(provider.asked[0])


@pytest.mark.slow
def test_a_person_at_the_terminal_does_not_take_the_tools_away(
    moot: Moot, home: Path, provider: Loopback, model: str, tmp_path: Path
) -> None:
    (tmp_path / "desk").mkdir()
    start = ("run", "approved_release", "a new door", "--model", model, "--workspace", "desk", "--run-id", "notes")
    with terminal(*start, home=tmp_path, keyboard=True, more={"MOOTHALL_HOME": str(home)}) as screen:
        screen.read_until("Publish these notes?")
        before = len(provider.asked)
        screen.said = ""
        screen.type('{"publish": false, "wish": "shorter"}\n')
        screen.read_until("Publish these notes?")
        screen.type("\n")
        screen.read_all()
    assert offered(provider.asked[before]) == offered(provider.asked[0])
