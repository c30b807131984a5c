"""SIGKILL while a tool of any kind is called, then `moot resume`: what may be repeated ends once, the rest waits.

Each tool notes in a file that survives when it begins, and does not come back while `stuck` is there.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot
from tests.kills.survivors import entries, kill_when
from tests.toolservers.reached import SERVED, served_over_http

pytestmark = pytest.mark.slow

RUN, DONE, WAITING = "act", 0, 5
TOOLS = """import asyncio
from pathlib import Path
from moothall import tool

async def act(key: str) -> str:
    with open("calls.log", "a") as log:
        print(key, file=log)
    while Path("stuck").exists():
        await asyncio.sleep(0.02)
    return "acted"

async def look() -> str | None:
    return "acted before" if Path("calls.log").exists() else None

act = tool(act, repeats=REPEATS, check=CHECK)
"""
COMMAND = "echo call >> calls.log; while test -e stuck; do sleep 0.02; done"
LARGE = 12 * 2**20


class Place:
    """A folder with a project, a workspace that is the folder `ws`, and a script of one call."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, folder / "ws"
        self.workspace.mkdir()
        (folder / "stuck").touch()
        (self.workspace / "stuck").touch()

    def say(self, tool: str, **arguments: Any) -> tuple[str, ...]:
        """Let the agent call this once, and the words of the command that begins the run."""
        lines = [{"calls": [{"tool": tool, "arguments": arguments, "id": "c"}]}, {"text": "done"}]
        (self.folder / "script.json").write_text(json.dumps({"coder": lines}))
        model = ("--model", f"scripted:{self.folder / 'script.json'}", "--run-id", RUN, "--quiet")
        return "run", "--role", "coder", "Act.", *model

    def trust(self, *words: str) -> None:
        assert moot("trust", *words, home=self.folder).returncode == DONE

    def go_on(self) -> subprocess.CompletedProcess[str]:
        for place in (self.folder, self.workspace):
            (place / "stuck").unlink(missing_ok=True)
        return moot("resume", RUN, "--quiet", home=self.folder)

    def calls(self) -> int:
        """How often the tool began."""
        logs = (self.folder / "calls.log", self.workspace / "calls.log")
        return sum(len(log.read_text().splitlines()) for log in logs if log.exists())

    def ends(self) -> list[str]:
        """The events in which calls ended."""
        return [entry["event"]["name"] for entry in entries(self.folder, RUN) if entry["event"]["name"] == "returned"]

    def settle(self) -> None:
        """The run waits, because nobody knows what became of the call; a person says that it was done."""
        waiting = moot("resume", RUN, "--quiet", home=self.folder)
        assert waiting.returncode == WAITING
        assert "unknown" in waiting.stderr
        answer = json.dumps({"outcome": "done", "value": "seen"})
        assert moot("answer", RUN, "--json", answer, "--quiet", home=self.folder).returncode == DONE


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def killed_in_the_call(place: Place, begin: tuple[str, ...]) -> None:
    kill_when(lambda: place.calls() == 1, begin, place.folder)
    assert place.ends() == []


@pytest.mark.parametrize("repeats", ["pure", "idempotent", "check-first", "at-most-once"])
def test_a_function_that_was_killed_is_called_again_only_where_it_may_be(place: Place, repeats: str) -> None:
    (place.folder / "moothall.toml").write_text("")
    (place.folder / "tools").mkdir()
    check = "look" if repeats == "check-first" else "None"
    code = TOOLS.replace("REPEATS", repr(repeats)).replace("CHECK", check)
    (place.folder / "tools" / "acts.py").write_text(code)
    place.trust()
    killed_in_the_call(place, place.say("act"))
    ran = place.go_on()
    again = repeats in ("pure", "idempotent")
    assert ran.returncode == (WAITING if repeats == "at-most-once" else DONE)
    assert place.calls() == (2 if again else 1)
    if again:
        assert len(set((place.folder / "calls.log").read_text().split())) == 1, "the key is the same"
    if repeats == "at-most-once":
        place.settle()
    assert (place.ends(), place.calls()) == (["returned"], 2 if again else 1)


def test_a_command_that_was_killed_is_gone_and_waits_for_a_person(place: Place) -> None:
    begin = place.say("execute_terminal", command=COMMAND)
    allowed = ("--workspace", str(place.workspace), "--sandbox", sandbox(), "--policy", "execute_terminal=allow")
    killed_in_the_call(place, (*begin, *allowed))
    assert place.go_on().returncode == WAITING
    assert place.calls() == 1
    place.settle()
    assert (place.ends(), place.calls()) == (["returned"], 1)


def sandbox() -> str:
    """The sandbox that works here."""
    ran = subprocess.run([sys.executable, "-m", "moothall", "sandbox", "--", "true"], capture_output=True)
    return "bubblewrap" if ran.returncode == 0 else "none"


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_a_file_whose_writing_was_killed_is_old_or_new_and_new_in_the_end(place: Place, tool: str) -> None:
    file, old, new = place.workspace / "a.txt", "o" * LARGE, "n" * (LARGE // 4)
    file.write_text(f"first\n{old}" if tool == "edit_file" else "first\n")
    given = {"content": new} if tool == "write_file" else {"old": "first\n", "new": "second\n"}
    begin = (*place.say(tool, path="a.txt", **given), "--workspace", str(place.workspace), "--sandbox", "none")
    before, after = file.read_text(), new if tool == "write_file" else f"second\n{old}"
    known = {"a.txt", "stuck"}
    kill_when(
        lambda: {path.name for path in place.workspace.iterdir()} != known or file.read_text() != before,
        begin,
        place.folder,
    )
    assert file.read_text() in (before, after)
    assert place.go_on().returncode == DONE
    assert (file.read_text() == after, place.ends()) == (True, ["returned"])


@contextmanager
def served(place: Place, way: str, repeats: str) -> Iterator[None]:
    """The server is set, in a folder of its own, and trusted."""
    lines = ["[servers.harbour]", 'policy = "allow"', f'repeats = "{repeats}"', "timeout = 50"]
    command = [sys.executable, str(SERVED), "gate"]
    if way == "stdio":
        lines += [f"command = {json.dumps(command)}", f"folder = {json.dumps(str(place.folder))}"]
        (place.folder / "settings.toml").write_text("\n".join(lines))
        place.trust("--server", "harbour")
        yield
        return
    with served_over_http("gate", place.folder) as url:
        (place.folder / "settings.toml").write_text("\n".join([*lines, f'url = "{url}"']))
        place.trust("--server", "harbour")
        yield


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("repeats", ["idempotent", "at-most-once"])
def test_a_servers_tool_that_was_killed_waits_unless_it_may_be_repeated(place: Place, way: str, repeats: str) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    with served(place, way, repeats):
        killed_in_the_call(place, place.say("harbour_tide", harbour="Brest"))
        ran = place.go_on()
        if repeats == "at-most-once":
            assert (ran.returncode, place.calls()) == (WAITING, 1)
            place.settle()
        else:
            assert ran.returncode == DONE
        assert (place.ends(), place.calls()) == (["returned"], 1 if repeats == "at-most-once" else 2)
