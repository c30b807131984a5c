"""A team of personas: who is next, what a reply directs, and what a conversation remembers.

`arbitrate` and `directive` are pure, and `ConversationMemory` needs neither a run nor a model.
"""

from moothall.app.kinds.team.memory import ConversationMemory
from moothall.machines.team.arbitration import Arbitration, Proposal, arbitrate, sample
from moothall.machines.team.directives import Directive, Unusable, directive

__all__ = [
    "Arbitration",
    "ConversationMemory",
    "Directive",
    "Proposal",
    "Unusable",
    "arbitrate",
    "directive",
    "sample",
]
