"""Plan, validate, implement, judge, as a durable run with retry paths, a token budget, figures and observers.

`AgentOrchestrator(JobConfig()).run("a brief")` runs one, and so does `moot pipeline "a brief"`.
"""

from moothall.app.kinds.pipeline.checkpoints import CheckpointManager
from moothall.app.kinds.pipeline.observers import MetricsLogger, StateMachineObserver
from moothall.app.kinds.pipeline.orchestrator import AgentConfig, AgentOrchestrator, JobConfig
from moothall.app.kinds.pipeline.result import OrchestratorResult
from moothall.app.kinds.pipeline.states import (
    InvalidTransitionError,
    OrchestrationState,
    OrchestrationStateMachine,
    StateMetrics,
    StateTransition,
)
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
