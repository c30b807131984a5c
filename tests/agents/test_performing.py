"""Agents and tools at work: one effect in, one event out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError
from moothall.kernel.codec import schema
from moothall.kernel.events import GaveUp
from moothall.performers.agents import AgentPerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime.ports import Context
from tests.agents.attentive import Attentive

CONTEXT = Context("run-1", "run-1.3.0", 2, 1)


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str = ""


def played_by(given: Any) -> AgentPerformer:
    """A performer in which `critic` is a function that returns this."""

    async def critic(prompt: str) -> Any:
        return given(prompt) if callable(given) else given

    return AgentPerformer({"critic": critic}, None, {"Verdict": Verdict, "str": str})


@pytest.mark.anyio
async def test_a_function_gets_the_rendered_prompt_and_its_text_is_the_reply() -> None:
    event = await played_by(lambda prompt: f"heard: {prompt}")(
        AskAgent("critic", "Judge {draft}", {"draft": "the sea"}), CONTEXT
    )
    assert event == Replied("critic", "heard: Judge the sea")


@pytest.mark.anyio
async def test_a_function_may_return_the_value_that_was_asked_for() -> None:
    event = await played_by(Verdict(True, "fine"))(AskAgent("critic", "Judge", {}, "Verdict"), CONTEXT)
    assert event == Replied("critic", '{"good": true, "notes": "fine"}', {"good": True, "notes": "fine"}, "Verdict")


@pytest.mark.anyio
async def test_a_text_is_also_the_value_where_a_text_was_asked_for() -> None:
    event = await played_by("short")(AskAgent("critic", "Judge", {}, "str"), CONTEXT)
    assert event == Replied("critic", "short", "short", "str")


@pytest.mark.anyio
async def test_a_function_may_return_a_whole_reply_with_its_usage() -> None:
    event = await played_by(Reply("so so", usage={"tokens": 12, "usd": 0.01}))(AskAgent("critic", "Judge"), CONTEXT)
    assert event == Replied("critic", "so so", usage={"tokens": 12, "usd": 0.01})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "usage",
    [
        {"tokens": None},
        {"tokens": "many"},
        {3: 4},
        "cheap",
        {"usd": -0.01},
        {"calls": -9},
        {"usd": 1e308},
        {"tokens": 2**70},
    ],
    ids=repr,
)
async def test_usage_that_cannot_be_counted_is_named_as_the_author_s_mistake(usage: Any) -> None:
    with pytest.raises(DefinitionError, match="the usage that critic reports cannot be counted"):
        await played_by(Reply("so so", usage=usage))(AskAgent("critic", "Judge"), CONTEXT)


@pytest.mark.anyio
@pytest.mark.parametrize("given", [None, {"good": True}, 3, Verdict(True)], ids=repr)
async def test_a_value_where_a_text_was_asked_for_is_refused_and_not_lost(given: Any) -> None:
    with pytest.raises(DefinitionError, match=r"critic returned .*reply="):
        await played_by(given)(AskAgent("critic", "Judge"), CONTEXT)


@pytest.mark.anyio
async def test_a_reply_whose_text_is_none_is_named_as_the_author_s_mistake() -> None:
    with pytest.raises(
        DefinitionError, match=r"critic returned a Reply with the text \['so', 'so'\], which is not a text"
    ):
        await played_by(Reply(["so", "so"]))(AskAgent("critic", "Judge"), CONTEXT)  # type: ignore[arg-type]


def nested(depth: int) -> list[Any]:
    return reduce(lambda inner, _: [inner], range(depth), [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2**70, "Integer exceeds 64-bit range"),
        (nested(300), "Recursion limit reached"),
        (nested(3000), "it is nested too deeply"),
    ],
    ids=["too large", "too deep", "far too deep"],
)
async def test_what_a_model_gives_and_nobody_can_store_ends_the_effect_and_is_paid_for(value: Any, why: str) -> None:
    model = Attentive(Reply(value=value, usage={"tokens": 9}))
    event = await AgentPerformer({}, model, {"any": Any})(AskAgent("critic", "Judge", {}, "any"), CONTEXT)
    assert event == GaveUp(f"critic: what it gives cannot be stored as JSON: {why}", "provider", {"tokens": 9})


@pytest.mark.anyio
async def test_half_a_character_at_the_end_of_a_reply_does_not_cost_the_reply() -> None:
    model = Attentive(Reply("the sea \ud83c", {"good": True, "notes": "\udf0a wave"}))
    event = await AgentPerformer({}, model, {"Verdict": Verdict})(AskAgent("critic", "Judge", {}, "Verdict"), CONTEXT)
    assert event == Replied("critic", "the sea ?", {"good": True, "notes": "? wave"}, "Verdict")


@pytest.mark.anyio
async def test_a_function_that_is_not_async_is_named_as_the_author_s_mistake() -> None:
    def critic(prompt: str) -> str:
        return "good"

    performer = AgentPerformer({"critic": critic}, None, {})
    with pytest.raises(DefinitionError, match="critic is not async"):
        await performer(AskAgent("critic", "Judge"), CONTEXT)


@pytest.mark.anyio
async def test_a_model_gets_prompt_key_number_and_schema() -> None:
    model = Attentive(Reply(value={"good": False}, usage={"tokens": 3}))
    event = await AgentPerformer({}, model, {"Verdict": Verdict})(
        AskAgent("critic", "Judge {draft}", {"draft": "x"}, "Verdict"), CONTEXT
    )
    assert model.requests == [Request("critic", "Judge x", "run-1.3.0", 2, schema(Verdict))]
    assert event == Replied("critic", '{"good": false}', {"good": False}, "Verdict", {"tokens": 3})


@pytest.mark.anyio
async def test_a_function_goes_before_the_model() -> None:
    model = Attentive(Reply("model"))
    performer = AgentPerformer(played_by("function").functions, model, {})
    assert await performer(AskAgent("critic", "Judge"), CONTEXT) == Replied("critic", "function")
    assert await performer(AskAgent("writer", "Write"), CONTEXT) == Replied("writer", "model")


@pytest.mark.anyio
async def test_an_agent_that_nobody_plays_is_named_with_the_remedy() -> None:
    reason = r"agent 'writer' has no function and no model: pass agents=\{'writer': …\}, or a model"
    with pytest.raises(DefinitionError, match=reason):
        await AgentPerformer({}, None, {})(AskAgent("writer", "Write"), CONTEXT)


@pytest.mark.anyio
async def test_a_tool_is_called_with_its_arguments_by_name() -> None:
    async def send(customer: str, text: str) -> Mapping[str, str]:
        return {"to": customer, "text": text}

    event = await ToolPerformer({"send": send})(CallTool("send", {"text": "hi", "customer": "Ada"}), CONTEXT)
    assert event == Returned("send", {"to": "Ada", "text": "hi"})


@pytest.mark.anyio
async def test_a_tool_that_is_not_there_is_named_with_the_remedy() -> None:
    with pytest.raises(DefinitionError, match=r"nothing here is the tool 'send': pass agents=\{'send': …\}"):
        await ToolPerformer({})(CallTool("send"), CONTEXT)
