"""The coding assistant, in Python and as a workflow file, played by a script: it writes, tests, asks and commits."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import EXAMPLES
from tests.cli.ran import Moot

WRONG, RIGHT = "def double(n):\n    return n + n + 1\n", "def double(n):\n    return n + n\n"
TESTS = """import unittest
from double import double

class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(double(4), 8)
"""


def git(folder: Path, *words: str) -> str:
    options = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *options, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a test that nothing passes yet."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "test_double.py").write_text(TESTS)
    (folder / ".gitignore").write_text("__pycache__\n")
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a test")
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def script(repository: Path, **lines: list[Any]) -> str:
    file = repository.parent / "script.json"
    file.write_text(json.dumps(lines))
    return f"scripted:{file}"


def test_the_assistant_in_python_mends_what_its_tests_find_and_asks_before_it_commits(
    moot: Moot, repository: Path
) -> None:
    edit = call("edit_file", path="double.py", old=" + 1", new="")
    write = call("write_file", path="double.py", content=WRONG)
    model = script(
        repository,
        rules=[
            {"agent": "coder", "contains": ["the tests fail", "was edited"], "reply": "mended"},
            {"agent": "coder", "contains": "the tests fail", "calls": [edit]},
            {"agent": "coder", "contains": "was written", "reply": "written"},
            {"agent": "coder", "calls": [write]},
        ],
        reviewer=[{"calls": [call("read_file", path="double.py")]}, {"value": {"good": True, "notes": "it doubles"}}],
    )
    source = f"{EXAMPLES / 'coding_assistant.py'}:ASSISTANT"
    ran = moot("run", source, "Double it", "--workspace", ".", "--model", model, "--run-id", "job", "--quiet", "--json")
    assert ran.code == 5, ran.err
    assert ran.json["questions"][0]["prompt"] == "Commit this? Double it\n\nit doubles"
    assert (repository / "double.py").read_text() == RIGHT
    assert git(repository, "log", "--format=%s").split("\n")[0] == "a test"
    ran = moot("answer", "job", "--yes", "--quiet")
    assert (ran.code, ran.out) == (0, "it doubles\n")
    assert git(repository, "log", "--format=%s").split("\n")[0] == "Double it"
    assert [save["name"] for save in moot("saves", "job", "--json").json] == [
        "Run: coding_assistant",
        "before execute_terminal",
        "before execute_terminal",
        "before commit",
    ]


def test_the_assistant_as_a_workflow_file_asks_before_commands_and_before_the_commit(
    moot: Moot, repository: Path
) -> None:
    finished = call("review_work", improvement_needed=False, work_summary="it doubles")
    model = script(
        repository,
        coder=[
            {"calls": [call("write_file", path="double.py", content=RIGHT)]},
            {"calls": [call("execute_terminal", command="python3 -m unittest -q")]},
            {"text": "written and tested"},
            {"calls": [call("commit", message="it doubles")]},
            {"text": "committed"},
        ],
        reviewer=[{"calls": [finished]}],
    )
    functions = str(EXAMPLES / "coding_assistant.py")
    words = ("run", str(EXAMPLES / "coding_assistant.json"), "Double it", "--functions", functions, "--workspace", ".")
    ran = moot(*words, "--model", model, "--run-id", "job", "--quiet")
    assert ran.code == 5
    assert "coder wants to call execute_terminal" in ran.err
    ran = moot("answer", "job", "--yes", "--quiet")
    assert ran.code == 5
    assert "coder wants to call commit" in ran.err
    ran = moot("answer", "job", "--yes", "--quiet")
    assert (ran.code, ran.out) == (0, "it doubles\n")
    assert git(repository, "log", "--format=%s").split("\n")[0] == "it doubles"
    assert moot("saves", "job", "--json").json[0]["name"] == "Workflow: coding_assistant"
