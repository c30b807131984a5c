"""Consensus and decision of the arena: the vectors, the boundaries, and what holds for every panel."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moothall.arena import Consensus, Rating, Vote, consensus, decision, explain, reason_of
from moothall.errors import BadValue, DefinitionError

VECTORS = Path(__file__).parents[2].parent / "shared" / "arena" / "consensus.json"
FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def with_floats(value: Any) -> Any:
    match value:
        case dict():
            return {key: with_floats(inner) for key, inner in value.items()}
        case list():
            return [with_floats(inner) for inner in value]
        case str():
            return FLOATS.get(value, value)
    return value


CASES: list[dict[str, Any]] = with_floats(json.loads(VECTORS.read_text())) if VECTORS.exists() else []


@pytest.mark.covers("A13", "A27", "A28", "A29")
@pytest.mark.skipif(not CASES, reason="../shared/arena is not here")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_vectors_hold(case: dict[str, Any]) -> None:
    def decide() -> tuple[Consensus, str]:
        reached = consensus(case["votes"], ratings=case["ratings"], weights=case.get("weights", {}))
        return reached, decision(reached, case["passes"], bands=case["bands"])

    expect = case["expect"]
    if "error" in expect:
        with pytest.raises(ValueError, match=expect["error"]):
            decide()
        return
    reached, decided = decide()
    assert reached.value == pytest.approx(expect["value"], abs=1e-9)
    assert reached.veto in (expect["veto_by"] or [None])
    assert decided == expect["decision"]
    assert reached.weights == pytest.approx(expect["weights"], abs=1e-9)


def panel(pro: float, contra: float) -> Consensus:
    return consensus([Vote("analyst", "ann", "approve", pro), Vote("analyst", "bob", "reject", contra)])


@pytest.mark.covers("A10", "A12", "A28", "A29")
@pytest.mark.parametrize(
    ("pro", "contra", "passes", "seed", "cautious"),
    [
        (0.59999, 0.40001, 3, "blocked", "blocked"),
        (0.6, 0.4, 3, "proceed", "ask"),
        (0.6, 0.4, 2, "redebate", "redebate"),
        (0.74999, 0.25001, 3, "proceed", "ask"),
        (0.75, 0.25, 3, "proceed", "proceed"),
        (0.79999, 0.20001, 2, "redebate", "redebate"),
        (0.79999, 0.20001, 3, "proceed", "proceed"),
        (0.8, 0.2, 1, "proceed", "proceed"),
        (0.8, 0.2, 2, "proceed", "proceed"),
        (0.8, 0.2, 3, "proceed", "proceed"),
        (0.9, 0.1, 1, "proceed", "proceed"),
        (0.0, 0.0, 3, "blocked", "blocked"),
    ],
)
def test_the_boundaries_are_where_they_are_written(
    pro: float, contra: float, passes: int, seed: str, cautious: str
) -> None:
    assert decision(panel(pro, contra), passes) == seed
    assert decision(panel(pro, contra), passes, bands="cautious") == cautious
    assert f"{panel(pro, contra).value:.6g}" in reason_of(panel(pro, contra), passes)


@pytest.mark.covers("A27")
@pytest.mark.parametrize(
    ("role", "verdict", "confidence", "vetoes"),
    [
        ("security", "reject", 0.9, True),
        ("security", "reject", 1, True),
        ("security", "reject", 0.89999, False),
        ("security", "approve", 0.95, False),
        ("security", "abstain", 0.95, False),
        ("critic", "reject", 1, False),
    ],
)
def test_only_a_sure_rejection_by_security_is_a_veto(role: str, verdict: Any, confidence: float, vetoes: bool) -> None:
    votes = [
        Vote(role, "x", verdict, confidence),
        *(Vote("analyst", f"a{number}", "approve", 1) for number in range(9)),
    ]
    reached = consensus(votes)
    assert reached.veto == ("x" if vetoes else None)
    assert decision(reached, 1) == ("blocked" if vetoes else "proceed")


@pytest.mark.parametrize("boundary", [Fraction(3, 5), Fraction(3, 4), Fraction(4, 5)])
@settings(deadline=None)
@given(hundredths=st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_a_panel_at_a_boundary_is_never_a_rounding_error_below_it(boundary: Fraction, hundredths: list[int]) -> None:
    pro = [Vote("critic", f"p{number}", "approve", part / 100) for number, part in enumerate(hundredths)]
    against = sum(hundredths) * (1 - boundary) / boundary / len(hundredths) / 100
    share: Any = Fraction(against)
    contra = [Vote("critic", f"c{number}", "reject", share) for number in range(len(hundredths))]
    assert consensus([*pro, *contra]).value == float(boundary)


VOTES = st.lists(
    st.builds(
        Vote,
        role=st.sampled_from(["security", "critic", "solution", "analyst", "optimizer"]),
        agent=st.text("abcdefgh", min_size=1, max_size=3),
        verdict=st.sampled_from(["approve", "reject", "abstain"]),
        confidence=st.one_of(st.floats(0, 1), st.sampled_from([0, 1, 0.9, 5e-324])),
    ),
    max_size=9,
    unique_by=lambda vote: vote.agent,
)
RATINGS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3),
    st.builds(
        Rating,
        elo=st.one_of(st.floats(-1e308, 1e308), st.just(1e6)),
        games=st.integers(0, 10**6),
        wins=st.integers(0, 10**6),
    ),
    max_size=6,
)
WEIGHTS = st.dictionaries(st.sampled_from(["security", "critic", "analyst"]), st.floats(0, 1.7e308), max_size=3)


@pytest.mark.covers("A13")
@settings(deadline=None)
@given(votes=VOTES, ratings=RATINGS, weights=WEIGHTS, passes=st.integers(0, 5))
@example(
    votes=[
        Vote("security", "a", "approve", 0.0),
        Vote("analyst", "b", "reject", 1.0),
        Vote("security", "c", "reject", 1.0),
    ],
    ratings={},
    weights={"security": 2.17e307, "analyst": 1.58e308},
    passes=0,
)
def test_every_panel_has_a_value_from_0_to_1_and_a_decision(
    votes: list[Vote], ratings: dict[str, Rating], weights: dict[str, float], passes: int
) -> None:
    reached = consensus(votes, ratings=ratings, weights=weights)
    assert 0 <= reached.value <= 1
    assert all(0 <= weight < math.inf for weight in reached.weights.values())
    assert set(reached.weights) == {vote.agent for vote in votes}
    decided = decision(reached, passes, bands="cautious")
    assert (decided == "blocked") >= (reached.veto is not None)


@settings(deadline=None)
@given(votes=VOTES, ratings=RATINGS, data=st.data())
def test_the_order_of_votes_does_not_matter(votes: list[Vote], ratings: dict[str, Rating], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(votes))
    assert consensus(shuffled, ratings=ratings) == consensus(votes, ratings=ratings)


def test_role_weights_too_large_for_a_sum_of_floats_still_weigh() -> None:
    against = [Vote("critic", name, "reject", 0.5) for name in "bc"]
    panel = [Vote("analyst", "a", "approve", 1.0), *against]
    assert consensus(panel, weights={"analyst": 1.5e308, "critic": 1.5e308}).value == 0.5


def test_a_panel_that_agrees_has_the_whole_value() -> None:
    panel = [Vote("analyst", "a", "approve", 0.7), Vote("critic", "b", "approve", 0.1)]
    assert consensus(panel).value == 1.0
    assert consensus([replace(vote, verdict="reject") for vote in panel]).value == 0.0


@pytest.mark.parametrize("votes", [[], [Vote("analyst", "a", "approve", 0), Vote("critic", "b", "reject", 0)]])
def test_a_panel_that_says_nothing_gives_0(votes: list[Vote]) -> None:
    assert consensus(votes).value == 0.0


@pytest.mark.parametrize(
    ("votes", "ratings", "weights", "named"),
    [
        ([{"role": "critic", "agent": "a", "verdict": "approve", "confidence": math.nan}], {}, {}, "confidence"),
        ([{"role": "critic", "agent": "a", "verdict": "abstain", "confidence": 1.1}], {}, {}, "confidence"),
        ([{"role": "critic", "agent": "a", "verdict": "approve", "confidence": "0.5"}], {}, {}, "confidence"),
        ([{"role": "critic", "agent": "a", "verdict": "approve", "confidence": True}], {}, {}, "confidence"),
        ([{"role": "critic", "agent": "a", "verdict": "approve"}], {}, {}, "confidence"),
        ([{"role": "Critic", "agent": "a", "verdict": "approve", "confidence": 1}], {}, {}, "role"),
        ([{"role": "critic", "agent": "a", "verdict": "Approve", "confidence": 1}], {}, {}, "verdict"),
        ([{"role": "critic", "verdict": "approve", "confidence": 1}], {}, {}, "agent"),
        ([{"role": "critic", "agent": "a", "verdict": "approve", "confidence": 1}] * 2, {}, {}, "agent"),
        ([], {}, {"critic": -1}, "weight"),
        ([], {}, {"critic": math.inf}, "weight"),
        ([Vote("critic", "a", "approve", 1)], {"a": {"elo": math.inf}}, {}, "elo"),
        ([Vote("critic", "a", "approve", 1)], {"a": {"games": -1}}, {}, "games"),
        ([Vote("critic", "a", "approve", 1)], {"a": {"wins": -1}}, {}, "wins"),
        (None, {}, {}, "votes"),
        (5, {}, {}, "votes"),
        ([None], {}, {}, "vote"),
        ([], 5, {}, "ratings"),
        ([], {}, 5, "weights"),
    ],
)
def test_bad_values_are_refused_by_name(votes: Any, ratings: Any, weights: Any, named: str) -> None:
    with pytest.raises(BadValue, match=named) as caught:
        consensus(votes, ratings=ratings, weights=weights)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.parametrize(
    ("value", "passes", "bands"), [(0.5, 1, "bold"), (0.5, -1, "seed"), (0.5, True, "seed"), (math.nan, 1, "seed")]
)
def test_a_decision_refuses_bad_values(value: float, passes: int, bands: str) -> None:
    with pytest.raises(BadValue):
        decision(Consensus(value), passes, bands=bands)


def test_a_decision_refuses_what_is_not_a_consensus() -> None:
    with pytest.raises(BadValue, match="consensus"):
        decision(None, 1)  # type: ignore[arg-type]


def test_every_weight_can_be_explained() -> None:
    [part] = explain([Vote("security", "sec", "reject", 0.95)], ratings={"sec": Rating(1300, 10, 7)})
    assert part.weight == Fraction("0.95") * 2 * Fraction(1250, 1200) * Fraction("1.2")
    assert part.sentence == (
        "sec (security) rejects with weight 2.375 = confidence 0.95 × role 2 × Elo factor 1.04167 (Elo 1300, 10 games)"
        " × track record 1.2 (7 of 10 won); this is a veto"
    )
