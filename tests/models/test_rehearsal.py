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
from moothall.kernel.schema import misfits
from moothall.machines.arena.replies import ClassificationReply, OpinionReply, PlanReply
from moothall.machines.pipeline import Verdict as JudgeVerdict
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


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas as configurations write them: nested, with bounds."""
    low, span = st.integers(-50, 50), st.integers(0, 20)
    numbers = st.builds(
        lambda kind, least, more, ends: {
            "type": kind,
            **{name: least + (more if name == "maximum" else 0) for name in ends},
        },
        st.sampled_from(["integer", "number"]),
        low,
        span,
        st.sets(st.sampled_from(["minimum", "maximum"])),
    )
    open_ends = st.builds(lambda least: {"type": "number", "exclusiveMinimum": least}, low)
    texts = st.builds(lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more}, span, span)
    plain = st.one_of(
        numbers,
        open_ends,
        texts,
        st.just({"type": "boolean"}),
        st.just({"type": ["string", "null"]}),
        st.lists(st.text(max_size=3), min_size=1).map(lambda choices: {"enum": choices}),
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.builds(
                lambda part, least, more: {"type": "array", "items": part, "minItems": least, "maxItems": least + more},
                inner,
                st.integers(0, 5),
                st.integers(0, 3),
            ),
            st.dictionaries(st.sampled_from("abc"), inner).map(
                lambda parts: {"type": "object", "properties": parts, "required": list(parts)}
            ),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        ),
        max_leaves=6,
    )


@given(schemas(), st.integers())
def test_what_is_invented_fits_a_schema_that_was_made_at_run_time(wanted: dict[str, Any], seed: int) -> None:
    assert misfits(wanted, invent(wanted, random.Random(seed), "critic")) == ()


@pytest.mark.anyio
async def test_a_role_says_what_is_likely() -> None:
    hints = {"good": {"true": 1, "false": 0}, "kind": ["b", "c"], "text": ["Too long."]}
    for number in range(20):
        request = Request("critic", "Judge", f"run.{number}.0", 1, schema(Verdict), hints=hints)
        value = (await RehearsalModel().reply(request)).value
        assert (value["good"], value["kind"]) == (True, "b")
        assert {point["text"] for point in value["points"]} == {"Too long."}


PATTERNS = [
    r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$",
    r"^\d{4}-\d\d$",
    "[^a-z]+",
    "^(yes|no)$",
    r"^[\w-]{3,8}@\S+\.org$",
    ".*x",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seed=st.integers())
def test_an_invented_text_matches_its_pattern(pattern: str, seed: int) -> None:
    wanted = {"type": "string", "pattern": pattern}
    assert misfits(wanted, invent(wanted, random.Random(seed), "critic")) == ()


@given(
    st.sampled_from([{"type": "string"}, {"enum": ["a", "b", "c", "d"]}, {"type": "boolean"}, {"type": "integer"}]),
    st.integers(1, 2),
    st.integers(),
)
def test_a_list_that_may_have_nothing_twice_has_as_many_entries_as_it_must(
    items: dict[str, Any], least: int, seed: int
) -> None:
    wanted = {"type": "array", "items": items, "minItems": least, "uniqueItems": True}
    assert misfits(wanted, invent(wanted, random.Random(seed), "critic")) == ()


@given(st.integers())
def test_a_field_that_is_required_and_not_described_is_given_all_the_same(seed: int) -> None:
    wanted = {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}}
    assert misfits(wanted, invent(wanted, random.Random(seed), "critic")) == ()


@pytest.mark.parametrize("shape", [OpinionReply, ClassificationReply, JudgeVerdict], ids=str)
@given(seed=st.integers())
def test_the_schema_of_a_shipped_reply_says_all_that_its_class_checks(shape: Any, seed: int) -> None:
    decode(shape, invent(schema(shape), random.Random(seed), "critic"))


@given(st.integers())
def test_the_tasks_of_an_invented_plan_have_ids_of_their_own(seed: int) -> None:
    ids = [task["id"] for task in invent(schema(PlanReply), random.Random(seed), "planner")["tasks"]]
    assert len(set(ids)) == len(ids) > 0
