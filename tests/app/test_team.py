"""Conversations of a team: who speaks next and why, what is kept, and what a person can do about it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.agents.ask import Tool, ToolCall
from moothall.agents.ports import Reply, Request, open_ahead
from moothall.agents.workspace import Workspace
from moothall.app.config.models import open_model
from moothall.app.kinds.team.files import prompt_of, rendered_prompt
from moothall.app.kinds.team.present import WIDTH, figures, messages_of, state_tree, status_line
from moothall.app.kinds.team.session import Chosen, Session
from moothall.app.report.steps import step_of
from moothall.app.runs.news import Committed, News
from moothall.app.runs.saves import list_saves
from moothall.errors import DefinitionError
from moothall.machines.team.definition import Roster, shipped_team, shipped_text
from moothall.machines.team.state import THREAD, TRANSITIONS, Conversation
from moothall.machines.team.warmth import Learned
from moothall.team import AgentState, FSMOrchestrator, StateVisualizer, TransitionEngine
from tests.models.loopback import Said, loopback
from tests.team_scripts import HAND_OFF, Script, approves, hands, rejects, says

pytestmark = pytest.mark.anyio


class Players:
    """Personas that reply one line after the other, and remember what they were asked."""

    def __init__(self, script: Script) -> None:
        self.asked: list[tuple[str, str]] = []
        self.functions = {name: self._player(name, list(lines)) for name, lines in script.items()}

    def _player(self, name: str, lines: list[Any]) -> Callable[[str], Any]:
        async def reply(prompt: str) -> Any:
            self.asked.append((name, prompt))
            assert lines, f"{name} was asked once more than it has lines"
            line = lines.pop(0)
            return line["value"] if isinstance(line, dict) else line

        return reply

    @property
    def speakers(self) -> list[str]:
        return [name for name, _ in self.asked]

    def prompt(self, number: int) -> str:
        return self.asked[number][1]


@asynccontextmanager
async def talk(
    script: Script, *lines: str, team: str = "studio", more: dict[str, Any] | None = None, **chosen: Any
) -> AsyncIterator[tuple[Session, Players]]:
    """A session in which these lines were typed."""
    players = Players(script)
    async with Moothall("memory", listeners=()) as hall:
        session = await Session.begin(hall, Chosen(team, **chosen), {**players.functions, **(more or {})})
        for line in lines:
            await session.type(line)
        yield session, players


async def ways(session: Session) -> list[tuple[str, str, str, str]]:
    moves = await messages_of(session.hall.store, session.run, TRANSITIONS)
    return [(move["from"], move["to"], move["by"], move["layer"]) for move in moves]


async def texts(session: Session) -> list[str]:
    return [message["text"] for message in await messages_of(session.hall.store, session.run, THREAD)]


def team_with(folder: Path, **changes: Any) -> str:
    """The studio with changes, as a file."""
    plain = json.loads(shipped_text("studio"))
    for key, value in changes.items():
        plain[key] = {**plain[key], **value} if isinstance(plain.get(key), dict) else value
    path = folder / "team.json"
    path.write_text(json.dumps(plain))
    return str(path)


# hand off, approve, rework


@pytest.mark.covers("T1", "T2", "T20", "T22", "T30", "T50", "T69")
async def test_personas_hand_on_by_themselves_until_one_needs_the_user() -> None:
    async with talk(HAND_OFF, "A game about tides") as (session, players):
        assert players.speakers == ["creative_partner", "game_designer", "creative_partner", "game_designer", "ceo"]
        data = await session.look()
        assert (data.place, data.reason) == ("RespondToUser", "CEO waits for you")


@pytest.mark.covers("T18", "T49", "T5")
async def test_everybody_sees_the_work_before_them_with_its_author_and_what_is_wrong_with_theirs() -> None:
    async with talk(HAND_OFF, "A game about tides") as (_, players):
        assert "The work before you, by Creative Partner:\nA game about tides." in players.prompt(1)
        assert "REWORK: Game Designer sends your work back: say what the player does every minute" in players.prompt(2)
        assert "The work before you, by Game Designer:\nNow there is one." in players.prompt(4)
        assert "user: A game about tides" in players.prompt(4)


@pytest.mark.covers("T51")
async def test_two_reworks_in_a_row_go_back_two_authors_and_a_third_goes_to_the_user() -> None:
    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer"), rejects("No.", "the idea itself is wrong")],
        "game_designer": [hands("A design.", "ceo"), rejects("Not mine.", "the concept is thin")],
        "ceo": [rejects("No.", "too dear")],
    }
    async with talk(script, "Go") as (session, players):
        assert players.speakers == ["creative_partner", "game_designer", "ceo", "game_designer", "creative_partner"]
        data = await session.look()
        assert data.place == "RespondToUser"
        assert "nobody's work is before it: the idea itself is wrong" in data.reason
        assert data.reworks == 3


@pytest.mark.covers("T49")
async def test_rework_voids_the_approvals_of_that_work_and_of_what_is_based_on_it_and_no_others() -> None:
    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer")],
        "game_designer": [approves("A design.", "lead_engineer"), says("Wait.")],
        "lead_engineer": [approves("A plan.", "ceo")],
        "ceo": [says("Hm.")],
    }
    async with talk(script, "Go") as (session, _):
        held = {(known.by, known.author) for known in (await session.look()).chain.approvals}
        assert held == {("game_designer", "creative_partner"), ("lead_engineer", "game_designer")}
        await session.type("!switch_to game_designer")
        await session.type("!rework smaller")
        held = {(known.by, known.author) for known in (await session.look()).chain.approvals}
        assert held == {("game_designer", "creative_partner")}


async def test_a_handoff_carries_a_brief() -> None:
    brief = {"goal": "a prototype", "done": ["concept"], "open": ["controls"], "constraints": ["no network"]}
    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer", brief=brief)],
        "game_designer": [says("I see.")],
    }
    async with talk(script, "Go") as (session, players):
        assert '"open": ["controls"]' in players.prompt(1)
        assert "no network" in [item.content for item in (await session.look()).memory.key]


@pytest.mark.covers("T50")
async def test_the_answer_of_the_user_goes_to_the_persona_that_asked() -> None:
    ask = says("How long may it take?", transition="HANDOFF_TO_AGENT", next_agent="RespondToUser")
    script: Script = {"creative_partner": [hands("A concept.", "ceo")], "ceo": [ask, says("Thank you.")]}
    async with talk(script, "Go", "Two months") as (_, players):
        assert players.speakers == ["creative_partner", "ceo", "ceo"]
        assert "user: Two months" in players.prompt(2)


# what cannot be followed


@pytest.mark.covers("T17", "T45", "T48")
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (says("x", transition="HANDOFF", next_agent="ceo"), "`transition` is 'HANDOFF'"),
        (says("x", transition="HANDOFF_TO_AGENT", next_agent="CEO"), "`next_agent` 'CEO' cannot be reached"),
        (says("x", transition="REQUEST_REWORK"), "needs a `rework_reason`"),
        (says("x", transition="HANDOFF_TO_AGENT", next_agent="ceo, cfo"), "names more than one agent"),
        (says("x", next_agent="ceo"), "names a `next_agent` but no `transition`"),
        (says("x", transition="HANDOFF_TO_AGENT", next_agent="ceo", proposals=[{"agent": "cfo"}]), "proposals"),
        (says("x", brief={"goal": 3}), "brief.goal"),
        (
            '{"content": "x", "transition": "HANDOFF_TO_AGENT", "next_agent": "ceo", "next_agent": "cfo"}',
            "`next_agent` names more than one agent",
        ),
        (
            '{"content": "x", "transition": "HANDOFF_TO_AGENT", "next_agent": "ceo"}\n'
            '{"content": "y", "transition": "HANDOFF_TO_AGENT", "next_agent": "cfo"}',
            "Reply with one object",
        ),
    ],
)
async def test_what_cannot_be_followed_is_shown_back_once_and_stays_out_of_the_conversation(
    reply: Any, told: str
) -> None:
    async with talk({"creative_partner": [reply, says("Once more.")]}, "Go") as (session, players):
        assert "Your last reply cannot be used: " in players.prompt(1)
        assert told in players.prompt(1)
        assert await texts(session) == ["Go", "Once more."]
        assert [to for _, to, _, _ in await ways(session)] == ["creative_partner", "RespondToUser"]


@pytest.mark.covers("T17", "T22")
async def test_a_second_reply_that_cannot_be_followed_gives_the_user_the_word() -> None:
    bad = says("x", transition="FLY")
    async with talk({"creative_partner": [bad, bad]}, "Go") as (session, _):
        data = await session.look()
        assert data.place == "RespondToUser"
        assert data.reason.startswith("Creative Partner gave no reply that can be followed")
        assert (await ways(session))[-1][2:] == ("unusable_reply", "system")
        assert await texts(session) == ["Go"]


async def test_a_promise_in_prose_gets_the_repair_prompt_once_and_moves_nothing() -> None:
    promise = says("I'll hand this off to the CFO now.")
    async with talk({"creative_partner": [promise, promise]}, "Go") as (session, players):
        assert players.speakers == ["creative_partner", "creative_partner"]
        assert "the reply directs nothing" in players.prompt(1)
        assert (await session.look()).place == "RespondToUser"


# who is next


PROPOSALS = [
    {"agent": "lead_engineer", "urgency": 0.8, "dependency": 0.9, "user_intent": 0.3, "why": "feasibility"},
    {"agent": "art_director", "urgency": 0.4, "dependency": 0.6, "user_intent": 0.7, "why": "style"},
    {"agent": "ceo", "urgency": 0.9, "dependency": 0.5, "user_intent": 0.8, "why": "viability"},
]


@pytest.mark.parametrize(("blocking", "winner"), [(True, "lead_engineer"), (False, "ceo")])
async def test_scenario_a_competing_proposals_are_settled_and_the_losers_recorded(
    tmp_path: Path, blocking: bool, winner: str
) -> None:
    script: Script = {
        "creative_partner": [says("Who is next?", proposals=PROPOSALS)],
        "lead_engineer": [says("It can be built.")],
        "ceo": [says("It sells.")],
    }
    team = team_with(tmp_path, arbitration={"blocking": blocking})
    async with talk(script, "Go", team=team) as (session, players):
        assert players.speakers[-1] == winner
        moves = await messages_of(session.hall.store, session.run, TRANSITIONS)
        assert moves[1]["layer"] == "arbitration"
        assert moves[1]["scores"] == pytest.approx({"lead_engineer": 0.69, "art_director": 0.57, "ceo": 0.71})
        assert {agent for agent, _ in moves[1]["losers"]} == {"lead_engineer", "art_director", "ceo"} - {winner}
        steps = [step_of(session.run, entry) for entry in await session.hall.store.entries(session.run)]
        [choice] = [choice for step in steps for choice in step.choices]
        assert choice.chosen == winner
        assert [list(loser) for loser in choice.losers] == moves[1]["losers"]


@pytest.mark.covers("T31", "T79", "T60", "T22")
async def test_scenario_b_a_rule_routes_to_the_cfo_and_the_interrupted_designer_speaks_next() -> None:
    script: Script = {
        "creative_partner": [hands("Budget concerns were raised; we need a cost analysis.", "game_designer")],
        "game_designer": [
            hands("Let us add multiplayer.", "lead_engineer"),
            hands("Local only, then.", "lead_engineer"),
        ],
        "cfo": [hands("Servers cost too much.", "ceo")],
        "lead_engineer": [says("That can be built.")],
    }
    async with talk(script, "Go") as (session, players):
        assert players.speakers == ["creative_partner", "game_designer", "cfo", "game_designer", "lead_engineer"]
        taken = await ways(session)
        assert taken[2] == ("game_designer", "cfo", "budget_review", "rules")
        assert taken[3] == ("cfo", "game_designer", "budget_review", "rules")
        assert "You are asked by the rule budget_review" in players.prompt(2)
        moves = await messages_of(session.hall.store, session.run, TRANSITIONS)
        assert moves[2]["losers"] == [["lead_engineer", 0.0]]


@pytest.mark.covers("T41", "T6", "T79")
async def test_a_fact_from_a_source_lets_a_rule_hold_and_everybody_sees_it(tmp_path: Path) -> None:
    async def budget_left() -> int:
        return 4000

    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer")],
        "game_designer": [says("Let us add multiplayer."), says("No.")],
        "cfo": [says("There is no money for it.")],
    }
    team = team_with(tmp_path, sources=[{"fact": "budget_left", "tool": "books"}])
    async with talk(script, "Go", team=team, more={"books": budget_left}) as (session, players):
        assert players.speakers == ["creative_partner", "game_designer", "cfo", "game_designer"]
        fact = (await session.look()).facts["budget_left"]
        assert (fact.value, fact.source) == (4000, "books")
        assert fact.time > 0
        assert "- budget_left: 4000 (books)" in players.prompt(2)
        assert (await ways(session))[2][2:] == ("budget_spent", "rules")


@pytest.mark.covers("T41")
async def test_a_source_that_fails_is_told_and_harms_nothing(tmp_path: Path) -> None:
    team = team_with(tmp_path, sources=[{"fact": "budget_left", "tool": "books"}])
    async with talk({"creative_partner": [says("Hello.")]}, "Go", team=team) as (session, _):
        said = await texts(session)
        assert "books could not say what budget_left is: nobody registered the tool 'books'" in said
        assert (await session.look()).facts == {}


@pytest.mark.covers("T80", "T21", "T60", "T5")
async def test_scenario_c_the_user_hands_off_whatever_was_recommended_with_the_whole_conversation() -> None:
    script: Script = {
        "creative_partner": [hands(f"Point {number}.", "game_designer") for number in range(5)],
        "game_designer": [hands(f"Reply {number}.", "creative_partner") for number in range(4)] + [says("Done.")],
        "ceo": [says("I decide.")],
    }
    async with talk(script, "First word", "!handoff CEO") as (session, players):
        assert players.speakers[-1] == "ceo"
        assert (await ways(session))[-2] == ("RespondToUser", "ceo", "user", "user")
        last = players.prompt(-1)
        assert "User-requested transition" in last
        for text in ("First word", *(f"Point {number}." for number in range(5)), "Reply 0."):
            assert text in last
        assert "First word" not in players.prompt(-2).partition("The conversation so far:")[2]


@pytest.mark.covers("T60")
async def test_a_user_comes_before_a_rule_and_a_rule_before_arbitration() -> None:
    script: Script = {
        "creative_partner": [hands("Multiplayer, and the budget is a concern.", "lead_engineer")],
        "cfo": [says("Too dear.")],
        "cmo": [says("It sells.")],
    }
    async with talk({**script, "creative_partner": script["creative_partner"] * 2}, "Go") as (session, players):
        assert (await ways(session))[1] == ("creative_partner", "cfo", "budget_review", "rules")
        await session.type("!handoff cmo")
        assert players.speakers[-1] == "cmo"
        assert (await ways(session))[-2][2:] == ("user", "user")


async def test_a_sample_is_drawn_by_run_and_turn_and_drawn_again_on_replay() -> None:
    even = [{**proposal, "dependency": 0.5, "confidence": 0.7} for proposal in PROPOSALS]
    script: Script = {
        "creative_partner": [says("Who?", proposals=even)],
        **{name: [says("Me.")] for name in ("lead_engineer", "art_director", "ceo")},
    }
    winners = set()
    for number in range(12):
        async with talk(script, "Go", sample=True, run_id=f"draw-{number}") as (session, players):
            winners.add(players.speakers[-1])
            replayed = await session.hall.show(session.run)
            assert replayed.summary.run == f"draw-{number}"
        async with talk(script, "Go", sample=True, run_id=f"draw-{number}") as (_, again):
            assert again.speakers == players.speakers
    assert len(winners) > 1


async def test_cooldown_lets_somebody_rest_who_was_chosen_a_moment_ago(tmp_path: Path) -> None:
    both = [PROPOSALS[0], PROPOSALS[2]]
    script: Script = {
        "creative_partner": [says("Who?", proposals=both), says("Who now?", proposals=both)],
        "lead_engineer": [hands("Back.", "creative_partner")],
        "ceo": [says("Now I.")],
    }
    team = team_with(tmp_path, arbitration={"cooldown": 3})
    async with talk(script, "Go", team=team) as (_, players):
        assert players.speakers == ["creative_partner", "lead_engineer", "creative_partner", "ceo"]


# loops end


@pytest.mark.covers("T61", "T35")
async def test_three_identical_transitions_without_anything_new_ask_the_user() -> None:
    script: Script = {
        "creative_partner": [hands("Over to you.", "game_designer")] * 5,
        "game_designer": [hands("No, over to you.", "creative_partner")] * 5,
    }
    async with talk(script, "Go") as (session, players):
        data = await session.look()
        assert data.place == "RespondToUser"
        assert data.reason == "Creative Partner handed to Game Designer 3 times without anything new"
        assert len(players.asked) == 5
        assert (await ways(session))[-1][2:] == ("repeats", "system")


@pytest.mark.covers("T34", "T35", "T2")
async def test_two_personas_take_three_turns_each_without_the_user_in_between() -> None:
    script: Script = {
        "creative_partner": [hands(f"Idea {number}.", "game_designer") for number in range(4)],
        "game_designer": [hands(f"Doubt {number}.", "creative_partner") for number in range(3)] + [says("Agreed.")],
    }
    async with talk(script, "Go") as (_, players):
        assert players.speakers == ["creative_partner", "game_designer"] * 4


@pytest.mark.covers("T61")
@pytest.mark.parametrize(
    ("limits", "by", "reason"),
    [
        ({"turns": 4}, "turns", "the limit of 4 turns without you is reached"),
        ({"visits": 2}, "visits", "Creative Partner has spoken 2 times, which is the limit"),
    ],
)
async def test_every_limit_ends_with_its_own_reason(tmp_path: Path, limits: Any, by: str, reason: str) -> None:
    script: Script = {
        "creative_partner": [hands(f"Idea {number}.", "game_designer") for number in range(9)],
        "game_designer": [hands(f"Doubt {number}.", "creative_partner") for number in range(9)],
    }
    async with talk(script, "Go", team=team_with(tmp_path, limits=limits)) as (session, _):
        assert (await session.look()).reason == reason
        assert (await ways(session))[-1][2] == by


@pytest.mark.covers("T61")
async def test_a_limit_of_calls_ends_the_conversation_with_its_name(tmp_path: Path) -> None:
    script: Script = {
        "creative_partner": [hands(f"Idea {number}.", "game_designer") for number in range(9)],
        "game_designer": [hands(f"Doubt {number}.", "creative_partner") for number in range(9)],
    }
    async with talk(script, "Go", team=team_with(tmp_path, limits={"calls": 3})) as (session, players):
        assert session.outcome is not None
        assert session.outcome.states == ("Limited",)
        assert session.outcome.data.reason == "the limit of 3 calls is reached"
        assert len(players.asked) == 3


# what a person can do


@pytest.mark.covers("T32", "T52")
async def test_call_agent_lets_somebody_speak_for_one_turn_and_goes_back() -> None:
    script: Script = {
        "creative_partner": [says("A concept."), says("Going on.")],
        "cfo": [hands("It costs little.", "ceo")],
    }
    async with talk(script, "Go", "!call_agent CFO") as (session, players):
        data = await session.look()
        assert players.speakers == ["creative_partner", "cfo"]
        assert (data.place, data.speaker, data.stack) == ("RespondToUser", "creative_partner", ())
        await session.type("!continue")
        assert players.speakers[-1] == "creative_partner"


@pytest.mark.covers("T32", "T52")
async def test_switch_to_changes_who_speaks_and_hands_no_work_over() -> None:
    script: Script = {"creative_partner": [says("A concept.")], "cmo": [says("Hello."), says("Yes.")]}
    async with talk(script, "Go", "!switch_to CMO", "And now?") as (session, players):
        assert players.speakers == ["creative_partner", "cmo", "cmo"]
        assert (await session.look()).stack == ()
        assert "The work before you" not in players.prompt(1)


@pytest.mark.covers("T21", "T52")
async def test_handoff_moves_the_work_on_and_rework_brings_it_back() -> None:
    script: Script = {
        "creative_partner": [says("A concept."), says("A better concept.")],
        "cfo": [says("I see."), rejects("No.", "too dear")],
    }
    async with talk(script, "Go", "!handoff cfo", "!rework look again") as (_, players):
        assert "The work before you, by Creative Partner:\nA concept." in players.prompt(1)
        assert "REWORK: the user sends your work back: look again" in players.prompt(2)
        assert players.speakers == ["creative_partner", "cfo", "cfo", "creative_partner"]


@pytest.mark.covers("T21", "T64")
async def test_approve_needs_a_state_that_awaits_the_user() -> None:
    async with talk({"creative_partner": [says("A concept."), says("Then I go on.")]}, "Go") as (session, players):
        assert "!approve" in await session.command("!help")
        await session.type("!approve")
        assert players.speakers == ["creative_partner", "creative_partner"]
        assert ("user", "creative_partner") in [
            (known.by, known.author) for known in (await session.look()).chain.approvals
        ]
        await session.type("!exit")
        assert "Closed does not accept" in await session.command("!approve")


@pytest.mark.covers("T64")
async def test_help_lists_only_what_is_accepted_now() -> None:
    async with talk({}, "!exit") as (session, _):
        assert "!approve" not in await session.command("!help")
        assert "!handoff" not in await session.command("!help")
        assert "!state" in await session.command("!help")


async def test_what_is_no_command_is_refused_with_a_hint() -> None:
    async with talk({}) as (session, _):
        assert await session.command("!fly") == "there is no command !fly; !help lists what is accepted now"
        assert (await session.command("!handoff Caesar")).startswith("no persona is called 'Caesar'")
        assert await session.command("!start") == "say what it is about, such as: !start IDEA"
        assert await session.type("   ") == ""


async def test_manual_autonomy_asks_for_the_reply_and_for_the_transition_apart() -> None:
    script: Script = {"creative_partner": [hands("A concept.", "game_designer")], "game_designer": [says("Good.")]}
    async with talk(script, "Go", autonomy="manual") as (session, players):
        assert (await session.look()).reason == "the reply of Creative Partner waits for your approval"
        assert await session.status() == "Current State: [AwaitApproval_State] → Pending: GameDesigner_State"
        await session.type("!approve")
        data = await session.look()
        assert (data.place, data.held_reply, players.speakers) == ("AwaitApproval", False, ["creative_partner"])
        await session.type("!approve")
        assert players.speakers == ["creative_partner", "game_designer"]


@pytest.mark.parametrize(("sure", "place"), [(0.4, "AwaitApproval"), (0.6, "RespondToUser")])
async def test_review_asks_where_somebody_is_not_sure(sure: float, place: str) -> None:
    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer", confidence=sure)],
        "game_designer": [says("Good.")],
    }
    async with talk(script, "Go") as (session, _):
        assert (await session.look()).place == place


async def test_autonomy_is_set_for_a_persona_too(tmp_path: Path) -> None:
    plain = json.loads(shipped_text("studio"))
    for persona in plain["personas"]:
        if persona["id"] == "creative_partner":
            persona["autonomy"] = {"transitions": "manual", "replies": "auto"}
    script: Script = {"creative_partner": [hands("A concept.", "game_designer"), says("In red.")]}
    async with talk(script, "Go", team=team_with(tmp_path, personas=plain["personas"])) as (session, players):
        assert (await session.look()).reason == "the transition of Creative Partner waits for your approval"
        await session.type("!rework other colours")
        assert players.speakers == ["creative_partner", "creative_partner"]


@pytest.mark.covers("T54")
async def test_history_shows_branches_and_goes_another_way_from_a_turn_on() -> None:
    script: Script = {"creative_partner": [says("One."), says("Two."), says("Another two.")]}
    async with talk(script, "Go", "More") as (session, _):
        first = session.run
        shown = await session.command("!history")
        assert "1 Creative Partner: One." in shown
        answer = await session.command("!history 1")
        assert session.run != first
        assert answer == f"branch {session.run} goes on from turn 1 of {first}; both are kept"
        await session.type("Something else")
        assert await texts(session) == ["Go", "One.", "Something else", "Another two."]
        assert f"branch: {first}" in await session.command("!history")
        assert {summary.run for summary in await session.hall.list()} >= {first, session.run}


# hooks


@pytest.mark.covers("T25", "T43")
async def test_hooks_are_called_outer_before_inner_going_in_and_inner_before_outer_going_out(tmp_path: Path) -> None:
    plain, called = json.loads(shipped_text("studio")), []
    for group in plain["groups"]:
        if group["name"] == "CREATIVE":
            group["hooks"] = {"entry": "enter", "exit": "leave"}
            group["groups"][1]["hooks"] = {"entry": "enter", "exit": "leave"}
    for persona in plain["personas"]:
        if persona["id"] in ("game_designer", "creative_partner"):
            persona["hooks"] = {"entry": "enter", "exit": "leave"}

    async def enter(state: str) -> None:
        called.append(f"in {state}")

    async def leave(state: str) -> None:
        called.append(f"out {state}")

    script: Script = {
        "creative_partner": [hands("A concept.", "game_designer")],
        "game_designer": [hands("A design.", "ceo")],
        "ceo": [says("Fine.")],
    }
    team = team_with(tmp_path, groups=plain["groups"], personas=plain["personas"])
    async with talk(script, "Go", team=team, more={"enter": enter, "leave": leave}):
        assert called == [
            "in CREATIVE",
            "in creative_partner",
            "out creative_partner",
            "in DESIGN",
            "in game_designer",
            "out game_designer",
            "out DESIGN",
            "out CREATIVE",
        ]


@pytest.mark.covers("T43")
async def test_a_hook_that_fails_is_an_event_and_harms_nothing(tmp_path: Path) -> None:
    plain = json.loads(shipped_text("studio"))
    for persona in plain["personas"]:
        persona["hooks"] = {"entry": "broken" if persona["id"] == "creative_partner" else "missing"}

    async def broken(state: str) -> None:
        raise RuntimeError("the lights are off")

    script: Script = {"creative_partner": [hands("A concept.", "ceo")], "ceo": [says("Fine.")]}
    team = team_with(tmp_path, personas=plain["personas"])
    async with talk(script, "Go", team=team, more={"broken": broken}) as (session, players):
        assert players.speakers == ["creative_partner", "ceo"]
        notes = (await session.look()).failed_hooks
        assert "broken (entry of creative_partner): RuntimeError: the lights are off" in notes
        events = [entry["event"]["name"] for entry in await session.hall.store.entries(session.run)]
        assert events.count("hooks.called") == 2


# memory and warming


@pytest.mark.covers("T14", "T70", "T72")
async def test_the_conversation_is_compressed_and_no_decision_is_lost() -> None:
    decision = "@DECISION(reason=fits the season) We ship in May."
    script: Script = {
        "creative_partner": [hands(decision, "game_designer")]
        + [hands(f"Idea {number}.", "game_designer") for number in range(8)],
        "game_designer": [hands(f"Doubt {number}.", "creative_partner") for number in range(8)] + [says("Good.")],
    }
    async with talk(script, "Go") as (session, players):
        memory = (await session.look()).memory
        assert memory.summaries
        assert [item.content for item in memory.key] == [decision]
        assert (memory.key[0].who, memory.key[0].step) == ("creative_partner", 1)
        assert "<recalled>" in players.prompt(-1)
        assert "We ship in May." in players.prompt(-1)
        assert len(await texts(session)) == 19


@pytest.mark.covers("T72")
async def test_the_kind_of_what_is_remembered_comes_from_the_directive() -> None:
    async with talk(HAND_OFF, "A game about tides") as (session, _):
        kinds = [(item.kind, item.who) for item in (await session.look()).memory.key]
        assert kinds == [("rejection", "game_designer"), ("approval", "game_designer")]


@pytest.mark.covers("T82", "T85")
async def test_a_word_of_an_earlier_turn_warms_nobody() -> None:
    script: Script = {"creative_partner": [says("Yes."), says("Yes again.")]}
    async with talk(script, "What about the budget?") as (session, _):
        assert "cfo" in {known.persona for known in (await session.look()).warmth.warm}
        await session.type("And the colours?")
        assert (await session.look()).words == ()
        assert "cfo" not in {known.persona for known in (await session.look()).warmth.warm}


@pytest.mark.covers("T28", "T82", "T83")
async def test_state_shows_who_is_warm_and_only_those_who_spoke_are_loaded() -> None:
    script: Script = {
        "creative_partner": [hands("The design and the art matter.", "game_designer")],
        "game_designer": [says("The design is fine.")],
    }
    async with talk(script, "A design question") as (session, players):
        data = await session.look()
        warm = {known.persona: known.confidence for known in data.warmth.warm}
        assert warm["art_director"] == pytest.approx(0.6)
        assert "art_director (since turn" in await session.command("!state")
        shown = await session.metrics()
        assert (shown["warmed"], shown["warm_used"]) == (data.warmed, 1)
        assert set(players.speakers) == {"creative_partner", "game_designer"}


def test_a_transition_that_was_taken_before_counts_as_repeated() -> None:
    moves = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}, {"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    assert figures(Conversation(), moves)["repeated_transition_rate"] == 0.5
    assert figures(Conversation(), [])["repeated_transition_rate"] == 0.0


@pytest.mark.covers("T74")
@pytest.mark.parametrize("works", [True, False])
async def test_a_model_sums_up_beside_the_conversation_and_where_it_fails_nothing_is_lost(works: bool) -> None:
    async def summariser(prompt: str) -> Any:
        assert "Doubt 0." in prompt
        return {"decisions": ["They chose tides."], "discussions": ["Ideas."], "pending": []} if works else {"no": 1}

    script: Script = {
        "creative_partner": [hands("@DECISION(reason=fun) Tides.", "game_designer")]
        + [hands(f"Idea {number}.", "game_designer") for number in range(3)],
        "game_designer": [hands(f"Doubt {number}.", "creative_partner") for number in range(3)] + [says("Good.")],
    }
    async with talk(script, "Go", more={"summariser": summariser}, summarise=True) as (session, _):
        memory = (await session.look()).memory
        assert memory.summaries
        assert ("They chose tides." in memory.summaries[0].decisions) == works
        assert any("@DECISION(reason=fun) Tides." in text for text in memory.summaries[0].decisions)
        assert memory.summaries[0].decision_count == 1
        assert [item.content for item in memory.key] == ["@DECISION(reason=fun) Tides."]


# modes


LINE: Script = {
    "creative_partner": [says("A concept."), says("A summary.")],
    "game_designer": [says("A design."), says("A better design.")],
    "lead_engineer": [says("Too large."), says("print('tide')\n"), says("# Tide\n")],
    "project_manager": [says("main.py: the game"), says("- main.py: the game\n- docs/readme.md: how to play")],
    "ceo": [says("Add a readme.")],
}


@pytest.mark.covers("T23", "T63")
async def test_simple_goes_through_its_phases_and_writes_its_files_after_approval(tmp_path: Path) -> None:
    async with talk(LINE, "!simple", "!start A game about tides", workspace=str(tmp_path / "w")) as (session, players):
        assert players.speakers == [
            "creative_partner",
            "game_designer",
            "lead_engineer",
            "game_designer",
            "creative_partner",
        ]
        assert (await session.look()).reason == "ideation is done; approve it, or say what has to change"
        await session.type("!approve")
        assert players.speakers[5:] == ["project_manager", "ceo", "project_manager"]
        await session.type("!approve")
        assert (tmp_path / "w" / "main.py").read_text() == "print('tide')\n"
        assert (tmp_path / "w" / "docs" / "readme.md").read_text() == "# Tide\n"
        await session.type("!approve")
        assert (await session.look()).reason == "start is done"


@pytest.mark.covers("T63")
async def test_a_file_outside_the_workspace_is_not_written(tmp_path: Path) -> None:
    script: Script = {
        **LINE,
        "project_manager": [says("x.py: x"), says("a/../../escape.py: bad\nok.py: good")],
        "lead_engineer": [says("Too large."), says("bad"), says("good")],
    }
    async with talk(script, "!simple", "!start X", "!approve", "!approve", workspace=str(tmp_path / "w")) as (
        session,
        _,
    ):
        assert not (tmp_path / "escape.py").exists()
        assert (tmp_path / "w" / "ok.py").read_text() == "good"
        assert any("outside the workspace" in text for text in await texts(session))


@pytest.mark.covers("T63")
async def test_any_other_text_is_feedback_and_does_the_phase_again() -> None:
    script = {name: lines * 2 for name, lines in LINE.items()}
    async with talk(script, "!simple", "!start A game", "Make it shorter") as (_, players):
        assert players.speakers[:5] == players.speakers[5:10]
        assert "The user says: Make it shorter" in players.prompt(5)


@pytest.mark.covers("T63")
@pytest.mark.parametrize("line", ["!business A game about tides", "!goals"])
async def test_business_and_goals_ask_direction_finance_and_marketing(line: str) -> None:
    script: Script = {"ceo": [says("Yes."), says("So: yes.")], "cfo": [says("Cheap.")], "cmo": [says("Many.")]}
    async with talk(script, line) as (_, players):
        assert players.speakers == ["ceo", "cfo", "cmo", "ceo"]


@pytest.mark.covers("T24")
async def test_a_switch_of_mode_keeps_memory_approvals_and_workspace(tmp_path: Path) -> None:
    place = tmp_path / "w"
    async with talk(HAND_OFF, "A game about tides", workspace=str(place)) as (session, _):
        before = await session.look()
        (place / "kept.txt").write_text("kept")
        assert "mode simple" in await session.command("!simple")
        between = await session.look()
        await session.command("!fsm")
        after = await session.look()
        assert (between.mode, after.mode) == ("simple", "fsm")
        assert before.memory == between.memory == after.memory
        assert before.chain == after.chain
        assert before.chain.approvals
        assert before.workspace == between.workspace == after.workspace == str(place)
        assert (place / "kept.txt").read_text() == "kept"


# tools


def with_tools(folder: Path, *tools: str, **changes: Any) -> str:
    plain = json.loads(shipped_text("studio"))
    for persona in plain["personas"]:
        if persona["id"] == "creative_partner":
            persona["tools"] = list(tools)
    return team_with(folder, personas=plain["personas"], **changes)


def calls(tool: str, **arguments: Any) -> Reply:
    return Reply("", calls=(ToolCall(tool, arguments),))


class Caller:
    """The creative partner with tools: it replies one after the other, and remembers what it was asked."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    async def reply(self, prompt: str) -> Any:
        self.asked.append(prompt)
        given = self.replies.pop(0)
        return given["value"] if isinstance(given, dict) else given


