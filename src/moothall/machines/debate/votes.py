"""Counting: what answers mean the same, who has a majority, how alike texts are, how many voices there really are.

All of it is pure. Closed answers are compared by their normalised value; open ones are ranked by the agents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import combinations, pairwise

from moothall.agents.narrow import bare_value, pick_choice
from moothall.kernel.frozen import Frozen
from moothall.machines.debate.definition import Answers

_WORD = re.compile(r"[^\W_]+")
NUMBER = r"^[-+]?([0-9]+([.][0-9]+)?|[0-9]{1,3}(,[0-9]{3})+([.][0-9]+)?|[.][0-9]+)([eE][-+]?[0-9]+)?%?$"
"""A number as agents may write it."""


class Ballot(Frozen):
    """One voice: an answer that is normalised, "" where there is none, and what it weighs."""

    answer: str
    weight: float = 1.0


class Tally(Frozen):
    """How often each answer was given, and the one that leads; "" where nobody answered or several lead."""

    counts: Mapping[str, int]
    leader: str
    share: float
    """What part of all weight the leader has; those who gave no answer are a part of it."""
    leaders: tuple[str, ...] = ()
    """The answers that lead, more than one in a tie."""
    abstained: int = 0
    """How many gave no answer."""

    @property
    def is_majority(self) -> bool:
        """Whether more than half gave the same answer."""
        return bool(self.leader) and self.share > 0.5

    @property
    def is_tie(self) -> bool:
        """Whether several answers lead."""
        return len(self.leaders) > 1


def normalise(answer: str, answers: Answers) -> str:
    """An answer as it is compared; "" where it is none of those that are possible."""
    plain = answer.strip()
    if answers.type == "number":
        return _normal_number(plain)
    if answers.type == "choice":
        return pick_choice(plain, answers.options)
    return " ".join(_WORD.findall(plain.casefold()))


def _normal_number(text: str) -> str:
    """The number that a text is, but for what stands around it; "" where it says more than a number."""
    bare = bare_value(text)
    if not re.fullmatch(NUMBER, bare):
        return ""
    value = float(bare.rstrip("%").replace(",", ""))
    value = value / 100 if bare.endswith("%") else value
    return f"{value + 0.0:.10g}" if math.isfinite(value) else ""


def tally(answers: Iterable[str]) -> Tally:
    """Count answers that are normalised; what is empty is an abstention."""
    return weigh_ballots(Ballot(answer) for answer in answers)


def weigh_ballots(ballots: Iterable[Ballot], possible: Container[str] | None = None) -> Tally:
    """Count voices by their weight. Who gave no answer cannot lead, but is one of those whom the leader has a share of.

    Where only some answers are `possible`, the others do not lead either.
    """
    every = list(ballots)
    given = [ballot for ballot in every if ballot.answer]
    counts = Counter(ballot.answer for ballot in given)
    weights = {
        answer: round(math.fsum(ballot.weight for ballot in given if ballot.answer == answer), 9)
        for answer in sorted(counts)
        if possible is None or answer in possible
    }
    most, total = max(weights.values(), default=0.0), math.fsum(ballot.weight for ballot in every)
    leaders = tuple(answer for answer, weight in weights.items() if weight == most)
    share = most / total if total else 0.0
    leader = leaders[0] if len(leaders) == 1 else ""
    return Tally(dict(sorted(counts.items())), leader, share, leaders, len(every) - len(given))


def weigh_voices(answers: Mapping[str, str], confidences: Mapping[str, float]) -> list[Ballot]:
    """Voices that weigh as much as each says it is sure, at least 1.

    Who gave no answer, or did not say how sure it is, weighs as much as those on average who did both.
    """
    stated = {name: max(confidences[name], 1.0) for name, answer in answers.items() if answer and name in confidences}
    mean = math.fsum(stated.values()) / len(stated) if stated else 1.0
    return [Ballot(answer, stated.get(name, mean)) for name, answer in answers.items()]


def pool_rounds(rounds: Sequence[Mapping[str, str]]) -> Tally:
    """The vote over all rounds: each agent's answers of every round count alike."""
    return tally(answer for answers in rounds for answer in answers.values())


def elect(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> Tally:
    """The vote, in the light of a check: among answers that it accepts, else among those that it does not reject.

    `checks` are the answers that were checked, with the reason why one is rejected, "" where it is accepted. Where
    everything is rejected, all votes count.
    """
    given = {ballot.answer for ballot in ballots if ballot.answer}
    accepted = {answer for answer in given if checks.get(answer) == ""}
    open_ = {answer for answer in given if not checks.get(answer)}
    return weigh_ballots(ballots, accepted or open_ or given)


def holds(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> bool:
    """Whether a vote needs no debate: a majority holds, and no check rejects it; or the check accepts an answer."""
    if checks:
        return any(not why for why in checks.values())
    return weigh_ballots(ballots).is_majority


def next_to_check(ballots: Sequence[Ballot], checks: Mapping[str, str]) -> str:
    """The answer that is to be checked: the strongest of those that were not, until one is accepted; "" for none."""
    if any(not why for why in checks.values()):
        return ""
    left = weigh_ballots(ballots, {ballot.answer for ballot in ballots} - checks.keys())
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
    """How alike texts are, 0 to 1: the mean cosine of their words, over all pairs; an empty one is like no other."""
    bags = [Counter(_WORD.findall(text.casefold())) for text in texts]
    pairs = [_cosine(first, second) for first, second in combinations(bags, 2)]
    return sum(pairs) / len(pairs) if pairs else 1.0


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    length = (sum(n * n for n in first.values()) * sum(n * n for n in second.values())) ** 0.5
    return sum(first[word] * second[word] for word in first.keys() & second.keys()) / length if length else 0.0


def ranked_choice(
    rankings: Mapping[str, Sequence[str]], candidates: Sequence[str], voters: Iterable[str] = ()
) -> dict[str, float]:
    """Points of each candidate, 0 to 1, by Borda over the rankings; nobody's ranking counts for itself.

    `voters` are all who could have ranked: who did not, gives nobody any points.
    """
    points = dict.fromkeys(candidates, 0.0)
    chances = dict.fromkeys(candidates, 0)
    for voter in dict.fromkeys((*voters, *rankings)):
        others = [candidate for candidate in candidates if candidate != voter]
        order = [name for name in dict.fromkeys(rankings.get(voter, ())) if name in others]
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
