"""Votes: closed answers pooled over rounds, gates, checks, ties, flips, and how many voices a panel is worth."""

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.machines.debate.definition import Answers
from moothall.machines.debate.result import result_of
from moothall.machines.debate.state import Debate, Evaluation, Proposal, Ranking, Solution
from moothall.machines.debate.votes import (
    effective_voices,
    flips,
    normalise,
    pool_rounds,
    ranked_choice,
    similarity,
    tally,
    weigh_ballots,
    weigh_voices,
)
from tests.machines.debates import (
    ANN,
    BOB,
    CAT,
    CLOSED,
    Key,
    Panel,
    begun,
    events,
    path,
    played,
    proposals,
    settled,
    state,
)

NUMBER = Answers("number")
NAMES = (ANN, BOB, CAT)


def voting(*answers: str, later: tuple[str, ...] = (), judge: str = "") -> Panel:
    """A panel that drafts these answers, and refines to those."""
    replies: dict[Key, list[Any]] = {
        ("propose", name): proposals(answer) for name, answer in zip(NAMES, answers, strict=True)
    }
    replies |= {("refine", name): proposals(answer) for name, answer in zip(NAMES, later or answers, strict=True)}
    replies["synthesise", "judge"] = [Solution("as they say", answer=judge)]
    return Panel(replies)


def told(data: Debate) -> Mapping[str, Any]:
    return result_of(data)


# answers as they are compared


@pytest.mark.parametrize(
    ("answer", "kind", "normal"),
    [
        ("A", CLOSED, "A"),
        ("(a).", CLOSED, "A"),
        ("Option b", CLOSED, "B"),
        (' "**A**" ', CLOSED, "A"),
        ("The answer is B", CLOSED, ""),
        ("not A", CLOSED, ""),
        ("A or B", CLOSED, ""),
        ("nothing", CLOSED, ""),
        ("", CLOSED, ""),
        ("42", NUMBER, "42"),
        ("42.0", NUMBER, "42"),
        ("1,000", NUMBER, "1000"),
        ('"42."', NUMBER, "42"),
        (".5", NUMBER, "0.5"),
        ("1,000 apples", NUMBER, ""),
        ("1,5", NUMBER, ""),
        ("from 3 to 7", NUMBER, ""),
        ("1e999", NUMBER, ""),
        ("50%", NUMBER, "0.5"),
        ("none", NUMBER, ""),
        ("  Two   Words! ", Answers(), "two words"),
    ],
)
def test_answers_are_compared_by_what_they_mean(answer: str, kind: Answers, normal: str) -> None:
    assert normalise(answer, kind) == normal


@given(st.text(), st.sampled_from([CLOSED, NUMBER, Answers()]))
def test_what_is_normal_stays_as_it_is(answer: str, kind: Answers) -> None:
    assert normalise(normalise(answer, kind), kind) == normalise(answer, kind)


@given(st.lists(st.sampled_from(["A", "B", "C", ""])))
def test_a_tally_counts_what_was_answered(answers: list[str]) -> None:
    counted = tally(answers)
    given_answers = [answer for answer in answers if answer]
    assert sum(counted.counts.values()) == len(given_answers)
    if counted.leader:
        assert all(
            number < counted.counts[counted.leader]
            for answer, number in counted.counts.items()
            if answer != counted.leader
        )
    assert counted.is_tie == (bool(given_answers) and not counted.leader)
    assert not (counted.is_majority and counted.is_tie)


def test_the_pooled_vote_counts_every_round_alike() -> None:
    assert pool_rounds([{"a": "A", "b": "B", "c": "B"}, {"a": "A", "b": "A", "c": "A"}]).leader == "A"


def test_flips_are_counted_from_round_to_round() -> None:
    rounds = [{"a": "A", "b": "B"}, {"a": "B", "b": "B"}, {"a": "A"}]
    assert flips(rounds) == {"a": 2, "b": 0}


# protocols


