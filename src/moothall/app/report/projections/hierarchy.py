"""How the states of a machine lie inside each other, for those who know only the names of atomic states.

Entries name atomic states. With the machine, the states around them are known, and so is which row leaves which
states; without it, a run has no states but those that its entries name, and one that is left and entered again in a
single step looks as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.kernel.chart import COMPOUND, HISTORY, ROOT, Chart, Row
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine

Entry = Mapping[str, Any]
MEMO = 1_000


class Moved(Frozen):
    """What one entry left, entered, and passed through without staying; outer states stand before inner ones."""

    left: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


class Reach(Frozen):
    """What a row does to states: those that it leaves where they are active, and those it comes from or leads to."""

    leaves: frozenset[str]
    touches: tuple[str, ...]


class Hierarchy:
    """For each state those around it, the outermost first; for each row its reach."""

    def __init__(self, around: Mapping[str, tuple[str, ...]], rows: Mapping[str, Reach]) -> None:
        self._around = around
        self._rows = rows
        self._inner = frozenset(state for others in around.values() for state in others)
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
        rows = [self._rows[row] for row in taken if row in self._rows]
        rearranged = frozenset[str]().union(*(row.leaves for row in rows))
        touched = self._standing([state for row in rows for state in row.touches])
        return Moved(
            tuple(state for state in stood if state not in stands or state in rearranged),
            tuple(state for state in stands if state not in stood or state in rearranged),
            tuple(state for state in touched if state not in stood and state not in stands),
        )

    def _standing(self, states: Sequence[str]) -> tuple[str, ...]:
        """These states and all that are around them, from the outside in."""
        return tuple(dict.fromkeys(name for state in states for name in (*self._around.get(state, ()), state)))

    def around(self, state: str) -> tuple[str, ...]:
        """The states around one, the outermost first."""
        return self._around.get(state, ())

    def is_atomic(self, state: str) -> bool:
        """Whether no other state lies inside this one, as far as is known."""
        return state not in self._inner


UNKNOWN = Hierarchy({}, {})


def hierarchy_of(machine: Machine) -> Hierarchy:
    """The hierarchy of a machine's states."""
    chart = machine.chart
    around = {
        place.name: tuple(outer.name for outer in chart.ancestors(place.index) if outer.index != ROOT)[::-1]
        for place in chart.places
        if place.index != ROOT
    }
    return Hierarchy(around, {row.id: _reach(chart, row) for row in chart.rows})


def _reach(chart: Chart, row: Row) -> Reach:
    leaves: frozenset[str] = frozenset()
    if row.targets:
        domain = chart.places[chart.domain(row, row.targets)]
        leaves = frozenset(place.name for place in chart.places[domain.index + 1 : domain.end])
    touched = [row.source, *(entered for target in row.targets for entered in _entered_states(chart, target))]
    return Reach(leaves, tuple(chart.places[index].name for index in touched if index != ROOT))


def _entered_states(chart: Chart, index: int) -> Iterator[int]:
    """A state and what it begins with; what a history stands for is not known here."""
    place = chart.places[index]
    if place.kind == HISTORY:
        return
    yield index
    for inner in place.initial if place.kind == COMPOUND else place.children:
        yield from _entered_states(chart, inner)
