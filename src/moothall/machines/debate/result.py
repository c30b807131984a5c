"""What a debate gives, however it ends."""

from __future__ import annotations

from typing import Any

from moothall.kernel.codec import encode
from moothall.machines.debate.moves import abstentions, best_proposal, count_flips, final_vote
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
        "agreement": agreement_of(debate),
        "abstentions": abstentions_of(debate),
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


def agreement_of(debate: Debate) -> float | None:
    """How far the whole panel agreed in the last round that was counted, 0 to 100; None where none was."""
    return round(100 * debate.history[-1].agreement, 4) if debate.history else None


def abstentions_of(debate: Debate) -> list[dict[str, Any]]:
    """Who gave nothing that counts, when and why; the independent drafts are round 0."""
    debated = () if debate.termination.reason == "vote" else debate.history
    drafts = abstentions(debate, debate.drafts) if debate.drafts else {}
    rounds = [(0, drafts), *((counted.number, counted.abstained) for counted in debated)]
    return [
        {"agent": name, "round": number, "reason": why} for number, silent in rounds for name, why in silent.items()
    ]


def votes_of(debate: Debate) -> dict[str, Any]:
    """What was counted: the vote over all rounds and over the drafts alone, or how the agents rank the drafts."""
    if not debate.configuration.debate.answer.is_closed:
        points = ranked_choice(debate.rankings, list(debate.drafts), debate.voters)
        return {
            "how": "ranked choice over anonymous drafts",
            "ranking": {name: round(points[name], 4) for name in points} if debate.rankings else {},
            "abstained": [name for name in debate.voters if name not in debate.rankings],
        }
    counted, is_weighed = final_vote(debate), debate.configuration.debate.chosen_protocol == "gated"
    answers = [{name: answer for name, answer in known.answers.items() if answer} for known in debate.history]
    return {
        "how": "closed answers, pooled over rounds" + (", weighed by confidence" if is_weighed else ""),
        "counts": dict(counted.counts),
        "abstained": counted.abstained,
        "leader": counted.leader,
        "share": round(counted.share, 4),
        "checks": dict(debate.checks),
        "effective_voices": round(effective_voices(answers), 2) if answers else None,
    }
