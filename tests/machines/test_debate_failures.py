"""RETRY, FALLBACK and FAILED: who failed is asked again alone, then replaced or left out, and the result says so."""

from collections import Counter

import pytest

from moothall.agents.ask import AskAgent, Replied
from moothall.kernel.events import GaveUp
from moothall.machines.debate.definition import AgentConfig, Answers
from moothall.machines.debate.result import result_of
from moothall.machines.debate.state import Evaluation, Proposal
from tests.machines.debates import ANN, BOB, CAT, CLOSED, Panel, begun, events, path, played, proposals, settled, state

NAMES = (ANN, BOB, CAT)
NODES = {"propose": "Proposal", "critique": "Critique", "refine": "Refinement"}
AGAIN = {("evaluate", "judge"): [Evaluation(10)]}


def ill(template: str, *names: str, times: int = 99) -> Panel:
    return Panel(fails=Counter({(template, name): times for name in names}))


@pytest.mark.covers("D3", "D27")
@pytest.mark.parametrize("template", NODES)
def test_a_node_that_is_done_again_asks_only_those_that_failed(template: str) -> None:
    panel = ill(template, BOB, times=1)
    simulation = settled(begun(), panel)
    assert [panel.count(template, name) for name in NAMES] == [1, 2, 1]
    assert events(simulation).count("RETRY") == 1
    assert "FALLBACK" not in events(simulation)
    assert simulation.active == ("Complete",)
    assert state(simulation).left_out == {}


@pytest.mark.covers("D27")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_node_is_done_again_as_often_as_is_configured_each_time_after_a_longer_pause(retries: int) -> None:
    panel = ill("propose", BOB)
    simulation = played(begun(retries=retries), panel)
    moments = []
    while simulation.active == ("Proposal",):
        simulation.tick()
        moments.append(simulation.now)
    assert moments == [1.0, 3.0, 7.0][:retries]
    assert panel.count("propose", BOB) == retries + 1
    assert panel.count("propose", ANN) == 1


@pytest.mark.covers("D3", "D27")
def test_an_agent_without_a_proposal_is_left_out_and_the_result_names_it() -> None:
    simulation = settled(begun(), ill("propose", BOB))
    assert "FALLBACK" in events(simulation)
    told = {agent["id"]: agent["status"] for agent in result_of(state(simulation))["agents"]}
    assert told == {ANN: "took part", BOB: "left out: bob is ill", CAT: "took part"}


@pytest.mark.covers("D3", "D27")
def test_an_agent_that_cannot_refine_carries_over_its_proposal() -> None:
    panel = ill("refine", BOB)
    simulation = settled(begun(), panel)
    assert state(simulation).proposals[BOB].text == "draft of bob"
    assert result_of(state(simulation))["notes"] == ["round 1: bob carried over its proposal: bob is ill"]
    assert "draft of bob" in panel.asks("synthesise")[0].arguments["arguments"]


def test_an_agent_that_cannot_refine_is_left_out_where_so_configured() -> None:
    simulation = settled(begun(fallback="leave"), ill("refine", BOB))
    assert state(simulation).left_out == {BOB: "bob is ill"}
    assert simulation.active == ("Complete",)


def test_a_lost_agent_ends_the_debate_where_so_configured_with_what_was_reached() -> None:
    simulation = settled(begun(fallback="fail"), ill("refine", BOB))
    assert simulation.active == ("Failed",)
    told = result_of(state(simulation))
    assert "bob is ill" in told["reason"]
    assert told["solution"]["description"].startswith("draft of ")


@pytest.mark.covers("D27")
def test_a_debate_that_nobody_is_left_in_fails_and_says_why() -> None:
    simulation = settled(begun(), ill("propose", *NAMES))
    assert path(simulation)[-1] == "Failed"
    assert events(simulation)[-2:] == ["FALLBACK", "FAILED"]
    told = result_of(state(simulation))
    assert told["reason"] == "no agent is left: ann: ann is ill; bob: bob is ill; cat: cat is ill"
    assert told["solution"] is None


def test_a_critic_that_fails_costs_its_review_and_not_its_seat() -> None:
    panel = ill("critique", BOB)
    simulation = settled(begun(), panel)
    assert state(simulation).left_out == {}
    assert state(simulation).carried == ("round 1: bob wrote no critique: bob is ill",)
    assert "bob on" not in panel.asks("refine", ANN)[0].arguments["critiques"]
    assert panel.count("refine") == 3


def test_where_no_critique_came_everybody_is_told_how_many_are_missing() -> None:
    panel = ill("critique", *NAMES)
    simulation = settled(begun(), panel)
    assert simulation.active == ("Complete",)
    missing = "2 of 2 critiques are missing: they did not come or could not be read."
    assert [ask.arguments["critiques"] for ask in panel.asks("refine")] == [missing] * 3


def test_a_judge_that_cannot_be_had_is_replaced_by_what_is_measured() -> None:
    simulation = settled(begun(rounds=2), ill("evaluate", "judge"))
    notes = [note for note in state(simulation).carried if "the judge gave no evaluation" in note]
    assert len(notes) == 2
    assert state(simulation).history[0].confidence == pytest.approx(100 * state(simulation).history[0].agreement)
    assert simulation.active == ("Complete",)


