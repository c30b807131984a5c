"""Looking at runs without moving them: summaries, and what follows a journal.

What is shown has no secrets, also where it was kept before they were registered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from moothall.app.config.settings import cleaner
from moothall.app.kinds.ends import End, end_of, why_bad
from moothall.app.kinds.kind import KINDS
from moothall.app.report.amounts import date_of
from moothall.app.runs.news import Said
from moothall.app.runs.outcome import ended_as, question_of, standing
from moothall.errors import Broken, MoothallError
from moothall.kernel.effects import AskPerson
from moothall.runtime.children import child_id
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import FAMILY, Record, RunId
from moothall.runtime.ports import SET_ASIDE, Store, Stored

LOOK = 0.2
YES_OR_WORDS = [{"type": "boolean"}, {"type": "string"}]
BEHIND = 10
"""How many entries usually are behind the one that ended a run, at most: notes, and replies that came too late."""


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
    limits: Mapping[str, float] = field(default_factory=dict)
    project: str = ""
    """The folder of the project that it was begun in."""
    holder: str = ""
    """Who drives it now."""
    ending: str = ""
    """What became of it, where its last state alone does not say that."""


STATUSES = ("running", "waiting", "done", "failed", "limited", "cancelled", "stuck", "damaged", SET_ASIDE.rstrip(": "))
"""How a run can stand."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are looked for; what is left out does not matter."""

    status: str = ""
    machine: str = ""
    project: str = ""
    person: str | None = None
    """Who is asked something, by name; "" for whoever looks."""
    undriven: bool = False
    """Only those that could go on and that nobody drives."""

    def fits(self, summary: Summary) -> bool:
        """Whether a run is one of them."""
        return (
            self.status in ("", summary.status)
            and self.machine in ("", summary.machine)
            and self.project in ("", summary.project)
            and (self.person is None or self._is_asked(summary))
            and (not self.undriven or (summary.status == "running" and not summary.holder))
        )

    def _is_asked(self, summary: Summary) -> bool:
        return any(question["who"] in ("", self.person) for question in summary.questions)


async def summaries(store: Store) -> tuple[Summary, ...]:
    """Every run of a store, the newest first."""
    return tuple([await summary(store, stored) for stored in await store.runs()])


async def summary_of_run(store: Store, run: RunId) -> Summary:
    """One run in one line, as it may be shown."""
    return cast(Summary, cleaner()(await summary(store, await store.load(run))))


async def ended_at(store: Store, stored: Stored) -> float | None:
    """When the latest entry of a run was made; None where it cannot be read."""
    try:
        return float((await store.entries(stored.record.run, stored.seq))[-1]["at"])
    except (Broken, LookupError):
        return None


@dataclass(slots=True)
class Following:
    """Follows a run's journal; `next` is the entry that was not told yet."""

    run: RunId
    next: int = 0
    ended: str = ""
    """How the run ended, known when its last entry is told: that entry does not know that its end is a bad one."""

    async def wait_for_end(
        self, store: Store, tell: Callable[[Mapping[str, Any]], None], look: Callable[[], object] = lambda: None
    ) -> str:
        """Tell every entry, and each new one as it comes, until the run is over; its status then.

        `look` is called before each wait, and may put an end to it.
        """
        while True:
            stored = await store.load(self.run)
            for entry in await store.entries(self.run, self.next):
                if entry.get("status") == "done":
                    self.ended = end_status(await store.load(self.run))
                tell(cleaner()(entry))
                self.next = int(entry["seq"]) + 1
            if stored.status != "live" and stored.seq < self.next:
                return end_status(stored)
            look()
            await asyncio.sleep(LOOK)


