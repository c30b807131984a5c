"""Values and events: equal by their parts, never changed, and named so that a prefix is a superclass."""

from __future__ import annotations

import copy
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from moothall.errors import DefinitionError
from moothall.kernel.events import (
    Answered,
    Done,
    Event,
    ExecutionFailed,
    Exhausted,
    Named,
    Started,
    matches,
    normalised,
)
from moothall.kernel.frozen import Frozen, maker, slotted


class Pair(Frozen):
    one: int
    two: str = "b"
    _: KW_ONLY
    three: list[int] = field(default_factory=list)
    kind: ClassVar[str] = "pair"


class Same(Frozen):
    one: int
    two: str = "b"
    _: KW_ONLY
    three: list[int] = field(default_factory=list)


class Key(Frozen):
    name: str
    number: int = 0


class Positive(Frozen):
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("not positive")


# values


def test_values_are_equal_where_class_and_parts_are() -> None:
    assert Pair(1) == Pair(1, "b", three=[])
    assert Pair(1) != Pair(2)
    assert Pair(1) != Same(1)
    assert (Pair(1) == "Pair(1)") is False
    assert len({Key("a"), Key("a", 0), Key("a", 1)}) == 2


def test_a_value_cannot_be_changed() -> None:
    pair = Pair(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'one'"):
        pair.one = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'one'"):
        del pair.one
    with pytest.raises(FrozenInstanceError):
        pair.four = 4
    assert pair == Pair(1)


def test_a_value_is_a_dataclass_to_everyone_who_asks() -> None:
    assert [item.name for item in fields(Pair)] == ["one", "two", "three"]
    assert replace(Pair(1), two="c") == Pair(1, "c")
    match Pair(1, "z"):
        case Pair(one, two):
            assert (one, two) == (1, "z")
    assert repr(Pair(1)) == "Pair(one=1, two='b', three=[])"
    assert is_dataclass(Pair)


def test_a_default_that_is_made_is_made_anew() -> None:
    assert Pair(1).three is not Pair(1).three
    assert Pair(1, three=[7]).three == [7]


@pytest.mark.parametrize("arguments", [(), (1, "b", []), (1, "b", "c", "d")])
def test_a_value_is_made_from_its_fields_and_nothing_else(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Pair(*arguments)
    with pytest.raises(TypeError):
        Pair(1, four=4)  # type: ignore[call-arg]


def test_whoever_misspells_a_field_reads_which_value_was_to_be_made() -> None:
    with pytest.raises(TypeError, match=r"^Pair\.__init__\(\) got an unexpected keyword argument 'tow'"):
        Pair(1, tow="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Slim\.__new__\(\) got an unexpected keyword argument 'tow'"):
        Slim(1, tow="b")  # type: ignore[call-arg]


def test_a_value_may_look_at_itself_when_it_is_made() -> None:
    assert Positive(1).number == 1
    with pytest.raises(ValueError, match="not positive"):
        Positive(0)
    with pytest.raises(ValueError, match="not positive"):
        replace(Positive(1), number=0)


def test_a_field_without_a_default_below_one_with_a_default_is_refused() -> None:
    with pytest.raises(TypeError, match="Late: a field without a default stands below one that has one"):

        class Late(Key):
            late: int  # type: ignore[misc]


def test_copies_are_equal() -> None:
    for made in (copy.copy(Key("a")), copy.deepcopy(Key("a")), pickle.loads(pickle.dumps(Key("a")))):
        assert made == Key("a")


@slotted
class Slim(Frozen):
    one: int
    two: str = "b"
    _: KW_ONLY
    three: list[int] = field(default_factory=list)
    kind: ClassVar[str] = "slim"

    @property
    def twice(self) -> int:
        return 2 * self.one


def test_a_value_with_slots_is_a_value_like_others() -> None:
    assert Slim(1) == Slim(1, "b", three=[])
    assert Slim(1) != Slim(2)
    assert Slim(1) != Pair(1)
    assert Slim(2).twice == 4
    assert Slim.kind == "slim"
    assert repr(Slim(1)) == "Slim(one=1, two='b', three=[])"
    assert vars(Slim(1)) == {"one": 1, "two": "b", "three": []}
    assert replace(Slim(1), two="c", three=[4]) == Slim(1, "c", three=[4])
    assert [item.name for item in fields(Slim)] == ["one", "two", "three"]
    match Slim(1, "z"):
        case Slim(one, two):
            assert (one, two) == (1, "z")
    for made in (copy.copy(Slim(1)), copy.deepcopy(Slim(1)), pickle.loads(pickle.dumps(Slim(1)))):
        assert made == Slim(1)


def test_a_value_with_slots_cannot_be_changed() -> None:
    slim = Slim(1)
    for name in ("one", "four", "__class__"):
        with pytest.raises(FrozenInstanceError):
            setattr(slim, name, 2)
    with pytest.raises(FrozenInstanceError):
        del slim.one
    assert slim == Slim(1)


@pytest.mark.parametrize("arguments", [(), (1, "b", []), (1, "b", "c", "d")])
def test_a_value_with_slots_is_made_from_its_fields_and_nothing_else(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Slim(*arguments)
    with pytest.raises(TypeError):
        Slim(1, four=4)  # type: ignore[call-arg]


make_pair, make_slim, make_positive = maker(Pair), maker(Slim), maker(Positive)


def test_a_maker_makes_what_its_class_makes() -> None:
    made, pair = make_slim(1, "c", three=[4]), make_pair(1, "c", three=[4])
    assert (made, pair) == (Slim(1, "c", three=[4]), Pair(1, "c", three=[4]))
    assert (type(made), type(pair)) == (Slim, Pair)
    assert (vars(made), vars(pair)) == (vars(Slim(1, "c", three=[4])), vars(Pair(1, "c", three=[4])))
    for value in (made, pair):
        with pytest.raises(FrozenInstanceError):
            value.one = 2  # type: ignore[misc]


def test_a_maker_wants_every_field() -> None:
    for make in (make_slim, make_pair):
        with pytest.raises(TypeError, match=r"make\(\) missing 1 required"):
            make(1, "b")
        with pytest.raises(TypeError):
            make(1, "b", three=[], four=4)  # type: ignore[call-arg]


def test_what_a_maker_makes_may_look_at_itself() -> None:
    assert make_positive(1) == Positive(1)
    with pytest.raises(ValueError, match="not positive"):
        make_positive(0)


def test_a_class_with_slots_has_no_subclasses() -> None:
    with pytest.raises(TypeError, match="Slimmer is a subclass of slotted values"):

        class Slimmer(Slim):
            pass


# events


class DoorOpened(Event):
    """A door opened."""

    door: str = ""


class Creaking(DoorOpened):
    """It creaked."""


class Slammed(DoorOpened):
    """It was slammed."""

    name = "door_opened.with-a.bang"


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (DoorOpened, "door_opened"),
        (Creaking, "door_opened.creaking"),
        (Slammed, "door_opened.with-a.bang"),
        (Answered, "answered"),
        (Done, "done.state"),
        (ExecutionFailed, "error.execution"),
        (Started, "run.started"),
        (Exhausted, "run.exhausted"),
    ],
)
def test_the_name_of_an_event_comes_from_its_class_and_extends_that_of_its_parent(
    event: type[Event], name: str
) -> None:
    assert event.name == name
    assert event().name == name


def test_an_event_known_by_its_name_has_that_name() -> None:
    assert (Named("a.b").name, Named("a.b", 3).data) == ("a.b", 3)


@pytest.mark.parametrize("name", ["two words", "a..b", ".a", "a.", "1a", "*", "a.*"])
def test_a_name_is_made_of_words_and_dots(name: str) -> None:
    with pytest.raises(DefinitionError, match="is not a dotted name"):
        type("Odd", (Event,), {"name": name})


def test_the_name_of_a_subclass_must_extend_that_of_its_parent() -> None:
    for name in ("other", "door_openedx", "door_opened"):
        with pytest.raises(DefinitionError, match=r"event Odd: its name '.*' must begin with its parent's: 'door_op"):
            type("Odd", (DoorOpened,), {"name": name})


@pytest.mark.parametrize(
    ("descriptor", "name", "taken"),
    [
        ("", "anything", True),
        ("a", "a", True),
        ("a", "a.b", True),
        ("a", "ab", False),
        ("a.b", "a", False),
        ("a.b", "a.b.c", True),
    ],
)
def test_a_descriptor_takes_a_name_and_all_names_below_it(descriptor: str, name: str, taken: bool) -> None:
    assert matches(descriptor, name) is taken


@pytest.mark.parametrize(
    ("written", "meant"), [("*", ""), ("a", "a"), ("a.*", "a"), ("a.", "a"), ("a.b.*", "a.b"), ("a.b.", "a.b")]
)
def test_wildcards_at_the_end_say_nothing_new(written: str, meant: str) -> None:
    assert normalised(written) == meant
