"""Pipelines: plan, validate, implement, judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.kind import Kind, Presented, size_in
from moothall.app.kinds.pipeline.checks import TOOLS, lacking
from moothall.app.kinds.pipeline.result import explain, result_of
from moothall.app.kinds.pipeline.sections import sections_of
from moothall.app.kinds.pipeline.states import OrchestrationState
from moothall.app.kinds.python import PythonKind
from moothall.app.report.projections.costs import Costs
from moothall.app.report.section import Section
from moothall.app.runs.outcome import Outcome
from moothall.kernel.machine import Machine
from moothall.machines.pipeline import MAX_ITERATIONS as MAX_ITERATIONS
from moothall.machines.pipeline import Job, pipeline
from moothall.runtime.hall import Bindings
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "brief": {"type": "string", "title": "Brief", "format": "text", "description": "what is to be made"},
        "pass_score": {"type": "number", "title": "Passes with", "minimum": 0, "maximum": 10, "default": 7},
        "soft_fail_score": {"type": "number", "title": "Planned anew below", "minimum": 0, "maximum": 10, "default": 5},
    },
    "required": ["brief"],
}
"""What a person fills in who starts a pipeline."""
LIVE = ("running", "waiting", "stuck")


class PipelineKind(PythonKind):
    """The pipeline, in as many iterations as its name says."""

    name = "pipeline"

    def find(self, source: str) -> Machine | None:
        """The machine that is called so."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The machine with so many iterations."""
        if name == self.name:
            return pipeline()
        size = size_in(name, self.name)
        return None if size is None else pipeline(size)

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """The brief, and how good the result has to be."""
        return FORM

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its agents, and the tool that checks plans; a table is pure and cannot hold that."""
        return bind_functions(machine, replace(provided, functions={**TOOLS, **provided.functions}), _rehearsed)

    def lacking(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why the shipped checks are not enough for a run."""
        return "" if TOOLS.keys() <= given.keys() else lacking(data)

    async def sections(self, store: Store, run: RunId, data: Any, costs: Costs) -> tuple[Section, ...]:
        """Its attempts and their scores, the plan, and the best that was made."""
        return sections_of(data) if isinstance(data, Job) else ()

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """How a pipeline ended, with the best that it made."""
        result = result_of(outcome)
        if outcome.status in LIVE:
            return Presented(result, "", outcome.status)
        ended = outcome.status if outcome.status in ("limited", "cancelled") else "failed"
        is_spent = result.final_state is OrchestrationState.BUDGET_EXHAUSTED
        return Presented(result, explain(result), "done" if result.success else "limited" if is_spent else ended)


def _rehearsed(nth: int) -> Mapping[str, Any]:
    """A judge who rehearses may find fault once; then it is content, so that the usual attempts are enough."""
    return {"score": [10]} if nth > 1 else {}


KIND: Kind = PipelineKind()
machine_of = pipeline
