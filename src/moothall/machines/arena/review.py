"""The machine by which a person judges a plan that was blocked: its ratings move then, and the plan stays blocked.

A veto of an agent counts for nobody until it is confirmed or refuted. A plan that a static rule or a person stopped has
been judged already, one that was carried out is judged by its outcome, and nobody judges twice. Everything is written
over the versions that were read, all or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from moothall.kernel.codec import decode
from moothall.kernel.effects import ReadRecords, WriteRecords
from moothall.kernel.events import Conflicted, Event, GaveUp, RecordsRead, RecordsWritten, SharedRecord
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting
from moothall.kernel.step import Move
from moothall.machines.arena.case import STATIC_RULES
from moothall.machines.arena.consensus import Vote
from moothall.machines.arena.debate import why
from moothall.machines.arena.effects import MemoryRead, ReadMemory
from moothall.machines.arena.memory import DECISIONS, key_in
from moothall.machines.arena.ratings import RatingKey, Settled
from moothall.machines.arena.records import Judgement, rating_records, records_moved_by

REVIEW = "arena-review"
MOST_CONFLICTS = 20
CONFIRMED, REFUTED = "confirmed", "refuted"


class Review(Frozen):
    """A run, whether its plan was good after all, who says so, and the record of its decision."""

    trace_id: str
    is_good: bool
    by: str = ""
    decision: Mapping[str, Any] | None = None
    version: int = 0
    refusal: str = ""


@emitting(ReadRecords)
def read_decision(review: Review, _: Event) -> ReadRecords:
    """Look up what was decided."""
    return ReadRecords(DECISIONS, review.trace_id)


def fault_of(review: Review, read: RecordsRead) -> str:
    """Why there is nothing to judge; empty where there is."""
    if not read.records:
        return f"no run of the arena is remembered as {review.trace_id!r}; `moot recall` finds runs"
    decision = read.records[0].value
    veto = decision["veto"] or {}
    if decision["outcome"] != "blocked":
        return f"the plan of {review.trace_id} was not blocked; its outcome judges it"
    if veto.get("rule") or veto.get("by") == STATIC_RULES:
        return f"a static rule has confirmed the veto of {review.trace_id}; a rule cannot be refuted"
    if decision["judged"] not in ("", "expired"):
        return f"a person has judged the plan of {review.trace_id} already"
    if not decision["votes"] or "keys" not in decision:
        return f"nobody voted on the plan of {review.trace_id}, or it is not known whose ratings the votes move"
    return ""


def cannot_judge(review: Review, read: RecordsRead) -> bool:
    """Whether there is nothing to judge."""
    return bool(fault_of(review, read))


def keep_refusal(review: Review, read: RecordsRead) -> Review:
    """Keep why there is nothing to judge."""
    return replace(review, refusal=fault_of(review, read))


@emitting(ReadMemory)
def read_ratings(review: Review, read: RecordsRead) -> Move[Review]:
    """Keep what was decided, and read the ratings that the judgement moves."""
    record = read.records[0]
    review = replace(review, decision=record.value, version=record.version)
    return Move(review, effects=(ReadMemory(rating_records(_judgement(review))),))


def _judgement(review: Review) -> Judgement:
    decision = review.decision or {}
    keys: dict[str, RatingKey] = {agent: key_in(key) for agent, key in decision["keys"].items()}
    vetoed = (decision["veto"] or {}).get("by", "")
    votes = tuple(decode(Vote, vote) for vote in decision["votes"])
    return Judgement(votes, keys, Settled(review.is_good, "person", vetoed), decision.get("kind", ""))


@emitting(WriteRecords)
def write_judgement(review: Review, read: MemoryRead) -> WriteRecords:
    """Write the judgement, the duels that it decides and the ratings that they move."""
    judged = {"judged": REFUTED if review.is_good else CONFIRMED, "judge": review.by, "judged_at": read.at}
    decision = SharedRecord(DECISIONS, review.trace_id, {**(review.decision or {}), **judged}, review.version)
    moved = records_moved_by(_judgement(review), review.trace_id, read)
    return WriteRecords((decision, *moved))


def keep_failure(review: Review, event: Event) -> Review:
    """Keep that nothing could be written, and why."""
    return replace(review, refusal=f"the judgement could not be written: {why(event)}; try again")


def refusal_of(review: Review, _: Event) -> str:
    """Why nothing was judged."""
    return review.refusal


@cache
def review() -> Machine:
    """The machine by which a person judges a blocked plan."""
    return Machine(
        REVIEW,
        data=Review,
        kind="arena",
        states=[
            State("reading", enter=read_decision),
            State("rating"),
            State("writing"),
            Final("judged"),
            Final("refused", result=refusal_of),
        ],
        moves=[
            On("reading", RecordsRead, to="refused", when=cannot_judge, do=keep_refusal),
            On("reading", RecordsRead, to="rating", do=read_ratings),
            On("rating", MemoryRead, to="writing", do=write_judgement),
            On("writing", RecordsWritten, to="judged"),
            On("writing", Conflicted, to="reading", at_most=MOST_CONFLICTS),
            On("reading", GaveUp, to="refused", do=keep_failure),
            On("rating", GaveUp, to="refused", do=keep_failure),
            On("writing", [Conflicted, GaveUp], to="refused", do=keep_failure),
        ],
    )
