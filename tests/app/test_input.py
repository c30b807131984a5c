"""A run's first data: a value, JSON, or a text for the first field."""

from dataclasses import dataclass
from typing import Any

import pytest

from moothall.app.kinds.kind import kind_of
from moothall.errors import DefinitionError, Refused
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final


def first_data(machine: Machine, given: Any) -> Any:
    return kind_of(machine).data(machine, given)


@dataclass(frozen=True)
class Article:
    topic: str
    words: int = 100
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Count:
    number: int


def taking(kind: type | None) -> Machine:
    return Machine("taking", data=kind, states=[Final("over")], moves=[])


@pytest.mark.parametrize(
    ("given", "data"),
    [
        (Article("tides", 3), Article("tides", 3)),
        ("tides", Article("tides")),
        ("", Article("")),
        ({"topic": "tides", "tags": ["sea"]}, Article("tides", tags=("sea",))),
    ],
    ids=repr,
)
def test_a_dataclass_comes_from_a_value_from_a_text_or_from_json(given: Any, data: Article) -> None:
    assert first_data(taking(Article), given) == data


@pytest.mark.parametrize(
    ("kind", "given", "data"),
    [
        (None, None, None),
        (None, "x", "x"),
        (None, {"a": (1, 2)}, {"a": [1, 2]}),
        (dict, None, {}),
        (str, "x", "x"),
        (int, 3, 3),
    ],
)
def test_machines_without_a_dataclass_take_plain_json(kind: type | None, given: Any, data: Any) -> None:
    assert first_data(taking(kind), given) == data


@pytest.mark.parametrize(
    ("kind", "given", "complaint"),
    [
        (Article, None, "input: the field 'topic' is missing"),
        (Article, {}, "input: the field 'topic' is missing"),
        (Article, {"topic": 3}, "input.topic: expected a text, got 3"),
        (Article, {"topic": "x", "tag": 1}, "input: unknown field 'tag'; known are topic, words, tags"),
        (Article, {"topic": "x", "words": "many"}, "input.words: expected a whole number, got 'many'"),
        (Article, ["tides"], "input: expected an object with the fields of Article, got ['tides']"),
        (Article, Count(3), "input: expected an object with the fields of Article, got Count(number=3)"),
        (Count, "3", "input.number: expected a whole number, got '3'"),
        (int, "3", "taking takes a int, not a text"),
    ],
)
def test_input_that_does_not_fit_is_refused_with_the_place(kind: type, given: Any, complaint: str) -> None:
    with pytest.raises(Refused) as refusal:
        first_data(taking(kind), given)
    assert str(refusal.value) == complaint


def test_input_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(DefinitionError, match="a object cannot be stored"):
        first_data(taking(None), object())
