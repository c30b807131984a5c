"""Runs in virtual time: what is delivered when, what ends with the state that wanted it, and how children live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from moothall.errors import DefinitionError, Refused
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Answered, Cancelled, Event, Expired, GaveUp, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, anywhere
from moothall.kernel.simulate import Simulation, walk, wander
from moothall.kernel.step import Answer, Moment, Move, Scripted, Value


class Polished(Event):
    """A tool has done its work."""

    shine: int = 0


class Polish(Effect):
    """Let a tool work."""

    kind = "polish"
    outcomes = (Polished,)
    thing: str = ""


@dataclass(frozen=True)
class Seen:
    """The names of the events that a machine was told."""

    names: tuple[str, ...] = ()


def note(seen: Seen, event: Event) -> Seen:
    return replace(seen, names=(*seen.names, event.name))


def listening(*effects: Effect, moves: tuple[On, ...] = ()) -> Machine:
    """A machine that wants these effects at once and then notes all that it is told."""
    rows = (*moves, On("listening", "*", do=note))
    return Machine("listener", data=Seen, states=[State("listening", enter=effects), Final("away")], moves=rows)


def heard(simulation: Simulation) -> tuple[str, ...]:
    names: tuple[str, ...] = simulation.snapshot.data.names
    return names


# events


def test_an_event_is_answered_by_the_step_that_it_caused() -> None:
    simulation = Simulation(listening())
    step = simulation.send(Named("knock"))
    assert step.event == Named("knock")
    assert step is simulation.steps[-1]
    assert heard(simulation) == ("knock",)


def test_an_event_for_a_run_that_has_ended_changes_nothing() -> None:
    simulation = Simulation(listening(moves=(On("listening", "leave", to="away"),)))
    simulation.send(Named("leave"))
    ended = simulation.snapshot
    step = simulation.send(Named("knock"))
    assert (step.taken, step.snapshot, simulation.snapshot) == ((), ended, ended)
    assert not simulation.live
    assert simulation.active == ("away",)


def test_an_event_can_be_meant_for_one_state_alone() -> None:
    regions = [State(name, [State(f"{name}.idle"), State(f"{name}.busy")]) for name in ("left", "right")]
    moves = [On(f"{name}.idle", "go", to=f"{name}.busy") for name in ("left", "right")]
    simulation = Simulation(Machine("both", states=[Parallel("both", regions)], moves=moves))
    simulation.send(Named("go"), within="right")
    assert simulation.active == ("left.idle", "right.busy")


# time


def test_time_stands_still_until_it_is_moved() -> None:
    simulation = Simulation(listening(Send(Named("late"), 5)))
    simulation.send(Named("now"))
    assert (heard(simulation), simulation.now, simulation.due) == (("now",), 0, 5)
    simulation.advance(4.5)
    assert (heard(simulation), simulation.now) == (("now",), 4.5)
    simulation.advance(0.5)
    assert (heard(simulation), simulation.now, simulation.due) == (("now", "late"), 5, None)


def test_delayed_events_arrive_in_the_order_of_their_times_and_then_of_their_sending() -> None:
    sends = (Send(Named("c"), 3), Send(Named("a"), 1), Send(Named("b"), 2), Send(Named("a2"), 1))
    simulation = Simulation(listening(*sends))
    simulation.settle()
    assert heard(simulation) == ("a", "a2", "b", "c")
    assert simulation.now == 3


def test_an_event_sent_without_delay_waits_for_the_current_one() -> None:
    def tell(seen: Seen, event: Event) -> Move[Seen]:
        return Move(note(seen, event), effects=(Send(Named("third")), Send(Named("fourth"))), raises=(Named("second"),))

    simulation = Simulation(listening(moves=(On("listening", "first", do=tell, emits={Send: 2}),)))
    simulation.send(Named("first"))
    simulation.send(Named("fifth"))
    assert heard(simulation) == ("first", "second", "third", "fourth", "fifth")


def test_one_tick_delivers_one_delayed_event() -> None:
    simulation = Simulation(listening(Send(Named("a"), 1), Send(Named("b"), 1)))
    simulation.tick()
    assert heard(simulation) == ("a",)
    simulation.tick()
    simulation.tick()
    assert heard(simulation) == ("a", "b")


def test_a_cancelled_send_never_arrives() -> None:
    moves = (On("listening", "hush", do=CancelSend("alpha")),)
    simulation = Simulation(listening(Send(Named("a"), 1, "alpha"), Send(Named("b"), 1, "beta"), moves=moves))
    simulation.send(Named("hush"))
    simulation.settle()
    assert heard(simulation) == ("b",)


def test_cancelling_without_an_id_cancels_nothing() -> None:
    moves = (On("listening", "hush", do=CancelSend("")),)
    simulation = Simulation(listening(Send(Named("a"), 1), moves=moves))
    simulation.send(Named("hush"))
    simulation.settle()
    assert heard(simulation) == ("a",)


def sleeper(*effects: Effect) -> Machine:
    return Machine(
        "sleeper",
        data=Seen,
        states=[State("asleep", enter=effects), State("awake"), Final("up")],
        moves=[
            On("asleep", "rang", to="up"),
            On("asleep", "woke", to="awake"),
            On("asleep", "turned", to="asleep"),
            On("awake", "*", do=note),
        ],
    )


def test_an_alarm_rings_in_the_state_that_set_it() -> None:
    simulation = Simulation(sleeper(Alarm(Named("rang"), 8)))
    simulation.advance(8)
    assert simulation.active == ("up",)


def test_an_alarm_ends_with_its_state_while_a_send_does_not() -> None:
    simulation = Simulation(sleeper(Alarm(Named("rang"), 8), Send(Named("sent"), 9)))
    simulation.send(Named("woke"))
    simulation.settle()
    assert (heard(simulation), simulation.now) == (("sent",), 9)


def test_a_state_that_is_entered_again_sets_its_alarm_anew() -> None:
    simulation = Simulation(sleeper(Alarm(Named("rang"), 8)))
    simulation.advance(5)
    simulation.send(Named("turned"))
    simulation.advance(7)
    assert simulation.active == ("asleep",)
    simulation.advance(1)
    assert simulation.active == ("up",)


def test_nothing_is_due_after_the_end() -> None:
    simulation = Simulation(sleeper(Alarm(Named("rang"), 1), Send(Named("sent"), 9)))
    simulation.settle()
    assert (simulation.active, simulation.now, simulation.due) == (("up",), 1, None)


@pytest.mark.parametrize("delay", [0, 1])
def test_a_machine_that_never_comes_to_rest_is_reported(delay: float) -> None:
    moves = (On("listening", "tick", do=Send(Named("tick"), delay)),)
    simulation = Simulation(listening(Send(Named("tick"), 1), moves=moves))
    with pytest.raises(DefinitionError, match="listener does not come to rest"):
        simulation.settle()


def test_a_timer_that_renews_itself_without_end_is_reported_while_time_passes() -> None:
    moves = (On("listening", "tick", do=Send(Named("tick"), 0.001)),)
    simulation = Simulation(listening(Send(Named("tick"), 1), moves=moves))
    with pytest.raises(DefinitionError, match="listener does not come to rest"):
        simulation.advance(3600)


# effects


def polisher() -> Machine:
    return Machine(
        "polisher",
        states=[State("polishing", enter=Polish("brass")), State("idle"), Final("bright")],
        moves=[On("polishing", Polished, to="bright"), On("polishing", "stop", to="idle")],
    )


def test_what_perform_gives_reaches_the_state_that_wanted_it() -> None:
    asked: list[Effect] = []

    def perform(effect: Effect) -> Event:
        asked.append(effect)
        return Polished(7)

    simulation = Simulation(polisher(), perform=perform)
    assert simulation.active == ("bright",)
    assert asked == [Polish("brass")]
    assert simulation.open == []


def test_an_effect_that_nobody_performs_stays_open_until_it_is_answered() -> None:
    simulation = Simulation(polisher())
    [wanted] = simulation.open
    assert (wanted.effect, wanted.owner) == (Polish("brass"), "polishing")
    assert simulation.answer(wanted, Polished(3)).event == Polished(3)
    assert (simulation.active, simulation.open) == (("bright",), [])


def test_an_open_effect_ends_with_its_state() -> None:
    simulation = Simulation(polisher())
    [wanted] = simulation.open
    simulation.send(Named("stop"))
    assert simulation.open == []
    with pytest.raises(Refused, match="polish is not open; open are: none"):
        simulation.answer(wanted, Polished())


def test_at_the_end_only_effects_that_belong_to_no_state_are_carried_out() -> None:
    asked: list[Effect] = []
    states: list[Node] = [State("busy", exit=Polish("door")), Final("gone", enter=Polish("plate"))]
    machine = Machine("m", states=states, moves=[On("busy", "go", to="gone")])
    simulation = Simulation(machine, perform=asked.append)
    step = simulation.send(Named("go"))
    assert [wanted.owner for wanted in step.effects] == [None, "gone"]
    assert asked == [Polish("door")]


def test_all_effects_so_far_are_known_in_their_order() -> None:
    simulation = Simulation(listening(Send(Named("a"), 1), Polish("tin")))
    assert [wanted.effect for wanted in simulation.effects] == [Send(Named("a"), 1), Polish("tin")]


def test_an_effect_on_the_way_to_history_belongs_to_the_state_around_it() -> None:
    states = [State("house", [State("room"), History("last", "room")]), State("street")]
    moves = [
        On("street", "home", to="last", do=Polish("door")),
        On("room", Polished, to="street"),
        On("house", "out", to="street"),
    ]
    simulation = Simulation(Machine("m", states=states, moves=moves, start="street"))
    simulation.send(Named("home"))
    [wanted] = simulation.open
    assert wanted.owner == "house"
    assert simulation.answer(wanted, Polished()).snapshot.active == ("street",)
    simulation.send(Named("home"))
    simulation.send(Named("out"))
    assert simulation.open == []


def test_an_effect_of_a_row_that_counts_everywhere_belongs_to_no_state() -> None:
    moves = [On("here", "go", to="there"), On("there", Polished, to="here"), On(anywhere, "wipe", do=Polish("floor"))]
    simulation = Simulation(Machine("m", states=[State("here"), State("there")], moves=moves))
    simulation.send(Named("wipe"))
    simulation.send(Named("go"))
    [wanted] = simulation.open
    assert wanted.owner is None
    assert simulation.answer(wanted, Polished()).snapshot.active == ("here",)


def questioner() -> Machine:
    return Machine(
        "questioner",
        states=[State("waiting", enter=AskPerson("Well?", within=60)), Final("answered"), Final("silent")],
        moves=[On("waiting", Answered, to="answered"), On("waiting", Expired, to="silent")],
    )


def test_an_open_question_expires_at_its_deadline() -> None:
    simulation = Simulation(questioner())
    simulation.advance(60)
    assert (simulation.active, simulation.open) == (("silent",), [])


def test_an_answered_question_does_not_expire() -> None:
    simulation = Simulation(questioner())
    simulation.answer(simulation.open[0], Answered("yes"))
    simulation.settle()
    assert simulation.active == ("answered",)


# scripts


def calculator() -> Machine:
    def both(data: Any, event: Event, moment: Moment) -> Any:
        answers = [moment.evaluate(script, data) for script in ("double", "square")]
        return [answer.value for answer in answers if isinstance(answer, Value)]

    return Machine(
        "calculator",
        states=[State("ready"), Final("done")],
        moves=[On("ready", "go", to="done", do=Scripted(both, "both"))],
    )


def test_scripts_are_answered_in_the_order_in_which_they_are_met() -> None:
    asked: list[str] = []

    def evaluate(script: Any, scope: Any) -> Answer:
        asked.append(script)
        return Value(scope * 2 if script == "double" else scope**2)

    simulation = Simulation(calculator(), 5, evaluate=evaluate)
    step = simulation.send(Named("go"))
    assert simulation.snapshot.data == [10, 25]
    assert asked == ["double", "square"]
    assert step.answers == (Value(10), Value(25))


def test_a_script_without_an_engine_is_named() -> None:
    simulation = Simulation(calculator(), 5)
    with pytest.raises(DefinitionError, match=r"calculator needs a script engine for 'double'; give .* `evaluate`"):
        simulation.send(Named("go"))


# data


def test_data_are_read_from_plain_values() -> None:
    assert Simulation(listening(), {"names": ["a"]}).snapshot.data == Seen(("a",))
    assert Simulation(listening()).snapshot.data == Seen()
    assert Simulation(listening(), Seen(("b",))).snapshot.data == Seen(("b",))


def test_data_of_another_shape_are_refused() -> None:
    with pytest.raises(Refused, match="the data of listener: unknown field 'name'"):
        Simulation(listening(), {"name": "a"})


# children


def parent(*, child: str = "child") -> Machine:
    def keep(seen: Seen, event: Event) -> Seen:
        data = getattr(event, "data", "")
        return replace(seen, names=(*seen.names, f"{event.name} {data}".strip()))

    return Machine(
        "parent",
        data=Seen,
        states=[State("minding", enter=StartChild(child, {"names": ["born"]}, "kid")), State("alone"), Final("gone")],
        moves=[
            On("minding", "done.invoke.kid", to="alone", do=keep),
            On("minding", GaveUp, to="alone", do=lambda seen, event: replace(seen, names=(event.reason,))),
            On("minding", "leave", to="alone"),
            On("minding", "end", to="gone"),
            On("alone", "*", do=keep),
        ],
    )


def child(*, enter: tuple[Effect, ...] = (), exit: Callable[[Seen, Event], Seen] = note) -> Machine:
    def outcome(seen: Seen, event: Event) -> str:
        return "+".join(seen.names)

    return Machine(
        "child",
        data=Seen,
        states=[State("playing", enter=enter, exit=exit), Final("grown", result=outcome)],
        moves=[On("playing", "grow", to="grown")],
    )


def test_the_outcome_of_a_child_reaches_the_state_that_started_it() -> None:
    simulation = Simulation(parent(), machines={"child": child()})
    assert simulation.active == ("minding",)
    kid = simulation.children["kid"]
    assert (kid.active, kid.parent, kid.owner) == (("playing",), simulation, "minding")
    kid.send(Named("grow"))
    assert simulation.active == ("alone",)
    assert heard(simulation) == ("done.invoke.kid born+grow",)
    assert simulation.children == {}


def test_a_child_shares_the_clock_of_its_parent() -> None:
    simulation = Simulation(parent(), machines={"child": child(enter=(Send(Named("grow"), 7),))})
    simulation.advance(6)
    assert simulation.active == ("minding",)
    simulation.settle()
    assert (simulation.active, simulation.now) == (("alone",), 7)


def test_a_child_that_ends_at_once_is_heard_of() -> None:
    at_once = Machine("at once", data=Seen, states=[Final("grown")], moves=[])
    assert Simulation(parent(), machines={"child": at_once}).active == ("alone",)


def test_leaving_the_state_cancels_its_child_which_still_leaves_its_own_states() -> None:
    simulation = Simulation(parent(), machines={"child": child(enter=(Send(Named("grow"), 7),))})
    kid = simulation.children["kid"]
    simulation.send(Named("leave"))
    assert kid.snapshot.status == "cancelled"
    assert heard(kid) == ("born", Cancelled.name)
    simulation.settle()
    assert heard(simulation) == ()
    assert (simulation.now, simulation.children) == (0, {})


def test_the_end_of_a_run_cancels_its_children_and_theirs() -> None:
    middle = parent(child="grandchild")
    simulation = Simulation(parent(), machines={"child": middle, "grandchild": child()})
    kid = simulation.children["kid"]
    grandchild = kid.children["kid"]
    simulation.send(Named("end"))
    assert simulation.snapshot.status == "done"
    assert [child.snapshot.status for child in (kid, grandchild)] == ["cancelled", "cancelled"]


@pytest.mark.parametrize(
    ("machines", "reason"),
    [
        ({}, "child kid: no machine is called 'child'"),
        ({"child": Machine("x", data=int, states=[State("s")], moves=[])}, "child kid: the data of x: expected"),
        (
            {"child": Machine("x", data=Seen, states=[State("s")], moves=[On("s", always, do=note)])},
            "child kid: failed",
        ),
    ],
    ids=["an unknown machine", "data that do not fit", "a failing run"],
)
def test_a_child_that_does_not_succeed_is_an_error_of_its_state(machines: dict[str, Machine], reason: str) -> None:
    simulation = Simulation(parent(), machines=machines)
    assert simulation.active == ("alone",)
    assert heard(simulation)[0].startswith(reason)


def test_two_children_with_one_id_cannot_live_at_once() -> None:
    states = [State("minding", enter=(StartChild("child", {}, "kid"), StartChild("child", {}, "kid")))]
    moves = [On("minding", GaveUp, do=lambda seen, event: replace(seen, names=(event.reason,)))]
    simulation = Simulation(Machine("twins", data=Seen, states=states, moves=moves), machines={"child": child()})
    assert heard(simulation) == ("child kid: another child has this id and is still running",)
    assert list(simulation.children) == ["kid"]


# walks


def maze() -> Machine:
    rooms: list[Node] = [
        State("hall"),
        State("cellar", enter=Alarm(Named("chimed"), 3)),
        State("attic"),
        Final("garden"),
    ]
    moves = [
        On("hall", "down", to="cellar"),
        On("hall", "up", to="attic"),
        On("cellar", "chimed", to="hall"),
        On("attic", "down", to="hall"),
        On("attic", Polished, to="garden", when=lambda data, event: event.shine > 2),
    ]
    return Machine("maze", states=rooms, moves=moves)


def path(simulation: Simulation) -> list[tuple[str, ...]]:
    return [step.snapshot.active for step in simulation.steps]


def test_the_same_chance_walks_the_same_way() -> None:
    walks = [path(walk(maze(), chance=Random(4), steps=40)) for _ in range(2)]
    assert walks[0] == walks[1]
    assert path(walk(maze(), chance=Random(5), steps=40)) != walks[0]


def test_a_walk_goes_wherever_events_and_time_can_lead() -> None:
    rooms = {
        room for seed in range(10) for active in path(walk(maze(), chance=Random(seed), steps=40)) for room in active
    }
    assert rooms == {"hall", "cellar", "attic"}


def test_a_walk_can_be_told_how_to_make_an_event() -> None:
    def choose(simulation: Simulation, name: str) -> Event:
        return Polished(9) if name == Polished.name else Named(name)

    found = walk(maze(), chance=Random(1), steps=200, choose=choose)
    assert (found.active, found.snapshot.status) == (("garden",), "done")


class Weighed(Event):
    """Something was weighed: the event cannot be made without a number."""

    grams: int


def test_a_walk_passes_over_events_that_it_cannot_make() -> None:
    machine = Machine("scales", states=[State("empty"), State("full")], moves=[On("empty", Weighed, to="full")])
    assert walk(machine, chance=Random(1), steps=3).active == ("empty",)
    assert walk(machine, chance=Random(1), steps=3, choose=lambda *_: None).active == ("empty",)
    assert walk(machine, chance=Random(1), steps=3, choose=lambda *_: Weighed(5)).active == ("full",)


def test_a_walk_stops_where_nothing_is_possible() -> None:
    assert len(walk(Machine("dead end", states=[State("s")], moves=[]), chance=Random(1), steps=9).steps) == 1


def test_a_walk_can_go_on_from_any_simulation() -> None:
    simulation = Simulation(maze())
    simulation.send(Named("up"))
    assert wander(simulation, chance=Random(1), steps=3) is simulation
    assert len(simulation.steps) == 5


def test_a_walk_meets_wildcards_with_an_event_of_no_particular_name() -> None:
    assert heard(walk(listening(), chance=Random(1), steps=2)) == ("anything", "anything")
