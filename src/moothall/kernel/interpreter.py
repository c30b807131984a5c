"""The one place where a run moves: `transition(machine, snapshot, event, answers) -> Step | Ask`.

Pure and synchronous. The semantics are those of SCXML's algorithm (W3C Recommendation, Appendix D):

- An event is offered to each active atomic state and the states around it, inner before outer, rows in
  document order; the first row whose guard holds is chosen. Of two rows that would leave the same state the
  inner one wins, else the earlier one.
- A microstep leaves states innermost first, does the rows' moves, enters states outermost first. Then rows
  without an event are tried, then raised events, until nothing is left to do; then late entry moves are done, and
  what they raise is seen to. Snapshots exist only there.
- `errors` is read in two places: at a guard that went wrong (strict: nothing is taken for this event; scxml:
  the guard counts as false), and at an `error.*` event that no row takes (strict: the run fails; scxml: ignored).
- An event that matches nothing gives a step with nothing taken.

Candidate rows and the plan of a microstep are kept per configuration; a plan that consulted history never is. Every
run passes here at every step, so what most steps do not need (a queue, a settling, a count) is not made for them.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from moothall.errors import DefinitionError, place_of, words_of
from moothall.kernel.chart import (
    ATOMIC,
    COMPOUND,
    FINAL,
    HISTORY,
    PARALLEL,
    ROOT,
    Bound,
    Chart,
    Choice,
    Flight,
    Operation,
    Place,
    Plan,
    Region,
    Row,
    Selection,
    trigger,
)
from moothall.kernel.codec import encode, read_back
from moothall.kernel.effects import Effect
from moothall.kernel.events import Cancelled, Event, ExecutionFailed, Exhausted, Named, Started, matches
from moothall.kernel.foreign import field_names
from moothall.kernel.machine import Machine, label
from moothall.kernel.step import (
    NO_INSTANT,
    Answer,
    Append,
    Ask,
    Instant,
    Microstep,
    Moment,
    Move,
    Snapshot,
    Status,
    Step,
    Tail,
    Wanted,
    make_snapshot,
    make_step,
    make_wanted,
)

HOUSE = __file__.rpartition("kernel")[0]
"""Where code is that is not the author's."""
PLACE = " (in "
"""What stands before the place of an error in the reason of a run."""
MEMO = 4096


def start(machine: Machine, data: Any, answers: Sequence[Answer] = (), *, instant: Instant | None = None) -> Step | Ask:
    """The first step of a run: enter the start state. `instant` is for machines that ask for the moment."""
    turn = _Turn().at(machine, Snapshot((), data), Started(data), answers)
    if instant is not None:
        turn.instant = instant
    try:
        turn.take(machine.chart.beginning)
        turn.settle()
    except _Unanswered as unanswered:
        return unanswered.ask
    return turn.step(None)


def transition(
    machine: Machine,
    snapshot: Snapshot,
    event: Event,
    answers: Sequence[Answer] = (),
    *,
    within: str | None = None,
    flight: Flight | None = None,
    instant: Instant | None = None,
) -> Step | Ask:
    """Move a run by one event. `within` offers the event to that state and the states around it alone.

    `flight` is what a machine with rows on `All` has to know: the effect that ended, and those still in flight.
    `instant` is for machines that ask for the moment: when this is decided, and what their draws are derived from.
    """
    if snapshot.status != "live":
        return Step(snapshot, event, (), snapshot)
    turn = _Turn().at(machine, snapshot, event, answers)
    if flight is not None:
        turn.flight = flight
    if instant is not None:
        turn.instant = instant
    try:
        turn.offer(event, within)
        if turn.queue or machine.restless:
            turn.settle()
    except _Unanswered as unanswered:
        return unanswered.ask
    return turn.step(snapshot)


def accepts(machine: Machine, snapshot: Snapshot, event: Event | str) -> bool:
    """Whether a row of the active states names this event, whatever its guard will say; an inner event never."""
    name = event if isinstance(event, str) else event.name
    if snapshot.status != "live" or name in machine.inner:
        return False
    regions = _candidates(machine.chart, (snapshot.active, name, None))
    return any(_bounded(row, snapshot) for region in regions for row, _ in region)