async def test_a_persona_has_its_own_tools_called_and_goes_on_with_what_they_say(tmp_path: Path) -> None:
    async def tide(place: str) -> str:
        return f"high water in {place} at noon"

    caller = Caller(calls("tide", place="Hull"), calls("rm", path="/"), hands("Noon it is.", "ceo"))
    more = {"creative_partner": caller.reply, "tide": tide}
    script: Script = {"ceo": [says("Good.")]}
    async with talk(script, "When?", team=with_tools(tmp_path, "tide"), more=more) as (session, players):
        assert "high water in Hull at noon" in caller.asked[1]
        assert "there is no tool 'rm'; there are tide" in caller.asked[2]
        assert "user: When?" in caller.asked[2]
        assert players.speakers == ["ceo"]
        assert (await session.look()).turn == 2


@pytest.mark.covers("T9")
async def test_an_approval_of_a_tool_appears_in_the_conversation(tmp_path: Path) -> None:
    called = []

    async def tide(place: str) -> str:
        called.append(place)
        return "noon"

    caller = Caller(calls("tide", place="Hull"), says("Noon it is."))
    more, team = {"creative_partner": caller.reply, "tide": tide}, with_tools(tmp_path, "tide")
    async with talk({}, "When?", team=team, more=more, autonomy="manual") as (session, _):
        data = await session.look()
        reason = 'the call of Creative Partner waits for your approval: calls tide({"place": "Hull"})'
        assert (data.place, data.reason, called) == ("AwaitApproval", reason, [])
        await session.type("!approve")
        assert called == ["Hull"]
        assert "Noon it is." in await texts(session)


