"""The arena: a request is debated before anything is executed, and every run is audited.

`run_arena(request)` deals with a request from its identity check to its audit. The pure parts are here too:
`static_rules(plan)` says what in a plan is vetoed, `consensus(votes)` what a panel thinks of it, `decision(consensus,
passes)` what follows. Each room is opened when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moothall.app.kinds.arena.start import ArenaOptions as ArenaOptions
    from moothall.app.kinds.arena.start import run_arena as run_arena
    from moothall.machines.arena.case import Case as Case
    from moothall.machines.arena.consensus import Consensus as Consensus
    from moothall.machines.arena.consensus import Vote as Vote
    from moothall.machines.arena.consensus import VoteWeight as VoteWeight
    from moothall.machines.arena.consensus import consensus as consensus
    from moothall.machines.arena.consensus import decision as decision
    from moothall.machines.arena.consensus import explain as explain
    from moothall.machines.arena.consensus import reason_of as reason_of
    from moothall.machines.arena.debate import build_initial_plan as build_initial_plan
    from moothall.machines.arena.debate import run_debate as run_debate
    from moothall.machines.arena.definition import Configuration as Configuration
    from moothall.machines.arena.execution import execute_plan as execute_plan
    from moothall.machines.arena.identity import IdentityGuard as IdentityGuard
    from moothall.machines.arena.identity import Locks as Locks
    from moothall.machines.arena.machine import arena as arena
    from moothall.machines.arena.plan import Plan as Plan
    from moothall.machines.arena.plan import Task as Task
    from moothall.machines.arena.plan import decode_plan as decode_plan
    from moothall.machines.arena.ratings import Duel as Duel
    from moothall.machines.arena.ratings import Fitted as Fitted
    from moothall.machines.arena.ratings import Rating as Rating
    from moothall.machines.arena.ratings import bradley_terry as bradley_terry
    from moothall.machines.arena.ratings import elo as elo
    from moothall.machines.arena.ratings import factor as factor
    from moothall.machines.arena.ratings import k_of as k_of
    from moothall.machines.arena.ratings import track_record as track_record
    from moothall.machines.arena.rules import Violation as Violation
    from moothall.machines.arena.rules import static_rules as static_rules
    from moothall.machines.arena.storing import audit_log as audit_log
    from moothall.machines.arena.storing import store_all_in_memory as store_all_in_memory

_ROOMS = {
    "app.kinds.arena.start": "ArenaOptions run_arena",
    "machines.arena.case": "Case",
    "machines.arena.consensus": "Consensus Vote VoteWeight consensus decision explain reason_of",
    "machines.arena.debate": "build_initial_plan run_debate",
    "machines.arena.definition": "Configuration",
    "machines.arena.execution": "execute_plan",
    "machines.arena.identity": "IdentityGuard Locks",
    "machines.arena.machine": "arena",
    "machines.arena.plan": "Plan Task decode_plan",
    "machines.arena.ratings": "Duel Fitted Rating bradley_terry elo factor k_of track_record",
    "machines.arena.rules": "Violation static_rules",
    "machines.arena.storing": "audit_log store_all_in_memory",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"moothall.arena has no public name {name!r}")
    value: object = getattr(import_module(f"moothall.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value
