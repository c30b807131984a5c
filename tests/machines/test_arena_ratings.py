"""Ratings of the arena: the vectors, which duels an outcome decides, and the Bradley–Terry fit."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.arena import Duel, Rating, Vote, bradley_terry, elo, factor, k_of, track_record
from moothall.errors import BadValue
from moothall.machines.arena.ratings import (
    RatingKey,
    Settled,
    expected_score,
    lineage,
    outcome_duels,
    settled_ratings,
    start_rating,
    status_of,
    update_rating,
)

VECTORS = Path(__file__).parents[2].parent / "shared" / "arena" / "elo.json"
FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text()) if VECTORS.exists() else []
CALLS = {"elo": elo, "factor": factor, "track_record": track_record}

pytestmark = pytest.mark.covers("A14")


@pytest.mark.skipif(not CASES, reason="../shared/arena is not here")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_vectors_hold(case: dict[str, Any]) -> None:
    call: Any = CALLS[case["call"]]
    arguments = {
        name: FLOATS.get(value, value) if isinstance(value, str) else value
        for name, value in case.items()
        if name not in ("id", "call", "expect")
    }
    if isinstance(case["expect"], dict):
        with pytest.raises(ValueError, match=case["expect"]["error"]):
            call(**arguments)
    else:
        assert call(**arguments) == pytest.approx(case["expect"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("games", "k"), [(0, 32), (25, 16), (75, 8), (175, 4), (10_000, 4)])
def test_k_shrinks_with_the_games_and_stays_at_4(games: int, k: float) -> None:
    assert k_of(games) == k


NUMBERS = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.floats(0, 1), st.floats(0, 100))
def test_what_one_side_wins_the_other_loses(mine: float, theirs: float, score: float, k: float) -> None:
    won = elo(mine, theirs, score, k=k) - mine
    lost = elo(theirs, mine, 1 - score, k=k) - theirs
    assert won == pytest.approx(-lost, abs=1e-6)
    assert abs(won) <= k + 1e-6
    assert expected_score(mine, theirs) + expected_score(theirs, mine) == pytest.approx(1)


@settings(deadline=None)
@given(NUMBERS, st.integers(0, 10**9), st.integers(0, 10**9))
def test_factors_stay_between_a_half_and_one_and_a_half(points: float, games: int, wins: int) -> None:
    assert 0.5 <= factor(points, games) <= 1.5
    assert 0.5 <= track_record(wins, games) <= 1.5


def votes(critic: Any, security: Any, solution: Any = "approve") -> list[Vote]:
    return [
        Vote("analyst", "ann", "approve", 0.8),
        Vote("solution", "sol", solution, 0.8),
        Vote("critic", "cy", critic, 0.8),
        Vote("security", "sec", security, 0.95),
    ]


@pytest.mark.covers("A14", "A27")
@pytest.mark.parametrize(
    ("settled", "counts"),
    [
        (Settled(None), False),
        (Settled(False, "outcome", vetoed="sec"), False),
        (Settled(False, "", vetoed="sec"), False),
        (Settled(False, "rule", vetoed="sec"), True),
        (Settled(True, "person", vetoed="sec"), True),
        (Settled(False, "person", vetoed="sec"), True),
        (Settled(True, "outcome"), True),
    ],
)
def test_a_veto_counts_when_a_rule_or_a_person_confirmed_or_refuted_it(settled: Settled, counts: bool) -> None:
    assert bool(outcome_duels(votes("approve", "reject"), settled)) == counts
    ratings, played = settled_ratings(votes("approve", "reject"), settled, {})
    assert (bool(ratings), bool(played)) == (counts, counts)


def test_whoever_abstains_does_not_duel() -> None:
    assert outcome_duels(votes("abstain", "abstain"), Settled(True, "outcome")) == ()
    assert outcome_duels(votes("reject", "reject", solution="abstain"), Settled(True, "outcome")) == ()


@pytest.mark.parametrize(
    ("critic", "solution", "good", "score"),
    [
        ("reject", "approve", False, 1.0),
        ("reject", "approve", True, 0.0),
        ("approve", "reject", True, 1.0),
        ("approve", "approve", True, None),
        ("approve", "approve", False, None),
        ("reject", "reject", False, None),
    ],
)
def test_a_duel_needs_two_that_disagreed_and_is_won_by_whom_the_outcome_proved_right(
    critic: Any, solution: Any, good: bool, score: float | None
) -> None:
    panel = votes(critic, "abstain", solution)
    ratings, played = settled_ratings(panel, Settled(good, "outcome"), {})
    assert [duel.duel for duel in played] == ([] if score is None else [Duel("cy", "sol", score)])
    assert outcome_duels(panel, Settled(good, "outcome")) == tuple(duel.duel for duel in played)
    assert set(ratings) == ({"ann"} if score is None else {"ann", "cy", "sol"})


def test_a_refuted_veto_costs_its_agent_and_a_confirmed_one_wins() -> None:
    refuted, _ = settled_ratings(votes("approve", "reject"), Settled(True, "person", vetoed="sec"), {})
    confirmed, _ = settled_ratings(votes("approve", "reject"), Settled(False, "rule", vetoed="sec"), {})
    assert (refuted["sec"].elo, refuted["sol"].elo) == (1184, 1216)
    assert (confirmed["sec"].elo, confirmed["sol"].elo) == (1216, 1184)
    assert (confirmed["sec"].games, confirmed["sec"].wins) == (1, 1)


def test_the_duels_of_a_run_follow_one_another_and_tell_what_they_moved() -> None:
    ratings, played = settled_ratings(votes("reject", "reject"), Settled(False, "outcome"), {})
    assert [(duel.duel.first, duel.duel.second) for duel in played] == [("cy", "sol"), ("sec", "sol")]
    assert played[1].before[1] == played[0].after[1] == Rating(1184, 1, 0)
    assert played[1].after == (ratings["sec"], ratings["sol"])
    assert (ratings["sol"].games, ratings["sol"].wins) == (2, 0)


@pytest.mark.parametrize(("good", "wins"), [(True, 3), (False, 2)])
def test_a_role_without_duels_keeps_a_record_of_right_votes_and_its_elo(good: bool, wins: int) -> None:
    after, _ = settled_ratings(votes("approve", "approve"), Settled(good, "outcome"), {"ann": Rating(1200, 4, 2)})
    assert after == {"ann": Rating(1200, 5, wins)}


def test_a_new_triple_starts_from_its_parent_with_no_games() -> None:
    key = RatingKey("cy", "model-1", "code", "hash")
    assert start_rating(key, {}) == Rating()
    records = {RatingKey("cy"): Rating(1300, 9, 5)}
    assert start_rating(key, records) == Rating(1300)
    records[RatingKey("cy", "model-1")] = Rating(1400, 9, 5)
    assert start_rating(key, records) == Rating(1400)
    records[key] = Rating(1500, 3, 1)
    assert start_rating(key, records) == Rating(1500, 3, 1)
    assert lineage(key) == (key, RatingKey("cy", "model-1"), RatingKey("cy"))
    assert lineage(RatingKey("cy")) == (RatingKey("cy"),)


def test_a_duel_moves_both_from_their_ratings_before_it() -> None:
    assert update_rating(Rating(1200, 25, 3), Rating(1200), 1.0) == Rating(1208, 26, 4)


def test_a_pair_fits_by_hand() -> None:
    fitted = bradley_terry([("a", "b")] * 30 + [("b", "a")] * 10)
    # the slope at strength ±s is 0 where 30 − 40·σ(2s) = 0.1·s
    strength = (fitted["a"].rating - 1200) / (400 / math.log(10))
    assert 30 - 40 / (1 + math.exp(-2 * strength)) == pytest.approx(0.1 * strength, abs=1e-6)
    assert list(fitted) == ["a", "b"]
    assert fitted["a"].low < fitted["a"].rating < fitted["a"].high
    assert fitted["a"].rating + fitted["b"].rating == pytest.approx(2400)


def test_whoever_never_lost_has_a_finite_rating_and_a_wide_interval() -> None:
    fitted = bradley_terry([("a", "b"), ("b", "c")])
    assert math.isfinite(fitted["a"].high)
    assert {row.status for row in fitted.values()} == {"preliminary"}


@pytest.mark.parametrize(
    ("width", "status"), [(301, "preliminary"), (300, "usable"), (151, "usable"), (150, "established")]
)
def test_the_status_follows_from_the_width_of_the_interval(width: float, status: str) -> None:
    assert status_of(width) == status


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(7)
    truth = {name: 120.0 * number for number, name in enumerate("abcdef")}
    centre = sum(truth.values()) / len(truth)
    inside = []
    for _ in range(60):
        duels = []
        for _ in range(300):
            first, second = draw.sample(sorted(truth), 2)
            chance = expected_score(truth[first], truth[second])
            duels.append(Duel(first, second, 1.0 if draw.random() < chance else 0.0))
        fitted = bradley_terry(duels)
        inside += [fitted[name].low <= 1200 + truth[name] - centre <= fitted[name].high for name in truth]
    assert 0.9 <= sum(inside) / len(inside) <= 0.99


def test_the_fit_is_that_of_choix() -> None:
    choix = pytest.importorskip("choix", reason="choix is not installed; the fit by hand is checked above")
    draw = random.Random(3)
    pairs = [tuple(draw.sample(range(6), 2)) for _ in range(200)]
    pairs = [(min(pair), max(pair)) if draw.random() < 0.8 else pair for pair in pairs]
    # choix adds alpha · |θ|² to the loss, we hold with ½ · 0.1 · |θ|²
    theirs = choix.opt_pairwise(6, pairs, alpha=0.05)
    ours = bradley_terry([(str(winner), str(loser)) for winner, loser in pairs])
    points = 400 / math.log(10)
    assert [(ours[str(n)].rating - 1200) / points for n in range(6)] == pytest.approx(list(theirs), abs=1e-3)


@pytest.mark.parametrize("duel", [("a", "a"), ("a",), "ab", ("a", "b", 2), ("a", "b", math.nan), None, Duel(None, "b")])  # type: ignore[arg-type]
def test_what_is_not_a_duel_is_refused(duel: Any) -> None:
    with pytest.raises(BadValue):
        bradley_terry([duel])


@pytest.mark.parametrize("duels", [None, 5, math.nan, "ab", {"a": "b"}])
def test_what_is_not_a_list_of_duels_is_refused(duels: Any) -> None:
    with pytest.raises(BadValue):
        bradley_terry(duels)


def test_no_duels_give_no_ratings() -> None:
    assert bradley_terry([]) == {}
