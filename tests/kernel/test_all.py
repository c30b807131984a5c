"""`All(Replied)`: a row that is taken when every ask of its state has ended, in whichever way and order."""

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall import (
    All,
    AskAgent,
    DefinitionError,
    Final,
    GaveUp,
    Machine,
    Move,
    On,
    Replied,
    State,
    anywhere,
    emitting,
)
from moothall.analysis.verify import verify
from moothall.kernel.effects import Alarm
from moothall.kernel.events import Event
from moothall.kernel.simulate import Simulation


@dataclass(frozen=True)
class Panel:
    members: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    rounds: int = 0


class Late(Event):
    pass


@emitting(AskAgent, Alarm, most=4)
def ask_members(panel: Panel, _: Event) -> Move[Panel]:
    asks = tuple(AskAgent(name, "Well?", id=name) for name in panel.members)
    return Move(replace(panel, rounds=panel.rounds + 1), effects=(*asks, Alarm(Late(), 60)))


def keep(panel: Panel, event: Replied | GaveUp) -> Panel:
    return replace(panel, said=(*panel.said, event.id))


def is_short(panel: Panel, _: Event) -> bool:
    return panel.rounds < 2


PANEL = Machine(
    "panel",
    data=Panel,
    states=[State("asking", enter=ask_members), Final("settled"), Final("tired")],
    moves=[
        On("asking", Replied, do=keep, at_most=20),
        On("asking", GaveUp, do=keep, at_most=20),
        On("asking", All(Replied), to="settled"),
        On("asking", Late, to="tired"),
    ],
)
AGAIN = Machine(
    "again",
    data=Panel,
    states=PANEL.states,
    moves=[*PANEL.moves[:2], On("asking", All(Replied), to="asking", when=is_short, at_most=1), *PANEL.moves[2:]],
)


def asks_of(simulation: Simulation) -> list[Any]:
    return [wanted for wanted in simulation.open if isinstance(wanted.effect, AskAgent)]


def end(simulation: Simulation, name: str, *, well: bool = True) -> None:
    wanted = next(wanted for wanted in asks_of(simulation) if wanted.effect.id == name)
    simulation.answer(wanted, Replied(name, id=name) if well else GaveUp("no", id=name))


@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
def test_the_row_is_taken_when_the_last_ask_has_ended_in_any_order(order: tuple[str, ...]) -> None:
    simulation = Simulation(PANEL, Panel(("a", "b", "c")))
    for name in order:
        assert simulation.active == ("asking",)
        end(simulation, name)
    assert (simulation.active, simulation.snapshot.data.said) == (("settled",), order)


@given(st.lists(st.booleans(), min_size=1, max_size=4))
def test_an_ask_that_failed_has_ended_too(fates: list[bool]) -> None:
    members = tuple("abcd"[: len(fates)])
    simulation = Simulation(PANEL, Panel(members))
    for name, well in zip(members, fates, strict=True):
        end(simulation, name, well=well)
    assert simulation.active == ("settled",)


def test_a_state_that_asks_nobody_is_not_kept_waiting() -> None:
    assert Simulation(PANEL, Panel()).active == ("settled",)


def test_the_asks_of_an_earlier_visit_do_not_count() -> None:
    simulation = Simulation(AGAIN, Panel(("a", "b")))
    for name in "abab":
        end(simulation, name)
    assert (simulation.active, simulation.snapshot.data.said) == (("settled",), ("a", "b", "a", "b"))


def test_time_that_passes_ends_no_ask() -> None:
    simulation = Simulation(PANEL, Panel(("a", "b")))
    end(simulation, "a")
    simulation.advance(60)
    assert simulation.active == ("tired",)


def test_the_row_is_taken_also_where_no_row_takes_the_single_ends() -> None:
    machine = Machine("bare", data=Panel, states=PANEL.states[:2], moves=[On("asking", All(Replied), to="settled")])
    simulation = Simulation(machine, Panel(("a", "b")))
    end(simulation, "a")
    assert simulation.active == ("asking",)
    end(simulation, "b")
    assert simulation.active == ("settled",)


def test_the_checks_know_that_such_a_row_can_be_taken() -> None:
    assert [finding for finding in verify(PANEL) if finding.level == "error"] == []


def test_such_a_row_belongs_to_a_state() -> None:
    with pytest.raises(DefinitionError, match="All stands in a row of a state"):
        Machine("lost", states=[State("a"), Final("b")], moves=[On(anywhere, All(Replied), to="b")])
