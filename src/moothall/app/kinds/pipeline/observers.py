"""Watching a pipeline: what its journal says, as transitions and figures, for whoever wants to be told.

Time and tokens come from the entries of the journal: how long a state was stood in, and what the replies, and the
attempts that failed, say that they used. Who watches stands aside in a thread of its own and cannot harm the run; one
that raises is logged, once, and told nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from moothall.agents.ask import Replied, Returned
from moothall.app.kinds.pipeline.states import (
    TABLE,
    OrchestrationState,
    OrchestrationStateMachine,
    StateTransition,
    logger,
    targets_of,
)
from moothall.kernel.codec import encode
from moothall.runtime.decide import Decision
from moothall.runtime.journal import Entry, Head, RunId

Tell = Callable[[StateTransition], None]


class StateMachineObserver(Protocol):
    """Somebody who wants to be told how a pipeline goes."""

    def on_state_transition(self, transition: StateTransition) -> None:
        """A state was left for another."""
        ...

    def on_metrics_update(self, metrics: dict[str, Any]) -> None:
        """The figures of the whole pipeline have changed."""
        ...


class MetricsLogger(StateMachineObserver):
    """Logs transitions and figures."""

    def on_state_transition(self, transition: StateTransition) -> None:
        """Log a transition."""
        logger.info(
            f"Transition: {transition.from_state.value} → {transition.to_state.value}, "
            f"Duration: {transition.duration_seconds:.2f}s, Tokens: {transition.tokens_consumed}"
        )

    def on_metrics_update(self, metrics: dict[str, Any]) -> None:
        """Log the figures."""
        logger.info(f"Metrics: {json.dumps(metrics)}")


class View:
    """An observer of a run that keeps a view of its states up to date, and tells each transition that it sees."""

    def __init__(self, states: OrchestrationStateMachine, tell: Tell) -> None:
        self.states = states
        self.tell = tell
        self._since = 0.0
        self._tokens = 0.0

    def __call__(self, run: RunId, entry: Entry, head: Head) -> None:
        """One entry was committed."""
        if entry.seq == 0:
            self._since = entry.at
        self._tokens += getattr(entry.event, "usage", {}).get("tokens", 0)
        for row in entry.taken:
            self._move(_TARGETS[row], entry, head)
        if entry.status not in ("live", "done"):
            end = OrchestrationState.BUDGET_EXHAUSTED if entry.status == "limited" else OrchestrationState.FAILED
            self._move(end, entry, head)

    def catch_up(self, run: RunId, decisions: Sequence[Decision]) -> None:
        """See what happened before, and tell nobody: they were told then."""
        tell, self.tell = self.tell, lambda made: None
        for decision in decisions:
            self(run, decision.entry, decision.head)
        self.tell = tell

    def _move(self, there: OrchestrationState, entry: Entry, head: Head) -> None:
        here = self.states.current_state
        made = StateTransition(
            here,
            there,
            entry.at,
            _context(entry),
            _REASONS.get((here, there)) or entry.reason or head.snapshot.data.reason or None,
            entry.at - self._since,
            int(self._tokens),
        )
        self._since, self._tokens = entry.at, 0.0
        if self.states.record(made):
            self.tell(made)


def _context(entry: Entry) -> dict[str, Any]:
    """What the state that was left has brought."""
    match entry.event:
        case Replied(agent="planner", value=value):
            return {"plan": encode(value)}
        case Replied(agent="implementer", text=text):
            return {"implementation": text}
        case Replied(value=value):
            return {"evaluation": encode(value)}
        case Returned(value=value):
            return {"objections": encode(value)}
        case _:
            return {}


_TARGETS = {row.id: target for row in TABLE.chart.rows for target in targets_of(row)}
"""Where each row of the table leads; the same in pipelines of all sizes."""
_PLANNING, _VALIDATING = OrchestrationState.PLANNING, OrchestrationState.VALIDATING
_IMPLEMENTING, _JUDGING = OrchestrationState.IMPLEMENTING, OrchestrationState.JUDGING
_REASONS = {
    (_VALIDATING, _PLANNING): "Validation failed, retrying with feedback",
    (_JUDGING, _IMPLEMENTING): "Soft failure, refining implementation",
    (_JUDGING, _PLANNING): "Hard failure, replanning",
}


def telling(observer: StateMachineObserver, max_iterations: int) -> View:
    """A view that tells an observer of every transition and of the figures after it."""
    states = OrchestrationStateMachine(max_iterations)

    def tell(made: StateTransition) -> None:
        try:
            observer.on_state_transition(made)
            observer.on_metrics_update(states.get_total_metrics())
        except Exception:
            logger.exception(f"{type(observer).__name__} raised; it is told nothing more of this run")
            raise

    return View(states, tell)
