"""What a panel thinks of a plan, as one number, and what follows from it.

Rules:
- Weight of a vote = confidence × role weight × Elo factor × track record. Consensus = pro / (pro + contra), 0 where
  both are 0; abstentions count for neither, and the order of the votes does not matter.
- Veto: role security, verdict reject, confidence at least 0.9. No weight and no rating changes it.
- A veto blocks at any pass. Below 0.8 the panel debates again while fewer than three passes are done. Then 0.6
  proceeds and less is blocked; in the cautious bands a person decides from 0.6 to 0.75.

Near a boundary all of it is computed with fractions of the decimals as written, so that a panel whose value is 0.6 is
at the boundary and not a rounding error below it; elsewhere floats will do. Every number can be explained: `explain`
has its parts, `reason_of` its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Literal

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.figures import exact_number, field_of, list_of, mapping_of, nearest_float
from moothall.machines.arena.ratings import (
    NEWCOMER,
    Rating,
    exact_factor,
    exact_track_record,
    factor,
    rating_of,
    track_record,
)

ROLE_WEIGHTS: Mapping[str, float] = {
    "security": 2.0,
    "critic": 1.5,
    "solution": 1.2,
    "analyst": 1.0,
    "optimizer": 0.8,
}
VERDICTS = ("approve", "reject", "abstain")
BANDS = ("seed", "cautious")
VETO_FROM = Fraction(9, 10)
DEBATE_BELOW, PROCEED_FROM, ASK_BELOW = 0.8, 0.6, 0.75
MOST_PASSES = 3

Verdict = Literal["approve", "reject", "abstain"]
Decision = Literal["proceed", "redebate", "ask", "blocked"]


class Vote(Frozen):
    """What an agent says of a plan in its role: approve, reject or abstain, and how sure it is, 0 to 1."""

    role: str
    agent: str
    verdict: Verdict
    confidence: float
    reasons: tuple[str, ...] = ()


class Consensus(Frozen):
    """What the panel thinks, 0 to 1; who vetoes, if anybody; and the weight of each agent's vote."""

    value: float
    veto: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


class VoteWeight(Frozen):
    """How the weight of a vote came about: the product of its four parts."""

    agent: str
    role: str
    verdict: Verdict
    confidence: Fraction
    role_weight: Fraction
    rating: Rating
    factor: Fraction
    track_record: Fraction

    @property
    def weight(self) -> Fraction:
        """Confidence × role weight × Elo factor × track record."""
        return self.confidence * self.role_weight * self.factor * self.track_record

    @property
    def vetoes(self) -> bool:
        """Whether this vote alone stops the plan."""
        return self.role == "security" and self.verdict == "reject" and self.confidence >= VETO_FROM

    @property
    def sentence(self) -> str:
        """The same for a reader of the trace."""
        parts = (
            f"confidence {_short(self.confidence)} × role {_short(self.role_weight)} × Elo factor {_short(self.factor)}"
            f" (Elo {self.rating.elo:g}, {self.rating.games:g} games)"
            f" × track record {_short(self.track_record)} ({self.rating.wins:g} of {self.rating.games:g} won)"
        )
        counts = "counts for neither side, weight" if self.verdict == "abstain" else f"{self.verdict}s with weight"
        return f"{self.agent} ({self.role}) {counts} {_short(self.weight)} = {parts}" + (
            "; this is a veto" if self.vetoes else ""
        )


def _short(number: Fraction) -> str:
    return f"{nearest_float(number):.6g}"


def consensus(
    votes: Iterable[object], *, ratings: Mapping[str, object] | None = None, weights: Mapping[str, float] | None = None
) -> Consensus:
    """What the panel thinks of the plan; votes and ratings may be values or mappings with the same fields."""
    panel, known, by_role = list_of(votes, "votes"), mapping_of(ratings, "ratings"), mapping_of(weights, "weights")
    quick = None if by_role else _quick_consensus(panel, known)
    return quick or _exact_consensus(panel, known, by_role)


def _quick_consensus(panel: tuple[object, ...], ratings: Mapping[str, object]) -> Consensus | None:
    """The consensus in floats; None where that may be wrong or cannot tell on which side of a boundary it is.

    It knows the usual role weights only: others may be too large for floats. Sums are exact before they are rounded
    once, so that the order of the votes does not matter.
    """
    sides: dict[str, list[float]] = {"approve": [], "reject": [], "abstain": []}
    by_agent: dict[str, float] = {}
    vetoing: list[str] = []
    for vote in panel:
        if not isinstance(vote, Vote) or type(vote.confidence) is not float or not 0.0 <= vote.confidence <= 1.0:
            return None
        role = ROLE_WEIGHTS.get(vote.role)
        if role is None or vote.verdict not in sides or vote.agent in by_agent or not vote.agent:
            return None
        rating = ratings.get(vote.agent, NEWCOMER)
        if not isinstance(rating, Rating):
            return None
        weight = vote.confidence * role * factor(rating.elo, rating.games) * track_record(rating.wins, rating.games)
        sides[vote.verdict].append(weight)
        by_agent[vote.agent] = weight
        if vote.role == "security" and vote.verdict == "reject" and vote.confidence >= 0.9:
            vetoing.append(vote.agent)
    pro, contra = math.fsum(sides["approve"]), math.fsum(sides["reject"])
    if pro + contra < 1e-200:
        return None
    value = pro / (pro + contra)
    if abs(value - PROCEED_FROM) < 1e-9 or abs(value - ASK_BELOW) < 1e-9 or abs(value - DEBATE_BELOW) < 1e-9:
        return None
    return Consensus(value, min(vetoing, default=None), by_agent)


