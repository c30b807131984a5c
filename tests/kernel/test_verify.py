"""What `verify` finds in machines, and that a certificate is never less than what a run can do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

from moothall.agents.ask import Returned
from moothall.analysis.certify import Certificate, Unbounded, _Rehearsal, certify
from moothall.analysis.graph import reachable
from moothall.analysis.verify import verify
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Answered, Cancelled, Done, ExecutionFailed, Exhausted, GaveUp, Named
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, anywhere, otherwise
from moothall.kernel.step import Ask, Move, Scripted, Snapshot, Step, Value
from tests.kernel.checked.table import BROKEN, SOUND
from tests.kernel.checked.words import ASK, FINISHED, Call, Notify, Went, good, keep

# findings


def test_of_several_cycles_through_the_same_states_the_shortest_is_named() -> None:
    states = [State(name, enter=Call()) for name in ("one", "two", "three")]
    machine = Machine(
        "short and long",
        states=[*states, Final("finished")],
        moves=[
            On("one", Returned, to="two"),
            On("two", Returned, to="three", when=good),
            On("two", otherwise, to="one"),
            On("three", Returned, to="one"),
            On(anywhere, GaveUp, to="finished"),
        ],
    )
    [finding] = verify(machine)
    assert finding.why.startswith("one → two → one:")


def test_a_machine_without_a_final_state_is_only_warned_of() -> None:
    [finding] = verify(Machine("chat", states=[State("listening")], moves=[On("listening", Went, do=keep)]))
    assert (finding.level, finding.code) == ("warning", "no-end")


# size


def chain(length: int) -> Machine:
    names = [f"s{number}" for number in range(length)]
    moves = [On(one, Went, to=other) for one, other in zip(names, [*names[1:], "finished"], strict=True)]
    return Machine("chain", states=[*(State(name) for name in names), Final("finished")], moves=moves)


def test_a_large_machine_has_no_finding_and_every_state_is_reached() -> None:
    machine = chain(5000)
    assert verify(machine) == ()
    assert len(reachable(machine)) == len(machine.chart.places) - 1


@pytest.mark.slow
def test_a_very_long_cycle_is_named_in_short() -> None:
    names = [f"s{number}" for number in range(3000)]
    moves = [On(one, Went, to=other) for one, other in zip(names, [*names[1:], "s0"], strict=True)]
    machine = Machine(
        "ring", states=[*map(State, names), Final("finished")], moves=[*moves, On("s7", "x", to="finished")]
    )
    [finding] = verify(machine)
    assert finding.why.startswith("s0 → s1 → s2 → … → s2999 → s0 (3000 rows):")


# writes are enforced


@dataclass(frozen=True)
class Article:
    draft: str = ""
    notes: str = ""


def moved(do: Any, data: Any, writes: Any = ("draft",)) -> Snapshot:
    machine = Machine(
        "article",
        data=type(data),
        states=[State("first"), State("second")],
        moves=[On("first", Went, to="second", do=do, writes=writes)],
    )
    begun = start(machine, data)
    assert isinstance(begun, Step)
    step = transition(machine, begun.snapshot, Went())
    assert isinstance(step, Step)
    return step.snapshot


@pytest.mark.parametrize("data", [Article(), {"draft": "", "notes": ""}], ids=["dataclass", "dict"])
def test_a_move_may_write_what_it_declares(data: Any) -> None:
    new = replace(data, draft="x") if isinstance(data, Article) else {**data, "draft": "x"}
    assert moved(lambda *_: new, data).data == new
    assert moved(lambda *_: Move(new), data).data == new
    assert moved(lambda *_: new, data, writes="draft").data == new


@pytest.mark.parametrize("data", [Article(), {"draft": "", "notes": ""}], ids=["dataclass", "dict"])
def test_a_move_that_writes_something_else_fails_the_run_and_changes_nothing(data: Any) -> None:
    new = replace(data, draft="x", notes="y") if isinstance(data, Article) else {**data, "draft": "x", "notes": "y"}
    for do in (lambda *_: new, lambda *_: Move(new)):
        after = moved(do, data)
        assert (after.status, after.data) == ("failed", data)
        assert after.reason == "first on Went: it writes notes, but `writes` allows draft"


def test_keys_that_come_or_go_count_as_written() -> None:
    assert moved(lambda *_: {"draft": ""}, {"draft": "", "notes": ""}).status == "failed"
    assert moved(lambda *_: {"draft": "", "new": 1}, {"draft": ""}).status == "failed"


def test_an_action_may_declare_what_it_writes_itself() -> None:
    def draft(data: Any, event: Any) -> Any:
        return replace(data, notes="y")

    draft.writes = ("draft",)  # type: ignore[attr-defined]
    assert moved(draft, Article(), writes=None).status == "failed"
    assert moved(draft, Article(), writes=["notes"]).status == "live"


# certificates: by hand


def test_a_certificate_counts_rows_effects_and_what_they_cost() -> None:
    machine = Machine(
        "article",
        states=[State("drafting", enter=Call()), State("reviewing", enter=Call()), Final("finished")],
        moves=[
            On("drafting", Returned, to="reviewing"),
            On("reviewing", Returned, to="finished", when=good),
            On("reviewing", Returned, to="drafting", at_most=3),
            On("reviewing", otherwise, to="finished"),
            On(anywhere, GaveUp, to="finished"),
        ],
        costs={"call": {"tokens": 100, "calls": 1}},
    )
    once = {"calls": 8, "tokens": 800}
    assert certify(machine) == Certificate(8, {"call": 8, "calls": 24, "tokens": 2400}, exact=True, once=once)


def test_visits_bound_a_certificate_too() -> None:
    machine = Machine(
        "visits",
        states=[State("here", enter=Call()), State("there", enter=Call(), max_visits=2), Final("finished")],
        moves=[
            On("here", Returned, to="there"),
            On("there", Returned, to="here"),
            On(anywhere, Exhausted, to="finished"),
        ],
    )
    assert certify(machine) == Certificate(5, {"call": 5}, exact=True)


def test_a_cycle_without_a_bound_is_named_instead() -> None:
    [case] = [case for case in BROKEN if case.machine.name == "drafting and reviewing for ever"]
    found = certify(case.machine)
    assert isinstance(found, Unbounded)
    assert found.cycle == ("drafting", "reviewing", "drafting")
    assert "at_most" in found.why


@pytest.mark.parametrize(
    ("there", "way"),
    [
        (State("there", enter=Call(), max_visits=0), On("here", Went, to="there")),
        (State("there", enter=Call()), On("here", Went, to="there", at_most=0)),
        (State("there", [State("inside", enter=Call())], max_visits=0), On("here", Went, to="there")),
    ],
    ids=["a state", "a row", "a state with others in it"],
)
def test_what_may_be_done_no_time_at_all_is_never_done(there: State, way: On) -> None:
    machine = Machine(
        "closed",
        states=[State("here", enter=Call()), there, Final("finished")],
        moves=[way, On("here", otherwise, to="finished"), On("there", Went, to="here")],
    )
    assert certify(machine) == Certificate(1, {"call": 1}, exact=True)


def test_messages_that_may_come_for_ever_have_no_bound() -> None:
    machine = Machine(
        "listening",
        states=[State("listening", enter=ASK), Final("finished")],
        moves=[On("listening", Went, do=keep), On("listening", Answered, to="finished")],
    )
    assert isinstance(certify(machine), Unbounded)


def test_a_failure_that_nothing_can_cause_is_not_counted() -> None:
    [machine] = [case.machine for case in SOUND if case.machine.name == "a person helps when something fails"]
    assert certify(machine) == Certificate(2, {"ask.person": 1, "call": 1}, exact=True)


def test_an_effect_that_is_forgotten_before_it_begins_is_not_counted() -> None:
    def passing(effect: Effect) -> Machine:
        return Machine(
            "passing",
            states=[State("first"), State("passed", enter=effect), State("last"), Final("finished")],
            moves=[On("first", Went, to="passed"), On("passed", always, to="last"), On("last", Went, to="finished")],
        )

    assert certify(passing(Call())) == Certificate(3, {}, exact=True)
    assert certify(passing(Notify())) == Certificate(3, {"notify": 1}, exact=True)


def test_what_is_wanted_on_the_way_out_counts_even_when_the_run_is_cancelled() -> None:
    machine = Machine(
        "tidy", states=[State("first", exit=Notify()), Final("finished")], moves=[On("first", Went, to="finished")]
    )
    assert certify(machine) == Certificate(1, {"notify": 1}, exact=True)


def test_done_comes_once_for_each_end() -> None:
    machine = Machine(
        "regions",
        states=[
            Parallel("both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])]),
            State("last"),
            Final("finished"),
        ],
        moves=[
            On("l1", "a", to="l2"),
            On("r1", "b", to="r2"),
            On("left", Done, do=Call()),
            On("both", Done, to="last"),
            On("last", Went, to="finished"),
        ],
    )
    assert certify(machine) == Certificate(5, {"call": 1}, exact=True)


# certificates: children


CHILD = Certificate(7, {"call": 3, "tokens": 30}, exact=True)


def with_child(**row: Any) -> Machine:
    return Machine(
        "parent",
        states=[State("first"), State("working"), Final("finished")],
        moves=[
            On("first", Went, to="working", **row),
            On("working", Went, to="first", at_most=1),
            On("working", "x", to="finished"),
        ],
    )


def start_child(data: Any, event: Any) -> Move[Any]:
    return Move(data, effects=(StartChild("debate"),))


start_child.child = "debate"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "row", [{"do": StartChild("debate")}, {"do": start_child, "emits": {StartChild: 1}}], ids=["effect", "function"]
)
def test_a_child_is_counted_as_often_as_it_is_started(row: dict[str, Any]) -> None:
    expected = Certificate(4 + 2 * 7, {"call": 6, "start.child": 2, "tokens": 60}, exact=True)
    assert certify(with_child(**row), {"debate": CHILD}) == expected


def test_a_child_of_which_nothing_is_known_has_no_bound() -> None:
    found = certify(with_child(do=StartChild("debate")))
    assert isinstance(found, Unbounded)
    assert "'debate'" in found.why
    found = certify(with_child(do=keep, emits={StartChild: 1}), {"debate": CHILD})
    assert isinstance(found, Unbounded)


def test_a_certificate_is_as_exact_as_those_of_the_children() -> None:
    found = certify(with_child(do=StartChild("debate")), {"debate": Certificate(7, {}, exact=False)})
    assert isinstance(found, Certificate)
    assert not found.exact


def test_certificates_compose_from_the_inside_out() -> None:
    inner = certify(with_child(do=Call()))
    assert isinstance(inner, Certificate)
    middle = certify(with_child(do=StartChild("inner")), {"inner": inner})
    assert isinstance(middle, Certificate)
    outer = certify(with_child(do=StartChild("middle")), {"middle": middle})
    assert isinstance(outer, Certificate)
    assert outer.resources["call"] == 2 * 2 * 2
    assert outer.transitions == 4 + 2 * (4 + 2 * 4)


# certificates: against brute force and against walks


ROWS = "rows"
EVENTS = tuple(Named(name) for name in ("a", "a.x", "b", "other", "error.mine"))


class EndlessRun(Exception):
    """Brute force came back to where it had been."""


class TooMuch(Exception):
    """Brute force would take too long for a test."""


def asked(key: str) -> Scripted:
    """A guard that brute force answers both ways."""
    return Scripted(lambda data, event, moment: moment.evaluate(key, None) == Value(True), key)


class BruteForce:
    """Every run by the real interpreter: each event, offered to all and to each state, guards answering both ways."""

    def __init__(self, machine: Machine, limit: int = 20_000) -> None:
        self.machine = machine
        self.limit = limit
        self.known: dict[Any, Counter[str]] = {}
        self.path: set[Any] = set()

    def most(self, snapshot: Snapshot | None = None) -> Counter[str]:
        """The most that a run can still use from here."""
        key = None
        if snapshot is not None:
            key = snapshot.active, frozenset(snapshot.counts.items()), frozenset(snapshot.history.items())
        if key in self.path:
            raise EndlessRun
        if key not in self.known:
            self.path.add(key)
            best: Counter[str] = Counter()
            for step in self.next(snapshot):
                if "microsteps" in step.snapshot.reason:
                    raise EndlessRun
                best |= used(step) + (self.most(step.snapshot) if step.snapshot.status == "live" else Counter())
            self.path.discard(key)
            self.known[key] = best
        return self.known[key]

    def next(self, snapshot: Snapshot | None) -> Iterator[Step]:
        """The steps that change anything."""
        if snapshot is None:
            yield from self.answered(lambda answers: start(self.machine, {}, answers))
            return
        chart = self.machine.chart
        around = [chart.places[index].name for index in chart.around(snapshot.active) if index]
        for event, scope in [*product(EVENTS, [None, *around]), (Cancelled(), None)]:
            told = partial(transition, self.machine, snapshot, event, within=scope)
            for step in self.answered(told):
                if step.microsteps or step.snapshot.status != "live":
                    yield step

    def answered(self, told: Callable[[tuple[Value, ...]], Step | Ask]) -> Iterator[Step]:
        """What the interpreter does, for every way in which the guards may answer."""
        todo: list[tuple[Value, ...]] = [()]
        while todo:
            self.limit -= 1
            if self.limit < 0:
                raise TooMuch
            answers = todo.pop()
            step = told(answers)
            if isinstance(step, Ask):
                todo += [(*answers, Value(True)), (*answers, Value(False))]
            else:
                yield step


def used(step: Step) -> Counter[str]:
    return Counter({ROWS: len(step.taken)}) + Counter(wanted.effect.kind for wanted in step.effects)


def amounts(certificate: Certificate) -> dict[str, float]:
    found = {ROWS: certificate.transitions, **certificate.resources}
    return {name: amount for name, amount in found.items() if amount}


class Maker:
    """Makes small machines of every shape; with functions, moves raise events and go wrong as they please."""

    def __init__(self, seed: int, *, functions: bool) -> None:
        self.random = Random(seed)
        self.functions = functions
        self.names: list[str] = []
        self.sources: list[str] = [anywhere]
        self.boxes: list[str] = []
        self.around_regions: set[str] = {anywhere}
        self.eventless = self.chance(0.4)

    def chance(self, likelihood: float) -> bool:
        return self.random.random() < likelihood

    def machine(self) -> Machine:
        nodes = [self.node(2) for _ in range(self.random.randint(1, 3))]
        self.names.append("end")
        rows = [self.row() for _ in range(self.random.randint(2, 10))]
        return Machine("made", states=[*nodes, Final("end")], moves=rows, max_microsteps=60)

    def named(self) -> str:
        self.names.append(f"s{len(self.names)}")
        return self.names[-1]

    def node(self, depth: int) -> Node:
        kind = self.random.random()
        if depth and kind < 0.3:
            return self.compound(self.named(), depth)
        if depth and kind < 0.5:
            name = self.named()
            self.sources.append(name)
            self.boxes.append(name)
            self.around_regions.add(name)
            return Parallel(name, [self.compound(self.named(), 1) for _ in range(2)], enter=self.actions())
        name = self.named()
        self.sources.append(name)
        return State(name, enter=self.actions(), exit=self.actions(), max_visits=self.visits())

    def compound(self, name: str, depth: int) -> State:
        self.sources.append(name)
        self.boxes.append(name)
        inner = [self.node(depth - 1) for _ in range(self.random.randint(1, 2))]
        if any(node.name in self.around_regions for node in inner):
            self.around_regions.add(name)
        if self.chance(0.6):
            inner.append(Final(self.named(), enter=self.actions()))
        if self.chance(0.2):
            inner.append(History(self.named(), inner[0].name, deep=self.chance(0.5)))
        return State(name, inner, enter=self.actions(), exit=self.actions(), max_visits=self.visits())

    def visits(self) -> int | None:
        return self.random.randint(0, 2) if self.chance(0.1) else None

    def actions(self) -> Any:
        if self.functions and self.chance(0.3):
            return self.move()
        return self.random.choice([(), (), (), (), Call(), [Notify(), Call()]])

    def move(self) -> Any:
        """A move that wants, raises and breaks as it likes, within what it declares."""
        random = self.random

        def act(data: Any, event: Any) -> Any:
            match random.randrange(4):
                case 0:
                    return Move(data, effects=(Call(),))
                case 1:
                    return Move(data, raises=(Named(random.choice(("a", "b", "error.mine"))),))
                case 2:
                    raise ValueError("a broken move")
                case _:
                    return data

        act.emits = {"call": 1}  # type: ignore[attr-defined]
        return act

    def row(self) -> On:
        source = self.random.choice(self.boxes if self.boxes and self.chance(0.3) else self.sources)
        event: Any = self.random.choice(("a", "a", "a.x", "b", "b", "*", "error.mine"))
        if self.eventless and self.chance(0.3):
            event = always
        elif source in self.boxes and self.chance(0.6):
            event = Done
        elif self.functions and self.chance(0.3):
            event = ExecutionFailed
        guard = self.guard(source) if self.chance(0.4) else None
        at_most = self.random.randint(0, 3) if self.chance(0.85) else None
        to = self.random.choice(self.names) if self.chance(0.85) else None
        return On(source, event, to=to, when=guard, at_most=at_most, do=self.actions())

    def guard(self, source: str) -> Any:
        if not self.functions:
            # A guard around regions is asked once for each: brute force would answer differently each time.
            return None if source in self.around_regions else asked(f"{source} {self.random.random()}")
        random = self.random

        def guess(data: Any, event: Any) -> Any:
            return random.choice((True, True, False, "neither"))

        return guess


def compared(seed: int) -> str:
    """A made machine: how its certificate stands to brute force."""
    machine = Maker(seed, functions=False).machine()
    found = certify(machine)
    try:
        most = BruteForce(machine).most()
    except TooMuch:
        return "too much"
    except EndlessRun:
        assert isinstance(found, Unbounded), f"seed {seed}: a run without end has the certificate {found}"
        return "endless"
    if isinstance(found, Unbounded):
        return "cautious"
    bound = amounts(found)
    assert all(amount <= bound.get(name, 0) for name, amount in most.items()), f"seed {seed}: {most} exceeds {found}"
    if found.exact:
        assert bound == most, f"seed {seed}: {found} is called exact, and the most is {most}"
    return "exact" if found.exact else "cautious"


@pytest.mark.slow
def test_a_certificate_equals_brute_force_on_small_machines() -> None:
    outcomes = Counter(compared(seed) for seed in range(250))
    assert outcomes["exact"] > 150
    assert outcomes["endless"] > 30
    assert outcomes["cautious"] < 10


@pytest.mark.soak
def test_a_certificate_equals_brute_force_on_many_small_machines() -> None:
    outcomes = Counter(compared(seed) for seed in range(250, 5000))
    assert outcomes["exact"] > 3000


def walked(machine: Machine, random: Random) -> Counter[str]:
    """What one run of the real interpreter uses, with moves and guards that do as they like."""
    step = start(machine, {})
    assert isinstance(step, Step)
    total = used(step)
    for _ in range(60):
        if step.snapshot.status != "live":
            break
        around = [machine.chart.places[index].name for index in machine.chart.around(step.snapshot.active) if index]
        event = random.choice(EVENTS) if random.random() < 0.97 else Cancelled()
        scope = None if isinstance(event, Cancelled) else random.choice([None, *around])
        step = transition(machine, step.snapshot, event, within=scope)
        assert isinstance(step, Step)
        total += used(step)
    return total


def outdone(seed: int) -> str:
    """A made machine with functions: whether walks stay within its certificate, and that within its cheap estimate."""
    machine = Maker(seed, functions=True).machine()
    found, estimate = certify(machine), estimated(machine)
    if isinstance(found, Unbounded):
        assert isinstance(estimate, Unbounded), f"seed {seed}: the estimate {estimate} overlooks {found.why}"
        return "unbounded"
    bound = amounts(found)
    if isinstance(estimate, Certificate):
        assert not estimate.exact
        above = amounts(estimate)
        assert all(amount <= above.get(name, 0) for name, amount in bound.items()), f"seed {seed}: {found}, {estimate}"
    random = Random(seed)
    for _ in range(25):
        total = walked(machine, random)
        assert all(amount <= bound.get(name, 0) for name, amount in total.items()), f"seed {seed}: {total}, {found}"
    return "bounded"


def estimated(machine: Machine) -> Certificate | Unbounded:
    """The certificate as it would be if the machine were too large to enumerate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moothall.analysis.certify._PLACES", 0)
        return certify(machine)


