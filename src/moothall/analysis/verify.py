"""What is wrong with a machine, before it runs: findings with their place, the reason and a remedy.

Cycles without a bound. A row is bounded by `at_most`, or by entering a state that has `max_visits`; a cycle
needs one such row. Without it the cycle is
- an error where the machine can go round by itself: every row on it is eventless, or takes an event that an effect, a
  function or a final state *on a cycle* causes. Deadlines, timers and failures count: nobody has to be there;
- a warning where each turn waits for something from outside (an answer, a message): a person sets the pace.
A row without `to` is a cycle only where the machine feeds it. `run.cancelled` goes round nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moothall.analysis.ample import is_ample
from moothall.analysis.graph import (
    NO_BOUND,
    Arcs,
    Causes,
    Graph,
    fits,
    is_covered,
    is_done,
    is_inner,
    is_leaf,
    is_unconditional,
    knots_of,
    names_only,
    path_of,
    shortest_of,
    stations_of,
    takes_one,
)
from moothall.kernel.chart import (
    ATOMIC,
    FINAL,
    HISTORY,
    PARALLEL,
    ROOT,
    Place,
    Row,
    sequence,
    trigger,
)
from moothall.kernel.effects import Effect
from moothall.kernel.events import (
    Answered,
    Cancelled,
    Done,
    Expired,
    GaveUp,
    matches,
)
from moothall.kernel.interpreter import _domain
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import History, State

Level = Literal["error", "warning"]
_NO_NET = "no row in it or around it takes GaveUp"


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
    graph = Graph(machine)
    found = [
        *_unreachable(graph),
        *_shadowed_rows(graph),
        *_stuck(graph),
        *_endless(graph),
        *_falling_through(graph),
        *_unhandled_effects(graph),
        *_unheard(graph),
        *_contested_keys(graph),
    ]
    return tuple(sorted(found, key=lambda finding: finding.level))


def endless(machine: Machine) -> Finding | None:
    """Why a machine alone does not bound its runs: a cycle that it can go round by itself; None where it has none."""
    return next((problem for problem in _endless(Graph(machine)) if problem.level == "error"), None)


# the findings


def _unreachable(graph: Graph) -> Iterator[Finding]:
    for place in graph.places:
        if not graph.seen[place.index] and graph.seen[place.parent]:
            what = "no row leads to it" if place.kind != HISTORY else "no row leads to this history"
            yield Finding(
                "error", "unreachable", place.name, f"{what} from the start", "add a row that leads there, or remove it"
            )


def _shadowed_rows(graph: Graph) -> Iterator[Finding]:
    passed = {leaf for leaf in graph.leaves if _is_passed(graph, leaf)}
    heard = {row for leaf in graph.leaves for row in graph.open(leaf) if leaf not in passed or _may_be_at_once(row)}
    for place in graph.places:
        if graph.seen[place.index] and place.rows:
            yield from _shadowed_in(graph, place, heard)


def _shadowed_in(graph: Graph, place: Place, heard: set[Row]) -> Iterator[Finding]:
    at_once = next((row for row in place.rows if row.descriptors is None and graph.is_sure(row)), None)
    covers: dict[str | None, Row] = {}
    guarded: dict[Any, set[str | None]] = {}
    for row in place.rows:
        named: Sequence[str | None] = (None,) if row.descriptors is None else row.descriptors
        guard: Any = row.guard
        same = guarded.setdefault(guard if isinstance(guard, Hashable) else id(guard), set())
        if covers and all(is_covered(descriptor, set(covers)) for descriptor in named):
            yield _shadow(row, f"{trigger(next(iter(covers.values())).on)} above it has no guard and takes it first")
        elif same and all(is_covered(descriptor, same.union(covers)) for descriptor in named):
            yield _shadow(row, "a row above it has the same guard and takes it first")
        elif at_once is not None and at_once.targets and row.descriptors is not None and row not in heard:
            yield _shadow(row, "the state is left at once by its row on always, before any event comes")
        elif named and all(descriptor is not None and is_done(descriptor) for descriptor in named):
            if not _can_be_done(graph, row):
                yield _never_done(row)
        elif row not in heard and not is_leaf(place):
            yield _shadow(row, "rows of the states inside take its events first")
        if is_unconditional(row):
            covers.update((descriptor, row) for descriptor in named if descriptor not in covers)
        elif row.at_most is None:
            same.update(named)


def _never_done(row: Row) -> Finding:
    why = f"{', '.join(row.descriptors or ())} never comes: no final state inside can be reached"
    remedy = "give the state a Final inside and a row that leads to it, or remove the row"
    return Finding("error", "never-done", _row_place(row), why, remedy)


def _is_passed(graph: Graph, leaf: int) -> bool:
    """Whether nothing from outside comes while this leaf is active: the run is over, or a row on done leaves it."""
    place = graph.places[leaf]
    if place.kind != FINAL or graph.is_end(leaf):
        return place.kind == FINAL
    if graph.raises or any(above.kind == PARALLEL for above in graph.chart.ancestors(leaf)):
        return False
    done = f"{Done.name}.{graph.places[place.parent].name}"
    first = next((row for row in graph.open(leaf) if takes_one(row, (done,))), None)
    return first is not None and bool(first.targets) and graph.is_sure(first)


def _may_be_at_once(row: Row) -> bool:
    """Whether a row may be taken before the run waits: on always, or on what the interpreter itself raises."""
    return row.descriptors is None or any(not descriptor or is_inner(descriptor) for descriptor in row.descriptors)


def _shadow(row: Row, why: str) -> Finding:
    remedy = "put the row above the one that takes its events, give that one a guard, or remove this one"
    return Finding("error", "shadowed", _row_place(row), f"it is never taken: {why}", remedy)


def _row_place(row: Row) -> str:
    return f"{row.on.state} on {trigger(row.on)}"


def _can_be_done(graph: Graph, row: Row) -> bool:
    finals = (leaf for leaf in graph.leaves if graph.places[leaf].kind == FINAL)
    return any(takes_one(row, graph.raised(leaf)) for leaf in finals)


def _stuck(graph: Graph) -> Iterator[Finding]:
    """Dead ends, and parts of the machine that no final state can be reached from."""
    arcs = {leaf: list(_onward(graph, leaf)) for leaf in graph.leaves}
    ends = [leaf for leaf in graph.leaves if graph.is_end(leaf)]
    lost = set(arcs) - _leading_to(arcs, ends)
    for leaf in sorted(lost):
        if not arcs[leaf] and not _waits_for_others(graph, graph.places[leaf]):
            yield _dead_end(graph, graph.places[leaf])
    for knot in knots_of({leaf: arcs[leaf] for leaf in sorted(lost)}):
        if any(arc[1] not in knot for leaf in knot for arc in arcs[leaf]):
            continue
        if not ends:
            why = "it has no final state that can be reached: a run never ends by itself"
            yield Finding("warning", "no-end", graph.machine.name, why, "add a Final and a row that leads to it")
            return
        names = [graph.places[leaf].name for leaf in sorted(knot)]
        why = f"no path leads from {', '.join(names[:5])}{' …' if len(names) > 5 else ''} to a final state"
        yield Finding("error", "no-end", names[0], why, "add a row that leads out")


def _waits_for_others(graph: Graph, place: Place) -> bool:
    """Whether a final state ends a region while another region has no end, which is the one to name."""
    around = graph.places[graph.places[place.parent].parent]
    return place.kind == FINAL and around.kind == PARALLEL and not graph.can_finish(around)


def _onward(graph: Graph, leaf: int, top: int = ROOT) -> Iterator[tuple[Row, int]]:
    """What may take a leaf further: its own arcs, and rows of other regions that leave the state around them all.

    A region counts only if it can leave from wherever it stands: one that has come to rest helps nobody.
    """
    yield from (arc for arc in graph.arcs(leaf) if not names_only(arc[0], Cancelled.name))
    inner = graph.places[leaf]
    for place in graph.chart.ancestors(leaf):
        if place.index < top:
            break
        if place.kind == PARALLEL:
            for row in graph.leaving(place):
                region = place.children[bisect_right(place.children, row.source) - 1]
                if region != inner.index and _always_leaves(graph, place, region):
                    yield from ((row, to) for to in graph.leads[row].leaves)
        inner = place


def _always_leaves(graph: Graph, parallel: Place, region: int) -> bool:
    """Whether a region has a way out of the parallel state around it from each of its leaves, without the others."""
    found = graph.always_leaves.get(region)
    if found is None:
        end = graph.places[region].end
        arcs = {leaf: list(_onward(graph, leaf, region)) for leaf in graph.leaves if region <= leaf < end}
        alone = {
            leaf: [(row, to) for row, to in out if region <= row.source < end or row not in graph.after_done]
            for leaf, out in arcs.items()
        }
        leaving = set(graph.leaving(parallel))
        outside = {
            to for out in alone.values() for row, to in out if row in leaving or not parallel.index < to < parallel.end
        }
        found = graph.always_leaves[region] = set(alone) <= _leading_to(alone, outside)
    return found


def _leading_to(arcs: Arcs, ends: Iterable[int]) -> set[int]:
    back: dict[int, list[int]] = {}
    for leaf, out in arcs.items():
        for _, to in out:
            back.setdefault(to, []).append(leaf)
    found = set(ends)
    todo = list(found)
    while todo:
        for leaf in back.get(todo.pop(), ()):
            if leaf not in found:
                found.add(leaf)
                todo.append(leaf)
    return found


def _dead_end(graph: Graph, place: Place) -> Finding:
    if place.kind == FINAL:
        above = graph.places[place.parent].name
        why = f"it ends {above}, and no row takes Done of {above}: the run stays there for ever"
        return Finding("error", "dead-end", place.name, why, f"add On({above!r}, Done, to=…)")
    why = "no row leads out of it or of a state around it: the run stays there for ever"
    if any(above.kind == PARALLEL and graph.leaving(above) for above in graph.chart.ancestors(place.index)):
        why = "no row leads out of it, and where the other regions have come to rest the run stays there for ever"
    return Finding("error", "dead-end", place.name, why, "add a row that leads out, or make it a Final")


def _endless(graph: Graph) -> Iterator[Finding]:
    """Cycles without a bound, the shortest of each knot."""
    arcs = {
        leaf: [arc for arc in out if not names_only(arc[0], Cancelled.name)] for leaf, out in graph.unbounded().items()
    }
    eventless = knots_of({leaf: [arc for arc in out if arc[0].descriptors is None] for leaf, out in arcs.items()})
    for knot in eventless:
        yield _cycle(graph, knot, "eventless-cycle")
    arcs = _without(arcs, eventless)
    driven = _driven(graph, arcs)
    for knot in driven:
        yield _cycle(graph, knot, "unbounded-cycle")
    arcs = _without(arcs, driven)
    for knot in knots_of({leaf: [arc for arc in out if arc[0].targets] for leaf, out in arcs.items()}):
        yield _cycle(graph, knot, "paced-cycle")


def _without(arcs: Arcs, knots: Sequence[Arcs]) -> Arcs:
    if not knots:
        return arcs
    tied = {row for knot in knots for out in knot.values() for row, _ in out}
    return {leaf: [arc for arc in out if arc[0] not in tied] for leaf, out in arcs.items()}


def _driven(graph: Graph, arcs: Arcs) -> list[Arcs]:
    """The knots that the machine can go round by itself: what their rows take is caused on a cycle, again and again."""
    causes = graph.causes
    while True:
        knots = knots_of(arcs)
        fed = _fed_causes(graph, knots, causes)
        before = {leaf: out for knot in knots for leaf, out in knot.items()}
        arcs = {leaf: [arc for arc in out if _is_driven(graph, leaf, arc[0], fed)] for leaf, out in before.items()}
        if arcs == before and fed.owned == causes.owned and fed.adrift == causes.adrift:
            return knots
        causes = fed


def _fed_causes(graph: Graph, knots: Sequence[Arcs], before: Causes) -> Causes:
    """What is caused on these cycles, given what was thought to be caused before."""
    fed = Causes(graph.chart, cautious=False)
    for leaf, out in ((leaf, out) for knot in knots for leaf, out in knot.items()):
        for row, _ in out:
            fed.add(graph.by_row[row])
            for entered in graph.leads[row].entered if row.targets else ():
                fed.add(graph.by_place[entered])
        for row in graph.open(leaf):
            if _is_driven(graph, leaf, row, before):
                fed.add((name, fed.heard(leaf)) for name in graph.tried(row))
    return fed


def _is_driven(graph: Graph, leaf: int, row: Row, causes: Causes) -> bool:
    if row.descriptors is None:
        return True
    if graph.places[leaf].kind == FINAL and row in graph.after_done:
        return True
    return any(fits(descriptor, cause) for descriptor in row.descriptors for cause in causes.at(leaf))


def _cycle(graph: Graph, knot: Arcs, code: str) -> Finding:
    stations = stations_of(graph, shortest_of(knot))
    path = path_of(stations)
    why = f"{path}: {NO_BOUND}"
    remedy = "give one of its rows at_most=…, or one of its states max_visits=…"
    if code == "eventless-cycle":
        why = f"{path}: these rows wait for no event, and {NO_BOUND}"
    if code == "paced-cycle":
        return Finding("warning", code, stations[0], why + "; it turns as often as someone outside makes it", remedy)
    return Finding("error", code, stations[0], why, remedy)


def _falling_through(graph: Graph) -> Iterator[Finding]:
    """Events that a state waits for, and that no row may take in the end."""
    for place in graph.places:
        if not graph.seen[place.index] or not place.rows:
            continue
        for name, row in _conditional(graph, place).items():
            if _is_only_deaf(graph, place, name) or _is_own(graph, place, name):
                continue
            why = f"every row for {name or 'it'} has a guard or a bound: it may come and be taken by none"
            remedy = f"add On({row.on.state!r}, otherwise, …) below, or a row without a guard"
            yield Finding("warning", "no-otherwise", _row_place(row), why, remedy)
        rows = (
            [row for row in graph.chances(place.index) if _is_ordinary(row)] if _is_alone_at_rest(graph, place) else []
        )
        if rows and all(row.descriptors is None and not is_unconditional(row) for row in rows):
            why = "only guarded or bounded rows on always lead out: where none holds, the run stays for ever"
            yield Finding("warning", "no-otherwise", _row_place(rows[-1]), why, "leave the last one without a guard")


def _is_alone_at_rest(graph: Graph, place: Place) -> bool:
    """Whether nothing else is active with a leaf, whose moving on would have its rows on always tried again."""
    return is_leaf(place) and all(above.kind != PARALLEL for above in graph.chart.ancestors(place.index))


def _is_ordinary(row: Row) -> bool:
    """Whether a row takes anything but failures, limits and cancelling."""
    return row.descriptors is None or not all(
        (is_inner(descriptor) and not is_done(descriptor)) or matches(Cancelled.name, descriptor)
        for descriptor in row.descriptors
    )


def _is_only_deaf(graph: Graph, place: Place, name: str) -> bool:
    """Whether a spent bound only means that a message from outside is no longer heard, while the run goes on."""
    around = (place, *graph.chart.ancestors(place.index))
    rows = {
        row
        for above in around
        for row in above.rows
        if any(matches(descriptor, name) for descriptor in row.descriptors or ())
    }
    if matches(Answered.name, name) or any(row.guard is not None for row in rows):
        return False
    inside = graph.leaves[bisect_left(graph.leaves, place.index) : bisect_left(graph.leaves, place.end)]
    return all(
        not any(fits(name, cause) for cause in graph.causes.at(leaf))
        and any(row.targets and row not in rows and _is_ordinary(row) for row, _ in graph.arcs(leaf))
        for leaf in inside
        if graph.places[leaf].kind == ATOMIC
    )


def _is_certain(graph: Graph, row: Row) -> bool:
    """Whether a row is taken whenever its event comes: it has no guard, and no bound that could be spent."""
    return is_unconditional(row) or is_ample(graph, row)


def _is_own(graph: Graph, place: Place, name: str) -> bool:
    """Whether only the machine's own moves raise it, for rows without a guard: a bound is their author's arithmetic."""
    return name in graph.machine.inner and all(
        row.guard is None
        for row in place.rows
        if any(matches(descriptor, name) for descriptor in row.descriptors or ())
    )


def _conditional(graph: Graph, place: Place) -> dict[str, Row]:
    """The descriptors that only rows with a guard or a bound name, in a state and around it."""
    found: dict[str, Row] = {}
    for row in place.rows:
        if not _is_certain(graph, row):
            for descriptor in row.descriptors or ():
                if not (is_inner(descriptor) and not is_done(descriptor)) and not matches(Cancelled.name, descriptor):
                    found.setdefault(descriptor, row)
    if found:
        rows = [row for around in (place, *graph.chart.ancestors(place.index)) for row in around.rows]
        covers: set[str | None] = {
            descriptor for row in rows if _is_certain(graph, row) for descriptor in row.descriptors or ()
        }
        return {descriptor: row for descriptor, row in found.items() if not is_covered(descriptor, covers)}
    return found


def _unhandled_effects(graph: Graph) -> Iterator[Finding]:
    """Effects that may give up where nothing takes it, and deadlines that may pass where nothing does."""
    for place in graph.places:
        if not graph.seen[place.index]:
            continue
        owned = graph.causes.owned.get(place.index, ())
        around = (place, *graph.chart.ancestors(place.index))
        may_fail = GaveUp.name in owned or (GaveUp.name, None) in graph.by_place[place.index]
        if may_fail and graph.machine.errors == "strict":
            taking = _taking(around, GaveUp.name)
            if not any(_is_certain(graph, row) for row in taking):
                what = "every row for GaveUp in it and around it has a guard or a bound" if taking else _NO_NET
                why = f"its effect may give up, and {what}: the run then fails"
                yield Finding("warning", "unhandled-failure", place.name, why, f"add On({place.name!r}, GaveUp, …)")
        if Expired.name in owned and not _taking((*around, *graph.places[place.index : place.end]), Expired.name):
            why = "its question has a deadline, and no row in it or around it takes Expired: nothing then goes on"
            yield Finding("warning", "unhandled-failure", place.name, why, f"add On({place.name!r}, Expired, …)")


def _unheard(graph: Graph) -> Iterator[Finding]:
    """Effects whose end no row takes: the reply is dropped, and the run may stand still."""
    for place in graph.places:
        if not graph.seen[place.index] or place.kind in (FINAL, HISTORY) or isinstance(place.node, History):
            continue
        within = (*graph.places[place.index : place.end], *graph.chart.ancestors(place.index))
        for action in sequence(place.node.enter):
            for event in getattr(action, "outcomes", ()):
                if event is not Expired and not _taking(within, event.name):
                    why = f"what it asks for ends in {event.__name__}, and no row in it or around it takes that"
                    remedy = f"add On({place.name!r}, {event.__name__}, …)"
                    yield Finding("warning", "unheard", place.name, why, remedy)


def _taking(places: Iterable[Place], name: str) -> list[Row]:
    return [row for place in places for row in place.rows if takes_one(row, (name,))]


def _contested_keys(graph: Graph) -> Iterator[Finding]:
    """Keys that two regions of a parallel state write."""
    for place in graph.places:
        if place.kind != PARALLEL or not graph.seen[place.index]:
            continue
        regions = {graph.places[child].name: _written_keys(graph, place, child) for child in place.children}
        writing = {name: keys for name, keys in regions.items() if keys}
        keys = sorted({key for keys in writing.values() for key in keys if key is not None})
        for key in keys:
            both = [name for name, written in writing.items() if key in written]
            if len(both) > 1:
                why = f"its regions {' and '.join(both)} both write {key!r}: the later one wins"
                yield Finding("error", "contested-key", place.name, why, "let one region write it, or write two keys")
        unknown = [name for name, written in writing.items() if None in written]
        if unknown and len(writing) > 1:
            why = f"its regions {' and '.join(writing)} write, and {' and '.join(unknown)} does not say what"
            yield Finding(
                "warning", "undeclared-writes", place.name, why, "declare writes=[…] on the rows of its regions"
            )


def _written_keys(graph: Graph, parallel: Place, region: int) -> set[str | None]:
    """The keys that moves of a region write while the others are active; None for a move that does not say."""
    found: set[str | None] = set()
    for index in range(region, graph.places[region].end):
        place = graph.places[index]
        node = place.node
        if graph.seen[index] and not isinstance(node, History):
            starting = node.starting if isinstance(node, State) else ()
            for actions in (node.enter, node.exit, starting):
                found |= _writes(actions)
        for row in place.rows if graph.seen[index] else ():
            domain = _domain(graph.chart, row, {})
            if domain is None or domain >= region:
                found |= _writes(row.on.do) if row.on.writes is None or not row.on.do else set(row.on.writes)
    return found


def _writes(actions: Any) -> set[str | None]:
    """What actions say that they write; what only wants effects writes nothing."""
    found: set[str | None] = set()
    for action in sequence(actions):
        if isinstance(action, Effect):
            continue
        declared: Iterable[str] | None = getattr(action, "writes", None)
        if declared is not None:
            found.update(declared)
        elif not hasattr(action, "outcomes"):
            found.add(None)
    return found
