"""Conversations of a team: who speaks next and why, what is kept, and what a person can do about it."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.app.kinds.team.files import machine_of
from moothall.app.kinds.team.present import WIDTH, messages_of, state_tree, status_line
from moothall.app.kinds.team.session import Chosen, Session, figures
from moothall.machines.team.definition import Roster, shipped_team, shipped_text
from moothall.machines.team.state import THREAD, TRANSITIONS, Conversation
from moothall.team import AgentState, FSMOrchestrator, StateVisualizer, TransitionEngine
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


@pytest.mark.covers("T18", "T46", "T49", "T5")
async def test_everybody_sees_the_work_before_them_with_its_author_and_what_is_wrong_with_theirs() -> None:
    async with talk(HAND_OFF, "A game about tides") as (session, players):
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


@pytest.mark.covers("T44")
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
    async with talk(script, "Go", "Two months") as (session, players):
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
    ],
)
async def test_what_cannot_be_followed_is_shown_back_once_and_stays_out_of_the_conversation(
    reply: Any, told: str
) -> None:
    async with talk({"creative_partner": [reply, says("Once more.")]}, "Go") as (session, players):
        assert f"Your last reply cannot be used: " in players.prompt(1)
        assert told in players.prompt(1)
        assert await texts(session) == ["Go", "Once more."]
        assert [to for _, to, _, _ in await ways(session)] == ["creative_partner", "RespondToUser"]


@pytest.mark.covers("T17", "T22")
async def test_a_second_reply_that_cannot_be_followed_gives_the_user_the_word() -> None:
    bad = says("x", transition="FLY")
    async with talk({"creative_partner": [bad, bad]}, "Go") as (session, players):
        data = await session.look()
        assert data.place == "RespondToUser"
        assert data.reason.startswith("Creative Partner gave no reply that can be followed")
        assert (await ways(session))[-1][2:] == ("unusable_reply", "system")
        assert await texts(session) == ["Go"]


@pytest.mark.covers("T44")
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


@pytest.mark.covers("T13", "T26", "T33", "T38", "T78")
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
        "creative_partner": [says("Multiplayer, and the budget is a concern.", proposals=PROPOSALS)],
        "cfo": [says("Too dear.")],
        "cmo": [says("It sells.")],
    }
    async with talk({**script, "creative_partner": script["creative_partner"] * 2}, "Go") as (session, players):
        assert (await ways(session))[1] == ("creative_partner", "cfo", "budget_review", "rules")
        await session.type("!handoff cmo")
        assert players.speakers[-1] == "cmo"
        assert (await ways(session))[-2][2:] == ("user", "user")


@pytest.mark.covers("T39", "T4")
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
    async with talk(script, "Go") as (session, players):
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
    async with talk(script, "Go", team=team_with(tmp_path, limits=limits)) as (session, players):
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
