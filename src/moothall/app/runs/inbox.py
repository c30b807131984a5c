"""Everything that waits for a person, across runs and machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.runs.view import summary_of
from moothall.errors import MoothallError
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store, Stored


class Waiting(Frozen):
    """A question that waits: of which run, since when, until when, who may answer, and the shape of an answer."""

    run: RunId
    machine: str
    question: str
    prompt: str
    schema: Any
    due: float | None
    who: str
    since: float | None
    states: tuple[str, ...]
    top: RunId
    """The run at the top of its family, which a person has started."""
    top_machine: str
    sends_back: str = ""
    """What an answer begins with that sends back what waits for approval, with a reason behind it."""


async def inbox(store: Store, person: str | None = None) -> tuple[Waiting, ...]:
    """All questions, the ones with the nearest deadline first; only those that this person may answer."""
    stored = {run.record.run: run for run in await store.runs()}
    waiting: list[Waiting] = []
    for run in stored.values():
        if run.status != "live" or not run.head:
            continue
        for question in summary_of(run).questions:
            if person is None or question["who"] in ("", person):
                waiting.append(await _waiting(store, run, question, stored))
    return tuple(sorted(waiting, key=lambda asked: (asked.due is None, asked.due or 0, asked.since or 0)))


async def _waiting(store: Store, run: Stored, question: Mapping[str, Any], stored: Mapping[RunId, Stored]) -> Waiting:
    record, key = run.record, question["id"]
    top = record
    while top.parent in stored:
        top = stored[top.parent].record
    return Waiting(
        record.run,
        record.machine,
        key,
        question["prompt"],
        question["schema"],
        question["due"],
        question["who"],
        await _asked_at(store, record.run, key),
        tuple(run.head["snapshot"]["active"]),
        top.run,
        top.machine,
        question["sends_back"],
    )


async def _asked_at(store: Store, run: RunId, key: str) -> float | None:
    """When a question was asked: the key of an effect begins with the number of the entry that wants it."""
    number = key.partition(".")[0]
    if not number.isdigit():
        return None
    try:
        entries = await store.entries(run, int(number), 1)
    except MoothallError:
        return None
    return float(entries[0]["at"]) if entries else None