async def test_a_tool_that_fails_is_shown_to_whoever_called_it(tmp_path: Path) -> None:
    async def tide(place: str) -> str:
        raise RuntimeError("the gauge is dry")

    caller = Caller(calls("tide", place="Hull"), says("I do not know."))
    more, team = {"creative_partner": caller.reply, "tide": tide}, with_tools(tmp_path, "tide")
    async with talk({}, "When?", team=team, more=more) as (session, _):
        assert "the gauge is dry" in caller.asked[1]
        assert (await texts(session))[-1] == "I do not know."


async def test_tools_are_called_so_often_and_no_oftener(tmp_path: Path) -> None:
    async def tide(place: str) -> str:
        return "noon"

    caller = Caller(*[calls("tide", place="Hull")] * 20)
    more, team = {"creative_partner": caller.reply, "tide": tide}, with_tools(tmp_path, "tide")
    async with talk({}, "When?", team=team, more=more) as (session, _):
        assert (await session.look()).place == "RespondToUser"
        assert len(caller.asked) < 20


# large teams, many conversations


def large(folder: Path, size: int) -> str:
    personas = [
        {"id": f"p{number}", "name": f"Person With A Long Name {number}", "prompt": "ceo.md"} for number in range(size)
    ]
    groups = [
        {"name": f"GROUP_{first}", "personas": [known["id"] for known in personas[first : first + 10]]}
        for first in range(0, size, 10)
    ]
    groups.append({"name": "USER_INTERACTION", "states": ["RespondToUser", "AwaitApproval"]})
    plain = {"team_name": "large", "start": "p0", "groups": groups, "personas": personas}
    path = folder / "large.json"
    path.write_text(json.dumps(plain))
    return str(path)


