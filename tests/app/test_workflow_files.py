"""Workflow files on the disk: hostile ones, good ones, shipped ones, those of the document."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.roles import shipped_roles
from moothall.app.kinds.workflow.files import SHIPPED, check_file, files_at, find_workflow
from moothall.errors import DefinitionError
from tests.machines.workflows import BASE, HOSTILE, of_the_seed

LISTED = HOSTILE / "workflows.json"
EXPECTED: list[dict[str, Any]] = json.loads(LISTED.read_text()) if LISTED.exists() else []
ALLOWED = {"error": {"error"}, "warning": {"warning"}, "either": {"error", "warning", ""}}
without_hostile = pytest.mark.skipif(not EXPECTED, reason="the hostile files are not here")


@without_hostile
@pytest.mark.parametrize("expected", EXPECTED, ids=[one["file"] for one in EXPECTED])
def test_every_hostile_file_gets_its_level_at_its_place(expected: dict[str, Any]) -> None:
    findings = check_file(HOSTILE / "workflows" / expected["file"]).findings
    levels = {one.level for one in findings}
    level = "error" if "error" in levels else "warning" if levels else ""
    assert level in ALLOWED.get(expected["level"], {"warning", ""})
    if expected["level"] in ("error", "warning"):
        wanted = (expected["level"], expected["code"], expected["pointer"])
        assert wanted in {(one.level, one.code, one.pointer) for one in findings}


@without_hostile
@pytest.mark.slow
def test_checking_all_hostile_files_takes_little_memory_and_little_time() -> None:
    code = (
        "import re, sys; from moothall.cli.main import main; code = main(['check', sys.argv[1], '--json']);"
        "most = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1];"
        "print(code, int(most) // 1024, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(HOSTILE / "workflows")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
    )
    assert "Traceback" not in ran.stderr
    exit_code, megabytes = map(int, ran.stderr.split())
    assert exit_code == 4
    assert megabytes < 200
    assert len(json.loads(ran.stdout)) == len(EXPECTED)


@without_hostile
def test_good_files_have_no_error() -> None:
    for path in files_at(HOSTILE / "good_workflows"):
        assert not check_file(path).is_wrong, path


@pytest.mark.parametrize("name", ["coder_reviewer", "hierarchical_development"])
@pytest.mark.covers("W29", "W30")
def test_the_complete_workflows_of_the_document_have_no_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text(of_the_seed()[name])
    checked = check_file(path)
    assert checked.workflows == (name,)
    assert [one.code for one in checked.findings] == ["W_DESCRIPTION"]


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_shipped_workflows_have_no_problem_at_all(path: Path) -> None:
    assert check_file(path).findings == ()


@pytest.mark.covers("W41", "W26")
def test_the_roles_of_the_document_ship_as_it_has_them() -> None:
    tools = {name: [one["function"] for one in role.get("parsingTools", ())] for name, role in shipped_roles().items()}
    [review] = tools["reviewer"]
    assert review["name"] == "review_work"
    assert review["parameters"]["required"] == ["improvement_needed"]
    assert list(review["parameters"]["properties"]) == ["improvement_needed", "continue_message", "work_summary"]
    [approval] = tools["product_manager"]
    assert approval["name"] == "task_approval"
    assert approval["parameters"]["required"] == ["approved"]
    assert list(approval["parameters"]["properties"]) == ["approved", "feedback"]


@pytest.mark.covers("W48")
def test_a_workflow_is_found_by_name_beside_a_file_then_in_folders_then_among_the_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "workflows"
    folder.mkdir(parents=True)
    (folder / "many.json").write_text(json.dumps([BASE, {**BASE, "workflow_name": "other"}]))
    beside = tmp_path / "elsewhere" / "mine.json"
    beside.parent.mkdir()
    beside.write_text(json.dumps({**BASE, "workflow_name": "mine"}))
    assert (find_workflow("mine", beside) or {})["workflow_name"] == "mine"
    assert (find_workflow("other", beside) or {})["workflow_name"] == "other"
    assert find_workflow("nobody", beside) is None


def test_what_is_no_file_is_refused_with_its_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    for name, why in (
        ("pipe.json", "neither a file"),
        ("gone.json", "there is no file"),
        ("empty", "has no workflow files"),
    ):
        with pytest.raises(DefinitionError, match=why):
            files_at(tmp_path / name)


def test_a_link_to_a_file_is_read_like_the_file(tmp_path: Path) -> None:
    (tmp_path / "base.json").write_text(json.dumps(BASE))
    (tmp_path / "link.json").symlink_to(tmp_path / "base.json")
    assert check_file(tmp_path / "link.json").workflows == ("base",)
