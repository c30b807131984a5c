"""How the states of a machine lie inside each other, for those who know only the names of atomic states.

Entries name atomic states. With the machine, the states around them are known, and so is which row leaves which
states; without it, a run has no states but those that its entries name, and one that is left and entered again in a
single step looks as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moothall.kernel.chart import ROOT, Chart, Row
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine

Entry = Mapping[str, Any]
MEMO = 1_000


class Moved(Frozen):
    """What one entry left, entered, and passed through without staying; outer states stand before inner ones."""

    left: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


class Nesting:
    """For each state those around it, the outermost first; for each row the states it leaves where they are active."""

    def __init__(self, around: Mapping[str, tuple[str, ...]], leaves: Mapping[str, frozenset[str]]) -> None:
        self._around = around
        self._leaves = leaves
        self._inner = frozenset(one for others in around.values() for one in others)
        self._moves: dict[tuple[Any, ...], Moved] = {}

    def moved(self, entry: Entry) -> Moved:
        """What an entry did to the states of its run; worked out once for entries that are alike."""
        way = (*entry["from"], None, *entry["to"], None, *entry["taken"])
        found = self._moves.get(way)
        if found is None:
            if len(self._moves) >= MEMO:
                self._moves.clear()
            found = self._moves[way] = self._moved(entry["from"], entry["to"], entry["taken"])
        return found

    def _moved(self, before: Sequence[str], after: Sequence[str], taken: Sequence[str]) -> Moved:
        stood, stands = self._standing(before), self._standing(after)
        rearranged = frozenset[str]().union(*(self._leaves.get(row, frozenset()) for row in taken))
        sources = [source for row in taken if (source := row.rpartition("/")[0]) in self._around]
        return Moved(
            tuple(one for one in stood if one not in stands or one in rearranged),
            tuple(one for one in stands if one not in stood or one in rearranged),
            tuple(one for one in self._standing(sources) if one not in stood and one not in stands),
        )

    def _standing(self, states: Sequence[str]) -> tuple[str, ...]:
        """These states and all that are around them, from the outside in."""
        return tuple(dict.fromkeys(one for state in states for one in (*self._around.get(state, ()), state)))

    def is_atomic(self, state: str) -> bool:
        """Whether no other state lies inside this one, as far as is known."""
        return state not in self._inner


UNKNOWN = Nesting({}, {})


def nesting_of(machine: Machine) -> Nesting:
    """The nesting of a machine's states."""
    chart = machine.chart
    around = {
        place.name: tuple(one.name for one in chart.ancestors(place.index) if one.index != ROOT)[::-1]
        for place in chart.places
        if place.index != ROOT
    }
    return Nesting(around, {row.id: _left_by(chart, row) for row in chart.rows if row.targets})


def _left_by(chart: Chart, row: Row) -> frozenset[str]:
    domain = chart.places[chart.domain(row, row.targets)]
    return frozenset(place.name for place in chart.places[domain.index + 1 : domain.end])
