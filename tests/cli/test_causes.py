"""What ended a run is told first and everywhere: the provider's error, stderr, the repair, the budget in force."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.app.report.detail import Looking
from tests.cli.arena_scenes import command, script, vote
from tests.cli.ran import Moot
from tests.models.loopback import Fault, Loopback, Said, loopback_aside

REFUSED = Fault(401, b'{"error": {"message": "this key is not known here"}}')
CAUSE = "this key is not known here"
STDERR = "cat: missing.txt: No such file or directory"
SHUT = """
from moothall import Final, GaveUp, Machine, On, Replied, State, ask
SHUT = Machine("shut", data=dict, states=[State("asking", enter=ask("clerk", "Dear you")), Final("good"),
    Final("bad", ends="failed")], moves=[On("asking", Replied, to="good"), On("asking", GaveUp, to="bad")])
"""


@pytest.fixture
def refusing() -> Iterator[Loopback]:
    """A provider that refuses every request."""
    with loopback_aside(REFUSED) as served:
        yield served


def causes(moot: Moot, run: str) -> dict[str, str]:
    """Why a run ended, wherever that is told."""

    async def page() -> str:
        async with Moothall() as hall:
            return (await Looking(hall).detail(run)).summary.reason

    [listed] = [summary["reason"] for summary in moot("ls", "--all", "--json").json if summary["run"] == run]
    return {
        "show": moot("show", run).out.splitlines()[1].removeprefix("because: "),
        "show --json": moot("show", run, "--json").json["summary"]["reason"],
        "ls --json": listed,
        "report": moot("report", run, "--format", "md").out.split("Because: ")[1].split("\n")[0].replace("\\", ""),
        "report as JSON": moot("report", run, "--format", "json").json["summary"]["reason"],
        "page": asyncio.run(page()),
    }


STARTS = {
    "workflow": ("run", "coder_reviewer", "make tea"),
    "pipeline": ("pipeline", "make tea"),
    "debate": ("debate", "Tea or coffee?"),
    "arena": ("arena", "make tea", "--workspace", "desk"),
    "turn": ("run", "--role", "coder", "make tea"),
    "python": ("run", "shut.py:SHUT"),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_the_error_of_the_provider_is_why_a_run_of_any_machine_failed(
    moot: Moot, refusing: Loopback, tmp_path: Path, start: tuple[str, ...]
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "shut.py").write_text(SHUT)
    ran = moot(*start, "--run-id", "bad", "--model", f"openai:m@{refusing.address}")
    assert ran.code != 0
    assert CAUSE in ran.err.splitlines()[-1]
    told = causes(moot, "bad")
    assert [place for place, cause in told.items() if CAUSE not in cause or "it ended in" in cause] == []


def test_a_list_has_the_beginning_of_the_cause(moot: Moot, refusing: Loopback) -> None:
    moot("pipeline", "make tea", "--run-id", "bad", "--model", f"openai:m@{refusing.address}")
    assert "failed: planner: openai:m" in moot("ls").out


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    (tmp_path / "desk").mkdir()
    return str(tmp_path / "desk")


def test_a_failed_task_of_the_arena_is_told_with_its_stderr(moot: Moot, workspace: str, tmp_path: Path) -> None:
    model = script(tmp_path / "bad", command("build", "cat missing.txt"), critic=[vote(), {"diagnosis": ""}])
    ran = moot("arena", "x", "--run-id", "bad", "--workspace", workspace, "--model", model)
    reason = f"task build failed: the exit code is 1: {STDERR}; the critic cannot tell the cause"
    assert ran.out.splitlines()[0] == f"failed: {reason}"
    assert f"  build: failed: the exit code is 1  (cat missing.txt)\n    {STDERR}\n" in ran.out
    assert f"bad is failed: rolled back: {reason}" in ran.err
    told = causes(moot, "bad")
    assert told == dict.fromkeys(told, f"rolled back: {reason}")
    again = moot("arena", "x", "--workspace", workspace, "--model", model, "--json").json
    assert [(task["failure"], task["stderr"].strip()) for task in again["tasks"]] == [("the exit code is 1", STDERR)]


def test_of_a_long_stderr_the_last_lines_are_told(moot: Moot, workspace: str, tmp_path: Path) -> None:
    loud = "sh -c 'for n in $(seq 200); do echo line $n >&2; done; exit 3'"
    model = script(tmp_path / "bad", command("build", loud), critic=[vote(), {"diagnosis": ""}])
    moot("arena", "x", "--run-id", "bad", "--workspace", workspace, "--model", model)
    reason = moot("show", "bad", "--json").json["summary"]["reason"]
    assert "the exit code is 3: line 196: line 197: line 198: line 199: line 200; " in reason


def test_a_run_that_was_repaired_tells_of_its_repair(moot: Moot, workspace: str, tmp_path: Path) -> None:
    repair: Any = {"diagnosis": "there is no such file", "plan": {"tasks": [command("build", "ls")]}}
    model = script(tmp_path / "healed", command("build", "cat missing.txt"), critic=[vote(), repair])
    ran = moot("arena", "x", "--run-id", "good", "--workspace", workspace, "--model", model)
    assert ran.code == 0
    failure = f"build (cat missing.txt): the exit code is 1: {STDERR}"
    assert f"  repair 1: repaired: there is no such file ({failure})\n" in ran.out
    told = causes(moot, "good")
    assert told == dict.fromkeys(told, f"repaired: {failure}; there is no such file")
    assert "Audited (repaired)" in moot("ls").out
    assert moot("show", "good", "--json").json["summary"]["status"] == "done"


def test_the_budget_in_force_is_told_after_a_retry_with_a_larger_one(moot: Moot) -> None:
    with loopback_aside(Said("a draft")) as provider:
        model = f"openai:m@{provider.address}"
        limited = moot("run", "machines.py:NAMED", "Ada", "--run-id", "mine", "--model", model, "--budget", "calls=0")
        assert limited.code == 7
        retried = moot("retry", "mine", "--budget", "calls=9")
    assert retried.code == 0
    assert "calls 1 of 9" in retried.err
    shown = moot("show", "mine")
    assert "spent: calls 1 of 9" in shown.out
    assert "left: calls 8" in shown.out
    assert moot("show", "mine", "--json").json["left"] == {"calls": 8}
