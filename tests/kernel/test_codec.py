"""Values to JSON and back: what is inverse, what is refused and where, and how a type is described."""

from __future__ import annotations

import json
import types
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, TypeVar, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode, schema
from moothall.kernel.events import GaveUp, Named
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Snapshot, Tail

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    GREEN = 2
    NONE = None


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


@dataclass(frozen=True)
class Line:
    begin: Point
    end: Point | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tree:
    name: str
    inside: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Sum:
    """A dataclass that works out a part of itself."""

    parts: tuple[int, ...]
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.parts))


@dataclass(frozen=True)
class Score:
    """A dataclass that objects to some values."""

    points: int

    def __post_init__(self) -> None:
        if self.points > 10:
            raise ValueError("at most 10 points")


@dataclass(frozen=True)
class Lost:
    """A dataclass whose field has a type that nobody defined."""

    part: Nowhere  # type: ignore[name-defined]  # noqa: F821


INVERSE: list[tuple[Any, Any]] = [
    (str, "ü€\ud800"),
    (int, -(10**30)),
    (float, 1.5),
    (float, 7),
    (bool, True),
    (type(None), None),
    (Any, {"a": [1, None]}),
    (object, [1]),
    (T, "anything"),
    (list[int], [1, 2]),
    (list, [1, "a", None]),
    (tuple[int, ...], (1, 2, 3)),
    (tuple[int, str], (1, "a")),
    (tuple[()], ()),
    (tuple, (1, "a")),
    (Sequence[int], (1, 2)),
    (frozenset[str], frozenset({"b", "a"})),
    (set[int], {3, 1}),
    (dict[str, int], {"a": 1}),
    (dict, {"a": [1]}),
    (Mapping[str, list[int]], {"a": [1]}),
    (dict[Literal["a", "b"], int], {"b": 1}),
    (OrderedDict[str, int], {"a": 1}),
    (int | None, None),
    (int | None, 3),
    (int | str, "3"),
    (Union[Point, str], Point(1)),  # noqa: UP007
    (Literal["a", 1, True], 1),
    (Literal["a", 1, True], True),
    (Colour, Colour.RED),
    (Colour, Colour.GREEN),
    (Colour, Colour.NONE),
    (Size, Size.LARGE),
    (Level, Level.HIGH),
    (Point, Point(1, 2.5)),
    (Line, Line(Point(1), Point(2), ("a", "b"))),
    (Tree, Tree("a", (Tree("b"), Tree("c", (Tree("d"),))))),
    (Empty, Empty()),
    (Sum, Sum((1, 2))),
    (Score, Score(10)),
    (GaveUp, GaveUp("late", usage={"usd": 0.5})),
    (Named, Named("x", {"a": 1})),
    (Snapshot, Snapshot(("a",), {"n": 1}, counts={"a/0": 1}, history={"h": ("a",)}, threads={"t": Tail(1, "x")})),
]


@pytest.mark.parametrize(("kind", "value"), INVERSE, ids=lambda argument: str(argument)[:40])
def test_decoding_gives_back_what_was_encoded(kind: Any, value: Any) -> None:
    plain = encode(value)
    found = decode(kind, json.loads(json.dumps(plain)))
    assert (found, type(found)) == (value, type(value))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@dataclass
class Scaled:
    """Takes something besides its fields, which stands between them."""

    base: int
    times: InitVar[int] = 3
    name: str = "plain"

    def __post_init__(self, times: int) -> None:
        self.product = self.base * times


@dataclass
class Particular:
    """Takes its fields in its own way."""

    base: int
    name: str = "plain"

    def __init__(self, *, name: str = "own", base: int) -> None:
        self.name, self.base = name, base