def test_a_judge_that_writes_no_solution_is_replaced_by_the_best_proposal() -> None:
    surest = Panel({("refine", CAT): [Proposal("the north way", "A", 99)]}, Counter({("synthesise", "judge"): 9}))
    simulation = settled(begun(), surest)
    told = result_of(state(simulation))
    assert simulation.active == ("Complete",)
    assert (told["solution"]["description"], told["solution"]["confidence"]) == ("the north way", 50)
    assert told["notes"] == ["the judge wrote no solution: judge is ill"]
    assert surest.count("synthesise") == 2
    assert surest.count("rank") == 3


def test_a_ranking_that_does_not_come_is_no_loss() -> None:
    panel = ill("rank", ANN)
    simulation = settled(begun(), panel)
    assert simulation.active == ("Complete",)
    assert panel.count("rank", ANN) == 1
    assert set(state(simulation).rankings) == {BOB, CAT}


def test_a_check_that_cannot_be_made_is_done_without_and_noted() -> None:
    panel = Panel(check=lambda answer: GaveUp("the compiler is gone"))
    simulation = settled(begun(answer=CLOSED, check="compiles"), panel)
    assert simulation.active == ("Complete",)
    assert state(simulation).carried == ("an answer could not be checked: the compiler is gone",)
    assert state(simulation).termination.reason == "vote"


def test_an_agent_has_other_models_to_fall_back_on() -> None:
    panel = Panel()
    seat = AgentConfig("dan", model="large", provider="openai", fallback=("small", "local:tiny"), temperature=0.3)
    played(begun(seats=[seat]), panel)
    asks = panel.asks("propose", "dan") + panel.asks("critique", "dan") + panel.asks("refine", "dan")
    assert {(ask.model, ask.fallback, ask.temperature) for ask in asks} == {
        ("openai:large", ("small", "local:tiny"), 0.3)
    }


def test_a_failure_in_one_round_does_not_use_up_the_retries_of_the_next() -> None:
    panel = Panel(AGAIN, Counter({("refine", BOB): 1}))
    simulation = played(begun(rounds=2), panel)
    simulation.advance(1)
    assert state(simulation).rounds == 2
    assert panel.count("refine", BOB) == 3


# time


@pytest.mark.covers("D38")
def test_when_the_time_is_over_a_missing_agent_carries_over_its_last_proposal() -> None:
    panel = Panel(silent={("refine", CAT)})
    simulation = played(begun(timeoutPerRound=60_000), panel)
    simulation.advance(59)
    assert simulation.active == ("Refinement",)
    simulation.advance(1)
    assert simulation.active == ("Complete",)
    assert state(simulation).proposals[CAT].text == "draft of cat"
    assert state(simulation).carried == ("round 1: cat carried over its proposal: it took longer than timeoutPerRound",)
    assert [name for name in events(simulation) if name in ("ROUND_TIMEOUT", "FALLBACK")] == [
        "ROUND_TIMEOUT",
        "FALLBACK",
    ]


@pytest.mark.covers("D38")
def test_a_missing_agent_without_a_proposal_is_left_out_and_the_result_says_so() -> None:
    panel = Panel(silent={("propose", CAT)})
    simulation = played(begun(timeoutPerRound=60_000), panel)
    simulation.advance(60)
    assert simulation.active == ("Complete",)
    told = {agent["id"]: agent["status"] for agent in result_of(state(simulation))["agents"]}
    assert told[CAT] == "left out: it took longer than timeoutPerRound"


@pytest.mark.covers("D38")
def test_nobody_is_asked_any_more_in_a_round_whose_time_is_over() -> None:
    panel = Panel({("evaluate", "judge"): [Evaluation(10), Evaluation(90)]}, silent={("propose", CAT)})
    simulation = played(begun(timeoutPerRound=60_000), panel)
    simulation.advance(60)
    assert (panel.count("critique"), panel.count("refine")) == (2, 2)
    assert [known.number for known in state(simulation).history] == [1, 2]


def test_time_that_runs_out_in_a_pause_asks_nobody_again() -> None:
    panel = Panel(fails=Counter({("propose", CAT): 1}), check=lambda answer: True)
    data = begun(timeoutPerRound=500, answer=CLOSED, check="compiles")
    simulation = settled(data, panel)
    assert simulation.active == ("Complete",)
    assert panel.count("propose", CAT) == 1
    assert state(simulation).left_out == {CAT: "cat is ill"}


def test_a_reply_that_comes_after_its_time_changes_nothing() -> None:
    data = begun(timeoutPerRound=1_000, answer=Answers("choice", ("A", "B")), check="compiles")
    panel = Panel(silent={("propose", CAT)}, check=lambda answer: None)
    simulation = played(data, panel)
    [late] = [wanted for wanted in simulation.open if isinstance(wanted.effect, AskAgent)]
    simulation.advance(1)
    before = simulation.snapshot
    simulation.send(Replied(CAT, value=proposals("B")[0], id=CAT), within=late.owner)
    assert simulation.snapshot == before
