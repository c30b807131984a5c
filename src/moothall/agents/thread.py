"""Threads that several agents share: what is kept of what they say, and how each of them sees it.

A message has the name of who said it. Everybody is the assistant of their own story: to others it is shown as something
that a user says, with the name in front. A move keeps what was said, with `keep_said` or an `Append` of `said_by`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moothall.agents.ask import Replied
from moothall.kernel.step import Append, Move

Message = Mapping[str, Any]


def said_by(name: str, text: str) -> Message:
    """Something that somebody said, as a thread keeps it."""
    return {"role": "assistant", "by": name, "text": text}


def keep_said(thread: str) -> Callable[[Any, Replied], Move[Any]]:
    """A move that keeps a reply in a thread, by the name of its agent."""

    def keep(data: Any, replied: Replied) -> Move[Any]:
        return Move(data, appends=(Append(thread, said_by(replied.agent, replied.text)),))

    keep.__qualname__ = f"keep_said({thread!r})"
    return keep


def seen_by(agent: str, said: Iterable[Message]) -> tuple[Message, ...]:
    """A thread as one of those who take part sees it."""
    return tuple(_view_of_message(agent, message) for message in said)


def _view_of_message(agent: str, message: Message) -> Message:
    speaker, text = message.get("by", ""), str(message.get("text", ""))
    if not speaker:
        return message
    if speaker == agent:
        return {"role": "assistant", "text": text, "calls": []}
    return {"role": "user", "text": f"{speaker}: {text}"}


def as_text(said: Iterable[Message], last: int = 0) -> str:
    """What was said, or the last of it, as one text: who said it, and what."""
    lines = [f"{message['by']}: {message['text']}" if "by" in message else str(message["text"]) for message in said]
    return "\n\n".join(lines[-last:] if last else lines)
