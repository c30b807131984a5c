"""Agents that clarify, propose, critique, refine and agree, as a durable run of a state machine.

`run_debate("a problem")` runs one, and so does `moot debate "a problem"`. `StateMachineOrchestrator` has the classes of
your own around it: agents that are functions, hooks, nodes and rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.kinds.debate.hooks import DebateHooks
from moothall.app.kinds.debate.nodes import (
    DEBATE_EVENTS,
    DebateNode,
    NodeContext,
    NodeResult,
    NodeType,
    TransitionRule,
)
from moothall.app.kinds.debate.orchestrator import DebateResult, DebateTerms, StateMachineOrchestrator
from moothall.app.runs.moothall import wait_for
from moothall.machines.debate.definition import AgentConfig, DebateConfig
from moothall.machines.debate.state import Clarification, Solution

Answers = Mapping[str, str]


def run_debate(
    problem: str,
    *,
    agents: Any = ("architect", "performance", "kiss"),
    judge: Any = "judge",
    config: DebateConfig | Mapping[str, Any] | None = None,
    context: str = "",
    model: str = "",
    store: str | None = None,
    debate_id: str | None = None,
) -> DebateResult:
    """Debate a problem to its end, or until a person has to answer. Durable: `moot resume` goes on after a crash."""
    terms = DebateTerms(model)
    orchestrator = StateMachineOrchestrator(agents, judge, store, config, terms=terms)
    return wait_for(orchestrator.run_debate(problem, context, debate_id=debate_id))


def resume(debate_id: str, answers: Answers | None = None, *, store: str | None = None) -> DebateResult:
    """Go on with a debate, with answers by question where it waits for some; "NA" is an answer, nothing is none."""
    return wait_for(StateMachineOrchestrator(store=store).resume(debate_id, answers))


__all__ = [
    "DEBATE_EVENTS",
    "AgentConfig",
    "Clarification",
    "DebateConfig",
    "DebateHooks",
    "DebateNode",
    "DebateResult",
    "DebateTerms",
    "NodeContext",
    "NodeResult",
    "NodeType",
    "Solution",
    "StateMachineOrchestrator",
    "TransitionRule",
    "resume",
    "run_debate",
]