@pytest.mark.parametrize(
    ("answers", "ends"), [(("A", "A", "A"), True), (("A", "A", "B"), True), (("A", "B", "C"), False)]
)
def test_a_gated_debate_debates_only_where_no_majority_holds(answers: tuple[str, ...], ends: bool) -> None:
    panel = voting(*answers)
    simulation = played(begun(answer=CLOSED), panel)
    assert ("Critique" not in path(simulation)) is ends
    assert told(state(simulation))["protocol"] == "gated"
    assert (panel.count("critique") == 0) is ends


@pytest.mark.parametrize("answers", [("A", "A", "B"), ("A", "B", "C")])
def test_a_vote_never_debates(answers: tuple[str, ...]) -> None:
    panel = voting(*answers, judge="B")
    simulation = played(begun(answer=CLOSED, protocol="vote"), panel)
    assert path(simulation)[-3:] == ["Proposal", "Synthesis", "Complete"]
    assert panel.count("critique") == panel.count("refine") == panel.count("evaluate") == 0


def test_an_open_answer_is_debated_unless_set_otherwise() -> None:
    assert told(state(played(begun())))["protocol"] == "debate"
    assert "Critique" not in path(played(begun(protocol="vote")))


def test_the_vote_pooled_over_rounds_is_the_answer_whatever_the_judge_writes() -> None:
    panel = voting("A", "B", "C", later=("A", "A", "C"), judge="C")
    panel.replies = {**panel.replies, ("evaluate", "judge"): [Evaluation(0)]}
    simulation = played(begun(answer=CLOSED, rounds=1), panel)
    answer = told(state(simulation))
    assert (answer["solution"]["answer"], answer["votes"]["counts"]) == ("A", {"A": 3, "B": 1, "C": 2})
    assert answer["votes"]["how"] == "closed answers, pooled over rounds, weighed by confidence"
    assert {agent["id"]: agent["flips"] for agent in answer["agents"]} == {ANN: 0, BOB: 1, CAT: 0}
    assert "this is the answer; explain it" in panel.asks("synthesise")[0].arguments["vote"]


@pytest.mark.parametrize(("judge", "answer"), [("B", "B"), ("c.", "C")])
def test_a_tie_is_an_event_and_the_judge_decides_between_the_leaders(judge: str, answer: str) -> None:
    panel = voting("A", "B", "C", judge=judge)
    simulation = played(begun(answer=CLOSED, protocol="vote"), panel)
    assert "TIE" in events(simulation)
    assert told(state(simulation))["solution"]["answer"] == answer
    assert "the vote was a tie; the judge decided between the leaders" in state(simulation).carried


def test_a_tie_that_the_judge_does_not_decide_has_no_answer() -> None:
    simulation = played(begun(answer=CLOSED, protocol="vote"), voting("A", "B", "C", judge="nonsense"))
    assert simulation.active == ("Failed",)
    result = told(state(simulation))
    assert result["solution"]["answer"] == ""
    assert result["reason"] == (
        "no answer: the vote is a tie (A: 1, B: 1, C: 1), and the judge chose none of the leaders"
    )
    assert "the vote was a tie, and nobody decided between the leaders" in state(simulation).carried


# everybody is in the denominator


def test_who_cannot_be_read_abstains_and_is_a_part_of_the_panel() -> None:
    simulation = played(begun(answer=CLOSED, protocol="vote"), voting("A", "rubbish", ""))
    result = told(state(simulation))
    assert (result["votes"]["counts"], result["votes"]["abstained"]) == ({"A": 1}, 2)
    assert result["votes"]["share"] == pytest.approx(1 / 3, abs=1e-4)
    assert result["agreement"] == pytest.approx(100 / 3, abs=0.01)
    assert [(known["agent"], known["round"], known["reason"]) for known in result["abstentions"]] == [
        (BOB, 0, "its answer is not one of A, B, C: rubbish"),
        (CAT, 0, "it gave no answer"),
    ]
    assert "CONSENSUS_REACHED" not in events(simulation)