async def follow(
    store: Store, run: RunId, start: int, pieces: asyncio.Queue[Said]
) -> AsyncIterator[Mapping[str, Any] | Said]:
    """The entries of a run as they come, and between them what is said, until the run is over."""
    clean = cleaner()
    while True:
        stored = await store.load(run)
        for entry in await store.entries(run, start):
            yield clean(entry)
            start = int(entry["seq"]) + 1
        is_over = stored.status != "live" and stored.seq < start
        if not is_over:
            with suppress(TimeoutError):
                yield await asyncio.wait_for(pieces.get(), LOOK)
        while not pieces.empty():  # also at the end: it may have been said while nobody was looking
            yield pieces.get_nowait()
        if is_over:
            return


async def export(store: Store, run: RunId) -> Mapping[str, Any]:
    """A run with all that is known of it."""
    stored = await store.load(run)
    known = {"record": stored.record, "status": stored.status, "head": stored.head, "entries": await store.entries(run)}
    return cast(Mapping[str, Any], cleaner()(known))


async def prune(store: Store, days: float, *, really: bool, project: str = "") -> list[RunId]:
    """The runs, of a project or of all, that ended more than so many days ago; deleted where that is really meant."""
    runs = [
        stored for stored in await store.runs() if stored.status != "live" and not stored.status.startswith(SET_ASIDE)
    ]
    limit = time.time() - days * 86400
    asked = [stored for stored in runs if project in ("", stored.record.project)]
    old = [stored.record for stored in asked if (ended := await ended_at(store, stored)) is not None and ended < limit]
    old = _without_origins(old, await store.runs())
    for record in old if really else ():
        await store.forget(record.run)
    return [record.run for record in old]


def _without_origins(old: list[Record], runs: list[Stored]) -> list[Record]:
    """Those of these runs that no other run was forked from but one of them: a fork shares its origin's journal."""
    gone = {record.run for record in old}
    origins = {stored.record.origin for stored in runs if stored.record.run not in gone}
    kept = [record for record in old if record.run not in origins]
    return kept if len(kept) == len(old) else _without_origins(kept, runs)


async def summary(store: Store, stored: Stored) -> Summary:
    """A run in one line; one whose child waits for a person waits too."""
    found = summary_of(stored)
    if stored.status == "done" and found.status != "done" and not found.reason:
        return replace(found, reason=await _why_bad(store, stored))
    if found.status != "running":
        return found
    for effect in stored.head["pending"]:
        if effect["kind"] in FAMILY and effect.get("began"):
            try:
                child = await summary(store, await store.load(child_id(stored.record.run, effect["key"])))
            except MoothallError:  # it is gone or damaged, which its own line tells
                continue
            if child.status == "waiting":
                return replace(found, status="waiting")
    return found


async def _why_bad(store: Store, stored: Stored) -> str:
    """Why a run came to an end that its machine calls a bad one."""
    snapshot, event = stored.head["snapshot"], await ending_event(store, stored.record.run, stored.seq)
    return why_bad(stored.record.source, snapshot["active"], snapshot["data"], event)


async def ending_event(store: Store, run: RunId, seq: int) -> Mapping[str, Any]:
    """The event with which a run ended; {} where it cannot be read."""
    for start in (max(0, seq - BEHIND), 0):
        try:
            entries = await store.entries(run, start)
        except Broken:
            return {}
        if ended := [entry for entry in entries if "status" in entry]:
            return cast(Mapping[str, Any], ended[-1]["event"])
    return {}


def _is_told(record: Record) -> bool:
    """Whether a run where nothing is under way waits to be told an event."""
    listing = KINDS.get(str(record.definition.get("kind", "")))
    return listing is not None and listing.told


def _sends_back(active: Sequence[str], schema: Any) -> str:
    """What an answer begins with that sends back what waits for approval; "" where yes or no is all that is asked."""
    words = {state: word for listing in KINDS.values() for state, word in listing.approvals.items()}
    takes_words = isinstance(schema, Mapping) and schema.get("anyOf") == YES_OR_WORDS
    return next((words[state] for state in active if state in words), "") if takes_words else ""


