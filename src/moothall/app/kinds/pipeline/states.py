"""The pipeline's states by hand: where it stands, where it may go, how it went, and the figures of it.

What may follow what is drawn from the table of the machine, so that there is one truth. `AgentOrchestrator` feeds
such a view from the journal of a run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from moothall.errors import Refused
from moothall.kernel.chart import Row
from moothall.kernel.nodes import Final
from moothall.machines.pipeline import MAX_ITERATIONS, pipeline

logger = logging.getLogger("moothall.pipeline")
TABLE = pipeline()


class OrchestrationState(StrEnum):
    """A state of the pipeline."""

    INITIALIZED = "initialized"
    PLANNING = "planning"
    VALIDATING = "validating"
    IMPLEMENTING = "implementing"
    JUDGING = "judging"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass
class StateTransition:
    """A state was left for another; duration and tokens are those of the state that was left."""

    from_state: OrchestrationState
    to_state: OrchestrationState
    timestamp: float
    context: dict[str, Any]
    reason: str | None = None
    duration_seconds: float = 0.0
    tokens_consumed: int = 0


@dataclass
class StateMetrics:
    """The figures of one state over all its visits; there is no shortest one where it was never left."""

    state: OrchestrationState
    visit_count: int = 0
    total_duration_seconds: float = 0.0
    total_tokens: int = 0
    avg_duration_seconds: float = 0.0
    avg_tokens: float = 0.0
    min_duration_seconds: float | None = None
    max_duration_seconds: float = 0.0


class InvalidTransitionError(Refused):
    """The current state does not lead there; the message says where it does lead."""


def _targets_by_state() -> dict[OrchestrationState, list[OrchestrationState]]:
    """Where each state may lead, in the order of the table's rows."""
    found: dict[OrchestrationState, list[OrchestrationState]] = {}
    for row in TABLE.chart.rows:
        targets = found.setdefault(OrchestrationState(row.on.state), [])
        targets += [state for state in targets_of(row) if state not in targets]
    return found


def targets_of(row: Row) -> list[OrchestrationState]:
    """Where a row of the table leads."""
    return [OrchestrationState(TABLE.chart.places[target].name) for target in row.targets]


