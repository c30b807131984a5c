"""What goes over the wire is what real servers take: one system message, the user first, turns that alternate."""

import re
from itertools import pairwise
from typing import Any

import pytest

from moothall.agents.ports import Offered
from moothall.models.endpoint import Protocol
from moothall.models.providers import BEGINNING, GO_ON, ProviderModel
from tests.models.asking import LOOK, PROTOCOLS, endpoint, request
from tests.models.loopback import Asked, Fault, Said, Turn, loopback


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "text": text}


def assistant(text: str, *ids: str) -> dict[str, Any]:
    return {"role": "assistant", "text": text, "calls": [{"tool": "look", "arguments": {}, "id": id} for id in ids]}


def result(id: str) -> dict[str, Any]:
    return {"role": "tool", "id": id, "tool": "look", "value": "fog"}


SYSTEM = {"role": "system", "text": "Be brief."}
TALKS = {
    "begins with assistant": (assistant("Hello"), user("Hi")),
    "equal roles in a row": (user("a"), user("b"), assistant("c"), assistant("d"), user("e")),
    "ends with assistant": (user("a"), assistant("b")),
    "only assistant": (assistant("a"),),
    "a system message in the middle": (user("a"), SYSTEM, assistant("b"), SYSTEM, user("c")),
    "only a system message": (SYSTEM,),
    "an empty text": (user(""), assistant(""), user("x")),
    "a result behind what others said": (user("a"), assistant("", "i"), user("meanwhile"), result("i"), user("b")),
    "a call without its result": (user("a"), assistant("", "i"), user("b")),
    "a result without its call": (result("i"), user("b")),
    "one id twice": (user("a"), assistant("", "i"), result("i"), assistant("", "i"), result("i")),
    "two calls": (user("a"), assistant("", "i", "j"), result("j"), result("i")),
    "two calls of one id": (user("a"), assistant("", "i", "i"), result("i"), result("i")),
    "nothing but blanks": (user(" \n"), assistant("\t"), user("x"), assistant("\n", "i"), result("i")),
    "ids of another provider": (user("a"), assistant("", "fc:1/ü", "x" * 60), result("x" * 60), result("fc:1/ü")),
}
NAME, ID = re.compile("[A-Za-z_][A-Za-z0-9_-]{0,63}"), re.compile("[A-Za-z0-9_-]{1,40}")


def judged(asked: Asked) -> Turn:
    """A reply, or the refusal that a server has for such a list."""
    wrong = faults(asked)
    return Fault(400, ('{"error": {"message": "' + wrong + '"}}').encode()) if wrong else Said("fine")


def faults(asked: Asked) -> str:
    """What a strict server finds in a list of messages."""
    turns = turns_of(asked.body)
    roles = [role for role, _, _ in turns]
    if not roles or roles[0] != "user" or roles[-1] != "user":
        return f"begin and end with user: {roles}"
    if any(one == other for one, other in pairwise(roles)):
        return f"roles must alternate: {roles}"
    for (_, calls, _), (_, _, results) in pairwise(turns):
        if sorted(calls) != sorted(results):
            return f"calls {calls} got the results {results}"
    every = [id for _, calls, _ in turns for id in calls]
    if every and not tools_of(asked.body):
        return "calls need tools"
    if odd := [id for id in every if not ID.fullmatch(id)]:
        return f"ids of calls are odd: {odd}"
    if odd := [name for name in tools_of(asked.body) if not NAME.fullmatch(name)]:
        return f"names of tools are odd: {odd}"
    return "two calls have one id" if len(set(every)) < len(every) else ""


def tools_of(body: Any) -> dict[str, Any]:
    """The tools of a request of any protocol: their schemas by name."""
    found = {}
    for tool in body.get("tools") or ():
        for function in tool.get("functionDeclarations", [tool.get("function", tool)]):
            places = ("parameters", "input_schema", "parameters_json_schema", "parametersJsonSchema")
            found[function["name"]] = next(function[place] for place in places if place in function)
    return found


