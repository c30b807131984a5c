"""What a conversation remembers beyond its newest turns, as a pure fold over what was said and decided.

`remember` takes one item. When `compression_threshold` items stand raw, a summary is `due`: it names the items, and
whoever drives the fold has them summarised (a model, or `extract` offline) and folds the answer in with `summarised`.
The 2 newest items stay raw. Beyond `max_embeddings` summaries the older ones are merged, not dropped.

Key items (decision, approval, rejection, constraint) are kept with who said them and at which step, whatever a summary
leaves out; after every compaction that is checked. The kind of an item comes from the directive of its reply or from
a marker `@DECISION(reason=…)` in its text, never from a guess. Raw text is not deleted: the thread has it.

What memory itself put into a prompt stands between `OPENING` and `CLOSING`, and is never remembered again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moothall.agents.recall import Item, Recall, similarity
from moothall.errors import BadValue, Broken
from moothall.kernel.frozen import Frozen

KEPT_RAW = 2
"""How many of the newest items stay raw when the others are summarised."""
OPENING, CLOSING = "<recalled>", "</recalled>"
_RECALLED = re.compile(rf"{OPENING}.*?(?:{CLOSING}|\Z)", re.DOTALL)
_MARKER = re.compile(r"@DECISION\(\s*reason\s*=\s*(?P<reason>[^()\s](?:[^()]|\([^()]*\))*)\)")
_MOST_DISCUSSIONS = 12
"""How many points of discussion a merged summary keeps; the thread has all of them."""


class Summary(Frozen):
    """A stretch of conversation in short: what was decided, discussed and left open, from when to when."""

    decisions: tuple[str, ...] = ()
    discussions: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    timestamp_range: tuple[float, float] = (0, 0)
    decision_count: int = 0
    items: int = 0
    embedding: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """All that it says, as what an embedding is made of."""
        return "\n".join((*self.decisions, *self.discussions, *self.pending))


class Memory(Frozen):
    """What is remembered: raw items, of which the first `covered` are in a summary already, key items, summaries."""

    compression_threshold: int = 5
    max_embeddings: int = 10
    raw: tuple[Item, ...] = ()
    covered: int = 0
    key: tuple[Item, ...] = ()
    summaries: tuple[Summary, ...] = ()

    def __post_init__(self) -> None:
        if self.compression_threshold <= KEPT_RAW:
            raise BadValue(f"compression_threshold is {self.compression_threshold!r}; it must be above {KEPT_RAW}")
        if self.max_embeddings < 1:
            raise BadValue(f"max_embeddings is {self.max_embeddings!r}; it must be at least 1")

    def remember(self, item: Item) -> Memory:
        """Take in one item. What was recalled is not news and changes nothing."""
        content = _RECALLED.sub("", item.content).strip() if OPENING in item.content else item.content
        if item.kind == "recalled" or (not content.strip() and item.content):
            return self
        item = replace(item, content=content, kind=kind_of(content, item.kind))
        return replace(self, raw=(*self.raw, item), key=(*self.key, item) if item.is_key else self.key)

    def due(self) -> tuple[Item, ...]:
        """The items that want to be summarised now; none where the threshold has not been reached."""
        return self.raw[self.covered :] if len(self.raw) >= self.compression_threshold else ()

    def summarised(self, summary: Summary) -> Memory:
        """Fold in the summary of the items that were due; what it left out of the decisions is added."""
        items = self.due()
        if not items:
            return self
        complete = _complete_summary(summary, items)
        kept = self.raw[-KEPT_RAW:]
        summaries = _merge_summaries((*self.summaries, complete), self.max_embeddings)
        after = replace(self, raw=kept, covered=len(kept), summaries=summaries)
        if lost := lost_key_items(self, after):
            raise Broken(f"a compaction lost {len(lost)} key items, first {lost[0].content[:80]!r}; please report it")
        return after

    def relevant_context(
        self, query: str, max_items: int = 3, *, embedding: Sequence[float] = ()
    ) -> dict[str, list[Any]]:
        """What is worth knowing for a query: key decisions and newest turns, and the summaries most similar to it."""
        order = range(len(self.summaries))
        closest = sorted(order, key=lambda index: (-_closeness(self.summaries[index], query, embedding), -index))
        chosen = sorted(closest[: max(max_items, 0)], key=closest.index)
        return {
            "recent_context": [item.content for item in (*self.key[-3:], *self.raw[-KEPT_RAW:])],
            "compressed_history": [self.summaries[index] for index in chosen],
            "key_decisions": [item.content for item in self.key],
        }


def lost_key_items(before: Memory, after: Memory) -> tuple[Item, ...]:
    """Key items that were known before and are not now."""
    known = set(after.key)
    seen = (*before.key, *(item for item in before.raw if item.is_key))
    return tuple(item for item in seen if item not in known)


def kind_of(content: str, kind: str = "general") -> str:
    """The kind of an item: as its reply says, else a decision where a marker stands in the text."""
    return "decision" if kind == "general" and _MARKER.search(content) is not None else kind


def marked_reasons(content: str) -> tuple[str, ...]:
    """The reasons of the `@DECISION(reason=…)` markers of a text."""
    return tuple(match["reason"].strip().strip("\"'") for match in _MARKER.finditer(content))


def extract(items: Sequence[Item]) -> Summary:
    """A summary without a model: key items word by word, the first sentences of the others, questions left open."""
    sentences = [(index, sentence) for index, item in enumerate(items) for sentence in _sentences(item)]
    discussions = [_first_sentence(item) for item in items if not item.is_key and item.content.strip()]
    open_questions = (
        f"{items[index].who}: {sentence}" if items[index].who else sentence
        for index, sentence in sentences
        if sentence.endswith("?") and index == len(items) - 1
    )
    return _complete_summary(Summary(discussions=tuple(discussions), pending=tuple(open_questions)), items)


def prompt_text(recall: Recall, query: str, *, budget: int) -> str:
    """What a prompt shows of a conversation for a query, marked as recalled, in at most `budget` characters."""
    frame = len(OPENING) + len(CLOSING) + 2
    text = recall.context(query, budget=budget - frame) if budget > frame else ""
    return f"{OPENING}\n{text}\n{CLOSING}" if text else ""


def _complete_summary(summary: Summary, items: Sequence[Item]) -> Summary:
    """A summary with all key items, the time range and the number of decisions of what it summarises."""
    said = "\n".join(summary.decisions)
    missing = (_item_text(item) for item in items if item.is_key and item.content not in said)
    return replace(
        summary,
        decisions=(*summary.decisions, *missing),
        timestamp_range=(items[0].time, items[-1].time),
        decision_count=sum(item.kind == "decision" for item in items),
        items=len(items),
    )


def _item_text(item: Item) -> str:
    return f"{item.who}: {item.content}" if item.who else item.content


def _sentences(item: Item) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?…])\s+|\n+", item.content) if part.strip()]


def _first_sentence(item: Item) -> str:
    sentence = _sentences(item)[0]
    return _item_text(replace(item, content=sentence if len(sentence) <= 240 else f"{sentence[:239]}…"))


def _merge_summaries(summaries: tuple[Summary, ...], most: int) -> tuple[Summary, ...]:
    while len(summaries) > most:
        first, second, *rest = summaries
        summaries = (_join_summaries(first, second), *rest)
    return summaries


def _join_summaries(older: Summary, newer: Summary) -> Summary:
    """Two summaries as one: nothing decided or left open is dropped, and the newest points of discussion stay.

    Its embedding is the mean of both, weighted by how much they cover, so that no model has to be asked again.
    """
    total = older.items + newer.items
    both = older.embedding and len(older.embedding) == len(newer.embedding) and total
    pairs = zip(older.embedding, newer.embedding, strict=True) if both else ()
    return Summary(
        decisions=(*older.decisions, *newer.decisions),
        discussions=(*older.discussions, *newer.discussions)[-_MOST_DISCUSSIONS:],
        pending=(*older.pending, *newer.pending),
        timestamp_range=(older.timestamp_range[0], newer.timestamp_range[1]),
        decision_count=older.decision_count + newer.decision_count,
        items=total,
        embedding=tuple((left * older.items + right * newer.items) / total for left, right in pairs),
    )


def _closeness(summary: Summary, query: str, embedding: Sequence[float]) -> float:
    if embedding and len(embedding) == len(summary.embedding):
        product = sum(left * right for left, right in zip(embedding, summary.embedding, strict=True))
        return product / ((math.hypot(*embedding) * math.hypot(*summary.embedding)) or 1)
    return similarity(query, summary.text)