@pytest.mark.covers("T64", "T87")
async def test_with_500_personas_the_status_line_fits_a_terminal_and_the_tree_a_screen(tmp_path: Path) -> None:
    script: Script = {"p0": [hands("Go on.", "p499")], "p499": [says("Here.")]}
    async with talk(script, "Go", team=large(tmp_path, 500)) as (session, players):
        assert players.speakers == ["p0", "p499"]
        assert len(await session.status()) <= WIDTH
        data = await session.look()
        tree = state_tree(session.roster, Conversation(place="p250", speaker="p250"))
        assert "▸ GROUP_250" in tree
        assert len(tree.splitlines()) < 80
        assert len(data.visits) == 2
        long = status_line(session.roster, Conversation(place="p499", held=None))
        assert len(long) <= WIDTH


async def test_conversations_beside_each_other_keep_their_memory_apart() -> None:
    async def echo(prompt: str) -> Any:
        return {"content": f"You said {prompt.rpartition('user: ')[2].splitlines()[0]}."}

    async with Moothall("memory", listeners=()) as hall:
        sessions = [await Session.begin(hall, Chosen(), {"creative_partner": echo}) for _ in range(20)]
        for number, session in enumerate(sessions):
            await session.say(f"word-{number}")
        for number, session in enumerate(sessions):
            assert await texts(session) == [f"word-{number}", f"You said word-{number}."]
            kept = [item.content for item in (await session.look()).memory.raw]
            assert kept == [f"word-{number}", f"You said word-{number}."]


