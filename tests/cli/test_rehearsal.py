"""`--model rehearsal` is the obvious first try: every machine comes to a sensible end with it."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot
from tests.team_scripts import typed

WORKFLOWS = {
    "approved_release": 5,
    "coder_reviewer": 0,
    "hierarchical_development": 0,
    "parallel_analysis_shared": 0,
    "product_manager_coder": 0,
}
"""Every shipped workflow, and its exit code: 5 where a person is asked."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder, in which the store is not."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


OPTIONS = [(), ("--bands", "cautious"), ("--trace",), ("--yes",), ("--dry-run",)]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
def test_an_arena_in_rehearsal_succeeds_and_leaves_the_folder_as_it_was(
    moot: Moot, workspace: Path, options: tuple[str, ...], number: int
) -> None:
    names = ("--workspace", str(workspace), "--run-id", f"try-{number}")
    ran = moot("arena", "Write a hello", "--model", "rehearsal", *names, *options)
    assert "wrong shape" not in ran.err
    assert ran.code == 0, ran.out + ran.err
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("number", range(8))
def test_a_pipeline_in_rehearsal_succeeds_after_one_fault_at_most(moot: Moot, number: int) -> None:
    ran = moot("pipeline", "A haiku", "--model", "rehearsal", "--run-id", f"try-{number}")
    assert "wrong shape" not in ran.err
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--rounds", "1"), 0),
        (("--protocol", "vote"), 0),
        (("--protocol", "gated"), 0),
        (("--options", "yes,no"), None),
        (("--clarify",), 5),
    ],
    ids=str,
)
def test_a_debate_in_rehearsal_ends_or_waits_for_answers(
    moot: Moot, options: tuple[str, ...], code: int | None
) -> None:
    ran = moot("debate", "Which database?", "--model", "rehearsal", *options)
    assert "wrong shape" not in ran.err
    assert ran.code == code if code is not None else ran.code in (0, 1), ran.out + ran.err


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("workflow", "code"), WORKFLOWS.items())
def test_a_shipped_workflow_in_rehearsal_ends_or_asks_a_person(
    moot: Moot, workflow: str, code: int, number: int
) -> None:
    ran = moot("run", workflow, "Tide tables", "--model", "rehearsal", "--run-id", f"try-{number}")
    assert ran.code == code, ran.out + ran.err


@pytest.mark.parametrize("team", ["studio", "studio_small", "software"])
@pytest.mark.parametrize("number", range(4))
def test_a_team_in_rehearsal_hands_off_and_comes_back_to_the_user(
    moot: Moot, tmp_path: Path, team: str, number: int
) -> None:
    script = typed(tmp_path, "A game about tides", "Go on")
    ran = moot("team", "-c", team, "--script", script, "--model", "rehearsal", "--json", "--run-id", f"try-{number}")
    assert ran.code == 5
    result = ran.json
    first = result["transitions"][: result["states_visited"].index("RespondToUser") + 1]
    assert len(first) >= 3, "somebody hands on before the user has the word again"
    assert result["current_state"] == "RespondToUser"
    assert result["reason"].endswith(" waits for you"), "neither a limit nor a loop has stopped it"
    entries = moot("show", f"try-{number}", "--json").json["entries"]
    replies = [entry["event"]["value"] for entry in entries if entry["event"]["name"] == "replied"]
    assert "APPROVE_AND_HANDOFF" in [reply.get("transition") for reply in replies], "handed work is approved"


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (("--autonomy", "auto"), "RespondToUser"),
        (("--autonomy", "review"), "RespondToUser"),
        (("--autonomy", "manual"), "AwaitApproval"),
        (("--sample",), "RespondToUser"),
    ],
    ids=str,
)
def test_a_team_in_rehearsal_waits_for_the_user_whoever_approves(
    moot: Moot, tmp_path: Path, options: tuple[str, ...], state: str
) -> None:
    ran = moot("team", "--script", typed(tmp_path, "Tides"), "--model", "rehearsal", "--json", *options)
    assert (ran.code, ran.json["current_state"]) == (5, state)


@pytest.mark.parametrize(
    ("machine", "given", "code"),
    [
        ("debate", "Which database?", 0),
        ("pipeline", "A haiku", 0),
        ("team", "Tides", 5),
    ],
)
def test_a_machine_that_is_run_by_its_name_ends_or_waits_in_rehearsal(
    moot: Moot, machine: str, given: str, code: int
) -> None:
    ran = moot("run", machine, given, "--model", "rehearsal")
    assert "wrong shape" not in ran.err
    assert ran.code == code, ran.out + ran.err


def test_a_team_in_rehearsal_goes_through_all_phases_of_a_line(moot: Moot, tmp_path: Path, workspace: Path) -> None:
    script = typed(tmp_path, "!start A tide game", "!approve", "!approve", "!approve", "!exit")
    ran = moot("team", "--script", script, "--model", "rehearsal", "--workspace", str(workspace))
    assert ran.code == 0
    assert "start is done" in ran.out
    assert [path.name for path in workspace.iterdir()] == ["rehearsal.md"]


@pytest.mark.parametrize("pattern", ["handoff", "approval", "talk", "panel", "delegation", "broadcast"])
def test_what_personas_do_together_ends_in_rehearsal(moot: Moot, tmp_path: Path, pattern: str) -> None:
    script = typed(tmp_path, f"!workflow {pattern} tide tables", "!state", "!exit")
    ran = moot("team", "--script", script, "--model", "rehearsal")
    assert ran.code == 0
    assert "as beside-1: done" in ran.out
