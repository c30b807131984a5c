"""Whatever waits for a person in a conversation is announced when it begins to wait, and told until it is decided."""

import json
from pathlib import Path

import pytest

from tests.cli.ran import Moot
from tests.cli.terminal import terminal
from tests.models.loopback import Asked, Loopback, Said, loopback_aside
from tests.models.obedient import PLAN, words_of
from tests.team_scripts import typed

REPLY = "— the reply of Creative Partner waits for your approval (!approve or !rework)"
TRANSITION = "— the transition of Creative Partner waits for your approval (!approve or !rework)"
WAITING_REPLY = "waiting for you: the reply of Creative Partner (next: Game Designer): !approve, or !rework WHY"
WAITING_TRANSITION = (
    "waiting for you: the transition of Creative Partner (next: Game Designer): !approve, or !rework WHY"
)


def play(asked: Asked) -> Said:
    """The creative partner hands to the game designer; others talk; whoever is asked for a plan drafts one."""
    words = words_of(asked)
    if "Write one workflow" in words:
        return Said(json.dumps(PLAN))
    if "You are the Creative Partner" in words:
        hands = {"transition": "HANDOFF_TO_AGENT", "next_agent": "game_designer"}
        return Said(json.dumps({"content": "A game about tides.", **hands}))
    return Said(json.dumps({"content": "It is good."}))


def manual(served: Loopback) -> tuple[str, ...]:
    return ("team", "--autonomy", "manual", "--model", f"openai:tides@{served.address}", "--run-id", "talk")


def parts(told: str) -> list[list[str]]:
    """What was told, by the lines that were typed."""
    return [part.splitlines() for part in told.split("> ")[1:]]


@pytest.mark.covers("T55", "T62")
def test_the_approval_of_a_transition_is_announced_after_that_of_the_reply(moot: Moot, tmp_path: Path) -> None:
    script = typed(tmp_path, "Go", "!state", "!approve", "!state", "!history", "!approve")
    with loopback_aside(play) as served:
        ran = moot(*manual(served), "--script", script)
    went, first_state, approved, second_state, history, done = parts(ran.out)
    assert went[-1] == REPLY
    assert first_state[-1] == WAITING_REPLY
    assert approved[-1] == TRANSITION
    assert second_state[-1] == WAITING_TRANSITION
    assert history[-1] == WAITING_TRANSITION
    assert "nothing waits" not in ran.out
    assert "Game Designer: It is good." in done


def test_a_transition_that_waits_is_told_to_programs_and_by_show_and_the_report(moot: Moot, tmp_path: Path) -> None:
    with loopback_aside(play) as served:
        ran = moot(*manual(served), "--script", typed(tmp_path, "Go", "!approve"), "--json")
    assert ran.json["waiting"] == [WAITING_TRANSITION]
    assert ran.json["reason"] == "the transition of Creative Partner waits for your approval"
    [question] = ran.json["questions"]
    assert question["prompt"].startswith(
        "the transition of Creative Partner waits for your approval\n  A game about tides.\n"
    )
    assert "\nhash of this: " in question["prompt"]
    assert question["prompt"].endswith("\nnext: Game Designer\nShall it go on?")
    assert question["prompt"].splitlines()[0] in moot("show", "talk").out
    assert moot("show", "talk", "--json").json["summary"]["questions"][0]["prompt"] == question["prompt"]
    assert WAITING_TRANSITION in moot("report", "talk", "--format", "md").out


def test_what_waits_is_told_to_whoever_comes_back(moot: Moot, tmp_path: Path) -> None:
    with loopback_aside(play) as served:
        moot(*manual(served), "--script", typed(tmp_path, "Go", "!approve"))
        back = moot("team", "--resume", "talk", "--script", typed(tmp_path, "!help"))
    assert WAITING_TRANSITION in back.err


def test_what_waited_before_somebody_was_called_waits_and_is_announced_again(moot: Moot, tmp_path: Path) -> None:
    script = typed(tmp_path, "Go", "!approve", "!call_agent CEO", "!state", "!approve")
    with loopback_aside(play) as served:
        ran = moot(*manual(served), "--script", script)
    _, _, called, state, done = parts(ran.out)
    assert called[-2:] == ["CEO: It is good.", TRANSITION]
    assert state[-1] == WAITING_TRANSITION
    assert "Game Designer: It is good." in done


def test_a_plan_that_is_approved_approves_nothing_else(moot: Moot, tmp_path: Path) -> None:
    script = typed(tmp_path, "Go", "!plan Tide tables", "!state", "!approve", "!state")
    with loopback_aside(play) as served:
        ran = moot(*manual(served), "--script", script)
    _, drafted, both, begun, left = parts(ran.out)
    assert drafted[-1].endswith("was drafted; it begins when you approve it (!approve or !rework)")
    assert [line.startswith("waiting for you: ") for line in both[-2:]] == [True, True]
    assert both[-2].endswith(".json: !approve starts it")
    assert REPLY in begun, "the reply still waits"
    assert left[-1] == WAITING_REPLY


def test_show_tells_what_a_workflow_asks_that_a_conversation_started(moot: Moot, tmp_path: Path) -> None:
    script = typed(tmp_path, "!workflow approved_release notes")
    moot("team", "--model", "rehearsal", "--run-id", "talk", "--script", script)
    told = moot("show", "talk").out
    assert "which this run has started, asks:" in told
    assert "Publish these notes?" in told
    assert "moot answer talk-" in told


def test_at_a_terminal_every_approval_is_announced(tmp_path: Path) -> None:
    with loopback_aside(play) as served, terminal(*manual(served), home=tmp_path, keyboard=True) as screen:
        screen.read_until("> ")
        screen.type("Go\n")
        screen.read_until(REPLY)
        screen.type("!approve\n")
        screen.read_until(TRANSITION)
        screen.type("!state\n")
        screen.read_until("waiting for you: the transition of Creative Partner")
        screen.type("!approve\n")
        screen.read_until("It is good.")
        screen.type("!exit\n")
        screen.read_all()
    assert screen.process.returncode == 0