# the library


class Designer(AgentState):
    """Sends the first draft back, then approves."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.places: list[str] = []

    async def respond(self, prompt: str) -> str:
        self.seen.append(prompt)
        return "I have read it."

    def can_approve_input(self, prompt: str) -> bool:
        return len(self.seen) > 1

    def request_rework(self, prompt: str) -> str:
        return "" if self.can_approve_input(prompt) else "no core loop"

    def determine_next_agent(self, prompt: str) -> str | None:
        return "ceo"

    async def on_entry(self, state: str) -> None:
        self.places.append(f"in {state}")

    async def on_exit(self, state: str) -> None:
        self.places.append(f"out {state}")


@pytest.mark.covers("T43", "T47", "T18")
def test_a_program_talks_with_a_team_in_which_personas_are_python(tmp_path: Path) -> None:
    designer = Designer()
    players = Players({name: lines for name, lines in HAND_OFF.items() if name != "game_designer"})
    agents = {**players.functions, "game_designer": designer}
    orchestrator = FSMOrchestrator(agents=agents, store=f"sqlite:{tmp_path / 'talk.db'}")
    said = orchestrator.say("A game about tides")
    assert said.splitlines()[-1] == "ceo: Worth a prototype."
    assert orchestrator.state == "RespondToUser"
    assert players.speakers == ["creative_partner", "creative_partner", "ceo"]
    assert designer.places == ["in game_designer", "out game_designer"] * 2
    assert "approved: creative_partner by game_designer" in orchestrator.command("!state")
    assert [message["by"] for message in orchestrator.history()][:3] == ["user", "creative_partner", "game_designer"]
    orchestrator.close()
    assert orchestrator.state == "Closed"
    orchestrator.close()


class Doubter(AgentState):
    """Approves nothing, and would hand on."""

    def __init__(self, why: str = "") -> None:
        self.why = why

    async def respond(self, prompt: str) -> str:
        return "Not like this."

    def can_approve_input(self, prompt: str) -> bool:
        return False

    def request_rework(self, prompt: str) -> str:
        return self.why

    def determine_next_agent(self, prompt: str) -> str | None:
        return "ceo"


@pytest.mark.covers("T46")
@pytest.mark.parametrize(("why", "told"), [("", "it is not approved as it is"), ("no core loop", "no core loop")])
def test_work_that_a_persona_in_python_does_not_approve_goes_back_and_not_on(why: str, told: str) -> None:
    script: Script = {
        "creative_partner": [hands("A game about tides.", "game_designer"), says("I will think about it.")],
        "ceo": [says("Worth a prototype.")],
    }
    players = Players(script)
    orchestrator = FSMOrchestrator(agents={**players.functions, "game_designer": Doubter(why)}, store="memory")
    orchestrator.say("A game about tides")
    assert players.speakers == ["creative_partner", "creative_partner"]
    assert f"REWORK: Game Designer sends your work back: {told}" in players.prompt(1)
    assert "approved:" not in orchestrator.command("!state")


def test_the_first_persona_asks_the_user_where_it_does_not_approve_what_they_say() -> None:
    players = Players({"ceo": [says("Worth a prototype.")]})
    orchestrator = FSMOrchestrator(agents={**players.functions, "creative_partner": Doubter()}, store="memory")
    orchestrator.say("A game about tides")
    assert players.speakers == []
    assert orchestrator.state == "RespondToUser"
    assert "Creative Partner asks for rework, and nobody's work is before it" in orchestrator.command("!state")


@pytest.mark.covers("T42")
@pytest.mark.parametrize("by_setting", [False, True])
def test_a_conversation_in_memory_lasts_as_long_as_its_orchestrator(
    monkeypatch: pytest.MonkeyPatch, by_setting: bool
) -> None:
    if by_setting:
        monkeypatch.setenv("MOOTHALL_STORE", "memory")
    players = Players({"creative_partner": [says("Tides."), says("And floods.")]})
    orchestrator = FSMOrchestrator(agents=players.functions, store=None if by_setting else "memory")
    assert orchestrator.say("A game about what?") == "user: A game about what?\ncreative_partner: Tides."
    assert orchestrator.say("And?") == "user: And?\ncreative_partner: And floods."
    assert len(orchestrator.history()) == 4
    orchestrator.close()
    assert orchestrator.state == "Closed"


@pytest.mark.covers("T42")
def test_the_transition_engine_reads_directives_and_settles_proposals() -> None:
    engine = TransitionEngine()
    found = engine.parse({"content": "x", "transition": "HANDOFF_TO_AGENT", "next_agent": "cfo"}, speaker="ceo")
    assert getattr(found, "next_agent", None) == "cfo"
    settled = engine.evaluate_transition(
        [{**proposal, "confidence": 1, "order": number} for number, proposal in enumerate(PROPOSALS)]
    )
    assert settled.winner == "lead_engineer"


@pytest.mark.covers("T53", "T66")
def test_the_visualizer_writes_the_line_of_the_document() -> None:
    shown = StateVisualizer()
    assert shown.change("ceo", "cfo") == "Current State: [CEO_State] → Pending: CFO_State"
    assert shown.status(Conversation(place="ceo")) == "Current State: [CEO_State]"
    assert "▸ STRATEGIC" in shown.tree(Conversation(place="ceo", speaker="ceo"))


async def test_a_persona_in_python_that_says_nothing_is_told_apart() -> None:
    with pytest.raises(NotImplementedError, match="AgentState says nothing"):
        await AgentState().reply("x")


@pytest.mark.covers("T19", "T67")
@pytest.mark.parametrize("team", ["studio", "studio_small", "software"])
async def test_every_request_carries_the_shape_of_a_reply_and_the_colleagues(team: str) -> None:
    first = shipped_team(team).start
    async with talk({first: [says("Hello.")]}, "Go", team=team) as (_, players):
        asked = players.prompt(0)
        assert '"transition"' in asked
        for target in Roster(shipped_team(team)).targets(first):
            assert f"`{target}`" in asked


async def test_what_came_next_before_counts_only_where_a_weight_is_set(tmp_path: Path) -> None:
    even = [{**proposal, "urgency": 0.5, "dependency": 0.5, "user_intent": 0.5} for proposal in PROPOSALS[1:]]
    script: Script = {
        "creative_partner": [hands("You.", "ceo"), says("Who?", proposals=even)],
        "ceo": [hands("Back.", "creative_partner"), says("I.")],
        "art_director": [says("I.")],
    }
    async with talk({name: list(lines) for name, lines in script.items()}, "Go") as (_, players):
        assert players.speakers[-1] == "ceo"
    weights = {"urgency": 0.3, "dependency": 0.3, "user_intent": 0.3, "frequency": 0.1}
    team = team_with(tmp_path, arbitration={"weights": weights})
    async with talk(script, "Go", team=team) as (session, players):
        moves = await messages_of(session.hall.store, session.run, TRANSITIONS)
        assert moves[-2]["scores"]["ceo"] > moves[-2]["scores"]["art_director"]


async def test_tools_that_are_wanted_before_the_facts_are_known_are_called_afterwards(tmp_path: Path) -> None:
    known = asyncio.Event()

    async def books() -> int:
        await known.wait()
        return 4000

    async def tide(place: str) -> str:
        return "noon"

    caller = Caller(calls("tide", place="Hull"), says("Noon it is."))
    team = with_tools(tmp_path, "tide", sources=[{"fact": "budget_left", "tool": "books"}])
    more = {"creative_partner": caller.reply, "tide": tide, "books": books}
    async with talk({}, team=team, more=more) as (session, _):
        talking = asyncio.create_task(session.type("When?"))
        while not caller.asked:  # noqa: ASYNC110
            await asyncio.sleep(0)
        known.set()
        await talking
        assert (await texts(session))[-1] == "Noon it is."


# built-in tools in a workspace, and questions of what was started


@pytest.mark.covers("T9")
async def test_with_a_workspace_personas_have_the_built_in_tools_that_they_name(tmp_path: Path) -> None:
    place = tmp_path / "w"
    place.mkdir()
    (place / "tides.txt").write_text("high water at noon")
    caller = Caller(calls("read_file", path="tides.txt"), calls("write_file", path="a", text="b"), says("Noon it is."))
    team = with_tools(tmp_path, "read_file")
    async with talk({}, "When?", team=team, more={"creative_partner": caller.reply}, workspace=place) as (session, _):
        assert "high water at noon" in caller.asked[1]
        assert "there is no tool 'write_file'; there are read_file" in caller.asked[2]
        saves = await list_saves(session.hall.store, session.run)
        assert saves, "the workspace was not saved before the conversation"


@pytest.mark.covers("T9")
@pytest.mark.parametrize("autonomy", ["auto", "review", "manual"])
@pytest.mark.parametrize(("said", "is_called"), [("!answer no", False), ("!answer yes", True), ("!approve", True)])
async def test_a_tool_that_asks_does_so_at_every_autonomy_and_is_answered_in_the_conversation(
    tmp_path: Path, autonomy: Any, said: str, is_called: bool
) -> None:
    called = []

    async def flood(place: str) -> str:
        called.append(place)
        return "flooded"

    caller = Caller(calls("flood", place="Hull"), says("So be it."))
    more, team = {"creative_partner": caller.reply, "flood": flood}, with_tools(tmp_path, "flood")
    asking = {"autonomy": autonomy, "tools": (Tool("flood", flood, policy="ask"),)}
    async with talk({}, "Flood it", team=team, more=more, **asking) as (session, _):
        shown = await session.new_questions()
        assert 'creative_partner wants to call flood with\n    {\n     "place": "Hull"\n    }' in shown
        assert "!answer 1 yes | no" in shown
        assert await session.new_questions() == ""
        assert "!answer 1 yes | no" in await session.type("!state")
        assert called == []
        assert await session.type(said) == ""
        assert called == (["Hull"] if is_called else [])
        assert ("a person said no" in caller.asked[1]) is not is_called
        assert "So be it." in await texts(session)


async def test_a_tool_that_is_denied_to_a_persona_is_not_offered_to_it(tmp_path: Path) -> None:
    place = Workspace(str(tmp_path / "w"), policies={"creative_partner:write_file": "deny"})
    caller = Caller(calls("write_file", path="a", text="b"), says("Then not."))
    team = with_tools(tmp_path, "write_file", "read_file")
    async with talk({}, "Write", team=team, more={"creative_partner": caller.reply}, workspace=place) as (session, _):
        assert "write_file is denied to creative_partner" in caller.asked[1]
        assert not (tmp_path / "w" / "a").exists()
        assert await session.type("!answer yes") == "nothing that was started here asks anything now"


# preparing personas ahead


def renders() -> int:
    return rendered_prompt.cache_info().misses


@pytest.mark.covers("T28", "T81", "T83")
async def test_who_is_warm_was_prepared_while_another_spoke_and_a_warm_handoff_renders_nothing_again(
    tmp_path: Path,
) -> None:
    team = team_with(tmp_path)
    before, prepared = renders(), asyncio.Event()
    spoken: list[int] = []

    def listen(news: News) -> None:
        if isinstance(news, Committed) and news.entry.event.name == "personas.warmed":
            prepared.set()

    async def concept(prompt: str) -> Any:
        await prepared.wait()
        spoken.append(renders() - before)
        prepared.clear()
        return hands("The design and the art matter.", "game_designer")["value"]

    async def design(prompt: str) -> Any:
        await prepared.wait()
        spoken.append(renders() - before)
        return says("It is fine.")["value"]

    async with Moothall("memory", listeners=(listen,)) as hall:
        session = await Session.begin(hall, Chosen(team), {"creative_partner": concept, "game_designer": design})
        await session.type("A design question")
        assert spoken == [2, 3], "of those who speak and those who are warm, each once"
        assert (await session.metrics())["warm_used"] == 1
        [warm] = (await session.look()).warmth.warm
        rendered = {persona for persona in session.roster.personas if is_rendered(team, persona)}
        assert rendered == {"creative_partner", "game_designer", warm.persona}
        at = time.strftime("%H:%M:%S", time.localtime(warm.at))
        assert f"warm: {warm.persona} (since turn 2, {at}, 60%)" in await session.command("!state")


def is_rendered(team: str, persona: str) -> bool:
    before = renders()
    prompt_of(team, persona)
    return renders() == before


async def test_a_model_is_opened_ahead_and_the_warm_persona_is_asked_over_that_connection() -> None:
    async with loopback(Said("unused")) as served:
        model = open_model(f"openai:tides@{served.address}")
        await open_ahead(model)
        assert (served.connections, served.asked) == (1, [])
        await model.reply(Request("ceo", "Hello", "key"))
        assert (served.connections, len(served.asked)) == (1, 1)
        await open_ahead(open_model("rehearsal"))


async def test_a_persona_that_cannot_be_prepared_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moothall.app.runs.begin.require_models", lambda *given: None)  # the script was there then
    plain = json.loads(shipped_text("studio"))
    for persona in plain["personas"]:
        if persona["id"] == "game_designer":
            persona["model"] = "scripted:nowhere.json"
    team = team_with(tmp_path, personas=plain["personas"])
    async with (
        loopback(Said(json.dumps({"content": "Hello."}))) as served,
        talk({}, "A design question", team=team, model=f"openai:x@{served.address}") as (session, _),
    ):
        events = [entry["event"] for entry in await session.hall.store.entries(session.run)]
        [warmed] = [event for event in events if event["name"] == "personas.warmed"]
        assert "nowhere.json" in warmed["failed"]["game_designer"]
        assert (await texts(session))[-1] == "Hello."


async def test_a_persona_with_a_model_that_is_none_is_refused_before_anybody_speaks(tmp_path: Path) -> None:
    plain = json.loads(shipped_text("studio"))
    plain["personas"][0]["model"] = "nobody:knows"
    team = team_with(tmp_path, personas=plain["personas"])
    with pytest.raises(DefinitionError, match="'nobody:knows' is not a model"):
        async with talk({}, "A design question", team=team, model="openai:x@http://127.0.0.1:9"):
            pass


@pytest.mark.covers("T14", "T70")
async def test_a_team_file_says_how_much_stays_raw_and_how_many_summaries_there_are(tmp_path: Path) -> None:
    team = team_with(tmp_path, memory={"compression_threshold": 3, "max_embeddings": 1})
    script: Script = {"creative_partner": [says(f"Idea {number}.") for number in range(6)]}
    async with talk(script, *(f"Word {number}" for number in range(6)), team=team) as (session, _):
        memory = (await session.look()).memory
        assert len(memory.raw) <= 3
        assert len(memory.summaries) == 1


TO_AND_FRO: Script = {
    "creative_partner": [hands(f"Idea {number}.", "ceo") for number in range(12)],
    "ceo": [*(hands(f"Thought {number}.", "creative_partner") for number in range(11)), says("Enough.")],
}


@pytest.mark.covers("T82")
@pytest.mark.parametrize("predictor", ["seed", "learned"])
async def test_a_habit_is_foreseen_by_the_rule_and_by_the_predictor_that_learns(tmp_path: Path, predictor: str) -> None:
    team = team_with(tmp_path, warming={"predictor": predictor, "keep_turns": 2}, rules=[])
    async with talk(TO_AND_FRO, "Go", team=team) as (session, _):
        data = await session.look()
        assert bool(data.habits.habits) is (predictor == "learned")
        assert data.used_warm >= 10
        assert data.warmth.keep_turns == 2
        chances = Learned.of(session.roster.team.tables(), data.habits).chances("ceo", ())
        likeliest = max(chances, key=chances.__getitem__)
        assert predictor == "seed" or likeliest == "creative_partner"