def turns_of(body: Any) -> list[tuple[str, list[str], list[str]]]:
    """The turns of a request of any protocol: who speaks, the ids of calls, and the ids of results."""
    if "contents" in body:
        every = [_google(content) for content in body["contents"]]
        behind = {at + 1 for at, (_, _, results) in enumerate(every) if results}  # a text may follow on results
        return [turn for at, turn in enumerate(every) if at not in behind or turn[0] != "user"]
    found: list[tuple[str, list[str], list[str]]] = []
    for at, message in enumerate(body["messages"]):
        if message["role"] == "system":
            assert at == 0, "a system message stands only at the beginning"
        elif message["role"] == "tool":
            if found[-1][0] != "user":
                found.append(("user", [], []))
            found[-1][2].append(message["tool_call_id"])
        elif message["role"] == "user" and found and found[-1][2] and body["messages"][at - 1]["role"] == "tool":
            assert message["content"]
        else:
            found.append(_spoken(message))
    return found


def _spoken(message: Any) -> tuple[str, list[str], list[str]]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    texts = [block.get("text", "x") for block in blocks] or [message["content"] or ""]
    assert all(map(str.strip, texts)) or (message.get("tool_calls") and not any(texts)), "an empty text"
    kinds = [block["type"] for block in blocks]
    assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result" and message["role"] == "user")
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    calls += [call["id"] for call in message.get("tool_calls") or ()]
    return message["role"], calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def _google(message: Any) -> tuple[str, list[str], list[str]]:
    parts = message["parts"]
    assert all(part.get("text", "x").strip() for part in parts), "an empty text"
    calls = [str(part["functionCall"].get("id")) for part in parts if "functionCall" in part]
    results = [str(part["functionResponse"].get("id")) for part in parts if "functionResponse" in part]
    return {"model": "assistant"}.get(message["role"], message["role"]), calls, results


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tools", [(LOOK,), ()], ids=["with tools", "without tools"])
@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS.keys())
async def test_a_strict_server_takes_every_conversation(
    protocol: Protocol, tools: tuple[Offered, ...], talk: tuple[Any, ...]
) -> None:
    asked = request(messages=talk, tools=tools)
    asked = type(asked)(**{**asked.__dict__, "prompt": "", "system": "You are a writer."})
    async with loopback(judged) as served:
        reply = await ProviderModel(endpoint(protocol, served)).reply(asked)
    assert reply.text == "fine"


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_tool_whose_name_or_schema_no_server_takes_is_offered_and_called_all_the_same(
    protocol: Protocol,
) -> None:
    odd = [Offered(name, "", {"properties": {}}) for name in ("files.read", "files/read", "3d", "x" * 80)]

    def answer(asked: Asked) -> Turn:
        assert {schema["type"] for schema in tools_of(asked.body).values()} == {"object"}
        return Said(calls=[(f"i{at}", name, "{}") for at, name in enumerate(tools_of(asked.body))])

    talk = (user("a"), {**assistant("", "i"), "calls": [{"tool": "files.read", "arguments": {}, "id": "i"}]})
    async with loopback(answer) as served:
        reply = await ProviderModel(endpoint(protocol, served)).reply(request(messages=talk, tools=tuple(odd)))
        assert faults(served.asked[0]) == ""
    assert [call.tool for call in reply.calls] == [tool.name for tool in odd]


@pytest.mark.anyio
async def test_the_id_of_a_call_is_the_one_that_the_provider_gave() -> None:
    talk = (user("a"), assistant("", "a1B2c3D4e"), result("a1B2c3D4e"))
    async with loopback(judged) as served:
        await ProviderModel(endpoint("openai", served)).reply(request(messages=talk, tools=(LOOK,)))
    [call] = [call for message in served.asked[0].body["messages"] for call in message.get("tool_calls") or ()]
    assert call["id"] == "a1B2c3D4e"


@pytest.mark.anyio
async def test_nothing_that_was_said_is_lost_where_messages_are_joined() -> None:
    talk = (assistant("Hello"), user("a"), user("b"), assistant("c"), assistant("d"))
    async with loopback(judged) as served:
        asked = request(messages=talk)
        await ProviderModel(endpoint("openai", served)).reply(type(asked)(**{**asked.__dict__, "prompt": ""}))
    assert [(message["role"], message["content"]) for message in served.asked[0].body["messages"]] == [
        ("user", BEGINNING),
        ("assistant", "Hello"),
        ("user", "a\n\nb"),
        ("assistant", "c\n\nd"),
        ("user", GO_ON),
    ]