def _exact_consensus(
    panel: tuple[object, ...], ratings: Mapping[str, object], weights: Mapping[str, float]
) -> Consensus:
    weighed = explain(panel, ratings=ratings, weights=weights)
    pro = sum((part.weight for part in weighed if part.verdict == "approve"), Fraction(0))
    contra = sum((part.weight for part in weighed if part.verdict == "reject"), Fraction(0))
    return Consensus(
        value=nearest_float(pro / (pro + contra)) if pro + contra else 0.0,
        veto=min((part.agent for part in weighed if part.vetoes), default=None),
        weights={part.agent: nearest_float(part.weight) for part in weighed},
    )


def explain(
    votes: Iterable[object], *, ratings: Mapping[str, object] | None = None, weights: Mapping[str, float] | None = None
) -> tuple[VoteWeight, ...]:
    """How the weight of every vote came about, in the order of the votes."""
    by_role = {
        role: exact_number(weight, f"the weight of role {role!r}", least=0)
        for role, weight in {**ROLE_WEIGHTS, **mapping_of(weights, "weights")}.items()
    }
    known = mapping_of(ratings, "ratings")
    weighed = tuple(_weigh(vote, ratings=known, by_role=by_role) for vote in list_of(votes, "votes"))
    seen: set[str] = set()
    for part in weighed:
        if part.agent in seen:
            raise BadValue(f"agent {part.agent!r} votes twice; give one vote of each agent")
        seen.add(part.agent)
    return weighed


def _weigh(vote: object, *, ratings: Mapping[str, object], by_role: Mapping[str, Fraction]) -> VoteWeight:
    agent, role = field_of(vote, "agent", None), field_of(vote, "role", None)
    if not isinstance(agent, str) or not agent:
        raise BadValue(f"a vote has the agent {agent!r}; give the agent's name")
    if not isinstance(role, str) or role not in by_role:
        raise BadValue(f"agent {agent!r} votes in the unknown role {role!r}; roles are {', '.join(by_role)}")
    verdict = field_of(vote, "verdict", None)
    if verdict not in VERDICTS:
        raise BadValue(f"agent {agent!r} gives the verdict {verdict!r}; verdicts are {', '.join(VERDICTS)}")
    confidence = exact_number(field_of(vote, "confidence", None), f"the confidence of {agent!r}", least=0, most=1)
    rating = rating_of(ratings.get(agent, Rating()))
    return VoteWeight(
        agent=agent,
        role=role,
        verdict=verdict,
        confidence=confidence,
        role_weight=by_role[role],
        rating=rating,
        factor=exact_factor(rating.elo, rating.games),
        track_record=exact_track_record(rating.wins, rating.games),
    )


def decision(consensus: Consensus, passes: int, *, bands: str = "seed") -> Decision:
    """What follows from a consensus after so many passes of the debate."""
    _check_decision(consensus, passes, bands)
    if consensus.veto is not None:
        return "blocked"
    if consensus.value < DEBATE_BELOW and passes < MOST_PASSES:
        return "redebate"
    if consensus.value < PROCEED_FROM:
        return "blocked"
    return "ask" if bands == "cautious" and consensus.value < ASK_BELOW else "proceed"


def reason_of(consensus: Consensus, passes: int, *, bands: str = "seed") -> str:
    """Why the decision is what it is, in a sentence."""
    value = f"consensus {consensus.value:.6g}"
    after = f"after {passes} of at most {MOST_PASSES} passes"
    match decision(consensus, passes, bands=bands):
        case "blocked" if consensus.veto is not None:
            return f"{consensus.veto} vetoes the plan; a veto blocks at any pass"
        case "blocked":
            return f"{value} is below {PROCEED_FROM} {after}"
        case "redebate":
            return f"{value} is below {DEBATE_BELOW} {after}; the panel debates again"
        case "ask":
            return f"{value} lies from {PROCEED_FROM} to {ASK_BELOW} {after}; a person decides"
        case "proceed":
            return f"{value} is at least {PROCEED_FROM} {after} and nobody vetoes"


def _check_decision(consensus: object, passes: object, bands: str) -> None:
    if not isinstance(consensus, Consensus):
        raise BadValue(f"the consensus is {consensus!r}; give what consensus(votes) returns")
    if bands not in BANDS:
        raise BadValue(f"bands {bands!r} are unknown; bands are {', '.join(BANDS)}")
    if isinstance(passes, bool) or not isinstance(passes, int) or passes < 0:
        raise BadValue(f"passes is {passes!r}; it is a whole number and at least 0")
    exact_number(consensus.value, "the consensus", least=0, most=1)
