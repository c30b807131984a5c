"""`moot sandbox`: one command as an agent would run it, and what came of it."""

import json
from pathlib import Path

import pytest

from tests.cli.process import moot
from tests.sandboxes.hostile import BWRAP

needs_bubblewrap = pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


@needs_bubblewrap
def test_what_the_command_says_and_its_exit_code_are_passed_on(tmp_path: Path, workspace: Path) -> None:
    done = moot("sandbox", "--", "sh", "-c", "echo out; echo err >&2; exit 7", home=tmp_path / "home", cwd=workspace)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


@needs_bubblewrap
def test_json_has_all_of_it_and_the_exit_code_says_that_it_was_run(tmp_path: Path, workspace: Path) -> None:
    place = str(workspace)
    done = moot("sandbox", "--json", "--workspace", place, "--", "sh", "-c", "pwd; exit 7", home=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found.pop("duration") > 0
    assert sorted(found.pop("held")) == [".git", "HEAD", "moothall.toml"]
    assert found == {"exit_code": 7, "stdout": f"{place}\n", "stderr": "", "level": "bubblewrap", "killed": False}


@needs_bubblewrap
def test_whoever_lists_a_folder_is_told_which_names_are_not_in_it(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("")
    done = moot("sandbox", "--", "ls", home=tmp_path / "home", cwd=workspace)
    assert done.stdout.split() == ["HEAD", "a.txt", "moothall.toml"]
    held = "empty folders hold these names while a command runs, so that it cannot make them"
    assert sorted(done.stderr.partition(" are ")[0].split(", ")) == ["HEAD", "moothall.toml"]
    assert done.stderr.endswith(f" are not in the workspace: {held}\n")
    assert [file.name for file in workspace.iterdir()] == ["a.txt"]
    assert moot("sandbox", "--", "cat", "a.txt", home=tmp_path / "home", cwd=workspace).stderr == ""


@needs_bubblewrap
def test_a_limit_is_said(tmp_path: Path, workspace: Path) -> None:
    done = moot("sandbox", "--timeout", "0.5", "--", "sleep", "60", home=tmp_path / "home", cwd=workspace)
    assert (done.returncode, done.stderr) == (137, "the command was ended: it reached a limit\n")


def test_no_sandbox_says_what_it_gives_up(tmp_path: Path, workspace: Path) -> None:
    done = moot("sandbox", "--sandbox", "none", "--", "pwd", home=tmp_path / "home", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, f"{workspace}\n")
    assert done.stderr.startswith("no sandbox: ")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_time_that_is_none_is_wrong_usage(tmp_path: Path, seconds: str) -> None:
    done = moot("sandbox", f"--timeout={seconds}", "--", "true", home=tmp_path)
    assert done.returncode == 2
    assert "a number of seconds above 0" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--sandbox", "landlock", "--", "true")])
def test_wrong_usage_is_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert moot("sandbox", *arguments, home=tmp_path).returncode == 2


@needs_bubblewrap
def test_a_workspace_that_holds_the_state_directory_is_refused(tmp_path: Path, workspace: Path) -> None:
    done = moot("sandbox", "--", "true", home=workspace / "state", cwd=workspace)
    assert done.returncode == 1
    assert "no command may see" in done.stderr
    assert "Traceback" not in done.stderr


@needs_bubblewrap
def test_two_dashes_keep_the_options_of_the_command(tmp_path: Path, workspace: Path) -> None:
    done = moot("sandbox", "--", "echo", "--json", "-x", "--", "y", home=tmp_path / "home", cwd=workspace)
    assert done.stdout == "--json -x -- y\n"
