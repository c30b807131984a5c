"""Counting: what answers mean the same, who has a majority, how alike texts are, how many voices there really are.

All of it is pure. Closed answers are compared by their normalised value; open ones are ranked by the agents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import combinations, pairwise

from moothall.kernel.frozen import Frozen
from moothall.machines.debate.definition import Answers

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")


class Ballot(Frozen):
    """One voice: an answer that is normalised, "" where there is none, and what it weighs."""

    answer: str
    weight: float = 1.0


class Tally(Frozen):
    """How often each answer was given, and the one that leads; "" where nobody answered or several lead."""

    counts: Mapping[str, int]
    leader: str
    share: float
    """What part of all weight the leader has."""
    leaders: tuple[str, ...] = ()
    """The answers that lead, more than one in a tie."""

    @property
    def is_majority(self) -> bool:
        """Whether more than half gave the same answer."""
        return bool(self.leader) and self.share > 0.5

    @property
    def is_tie(self) -> bool:
        """Whether several answers lead."""
        return bool(self.counts) and not self.leader


def normalise(answer: str, answers: Answers) -> str:
    """An answer as it is compared; "" where it is none of those that are possible."""
    plain = answer.strip()
    if answers.type == "number":
        return _normal_number(plain)
    if answers.type == "choice":
        return _option(plain, answers.options)
    return " ".join(_WORD.findall(plain.casefold()))


def _normal_number(text: str) -> str:
    numbers: list[str] = _NUMBER.findall(text)
    if not numbers:
        return ""
    last = numbers[-1]
    try:
        value = float(last.rstrip("%").replace(",", ""))
    except ValueError:
        return ""
    return f"{value / 100 if last.endswith('%') else value:.10g}"


def _option(text: str, options: Sequence[str]) -> str:
    """The option that a text names: as it stands, but for case, brackets and a final stop, or alone in a sentence."""
    bare = text.strip(" \t\n().:\"'*").casefold()
    for option in options:
        if bare == option.casefold():
            return option
    named = [
        option for option in options if re.search(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", text.casefold())
    ]
    return named[0] if len(named) == 1 else ""


def tally(answers: Iterable[str]) -> Tally:
    """Count answers that are normalised; what is empty does not count."""
    return weigh_ballots(Ballot(answer) for answer in answers)


def weigh_ballots(ballots: Iterable[Ballot]) -> Tally:
    """Count voices by their weight; what is empty does not count."""
    given = [ballot for ballot in ballots if ballot.answer]
    if not given:
        return Tally({}, "", 0.0)
    counts = Counter(ballot.answer for ballot in given)
    weights = {
        answer: round(math.fsum(ballot.weight for ballot in given if ballot.answer == answer), 9)
        for answer in sorted(counts)
    }
    most, total = max(weights.values()), math.fsum(weights.values())
    leaders = tuple(answer for answer, weight in weights.items() if weight == most)
    share = most / total if total else 0.0
    return Tally(dict(sorted(counts.items())), leaders[0] if len(leaders) == 1 else "", share, leaders)


def pool_rounds(rounds: Sequence[Mapping[str, str]]) -> Tally:
    """The vote over all rounds: each agent's answers of every round count alike."""
    return tally(answer for answers in rounds for answer in answers.values())


def elect(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> Tally:
    """The vote, in the light of a check: among answers that it accepts, else among those that it does not reject.

    `checks` are the answers that were checked, with the reason why one is rejected, "" where it is accepted. Where
    everything is rejected, all votes count.
    """
    accepted = [ballot for ballot in ballots if checks.get(ballot.answer) == ""]
    possible = [ballot for ballot in ballots if not checks.get(ballot.answer)]
    return weigh_ballots(next(filter(None, (accepted, [ballot for ballot in possible if ballot.answer])), ballots))


def holds(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> bool:
    """Whether a vote needs no debate: a majority holds, and no check rejects it; or the check accepts an answer."""
    if checks:
        return any(not why for why in checks.values())
    return weigh_ballots(ballots).is_majority


def next_to_check(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> str:
    """The answer that is to be checked: the strongest of those that were not, until one is accepted; "" for none."""
    if any(not why for why in checks.values()):
        return ""
    left = weigh_ballots(ballot for ballot in ballots if ballot.answer not in checks)
    return left.leaders[0] if left.leaders else ""


def flips(rounds: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """How often each agent changed its answer from one round to the next."""
    changed: Counter[str] = Counter()
    for before, after in pairwise(rounds):
        for agent in before.keys() & after.keys():
            changed[agent] += before[agent] != after[agent]
    return {agent: changed[agent] for agent in sorted({agent for answers in rounds for agent in answers})}


def effective_voices(agreements: Sequence[Mapping[str, str]]) -> float:
    """How many independent voices a panel is worth: n / (1 + (n − 1)·ρ), ρ the mean agreement beyond chance.

    Answers of one question each. Where nobody can be compared it is the number of those who answered.
    """
    agents = sorted({agent for answers in agreements for agent in answers})
    number = len(agents)
    if number < 2:
        return float(number)
    kappas = [_kappa(agreements, first, second) for first, second in combinations(agents, 2)]
    known = [kappa for kappa in kappas if kappa is not None]
    rho = max(0.0, sum(known) / len(known)) if known else 0.0
    return number / (1 + (number - 1) * rho)


def _kappa(agreements: Sequence[Mapping[str, str]], first: str, second: str) -> float | None:
    """Agreement of two beyond what chance would give."""
    pairs = [(answers[first], answers[second]) for answers in agreements if first in answers and second in answers]
    if not pairs:
        return None
    same = sum(a == b for a, b in pairs) / len(pairs)
    ours, theirs = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(ours[answer] * theirs[answer] for answer in ours) / len(pairs) ** 2
    return (same - chance) / (1 - chance) if chance < 1 else same


def similarity(texts: Sequence[str]) -> float:
    """How alike texts are, 0 to 1: the mean cosine of their words, over all pairs."""
    bags = [Counter(_WORD.findall(text.casefold())) for text in texts]
    pairs = [_cosine(first, second) for first, second in combinations(bags, 2)]
    return sum(pairs) / len(pairs) if pairs else 1.0


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    length = (sum(n * n for n in first.values()) * sum(n * n for n in second.values())) ** 0.5
    return sum(first[word] * second[word] for word in first.keys() & second.keys()) / length if length else 0.0


def ranked_choice(rankings: Mapping[str, Sequence[str]], candidates: Sequence[str]) -> dict[str, float]:
    """Points of each candidate, 0 to 1, by Borda over the rankings; nobody's ranking counts for itself."""
    points = dict.fromkeys(candidates, 0.0)
    chances = dict.fromkeys(candidates, 0)
    for voter, ranking in rankings.items():
        others = [candidate for candidate in candidates if candidate != voter]
        order = [name for name in dict.fromkeys(ranking) if name in others]
        for place, name in enumerate(order):
            points[name] += (len(others) - 1 - place) / (len(others) - 1) if len(others) > 1 else 1.0
        for name in others:
            chances[name] += 1
    return {name: points[name] / chances[name] if chances[name] else 0.0 for name in candidates}


def shuffle(names: Sequence[str], seed: str) -> tuple[str, ...]:
    """Names in an order that the seed decides."""
    return tuple(sorted(names, key=lambda name: sha256(f"{seed}\0{name}".encode()).digest()))


def labels(number: int) -> tuple[str, ...]:
    """A, B, …, Z, AA, AB, …"""

    def label(index: int) -> str:
        return chr(65 + index) if index < 26 else label(index // 26 - 1) + chr(65 + index % 26)

    return tuple(label(index) for index in range(number))
