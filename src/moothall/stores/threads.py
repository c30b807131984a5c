"""Where the messages of a thread stand: which entries have some of them, and the place in the thread of their first.

A store keeps one piece for every entry and thread that it appends to, in the same commit. A window of a thread is then
read from the entries that have it, and from no others. A fork has pieces of its own behind those that it shares.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from moothall.kernel.frozen import Frozen, slotted
from moothall.runtime.journal import Entry, Head
from moothall.runtime.rebuild import taken_back


@slotted
class Piece(Frozen):
    """What an entry appends to a thread begins at this place of it."""

    thread: str
    start: int
    seq: int


_start = attrgetter("start")


def appended_pieces(head: Head, entries: Sequence[Entry]) -> list[Piece]:
    """The pieces that these entries append, if this is the head after the last of them."""
    counts = [(entry.seq, Counter(append.thread for append in entry.appends)) for entry in entries if entry.appends]
    if not counts:
        return []
    places = {name: tail.count for name, tail in head.snapshot.threads.items()}
    found: list[Piece] = []
    for seq, appended in reversed(counts):
        for thread, count in appended.items():
            places[thread] -= count
            found.append(Piece(thread, places[thread], seq))
    return found[::-1]


def count_pieces(seq: int, entry: Mapping[str, Any], places: dict[str, int]) -> list[Piece]:
    """The pieces that an entry appends, from its JSON; `places` says how far each thread has grown, and goes along."""
    found: list[Piece] = []
    for thread, count in Counter(append["thread"] for append in entry.get("appends", ())).items():
        found.append(Piece(thread, places.get(thread, 0), seq))
        places[thread] = places.get(thread, 0) + count
    return found


def within(pieces: Sequence[Piece], start: int, end: int) -> Sequence[Piece]:
    """Those pieces, of all of a thread in order, that have messages from one place up to another."""
    first = max(0, bisect_right(pieces, start, key=_start) - 1)
    return [piece for piece in pieces[first:] if piece.start < end]


def cut(piece: Piece, entry: Mapping[str, Any], start: int, end: int) -> list[Any]:
    """The messages of a piece that stand from one place up to another, from the entry that has them."""
    said = [append["message"] for append in entry["appends"] if append["thread"] == piece.thread]
    return said[max(0, start - piece.start) : end - piece.start]


def said_in(entries: Sequence[Mapping[str, Any]], thread: str) -> list[Any]:
    """The messages of a thread in a whole journal, without those that were taken back."""
    undone = taken_back(entries)
    appends = [append for entry in entries if entry["seq"] not in undone for append in entry.get("appends", ())]
    return [append["message"] for append in appends if append["thread"] == thread]


def join_parts(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Messages that were found part by part, the newest part first."""
    return [message for part in reversed(parts) for message in part]