def possible(machine: Machine, snapshot: Snapshot) -> tuple[str, ...]:
    """The events from outside that rows of the active states name, inner states first; "*" stands for any."""
    if snapshot.status != "live":
        return ()
    chart = machine.chart
    found: dict[str, None] = {}
    for name in snapshot.active:
        index = chart.by_name[name]
        for place in (chart.places[index], *chart.ancestors(index)):
            for row in place.rows:
                if row.descriptors is not None and _bounded(row, snapshot):
                    found |= dict.fromkeys(descriptor or "*" for descriptor in row.descriptors)
    return tuple(name for name in found if name not in machine.inner)


def _bounded(row: Row, snapshot: Snapshot) -> bool:
    return row.at_most is None or snapshot.counts.get(row.id, 0) < row.at_most


class _Unanswered(BaseException):
    """A script has no answer yet. No guard or move may catch it."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask


class _Turn:
    """The working state of one call: what a step is made from. It never outlives the call."""

    __slots__ = (
        "active",
        "answers",
        "appends",
        "asked",
        "counts",
        "data",
        "effects",
        "event",
        "first",
        "flight",
        "history",
        "instant",
        "machine",
        "microsteps",
        "misguided",
        "output",
        "queue",
        "reason",
        "status",
        "threads",
    )
    instant: Instant

    def at(self, machine: Machine, snapshot: Snapshot, event: Event, answers: Sequence[Answer]) -> _Turn:
        """Begin where a run stands. As `__init__` it would take longer: Python enters that by way of `type`."""
        self.machine = machine
        self.first = self.event = event
        self.active = snapshot.active
        self.data = snapshot.data
        self.status: Status = "live"
        self.reason = ""
        self.output = snapshot.output
        self.counts = snapshot.counts
        self.history = snapshot.history
        self.threads = snapshot.threads
        self.answers = answers
        self.asked = 0
        self.queue: deque[Event] | None = None
        self.microsteps: tuple[Microstep, ...] = ()
        self.misguided: tuple[Event, ...] = ()
        self.effects: list[Wanted] = []
        self.appends: tuple[Append, ...] = ()
        self.flight = _NOTHING_IN_FLIGHT
        return self

    # what happens

    def offer(self, event: Event, within: str | None = None) -> None:
        """Take the rows that this event enables; see to it that what nobody took has its consequence."""
        self.event = event
        choice = self.select(event.name, within)
        if choice:
            self.take(choice)
        elif choice is not None:
            self.untaken(event)

    def settle(self) -> None:
        """Go on until nothing is left to do: rows without an event first, then raised events, then late moves."""
        limit, begun, joined = self.machine.max_microsteps, 0, set[str]()
        while self.status == "live":
            if len(self.microsteps) > limit:
                self.end("failed", _explained(self.first, self.microsteps, limit))
            elif len(self.misguided) > limit:
                last = _reason(self.misguided[-1])
                self.end("failed", f"{self.first.name} made more than {limit} guards go wrong; the last: {last}")
            elif self.machine.chart.eventless and (choice := self.select(None, None)):
                self.take(choice)
            elif self.queue:
                self.offer(self.queue.popleft())
            elif self.machine.chart.late and begun < len(self.microsteps):
                self.begin(self.microsteps[begun:])
                begun = len(self.microsteps)
            elif self.machine.chart.joins and (name := self.join(joined)):
                joined.add(name)
                self.offer(Named(name))
            else:
                return

    def join(self, joined: Collection[str]) -> str:
        """The event that says that all have ended which a state asked, once for each step; "" where none is due.

        It is due where the last of them ended with this event, or where the state was entered and asks nobody.
        """
        chart, flight = self.machine.chart, self.flight
        entered = {state for microstep in self.microsteps for state in microstep.entered}
        left = {state for microstep in self.microsteps for state in microstep.exited}
        around = _names(chart, chart.around(self.active))
        for state, all_of in chart.joins:
            name = all_of.name_in(state)
            is_due = state in entered or (flight.owner == state and flight.ends(all_of))
            if name in joined or state not in around or not is_due:
                continue
            flying = () if state in left else (wanted for wanted in flight.others if wanted.owner == state)
            new = (wanted for wanted in self.effects if wanted.owner == state)
            if not any(all_of.waits_for(wanted.effect) for wanted in (*flying, *new)):
                return name
        return ""

    def begin(self, microsteps: Iterable[Microstep]) -> None:
        """Do the late moves of the states that were entered in these microsteps and not left again."""
        chart, entered = self.machine.chart, set[int]()
        for microstep in microsteps:
            entered.difference_update(chart.by_name[name] for name in microstep.exited)
            entered.update(chart.by_name[name] for name in microstep.entered)
        around = chart.around(self.active)
        for place in [chart.places[index] for index in sorted(entered)]:
            late = [action for action in place.enter if action.late]
            self.follow((action, place.name, _seen(chart, action, around), None) for action in late)

    def untaken(self, event: Event) -> None:
        name = event.name
        if matches("error", name) and self.machine.errors == "strict":
            self.end("failed", _reason(event))
        elif matches(Exhausted.name, name):
            self.end("limited", _reason(event))
        elif matches(Cancelled.name, name):
            self.leave_all()
            self.end("cancelled", _reason(event))

    def end(self, status: Status, reason: str) -> None:
        self.status, self.reason = status, reason
        if status != "done":
            self.effects = [wanted for wanted in self.effects if wanted.owner is None and status == "cancelled"]

    # selection

    def select(self, name: str | None, within: str | None) -> Selection:
        """What to take for this event (None: of the rows without an event)."""
        chart, key = self.machine.chart, (self.active, name, within)
        regions = chart.candidates.get(key) or _candidates(chart, key)
        if len(regions) == 1:
            return self.first_of(regions[0])
        chosen: list[Choice] = []
        for region in regions:
            choice = self.first_of(region)
            if choice is None:
                return None
            if choice:
                chosen.append(choice)
        if len(chosen) > 1:
            return self.together(chosen)
        return chosen[0] if chosen else False

    def first_of(self, region: Region) -> Selection:
        """The first row that may be taken in a region."""
        for row, choice in region:
            held = row.is_free or self.holds(row)
            if held:
                return choice
            if held is None:
                return None
        return False

    def holds(self, row: Row) -> bool | None:
        """Whether a row may be taken now; None where its guard went wrong and that must not count as "no"."""
        if row.at_most is not None and self.counts.get(row.id, 0) >= row.at_most:
            return False
        guard = row.guard
        if guard is None:
            return True
        try:
            if row.guard_scripted:
                held = guard(self.data, self.event, self.moment(None))
            else:
                held = guard(self.data, self.event)
        except (Exception, SystemExit) as error:  # the author's code may raise anything
            return self.misguarded(row, words_of(error), place_of(error, HOUSE))
        if held is True or held is False:
            return held
        return self.misguarded(row, f"it gave {held!r}; a guard gives True or False")

    def misguarded(self, row: Row, reason: str, place: str = "") -> bool | None:
        where = f"{self.machine.chart.places[row.source]} on {trigger(row.on)}, guard {label(row.on.when)}"
        error = ExecutionFailed(where, reason, place)
        self.put(error)
        self.misguided += (error,)
        return None if self.machine.errors == "strict" else False

    def together(self, chosen: Sequence[Choice]) -> Choice:
        """The choices of several regions as one; regions may share a row of a state around them."""
        event, choices = chosen[0].event, self.machine.chart.choices
        rows = self.unconflicted(dict.fromkeys(choice.rows[0] for choice in chosen))
        key = (self.active, event, rows)
        choice = choices.get(key)
        if choice is None:
            choice = Choice(self.active, event, rows)
            _remember(choices, key, choice)
        return choice

    def unconflicted(self, rows: Collection[Row]) -> tuple[Row, ...]:
        """Without the rows that another, inner or earlier one pre-empts."""
        chart, kept = self.machine.chart, list[Row]()
        places, domains = chart.places, {row: _domain(chart, row, self.history) for row in rows}
        for row in rows:
            rivals = [other for other in kept if _conflict(places, domains[row], domains[other])]
            if all(other.source < row.source < places[other.source].end for other in rivals):
                kept = [other for other in kept if other not in rivals] + [row]
        return tuple(kept)

    # taking rows

    def take(self, choice: Choice) -> None:
        """Do one microstep, unless it would enter a state once too often."""
        plan = choice.plan or self.planned(choice)
        if plan.is_bounded and self.overspent(plan):
            return
        if plan.records:
            self.history = {**self.history, **dict(plan.records)}
        self.active = plan.active
        self.microsteps += (plan.microstep,)
        if self.effects:
            left = plan.microstep.exited
            self.effects = [wanted for wanted in self.effects if wanted.owner not in left]
        self.follow(plan.operations)
        if plan.ends:
            self.leave_all()
            self.finish_queue()
            if self.status == "live":
                self.end("done", "")

    def planned(self, choice: Choice) -> Plan:
        """What taking a choice does, worked out; it is kept where that does not depend on history."""
        chart = self.machine.chart
        plan, historic = _plan(chart, choice, self.history) if choice.rows else (_plan_start(chart), False)
        if not historic:
            choice.plan = plan
        return plan

    def overspent(self, plan: Plan) -> bool:
        """Whether the plan would enter a state once too often; counts its visits and rows where it would not."""
        if plan.visited and self.overvisited(plan):
            return True
        if plan.counted:
            self.counts = dict(self.counts)
            for row in plan.counted:
                self.counts[row.id] = self.counts.get(row.id, 0) + 1
        return False

    def overvisited(self, plan: Plan) -> bool:
        """Whether the plan would enter a state once too often; counts the visits where it would not."""
        counts = dict(self.counts)
        for place in plan.visited:
            limit = getattr(place.node, "max_visits", None)
            counts[place.name] = counts.get(place.name, 0) + 1
            if limit is not None and counts[place.name] > limit:
                exhausted = Exhausted("visits", limit, place.name)
                if self.event.name == exhausted.name:
                    self.end("limited", _reason(exhausted))
                else:
                    self.offer(exhausted)
                return True
        self.counts = counts
        return False

    def finish(self, result: Bound | None, active: frozenset[str] | None, done: tuple[str, ...]) -> None:
        """A final state was entered: its result travels with the first done event, or is the run's outcome."""
        value = None if result is None else self.plain(result, active)
        if not done:
            self.output = value
        for position, name in enumerate(done):
            self.put(Named(name, None if position else value))

    def plain(self, result: Bound, active: frozenset[str] | None) -> Any:
        """A final state's result as JSON, so that it is the same before and after a crash."""
        try:
            given = result.call(self.data, self.event) if active is None else self.scripted(result, active)
        except (Exception, SystemExit) as error:  # the author's code may raise anything
            self.misbehaved(result.where, words_of(error), place_of(error, HOUSE))
            return None
        try:
            return encode(given)
        except DefinitionError as error:
            self.misbehaved(result.where, str(error))
            return None

    def finish_queue(self) -> None:
        """The run is at its end: what went wrong on the way there has nobody left to take it."""
        wrong = next((event for event in self.queue or () if matches("error", event.name)), None)
        if wrong is not None:
            self.untaken(wrong)

    def leave_all(self) -> None:
        """Do the exit moves of everything that is active, innermost first."""
        around = self.machine.chart.around(self.active)
        self.follow(_exits(self.machine.chart, around, sorted(around, reverse=True)))

    # moves

    def follow(self, operations: Iterable[Operation]) -> None:
        """Do moves, and keep what each of them gives: new data at once, since most give these, the rest by `keep`."""
        kind = self.machine.data
        for action, owner, active, done in operations:
            if done is not None:
                self.finish(action, active, done)
                continue
            call = action.call
            try:
                given = call(self.data, self.event) if active is None else self.scripted(action, active)
            except (Exception, SystemExit) as error:  # the author's code may raise anything
                self.misbehaved(action.where, words_of(error), place_of(error, HOUSE))
                continue
            if type(given) is kind and action.writes is None:
                self.renew(given)
            else:
                self.keep(given, owner, action)

    def keep(self, given: Any, owner: str | None, action: Bound) -> None:
        """Keep what a move gave: data, effects, appends, raised events."""
        if action.writes is not None and self.overwrites(action.writes, action.where, given):
            return
        if type(given) is self.machine.data:
            self.renew(given)
        elif isinstance(given, Effect):
            if action.allowed.get(given.kind, 0) >= 1:
                self.effects.append(make_wanted(given, owner if given.owned else None))
            else:
                self.want((given,), owner, action)
        elif isinstance(given, Move):
            self.apply(given, owner, action)
        elif given is None or self.machine.data not in (None, dict):
            self.misgiven(action.where, type(given).__name__)
        else:
            self.renew(given)

    def renew(self, given: Any) -> None:
        """Go on with new data; those of a declared type are as they would be read back after a crash."""
        kind = self.machine.data
        self.data = given if kind is None else read_back(kind, given, self.data)

    def overwrites(self, writes: frozenset[str], where: str, given: Any) -> bool:
        """Whether a move changed what it does not declare; then nothing that it gave is kept."""
        if given is None or isinstance(given, Effect):
            return False
        before, after = _keys(self.data), _keys(given.data if isinstance(given, Move) else given)
        changed = [key for key in {**before, **after} if key not in writes and not _same(before, after, key)]
        if changed:
            allowed = ", ".join(sorted(writes)) or "nothing"
            self.misbehaved(where, f"it writes {', '.join(map(str, changed))}, but `writes` allows {allowed}")
        return bool(changed)

    def misgiven(self, where: str, given: str) -> None:
        wanted = "the new data" if self.machine.data is None else f"a {self.machine.data.__name__}"
        self.misbehaved(where, f"it gave {given}; a move gives {wanted}, a Move or an effect")

    def misbehaved(self, where: str, reason: str, place: str = "") -> None:
        self.put(ExecutionFailed(where, reason, place))

    def put(self, *events: Event) -> None:
        """Raise events: they come to their turn when no row without an event can be taken."""
        if self.queue is None:
            self.queue = deque()
        self.queue.extend(events)

    def apply(self, move: Move[Any], owner: str | None, action: Bound) -> None:
        kind = self.machine.data
        if kind not in (None, dict) and type(move.data) is not kind:
            self.misgiven(action.where, f"a Move of {type(move.data).__name__}")
            return
        try:
            texts = [_text(append.message) for append in move.appends]
        except DefinitionError as error:
            self.misbehaved(action.where, str(error))
            return
        if move.effects and not self.want(move.effects, owner, action):
            return
        self.renew(move.data)
        if move.raises:
            self.put(*move.raises)
        if move.appends:
            self.append(move.appends, texts)
        if move.error:
            self.misbehaved(action.where, move.error)

    def want(self, effects: tuple[Effect, ...], owner: str | None, action: Bound) -> bool:
        """Want effects, if they are of the kinds and number that the table declares."""
        kinds = [effect.kind for effect in effects]
        for kind in kinds:
            if kinds.count(kind) > action.allowed.get(kind, 0):
                most = action.allowed.get(kind, 0)
                self.misbehaved(action.where, f"it wants {kinds.count(kind)} × {kind}, but `emits` allows {most}")
                return False
        for effect in effects:
            self.effects.append(make_wanted(effect, owner if effect.owned else None))
        return True

    def append(self, appends: Sequence[Append], texts: Sequence[str]) -> None:
        threads = dict(self.threads)
        for append, text in zip(appends, texts, strict=True):
            tail = threads.get(append.thread, _EMPTY)
            digest = hashlib.blake2b((tail.head + text).encode(errors="surrogatepass"), digest_size=16).hexdigest()
            threads[append.thread] = Tail(tail.count + 1, digest)
        self.threads = threads
        self.appends += tuple(appends)

    # scripts

    def scripted(self, action: Bound, active: frozenset[str]) -> Any:
        return action.call(self.data, self.event, self.moment(active))

    def moment(self, active: frozenset[str] | None) -> Moment:
        if active is None:
            chart = self.machine.chart
            active = _names(chart, chart.around(self.active))
        return Moment(active, self.evaluate, getattr(self, "instant", NO_INSTANT))  # few machines ask for it

    def evaluate(self, script: Any, scope: Any) -> Answer:
        if self.asked < len(self.answers):
            self.asked += 1
            return self.answers[self.asked - 1]
        raise _Unanswered(Ask(script, scope))

    def step(self, before: Snapshot | None) -> Step:
        after = make_snapshot(
            self.active, self.data, self.status, self.reason, self.output, self.counts, self.history, self.threads
        )
        return make_step(
            before,
            self.first,
            self.microsteps,
            after,
            tuple(self.effects),
            self.appends,
            tuple(self.answers[: self.asked]) if self.asked else (),
        )


