"""What `moot check` finds in workflow files, kind by kind."""

import json
from copy import deepcopy
from dataclasses import fields
from typing import Any

import pytest

from moothall.machines.workflow import definition
from moothall.machines.workflow.check import MOST, Around, find_problems
from moothall.machines.workflow.document import Problem, read
from moothall.machines.workflow.schema import SCHEMA
from tests.machines.workflows import BASE, Change, Plain, changed


def problems(*workflows: Plain, around: Around | None = None) -> tuple[Problem, ...]:
    value: Any = workflows[0] if len(workflows) == 1 else list(workflows)
    return find_problems(
        read(json.dumps(value, indent=1).encode()), around or Around(lambda scripts: [""] * len(scripts))
    )


def told(*workflows: Plain) -> set[tuple[str, str]]:
    return {(problem.code, problem.pointer) for problem in problems(*workflows)}


def put(pointer: str, value: object) -> Change:
    def change(workflow: Plain) -> None:
        *way, last = pointer.split("/")[1:]
        place: Any = workflow
        for part in way:
            place = place[int(part) if isinstance(place, list) else part]
        if isinstance(place, list):
            place.insert(int(last), value)
        else:
            place[last] = value

    return change


def drop(pointer: str) -> Change:
    def change(workflow: Plain) -> None:
        *way, last = pointer.split("/")[1:]
        place: Any = workflow
        for part in way:
            place = place[int(part) if isinstance(place, list) else part]
        del place[int(last) if isinstance(place, list) else last]

    return change


def test_a_good_workflow_has_no_problem() -> None:
    assert problems(BASE) == ()


