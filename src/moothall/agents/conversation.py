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


def window_of(seat: Seat, said: Iterable[Message]) -> list[Message]:
    """What is left of a conversation: since it was cleared, and no more than fits."""
    found = [*seat.starting, *said]
    cleared = max((at for at, message in enumerate(found) if message["role"] == "clear"), default=-1)
    system = [message for message in found[:cleared] if message["role"] == "system"] if cleared >= 0 else []
    groups = list(_message_groups([*system, *found[cleared + 1 :]]))
    length = sum(map(_length, groups))
    left: list[list[Message]] = []
    for group in groups:
        if length > seat.most and group[0]["role"] != "system" and group is not groups[-1]:
            length -= _length(group)
        else:
            left.append(group)
    return [message for group in left for message in group]


def is_enough(seat: Seat, said: Sequence[Message]) -> bool:
    """Whether these latest messages of a conversation are all that is left of it, whatever was said before them.

    What the system says stands at the start of a conversation, and not in its thread.
    """
    if any(message["role"] == "clear" for message in said):
        return True
    whole = next((at for at, message in enumerate(said) if message["role"] != "tool"), len(said))
    return _length(said[whole:]) > seat.most


def _message_groups(said: Sequence[Message]) -> Iterator[list[Message]]:
    """Messages that cannot be parted: calls and what they returned."""
    group: list[Message] = []
    for message in said:
        if group and message["role"] != "tool":
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _length(group: Sequence[Message]) -> int:
    return sum(len(_content(message)) for message in group)


def _content(message: Message) -> str:
    if message["role"] != "tool":
        return str(message["text"])
    return str(message["error"]) if "error" in message else _plain(message.get("value"))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def view_of(seat: Seat, said: Iterable[Message], parsing: Iterable[str] = ()) -> tuple[Message, ...]:
    """A conversation as one of those who take part sees it; of others' parsing tools the calls are enough."""
    silent = frozenset(parsing)
    return tuple(
        _view_of_message(seat, message) for message in window_of(seat, said) if _concerns(seat, message, silent)
    )


def _concerns(seat: Seat, message: Message, silent: frozenset[str]) -> bool:
    return message["role"] != "tool" or message["by"] == seat.agent or message["tool"] not in silent


def _view_of_message(seat: Seat, message: Message) -> Message:
    is_own = message.get("by") == seat.agent
    if message["role"] == "system":
        return {"role": "system", "text": message["text"]}
    if message["role"] == "tool" and is_own:
        return {name: part for name, part in message.items() if name != "by"}
    if message["role"] == "tool":
        how = f"failed: {message['error']}" if "error" in message else f"returned: {_plain(message.get('value'))}"
        return speech("user", f"[{message['by']}: {message['tool']} {how}]")
    side = message["role"] if seat.side == "assistant" else OPPOSITE[message["role"]]
    calls = message.get("calls", ())
    if is_own:
        return speech(side, message["text"], calls)
    if "by" not in message:
        return speech(side, message["text"])
    told = [f"[{message['by']} called {call['tool']}({_plain(call['arguments'])})]" for call in calls]
    text = f"{message['by']}: {message['text']}" if message["text"] else ""
    return speech("user", "\n".join(filter(None, (text, *told))))


def speech(side: str, text: str, calls: Sequence[Any] = ()) -> Message:
    """Something that somebody said, as a model is shown it."""
    return {"role": side, "text": text, "calls": list(calls)} if side == "assistant" else {"role": side, "text": text}


def shown_to_scripts(seat: Seat, said: Iterable[Message]) -> list[dict[str, Any]]:
    """A conversation as the scripts of a workflow see it: roles and contents, as providers have them."""
    return [_plain_message(message) for message in window_of(seat, said)]


def _plain_message(message: Message) -> dict[str, Any]:
    if message["role"] == "tool":
        return {"role": "tool", "content": _content(message), "tool_call_id": message["id"], "name": message["tool"]}
    calls = [plain_call(ToolCall(**call)) for call in message.get("calls", ())]
    return {"role": message["role"], "content": message["text"], **({"tool_calls": calls} if calls else {})}


def plain_call(call: ToolCall) -> dict[str, Any]:
    """A call of a tool as scripts see it."""
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": encode(call.arguments)}}