class OrchestrationStateMachine:
    """Where a pipeline stands and how it came there."""

    VALID_TRANSITIONS: ClassVar[dict[OrchestrationState, list[OrchestrationState]]] = _targets_by_state()
    TERMINAL_STATES: ClassVar[set[OrchestrationState]] = {
        OrchestrationState(node.name) for node in TABLE.states if isinstance(node, Final)
    }

    def __init__(self, max_iterations: int = MAX_ITERATIONS) -> None:
        self.current_state = OrchestrationState.INITIALIZED
        self.history: list[StateTransition] = []
        self.iteration_count = 0
        self.max_iterations = max_iterations

    def transition(
        self,
        to_state: OrchestrationState,
        context: dict[str, Any] | None = None,
        reason: str | None = None,
        duration_seconds: float = 0.0,
        tokens_consumed: int = 0,
    ) -> bool:
        """Go to another state. A finished pipeline stays where it is and returns False; else a wrong target raises."""
        made = StateTransition(
            self.current_state, to_state, time.time(), context or {}, reason, duration_seconds, tokens_consumed
        )
        if not self.record(made):
            return False
        self.log(made)
        return True

    def record(self, made: StateTransition) -> bool:
        """Take a transition as it was made elsewhere, with its own time."""
        here, there = self.current_state, made.to_state
        if self.is_terminal():
            logger.warning(f"Attempted transition from terminal state {here.value} → {there.value}")
            return False
        if not self.can_transition_to(there):
            valid = [state.value for state in self.VALID_TRANSITIONS[here]]
            raise InvalidTransitionError(
                f"Invalid transition: {here.value} → {there.value}. Valid transitions: {valid}"
            )
        self.history.append(made)
        self.current_state = there
        self.iteration_count += here == OrchestrationState.PLANNING
        return True

    def log(self, made: StateTransition) -> None:
        """Log a transition that was just made."""
        logger.info(
            f"State transition: {made.from_state.value} → {made.to_state.value} (iteration {self.iteration_count}, "
            f"duration: {made.duration_seconds:.2f}s, tokens: {made.tokens_consumed}, reason: {made.reason or 'none'})"
        )

    def can_transition_to(self, state: OrchestrationState) -> bool:
        """Whether the current state leads there."""
        return state in self.VALID_TRANSITIONS.get(self.current_state, [])

    def is_terminal(self) -> bool:
        """Whether the pipeline has come to its end."""
        return self.current_state in self.TERMINAL_STATES

    def get_transition_history(self) -> list[StateTransition]:
        """All transitions, the oldest first."""
        return self.history.copy()

    def reset(self) -> None:
        """Begin again."""
        self.current_state = OrchestrationState.INITIALIZED
        self.history.clear()
        self.iteration_count = 0

    def exceeded_max_iterations(self) -> bool:
        """Whether planning was left as often as it may be."""
        return self.iteration_count >= self.max_iterations

    def get_state_metrics(self, state: OrchestrationState) -> StateMetrics:
        """The figures of one state: of every time that it was left."""
        left = [move for move in self.history if move.from_state == state]
        if not left:
            return StateMetrics(state)
        durations, tokens = [move.duration_seconds for move in left], [move.tokens_consumed for move in left]
        return StateMetrics(
            state=state,
            visit_count=len(left),
            total_duration_seconds=sum(durations),
            total_tokens=sum(tokens),
            avg_duration_seconds=sum(durations) / len(left),
            avg_tokens=sum(tokens) / len(left),
            min_duration_seconds=min(durations),
            max_duration_seconds=max(durations),
        )

    def get_all_state_metrics(self) -> dict[OrchestrationState, StateMetrics]:
        """The figures of every state that can be left."""
        return {
            state: self.get_state_metrics(state) for state in OrchestrationState if state not in self.TERMINAL_STATES
        }

    def get_total_metrics(self) -> dict[str, Any]:
        """The figures of the whole pipeline."""
        return {
            "total_duration_seconds": sum(move.duration_seconds for move in self.history),
            "total_tokens": sum(move.tokens_consumed for move in self.history),
            "total_transitions": len(self.history),
            "iteration_count": self.iteration_count,
            "state_visits": dict(Counter(move.from_state.value for move in self.history)),
            "current_state": self.current_state.value,
        }

    def get_transition_metrics(self) -> dict[str, Any]:
        """How often each transition was made."""
        counts = Counter(f"{move.from_state.value} → {move.to_state.value}" for move in self.history)
        most_common = max(counts, key=lambda way: counts[way], default=None)
        return {
            "transition_counts": dict(counts),
            "most_common_transition": most_common,
            "most_common_count": counts[most_common] if most_common else 0,
            "unique_transitions": len(counts),
        }

    def get_bottleneck_analysis(self) -> dict[str, Any]:
        """The state that takes longest and the one that uses most tokens, on average."""
        left = [figures for figures in self.get_all_state_metrics().values() if figures.visit_count]
        slowest = max(left, key=lambda figures: figures.avg_duration_seconds, default=None)
        dearest = max(left, key=lambda figures: figures.avg_tokens, default=None)
        total, iterations = self.get_total_metrics(), self.iteration_count
        return {
            "slowest_state": slowest
            and {
                "state": slowest.state.value,
                "avg_duration_seconds": slowest.avg_duration_seconds,
                "total_duration_seconds": slowest.total_duration_seconds,
                "visit_count": slowest.visit_count,
            },
            "highest_token_state": dearest
            and {
                "state": dearest.state.value,
                "avg_tokens": dearest.avg_tokens,
                "total_tokens": dearest.total_tokens,
                "visit_count": dearest.visit_count,
            },
            "avg_duration_per_iteration": total["total_duration_seconds"] / iterations if iterations else 0.0,
            "avg_tokens_per_iteration": total["total_tokens"] / iterations if iterations else 0.0,
        }

    def format_metrics_report(self) -> str:
        """The figures as a text for people."""
        total, patterns = self.get_total_metrics(), self.get_transition_metrics()
        bottlenecks = self.get_bottleneck_analysis()
        slowest, dearest = bottlenecks["slowest_state"], bottlenecks["highest_token_state"]
        report = [
            "=== Orchestration Metrics Report ===",
            f"\nFinal State: {total['current_state']}",
            f"Iterations: {total['iteration_count']} / {self.max_iterations}",
            f"Total Duration: {total['total_duration_seconds']:.2f}s",
            f"Total Tokens: {total['total_tokens']:,}",
            f"Total Transitions: {total['total_transitions']}",
            "\n--- State Visit Counts ---",
            *(f"  {state}: {count}" for state, count in sorted(total["state_visits"].items())),
        ]
        if slowest and dearest:
            report += [
                "\n--- Bottleneck Analysis ---",
                f"Slowest State: {slowest['state']}",
                f"  Avg Duration: {slowest['avg_duration_seconds']:.2f}s",
                f"  Total Duration: {slowest['total_duration_seconds']:.2f}s",
                f"  Visits: {slowest['visit_count']}",
                f"\nHighest Token State: {dearest['state']}",
                f"  Avg Tokens: {dearest['avg_tokens']:.0f}",
                f"  Total Tokens: {dearest['total_tokens']:,}",
                f"  Visits: {dearest['visit_count']}",
            ]
        if patterns["most_common_transition"]:
            report += [
                "\n--- Transition Patterns ---",
                f"Most Common: {patterns['most_common_transition']} ({patterns['most_common_count']}x)",
                f"Unique Transitions: {patterns['unique_transitions']}",
            ]
        return "\n".join(report)
