"""Reading the JSON of workflow files: what is refused, and where things stand."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.machines.workflow.document import DEEPEST, LARGEST, MOST, read

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def codes(raw: bytes) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in read(raw).problems]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "E_JSON"),
        (b"  \n ", "E_JSON"),
        (b"{'a': 1}", "E_JSON"),
        (b'{"a": 1,}', "E_JSON"),
        (b"[1 2]", "E_JSON"),
        (b"{} {}", "E_JSON"),
        (b'{"a": NaN}', "E_JSON"),
        (b'{"a": -Infinity}', "E_JSON"),
        (b'{"a": 1e999}', "E_JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "E_JSON"),
        (b'{"a": "\x01"}', "E_JSON"),
        (b'{"a": "\\x"}', "E_JSON"),
        (b'{"a": 1', "E_JSON"),
        (b"# nothing", "E_JSON"),
        ('{"a": "ä"}'.encode("latin-1"), "E_ENCODING"),
        ("{}".encode("utf-16"), "E_ENCODING"),
        ("{}".encode("utf-16-le"), "E_ENCODING"),
        ("{}".encode("utf-32-be"), "E_ENCODING"),
        (b"\xed\xa0\x80", "E_ENCODING"),
        (b'{"a": 1, "b": 2, "a": 3}', "E_DUP_KEY"),
        (b'{"a": [{"b": {"c": 1, "c": 1}}]}', "E_DUP_KEY"),
        (b'{"\\u0061": 1, "a": 1}', "E_DUP_KEY"),
        (b"[" * 100_000, "E_LIMIT_DEPTH"),
        (b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1), "E_LIMIT_DEPTH"),
        (b'"' + b"a" * LARGEST + b'"', "E_LIMIT_SIZE"),
        (b"[" + b"[]," * MOST + b"[]]", "E_LIMIT_SIZE"),
    ],
)
def test_what_readers_could_understand_differently_is_an_error(raw: bytes, code: str) -> None:
    assert codes(raw) == [(code, "")]


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("\n", 2, "the file is empty"),
        ("name: poem\n", 1, "write JSON: it begins with { or ["),
        ('{\n"a": 1 "b": 2}', 2, "write a comma before it"),
        ('{\n"a": "x === "y""}', 2, 'a " inside a text is written \\"'),
        ('{\n"a": 1, }', 2, "remove the comma before the bracket"),
        ('{"a": [\n1, ]}', 2, "remove the comma before the bracket"),
        ("{\n'a': 1}", 2, "straight double quotes"),
        ("{\n“a”: 1}", 2, "straight double quotes"),
        ('{"a":\n True}', 2, "write null, true or false"),
        ('{"a": 1\n}{}', 2, "put several workflows into an array"),
        ('{"a": "one\ntwo"}', 1, "write a line break inside a text as \\n"),
        ('{"a": "\\d"}', 1, "write a backslash inside a text as \\\\"),
        ('{"a": "b}', 1, 'close the text with a "'),
        ('{"a": [1\n', 2, "the file ends too early"),
        ('{"a": 1, // one\n"b": 2}', 1, "JSON has no comments"),
        ('{"a"; 1}', 1, "correct the text around it"),
    ],
)
def test_what_people_write_by_mistake_is_told_with_what_to_do(text: str, line: int, remedy: str) -> None:
    [problem] = read(text.encode()).problems
    assert (problem.code, problem.line) == ("E_JSON", line)
    assert remedy in problem.remedy


def test_half_a_character_is_refused_where_it_stands() -> None:
    assert codes(b'{"a": ["x", "\\ud800"]}') == [("E_ENCODING", "/a/1")]
    assert codes(b'{"a": "\\ud83d\\ude00"}') == []


def test_every_key_that_stands_twice_is_told_with_both_lines() -> None:
    problems = read(b'{"a": 1,\n"b": 2,\n"a": 3,\n"b": 4}').problems
    assert [problem.line for problem in problems] == [3, 4]
    assert "line 1 and again on line 3" in problems[0].why


def test_a_byte_order_mark_does_not_matter() -> None:
    assert read(b'\xef\xbb\xbf{"a": 1}').value == {"a": 1}


def test_whole_numbers_beyond_those_that_scripts_can_count_are_rounded_as_scripts_do() -> None:
    assert read(b"[9007199254740993, 9007199254740992, 12345678901234567890123]").value == [
        9007199254740992.0,
        9007199254740992,
        1.2345678901234568e22,
    ]


def test_a_value_that_is_missing_has_the_line_of_what_should_have_it() -> None:
    document = read(b'{\n "a": [\n  1,\n  {"b~/c": 2}\n ]\n}')
    assert [document.line(pointer) for pointer in ("", "/a", "/a/0", "/a/1/b~0~1c", "/a/1/none", "/no")] == [
        1,
        2,
        3,
        4,
        4,
        1,
    ]


@given(JSON)
def test_whatever_json_says_is_read_and_every_value_has_a_line(value: object) -> None:
    document = read(json.dumps(value, indent=1).encode())
    assert not document.problems
    assert document.value == value
    todo = [("", document.value)]
    while todo:
        pointer, part = todo.pop()
        assert pointer in document.lines
        inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        todo += [(f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", item) for key, item in inside]


@given(st.binary())
def test_no_bytes_bring_the_reader_down(raw: bytes) -> None:
    document = read(raw)
    assert document.problems or document.lines


def test_depth_does_not_depend_on_the_limit_of_the_interpreter() -> None:
    assert sys.getrecursionlimit() > DEEPEST
    assert not read(b'{"a":' * DEEPEST + b"1" + b"}" * DEEPEST).problems
