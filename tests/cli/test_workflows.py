"""`moot check` on workflow files, `moot schema`, `moot workflows`, `moot new`."""

import json
from pathlib import Path

from moothall.machines.workflow.schema import SCHEMA
from tests.cli.ran import Moot
from tests.machines.workflows import BASE


def write(path: Path, *workflows: object) -> None:
    path.write_text(json.dumps(list(workflows) if len(workflows) != 1 else workflows[0], indent=1))


def test_a_good_file_exits_with_0_and_a_bad_one_with_4(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "good.json", BASE)
    write(tmp_path / "bad.json", {**BASE, "states": []})
    assert (moot("check", "good.json").code, moot("check", "bad.json").code) == (0, 4)
    ran = moot("check", "good.json", "bad.json")
    assert ran.code == 4
    assert "good.json: base: 0 errors, 0 warnings" in ran.out
    assert "error E_REQUIRED bad.json:" in ran.out
    assert "write at least one" in ran.out


def test_check_as_json_has_level_code_pointer_line_and_remedy(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "bad.json", {**BASE, "workflow_name": "../up"})
    [finding] = moot("check", "bad.json", "--json").json["findings"]
    assert {"level", "code", "pointer", "line", "why", "remedy", "workflow"} == set(finding)
    assert (finding["code"], finding["pointer"], finding["line"]) == ("E_NAME", "/workflow_name", 2)


def test_several_files_folders_and_machines_are_checked_together(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    write(tmp_path / "all" / "one.json", BASE)
    write(tmp_path / "all" / "two.json", {**BASE, "workflow_name": "two"})
    looked = moot("check", "machines.py:LETTER", "all", "--json").json
    assert [one.get("machine") or one["workflows"] for one in looked] == ["letter", ["base"], ["two"]]


def test_a_file_that_is_not_there_exits_with_4(moot: Moot) -> None:
    ran = moot("check", "nothing.json")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no file nothing.json" in ran.err


def test_schema_prints_the_json_schema(moot: Moot) -> None:
    assert moot("schema", "workflow").json == SCHEMA
    assert moot("schema", "nothing").code == 2


def test_new_writes_a_file_that_has_no_problem_and_never_overwrites(moot: Moot, tmp_path: Path) -> None:
    assert moot("new", "workflow", "mine").code == 0
    checked = moot("check", "mine.json", "--json").json
    assert (checked["workflows"], checked["findings"]) == (["mine"], [])
    again = moot("new", "workflow", "mine")
    assert again.code == 1
    assert "mine.json is there already" in again.err


def test_new_refuses_a_name_that_is_none(moot: Moot, tmp_path: Path) -> None:
    ran = moot("new", "workflow", "../mine")
    assert ran.code == 1
    assert "is no name" in ran.err
    assert not list(tmp_path.parent.glob("mine.json"))


def test_workflows_lists_the_users_own_before_the_shipped_ones(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    write(tmp_path / "workflows" / "mine.json", {**BASE, "workflow_name": "mine"})
    listed = {one["name"]: one for one in moot("workflows", "--json").json}
    assert listed["mine"]["file"] == "workflows/mine.json"
    assert "work and look" in moot("workflows").out
