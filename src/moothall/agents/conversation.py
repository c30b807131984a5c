"""Agents that share a conversation: what is kept of it, and how each of them sees it.

What is said stands in a thread under a role, user or assistant, with the name of who said it. Whoever takes part has a
role there. A turn's input is kept under the opposite of the speaker's role, the reply under its own. To an agent whose
role is user the two are swapped, so that everybody is the assistant of their own story. What another agent says is
never its own: it comes from the user's side, under the name of who said it. An agent's calls of tools are calls to
itself alone; others read of them.

    {"role": "user", "text": "…"}                                          something to answer
    {"role": "assistant", "by": "coder", "text": "…", "calls": [{"tool": "…", "arguments": {…}, "id": "…"}]}
    {"role": "tool", "by": "coder", "id": "…", "tool": "…", "value": …}    what a call returned; "error" where it failed
    {"role": "clear"}                                                      what was said before counts no more

A conversation is as long as its texts. Where that is too long the oldest messages go, never those of the system, and a
call never without what it returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from moothall.agents.ask import AskAgent, ToolCall
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen

Side = Literal["user", "assistant"]
Message = Mapping[str, Any]
OPPOSITE: Mapping[str, Side] = {"user": "assistant", "assistant": "user"}
CLEAR: Message = {"role": "clear"}


class Seat(Frozen):
    """Who takes part in which conversation, as whom, and how much of it is kept."""

    agent: str
    thread: str
    side: Side
    most: int
    starting: tuple[Message, ...] = ()


class Converse(AskAgent):
    """Ask an agent in a conversation: what it is told stands in the thread already, and is repeated for readers."""

    attempts: int = field(default=3, kw_only=True)  # type: ignore[misc]


def input_of(seat: Seat, text: str) -> Message:
    """What an agent is told, as it is kept."""
    return {"role": OPPOSITE[seat.side], "text": text}


def reply_of(seat: Seat, text: str, calls: Sequence[ToolCall]) -> Message:
    """What an agent said, as it is kept."""
    return {"role": seat.side, "by": seat.agent, "text": text, **({"calls": encode(tuple(calls))} if calls else {})}


def result_of(seat: Seat, call: ToolCall, value: Any) -> Message:
    """What a call returned, as it is kept."""
    return {"role": "tool", "by": seat.agent, "id": call.id, "tool": call.tool, "value": value}


def failure_of(seat: Seat, call: ToolCall, reason: str) -> Message:
    """Why a call failed, as it is kept."""
    return {"role": "tool", "by": seat.agent, "id": call.id, "tool": call.tool, "error": reason}


def kept(seat: Seat, said: Iterable[Message]) -> list[Message]:
    """What is left of a conversation: since it was cleared, and no more than fits."""
    found = [*seat.starting, *said]
    cleared = max((at for at, one in enumerate(found) if one["role"] == "clear"), default=-1)
    system = [one for one in found[:cleared] if one["role"] == "system"] if cleared >= 0 else []
    groups = list(_grouped([*system, *found[cleared + 1 :]]))
    length = sum(map(_length, groups))
    left: list[list[Message]] = []
    for group in groups:
        if length > seat.most and group[0]["role"] != "system" and group is not groups[-1]:
            length -= _length(group)
        else:
            left.append(group)
    return [one for group in left for one in group]


def is_enough(seat: Seat, said: Sequence[Message]) -> bool:
    """Whether these latest messages of a conversation are all that is left of it, whatever was said before them.

    What the system says stands at the start of a conversation, and not in its thread.
    """
    if any(one["role"] == "clear" for one in said):
        return True
    whole = next((at for at, one in enumerate(said) if one["role"] != "tool"), len(said))
    return _length(said[whole:]) > seat.most


def _grouped(said: Sequence[Message]) -> Iterator[list[Message]]:
    """Messages that cannot be parted: calls and what they returned."""
    group: list[Message] = []
    for one in said:
        if group and one["role"] != "tool":
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _length(group: Sequence[Message]) -> int:
    return sum(len(_content(one)) for one in group)


def _content(one: Message) -> str:
    if one["role"] != "tool":
        return str(one["text"])
    return str(one["error"]) if "error" in one else _plain(one.get("value"))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def seen(seat: Seat, said: Iterable[Message], parsing: Iterable[str] = ()) -> tuple[Message, ...]:
    """A conversation as one of those who take part sees it; of others' parsing tools the calls are enough."""
    silent = frozenset(parsing)
    return tuple(_seen(seat, one) for one in kept(seat, said) if _concerns(seat, one, silent))


def _concerns(seat: Seat, one: Message, silent: frozenset[str]) -> bool:
    return one["role"] != "tool" or one["by"] == seat.agent or one["tool"] not in silent


def _seen(seat: Seat, one: Message) -> Message:
    is_own = one.get("by") == seat.agent
    if one["role"] == "system":
        return {"role": "system", "text": one["text"]}
    if one["role"] == "tool" and is_own:
        return {name: part for name, part in one.items() if name != "by"}
    if one["role"] == "tool":
        how = f"failed: {one['error']}" if "error" in one else f"returned: {_plain(one.get('value'))}"
        return spoken("user", f"[{one['by']}: {one['tool']} {how}]")
    side = one["role"] if seat.side == "assistant" else OPPOSITE[one["role"]]
    calls = one.get("calls", ())
    if is_own:
        return spoken(side, one["text"], calls)
    if "by" not in one:
        return spoken(side, one["text"])
    told = [f"[{one['by']} called {call['tool']}({_plain(call['arguments'])})]" for call in calls]
    text = f"{one['by']}: {one['text']}" if one["text"] else ""
    return spoken("user", "\n".join(filter(None, (text, *told))))


def spoken(side: str, text: str, calls: Sequence[Any] = ()) -> Message:
    """Something that somebody said, as a model is shown it."""
    return {"role": side, "text": text, "calls": list(calls)} if side == "assistant" else {"role": side, "text": text}


def shown_to_scripts(seat: Seat, said: Iterable[Message]) -> list[dict[str, Any]]:
    """A conversation as the scripts of a workflow see it: roles and contents, as providers have them."""
    return [_shown(one) for one in kept(seat, said)]


def _shown(one: Message) -> dict[str, Any]:
    if one["role"] == "tool":
        return {"role": "tool", "content": _content(one), "tool_call_id": one["id"], "name": one["tool"]}
    calls = [called(ToolCall(**call)) for call in one.get("calls", ())]
    return {"role": one["role"], "content": one["text"], **({"tool_calls": calls} if calls else {})}


def called(call: ToolCall) -> dict[str, Any]:
    """A call of a tool as scripts see it."""
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": encode(call.arguments)}}