CONDITION = "/states/1/transition/0/condition"
ON = [{"target": "stop", "condition": "true"}]
ERRORS: list[tuple[Change, str, str]] = [
    (drop("/workflow_name"), "E_REQUIRED", "/workflow_name"),
    (drop("/states"), "E_REQUIRED", "/states"),
    (drop("/input"), "E_REQUIRED", "/input"),
    (drop("/output"), "E_REQUIRED", "/output"),
    (drop("/contexts"), "E_REQUIRED", "/contexts"),
    (drop("/agents"), "E_REQUIRED", "/agents"),
    (drop("/output/name"), "E_REQUIRED", "/output/name"),
    (drop("/agents/0/role"), "E_REQUIRED", "/agents/0/role"),
    (drop("/states/1/transition/0/target"), "E_REQUIRED", "/states/1/transition/0/target"),
    (drop(CONDITION), "E_REQUIRED", CONDITION),
    (drop("/states/1/transition"), "E_REQUIRED", "/states/1/transition"),
    (drop("/states/1/transition"), "E_NO_EXIT", "/states/1"),
    (put("/states/1/transition", []), "E_NO_EXIT", "/states/1"),
    (put("/states", []), "E_REQUIRED", "/states"),
    (put("/states", {}), "E_TYPE", "/states"),
    (put("/states/1", "code"), "E_TYPE", "/states/1"),
    (put("/workflow_name", 7), "E_TYPE", "/workflow_name"),
    (put("/variables", []), "E_TYPE", "/variables"),
    (put("/variables/max_iterations", "ten"), "E_TYPE", "/variables/max_iterations"),
    (put("/variables/max_iterations", 0), "E_TYPE", "/variables/max_iterations"),
    (put("/contexts/0/max_length", True), "E_TYPE", "/contexts/0/max_length"),
    (put("/contexts/0/max_length", 0), "E_RANGE", "/contexts/0/max_length"),
    (put("/contexts/0/starting_messages/0", "hello"), "E_TYPE", "/contexts/0/starting_messages/0"),
    (
        put("/contexts/0/starting_messages/0", {"role": "user", "content": 3}),
        "E_TYPE",
        "/contexts/0/starting_messages/0/content",
    ),
    (put(CONDITION, True), "E_TYPE", CONDITION),
    (put("/states/1/transition", {"target": "review"}), "E_TYPE", "/states/1/transition"),
    (put("/output/type", "text"), "E_ENUM", "/output/type"),
    (put("/on_no_match", "ignore"), "E_ENUM", "/on_no_match"),
    (put("/states/1/action/function", "sendusermessage"), "E_ENUM", "/states/1/action/function"),
    (put("/states/1/action/function", None), "E_ENUM", "/states/1/action/function"),
    (put("/states/0/name", "Start"), "E_NO_START", "/states"),
    (put("/contexts/1", {"name": "talk"}), "E_DUP_NAME", "/contexts/1/name"),
    (put("/states/1/agent", "nobody"), "E_UNKNOWN_AGENT", "/states/1/agent"),
    (put("/states/1/transition/0/target", "nowhere"), "E_UNKNOWN_STATE", "/states/1/transition/0/target"),
    (put("/states/1/on_error", "nowhere"), "E_UNKNOWN_STATE", "/states/1/on_error"),
    (put(CONDITION, "false"), "E_NO_EXIT", "/states/1"),
    (put("/states/2/transition/1/target", "code"), "E_NO_EXIT", "/states/1"),
    (put("/states/2/transition/1", {"target": "code", "condition": "true"}), "E_NO_EXIT", "/states/1"),
    (put(CONDITION, "  "), "E_EXPR_SYNTAX", CONDITION),
    (put("/states/0/action/script", ""), "E_EXPR_SYNTAX", "/states/0/action/script"),
    (put(CONDITION, "common_data.n += 1"), "E_EXPR_ASSIGN", CONDITION),
    (put(CONDITION, "common_data.n++ < 3"), "E_EXPR_ASSIGN", CONDITION),
    (put(CONDITION, "`${common_data.a = 1}`"), "E_EXPR_ASSIGN", CONDITION),
    (put("/states/1/input", "common_data.asked = true"), "E_EXPR_ASSIGN", "/states/1/input"),
    (drop("/states/1/agent"), "E_REQUIRED", "/states/1/agent"),
    (put("/states/1/ask", {"question": "Well?"}), "E_AMBIGUOUS_ACTION", "/states/1/ask"),
    (put("/states/1/action", {"sub_workflow": "base"}), "E_AMBIGUOUS_ACTION", "/states/1/action"),
    (put("/states/0/action", {"sub_workflow": "base"}), "E_SUB_CYCLE", ""),
    (put("/states/0/action", {"sub_workflow": "nobody"}), "E_UNKNOWN_WORKFLOW", "/states/0/action/sub_workflow"),
    (put("/states/0/action", {"sub_workflow": "file:///etc"}), "E_NAME", "/states/0/action/sub_workflow"),
    (put("/states/0/action", {"function": "script"}), "E_REQUIRED", "/states/0/action/script"),
    (put("/workflow_name", ""), "E_NAME", "/workflow_name"),
    (put("/workflow_name", "a b"), "E_NAME", "/workflow_name"),
    (put("/workflow_name", "base\n"), "E_NAME", "/workflow_name"),
    (put("/workflow_name", "COM1"), "E_NAME", "/workflow_name"),
    (put("/workflow_name", "constructor"), "E_NAME", "/workflow_name"),
    (put("/states/1/name", ""), "E_NAME", "/states/1/name"),
    (put("/states/1/name", "co\u200bde"), "E_NAME", "/states/1/name"),
    (put("/states/1/name", "a" * 1000), "E_NAME", "/states/1/name"),
    (put("/states/1/name", "__proto__"), "E_NAME", "/states/1/name"),
    (put("/agents/0/agent_role", "constructor"), "E_NAME", "/agents/0/agent_role"),
    (put("/contexts/0/name", "a\nb"), "E_NAME", "/contexts/0/name"),
    (put("/input/name", "__proto__"), "E_NAME", "/input/name"),
    (put("/output/name", "toString"), "E_NAME", "/output/name"),
    (put("/variables/x", {"deep": [{"__proto__": 1}]}), "E_NAME", "/variables/x/deep/0/__proto__"),
    (put("/variables/", 1), "E_NAME", "/variables/"),
    (put("/states/1/states", [{"name": "inner"}]), "E_AMBIGUOUS_STATES", "/states/1/agent"),
    (put("/states/0", {"name": "both", "parallel": [{"name": "one"}]}), "E_REQUIRED", "/states/0/parallel/0/states"),
    (
        put("/states/1", {"name": "out", "states": [{"name": "in", "agent": "coder"}]}),
        "E_NO_EXIT",
        "/states/1/states/0",
    ),
    (
        put("/states/0", {"name": "q", "ask": {"question": "?", "schema": {"properties": {"a": {"type": "text"}}}}}),
        "E_SCHEMA",
        "/states/0/ask/schema/properties/a/type",
    ),
    (
        put("/states/0", {"name": "q", "ask": {"question": "?", "schema": {"required": 1}}}),
        "E_SCHEMA",
        "/states/0/ask/schema/required",
    ),
    (
        put("/states/0", {"name": "q", "ask": {"question": "?", "answer": "__proto__"}}),
        "E_NAME",
        "/states/0/ask/answer",
    ),
    (put(CONDITION, "1 + " * 30_000 + "1"), "E_LIMIT_SCRIPT", CONDITION),
    (
        put("/states", [{"name": f"s{number}", "transition": ON} for number in range(MOST + 1)]),
        "E_LIMIT_STATES",
        "/states",
    ),
    (put("/states/1/max_visits", 0), "E_RANGE", "/states/1/max_visits"),
    (put("/states/1/timeout", 0), "E_RANGE", "/states/1/timeout"),
]
WARNINGS: list[tuple[Change, str, str]] = [
    (drop("/output/description"), "W_DESCRIPTION", "/output/description"),
    (drop("/description"), "W_DESCRIPTION", "/description"),
    (put("/states/1/transitions", []), "W_UNKNOWN_KEY", "/states/1/transitions"),
    (put("/verison", 2), "W_UNKNOWN_KEY", "/verison"),
    (put("/states/1/transition/0/befor", ""), "W_UNKNOWN_KEY", "/states/1/transition/0/befor"),
    (put("/states/4", {"name": "idle", "transition": ON}), "W_UNREACHABLE", "/states/4"),
    (
        put("/states/1/transition/1", {"target": "stop", "condition": "1"}),
        "W_UNREACHABLE_TRANSITION",
        "/states/1/transition/1",
    ),
    (put("/states/2/transition/0/condition", "false"), "W_NEVER_TAKEN", "/states/2/transition/0/condition"),
    (put("/contexts/1", {"name": "spare"}), "W_UNUSED", "/contexts/1"),
    (put("/agents/2", {"agent_role": "idler", "context": "talk", "role": "user"}), "W_UNUSED", "/agents/2"),
    (put("/output/name", "other"), "W_OUTPUT_UNSET", "/output/name"),
    (put("/states/0/input", "'hello'"), "W_NO_EFFECT", "/states/0/input"),
    (put("/states/3/agent", "coder"), "W_NO_EFFECT", "/states/3/agent"),
    (put("/states/3/transition", []), "W_NO_EFFECT", "/states/3/transition"),
    (put("/states/1/action/sub_workflow_input", {}), "W_NO_EFFECT", "/states/1/action/sub_workflow_input"),
    (put("/states/0/retry", {"attempts": 2}), "W_NO_EFFECT", "/states/0/retry"),
    (put("/states/1/join", "all"), "W_NO_EFFECT", "/states/1/join"),
    (drop("/states/1/input"), "W_NO_INPUT", "/states/1/input"),
    (put("/states/1/input", " "), "W_NO_INPUT", "/states/1/input"),
    (put("/states/4", {"name": "revіew", "transition": ON}), "W_CONFUSABLE_NAME", "/states/4/name"),
    (put("/states/4", {"name": "STOP", "transition": ON}), "W_CONFUSABLE_NAME", "/states/4/name"),
    (put("/states/4", {"name": "st0p", "transition": ON}), "W_CONFUSABLE_NAME", "/states/4/name"),
    (put("/states/4", {"name": "stop\u0301", "transition": ON}), "W_CONFUSABLE_NAME", "/states/4/name"),
    (put("/variables/tаsk", "attacker default"), "W_CONFUSABLE_NAME", "/variables/tаsk"),
    (put("/variables/Max_iterations", 900), "W_CONFUSABLE_NAME", "/variables/Max_iterations"),
]