@pytest.mark.parametrize("protocol", ["gated", "debate"])
def test_one_readable_answer_of_three_is_no_consensus(protocol: str) -> None:
    panel = voting("A", "", "rubbish")
    simulation = played(begun(answer=CLOSED, protocol=protocol, rounds=2), panel)
    assert "CONSENSUS_REACHED" not in events(simulation)
    assert state(simulation).termination.reason == "max_rounds"
    assert {known.agreement for known in state(simulation).history} == {0.3333}


def test_an_agent_that_fails_is_counted_among_those_who_took_part() -> None:
    panel = voting("A", "A", "A")
    panel.fails.update({("propose", name): 9 for name in (BOB, CAT)})
    result = told(state(settled(begun(answer=CLOSED, protocol="vote"), panel)))
    assert (result["votes"]["share"], result["votes"]["abstained"]) == (pytest.approx(1 / 3, abs=1e-4), 2)
    assert [known["reason"] for known in result["abstentions"]] == ["bob is ill", "cat is ill"]


def test_in_a_gated_vote_an_abstainer_weighs_as_much_as_the_others_on_average() -> None:
    ballots = weigh_voices({ANN: "A", BOB: "B", CAT: "", "dan": "A"}, {ANN: 80, BOB: 20, CAT: 100})
    assert [ballot.weight for ballot in ballots] == [80, 20, 50, 50]
    counted = weigh_ballots(ballots)
    assert (counted.leader, counted.share) == ("A", 0.65)


def test_where_nobody_says_how_sure_it_is_all_voices_weigh_alike() -> None:
    assert [ballot.weight for ballot in weigh_voices({ANN: "A", BOB: ""}, {})] == [1, 1]


def test_an_open_debate_in_which_others_failed_does_not_agree_with_itself() -> None:
    panel = Panel(fails=Counter({("propose", name): 9 for name in (BOB, CAT)}))
    simulation = settled(begun(rounds=1), panel)
    assert state(simulation).history[0].agreement == 0
    assert set(state(simulation).history[0].abstained) == {BOB, CAT}


def test_who_ranks_nothing_gives_nobody_points_and_is_told() -> None:
    panel = Panel({("rank", ANN): [Ranking(("X", "nobody"))]}, fails=Counter({("rank", BOB): 1}))
    result = told(state(played(begun(), panel)))
    assert result["votes"]["abstained"] == [ANN, BOB]
    assert result["votes"]["ranking"][CAT] == 0
    assert sum(result["votes"]["ranking"].values()) == pytest.approx(0.5)
    assert "ann ranked no drafts: none of its labels is one of A, B" in result["notes"]


def test_numbers_are_voted_on_by_value() -> None:
    simulation = played(begun(answer=NUMBER), voting("42", "42.0", "7"))
    assert told(state(simulation))["solution"]["answer"] == "42"


# checks


def test_a_majority_that_the_check_rejects_is_debated() -> None:
    panel = voting("A", "A", "B")
    panel.check = lambda answer: "it does not compile"
    simulation = played(begun(answer=CLOSED, check="compiles"), panel)
    assert panel.checked == ["A", "B"]
    assert "Critique" in path(simulation)
    assert "A: it does not compile" in panel.asks("refine")[0].arguments["steering"]


def test_where_the_check_rejects_the_leader_and_accepts_another_answer_that_one_is_it() -> None:
    panel = voting("A", "A", "B", judge="A")
    panel.check = lambda answer: answer == "B"
    simulation = played(begun(answer=CLOSED, check="compiles"), panel)
    assert panel.checked == ["A", "B"]
    assert told(state(simulation))["solution"]["answer"] == "B"
    assert "Critique" not in path(simulation)


def test_an_answer_that_the_check_rejects_does_not_win_a_debate_that_has_another() -> None:
    panel = voting("A", "A", "A", later=("A", "A", "B"))
    panel.check = lambda answer: False
    simulation = played(begun(answer=CLOSED, check="compiles", rounds=1), panel)
    assert told(state(simulation))["solution"]["answer"] == "B"