def test_a_class_is_made_as_it_wants_to_be_made() -> None:
    scaled = decode(Scaled, {"base": 2, "name": "thrice"})
    assert (scaled, scaled.product) == (Scaled(2, name="thrice"), 6)
    assert decode(Particular, {"base": 2}) == Particular(base=2)
    assert decode(Particular, {"base": 2}).name == "own"
    with pytest.raises(Refused, match=r"^Particular\.name: expected a text, got 3$"):
        decode(Particular, {"base": 2, "name": 3})


@settings(max_examples=60, deadline=None)
@given(json_values)
def test_plain_json_stays_as_it_is(value: Any) -> None:
    assert encode(value) == value
    assert decode(Any, encode(value)) == value


points = st.builds(Point, st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=60, deadline=None)
@given(st.builds(Line, points, st.none() | points, st.lists(st.text()).map(tuple)))
def test_any_dataclass_comes_back(line: Line) -> None:
    assert decode(Line, encode(line)) == line


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({1, 3, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
        (Size.SMALL, "small"),
        (type("Text", (str,), {})("x"), "x"),
        (type("Number", (int,), {})(4), 4),
        (type("Ratio", (float,), {})(0.5), 0.5),
        (Sum((1, 2)), {"parts": [1, 2]}),
    ],
)
def test_rarer_values_become_plain_json_of_the_plain_types(value: Any, plain: Any) -> None:
    assert encode(value) == plain
    assert type(encode(value)) is type(plain)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "a object cannot be stored"),
        (b"bytes", "a bytes cannot be stored"),
        ({1: "a"}, "the key 1 cannot be stored"),
        ({(1, 2): 1}, "cannot be stored: JSON objects have strings as keys"),
        (types.MappingProxyType({None: 1}), "the key None cannot be stored"),
        (float("nan"), "nan has no place in JSON"),
        ([float("inf")], "inf has no place in JSON"),
        (Point(1, float("-inf")), "-inf has no place in JSON"),
    ],
    ids=str,
)
def test_what_has_no_place_in_json_is_the_authors_mistake(value: Any, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        encode(value)


@pytest.mark.parametrize(
    ("kind", "plain", "refusal"),
    [
        (str, 1, "v: expected a text, got 1"),
        (int, True, "v: expected a whole number, got True"),
        (int, 1.0, "v: expected a whole number, got 1.0"),
        (bool, 1, "v: expected true or false, got 1"),
        (type(None), 0, "v: expected null, got 0"),
        (float, "1", "v: expected a number, got '1'"),
        (float, True, "v: expected a number, got True"),
        (float, float("nan"), "v: expected a number, got nan"),
        (list[int], (1,), "v: expected a list, got (1,)"),
        (list[int], [1, "x"], "v[1]: expected a whole number, got 'x'"),
        (tuple[int, str], [1], "v: expected a list of 2, got [1]"),
        (tuple[int, str], [1, 2], "v[1]: expected a text, got 2"),
        (tuple[()], [1], "v: expected a list of 0, got [1]"),
        (frozenset, [[1]], "v: unhashable type: 'list'"),
        (dict[str, int], [], "v: expected an object, got []"),
        (dict[str, int], {"a": {"b": 1}}, "v.a: expected a whole number, got {'b': 1}"),
        (dict[int, str], {"1": "a"}, "v, key: expected a whole number, got '1'"),
        (int | None, "x", "v: expected int or NoneType, got 'x'"),
        (int | list[int], ["x"], "v[0]: expected a whole number, got 'x'"),
        (Literal["a", 1], True, "v: expected one of 'a', 1, got True"),
        (Colour, "blue", "v: expected one of 'red', 2, None, got 'blue'"),
        (Level, True, "v: expected one of 1, 2, got True"),
        (Point, [], "v: expected an object with the fields of Point, got []"),
        (Point, {}, "v: the field 'x' is missing"),
        (Point, {"x": 1, "z": 2}, "v: unknown field 'z'; known are x, y"),
        (Empty, {"z": 2}, "v: unknown field 'z'; known are none"),
        (Sum, {"parts": [1], "total": 1}, "v: unknown field 'total'; known are parts"),
        (Line, {"begin": {"x": "1"}}, "v.begin.x: expected a whole number, got '1'"),
        (Line, {"begin": {"x": 1}, "end": {"x": None}}, "v.end.x: expected a whole number, got None"),
        (Line, {"begin": {"x": 1}, "tags": ["a", 2]}, "v.tags[1]: expected a text, got 2"),
        (Tree, {"name": "a", "inside": [{"name": 1}]}, "v.inside[0].name: expected a text, got 1"),
        (Score, {"points": 11}, "v: at most 10 points"),
        (str, ["x" * 99], "v: expected a text, got ['" + "x" * 55 + "..."),
    ],
    ids=str,
)
def test_a_refusal_names_the_place_and_what_was_expected(kind: Any, plain: Any, refusal: str) -> None:
    with pytest.raises(Refused) as caught:
        decode(kind, plain, "v")
    assert str(caught.value) == refusal


def test_a_refusal_deep_inside_takes_no_longer_to_find_than_the_way_there() -> None:
    plain: dict[str, Any] = {"name": 0}
    for _ in range(60):
        plain = {"name": "around", "inside": [plain]}
    with pytest.raises(Refused, match=r"^t(\.inside\[0\]){60}\.name: expected a text, got 0$"):
        decode(Tree, plain, "t")


def test_of_several_fields_that_do_not_fit_the_one_that_stands_first_is_named() -> None:
    with pytest.raises(Refused, match=r"^line\.tags: "):
        decode(Line, {"tags": 1, "begin": 2}, "line")


def test_a_place_without_a_name_is_called_like_its_type() -> None:
    with pytest.raises(Refused, match=r"^Point\.x: expected a whole number"):
        decode(Point, {"x": None})


@pytest.mark.parametrize("kind", [bytes, complex, list[bytes], type[int]], ids=str)
def test_a_type_that_cannot_be_stored_is_the_authors_mistake(kind: Any) -> None:
    with pytest.raises(DefinitionError, match="cannot be stored; use dataclasses, lists"):
        decode(kind, [])


def test_a_field_of_an_unknown_type_is_the_authors_mistake() -> None:
    with pytest.raises(DefinitionError, match="Lost: the type 'Nowhere' of a field cannot be found"):
        decode(Lost, {"part": 1})


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (type(None), {"type": "null"}),
        (Any, {}),
        (object, {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", 2, None]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Empty, {"type": "object", "title": "Empty", "properties": {}, "additionalProperties": False}),
        (
            Point,
            {
                "type": "object",
                "title": "Point",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
                "additionalProperties": False,
                "required": ["x"],
            },
        ),
        (
            Tree,
            {
                "type": "object",
                "title": "Tree",
                "properties": {
                    "name": {"type": "string"},
                    "inside": {"type": "array", "items": {"type": "object", "title": "Tree"}},
                },
                "additionalProperties": False,
                "required": ["name"],
            },
        ),
    ],
    ids=str,
)
def test_a_type_is_described_as_json_schema(kind: Any, described: dict[str, Any]) -> None:
    assert schema(kind) == described


def test_a_description_is_a_new_value_each_time() -> None:
    schema(str)["type"] = "changed"
    assert schema(str) == {"type": "string"}


class Graded(Frozen):
    """A value with what its class checks beyond its types."""

    grade: Annotated[float, {"minimum": 1, "maximum": 6}]
    names: Annotated[tuple[str, ...], {"maxItems": 2}] = ()


def test_a_schema_says_what_a_field_is_annotated_with_and_decoding_looks_at_the_type_alone() -> None:
    fields = schema(Graded)["properties"]
    assert fields["grade"] == {"type": "number", "minimum": 1, "maximum": 6}
    assert fields["names"] == {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    assert decode(Graded, {"grade": 2.5, "names": ["a"]}) == Graded(2.5, ("a",))