def moment(at: float) -> str:
    """A moment as a date and a time; as a number where a clock was so wrong that there is none."""
    date = date_of(at)
    return f"{at:.0f}" if date is None else date.isoformat(sep=" ", timespec="seconds")


def summary_of(stored: Stored) -> Summary:
    """A run in one line, from what the store has of it."""
    if not stored.head:
        began = moment(stored.record.began)
        reason = "its head is damaged; `moot resume` makes it anew from the journal"
        if not stored.record.digest:
            reason = "the record of how it began is damaged; bring back a copy of the file"
        return Summary(stored.record.run, stored.record.machine, "damaged", (), stored.seq, began, reason)
    try:
        summary = replace(_summed_up(stored.record, stored.head), holder=_holder_of(stored))
        if stored.status.startswith(SET_ASIDE):
            reason = f"{stored.status.removeprefix(SET_ASIDE)}; `moot resume` tries once more, `moot cancel` ends it"
            return replace(summary, status=SET_ASIDE.rstrip(": "), reason=reason)
        return summary
    except (KeyError, TypeError) as error:
        raise Broken(f"the head of run {stored.record.run} is damaged: {error}") from error


def end_status(stored: Stored) -> str:
    """The status of a run that is over."""
    return _end(stored.record, stored.head["snapshot"], stored.status)[0] if stored.head else stored.status


def _end(record: Record, snapshot: Mapping[str, Any], status: str) -> tuple[str, End | None]:
    """The status of a run, by the end that it came to where it is done, and what that end is where there is more."""
    ended = ended_as(status, snapshot["active"], record.bad_ends)
    if ended != status:
        return ended, None
    end = end_of(record.source, snapshot["data"]) if status == "done" else None
    return ("failed" if end is not None and end.is_bad else status), end


def _holder_of(stored: Stored) -> str:
    """Who drives a run; "" where its holder is gone, or was not heard of in time."""
    lease = stored.lease
    return lease.owner if lease.until > time.time() and not is_gone(lease.owner) else ""


def _summed_up(record: Record, head: Mapping[str, Any]) -> Summary:
    snapshot = head["snapshot"]
    asking = (pending for pending in head["pending"] if pending["kind"] == AskPerson.kind or "doubt" in pending)
    questions = tuple(
        {
            "id": pending["key"],
            "prompt": prompt,
            "schema": schema,
            "due": pending.get("due"),
            "who": pending["effect"].get("who", ""),
            "sends_back": _sends_back(snapshot["active"], schema),
        }
        for pending in asking
        for prompt, schema in [question_of(pending["effect"], pending.get("doubt", ""))]
    )
    ended, end = _end(record, snapshot, snapshot["status"])
    status = standing(ended, bool(questions), bool(head["pending"]))
    if end is not None:
        snapshot = {**snapshot, "reason": str(end)}
    if status == "stuck" and _is_told(record):
        status = "waiting"
    reason = "nothing is under way, and no row took what happened last" if status == "stuck" else snapshot["reason"]
    return Summary(
        record.run,
        record.machine,
        status,
        tuple(snapshot["active"]),
        head["seq"],
        moment(record.began),
        reason,
        record.model,
        head["spent"],
        questions,
        head.get("limits", record.limits),
        record.project,
        ending=end.name if end is not None else "",
    )


Asked = tuple[RunId, tuple[Mapping[str, Any], ...]]
"""A run and what it asks."""


async def questions_below(store: Store, run: RunId) -> tuple[Asked, ...]:
    """What runs ask that a run has started, and those that these have started."""
    below: tuple[Asked, ...] = ()
    head = (await store.load(run)).head
    for pending in head["pending"] if head else ():
        if pending["kind"] not in FAMILY or not pending.get("began"):
            continue
        child = child_id(run, pending["key"])
        with suppress(MoothallError):  # it is gone or damaged, which `moot ls` tells
            asked = summary_of(await store.load(child)).questions
            below += (*(((child, asked),) if asked else ()), *await questions_below(store, child))
    return below
