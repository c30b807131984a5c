"""What a limited prompt still lets one answer: the shipped memory against the newest messages, a search and decisions.

    python benchmarks/memory.py FILE [--json]

Conversations, questions and measures are those of the simulated worlds' description. Nothing is drawn.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import worlds

from moothall.agents.memory import prompt_text
from moothall.agents.recall import FUNCTION_WORDS, Item, Recall

STRETCH = 320
Message = dict[str, Any]


def line(message: Message) -> str:
    return f"{message['speaker']}: {message['text']}"


def told(chosen: Iterable[Message], budget: int) -> str:
    """The lines that fit, in the order of the conversation; one that does not fit is passed over."""
    kept, room = [], budget
    for message in chosen:
        if len(line(message)) + 1 <= room + (not kept):
            kept.append(message)
            room -= len(line(message)) + 1
    return "\n".join(line(message) for message in sorted(kept, key=lambda message: message["n"]))


def last_n(messages: Sequence[Message], query: str, budget: int) -> str:
    return told(reversed(messages), budget)


def recency_decisions(messages: Sequence[Message], query: str, budget: int) -> str:
    decided = [message for message in reversed(messages) if message["type"] != "general"]
    kept, room = [], budget // 2
    for message in decided:
        if len(line(message)) + 1 <= room:
            kept.append(message)
            room -= len(line(message)) + 1
    known = {message["n"] for message in kept}
    return told([*kept, *(message for message in reversed(messages) if message["n"] not in known)], budget)


def fts(messages: Sequence[Message], query: str, budget: int) -> str:
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE said USING fts5(line, tokenize = 'porter unicode61')")
    index.executemany(
        "INSERT INTO said(rowid, line) VALUES (?, ?)", ((message["n"], line(message)) for message in messages)
    )
    words = [word for word in re.findall(r"\w+", query) if word.lower() not in FUNCTION_WORDS]
    match = " OR ".join(f'"{word}"' for word in words)
    rows = index.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said)", (match,)).fetchall()
    index.close()
    by_number = {message["n"]: message for message in messages}
    return told([by_number[number] for (number,) in rows], budget)


@lru_cache(maxsize=64)
def recall_of(messages: tuple[tuple[str, str, str, int], ...]) -> Recall:
    return Recall(Item(text, kind, who, number, number) for text, kind, who, number in messages)


def moothall(messages: Sequence[Message], query: str, budget: int) -> str:
    rows = tuple((message["text"], message["type"], message["speaker"], message["n"]) for message in messages)
    return prompt_text(recall_of(rows), query, budget=budget)


METHODS: dict[str, Callable[[Sequence[Message], str, int], str]] = {
    "moothall": moothall,
    "last_n": last_n,
    "fts": fts,
    "recency_decisions": recency_decisions,
}


def is_answerable(context: str, needs: list[list[str]]) -> bool:
    """Whether a stretch of the context has a string of every group."""
    lowered = context.lower()
    places = sorted(
        (match.start(), match.end(), group)
        for group, strings in enumerate(needs)
        for text in strings
        for match in re.finditer(r"(?<![^\W_])" + re.escape(text.lower()), lowered)
    )
    for index, (start, _, _) in enumerate(places):
        groups = {group for _, end, group in places[index:] if end <= start + STRETCH}
        if len(groups) == len(needs):
            return True
    return False


def kinds(question: dict[str, Any]) -> tuple[str, ...]:
    subject = "decisions" if question["regime"].startswith("decision") else "facts"
    return ("all", subject, "paraphrased" if question["paraphrase"] else "not_paraphrased", question["regime"])


def measure_method(file: list[Any], method: str, budget: int) -> dict[str, Any]:
    shares: dict[str, list[float]] = {}
    stale: list[float] = []
    over, lost_of_500 = 0, 0.0
    for world in file:
        marks: dict[str, list[bool]] = {}
        stale_marks = []
        for question in world["questions"]:
            context = METHODS[method](world["messages"][: question["at"] + 1], question["text"], budget)
            over += len(context) > budget
            lost = not is_answerable(context[:budget], question["needs"])
            for kind in kinds(question):
                marks.setdefault(kind, []).append(lost)
            has_stale = any(value.lower() in context[:budget].lower() for value in question["stale"])
            stale_marks.append(lost and has_stale)
        if world["regime"] == "500-decisions":
            lost_of_500 = sum(marks["all"]) / len(marks["all"])
            continue
        for kind, values in marks.items():
            shares.setdefault(kind, []).append(sum(values) / len(values))
        stale.append(sum(stale_marks) / len(stale_marks))
    return {
        "lost": {kind: worlds.spread(values) for kind, values in shares.items()},
        "stale": worlds.spread(stale),
        "over_budget": over,
        "decisions_500_lost": lost_of_500,
    }


def measure(file: list[Any], seeds: int) -> dict[str, Any]:
    """Every method at every budget."""
    answer: dict[str, dict[str, Any]] = {}
    for budget in file[0]["budget"]:
        rows = {method: measure_method(file, method, budget) for method in METHODS}
        for row in rows.values():
            for key, other in (("of_last_n", "last_n"), ("of_fts", "fts")):
                whole = rows[other]["lost"]["all"]["mean"]
                row[key] = row["lost"]["all"]["mean"] / whole if whole else None
        answer[str(budget)] = rows
    return {"budgets": answer}


if __name__ == "__main__":
    worlds.main("memory", measure, __doc__)
