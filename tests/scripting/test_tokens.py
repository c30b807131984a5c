"""Texts are read without being run: shorthands, what is read, what is assigned."""

import pytest

from moothall.machines.workflow.tokens import EVERYTHING, LOOKUP, assigns, expand, functions, reads, scan

CALL = f'{LOOKUP}("f")?.function'


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("function.f.x", f"{CALL}.x"),
        ("function?.f.x", f"{CALL}.x"),
        ("function\n.f", CALL),
        ("this.function.f.x", f"{CALL}.x"),
        ("a.this.function.f", "a.this.function.f"),
        ("call.function.f", "call.function.f"),
        ("call?.function.f", "call?.function.f"),
        ("function['f'].x", f"{LOOKUP}('f')?.function.x"),
        ("function[name].x", "function[name].x"),
        ("function (x) { return x }", "function (x) { return x }"),
        ("({ function: 1 })", "({ function: 1 })"),
        ("'function.f' + function.f", f"'function.f' + {CALL}"),
        ('"a\\"function.f"', '"a\\"function.f"'),
        ("`function.f ${function.f} function.f`", f"`function.f ${{{CALL}}} function.f`"),
        ("`${`${function.f}`}` + function.f", f"`${{`${{{CALL}}}`}}` + {CALL}"),
        ("`${{a: function.f}.a}`", f"`${{{{a: {CALL}}}.a}}`"),
        ("`\\${function.f}`", "`\\${function.f}`"),
        ("`$function.f`", "`$function.f`"),
        ("// function.f\nfunction.f", f"// function.f\n{CALL}"),
        ("/* function.f */ function.f", f"/* function.f */ {CALL}"),
        ("/function.f/.test(x)", "/function.f/.test(x)"),
        ("/[/]function.f/.test(x)", "/[/]function.f/.test(x)"),
        ("a / function.f / b", f"a / {CALL} / b"),
        ("(a) / function.f / b", f"(a) / {CALL} / b"),
        ("a[0] / function.f / b", f"a[0] / {CALL} / b"),
        ("a++ / function.f / b", f"a++ / {CALL} / b"),
        ("if (a) /function.f/.test(b)", "if (a) /function.f/.test(b)"),
        ("return /function.f/", "return /function.f/"),
        ("a.return / function.f / 2", f"a.return / {CALL} / 2"),
        ("x = {} / function.f / 2", f"x = {{}} / {CALL} / 2"),
        ("if (a) {} /function.f/.test(b)", "if (a) {} /function.f/.test(b)"),
        ("typeof /function.f/", "typeof /function.f/"),
        ("'it' + \"'\" + function.f", f"'it' + \"'\" + {CALL}"),
        ("\\u0066unction.f", "\\u0066unction.f"),
        ("myfunction.f", "myfunction.f"),
        ("1.5.toFixed() + .5 + 1e-5 + function.f", f"1.5.toFixed() + .5 + 1e-5 + {CALL}"),
        ("a ?.5 : function.f", f"a ?.5 : {CALL}"),
        ("review coder's function.f", "review coder's function.f"),
    ],
)
def test_the_shorthand_is_expanded_in_code_and_nowhere_else(text: str, result: str) -> None:
    assert expand(text, scan(text).tokens) == result


def test_the_tools_that_a_condition_asks_for_are_known() -> None:
    assert functions("function.a.arguments.x && function['b-c'] || 'function.d'") == {"a", "b-c"}
    assert functions("last_parsing_tool_calls.length") == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("true", set()),
        ("this.common_data.x < 5", {"common_data"}),
        ("variables.x", {"common_data"}),
        ("'agents' + contexts.a.messages.length", {"contexts"}),
        ("`${agents.coder.getRole()}`", {"agents"}),
        ("getToolCalls('coder').length", {"agents"}),
        ("this?.getContext('a')", {"contexts"}),
        ("function.f.arguments.x", {"last_parsing_tool_calls"}),
        ("lastAgentResponse + last_tool_calls", {"last_agent_response", "last_tool_calls"}),
        ("sub_workflow_result // agents", {"sub_workflow_result"}),
        ("a / agents / b", {"agents"}),
        ("/agents/", {"agents"}),
    ],
)
def test_what_a_text_reads_can_be_seen(text: str, names: set[str]) -> None:
    assert reads(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "this['agents']",
        "Object.keys(this)",
        "(() => this)().agents",
        "const { agents } = this",
        "this/* x */['a']",
        "globalThis[name]",
        "\\u0061gents.coder",
        "evaluateExpression(common_data.text)",
        "executionContext => executionContext[name]",
        "eval('x')",
        "'unterminated",
    ],
)
def test_a_text_that_may_reach_anything_reads_everything(text: str) -> None:
    assert reads(text) == EVERYTHING


@pytest.mark.parametrize(
    "text",
    [
        "this.common_data.approved = true",
        "common_data.x += 1",
        "common_data.list[common_data.list.length - 1].x ||= 1",
        "common_data.count++ > 3",
        "--variables.count",
        "delete this.common_data.x",
        "(common_data.x = 1) && true",
        "agents = 1",
    ],
)
def test_a_condition_that_assigns_is_noticed(text: str) -> None:
    assert assigns(text)


@pytest.mark.parametrize(
    "text",
    [
        "common_data.x == 1",
        "common_data.x === 1 && common_data.y >= 2",
        "common_data.list.map((x, y = 1) => x + y)",
        "(() => { const common_data = 1; let x = 2; x += 1; return x })()",
        "'common_data.x = 1'",
        "/common_data.x = 1/.test(common_data.x)",
        "common_data.list.filter(x => x !== common_data.y)",
    ],
)
def test_a_condition_that_compares_does_not_assign(text: str) -> None:
    assert not assigns(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1)", ") closes nothing"),
        ("(1]", "] closes nothing"),
        ("{(", "( is never closed"),
        ("`${1", "${ is never closed"),
        ("`${(}`", "} closes nothing"),
        ("(')')", ""),
        ("`)`", ""),
        ("/)/", ""),
        ("a /* ) */", ""),
        ("'", ""),
    ],
)
def test_brackets_that_do_not_match_are_found(text: str, fault: str) -> None:
    assert scan(text).fault == fault


@pytest.mark.parametrize("unit", ["(/[", "'", "`${", "/*", "a/", "[", "}", "\\", "/", '"\\', "function."])
@pytest.mark.slow
def test_a_long_text_is_read_in_one_go(unit: str) -> None:
    """Each of these would take minutes if the tokeniser looked at the rest of the text again for every token."""
    text = unit * 30_000
    assert len(scan(text).tokens) <= len(text)
