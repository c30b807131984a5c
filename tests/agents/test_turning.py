"""What an agent with tools sees and wants: one request in, one event out, however odd the reply."""

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, ToolCall, Unusable
from moothall.agents.ports import Offered, Reply
from moothall.errors import DefinitionError
from moothall.kernel.events import GaveUp
from moothall.performers.agents import AgentPerformer, offer_tool
from moothall.performers.tools import ToolPerformer
from moothall.runtime.ports import WHOLE, Context, Excerpt
from tests.agents.attentive import Attentive

if TYPE_CHECKING:
    from decimal import Decimal

TALK = [{"role": "assistant", "text": "", "calls": []}, {"role": "tool", "id": "w1", "tool": "weather", "value": -3}]
ASK = AskAgent("guide", "Plan", thread="turn", tools=("weather",))
SHAPED = AskAgent("guide", "Plan", {}, "Plan", thread="turn", tools=("weather",))


@dataclass(frozen=True)
class Plan:
    days: int


class Talk:
    """Where the run is driven from: it knows what was said."""

    def listen(self, key: str, run: str, speaker: str) -> None:
        return None

    def beat(self, key: str) -> None:
        raise AssertionError("nobody beats here")

    async def messages(self, thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
        assert thread == "turn"
        return TALK


CONTEXT = Context("run-1", "run-1.3.0", 2, 1, desk=Talk())


async def weather(city: str, days: int = 1, *, key: str = "") -> str:
    """How cold it is in a city."""
    return f"{city} {days} {key}"


async def said_by(reply: Any, effect: AskAgent = ASK) -> Any:
    """The event that a reply makes."""

    async def guide(prompt: str) -> Any:
        return reply

    return await AgentPerformer({"guide": guide, "weather": weather}, None, {"Plan": Plan})(effect, CONTEXT)


# what a model sees


@pytest.mark.anyio
async def test_a_model_sees_what_was_said_and_the_tools_that_it_has() -> None:
    model = Attentive(Reply("Go."))
    await AgentPerformer({"weather": weather}, model, {})(ASK, CONTEXT)
    (request,) = model.requests
    assert (request.prompt, request.messages) == ("Plan", tuple(TALK))
    assert request.tools == (offer_tool("weather", weather),)


@pytest.mark.anyio
async def test_without_a_thread_nothing_was_said() -> None:
    model = Attentive(Reply("Go."))
    await AgentPerformer({}, model, {})(AskAgent("guide", "Plan"), CONTEXT)
    assert (model.requests[0].messages, model.requests[0].tools) == ((), ())


def test_a_tool_shows_its_docstring_and_its_parameters_without_the_key() -> None:
    assert offer_tool("weather", weather) == Offered(
        "weather",
        "How cold it is in a city.",
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )


class Station:
    """A tool that is an object."""

    async def __call__(self, city: str) -> str:
        return city


async def loose(city: str, *more: str, **others: int) -> None:
    """Takes anything."""


async def hidden(price: "Decimal") -> None:
    """Its type is known to the checker alone."""


async def bare(city, days=1):  # type: ignore[no-untyped-def]
    """Has no types."""


@pytest.mark.parametrize(
    ("function", "properties", "required", "open_"),
    [
        (Station(), {"city": {"type": "string"}}, ["city"], False),
        (
            functools.partial(weather, days=3),
            {"city": {"type": "string"}, "days": {"type": "integer"}},
            ["city"],
            False,
        ),
        (loose, {"city": {"type": "string"}}, ["city"], True),
        (hidden, {"price": {}}, ["price"], False),
        (bare, {"city": {}, "days": {}}, ["city"], False),
    ],
    ids=["object", "partial", "loose", "hidden type", "no types"],
)
def test_whatever_can_be_called_can_be_offered(
    function: Any, properties: dict[str, Any], required: list[str], open_: bool
) -> None:
    shape = offer_tool("tool", function).schema
    assert (shape["properties"], shape["required"]) == (properties, required)
    assert shape["additionalProperties"] is open_


def test_a_tool_of_which_only_the_name_is_known_is_offered_by_its_name() -> None:
    assert offer_tool("weather", None) == Offered("weather")


@pytest.mark.anyio
async def test_a_function_gets_the_prompt_and_what_was_said_since_as_one_text() -> None:
    heard: list[str] = []

    async def guide(prompt: str) -> str:
        heard.append(prompt)
        return "Go."

    await AgentPerformer({"guide": guide}, None, {})(ASK, CONTEXT)
    assert heard == ["\n\n".join(["Plan", *(json.dumps(message) for message in TALK)])]


# what a reply wants


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (("w1", "w2"), ("w1", "w2")),
        (("w1", "w1"), ("call-0", "call-1")),
        (("", ""), ("call-0", "call-1")),
        (("w1", ""), ("call-0", "call-1")),
    ],
    ids=["their own", "the same twice", "none", "one missing"],
)
async def test_calls_can_be_told_apart_whatever_ids_they_came_with(ids: tuple[str, ...], told: tuple[str, ...]) -> None:
    calls = tuple(ToolCall("weather", {"city": "Oslo"}, id) for id in ids)
    event = await said_by(Reply("Let me see.", calls=calls, usage={"tokens": 3}))
    assert [call.id for call in event.calls] == list(told)
    assert (event.text, event.usage) == ("Let me see.", {"tokens": 3})


