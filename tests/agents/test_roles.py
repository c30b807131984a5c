"""Roles: the library, what a user lays over it, and which tools a role has."""

from typing import Any

import pytest

from moothall.agents.roles import Role, over_shipped, role_notes, roles, shipped_roles
from moothall.errors import DefinitionError

TOOLS = ("read_file", "write_file", "edit_file", "execute_terminal", "git_status", "git_diff")


def test_every_shipped_role_can_be_read_and_has_a_prompt_of_its_own() -> None:
    found = roles({})
    assert found.keys() >= {"coder", "reviewer", "architect", "product_manager", "tester", "security", "performance"}
    assert found.keys() >= {"kiss", "generalist", "datamodeling"}
    assert len({role.systemMessage for role in found.values()}) == len(found)
    assert all(len(role.systemMessage) > 80 for role in found.values())


@pytest.mark.parametrize(
    ("role", "name", "required"),
    [("reviewer", "review_work", ["improvement_needed"]), ("product_manager", "task_approval", ["approved"])],
)
def test_the_decisions_that_workflow_files_rely_on_are_shipped(role: str, name: str, required: list[str]) -> None:
    [tool] = roles({})[role].parsingTools
    assert tool.function.name == name
    assert tool.function.parameters["required"] == required


def test_a_role_of_a_user_is_laid_over_the_shipped_one_field_by_field() -> None:
    reviewer = roles({"reviewer": {"level": "fast", "reminder": "Be brief."}})["reviewer"]
    assert (reviewer.level, reviewer.reminder) == ("fast", "Be brief.")
    assert reviewer.systemMessage == shipped_roles()["reviewer"]["systemMessage"]
    assert reviewer.parsingTools == roles({})["reviewer"].parsingTools


def test_what_a_check_sees_of_a_role_is_what_a_run_has_of_it() -> None:
    laid = over_shipped({"reviewer": {"systemMessage": "Strict."}, "mine": {"level": "fast"}})
    assert laid["reviewer"] == {**shipped_roles()["reviewer"], "systemMessage": "Strict."}
    assert laid["mine"] == {"level": "fast"}
    assert laid.keys() == {*shipped_roles(), "mine"}


def test_a_role_that_names_the_tools_it_has_replaces_the_list_of_those_it_has_not() -> None:
    reviewer = roles({"reviewer": {"includedTools": ["git_*"]}})["reviewer"]
    assert [tool for tool in TOOLS if reviewer.may_use(tool)] == ["git_status", "git_diff"]


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({}, list(TOOLS)),
        ({"includedTools": []}, []),
        ({"includedTools": ["read_file"]}, ["read_file"]),
        ({"includedTools": ["*"]}, list(TOOLS)),
        ({"includedTools": ["*_file"]}, ["read_file", "write_file", "edit_file"]),
        ({"includedTools": ["/^git/"]}, ["git_status", "git_diff"]),
        ({"includedTools": ["/_(file|diff)$/"]}, ["read_file", "write_file", "edit_file", "git_diff"]),
        ({"excludedTools": ["execute_*", "/write/"]}, ["read_file", "edit_file", "git_status", "git_diff"]),
        ({"excludedTools": ["/WRITE|^EXEC/i"]}, ["read_file", "edit_file", "git_status", "git_diff"]),
        ({"excludedTools": ["/(WR|ED)+.+_FILE.*/gimsu"]}, ["read_file", "execute_terminal", "git_status", "git_diff"]),
        ({"includedTools": ["/GIT/"]}, []),
        ({"includedTools": ["/^GIT/i"]}, ["git_status", "git_diff"]),
        ({"includedTools": ["read.file", "READ_FILE"]}, []),
    ],
)
def test_tools_are_named_exactly_with_stars_or_as_regular_expressions(fields: Any, allowed: list[str]) -> None:
    role = roles({"mine": fields})["mine"]
    assert [tool for tool in TOOLS if role.may_use(tool)] == allowed