def test_no_run_exceeds_its_certificate() -> None:
    outcomes = Counter(outdone(seed) for seed in range(100))
    assert outcomes["bounded"] > 60


def test_an_error_may_be_heard_of_where_rows_on_always_have_led() -> None:
    moves = [
        On("first", always, to="second"),
        On("second", ExecutionFailed, to="third"),
        On("third", Went, to="finished"),
    ]
    states: list[Node] = [State("first", enter=keep), State("second"), State("third"), Final("finished")]
    assert certify(Machine("later", states=states, moves=moves)) == Certificate(3, {}, exact=True)


def test_an_error_is_heard_of_in_every_region() -> None:
    left, right = State("left", [State("l1", enter=keep)]), State("right", [State("r1"), State("r2")])
    moves = [On("r1", ExecutionFailed, to="r2"), On("r2", Went, to="finished")]
    machine = Machine("regions", states=[Parallel("both", [left, right]), Final("finished")], moves=moves)
    assert verify(machine) == ()
    assert certify(machine) == Certificate(2, {}, exact=True)


@pytest.mark.soak
def test_no_run_of_many_machines_exceeds_its_certificate() -> None:
    outcomes = Counter(outdone(seed) for seed in range(100, 1100))
    assert outcomes["bounded"] > 500


def test_a_machine_too_large_to_enumerate_gets_an_upper_estimate() -> None:
    rounds = [
        row
        for number in range(12)
        for row in (
            On(f"s{number}", "next", to=f"s{number + 1}"),
            On(f"s{number}", "again", to=f"s{number}", do=Call(), at_most=9),
        )
    ]
    states = [State(f"s{number}", enter=Call()) for number in range(12)]
    machine = Machine("large", states=[*states, Final("s12")], moves=rounds)
    assert certify(machine) == Certificate(12 + 12 * 9, {"call": 12 + 2 * 12 * 9}, exact=True)
    hopping = [On(anywhere, f"hop{number}", to=f"s{number}", at_most=9) for number in range(12)]
    wild = Machine("wild", states=[*states, Final("s12")], moves=[*rounds, *hopping])
    found = certify(wild)
    assert isinstance(found, Certificate)
    assert not found.exact
    assert found.transitions >= 12 + 2 * 12 * 9


