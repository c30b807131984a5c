"""A workflow file, killed with SIGKILL in every model call and in every call of a tool, and resumed.

Models and tools note what they do in files that survive. Nothing whose end was committed is done again: no call of a
model, no call of a tool, no script (its answers stand in the journal), and the end is the one of a run that nobody
touched.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot
from tests.kills.survivors import committed, entries, hang, kill_when, noted

pytestmark = pytest.mark.slow

RUN = "tea"
CALLS = ["coder", "coder", "reviewer", "coder", "reviewer"]
"""Who is asked, one after the other; the first reply wants two tools."""
WORKFLOW = {
    "workflow_name": "kettle",
    "description": "boil, look, boil again",
    "input": {"name": "task", "type": "string", "description": "what to do"},
    "output": {"name": "said", "type": "string", "description": "what was said"},
    "contexts": [{"name": "talk"}],
    "agents": [
        {"agent_role": "coder", "context": "talk", "role": "assistant"},
        {"agent_role": "reviewer", "context": "talk", "role": "user"},
    ],
    "states": [
        {
            "name": "start",
            "action": {"script": "common_data.rounds = 0; common_data.said = '';"},
            "transition": [{"target": "code", "condition": "true"}],
        },
        {
            "name": "code",
            "agent": "coder",
            "input": "common_data.task + ' ' + common_data.rounds",
            "transition": [{"target": "review", "condition": "true", "before": "common_data.rounds += 1"}],
        },
        {
            "name": "review",
            "agent": "reviewer",
            "input": "'well?'",
            "transition": [
                {"target": "code", "condition": "common_data.rounds < 2", "before": "common_data.said += 'again '"},
                {"target": "stop", "condition": "true", "before": "common_data.said += last_agent_response"},
            ],
        },
    ],
}
TOOLS = """
import asyncio
from pathlib import Path

HERE = Path(__file__).parent

async def boil(cup: int, key: str) -> str:
    with open(HERE / "begun.log", "a") as log:
        log.write(f"{key}\\n")
    if (HERE / f"hold-{cup}").exists():
        await asyncio.sleep(3600)
    with open(HERE / "done.log", "a") as log:
        log.write(f"{key}\\n")
    return f"cup {cup}"
"""


class Kettle:
    """The workflow as real commands in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_script()
        (folder / "kettle.json").write_text(json.dumps(WORKFLOW))
        (folder / "tools.py").write_text(TOOLS)
        self.begin = (
            *("run", "kettle.json", "boil", "--run-id", RUN, "--functions", "tools.py"),
            *("--model", f"scripted:{folder / 'script.json'},log={folder / 'calls.log'}"),
        )

    def write_script(self, hanging: int | None = None) -> None:
        """What the agents say; the reply to this call, counted from 0, never comes."""
        both = [{"tool": "boil", "arguments": {"cup": cup}, "id": f"cup-{cup}"} for cup in (1, 2)]
        script: dict[str, list[dict[str, Any]]] = {
            "coder": [{"text": "boiling", "calls": both}, {"text": "boiled"}, {"text": "boiled again"}],
            "reviewer": [{"text": "once more"}, {"text": "good"}],
        }
        if hanging is not None:
            hang(script, CALLS, hanging)
        (self.folder / "script.json").write_text(json.dumps(script))

    def noted(self, name: str) -> list[str]:
        """The keys in one of the files that survive."""
        return noted(self.folder / f"{name}.log")

    def told(self) -> list[Any]:
        """What the journal says, without times; what came back at once may be in any order."""
        told = [(one["event"], one["from"], one["to"], one.get("answers", [])) for one in entries(self.folder, RUN)]
        return sorted(json.dumps(one) for one in told)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    kettle = Kettle(tmp_path_factory.mktemp("whole"))
    ran = moot(*kettle.begin, home=kettle.folder)
    assert (ran.returncode, ran.stdout) == (0, "again good\n"), ran.stderr
    assert (len(kettle.noted("calls")), len(kettle.noted("done"))) == (len(CALLS), 2)
    return kettle.told()


def resumed(kettle: Kettle, whole: list[Any]) -> None:
    """Resume, and see that nothing that was committed is done again and that the journal is the one of a whole run."""
    over = committed(kettle.folder, RUN)
    before = [*kettle.noted("calls"), *kettle.noted("begun")]
    ran = moot("resume", RUN, home=kettle.folder)
    assert (ran.returncode, ran.stdout) == (0, "again good\n"), ran.stderr
    since = [*kettle.noted("calls"), *kettle.noted("begun")]
    for key in before:
        since.remove(key)
    assert not over & set(since)
    assert len(set(kettle.noted("calls"))) == len(CALLS)
    assert len(set(kettle.noted("done"))) == 2
    assert kettle.told() == whole
    assert moot("replay", RUN, home=kettle.folder).returncode == 0


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{at} {who}" for at, who in enumerate(CALLS)])
def test_a_workflow_killed_in_the_middle_of_any_call_repeats_that_call_and_no_other(
    tmp_path: Path, whole: list[Any], number: int
) -> None:
    kettle = Kettle(tmp_path)
    kettle.write_script(hanging=number)
    kill_when(lambda: len(kettle.noted("calls")) > number, kettle.begin, tmp_path)
    kettle.write_script()
    resumed(kettle, whole)
    assert len(kettle.noted("calls")) == len(CALLS) + 1
    assert len(kettle.noted("done")) == 2


@pytest.mark.parametrize("cup", [1, 2])
def test_a_workflow_killed_while_a_tool_is_at_work_asks_nobody_again(
    tmp_path: Path, whole: list[Any], cup: int
) -> None:
    kettle = Kettle(tmp_path)
    (tmp_path / f"hold-{cup}").touch()
    kill_when(lambda: len(kettle.noted("begun")) == 2 and bool(kettle.noted("done")), kettle.begin, tmp_path)
    (tmp_path / f"hold-{cup}").unlink()
    resumed(kettle, whole)
    assert len(kettle.noted("calls")) == len(CALLS)
