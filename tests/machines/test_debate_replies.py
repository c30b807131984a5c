"""Replies of real small models to a debate's own requests: what a person could not read is counted as nothing.

The replies are kept beside the project, and not with it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.narrow import find_stray, pick_choice
from moothall.machines.debate.definition import Answers
from moothall.machines.debate.votes import normalise

FILE = Path(__file__).parents[3] / "shared/evals/replies/replies.jsonl"
OPTIONS = ("SQLite", "PostgreSQL", "Redis")
CHOICE = Answers("choice", OPTIONS)
LABELS = ("A", "B")


def judged(kind: str) -> list[dict[str, Any]]:
    """The replies of a kind that a person has read."""
    if not FILE.exists():
        pytest.skip(f"there are no replies at {FILE.name}: the shared folder is not beside this one")
    rows = map(json.loads, FILE.read_text().splitlines())
    return [row for row in rows if row["kind"] == kind and row["verdict"] != "not judged"]


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that begins somewhere in a text."""
    decoder = json.JSONDecoder()
    for place in (place for place, character in enumerate(text) if character == "{"):
        try:
            value, _ = decoder.raw_decode(text, place)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def answers_in(value: Any) -> Iterator[str]:
    """Every answer, however deep."""
    if isinstance(value, dict):
        yield from (part for name, part in value.items() if name == "answer" and isinstance(part, str))
        for part in value.values():
            yield from answers_in(part)


def test_what_a_person_read_as_no_option_is_never_counted_as_one() -> None:
    unread = [row for row in judged("proposal") if not (row["reading"] or {}).get("answer")]
    assert unread
    for row in unread:
        assert normalise(row["text"], CHOICE) == ""
        assert not any(normalise(answer, CHOICE) for found in objects_in(row["text"]) for answer in answers_in(found))


def test_an_answer_is_counted_as_what_a_person_read_or_not_at_all() -> None:
    read = [row for row in judged("proposal") if (row["reading"] or {}).get("answer")]
    counted = 0
    for row in read:
        given = {answer for found in objects_in(row["text"]) for answer in answers_in(found)}
        votes = {vote for answer in given if (vote := normalise(answer, CHOICE))}
        assert votes <= {row["reading"]["answer"]}
        counted += bool(votes)
    in_prose = [row for row in read if "answer in prose" in row["repair"]]
    assert counted == len(read) - len(in_prose)


def test_labels_are_read_as_a_person_read_them() -> None:
    rows = [row for row in judged("critique") if row["verdict"] == "readable"]
    assert rows
    for row in rows:
        assert not find_stray(row["reading"], {"reviews.label": {"enum": list(LABELS)}})
        assert all(pick_choice(review["label"], LABELS) == review["label"] for review in row["reading"]["reviews"])
