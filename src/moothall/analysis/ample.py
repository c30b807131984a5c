"""Bounds that are never spent: a row that may be taken as often as there can be events for it.

An event in which effects end comes once for each of them. How many a state can want stands in the table: what its
entry says it emits, as often as it may be visited, and what rows emit into it, as often as they may be taken. A row
with `at_most` of that many is as good as one without a bound, and is counted in the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from moothall.analysis.graph import Graph, visits_of
from moothall.kernel.chart import ROOT, Place, Row, emitted, sequence
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send
from moothall.kernel.events import GaveUp, matches
from moothall.kernel.nodes import State

_NEVER_GIVE_UP = (Alarm.kind, AskPerson.kind, CancelSend.kind, Send.kind)


def is_ample(graph: Graph, row: Row) -> bool:
    """Whether a bounded row of a state at the top cannot be spent by the ends of what that state wants."""
    place = graph.places[row.source]
    if row.guard is not None or row.at_most is None or not row.descriptors:
        return False
    if not isinstance(place.node, State) or place.parent != ROOT:
        return False
    known = _count_wanted(graph, place, row.descriptors)
    return 0 < known <= row.at_most


def _count_wanted(graph: Graph, place: Place, names: Sequence[str]) -> float:
    """How many effects of a state can end in these events."""
    assert isinstance(place.node, State)
    visits = visits_of(place)
    most = math.inf if visits is None else visits
    total = _times(_ends(place.node.enter, names), most)
    for row in graph.chart.rows:
        if (row.targets[0] if row.targets else row.source) != place.index:
            continue
        taken = row.at_most if row.at_most is not None else most if row.targets else math.inf
        total += _times(_ends(row.on.do, names), taken)
        total += _times(sum(count for kind, count in (row.on.emits or {}).items() if _can_end(kind, names)), taken)
    return total


def _times(count: int, times: float) -> float:
    return count * times if count else 0


def _ends(actions: Any, names: Sequence[str]) -> int:
    """How many effects of these actions can end in one of these events."""
    total = 0
    for action in sequence(actions):
        if isinstance(action, Effect):
            total += _can_end(type(action), names)
            continue
        counts = emitted(action)
        effects = getattr(action, "effects", None)
        if effects is not None:
            total += sum(counts.get(kind.kind, 0) for kind in effects if _can_end(kind, names))
        elif counts:  # it does not say which of its effects ends how
            total += sum(counts.values())
    return total


def _can_end(kind: type[Effect], names: Sequence[str]) -> bool:
    outcomes = [outcome.name for outcome in kind.outcomes]
    if kind.kind not in _NEVER_GIVE_UP:
        outcomes.append(GaveUp.name)
    return any(matches(name, outcome) or matches(outcome, name) for name in names for outcome in outcomes)
