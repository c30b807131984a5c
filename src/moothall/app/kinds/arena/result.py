"""How an arena's run is told: for programs, for people, and with the states that it went through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.app.kinds.arena.sections import repair_lines
from moothall.app.kinds.ends import end_of, last_lines
from moothall.app.runs.outcome import Outcome
from moothall.kernel.chart import COMPOUND, ROOT, Chart
from moothall.kernel.machine import Machine
from moothall.machines.arena.case import Case
from moothall.machines.arena.machine import NAME
from moothall.machines.arena.report import report_of, trace_lines

GOOD = ("succeeded", "dry_run")


def result_of(machine: Machine, outcome: Outcome, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a run tells programs."""
    case: Case = outcome.data
    told = report_of(case)
    result = {
        "trace_id": outcome.run,
        "run_id": outcome.run,
        "status": status_of(outcome),
        "decision": told["decision"],
        "consensus": told["consensus"],
        "passes": told["passes"],
        "votes": [{name: vote[name] for name in VOTE} for vote in told["votes"]],
        "veto": told["veto"] and {name: told["veto"][name] for name in ("by", "rule")},
        "tasks": [{name: task[name] for name in TASK} for task in told["tasks"]],
        "healing": told["healing"],
        "rollback": told["rollback"],
        "states_visited": states_visited(machine, entries),
        "usage": dict(outcome.spent),
        "reason": case.reason or outcome.reason,
    }
    return {**result, "trace": list(trace_lines(case))} if case.shows_trace else result


def status_of(outcome: Outcome) -> str:
    """How a run stands: what became of the request once it is over, and before that what the run does."""
    case: Case = outcome.data
    if outcome.status != "done":
        return outcome.status
    is_left = case.rollback is not None and not case.rollback.is_complete
    return "rollback_incomplete" if is_left else case.outcome


VOTE = ("role", "agent", "verdict", "confidence", "weight")
TASK = ("id", "command", "exit_code", "duration", "outcome", "sandbox", "failure", "stderr")


def states_visited(machine: Machine, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The states that a run was in, in the order in which it entered them; outer ones stand before inner ones."""
    chart = machine.chart
    rows = {row.id: row for row in chart.rows}
    standing: set[str] = set()
    visited: list[str] = []

    def enter(path: list[str]) -> None:
        visited.extend(name for name in path if name not in standing)
        standing.clear()
        standing.update(path)

    for entry in entries:
        for row_id in entry["taken"]:
            for target in rows[row_id].targets if row_id in rows else ():
                for path in _paths(chart, target):
                    if path[-1] in standing:
                        standing.discard(path[-1])
                    enter(path)
        for state in entry["to"]:
            if state not in standing:
                enter(_path(chart, next(place.index for place in chart.places if place.name == state)))
    return visited


def _paths(chart: Chart, index: int) -> Iterator[list[str]]:
    """The way from the outside to a state, and on to what it begins with."""
    yield _path(chart, index)
    place = chart.places[index]
    if place.kind == COMPOUND:
        for inner in place.initial:
            yield from _paths(chart, inner)


def _path(chart: Chart, index: int) -> list[str]:
    around = [place.name for place in chart.ancestors(index) if place.index != ROOT]
    return [*reversed(around), chart.places[index].name]


def text_of(outcome: Outcome) -> str:
    """What a run tells people."""
    case: Case = outcome.data
    head = "failed" if case.rollback is not None else case.outcome.replace("_", " ") or outcome.status
    end = end_of(NAME, case)
    lines = [f"{head}: {end.reason if end is not None and end.is_bad else case.reason}".rstrip(": ")]
    if case.votes:
        lines.append(f"consensus {case.consensus.value:.3f} after {_format_count(case.passes, 'pass', 'passes')}")
    told = report_of(case)
    for task in told["tasks"] if case.results or case.former else ():
        lines += _task_lines(task)
    lines += [f"  {line}" for line in repair_lines(told)]
    if case.rollback is not None:
        left = "; ".join(case.rollback.left)
        lines.append("rolled back" if case.rollback.is_complete else f"rollback incomplete: {left}")
    if case.unstored:
        lines.append(f"nothing was remembered: {case.unstored}")
    if case.shows_trace:
        lines += [f"  {line}" for line in trace_lines(case)]
    return "\n".join([*lines, f"trace_id {outcome.run}"])


def _task_lines(task: Mapping[str, Any]) -> Iterator[str]:
    """A task and what came of it; of one that failed also the end of what it wrote to stderr."""
    code = "" if task["exit_code"] is None or "exit code" in task["failure"] else f", exit code {task['exit_code']}"
    why = f": {task['failure']}" if task["failure"] else ""
    yield f"  {task['id']}: {task['outcome'].replace('_', ' ')}{code}{why}  ({task['command']})"
    yield from (f"    {line}" for line in last_lines(task["stderr"]) if task["failure"])


def _format_count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"
