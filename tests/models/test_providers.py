"""Models of providers, asked with their real SDKs on this machine: what they say, and what their failures mean."""

import gc
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply
from moothall.errors import EffectFailed, Refused
from moothall.kernel.codec import decode, schema
from moothall.models.endpoint import Endpoint, Protocol
from moothall.models.providers import ProviderModel, usage_of
from tests.models.asking import LOOK, PROTOCOLS, endpoint, request
from tests.models.loopback import Fault, Said, Turn, loopback

pytestmark = pytest.mark.anyio
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
heard_or_not = pytest.mark.parametrize("heard", [False, True], ids=["whole", "streamed"])


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str


async def asked(protocol: Protocol, turn: Turn, heard: bool = False, **more: Any) -> Reply:
    """What a model replies where the server does this."""
    async with loopback(turn) as served:
        pieces: list[str] = []
        return await ProviderModel(endpoint(protocol, served)).reply(
            request(hear=pieces.append if heard else None, **more)
        )


async def failed(protocol: Protocol, turn: Turn, heard: bool = False) -> EffectFailed:
    """How a model fails where the server does this. It was asked once: attempts are the runtime's business."""
    async with loopback(turn) as served:
        pieces: list[str] = []
        with pytest.raises(EffectFailed) as raised:
            await ProviderModel(endpoint(protocol, served)).reply(request(hear=pieces.append if heard else None))
        assert len(served.asked) == 1
        return raised.value


# What they say


@every_protocol
@heard_or_not
async def test_a_text_comes_with_what_it_cost(protocol: Protocol, heard: bool) -> None:
    assert await asked(protocol, Said("The sea rises."), heard) == Reply("The sea rises.", usage={"tokens": 18})


@every_protocol
@heard_or_not
@pytest.mark.parametrize("said", [Said("word " * 80, used=None), Said("", [("a", "look", "{}")], used=None)])
async def test_what_a_provider_does_not_count_is_estimated_where_it_must_be_known_and_that_is_said(
    protocol: Protocol, heard: bool, said: Said
) -> None:
    notices: list[str] = []
    async with loopback(said) as served:
        model, pieces = ProviderModel(endpoint(protocol, served), notices.append), list[str]()
        asking = request(tools=(LOOK,), hear=pieces.append if heard else None)
        free = await model.reply(asking)
        assert (free.usage, notices) == ({}, [])
        used = (await model.reply(replace(asking, metered=True, system="s" * 4_000))).usage
    assert used["tokens"] == used["estimated"] >= 1_000 + len(said.text) / 4
    assert [f"{protocol}:m does not report its usage" in notice for notice in notices] == [True]


@every_protocol
@heard_or_not
async def test_calls_of_tools_come_with_their_arguments_and_ids(protocol: Protocol, heard: bool) -> None:
    said = Said("Let me see.", [("a", "look", '{"place": "Oslo"}'), ("b", "look", '{"place": "Ys"}')])
    reply = await asked(protocol, said, heard, tools=(LOOK,))
    assert reply.text == "Let me see."
    assert reply.calls == (ToolCall("look", {"place": "Oslo"}, "a"), ToolCall("look", {"place": "Ys"}, "b"))


@every_protocol
@heard_or_not
async def test_a_value_of_the_shape_that_was_asked_for(protocol: Protocol, heard: bool) -> None:
    said = Said("", [("r", "final_reply", '{"good": true, "notes": "none"}')])
    reply = await asked(protocol, said, heard, schema=schema(Verdict))
    assert (reply.value, reply.calls) == ({"good": True, "notes": "none"}, ())


@every_protocol
async def test_a_value_that_is_no_object_comes_in_one(protocol: Protocol) -> None:
    reply = await asked(protocol, Said("", [("r", "final_reply", '{"value": 7}')]), schema=schema(int))
    assert reply.value == 7


@pytest.mark.parametrize("shape", [Verdict, Verdict | None, Literal["good"], bool, str, list[str]])
@pytest.mark.parametrize(
    "said",
    [
        Said('{"good": true, "notes": ""}'),
        Said('"good"'),
        Said("true"),
        Said("", [("a", "final_reply", '{"good": true}'), ("b", "final_reply", '{"good": false}')]),
        Said("", [("a", "final_reply", '{"value": true, "by": "ada"}')]),
    ],
    ids=["an object as text", "a word as text", "true as text", "two values", "a value and more"],
)
async def test_what_is_not_given_as_the_one_value_has_no_shape(shape: Any, said: Said) -> None:
    reply = await asked("anthropic", said, schema=schema(shape))
    with pytest.raises(Refused):
        decode(shape, reply.value)


