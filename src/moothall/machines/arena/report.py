"""What an arena's run tells in the end, as plain values, and every number of it explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moothall.kernel.codec import encode
from moothall.machines.arena.case import Case, TaskResult
from moothall.machines.arena.consensus import explain, reason_of
from moothall.machines.arena.debate import deed
from moothall.machines.arena.execution import MOST_REPAIRS
from moothall.machines.arena.plan import PANEL


def report_of(case: Case) -> dict[str, Any]:
    """What a run gives, however it ended."""
    return {
        "trace_id": case.trace_id,
        "outcome": case.outcome,
        "decision": case.decision or None,
        "reason": case.reason,
        "consensus": case.consensus.value if case.votes else None,
        "passes": case.passes,
        "votes": [
            {
                "role": vote.role,
                "agent": vote.agent,
                "verdict": vote.verdict,
                "confidence": vote.confidence,
                "weight": case.consensus.weights.get(vote.agent, 0.0),
                "reasons": list(vote.reasons),
            }
            for vote in case.votes
        ],
        "veto": None if case.veto is None else encode(case.veto),
        "tasks": [_task(case, task.id) for task in case.plan.tasks],
        "healing": encode(case.repairs),
        "rollback": None
        if case.rollback is None
        else {"complete": case.rollback.is_complete, "left": list(case.rollback.left)},
    }


def _task(case: Case, name: str) -> dict[str, Any]:
    task = case.plan.task(name)
    result = case.results.get(name) or case.former.get(name) or TaskResult(name, attempts=0)
    is_run = name in case.results or name in case.former
    return {
        "id": name,
        "command": deed(task),
        "exit_code": result.exit_code,
        "duration": result.duration if is_run else None,
        "outcome": ("failed" if result.failure else "success") if is_run else "not_run",
        "sandbox": result.sandbox or None,
        "failure": result.failure,
        "stderr": result.stderr,
        "attempts": result.attempts,
    }


def trace_lines(case: Case) -> Iterator[str]:
    """Every decision of a run with its numbers, for a reader."""
    if case.mismatches:
        yield from case.mismatches
        return
    sorted_as = case.classification
    yield f"kind {sorted_as.kind} (confidence {sorted_as.confidence:g}), tags {', '.join(sorted_as.tags) or 'none'}"
    for near in case.context.nearest:
        yield f"like {near.trace.id} ({near.similarity:.2f}): {near.trace.outcome}: {near.trace.request[:80]}"
    for role in PANEL:
        if role in case.opinions:
            yield from (f"{role} says: {reason}" for reason in case.opinions[role].reasons)
    if not case.votes:
        return
    for part in explain(case.votes, ratings=dict(case.ratings()), weights=case.config.weights):
        yield part.sentence
    for pairing in case.pairings:
        yield f"duel {pairing.first} against {pairing.second}: Elo expects {pairing.expected:.3f} of {pairing.first}"
    yield from (f"{broken.rule} in task {broken.task}: {broken.reason}" for broken in case.violations)
    if not case.veto:
        yield reason_of(case.consensus, case.passes, bands=case.bands)
    for number, repair in enumerate(case.repairs, start=1):
        yield f"repair {number} of at most {MOST_REPAIRS}: {repair.outcome}: {repair.reason or repair.diagnosis}"
    for duel in case.duels:
        yield f"duel decided: {duel.first} {'wins against' if duel.score > 0.5 else 'loses to'} {duel.second}"
