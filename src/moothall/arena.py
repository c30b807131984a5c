"""The arena: a request is debated before anything is executed, and every run is audited.

`run_arena(request)` deals with a request from its identity check to its audit. The pure parts are here too:
`static_rules(plan)` says what in a plan is vetoed, `consensus(votes)` what a panel thinks of it, `decision(consensus,
passes)` what follows.
"""

from moothall.app.kinds.arena.start import ArenaOptions, run_arena
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import Consensus, Vote, VoteWeight, consensus, decision, explain, reason_of
from moothall.machines.arena.debate import build_initial_plan, run_debate
from moothall.machines.arena.definition import Configuration
from moothall.machines.arena.execution import execute_plan
from moothall.machines.arena.identity import IdentityGuard, Locks
from moothall.machines.arena.machine import arena
from moothall.machines.arena.plan import Plan, Task, decode_plan
from moothall.machines.arena.ratings import Duel, Fitted, Rating, bradley_terry, elo, factor, k_of, track_record
from moothall.machines.arena.records import audit_log, store_all_in_memory
from moothall.machines.arena.rules import Violation, static_rules

__all__ = [
    "ArenaOptions",
    "Case",
    "Configuration",
    "Consensus",
    "Duel",
    "Fitted",
    "IdentityGuard",
    "Locks",
    "Plan",
    "Rating",
    "Task",
    "Violation",
    "Vote",
    "VoteWeight",
    "arena",
    "audit_log",
    "bradley_terry",
    "build_initial_plan",
    "consensus",
    "decision",
    "decode_plan",
    "elo",
    "execute_plan",
    "explain",
    "factor",
    "k_of",
    "reason_of",
    "run_arena",
    "run_debate",
    "static_rules",
    "store_all_in_memory",
    "track_record",
]
