"""`scripted:FILE` says what was written down, and names the place where something is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError, EffectFailed
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
        ("{half", "the script is not JSON"),
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
    with pytest.raises(DefinitionError, match=r"script\.json: the script is not JSON"):
        ScriptedModel.from_file(tmp_path / "script.json")


# by rule


def asked(agent: str, prompt: str, nth: int = 1, run: str = "run") -> Request:
    return Request(
        agent, prompt, f"{run}.{nth}.0", nth, system="You are kind.", messages=({"role": "user", "text": "Hi"},)
    )


RULES: list[Any] = [
    {"agent": "judge", "contains": "round 1", "value": {"agreed": False}, "usage": {"usd": 0.1}},
    {"agent": "judge", "value": {"agreed": True}},
    {"contains": ["kind", "tides"], "reply": "The Moon pulls."},
    {"contains": "Hi", "agent": "host", "reply": "Hello."},
]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("agent", "prompt", "reply"),
    [
        ("judge", "This is round 1.", Reply("", {"agreed": False}, {"usd": 0.1})),
        ("judge", "This is round 2.", Reply("", {"agreed": True})),
        ("ann", "About tides", Reply("The Moon pulls.")),
        ("host", "", Reply("Hello.")),
        ("bob", "Anything", Reply("bob as always")),
    ],
)
async def test_the_first_rule_that_fits_is_taken_before_replies_in_order(
    tmp_path: Path, agent: str, prompt: str, reply: Reply
) -> None:
    model = ScriptedModel.from_file(script(tmp_path, {"rules": RULES, "bob": ["bob as always"]}))
    assert await model.reply(asked(agent, prompt)) == reply


@pytest.mark.anyio
async def test_a_file_may_be_nothing_but_rules(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(script(tmp_path, RULES))
    assert (await model.reply(asked("ann", "About tides"))).text == "The Moon pulls."


@pytest.mark.anyio
async def test_a_rule_with_times_is_good_for_so_many_calls_of_a_run(tmp_path: Path) -> None:
    rules = [{"agent": "ann", "fail": "overloaded", "times": 1}, {"agent": "ann", "reply": "Well."}]
    model = ScriptedModel.from_file(script(tmp_path, {"rules": rules}))
    for run in ("first", "second"):
        with pytest.raises(EffectFailed, match="overloaded"):
            await model.reply(asked("ann", "Now?", run=run))
        assert (await model.reply(asked("ann", "Now?", run=run))).text == "Well."


@pytest.mark.anyio
async def test_a_rule_may_fail_for_good(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(script(tmp_path, [{"fail": "no such model", "final": True}]))
    with pytest.raises(EffectFailed) as failure:
        await model.reply(asked("ann", "Now?"))
    assert failure.value.final


@pytest.mark.anyio
async def test_a_request_that_nothing_fits_is_named_with_agent_and_number(tmp_path: Path) -> None:
    file = script(tmp_path, {"rules": RULES, "bob": ["once"]})
    with pytest.raises(DefinitionError) as error:
        await ScriptedModel.from_file(file).reply(asked("bob", "Again", 2))
    assert str(error.value).startswith(
        f"{file} has nothing for call 2 of 'bob': none of its 4 rules fits, and there are 1 replies in order"
    )


@pytest.mark.anyio
async def test_an_agent_may_be_called_rules(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(script(tmp_path, {"rules": ["Keep left."]}))
    assert (await model.reply(asked("rules", "Well?"))).text == "Keep left."


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ({"agent": "ann"}, "rules[0]: it says nothing; give it a reply, a value, calls or fail"),
        ({"replay": "x"}, "rules[0]: unknown field 'replay'"),
        ({"reply": "x", "times": "often"}, "rules[0].times: "),
    ],
)
def test_a_rule_with_a_mistake_is_named(tmp_path: Path, rule: Any, complaint: str) -> None:
    file = script(tmp_path, {"rules": [rule]})
    with pytest.raises(DefinitionError) as error:
        ScriptedModel.from_file(file)
    assert str(error.value).startswith(f"{file}: {complaint}")
