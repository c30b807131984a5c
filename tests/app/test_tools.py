"""Agents that act: the tools of a workspace, what a person approves, what is saved, and the tools of a project."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from moothall import Final, GaveUp, Machine, On, Replied, State, Workspace, ask, run
from moothall.agents.workspace import BUILT_IN, SandboxUnavailable
from moothall.app import sandbox
from moothall.app.runs.moothall import Moothall
from moothall.sandboxes import bubblewrap
from moothall.sandboxes.bubblewrap import Bubblewrap
from moothall.sandboxes.none import Unprotected
from tests.cli.ran import Moot, Ran

CODER = ("run", "--role", "coder", "Do it.", "--run-id", "r", "--model", "scripted:script.json")


def has_sandbox(folder: Path) -> bool:
    try:
        asyncio.run(Bubblewrap().probe(folder))
    except SandboxUnavailable:
        return False
    return True


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workspace `ws` and a state directory `home`."""
    for name in ("ws", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ws" / "x.sh").write_text("echo hi\n")
    if not has_sandbox(tmp_path / "ws"):
        monkeypatch.setattr("moothall.app.toolbox.choose_sandbox", lambda level="": Unprotected())
    return tmp_path


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def says(place: Path, **agents: Sequence[Any]) -> None:
    """What agents say: lists of calls, or texts."""
    lines = {
        agent: [{"text": line} if isinstance(line, str) else {"calls": line} for line in said]
        for agent, said in agents.items()
    }
    (place / "script.json").write_text(json.dumps(lines))


def events(moot: Moot, run: str, name: str) -> list[Mapping[str, Any]]:
    """The events of this name in the journal of a run."""
    entries = moot("show", run, "--json").json["entries"]
    return [entry["event"] for entry in entries if entry["event"]["name"] == name]


def thread(moot: Moot, run: str) -> str:
    """All that was said in a run, as text."""
    return json.dumps(moot("show", run, "--json").json)


# with tools


def test_a_single_agent_works_in_a_workspace(moot: Moot, place: Path) -> None:
    says(place, coder=[[call("write_file", path="a.txt", content="hello")], [call("read_file", path="a.txt")], "done"])
    ran = moot(*CODER, "--workspace", "ws", "--quiet")
    assert (ran.code, ran.out) == (0, "done\n")
    assert (place / "ws" / "a.txt").read_text() == "hello"
    assert [event["value"] for event in events(moot, "r", "returned")][1] == "hello"


def test_a_role_has_the_tools_that_its_filter_leaves(moot: Moot, place: Path) -> None:
    says(place, reviewer=[[call("write_file", path="a.txt", content="x"), call("read_file", path="x.sh")], "done"])
    words = ("run", "--role", "reviewer", "Look.", "--run-id", "r", "--model", "scripted:script.json")
    assert moot(*words, "--workspace", "ws", "--quiet").code == 0
    assert not (place / "ws" / "a.txt").exists()
    assert [event["tool"] for event in events(moot, "r", "returned")] == ["read_file"]


def test_a_workflow_file_gets_real_tools(moot: Moot, place: Path) -> None:
    finished = call("review_work", improvement_needed=False, work_summary="fine")
    says(
        place,
        coder=[[call("write_file", path="a.py", content="print(6 * 7)\n")], "written"],
        reviewer=[[call("read_file", path="a.py"), call("write_file", path="a.py", content="")], [finished]],
    )
    words = ("run", "coder_reviewer", "Multiply.", "--run-id", "r", "--model", "scripted:script.json")
    ran = moot(*words, "--workspace", "ws", "--quiet")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert (place / "ws" / "a.py").read_text() == "print(6 * 7)\n"
    assert [save["name"] for save in moot("saves", "r", "--json").json] == ["Workflow: coder_reviewer"]


def test_the_shipped_workflow_of_a_hierarchy_gets_them_too(moot: Moot, place: Path) -> None:
    words = ("run", "hierarchical_development", "Multiply.", "--run-id", "r", "--model", "rehearsal", "--quiet")
    moot(*words, "--workspace", "ws", "--budget", "calls=30")
    source = moot("export", "r").json["record"]["source"]
    assert all(name in source for name in BUILT_IN)


HELPED = Machine(
    "helped",
    data=str,
    states=[State("working", enter=ask("helper", "Help.", tools=["read_file", "edit_file"])), Final("done")],
    moves=[On("working", (Replied, GaveUp), to="done")],
)


def test_a_machine_names_built_in_tools(place: Path) -> None:
    edit = call("edit_file", path="x.sh", old="hi", new="ho")
    says(place, helper=[[edit], "done"])
    outcome = run(HELPED, "x", model="scripted:script.json", workspace=place / "ws", store="memory")
    assert outcome.status == "done"
    assert (place / "ws" / "x.sh").read_text() == "echo ho\n"


def test_a_workspace_that_holds_the_state_directory_is_refused(moot: Moot, place: Path) -> None:
    says(place, coder=["done"])
    assert "which no tool may see" in moot(*CODER, "--workspace", ".").err


# approval


def begin_command(moot: Moot, place: Path, command: str = "sh x.sh", then: str = "done") -> Ran:
    says(place, coder=[[call("execute_terminal", command=command)], then])
    return moot(*CODER, "--workspace", "ws", "--quiet", "--json")


def test_a_person_is_shown_the_exact_call_and_its_files(moot: Moot, place: Path) -> None:
    ran = begin_command(moot, place, "cat notes; sh ./x.sh")
    assert ran.code == 5
    [question] = ran.json["questions"]
    assert '"command": "cat notes; sh ./x.sh"' in question["prompt"]
    assert "x.sh: sha256 " in question["prompt"]
    assert question["run"] == "r-1-0"


def test_the_journal_keeps_three_hashes(moot: Moot, place: Path) -> None:
    begin_command(moot, place)
    assert moot("answer", "r", "--yes", "--quiet").out == "done\n"
    [shown], [approved], [executed] = (events(moot, "r-1-0", name) for name in ("inspected", "answered", "returned"))
    assert len(shown["digest"]) == 64
    assert shown["digest"] == approved["id"] == executed["executed"]
    [heard] = events(moot, "r", "returned")
    assert heard["executed"] == shown["digest"]
    assert heard["value"]["stdout"] == "hi\n"
    assert heard["value"]["level"] in sandbox.LEVELS


def test_no_is_an_answer_to_the_agent(moot: Moot, place: Path) -> None:
    begin_command(moot, place, "touch made")
    ran = moot("answer", "r", "--no", "--quiet")
    assert (ran.code, ran.out) == (0, "done\n")
    assert not (place / "ws" / "made").exists()
    assert "a person said no" in events(moot, "r", "error.effect")[0]["reason"]


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sh x.sh", "x.sh"),
        ("sh ./x.sh && echo done", "x.sh"),
        ("sh *.sh", "x.sh"),
        ("sh<x.sh", "x.sh"),
        ("cd sub; sh y.sh", "sub/y.sh"),
        ("sh {place}/x.sh", "x.sh"),
        ("FILE=x.sh; sh $FILE", "x.sh"),
        ("sh 'x.sh'", "x.sh"),
    ],
)
def test_what_was_approved_and_has_changed_is_asked_again(moot: Moot, place: Path, command: str, changed: str) -> None:
    (place / "ws" / "sub").mkdir()
    (place / "ws" / "sub" / "y.sh").write_text("echo hi\n")
    begin_command(moot, place, command.replace("{place}", str(place / "ws")))
    (place / "ws" / changed).write_text("touch stolen\n")
    ran = moot("answer", "r", "--yes", "--quiet", "--json")
    assert ran.code == 5, "it is asked again"
    assert not list((place / "ws").rglob("stolen"))
    [altered] = events(moot, "r-1-0", "altered")
    shown = [event["digest"] for event in events(moot, "r-1-0", "inspected")]
    assert altered["approved"] == shown[0] != shown[1] == altered["digest"]
    assert moot("answer", "r", "--yes", "--quiet").code == 0
    assert list((place / "ws").rglob("stolen")), "now it was approved as it is"


