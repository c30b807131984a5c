"""How a run of a workflow ended, in the words that workflows have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.report.projections.path import states_of
from moothall.app.runs.outcome import Outcome
from moothall.kernel.frozen import Frozen
from moothall.machines.workflow.compiler import WorkflowMachine
from moothall.runtime.ports import Store


class WorkflowResult(Frozen):
    """How a run of a workflow ended."""

    success: bool
    workflow_name: str
    final_state: str
    execution_time: float
    states_visited: tuple[str, ...]
    output: Any
    common_data: Mapping[str, Any]
    run_id: str
    usage: Mapping[str, float]
    status: str
    error: str = ""
    questions: tuple[Any, ...] = ()


async def result_of(store: Store, machine: WorkflowMachine, outcome: Outcome) -> WorkflowResult:
    """The result of a run, with the states that its journal says it visited."""
    entries = await store.entries(outcome.run)
    return WorkflowResult(
        outcome.status == "done",
        machine.name,
        " + ".join(outcome.states),
        round(entries[-1]["at"] - entries[0]["at"], 3),
        states_of(machine.chart, entries),
        outcome.result,
        outcome.data.common_data,
        outcome.run,
        outcome.spent,
        outcome.status,
        f"limit_exceeded: {outcome.reason}" if outcome.status == "limited" else outcome.reason,
        outcome.questions,
    )
