"""What a machine means: which rows an event takes, what is left, done and entered in which order, how a run ends."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from moothall.kernel import interpreter
from moothall.kernel.chart import Plan
from moothall.kernel.effects import Alarm, AskPerson, Effect, Send
from moothall.kernel.events import Answered, Cancelled, Done, Event, Exhausted, Expired, GaveUp, Named
from moothall.kernel.interpreter import accepts, possible, start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, anywhere, otherwise
from moothall.kernel.step import (
    Absent,
    Answer,
    Append,
    Ask,
    Failed,
    In,
    Microstep,
    Moment,
    Move,
    Scripted,
    Snapshot,
    Step,
    Tail,
    Value,
    Wanted,
)


@dataclass(frozen=True)
class Log:
    """What happened, in its order."""

    notes: tuple[str, ...] = ()
    n: int = 0


class Knocked(Event):
    """Somebody knocked."""


class Loudly(Knocked):
    """Somebody knocked loudly."""


class Fetch(Effect):
    """Have something fetched: it belongs to the state that wants it."""

    kind = "fetch"
    thing: str = ""


class Notify(Effect):
    """Have somebody notified, wherever the run stands then."""

    kind = "notify"
    owned = False


Act = Callable[[Log, Event], Any]


def note(text: str) -> Act:
    """A move that notes a text."""
    return lambda log, event: replace(log, notes=(*log.notes, text))


def heard(log: Log, event: Event) -> Log:
    """A move that notes the event."""
    return replace(log, notes=(*log.notes, event.name))


def kept(log: Log, event: Any) -> Log:
    """A move that notes what an event carries."""
    return replace(log, notes=(*log.notes, repr(event.data)))


def raising(*names: str) -> Act:
    """A move that raises these events."""
    return lambda log, event: Move(log, raises=tuple(map(Named, names)))


def wanting(*effects: Effect) -> Act:
    """A move that wants these effects."""
    return lambda log, event: Move(log, effects=effects)


def count(log: Log, event: Event) -> Log:
    return replace(log, n=log.n + 1)


def broken(log: Any, event: Any) -> Any:
    raise ValueError("oops")


def leaving(log: Any, event: Any) -> Any:
    raise SystemExit(0)


def yes(log: Log, event: Event) -> bool:
    return True


def no(log: Log, event: Event) -> bool:
    return False


def made(states: Sequence[Node], moves: Sequence[On], **more: Any) -> Machine:
    return Machine("m", states=states, moves=moves, **{"data": Log, **more})


def begun(machine: Machine, data: Any = None) -> Step:
    step = start(machine, Log() if machine.data is Log and data is None else data)
    assert isinstance(step, Step)
    return step


def move(machine: Machine, snapshot: Snapshot, event: Event | str, within: str | None = None) -> Step:
    step = transition(machine, snapshot, Named(event) if isinstance(event, str) else event, within=within)
    assert isinstance(step, Step)
    return step


def told(machine: Machine, *events: Event | str, data: Any = None) -> Step:
    """The last step of a run that is told these events."""
    step = begun(machine, data)
    for event in events:
        step = move(machine, step.snapshot, event)
    return step


def stands(machine: Machine, *events: Event | str) -> tuple[str, ...]:
    return told(machine, *events).snapshot.active


def notes(machine: Machine, *events: Event | str) -> tuple[str, ...]:
    found: tuple[str, ...] = told(machine, *events).snapshot.data.notes
    return found


def noisy(name: str, *inner: Node, **more: Any) -> State:
    """A state that notes when it is entered (+) and left (-)."""
    return State(name, inner, enter=note(f"+{name}"), exit=note(f"-{name}"), **more)


def loud(name: str, *regions: Node) -> Parallel:
    return Parallel(name, regions, enter=note(f"+{name}"), exit=note(f"-{name}"))


def trace(step: Step) -> str:
    """What a step noted, in one line."""
    before = 0 if step.before is None else len(step.before.data.notes)
    return " ".join(step.snapshot.data.notes[before:])


# which rows an event takes


def test_the_first_row_whose_guard_holds_is_taken() -> None:
    rows = [
        On("a", "go", to="b", when=no),
        On("a", "go", to="c", when=yes),
        On("a", "go", to="d"),
    ]
    assert told(made([State(name) for name in "abcd"], rows), "go").taken == ("a/1",)


def test_rows_of_an_inner_state_come_before_rows_of_the_states_around_it() -> None:
    states: list[Node] = [State("outer", [State("inner")]), State("b"), State("c"), State("d")]
    rows = [
        On(anywhere, "go", to="d"),
        On("outer", "go", to="b"),
        On("inner", "go", to="c"),
    ]
    assert stands(made(states, rows), "go") == ("c",)
    assert stands(made(states, rows[:2]), "go") == ("b",)
    assert stands(made(states, rows[:1]), "go") == ("d",)


def test_an_outer_row_is_taken_where_no_inner_guard_holds() -> None:
    states: list[Node] = [State("outer", [State("inner")]), State("b"), State("c")]
    rows = [On("inner", "go", to="b", when=no), On("outer", "go", to="c")]
    assert stands(made(states, rows), "go") == ("c",)


def test_an_event_that_nobody_names_gives_a_step_with_nothing_taken() -> None:
    machine = made([State("a")], [On("a", "go", do=count)])
    before = begun(machine).snapshot
    assert move(machine, before, "other") == Step(before, Named("other"), (), before)


@pytest.mark.parametrize(
    ("row", "event", "taken"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", True),
        ("a.b", "a.bc", False),
        ("a.b", "a", False),
        ("a.*", "a.b", True),
        ("a.*", "a", True),
        ("a.", "a.b", True),
        ("*", "anything.at.all", True),
        ("x a y", "a", True),
        ("x a y", "z", False),
        (Knocked, Loudly(), True),
        (Loudly, Knocked(), False),
        (["x", Knocked], Loudly(), True),
        (["x", Knocked], Named("y"), False),
        (Knocked, "knocked.softly", True),
    ],
)
def test_a_row_takes_events_by_name_and_by_prefix(row: Any, event: Event | str, taken: bool) -> None:
    machine = made([State("a")], [On("a", row, do=count)])
    assert bool(told(machine, event).taken) is taken


def test_otherwise_takes_what_the_rows_above_it_name_and_how_the_effects_of_its_state_end() -> None:
    question = AskPerson("Well?")
    states: list[Node] = [State("a", enter=question), State("b"), State("c")]
    rows = [
        On("a", "go", to="b", when=no),
        On("a", always, to="b", when=no),
        On("a", otherwise, to="c"),
        On("a", "late", to="b"),
    ]
    for event, where in (("go", "c"), (Answered(), "c"), (Expired(), "c"), ("late", "b"), ("other", "a")):
        assert stands(made(states, rows), event) == (where,)


def test_a_guard_sees_the_data_and_the_event() -> None:
    def fits(log: Log, event: Any) -> bool:
        return bool(log.n == event.data)

    machine = made([State("a")], [On("a", "go", when=fits)])
    assert told(machine, Named("go", 0)).taken == ("a/0",)
    assert told(machine, Named("go", 1)).taken == ()


def pair(left: Sequence[str] = ("l1", "l2"), right: Sequence[str] = ("r1", "r2")) -> Parallel:
    """Two regions with a few states each."""
    return Parallel("both", [State("left", [*map(State, left)]), State("right", [*map(State, right)])])


def test_every_region_takes_its_own_row() -> None:
    rows = [On("r1", "go", to="r2"), On("l1", "go", to="l2")]
    step = told(made([pair()], rows), "go")
    assert step.taken == ("l1/0", "r1/0")
    assert step.snapshot.active == ("l2", "r2")


def test_a_row_around_several_regions_is_taken_once() -> None:
    step = told(made([pair()], [On("both", "go", do=count)]), "go")
    assert (step.taken, step.snapshot.data.n) == (("both/0",), 1)


def test_of_two_rows_that_leave_the_same_states_the_earlier_wins() -> None:
    rows = [On("r1", "go", to="b"), On("l1", "go", to="a")]
    assert told(made([pair(), State("a"), State("b")], rows), "go").taken == ("l1/0",)


def test_an_inner_row_pre_empts_an_outer_one_that_was_chosen_before_it() -> None:
    rows = [On("both", "go", to="a"), On("r1", "go", to="r2")]
    step = told(made([pair(), State("a")], rows), "go")
    assert (step.taken, step.snapshot.active) == (("r1/0",), ("l1", "r2"))


def test_a_row_pre_empts_only_if_it_is_inside_all_of_its_rivals() -> None:
    inner = Parallel("inner", [State("x", [State("x1")]), State("y", [State("y1")])])
    states: list[Node] = [
        Parallel("both", [State("left", [State("l1"), State("l2")]), State("right", [inner, State("r2")])])
    ]
    rows = [On("l1", "go", to="l2"), On("inner", "go", to="r2"), On("y1", "go", to="out")]
    step = told(made([*states, State("out")], rows), "go")
    assert (step.taken, step.snapshot.active) == (("l1/0", "inner/0"), ("l2", "r2"))


def test_rows_that_leave_nothing_conflict_with_none() -> None:
    for rows in (
        [On("l1", "go", do=count), On("r1", "go", to="out")],
        [On("l1", "go", to="out"), On("r1", "go", do=count)],
    ):
        step = told(made([pair(), State("out")], rows), "go")
        assert (step.taken, step.snapshot.active, step.snapshot.data.n) == (("l1/0", "r1/0"), ("out",), 1)


def test_rows_that_lead_to_history_conflict_by_where_it_stands_for_now() -> None:
    states: list[Node] = [
        Parallel("both", [State("left", [State("l1"), History("memory", "l1")]), State("right", [State("r1")])]),
        State("out"),
    ]
    rows = [On("l1", "go", to="memory"), On("r1", "go", to="out")]
    assert told(made(states, rows), "go").taken == ("l1/0",)


# in which order


def nested(*rows: On) -> Machine:
    """A state with two levels inside beside another, all of them noisy."""
    return made(
        [noisy("a", noisy("b", noisy("c"), noisy("d")), noisy("e")), noisy("z", noisy("y", noisy("x")))],
        rows,
    )


def test_states_are_entered_outermost_first() -> None:
    assert trace(begun(nested())) == "+a +b +c"


def test_a_start_that_lies_deeper_is_entered_through_the_states_between() -> None:
    machine = made([noisy("a", noisy("b", noisy("c"), noisy("d")), start="d")], [])
    assert trace(begun(machine)) == "+a +b +d"


def test_states_are_left_innermost_first_then_the_moves_are_done_then_states_are_entered() -> None:
    machine = nested(On("c", "go", to="x", do=(note("one"), note("two"))))
    step = told(machine, "go")
    assert trace(step) == "-c -b -a one two +z +y +x"
    assert step.microsteps == (Microstep("go", ("c/0",), ("c", "b", "a"), ("z", "y", "x")),)


def test_regions_are_entered_in_the_order_of_the_table_and_left_in_the_opposite_order() -> None:
    states: list[Node] = [loud("p", noisy("l", noisy("l1")), noisy("r", noisy("r1"))), noisy("out")]
    machine = made(states, [On("p", "go", to="out")])
    assert trace(begun(machine)) == "+p +l +l1 +r +r1"
    assert trace(told(machine, "go")) == "-r1 -r -l1 -l -p +out"


def test_the_rows_of_regions_do_their_moves_between_all_exits_and_all_entries() -> None:
    states: list[Node] = [loud("p", noisy("l", noisy("l1"), noisy("l2")), noisy("r", noisy("r1"), noisy("r2")))]
    rows = [On("r1", "go", to="r2", do=note("right")), On("l1", "go", to="l2", do=note("left"))]
    assert trace(told(made(states, rows), "go")) == "-r1 -l1 left right +l2 +r2"


def test_what_a_state_does_when_it_begins_at_its_start_comes_after_its_entry() -> None:
    inner = noisy("s", noisy("a"), noisy("b"), starting=note("starting"))
    machine = made([State("idle"), inner], [On("idle", "default", to="s"), On("idle", "aimed", to="b")])
    assert trace(told(machine, "default")) == "+s starting +a"
    assert trace(told(machine, "aimed")) == "+s +b"


def test_rows_without_an_event_come_before_raised_events_and_these_come_in_their_order() -> None:
    rows = [
        On("a", "go", to="b", do=raising("first", "second")),
        On("b", always, to="c", do=note("always")),
        On("c", "first", do=heard),
        On("c", "second", do=heard),
        On("b", "first", do=note("too early")),
    ]
    assert notes(made([State(name) for name in "abc"], rows), "go") == ("always", "first", "second")


def test_a_row_without_an_event_still_sees_the_event_that_led_to_it() -> None:
    rows = [On("a", "go", to="b"), On("b", always, to="c", do=heard, when=lambda log, event: event.name == "go")]
    assert notes(made([State(name) for name in "abc"], rows), "go") == ("go",)


def test_a_raised_event_is_the_one_that_its_rows_see() -> None:
    def is_raised(log: Log, event: Event) -> bool:
        return event.name == "raised"

    rows = [On("a", "go", do=raising("raised")), On("a", "raised", do=heard, when=is_raised)]
    assert notes(made([State("a")], rows), "go") == ("raised",)


def test_a_step_tells_every_microstep() -> None:
    rows = [On("a", "go", to="b", do=raising("on")), On("b", always, do=count, at_most=1), On("b", "on", to="c")]
    step = told(made([State(name) for name in "abc"], rows), "go")
    assert step.microsteps == (
        Microstep("go", ("a/0",), ("a",), ("b",)),
        Microstep("", ("b/0",), (), ()),
        Microstep("on", ("b/1",), ("b",), ("c",)),
    )
    assert (step.taken, step.left) == (("a/0", "b/0", "b/1"), frozenset("ab"))
    assert step.before == begun(made([State("a")], [])).snapshot
    assert step.event == Named("go")


def test_a_microstep_names_the_event_itself_and_not_what_the_row_calls_it() -> None:
    machine = made([State("a")], [On("a", "go", do=count)])
    for name in ("go", "go.far", "go.farther", "go"):
        assert [microstep.event for microstep in told(machine, name).microsteps] == [name]


def test_the_first_step_has_nothing_before_it() -> None:
    step = begun(made([State("a", [State("b")])], []))
    assert (step.before, step.event.name) == (None, "run.started")
    assert step.microsteps == (Microstep("", (), (), ("a", "b")),)


# what is left and what is entered


def test_a_row_without_a_target_leaves_nothing() -> None:
    assert trace(told(nested(On("a", "go", do=note("move"))), "go")) == "move"


def test_a_row_to_its_own_state_leaves_it_and_enters_it_again() -> None:
    assert trace(told(nested(On("b", "go", to="b")), "go")) == "-c -b +b +c"


def test_a_row_to_an_inner_state_leaves_its_own_state_unless_it_is_internal() -> None:
    assert trace(told(nested(On("b", "go", to="d")), "go")) == "-c -b +b +d"
    assert trace(told(nested(On("b", "go", to="d", internal=True)), "go")) == "-c +d"


def test_an_internal_row_to_itself_or_to_the_outside_is_like_any_other() -> None:
    assert trace(told(nested(On("b", "go", to="b", internal=True)), "go")) == "-c -b +b +c"
    assert trace(told(nested(On("b", "go", to="e", internal=True)), "go")) == "-c -b +e"


def test_an_internal_row_of_a_parallel_state_leaves_it() -> None:
    states: list[Node] = [loud("p", noisy("l", noisy("l1"), noisy("l2")), noisy("r", noisy("r1")))]
    machine = made(states, [On("p", "go", to="l2", internal=True)])
    assert trace(told(machine, "go")) == "-r1 -r -l1 -l -p +p +l +l2 +r +r1"


def test_the_state_around_source_and_target_is_not_left() -> None:
    assert trace(told(nested(On("c", "go", to="d")), "go")) == "-c +d"
    assert trace(told(nested(On("c", "go", to="e")), "go")) == "-c -b +e"


def test_a_row_to_a_state_around_its_own_leaves_that_state_too() -> None:
    assert trace(told(nested(On("c", "go", to="b")), "go")) == "-c -b +b +c"


def test_a_row_from_one_region_to_another_leaves_all_regions() -> None:
    states: list[Node] = [loud("p", noisy("l", noisy("l1")), noisy("r", noisy("r1"), noisy("r2")))]
    machine = made(states, [On("l1", "go", to="r2")])
    assert trace(told(machine, "go")) == "-r1 -r -l1 -l -p +p +l +l1 +r +r2"


def test_a_row_that_counts_everywhere_leaves_everything() -> None:
    assert trace(told(nested(On(anywhere, "go", to="c")), "go")) == "-c -b -a +a +b +c"
    assert trace(told(nested(On(anywhere, "go", to="c", internal=True)), "go")) == "-c -b -a +a +b +c"


def test_a_state_begins_at_its_start_or_else_at_its_first() -> None:
    inner: list[Node] = [State("a"), State("b", [State("b1"), State("b2")])]
    for begins, where in ((None, "a"), ("b", "b1"), ("b2", "b2")):
        assert begun(made([State("s", inner, start=begins)], [])).snapshot.active == (where,)


def test_a_machine_begins_at_its_start_also_in_several_regions() -> None:
    assert begun(made([State("x"), pair()], [], start="both")).snapshot.active == ("l1", "r1")
    assert begun(made([State("x"), pair()], [], start=("r2", "l2"))).snapshot.active == ("l2", "r2")


def test_regions_that_a_row_does_not_aim_at_begin_at_their_start() -> None:
    machine = made([State("x"), pair()], [On("x", "one", to="r2"), On("x", "two", to=("l2", "r2"))])
    assert stands(machine, "one") == ("l1", "r2")
    assert stands(machine, "two") == ("l2", "r2")


def test_regions_without_states_inside_are_active_themselves() -> None:
    machine = made([Parallel("p", [State("l"), State("r", [State("r1")])])], [On("l", "go", do=count)])
    assert begun(machine).snapshot.active == ("l", "r1")
    assert told(machine, "go").snapshot.data.n == 1


# history


def house(*, deep: bool = False, **more: Any) -> Machine:
    """A house with rooms and corners, left for the street and entered again where one was."""
    rooms: list[Node] = [
        State("hall"),
        noisy("attic", noisy("floor"), noisy("beam")),
        History("memory", "hall", deep=deep),
    ]
    return made(
        [noisy("house", *rooms), State("street")],
        [
            On("hall", "up", to="attic"),
            On("floor", "climb", to="beam"),
            On("house", "out", to="street"),
            On("street", "back", to="memory"),
            On("street", "in", to="house"),
        ],
        **more,
    )


@pytest.mark.parametrize(("deep", "where"), [(False, "floor"), (True, "beam")])
def test_shallow_history_remembers_the_state_inside_and_deep_history_all_the_way_down(deep: bool, where: str) -> None:
    assert stands(house(deep=deep), "up", "climb", "out", "back") == (where,)


def test_history_is_kept_in_the_snapshot_when_its_state_is_left() -> None:
    assert told(house(), "up", "climb").snapshot.history == {}
    assert told(house(), "up", "climb", "out").snapshot.history == {"memory": ("attic",)}
    assert told(house(deep=True), "up", "climb", "out").snapshot.history == {"memory": ("beam",)}


def test_history_remembers_the_last_time_only() -> None:
    machine = house()
    assert stands(machine, "up", "out", "back", "out", "in", "out", "back") == ("hall",)
    assert stands(machine, "out", "back", "up", "out", "back") == ("floor",)


def test_every_history_remembers_for_itself() -> None:
    states: list[Node] = [
        State(name, [State(f"{name}1"), State(f"{name}2"), History(f"{name}.memory", f"{name}1")]) for name in "ab"
    ]
    rows = [
        *(On(f"{name}1", "on", to=f"{name}2") for name in "ab"),
        On("a", "swap", to="b"),
        On("b", "swap", to="a.memory"),
    ]
    step = told(made(states, rows), "on", "swap", "on", "swap")
    assert step.snapshot.history == {"a.memory": ("a2",), "b.memory": ("b2",)}
    assert step.snapshot.active == ("a2",)


def test_deep_history_of_a_region_remembers_nothing_of_the_others() -> None:
    left = State("left", [State("l1"), History("memory", "l1", deep=True)])
    machine = made([Parallel("both", [left, State("right", [State("r1")])]), State("x")], [On("both", "out", to="x")])
    assert told(machine, "out").snapshot.history == {"memory": ("l1",)}


def test_history_without_memory_goes_to_its_default() -> None:
    assert stands(house(start="street"), "back") == ("hall",)


def test_the_default_of_history_may_lie_deeper() -> None:
    states: list[Node] = [
        State("x"),
        State("s", [State("a"), State("b", [State("b1"), State("b2")]), History("memory", "b2")]),
    ]
    assert stands(made(states, [On("x", "go", to="memory")]), "go") == ("b2",)


def test_the_content_of_a_default_is_done_only_without_memory_and_after_the_entry_around_it() -> None:
    inner = noisy("s", noisy("a"), History("memory", "a", do=note("default")), starting=note("starting"))
    rows = [On("x", "go", to="memory"), On("s", "out", to="x")]
    machine = made([State("x"), inner], rows)
    assert trace(told(machine, "go")) == "+s default +a"
    assert trace(told(machine, "go", "out", "go")) == "+s +a"


def test_a_state_may_start_at_its_history() -> None:
    inner = State("s", [State("a"), State("b"), History("memory", "a", do=note("default"))], start="memory")
    rows = [On("a", "on", to="b"), On("s", "out", to="x"), On("x", "in", to="s")]
    machine = made([inner, State("x")], rows)
    assert notes(machine) == ("default",)
    assert stands(machine, "on", "out", "in") == ("b",)
    assert notes(machine, "on", "out", "in") == ("default",)


@pytest.mark.parametrize(("deep", "where"), [(False, ("l1", "r1")), (True, ("l2", "r2"))])
def test_history_of_a_parallel_state_remembers_all_regions(deep: bool, where: tuple[str, ...]) -> None:
    regions = pair()
    states: list[Node] = [Parallel("both", [*regions.states, History("memory", "left", deep=deep)]), State("x")]
    rows = [On("l1", "go", to="l2"), On("r1", "go", to="r2"), On("both", "out", to="x"), On("x", "back", to="memory")]
    assert stands(made(states, rows), "go", "out", "back") == where


def test_deep_history_remembers_final_states() -> None:
    inner: list[Node] = [State("a"), Final("over"), History("memory", "a", deep=True)]
    rows = [On("a", "on", to="over"), On("s", "out", to="x"), On("x", "back", to="memory")]
    assert stands(made([State("s", inner), State("x")], rows), "on", "out", "back") == ("over",)


def test_history_is_recorded_before_anything_is_left() -> None:
    states: list[Node] = [State("s", [noisy("a"), noisy("b"), History("memory", "a")])]
    rows = [On("a", "on", to="b"), On("s", "again", to="memory")]
    assert stands(made(states, rows), "on", "again") == ("b",)


def test_a_row_to_history_leaves_no_more_than_a_row_to_what_it_stands_for() -> None:
    def machine(row: On) -> Machine:
        return made([noisy("s", noisy("m", noisy("a"), noisy("b")), History("memory", "b"))], [row])

    assert trace(told(machine(On("a", "go", to="memory")), "go")) == "-a +b"
    assert trace(told(machine(On("m", "go", to="memory", internal=True)), "go")) == "-a +b"
    assert trace(told(machine(On("m", "go", to="memory")), "go")) == "-a -m +m +b"


# what is done


def test_a_final_state_tells_that_the_state_around_it_is_done() -> None:
    states: list[Node] = [State("s", [State("a"), Final("over", result=lambda log, event: [log.n])]), State("z")]
    rows = [On("a", "go", to="over", do=count), On("s", Done, to="z", do=kept)]
    step = told(made(states, rows), "go")
    assert (step.snapshot.active, step.snapshot.data.notes) == (("z",), ("[1]",))
    assert (step.snapshot.status, step.snapshot.output) == ("live", None)
    assert [microstep.event for microstep in step.microsteps] == ["go", "done.state.s"]


def test_done_in_a_row_means_its_own_state() -> None:
    states: list[Node] = [State("s", [State("t", [State("a"), Final("over")])])]
    rows = [On("a", "go", to="over"), On("s", Done, do=note("s")), On("t", Done, do=note("t"))]
    assert notes(made(states, rows), "go") == ("t",)


def test_a_parallel_state_is_done_when_all_its_regions_are() -> None:
    regions: list[Node] = [
        State(name, [State(f"{name}1"), Final(f"{name}2", result=lambda log, event: "result")])
        for name in ("left", "right")
    ]
    rows = [
        On("left1", "l", to="left2"),
        On("right1", "r", to="right2"),
        On("both", "done.state.right", do=lambda log, event: kept(heard(log, event), event)),
        On("both", Done, do=lambda log, event: kept(heard(log, event), event)),
    ]
    machine = made([Parallel("both", regions)], rows)
    assert notes(machine, "l") == ()
    assert notes(machine, "l", "r") == ("done.state.right", "'result'", "done.state.both", "None")
    assert told(machine, "l", "r").snapshot.status == "live"


def test_regions_that_end_in_one_step_are_done_once() -> None:
    regions: list[Node] = [State(name, [State(f"{name}1"), Final(f"{name}2")]) for name in ("left", "right")]
    rows = [
        On("left1", "go", to="left2"),
        On("right1", "go", to="right2"),
        *(On("both", f"done.state.{name}", do=note(name)) for name in ("left", "right", "both")),
    ]
    assert notes(made([Parallel("both", regions)], rows), "go") == ("left", "right", "both")


def test_a_region_without_a_final_state_keeps_the_parallel_state_from_being_done() -> None:
    states: list[Node] = [Parallel("both", [State("left", [State("a"), Final("over")]), State("right")])]
    rows = [On("a", "go", to="over"), On("both", Done, do=note("done"))]
    assert notes(made(states, rows), "go") == ()


def test_a_parallel_region_is_over_when_its_regions_are() -> None:
    inner = Parallel("inner", [State("x", [State("x1"), Final("x2")]), State("y", [State("y1"), Final("y2")])])
    states: list[Node] = [Parallel("outer", [inner, State("left", [State("l1"), Final("l2")])])]
    rows = [
        On("x1", "x", to="x2"),
        On("y1", "y", to="y2"),
        On("l1", "l", to="l2"),
        On("outer", Done, do=note("outer")),
        On("inner", Done, do=note("inner")),
    ]
    machine = made(states, rows)
    assert notes(machine, "x", "l") == ()
    assert notes(machine, "x", "y", "l") == ("inner", "outer")


def test_a_final_state_of_the_machine_ends_the_run_with_its_result() -> None:
    states: list[Node] = [State("a"), Final("over", result=lambda log, event: (log.n, event.data))]
    snapshot = told(made(states, [On("a", "go", to="over", do=count)]), Named("go", "x")).snapshot
    assert (snapshot.status, snapshot.reason, snapshot.output, snapshot.active) == ("done", "", [1, "x"], ("over",))


def test_a_run_may_end_where_it_starts() -> None:
    assert begun(made([Final("over", result=lambda log, event: 7)], [])).snapshot.output == 7


def test_at_the_end_everything_is_left_innermost_first() -> None:
    over = Final("over", enter=note("+over"), exit=note("-over"))
    machine = made([noisy("a", noisy("b")), over], [On("b", "go", to="over")])
    assert trace(told(machine, "go")) == "-b -a +over -over"


def test_after_the_end_nothing_is_done_any_more() -> None:
    rows = [On("a", "go", to="over", do=raising("raised")), On(anywhere, "raised", do=heard), On("a", "x", do=heard)]
    machine = made([State("a"), Final("over")], [*rows, On(anywhere, always, do=note("always"), when=no)])
    step = told(machine, "go")
    assert (step.snapshot.status, step.snapshot.data.notes, len(step.microsteps)) == ("done", (), 1)
    for event in (Named("raised"), Cancelled("late"), GaveUp("late"), Exhausted("usd", 1)):
        assert move(machine, step.snapshot, event) == Step(step.snapshot, event, (), step.snapshot)


# when something goes wrong


def failing(where: str) -> Machine:
    """A machine in which one place is broken."""
    do = {name: broken if name == where else () for name in ("row", "enter", "exit", "starting", "default", "result")}
    inner: list[Node] = [State("i"), History("memory", "i", do=do["default"])]
    return made(
        [
            State("a", exit=do["exit"]),
            State("b", inner, enter=do["enter"], starting=do["starting"]),
            Final("over", result=broken if where == "result" else None),
        ],
        [On("a", "go", to="b", do=do["row"]), On("a", "back", to="memory"), On("a", "end", to="over")],
    )


@pytest.mark.parametrize(
    ("where", "event", "place"),
    [
        ("row", "go", "a on go"),
        ("enter", "go", "b, enter"),
        ("exit", "go", "a, exit"),
        ("starting", "go", "b, starting"),
        ("default", "back", "memory, default"),
        ("result", "end", "over, result"),
    ],
)
def test_a_move_that_raises_fails_the_run_and_names_the_place(where: str, event: str, place: str) -> None:
    snapshot = told(failing(where), event).snapshot
    said, _, at = snapshot.reason.partition(" (in ")
    assert (snapshot.status, said) == ("failed", f"{place}: ValueError: oops")
    assert re.fullmatch(rf"\w+, {re.escape(__file__)}:\d+\)", at)


def test_a_move_that_ends_the_program_fails_the_run_like_any_other_that_raises() -> None:
    snapshot = told(made([State("a")], [On("a", "go", do=leaving)]), "go").snapshot
    assert snapshot.status == "failed"
    assert snapshot.reason.partition(" (in ")[0] == "a on go: SystemExit: 0"


@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        (broken, "guard broken: ValueError: oops"),
        (leaving, "guard leaving: SystemExit: 0"),
        (lambda log, event: 1, "guard {}.<lambda>: it gave 1; a guard gives True or False"),
        (lambda log, event: None, "guard {}.<lambda>: it gave None; a guard gives True or False"),
        (Scripted(lambda *_: broken(*_[:2]), "x > y"), "guard x > y: ValueError: oops"),
    ],
    ids=["raises", "ends the program", "a number", "nothing", "scripted"],
)
def test_a_guard_that_goes_wrong_is_never_a_no(guard: Any, reason: str) -> None:
    machine = made([State("a"), State("b")], [On("a", "go", to="b", when=guard), On("a", "go", to="b")])
    snapshot = told(machine, "go").snapshot
    named = reason.replace("{}.<lambda>", getattr(guard, "__qualname__", ""))
    said = snapshot.reason.partition(" (in ")[0]
    assert (snapshot.status, snapshot.active, said) == ("failed", ("a",), f"a on go, {named}")


def test_where_a_guard_goes_wrong_no_region_takes_anything() -> None:
    rows = [On("l1", "go", to="l2"), On("r1", "go", to="r2", when=broken), On("both", "error", do=heard)]
    step = told(made([pair()], rows), "go")
    assert (step.snapshot.active, step.taken, step.snapshot.status) == (("l1", "r1"), ("both/0",), "live")


def test_with_the_errors_of_scxml_a_guard_that_goes_wrong_is_a_no_and_an_event() -> None:
    rows = [
        On("a", "go", to="b", when=broken),
        On("a", "go", to="c"),
        On("c", "error.execution", do=lambda log, event: note(f"{event.where}: {event.reason}")(log, event)),
    ]
    machine = made([State(name) for name in "abc"], rows, errors="scxml")
    assert notes(machine, "go") == ("a on go, guard broken: ValueError: oops",)


def test_an_error_that_a_row_takes_does_not_fail_the_run() -> None:
    rows = [On("a", "go", to="b", do=broken), On("b", "error", to="c", do=heard)]
    step = told(made([State(name) for name in "abc"], rows), "go")
    assert (step.snapshot.status, step.snapshot.active) == ("live", ("c",))
    assert step.snapshot.data.notes == ("error.execution",)


def test_a_move_that_raises_changes_nothing_and_the_next_one_is_done() -> None:
    rows = [On("a", "go", do=(count, broken, count)), On("a", "error", do=heard)]
    assert told(made([State("a")], rows), "go").snapshot.data == Log(("error.execution",), 2)


@pytest.mark.parametrize(("errors", "status"), [("strict", "failed"), ("scxml", "live")])
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (GaveUp("no network"), "no network"),
        (Named("error.communication"), "error.communication"),
        (Named("error"), "error"),
    ],
)
def test_an_error_from_outside_that_no_row_takes_fails_a_strict_run(
    event: Event, reason: str, errors: str, status: str
) -> None:
    snapshot = told(made([State("a")], [On("a", "go", do=count)], errors=errors), event).snapshot
    assert (snapshot.status, snapshot.reason) == (status, reason if status == "failed" else "")


@pytest.mark.parametrize(("errors", "status"), [("strict", "failed"), ("scxml", "done")])
@pytest.mark.parametrize("place", ["result", "exit", "raised before"])
def test_what_goes_wrong_on_the_way_to_the_end_is_not_forgotten(errors: str, status: str, place: str) -> None:
    over = Final(
        "over", result=broken if place == "result" else None, exit=broken if place == "exit" else (), enter=raising("x")
    )
    rows = [On("a", "go", to="over", do=broken if place == "raised before" else count)]
    snapshot = told(made([State("a"), over], rows, errors=errors), "go").snapshot
    assert (snapshot.status, snapshot.output) == (status, None)


def test_a_result_that_cannot_be_stored_fails_the_run() -> None:
    machine = made([State("a"), Final("over", result=lambda log, event: object())], [On("a", "go", to="over")])
    snapshot = told(machine, "go").snapshot
    assert (snapshot.status, snapshot.output) == ("failed", None)
    assert snapshot.reason.startswith("over, result: a object cannot be stored")


@pytest.mark.parametrize(
    ("data", "given", "reason"),
    [
        (Log, None, "it gave NoneType; a move gives a Log, a Move or an effect"),
        (Log, {}, "it gave dict; a move gives a Log, a Move or an effect"),
        (Log, Move(None), "it gave a Move of NoneType; a move gives a Log, a Move or an effect"),
        (None, None, "it gave NoneType; a move gives the new data, a Move or an effect"),
        (dict, None, "it gave NoneType; a move gives a dict, a Move or an effect"),
    ],
    ids=repr,
)
def test_a_move_gives_data_of_the_type_of_the_machine(data: Any, given: Any, reason: str) -> None:
    machine = made([State("a")], [On("a", "go", do=lambda data, event: given)], data=data)
    before = Log() if data is Log else {"x": 1}
    snapshot = told(machine, "go", data=before).snapshot
    assert (snapshot.status, snapshot.reason, snapshot.data) == ("failed", f"a on go: {reason}", before)


@pytest.mark.parametrize(("data", "given"), [(None, 5), (None, Log()), (dict, {"y": 2}), (None, Move(None))], ids=repr)
def test_a_machine_without_a_type_for_its_data_takes_any(data: Any, given: Any) -> None:
    machine = made([State("a")], [On("a", "go", do=lambda data, event: given)], data=data)
    assert told(machine, "go", data={"x": 1}).snapshot.data == (None if isinstance(given, Move) else given)


def test_a_move_may_report_an_error_and_still_be_kept() -> None:
    rows = [On("a", "go", do=lambda log, event: Move(replace(log, n=5), error="half done"))]
    snapshot = told(made([State("a")], rows), "go").snapshot
    assert (snapshot.status, snapshot.reason, snapshot.data.n) == ("failed", "a on go: half done", 5)


def test_what_a_move_writes_beside_its_declaration_is_not_kept() -> None:
    for writes, status in ((("n",), "live"), (("notes",), "failed"), ((), "failed"), (("n", "notes"), "live")):
        machine = made([State("a")], [On("a", "go", do=count, writes=writes)])
        snapshot = told(machine, "go").snapshot
        assert (snapshot.status, snapshot.data.n) == (status, 1 if status == "live" else 0)
    assert snapshot.reason == ""
    [reason] = {told(made([State("a")], [On("a", "go", do=count, writes=())]), "go").snapshot.reason}
    assert reason == "a on go: it writes n, but `writes` allows nothing"


@pytest.mark.parametrize(
    ("after", "kept"),
    [({"a": 2, "b": 1}, True), ({"a": 1, "b": 2}, False), ({"a": 1}, False), ({"a": 1, "b": 1, "c": 1}, False)],
)
@pytest.mark.parametrize("given", [lambda data: data, Move], ids=["data", "a Move"])
def test_keys_that_change_come_or_go_are_written(after: dict[str, int], kept: bool, given: Any) -> None:
    before = {"a": 1, "b": 1}
    machine = made([State("x")], [On("x", "go", do=lambda data, event: given(after), writes=("a",))], data=dict)
    snapshot = told(machine, "go", data=before).snapshot
    assert (snapshot.data, snapshot.status) == ((after, "live") if kept else (before, "failed"))


def test_what_is_written_anew_with_the_same_value_is_not_written() -> None:
    before = {"a": [1, 2], "b": float("nan")}
    rows = [On("x", "go", do=lambda data, event: {"a": list(data["a"]), "b": data["b"]}, writes=())]
    assert told(made([State("x")], rows, data=dict), "go", data=before).snapshot.status == "live"


def test_a_function_may_declare_what_it_writes_itself() -> None:
    def counting(log: Log, event: Event) -> Log:
        return count(log, event)

    for writes, status in ((("n",), "live"), (("notes",), "failed")):
        counting.writes = writes  # type: ignore[attr-defined]
        assert told(made([State("a")], [On("a", "go", do=counting)]), "go").snapshot.status == status
        assert told(made([State("a")], [On("a", "go", do=counting, writes=["n"])]), "go").snapshot.status == "live"


def test_data_that_have_no_parts_are_written_as_a_whole() -> None:
    machine = made([State("a")], [On("a", "go", do=lambda n, event: event.data, writes=("x",))], data=None)
    assert told(machine, Named("go", 1), data=1).snapshot.status == "live"
    assert told(machine, Named("go", 2), data=1).snapshot.reason == (
        "a on go: it writes the data, but `writes` allows x"
    )


def test_a_move_that_declares_its_writes_may_want_an_effect_or_go_wrong() -> None:
    rows = [
        On("a", "want", do=lambda log, event: Fetch(), writes=(), emits={Fetch: 1}),
        On("a", "fail", do=broken, writes=()),
        On("a", "none", do=lambda log, event: None, writes=()),
        On("a", "error", do=lambda log, event: note(event.reason)(log, event)),
    ]
    machine = made([State("a")], rows)
    assert [wanted.effect for wanted in told(machine, "want").effects] == [Fetch()]
    assert notes(machine, "fail") == ("ValueError: oops",)
    assert notes(machine, "none") == ("it gave NoneType; a move gives a Log, a Move or an effect",)


# limits


def test_a_row_is_taken_at_most_so_often_and_then_passed_over() -> None:
    rows = [On("a", "go", do=note("bounded"), at_most=2), On("a", "go", do=note("other"))]
    step = told(made([State("a")], rows), "go", "go", "go")
    assert step.snapshot.data.notes == ("bounded", "bounded", "other")
    assert step.snapshot.counts == {"a/0": 2}


def test_rows_without_a_bound_are_not_counted() -> None:
    assert told(made([State("a")], [On("a", "go", do=count)]), "go", "go").snapshot.counts == {}


def test_a_row_that_may_be_taken_zero_times_is_never_taken() -> None:
    machine = made([State("a")], [On("a", "go", do=count, at_most=0)])
    assert told(machine, "go").taken == ()
    assert not accepts(machine, begun(machine).snapshot, "go")


def visiting(most: int, *rows: On, **more: Any) -> Machine:
    """A machine whose state b may be entered so often."""
    return made(
        [State("a"), State("b", max_visits=most), State("c")],
        [On("a", "go", to="b"), On("b", "back", to="a"), *rows],
        **more,
    )


def test_a_state_is_entered_at_most_so_often_and_then_the_run_ends_at_its_limit() -> None:
    machine = visiting(2)
    assert told(machine, "go", "back", "go").snapshot.counts == {"b": 2}
    step = told(machine, "go", "back", "go", "back", "go")
    assert (step.snapshot.status, step.snapshot.reason) == ("limited", "limit of 2 visits reached in b")
    assert (step.snapshot.active, step.taken, step.snapshot.counts) == (("a",), (), {"b": 2})


def test_a_row_may_take_the_end_of_the_visits() -> None:
    machine = visiting(1, On("a", Exhausted, to="c", do=lambda log, event: note(event.where)(log, event)))
    step = told(machine, "go", "back", "go")
    assert (step.snapshot.status, step.snapshot.active, step.snapshot.data.notes) == ("live", ("c",), ("b",))


def test_a_row_that_takes_the_end_of_the_visits_may_not_begin_another_visit() -> None:
    step = told(visiting(1, On("a", Exhausted, to="b")), "go", "back", "go")
    assert (step.snapshot.status, step.snapshot.active) == ("limited", ("a",))
    assert step.snapshot.reason == "limit of 1 visits reached in b"


def test_a_row_without_an_event_ends_at_the_limit_of_visits_too() -> None:
    rows = (On("a", always, to="b"),)
    assert told(visiting(1, *rows), "back").snapshot.reason == "limit of 1 visits reached in b"
    step = told(visiting(1, On("a", Exhausted, to="c"), *rows), "back")
    assert (step.snapshot.status, step.snapshot.active) == ("live", ("c",))


def test_a_row_that_leads_to_a_spent_state_is_not_counted() -> None:
    rows = [On("a", "go", to="b", at_most=5), On("b", "back", to="a"), On("a", Exhausted, do=heard)]
    machine = made([State("a"), State("b", max_visits=1)], rows)
    assert told(machine, "go", "back", "go", "go").snapshot.counts == {"b": 1, "a/0": 1}


def test_the_start_is_a_visit() -> None:
    states: list[Node] = [State("a", max_visits=1), State("b")]
    machine = made(states, [On("a", "go", to="b"), On("b", "back", to="a")])
    assert begun(machine).snapshot.counts == {"a": 1}
    assert told(machine, "go", "back").snapshot.status == "limited"
    nowhere = begun(made([State("a", max_visits=0)], [])).snapshot
    assert (nowhere.status, nowhere.active, nowhere.counts) == ("limited", (), {})


def test_staying_in_a_state_is_no_visit() -> None:
    machine = made([State("a", [State("b"), State("c")], max_visits=1)], [On("b", "go", to="c"), On("c", "go", to="b")])
    assert told(machine, "go", "go", "go").snapshot.counts == {"a": 1}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Exhausted("usd", 0.5), "limit of 0.5 usd reached"),
        (Exhausted("calls", 3, "a"), "limit of 3 calls reached in a"),
        (Named("run.exhausted.tokens"), "run.exhausted.tokens"),
    ],
)
@pytest.mark.parametrize("errors", ["strict", "scxml"])
def test_a_limit_that_no_row_takes_ends_the_run_there(event: Event, reason: str, errors: str) -> None:
    snapshot = told(made([noisy("a")], [], errors=errors), event).snapshot
    assert (snapshot.status, snapshot.reason, snapshot.data.notes) == ("limited", reason, ("+a",))


def test_a_limit_that_a_row_takes_is_an_event_like_any_other() -> None:
    machine = made([State("a"), State("b")], [On("a", Exhausted, to="b")])
    assert told(machine, Exhausted("usd", 1)).snapshot == replace(begun(machine).snapshot, active=("b",))


def counting(most: int) -> Machine:
    """A machine that takes as many microsteps as an event says, of at most so many."""
    rows = [
        On("a", "go", do=lambda log, event: replace(log, n=event.data)),
        On("a", always, do=lambda log, event: replace(log, n=log.n - 1), when=lambda log, event: log.n > 0),
    ]
    return made([State("a")], rows, max_microsteps=most)


def test_an_event_may_cause_so_many_microsteps_and_no_more() -> None:
    machine = counting(10)
    enough, too_many = told(machine, Named("go", 9)), told(machine, Named("go", 10))
    assert (enough.snapshot.status, len(enough.microsteps)) == ("live", 10)
    assert (too_many.snapshot.status, len(too_many.microsteps)) == ("failed", 11)
    assert too_many.snapshot.reason == "go caused more than 10 microsteps; these rows repeat: a/1"


def test_too_many_microsteps_are_explained_by_the_rows_that_repeat() -> None:
    rows = [On("a", always, to="b"), On("b", always, to="c"), On("c", always, to="a")]
    machine = made([State(name) for name in "abc"], rows, max_microsteps=9)
    reason = "run.started caused more than 9 microsteps; these rows repeat: a/0 → b/0 → c/0"
    assert begun(machine).snapshot.reason == reason


def test_a_machine_that_may_do_nothing_does_not_get_beyond_its_start() -> None:
    snapshot = begun(made([State("a")], [], max_microsteps=0)).snapshot
    assert snapshot.reason == "run.started caused more than 0 microsteps; the last: start"


def test_where_no_rows_repeat_the_last_are_named() -> None:
    rows = [On(f"s{n}", always, to=f"s{n + 1}") for n in range(9)]
    machine = made([State(f"s{n}") for n in range(10)], rows, max_microsteps=7)
    reason = "run.started caused more than 7 microsteps; the last: s2/0 → s3/0 → s4/0 → s5/0 → s6/0"
    assert begun(machine).snapshot.reason == reason


class Breaking:
    """A guard that always raises, and counts how often."""

    label = "breaking"

    def __init__(self) -> None:
        self.tried = 0

    def __call__(self, log: Log, event: Event) -> bool:
        self.tried += 1
        raise ValueError("oops")


@pytest.mark.parametrize(
    ("rows", "errors"),
    [
        (lambda guard: [On("a", always, to="a", when=guard)], "scxml"),
        (lambda guard: [On("a", "error", when=guard), On("a", always, do=broken, at_most=1)], "strict"),
    ],
    ids=["without an event", "of the row for errors"],
)
def test_a_guard_that_goes_wrong_again_and_again_ends_the_run(rows: Callable[[Any], list[On]], errors: str) -> None:
    guard = Breaking()
    snapshot = begun(made([State("a")], rows(guard), errors=errors, max_microsteps=5)).snapshot
    assert (snapshot.status, guard.tried) == ("failed", 6)
    assert snapshot.reason.startswith("run.started made more than 5 guards go wrong; the last: a on ")
    assert snapshot.reason.partition(" (in ")[0].endswith(", guard breaking: ValueError: oops")


# cancelling


def test_a_cancelled_run_leaves_its_states_innermost_first() -> None:
    step = told(nested(), Cancelled("enough"))
    assert trace(step) == "-c -b -a"
    assert (step.snapshot.status, step.snapshot.reason, step.snapshot.active) == ("cancelled", "enough", ("c",))


def test_a_run_may_take_its_cancelling_in_hand() -> None:
    machine = made([State("a"), Final("tidied")], [On("a", Cancelled, to="tidied")])
    assert told(machine, Cancelled()).snapshot.status == "done"


def test_a_cancelled_run_wants_what_belongs_to_no_state_and_nothing_else() -> None:
    leaving = (wanting(Notify(), Fetch("coat")), Send(Named("x"), 5))
    leaving[0].emits = {"notify": 1, "fetch": 1}  # type: ignore[attr-defined]
    step = told(made([State("a", exit=leaving)], []), Cancelled())
    assert step.effects == (Wanted(Notify(), None), Wanted(Fetch("coat"), None), Wanted(Send(Named("x"), 5), None))


def test_a_run_that_cancels_itself_drops_what_its_states_want() -> None:
    rows = [On("a", "go", to="b", do=(Fetch(), Notify(), raising("run.cancelled")))]
    step = told(made([State("a"), State("b", enter=Fetch())], rows), "go")
    assert (step.snapshot.status, step.snapshot.reason) == ("cancelled", "run.cancelled")
    assert step.effects == (Wanted(Notify(), None),)


def test_an_error_while_leaving_does_not_keep_a_run_from_being_cancelled() -> None:
    assert told(made([State("a", exit=broken)], []), Cancelled()).snapshot.status == "cancelled"


# effects and their owners


def wants(step: Step) -> list[tuple[str, str | None]]:
    return [(getattr(wanted.effect, "thing", wanted.effect.kind), wanted.owner) for wanted in step.effects]


def test_an_effect_belongs_to_the_state_that_is_entered_or_led_to_or_stayed_in() -> None:
    inner: list[Node] = [State("i", enter=Fetch("entering i")), History("memory", "i", do=Fetch("default"))]
    states: list[Node] = [
        State("a", enter=Fetch("entering a"), exit=Fetch("leaving a")),
        State("b", inner, enter=Fetch("entering b"), starting=Fetch("starting b")),
    ]
    rows = [
        On("a", "go", to="b", do=Fetch("going")),
        On("a", "far", to="i", do=Fetch("going far")),
        On("a", "back", to="memory", do=Fetch("going back")),
        On("a", "stay", do=Fetch("staying")),
        On(anywhere, "any", do=Fetch("anywhere")),
        On(anywhere, "aim", to="b", do=Fetch("aiming")),
    ]
    machine = made(states, rows)
    assert wants(begun(machine)) == [("entering a", "a")]
    entering = [("entering b", "b"), ("starting b", "b"), ("entering i", "i")]
    assert wants(told(machine, "go")) == [("leaving a", None), ("going", "b"), *entering]
    assert wants(told(machine, "far"))[1:] == [("going far", "i"), ("entering b", "b"), ("entering i", "i")]
    assert wants(told(machine, "back"))[1:3] == [("going back", "b"), ("entering b", "b")]
    assert wants(told(machine, "back"))[3:] == [("default", "b"), ("entering i", "i")]
    assert wants(told(machine, "stay")) == [("staying", "a")]
    assert wants(told(machine, "any")) == [("anywhere", None)]
    assert wants(told(machine, "aim"))[1] == ("aiming", "b")


def test_an_effect_that_is_not_owned_belongs_to_no_state() -> None:
    effects = (Notify(), Send(Named("x"), 1), Alarm(Named("y"), 1))
    assert wants(begun(made([State("a", enter=effects)], []))) == [("notify", None), ("send", None), ("alarm", "a")]


def test_what_a_state_wanted_that_was_left_in_the_same_step_is_wanted_no_more() -> None:
    states: list[Node] = [State("a"), State("b", enter=(Fetch("b"), Notify())), State("c", enter=Fetch("c"))]
    machine = made(states, [On("a", "go", to="b"), On("b", always, to="c")])
    assert wants(told(machine, "go")) == [("notify", None), ("c", "c")]


def test_what_a_state_wants_that_is_not_left_stays_wanted() -> None:
    states: list[Node] = [State("a"), State("b", [State("i", enter=Fetch("i")), State("j")], enter=Fetch("b"))]
    machine = made(states, [On("a", "go", to="b"), On("i", always, to="j")])
    assert wants(told(machine, "go")) == [("b", "b")]


def test_a_state_that_is_entered_again_wants_its_effect_once() -> None:
    rows = [On("a", "go", to="b", do=raising("again")), On("b", "again", to="b")]
    assert wants(told(made([State("a"), State("b", enter=Fetch("b"))], rows), "go")) == [("b", "b")]


def test_a_function_may_give_an_effect_that_it_declares() -> None:
    machine = made([State("a")], [On("a", "go", do=lambda log, event: Fetch("x"), emits={Fetch: 1})])
    assert wants(told(machine, "go")) == [("x", "a")]


@pytest.mark.parametrize("emits", [None, {}, {Fetch: 0}, {Notify: 1}])
def test_a_function_that_gives_an_effect_that_it_does_not_declare_gets_nothing(emits: Any) -> None:
    step = told(made([State("a")], [On("a", "go", do=lambda log, event: Fetch("x"), emits=emits)]), "go")
    assert (step.effects, step.snapshot.status) == ((), "failed")
    assert step.snapshot.reason == "a on go: it wants 1 × fetch, but `emits` allows 0"


@pytest.mark.parametrize(
    ("effects", "emits", "reason"),
    [
        ((Fetch(), Fetch()), {Fetch: 1}, "it wants 2 × fetch, but `emits` allows 1"),
        ((Fetch(),), {Fetch: 0}, "it wants 1 × fetch, but `emits` allows 0"),
        ((Fetch(),), {Notify: 1}, "it wants 1 × fetch, but `emits` allows 0"),
        ((Notify(), Fetch()), {Notify: 1}, "it wants 1 × fetch, but `emits` allows 0"),
        ((Fetch(),), None, "it wants 1 × fetch, but `emits` allows 0"),
    ],
)
def test_a_move_that_wants_more_than_the_table_declares_gets_nothing(
    effects: tuple[Effect, ...], emits: Any, reason: str
) -> None:
    def do(log: Log, event: Event) -> Move[Log]:
        return Move(replace(log, n=9), effects, (Append("talk", "hello"),), (Named("raised"),))

    rows = [On("a", "go", do=do, emits=emits), On("a", "raised", do=heard), On("a", "error", do=heard)]
    step = told(made([State("a")], rows), "go")
    assert (step.effects, step.appends, step.snapshot.data) == ((), (), Log(("error.execution",)))
    assert told(made([State("a")], rows[:1]), "go").snapshot.reason == f"a on go: {reason}"


def test_a_move_may_want_less_than_it_declares() -> None:
    machine = made([State("a")], [On("a", "go", do=wanting(Fetch("x")), emits={Fetch: 3, Notify: 1})])
    assert wants(told(machine, "go")) == [("x", "a")]


def test_an_action_may_declare_its_effects_itself() -> None:
    scripted = Scripted(lambda log, event, moment: Move(log, (Fetch("x"),)), "fetch x", {"fetch": 1})
    assert wants(begun(made([State("a", enter=scripted)], []))) == [("x", "a")]
    assert begun(made([State("a", enter=replace(scripted, emits={}))], [])).snapshot.status == "failed"


@pytest.mark.parametrize("event", ["fail", "limit"])
def test_a_run_that_fails_or_ends_at_a_limit_wants_nothing(event: str) -> None:
    rows = [
        On("a", "fail", do=(Notify(), Fetch(), broken)),
        On("a", "limit", to="b", do=(Notify(), Fetch(), raising("over"))),
        On("b", "over", to="c"),
    ]
    step = told(made([State("a"), State("b"), State("c", max_visits=0)], rows), event)
    assert step.snapshot.status in ("failed", "limited")
    assert step.effects == ()


def test_a_run_that_is_done_still_wants_its_last_effects() -> None:
    machine = made([State("a", exit=Fetch("a")), Final("over", exit=Notify())], [On("a", "go", to="over")])
    assert wants(told(machine, "go")) == [("a", None), ("notify", None)]


# an event for one state


def test_an_event_within_a_state_is_offered_inside_and_around_it_alone() -> None:
    rows = [On("l1", "go", to="l2"), On("r1", "go", to="r2"), On("both", "up", do=heard)]
    machine = made([pair()], rows)
    before = begun(machine).snapshot
    assert move(machine, before, "go", "right").snapshot.active == ("l1", "r2")
    assert move(machine, before, "go", "l1").snapshot.active == ("l2", "r1")
    assert move(machine, before, "go", "both").snapshot.active == ("l2", "r2")
    assert move(machine, before, "go").snapshot.active == ("l2", "r2")
    assert move(machine, before, "up", "left").snapshot.data.notes == ("up",)


def test_an_event_within_a_state_that_is_not_active_takes_nothing() -> None:
    machine = made([pair()], [On("both", "go", do=heard)])
    assert move(machine, begun(machine).snapshot, "go", "l2").taken == ()


def test_what_an_event_within_a_state_raises_is_heard_everywhere() -> None:
    rows = [On("l1", "go", do=raising("raised")), On("r1", "raised", to="r2")]
    machine = made([pair()], rows)
    assert move(machine, begun(machine).snapshot, "go", "left").snapshot.active == ("l1", "r2")


# what a run would accept


def test_a_run_accepts_what_a_row_of_its_active_states_names_whatever_the_guard_says() -> None:
    states: list[Node] = [State("outer", [State("a"), State("b")])]
    rows = [
        On("outer", "far.*", to="a"),
        On("a", Knocked, to="b", when=no),
        On("b", "other", to="a"),
        On("a", "once", do=count, at_most=1),
        On("a", always, when=no),
    ]
    machine = made(states, rows)
    before = begun(machine).snapshot
    accepted = ["far", "far.away", Knocked(), Loudly(), "knocked", "once"]
    assert all(accepts(machine, before, event) for event in accepted)  # type: ignore[arg-type]
    assert not any(accepts(machine, before, name) for name in ("other", "farther", ""))
    assert possible(machine, before) == ("knocked", "once", "far")
    after = told(machine, "once").snapshot
    assert not accepts(machine, after, "once")
    assert possible(machine, after) == ("knocked", "far")


def test_a_wildcard_is_possible_as_a_star() -> None:
    machine = made([pair()], [On("r1", "*", to="r2"), On("l1", "x y", to="l2"), On("r1", "x", to="r2")])
    assert possible(machine, begun(machine).snapshot) == ("x", "y", "*")
    assert accepts(machine, begun(machine).snapshot, "whatever")


@pytest.mark.parametrize("descriptor", ["all.in", "*"])
def test_what_only_the_machine_raises_is_taken_from_nobody_else(descriptor: str) -> None:
    rows = [On("a", "again", do=raising("all.in")), On("a", descriptor, to="b")]
    machine = made([State("a"), State("b")], rows, inner=["all.in"])
    before = begun(machine).snapshot
    assert not accepts(machine, before, "all.in")
    assert not accepts(machine, before, Named("all.in"))
    assert "all.in" not in possible(machine, before)
    assert accepts(machine, before, "again")
    assert told(machine, "again").snapshot.active == ("b",)


def test_a_run_that_has_ended_accepts_nothing() -> None:
    machine = made([State("a"), Final("over")], [On("a", "go", to="over"), On(anywhere, "*", do=heard)])
    ended = told(machine, "go").snapshot
    assert (accepts(machine, ended, "x"), possible(machine, ended)) == (False, ())


# scripts


def asking(*scripts: str) -> Scripted:
    """A move that has scripts evaluated and notes the answers."""

    def run(log: Log, event: Event, moment: Moment) -> Log:
        found = tuple(str(getattr(moment.evaluate(script, log.n), "value", "-")) for script in scripts)
        return replace(log, notes=(*log.notes, *found))

    return Scripted(run, " ".join(scripts))


def true(script: str) -> Scripted:
    return Scripted(lambda log, event, moment: moment.evaluate(script, log.n) == Value(True), script)


def test_a_script_without_an_answer_is_asked_for() -> None:
    machine = made([State("a"), State("b")], [On("a", "go", to="b", when=true("guard"), do=asking("one", "two"))])
    before = begun(machine).snapshot
    answers: list[Answer] = [Value(True), Value(1), Value(2)]
    for script, known in (("guard", 0), ("one", 1), ("two", 2)):
        assert transition(machine, before, Named("go"), answers[:known]) == Ask(script, 0)
    step = transition(machine, before, Named("go"), answers)
    assert isinstance(step, Step)
    assert (step.snapshot.data.notes, step.answers) == (("1", "2"), tuple(answers))


def test_answers_that_nobody_asked_for_are_not_kept() -> None:
    machine = made([State("a")], [On("a", "go", when=true("guard"), do=asking("one"))])
    step = transition(machine, begun(machine).snapshot, Named("go"), (Value(False), Value(1)))
    assert isinstance(step, Step)
    assert (step.answers, step.taken) == ((Value(False),), ())


@pytest.mark.parametrize("answer", [Absent(), Failed("too slow")])
def test_an_answer_may_be_that_there_is_none(answer: Answer) -> None:
    machine = made([State("a")], [On("a", "go", do=asking("one"))])
    step = transition(machine, begun(machine).snapshot, Named("go"), (answer,))
    assert isinstance(step, Step)
    assert (step.snapshot.data.notes, step.answers) == (("-",), (answer,))


def test_the_first_step_may_need_answers_too() -> None:
    machine = made([State("a", enter=asking("one"))], [])
    assert start(machine, Log()) == Ask("one", 0)
    step = start(machine, Log(), [Value(7)])
    assert isinstance(step, Step)
    assert (step.snapshot.data.notes, step.answers) == (("7",), (Value(7),))


def test_no_guard_or_move_can_swallow_a_question() -> None:
    def run(log: Log, event: Event, moment: Moment) -> Log:
        try:
            moment.evaluate("one", None)
        except Exception:
            return log
        return log

    machine = made([State("a")], [On("a", "go", do=Scripted(run, "greedy"))])
    assert transition(machine, begun(machine).snapshot, Named("go")) == Ask("one", None)


def late(mark: str, *raises: str) -> Scripted:
    """An entry move that waits: it notes who is active, wants a fetch of its own and raises events."""

    def run(log: Log, event: Event, moment: Moment) -> Move[Log]:
        log = replace(log, notes=(*log.notes, f"{mark}:{''.join(sorted(moment.active))} on {event.name}"))
        return Move(log, (Fetch(mark),), raises=tuple(map(Named, raises)))

    return Scripted(run, mark, {Fetch.kind: 1}, late=True)


def test_late_moves_are_done_when_nothing_else_is_left_to_do_outer_states_first() -> None:
    inner = State("b", enter=[late("B"), note("+b"), raising("x")])
    machine = made(
        [State("o"), State("a", [inner], enter=late("A"))], [On("o", "go", to="a"), On("b", "x", do=note("x"))]
    )
    step = told(machine, "go")
    assert step.snapshot.data.notes == ("+b", "x", "A:ab on x", "B:ab on x")
    assert [(wanted.effect, wanted.owner) for wanted in step.effects] == [(Fetch("A"), "a"), (Fetch("B"), "b")]


def test_a_state_that_is_left_before_the_run_is_at_rest_does_not_begin() -> None:
    machine = made([State("a", enter=late("A")), State("b", enter=late("B"))], [On("a", always, to="b")])
    assert begun(machine).snapshot.data.notes == ("B:b on run.started",)
    ending = made([State("a", enter=late("A")), Final("b", enter=late("B"))], [On("a", always, to="b")])
    assert begun(ending).snapshot.data.notes == ()


def test_what_late_moves_raise_is_seen_to_in_the_same_step_and_they_are_not_done_again() -> None:
    machine = made(
        [State("a", [State("b"), State("c", enter=late("C"))], enter=late("A", "on"))], [On("b", "on", to="c")]
    )
    step = begun(machine)
    assert step.snapshot.data.notes == ("A:ab on run.started", "C:ac on on")
    assert (step.snapshot.active, len(step.effects)) == (("c",), 2)


def test_a_late_move_is_done_each_time_its_state_is_entered() -> None:
    machine = made([State("a", enter=late("A"))], [On("a", "again", to="a"), On("a", "stay")])
    assert notes(machine, "again", "stay") == ("A:a on run.started", "A:a on again")


def test_what_a_late_move_wants_ends_with_its_state() -> None:
    machine = made([State("a", enter=late("A", "on")), State("b")], [On("a", "on", to="b")])
    assert (begun(machine).snapshot.active, begun(machine).effects) == (("b",), ())


def test_a_result_may_be_scripted() -> None:
    over = Final("over", result=Scripted(lambda log, event, moment: sorted(moment.active), "active"))
    assert told(made([State("a"), over], [On("a", "go", to="over")]), "go").snapshot.output == ["over"]


def test_a_scripted_move_sees_the_states_that_are_active_at_its_turn() -> None:
    def seen(mark: str) -> Scripted:
        def run(log: Log, event: Event, moment: Moment) -> Log:
            return replace(log, notes=(*log.notes, f"{mark}:{''.join(sorted(moment.active))}"))

        return Scripted(run, mark)

    def watched(name: str, *inner: Node) -> State:
        return State(name, inner, enter=seen(f"+{name}"), exit=seen(f"-{name}"))

    states: list[Node] = [watched("a", watched("b")), watched("x", watched("y"))]
    machine = made(
        [*states, Final("z", exit=seen("-z"))], [On("b", "go", to="y", do=seen("go")), On("y", "end", to="z")]
    )
    assert trace(begun(machine)) == "+a:a +b:ab"
    assert trace(told(machine, "go")) == "-b:ab -a:a go: +x:x +y:xy"
    assert trace(told(machine, "go", "end")) == "-y:xy -x:x -z:z"
    assert trace(told(machine, "go", Cancelled())) == "-y:xy -x:x"


@pytest.mark.parametrize(
    ("state", "taken"), [("l1", True), ("left", True), ("both", True), ("l2", False), ("m", False)]
)
def test_a_guard_may_ask_whether_a_state_is_active(state: str, taken: bool) -> None:
    machine = made([pair()], [On("r1", "go", to="r2", when=In(state))])
    assert bool(told(machine, "go").taken) is taken


def test_a_guard_sees_the_states_of_now_also_when_it_is_tried_again() -> None:
    machine = made([pair()], [On("l1", "go", to="l2"), On("r1", always, to="r2", when=In("l2"))])
    assert stands(machine) == ("l1", "r1")
    assert stands(machine, "go") == ("l2", "r2")


# threads


def saying(*messages: Any, thread: str = "talk") -> Act:
    return lambda log, event: Move(log, appends=tuple(Append(thread, message) for message in messages))


def chained(*texts: str) -> str:
    """The digest of a thread: of each message as JSON, after the digest of those before it."""
    head = ""
    for text in texts:
        head = hashlib.blake2b((head + text).encode(), digest_size=16).hexdigest()
    return head


def test_a_thread_is_known_by_its_length_and_the_digest_of_all_that_was_said() -> None:
    rows = [On("a", "one", do=saying("hello")), On("a", "two", do=saying("hello", {"b": 1, "a": "ü"}))]
    machine = made([State("a")], rows)
    one, two = told(machine, "one"), told(machine, "one", "two")
    assert one.snapshot.threads == {"talk": Tail(1, chained('"hello"'))}
    assert two.snapshot.threads == {"talk": Tail(3, chained('"hello"', '"hello"', '{"a":"ü","b":1}'))}
    assert two.appends == (Append("talk", "hello"), Append("talk", {"b": 1, "a": "ü"}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("x", "y"), ("x", "y"), True),
        (("x", "y"), ("y", "x"), False),
        (("x", "y"), ("z", "y"), False),
        (({"a": 1, "b": 2},), ({"b": 2, "a": 1},), True),
        (("1",), (1,), False),
    ],
)
def test_threads_have_equal_digests_where_the_same_was_said_in_the_same_order(
    one: tuple[Any, ...], other: tuple[Any, ...], same: bool
) -> None:
    heads = [
        told(made([State("a")], [On("a", "go", do=saying(*said))]), "go").snapshot.threads for said in (one, other)
    ]
    assert (heads[0] == heads[1]) is same


def test_every_thread_grows_by_itself() -> None:
    rows = [On("a", "x", do=saying("hi", thread="x")), On("a", "y", do=saying("hi", thread="y"))]
    threads = told(made([State("a")], rows), "x", "y", "y").snapshot.threads
    assert {name: tail.count for name, tail in threads.items()} == {"x": 1, "y": 2}
    assert threads["x"].head != threads["y"].head


def test_a_message_that_cannot_be_stored_is_an_error_and_nothing_of_its_move_is_kept() -> None:
    rows = [On("a", "go", do=lambda log, event: Move(replace(log, n=1), appends=(Append("talk", object()),)))]
    step = told(made([State("a")], rows), "go")
    assert (step.snapshot.status, step.snapshot.data.n, step.snapshot.threads, step.appends) == ("failed", 0, {}, ())
    assert step.snapshot.reason.startswith("a on go: a object cannot be stored")


# what the interpreter remembers


def test_a_plan_that_asked_history_is_made_anew_each_time() -> None:
    machine = house()
    once = stands(machine, "out", "back")
    assert (once, stands(machine, "up", "out", "back"), stands(machine, "out", "back")) == (
        ("hall",),
        ("floor",),
        ("hall",),
    )


def test_a_plan_that_asked_history_below_its_target_is_made_anew_each_time() -> None:
    inner = State("s", [State("a"), State("b"), History("memory", "a")], start="memory")
    rows = [On("a", "on", to="b"), On("b", "on", to="a"), On("s", "out", to="x"), On("x", "in", to="s")]
    machine = made([inner, State("x")], rows)
    assert stands(machine, "out", "in") == ("a",)
    assert stands(machine, "on", "out", "in") == ("b",)


def test_candidates_and_plans_are_worked_out_once() -> None:
    machine = made([pair()], [On("l1", "go", to="l2"), On("l2", "go", to="l1")])
    told(machine, "go", "go", "go", "go")
    plans = remembered(machine)
    assert len(machine.chart.candidates) == 2
    assert [plan.microstep.taken for plan in plans] == [("l1/0",), ("l2/0",)]
    told(machine, "go", "go", "go", "go")
    assert all(one is other for one, other in zip(remembered(machine), plans, strict=True))


def remembered(machine: Machine) -> list[Plan]:
    """The plans that are kept with the rows of single regions."""
    regions = [region for regions in machine.chart.candidates.values() for region in regions]
    return [choice.plan for region in regions for _, choice in region if choice.plan is not None]


def test_plans_for_several_regions_are_worked_out_once() -> None:
    machine = made([pair()], [On("l1", "go", to="l2"), On("r1", "go", to="r2"), On("both", "back", to="both")])
    told(machine, "go", "back", "go")
    choices = dict(machine.chart.choices)
    plans = [choice.plan for choice in choices.values()]
    assert [plan and plan.microstep.taken for plan in plans] == [("l1/0", "r1/0"), ("both/0",)]
    told(machine, "go", "back", "go")
    assert machine.chart.choices == choices
    assert all(choice.plan is plan for choice, plan in zip(choices.values(), plans, strict=True))


def test_what_is_remembered_of_several_regions_depends_on_the_event() -> None:
    machine = made([pair()], [On("l1", "*", do=count), On("r1", "*", do=count)])
    steps = [told(machine, event) for event in ("one", "two")]
    assert [step.microsteps[0].event for step in steps] == ["one", "two"]


def test_what_is_remembered_of_several_regions_depends_on_the_states() -> None:
    rows = [On("left", "go", to="l2", internal=True), On("right", "go", to="r2", internal=True)]
    machine = made([pair()], rows)
    steps = [told(machine, "go"), told(machine, "go", "go")]
    assert [step.microsteps[0].exited for step in steps] == [("r1", "l1"), ("r2", "l2")]


def test_what_is_remembered_depends_on_the_state_that_an_event_is_for() -> None:
    machine = made([pair()], [On("l1", "go", to="l2"), On("r1", "go", to="r2")])
    before = begun(machine).snapshot
    whole = move(machine, before, "go").snapshot.active
    assert (whole, move(machine, before, "go", "left").snapshot.active) == (("l2", "r2"), ("l2", "r1"))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MEMO", 3)
    machine = made([State("a")], [On("a", "*", do=count)])
    step = told(machine, *(f"e{n}" for n in range(20)))
    assert step.snapshot.data.n == 20
    assert len(machine.chart.candidates) <= 3


def test_what_is_remembered_of_several_regions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MEMO", 3)
    machine = made([pair()], [On("l1", "*", do=count), On("r1", "*", do=count)])
    step = told(machine, *(f"e{n}" for n in range(20)))
    assert step.snapshot.data.n == 40
    assert 0 < len(machine.chart.choices) <= 3


def test_a_step_leaves_the_snapshot_before_it_as_it_was() -> None:
    rows = [On("a", "go", to="b", do=saying("x"), at_most=9), On("b", "out", to="x"), On("x", "go", to="memory")]
    states: list[Node] = [State("s", [State("a"), State("b", max_visits=9), History("memory", "a")]), State("x")]
    machine = made(states, rows)
    snapshots = [begun(machine).snapshot]
    for event in ("go", "out", "go"):
        snapshots.append(move(machine, snapshots[-1], event).snapshot)
    assert [snapshot.counts.get("b") for snapshot in snapshots] == [None, 1, 1, 2]
    assert [snapshot.counts.get("a/0") for snapshot in snapshots] == [None, 1, 1, 1]
    assert [list(snapshot.history) for snapshot in snapshots] == [[], [], ["memory"], ["memory"]]
    assert [len(snapshot.threads) for snapshot in snapshots] == [0, 1, 1, 1]