def test_a_call_that_changes_each_time_is_turned_down_in_the_end(moot: Moot, place: Path) -> None:
    begin_command(moot, place)
    for number in range(4):
        (place / "ws" / "x.sh").write_text(f"echo {number}\n")
        ran = moot("answer", "r", "--yes", "--quiet")
    assert ran.code == 0
    assert "changed each time" in events(moot, "r", "error.effect")[0]["reason"]


def test_a_denied_tool_is_an_answer_to_the_agent(moot: Moot, place: Path) -> None:
    says(place, coder=[[call("write_file", path="a", content="x")], "done"])
    ran = moot(*CODER, "--workspace", "ws", "--quiet", "--policy", "write_file=deny")
    assert ran.code == 0
    assert not (place / "ws" / "a").exists()


@pytest.mark.parametrize(
    ("settings", "flag", "code"),
    [
        ("", "", 5),
        ('[policies]\nexecute_terminal = "allow"', "", 0),
        ('[policies]\n"coder:execute_terminal" = "allow"', "", 0),
        ('[policies]\n"reviewer:execute_terminal" = "allow"', "", 5),
        ('[policies]\nexecute_terminal = "allow"', "coder:execute_terminal=ask", 5),
        ("", "execute_terminal=allow", 0),
    ],
)
def test_policies_come_from_settings_and_flags(moot: Moot, place: Path, settings: str, flag: str, code: int) -> None:
    (place / "home" / "settings.toml").write_text(settings)
    says(place, coder=[[call("execute_terminal", command="true")], "done"])
    assert moot(*CODER, "--workspace", "ws", "--quiet", *(("--policy", flag) if flag else ())).code == code


