"""What conditions, scripts and inputs of workflow files see and give, and how a batch goes through them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.errors import Refused
from moothall.kernel.step import Absent, Answer, Failed, Value
from moothall.scripting.children import Limits
from moothall.scripting.javascript import JavaScript
from moothall.scripting.workflow import Batch, Choice, Chosen, Script, Scripts, apply_change
from tests.scripting.asking import NOW, SCOPE, SHARED, Evaluate, batch, evaluator

SEEN: dict[str, object] = {
    "common_data.count": 1,
    "this.common_data['odd key']": 1,
    "variables.count": 1,
    "this.variables.count": 1,
    "common_data.variables.count": 1,
    "Object.keys(common_data).includes('variables')": False,
    "agents.coder.getLastResponse()": "done",
    "agents.get('coder').getRole()": "coder",
    "this.agents.coder.getContextRole()": "assistant",
    "getAgent('reviewer').getParsingToolCalls()[0].function.name": "review_work",
    "getAgent('reviewer').getToolCalls()": [],
    "this.getAgent('nobody') === undefined": True,
    "[agents.has('coder'), agents.has('nobody'), agents.keys().includes('coder')]": [True, False, True],
    "agents.size === agents.keys().length && agents.values().every(one => agents.has(one.getRole()))": True,
    "[contexts.size === contexts.values().length, contexts.has('history'), ...contexts.keys()].slice(0, 3)": [
        True,
        True,
        "history",
    ],
    "Object.keys(agents).length === agents.size": True,
    "Object.keys(agents)": ["coder", "reviewer"],
    "getToolCalls('coder').length": 1,
    "this.getToolCalls('nobody')": [],
    "contexts.history.messages[contexts.history.messages.length - 1].content": "hello",
    "contexts.get('history').max_length": 50,
    "this.getContext('history').name": "history",
    "sub_workflow_result.summary": "short",
    "last_agent_response": "All is well.",
    "this.lastAgentResponse": "All is well.",
    "last_tool_calls.map(call => call.function.name)": ["edit_file"],
    "last_parsing_tool_calls.length": 2,
    "function.review_work.arguments.improvement_needed === true": True,
    "this.function.review_work.arguments.notes[1]": "b",
    "function['odd-name'].arguments.x": 1,
    "function . review_work /* x */ . arguments?.notes.length": 2,
    "`${function.review_work.arguments.notes.map(n => `<${n}>`)}`": "<a>,<b>",
    "'function.review_work.arguments.x'": "function.review_work.arguments.x",
    "/function.review_work/.test('function.review_work')": True,
    "last_parsing_tool_calls[0].function.name": "review_work",
    "function.nobody.arguments.deep.er === undefined": True,
    "(function () { return typeof function.nobody })()": "undefined",
    "evaluateExpression('common_data.count + 1')": 2,
    "this.evaluateExpression('function.review_work.arguments.notes')": ["a", "b"],
    "evaluateExpression('no expression at all')": "no expression at all",
    "evaluateExpression(5)": 5,
    "[1, 2] // a comment": [1, 2],
    "common_data.count;": 1,
    "(x => x + 1)(1)": 2,
    "({ a: 1 })": {"a": 1},
}


@pytest.mark.parametrize(("text", "value"), SEEN.items(), ids=SEEN.keys())
@pytest.mark.covers("W20", "W18")
def test_a_text_sees_the_names_of_the_workflow(text: str, value: object, evaluate: Evaluate) -> None:
    assert evaluate(text) == Value(value)


@pytest.mark.covers("W19")
def test_a_call_that_was_not_made_is_undefined(evaluate: Evaluate) -> None:
    assert evaluate("function.nobody.arguments.a.b.c") == Absent()


def test_what_is_not_given_is_empty(evaluate: Evaluate) -> None:
    text = "[common_data, agents, contexts, last_tool_calls, last_parsing_tool_calls, typeof last_agent_response]"
    assert evaluate(text, "expression", {}) == Value([{}, {}, {}, [], [], "undefined"])


@pytest.mark.parametrize(
    "text",
    [
        "() => { this.common_data.x = 1; }",
        "() => { this.common_data.x = 1; };",
        "() => { common_data.x = 1 } // set",
        "(executionContext) => { executionContext.common_data.x = 1 }",
        "executionContext => executionContext.common_data.x = 1",
        "function () { this.common_data.x = 1 }",
        "function named() { this.common_data.x = 1 }",
        "common_data.x = 1",
        "this.common_data.x = 1;",
        "const x = 1; if (!x) return; this.common_data.x = x",
        "for (const key of ['x']) { common_data[key] = 1 }",
        "executionContext.common_data.x = 1",
        "{ common_data.x = 1 }",
        "common_data.x = function.review_work.arguments.improvement_needed ? 1 : 2",
    ],
)
@pytest.mark.covers("W23")
def test_a_script_may_be_a_function_or_statements(text: str, evaluate: Evaluate) -> None:
    assert evaluate(text, "script") == Value({"set": {"x": 1}, "removed": []})


def test_a_script_that_changes_nothing_says_so(evaluate: Evaluate) -> None:
    assert evaluate("() => { const copy = [...common_data.list].reverse() }", "script") == Value(
        {"set": {}, "removed": []}
    )


def test_a_change_is_put_into_the_data_by_key() -> None:
    assert apply_change({"a": 1, "b": 2}, {"set": {"a": 3, "c": 4}, "removed": ["b"]}) == {"a": 3, "c": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("common_data.title", "constructor"),
        ("'Task ' + common_data.count", "Task 1"),
        ("Review the work of the coder", "Review the work of the coder"),
        ("review coder's work", "review coder's work"),
        ("Is it done? (yes", "Is it done? (yes"),
        ("x" * 200_000, "x" * 200_000),
    ],
)
@pytest.mark.covers("W24")
def test_an_input_that_is_no_expression_is_text(text: str, value: str, evaluate: Evaluate) -> None:
    assert evaluate(text, "input") == Value(value)


def test_an_input_that_parses_is_an_expression_even_if_it_fails(evaluate: Evaluate) -> None:
    assert evaluate("Hello", "input") == Failed("ReferenceError: Hello is not defined")


@pytest.mark.parametrize(
    ("text", "holds", "answer"),
    [
        ("true", True, Value(True)),
        ("'false'", True, Value("false")),
        ("0", False, Value(0)),
        ("''", False, Value("")),
        ("null", False, Value(None)),
        ("NaN", False, Value(False)),
        ("undefined", False, Absent()),
        ("function.nobody.arguments.x", False, Absent()),
        ("[]", True, Value(True)),
        ("() => 0", True, Value(True)),
        ("10n", True, Value(True)),
        ("'x'.repeat(200)", True, Value(True)),
    ],
)
@pytest.mark.covers("W22")
def test_a_condition_holds_by_the_rules_of_javascript(text: str, holds: bool, answer: Answer, scripts: Scripts) -> None:
    chosen = scripts.evaluate_blocking(Batch((Choice(text),), SCOPE, NOW))
    assert chosen == Chosen(0 if holds else None, (answer,))


def test_the_first_choice_that_holds_is_taken_and_its_texts_follow_each_other(scripts: Scripts) -> None:
    then = (
        Script("script", "() => { this.common_data.task = 'go on'; delete this.common_data.list }"),
        Script("script", "common_data.task += '!'"),
        Script("input", "common_data.task + typeof common_data.list"),
    )
    choices = (Choice("common_data.count > 5"), Choice("common_data.count < 5", then), Choice("nonsense.that.fails"))
    assert scripts.evaluate_blocking(Batch(choices, SCOPE, NOW)) == Chosen(
        1,
        (Value(False), Value(True)),
        (
            Value({"set": {"task": "go on"}, "removed": ["list"]}),
            Value({"set": {"task": "go on!"}, "removed": []}),
            Value("go on!undefined"),
        ),
    )


def test_a_condition_that_fails_ends_the_batch(scripts: Scripts) -> None:
    chosen = scripts.evaluate_blocking(Batch((Choice("false"), Choice("nobody.x"), Choice("true")), SCOPE, NOW))
    assert chosen == Chosen(None, (Value(False), Failed("ReferenceError: nobody is not defined")))
    assert chosen.failure == "ReferenceError: nobody is not defined"


def test_a_text_that_fails_ends_the_batch(scripts: Scripts) -> None:
    then = (Script("script", "common_data.x = 1"), Script("script", "throw new Error('no')"), Script("input", "1"))
    chosen = scripts.evaluate_blocking(Batch((Choice("true", then),), SCOPE, NOW))
    assert chosen.then == (Value({"set": {"x": 1}, "removed": []}), Failed("Error: no"))


def test_nothing_but_data_passes_from_one_text_to_the_next(scripts: Scripts) -> None:
    poison = "Array.prototype.find = () => 1; Object.prototype.polluted = 1; Math.max = () => 0"
    then = (Script("script", poison), Script("input", "[[5].find(x => x > 9), ({}).polluted, Math.max(1, 2)]"))
    assert scripts.evaluate_blocking(Batch((Choice("true", then),), SCOPE, NOW)).then[1] == Value([None, None, 2])


def test_no_condition_that_holds_leaves_the_choice_open(scripts: Scripts) -> None:
    assert scripts.evaluate_blocking(Batch((Choice("false"), Choice("0")), SCOPE, NOW)).index is None
    assert scripts.evaluate_blocking(Batch((), SCOPE, NOW)) == Chosen(None, ())


def test_time_and_chance_come_in_with_the_batch(scripts: Scripts) -> None:
    text = "[Date.now(), Math.random(), Math.random()]"
    first, again = (scripts.evaluate_blocking(batch(text, seed="7")).then[0] for _ in range(2))
    other = scripts.evaluate_blocking(batch(text, seed="8")).then[0]
    assert first == again != other
    assert isinstance(first, Value)
    assert first.value[0] == round(NOW * 1000)
    assert 0 <= first.value[1] != first.value[2] < 1


def test_two_texts_of_a_batch_draw_different_numbers(scripts: Scripts) -> None:
    then = (Script("input", "Math.random()"), Script("input", "Math.random()"))
    first, second = scripts.evaluate_blocking(Batch((Choice("true", then),), SCOPE, NOW)).then
    assert first != second


def test_data_that_are_no_json_are_refused(evaluate: Evaluate) -> None:
    with pytest.raises(Refused, match="plain JSON"):
        evaluate("1", "expression", {"common_data": {"x": float("nan")}})
    with pytest.raises(Refused, match="plain JSON"):
        evaluate("1", "expression", {"common_data": {"x": object()}})


# ── syntax ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_syntax_is_checked_without_running_anything(scripts: Scripts) -> None:
    wrong = scripts.syntax_all(
        [
            Script("condition", "function.review_work.arguments.x === true"),
            Script("condition", "common_data.x ==="),
            Script("condition", ""),
            Script("condition", "(()=>{for(;;);})()"),
            Script("condition", "1); for(;;); (1"),
            Script("condition", "const x = 1"),
            Script("script", "const x = 1; return"),
            Script("script", "() => { common_data.x = }"),
            Script("input", "Review it"),
        ]
    )
    assert [fault is None for fault in wrong] == [True, False, False, True, False, False, True, False, False]
    assert all(fault is None or fault.startswith("SyntaxError: ") for fault in wrong)


def test_a_text_that_escapes_what_it_is_put_into_is_still_not_run(scripts: Scripts, evaluate: Evaluate) -> None:
    """Behind this `}` the tokeniser sees a regular expression and the engine a division, so that a loop stands free."""
    text = "function(){} / 1)}); for(;;); (function(){ return (1 / 1"
    assert scripts.syntax(text) is None
    assert evaluate(text) == Failed("stopped after 0.25 s of processor time")


def test_one_text_that_breaks_the_engine_does_not_hide_the_others(scripts: Scripts) -> None:
    deep = "[" * 40_000 + "]" * 40_000
    wrong = scripts.syntax_all([Script("condition", "1"), Script("condition", deep), Script("condition", "1 2")])
    assert (wrong[0], wrong[2]) == (None, "SyntaxError: Unexpected number")
    assert wrong[1] is not None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the folder with workflow files is not here")
def test_every_text_of_the_good_workflow_files_parses(scripts: Scripts) -> None:
    found = [script for path in (SHARED / "good_workflows").glob("*.json") for script in _scripts_of(path)]
    assert found
    assert set(scripts.syntax_all(found)) == {None}


def _scripts_of(path: Path) -> Iterator[Script]:
    for state in json.loads(path.read_text("utf-8"))["states"]:
        if "script" in state.get("action", {}):
            yield Script("script", state["action"]["script"])
        if "input" in state:
            yield Script("input", state["input"])
        for row in state.get("transition", ()):
            yield Script("condition", row["condition"])
            if "before" in row:
                yield Script("script", row["before"])


# ── children ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(name) for task in tasks for name in task.read_text().split()}


def test_a_child_that_was_killed_is_replaced() -> None:
    others = _children()
    with Scripts(most=1) as scripts:
        evaluate = evaluator(scripts)
        assert evaluate("1") == Value(1)
        [child] = _children() - others
        os.kill(child, signal.SIGKILL)
        assert evaluate("1") == Failed("stopped: it broke the script engine or used up its memory")
        assert evaluate("1") == Value(1)
        assert _children() - others != {child}
    assert _children() == others


def test_a_child_that_hangs_is_killed_by_the_clock() -> None:
    others = _children()
    with Scripts(most=1, limits=Limits(patience=0.3)) as scripts:
        evaluate = evaluator(scripts)
        assert evaluate("1") == Value(1)
        [child] = _children() - others
        os.kill(child, signal.SIGSTOP)
        assert evaluate("1") == Failed("stopped: no answer after 0.3 s")
        assert child not in _children()


def test_a_child_that_hangs_does_not_take_more_than_a_pipe_holds() -> None:
    others = _children()
    with Scripts(most=1, limits=Limits(patience=0.3)) as scripts:
        evaluate = evaluator(scripts)
        assert evaluate("1") == Value(1)
        [child] = _children() - others
        os.kill(child, signal.SIGSTOP)
        large = {"common_data": {"x": "x" * 1_000_000}}
        assert evaluate("1", "expression", large) == Failed("stopped: no answer after 0.3 s")


def test_a_child_can_open_nothing_and_knows_nothing() -> None:
    others = _children()
    with Scripts(most=1) as scripts:
        assert evaluator(scripts)("1") == Value(1)
        [child] = _children() - others
        process = Path(f"/proc/{child}")
        limits = {
            line[:26].strip(): line[26:].split()[:2] for line in (process / "limits").read_text().splitlines()[1:]
        }
        assert limits["Max open files"] == ["3", "3"]
        assert limits["Max processes"] == ["0", "0"]
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max address space"][1] == str(512 * 1024 * 1024)
        assert limits["Max cpu time"][0].isdigit()
        assert len(list((process / "fd").iterdir())) == 3
        assert set((process / "environ").read_bytes().split(b"\0")) - {b""} <= {b"TZ=UTC", b"LC_CTYPE=C.UTF-8"}
        assert (process / "cwd").readlink() == Path("/")
        assert os.getsid(child) == child


def test_the_event_loop_goes_on_while_a_text_runs() -> None:
    async def started() -> tuple[bool, Chosen]:
        running = asyncio.ensure_future(scripts.evaluate(batch("(()=>{for(;;);})()")))
        await asyncio.sleep(0)
        return running.done(), await running

    with Scripts(most=1) as scripts:
        was_done, chosen = asyncio.run(started())
    assert not was_done
    assert chosen.failure == "stopped after 0.25 s of processor time"


def test_an_endless_text_does_not_harm_those_beside_it() -> None:
    async def together() -> list[Chosen]:
        texts = ["(()=>{for(;;);})()", *(f"{number} + common_data.count" for number in range(20))]
        return await asyncio.gather(*(scripts.evaluate(batch(text)) for text in texts))

    with Scripts(most=2) as scripts:
        endless, *others = asyncio.run(together())
    assert endless.failure
    assert [chosen.then for chosen in others] == [(Value(number + 1),) for number in range(20)]


@pytest.mark.slow
def test_a_large_value_crosses_in_one_piece(evaluate: Evaluate) -> None:
    assert evaluate("Array.from({length: 5000}, (_, i) => ({i, text: 'é' + i}))") == Value(
        [{"i": number, "text": f"é{number}"} for number in range(5000)]
    )


def test_the_engine_of_documents_keeps_its_own_rules() -> None:
    with JavaScript() as evaluate:
        assert evaluate("x = 1; eval('x + y')", {"y": 2}) == Value(3)
        assert evaluate("undefined", {}) == Absent()
        assert evaluate("'x'.repeat(100000).length", {}) == Value(100_000)
        assert evaluate("for(;;);", {}) == Failed("stopped after 1 s of processor time")
        assert evaluate("nobody", {}) == Failed("ReferenceError: nobody is not defined")
        assert evaluate("1", {}) == Value(1)
