"""What a machine refuses to be, what its hash covers, and which words it knows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import pytest

from moothall.agents.ask import ask
from moothall.errors import DefinitionError
from moothall.kernel.effects import AskPerson, Effect, Send
from moothall.kernel.events import Answered, Done, Event, Expired, Named
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Budget, Machine, label, schema_without_words
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, otherwise
from moothall.kernel.step import Scripted, Step


class Rang(Event):
    """A bell rang."""


class Tolled(Rang):
    """A large bell rang."""


class Ring(Effect):
    """Have a bell rung."""

    kind = "ring"
    outcomes = (Rang,)
    tone: str = "a"


def keep(data: Any, event: Any) -> Any:
    return data


def other(data: Any, event: Any) -> Any:
    return data


def big(data: Any, event: Any, *, least: int = 0) -> bool:
    return True


def four(data: Any, event: Any, moment: Any, more: Any) -> Any:
    return data


def by_name(data: Any, event: Any, *, more: Any) -> Any:
    return data


async def wait(data: Any, event: Any) -> Any:
    return data


@dataclass(frozen=True)
class Visit:
    when: bytes | None = None
    then: tuple[Visit, ...] = ()


# what is refused


def refusal(states: Sequence[Node], *moves: On, **more: Any) -> str:
    with pytest.raises(DefinitionError) as caught:
        Machine("m", states=states, moves=moves, **more)
    return str(caught.value)


def gone(machine: Machine, event: str) -> tuple[str, ...]:
    """Where a machine stands after an event in its first state."""
    begun = start(machine, None)
    assert isinstance(begun, Step)
    step = transition(machine, begun.snapshot, Named(event))
    assert isinstance(step, Step)
    return step.snapshot.active


INNER = State("s", [State("a"), State("b"), History("memory", "a")])


@pytest.mark.parametrize(
    ("states", "moves", "problem"),
    [
        ([State("a")], [On("a", "go", to="b")], "a on go names the unknown state 'b'"),
        ([State("drafting")], [On("drafty", "go")], "begins at the unknown state 'drafty' (did you mean 'drafting'?)"),
        ([State("a")], [On("a", "go", to="*")], "a on go names the unknown state '*' (there are a)"),
        ([State("a")], [On("b", "go")], "a row begins at the unknown state 'b'"),
        ([State("a"), State("b", [State("a")])], [], "two states are called 'a'"),
        ([State("")], [], "'' is not a name for a state"),
        ([State("*")], [], "'*' is not a name for a state"),
        ([], [], "m has no states inside to begin with"),
        ([State("s", [History("h", "s")])], [], "s has no states inside to begin with"),
        ([State("s", [State("a")], start="z")], [], "the start of s names the unknown state 'z'"),
        ([State("s", [State("a")], start="b"), State("b")], [], "s starts at b, which is not inside it"),
        ([State("s", [State("a")], start="s")], [], "s starts at s, which is not inside it"),
        ([State("s", [State("a"), State("b")], start=("a", "b"))], [], "a and b cannot be active together"),
        ([INNER, State("x")], [On("x", "go", to=("a", "b"))], "x on go: a and b cannot be active together"),
        ([State("s", [State("a"), History("h", "z")])], [], "history h names the unknown state 'z'"),
        ([State("s", [State("a"), History("h", "x")]), State("x")], [], "h begins at x, which is not a state inside s"),
        ([State("s", [State("a"), History("h", "s")])], [], "h begins at s, which is not a state inside s"),
        ([State("s", [State("a"), History("h", "h")])], [], "h begins at h, which is not a state inside s"),
        ([State("a"), Final("z")], [On("z", "go", to="a")], "z on go: a final state has no moves of its own"),
        ([INNER], [On("memory", "go", to="a")], "memory on go: a history state has no moves of its own"),
        ([INNER], [On("memory", otherwise)], "otherwise in memory has no row above it and nothing to wait for"),
        ([State("a")], [On("a", "go", at_most=-1)], "a on go: at_most must be a whole number, not -1"),
        ([State("a")], [On("a", "go", at_most=True)], "a on go: at_most must be a whole number, not True"),
        ([State("a")], [On("a", "go", at_most=1.5)], "a on go: at_most must be a whole number, not 1.5"),  # type: ignore[arg-type]
        ([State("a", max_visits=-1)], [], "a: max_visits must be a whole number, not -1"),
        ([Parallel("p", [State("a")], max_visits="2")], [], "p: max_visits must be a whole number, not '2'"),  # type: ignore[arg-type]
        ([State("a")], [On("a", "")], "a row of a names no event; for one that needs none write always"),
        ([State("a")], [On("a", [])], "a row of a names no event; for one that needs none write always"),
        ([State("a")], [On("a", 7)], "a row of a names 7; name the event's class, or its name as a text"),  # type: ignore[arg-type]
        ([State("a")], [On("a", ["x", always], when=big)], "a: always stands alone, not among events"),
        ([State("a")], [On("a", otherwise, to="a")], "otherwise in a has no row above it and nothing to wait for"),
        ([State("a")], [On("a", "go", do="keep")], "a on go: 'keep' is neither a function nor an effect"),  # type: ignore[arg-type]
        ([State("a", enter=[7])], [], "a, enter: 7 is neither a function nor an effect"),  # type: ignore[list-item]
        ([State("a")], [On("a", "go", when="big")], "a on go: the guard 'big' is not a function"),  # type: ignore[arg-type]
        ([State("a")], [On("a", "go", when=lambda data: True)], "two arguments, the data and the event"),  # type: ignore[arg-type, misc]
        ([State("a")], [On("a", "go", do=lambda: 1)], "two arguments, the data and the event"),  # type: ignore[arg-type, misc]
        ([State("a", exit=four)], [], "a, exit: four ("),  # type: ignore[arg-type]
        ([State("a", enter=by_name)], [], "a, enter: by_name ("),  # type: ignore[arg-type]
        ([State("a")], [On("a", "go", do=wait)], ") is async; agents and tools may wait, guards and moves are plain"),
        ([State("a")], [On("a", "go", when=wait)], ") is async; agents and tools may wait, guards and moves are plain"),  # type: ignore[arg-type]
    ],
)
def test_a_machine_that_cannot_mean_what_it_says_is_refused(states: list[Node], moves: list[On], problem: str) -> None:
    assert problem in refusal(states, *moves)


def test_a_function_that_does_not_fit_is_named_with_its_place() -> None:
    line = wait.__code__.co_firstlineno
    assert f"a on go: wait ({__file__}:{line}) is async" in refusal([State("a")], On("a", "go", do=wait))


@pytest.mark.parametrize(
    "function",
    [
        lambda *both: True,
        lambda data, *rest: True,
        lambda data, event=None, more=None: True,
        partial(big, least=1),
        big,
    ],
    ids=["any", "at least one", "more that may be left out", "partly given", "more by name that may be left out"],
)
def test_whatever_can_be_given_data_and_event_may_be_a_guard(function: Any) -> None:
    machine = Machine("m", states=[State("a")], moves=[On("a", "go", when=function)])
    assert machine.chart.rows[0].on.when is function


def test_all_problems_are_told_together() -> None:
    said = refusal([State("a"), State("a")], On("a", "go", to="b"), On("c", "go"))
    assert said == (
        "machine m: two states are called 'a'; a row begins at the unknown state 'c' (there are a); "
        "a on go names the unknown state 'b' (there are a)"
    )


def test_states_of_different_regions_may_be_aimed_at_together() -> None:
    regions = Parallel("p", [State("l", [State("l1"), State("l2")]), State("r", [State("r1")])])
    rows = [On("x", "go", to=["l2", "r1"]), On("x", "in", to=("l", "l2"))]
    assert [gone(Machine("m", states=[State("x"), regions], moves=rows), name) for name in ("go", "in")] == [
        ("l2", "r1"),
        ("l2", "r1"),
    ]


@pytest.mark.parametrize("targets", [("s", "b"), ("b", "s"), ("b", "b"), ("s", "b", "b")])
def test_a_state_and_what_is_inside_it_may_be_aimed_at_together(targets: tuple[str, ...]) -> None:
    assert gone(Machine("m", states=[State("x"), INNER], moves=[On("x", "go", to=targets)]), "go") == ("b",)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"states": ["a"]}, "machine m: 'a' in states is none of State, Parallel, Final, History"),
        ({"states": "a"}, "machine m: states is a list of State, Parallel, Final, History, not 'a'"),
        ({"states": [On("a", "go")]}, "machine m: On("),
        ({"moves": [State("a")]}, "machine m: State("),
        ({"moves": On("a", "go")}, "machine m: moves is a list of On, not On("),
        ({"data": Visit()}, "machine m: write data=Visit, the class itself"),
    ],
    ids=["a name", "a text", "a row", "a state", "one row", "a value"],
)
def test_what_is_no_state_no_row_and_no_class_is_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Machine("m", **{"states": [State("a")], "moves": [], **more})
    assert str(caught.value).startswith(problem)


def test_errors_are_strict_or_those_of_scxml() -> None:
    assert refusal([State("a")], errors="lenient") == "machine m: errors must be 'strict' or 'scxml', not 'lenient'"


def test_a_budget_is_a_budget() -> None:
    assert refusal([State("a")], budget=5) == "machine m: write budget=Budget(calls=20), not 5"


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf"), "1"])
def test_a_budget_is_made_of_numbers(limit: Any) -> None:
    with pytest.raises(DefinitionError, match="budget: usd must be a number of at least 0"):
        Budget(usd=limit)


def test_a_budget_lists_the_limits_that_are_set() -> None:
    assert Budget(usd=0.5, calls=0).limits() == {"usd": 0.5, "calls": 0}
    assert Budget().limits() == {}


@dataclass(frozen=True)
class Article:
    topic: str = ""


class Template:
    """An action that names fields of the data."""

    label = "write about {topik}"
    emits: ClassVar[dict[str, int]] = {}

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def __call__(self, data: Any, event: Any) -> Any:
        return data


def test_a_misspelt_field_of_a_template_is_found_at_once() -> None:
    said = refusal([State("a", enter=Template("topic.x", "topik"))], data=Article)
    assert said == "machine m: 'write about {topik}' names 'topik', but Article has topic"
    Machine("m", data=Article, states=[State("a", enter=Template("topic"))], moves=[])
    Machine("m", data=dict, states=[State("a", enter=Template("topik"))], moves=[])


# what the hash covers


def defined(**changes: Any) -> Machine:
    """A machine with one thing of each kind, some of them changed."""
    parts = {
        "a": State("a", enter=AskPerson("Well?"), exit=keep, max_visits=3),
        "s": State("s", [State("i"), State("j"), History("memory", "i", do=keep)], start="i", starting=keep),
        "p": Parallel("p", [State("l"), State("r")], enter=keep, exit=keep, max_visits=2),
        "z": Final("z", result=keep, enter=keep, exit=keep),
        "one": On("a", Rang, to="s", when=big, do=keep, at_most=2),
        "two": On("s", "go", to="i", do=keep, internal=True, emits={Ring: 2}, writes=("x",)),
        "three": On("s", always, to="z", when=lambda data, event: False),
    } | {name: change for name, change in changes.items() if name in ("a", "s", "p", "z", "one", "two", "three")}
    rest: dict[str, Any] = {name: change for name, change in changes.items() if name not in parts}
    return Machine(
        rest.pop("name", "m"),
        states=[parts[name] for name in "aspz"],
        moves=[parts[name] for name in ("one", "two", "three")],
        **rest,
    )


def changed(part: str, **changes: Any) -> Callable[[], Machine]:
    """How to make the machine with something else in one of its states or rows."""

    def make() -> Machine:
        before = defined()
        parts: dict[str, Any] = {node.name: node for node in before.states}
        parts |= dict(zip(("one", "two", "three"), before.moves, strict=True))
        return defined(**{part: replace(parts[part], **changes)})

    return make


@pytest.mark.parametrize(
    "change",
    [
        lambda: defined(name="n"),
        lambda: defined(errors="scxml"),
        lambda: defined(budget=Budget(usd=1)),
        lambda: defined(max_microsteps=10),
        changed("a", enter=AskPerson("Well then?")),
        changed("a", enter=()),
        changed("a", exit=other),
        changed("a", max_visits=4),
        changed("s", start="j"),
        changed("s", starting=other),
        changed("s", states=[State("j"), State("i"), History("memory", "i", do=keep)]),
        changed("s", states=[State("i"), State("j"), History("memory", "j", do=keep)]),
        changed("s", states=[State("i"), State("j"), History("memory", "i", do=other)]),
        changed("s", states=[State("i"), State("j"), History("memory", "i", do=keep, deep=True)]),
        changed("p", max_visits=3),
        changed("p", enter=other),
        changed("p", exit=other),
        changed("z", result=other),
        changed("z", enter=other),
        changed("z", exit=other),
        changed("one", event=Tolled),
        changed("one", to="p"),
        changed("one", to=None),
        changed("one", when=other),
        changed("one", when=None),
        changed("one", when=partial(big, least=2)),
        changed("one", do=other),
        changed("one", do=(keep, other)),
        changed("one", at_most=3),
        changed("one", at_most=None),
        changed("two", internal=False),
        changed("two", emits={Ring: 3}),
        changed("two", emits=None),
        changed("two", writes=("y",)),
        changed("two", writes=None),
        changed("three", event=["x", "y"]),
    ],
)
def test_the_hash_changes_with_every_word_and_every_bound(change: Callable[[], Machine]) -> None:
    made, before = change(), defined()
    assert made.digest != before.digest
    assert not made.is_defined_as(before.digest)
    assert made.decides_as(before.digest) == ("Well then?" in label(made.states[0]))


def test_a_digest_of_before_is_known_by_its_words() -> None:
    machine = defined()
    assert machine.is_defined_as(machine.worded)
    assert machine.decides_as(machine.worded)
    assert not changed("a", enter=AskPerson("Well then?"))().decides_as(machine.worded)


@dataclass(frozen=True)
class Verdict:
    score: int


@dataclass(frozen=True)
class LongVerdict:
    score: int
    reason: str = ""


LongVerdict.__qualname__ = LongVerdict.__name__ = "Verdict"


@pytest.mark.parametrize(
    ("action", "is_same"),
    [
        (ask("judge", "Judge {x}", reply=Verdict), True),
        (ask("judge", "Judge this: {x} {y}", reply=Verdict), True),
        (ask("critic", "Judge {x}", reply=Verdict), False),
        (ask("judge", "Judge {x}", reply=LongVerdict), False),
        (ask("judge", "Judge {x}"), False),
        (ask("judge", "Judge {x}", reply=Verdict, timeout=5), False),
        (ask("judge", "Judge {x}", reply=Verdict, tools=["look"]), False),
    ],
)
def test_who_is_asked_and_in_which_shape_decides_and_in_which_words_does_not(action: Any, is_same: bool) -> None:
    def asking(action: Any) -> Machine:
        return Machine("m", states=[State("a", enter=action)], moves=[])

    before = asking(ask("judge", "Judge {x}", reply=Verdict))
    assert asking(action).decides_as(before.digest) == is_same


def test_a_schema_is_known_without_its_words_but_with_fields_that_are_called_like_them() -> None:
    inner = {"type": "string", "description": "what it is called", "enum": ["title", {"title": 1}]}
    given = {"title": "T", "properties": {"title": inner}, "anyOf": [{"examples": [1], "type": "null"}]}
    assert schema_without_words(given) == {
        "properties": {"title": {"type": "string", "enum": ["title", {"title": 1}]}},
        "anyOf": [{"type": "null"}],
    }


def test_the_hash_changes_with_the_order_of_rows() -> None:
    rows = [On("a", "go", to="b", when=big), On("a", "go", to="a")]
    states = [State("a"), State("b")]
    digests = {Machine("m", states=states, moves=moves).digest for moves in (rows, rows[::-1])}
    assert len(digests) == 2


def test_a_machine_is_written_in_python_unless_it_says_of_what_kind_it_is() -> None:
    assert defined().kind == "python"
    assert defined(kind="debate").kind == "debate"
    assert defined(kind="debate").digest == defined().digest


TEXT = """
from functools import partial
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import On, State
class Guard:
    def __call__(self, data, event):
        return True
