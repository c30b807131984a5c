"""The memory of a conversation for programs that have no run: the fold of `agents`, with a clock and a summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from moothall.agents.memory import Memory, Summary, extract
from moothall.agents.recall import Item
from moothall.errors import BadValue

CONTENT_TYPES = ("general", "decision", "approval", "rejection", "constraint")


class ConversationMemory:
    """Remembers what was said: the newest turns as they are, older ones in short, decisions word by word.

    `summarise` makes a summary of some items; without one the summary is extractive and needs no model.
    """

    def __init__(
        self,
        compression_threshold: int = 5,
        max_embeddings: int = 10,
        *,
        summarise: Callable[[Sequence[Item]], Summary] = extract,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.memory = Memory(
            _whole(compression_threshold, "compression_threshold"), _whole(max_embeddings, "max_embeddings")
        )
        self._summarise, self._clock = summarise, clock
        self._steps = 0

    @property
    def raw_memory(self) -> list[dict[str, Any]]:
        """What is remembered word by word, the oldest first; the 2 newest stay when the others are compressed."""
        return [{"content": item.content, "type": item.kind, "timestamp": item.time} for item in self.memory.raw]

    @property
    def compressed_embeddings(self) -> list[dict[str, Any]]:
        """The summaries of what was compressed, the oldest first."""
        return [_plain_summary(summary) for summary in self.memory.summaries]

    @property
    def key_decisions(self) -> list[str]:
        """Every decision, approval, rejection and constraint, the oldest first; none is compressed away."""
        return [item.content for item in self.memory.key]

    def update(self, new_content: str, content_type: str = "general") -> None:
        """Take in something that was said, of the kind that its reply gave it."""
        if content_type not in CONTENT_TYPES:
            raise BadValue(f"content_type is {content_type!r}; it must be one of {', '.join(CONTENT_TYPES)}")
        if not isinstance(new_content, str):
            raise BadValue(f"new_content is a {type(new_content).__name__}; it must be a text")
        self._steps += 1
        item = Item(new_content, kind=content_type, step=self._steps, time=self._clock())
        self.memory = self.memory.remember(item)
        if items := self.memory.due():
            self.memory = self.memory.summarised(self._summarise(items))

    def get_relevant_context(self, query: str, max_items: int = 3) -> dict[str, list[Any]]:
        """`recent_context`, `compressed_history` by similarity to the query, and all `key_decisions`."""
        if not isinstance(query, str):
            raise BadValue(f"query is a {type(query).__name__}; it must be a text")
        context = self.memory.relevant_context(query, _whole(max_items, "max_items"))
        return {**context, "compressed_history": [*map(_plain_summary, context["compressed_history"])]}


def _plain_summary(summary: Summary) -> dict[str, Any]:
    return {
        "decisions": list(summary.decisions),
        "discussions": list(summary.discussions),
        "pending": list(summary.pending),
        "timestamp_range": summary.timestamp_range,
        "decision_count": summary.decision_count,
    }


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadValue(f"{name} is {value!r}; it must be a whole number")
    return value
