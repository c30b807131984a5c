"""What the arena remembers of earlier runs, and how what is alike is found again.

A trace is a request with its tags and what became of it. Two texts are alike by the cosine of their words; tags count
as further words. Ratings, decisions, duels, traces and the
audit are records, by collection; the key of what one run wrote is its trace id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moothall.agents.recall import similarity
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.ratings import Rating, RatingKey, rating_of

RATINGS, TRACES, DECISIONS, DUELS, AUDIT = "ratings", "traces", "decisions", "duels", "audit"
NEAREST = 3
LONGEST = 2000
"""How much of a request a trace keeps, in characters."""


class Trace(Frozen):
    """An earlier run: what was asked for, its kind and tags, what was decided, and what became of it."""

    id: str
    request: str
    kind: str = ""
    tags: tuple[str, ...] = ()
    decision: str = ""
    outcome: str = ""
    consensus: float = 0.0
    reason: str = ""
    at: float = 0.0


class Likeness(Frozen):
    """A trace and how much it is like what was looked for, 0 to 1."""

    trace: Trace
    similarity: float


class KnownRating(Frozen):
    """A rating and whose it is."""

    key: RatingKey
    rating: Rating


def nearest(text: str, traces: Iterable[Trace], *, tags: Iterable[str] = (), most: int = NEAREST) -> list[Likeness]:
    """The traces that are most like a text, the nearest first; of two alike the newer one.

    The same request is found again also where it is made of words that say little.
    """
    looked_for = " ".join((text, *tags))
    alike: list[Likeness] = []
    for trace in traces:
        is_same = trace.request.casefold() == text[:LONGEST].casefold()
        share = 1.0 if is_same else similarity(looked_for, " ".join((trace.request, *trace.tags)))
        if share > 0:
            alike.append(Likeness(trace, share))
    return sorted(alike, key=lambda likeness: (-likeness.similarity, -likeness.trace.at, likeness.trace.id))[:most]


def record_key(key: RatingKey) -> str:
    """The name of a rating's record."""
    return "|".join(part.replace("|", "_") for part in (key.agent, key.model, key.kind, key.definition))


def key_in(record: str) -> RatingKey:
    """Whose rating a record is, by its name."""
    agent, model, kind, definition = (*record.split("|"), "", "", "")[:4]
    return RatingKey(agent, model, kind, definition)


def known_rating(record: str, value: Any) -> KnownRating:
    """A rating as it is stored."""
    return KnownRating(key_in(record), rating_of(value))
