"""Workflow files at the command line: `check`, `schema`, `workflows`, `new`, `run`, `graph`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moothall.machines.workflow.schema import SCHEMA
from tests.cli.process import environment, started
from tests.cli.process import moot as command_line
from tests.cli.ran import Moot
from tests.machines.workflows import BASE, of_the_seed


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


def test_a_single_error_is_counted_as_one(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "bad.json", {**BASE, "workflow_name": "../up"})
    assert "bad.json: ../up: 1 error, 0 warnings" in moot("check", "bad.json").out.splitlines()


def test_where_a_workflow_is_not_found_it_is_said_where_others_are(moot: Moot, tmp_path: Path) -> None:
    asking = {**BASE["states"][0], "action": {"sub_workflow": "nobody"}}
    write(tmp_path / "bad.json", {**BASE, "states": [asking, *BASE["states"][1:]]})
    told = "there are: base; also those of the files beside this one, and what `moot workflows` lists"
    assert told in moot("check", "bad.json").out


def test_check_as_json_has_level_code_pointer_line_and_remedy(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "bad.json", {**BASE, "workflow_name": "../up"})
    [finding] = moot("check", "bad.json", "--json").json["findings"]
    assert {"level", "code", "pointer", "line", "why", "remedy", "workflow"} == set(finding)
    assert (finding["code"], finding["pointer"], finding["line"]) == ("E_NAME", "/workflow_name", 2)


def test_a_file_that_is_well_has_the_certificate_of_its_machine(moot: Moot, tmp_path: Path) -> None:
    plain = {"name": "start", "transition": [{"target": "stop", "condition": "true"}]}
    short = {**BASE, "workflow_name": "short", "agents": [], "states": [plain, {"name": "stop", "input": "1"}]}
    write(tmp_path / "short.json", short)
    assert moot("check", "short.json").out.splitlines()[-1] == "bounded: at most 4 transitions"
    write(tmp_path / "both.json", short, BASE)
    certificates = moot("check", "both.json", "--json").json["certificates"]
    assert certificates["short"] == {"transitions": 4, "resources": {}, "exact": True}
    assert certificates["base"]["resources"]["calls"] > 0
    assert "short: bounded: at most 4 transitions" in moot("check", "both.json").out.splitlines()


def test_a_file_whose_roles_cannot_be_used_has_no_certificate_and_exits_with_4(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "mine.json", BASE)
    (tmp_path / "config" / "roles").mkdir(parents=True)
    (tmp_path / "config" / "roles" / "roles.json").write_text('{"coder": {"level": "clever"}}')
    ran = moot("check", "mine.json")
    assert ran.code == 4
    assert "no bound: " in ran.out
    assert "coder.level" in ran.out


def test_several_files_folders_and_machines_are_checked_together(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    write(tmp_path / "all" / "one.json", BASE)
    write(tmp_path / "all" / "two.json", {**BASE, "workflow_name": "two"})
    looked = moot("check", "machines.py:LETTER", "all", "--json").json
    assert [one.get("machine") or one["workflows"] for one in looked] == ["letter", ["base"], ["two"]]


def test_what_agents_say_and_who_they_are_may_lie_beside_the_workflows_of_a_folder(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    write(tmp_path / "all" / "roles.json", {"coder": {"systemMessage": "You count."}})
    write(tmp_path / "all" / "said.json", {"coder": ["one", "two"]})
    write(tmp_path / "all" / "rules.json", {"rules": [{"agent": "coder", "reply": "one"}], "reviewer": ["two"]})
    ran = moot("check", "all")
    assert (ran.code, "has no workflow files" in ran.err) == (4, True)
    write(tmp_path / "all" / "mine.json", BASE)
    assert moot("check", "all", "--json").json["workflows"] == ["base"]
    write(tmp_path / "all" / "half.json", {"states": []})
    assert moot("check", "all").code == 4


def test_a_name_that_no_workflow_of_the_file_has_is_not_checked(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "both.json", BASE, {**BASE, "workflow_name": "two"})
    assert moot("check", "both.json:two").code == 0
    ran = moot("check", "both.json:three")
    assert (ran.code, ran.out) == (4, "")
    assert "both.json has no workflow 'three'; it has base, two" in ran.err
    (tmp_path / "both.json").write_text("{")
    assert "E_JSON" in moot("check", "both.json:two").out


def test_a_file_that_is_not_there_exits_with_4(moot: Moot) -> None:
    ran = moot("check", "nothing.json")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no file nothing.json" in ran.err


def test_roles_of_the_folder_are_known_to_the_check_and_to_the_run(moot: Moot, tmp_path: Path) -> None:
    agents = [{"agent_role": "poet", "context": "talk", "role": "assistant"}]
    start = {
        "name": "start",
        "agent": "poet",
        "input": "'write'",
        "transition": [{"target": "stop", "condition": "true"}],
    }
    write(tmp_path / "mine.json", {**BASE, "agents": agents, "states": [start, {"name": "stop", "input": "'1'"}]})
    codes = {one["code"] for one in moot("check", "mine.json", "--json").json["findings"]}
    assert "W_UNKNOWN_ROLE" in codes
    (tmp_path / "config" / "roles").mkdir(parents=True)
    write(tmp_path / "config" / "roles" / "roles.json", {"poet": {"systemMessage": "You rhyme.", "theirs": 1}})
    codes = {one["code"] for one in moot("check", "mine.json", "--json").json["findings"]}
    assert "W_UNKNOWN_ROLE" not in codes
    assert moot("run", "mine.json", "x").code == 0
    (tmp_path / "config" / "roles" / "roles.json").write_text('{"poet": {"level": "clever"}}')
    ran = moot("run", "mine.json", "x")
    assert (ran.code, "poet.level" in ran.err) == (4, True)


def test_a_workflow_is_run_from_a_file_of_several_and_from_a_folder_by_its_name(moot: Moot, tmp_path: Path) -> None:
    def saying(name: str) -> object:
        start = {"name": "start", "transition": [{"target": "stop", "condition": "true"}]}
        return {**BASE, "workflow_name": name, "states": [start, {"name": "stop", "input": f"'{name}'"}]}

    (tmp_path / "all").mkdir()
    write(tmp_path / "all" / "two.json", saying("one"), saying("two"))
    assert moot("run", "all/two.json:two", "x").out == "two\n"
    assert moot("run", "all:one", "x").out == "one\n"
    unnamed = moot("run", "all/two.json", "x")
    assert (unnamed.code, "name one as two.json:NAME" in unnamed.err) == (4, True)
    assert moot("run", "all:three", "x").code == 4


def test_schema_prints_the_json_schema(moot: Moot) -> None:
    assert moot("schema", "workflow").json == SCHEMA
    assert moot("schema", "nothing").code == 2


@pytest.mark.covers("W36")
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
    assert "cannot be a name here" in ran.err
    assert not list(tmp_path.parent.glob("mine.json"))


@pytest.mark.covers("W43")
def test_workflows_lists_the_users_own_before_the_shipped_ones(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    write(tmp_path / "workflows" / "mine.json", {**BASE, "workflow_name": "mine"})
    listed = {one["name"]: one for one in moot("workflows", "--json").json}
    assert listed["mine"]["file"] == "workflows/mine.json"
    assert "work and look" in moot("workflows").out


# running

KEYS = {
    *("success", "workflow_name", "final_state", "execution_time", "states_visited", "output", "common_data"),
    *("run_id", "usage", "status", "error", "questions"),
}
REVIEWED: dict[str, list[Any]] = {
    "coder": ["I made it.", "I made it better."],
    "reviewer": [
        {"calls": [{"tool": "review_work", "arguments": {"improvement_needed": True, "continue_message": "better"}}]},
        {"calls": [{"tool": "review_work", "arguments": {"improvement_needed": False, "work_summary": "all good"}}]},
    ],
}


@pytest.mark.covers("W43", "W57")
def test_a_workflow_is_run_by_its_name_and_gives_its_output(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "replies.json", REVIEWED)
    ran = moot("run", "coder_reviewer", "tea", "--model", "scripted:replies.json", "--run-id", "one")
    assert (ran.code, ran.out) == (0, "all good\n")
    assert "one is done (in stop, step 4" in ran.err


def test_the_result_as_json_has_the_names_that_workflows_have(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "replies.json", REVIEWED)
    result = moot("run", "coder_reviewer", "tea", "--model", "scripted:replies.json", "--run-id", "one", "--json").json
    assert set(result) == KEYS
    assert (result["success"], result["workflow_name"], result["final_state"]) == (True, "coder_reviewer", "stop")
    assert result["states_visited"] == ["start", "code", "review", "code", "review", "stop"]
    assert (result["output"], result["run_id"], result["usage"]["calls"]) == ("all good", "one", 4)
    assert result["common_data"]["task_to_do"] == "tea"
    assert moot("resume", "one", "--json").json == result


@pytest.mark.covers("W57")
def test_without_a_model_rehearsal_stands_in_and_every_shipped_workflow_comes_to_its_end(moot: Moot) -> None:
    for name in ("coder_reviewer", "hierarchical_development", "product_manager_coder", "parallel_analysis_shared"):
        ran = moot("run", name, "tea", "--json")
        assert (ran.code, ran.json["success"]) == (0, True), ran.err
        assert "rehearsal stands in for" in ran.err
    asked = moot("run", "approved_release", "tea", "--run-id", "notes")
    assert asked.code == 5
    assert "question 2.0: Publish these notes?" in asked.err
    done = moot("answer", "notes", "--json", '{"publish": true}')
    assert done.code == 0
    assert done.out.startswith("[rehearsal] product_manager")


def test_the_seeds_sub_workflow_runs_as_a_run_of_its_own(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    for name, text in of_the_seed().items():
        (tmp_path / "workflows" / f"{name}.json").write_text(text)
    replies = {**REVIEWED, "product_manager": ["analysis", "approved"], "architect": ["spec", "fits"]}
    write(tmp_path / "replies.json", replies)
    ran = moot("run", "hierarchical_development", "build it", "--model", "scripted:replies.json", "--json")
    assert (ran.code, ran.json["output"]) == (0, "approved")
    assert ran.json["common_data"]["implementation_result"] == "all good"
    assert set(ran.json["common_data"]) & {"task_to_do", "current_task", "work_summary"} == set()
    assert sorted(one["machine"] for one in moot("ls", "--json").json) == ["coder_reviewer", "hierarchical_development"]


def test_a_run_goes_on_after_its_file_was_read_from_another_folder(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = {"name": "start", "ask": {"question": "Go?"}, "transition": [{"target": "stop", "condition": "true"}]}
    write(tmp_path / "mine.json", {**BASE, "states": [asking, {"name": "stop", "input": "`${common_data.answer}`"}]})
    assert moot("run", "mine.json", "x", "--run-id", "mine").code == 5
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert moot("answer", "mine", "--yes").out == "true\n"
    assert moot("replay", "mine").code == 0


def waiting(who: str, output: str, question: str = "Go?") -> Any:
    asking = {
        "name": "start",
        "ask": {"question": question, "who": who},
        "transition": [{"target": "stop", "condition": "true"}],
    }
    return {**BASE, "output": {"name": "result"}, "states": [asking, {"name": "stop", "input": output}]}


def events(moot: Moot, run: str = "mine") -> list[str]:
    return [entry["event"]["name"] for entry in moot("export", run).json["entries"]]


def test_a_run_keeps_the_definition_that_it_began_with_and_the_door_says_so(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "mine.json", waiting("", "1"))
    assert moot("run", "mine.json", "x", "--run-id", "mine").code == 5
    write(tmp_path / "mine.json", waiting("ada", "2"))
    ran = moot("answer", "mine", "--yes")
    assert (ran.code, ran.out) == (0, "1\n"), ran.err
    assert f"{tmp_path / 'mine.json'} has changed; run mine keeps the definition that it began with" in ran.err
    assert events(moot) == ["run.started", "answered"]
    assert moot("replay", "mine").code == 0


@pytest.mark.parametrize("harm", ["deleted", "moved", "broken"])
def test_a_file_that_is_gone_does_not_strand_a_run(moot: Moot, tmp_path: Path, harm: str) -> None:
    inner = {**waiting("", "'from below'"), "workflow_name": "inner"}
    outer = {
        **BASE,
        "states": [
            {
                "name": "start",
                "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "'y'"}},
                "transition": [{"target": "stop", "condition": "true"}],
            },
            {"name": "stop", "input": "sub_workflow_result"},
        ],
    }
    write(tmp_path / "outer.json", outer)
    write(tmp_path / "inner.json", inner)
    assert moot("run", "outer.json", "x", "--run-id", "mine").code == 5
    assert moot("fork", "mine", "--run-id", "other", "--repeat").code == 5
    for name in ("outer.json", "inner.json"):
        match harm:
            case "deleted":
                (tmp_path / name).unlink()
            case "moved":
                (tmp_path / name).rename(tmp_path / f"old-{name}.txt")
            case "broken":
                (tmp_path / name).write_text("{")
    for run in ("mine", "other"):
        ran = moot("answer", run, "--yes")
        assert (ran.code, ran.out) == (0, "from below\n"), ran.err
        assert moot("replay", run).code == 0
    assert moot("audit").code == 0


def test_a_changed_file_that_is_named_adopts_a_run_if_it_says_the_same_so_far_and_else_refuses_it(
    moot: Moot, tmp_path: Path
) -> None:
    write(tmp_path / "mine.json", waiting("", "1"))
    assert moot("run", "mine.json", "x", "--run-id", "mine").code == 5
    write(tmp_path / "mine.json", waiting("ada", "1"))
    ran = moot("answer", "mine", "--yes", "--machine", "mine.json")
    assert ran.code != 0
    assert "definition" in ran.err
    write(tmp_path / "mine.json", waiting("", "1", "Shall we go?"))
    assert moot("resume", "mine", "--machine", "mine.json").code == 5
    assert moot("export", "mine").json["entries"][-1]["event"]["reason"] == "another wording"
    write(tmp_path / "mine.json", waiting("", "2"))
    assert moot("answer", "mine", "--yes", "--machine", "mine.json").out == "2\n"
    assert events(moot) == ["run.started", "run.adopted", "run.adopted", "answered"]


def test_a_secret_of_a_file_is_not_stored_with_the_run(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "swordfish-4711-swordfish")
    monkeypatch.setenv("MOOTHALL_SECRETS", "MY_SECRET")
    write(tmp_path / "mine.json", waiting("", "1", "Go with swordfish-4711-swordfish?"))
    assert moot("run", "mine.json", "x", "--run-id", "mine").code == 5
    exported = moot("export", "mine")
    assert "swordfish-4711" not in exported.out
    assert "Go with " in json.dumps(exported.json["record"]["definition"])
    (tmp_path / "mine.json").unlink()
    assert moot("answer", "mine", "--yes").out == "1\n"


FUNCTIONS = """
async def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def shout(data):
    return data["task"].upper()
