"""What a person's choices say about the weights of arbitration.

A label says who should have been next among those who proposed. `fit` finds the weights of the terms under which such
choices are most likely (a conditional logit with a ridge, so that few labels move little), never below 0, and says
whether the blocking rule did more good than harm. Frequencies are how often a persona was right after another. What
comes out is given to `arbitrate`, which stays the only place where it is settled who is next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from operator import mul
from typing import Any

from moothall.kernel.frozen import Frozen
from moothall.machines.team.arbitration import BLOCKING_FROM, DEFAULT_WEIGHTS, TERMS, Arbitration, Proposal, arbitrate

_ROUNDS = 12


class Label(Frozen):
    """A situation in which somebody said who should be next."""

    current: str
    proposals: tuple[Proposal, ...]
    right: str


class Preference(Frozen):
    """Weights and frequencies as learned; without labels those of the document."""

    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    blocking: bool = True
    counts: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def frequency(self, current: str, agent: str) -> float:
        """How often this one was right when it proposed itself after that one; a half where nobody knows."""
        right, times = self.counts.get(current, {}).get(agent, (0, 0))
        return (right + 0.5) / (times + 1)

    def arbitrate(self, current: str, proposals: Sequence[Proposal]) -> Arbitration:
        """Who is next by these weights."""
        known = [replace(proposal, frequency=self.frequency(current, proposal.agent)) for proposal in proposals]
        return arbitrate(known, blocking=self.blocking, weights=self.weights)


def fit(labels: Sequence[Label], *, ridge: float = 1.0) -> Preference:
    """The preference that explains these labels best."""
    usable = [label for label in labels if any(proposal.agent == label.right for proposal in label.proposals)]
    if not usable:
        return Preference()
    counts = _counts(usable)
    choices = [_choice(label, counts) for label in usable]
    weights = _weights(logit(choices, ridge=ridge, least=0.0))
    learned = Preference(weights, True, counts)
    # Elsewhere the rule changes nothing.
    contested = [label for label in usable if {True, False} == {_blocks(proposal) for proposal in label.proposals}]
    without = replace(learned, blocking=False)
    return without if _agreement(without, contested) > _agreement(learned, contested) else learned


Choice = tuple[tuple[tuple[float, ...], ...], int]
"""The features of every proposal of a situation, and which of them was right."""


def logit(choices: Sequence[Choice], *, ridge: float, least: float = -math.inf) -> list[float]:
    """The coefficients, none below `least`, under which these choices are most likely; Newton's method."""
    size = len(choices[0][0][0])
    beta = [0.0] * size
    for _ in range(_ROUNDS):
        gradient = [-ridge * value for value in beta]
        curvature = [[ridge * (row == column) for column in range(size)] for row in range(size)]
        for rows, right in choices:
            _add_choice(rows, right, beta, gradient, curvature)
        free = [index for index in range(size) if beta[index] > least or gradient[index] > 0]
        step = _solve([[curvature[row][column] for column in free] for row in free], [gradient[row] for row in free])
        for index, change in zip(free, step, strict=True):
            beta[index] = max(beta[index] + change, least)
        if max(map(abs, step), default=0) < 1e-6:
            break
    return beta


def _add_choice(
    rows: Sequence[Sequence[float]], right: int, beta: list[float], gradient: list[float], curvature: list[list[float]]
) -> None:
    sums = [sum(map(mul, row, beta)) for row in rows]
    top = max(sums)
    odds = [math.exp(value - top) for value in sums]
    whole = sum(odds)
    chances = [value / whole for value in odds]
    centred: list[tuple[int, list[float]]] = []
    for index, column in enumerate(zip(*rows, strict=True)):
        if any(column):  # a term that nobody has adds nothing
            mean = sum(map(mul, column, chances))
            centred.append((index, [value - mean for value in column]))
    for place, (index, values) in enumerate(centred):
        gradient[index] += values[right]
        weighted = list(map(mul, values, chances))
        line = curvature[index]
        for other, others in centred[:place]:
            amount = sum(map(mul, weighted, others))
            line[other] += amount
            curvature[other][index] += amount
        line[index] += sum(map(mul, weighted, values))


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a system of linear equations whose matrix is positive definite."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(size):
        for lower in range(pivot + 1, size):
            factor = rows[lower][pivot] / rows[pivot][pivot]
            if factor:
                rows[lower] = [low - factor * high for low, high in zip(rows[lower], rows[pivot], strict=True)]
    solution = [0.0] * size
    for index in reversed(range(size)):
        known = sum(rows[index][other] * solution[other] for other in range(index + 1, size))
        solution[index] = (rows[index][size] - known) / rows[index][index]
    return solution


def _counts(labels: Sequence[Label]) -> dict[str, dict[str, tuple[int, int]]]:
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for label in labels:
        row = counts.setdefault(label.current, {})
        for proposal in label.proposals:
            right, times = row.get(proposal.agent, (0, 0))
            row[proposal.agent] = (right + (proposal.agent == label.right), times + 1)
    return counts


def _choice(label: Label, counts: Mapping[str, Mapping[str, tuple[int, int]]]) -> Choice:
    """The terms of a situation; in its frequencies the label itself is not counted, or it would explain itself."""
    rows = []
    for proposal in label.proposals:
        right, times = counts[label.current][proposal.agent]
        frequency = (right - (proposal.agent == label.right) + 0.5) / times
        values: Any = {**proposal.__dict__, "frequency": frequency}
        rows.append(tuple(float(values[term]) for term in TERMS))
    index = next(place for place, proposal in enumerate(label.proposals) if proposal.agent == label.right)
    return tuple(rows), index


def _weights(beta: Sequence[float]) -> dict[str, float]:
    """Coefficients as weights of three decimals, together at most 1; those of the document where none counts."""
    total = sum(beta)
    if total <= 0:
        return dict(DEFAULT_WEIGHTS)
    return {term: math.floor(1000 * value / total) / 1000 for term, value in zip(TERMS, beta, strict=True)}


def _blocks(proposal: Proposal) -> bool:
    return proposal.dependency >= BLOCKING_FROM


def _agreement(taste: Preference, labels: Sequence[Label]) -> int:
    return sum(taste.arbitrate(label.current, label.proposals).winner == label.right for label in labels)