def at_least(least, data, event):  {comment}
    return True
rows = [On("a", "go", to="a", when=partial(at_least, 3)), On("a", "on", to="a", when=Guard())]
print(Machine("m", states=[State("a")], moves=rows).digest)
"""


def test_the_hash_is_the_same_in_every_process_and_with_every_comment() -> None:
    texts = [TEXT.format(comment=comment) for comment in ("", "# enough of them", "")]
    texts[2] = "import os; import sys; held = [object() for _ in range(999)]\n" + texts[2]
    said = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True) for text in texts]
    assert len({answer.stdout for answer in said}) == 1


class Plain:
    """A guard that says nothing of itself."""

    def __call__(self, data: Any, event: Any) -> bool:
        return True


class Spoken(Plain):
    def __repr__(self) -> str:
        return "spoken"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (keep, "keep"),
        (Scripted(lambda *_: True, "x > 3"), "x > 3"),
        (partial(big, least=3), "big(least=3)"),
        (partial(partial(big, 1), 2), "big(1, 2)"),
        (Plain(), "Plain"),
        (Spoken(), "spoken"),
        (Ring("c"), "Ring(tone='c')"),
        (None, "None"),
    ],
)
def test_guards_and_moves_have_names_without_addresses(action: Any, said: str) -> None:
    assert label(action) == said


# which words it knows


def test_a_machine_knows_the_events_of_its_rows_and_of_its_effects_and_their_subclasses() -> None:
    words = Machine("m", states=[State("a", enter=Ring())], moves=[On("a", "go")]).vocabulary
    assert (words["rang"], words["rang.tolled"], words["answered"]) == (Rang, Tolled, Answered)
    assert "go" not in words
    rows = [On("a", Rang), On("a", [Expired, "x"]), On("a", otherwise), On("a", always, to="a", when=keep)]
    assert Machine("m", states=[State("a")], moves=rows).vocabulary["rang.tolled"] is Tolled
    assert Machine("m", states=[State("a")], moves=[], events=[Rang]).vocabulary["rang"] is Rang
    assert "rang" not in Machine("m", states=[State("a")], moves=[On("a", Done)]).vocabulary


def test_two_events_of_one_name_are_refused() -> None:
    class Answer(Event):
        name = "answered"

    with pytest.raises(DefinitionError, match="machine m: two events are called 'answered'"):
        _ = Machine("m", states=[State("a")], moves=[], events=[Answer]).vocabulary


class Shaped(Template):
    """An action that asks for a reply of a certain shape."""

    def __init__(self, **shapes: Any) -> None:
        self.paths = ()
        self.shapes = shapes


def test_a_machine_knows_the_shapes_that_its_table_asks_for() -> None:
    inner = State("s", [State("i"), History("memory", "i", do=Shaped(four=str))], starting=Shaped(five=str))
    states: list[Node] = [
        State("a", enter=Shaped(one=int), exit=Shaped(two=bool)),
        Final("z", enter=Shaped(six=str)),
        inner,
    ]
    machine = Machine("m", states=states, moves=[On("a", "go", do=(keep, Shaped(three=str)))])
    assert dict(machine.shapes) == {"one": int, "two": bool, "three": str, "four": str, "five": str, "six": str}


@pytest.mark.parametrize(
    ("data", "shape", "refusal"),
    [
        (Visit, bool, "machine m: data.when: bytes cannot be stored; use dataclasses"),
        (list[Visit], bool, "machine m: data.when: bytes cannot be stored; use dataclasses"),
        (None, Visit, "machine m: reply.when: bytes cannot be stored; use dataclasses"),
        (None, "Visit", "machine m: reply: 'Visit' is the name of a type; write the type itself"),
    ],
    ids=["data", "inside a list", "shape", "a name"],
)
def test_a_type_that_cannot_be_stored_is_refused_with_its_place(data: Any, shape: Any, refusal: str) -> None:
    machine = Machine("m", states=[State("a", enter=Shaped(reply=shape))], moves=[], data=data)
    with pytest.raises(DefinitionError) as caught:
        machine.require_types()
    assert str(caught.value).startswith(refusal)


@dataclass(frozen=True)
class Chain:
    link: Literal["iron", "gold"]
    sizes: tuple[int, ...] | None = None
    by_name: Mapping[str, Chain] = field(default_factory=dict)
    anything: Any = None


@pytest.mark.parametrize("data", [Chain, dict, dict[str, Any], list[Chain], str, int | None], ids=str)
def test_a_type_that_can_be_stored_is_not_refused(data: Any) -> None:
    machine = Machine("m", states=[State("a", enter=Shaped(reply=data))], moves=[], data=data)
    machine.require_types()
    assert machine.shapes == {"reply": data}


def test_two_shapes_of_one_name_are_refused() -> None:
    machine = Machine("m", states=[State("a", enter=Shaped(one=int), exit=Shaped(one=str))], moves=[])
    with pytest.raises(DefinitionError, match="machine m: two reply shapes are called 'one'; rename one"):
        _ = machine.shapes


def test_rows_and_states_say_what_they_are() -> None:
    rows = [On("a", Rang), On("a", "x y"), On("a", [Rang, "z"]), On("a", always, when=keep)]
    chart = Machine("m", states=[State("a")], moves=rows).chart
    assert [repr(row) for row in chart.rows] == ["a on Rang", "a on x y", "a on Rang, z", "a on always"]
    assert repr(chart.places[1]) == "a"


def test_a_send_is_an_action_like_any_other() -> None:
    machine = Machine("m", states=[State("a", enter=Send(Named("x"), 1))], moves=[])
    assert list(machine.actions()) == [Send(Named("x"), 1)]