def test_an_estimate_pays_no_bound_that_no_cycle_needs() -> None:
    chain: list[Node] = [State(f"s{number}", enter=Call(), max_visits=100) for number in range(4)]
    rows = [On(f"s{number}", "next", to=f"s{number + 1}") for number in range(4)]
    straight = Machine("straight", states=[*chain, Final("s4")], moves=rows)
    assert estimated(straight) == Certificate(4, {"call": 4}, exact=False)


def test_an_estimate_pays_the_smallest_bound_of_a_cycle() -> None:
    writing = State("drafting", enter=Call(), max_visits=3)
    others: list[Node] = [State(name, enter=Notify(), max_visits=100) for name in ("checking", "reviewing")]
    rows = [
        On("drafting", "next", to="checking"),
        On("checking", "next", to="reviewing"),
        On("reviewing", "again", to="drafting"),
        On("reviewing", "next", to="finished"),
    ]
    circle = Machine("circle", states=[writing, *others, FINISHED], moves=rows)
    assert estimated(circle) == Certificate(12, {"call": 4, "notify": 8}, exact=False)


def test_an_estimate_keeps_a_small_bound_beside_a_large_one() -> None:
    states: list[Node] = [State("looping", max_visits=100), State("paying", enter=Call(), max_visits=5)]
    rows = [
        On("looping", "again", to="looping"),
        On("looping", "pay", to="paying"),
        On("paying", "next", to="looping"),
        On("looping", "next", to="finished"),
    ]
    found = estimated(Machine("beside", states=[*states, FINISHED], moves=rows))
    assert isinstance(found, Certificate)
    assert found.resources == {"call": 5}


