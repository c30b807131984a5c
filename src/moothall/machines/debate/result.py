"""What a debate gives, however it ends."""

from __future__ import annotations

from typing import Any

from moothall.kernel.codec import encode
from moothall.machines.debate.moves import best_proposal, count_flips, final_vote
from moothall.machines.debate.state import Debate
from moothall.machines.debate.votes import effective_voices, ranked_choice


def result_of(debate: Debate) -> dict[str, Any]:
    """The solution with all that defends it; without the judge's, the best proposal so far."""
    solution = debate.solution
    if solution is None and debate.proposals:
        solution = best_proposal(debate)
    plain = encode(solution) if solution is not None else None
    return {
        "solution": plain,
        "minority": solution.minority if solution is not None else "",
        "termination": encode(debate.termination),
        "protocol": debate.configuration.debate.chosen_protocol,
        "rounds": debate.rounds,
        "agents": agents_of(debate),
        "clarifications": encode(debate.clarifications),
        "votes": votes_of(debate),
        "notes": list(debate.carried),
        "reason": debate.reason,
    }


def agents_of(debate: Debate) -> list[dict[str, Any]]:
    """Everybody on the panel: who took part, who was left out and why, and how often each changed its mind."""
    changed = count_flips(debate)
    return [
        {
            "id": agent.id,
            "status": f"left out: {debate.left_out[agent.id]}" if agent.id in debate.left_out else "took part",
            "flips": changed.get(agent.id, 0),
        }
        for agent in debate.configuration.panel
    ]


def votes_of(debate: Debate) -> dict[str, Any]:
    """What was counted: the vote over all rounds and over the drafts alone, or how the agents rank the drafts."""
    if not debate.configuration.debate.answer.is_closed:
        points = ranked_choice(debate.rankings, list(debate.drafts))
        return {
            "how": "ranked choice over anonymous drafts",
            "ranking": {name: round(points[name], 4) for name in points},
        }
    counted, is_weighed = final_vote(debate), debate.configuration.debate.chosen_protocol == "gated"
    answers = [known.answers for known in debate.history]
    return {
        "how": "closed answers, pooled over rounds" + (", weighed by confidence" if is_weighed else ""),
        "counts": dict(counted.counts),
        "leader": counted.leader,
        "share": round(counted.share, 4),
        "checks": dict(debate.checks),
        "effective_voices": round(effective_voices(answers), 2) if answers else None,
    }
