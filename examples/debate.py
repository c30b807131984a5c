"""A debate from Python, offline: three agents, a judge, and a node of our own that checks a fact before the critiques.

`debate.json` plays the agents. Run it with a real panel by naming a model: `DebateTerms("openai:…")`.
"""

import asyncio
from pathlib import Path

from moothall.debate import (
    DebateHooks,
    DebateNode,
    DebateTerms,
    NodeContext,
    NodeResult,
    NodeType,
    StateMachineOrchestrator,
    TransitionRule,
)

PROBLEM = "Where should the till of a small shop keep its sales?"
SCRIPT = Path(__file__).with_name("debate.json")
SAFE = {"SQLite": True, "PostgreSQL": True, "Redis": False}
"""What we know: which of them keep a sale over a power cut, as they are shipped."""


async def check_facts(context: NodeContext) -> NodeResult:
    """Look every proposal up; it is done once, and not again on replay or after a crash."""
    unsafe = [name for name, draft in context.state.proposals.items() if not SAFE[draft.answer]]
    return NodeResult("FACTS_CHECKED", {"unsafe": unsafe})


ORCHESTRATOR = StateMachineOrchestrator(
    ["architect", "performance", "kiss"],
    "judge",
    config={"answer": {"type": "choice", "options": list(SAFE)}, "rounds": 3},
    hooks=DebateHooks(
        on_phase=lambda node, event: print(f"{node} –{event}→"),
        on_round=lambda done: print(f"  round {done.number}: agreement {100 * done.agreement:.0f} of 100"),
    ),
    terms=DebateTerms(
        f"scripted:{SCRIPT}",
        nodes=(DebateNode("FactCheck", check_facts),),
        rules=(
            TransitionRule(NodeType.PROPOSAL, "PROPOSALS_COMPLETE", "FactCheck", lambda c: c.state.round == 1),
            TransitionRule("FactCheck", "FACTS_CHECKED", NodeType.CRITIQUE),
        ),
    ),
)
DEBATE = ORCHESTRATOR.machine()


async def main() -> None:
    result = await ORCHESTRATOR.run_debate(PROBLEM)
    assert result.solution is not None
    print(f"unsafe drafts: {', '.join(result.state.extra['FactCheck']['unsafe'])}")
    print(f"{result.solution.answer}: {result.solution.description}")
    print(f"flips: { {agent['id']: agent['flips'] for agent in result.plain['agents']} }")


if __name__ == "__main__":
    asyncio.run(main())