def test_a_machine_too_large_to_enumerate_is_not_walked_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Counter[str]()
    real = _Rehearsal.run

    def counting(self: _Rehearsal, within: str | None) -> int:
        turns[self.machine.name] += 1
        return real(self, within)

    monkeypatch.setattr(_Rehearsal, "run", counting)
    staying = [On("here", f"stay{number}", at_most=99) for number in range(3)]
    states: list[Node] = [State("here"), Final("there")]
    crowded = Machine("crowded", states=states, moves=[*staying, On("here", "go", to="there")])
    assert certify(crowded) == Certificate(3 * 99 + 1, {}, exact=False)
    assert turns["crowded"] == 0


def nested(width: int) -> Machine:
    """Regions in regions, each of which goes its own way."""
    regions: list[Node] = []
    moves: list[On] = []
    for outer in range(width):
        inner: list[Node] = []
        for number in range(width):
            inner.append(State(f"r{outer}.{number}", [State(f"a{outer}.{number}"), Final(f"f{outer}.{number}")]))
            moves.append(On(f"a{outer}.{number}", Went, to=f"f{outer}.{number}"))
        regions.append(State(f"q{outer}", [Parallel(f"p{outer}", inner), Final(f"e{outer}")]))
        moves.append(On(f"p{outer}", f"done.state.p{outer}", to=f"e{outer}"))
    moves.append(On("top", "done.state.top", to="finished"))
    return Machine("nested", states=[Parallel("top", regions), Final("finished")], moves=moves)


@pytest.mark.parametrize(("width", "moved"), [(2, 7), (6, 43), (20, 421)])
def test_the_effort_of_a_certificate_does_not_grow_with_what_is_active_at_once(
    width: int, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Counter[str]()
    run = _Rehearsal.run

    def counted(turn: _Rehearsal, within: str | None) -> int:
        turns["looked at"] += len(turn.active)
        return run(turn, within)

    monkeypatch.setattr(_Rehearsal, "run", counted)
    machine = nested(width)
    found = certify(machine)
    assert isinstance(found, Certificate)
    assert found.transitions >= moved
    assert verify(machine) == ()
    assert turns["looked at"] < 500_000
