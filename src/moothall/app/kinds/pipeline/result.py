"""How a pipeline ended, in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moothall.app.kinds.pipeline.states import OrchestrationState
from moothall.app.runs.outcome import Outcome
from moothall.machines.pipeline import Job, Verdict
from moothall.machines.pipeline.plans import Plan
from moothall.runtime.journal import RunId


@dataclass(frozen=True, slots=True)
class OrchestratorResult:
    """How a pipeline ended, with the best that it made; `reason` says why where it did not succeed."""

    run: RunId
    status: str
    final_state: OrchestrationState
    iterations: int
    score: float | None
    plan: Plan | None
    implementation: str
    verdicts: tuple[Verdict, ...]
    reason: str
    usage: Mapping[str, float]

    @property
    def success(self) -> bool:
        """Whether the judge was content."""
        return self.final_state == OrchestrationState.SUCCEEDED


def result_of(outcome: Outcome) -> OrchestratorResult:
    """How the run of a pipeline stands, in its own words."""
    job: Job = outcome.data
    return OrchestratorResult(
        outcome.run,
        outcome.status,
        _final_state(outcome),
        job.iterations,
        job.best.score,
        job.best.plan,
        job.best.implementation,
        job.verdicts,
        job.reason or outcome.reason,
        outcome.spent,
    )


def _final_state(outcome: Outcome) -> OrchestrationState:
    """The state that a run ended in; one that was stopped from outside has failed."""
    if outcome.status == "limited":
        return OrchestrationState.BUDGET_EXHAUSTED
    if outcome.status in ("failed", "cancelled"):
        return OrchestrationState.FAILED
    return OrchestrationState(outcome.states[0])


def explain(result: OrchestratorResult) -> str:
    """The result for people: how it ended, and the best that was made."""
    score = "" if result.score is None else f", score {result.score:g}"
    number = f"{result.iterations} iteration" + ("" if result.iterations == 1 else "s")
    head = f"{result.final_state.value}{score}, {number}" + (f": {result.reason}" if result.reason else "")
    return f"{head}\n\n{made}" if (made := result.implementation or _list_steps(result.plan)) else head


def _list_steps(plan: Plan | None) -> str:
    """A plan for people, where nothing was made of it."""
    if plan is None:
        return ""
    return "\n".join([plan.summary, "", *(f"{number}. {step}" for number, step in enumerate(plan.steps, 1))])
