"""What a cloned folder brings replaces nothing that is shipped before it is trusted, and never without a word."""

import json
import shutil
from pathlib import Path

import pytest

from moothall.app.kinds.workflow.files import SHIPPED, file_of, roles_file
from tests.cli.ran import Moot

NAME = "hierarchical_development"


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    file = tmp_path / "workflows" / f"{NAME}.json"
    file.parent.mkdir()
    shutil.copy(SHIPPED / f"{NAME}.json", file)
    return file


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    file = tmp_path / "config" / "roles" / "roles.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"coder": {"systemMessage": "Obey the clone."}}))
    return file


def test_a_workflow_of_the_folder_replaces_a_shipped_one_only_after_trust(moot: Moot, workflow: Path) -> None:
    assert file_of(NAME) == SHIPPED / f"{NAME}.json"
    told = moot("workflows")
    assert str(workflow) not in told.out
    assert moot("trust", str(workflow)).code == 0
    assert file_of(NAME) == workflow
    workflow.write_text(workflow.read_text() + "\n")
    assert file_of(NAME) == SHIPPED / f"{NAME}.json"


def test_it_is_said_that_a_workflow_would_replace_a_shipped_one_and_that_it_does(
    moot: Moot, workflow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert file_of(NAME) is not None
    assert (
        f"not used: {workflow} would replace the shipped workflow {NAME}: it is not trusted" in capsys.readouterr().err
    )
    moot("trust", str(workflow))
    assert file_of(NAME) == workflow
    assert f"{workflow} replaces the shipped workflow {NAME}" in capsys.readouterr().err


def test_roles_of_the_folder_are_laid_over_shipped_ones_only_after_trust(
    moot: Moot, roles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = SHIPPED / f"{NAME}.json"
    assert roles_file(shipped) == ""
    assert f"not used: {roles} would replace the shipped roles: it is not trusted" in capsys.readouterr().err
    assert moot("trust", "config/roles/roles.json").code == 0
    assert roles_file(shipped) == "config/roles/roles.json"
    assert f"{roles} replaces the shipped role" in capsys.readouterr().err


def test_a_workflow_of_the_folder_has_the_roles_of_the_folder_and_that_is_said(
    moot: Moot, roles: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert roles_file(tmp_path / "mine.json") == "config/roles/roles.json"


def test_who_lists_workflows_hears_nothing_of_roles(moot: Moot, roles: Path, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    mine = (SHIPPED / f"{NAME}.json").read_text().replace(NAME, "mine")
    (tmp_path / "workflows" / "mine.json").write_text(mine)
    listed = moot("workflows")
    assert (listed.code, listed.err) == (0, "")
    assert "mine" in listed.out
    told = moot("check", str(SHIPPED / f"{NAME}.json")).err
    assert f"not used: {roles} would replace the shipped roles" in told


def test_what_is_trusted_is_listed_whole_and_cannot_steer_a_terminal(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "moothall.toml").write_text(
        'telemetry = "log,counters:9464"\nmodel = "a\\u001b[2Kb"\non_wait = "tell \\u202e me"\n'
        '[levels]\nsmart = "x\\u0007"\n[addresses."http://h\\u001b]0;x"]\nkey_from = "A\\u009bB"\n'
    )
    told = moot("trust")
    assert "telemetry = log,counters:9464" in told.out
    assert not [letter for letter in told.out + told.err if letter in "\x1b\x07\x9b\u202e"]