async def test_a_server_of_ones_own_is_told_the_schema_and_no_tool() -> None:
    async with loopback(Said('{"value": 7}')) as served:
        reply = await ProviderModel(endpoint("openai", served)).reply(request(schema(int)))
        [asked] = served.asked
    assert reply.value == 7
    assert asked.body["response_format"]["json_schema"]["schema"]["properties"] == {"value": {"type": "integer"}}
    assert "tools" not in asked.body
    assert "Reply with JSON of this schema" in json.dumps(asked.body["messages"])


@every_protocol
async def test_who_listens_hears_every_piece_after_an_empty_one(protocol: Protocol) -> None:
    pieces: list[str] = []
    async with loopback(Said("The sea rises and falls.")) as served:
        await ProviderModel(endpoint(protocol, served)).reply(request(hear=pieces.append))
    assert pieces[0] == ""
    assert "".join(pieces) == "The sea rises and falls."


@every_protocol
async def test_who_listens_cannot_harm_the_reply(protocol: Protocol) -> None:
    def choke(piece: str) -> None:
        raise OSError("the screen is gone")

    async with loopback(Said("The sea rises.")) as served:
        reply = await ProviderModel(endpoint(protocol, served)).reply(request(hear=choke))
    assert reply.text == "The sea rises."


@every_protocol
async def test_a_model_sees_the_prompt_what_was_said_since_and_its_tools(protocol: Protocol) -> None:
    said = (
        {"role": "assistant", "text": "", "calls": [{"tool": "look", "arguments": {"place": "Oslo"}, "id": "a"}]},
        {"role": "tool", "id": "a", "tool": "look", "value": {"low": -3}},
        {"role": "assistant", "text": "", "calls": [{"tool": "fly", "arguments": {}, "id": "a"}]},
        {"role": "tool", "id": "a", "tool": "fly", "error": "there is no tool 'fly'"},
        {"role": "assistant", "text": "nonsense", "calls": []},
        {"role": "user", "text": "This reply cannot be used. Please reply again."},
    )
    async with loopback(Said("done")) as served:
        await ProviderModel(endpoint(protocol, served)).reply(request(messages=said, tools=(LOOK,)))
        [asked] = served.asked
    sent = json.dumps(asked.body)
    places = [sent.index(part) for part in ("Write about tides", "Oslo", "-3", "there is no tool 'fly'", "nonsense")]
    assert places == sorted(places)
    assert "Please reply again" in sent
    assert "Look somewhere." in sent


async def test_calls_with_the_same_id_in_two_rounds_are_told_apart() -> None:
    call = {"role": "assistant", "text": "", "calls": [{"tool": "look", "arguments": {"place": "x"}, "id": "call-0"}]}
    back = {"role": "tool", "id": "call-0", "tool": "look", "value": "fog"}
    async with loopback(Said("done")) as served:
        await ProviderModel(endpoint("anthropic", served)).reply(
            request(messages=(call, back, call, back), tools=(LOOK,))
        )
        blocks = [block for message in served.asked[0].body["messages"] for block in message["content"]]
    uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert uses == results
    assert len(set(uses)) == 2


# What is odd, and not a failure


@every_protocol
@heard_or_not
async def test_usage_that_is_not_told_is_not_known(protocol: Protocol, heard: bool) -> None:
    assert (await asked(protocol, Said("ok", used=None), heard)).usage == {}


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@heard_or_not
async def test_arguments_that_are_no_json_are_kept_as_they_came(protocol: Protocol, heard: bool) -> None:
    reply = await asked(protocol, Said("", [("a", "look", '{"place": "Os')]), heard, tools=(LOOK,))
    [call] = reply.calls
    assert str(call.arguments) == '{"place": "Os'


@heard_or_not
@pytest.mark.parametrize(
    "arguments",
    ['{"place": "Oslo", "place": "Ys"}', '{"place": "Oslo", "\\u0070lace": "Ys"}', '{"a": {"b": 1, "b": 2}}'],
)
async def test_arguments_with_a_key_twice_are_no_json_either(heard: bool, arguments: str) -> None:
    [call] = (await asked("openai", Said("", [("a", "look", arguments)]), heard, tools=(LOOK,))).calls
    assert str(call.arguments) == arguments


@every_protocol
async def test_a_tool_that_was_not_offered_is_passed_on_for_the_turn_to_refuse(protocol: Protocol) -> None:
    reply = await asked(protocol, Said("", [("a", "fly", "{}")]), tools=(LOOK,))
    assert reply.calls == (ToolCall("fly", {}, "a"),)


