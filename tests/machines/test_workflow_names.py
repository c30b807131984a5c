"""The names in scripts of a workflow file: what `check` finds misspelt, and what it leaves alone."""

import json

import pytest

from moothall.app.kinds.workflow.expression import evaluate
from moothall.kernel.step import Value
from moothall.machines.workflow.check import MEMBERS, Around, find_problems
from moothall.machines.workflow.document import Problem, read
from moothall.machines.workflow.names import GLOBALS, keys_set, undeclared_names
from moothall.machines.workflow.tokens import SURFACE
from tests.machines.test_workflow_checking import put
from tests.machines.workflows import Change, Plain, changed

JUDGE = {
    "type": "function",
    "function": {"name": "judge", "parameters": {"properties": {"enough": {}, "notes": {}}, "type": "object"}},
}
ROLES: dict[str, Plain] = {
    "coder": {},
    "reviewer": {"parsingTools": [JUDGE]},
    "other": {"parsingTools": [{"function": {"name": "rate"}}]},
}
CONDITION = "/states/2/transition/0/condition"


def problems(workflow: Plain) -> list[Problem]:
    around = Around(lambda scripts: [""] * len(scripts), roles=ROLES)
    return list(find_problems(read(json.dumps(workflow, indent=1).encode()), around))


MISTAKES: list[tuple[Change, str, str, str]] = [
    (put(CONDITION, "function.judge.arguments.enogh"), "E_UNKNOWN_FIELD", CONDITION, "did you mean 'enough'?"),
    (put(CONDITION, "!function.judge?.arguments?.['enogh']"), "E_UNKNOWN_FIELD", CONDITION, "did you mean 'enough'?"),
    (put(CONDITION, "this.function.judge.arguments.x"), "E_UNKNOWN_FIELD", CONDITION, "there are: enough, notes"),
    (
        put(CONDITION, "function.judge.args.enough"),
        "E_UNKNOWN_FIELD",
        CONDITION,
        "write function.judge.arguments.FIELD",
    ),
    (put(CONDITION, "function.judgee.arguments.x"), "W_UNKNOWN_TOOL", CONDITION, "did you mean 'judge'?"),
    (put(CONDITION, "function.rate.arguments.x"), "W_UNKNOWN_TOOL", CONDITION, "add it to the role's parsingTools"),
    (put(CONDITION, "getAgent('rev').getLastResponse()"), "E_UNKNOWN_AGENT", CONDITION, "did you mean 'reviewer'?"),
    (put(CONDITION, "this.getToolCalls('codr').length"), "E_UNKNOWN_AGENT", CONDITION, "did you mean 'coder'?"),
    (put(CONDITION, "agents.codr"), "E_UNKNOWN_AGENT", CONDITION, "did you mean 'coder'?"),
    (put(CONDITION, "agents.get('codr')"), "E_UNKNOWN_AGENT", CONDITION, "did you mean 'coder'?"),
    (put(CONDITION, "getContext('tlak').messages"), "E_UNKNOWN_CONTEXT", CONDITION, "did you mean 'talk'?"),
    *(
        (put(CONDITION, text), "E_UNKNOWN_FIELD", CONDITION, f"did you mean {meant!r}?")
        for text, meant in (
            ("getAgent('coder').getLastRespons()", "getLastResponse"),
            ("this.getAgent(common_data.next)?.getRol() === 'coder'", "getRole"),
            ("agents.coder.getToolCall().length > 0", "getToolCalls"),
            ("executionContext.agents['coder'].getParsingTools()[0]", "getParsingToolCalls"),
            ("agents.get('coder')?.['getLastReply']()", "getLastResponse"),
            ("contexts.talk.getMesages().length", "messages"),
            ("getContext('talk').mesages.length", "messages"),
        )
    ),
    (put(CONDITION, "comon_data.next"), "E_UNKNOWN_NAME", CONDITION, "did you mean 'common_data'?"),
    (put(CONDITION, "fetch('x')"), "E_UNKNOWN_NAME", CONDITION, "declare it, or write common_data.fetch"),
    (put("/states/1/input", "Hello"), "E_UNKNOWN_NAME", "/states/1/input", "put a text into quotes"),
    (put("/states/1/input", "common_data.nxt"), "W_UNSET", "/states/1/input", "did you mean 'next'?"),
    (put(CONDITION, "variables.max_iteration"), "W_UNSET", CONDITION, "did you mean 'max_iterations'?"),
    (put(CONDITION, "common_data.variables['zzz']"), "W_UNSET", CONDITION, "there are: "),
]