"""


@pytest.mark.covers("W61")
def test_functions_and_roles_come_from_the_command_line(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    write(tmp_path / "counting.json", {"coder": {"systemMessage": "You count.", "excludedTools": ["sing"]}})
    states = [
        {
            "name": "start",
            "agent": "coder",
            "input": "py:shout",
            "transition": [{"target": "stop", "condition": "true"}],
        },
        {"name": "stop", "input": "contexts.talk.messages.map(m => m.content).join(' ')"},
    ]
    write(tmp_path / "count.json", {**BASE, "states": states})
    write(tmp_path / "replies.json", {"coder": [{"calls": [{"tool": "add", "arguments": {"a": 1, "b": 2}}]}, "three"]})
    given = ("--functions", "mine.py", "--roles", "counting.json", "--model", "scripted:replies.json")
    ran = moot("run", "count.json", "tea", *given, "--run-id", "mine")
    assert (ran.code, ran.out) == (0, "TEA  3 three\n")
    assert "role coder: no tool fits 'sing'" in ran.err
    assert moot("run", "machines.py:LETTER", "x", "--roles", "roles.json").code == 2
    for named in ("count.json", "count.json:base", "count.json?functions=mine.py"):
        replayed = moot("replay", "mine", "--machine", named)
        assert (replayed.code, replayed.out, replayed.err) == (0, "mine: the same again, 4 entries\n", "")
    assert moot("fork", "mine", "--at", "0", "--machine", "count.json", "--repeat").out == "TEA  3 three\n"


@pytest.mark.parametrize("machine", ["count.json", "above.json"])
def test_a_run_that_lacks_a_function_is_refused_before_anybody_is_asked(
    moot: Moot, tmp_path: Path, machine: str
) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    (tmp_path / "others.py").write_text("def whisper(data):\n    return 'tea'\n")
    ways = [{"target": "stop", "condition": "py:shout"}]
    states = [{"name": "start", "agent": "coder", "input": "'count'", "transition": ways}, {"name": "stop"}]
    write(tmp_path / "count.json", {**BASE, "states": states})
    below = {
        "name": "start",
        "action": {"sub_workflow": "base", "sub_workflow_input": {"task": "common_data.task"}},
        "transition": [{"target": "stop", "condition": "true"}],
    }
    write(tmp_path / "above.json", {**BASE, "workflow_name": "above", "agents": [], "states": [below]})
    for given in ((), ("--functions", "others.py")):
        ran = moot("run", machine, "tea", *given, "--model", "rehearsal")
        assert (ran.code, ran.out) == (4, "")
        assert "base names py:shout, and no function is called so; --functions names the module that has it" in ran.err
    assert moot("ls", "--json").json == []
    assert moot("run", machine, "tea", "--functions", "mine.py", "--model", "rehearsal").code == 0


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("scripted:nowhere.json", "nowhere.json: the script cannot be read"),
        ("scripted:broken.json", "broken.json: the script is not JSON"),
        ("openai:gpt-5", "openai:gpt-5 needs a key: set OPENAI_API_KEY"),
        ("levels", "openai:gpt-5 needs a key: set OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_before_a_run_begins(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, why: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MOOTHALL_LEVEL_BASE", "openai:gpt-5")
    (tmp_path / "broken.json").write_text("{")
    write(tmp_path / "mine.json", {**BASE, "on_error": "stop"})
    ran = moot("run", "mine.json", "tea", "--model", model)
    assert (ran.code, ran.out) == (4, "")
    assert why in ran.err
    assert moot("ls", "--json").json == []


def test_an_answer_that_leads_to_a_model_which_is_not_here_is_refused_and_the_question_stays_open(
    moot: Moot, tmp_path: Path
) -> None:
    ways = [{"target": "stop", "condition": "true"}]
    asking = {"name": "start", "ask": {"question": "'Go?'"}, "transition": [{"target": "work", "condition": "true"}]}
    working = {"name": "work", "agent": "coder", "input": "'go'", "transition": ways}
    states = [asking, working, {"name": "stop", "input": "last_agent_response"}]
    write(tmp_path / "mine.json", {**BASE, "on_error": "stop", "states": states})
    write(tmp_path / "said.json", {"coder": ["gone"]})
    assert moot("run", "mine.json", "tea", "--model", "scripted:said.json", "--run-id", "mine").code == 5
    (tmp_path / "said.json").rename(tmp_path / "away.json")
    for words in (("answer", "mine", "--yes"), ("resume", "mine")):
        ran = moot(*words)
        assert (ran.code, "said.json: the script cannot be read" in ran.err) == (4, True)
    assert len(moot("show", "mine", "--json").json["summary"]["questions"]) == 1
    (tmp_path / "away.json").rename(tmp_path / "said.json")
    assert moot("answer", "mine", "--yes").out == "gone\n"


def test_a_run_can_be_cancelled_without_its_model(moot: Moot, tmp_path: Path) -> None:
    asking = {"name": "start", "ask": {"question": "'Go?'"}, "transition": [{"target": "stop", "condition": "true"}]}
    write(tmp_path / "mine.json", {**BASE, "states": [asking, {"name": "stop", "input": "'1'"}]})
    write(tmp_path / "said.json", {"coder": ["gone"]})
    assert moot("run", "mine.json", "tea", "--model", "scripted:said.json", "--run-id", "mine").code == 5
    (tmp_path / "said.json").unlink()
    assert moot("cancel", "mine").code == 0


def test_the_model_of_a_level_that_nobody_has_is_not_asked_for(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_LEVEL_BASE", "rehearsal")
    monkeypatch.setenv("MOOTHALL_LEVEL_SMART", "scripted:nowhere.json")
    write(tmp_path / "mine.json", BASE)
    assert moot("run", "mine.json", "tea", "--model", "levels").code == 0
    write(tmp_path / "roles.json", {"coder": {"level": "smart"}})
    assert moot("run", "mine.json", "tea", "--model", "levels").code == 4


def test_a_child_is_replayed_with_the_functions_of_its_family(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    start = {
        "name": "start",
        "agent": "coder",
        "input": "'go'",
        "transition": [{"target": "stop", "condition": "true"}],
    }
    inner = {**BASE, "workflow_name": "inner", "states": [start, {"name": "stop", "input": "last_agent_response"}]}
    calling = {
        "name": "start",
        "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "'x'"}},
        "transition": [{"target": "stop", "condition": "true"}],
    }
    write(tmp_path / "both.json", {**BASE, "states": [calling, {"name": "stop", "input": "'1'"}]}, inner)
    write(tmp_path / "replies.json", {"coder": ["three"]})
    given = ("--functions", "mine.py", "--model", "scripted:replies.json")
    ran = moot("run", "both.json:base", "tea", *given, "--run-id", "mine")
    assert ran.code == 0, ran.err
    for run in ("mine", "mine-0-0"):
        assert moot("replay", run, "--machine", "both.json:base").code == 0


@pytest.mark.parametrize(("given", "why"), [(("three",), "a number"), ((), "was given nothing")])
def test_an_input_of_the_wrong_type_is_refused_before_a_run_begins(
    moot: Moot, tmp_path: Path, given: tuple[str, ...], why: str
) -> None:
    write(tmp_path / "mine.json", {**BASE, "input": {"name": "task", "type": "number", "description": "how many"}})
    ran = moot("run", "mine.json", *given)
    assert (ran.code, ran.out) == (1, "")
    assert f"base takes 'task', {why}" in ran.err or why in ran.err
    assert moot("ls").out == "no runs yet\n"


def test_a_typed_input_may_come_from_a_file(moot: Moot, tmp_path: Path) -> None:
    states = [
        {"name": "start", "transition": [{"target": "stop", "condition": "true"}]},
        {"name": "stop", "input": "common_data.task[1].n"},
    ]
    given = {"name": "task", "type": "array", "description": "things"}
    output = {"name": "result", "type": "number", "description": "the second"}
    write(tmp_path / "mine.json", {**BASE, "input": given, "output": output, "states": states})
    (tmp_path / "given.json").write_text('[{"n": 1}, {"n": 2}]')
    assert moot("run", "mine.json", "--input-json", "given.json").out == "2\n"


def test_an_input_in_an_object_by_its_name_is_refused_with_what_to_do(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "mine.json", BASE)
    (tmp_path / "given.json").write_text('{"task": "tea"}')
    ran = moot("run", "mine.json", "--input-json", "given.json")
    why = "base takes 'task', a string, and was given an object; give the string itself, without an object around it"
    assert (ran.code, why in ran.err) == (1, True)


def test_a_decision_stands_in_the_line_of_its_reply_and_lines_of_a_child_carry_its_name(
    moot: Moot, tmp_path: Path
) -> None:
    start = {
        "name": "start",
        "agent": "reviewer",
        "input": "'look'",
        "transition": [{"target": "stop", "condition": "function.review_work.arguments.improvement_needed === false"}],
    }
    inner = {**BASE, "workflow_name": "inner", "states": [start, {"name": "stop", "input": "'seen'"}]}
    calling = {
        "name": "start",
        "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "'it'"}},
        "transition": [{"target": "stop", "condition": "true"}],
    }
    write(tmp_path / "both.json", {**BASE, "states": [calling, {"name": "stop", "input": "'1'"}]}, inner)
    decided = {"tool": "review_work", "arguments": {"improvement_needed": False, "work_summary": "all is well " * 9}}
    write(tmp_path / "said.json", {"reviewer": [{"calls": [decided]}]})
    ran = moot("run", "both.json:base", "x", "--model", "scripted:said.json", "--run-id", "mine")
    [line] = [line for line in ran.err.splitlines() if "replied" in line]
    assert line.split("  ")[-3:] == ["inner: start → stop", line.split("  ")[-2], "done"]
    assert "replied reviewer review_work(improvement_needed: false, work_summary: all is well" in line
    assert "…)" in line
    [child] = [run["run"] for run in moot("ls", "--json").json if run["machine"] == "inner"]
    assert "review_work(improvement_needed: false" in moot("show", child).out


def test_a_run_that_reaches_a_limit_exits_with_7_and_names_it(moot: Moot, tmp_path: Path) -> None:
    looping = {
        "name": "start",
        "transition": [{"target": "start", "condition": "common_data.task"}, {"target": "stop", "condition": "true"}],
    }
    write(tmp_path / "mine.json", {**BASE, "states": [looping]})
    ran = moot("run", "mine.json", "x", "--json")
    assert (ran.code, ran.json["status"]) == (7, "limited")
    assert ran.json["error"] == "limit_exceeded: limit of 3 visits reached in start"


def test_a_workflow_that_gives_nothing_says_so(moot: Moot, tmp_path: Path) -> None:
    write(
        tmp_path / "mine.json",
        {**BASE, "states": [{"name": "start", "transition": [{"target": "stop", "condition": "true"}]}]},
    )
    ran = moot("run", "mine.json", "x")
    assert (ran.code, ran.out) == (0, "")
    assert "base gives nothing" in ran.err


def test_a_run_of_a_workflow_is_forked_and_goes_another_way(moot: Moot, tmp_path: Path) -> None:
    write(tmp_path / "replies.json", REVIEWED)
    moot("run", "coder_reviewer", "tea", "--model", "scripted:replies.json", "--run-id", "one")
    replies = {**REVIEWED, "reviewer": [REVIEWED["reviewer"][1]]}
    write(tmp_path / "replies.json", replies)
    forked = moot("fork", "one", "--at", "1", "--run-id", "other", "--repeat")
    assert (forked.code, forked.out) == (0, "all good\n"), forked.err
    assert moot("replay", "other").code == 0


def test_a_workflow_is_drawn_in_every_format(moot: Moot) -> None:
    for format_ in ("mermaid", "dot", "tree", "json"):
        drawn = moot("graph", "approved_release", "--format", format_)
        assert (drawn.code, drawn.err) == (0, "")
        assert "polish" in drawn.out
        assert "common_data.decision.publish" in drawn.out


def test_what_nobody_knows_is_refused_by_name(moot: Moot) -> None:
    ran = moot("run", "nobody_knows", "x")
    assert ran.code == 4
    assert "nobody_knows" in ran.err


WITHOUT_ENGINE = "import sys; sys.modules['quickjs'] = None; from moothall.cli.main import main; sys.exit(main())"


def test_a_run_is_replayed_where_no_script_engine_is_installed(tmp_path: Path) -> None:
    ran = command_line("run", "coder_reviewer", "tea", "--run-id", "one", home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    replayed = subprocess.run(
        [sys.executable, "-c", WITHOUT_ENGINE, "replay", "one"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (replayed.returncode, replayed.stderr) == (0, "")
    again = subprocess.run(
        [sys.executable, "-c", WITHOUT_ENGINE, "run", "coder_reviewer", "x"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (again.returncode, "no JavaScript engine is installed" in again.stderr) == (4, True)


def test_a_run_that_is_killed_goes_on_and_repeats_no_call(tmp_path: Path) -> None:
    slow = {**REVIEWED, "coder": ["I made it.", {"text": "I made it better.", "seconds": 60}]}
    (tmp_path / "replies.json").write_text(json.dumps(slow))
    model = "scripted:replies.json,log=log"
    child = started("run", "coder_reviewer", "tea", "--model", model, "--run-id", "one", home=tmp_path)
    assert child.stderr is not None
    for line in child.stderr:
        if line.lstrip().startswith("2 "):
            break
    child.kill()
    child.communicate()
    (tmp_path / "replies.json").write_text(json.dumps(REVIEWED))
    ran = command_line("resume", "one", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "all good\n")
    keys = (tmp_path / "log").read_text().split("\n")[:-1]
    assert len([key for key in keys if key.endswith("reviewer")]) == 2
    assert len(set(keys)) == 4


@pytest.mark.parametrize("name", ["coder_reviewer", "hierarchical_development"])
def test_the_workflows_of_the_document_are_checked_drawn_rehearsed_and_replayed_as_they_stand_there(
    moot: Moot, tmp_path: Path, name: str
) -> None:
    for one, text in of_the_seed().items():
        (tmp_path / f"{one}.json").write_text(text)
    assert moot("check", f"{name}.json").code == 0
    drawn = moot("graph", f"{name}.json")
    assert (drawn.code, drawn.out.startswith("stateDiagram-v2")) == (0, True)
    ran = moot("run", f"{name}.json", "a small task", "--model", "rehearsal", "--run-id", "seed", "--json")
    assert (ran.code, ran.json["success"], ran.json["final_state"]) == (0, True, "stop"), ran.err
    assert moot("replay", "seed").code == 0


LEVELS = {
    **BASE,
    "workflow_name": "levels",
    "agents": [{"agent_role": name, "context": "talk", "role": "assistant"} for name in ("coder", "reviewer", "clerk")],
    "contexts": [{"name": "talk"}],
    "states": [
        {"name": "start", "transition": [{"target": "coder", "condition": "true"}]},
        *(
            {"name": one, "agent": one, "input": "'go'", "transition": [{"target": then, "condition": "true"}]}
            for one, then in (("coder", "reviewer"), ("reviewer", "clerk"), ("clerk", "stop"))
        ),
        {"name": "stop", "input": "this.last_agent_response"},
    ],
}
"""Three agents, one after the other."""


@pytest.fixture
def levelled(tmp_path: Path) -> Path:
    """A workflow whose roles have levels, and models of which each says who it is and notes that it was asked."""
    write(tmp_path / "levels.json", LEVELS)
    roles = {"coder": {"level": "smart"}, "reviewer": {"level": "base"}, "clerk": {"level": "fast"}}
    (tmp_path / "roles.json").write_text(json.dumps(roles))
    for model in ("one", "other"):
        (tmp_path / f"{model}.script").write_text(json.dumps({name: [f"{name} by {model}"] for name in roles}))
    return tmp_path


@pytest.mark.covers("W50")
def test_without_a_model_each_agent_is_played_by_that_of_its_roles_level(moot: Moot, levelled: Path) -> None:
    scripts = {level: f"scripted:{levelled}/{name}.script" for level, name in (("base", "one"), ("smart", "other"))}
    (levelled / "home").mkdir()
    (levelled / "home" / "settings.toml").write_text(
        "[levels]\n" + "".join(f'{level} = "{script}"\n' for level, script in scripts.items())
    )
    started = ("run", "levels.json", "go", "--roles", "roles.json")
    ran = moot(*started, "--run-id", "mine")
    assert (ran.code, ran.err.count("rehearsal")) == (0, 0)
    journal = moot("export", "mine").json["entries"]
    said = [one["event"]["text"] for one in journal if "text" in one["event"]]
    assert said == ["coder by other", "reviewer by one", "clerk by one"]
    costs = moot("costs", "mine", "--json").json["by_model"]
    assert {model: bill["calls"] for model, bill in costs.items()} == {scripts["smart"]: 1, scripts["base"]: 2}
    assert moot(*started, "--model", scripts["base"], "--json").json["output"] == "clerk by one"
    assert "coder by one" in moot(*started, "--model", scripts["base"]).err


def test_a_key_in_a_condition_is_not_drawn_not_even_a_part_of_it(moot: Moot, tmp_path: Path) -> None:
    key = "sk-live-0123456789abcdef0123456789abcdef"
    start = {"name": "start", "transition": [{"target": "stop", "condition": f"'{key}'.length > 0"}]}
    states = [start, {"name": "stop", "input": "'1'"}]
    write(tmp_path / "mine.json", {**BASE, "agents": [], "contexts": [], "states": states})
    assert moot("run", "mine.json", "go", "--run-id", "mine").code == 0
    drawn = [moot("graph", "mine.json", "--format", format) for format in ("tree", "mermaid", "dot", "json")]
    moot("report", "mine", "-o", "page.html")
    assert {one.code for one in drawn} == {1}
    shown = "".join(one.out + one.err for one in drawn) + (tmp_path / "page.html").read_text()
    assert "has a secret in its table" in shown
    assert "sk-live-" not in shown
