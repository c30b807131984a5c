"""`scripted:FILE` says what was written down, and names the place where something is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError
from moothall.models.scripted import ScriptedModel


def script(folder: Path, content: Any) -> Path:
    file = folder / "script.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def request(agent: str, nth: int) -> Request:
    return Request(agent, "a prompt", f"run.{nth}.0", nth)


@pytest.mark.anyio
async def test_the_nth_call_of_an_agent_gets_its_nth_reply(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(script(tmp_path, {"writer": ["one", "two"], "critic": ["no"]}))
    assert await model.reply(request("writer", 2)) == Reply("two")
    assert await model.reply(request("writer", 1)) == Reply("one")
    assert await model.reply(request("critic", 1)) == Reply("no")


@pytest.mark.anyio
async def test_a_reply_may_have_a_value_and_usage(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(script(tmp_path, {"critic": [{"value": {"good": True}, "usage": {"usd": 0.1}}]}))
    assert await model.reply(request("critic", 1)) == Reply("", {"good": True}, {"usd": 0.1})


@pytest.mark.anyio
@pytest.mark.parametrize(("agent", "nth", "has"), [("writer", 2, 1), ("stranger", 1, 0)])
async def test_a_reply_that_is_missing_is_named_with_its_number(tmp_path: Path, agent: str, nth: int, has: int) -> None:
    file = script(tmp_path, {"writer": ["one"]})
    with pytest.raises(DefinitionError) as error:
        await ScriptedModel.from_file(file).reply(request(agent, nth))
    assert str(error.value) == f"{file} has {has} replies for {agent!r}; this would be number {nth}"


@pytest.mark.anyio
async def test_the_log_notes_every_call_by_its_key_before_it_is_answered(tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    model = ScriptedModel.from_file(script(tmp_path, {"writer": ["one"]}), log)
    await model.reply(request("writer", 1))
    with pytest.raises(DefinitionError):
        await model.reply(request("writer", 2))
    assert log.read_text().splitlines() == ["run.1.0 writer", "run.2.0 writer"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{half", "the script is no JSON"),
        ("[]", "the script: expected an object"),
        ({"writer": "one"}, "the script.writer: expected a list"),
        ({"writer": [3]}, "writer[0]: expected a text, or an object with text, value, usage and seconds, got 3"),
        ({"writer": [{"txt": "x"}]}, "writer[0]: "),
        ({"writer": [{"seconds": "x"}]}, "writer[0].seconds: expected a number"),
        ({"writer": [{"usage": {"usd": "x"}}]}, "writer[0].usage.usd: expected a number"),
    ],
)
def test_a_script_with_a_mistake_names_the_file_and_the_place(tmp_path: Path, content: Any, complaint: str) -> None:
    file = script(tmp_path, content)
    with pytest.raises(DefinitionError) as error:
        ScriptedModel.from_file(file)
    assert str(error.value).startswith(f"{file}: {complaint}")


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"none\.json: the script cannot be read: No such file"):
        ScriptedModel.from_file(tmp_path / "none.json")


def test_a_script_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match=r"script\.json: the script is no JSON"):
        ScriptedModel.from_file(tmp_path / "script.json")
