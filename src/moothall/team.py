"""A team of personas: who is next, what a reply directs, and what a conversation remembers.

`FSMOrchestrator` is a session with a team, `AgentState` a persona in Python. `arbitrate` and `directive` are pure, and
`ConversationMemory` needs neither a run nor a model.
"""

from moothall.app.kinds.team.memory import ConversationMemory
from moothall.app.kinds.team.orchestrator import AgentState, FSMOrchestrator, StateVisualizer, TransitionEngine
from moothall.machines.team.arbitration import Arbitration, Proposal, arbitrate, sample
from moothall.machines.team.directives import Directive, Unusable, directive

__all__ = [
    "AgentState",
    "Arbitration",
    "ConversationMemory",
    "Directive",
    "FSMOrchestrator",
    "Proposal",
    "StateVisualizer",
    "TransitionEngine",
    "Unusable",
    "arbitrate",
    "directive",
    "sample",
]
