"""What a program does with an outcome: take the result, or hear why there is none."""

from dataclasses import dataclass

import pytest

import moothall
from moothall import (
    Answered,
    Budget,
    DefinitionError,
    EffectFailed,
    Final,
    GaveUp,
    Machine,
    On,
    Outcome,
    Refused,
    Replied,
    State,
    ask,
    question,
    run,
)
from moothall.testing import Trial


@dataclass(frozen=True)
class Parcel:
    to: str
    limit: int = 1


async def carry(prompt: str) -> str:
    if "nowhere" in prompt:
        raise EffectFailed("the road is closed", final=True)
    return "carried"


POST = Machine(
    "post",
    data=Parcel,
    result=lambda parcel: parcel.to.upper(),
    states=[
        State("asking", enter=question("Send it to {to}?")),
        State("going", enter=ask(carry, "{to}")),
        Final("there"),
    ],
    moves=[
        On("asking", Answered, to="going", when=lambda parcel, answer: parcel.limit // parcel.limit == 1),
        On("going", Replied, to="there"),
    ],
)


def posted(to: str, limit: int = 1) -> Outcome[str]:
    trial = Trial(POST)
    trial.run(Parcel(to, limit))
    return trial.answer(True)


def test_the_outcome_of_a_run_that_is_done_unwraps_to_its_result() -> None:
    assert posted("Ada").unwrap() == "ADA"


def test_to_unwrap_what_waits_is_refused_and_names_the_question() -> None:
    outcome = run(POST, Parcel("Ada"))
    with pytest.raises(Refused, match=rf"run {outcome.run} of post waits in asking for an answer to: Send it to Ada\?"):
        outcome.unwrap()


def test_to_unwrap_what_failed_raises_its_reason_and_blames_who_has_to_act() -> None:
    with pytest.raises(EffectFailed, match=r"of post failed: .*the road is closed"):
        posted("nowhere").unwrap()
    with pytest.raises(DefinitionError, match=r"of post failed: .*ZeroDivisionError"):
        posted("Ada", limit=0).unwrap()
    assert (posted("nowhere").fault, posted("Ada", limit=0).fault) == ("world", "definition")


RETURNED = Machine(
    "returned",
    data=Parcel,
    result=lambda parcel: parcel.to.upper(),
    states=[
        State("asking", enter=question("Is {to} at home?")),
        State("going", enter=ask(carry, "{to}")),
        Final("back", ends="failed"),
        Final("there"),
    ],
    moves=[
        On("asking", Answered, to="back", when=lambda parcel, answer: not answer.value),
        On("asking", Answered, to="going"),
        On("going", Replied, to="there"),
        On("going", GaveUp, to="back"),
    ],
)


def test_to_unwrap_what_came_to_a_bad_end_blames_nobody_but_the_world_where_that_led_there() -> None:
    trial = Trial(RETURNED)
    trial.run(Parcel("Ada"))
    outcome = trial.answer(False)
    assert (outcome.status, outcome.fault, outcome.result) == ("failed", "", "ADA")
    with pytest.raises(
        Refused, match=r"of returned failed: it ended in back; what it gave all the same is in `result`"
    ):
        outcome.unwrap()
    trial = Trial(RETURNED)
    trial.run(Parcel("nowhere"))
    with pytest.raises(EffectFailed, match="of returned failed: carry: EffectFailed: the road is closed"):
        trial.answer(True).unwrap()


def test_to_unwrap_what_ended_at_a_limit_says_which() -> None:
    trial = Trial(POST)
    trial.run(Parcel("Ada"), budget=Budget(calls=0))
    with pytest.raises(Refused, match=r"has no result, it is limited: .*calls"):
        trial.answer(True).unwrap()


def test_an_outcome_of_a_type_is_the_same_value() -> None:
    first = run(POST, Parcel("Ada"))
    assert Outcome[str](**first.__dict__) == first


def test_the_public_names_are_listed() -> None:
    assert {"Machine", "On", "run", "__version__"} <= set(dir(moothall))
    assert "TYPE_CHECKING" not in dir(moothall)
