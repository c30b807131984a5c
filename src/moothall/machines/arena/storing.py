"""The moves of the arena that remember: what is written when the outcome is known, and the audit at the end.

Records are written in the transaction of StoringMemory, over the versions that were read; where others were quicker
they are read and decided again. Ratings move by the duels that the outcome decides, for the agent on this model and
for this kind of task, and for its parents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.kernel.codec import encode
from moothall.kernel.effects import WriteRecords
from moothall.kernel.events import Event, SharedRecord
from moothall.kernel.nodes import emitting
from moothall.kernel.step import Move
from moothall.machines.arena.case import STATIC_RULES, Case
from moothall.machines.arena.debate import why
from moothall.machines.arena.effects import MemoryRead, ReadMemory
from moothall.machines.arena.memory import (
    AUDIT,
    DECISIONS,
    DUELS,
    LONGEST,
    RATINGS,
    TRACES,
    Trace,
    key_in,
    record_key,
)
from moothall.machines.arena.ratings import (
    Duel,
    Rating,
    RatingKey,
    Settled,
    as_record,
    lineage,
    outcome_duels,
    rating_of,
    start_rating,
    updated,
)


def settled(case: Case) -> Settled:
    """What is known of the plan now: whether it proved good, and who told."""
    vetoed = "" if case.veto is None or case.veto.by == STATIC_RULES else case.veto.by
    match case.outcome:
        case "succeeded":
            return Settled(True, "outcome")
        case "rolled_back" if not (case.halted or any(result.is_unable for result in case.results.values())):
            return Settled(False, "outcome")
        case "blocked" if case.violations:
            return Settled(False, "rule", vetoed)
        case "blocked" if case.judged == "no":
            return Settled(False, "person", vetoed)
    return Settled(None, "", vetoed)


@emitting(ReadMemory)
def read_memory(case: Case, _: Event) -> Move[Case]:
    """Decide the duels, and read the ratings that they move."""
    duels = outcome_duels(case.votes, settled(case))
    agents = dict.fromkeys(agent for duel in duels for agent in (duel.first, duel.second))
    keys = dict.fromkeys(record_key(place) for agent in agents for place in lineage(case.rating_key(agent)))
    return Move(replace(case, duels=duels), effects=(ReadMemory(tuple(keys)),))


@emitting(WriteRecords)
def store_all_in_memory(case: Case, read: MemoryRead) -> Move[Case]:
    """Write the trace, the decision, the duels and the ratings, all or none.

    A run that was forked from another is remembered under an id of its own.
    """
    case = replace(case, trace_id=read.trace_id or case.trace_id)
    versions = {(record.collection, record.key): record.version for record in read.records}
    known = {record.key: rating_of(record.value) for record in read.records if record.collection == RATINGS}
    moved, told = moved_ratings(case, known)
    values: dict[tuple[str, str], Any] = {
        (TRACES, case.trace_id): encode(trace_of(case, read.at)),
        (DECISIONS, case.trace_id): decision_of(case, read.at),
    }
    if told:
        values[DUELS, case.trace_id] = {"at": read.at, "kind": case.classification.kind, "duels": told}
    values |= {(RATINGS, key): as_record(rating) for key, rating in moved.items()}
    records = tuple(SharedRecord(*place, value, versions.get(place, 0)) for place, value in values.items())
    return Move(case, effects=(WriteRecords(records),))


def moved_ratings(case: Case, known: Mapping[str, Rating]) -> tuple[dict[str, Rating], list[dict[str, Any]]]:
    """The ratings after the duels of a run, by record, and each duel with what it moved."""
    table: dict[RatingKey, Rating] = {key_in(key): rating for key, rating in known.items()}
    moved: dict[str, Rating] = {}
    told: list[dict[str, Any]] = []
    for duel in case.duels:
        before = {agent: start_rating(case.rating_key(agent), table) for agent in (duel.first, duel.second)}
        pairs = zip(lineage(case.rating_key(duel.first)), lineage(case.rating_key(duel.second)), strict=False)
        for first, second in list(pairs):
            mine, theirs = start_rating(first, table), start_rating(second, table)
            table[first], table[second] = updated(mine, theirs, duel.score), updated(theirs, mine, 1 - duel.score)
            moved |= {record_key(first): table[first], record_key(second): table[second]}
        told.append(_told(case, duel, before, table))
    return moved, told


def _told(case: Case, duel: Duel, before: Mapping[str, Rating], table: Mapping[RatingKey, Rating]) -> dict[str, Any]:
    def side(agent: str) -> dict[str, Any]:
        key = case.rating_key(agent)
        return {
            "agent": agent,
            "model": key.model,
            "definition": key.definition,
            "before": before[agent].elo,
            "after": table[key].elo,
        }

    return {"first": side(duel.first), "second": side(duel.second), "score": duel.score}


def trace_of(case: Case, at: float) -> Trace:
    """What is remembered of a run."""
    sorted_as = case.classification
    return Trace(
        case.trace_id,
        case.request[:LONGEST],
        sorted_as.kind,
        sorted_as.tags,
        case.decision,
        case.outcome,
        case.consensus.value,
        case.reason[:LONGEST],
        at,
    )


def decision_of(case: Case, at: float) -> dict[str, Any]:
    """What was decided, and by which numbers."""
    return {
        "at": at,
        "decision": case.decision,
        "outcome": case.outcome,
        "consensus": case.consensus.value,
        "passes": case.passes,
        "votes": encode(case.votes),
        "weights": dict(case.consensus.weights),
        "veto": encode(case.veto),
        "judged": case.judged,
        "reason": case.reason[:LONGEST],
    }


def keep_unstored(case: Case, event: Event) -> Case:
    """Keep that nothing could be remembered, and why; the audit still tells of the run."""
    return replace(case, unstored=why(event))


@emitting(WriteRecords)
def audit_log(case: Case, _: Event) -> WriteRecords:
    """Seal what happened: one entry for every run that got past its identity."""
    told = {
        "trace_id": case.trace_id,
        "request": case.request[:LONGEST],
        "workspace": case.workspace,
        "decision": case.decision,
        "outcome": case.outcome,
        "reason": case.reason[:LONGEST],
        "consensus": case.consensus.value,
        "passes": case.passes,
        "veto": encode(case.veto),
        "judge": case.judge,
        "tasks": {name: result.failure or "success" for name, result in case.results.items()},
        "repairs": len(case.repairs),
        "left": list(case.rollback.left) if case.rollback else [],
        "unstored": case.unstored,
    }
    seal = hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return WriteRecords((SharedRecord(AUDIT, case.trace_id, {**told, "seal": seal}),))
