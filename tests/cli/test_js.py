"""`moot js`: one text, evaluated as a workflow file would."""

import json
from pathlib import Path

import pytest

from tests.cli.ran import Moot

DATA = {
    "common_data": {"count": 3, "name": "Zoë", "list": [1, 2]},
    "tool_calls": {"coder": [{"function": {"name": "edit_file", "arguments": {}}}]},
    "last_parsing_tool_calls": [{"function": {"name": "review_work", "arguments": {"improvement_needed": True}}}],
}


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    return "data.json"


def test_the_value_is_printed_as_json(moot: Moot, data: str) -> None:
    ran = moot("js", "[common_data.name, getToolCalls('coder').length, function.review_work.arguments]", "--data", data)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == '["Zoë", 1, {"improvement_needed": true}]\n'


def test_no_data_are_needed(moot: Moot) -> None:
    assert moot("js", "1 + 1").out == "2\n"
    assert moot("js", "common_data.x").out == "undefined\n"


@pytest.mark.parametrize(("text", "value"), [("-1", -1), ("-1e1", -10), ("-Math.min(2,3)", -2)])
def test_behind_two_dashes_a_text_may_begin_with_one(moot: Moot, text: str, value: int) -> None:
    assert moot("js", "--json", "--", text).json == {"value": value}


def test_behind_two_dashes_no_text_is_an_option(moot: Moot) -> None:
    assert "json is not defined" in moot("js", "--", "--json").err
    assert "there is no file -x.json" in moot("check", "--", "-x.json", "-y.json").err


def test_two_dashes_with_nothing_behind_them_are_no_argument(moot: Moot) -> None:
    assert moot("js", "1", "--").out == "1\n"
    assert moot("ls", "--").code == 0


def test_behind_two_dashes_a_folder_may_begin_with_one(moot: Moot) -> None:
    ran = moot("conformance", "--", "-x")
    assert (ran.code, "-x/index.tsv cannot be read" in ran.err) == (4, True)


def test_what_is_too_much_behind_two_dashes_is_named_as_it_was_given(moot: Moot) -> None:
    ran = moot("js", "--", "1", "--more", "-x")
    assert ran.code == 2
    assert ran.err.endswith("moot js: error: unrecognized arguments: --more -x\n")


def test_as_json_an_answer_can_be_told_from_none(moot: Moot) -> None:
    assert moot("js", "null", "--json").json == {"value": None}
    assert moot("js", "undefined", "--json").json == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nobody.x", "ReferenceError: nobody is not defined"),
        ("1 +", "SyntaxError: "),
        ("(() => { for (;;); })()", "stopped after 0.25 s of processor time"),
        ("'x'.repeat(2 ** 29)", "stopped: it needs more than 32 MB of memory"),
        ("common_data.x = 1", "only common_data is written back, and only by scripts"),
    ],
)
def test_what_fails_or_is_stopped_exits_with_1_and_says_why(moot: Moot, text: str, reason: str) -> None:
    ran = moot("js", text)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("moot js: ")
    assert reason in ran.err
    as_json = moot("js", text, "--json")
    assert as_json.code == 1
    assert reason in as_json.json["failed"]


@pytest.mark.parametrize(
    ("thrown", "told"),
    [
        ("null", "null was thrown, or it needs more than 32 MB of memory"),
        ("'null'", "null was thrown"),
        ("undefined", "undefined was thrown"),
        ("{ message: 'x' }", "an object was thrown: x"),
        ("{}", "an object was thrown"),
        ("{ name: 'Late' }", "Late"),
        ("new Error('x')", "Error: x"),
    ],
)
def test_what_a_text_throws_is_told_as_what_it_is(moot: Moot, thrown: str, told: str) -> None:
    for way in ((f"throw {thrown}", "--script"), (f"(() => {{ throw {thrown} }})()",)):
        assert moot("js", *way).err == f"moot js: {told}\n"


def test_a_text_that_throws_nothing_and_has_no_room_for_an_error_is_told_of_its_memory(moot: Moot) -> None:
    text = "(() => { const all = []; for (;;) all.push([]) })()"
    assert moot("js", text).err == "moot js: stopped: it needs more than 32 MB of memory\n"


@pytest.mark.parametrize("name", ["Intl", "structuredClone"])
def test_names_that_the_manual_says_are_missing_are_missing(moot: Moot, name: str) -> None:
    assert moot("js", name).err == f"moot js: ReferenceError: {name} is not defined\n"


def test_a_script_shows_what_becomes_of_common_data(moot: Moot, data: str) -> None:
    script = "() => { this.common_data.count += 1; delete this.common_data.list }"
    assert moot("js", script, "--script", "--data", data, "--json").json == {"value": {"count": 4, "name": "Zoë"}}


def test_time_and_chance_stand_in_the_data(moot: Moot) -> None:
    text = "[new Date().getFullYear(), Math.random()]"
    first, again = (moot("js", text, "--data", '{"now": 1700000000, "seed": 1}').out for _ in range(2))
    assert first == again != moot("js", text, "--data", '{"now": 1700000000, "seed": 2}').out
    assert json.loads(first)[0] == 2023


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("[1]", "must be an object"),
        ('{"comon_data": {}}', "'comon_data', which no text can see"),
        ('{"common_data": []}', "common_data in the data must be an object"),
        ('{"last_tool_calls": {}}', "last_tool_calls in the data must be a list"),
        ('{"agents": {"coder": 1}}', "agents in the data must hold an object for each name"),
        ('{"now": true}', "now in the data must be a number of seconds"),
        ('{"common_data": {"x": NaN}}', "plain JSON"),
        ('{"common_data": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_data_that_cannot_be_used_are_refused(moot: Moot, data: str, why: str) -> None:
    ran = moot("js", "1", "--data", data)
    assert (ran.code, ran.out) == (1, "")
    assert why in ran.err
    assert "Traceback" not in ran.err


def test_data_may_stand_on_the_command_line_however_long(moot: Moot) -> None:
    data = json.dumps({"common_data": {"text": "x" * 5000}})
    assert moot("js", "common_data.text.length", "--data", data).out == "5000\n"


def test_without_an_expression_the_usage_is_told(moot: Moot) -> None:
    assert moot("js").code == 2
