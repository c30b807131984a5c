"""`rehearsal` invents replies of the right shape, and the same ones for the same call."""

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.ports import Request
from moothall.kernel.codec import decode, schema
from moothall.models.rehearsal import RehearsalModel, invent


class Mood(Enum):
    GLAD = "glad"
    GRIM = 3


@dataclass(frozen=True)
class Point:
    text: str
    weight: float


@dataclass(frozen=True)
class Verdict:
    good: bool
    mood: Mood
    kind: Literal["a", "b"]
    score: int
    points: tuple[Point, ...]
    pair: tuple[int, str]
    maybe: Point | None = None
    table: dict[str, int] = field(default_factory=dict)


SHAPES: list[Any] = [
    str,
    int,
    float,
    bool,
    Mood,
    Literal[1, "x"],
    list[int],
    tuple[int, str],
    Point,
    Verdict,
    int | None,
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers())
def test_what_is_invented_fits_the_shape_that_was_asked_for(shape: Any, seed: int) -> None:
    value = invent(schema(shape), random.Random(seed), "critic")
    decode(shape, value)


@given(st.integers(-5, 5), st.integers(0, 9))
def test_an_invented_number_keeps_to_its_limits(low: int, span: int) -> None:
    limits = {"type": "integer", "minimum": low, "maximum": low + span}
    assert low <= invent(limits, random.Random(1), "") <= low + span


@pytest.mark.anyio
async def test_the_same_call_always_gets_the_same_reply() -> None:
    request = Request("critic", "Judge", "run.1.0", 1, schema(Verdict))
    assert await RehearsalModel().reply(request) == await RehearsalModel().reply(request)


@pytest.mark.anyio
async def test_different_calls_do_not_all_get_the_same_reply() -> None:
    requests = [Request("critic", "Judge", f"run.{number}.0", number, schema(bool)) for number in range(20)]
    replies = [await RehearsalModel().reply(request) for request in requests]
    assert {reply.value for reply in replies} == {True, False}


@pytest.mark.anyio
async def test_a_text_says_plainly_that_it_is_a_rehearsal() -> None:
    reply = await RehearsalModel().reply(Request("writer", "Write about tides", "run.0.0"))
    assert reply.text == "[rehearsal] writer, reply 1, to: Write about tides"
    assert reply.usage["tokens"] > 0
