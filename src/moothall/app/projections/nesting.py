"""How the states of a machine lie inside each other, for those who know only the names of atomic states.

Entries name atomic states. With the machine, the states around them are known, and so is which row leaves which
states; without it, a run has no states but those that its entries name, and one that is left and entered again in a
single step looks as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from moothall.kernel.chart import ROOT, Chart, Row
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine

Entry = Mapping[str, Any]


class Moved(Frozen):
    """What one entry left, entered, and passed through without staying; outer states stand before inner ones."""

    left: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


class Nesting(Frozen):
    """For each state those around it, the outermost first; for each row the states it leaves where they are active."""

    around: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaves: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def standing(self, states: Iterable[str]) -> tuple[str, ...]:
        """These states and all that are around them, from the outside in."""
        if not self.around:
            return tuple(states)
        return tuple(dict.fromkeys(one for state in states for one in (*self.around.get(state, ()), state)))

    def moved(self, entry: Entry) -> Moved:
        """What an entry did to the states of its run."""
        before, after, taken = entry["from"], entry["to"], entry["taken"]
        if before == after and not taken:
            return _NOWHERE
        stood, stands = self.standing(before), self.standing(after)
        rearranged = frozenset[str]().union(*(self.leaves.get(row, frozenset()) for row in taken))
        sources = [source for row in taken if (source := row.rpartition("/")[0]) in self.around]
        return Moved(
            tuple(one for one in stood if one not in stands or one in rearranged),
            tuple(one for one in stands if one not in stood or one in rearranged),
            tuple(one for one in self.standing(sources) if one not in stood and one not in stands),
        )

    def is_atomic(self, state: str) -> bool:
        """Whether no other state lies inside this one, as far as is known."""
        return not any(state in others for others in self.around.values())


_NOWHERE = Moved()


def nesting_of(machine: Machine | None) -> Nesting:
    """The nesting of a machine; nothing is known without one."""
    if machine is None:
        return Nesting()
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
