"""Agents of a debate that have tools called: `--files`, `tools`, `toolCallLimit`, and what is shown of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.ran import Moot, Ran

PROBLEM = "Where to keep sales?"
WRONG_USAGE, WRONG = 2, 4
REPLIES: tuple[Mapping[str, Any], ...] = (
    {"contains": "Propose a solution", "value": {"text": "One file.", "confidence": 60}},
    {"contains": "You review", "value": {"reviews": [{"label": "A", "text": "Too short."}]}},
    {"contains": "Refine your own", "value": {"text": "One file, and a backup.", "confidence": 70}},
    {"contains": "Say how sure you are", "value": {"confidence": 90}},
    {"contains": "Write the solution", "value": {"description": "One file with a backup.", "confidence": 80}},
)
Rules = list[Mapping[str, Any]]
READ = {"tool": "read_file", "arguments": {"path": "now.txt"}}
LOOKED = ({"agent": "architect", "contains": ["Propose", "SQLite today"], "value": {"text": "As now.txt says."}},)


def debated(moot: Moot, rules: Sequence[Mapping[str, Any]], *more: str) -> Ran:
    Path("script.json").write_text(json.dumps({"rules": [*rules, *REPLIES]}))
    Path("docs").mkdir(exist_ok=True)
    Path("docs/now.txt").write_text("Sales are kept in SQLite today.\n")
    return moot("debate", PROBLEM, "--model", "scripted:script.json", "--run-id", "till", *more)


def calling(*calls: Mapping[str, Any], contains: str = "Propose a solution") -> dict[str, Any]:
    return {"agent": "architect", "contains": contains, "calls": list(calls)}


def configured(**seat: Any) -> tuple[str, ...]:
    plain = {"agents": [{"id": "architect", "role": "architect", **seat}, {"id": "kiss", "role": "kiss"}]}
    Path("config.json").write_text(json.dumps(plain))
    return "-c", "config.json"


@pytest.mark.covers("D8")
def test_the_panel_looks_into_a_folder_and_json_report_and_document_say_what_was_called(moot: Moot) -> None:
    ran = debated(moot, [*LOOKED, calling(READ)], "-a", "architect,kiss", "--files", "docs", "--json", "-o", "x.md")
    assert (ran.code, ran.json["solution"]["description"]) == (0, "One file with a backup.")
    assert [(use["agent"], use["round"], use["node"], use["tool"], use["end"]) for use in ran.json["tool_calls"]] == [
        ("architect", 1, "Proposal", "read_file", "returned")
    ]
    assert [(seat["id"], seat["tool_calls"]) for seat in ran.json["agents"]] == [("architect", 1), ("kiss", 0)]
    row = '| architect | 1 | Proposal | read\\_file | \\{"path": "now.txt"\\} | returned |'
    assert row in moot("report", "till", "--format", "md").out
    assert row in Path("x.md").read_text()
    assert moot("replay", "till").code == 0


def test_a_folder_of_files_is_only_read_and_nothing_is_saved_of_it(moot: Moot) -> None:
    rules: Rules = [
        {"agent": "architect", "contains": ["Propose", "there is no tool"], "value": {"text": "I cannot write."}},
        calling({"tool": "write_file", "arguments": {"path": "now.txt", "content": "gone"}}),
    ]
    ran = debated(moot, rules, "-a", "architect,kiss", "--files", "docs", "--json")
    assert (ran.code, ran.json["tool_calls"]) == (0, [])
    assert Path("docs/now.txt").read_text() == "Sales are kept in SQLite today.\n"
    assert moot("saves", "till", "--json").json == []


def test_a_tool_that_writes_is_refused_in_a_folder_that_is_only_read(moot: Moot) -> None:
    ran = debated(moot, [], *configured(tools=["write_file"]), "--files", "docs")
    assert ran.code == WRONG
    assert "architect has the tool write_file, and there is no folder to work in" in ran.err


def test_a_folder_is_read_or_worked_in_but_not_both(moot: Moot) -> None:
    assert debated(moot, [], "--files", "docs", "--workspace", "docs").code == WRONG_USAGE


@pytest.mark.covers("D8")
@pytest.mark.parametrize("at_once", [True, False], ids=["in one reply", "one by one"])
def test_no_more_tools_are_called_before_one_reply_than_the_limit_says(moot: Moot, at_once: bool) -> None:
    told = {"agent": "architect", "contains": ["Propose", "at most 2 calls of tools"], "value": {"text": "Enough."}}
    rules = [told, calling(*[READ] * (3 if at_once else 1))]
    given = configured(tools=["read_file"], toolCallLimit=2)
    ran = debated(moot, rules, *given, "--files", "docs", "--json", "-v")
    assert (ran.code, len(ran.json["tool_calls"])) == (0, 2)
    assert "architect: proposes: Enough." in ran.err


def test_an_agent_that_goes_on_calling_beyond_its_limit_is_left_out_and_says_why(moot: Moot) -> None:
    given = configured(tools=["read_file"], toolCallLimit=2)
    ran = debated(moot, [calling(READ)], *given, "--files", "docs", "--json")
    assert (ran.code, len(ran.json["tool_calls"])) == (0, 4)  # the node asks it a second time
    assert "it still wanted tools after its last round" in ran.json["agents"][0]["status"]


def test_functions_are_tools_too_and_one_that_fails_is_shown_to_the_agent(moot: Moot) -> None:
    Path("own.py").write_text(
        "async def tills(shop: str) -> int:\n    if shop == 'x':\n        raise ValueError\n    return 7\n"
    )
    failing = {"tool": "tills", "arguments": {"shop": 3}}
    rules: Rules = [
        {"agent": "architect", "contains": ["Propose", '"value": 7'], "value": {"text": "Seven tills."}},
        {
            "agent": "architect",
            "contains": ["Propose", "was not called"],
            "calls": [{**failing, "arguments": {"shop": "a"}}],
        },
        calling(failing),
    ]
    ran = debated(moot, rules, *configured(tools=["tills"]), "--functions", "own.py", "--json")
    assert [(use["arguments"], use["end"]) for use in ran.json["tool_calls"]] == [
        ({"shop": 3}, "failed"),
        ({"shop": "a"}, "returned"),
    ]


def test_the_judge_may_have_tools(moot: Moot) -> None:
    plain = {"judge": {"id": "judge", "role": "judge", "tools": ["read_file"]}}
    Path("config.json").write_text(json.dumps(plain))
    rules: Rules = [
        {"agent": "judge", "contains": ["Write the solution", "SQLite today"], "value": {"description": "I looked."}},
        {"agent": "judge", "contains": "Write the solution", "calls": [READ]},
        {"contains": "Rank", "value": {"ranking": ["A", "B"]}},
    ]
    ran = debated(moot, rules, "-c", "config.json", "--workspace", "docs", "--json")
    assert (ran.code, ran.json["solution"]["description"]) == (0, "I looked.")
    assert [(use["agent"], use["node"]) for use in ran.json["tool_calls"]] == [("judge", "Synthesis")]


def test_a_person_approves_what_a_tool_would_do_and_the_debate_goes_on(moot: Moot) -> None:
    write = {"tool": "write_file", "arguments": {"path": "done.txt", "content": "yes"}}
    rules: Rules = [
        {"agent": "judge", "contains": ["Write the solution", "was written"], "value": {"description": "Written."}},
        {"agent": "judge", "contains": "Write the solution", "calls": [write]},
        {"contains": "Rank", "value": {"ranking": ["A", "B"]}},
    ]
    Path("config.json").write_text(json.dumps({"judge": {"id": "judge", "tools": ["write_file"]}}))
    given = ("-c", "config.json", "--workspace", "docs", "--policy", "write_file=ask", "--json")
    ran = debated(moot, rules, *given)
    assert ran.code == 5
    assert ran.json["tool_calls"][0]["end"] == "open"
    asked = ran.json["questions"][0]
    assert "judge wants to call write_file" in asked["prompt"]
    assert moot("answer", asked["run"], "--yes").code == 0
    assert Path("docs/done.txt").read_text() == "yes"
    assert moot("resume", "till", "--json").json["tool_calls"][0]["end"] == "returned"


@pytest.mark.parametrize("name", ["debate-3x3x3x1x10", "debate-1x2x0x0x3-asks"])
def test_a_debate_with_tools_is_bounded_and_nothing_is_wrong_with_it(moot: Moot, name: str) -> None:
    ran = moot("check", name)
    assert (ran.code, "bounded: at most" in ran.out + ran.err) == (0, True)
    assert "warning" not in ran.out + ran.err
