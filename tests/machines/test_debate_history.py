"""What is kept: each message once, summaries per agent, the digest of what a debate is about."""

from dataclasses import replace

import pytest

from moothall.kernel.codec import decode, encode
from moothall.machines.debate.definition import AgentConfig, Configuration, DebateConfig, Summarization
from moothall.machines.debate.state import Debate, Evaluation, Proposal, Questions, Summary
from tests.machines.debates import ANN, BOB, CAT, Panel, begun, path, played, settled, state

AGAIN = {("evaluate", "judge"): [Evaluation(10)]}
LONG = {("refine", name): [Proposal(f"{name} " * 100)] for name in (ANN, BOB, CAT)}
EARLY = Summarization(threshold=100, maxLength=50)


@pytest.mark.covers("D17")
def test_each_agent_decides_for_itself_whether_it_needs_a_summary() -> None:
    seats = [
        AgentConfig("patient", summarization=Summarization(threshold=10**9)),
        AgentConfig("never", summarization=Summarization(enabled=False)),
    ]
    panel = Panel({**AGAIN, **LONG})
    played(begun(seats=seats, rounds=2, summarization=EARLY), panel)
    assert {ask.agent for ask in panel.asks("summarise")} == {ANN, BOB, CAT, "judge"}


@pytest.mark.covers("D17")
def test_nothing_is_summarised_below_the_threshold() -> None:
    panel = Panel(AGAIN)
    played(begun(rounds=3), panel)
    assert panel.count("summarise") == 0


@pytest.mark.covers("D17")
def test_a_summary_is_of_what_was_said_since_the_last_one_with_that_one_in_front() -> None:
    panel = Panel({**AGAIN, **LONG, ("summarise", ANN): [Summary("first"), Summary("second")]})
    played(begun(rounds=3, summarization=EARLY), panel)
    [first, second] = panel.asks("summarise", ANN)
    assert first.windows["history"].last == 12
    assert second.windows["history"].last == 9
    assert (first.arguments["summary"], second.arguments["summary"]) == ("", "The debate so far:\nfirst\n")
    shown = [ask.arguments["summary"] for ask in panel.asks("refine", ANN)]
    assert shown == ["", "The debate so far:\nfirst\n", "The debate so far:\nsecond\n"]


@pytest.mark.covers("D17")
def test_a_summary_is_cut_at_its_length() -> None:
    panel = Panel({**AGAIN, **LONG, ("summarise", ANN): [Summary("x" * 80)]})
    simulation = played(begun(rounds=2, summarization=EARLY), panel)
    assert state(simulation).contexts[ANN] == "x" * 50
    assert panel.asks("summarise", ANN)[0].arguments["most"] == "50"


def test_an_agent_that_cannot_summarise_goes_on_with_what_it_had() -> None:
    panel = Panel({**AGAIN, **LONG})
    panel.fails["summarise", ANN] = 9
    simulation = settled(begun(rounds=2, summarization=EARLY), panel)
    assert simulation.active == ("Complete",)
    assert "round 2: ann has no summary: ann is ill" in state(simulation).carried
    assert panel.asks("refine", ANN)[1].arguments["summary"] == ""


def test_the_judge_summarises_first_where_the_history_is_long() -> None:
    panel = Panel(LONG)
    simulation = played(begun(summarization=EARLY), panel)
    assert [ask.template for ask in panel.asked if ask.agent == "judge"] == ["evaluate", "summarise", "synthesise"]
    assert panel.asks("synthesise")[0].arguments["summary"] == "The debate so far:\nsummary for judge\n"
    assert path(simulation)[-2:] == ["Synthesis", "Complete"]


def test_a_judge_that_cannot_summarise_writes_without() -> None:
    panel = Panel(LONG)
    panel.fails["summarise", "judge"] = 9
    simulation = settled(begun(summarization=EARLY), panel)
    assert simulation.active == ("Complete",)
    assert panel.asks("synthesise")[0].arguments["summary"] == ""


def test_prompts_of_ones_own_take_the_place_of_the_shipped_ones() -> None:
    seat = AgentConfig("dan", clarificationPromptPath="q.md", summaryPromptPath="s.md", systemPromptPath="me.md")
    data = begun(seats=[seat], interactiveClarifications=True, rounds=2, summarization=EARLY)
    data = replace(data, prompts={"q.md": "Ask {most}.", "s.md": "Shorten {history}.", "me.md": "You are Dan."})
    panel = Panel({**AGAIN, **LONG, ("Shorten {history}.", "dan"): [Summary("short")]})
    panel.replies = {**panel.replies, ("Ask {most}.", "dan"): [Questions()]}
    played(data, panel)
    assert panel.count("Ask {most}.", "dan") == panel.count("Shorten {history}.", "dan") == 1
    assert all(ask.system == "You are Dan." for ask in panel.asked if ask.agent == "dan")


def test_each_message_is_appended_once_and_the_data_keep_the_current_drafts_only() -> None:
    panel = Panel({**AGAIN})
    simulation = played(begun(rounds=3), panel)
    said = [append.message["text"] for step in simulation.steps for append in step.appends]
    assert len(said) == 3 + 3 * (3 * 2 + 3)
    assert state(simulation).spoken.messages == len(said)
    assert state(simulation).spoken.characters == sum(map(len, said))
    assert set(state(simulation).proposals) == {ANN, BOB, CAT}


def test_a_debate_can_be_stored_and_read_back_at_every_step() -> None:
    simulation = settled(begun(rounds=2, interactiveClarifications=True), Panel(AGAIN))
    for step in simulation.steps:
        data = step.snapshot.data
        assert decode(Debate, encode(data), "data") == data


@pytest.mark.parametrize("problem", ["", "  \n"])
def test_an_empty_problem_is_no_problem(problem: str) -> None:
    with pytest.raises(ValueError, match="the problem is empty"):
        Debate(problem)


def test_the_defaults_are_those_that_were_settled() -> None:
    chosen = DebateConfig()
    assert (chosen.rounds, chosen.terminationCondition.threshold, chosen.timeoutPerRound) == (3, 80, 300_000)
    assert (chosen.clarificationsMaxIterations, chosen.clarificationsMaxPerAgent) == (3, 5)
    assert (chosen.summarization.threshold, chosen.summarization.maxLength) == (5_000, 2_500)
    assert [agent.id for agent in Configuration().panel] == ["architect", "performance", "kiss"]