@every_protocol
async def test_a_call_where_no_tool_was_offered_is_nothing_said(protocol: Protocol) -> None:
    failure = await failed(protocol, Said("", [("a", "fly", "{}")]))
    assert str(failure) == f"{protocol}:m said nothing"
    assert failure.usage == {"tokens": 18}
    assert not failure.final


@every_protocol
@heard_or_not
@pytest.mark.parametrize("text", ["a\x00b", "half \ud800 a character", "👩‍🚀 → ✓"], ids=["NUL", "surrogate", "unicode"])
async def test_any_text_comes_through(protocol: Protocol, heard: bool, text: str) -> None:
    reply = await asked(protocol, Said(text), heard)
    assert reply.text.encode(errors="replace") == text.encode(errors="replace")


@every_protocol
async def test_ten_megabytes_come_through(protocol: Protocol) -> None:
    text = "tide " * 2_000_000
    assert (await asked(protocol, Said(text))).text == text


@every_protocol
async def test_half_a_character_in_a_prompt_is_sent_as_a_question_mark(protocol: Protocol) -> None:
    async with loopback(Said("ok")) as served:
        asking = request(messages=({"role": "user", "text": "half \ud800"},))
        assert (await ProviderModel(endpoint(protocol, served)).reply(asking)).text == "ok"
        assert "half ?" in json.dumps(served.asked[0].body)


# What it cost


def priced(endpoint: Endpoint) -> dict[str, float]:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    return usage_of(ModelResponse([TextPart("x")], usage=RequestUsage(input_tokens=1000, output_tokens=500)), endpoint)


async def test_what_a_model_with_a_known_price_cost_is_said_in_money() -> None:
    own = Endpoint("openai", "gpt-4o-mini", "https://api.openai.com/v1")
    assert priced(own) == {"tokens": 1500, "usd": pytest.approx(0.00045)}


@pytest.mark.parametrize(
    "unknown",
    [
        Endpoint("openai", "nobody-knows-this", "https://api.openai.com/v1"),
        Endpoint("openai", "gpt-4o-mini", "http://127.0.0.1:8080/v1", False),
    ],
    ids=["an unknown model", "a known name at another address"],
)
async def test_a_price_that_nobody_knows_is_not_nought(unknown: Endpoint) -> None:
    assert priced(unknown) == {"tokens": 1500}


# What goes wrong


def told(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "x"}}).encode()


PASSING: dict[str, Turn] = {
    "429": Fault(429, told("slow down")),
    "500": Fault(500, told("oops")),
    "502 with a page": Fault(502, b"<html>bad gateway</html>", kind="text/html"),
    "503": Fault(503, told("busy")),
    "529": Fault(529, told("overloaded")),
    "reset": Fault(reset=True),
    "empty body": Fault(200, b""),
    "a page": Fault(200, b"<html>Please log in</html>", kind="text/html"),
    "half a JSON": Fault(200, b'{"id": "x", "choi'),
    "another JSON": Fault(200, b'{"hello": "world"}'),
    "a list": Fault(200, b"[1, 2]"),
    "null": Fault(200, b"null"),
    "not UTF-8": Fault(200, b"\xff\xfe\x00"),
    "nothing said": Said(""),
}


