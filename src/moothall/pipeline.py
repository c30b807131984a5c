"""Plan, validate, implement, judge, as a durable run with retry paths, a token budget, figures and observers.

`AgentOrchestrator(JobConfig()).run("a brief")` runs one, and so does `moot pipeline "a brief"`.
"""

from moothall.app.pipeline.checkpoints import CheckpointManager
from moothall.app.pipeline.orchestrator import AgentConfig, AgentOrchestrator, JobConfig, OrchestratorResult
from moothall.app.pipeline.states import (
    InvalidTransitionError,
    OrchestrationState,
    OrchestrationStateMachine,
    StateMetrics,
    StateTransition,
)
from moothall.app.pipeline.watching import MetricsLogger, StateMachineObserver
from moothall.machines.pipeline import Verdict
from moothall.machines.pipeline.plans import DEFAULT_CHECKS, Draft, Plan

__all__ = [
    "DEFAULT_CHECKS",
    "AgentConfig",
    "AgentOrchestrator",
    "CheckpointManager",
    "Draft",
    "InvalidTransitionError",
    "JobConfig",
    "MetricsLogger",
    "OrchestrationState",
    "OrchestrationStateMachine",
    "OrchestratorResult",
    "Plan",
    "StateMachineObserver",
    "StateMetrics",
    "StateTransition",
    "Verdict",
]
