"""`performers=`: an effect of the author's own is performed by a function of the author's own."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moothall import (
    Answered,
    DefinitionError,
    Effect,
    EffectFailed,
    Event,
    Final,
    GaveUp,
    Machine,
    On,
    Outcome,
    State,
    answer,
    emitting,
    question,
    resume,
    run,
)


class Measured(Event):
    value: float = 0


class Measure(Effect):
    kind = "measure"
    outcomes = (Measured,)
    place: str
    id: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Trip:
    place: str
    depth: float = 0
    lost: str = ""


@emitting(Measure)
def measure(trip: Trip, _: Event) -> Measure:
    return Measure(trip.place, id="first")


TRIP = Machine(
    "trip",
    data=Trip,
    states=[State("asking", enter=question("Go?")), State("measuring", enter=measure), Final("home")],
    moves=[
        On("asking", Answered, to="measuring"),
        On("measuring", Measured, to="home", do=lambda trip, event: replace(trip, depth=event.value)),
        On("measuring", GaveUp, to="home", do=lambda trip, event: replace(trip, lost=event.id)),
    ],
)


async def sound(effect: Measure) -> float:
    return len(effect.place) * 1.5


async def sound_with_key(effect: Measure, context: Any) -> Event:
    assert context.key.endswith(".1.0")
    return Measured(7)


async def broken(effect: Measure) -> Event:
    raise EffectFailed("the line is cut", final=True)


def gone(performer: Any) -> Outcome:
    outcome = run(TRIP, Trip("bay"), performers={Measure: performer})
    return answer(outcome.run, True, TRIP, performers={Measure: performer})


@pytest.mark.parametrize(("performer", "depth"), [(sound, 4.5), (sound_with_key, 7)])
def test_an_effect_of_ones_own_ends_in_what_its_function_gives(performer: Any, depth: float) -> None:
    outcome = gone(performer)
    assert (outcome.status, outcome.data.depth) == ("done", depth), outcome.reason


def test_an_effect_of_ones_own_that_fails_is_given_up_with_its_id() -> None:
    outcome = gone(broken)
    assert (outcome.status, outcome.data.lost) == ("done", "first")


def test_a_run_whose_effects_nobody_performs_does_not_begin_nor_go_on() -> None:
    with pytest.raises(DefinitionError, match=r"there is no performer of 'measure': pass performers=\{Measure: …\}"):
        run(TRIP, Trip("bay"))
    outcome = run(TRIP, Trip("bay"), performers={Measure: sound})
    with pytest.raises(DefinitionError, match="there is no performer of 'measure'"):
        resume(outcome.run, TRIP)


@pytest.mark.parametrize("given", [{"measure": sound}, {Effect: sound}, [sound]], ids=str)
def test_what_performs_no_effect_is_refused(given: Any) -> None:
    with pytest.raises(DefinitionError, match="performers"):
        run(TRIP, Trip("bay"), performers={Measure: sound, **given} if isinstance(given, dict) else given)
