"""Who is good, learned from outcomes: Elo as the live number, and a Bradley–Terry fit with intervals beside it.

Rules:
- An agent starts at 1200. A duel moves both sides by true Elo; K shrinks with the agent's games, from 32 down to 4.
- A vote's weight takes two factors from here. Both move little on few games: the Elo factor is pulled to 1 by ten
  games' worth of doubt, the track record counts from the fifth game on.
- Duels are critic against solution and security against solution, where the two disagreed. Whoever the outcome proved
  right wins; where both were right or both wrong there is no duel. A veto counts when a static rule or a person
  confirmed *or refuted* it, and not otherwise: counted only when confirmed, every veto would be a free win.
- The other roles have no duels. Their record is how often the outcome proved their vote right; their Elo stays.
- A new agent, model and kind starts with no games from the rating of its parent: agent and model, then agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.figures import clamp, exact_number, field_of, list_of, plain_number

START = 1200
LOWEST, HIGHEST = Fraction(1, 2), Fraction(3, 2)
DOUBT = 10
"""So many games' worth of doubt pull the Elo factor towards 1."""
FIRST_RECORD = 5
"""Below so many games nobody has a track record."""
DUELLISTS = ("critic", "security")
"""The roles that duel with the solution."""
POINTS = 400 / math.log(10)
"""Elo points of one unit of Bradley–Terry strength."""
PRIOR = 0.1
"""How strongly the fit holds a strength near the mean: it keeps those who never lost at a finite rating."""
USABLE_WIDTH, ESTABLISHED_WIDTH = 300.0, 150.0
"""The widest 95 % intervals, in Elo points, of a rating that is usable and of one that is established."""

Status = Literal["preliminary", "usable", "established"]


class Rating(Frozen):
    """What is known of an agent: its Elo, how many games it has played and how many of them it won."""

    elo: float = START
    games: float = 0
    wins: float = 0


NEWCOMER = Rating()


class RatingKey(Frozen):
    """Whose rating it is: an agent on a model, for a kind of task, by the hash of its definition.

    Empty fields mean all of them: `RatingKey("critic", "model")` is the parent of every kind of that pair.
    """

    agent: str
    model: str = ""
    kind: str = ""
    definition: str = ""


class Duel(Frozen):
    """Two sides and the first one's score: 1 where it won, 0 where it lost, between them a draw."""

    first: str
    second: str
    score: float = 1.0


class Fitted(Frozen):
    """A rating of the Bradley–Terry fit with its 95 % interval, in Elo points around 1200."""

    rating: float
    low: float
    high: float
    games: int
    status: Status


def k_of(games: float) -> float:
    """How far one game moves an agent that has played so many: 32 at first, never below 4."""
    return max(4.0, 32 * 25 / (25 + plain_number(games, "games", least=0)))


def expected_score(rating: float, opponent: float) -> float:
    """The score that Elo expects of the first against the second, 0 to 1."""
    apart = plain_number(opponent, "opponent") / 400 - plain_number(rating, "rating") / 400
    # beyond 300 powers of ten the smaller side's share is 0 in floats anyhow
    power = max(-300.0, min(300.0, apart))
    return 1.0 / (1.0 + math.pow(10.0, power))


def elo(rating: float, opponent: float, score: float, *, k: float = 32) -> float:
    """The new rating after a game: `score` is 1 for a win, 0 for a loss, anything between for a draw."""
    won = plain_number(score, "score", least=0, most=1)
    step = plain_number(k, "k", least=0)
    return plain_number(rating, "rating") + step * (won - expected_score(rating, opponent))


def factor(elo: float, games: float) -> float:
    """How much an agent's Elo multiplies its vote: 0.5 to 1.5, and 1 for whoever has not played."""
    played = plain_number(games, "games", least=0)
    trusted = START + (plain_number(elo, "elo") - START) * (played / (played + DOUBT))
    return max(0.5, min(1.5, trusted / START))


def exact_factor(elo: object, games: object) -> Fraction:
    """The same as a fraction, without rounding."""
    played = exact_number(games, "games", least=0)
    trusted = START + (exact_number(elo, "elo") - START) * played / (played + DOUBT)
    return clamp(trusted / START, LOWEST, HIGHEST)


def track_record(wins: float, games: float) -> float:
    """How much an agent's record multiplies its vote: 0.5 + its share of wins, and 1 below five games."""
    won, played = plain_number(wins, "wins", least=0), plain_number(games, "games", least=0)
    return 1.0 if played < FIRST_RECORD else max(0.5, min(1.5, 0.5 + won / played))