@pytest.mark.parametrize(("change", "code", "pointer", "remedy"), MISTAKES)
def test_a_misspelt_name_is_found_with_its_line_and_a_guess(
    change: Change, code: str, pointer: str, remedy: str
) -> None:
    workflow = changed(put(CONDITION, "function.judge.arguments.enough"))
    change(workflow)
    [found] = problems(workflow)
    assert (found.code, found.pointer) == (code, pointer)
    assert remedy in found.remedy
    assert found.line > 1


@pytest.mark.parametrize(
    "text",
    [
        "getAgent(common_data.next)?.getRole()",
        "agents.size > 1 && agents.has('nobody') && [...agents.keys()].length",
        "common_data.next.constructor.name",
        "getAgent('coder').getLastResponse().toLowerCase().trimmed",
        "agents.coder.toString() + agents.keys.length + contexts.talk.messages.at(-1).anything",
        "getAgent('coder')?.getContextRole() && contexts.get('talk').max_length",
        "agents.get('coder')[common_data.next]()",
        "function.rate?.arguments.whatever",
        "function.rate?.name === 'rate'",
        "Object.keys(common_data).length",
    ],
)
def test_what_may_be_meant_so_is_left_alone(text: str) -> None:
    workflow = changed(put(CONDITION, text))
    workflow["agents"][1]["agent_role"] = workflow["states"][2]["agent"] = "other"
    workflow["agents"] += [{"agent_role": "reviewer", "context": "talk", "role": "user"}]
    assert [found.code for found in problems(workflow) if found.code != "W_UNUSED"] == []


@pytest.mark.parametrize(
    "script",
    [
        "common_data[name()] = 1",
        "const data = this.common_data; data.nxt = 1",
        "Object.assign(common_data, { nxt: 1 })",
        "[common_data.nxt] = [1]",
        "common_data.nxt ??= 1",
        "this['common_data']['nxt'] = 1",
        "const self = this; self.common_data.nxt = 1",
        "py:anything",
    ],
)
def test_a_key_that_anything_may_set_counts_as_set(script: str) -> None:
    workflow = changed(put("/states/0/action/script", script.replace("name()", "'n' + 'xt'")))
    put("/states/1/input", "common_data.nxt")(workflow)
    put(CONDITION, "true")(workflow)
    assert not [found for found in problems(workflow) if found.code == "W_UNSET"]


def test_a_script_that_only_reads_sets_nothing() -> None:
    assert keys_set("JSON.stringify(common_data) + common_data.a.b") == frozenset()
    assert keys_set("common_data.a = 1; ++this.common_data.b; common_data.c.d = 1") == frozenset(("a", "b"))


DECLARED = [
    "const { a, b: [c = 1], ...d } = common_data; a + c + d",
    "let a = 1, b = 2; a + b",
    "() => { for (const x of common_data.list) { try { x() } catch (error) { throw error } } }",
    "common_data.list.reduce((sum, one) => sum + one, 0)",
    "common_data.list.map(one => one.name)",
    "function add(a, b) { return a + b } add(1, 2)",
    "({ key: 1, other() { return 2 }, async go() {} }).key",
    "typeof console !== 'undefined' && console.log(1)",
    "outer: for (;;) { break outer }",
    "`${common_data.x ? Math.max(1, NaN) : /x+y/g.test('z')}`",
    "class Dog { bark() { return new Dog() } }",
    "Please write a poem",
    "if (common_data.x) { let y; y = 1 }",
]


@pytest.mark.parametrize("text", DECLARED)
def test_a_name_that_a_script_declares_is_known(text: str) -> None:
    assert undeclared_names(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a ? b : c", ("a", "b", "c")),
        ("if (a) { b = 1 }", ("a", "b")),
        ("const x = y; x", ("y",)),
        ("({ a, b: c })", ("a", "c")),
        ("`${a}` + 'b' // c", ("a",)),
        ("x => x + y", ("y",)),
    ],
)
def test_a_name_that_nobody_declares_is_found(text: str, names: tuple[str, ...]) -> None:
    assert undeclared_names(text) == names


def test_the_names_that_the_engine_brings_are_those_that_count_as_known() -> None:
    answer = evaluate("Object.getOwnPropertyNames(globalThis)", {})
    assert isinstance(answer, Value)
    assert set(answer.value) - SURFACE == GLOBALS - SURFACE


def test_what_the_engine_shows_of_agents_and_contexts_is_what_counts_as_known() -> None:
    shown = {"agents": {"coder": {"role": "user"}}, "contexts": {"talk": {"messages": [], "max_length": 9}}}
    for what, text in (("agent", "Object.keys(agents.coder)"), ("context", "Object.keys(contexts.talk)")):
        answer = evaluate(text, shown)
        assert isinstance(answer, Value)
        assert set(answer.value) == MEMBERS[what]
