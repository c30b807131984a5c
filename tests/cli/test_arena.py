"""`moot arena`: every scene from a request to its audited end, with scripted agents that act."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.arena.workspace import saves_at
from tests.cli.arena_scenes import command, edit, script, vote
from tests.cli.ran import Moot, Ran

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

DEBATE = ["Round_2_Solution", "Round_3_Critic", "Round_4_Security", "Round_5_Optimizer", "Multi_Pass_Check"]
KEYS = {
    *("trace_id", "run_id", "status", "decision", "consensus", "passes", "votes", "veto", "tasks", "healing"),
    *("rollback", "states_visited", "usage"),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a file in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept\n")
    return folder


@pytest.fixture(autouse=True)
def _watched(moot: Moot) -> Iterator[None]:
    """Over every journal here: nothing before the identity holds, and nothing once a plan is blocked."""
    yield
    for run in json.loads(moot("ls", "--json").out):
        if run["machine"] == "arena":
            entries = moot("show", run["run"], "--json").json["entries"]
            assert not list(trespasses(entries)), run["run"]


def trespasses(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a run of the arena wanted before its identity held, or did after its plan was blocked."""
    is_verified = is_blocked = False
    for entry in entries:
        is_verified |= entry["to"] != ["VerifyingIdentity"]
        is_blocked |= entry["to"] == ["StoringMemory"] and entry["from"] != ["RunningTasks"]
        for effect in entry["effects"]:
            kind, wanted = effect["kind"], effect["effect"]
            if not is_verified and (kind, wanted.get("collection", "")) not in IDENTITY:
                yield f"entry {entry['seq']} wants {kind} before the identity is verified"
            if is_blocked and kind in ("arena.task", "arena.save", "ask.agent"):
                yield f"entry {entry['seq']} wants {kind} after the plan was blocked"


IDENTITY = {("read.records", "identity"), ("arena.identity", "")}