@pytest.mark.parametrize(("change", "code", "pointer"), ERRORS)
@pytest.mark.covers("W14")
def test_what_cannot_work_is_an_error_where_it_stands(change: Change, code: str, pointer: str) -> None:
    found = [problem for problem in problems(changed(change)) if (problem.code, problem.pointer) == (code, pointer)]
    assert [problem.level for problem in found] == ["error"]
    assert all(problem.why and problem.remedy and problem.line for problem in found)


@pytest.mark.parametrize(("change", "code", "pointer"), WARNINGS)
def test_what_has_no_effect_or_looks_wrong_is_a_warning_and_no_error(change: Change, code: str, pointer: str) -> None:
    found = problems(changed(change))
    assert {problem.level for problem in found} == {"warning"}
    assert (code, pointer) in {(problem.code, problem.pointer) for problem in found}


@pytest.mark.parametrize(
    "condition",
    [
        "common_data.a == 1",
        "common_data.a <= 1 || common_data.a >= 3 || common_data.a != 2",
        "'x = 1' === `y = ${common_data.a === 1}`",
        "/[=]/.test(common_data.x) // n = 1",
        "common_data.list.map((x, i = 1) => x + i).length > 0",
        "common_data.list.some(function (x, least = 1) { return x > least })",
        "(([first = 1]) => first)(common_data.list) === 1",
        pytest.param("((a=" * 1_100 + "1" + ")=>1)" * 1_100, id="defaults inside defaults"),
        pytest.param("((a=" * 11_000 + "1" + ")=>1)" * 11_000, id="many defaults", marks=pytest.mark.slow),
        "(() => { let n = 0; for (const x of common_data.list) n += x; return n > 1; })()",
    ],
)
def test_a_condition_that_compares_is_not_taken_for_one_that_assigns(condition: str) -> None:
    workflow = changed(put("/variables", {"a": 1, "x": "", "list": []}))
    put("/states/2/transition/0/condition", condition)(workflow)
    assert told(workflow) == set()


