"""The moves of the arena that remember: what is written when the outcome is known, and the audit at the end.

Records are written in the transaction of StoringMemory, over the versions that were read; where others were quicker
they are read and decided again. Ratings move as `settled_ratings` says, for the agent on this model and for this kind
of task, and for its parents.
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
from moothall.kernel.frozen import Frozen
from moothall.kernel.nodes import emitting
from moothall.kernel.step import Move
from moothall.machines.arena.case import STATIC_RULES, Case
from moothall.machines.arena.consensus import Vote
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
    PlayedDuel,
    Rating,
    RatingKey,
    Settled,
    as_record,
    lineage,
    outcome_duels,
    rating_of,
    settled_ratings,
    start_rating,
)


def settle(case: Case) -> Settled:
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


class Judgement(Frozen):
    """Votes, whose ratings they move, what is known of the plan, and its kind."""

    votes: tuple[Vote, ...]
    keys: Mapping[str, RatingKey]
    settled: Settled
    kind: str = ""


def judgement_of(case: Case) -> Judgement:
    """What a run says of its agents now."""
    keys = {vote.agent: case.rating_key(vote.agent) for vote in case.votes}
    return Judgement(case.votes, keys, settle(case), case.classification.kind)


@emitting(ReadMemory)
def read_memory(case: Case, _: Event) -> Move[Case]:
    """Decide the duels, and read the ratings that the outcome moves."""
    judgement = judgement_of(case)
    duels = outcome_duels(judgement.votes, judgement.settled)
    return Move(replace(case, duels=duels), effects=(ReadMemory(rating_records(judgement)),))


def rating_records(judgement: Judgement) -> tuple[str, ...]:
    """The records of the ratings that a judgement moves."""
    moved, _ = settled_ratings(judgement.votes, judgement.settled, {})
    return tuple(dict.fromkeys(record_key(place) for agent in moved for place in lineage(judgement.keys[agent])))


@emitting(WriteRecords)
def store_all_in_memory(case: Case, read: MemoryRead) -> Move[Case]:
    """Write the trace, the decision, the duels and the ratings, all or none.

    A run that was forked from another is remembered under an id of its own.
    """
    case = replace(case, trace_id=read.trace_id or case.trace_id)
    judgement = judgement_of(case)
    told = (
        SharedRecord(TRACES, case.trace_id, encode(trace_of(case, read.at))),
        SharedRecord(DECISIONS, case.trace_id, decision_of(case, judgement, read.at)),
    )
    return Move(case, effects=(WriteRecords((*told, *records_moved_by(judgement, case.trace_id, read))),))


def records_moved_by(judgement: Judgement, trace_id: str, read: MemoryRead) -> tuple[SharedRecord, ...]:
    """The duels that a judgement decides and the ratings that it moves, over the versions that were read."""
    versions = {record.key: record.version for record in read.records if record.collection == RATINGS}
    known = {record.key: rating_of(record.value) for record in read.records if record.collection == RATINGS}
    moved, told = moved_ratings(judgement, known)
    duels = {"at": read.at, "kind": judgement.kind, "duels": told}
    return (
        *((SharedRecord(DUELS, trace_id, duels),) if told else ()),
        *(SharedRecord(RATINGS, key, as_record(rating), versions.get(key, 0)) for key, rating in moved.items()),
    )


def moved_ratings(judgement: Judgement, known: Mapping[str, Rating]) -> tuple[dict[str, Rating], list[dict[str, Any]]]:
    """The ratings after a judgement, by record, and each duel with what it moved.

    What moves an agent's rating for this kind of task moves its parents' too, each from where it was.
    """
    table = {key_in(key): rating for key, rating in known.items()}
    places = {agent: lineage(key) for agent, key in judgement.keys.items()}
    moved: dict[str, Rating] = {}
    told: list[dict[str, Any]] = []
    for level in range(max(map(len, places.values()), default=0)):
        keys = {agent: line[level] for agent, line in places.items() if level < len(line)}
        votes = [vote for vote in judgement.votes if vote.agent in keys]
        before = {agent: start_rating(key, table) for agent, key in keys.items()}
        after, played = settled_ratings(votes, judgement.settled, before)
        moved |= {record_key(keys[agent]): rating for agent, rating in after.items()}
        if level == 0:
            told = [_duel_record(duel, keys) for duel in played]
    return moved, told


def _duel_record(played: PlayedDuel, keys: Mapping[str, RatingKey]) -> dict[str, Any]:
    def side(agent: str, before: Rating, after: Rating) -> dict[str, Any]:
        key = keys[agent]
        return {
            "agent": agent,
            "model": key.model,
            "definition": key.definition,
            "before": before.elo,
            "after": after.elo,
        }

    names = (played.duel.first, played.duel.second)
    first, second = map(side, names, played.before, played.after)
    return {"first": first, "second": second, "score": played.duel.score}


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


def decision_of(case: Case, judgement: Judgement, at: float) -> dict[str, Any]:
    """What was decided, by which numbers, and whose ratings a later judgement would move."""
    return {
        "at": at,
        "decision": case.decision,
        "outcome": case.outcome,
        "consensus": case.consensus.value,
        "passes": case.passes,
        "kind": judgement.kind,
        "votes": encode(case.votes),
        "keys": {agent: record_key(key) for agent, key in judgement.keys.items()},
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
