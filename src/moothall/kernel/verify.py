"""What can be said of a machine before it runs: `verify` lists findings, `certify` the most that a run can cost.

Everything is read off one graph. Its points are the leaves (states without states inside); an arc says that in this
leaf this row may be taken, its own or one of the states around it, and that it enters that leaf. A row that an
unguarded row before it covers has no arc from there. Every endless run goes round a cycle of this graph for ever:
a row that leads somewhere always leaves the leaf that chose it, so the leaf must be entered again.

Which events can come:
- `done.state.*` comes when a final state is entered: such a row's arcs begin at the final states.
- `error.*` and `run.exhausted.*` come where something can cause them: an effect that a performer does (not a
  question, a timer or an alarm) may give up or be denied; a function may go wrong; a bounded state may be full.
- Everything else may come at any time. What a move raises by itself counts as coming from outside.

Cycles without a bound. A row is bounded by `at_most`, or by entering a state that has `max_visits`; a cycle
needs one such row. Without it the cycle is
- an error where the machine can go round by itself: every row on it is eventless, or takes an event that an effect, a
  function or a final state *on a cycle* causes. Deadlines, timers and failures count: nobody has to be there;
- a warning where each turn waits for something from outside (an answer, a message): a person sets the pace.
A row without `to` is a cycle only where the machine feeds it. `run.cancelled` goes round nothing.

The certificate counts rows taken, effects by kind, and what the cost tables say they use. It takes guards as free
and lets everything that can come do so at any time. Small machines are enumerated with the interpreter itself;
for others each leaf is a token that a row trades for new ones, and bounded rows are paid as often as they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moothall.kernel.chart import ATOMIC, COMPOUND, FINAL, HISTORY, PARALLEL, ROOT, Chart, Place, Row, emitted, sequence, trigger
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send
from moothall.kernel.events import Answered, Cancelled, Done, Event, Exhausted, Expired, GaveUp, Misbehaved, matches
from moothall.kernel.interpreter import _Entering
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Action, History, State

Level = Literal["error", "warning"]

_BY_THE_RUNTIME = frozenset(kind.kind for kind in (AskPerson, Send, Alarm, CancelSend))
_ANY = "*"
_EFFORT = 200_000


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a machine, where, why, and what to do."""

    level: Level
    code: str
    place: str
    why: str
    remedy: str


def verify(machine: Machine) -> tuple[Finding, ...]:
    """What is wrong with a machine, errors first."""
    graph = _Graph(machine)
    found = [
        *_unreachable(graph),
        *_shadowed(graph),
        *_stuck(graph),
        *_endless(graph),
        *_falling_through(graph),
        *_unhandled(graph),
        *_contested(graph),
    ]
    return tuple(sorted(found, key=lambda finding: finding.level))


def reachable(machine: Machine) -> frozenset[str]:
    """The states that rows lead to from the start, whatever guards say."""
    seen = _reached(machine.chart)
    return frozenset(place.name for place in machine.chart.places if seen[place.index] and place.index != ROOT)


def _reached(chart: Chart) -> bytearray:
    places, seen = chart.places, bytearray(len(chart.places))
    fresh = [ROOT]

    def see(entering: _Entering) -> None:
        remembered = {history for above in entering.restored for history in places[above].histories}
        for index in entering.states | remembered:
            if not seen[index]:
                seen[index] = 1
                fresh.append(index)

    seen[ROOT] = 1
    see(_starting(chart))
    while fresh:
        for row in places[fresh.pop()].rows:
            for target in row.targets:
                if not _is_plain(places[target], row):
                    see(_entering(chart, row))
                    break
                if not seen[target]:
                    seen[target] = 1
                    fresh.append(target)
    return seen


def _is_plain(target: Place, row: Row) -> bool:
    """Whether a row that enters this target enters nothing else for it."""
    return target.parent == row.domain and (target.kind == ATOMIC or target.kind == FINAL)


def _starting(chart: Chart) -> _Entering:
    entering = _Entering(chart, {})
    entering.all_down(chart.places[ROOT].initial, ROOT)
    return entering


def _entering(chart: Chart, row: Row) -> _Entering:
    """What a row enters before there is any history."""
    entering = _Entering(chart, {})
    flat = tuple(_without_history(chart, row.targets))
    domain = row.domain if row.domain is not None else chart.domain(row, flat)
    for target in row.targets:
        entering.down(target)
    for target in flat:
        entering.up(target, domain)
    return entering


def _without_history(chart: Chart, targets: Sequence[int]) -> Iterator[int]:
    for target in targets:
        place = chart.places[target]
        if place.kind == HISTORY:
            yield from _without_history(chart, place.default)
        else:
            yield target