def test_policies_count_in_workflow_files_by_role(moot: Moot, place: Path) -> None:
    finished = call("review_work", improvement_needed=False, work_summary="fine")
    reading = call("read_file", path="x.sh")
    says(place, coder=[[reading], "read"], reviewer=[[reading], [finished]])
    words = ("run", "coder_reviewer", "Read.", "--run-id", "r", "--model", "scripted:script.json", "--workspace", "ws")
    ran = moot(*words, "--policy", "coder:read_file=deny,reviewer:read_file=ask", "--quiet")
    assert ran.code == 5
    assert "reviewer wants to call read_file" in ran.err
    assert moot("answer", "r", "--yes", "--quiet").out == "fine\n"
    assert len(events(moot, "r", "returned")) == 1


def workflow(name: str, agents: Sequence[str], state: Mapping[str, Any]) -> str:
    """A workflow of one state, with these agents."""
    start = {"name": "start", "transition": [{"target": "stop", "condition": "true"}], **state}
    return json.dumps(
        {
            "workflow_name": name,
            "input": {"name": "task", "type": "string"},
            "output": {"name": "text", "type": "string"},
            "contexts": [{"name": "desk"}],
            "agents": [{"agent_role": agent, "context": "desk", "role": "assistant"} for agent in agents],
            "states": [start, {"name": "stop", "input": "'over'"}],
        }
    )


PRINTING = "async def publish(title: str) -> str:\n    return 'published ' + title\n"
OUTER = "outer", (), {"action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "common_data.task"}}}
INNER = "inner", ("editor",), {"agent": "editor", "input": "common_data.task"}


@pytest.mark.parametrize("name", ["inner", "outer"])
@pytest.mark.parametrize(
    ("settings", "flag", "code", "published"),
    [
        ("", "publish=ask", 5, 0),
        ("", "publish=deny", 0, 0),
        ("", "editor:publish=deny", 0, 0),
        ("", "editor:publish=allow,publish=deny", 0, 1),
        ("", "somebody:publish=deny", 0, 1),
        ("[policies]\npublish = 'ask'\n", "", 5, 0),
        ("[policies]\npublish = 'ask'\n", "publish=allow", 0, 1),
    ],
)
def test_policies_count_for_the_functions_of_a_workflow_and_of_those_below(
    moot: Moot, place: Path, name: str, settings: str, flag: str, code: int, published: int
) -> None:
    (place / "outer.json").write_text(workflow(*OUTER))
    (place / "inner.json").write_text(workflow(*INNER))
    (place / "printing.py").write_text(PRINTING)
    (place / "home" / "settings.toml").write_text(settings)
    says(place, editor=[[call("publish", title="Tides")], "done"])
    words = ("run", f"{name}.json", "Print it.", "--functions", "printing.py", "--model", "scripted:script.json")
    ran = moot(*words, "--run-id", "r", "--quiet", *(("--policy", flag) if flag else ()))
    assert ran.code == code
    assert ("editor wants to call publish" in ran.err) == (code == 5)
    run = "r" if name == "inner" else "r-0-0"
    assert len(events(moot, run, "returned")) == published
    if code == 5:
        assert moot("answer", "r", "--yes", "--quiet").code == 0
        assert [event["value"] for event in events(moot, run, "returned")] == ["published Tides"]


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("publsh=deny", "the policy of 'publsh' does nothing: there is no such tool here; is it 'publish'?"),
        (
            "editor:read_fil=ask",
            "the policy of 'read_fil' does nothing: there is no such tool here; is it 'read_file'?",
        ),
        ("publish=deny", ""),
        ("write_file=deny", ""),
        ("weigh=deny", ""),
    ],
)
def test_a_policy_for_a_misspelt_tool_is_told(moot: Moot, place: Path, flag: str, told: str) -> None:
    (place / "inner.json").write_text(workflow(*INNER))
    (place / "printing.py").write_text(PRINTING)
    says(place, editor=["done"])
    words = ("run", "inner.json", "Print it.", "--functions", "printing.py", "--model", "scripted:script.json")
    ran = moot(*words, "--policy", flag)
    assert ran.code == 0
    assert ("does nothing" in ran.err) == bool(told)
    assert told in ran.err