def test_in_a_gated_debate_voices_weigh_as_much_as_they_are_sure() -> None:
    sure = {("propose", ANN): [Proposal("sure", "A", 90)], ("propose", BOB): [Proposal("unsure", "B", 20)]}
    panel = Panel({**sure, ("propose", CAT): [Proposal("unsure", "B", 20)]})
    simulation = played(begun(answer=CLOSED), panel)
    assert told(state(simulation))["solution"]["answer"] == "A"
    plain = played(begun(answer=CLOSED, protocol="vote"), panel)
    assert told(state(plain))["solution"]["answer"] == "B"


@pytest.mark.parametrize("verdict", [True, None, ""])
def test_a_majority_that_the_check_accepts_stands(verdict: Any) -> None:
    panel = voting("A", "A", "B")
    panel.check = lambda answer: verdict
    simulation = played(begun(answer=CLOSED, check="compiles"), panel)
    assert "Critique" not in path(simulation)


@pytest.mark.parametrize(
    ("verdict", "why"), [(False, "the check rejects it"), ("it does not compile", "it does not compile")]
)
def test_the_check_says_why(verdict: Any, why: str) -> None:
    panel = voting("A", "A", "B")
    panel.check = lambda answer: verdict
    simulation = played(begun(answer=CLOSED, check="compiles", protocol="vote"), panel)
    assert state(simulation).checks == {"A": why, "B": why}


def test_a_debate_without_a_check_checks_nothing() -> None:
    panel = voting("A", "A", "B")
    played(begun(answer=CLOSED), panel)
    assert panel.checked == []


# open answers


def test_the_ranked_choice_over_anonymous_drafts_is_reported_beside_an_open_answer() -> None:
    votes = told(state(played(begun())))["votes"]
    assert votes["how"] == "ranked choice over anonymous drafts"
    assert set(votes["ranking"]) == set(NAMES)


def test_nobody_has_a_say_in_its_own_rank() -> None:
    points = ranked_choice({"a": ["a", "b", "c"], "b": ["b", "c", "a"], "c": ["c", "b", "a"]}, ["a", "b", "c"])
    assert points == {"a": 0.0, "b": 1.0, "c": 0.5}


@given(st.lists(st.text(), max_size=5))
def test_likeness_is_a_share(texts: list[str]) -> None:
    assert 0 <= similarity(texts) <= 1 + 1e-9


def test_texts_are_alike_by_their_words() -> None:
    assert similarity(["one two", "Two, one!"]) == pytest.approx(1)
    assert similarity(["one", "two"]) == 0
    assert similarity(["alone"]) == 1


# voices


def panel_of(number: int, correlation: float, questions: int = 400) -> list[dict[str, str]]:
    chance = random.Random(7)

    def draw() -> str:
        return chance.choice("ABCD")

    rows = []
    for _ in range(questions):
        shared = draw()
        rows.append({f"a{at}": shared if chance.random() < math.sqrt(correlation) else draw() for at in range(number)})
    return rows


@pytest.mark.parametrize(("correlation", "low", "high"), [(0.0, 4.5, 5.0), (0.36, 1.8, 2.4), (1.0, 1.0, 1.0)])
def test_voices_that_agree_beyond_chance_count_for_less(correlation: float, low: float, high: float) -> None:
    assert low <= effective_voices(panel_of(5, correlation)) <= high


def test_a_panel_of_one_is_one_voice_and_a_panel_of_none_is_none() -> None:
    assert (effective_voices([{"a": "A"}]), effective_voices([])) == (1, 0)


def test_a_gated_debate_in_which_nobody_can_be_read_ends_after_a_round_without_an_answer() -> None:
    simulation = played(begun(answer=CLOSED), voting("x", "y", "z"))
    assert (state(simulation).rounds, state(simulation).termination.reason) == (1, "no_answers")
    assert "MAX_ROUNDS_REACHED" in events(simulation)
    assert simulation.active == ("Failed",)
    assert state(simulation).reason.startswith("no answer: nobody chose an option; ann: its answer is not one of")