@pytest.mark.anyio
async def test_calls_of_an_agent_that_has_no_tools_are_not_heard() -> None:
    reply = Reply("Go.", {"days": 3}, calls=(ToolCall("weather"),))
    plain = AskAgent("guide", "Plan", {}, "Plan")
    assert await said_by(reply, plain) == Replied("guide", "Go.", {"days": 3}, "Plan")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (ToolCall("weather", "Oslo"), "calls[0].arguments: expected an object, got 'Oslo'"),  # type: ignore[arg-type]
        (ToolCall("weather", None), "calls[0].arguments: expected an object, got None"),  # type: ignore[arg-type]
        (ToolCall(None), "calls[0].tool: expected a text, got None"),  # type: ignore[arg-type]
        (ToolCall("weather", {"city": object()}), "a object cannot be stored"),
        ({"tool": "weather", "with": 3}, "calls[0]: unknown field 'with'"),
        ("weather", "calls[0]: expected an object with the fields of ToolCall, got 'weather'"),
    ],
    ids=["text", "nothing", "no name", "unstorable", "unknown field", "no call"],
)
async def test_a_call_that_cannot_be_read_is_unusable_and_says_why(call: Any, reason: str) -> None:
    event = await said_by(Reply("Hm.", calls=(call,), usage={"tokens": 3}))
    assert isinstance(event, Unusable)
    assert event.reason.startswith(reason)
    assert (event.text, event.usage) == ("Hm.", {"tokens": 3})


@pytest.mark.anyio
async def test_half_a_character_in_the_arguments_of_a_call_does_not_cost_the_call() -> None:
    event = await said_by(Reply(calls=(ToolCall("weather", {"city": "Troms\ud83c"}, "w1"),)))
    assert event.calls == (ToolCall("weather", {"city": "Troms?"}, "w1"),)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"days": "three"}, "Plan.days: expected a whole number, got 'three'"),
        ({}, "Plan: the field 'days' is missing"),
        (None, "Plan: expected an object with the fields of Plan, got None"),
    ],
    ids=repr,
)
async def test_in_a_turn_a_value_of_the_wrong_shape_is_unusable_and_says_where(value: Any, reason: str) -> None:
    event = await said_by(Reply("So.", value, {"tokens": 3}), SHAPED)
    assert event == Unusable("guide", "So.", reason, {"tokens": 3})


@pytest.mark.anyio
async def test_a_value_of_the_right_shape_is_the_reply() -> None:
    assert await said_by(Reply(value={"days": 3}), SHAPED) == Replied("guide", '{"days": 3}', {"days": 3}, "Plan")


# what a tool gives


@pytest.mark.anyio
async def test_a_tool_gets_the_key_of_the_call() -> None:
    call = CallTool("weather", {"city": "Oslo"}, "w1")
    assert await ToolPerformer({"weather": weather})(call, CONTEXT) == Returned("weather", "Oslo 1 run-1.3.0", id="w1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"city": ["Oslo"]}, "city: expected a text, got ['Oslo']"),
        ({"city": "Oslo", "days": "3"}, "days: expected a whole number, got '3'"),
        ({"city": "Oslo", "country": "NO"}, "there is no argument 'country'; there are city, days"),
        ({"city": "Oslo", "key": "forged"}, "there is no argument 'key'; there are city, days"),
        ({"days": 3}, "the argument 'city' is missing"),
    ],
)
async def test_a_tool_is_not_called_with_what_it_does_not_take(arguments: dict[str, Any], why: str) -> None:
    event = await ToolPerformer({"weather": weather})(CallTool("weather", arguments, "w1"), CONTEXT)
    assert event == GaveUp(f"weather was not called: {why}")


@pytest.mark.anyio
async def test_a_tool_that_takes_anything_takes_a_key_from_an_agent_only_where_it_gets_none_itself() -> None:
    async def look_up(**given: str) -> dict[str, str]:
        return given

    async def book(*, key: str, **given: str) -> str:
        return key

    performer, forged = ToolPerformer({"look_up": look_up, "book": book}), {"key": "forged"}
    assert await performer(CallTool("look_up", forged, "w1"), CONTEXT) == Returned("look_up", forged, id="w1")
    refused = await performer(CallTool("book", forged, "w2"), CONTEXT)
    assert refused == GaveUp("book was not called: there is no argument 'key'; there are none")


@pytest.mark.anyio
async def test_half_a_character_in_what_a_tool_returns_does_not_cost_the_result() -> None:
    async def read(name: str) -> dict[str, str]:
        return {name: b"\xe9t\xe9".decode("utf-8", "surrogateescape")}

    event = await ToolPerformer({"read": read})(CallTool("read", {"name": "season"}), CONTEXT)
    assert event == Returned("read", {"season": "?t?"})


@pytest.mark.anyio
async def test_what_a_tool_returns_that_cannot_be_stored_is_the_author_s_mistake() -> None:
    async def read() -> object:
        return object()

    with pytest.raises(DefinitionError, match="cannot be stored"):
        await ToolPerformer({"read": read})(CallTool("read"), CONTEXT)