def test_a_policy_of_a_machines_tool_can_be_made_stricter(place: Path) -> None:
    says(place, helper=[[call("read_file", path="x.sh")], "done"])
    given = Workspace(str(place / "ws"), policies={"read_file": "ask"})
    outcome = run(HELPED, "x", model="scripted:script.json", workspace=given, store="memory")
    assert outcome.status == "waiting"
    assert "helper wants to call read_file" in outcome.questions[0].prompt


# infrastructure


def test_without_a_sandbox_the_turn_ends_and_the_agent_is_not_asked_again(
    moot: Moot, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", "/nowhere")
    says(place, coder=[[call("execute_terminal", command="true")], [call("git_status")], "done"])
    ran = moot(*CODER, "--workspace", "ws", "--quiet", "--policy", "execute_terminal=allow")
    assert ran.code == 1
    assert "bubblewrap is not installed" in ran.err
    assert len(events(moot, "r", "replied")) == 1
    assert events(moot, "r", "error.effect")[0]["fault"] == "infrastructure"


def test_a_workspace_that_went_is_for_whoever_runs_it_and_the_run_can_be_cancelled(moot: Moot, place: Path) -> None:
    begin_command(moot, place)
    begin = (place / "ws").rename(place / "elsewhere")
    ran = moot("answer", "r", "--yes", "--quiet")
    assert ran.code == 1
    assert "is not there any more; put it back" in ran.err
    assert (begin / "x.sh").exists()
    says(place, coder=[[call("execute_terminal", command="true")], "done"])
    (place / "ws").mkdir()
    moot(*CODER[:4], "--run-id", "s", *CODER[6:], "--workspace", "ws", "--quiet")
    (place / "ws").rmdir()
    assert moot("cancel", "s", "--quiet").code == 0


# saves


def test_the_workspace_is_saved_before_the_run_and_before_each_command(moot: Moot, place: Path) -> None:
    says(place, coder=[[call("execute_terminal", command="echo bye > x.sh")], "done"])
    moot(*CODER, "--workspace", "ws", "--quiet", "--policy", "execute_terminal=allow")
    moot("saves", "r", "--take", "my own")
    saves = moot("saves", "r", "--json").json
    assert [save["name"] for save in saves] == ["Run: turn-50", "before execute_terminal", "my own"]
    assert "-echo hi\n+bye" in moot("diff", "r").out
    assert moot("diff", "r", saves[2]["id"]).out == ""
    restored = moot("restore", "r", saves[0]["id"], "--json").json
    assert restored["changed"] == ["x.sh"]
    assert (place / "ws" / "x.sh").read_text() == "echo hi\n"
    moot("restore", "r", restored["rescue"])
    assert (place / "ws" / "x.sh").read_text() == "bye\n"


def test_a_run_without_a_workspace_has_no_saves(moot: Moot, place: Path) -> None:
    says(place, coder=["done"])
    moot(*CODER, "--quiet")
    ran = moot("saves", "r")
    assert (ran.code, ran.err.count("has no workspace")) == (1, 1)


def test_a_fork_works_in_a_copy_as_it_was(moot: Moot, place: Path) -> None:
    says(place, coder=[[call("execute_terminal", command="echo bye > x.sh")], [call("read_file", path="x.sh")], "done"])
    moot(*CODER, "--workspace", "ws", "--quiet", "--policy", "execute_terminal=allow")
    assert (place / "ws" / "x.sh").read_text() == "bye\n"
    moot("fork", "r", "--at", "0", "--repeat", "--run-id", "f", "--quiet")
    assert (place / "ws-f" / "x.sh").read_text() == "bye\n", "the fork ran the command again, in its copy"


def test_a_fork_has_what_calls_before_its_entry_have_done_and_nothing_of_those_behind_it(
    moot: Moot, place: Path
) -> None:
    write, run = call("write_file", path="a.txt", content="a"), call("execute_terminal", command="echo b > b.txt")
    says(place, coder=[[write], [run], [call("read_file", path="a.txt")], "done"])
    moot(*CODER, "--workspace", "ws", "--quiet", "--policy", "execute_terminal=allow")
    returned = [
        at for at, entry in enumerate(moot("export", "r").json["entries"]) if entry["event"]["name"] == "returned"
    ]
    for name, at, files in (
        ("begun", 0, []),
        ("written", returned[0], ["a.txt"]),
        ("run", returned[1], ["a.txt", "b.txt"]),
        ("read", returned[2], ["a.txt", "b.txt"]),
    ):
        moot("fork", "r", "--at", str(at), "--run-id", name, "--quiet")
        assert [file for file in ("a.txt", "b.txt") if (place / f"ws-{name}" / file).exists()] == files, name


def test_a_fork_at_the_latest_entry_has_the_workspace_as_it_is_now(moot: Moot, place: Path) -> None:
    begin_command(moot, place, "echo bye > made")
    (place / "ws" / "x.sh").write_text("mine\n")
    moot("fork", "r", "--run-id", "g", "--quiet", "--repeat")
    assert (place / "ws-g" / "x.sh").read_text() == "mine\n"
    moot("answer", "g", "--yes", "--quiet")
    assert (place / "ws-g" / "made").exists()
    assert not (place / "ws" / "made").exists()


# tools of a project

TOOLS = '''
from moothall import tool

async def tide(harbour: str, days: int = 1) -> str:
    """When the water in a harbour is high."""
    return f"14:20 in {harbour} for {days}"

async def _hidden() -> str:
    return "no"

async def book(harbour: str) -> str:
    """Book a berth."""
    return "berth 7"

book = tool(book, repeats="at-most-once", policy="ask")
'''


def make_project(place: Path, code: str = TOOLS) -> None:
    (place / "moothall.toml").write_text("")
    (place / "tools").mkdir(exist_ok=True)
    (place / "tools" / "harbour.py").write_text(code)


def test_a_project_that_is_not_trusted_has_no_tools_and_nothing_of_it_runs(moot: Moot, place: Path) -> None:
    make_project(place, f"open({str(place / 'ran')!r}, 'w').close()\n{TOOLS}")
    says(place, coder=[[call("tide", harbour="Brest")], "done"])
    assert moot(*CODER, "--quiet").code == 0
    assert not (place / "ran").exists()
    assert events(moot, "r", "returned") == []


def test_the_tools_of_a_trusted_project_are_found_by_themselves(moot: Moot, place: Path) -> None:
    make_project(place)
    assert "tools of tools/harbour.py" in moot("trust").out
    says(
        place, coder=[[call("tide", harbour="Brest"), call("tide", harbour=7)], [call("book", harbour="Brest")], "done"]
    )
    ran = moot(*CODER, "--quiet")
    assert ran.code == 5, "book asks"
    assert [event["value"] for event in events(moot, "r", "returned")] == ["14:20 in Brest for 1"]
    assert "harbour" in events(moot, "r", "error.effect")[0]["reason"]
    assert moot("answer", "r", "--yes", "--quiet").code == 0


def test_a_project_whose_tools_have_changed_is_not_trusted_any_more(moot: Moot, place: Path) -> None:
    make_project(place)
    moot("trust")
    says(place, coder=[[call("book", harbour="Brest")], "done"])
    assert moot(*CODER, "--quiet").code == 5
    (place / "tools" / "harbour.py").write_text(TOOLS.replace("berth 7", "stolen"))
    ran = moot("answer", "r", "--yes", "--quiet")
    assert ran.code == 1
    assert "it has changed since it was trusted" in ran.err
    assert "stolen" not in thread(moot, "r-1-0")


def test_a_machine_that_names_a_projects_tool_may_repeat_it_no_more_freely_and_asks_as_the_tool_says(
    moot: Moot, place: Path
) -> None:
    make_project(place)
    (place / "harbour_machine.py").write_text(
        "from moothall import Final, GaveUp, Machine, On, Replied, State, ask\n"
        "working = State('working', enter=ask('helper', 'Go.', tools=['book']))\n"
        "M = Machine('m', data=str, states=[working, Final('end')],\n"
        "            moves=[On('working', (Replied, GaveUp), to='end')])\n"
    )
    moot("trust")
    says(place, helper=[[call("book", harbour="Brest")], "done"])
    begun = ("run", "harbour_machine.py", "x", "--run-id", "r", "--model", "scripted:script.json", "--quiet")
    assert moot(*begun).code == 5
    (use,) = events(moot, "r-0-0", "run.started")[0]["data"]["tools"]
    assert (use["name"], use["repeats"], use["policy"]) == ("book", "at-most-once", "ask")


async def _started(place: Path) -> str:
    async with Moothall("memory", listeners=()) as hall:
        begun = await hall.start(HELPED, "x", model="scripted:script.json", workspace=place / "ws")
        return (await hall.wait(begun)).status


def test_a_run_that_is_started_beside_has_the_same_tools(place: Path) -> None:
    says(place, helper=[[call("read_file", path="x.sh")], "done"])
    assert asyncio.run(_started(place)) == "done"