def test_all_problems_of_a_file_are_told_at_once_in_the_order_of_its_lines() -> None:
    workflow = changed(drop("/workflow_name"))
    put("/input/type", "text")(workflow)
    put("/states/1/agent", "nobody")(workflow)
    found = problems(workflow)
    assert {"E_REQUIRED", "E_ENUM", "E_UNKNOWN_AGENT"} <= {problem.code for problem in found}
    assert [problem.line for problem in found] == sorted(problem.line for problem in found)


def test_what_an_engine_says_is_an_error_for_scripts_and_a_warning_for_inputs() -> None:
    around = Around(lambda scripts: ["unexpected end" if script.text.endswith("(") else "" for script in scripts])
    broken = changed(put("/states/2/transition/0/condition", "f("))
    assert [(problem.code, problem.level) for problem in problems(broken, around=around)] == [
        ("E_EXPR_SYNTAX", "error")
    ]
    words = changed(put("/states/1/input", "Please look at this ("))
    assert [(problem.code, problem.level) for problem in problems(words, around=around)] == [
        ("W_INPUT_TEXT", "warning")
    ]


def test_without_an_engine_the_check_says_that_it_did_not_look_at_scripts() -> None:
    assert [problem.code for problem in problems(BASE, around=Around())] == ["W_UNCHECKED"]


def test_functions_of_python_are_not_taken_for_javascript() -> None:
    around = Around(lambda scripts: ["not JavaScript" if script.text.startswith("py:") else "" for script in scripts])
    assert problems(changed(put("/states/1/input", "py:question")), around=around) == ()


def parent(**action: Any) -> Plain:
    workflow = changed(put("/states/0/action", {"sub_workflow": "base", **action}))
    workflow["workflow_name"] = "parent"
    workflow["variables"]["next"] = "go on"
    return workflow


@pytest.mark.covers("W15")
def test_a_sub_workflow_is_found_in_the_same_file_and_gets_what_it_takes() -> None:
    assert told(parent(sub_workflow_input={"task": "common_data.task"}), BASE) == set()
    assert told(parent(), BASE) == {("E_SUB_INPUT", "/states/0/action/sub_workflow_input")}
    wrong = told(parent(sub_workflow_input={"tsk": "1"}), BASE)
    assert wrong == {
        ("E_SUB_INPUT", "/states/0/action/sub_workflow_input"),
        ("W_NO_EFFECT", "/states/0/action/sub_workflow_input/tsk"),
    }


def test_a_circle_of_sub_workflows_is_named_also_across_files() -> None:
    ping = parent(sub_workflow_input={"task": "1"})
    pong = changed(put("/states/0/action", {"sub_workflow": "parent", "sub_workflow_input": {"task": "1"}}))
    around = Around(lambda scripts: [""] * len(scripts), lambda name: pong if name == "base" else None)
    [circle] = problems(ping, around=around)
    assert (circle.code, circle.pointer) == ("E_SUB_CYCLE", "")
    assert "parent → base → parent" in circle.why


def test_two_workflows_of_one_name_in_a_file_are_told_apart_by_their_place() -> None:
    found = problems(BASE, deepcopy(BASE))
    assert [(problem.code, problem.pointer, problem.workflow) for problem in found] == [
        ("E_DUP_NAME", "/workflow_name", "base")
    ]


