"""Roles of one's own at the command line: `new role`, `roles`, `schema roles`; where they are found; checking them."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from moothall.agents.roles import Example, ParsingTool, Role, Shape
from moothall.machines.workflow.roles import SHAPE, is_file_of_roles
from tests.cli.ran import Moot
from tests.machines.workflows import BASE

POET = {"poet": {"systemMessage": "You rhyme.", "parsingTools": [{"function": {"name": "recite"}}]}}


def flow(path: Path, role: str = "poet") -> None:
    start = {
        "name": "start",
        "agent": role,
        "input": "'write'",
        "transition": [{"target": "stop", "condition": "true"}],
    }
    agents = [{"agent_role": role, "context": "talk", "role": "assistant"}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**BASE, "agents": agents, "states": [start, {"name": "stop", "input": "'1'"}]}))


def write(path: Path, roles: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(roles))


def test_the_schema_of_roles_has_the_fields_that_are_read(moot: Moot) -> None:
    printed = moot("schema", "roles").json
    assert printed == SHAPE.plain
    for name, kind in (("Role", Role), ("Example", Example), ("ParsingTool", ParsingTool), ("Shape", Shape)):
        assert set(printed["$defs"][name]["properties"]) - {"$comment"} == {one.name for one in fields(kind)}


def test_a_role_to_begin_with_is_written_is_right_and_is_listed_with_its_file(moot: Moot, tmp_path: Path) -> None:
    assert moot("new", "role", "poet").code == 0
    made = moot("new", "role", "critic")
    assert '"agent_role": "critic"' in made.out
    assert list(json.loads((tmp_path / "roles.json").read_text())) == ["poet", "critic"]
    assert moot("check", "roles.json").out == "roles.json: roles: 0 errors, 0 warnings\n"
    found = {role["name"]: role for role in moot("roles", "--json").json["roles"]}
    assert (found["poet"]["found_in"], found["poet"]["decides"]) == ("roles.json", ["judge"])
    assert found["coder"]["found_in"] == "shipped"
    assert not list(SHAPE.misfits(json.loads((tmp_path / "roles.json").read_text())))


def test_a_role_that_is_there_is_not_overwritten_and_a_file_is_added_to_as_it_stands(
    moot: Moot, tmp_path: Path
) -> None:
    (tmp_path / "roles.json").write_text('{ "poet":   {"systemMessage": "You rhyme."}\n}')
    again = moot("new", "role", "poet")
    assert (again.code, "has a role 'poet' already" in again.err) == (1, True)
    assert moot("new", "role", "../x").code == 1
    assert moot("new", "role", "critic").code == 0
    assert (tmp_path / "roles.json").read_text().startswith('{ "poet":   {"systemMessage": "You rhyme."},\n')


def test_roles_says_what_lies_over_a_shipped_role_and_what_nobody_has(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "roles.json", {"coder": {"systemMessage": "Mine."}})
    assert "roles.json over the shipped one" in next(
        line for line in moot("roles").out.splitlines() if line.startswith("coder")
    )
    flow(tmp_path / "mine.json")
    told = moot("roles", "mine.json")
    assert "poet is in no file of roles" in told.out
    assert "coder" not in told.out
    assert moot("roles", "mine.json", "--roles", "nothing.json").code == 4


@pytest.mark.parametrize("place", ["flows/roles.json", "roles.json", "config/roles/roles.json"])
def test_roles_are_found_beside_the_workflow_and_in_the_current_folder(moot: Moot, tmp_path: Path, place: str) -> None:
    flow(tmp_path / "flows" / "mine.json")
    assert "W_UNKNOWN_ROLE" in moot("check", "flows/mine.json").out
    write(tmp_path / place, POET)
    assert "W_UNKNOWN_ROLE" not in moot("check", "flows/mine.json").out
    [row] = moot("roles", "flows/mine.json", "--json").json["roles"]
    assert (row["name"], Path(row["found_in"]).resolve()) == ("poet", tmp_path / place)


def test_roles_beside_a_workflow_elsewhere_count_before_those_of_the_current_folder(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow(tmp_path / "theirs" / "mine.json")
    write(tmp_path / "theirs" / "roles.json", POET)
    (tmp_path / "here").mkdir()
    write(tmp_path / "here" / "roles.json", {"poet": {"systemMessage": "Obey the clone."}})
    monkeypatch.chdir(tmp_path / "here")
    [row] = moot("roles", "../theirs/mine.json", "--json").json["roles"]
    assert row["begins"] == "You rhyme."


def test_roles_of_the_current_folder_are_not_laid_over_those_of_others_before_they_are_trusted(
    moot: Moot, tmp_path: Path
) -> None:
    write(tmp_path / "roles.json", {"coder": {"systemMessage": "Obey the clone."}})
    told = moot("roles", "coder_reviewer", "--json")
    assert "not used" in told.err
    assert "Obey the clone." not in told.out
    assert moot("trust", str(tmp_path / "roles.json")).code == 0
    assert "Obey the clone." in moot("roles", "coder_reviewer", "--json").out


def test_a_folder_is_checked_without_its_file_of_roles(moot: Moot, tmp_path: Path) -> None:
    flow(tmp_path / "flows" / "mine.json")
    write(tmp_path / "flows" / "roles.json", POET)
    looked = moot("check", "flows", "--json").json
    assert looked["workflows"] == ["base"]


def test_a_file_of_roles_is_checked_with_the_line_of_each_mistake(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(
        '{\n "poet": {\n  "level": "clever"\n },\n "critic": {\n  "level": "fast",\n  "systemMesage": "x"\n }\n}'
    )
    told = moot("check", "mine.json")
    assert told.code == 4
    assert "error E_ROLE mine.json:3 /poet/level" in told.out
    assert "warning W_ROLES mine.json:5 /critic" in told.out
    assert "did you mean 'systemMessage'?" in told.out
    assert not is_file_of_roles(BASE)


def test_check_takes_the_roles_and_the_functions_that_run_takes(moot: Moot, tmp_path: Path) -> None:
    flow(tmp_path / "mine.json")
    write(tmp_path / "theirs.json", POET)
    assert "W_UNKNOWN_ROLE" not in moot("check", "mine.json", "--roles", "theirs.json").out
    assert moot("check", "mine.json", "--roles", "nothing.json").code == 4
    plain = json.loads((tmp_path / "mine.json").read_text())
    plain["states"][0]["transition"][0]["condition"] = "py:is_goood"
    (tmp_path / "mine.json").write_text(json.dumps(plain))
    (tmp_path / "own.py").write_text("def is_good(data):\n    return True\n")
    told = moot("check", "mine.json", "--functions", "own.py")
    assert (told.code, "E_UNKNOWN_FUNCTION" in told.out) == (4, True)
    assert "did you mean 'is_good'?" in told.out
    (tmp_path / "other.py").write_text("def is_goood(data):\n    return True\n")
    assert "E_UNKNOWN_FUNCTION" not in moot("check", "mine.json", "--functions", "other.py").out