def exact_track_record(wins: object, games: object) -> Fraction:
    """The same as a fraction, without rounding."""
    won, played = exact_number(wins, "wins", least=0), exact_number(games, "games", least=0)
    if played < FIRST_RECORD:
        return Fraction(1)
    return clamp(Fraction(1, 2) + won / played, LOWEST, HIGHEST)


def rating_of(source: object) -> Rating:
    """A rating from a record (`{elo, games, wins}`) or a value with these fields; what is missing is as at first."""
    if isinstance(source, Rating):
        return source
    return Rating(
        elo=field_of(source, "elo", START), games=field_of(source, "games", 0), wins=field_of(source, "wins", 0)
    )


def update_rating(rating: Rating, opponent: Rating, score: float) -> Rating:
    """The rating after a duel with this opponent, both taken as they were before it."""
    moved = elo(rating.elo, opponent.elo, score, k=k_of(rating.games))
    return Rating(moved, rating.games + 1, rating.wins + (1 if score > 0.5 else 0))


def start_rating(key: RatingKey, records: Mapping[RatingKey, Rating]) -> Rating:
    """The rating that a key has, or begins with: that of its nearest parent, with no games."""
    for place in lineage(key):
        if place in records:
            return records[place] if place == key else Rating(records[place].elo)
    return Rating()


def lineage(key: RatingKey) -> tuple[RatingKey, ...]:
    """The key and its parents, nearest first; a duel is written down for all of them."""
    places = (key, RatingKey(key.agent, key.model), RatingKey(key.agent))
    return tuple(dict.fromkeys(places))


class Settled(Frozen):
    """What is known of a plan once a run is over.

    `good` is True where the plan proved good (its tasks succeeded, or a person who looked at it says so), False where
    it proved bad, None where nobody can tell. `by` says who told: "outcome", "person" or "rule". `vetoed` is the agent
    whose veto stopped the plan, if one did.
    """

    good: bool | None
    by: Literal["outcome", "person", "rule", ""] = ""
    vetoed: str = ""


class PlayedDuel(Frozen):
    """A duel, and the ratings of its two sides before and after it."""

    duel: Duel
    before: tuple[Rating, Rating]
    after: tuple[Rating, Rating]


def outcome_duels(votes: Iterable[object], settled: Settled) -> tuple[Duel, ...]:
    """The duels that an outcome decides: critics and security agents against the solutions they disagreed with."""
    judged = _judged_votes(votes, settled)
    return tuple(
        Duel(agent, solution, 1.0 if right else 0.0)
        for role, agent, right in judged
        if role in DUELLISTS
        for place, solution, proved in judged
        if place == "solution" and right != proved
    )


def settled_ratings(
    votes: Iterable[object], settled: Settled, ratings: Mapping[str, Rating]
) -> tuple[dict[str, Rating], tuple[PlayedDuel, ...]]:
    """The ratings after an outcome, of those agents whose rating it changes, and the duels that moved them.

    Duels move Elo, one after the other. Whoever has a role without duels only keeps a record of how often its vote
    was right.
    """
    panel = tuple(votes)
    after: dict[str, Rating] = {}
    played: list[PlayedDuel] = []
    for duel in outcome_duels(panel, settled):
        mine, theirs = (after.get(name) or ratings.get(name, NEWCOMER) for name in (duel.first, duel.second))
        moved = update_rating(mine, theirs, duel.score), update_rating(theirs, mine, 1.0 - duel.score)
        after[duel.first], after[duel.second] = moved
        played.append(PlayedDuel(duel, (mine, theirs), moved))
    for role, agent, right in _judged_votes(panel, settled):
        if role not in DUELLISTS and role != "solution":
            before = ratings.get(agent, NEWCOMER)
            after[agent] = Rating(before.elo, before.games + 1, before.wins + right)
    return after, tuple(played)


def _judged_votes(votes: Iterable[object], settled: Settled) -> list[tuple[str, str, bool]]:
    """Role and agent of each vote that the outcome proved right or wrong; abstentions are neither.

    A plan that was stopped by a veto was not carried out: only a static rule or a person can tell what it was worth.
    """
    if settled.good is None or (settled.vetoed and settled.by not in ("person", "rule")):
        return []
    return [
        (field_of(vote, "role", ""), field_of(vote, "agent", ""), (verdict == "approve") == settled.good)
        for vote in votes
        if (verdict := field_of(vote, "verdict", "")) in ("approve", "reject")
    ]