def test_names_of_other_scripts_that_differ_are_not_taken_for_each_other() -> None:
    assert told(changed(put("/variables", {"はし": 1, "ばし": 2, "größe": 3, "длина": 4, "名前": 5}))) == set()


def test_two_workflows_whose_names_look_alike_are_a_warning() -> None:
    assert told(BASE, {**BASE, "workflow_name": "Base"}) == {("W_CONFUSABLE_NAME", "/workflow_name")}


def test_a_loop_through_a_state_that_looks_like_stop_is_told_by_that_name() -> None:
    def change(workflow: Plain) -> None:
        put("/states/2/transition/1/target", "ѕtop")(workflow)
        put("/states/4", {"name": "ѕtop", "transition": [{"target": "code", "condition": "true"}]})(workflow)

    assert [problem.code for problem in problems(changed(change))] == ["W_CONFUSABLE_NAME"]


@pytest.mark.parametrize("value", [None, 1, "text", True, [], [1], [[]]])
def test_what_is_no_workflow_at_all_is_an_error_at_the_top(value: Any) -> None:
    assert {
        (problem.code, problem.pointer) for problem in find_problems(read(json.dumps(value).encode()), Around())
    } == {("E_TYPE", "")}


def test_roles_and_parsing_tools_that_nobody_has_are_warnings() -> None:
    role = {"parsingTools": [{"type": "function", "function": {"name": "review_work"}}]}
    around = Around(lambda scripts: [""] * len(scripts), roles={"coder": {}, "reviewer": role})
    assert problems(BASE, around=around) == ()
    around = Around(lambda scripts: [""] * len(scripts), roles={"coder": {}})
    assert {(problem.code, problem.pointer) for problem in problems(BASE, around=around)} == {
        ("W_UNKNOWN_ROLE", "/agents/1/agent_role"),
        ("W_UNKNOWN_TOOL", "/states/2/transition/0/condition"),
    }


SHAPES = {
    "Workflow": definition.Workflow,
    "Input": definition.Parameter,
    "Output": definition.Parameter,
    "Context": definition.Context,
    "Message": definition.Message,
    "Agent": definition.Agent,
    "State": definition.StateDefinition,
    "Action": definition.Action,
    "Transition": definition.Transition,
    "Question": definition.Question,
    "Retry": definition.Retry,
    "Limits": definition.Limits,
}


@pytest.mark.covers("W8", "W14")
def test_the_published_schema_and_the_values_know_the_same_keys() -> None:
    described = {name: set(shape["properties"]) - {"$comment", "$schema"} for name, shape in SCHEMA["$defs"].items()}
    assert described == {name: {field.name for field in fields(kind)} for name, kind in SHAPES.items()}


def test_every_key_of_the_schema_is_described() -> None:
    for shape in SCHEMA["$defs"].values():
        assert all(part["description"] for part in shape["properties"].values())


@pytest.mark.parametrize("ways", [[], [{"target": "code", "condition": "common_data.next !== 'x'"}]])
@pytest.mark.parametrize("where", ["/on_no_match", "/states/1/on_no_match"])
def test_a_state_that_stops_where_nothing_matches_has_a_way_out(ways: list[Plain], where: str) -> None:
    def change(workflow: Plain) -> None:
        put("/states/1/transition", ways)(workflow)
        assert "E_NO_EXIT" in {code for code, _ in told(workflow)}
        put(where, "stop")(workflow)

    assert "E_NO_EXIT" not in {code for code, _ in told(changed(change))}


def test_a_loop_that_always_matches_has_no_way_out_whatever_happens_where_nothing_does() -> None:
    def change(workflow: Plain) -> None:
        put("/states/1/transition", [{"target": "code", "condition": "true"}])(workflow)
        put("/on_no_match", "stop")(workflow)

    assert ("E_NO_EXIT", "/states/1") in told(changed(change))


def test_an_end_that_gives_the_output_itself_needs_no_script_that_sets_it() -> None:
    def change(workflow: Plain) -> None:
        del workflow["states"][2]["transition"][1]["before"]
        assert ("W_OUTPUT_UNSET", "/output/name") in told(workflow)
        put("/states/3/input", "'done'")(workflow)

    assert ("W_OUTPUT_UNSET", "/output/name") not in told(changed(change))