def test_entries_that_match_no_tool_can_be_named() -> None:
    role = Role(excludedTools=("write_file", "writefile", "/^git/", "x*"))
    assert role.idle_entries(TOOLS) == ("writefile", "x*")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "expected an object of roles by name, got list"),
        ({"mine": "coder"}, "mine: expected an object, got str"),
        ({"mine": {"level": "clever"}}, "mine.level"),
        ({"mine": {"includedTools": ["a"], "excludedTools": ["b"]}}, "name one of them"),
        ({"mine": {"excludedTools": ["/(/"]}}, "is not a regular expression"),
        ({"mine": {"excludedTools": ["/(/i"]}}, "'/(/i' is not a regular expression"),
        ({"mine": {"excludedTools": ["/git/x"]}}, "'x' behind the last / is not a flag; there are g, i, m, s, u"),
        ({"mine": {"includedTools": ["/git/ii"]}}, "'i' behind the last / is there twice"),
        ({"mine": {"excludedTools": ["/git/*"]}}, "'*' behind the last / is not a flag"),
        ({"mine": {"parsingTools": [{"type": "function"}]}}, "parsingTools"),
    ],
)
def test_a_mistake_in_a_role_names_the_role_and_the_field(given: Any, says: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        roles(given, "roles.json")
    assert says in str(caught.value)
    assert str(caught.value).startswith("roles.json: ")


WILD = {
    "decider": {
        "systemMessage": "Decide.",
        "temprature": 0.3,
        "systemmessage": "no",
        "parsingTools": [
            {
                "type": "function",
                "parsingOnly": True,
                "function": {"name": "decide", "parameters": {"type": "object"}, "strict": True},
            },
            {"name": "flat", "description": "as some write it", "parameters": {"type": "object"}},
        ],
        "examples": [
            {"role": "user", "content": "Look at it", "weight": 1},
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "it is blue"},
            {"role": "assistant", "content": [{"type": "text", "text": "So it is."}]},
            {"role": "tool", "tool_call_id": "a", "content": "done"},
        ],
    },
    "unused": {"level": "clever", "includedTools": ["/(/"]},
    "odd": "not even an object",
}


def test_what_other_programs_write_into_a_role_is_passed_over_with_a_word_and_a_guess() -> None:
    role = roles(WILD, used=["decider"])["decider"]
    assert [tool.function.name for tool in role.parsingTools] == ["decide", "flat"]
    assert [(example.role, example.content) for example in role.examples] == [
        ("user", "Look at it"),
        ("assistant", "[called look({})]"),
        ("user", "[look returned: it is blue]"),
        ("assistant", "So it is."),
        ("user", "[the tool returned: done]"),
    ]
    notes = "\n".join(role_notes(WILD, ["decider"]))
    assert "decider: 'temprature' is not known and passed over" in notes
    assert "decider: 'systemmessage' is not known and passed over; did you mean 'systemMessage'?" in notes
    assert "decider.parsingTools[0]: 'parsingOnly' is not known and passed over" in notes
    assert "decider.examples[2]: an example of role 'function' is shown as what somebody says" in notes
    assert "unused.level" in notes
    assert "odd: expected an object, got str; the role is not used here" in notes


def test_a_role_that_is_used_and_cannot_be_read_is_still_wrong() -> None:
    with pytest.raises(DefinitionError, match=r"unused\.level"):
        roles(WILD, used=["decider", "unused"])


@pytest.mark.parametrize(
    ("entry", "tool", "is_meant"),
    [
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "axxcyyb", False),
        ("*", "", True),
        ("ab*ba", "aba", False),
        ("/^git_/", "git_push", True),
        ("/(git|hg)_(push|pull)/", "my_hg_pull", True),
        ("/^(?!rm_)[a-z_]+$/", "rm_all", False),
        (r"/(\w+)_\1/", "a_a", True),
        ("/(a|b)*c+d*/", "ababc", True),
    ],
)
def test_an_entry_means_the_tools_that_it_says(entry: str, tool: str, is_meant: bool) -> None:
    assert Role(includedTools=(entry,)).may_use(tool) is is_meant


@pytest.mark.parametrize("entry", ["/^(a+)+$/", "/(a|a)*b/", "/(a|aa)+$/", r"/^(a?){30}\1{30}$/", "a*" * 60 + "b"])
@pytest.mark.slow
def test_an_entry_that_would_take_for_ever_is_refused_or_answered(entry: str) -> None:
    told = ""
    try:
        told = str(Role(includedTools=(entry,)).may_use("a" * 60 + "!"))
    except DefinitionError as error:
        told = str(error)
    assert told == "False" or "takes too long on the name" in told


@pytest.mark.parametrize("entry", ["/" + "(" * 400 + ")" * 99 + "/", "/a{99999999999}/", "x" * 501, "/*/"])
def test_an_entry_that_is_no_pattern_is_refused_in_words(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is not a regular expression|has more than 500 characters"):
        Role(excludedTools=(entry,))
