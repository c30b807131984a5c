"""Who is next when several personas propose themselves.

The score of a proposal is the weighted sum of its terms: urgency .3, dependency .4, user intent .3. Confidence and the
learned frequency of a transition are terms too, of weight 0 unless a team sets one. Proposals with a dependency of
0.9 and more are *blocking* and pre-empt the others, unless that rule is switched off. Ties go to the higher
dependency, then to the higher confidence, then to the smaller place in the team file, never to chance. Nothing depends
on the order in which proposals arrive.

Numbers mean what they say in decimals: 0.1 is a tenth here, not the nearest binary fraction, so that two scores which
are equal on paper tie. A decision names the rule that made it and keeps the scores of all who lost.

`sample` draws instead, with a probability proportional to score × confidence. The draw comes from outside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen

CRITERIA = ("urgency", "dependency", "user_intent")
TERMS = (*CRITERIA, "confidence", "frequency")
DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"urgency": 0.3, "dependency": 0.4, "user_intent": 0.3, "confidence": 0, "frequency": 0}
)
BLOCKING_FROM = Decimal("0.9")
_EXACT = Context(prec=4000, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Wide enough that no sum of products of two floats is rounded: they reach from 1e617 down to 1e-680."""
_REQUIRED = ("agent", *CRITERIA, "confidence", "order")


class Proposal(Frozen):
    """A persona asks to be next. `order` is its place in the team file, `frequency` how often it came next before."""

    agent: str
    urgency: float
    dependency: float
    user_intent: float
    confidence: float
    order: float
    frequency: float = 0
    why: str = ""


class Arbitration(Frozen):
    """Who is next, the score of everybody, the rule that decided, and the others from the best to the worst."""

    winner: str
    scores: Mapping[str, float]
    by: str
    losers: tuple[str, ...]
    reason: str = ""

    @property
    def losing_scores(self) -> tuple[tuple[str, float], ...]:
        """Those who lost, each with its score, the best first."""
        return tuple((agent, self.scores[agent]) for agent in self.losers)


class _Entry(Frozen):
    """A proposal in exact numbers."""

    agent: str
    score: Decimal
    dependency: Decimal
    confidence: Decimal
    order: Decimal

    @property
    def rank(self) -> tuple[Any, ...]:
        """What sorts the better entry first; the name is the last resort where two claim one place in the file."""
        falling = (self.score.copy_negate(), self.dependency.copy_negate(), self.confidence.copy_negate())
        return (*falling, self.order, self.agent)

    @property
    def chance(self) -> Fraction:
        """How likely it is drawn, up to what all of them add up to."""
        return Fraction(self.score) * Fraction(self.confidence)


def arbitrate(
    proposals: Sequence[Proposal | Mapping[str, Any]],
    *,
    blocking: bool = True,
    weights: Mapping[str, float] | None = None,
) -> Arbitration:
    """Settle who of those who propose is next. Weights that are left out keep their default."""
    entries = _entries(proposals, weights)
    ordered = sorted(entries, key=lambda entry: entry.rank)
    free_winner = ordered[0]
    ranked = _admissible(ordered, blocking)
    winner = ranked[0]
    by = "blocking" if winner is not free_winner else _deciding_rule(ranked)
    return Arbitration(
        winner=winner.agent,
        scores=_scores(entries),
        by=by,
        losers=tuple(entry.agent for entry in ordered if entry is not winner),
        reason=_reason(by, winner, ranked, free_winner),
    )


def sample(
    proposals: Sequence[Proposal | Mapping[str, Any]],
    draw: float,
    *,
    blocking: bool = True,
    weights: Mapping[str, float] | None = None,
) -> Arbitration:
    """Draw who is next with p ∝ score × confidence among those whom the blocking rule admits; `draw` is in [0, 1).

    Where every product is 0 there is nothing to draw from, and the settled winner is next.
    """
    place = Fraction(_number(draw, "draw", most=None))
    if not 0 <= place < 1:
        raise BadValue(f"draw is {draw!r}; it must be at least 0 and below 1")
    entries = _entries(proposals, weights)
    admitted = sorted(_admissible(entries, blocking), key=lambda entry: (entry.order, entry.agent))
    total = sum((entry.chance for entry in admitted), Fraction(0))
    if not total:
        return arbitrate(proposals, blocking=blocking, weights=weights)
    reached = Fraction(0)
    for entry in admitted:
        chance = entry.chance / total
        reached += chance
        if place < reached:
            break
    losers = sorted((other for other in entries if other is not entry), key=lambda other: other.rank)
    reason = f"{entry.agent} was drawn with a chance of {float(chance):.3g} (score × confidence); the draw was {draw!r}"
    return Arbitration(entry.agent, _scores(entries), "sample", tuple(other.agent for other in losers), reason)


