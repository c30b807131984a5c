"""What is answered without an engine is what the engine says."""

from itertools import product
from typing import Any

import pytest

from moothall.kernel.step import Value
from moothall.scripting import workflow
from moothall.scripting.glance import answer_at_a_glance, text_at_a_glance
from moothall.scripting.workflow import Batch, Choice, Script, Scripts

VALUES = [True, False, None, 0, 3, -1, 2**53, 1.5, "", "a", "3", "ä", "x" * 101, {}, {"b": 1}, [], [0]]
PLACES = ["common_data.a", "this.common_data.a", "function.judge.arguments.a", "this.function.judge.arguments.a"]
TESTS = ["{}", "!{}", "{} === true", "{} !== false", "{} === null", "{} === 3", "{} < 3", "{} >= 0", "{} === 'a'"]
ODD = [
    "common_data.none",
    "common_data.none.x",
    "common_data.constructor",
    "common_data.variables.a === 3",
    "common_data.list.length > 0",
    "common_data.a == 3",
    "common_data.a === 03",
    "common_data.a < -1",
    "function.nobody.arguments.x === true",
    "function.nobody.arguments.x !== true",
    "function.judge.arguments.none",
    "function.judge.name",
    "common_data.a === 3 && true",
    "common_data.a === undefined",
    "!common_data.none",
    "!common_data.a === false",
    "common_data",
    "common_data.__proto__",
]


def scope_of(value: Any) -> dict[str, Any]:
    call = {"function": {"name": "judge", "arguments": {"a": value}}}
    return {"common_data": {"a": value, "list": [1]}, "last_parsing_tool_calls": [call]}


def both(scripts: Scripts, text: str, scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is said with and without a glance."""
    batch = Batch((Choice(text),), scope, now=0.0)
    said: list[object] = [scripts.evaluate_blocking(batch)]
    with monkeypatch.context() as patch:
        patch.setattr(workflow, "answer_at_a_glance", lambda text, scope: None)
        return [*said, scripts.evaluate_blocking(batch)]


@pytest.mark.slow
def test_a_glance_says_what_the_engine_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripts(most=1) as scripts:
        for value, place, test in product(VALUES, PLACES[::2], TESTS):
            first, second = both(scripts, test.format(place), scope_of(value), monkeypatch)
            assert first == second, (test.format(place), value)


def test_a_glance_says_what_the_engine_says_of_odd_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripts(most=1) as scripts:
        for text in (*ODD, *(test.format(place) for test in TESTS[:2] for place in PLACES)):
            first, second = both(scripts, text, scope_of(3), monkeypatch)
            assert first == second, text


@pytest.mark.parametrize("text", ["function.judge.arguments.a === true", "common_data.a", "!common_data.none"])
def test_the_usual_conditions_need_no_engine(text: str) -> None:
    assert answer_at_a_glance(text, scope_of(True)) is not None


@pytest.mark.parametrize("text", ["common_data.a.length", "common_data.a + 1", "f()", "common_data.toString", "1 < 2"])
def test_what_may_mean_something_else_is_a_question_to_the_engine(text: str) -> None:
    assert answer_at_a_glance(text, scope_of("x")) is None


TEXTS = [
    "{}",
    "'Do this: ' + {}",
    "{} + \". Then \" + {} + '.'",
    "'ä' + {}",
    "'\\n' + {}",
    "{} + ",
    "{} {}",
    "{} - 'x'",
    "+ {}",
    "'x' + ({})",
    "{} + 'x' ;",
    "'x'",
    "`x` + {}",
    "common_data.none + {}",
    "'x'.length + {}",
]


@pytest.mark.parametrize("kind", ["input", "output", "expression"])
def test_a_glance_at_a_text_says_what_the_engine_says(kind: workflow.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripts(most=1) as scripts:
        for value, text in product(["a", "", "ä", "\ud800", 3, None, ["a"]], TEXTS):
            script = Script(kind, text.replace("{}", "common_data.a"))
            batch = Batch((Choice("true", (script,)),), scope_of(value), now=0.0)
            seen = scripts.evaluate_blocking(batch)
            with monkeypatch.context() as patch:
                patch.setattr(workflow, "text_at_a_glance", lambda text, scope: None)
                assert seen == scripts.evaluate_blocking(batch), (script.text, value)


def test_a_glance_at_a_text_sees_what_scripts_have_changed() -> None:
    then = (
        Script("script", "() => { common_data.a = 'new'; delete common_data.list; }"),
        Script("input", "'It is ' + common_data.a"),
    )
    with Scripts(most=1) as scripts:
        chosen = scripts.evaluate_blocking(Batch((Choice("true", then),), scope_of("old"), now=0.0))
    assert chosen.then[1] == Value("It is new")


@pytest.mark.parametrize("text", ["'Go on.'", "common_data.a", "'Do ' + this.common_data.a + '.'"])
def test_the_usual_inputs_need_no_engine(text: str) -> None:
    assert text_at_a_glance(text, scope_of("x")) is not None


def test_a_text_that_is_very_long_is_a_question_to_the_engine() -> None:
    assert text_at_a_glance("common_data.a + common_data.a", scope_of("x" * 60_000)) is None
