"""The way that a run took: the states that it entered and the events of its machine's own, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.kernel.chart import HISTORY, PARALLEL, Chart, Place
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine


class Path(Frozen):
    """States and events in the order of a journal."""

    states: tuple[str, ...]
    events: tuple[str, ...]


def path_of(machine: Machine, entries: Sequence[Mapping[str, Any]]) -> Path:
    """The way that a journal tells."""
    known = {row.id: row.on.event for row in machine.chart.rows}
    named = [known[row] for entry in entries for row in entry["taken"] if isinstance(known.get(row), str)]
    return Path(states_of(machine.chart, entries), tuple(str(event) for event in named))


def states_of(chart: Chart, entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Every state that was entered, the first ones included."""
    rows = {row.id: row.targets for row in chart.rows if row.targets}
    entered = [target for entry in entries for taken in entry["taken"] for target in rows.get(taken, ())]
    places = [place for first in chart.places[0].initial for place in _entered_places(chart, first)]
    return tuple(
        place.name for place in (*places, *(place for target in entered for place in _entered_places(chart, target)))
    )


def _entered_places(chart: Chart, index: int) -> Iterator[Place]:
    """A state and those that it begins with; a history stands for what it begins with too."""
    place = chart.places[index]
    inside = (
        place.default if place.kind == HISTORY else place.initial or (place.children if place.kind == PARALLEL else ())
    )
    yield chart.places[place.parent] if place.kind == HISTORY else place
    for child in inside:
        yield from _entered_places(chart, child)
