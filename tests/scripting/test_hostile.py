# ruff: noqa: E501
"""Texts that mean harm: each has an answer of a known kind, harms nobody, and learns nothing about the host."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from moothall.kernel.step import Absent, Answer, Failed, Value
from moothall.scripting.workflow import Scripts
from tests.scripting.asking import MISSING, SHARED, Evaluate, evaluator, shared

CANARY = "canary-5e1f"
PAYLOADS = shared("js_payloads.json")
CONTROLS = shared("js_controls.json")
STOPPED = (
    r"stopped|Maximum call stack|longer than|larger than|nested more than|too (large|long|many)|invalid (array|string)"
)

here = pytest.mark.skipif(not SHARED.is_dir(), reason=MISSING)


@pytest.fixture(autouse=True)
def _canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_CANARY", CANARY)


def is_well(evaluate: Evaluate) -> bool:
    """Whether the next evaluation finds the world as it should be."""
    answer = evaluate("[common_data.count, [5].find(x => x > 9), ({}).polluted, ({}).approved, typeof carry]")
    return answer == Value([1, None, None, None, "undefined"])


def leaks(answer: Answer) -> bool:
    told = repr(answer)
    return any(word in told for word in (CANARY, str(Path.home()), os.getcwd(), "javascript_child", "site-packages"))


@here
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload["id"]))
def test_a_hostile_text_meets_what_is_expected_of_it(payload: dict[str, Any], evaluate: Evaluate) -> None:
    answer = evaluate(payload["payload"], payload["kind"])
    assert not leaks(answer)
    match payload["goal"]:
        case "dos":
            assert isinstance(answer, Failed)
            assert re.search(STOPPED, answer.reason)
        case "nondeterminism":
            assert evaluate(payload["payload"], payload["kind"]) == answer
        case "host-code" | "host-object" | "env-leak":
            assert "PWNED" not in repr(answer)
        case _:
            assert isinstance(answer, Value | Absent | Failed)
    assert is_well(evaluate)


@here
@pytest.mark.parametrize("case", CONTROLS["cases"] if CONTROLS else [], ids=lambda case: str(case["id"]))
def test_an_honest_text_has_its_value(case: dict[str, Any], evaluate: Evaluate) -> None:
    given = CONTROLS["context"]
    scope = {
        "common_data": given["common_data"],
        "agents": {role: {"tool_calls": calls} for role, calls in given["tool_calls"].items()},
        "last_parsing_tool_calls": given["last_parsing_tool_calls"],
    }
    assert evaluate(case["payload"], "expression", scope) == Value(case["expected"])


ENDLESS = {
    "a getter that loops": "({get x(){for(;;);}})",
    "a getter that loops while it is written": "({a: {get x(){for(;;);}}})",
    "a loop that catches": "(()=>{for(;;)try{for(;;);}catch{}})()",
    "a loop in finally": "(()=>{try{for(;;);}finally{for(;;);}})()",
    "a proxy whose keys never end": "new Proxy({}, {ownKeys(){for(;;);}})",
    "a proxy that is an endless list": "new Proxy([], {get: (t, k) => k === 'length' ? Infinity : 1})",
    "a sort that never ends": "[3,2,1].map(x=>x).sort(()=>{for(;;);})",
    "an iterator that never ends": "[...(function*(){for(;;)yield 1})()]",
    "a set of an endless iterator": "new Set((function*(){let i=0;for(;;)yield i++})()).size",
    "an error whose message loops": "(()=>{throw {get message(){for(;;);}}})()",
    "an error whose name loops": "(()=>{const e=new Error('x');Object.defineProperty(e,'name',{get(){for(;;);}});throw e})()",
    "a thrown thing whose text loops": "(()=>{throw {name:{toString(){for(;;);}}}})()",
    "a regular expression that backtracks": "/^(a|a)*$/.test('a'.repeat(40)+'b')",
    "nested quantifiers": "/(x+x+)+y/.test('x'.repeat(50))",
    "a backtracking lookahead": "/^(?=(a+)+$)b/.test('a'.repeat(40)+'!')",
    "a replacer that loops": "'a'.replace(/a/, () => {for(;;);})",
    "a reviver that loops": "JSON.parse('[1]', () => {for(;;);})",
    "a join that takes for ever": "new Array(2**32-1).join('ab').length",
    "digits of a great number": "BigInt('9'.repeat(3e5)).toString().length",
    "a recursion without end": "(function f(){return f()+1})()",
    "a recursion through a getter": "(()=>{const o={get x(){return this.x}};return o.x})()",
    "a recursion through a proxy": "(()=>{const p=new Proxy({},{get:(t,k,r)=>r[k]});return p.x})()",
    "a recursion through toString": "(()=>{const o={toString(){return ''+this}};return ''+o})()",
    "labels that jump back": "(()=>{a:for(;;){b:for(;;){continue a}}})()",
    "an async loop": "(async()=>{for(;;);})()",
    "a generator that is not left": "(function*(){for(;;);})().next()",
    "a long sum of strings": "(()=>{let s='x';for(;;)s+=s})()",
    "a list that grows": "(()=>{const a=[];for(;;)a.push(a.slice())})()",
    "an object that grows": "(()=>{const o={};for(let i=0;;i++)o['k'+i]=i})()",
    "a map that grows": "(()=>{const m=new Map;for(let i=0;;i++)m.set(i,{i})})()",
    "closures that grow": "(()=>{let f=()=>0;for(;;){const g=f;f=()=>g}})()",
    "a typed array of a gigabyte": "new Uint8Array(2**30).length",
    "a buffer that is filled": "new ArrayBuffer(2**31).byteLength",
    "a list filled to the brim": "new Array(1e9).fill(0).length",
    "a list from a length": "Array.from({length: 1e9}, (_, i) => i).length",
    "a flat list of many": "Array(1e6).fill(Array(1e6).fill(1)).flat().length",
    "a split of a long text": "'x'.repeat(2e7).split('').length",
    "a huge regular expression": "new RegExp('(a?){1000}'.repeat(1000)).test('a')",
    "arguments without end": "Math.max(...Array(1e7).fill(1))",
    "deep brackets": "[" * 20_000 + "]" * 20_000,
    "deep templates": "`${" * 5_000 + "1" + "}`" * 5_000,
    "deep calls": "isNaN(" * 15_000 + "1" + ")" * 15_000,
    "a chain of not": "!" * 90_000 + "1",
    "a text that is too long": "1+" * 60_000 + "1",
    "a value that is too large": "'x'.repeat(2_000_000)",
    "a list that is too large": "Array(2_000_000).fill(1)",
    "a sparse list": "(()=>{const a=[];a[4e9]=1;return a})()",
    "a value that is too deep": "(()=>{let a=1;for(let i=0;i<101;i++)a=[a];return a})()",
    "keys that are too large": "({['k'.repeat(2e6)]: 1})",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
@pytest.mark.slow
def test_what_takes_too_much_is_stopped_and_the_next_text_is_answered(text: str, evaluate: Evaluate) -> None:
    answer = evaluate(text)
    assert isinstance(answer, Failed)
    assert re.search(STOPPED, answer.reason), answer.reason
    assert not leaks(answer)
    assert is_well(evaluate)


TYPED: dict[str, tuple[str, Answer | str]] = {
    "a function": ("() => 1", "the value is a function, which JSON cannot hold"),
    "a symbol": ("Symbol('x')", "the value is a symbol, which JSON cannot hold"),
    "a great number": ("({a: [1n]})", "the value.a[0] is a bigint, which JSON cannot hold"),
    "not a number, inside": ("({a: {b: NaN}})", "the value.a.b is NaN, which JSON cannot hold"),
    "minus infinity": ("[-Infinity]", "the value[0] is -Infinity, which JSON cannot hold"),
    "minus zero": ("-0", Value(0)),
    "undefined inside": ("({a: undefined, b: [undefined, , null]})", Value({"b": [None, None, None]})),
    "nothing": ("undefined", Absent()),
    "void": ("void 0", Absent()),
    "a map": ("new Map([[1, 2]])", "the value is a Map, which JSON cannot hold"),
    "an error": ("({e: new Error('x')})", "the value.e is a Error, which JSON cannot hold"),
    "a regular expression": ("/x/", "the value is a RegExp, which JSON cannot hold"),
    "a date": ("new Date(0)", Value("1970-01-01T00:00:00.000Z")),
    "no date": ("new Date(NaN)", "RangeError: Date value is NaN"),
    "boxes": ("[new Number(1), new String('x'), new Boolean(false)]", Value([1, "x", False])),
    "a promise": ("Promise.resolve(1)", "it gives a promise"),
    "a promise that never settles": ("new Promise(() => {})", "it gives a promise"),
    "an async function": ("(async () => 1)()", "it gives a promise"),
    "a module": ("import('os')", "it gives a promise"),
    "a generator": ("(function*(){})()", "the value is a Generator, which JSON cannot hold"),
    "itself": ("(()=>{const a=[];a.push({a});return a})()", "the value[0].a holds itself, which JSON cannot"),
    "the same twice": ("(()=>{const a=[1];return [a, a]})()", Value([[1], [1]])),
    "toJSON is not asked": ("({a: 1, ['toJSON']: 2})", Value({"a": 1, "toJSON": 2})),
    "an inherited toJSON": ("new (class { constructor(){this.a=1} toJSON(){return 'bomb'} })", Value({"a": 1})),
    "a poisoned toJSON": ("(()=>{Object.prototype.toJSON=()=>'bomb';Array.prototype.toJSON=()=>'x';return [{a:1}]})()", Value([{"a": 1}])),
    "an overwritten stringify": ("(()=>{JSON.stringify=()=>'\"bomb\"';JSON.parse=()=>9;return {a:'b'}})()", Value({"a": "b"})),
    "overwritten keys": ("(()=>{Object.keys=()=>['x'];Array.isArray=()=>true;return {a:1}})()", Value({"a": 1})),
    "a poisoned iterator": ("(()=>{Array.prototype[Symbol.iterator]=function*(){yield 'x'};return {a:[1]}})()", Value({"a": [1]})),
    "a poisoned index": ("(()=>{Object.defineProperty(Array.prototype,0,{set(){},get(){return 'x'}});return {a:[1,2]}})()", Value({"a": [1, 2]})),
    "a poisoned setter": ("(()=>{for(const k of ['value','size','level','words','told','failed'])Object.defineProperty(Object.prototype,k,{__proto__:null,set(){},get(){return 7}});return {a:{b:1}}})()", Value({"a": {"b": 1}})),
    "poisoned methods": ("(()=>{Function.prototype.call=Function.prototype.apply=()=>'x';String.prototype.slice=()=>'y';RegExp.prototype.exec=()=>null;Object.prototype.toString=()=>'z';return {a:'b'}})()", Value({"a": "b"})),
    "a spoofed tag": ("({[Symbol.toStringTag]: 'Date'})", "TypeError: not a Date object"),
    "code from text": ("Function('return 1')()", "TypeError: code cannot be made from text here"),
    "code from an async function": ("(async()=>{}).constructor('return 1')", "TypeError: code cannot be made from text here"),
    "code from an async generator": ("(async function*(){}).constructor('1')", "TypeError: code cannot be made from text here"),
    "code by reflection": ("Reflect.construct(Function, ['return 1'])", "TypeError: code cannot be made from text here"),
    "eval": ("eval('1')", "ReferenceError: eval is not defined"),
    "eval in disguise": ("\\u0065val('1')", "ReferenceError: eval is not defined"),
    "a call without new": ("typeof Date()", Value("string")),
    "the true clock by its constructor": ("new (new Date(5).constructor)().getTime()", Value(1_700_000_000_123)),
    "the true clock by its parent": ("Object.getPrototypeOf(Date) === Function.prototype", Value(True)),
    "the clock": ("[Date.now(), new Date().getTime(), +new Date]", Value([1_700_000_000_123] * 3)),
    "the timezone": ("new Date(0).getTimezoneOffset()", Value(0)),
    "a clock of high resolution": ("typeof performance", Value("undefined")),
    "the collector": ("[typeof WeakRef, typeof FinalizationRegistry, typeof gc]", Value(["undefined"] * 3)),
    "a stack with a place": ("(()=>{try{null.x}catch(e){return /[\\\\/]\\w+[\\\\/]/.test(e.stack)}})()", Value(False)),
    "frames of the host": ("(()=>{Error.prepareStackTrace=(e,s)=>s;return typeof new Error('x').stack})()", Value("string")),
    "a half of a pair": ("'\\ud83d\\ude00'.slice(0, 1) + 'x'", Value("\ufffdx")),
    "a half of a pair as a key": ("({['\\udc00']: 1})", Value({"\ufffd": 1})),
    "a line that ends": ("'a\\nb\\u2028c\\u0085d'", Value("a\nb\u2028c\u0085d")),
    "two lines of protocol": ("(()=>{throw new Error('x\\n{\"value\":1}\\n')})()", 'Error: x {"value":1}'),
    "a thrown text": ("(()=>{throw 'no'})()", "no was thrown"),
    "a thrown nothing": ("(()=>{throw undefined})()", "undefined was thrown"),
    "a thrown symbol": ("(()=>{throw Symbol('s')})()", "Symbol(s) was thrown"),
    "a thrown proxy": ("(()=>{throw new Proxy({},{get(){throw 1}})})()", "an error that cannot be described"),
    "a long message": ("(()=>{throw new Error('x'.repeat(1e6))})()", "Error: " + "x" * 293),
    "an end of what is around": ("1), (2", "SyntaxError: ) closes nothing"),
    "an end of the function": ("1)}), globalThis.carry=1, (()=>{(1", "SyntaxError: ) closes nothing"),
    "an end behind a comment": ("1 /* ) */ // )", Value(1)),
    "a comment that does not end": ("1 /*", "SyntaxError"),
    "a comment of HTML": ("1 <!-- 2", Value(1)),
    "two statements": ("1; 2", "SyntaxError"),
    "a statement": ("var x = 1", "SyntaxError"),
    "the sloppy this": ("(function(){return typeof this})()", Value("undefined")),
    "a name that is written": ("carry = 1", "ReferenceError: carry is not defined"),
    "a with": ("(()=>{with({}){}})()", "SyntaxError"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TYPED.values(), ids=TYPED.keys())
def test_what_an_odd_text_gives_is_said(text: str, expected: Answer | str, evaluate: Evaluate) -> None:
    answer = evaluate(text)
    if isinstance(expected, str):
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(expected)
    else:
        assert answer == expected
    assert not leaks(answer)


LOST: dict[str, str] = {
    "a name of the surface": "last_agent_response = 'x'",
    "a name of the surface, by this": "this.agents = {}",
    "a function of the surface": "this.getToolCalls = () => [1]",
    "a name of its own": "this.mine = 1",
    "a global": "globalThis.mine = 1",
    "an agent": "agents.coder.mine = 1",
    "a method of an agent": "getAgent('coder').getRole = () => 'x'",
    "a message": "contexts.history.messages[0].content = 'x'",
    "a new message": "contexts.history.messages.push({})",
    "a call": "last_tool_calls[0].function.name = 'x'",
    "a call that is removed": "last_parsing_tool_calls.pop()",
    "what a child gave": "delete sub_workflow_result.summary",
    "another definition": "Object.defineProperty(globalThis, 'agents', {value: 1})",
    "the variables as a whole": "variables = {}",
}


@pytest.mark.parametrize("text", LOST.values(), ids=LOST.keys())
def test_a_write_that_would_be_lost_is_an_error_that_says_so(text: str, evaluate: Evaluate) -> None:
    answer = evaluate(text, "script")
    assert isinstance(answer, Failed)
    assert "only common_data is written back" in answer.reason


@pytest.mark.parametrize("text", ["common_data.x = 1", "common_data.deep.a.b.push(1)", "delete common_data.count"])
def test_only_a_script_writes_to_common_data(text: str, evaluate: Evaluate) -> None:
    answer = evaluate(text)
    assert isinstance(answer, Failed)
    assert "only by scripts" in answer.reason
    assert isinstance(evaluate(text, "script"), Value)


CHANGES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a prototype": ("common_data.__proto__ = {x: 1}", {}, []),
    "a key called like the prototype": ("Object.defineProperty(common_data,'__proto__',{value:1,enumerable:true})", {"__proto__": 1}, []),
    "a polluted prototype": ("common_data.__proto__.polluted = 1; common_data.x = {}", {"x": {}}, []),
    "a hidden key": ("Object.defineProperty(common_data, 'x', {value: 1})", {}, []),
    "a getter": ("Object.defineProperty(common_data, 'x', {get: () => 5, enumerable: true})", {"x": 5}, []),
    "a symbol as a key": ("common_data[Symbol('x')] = 1", {}, []),
    "all of it": ("common_data = {title: 'constructor', x: 1}", {"x": 1}, ["count", "odd key", "list", "deep"]),
    "all of it, by a proxy": ("common_data = new Proxy({...common_data}, {})", {}, []),
    "the same again": ("common_data.list = [...common_data.list]; common_data.deep = {a: {b: [0]}}", {}, []),
    "a key set to undefined": ("common_data.count = undefined", {}, ["count"]),
    "something frozen": ("common_data.calls = last_tool_calls", {"calls": [{"function": {"name": "edit_file", "arguments": {"path": "a.py"}}}]}, []),
    "variables": ("common_data.variables = {a: 1}", {"variables": {"a": 1}}, []),
    "a variable": ("common_data.variables.a = 1; variables.b = 2", {"a": 1, "b": 2}, []),
    "a poisoned stringify": ("JSON.stringify = () => '0'; Object.keys = () => []; common_data.x = 1", {"x": 1}, []),
    "a poisoned iterator": ("Array.prototype[Symbol.iterator] = function*(){yield '\"x\":NaN'}; common_data.y = 1", {"y": 1}, []),
    "an empty iterator": ("Array.prototype[Symbol.iterator] = function*(){}; common_data.y = 1", {"y": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "put", "removed"), CHANGES.values(), ids=CHANGES.keys())
def test_what_a_script_changed_is_written_back_and_nothing_else(
    text: str, put: dict[str, Any], removed: list[str], evaluate: Evaluate
) -> None:
    assert evaluate(text, "script") == Value({"set": put, "removed": removed})
    assert is_well(evaluate)


BAD_CHANGES = {
    "a list": ("common_data = []", "common_data must stay an object"),
    "nothing": ("this.common_data = null", "common_data must stay an object"),
    "a map": ("common_data = new Map", "common_data must stay an object"),
    "a function": ("common_data.f = () => 1", "common_data.f is a function"),
    "itself": ("common_data.deep.me = common_data", "common_data.deep.me holds itself"),
    "its variables": ("common_data.v = common_data.variables", "common_data.v holds itself"),
    "not a number": ("common_data.ratio = 0 / 0", "common_data.ratio is NaN"),
    "too much": ("common_data.x = 'x'.repeat(2e6)", "larger than 1000000 characters"),
    "a key that is too much": ("common_data['x'.repeat(2e6)] = 1", "larger than 1000000 characters"),
    "a promise": ("async () => { common_data.x = 1 }", "it gives a promise"),
}


@pytest.mark.parametrize(("text", "reason"), BAD_CHANGES.values(), ids=BAD_CHANGES.keys())
def test_what_cannot_be_kept_is_refused_by_name(text: str, reason: str, evaluate: Evaluate) -> None:
    answer = evaluate(text, "script")
    assert isinstance(answer, Failed)
    assert reason in answer.reason


def test_odd_data_come_back_as_they_were(evaluate: Evaluate) -> None:
    data = {"__proto__": {"polluted": 1}, "constructor": 2, "half": "\ud800", "big": 2**60 + 1, "float": 1.0, "": None}
    scope = {"common_data": data}
    assert evaluate("common_data.x = 1", "script", scope) == Value({"set": {"x": 1}, "removed": []})
    assert evaluate("Object.keys(common_data).length + common_data.constructor", "expression", scope) == Value(8)
    assert evaluate("({}).polluted", "expression", scope) == Absent()


def test_the_world_of_a_text_has_these_names_and_no_others(evaluate: Evaluate) -> None:
    answer = evaluate("Object.getOwnPropertyNames(globalThis).filter(name => !(name in this))")
    assert isinstance(answer, Value)
    assert sorted(answer.value) == sorted(WORLD.split())


WORLD = """
Object Function Error EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError Iterator Array
parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape Infinity NaN
undefined Number Boolean String Math Reflect Symbol globalThis BigInt Date RegExp JSON Proxy Map Set WeakMap WeakSet
ArrayBuffer Uint8ClampedArray Int8Array Uint8Array Int16Array Uint16Array Int32Array Uint32Array BigInt64Array
BigUint64Array Float32Array Float64Array DataView Promise btoa atob __parsing_tool_call
"""


def test_many_evaluations_do_not_make_a_child_grow() -> None:
    with Scripts(most=1) as scripts:
        evaluate = evaluator(scripts)
        grow = "(()=>{const a=[];for(let i=0;i<2e4;i++)a.push({i,a});return a.length})()"
        for _ in range(20):
            evaluate(grow)
        before = _memory()
        for _ in range(100):
            assert evaluate(grow) == Value(20_000)
        assert _memory() < before * 1.5


def _memory() -> int:
    """The memory of the children of this process, in pages."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = {name for task in tasks for name in task.read_text().split()}
    return sum(int(Path(f"/proc/{name}/statm").read_text().split()[1]) for name in children)
