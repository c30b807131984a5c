"""Looking at runs without moving them: summaries, one run with its journal, and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moothall.app.finding import find
from moothall.app.report import page_of
from moothall.errors import Broken, MoothallError
from moothall.kernel.machine import Machine
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store, Stored


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in one line."""

    run: RunId
    machine: str
    status: str
    states: tuple[str, ...]
    seq: int
    began: str
    reason: str = ""
    model: str = ""
    spent: Mapping[str, float] = field(default_factory=dict)
    questions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A run and its journal."""

    summary: Summary
    entries: tuple[Mapping[str, Any], ...]


async def summaries(store: Store) -> tuple[Summary, ...]:
    """Every run of a store, the newest first."""
    return tuple(_summary(stored) for stored in await store.runs())


async def show(store: Store, run: RunId) -> Shown:
    """One run with its journal."""
    return Shown(_summary(await store.load(run)), tuple(await store.entries(run)))


async def page(store: Store, run: RunId) -> str:
    """A run as one HTML page that needs nothing else."""
    shown = await show(store, run)
    source = (await store.load(run)).record.source
    return page_of(shown.summary, shown.entries, _machine(source))


def _machine(source: str) -> Machine | None:
    """The machine of a run, where it can still be found; a page without a picture is better than none."""
    try:
        return find(source) if source else None
    except MoothallError:
        return None


def _summary(stored: Stored) -> Summary:
    try:
        return _summed_up(stored.record, stored.head)
    except (KeyError, TypeError) as error:
        raise Broken(f"the head of run {stored.record.run} is damaged: {error}") from error


def _summed_up(record: Record, head: Mapping[str, Any]) -> Summary:
    snapshot = head["snapshot"]
    questions = tuple(
        {"id": one["key"], "prompt": one["effect"]["prompt"], "schema": one["effect"]["schema"], "due": one.get("due")}
        for one in head["pending"]
        if one["kind"] == "ask.person"
    )
    status = snapshot["status"]
    if status == "live":
        status = "waiting" if questions else "running"
    return Summary(
        record.run,
        record.machine,
        status,
        tuple(snapshot["active"]),
        head["seq"],
        datetime.fromtimestamp(record.began).astimezone().isoformat(sep=" ", timespec="seconds"),
        snapshot["reason"],
        record.model,
        head["spent"],
        questions,
    )
