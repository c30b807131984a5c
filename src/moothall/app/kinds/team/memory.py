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
        self.memory = Memory(compression_threshold, max_embeddings)
        self._summarise, self._clock = summarise, clock
        self._steps = 0

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
        context = self.memory.relevant_context(query, max_items)
        shown = ("decisions", "discussions", "pending", "timestamp_range", "decision_count")
        history = context["compressed_history"]
        return {
            **context,
            "compressed_history": [_plain({name: getattr(summary, name) for name in shown}) for summary in history],
        }


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) and name != "timestamp_range" else value
        for name, value in fields.items()
    }
