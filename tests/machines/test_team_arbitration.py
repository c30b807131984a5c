"""Who is next among those who propose: settled in decimals, explained, the same in every order."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.errors import DefinitionError
from moothall.machines.team.arbitration import Arbitration, Proposal, arbitrate, sample
from moothall.machines.team.preference import Label, Preference, fit

VECTORS = Path(__file__).parents[3] / "shared" / "team" / "arbitration.json"


def vectors() -> list[Any]:
    if not VECTORS.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason="the shared vectors are not here"))]
    return [pytest.param(vector, id=vector["id"]) for vector in json.loads(VECTORS.read_text("utf-8"))]


def as_meant(value: Any) -> Any:
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


@pytest.mark.parametrize("vector", vectors())
def test_a_vector_of_the_team_comes_out_as_expected(vector: dict[str, Any]) -> None:
    proposals = [{key: as_meant(value) for key, value in proposal.items()} for proposal in vector["proposals"]]
    weights = vector.get("weights") and {key: as_meant(value) for key, value in vector["weights"].items()}
    expect = vector["expect"]
    if "error" in expect:
        with pytest.raises(ValueError, match=expect["error"]) as caught:
            arbitrate(proposals, blocking=vector["blocking"], weights=weights)
        assert isinstance(caught.value, DefinitionError)
        return
    got = arbitrate(proposals, blocking=vector["blocking"], weights=weights)
    assert got.winner == expect["winner"]
    assert got.by in ([expect["by"]] if isinstance(expect["by"], str) else expect["by"])
    assert got.scores == pytest.approx(expect["scores"], abs=1e-9)
    assert set(got.losers) == set(expect["scores"]) - {got.winner}


SCENARIO_A = (
    Proposal("LeadEngineer", 0.8, 0.9, 0.3, 0.5, 1, why="Need technical feasibility review"),
    Proposal("ArtDirector", 0.4, 0.6, 0.7, 0.5, 2, why="Visual style needs definition"),
    Proposal("CEO", 0.9, 0.5, 0.8, 0.5, 3, why="Business viability question"),
)


def test_scenario_a_goes_to_the_lead_engineer_by_the_rule_and_to_the_ceo_without_it() -> None:
    by_rule = arbitrate(SCENARIO_A)
    assert by_rule.scores == {"LeadEngineer": 0.69, "ArtDirector": 0.57, "CEO": 0.71}
    assert (by_rule.winner, by_rule.by) == ("LeadEngineer", "blocking")
    assert by_rule.losing_scores == (("CEO", 0.71), ("ArtDirector", 0.57))
    assert "blocking rule" in by_rule.reason
    assert "CEO" in by_rule.reason
    without = arbitrate(SCENARIO_A, blocking=False)
    assert (without.winner, without.by) == ("CEO", "score")


@pytest.mark.parametrize(
    ("proposals", "by", "words"),
    [
        ((Proposal("a", 0.1, 0.1, 0.1, 0.1, 1),), "score", "nobody else could win"),
        ((Proposal("a", 0.2, 0.1, 0.1, 0.1, 1), Proposal("b", 0.1, 0.1, 0.1, 0.1, 2)), "score", "highest score"),
        ((Proposal("a", 0.4, 0.3, 0, 0, 1), Proposal("b", 0, 0.6, 0, 0, 2)), "tie:dependency", "higher dependency"),
        ((Proposal("a", 0.2, 0.3, 0, 1, 1), Proposal("b", 0, 0.3, 0.2, 0, 2)), "tie:confidence", "higher confidence"),
        ((Proposal("b", 0.2, 0.3, 0, 0, 2), Proposal("a", 0, 0.3, 0.2, 0, 1)), "tie:order", "earlier place"),
    ],
)
def test_the_reason_names_the_rule_that_decided(proposals: tuple[Proposal, ...], by: str, words: str) -> None:
    got = arbitrate(proposals)
    assert (got.by, words in got.reason, got.winner in got.reason) == (by, True, True)


def test_sums_that_differ_in_floats_and_not_on_paper_tie() -> None:
    tied = (Proposal("a", 0.1, 0.7, 0.6, 0.5, 1), Proposal("b", 0.6, 0.7, 0.1, 0.5, 2))
    assert 0.3 * 0.1 + 0.4 * 0.7 + 0.3 * 0.6 != 0.3 * 0.6 + 0.4 * 0.7 + 0.3 * 0.1
    assert arbitrate(tied).by == "tie:order"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"urgency": True}, "urgency"),
        ({"urgency": "0.5"}, "urgency"),
        ({"urgency": None}, "urgency"),
        ({"urgency": math.inf}, "urgency"),
        ({"urgency": 10**400}, "urgency"),
        ({"confidence": -0.01}, "confidence"),
        ({"frequency": 1.5}, "frequency"),
        ({"order": "first"}, "order"),
        ({"order": math.nan}, "order"),
        ({"agent": ""}, "agent"),
        ({"agent": 7}, "agent"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(change: dict[str, Any], names: str) -> None:
    with pytest.raises(ValueError, match=names) as caught:
        arbitrate([{**SCENARIO_A[0].__dict__, **change}])
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.parametrize("weights", [{"urgency": math.nan}, {"urgency": math.inf}, {"haste": 1}, {"urgency": "1"}, 3])
def test_bad_weights_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights"):
        arbitrate(SCENARIO_A, weights=weights)


@pytest.mark.parametrize("proposals", [[], "CEO", None, [3], {"agent": "CEO"}])
def test_what_is_no_list_of_proposals_is_refused(proposals: Any) -> None:
    with pytest.raises(ValueError, match="proposal"):
        arbitrate(proposals)


def test_confidence_and_frequency_count_only_where_they_have_a_weight() -> None:
    shy = Proposal("shy", 0.5, 0.5, 0.5, 0.1, 1, frequency=0)
    usual = Proposal("usual", 0.4, 0.5, 0.5, 0.9, 2, frequency=1)
    assert arbitrate((shy, usual)).winner == "shy"
    for term in ("confidence", "frequency"):
        weights = {"urgency": 0.2, "dependency": 0.3, "user_intent": 0.2, term: 0.3}
        assert arbitrate((shy, usual), weights=weights).winner == "usual"


tenths = st.integers(0, 100).map(lambda value: value / 100)
proposals_of_a_team = st.lists(st.tuples(tenths, tenths, tenths, tenths, tenths), min_size=1, max_size=6).map(
    lambda rows: [
        Proposal(f"agent_{order}", urgency, dependency, intent, confidence, order, frequency)
        for order, (urgency, dependency, intent, confidence, frequency) in enumerate(rows)
    ]
)


@given(proposals_of_a_team, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_proposals_does_not_matter(proposals: list[Proposal], shuffler: Any, blocking: bool) -> None:
    mixed = list(proposals)
    shuffler.shuffle(mixed)
    assert arbitrate(mixed, blocking=blocking) == arbitrate(proposals, blocking=blocking)


@given(proposals_of_a_team, st.lists(st.integers(0, 20), min_size=5, max_size=5).filter(any))
def test_scores_stay_between_0_and_1_where_weights_add_up_to_1(proposals: list[Proposal], parts: list[int]) -> None:
    terms = ("urgency", "dependency", "user_intent", "confidence", "frequency")
    weights = {term: math.floor(1000 * part / sum(parts)) / 1000 for term, part in zip(terms, parts, strict=True)}
    for got in (arbitrate(proposals), arbitrate(proposals, weights=weights)):
        assert all(0 <= score <= 1 for score in got.scores.values())


@given(proposals_of_a_team)
def test_the_winner_has_the_best_score_of_those_who_block_or_of_all(proposals: list[Proposal]) -> None:
    got = arbitrate(proposals)
    blocking = [proposal.agent for proposal in proposals if proposal.dependency >= 0.9]
    pool = blocking or [proposal.agent for proposal in proposals]
    assert got.winner in pool
    assert got.scores[got.winner] == max(got.scores[agent] for agent in pool)


def test_a_sample_draws_in_proportion_to_score_times_confidence() -> None:
    proposals = (Proposal("a", 1, 0.5, 1, 0.25, 1), Proposal("b", 0.5, 0.5, 0.5, 1, 2), Proposal("c", 1, 0.5, 1, 0, 3))
    weights = {term: Fraction(score) * Fraction(sure) for term, score, sure in (("a", "0.8", "0.25"), ("b", "0.5", 1))}
    border = float(weights["a"] / sum(weights.values()))
    drawn = [sample(proposals, draw / 1000).winner for draw in range(1000)]
    assert drawn == ["a" if draw / 1000 < border else "b" for draw in range(1000)]
    first = sample(proposals, 0.1)
    assert (first.by, first.losers) == ("sample", ("c", "b"))
    assert "drawn" in first.reason


@given(proposals_of_a_team, st.floats(0, 1, exclude_max=True), st.randoms(use_true_random=False))
def test_the_same_draw_gives_the_same_in_every_order(proposals: list[Proposal], draw: float, shuffler: Any) -> None:
    mixed = list(proposals)
    shuffler.shuffle(mixed)
    assert sample(mixed, draw) == sample(proposals, draw)


def test_a_sample_keeps_the_blocking_rule_and_settles_where_nothing_can_be_drawn() -> None:
    assert all(sample(SCENARIO_A, draw / 10).winner == "LeadEngineer" for draw in range(10))
    mute = [Proposal("a", 0.1, 0.1, 0.1, 0, 1), Proposal("b", 0.2, 0.1, 0.1, 0, 2)]
    assert sample(mute, 0.5) == arbitrate(mute)


@pytest.mark.parametrize("draw", [1, -0.1, math.nan, "0.5"])
def test_a_draw_outside_its_range_is_refused(draw: Any) -> None:
    with pytest.raises(ValueError, match="draw"):
        sample(SCENARIO_A, draw)


def labels(count: int, *, by: str) -> list[Label]:
    """Situations in which whoever is highest in one term is right."""
    situations = []
    for number in range(count):
        rows = [((number * 7 + place * 31) % 97 / 100, (number * 13 + place * 17) % 89 / 100) for place in range(3)]
        proposals = tuple(Proposal(f"p{place}", one, two, 0.5, 0.5, place) for place, (one, two) in enumerate(rows))
        right = max(proposals, key=lambda proposal: (getattr(proposal, by), -proposal.order))
        situations.append(Label("boss", proposals, right.agent))
    return situations


@pytest.mark.parametrize("by", ["urgency", "dependency"])
def test_weights_follow_a_person_who_goes_by_one_term(by: str) -> None:
    learned = fit(labels(200, by=by))
    assert max(learned.weights, key=learned.weights.__getitem__) == by
    assert sum(learned.weights.values()) <= 1
    fresh = labels(260, by=by)[200:]
    agreed = sum(learned.arbitrate("boss", label.proposals).winner == label.right for label in fresh)
    assert agreed >= 54


def test_a_habit_is_learned_as_frequency() -> None:
    alike = tuple(Proposal(f"p{place}", 0.5, 0.5, 0.5, 0.5, place) for place in range(3))
    learned = fit([Label("boss", alike, "p2")] * 40 + [Label("clerk", alike, "p1")] * 40)
    assert learned.frequency("boss", "p2") > 0.9 > 0.1 > learned.frequency("boss", "p0")
    assert [learned.arbitrate(who, alike).winner for who in ("boss", "clerk")] == ["p2", "p1"]


def test_a_blocking_rule_that_does_harm_is_switched_off() -> None:
    loud = Proposal("loud", 0.1, 0.95, 0.1, 0.5, 1)
    sound = Proposal("sound", 0.9, 0.5, 0.9, 0.5, 2)
    assert not fit([Label("boss", (loud, sound), "sound")] * 20).blocking


def test_without_labels_the_weights_are_those_of_the_document() -> None:
    assert fit([]) == Preference()
    assert fit([Label("boss", SCENARIO_A, "nobody")]) == Preference()
    got: Arbitration = Preference().arbitrate("boss", SCENARIO_A)
    assert got.scores == {"LeadEngineer": 0.69, "ArtDirector": 0.57, "CEO": 0.71}
