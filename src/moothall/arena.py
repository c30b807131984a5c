"""The arena's pure parts: consensus and decision, ratings, plans, and the static rules that read a plan.

`static_rules(plan)` says what in a plan is vetoed, `consensus(votes)` what a panel thinks of it, `decision(consensus,
passes)` what follows. Each room is opened when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moothall.machines.arena.consensus import Consensus as Consensus
    from moothall.machines.arena.consensus import Vote as Vote
    from moothall.machines.arena.consensus import VoteWeight as VoteWeight
    from moothall.machines.arena.consensus import consensus as consensus
    from moothall.machines.arena.consensus import decision as decision
    from moothall.machines.arena.consensus import explain as explain
    from moothall.machines.arena.consensus import reason_of as reason_of
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

_ROOMS = {
    "consensus": "Consensus Vote VoteWeight consensus decision explain reason_of",
    "plan": "Plan Task decode_plan",
    "ratings": "Duel Fitted Rating bradley_terry elo factor k_of track_record",
    "rules": "Violation static_rules",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"moothall.arena has no public name {name!r}")
    value: object = getattr(import_module(f"moothall.machines.arena.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value