def bradley_terry(duels: Iterable[object]) -> dict[str, Fitted]:
    """Ratings that explain all duels at once, best first, each with its 95 % interval and status.

    A duel is a `Duel`, or a pair (winner, loser), or a triple (first, second, score of the first).
    """
    read = [_duel_of(duel) for duel in list_of(duels, "duels")]
    names = sorted({name for duel in read for name in (duel.first, duel.second)})
    if not names:
        return {}
    place = {name: number for number, name in enumerate(names)}
    pairs: dict[tuple[int, int], list[float]] = {}
    for duel in read:
        tally = pairs.setdefault((place[duel.first], place[duel.second]), [0.0, 0.0])
        tally[0] += duel.score
        tally[1] += 1.0
    strengths, inverse = _fit(pairs, len(names))
    played = [sum(1 for duel in read if name in (duel.first, duel.second)) for name in names]
    fitted = {
        name: _fitted_rating(strengths[number], _centred_variance(inverse, number), played[number])
        for name, number in place.items()
    }
    return dict(sorted(fitted.items(), key=lambda item: (-item[1].rating, item[0])))


def _duel_of(source: object) -> Duel:
    match source:
        case Duel(str(), str()):
            duel = source
        case (str(first), str(second)):
            duel = Duel(first, second)
        case (str(first), str(second), int() | float() as score):
            duel = Duel(first, second, score)
        case _:
            raise BadValue(f"{source!r} is not a duel; give (winner, loser) or (first, second, score)")
    if duel.first == duel.second:
        raise BadValue(f"{duel.first!r} duels with itself; a duel has two sides")
    exact_number(duel.score, "score", least=0, most=1)
    return duel


def _fit(pairs: Mapping[tuple[int, int], Sequence[float]], size: int) -> tuple[list[float], list[list[float]]]:
    """Newton's method for the strengths; the curvature is concave, so that it comes to the one maximum."""
    strengths = [0.0] * size
    inverse: list[list[float]] = []
    for _ in range(50):
        slope = [-PRIOR * strength for strength in strengths]
        curve = [[PRIOR if row == column else 0.0 for column in range(size)] for row in range(size)]
        for (first, second), (score, games) in pairs.items():
            chance = 1.0 / (1.0 + math.exp(strengths[second] - strengths[first]))
            slope[first] += score - games * chance
            slope[second] -= score - games * chance
            weight = games * chance * (1.0 - chance)
            curve[first][first] += weight
            curve[second][second] += weight
            curve[first][second] -= weight
            curve[second][first] -= weight
        inverse = _inverse(curve)
        step = [sum(value * slope[column] for column, value in enumerate(row)) for row in inverse]
        # a step of more than two units may jump over the maximum where almost nothing is known
        scale = min(1.0, 2.0 / max(map(abs, step))) if any(step) else 1.0
        strengths = [strength + scale * move for strength, move in zip(strengths, step, strict=True)]
        if max(map(abs, step)) < 1e-10:
            break
    return strengths, inverse


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """The inverse of a symmetric positive matrix, by Gauss and Jordan."""
    size = len(matrix)
    rows = [[*row, *(1.0 if column == number else 0.0 for column in range(size))] for number, row in enumerate(matrix)]
    for pivot in range(size):
        divisor = rows[pivot][pivot]
        rows[pivot] = [value / divisor for value in rows[pivot]]
        for number in range(size):
            if number != pivot and (share := rows[number][pivot]):
                rows[number] = [value - share * base for value, base in zip(rows[number], rows[pivot], strict=True)]
    return [row[size:] for row in rows]


def _centred_variance(inverse: Sequence[Sequence[float]], number: int) -> float:
    """The variance of one strength against the mean of all: where the mean lies is convention, not doubt."""
    size = len(inverse)
    whole = sum(map(sum, inverse)) / size**2
    return max(0.0, inverse[number][number] - 2 * sum(inverse[number]) / size + whole)


def _fitted_rating(strength: float, variance: float, games: int) -> Fitted:
    rating, half = START + POINTS * strength, 1.96 * POINTS * math.sqrt(variance)
    return Fitted(rating, rating - half, rating + half, games, status_of(2 * half))


def status_of(width: float) -> Status:
    """How far a rating can be relied on, by the width of its 95 % interval in Elo points."""
    if width <= ESTABLISHED_WIDTH:
        return "established"
    return "usable" if width <= USABLE_WIDTH else "preliminary"


def as_record(rating: Rating) -> dict[str, Any]:
    """A rating as it is stored."""
    return {"elo": rating.elo, "games": rating.games, "wins": rating.wins}