def checked_weights(weights: Mapping[str, float] | None) -> Mapping[str, Decimal]:
    """The weight of every term; a weight that is unknown, negative or not finite is refused."""
    given = {} if weights is None else weights
    if not isinstance(given, Mapping):
        raise BadValue(f"weights is {given!r}; it must map {', '.join(TERMS)} to numbers")
    for name in given:
        if name not in TERMS:
            raise BadValue(f"weights has {name!r}; the terms are {', '.join(TERMS)}")
    return {
        term: _number(given.get(term, default), f"weights: {term}", most=None)
        for term, default in DEFAULT_WEIGHTS.items()
    }


def _entries(
    proposals: Sequence[Proposal | Mapping[str, Any]], weights: Mapping[str, float] | None
) -> tuple[_Entry, ...]:
    exact = [(term, weight) for term, weight in checked_weights(weights).items() if weight]
    if isinstance(proposals, str | Mapping) or not isinstance(proposals, Iterable):
        raise BadValue(f"proposals is {proposals!r}; it must be a list of proposals")
    entries = tuple(_entry(proposal, exact) for proposal in proposals)
    if not entries:
        raise BadValue("there are no proposals; give at least one")
    agents = set[str]()
    for entry in entries:
        if entry.agent in agents:
            raise BadValue(f"agent {entry.agent!r} proposes twice; an agent proposes once")
        agents.add(entry.agent)
    return entries


def _entry(proposal: Proposal | Mapping[str, Any], weights: Sequence[tuple[str, Decimal]]) -> _Entry:
    fields = proposal.__dict__ if isinstance(proposal, Proposal) else proposal
    if not isinstance(fields, Mapping):
        raise BadValue(f"a proposal is {proposal!r}; it must be an object with {', '.join(_REQUIRED)}")
    for name in _REQUIRED:
        if fields.get(name) is None:
            raise BadValue(f"a proposal has no {name}; it needs {', '.join(_REQUIRED)}")
    agent = fields["agent"]
    if not isinstance(agent, str) or not agent:
        raise BadValue(f"agent is {agent!r}; it must be a name")
    values = {term: _number(fields[term], term, most=1) for term in TERMS if fields.get(term) is not None}
    score = Decimal(0)
    for term, weight in weights:
        if term in values:
            score = _EXACT.fma(weight, values[term], score)
    order = _number(fields["order"], "order", least=None, most=None)
    return _Entry(agent, score, values["dependency"], values["confidence"], order)


def _number(value: object, name: str, *, least: float | None = 0, most: float | None) -> Decimal:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or value != value
        or value in (math.inf, -math.inf)
    ):
        raise BadValue(f"{name} is {_text(value)}; it must be a finite number")
    if (least is not None and value < least) or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"between {least} and {most}"
        raise BadValue(f"{name} is {_text(value)}; it must be {limits}")
    return _in_decimals(value)


def _text(value: object) -> str:
    """What an error shows of a value: a number of many digits has no short text of its own."""
    return (
        f"a number of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 10**20 else repr(value)[:80]
    )


@lru_cache(maxsize=4096, typed=True)
def _in_decimals(value: Any) -> Decimal:
    """The number that is written down, which for 0.1 is a tenth."""
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


def _admissible(entries: Sequence[_Entry], blocking: bool) -> Sequence[_Entry]:
    preempting = [entry for entry in entries if entry.dependency >= BLOCKING_FROM] if blocking else []
    return preempting or entries


def _scores(entries: tuple[_Entry, ...]) -> Mapping[str, float]:
    return {entry.agent: float(entry.score) for entry in entries}


def _deciding_rule(ranked: Sequence[_Entry]) -> str:
    """The first rule that left the first of these alone."""
    rivals = [entry for entry in ranked[1:] if entry.score == ranked[0].score]
    if not rivals:
        return "score"
    for name in ("dependency", "confidence"):
        rivals = [entry for entry in rivals if getattr(entry, name) == getattr(ranked[0], name)]
        if not rivals:
            return f"tie:{name}"
    return "tie:order"


def _reason(by: str, winner: _Entry, ranked: Sequence[_Entry], free_winner: _Entry) -> str:
    score = f"{float(winner.score):.4g}"
    if by == "blocking":
        return (
            f"{winner.agent} is next by the blocking rule: its dependency of {float(winner.dependency):.4g} is 0.9 or"
            f" more, which pre-empts {free_winner.agent}, whose score of {float(free_winner.score):.4g} would have won"
            f" against {score}"
        )
    if len(ranked) == 1:
        return f"{winner.agent} is next with a score of {score}: nobody else could win"
    rival = ranked[1].agent
    if by == "score":
        return f"{winner.agent} is next by the highest score: {score} against {float(ranked[1].score):.4g} of {rival}"
    words = {
        "tie:dependency": "the higher dependency",
        "tie:confidence": "the higher confidence",
        "tie:order": "the earlier place in the team file",
    }
    return f"{winner.agent} is next by {words[by]}: its score of {score} ties with that of {rival}"
