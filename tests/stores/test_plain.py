"""A shape becomes the same JSON whichever way it is written, and what is no JSON is never let through."""

import datetime
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.stores.plain import LONG, pack, pack_pair, unpack


class Mood(Enum):
    """An enumeration inside data."""

    GLAD = "glad"
    NONE = None


class Pair(NamedTuple):
    """A tuple that is more than a tuple."""

    one: int
    other: int


@dataclass(frozen=True)
class Note:
    """Data with all that a dataclass may hold."""

    text: str
    more: Any = None
    _hidden: int = 1
    length: int = field(init=False, default=0)


@dataclass(frozen=True, slots=True)
class Book:
    """Data inside data."""

    notes: tuple[Note, ...] = ()
    mood: Mood = Mood.GLAD
    tags: frozenset[str] = frozenset()
    best: Note | None = None


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["null", '{"a": null}', "\x00", "a\x00b", "\\u0000", "-", str(uuid.UUID(int=7)), "x" * (LONG + 1)]
)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
notes = st.builds(Note, texts, plain)
books = st.builds(
    Book,
    st.lists(notes, max_size=2).map(tuple),
    st.sampled_from(Mood),
    st.frozensets(texts, max_size=2),
    st.none() | notes,
)
values: st.SearchStrategy[Any] = (
    plain | notes | books | st.lists(books, max_size=2).map(tuple) | st.builds(OrderedDict, st.just({"a": 1}))
)


def read_back(body: bytes, kept: dict[str, bytes]) -> Any:
    by_digest = {digest: text for text, digest in kept.items()}
    return unpack(body, by_digest.__getitem__)


@given(values)
def test_any_value_reads_back_as_its_plain_json(value: Any) -> None:
    kept: dict[str, bytes] = {}
    assert read_back(pack({"value": value}, kept), kept) == {"value": encode(value)}


@given(values, values)
def test_what_was_packed_before_is_taken_over_as_it_is(value: Any, other: Any) -> None:
    kept: dict[str, bytes] = {}
    part = pack({"value": value}, kept)
    parts = [orjson.Fragment(part)]
    for whole in pack_pair({"parts": parts, "other": other}, {"other": other, "parts": parts}, kept, len(part)):
        assert read_back(whole, kept) == {"parts": [{"value": encode(value)}], "other": encode(other)}


@given(values, values)
def test_two_that_are_packed_in_one_go_are_what_each_alone_would_be(one: Any, other: Any) -> None:
    kept: dict[str, bytes] = {}
    alone: dict[str, bytes] = {}
    pair = pack_pair({"value": one}, {"value": other}, kept)
    assert [read_back(body, kept) for body in pair] == [{"value": encode(one)}, {"value": encode(other)}]
    pack({"value": one}, alone), pack({"value": other}, alone)
    assert kept == alone


NO_JSON = [
    float("nan"),
    float("-inf"),
    b"bytes",
    object(),
    Pair(1, 2),
    {1: "a"},
    2**64,
    "\ud800",
]


TEXTS = [(uuid.UUID(int=7), str(uuid.UUID(int=7))), (datetime.date(2026, 1, 1), "2026-01-01")]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=repr)
def test_what_people_use_besides_is_kept_as_a_text(value: Any, text: str) -> None:
    assert read_back(pack({"value": [value, {"deep": value}]}, {}), {}) == {"value": [text, {"deep": text}]}


@pytest.mark.parametrize("wrong", NO_JSON, ids=repr)
@pytest.mark.parametrize(
    "around",
    [
        lambda wrong: wrong,
        lambda wrong: [None, wrong],
        lambda wrong: {"deep": (1, {"down": wrong})},
        lambda wrong: Note("null ", wrong),
        lambda wrong: Book(best=Note("x", [wrong, None])),
    ],
    ids=["bare", "list", "dict", "field", "deep"],
)
def test_what_is_no_json_is_the_author_s_mistake_wherever_it_is(around: Any, wrong: Any) -> None:
    with pytest.raises(DefinitionError):
        pack({"value": around(wrong)}, {})
    for pair in ((around(wrong), None), (None, around(wrong))):
        with pytest.raises(DefinitionError):
            pack_pair({"value": pair[0]}, {"value": pair[1]}, {})
    for event, snapshot in (({"value": around(wrong)}, {"data": None}), ({"value": None}, {"data": around(wrong)})):
        with pytest.raises(DefinitionError):
            pack_pair({"event": event}, {"snapshot": snapshot}, {})


@given(values, values)
def test_a_run_without_data_is_kept_like_any_other(value: Any, data: Any) -> None:
    kept: dict[str, bytes] = {}
    for event, inside in (({"value": None, "other": value}, data), ({"value": value}, None)):
        pair = pack_pair({"event": event}, {"snapshot": {"data": inside}}, kept)
        read = [read_back(body, kept) for body in pair]
        assert read == [{"event": encode(event)}, {"snapshot": {"data": encode(inside)}}]


@pytest.mark.parametrize("text", ["y", 'say "y" ', "\\", '\\"', "ä", "\n"], ids=ascii)
def test_only_what_is_long_is_kept_apart(text: str) -> None:
    kept: dict[str, bytes] = {}
    pack({"value": [text * (LONG // len(text)), Note(text * LONG + "!")]}, kept)
    assert list(kept) == [text * LONG + "!"]


def test_much_that_is_short_stays_where_it_is() -> None:
    kept: dict[str, bytes] = {}
    pack({"value": {f"key {number}": "x" * 100 for number in range(100)}}, kept)
    assert kept == {}