@every_protocol
@heard_or_not
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_failure_that_may_pass_is_worth_another_attempt(protocol: Protocol, heard: bool, fault: Turn) -> None:
    failure = await failed(protocol, fault, heard)
    assert not failure.final
    assert str(failure).startswith(f"{protocol}:m")


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """Whatever is collected where the stack ends cannot be finalised there, and that is no fault of ours."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collection")
@every_protocol
@heard_or_not
@pytest.mark.slow
async def test_json_that_is_too_deep_is_worth_another_attempt(protocol: Protocol, heard: bool) -> None:
    assert not (await failed(protocol, Fault(200, b"[" * 100_000), heard)).final


@every_protocol
@heard_or_not
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_who_asks_to_be_left_alone_is(protocol: Protocol, heard: bool, status: int) -> None:
    fault = Fault(status, told("later"), (("retry-after", "17"),))
    assert (await failed(protocol, fault, heard)).retry_after == 17


LASTING: dict[str, tuple[Turn, str]] = {
    "400": (Fault(400, told("no such field")), "refuses the request; correct what it names (400): no such field"),
    "401": (Fault(401, told("who are you")), "does not accept the key; check it (A_KEY) (401): who are you"),
    "403": (Fault(403, told("not you")), "does not accept the key; check it (A_KEY) (403): not you"),
    "404": (Fault(404, told("no model")), "does not know it; check the name and the address (404): no model"),
    "413": (Fault(413, told("too much")), "(413): too much"),
    "422": (Fault(422, told("odd")), "refuses the request; correct what it names (422): odd"),
    "a redirect": (Fault(307, b"", (("location", "http://127.0.0.1:1/v1"),)), "sends elsewhere, which is not followed"),
    "cut off at the limit": (Said("The sea", finish="length"), "cut off, for it was longer than the provider allows"),
}


@every_protocol
@heard_or_not
@pytest.mark.parametrize(("turn", "words"), LASTING.values(), ids=LASTING.keys())
async def test_a_failure_that_would_last_is_final_and_says_what_to_do(
    protocol: Protocol, heard: bool, turn: Turn, words: str
) -> None:
    failure = await failed(protocol, turn, heard)
    assert failure.final
    assert words in str(failure)


async def test_an_account_without_credit_is_final_though_the_status_is_that_of_haste() -> None:
    body = json.dumps({"error": {"message": "no credit", "code": "insufficient_quota"}}).encode()
    failure = await failed("openai", Fault(429, body))
    assert failure.final
    assert "the account has nothing left; top it up (429): no credit" in str(failure)


@every_protocol
@heard_or_not
async def test_a_provider_that_never_answers_is_not_waited_for_without_end(protocol: Protocol, heard: bool) -> None:
    async with loopback(Fault(hang=True)) as served:
        pieces: list[str] = []
        with pytest.raises(EffectFailed, match=r":m did not reply within 0\.2 s") as raised:
            await ProviderModel(endpoint(protocol, served, timeout=0.2)).reply(
                request(hear=pieces.append if heard else None)
            )
    assert not raised.value.final


@every_protocol
async def test_a_provider_that_cannot_be_reached_is_worth_another_attempt(protocol: Protocol) -> None:
    async with loopback(Said("")) as served:
        gone = endpoint(protocol, served)
    with pytest.raises(EffectFailed) as raised:
        await ProviderModel(gone).reply(request())
    assert not raised.value.final


@every_protocol
async def test_a_failure_that_repeats_the_key_does_not_pass_it_on(protocol: Protocol) -> None:
    failure = await failed(protocol, Fault(401, told("sk-right is wrong")))
    assert "sk-right" not in str(failure)
    assert "[key] is wrong" in str(failure)


@every_protocol
async def test_an_endpoint_is_shown_without_its_key(protocol: Protocol) -> None:
    shown = repr(Endpoint(protocol, "m", "http://127.0.0.1/v1", False, "sk-right"))
    assert shown == f"{protocol}:m@http://127.0.0.1/v1"


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
async def test_a_server_that_cannot_be_reached_is_named_with_the_cause(protocol: Protocol) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    with pytest.raises(EffectFailed) as failure:
        await ProviderModel(Endpoint(protocol, "some-model", address, is_own=False)).reply(request())
    assert f"{protocol}:some-model: no connection to {address}: " in str(failure.value)
    assert "refused" in str(failure.value) or "failed" in str(failure.value)
    assert not failure.value.final


@pytest.mark.parametrize(
    ("protocol", "sdk"),
    [
        ("openai", "openai"),
        pytest.param("anthropic", "anthropic", marks=pytest.mark.slow),
        pytest.param("google", "google.genai", marks=pytest.mark.slow),
    ],
)
def test_only_the_sdk_that_is_used_is_loaded(protocol: str, sdk: str) -> None:
    code = (
        "import asyncio, sys\n"
        "from moothall.models.endpoint import Endpoint\n"
        "from moothall.models.providers import ProviderModel\n"
        f"model = ProviderModel(Endpoint({protocol!r}, 'm', 'http://127.0.0.1:9/v1', is_own=False))\n"
        "asyncio.run(model._model())\n"
        "print([name for name in ('openai', 'anthropic', 'google.genai') if name in sys.modules])\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"[{sdk!r}]"


def processor_time(code: str) -> float:
    """The least that some processes take which do the same, in seconds of the processor."""
    timed = f"{code}\nimport time; print(time.process_time())"
    command = [sys.executable, "-c", timed]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3))


@pytest.mark.slow
def test_a_model_is_opened_in_little_more_time_than_its_library_takes_to_be_imported() -> None:
    alone = processor_time("import openai, pydantic_ai.models.openai, pydantic_ai.providers.openai")
    opened = processor_time(
        "import asyncio\n"
        "from moothall.models.endpoint import Endpoint\n"
        "from moothall.models.providers import ProviderModel\n"
        "model = ProviderModel(Endpoint('openai', 'm', 'http://127.0.0.1:9/v1', is_own=False))\n"
        "asyncio.run(model._model())\n"
    )
    assert opened <= 1.3 * alone
