"""What the report of an arena's run adds: the vote with its weights, the veto, the tasks, repairs and the rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.kinds.ends import end_of, format_failure
from moothall.app.report.amounts import lasting
from moothall.app.report.section import Chart, Listed, Measure, Part, Section, Table
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import reason_of
from moothall.machines.arena.machine import NAME
from moothall.machines.arena.report import report_of, trace_lines


def sections_of(case: Case) -> tuple[Section, ...]:
    """All sections of a run."""
    told = report_of(case)
    sections = (_decision(case, told), _votes(told), _tasks(told), _undone(told), _reasons(case))
    return tuple(section for section in sections if section.parts)


def _decision(case: Case, told: dict[str, Any]) -> Section:
    parts: list[Part] = [case.request]
    if case.decision:
        parts.append(f"Decision: {case.decision}: {_why_decided(case)}")
    if case.outcome:
        end = end_of(NAME, case)
        is_told = end is None or not end.is_bad or (case.decision and case.rollback is None)
        parts.append(f"End: {case.outcome.replace('_', ' ') if is_told else end}")
    if told["veto"]:
        veto = told["veto"]
        parts.append(f"Veto of {veto['by']}, by the rule {veto['rule']}.")
    return Section("The decision", tuple(parts))


def _why_decided(case: Case) -> str:
    """Why the plan was carried out or not; where it was and had to be rolled back, the case has the reason for that."""
    if case.rollback is None:
        return case.reason
    return f"{case.judge} agreed" if case.judge else reason_of(case.consensus, case.passes, bands=case.bands)


def _votes(told: dict[str, Any]) -> Section:
    votes = told["votes"]
    if not votes:
        return Section("The vote", ())
    head = ("agent", "role", "verdict", "confidence", "weight", "reasons")
    rows = tuple(
        (
            vote["agent"],
            vote["role"],
            vote["verdict"],
            f"{vote['confidence']:.2f}",
            f"{vote['weight']:.2f}",
            "; ".join(vote["reasons"]),
        )
        for vote in votes
    )
    weights = tuple(Measure(vote["agent"], vote["weight"], f"{vote['weight']:.2f} {vote['verdict']}") for vote in votes)
    passes = f"{told['passes']} pass" + ("" if told["passes"] == 1 else "es")
    consensus = f"Consensus {told['consensus']:.3f} after {passes}."
    return Section("The vote", (consensus, Table(head, rows), Chart("Weights", weights)))


def _tasks(told: dict[str, Any]) -> Section:
    if not told["tasks"]:
        return Section("The tasks", ())
    head = ("task", "command", "outcome", "exit code", "time", "attempts", "sandbox")
    rows = tuple(
        (
            task["id"],
            task["command"],
            _format_outcome(task),
            "" if task["exit_code"] is None else str(task["exit_code"]),
            "" if task["duration"] is None else lasting(task["duration"]),
            str(task["attempts"] or ""),
            task["sandbox"] or "",
        )
        for task in told["tasks"]
    )
    return Section("The tasks", (Table(head, rows),))


def _format_outcome(task: Mapping[str, Any]) -> str:
    why = f": {format_failure(task['failure'], task['stderr'])}" if task["failure"] else ""
    return f"{task['outcome'].replace('_', ' ')}{why}"


def _undone(told: dict[str, Any]) -> Section:
    parts: list[Part] = []
    if told["healing"]:
        parts.append(Listed("Repairs", repair_lines(told)))
    if told["rollback"] is not None:
        is_complete = told["rollback"]["complete"]
        parts.append("Everything was rolled back." if is_complete else "The rollback is incomplete.")
        if told["rollback"]["left"]:
            parts.append(Listed("What is left", tuple(told["rollback"]["left"])))
    return Section("Repairs and rollback", tuple(parts))


def repair_lines(told: Mapping[str, Any]) -> tuple[str, ...]:
    """What came of every attempt at a repair, and why; of one that succeeded also what had failed."""
    return tuple(
        f"repair {number}: {repair['outcome']}: {repair['reason'] or repair['diagnosis']}"
        + (f" ({format_failure(repair['failure'])})" if repair["outcome"] == "repaired" else "")
        for number, repair in enumerate(told["healing"], 1)
    )


def _reasons(case: Case) -> Section:
    lines = tuple(trace_lines(case))
    return Section("Every number explained", (Listed("In the order of the run", lines),) if lines else ())