_NOTHING_IN_FLIGHT = Flight()
_EMPTY = Tail(0, "")
_ABSENT = object()


def _text(message: Any) -> str:
    return json.dumps(encode(message), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _keys(data: Any) -> Mapping[str, Any]:
    """The parts of a run's data that a move may be said to write."""
    if isinstance(data, Mapping):
        return data
    if has := field_names(type(data)):
        return {name: getattr(data, name) for name in has}
    return {"the data": data}


def _same(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> bool:
    one, other = before.get(key, _ABSENT), after.get(key, _ABSENT)
    return one is other or bool(one == other)


def _reason(event: Event) -> str:
    match event:
        case ExecutionFailed(where=where, reason=reason, place=place):
            return f"{where}: {reason}{PLACE}{place})" if place else f"{where}: {reason}"
        case Exhausted(resource=resource, limit=limit, where=where):
            return f"limit of {limit:g} {resource} reached" + (f" in {where}" if where else "")
        case _:
            return getattr(event, "reason", "") or event.name


def _explained(event: Event, microsteps: Sequence[Microstep], limit: int) -> str:
    tail = [" and ".join(microstep.taken) or "start" for microstep in microsteps[-limit:]]
    for length in range(1, len(tail) // 2 + 1):
        if tail[-length:] == tail[-2 * length : -length]:
            return f"{event.name} caused more than {limit} microsteps; these rows repeat: {' → '.join(tail[-length:])}"
    return f"{event.name} caused more than {limit} microsteps; the last: {' → '.join(tail[-5:])}"


# candidates and plans: pure functions of chart and configuration


def _remember(memo: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memo) >= MEMO:
        memo.clear()
    memo[key] = value


def _candidates(chart: Chart, key: tuple[tuple[str, ...], str | None, str | None]) -> tuple[Region, ...]:
    """For each active atomic state the rows that an event could take; the key is the states, the event, the scope."""
    active, name, within = key
    found = chart.candidates.get(key)
    if found is None:
        states = [chart.by_name[state] for state in _inside(chart, active, within)]
        found = tuple(
            tuple((row, Choice(active, name or "", (row,))) for row in _rows_for(chart, state, name))
            for state in states
        )
        _remember(chart.candidates, key, found)
    return found


def _inside(chart: Chart, active: tuple[str, ...], within: str | None) -> tuple[str, ...]:
    if within is None:
        return active
    place = chart.places[chart.by_name[within]]
    return tuple(state for state in active if place.index <= chart.by_name[state] < place.end)


def _rows_for(chart: Chart, index: int, name: str | None) -> tuple[Row, ...]:
    return tuple(
        row
        for place in (chart.places[index], *chart.ancestors(index))
        for row in place.rows
        if (row.descriptors is None if name is None else _takes(row, name))
    )


def _takes(row: Row, name: str) -> bool:
    return row.descriptors is not None and any(matches(descriptor, name) for descriptor in row.descriptors)


def _names(chart: Chart, indexes: set[int]) -> frozenset[str]:
    return frozenset(chart.places[index].name for index in indexes if index != ROOT)


def _effective(chart: Chart, targets: Sequence[int], history: Any) -> list[int]:
    """Targets with history states replaced by what they stand for now."""
    found: list[int] = []
    for target in targets:
        place = chart.places[target]
        if place.kind != HISTORY:
            found.append(target)
        elif place.name in history:
            found += [chart.by_name[name] for name in history[place.name]]
        else:
            found += _effective(chart, place.default, history)
    return found


def _domain(chart: Chart, row: Row, history: Any) -> int | None:
    if not row.via_history:
        return row.domain
    return chart.domain(row, tuple(_effective(chart, row.targets, history)))


def _conflict(places: list[Place], one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return False
    return one <= other < places[one].end or other <= one < places[other].end


class _Entering:
    """Which states a microstep enters: the targets, what is around them, what they begin with."""

    def __init__(self, chart: Chart, history: Any) -> None:
        self.chart = chart
        self.history = history
        self.states: set[int] = set()
        self.defaults: set[int] = set()
        self.restored: dict[int, tuple[Bound, ...]] = {}
        self.historic = False

    def down(self, index: int) -> None:
        """Enter a state and whatever it begins with."""
        place = self.chart.places[index]
        if place.kind == HISTORY:
            self.recall(place)
            return
        self.states.add(index)
        if place.kind == COMPOUND:
            self.defaults.add(index)
            self.all_down(place.initial, index)
        elif place.kind == PARALLEL:
            self.regions(place)

    def recall(self, place: Place) -> None:
        self.historic = True
        stored = self.history.get(place.name)
        if stored is None:
            self.restored[place.parent] = place.starting
        self.all_down(
            _effective(self.chart, (place.index,), self.history) if stored is not None else place.default, place.parent
        )

    def all_down(self, targets: Sequence[int], above: int) -> None:
        for target in _innermost(self.chart, targets):
            self.down(target)
        for target in targets:
            self.up(target, above)

    def up(self, index: int, above: int) -> None:
        """Enter what lies between a state and the one above, which is not entered."""
        for place in self.chart.ancestors(index):
            if place.index == above:
                return
            self.states.add(place.index)
            if place.kind == PARALLEL:
                self.regions(place)

    def regions(self, place: Place) -> None:
        for child in place.children:
            end = self.chart.places[child].end
            if not any(child < state < end for state in self.states):
                self.down(child)


def _plan_start(chart: Chart) -> Plan:
    """What beginning does; there is no history yet."""
    entering = _Entering(chart, {})
    entering.all_down(chart.places[ROOT].initial, ROOT)
    plan = Plan()
    _enter(chart, plan, entering, {ROOT})
    return _finished(chart, plan, chart.beginning, [], entering)


def _plan(chart: Chart, choice: Choice, history: Any) -> tuple[Plan, bool]:
    """What taking a choice does, and whether history was consulted."""
    plan, rows = Plan(), choice.rows
    configuration = chart.around(choice.active)
    domains = [_domain(chart, row, history) for row in rows]
    exited = sorted(
        (
            index
            for index in configuration
            for domain in set(domains)
            if domain is not None and _below(chart, index, domain)
        ),
        reverse=True,
    )
    _record(chart, plan, exited, configuration)
    around = set(configuration)
    plan.operations += _exits(chart, around, exited)
    for row in rows:
        owner = _owner(chart, row)
        for action in row.actions:
            plan.operations.append((action, owner, _seen(chart, action, around), None))
    left = {**history, **dict(plan.records)}
    entering = _Entering(chart, left)
    for row, domain in zip(rows, domains, strict=True):
        if domain is not None:
            for target in _innermost(chart, row.targets):
                entering.down(target)
            for target in _effective(chart, row.targets, left):
                entering.up(target, domain)
    entering.states -= around  # a history may name states around it that were never left
    _enter(chart, plan, entering, around)
    plan.counted = tuple(row for row in rows if row.at_most is not None)
    return _finished(chart, plan, choice, exited, entering), entering.historic


def _innermost(chart: Chart, targets: Sequence[int]) -> list[int]:
    """Targets without those that have another one inside: they begin there, and not where they would by themselves."""
    return [target for target in targets if not any(_below(chart, other, target) for other in targets)]


def _exits(chart: Chart, around: set[int], exited: Sequence[int]) -> Iterator[Operation]:
    """The exit moves of some states, innermost first."""
    for index in exited:
        for action in chart.places[index].exit:
            yield action, None, _seen(chart, action, around), None
        around.discard(index)


def _owner(chart: Chart, row: Row) -> str | None:
    """The state that a row's effects belong to: where it leads, or where it stays; None where that is the machine."""
    place = chart.places[row.targets[0] if row.targets else row.source]
    if place.kind == HISTORY:
        place = chart.places[place.parent]
    return None if place.index == ROOT else place.name


def _below(chart: Chart, index: int, domain: int) -> bool:
    return domain < index < chart.places[domain].end


def _seen(chart: Chart, action: Bound, around: set[int]) -> frozenset[str] | None:
    """The active states as a scripted move sees them at its turn; others do not look."""
    return _names(chart, around) if action.scripted else None


def _record(chart: Chart, plan: Plan, exited: list[int], configuration: set[int]) -> None:
    """Remember where states with history stood, before anything is left."""
    for index in exited:
        place = chart.places[index]
        for remembered in place.histories:
            history = chart.places[remembered]
            inside = sorted(active for active in configuration if index < active < place.end)
            if getattr(history.node, "deep", False):
                kept = [active for active in inside if chart.places[active].kind in (ATOMIC, FINAL)]
            else:
                kept = [active for active in inside if chart.places[active].parent == index]
            plan.records.append((history.name, tuple(chart.places[active].name for active in kept)))


def _enter(chart: Chart, plan: Plan, entering: _Entering, around: set[int]) -> None:
    for index in sorted(entering.states):
        place = chart.places[index]
        around.add(index)
        actions = [action for action in place.enter if not action.late]
        if index in entering.defaults:
            actions += place.starting
        actions += entering.restored.get(index, ())
        for action in actions:
            plan.operations.append((action, place.name, _seen(chart, action, around), None))
        if getattr(place.node, "max_visits", None) is not None:
            plan.visited.append(place)
        if place.kind == FINAL:
            done = _done(chart, place, around)
            seen = None if place.result is None else _seen(chart, place.result, around)
            plan.operations.append((place.result, None, seen, done))
            plan.ends = plan.ends or not done
    plan.active = tuple(
        chart.places[active].name for active in sorted(around) if chart.places[active].kind in (ATOMIC, FINAL)
    )


def _done(chart: Chart, place: Place, around: set[int]) -> tuple[str, ...]:
    """The done events that entering a final state raises; none where it ends the run."""
    if place.parent == ROOT:
        return ()
    parent = chart.places[place.parent]
    done: tuple[str, ...] = (f"done.state.{parent.name}",)
    grand = chart.places[parent.parent]
    if grand.kind == PARALLEL and all(_is_over(chart, child, around) for child in grand.children):
        done += (f"done.state.{grand.name}",)
    return done


def _is_over(chart: Chart, index: int, around: set[int]) -> bool:
    place = chart.places[index]
    if place.kind == COMPOUND:
        return any(child in around and chart.places[child].kind == FINAL for child in place.children)
    return place.kind == PARALLEL and all(_is_over(chart, child, around) for child in place.children)


def _finished(chart: Chart, plan: Plan, choice: Choice, exited: list[int], entering: _Entering) -> Plan:
    plan.is_bounded = bool(plan.visited or plan.counted)
    plan.microstep = Microstep(
        choice.event,
        tuple(row.id for row in choice.rows),
        tuple(chart.places[index].name for index in exited),
        tuple(chart.places[index].name for index in sorted(entering.states)),
    )
    return plan
