"""What personas do together beside a conversation: patterns, workflows, a debate; what starts when approved."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.analysis.certify import Certificate
from moothall.analysis.verify import verify
from moothall.app.kinds.check import certificate
from moothall.app.kinds.source import find
from moothall.app.kinds.team.session import Chosen, Session
from moothall.machines.team.patterns import PATTERNS
from tests.app.test_team import Players, talk, texts
from tests.team_scripts import Script, approves, hands, rejects, says

pytestmark = pytest.mark.anyio
NAMES = [pattern.machine for pattern in PATTERNS.values()]


@pytest.mark.covers("T57", "T37")
def test_every_pattern_is_a_machine_of_its_own_without_a_fault_and_with_a_bound() -> None:
    shapes = set()
    for name in NAMES:
        machine = find(name)
        assert [finding for finding in verify(machine) if finding.level == "error"] == []
        assert isinstance(certificate(machine), Certificate), name
        shapes.add(tuple(place.name for place in machine.chart.places[1:]))
    assert len(shapes) == len(NAMES) == 6


async def outcome_of(script: Script, line: str) -> tuple[dict[str, Any], Players]:
    """What a pattern came to that was started beside a conversation."""
    async with talk({"creative_partner": [says("Hello.")], **script}, line) as (session, players):
        [known] = (await session.look()).beside.values()
        assert known.ended == "done", await texts(session)
        return json.loads((await texts(session))[-1]), players


@pytest.mark.covers("T57")
async def test_a_handoff_is_taken_or_declined() -> None:
    taken, _ = await outcome_of({"ceo": [says("Do it.")], "cfo": [says("I take it.")]}, "!workflow handoff ceo, cfo: x")
    assert taken["outcome"] == "I take it."
    script: Script = {"ceo": [says("Do it.")], "cfo": [rejects("No.", "no money")]}
    declined, _ = await outcome_of(script, "!workflow handoff ceo, cfo: x")
    assert declined["outcome"] == "No."


@pytest.mark.covers("T49", "T57")
async def test_an_approval_chain_sends_work_back_and_ends_with_everybody_before_approved() -> None:
    script: Script = {
        "creative_partner": [says("Draft."), says("Better draft.")],
        "game_designer": [rejects("No.", "thin"), says("Good.")],
        "ceo": [says("Ship it.")],
    }
    ended, players = await outcome_of(script, "!workflow approval creative_partner, game_designer, ceo: a concept")
    assert [pair[:2] for pair in ended["approvals"]] == [
        ["game_designer", "creative_partner"],
        ["ceo", "game_designer"],
    ]
    assert ended["reworks"] == 1
    assert "REWORK: game_designer sends your work back: thin" in players.prompt(2)


@pytest.mark.covers("T34", "T35", "T57")
async def test_a_talk_has_three_turns_each() -> None:
    script: Script = {name: [says(f"{name} {number}") for number in range(3)] for name in ("ceo", "cfo")}
    _, players = await outcome_of(script, "!workflow talk ceo, cfo: the budget")
    assert players.speakers == ["ceo", "cfo"] * 3
    assert "cfo: cfo 1" in players.prompt(4)


@pytest.mark.covers("T37", "T57")
async def test_a_panel_answers_at_once_and_is_joined_when_all_have_answered() -> None:
    script: Script = {"ceo": [says("A."), says("A and B and C.")], "cfo": [says("B.")], "cmo": [says("C.")]}
    joined, players = await outcome_of(script, "!workflow panel ceo, cfo, cmo: what next?")
    assert joined["outcome"] == "A and B and C."
    assert players.speakers[-1] == "ceo"
    assert all(text in players.prompt(-1) for text in ("A.", "cfo: B.", "cmo: C.")) or "cfo: B." in players.prompt(-1)


@pytest.mark.covers("T57")
async def test_a_task_is_delegated_to_a_sub_team_that_is_a_run_of_its_own() -> None:
    script: Script = {
        "ceo": [says("- cost\n- reach"), says("Together: go.")],
        "cfo": [says("Cheap."), says("Cheap and wide.")],
        "cmo": [says("Wide.")],
    }
    ended, players = await outcome_of(script, "!workflow delegation ceo, cfo, cmo: the launch")
    assert ended["outcome"] == "Together: go."
    assert "sub_team: Cheap and wide." in players.prompt(-1)


@pytest.mark.covers("T57")
async def test_a_broadcast_reaches_everybody() -> None:
    script: Script = {name: [says(f"{name} heard")] for name in ("ceo", "cfo", "cmo")}
    told, _ = await outcome_of(script, "!workflow broadcast ceo, cfo, cmo: we ship in May")
    assert told["said"] == {"ceo": "ceo heard", "cfo": "cfo heard", "cmo": "cmo heard"}


@pytest.mark.covers("T57", "T37")
async def test_five_patterns_go_on_at_once_in_one_run() -> None:
    gate, everybody = asyncio.Event(), asyncio.Event()
    waiting: list[str] = []

    async def reply(prompt: str) -> Any:
        waiting.append(prompt)
        if len(waiting) == 9:
            everybody.set()
        await gate.wait()
        return {"content": "Yes."}

    functions = dict.fromkeys(("ceo", "cfo", "cmo", "creative_partner", "game_designer"), reply)
    lines = (
        "!workflow handoff ceo, cfo: a",
        "!workflow approval ceo, cfo: b",
        "!workflow talk cfo, cmo: c",
        "!workflow panel ceo, cfo, cmo: d",
        "!workflow broadcast ceo, cmo: e",
    )
    async with Moothall("memory", listeners=()) as hall:
        session = await Session.begin(hall, Chosen(), functions)
        tasks = [asyncio.create_task(session.type("Go"))]
        for line in lines:
            tasks.append(asyncio.create_task(session.type(line)))
            await asyncio.sleep(0)
        await everybody.wait()
        data = await session.look()
        assert data.place == "creative_partner"
        assert sorted(known.machine for known in data.beside.values() if not known.ended) == [
            "team-approval",
            "team-broadcast",
            "team-handoff",
            "team-panel",
            "team-talk",
        ]
        gate.set()
        await asyncio.gather(*tasks)
        assert {known.ended for known in (await session.look()).beside.values()} == {"done"}


async def test_a_debate_and_a_workflow_file_are_started_by_name() -> None:
    async with talk({}, "!workflow debate Which engine?", model="rehearsal") as (session, _):
        [known] = (await session.look()).beside.values()
        assert (known.machine, known.ended) == ("debate", "done")
        listing = await session.command("!workflow")
        assert "panel: several answer at once" in listing
        assert "coder_reviewer" in listing
        assert "no machine is called 'nothing'" in await session.command("!workflow nothing here")


async def test_a_workflow_that_a_persona_proposes_runs_only_after_approval() -> None:
    wanted = {"name": "team-broadcast", "input": {"task": "ship", "personas": ["cfo", "cmo"]}}
    script: Script = {
        "creative_partner": [says("Everybody should hear of it.", workflow=wanted)],
        "cfo": [says("Heard.")],
        "cmo": [says("Heard.")],
    }
    async with talk(script, "Go") as (session, players):
        data = await session.look()
        assert data.place == "AwaitApproval"
        assert data.reason == "Creative Partner proposes team-broadcast; it begins when you approve it"
        assert players.speakers == ["creative_partner"]
        assert data.beside == {}
        await session.type("!approve")
        assert sorted(players.speakers) == ["cfo", "cmo", "creative_partner"]


async def test_what_a_persona_proposes_is_gone_when_the_user_sends_it_back() -> None:
    wanted = {"name": "team-broadcast", "input": {"task": "ship", "personas": ["cfo"]}}
    script: Script = {"creative_partner": [says("Tell them.", workflow=wanted), says("Then not.")], "cfo": []}
    async with talk(script, "Go", "!rework not yet", "!approve") as (session, players):
        assert (await session.look()).beside == {}
        assert "cfo" not in players.speakers


PLAN = {
    "workflow_name": "tide_parser",
    "description": "Somebody writes a parser",
    "input": {"name": "task", "type": "string", "description": "what is to be written"},
    "output": {"name": "code", "type": "string", "description": "what was written"},
    "contexts": [{"name": "work", "starting_messages": [], "max_length": 50000}],
    "agents": [{"agent_role": "coder", "context": "work", "role": "assistant"}],
    "states": [
        {"name": "start", "transition": [{"target": "code", "condition": "true"}]},
        {
            "name": "code",
            "agent": "coder",
            "input": "common_data.task",
            "transition": [{"target": "stop", "condition": "true"}],
        },
        {"name": "stop", "input": "last_agent_response"},
    ],
}
WRONG = {**PLAN, "states": [{"name": "start", "transition": [{"target": "nowhere", "condition": "true"}]}]}


def plans_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


async def drafted(session: Session) -> str:
    return (await texts(session))[-1]


@pytest.mark.parametrize("draft", [{"value": PLAN}, f"Here it is:\n```json\n{json.dumps(PLAN)}\n```\nGood?"])
async def test_a_plan_is_drafted_by_a_model_checked_drawn_and_started_only_after_approval(
    tmp_path: Path, draft: Any
) -> None:
    script: Script = {"planner": [draft], "coder": ["done"], "creative_partner": [says("Tide tables, by date.")]}
    async with talk(script, "We need tide tables", "!plan Write a parser", files=str(tmp_path)) as (session, players):
        assert players.speakers == ["creative_partner", "planner"]
        assert "Tide tables, by date." in players.prompt(-1)
        assert "What is wanted: Write a parser" in players.prompt(-1)
        assert "coder" in players.prompt(-1)
        [path] = plans_in(tmp_path)
        assert path.name.startswith("tide_parser-")
        assert json.loads(path.read_text()) == PLAN
        shown = await drafted(session)
        assert shown.startswith(f"drafted {path}")
        assert "code" in shown
        assert shown.endswith("!approve starts it")
        data = await session.look()
        assert (data.place, data.beside, data.draft) == ("AwaitApproval", {}, None)
        await session.type("!approve")
        [known] = (await session.look()).beside.values()
        assert (known.machine, known.ended) == (str(path), "done")


async def test_a_draft_with_errors_is_shown_back_once_and_then_given_up(tmp_path: Path) -> None:
    script: Script = {"planner": [{"value": WRONG}, {"value": PLAN}, {"value": WRONG}, "I cannot."]}
    async with talk(script, "!plan Write a parser", files=str(tmp_path)) as (session, players):
        assert "nowhere" in players.prompt(1)
        assert (await session.look()).proposed.endswith(".json")
        await session.type("!plan Another")
        assert "there is no plan: what was drafted cannot be used" in await drafted(session)
        assert len(plans_in(tmp_path)) == 1


async def test_a_draft_that_was_changed_after_it_was_shown_does_not_begin(tmp_path: Path) -> None:
    async with talk({"planner": [{"value": PLAN}]}, "!plan Write a parser", files=str(tmp_path)) as (session, _):
        [path] = plans_in(tmp_path)
        path.write_text(json.dumps({**PLAN, "description": "something else"}))
        await session.type("!approve")
        assert any("was changed after it was drafted" in text for text in await texts(session))
        [known] = (await session.look()).beside.values()
        assert known.ended == "failed"


async def test_without_a_model_a_plan_is_the_usual_one_and_can_be_saved_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with talk({}, model="rehearsal", files=str(tmp_path)) as (session, _):
        assert await session.type("!save tides") == "there is no plan to save; !plan has one drafted"
        await session.type("!plan Write a parser for tide tables")
        assert "Drafted without a model" in plans_in(tmp_path)[0].read_text()
        assert "small letters" in await session.type("!save ../tides")
        assert await session.type("!save tides") == "saved as workflows/tides.json; !workflow tides starts it"
        assert "is there already" in await session.type("!save tides")
        assert "tides: Drafted without a model" in await session.type("!workflow")


@pytest.mark.covers("T57")
async def test_what_is_said_beside_is_heard_by_everybody_and_moves_nothing() -> None:
    script: Script = {
        "creative_partner": [says("Hello."), says("I heard.")],
        "ceo": [approves("!handoff cmo", "cfo")],
        "cfo": [hands("!exit", "ceo")],
    }
    async with talk(script, "Go", "!workflow broadcast ceo, cfo: a", "And?") as (session, players):
        assert "team-broadcast" in players.prompt(-1)
        assert (await session.look()).place == "RespondToUser"
        assert players.speakers[-1] == "creative_partner"


@pytest.mark.covers("T9")
async def test_what_a_workflow_and_a_pattern_ask_is_answered_in_the_conversation() -> None:
    async with talk({}, model="rehearsal") as (session, _):
        for name in ("one", "two"):
            await session.type(f"!workflow approved_release {name}")
        shown = await session.new_questions()
        assert "Publish these notes?" in shown
        assert '!answer 2 {"publish": "…", "wish": "…"}' in shown
        help_now = await session.type("!help")
        assert "!answer [N] ANSWER" in help_now
        assert "several questions wait" in await session.type("!answer yes")
        assert "the answer has to be JSON" in await session.type("!answer 2 yes")
        assert "publish" in await session.type('!answer 2 {"publish": "maybe"}')
        assert await session.type('!answer 2 {"publish": true}') == ""
        assert [known.ended for known in (await session.look()).beside.values()] == ["", "done"]
        assert await session.type('!answer {"publish": true}') == ""
        assert [known.ended for known in (await session.look()).beside.values()] == ["done", "done"]
        assert "!answer" not in await session.type("!help")