def test_the_watcher_sees_a_planted_trespass() -> None:
    early = {"seq": 0, "from": [], "to": ["VerifyingIdentity"], "effects": [{"kind": "ask.agent", "effect": {}}]}
    late = {"seq": 9, "from": ["x"], "to": ["StoringMemory"], "effects": [{"kind": "arena.task", "effect": {}}]}
    assert [text.split()[1] for text in trespasses([early, late])] == ["0", "9"]


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with what is in it."""
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def arena(moot: Moot, *tasks: Mapping[str, Any], options: Sequence[str] = (), **said: Any) -> Ran:
    """One run in the workspace `work`."""
    model = script(Path("script.json"), *tasks, **said)
    return moot("arena", "tidy up", "--workspace", "work", "--model", model, "--run-id", "case", "--json", *options)


@pytest.mark.covers("A1", "A2", "A8", "A12", "A15", "A16", "A17", "A18", "A22", "A24", "A29")
def test_a_plan_that_convinces_is_carried_out_and_every_state_is_seen(moot: Moot, workspace: Path) -> None:
    ran = arena(
        moot,
        edit("write", "notes/a.txt", "hello\n"),
        command("read", "cat notes/a.txt", needs=["write"], expect={"stdout_contains": "hello"}),
        command("mark", "echo done > mark", expect={"file_exists": "mark", "exit_code": 0}),
    )
    told = ran.json
    assert (ran.code, told["status"], told["decision"], told["passes"]) == (0, "succeeded", "proceed", 1)
    assert told.keys() >= KEYS
    assert told["trace_id"] == told["run_id"] == "case"
    assert [set(task) for task in told["tasks"]] == [
        {"id", "command", "exit_code", "duration", "outcome", "sandbox", "failure", "stderr"}
    ] * 3
    assert [(task["id"], task["exit_code"], task["outcome"]) for task in told["tasks"]] == [
        ("write", 0, "success"),
        ("read", 0, "success"),
        ("mark", 0, "success"),
    ]
    assert told["tasks"][1]["sandbox"] == "bubblewrap"
    assert told["tasks"][1]["duration"] > 0
    assert contents(workspace) == {"kept.txt": "kept\n", "notes/a.txt": "hello\n", "mark": "done\n"}
    assert told["states_visited"] == [
        *("Idle", "VerifyingIdentity", "IdentityVerified", "LoadingContext", "Classifying"),
        *("Arena_Debate", "Planning", "Round_1_Analyst", *DEBATE),
        *("Aggregation_Engine", "Aggregating", "CalculatingConsensus", "ELODuels", "ResolvingDecision"),
        *("SandboxedExecution", "RunningTasks", "ValidationCheck", "AssertingOutcomes", "Success"),
        *("StoringMemory", "Auditing", "Audited"),
    ]
    assert moot("replay", "case").code == 0


UNREAD = "task a failed: the exit code is 1: cat: missing: No such file or directory"


@pytest.mark.parametrize(
    ("text", "said", "ending", "decision"),
    [
        (
            "cat missing",
            {"critic": [vote(), {"diagnosis": ""}]},
            f"rolled back: {UNREAD}; the critic cannot tell the cause",
            "Decision: proceed: consensus 1 is at least 0.6 after 1 of at most 3 passes and nobody vetoes\n\n"
            f"End: rolled back: {UNREAD}; the critic cannot tell the cause\n",
        ),
        (
            "cat kept.txt",
            {"security": [vote("reject", 0.95, "no")]},
            "blocked: security vetoes the plan: no",
            "Decision: blocked: security vetoes the plan: no\n\nEnd: blocked\n",
        ),
    ],
)
def test_whoever_looks_at_a_run_sees_that_its_end_is_a_bad_one_and_why(
    moot: Moot, workspace: Path, text: str, said: Any, ending: str, decision: str
) -> None:
    model = script(Path("script.json"), command("a", text), **said)
    ran = moot("arena", "tidy up", "--workspace", "work", "--model", model, "--run-id", "case")
    name = ending.partition(":")[0]
    assert ran.code == 1
    assert "Audited  records.written  failed" in ran.err
    assert f"case is failed: {ending} (in Audited, " in ran.err
    listed = moot("ls").out
    assert "case  failed " in listed
    assert f"Audited ({name}): {ending.removeprefix(f'{name}: ')[:60]}" in listed
    [summary] = moot("ls", "--status", "failed", "--json").json
    assert (summary["reason"], summary["ending"]) == (ending, name)
    shown = moot("show", "case").out
    assert shown.startswith(f"case  failed  Audited\nbecause: {ending}\n")
    watched = moot("watch", "case")
    assert watched.code == 1
    assert watched.out.endswith("Audited  records.written  failed\n")
    assert "a bad end: nothing is left to retry" in moot("retry", "case").err
    assert decision in moot("report", "case", "--format", "md").out
    assert moot("replay", "case").code == 0


def test_an_arena_that_succeeded_or_was_rehearsed_is_done(moot: Moot, workspace: Path) -> None:
    assert arena(moot, command("a", "true")).code == 0
    assert arena(moot, command("a", "true"), options=["--dry-run", "--run-id", "dry"]).code == 0
    assert {(run["status"], run["ending"], run["reason"]) for run in moot("ls", "--json").json} == {("done", "", "")}


@pytest.mark.covers("A20")
def test_a_failure_is_diagnosed_and_only_the_failed_task_runs_again(moot: Moot, workspace: Path) -> None:
    ran = arena(
        moot,
        command("once", "echo x >> log"),
        command("broken", "cat missing", needs=["once"]),
        command("last", "echo y >> log", needs=["broken"]),
        critic=[
            vote(),
            {"diagnosis": "there is no such file", "plan": {"tasks": [command("broken", "cat kept.txt")]}},
        ],
    )
    told = ran.json
    assert (ran.code, told["status"]) == (0, "succeeded")
    assert [(repair["diagnosis"], repair["outcome"]) for repair in told["healing"]] == [
        ("there is no such file", "repaired")
    ]
    assert told["tasks"][1]["command"] == "cat kept.txt"
    assert contents(workspace)["log"] == "x\ny\n"
    assert told["states_visited"].count("RunningTasks") == 2
    assert "SelfHealingActive" in told["states_visited"]


@pytest.mark.covers("A21", "A22")
def test_repairs_that_fail_lead_back_and_the_workspace_is_what_it_was(moot: Moot, workspace: Path) -> None:
    before = contents(workspace)
    (workspace / "sub").mkdir()
    ran = arena(
        moot,
        command("change", "echo more >> kept.txt; rm -f sub/x; mkdir new; echo 1 > new/file"),
        command("broken", "echo first problem >&2; exit 3", needs=["change"]),
        critic=[
            vote(),
            {"diagnosis": "try this", "plan": {"tasks": [command("broken", "echo another trouble >&2; exit 4")]}},
            {"diagnosis": "or this", "plan": {"tasks": [command("broken", "echo yet different >&2; exit 5")]}},
        ],
    )
    told = ran.json
    assert (ran.code, told["status"]) == (1, "rolled_back")
    assert told["rollback"] == {"complete": True, "left": []}
    assert [repair["outcome"] for repair in told["healing"]] == ["failed", "failed"]
    assert contents(workspace) == before
    assert (workspace / "sub").is_dir()
    assert not (workspace / "new").exists()
    assert told["states_visited"][-4:] == ["RollbackActive", "StoringMemory", "Auditing", "Audited"]
    assert "rolled back" in moot("show", "case").out or told["reason"] == "it still fails after 2 repairs"


def test_the_same_failure_twice_is_no_progress_and_ends_healing(moot: Moot, workspace: Path) -> None:
    again = {"diagnosis": "try again", "plan": {"tasks": [command("broken", "ls /missing/9")]}}
    ran = arena(moot, command("broken", "ls /missing/7"), critic=[vote(), again, again])
    told = ran.json
    assert (ran.code, told["status"], len(told["healing"])) == (1, "rolled_back", 1)
    assert told["reason"] == "the same failure came again: the repair made no progress"


@pytest.mark.covers("A21")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"diagnosis": "", "plan": None}, "the critic cannot tell the cause"),
        ({"diagnosis": "no idea"}, "the critic cannot tell the cause"),
        (
            {"diagnosis": "x", "plan": {"tasks": [command("other", "true")]}},
            "the repair adds the task other; it may hold tasks that failed, and no others",
        ),
        (
            {"diagnosis": "x", "plan": {"tasks": [command("broken", "true", expect={"stdout_contains": "x"})]}},
            "the repair touches the checks of broken",
        ),
        (
            {"diagnosis": "x", "plan": {"tasks": [command("fine", "true")]}},
            "the repair mends none of the tasks that failed: broken",
        ),
        (
            {
                "diagnosis": "x",
                "plan": {
                    "tasks": [command("broken", "true", reverse="irreversible", expect={"stdout_contains": "well"})]
                },
            },
            "the repair makes broken irreversible, which needs a person's yes",
        ),
    ],
)
def test_a_repair_that_may_not_run_leads_back(moot: Moot, workspace: Path, reply: Any, reason: str) -> None:
    before = contents(workspace)
    tasks = (command("fine", "echo 1 > fine"), command("broken", "false", expect={"stdout_contains": "well"}))
    ran = arena(moot, *tasks, critic=[vote(), reply])
    assert (ran.code, ran.json["status"], ran.json["reason"]) == (1, "rolled_back", reason)
    assert contents(workspace) == before


@pytest.mark.covers("A20")
def test_a_repaired_task_that_is_silent_about_its_checks_keeps_them(moot: Moot, workspace: Path) -> None:
    tasks = [command("ask", "echo no", expect={"stdout_contains": "yes"})]
    mended = {"diagnosis": "it says no", "plan": {"tasks": [command("ask", "echo never")]}}
    again = {"diagnosis": "it says never", "plan": {"tasks": [command("ask", "echo yes")]}}
    told = arena(moot, *tasks, critic=[vote(), mended, again]).json
    assert (told["status"], [repair["outcome"] for repair in told["healing"]]) == ("succeeded", ["failed", "repaired"])


def test_a_repaired_task_that_is_silent_about_its_way_back_is_as_irreversible_as_it_was(
    moot: Moot, workspace: Path
) -> None:
    tasks = [
        command("send", "test -e later", reverse="irreversible"),
        command("touch", "touch later"),
        command("broken", "exit 4", needs=["send"]),
    ]
    mended = {"diagnosis": "too early", "plan": {"tasks": [command("send", "true")]}}
    silent = {"diagnosis": ""}
    ran = arena(moot, *tasks, critic=[vote(), mended, silent], options=["--yes"])
    assert ran.json["status"] == "rollback_incomplete"
    assert ran.json["rollback"] == {"complete": False, "left": ["task send is irreversible"]}


@pytest.mark.covers("A30")
def test_a_repaired_plan_is_held_against_the_static_rules_again(moot: Moot, workspace: Path) -> None:
    mended = {"diagnosis": "make room", "plan": {"tasks": [command("broken", "rm -rf / --no-preserve-root")]}}
    ran = arena(moot, command("broken", "false"), critic=[vote(), mended])
    assert (ran.code, ran.json["status"]) == (1, "rolled_back")
    assert ran.json["reason"].startswith("destructive-shell in task broken")
    assert ran.json["tasks"][0]["command"] == "false"


@pytest.mark.covers("A23", "A30")
@pytest.mark.parametrize(
    ("task", "rule"),
    [
        (command("bad", "rm -rf /"), "destructive-shell"),
        (command("bad", "docker run --privileged alpine"), "privileged-container"),
        (edit("bad", "db.py", 'cursor.execute("SELECT * FROM t WHERE id = " + user)\n'), "string-built-sql"),
    ],
)
def test_a_static_rule_vetoes_by_itself_whatever_the_panel_says(
    moot: Moot, workspace: Path, task: Any, rule: str
) -> None:
    ran = arena(moot, command("good", "touch made"), task, options=("--yes",))
    told = ran.json
    assert (ran.code, told["status"], told["decision"]) == (1, "blocked", "blocked")
    assert told["veto"] == {"by": "static_rules", "rule": rule}
    assert {task["outcome"] for task in told["tasks"]} == {"not_run"}
    assert contents(workspace) == {"kept.txt": "kept\n"}
    assert told["states_visited"][-4:] == ["Blocked", "StoringMemory", "Auditing", "Audited"]


@pytest.mark.covers("A27", "A23")
@pytest.mark.parametrize(("confidence", "status"), [(0.9, "blocked"), (0.95, "blocked"), (0.89999, "succeeded")])
def test_a_rejection_of_security_is_a_veto_from_nine_tenths_on_and_yes_does_not_override_it(
    moot: Moot, workspace: Path, confidence: float, status: str
) -> None:
    unsafe = [vote("reject", confidence, "it leaks")] * 3
    ran = arena(moot, command("a", "touch made"), security=unsafe, options=("--yes",))
    assert ran.json["status"] == status
    assert ran.json["veto"] == ({"by": "security", "rule": None} if status == "blocked" else None)
    assert (workspace / "made").exists() == (status == "succeeded")


@pytest.mark.covers("A27")
def test_security_that_is_sure_that_a_plan_is_safe_does_not_veto(moot: Moot, workspace: Path) -> None:
    ran = arena(moot, command("a", "touch made"), security=[vote("approve", 0.95)])
    assert (ran.code, ran.json["status"], ran.json["veto"]) == (0, "succeeded", None)


@pytest.mark.covers("A9", "A10", "A11")
def test_a_debate_that_does_not_convince_runs_rounds_two_to_five_again(moot: Moot, workspace: Path) -> None:
    better = {"tasks": [command("a", "touch better")]}
    ran = arena(
        moot,
        command("a", "touch first"),
        solution=[vote(), vote("approve", 0.9, "mended", plan=better)],
        critic=[vote("reject", 0.9, "the name is wrong"), vote("approve", 0.9)],
        security=[vote("abstain", 0.5), vote()],
    )
    told = ran.json
    assert (told["status"], told["passes"]) == ("succeeded", 2)
    assert told["states_visited"].count("Round_1_Analyst") == 1
    assert all(told["states_visited"].count(state) == 2 for state in DEBATE)
    assert contents(workspace) == {"kept.txt": "kept\n", "better": ""}
    assert len(told["votes"]) == 5
    assert told["consensus"] == 1.0


@pytest.mark.covers("A28", "A23")
def test_three_passes_that_do_not_convince_block(moot: Moot, workspace: Path) -> None:
    against = [vote("reject", 0.9, "no")] * 3
    ran = arena(moot, command("a", "touch made"), critic=against, analyst=against, optimizer=against)
    told = ran.json
    assert (ran.code, told["status"], told["passes"]) == (1, "blocked", 3)
    assert told["consensus"] < 0.6
    assert told["veto"] is None
    assert not (workspace / "made").exists()


def torn(moot: Moot, *options: str) -> Ran:
    """A run whose consensus is 0.7 after three passes, in the cautious bands."""
    return arena(
        moot,
        command("a", "touch made"),
        analyst=[vote("approve", 1.0)] * 3,
        solution=[vote("abstain", 0.0)] * 3,
        critic=[vote("reject", 0.6, "hm")] * 3,
        security=[vote("approve", 0.55)] * 3,
        optimizer=[vote("abstain", 0.0)] * 3,
        options=("--bands", "cautious", *options),
    )


def test_in_the_cautious_bands_a_person_decides(moot: Moot, workspace: Path) -> None:
    ran = torn(moot)
    assert (ran.code, ran.json["status"], ran.json["decision"]) == (5, "waiting", "ask")
    assert 0.6 <= ran.json["consensus"] < 0.75
    assert not (workspace / "made").exists()
    answered = moot("answer", "case", "--yes", "--json")
    assert (answered.code, answered.json["status"], answered.json["decision"]) == (0, "succeeded", "proceed")
    assert (workspace / "made").exists()


def test_a_person_who_says_no_blocks_the_plan(moot: Moot, workspace: Path) -> None:
    torn(moot)
    answered = moot("answer", "case", "--no", "--json")
    assert (answered.code, answered.json["status"]) == (1, "blocked")
    assert not (workspace / "made").exists()


def test_yes_at_the_door_is_a_persons_answer(moot: Moot, workspace: Path) -> None:
    ran = torn(moot, "--yes")
    assert (ran.code, ran.json["status"]) == (0, "succeeded")
    entries = moot("show", "case", "--json").json["entries"]
    assert "answered" in [entry["event"]["name"] for entry in entries]


def test_nobody_who_answers_in_time_means_no(moot: Moot, workspace: Path) -> None:
    Path("arena.json").write_text(json.dumps({"deadline": 0}))
    ran = torn(moot, "-c", "arena.json")
    if ran.json["status"] == "waiting":
        ran = moot("resume", "case", "--json")
    assert (ran.code, ran.json["status"]) == (1, "blocked")
    assert ran.json["reason"].startswith("nobody answered in time")


def test_an_irreversible_task_does_not_run_without_a_person(moot: Moot, workspace: Path) -> None:
    ran = arena(moot, command("send", "touch sent", reverse="irreversible"))
    assert (ran.code, ran.json["status"]) == (5, "waiting")
    assert not (workspace / "sent").exists()
    refused = moot("answer", "case", "--no", "--json")
    assert (refused.code, refused.json["status"]) == (1, "blocked")
    assert not (workspace / "sent").exists()


@pytest.mark.covers("A19")
def test_an_exit_code_other_than_0_fails_a_task_even_where_its_outcome_holds(moot: Moot, workspace: Path) -> None:
    task = command("a", "echo hello; touch made; exit 3", expect={"stdout_contains": "hello", "file_exists": "made"})
    ran = arena(moot, task, critic=[vote(), {"diagnosis": ""}])
    assert (ran.json["status"], ran.json["tasks"][0]["exit_code"]) == ("rolled_back", 3)
    assert ran.json["tasks"][0]["outcome"] == "failed"


def test_what_is_declared_and_does_not_hold_fails_a_task(moot: Moot, workspace: Path) -> None:
    task = command("a", "true", expect={"file_exists": "made"})
    ran = arena(moot, task, critic=[vote(), {"diagnosis": ""}])
    assert (ran.json["status"], ran.json["tasks"][0]["exit_code"]) == ("rolled_back", 0)


def test_reverse_tasks_run_last_first_and_what_is_left_is_told(moot: Moot, workspace: Path) -> None:
    outside = workspace.parent / "work" / "trail"
    ran = arena(
        moot,
        command("one", "true", reverse={"kind": "command", "command": "echo one >> trail"}),
        command("two", "true", needs=["one"], reverse={"kind": "command", "command": "echo two >> trail; exit 9"}),
        command("broken", "false", needs=["two"]),
        critic=[vote(), {"diagnosis": ""}],
    )
    told = ran.json
    assert told["status"] == "rollback_incomplete"
    assert told["rollback"] == {"complete": False, "left": ["task two was not undone: the exit code is 9"]}
    names = [entry["event"].get("task") for entry in moot("show", "case", "--json").json["entries"]]
    assert [name for name in names if name] == ["one", "two", "broken", "undo:two", "undo:one"]
    assert not outside.exists()
    plain = moot("resume", "case")
    assert "rollback incomplete: task two was not undone: the exit code is 9" in plain.out


def test_what_git_ignores_is_in_no_save_and_is_told_as_left_where_it_was_touched(moot: Moot, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*.log\n")
    for name in ("gone.log", "changed.log", "kept.log"):
        (workspace / name).write_text("before\n")
    ran = arena(
        moot,
        command("a", "rm gone.log; echo more >> changed.log; echo new > new.log; echo x > kept.txt"),
        command("b", "false", needs=["a"]),
        critic=[vote(), {"diagnosis": ""}],
    )
    left = [f"{name} is not as it was" for name in ("changed.log", "gone.log", "new.log")]
    assert ran.json["rollback"] == {"complete": False, "left": left}
    assert (workspace / "kept.txt").read_text() == "kept\n"
    told = moot("resume", "case").out
    assert f"rollback incomplete: {'; '.join(left)}" in told


def test_a_dry_run_stops_before_anything_is_executed(moot: Moot, workspace: Path) -> None:
    ran = arena(moot, command("a", "touch made", reverse="irreversible"), options=("--dry-run",))
    assert (ran.code, ran.json["status"], ran.json["decision"]) == (0, "dry_run", "ask")
    assert not (workspace / "made").exists()
    assert "SandboxedExecution" not in ran.json["states_visited"]
    assert ran.json["states_visited"][-2:] == ["Auditing", "Audited"]


@pytest.mark.covers("A3", "A4", "A26", "A32")
def test_a_lock_that_does_not_hold_aborts_the_run_and_nothing_is_touched(moot: Moot, workspace: Path) -> None:
    Path("arena.json").write_text(json.dumps({"identity": {"cloud_project": "acme-production"}}))
    ran = arena(moot, command("a", "touch made"), options=("-c", "arena.json"))
    told = ran.json
    assert (ran.code, told["status"], told["trace_id"]) == (1, "aborted", "case")
    assert told["states_visited"] == ["Idle", "VerifyingIdentity", "Aborted"]
    assert "the cloud project is not set" in told["reason"]
    assert not (workspace / "made").exists()
    plain = moot("resume", "case")
    assert (plain.code, "trace_id case" in plain.out) == (1, True)


def test_tools_and_models_are_tasks_too(moot: Moot, workspace: Path) -> None:
    ran = arena(
        moot,
        {
            "id": "look",
            "kind": "tool",
            "tool": "read_file",
            "arguments": {"path": "kept.txt"},
            "expect": {"stdout_contains": "kept"},
        },
        {"id": "ask", "kind": "model", "prompt": "Say hello {name}", "expect": {"stdout_contains": "hello"}},
        model=["hello"],
    )
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.json


def test_a_plan_of_a_file_is_held_against_the_rules(moot: Moot) -> None:
    Path("bad.json").write_text(json.dumps({"tasks": [command("a", "rm -rf ~")]}))
    Path("good.json").write_text(json.dumps({"tasks": [command("a", "ls")]}))
    bad = moot("arena", "--check-plan", "bad.json")
    assert (bad.code, "destructive-shell" in bad.out) == (1, True)
    assert moot("arena", "--check-plan", "bad.json", "--json").json["violations"][0]["rule"] == "destructive-shell"
    good = moot("arena", "--check-plan", "good.json", "--json")
    assert (good.code, good.json) == (0, {"veto": False, "violations": []})


def test_every_number_is_explained_with_trace(moot: Moot, workspace: Path) -> None:
    ran = arena(moot, command("a", "true"), options=("--trace",))
    trace = "\n".join(ran.json["trace"])
    assert "critic (critic) approves with weight 1.35 = confidence 0.9 × role 1.5" in trace
    assert "consensus 1 is at least 0.6 after 1 of at most 3 passes" in trace


def test_a_store_that_is_locked_to_another_place_aborts(moot: Moot, workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    locked = moot("identity", "init", "--workspace", "other", "--json")
    assert (locked.code, locked.json["locks"]["workspace"]) == (0, str(other))
    assert moot("identity", "check", "--workspace", "other").code == 0
    assert moot("identity", "check", "--workspace", "work").code == 1
    assert f"workspace: {other}" in moot("identity", "show").out
    ran = arena(moot, command("a", "touch made"))
    assert (ran.code, ran.json["status"]) == (1, "aborted")
    again = moot("identity", "init", "--workspace", "work")
    assert (again.code, "locked already" in again.err) == (1, True)
    assert moot("identity", "init", "--workspace", "work", "--force").code == 0
    model = script(Path("script.json"), command("a", "touch made"))
    ran = moot("arena", "tidy up", "--workspace", "work", "--model", model, "--json")
    assert (ran.code, ran.json["status"]) == (0, "succeeded")


def test_ratings_and_traces_are_shown_to_people_and_programs(moot: Moot, workspace: Path) -> None:
    assert "no ratings yet" in moot("ratings").out
    model = script(Path("script.json"), command("a", "false"), critic=[vote("reject", 0.2), {"diagnosis": ""}])
    moot("arena", "tidy the cellar", "--workspace", "work", "--model", model, "--run-id", "lost")
    assert "critic" in moot("ratings").out
    history = moot("ratings", "--history")
    assert "lost  chore  critic beats solution  critic 1200.0 → 1216.0, solution 1200.0 → 1184.0" in history.out
    plain = moot("ratings", "--history", "--json").json
    assert {"agent", "model", "kind", "definition", "elo", "games", "wins", "fit"} == set(plain["ratings"][0])
    page = moot("report", "lost", "--format", "html", "--output", "page.html")
    assert (page.code, "ratings" in Path("page.html").read_text()) == (0, True), page.err
    assert "critic scripted:" in Path("page.html").read_text()
    found = moot("recall", "cellar", "--json").json
    assert [(near["trace"]["id"], near["trace"]["outcome"]) for near in found] == [("lost", "rolled_back")]
    assert moot("recall", "cellar").out.startswith("lost  0.58  rolled back  tidy the cellar")
    assert moot("recall", "zebra").out == "nothing like it is remembered\n"


@pytest.mark.covers("A27")
def test_a_person_refutes_a_veto_afterwards_and_the_plan_stays_blocked(moot: Moot, workspace: Path) -> None:
    model = script(Path("script.json"), command("a", "touch made"), security=[vote("reject", 1.0)])
    moot("arena", "do it", "--workspace", "work", "--model", model, "--run-id", "vetoed")
    assert "no ratings yet" in moot("ratings").out
    ran = moot("ratings", "--refute", "vetoed", "--by", "Ada", "--history")
    assert "vetoed  chore  security loses to solution  security 1200.0 → 1184.0" in ran.out
    assert "Ada refuted the block of vetoed; ratings moved, and the plan stays blocked" in ran.err
    assert not (workspace / "made").exists()
    again = moot("ratings", "--confirm", "vetoed")
    assert (again.code, "judged the plan of vetoed already" in again.err) == (1, True)


def test_a_configuration_can_be_begun_checked_and_used(moot: Moot, workspace: Path) -> None:
    assert moot("schema", "arena").json["title"] == "A configuration of the arena"
    begun = moot("new", "arena", "careful")
    assert (begun.code, "moot arena -c careful.json" in begun.out) == (0, True)
    assert moot("check", "careful.json").code == 0
    ran = arena(moot, command("a", "true"), options=("-c", "careful.json"))
    assert ran.json["status"] == "succeeded"
    Path("wrong.json").write_text(json.dumps({"bands": "careless", "weights": {"critc": 1}}))
    checked = moot("check", "wrong.json", "--json")
    assert checked.code == 4
    assert [(finding["code"], finding["pointer"]) for finding in checked.json["findings"]] == [
        ("E_ENUM", "/bands"),
        ("W_UNKNOWN_KEY", "/weights/critc"),
    ]
    refused = arena(moot, command("a", "true"), options=("-c", "wrong.json"))
    assert (refused.code, "/bands" in refused.err) == (4, True)


def test_the_machine_can_be_drawn_and_checked(moot: Moot) -> None:
    drawn = moot("graph", "arena", "--format", "tree").out
    assert all(state in drawn for state in ("Arena_Debate", "Round_4_Security", "ValidationCheck", "RollbackActive"))
    checked = moot("check", "arena")
    assert (checked.code, "bounded: at most" in checked.out) == (0, True)


def test_without_a_request_there_is_nothing_to_do(moot: Moot) -> None:
    assert moot("arena").code == 2
    assert moot("arena", "x", "--workspace", "nowhere").code == 4


def test_rehearsal_plays_the_whole_arena(moot: Moot, workspace: Path) -> None:
    ran = moot(
        "arena", "tidy up", "--workspace", "work", "--model", "rehearsal", "--dry-run", "--json", "--run-id", "r"
    )
    assert ran.json["status"] in ("dry_run", "blocked"), ran.err
    assert ran.json["states_visited"][-1] == "Audited"


def test_the_saves_of_an_arena_are_listed_compared_and_gone_back_to(moot: Moot, workspace: Path) -> None:
    arena(moot, edit("write", "a.txt", "hello\n"))
    [save] = moot("saves", "case", "--json").json
    assert save["name"] == "before case"
    difference = moot("diff", "case", "--json").json
    assert (difference["added"], difference["removed"], difference["changed"]) == (["a.txt"], [], [])
    assert moot("saves", "case", "--take", "mine").code == 0
    assert [save["name"] for save in moot("saves", "case", "--json").json] == ["before case", "mine"]
    assert moot("restore", "case", save["id"]).code == 0
    assert contents(workspace) == {"kept.txt": "kept\n"}


def test_whoever_forgets_an_arena_forgets_its_saves(moot: Moot, workspace: Path) -> None:
    arena(moot, edit("write", "a.txt", "hello\n"))
    assert moot("forget", "case", "--yes", "--json").json["saves"] == 1
    assert asyncio.run(saves_at(workspace).every()) == ()


def test_ratings_without_a_duel_have_a_history_that_says_so(moot: Moot, workspace: Path) -> None:
    assert "no ratings yet" in moot("ratings", "--history").out
    arena(moot, command("a", "true"))
    assert moot("ratings").out
    told = (
        "no duels yet: neither critic nor security disagreed with solution; `moot ratings` lists how votes turned out\n"
    )
    assert moot("ratings", "--history").out == told
