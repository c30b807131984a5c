"""How a run of a workflow ended, in the words that workflows have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.app.runs.outcome import Outcome
from moothall.kernel.chart import HISTORY, PARALLEL, Chart, Place
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
    chart = machine.chart
    rows = {row.id: row.targets for row in chart.rows if row.targets}
    entered = [target for entry in entries for taken in entry["taken"] for target in rows.get(taken, ())]
    visited = [place.name for target in entered for place in _entered(chart, target)]
    return WorkflowResult(
        outcome.status == "done",
        machine.name,
        " + ".join(outcome.states),
        round(entries[-1]["at"] - entries[0]["at"], 3),
        (*(place.name for first in chart.places[0].initial for place in _entered(chart, first)), *visited),
        outcome.result,
        outcome.data.common_data,
        outcome.run,
        outcome.spent,
        outcome.status,
        f"limit_exceeded: {outcome.reason}" if outcome.status == "limited" else outcome.reason,
        outcome.questions,
    )


def _entered(chart: Chart, index: int) -> Iterator[Place]:
    """A state and those that it begins with; a history stands for what it begins with too."""
    place = chart.places[index]
    inside = (
        place.default if place.kind == HISTORY else place.initial or (place.children if place.kind == PARALLEL else ())
    )
    yield chart.places[place.parent] if place.kind == HISTORY else place
    for one in inside:
        yield from _entered(chart, one)
