"""How a debate ended: for programs, and as a text that says why the answer is what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moothall.app.kinds.debate.ending import describe_abstentions, describe_confidence, describe_ending
from moothall.app.kinds.debate.tools import ToolUse, tool_uses
from moothall.app.report.projections.path import path_of
from moothall.app.runs.outcome import Outcome
from moothall.kernel.codec import encode
from moothall.kernel.machine import Machine
from moothall.machines.debate import PUBLIC
from moothall.machines.debate.result import result_of as told_by_data
from moothall.runtime.ports import Store


async def result_of(store: Store, machine: Machine, outcome: Outcome) -> Mapping[str, Any]:
    """The result of a debate, with the path that its journal says it took."""
    entries = await store.entries(outcome.run)
    path, told = path_of(machine, entries), told_by_data(outcome.data)
    uses = await tool_uses(store, outcome.run, entries)
    return {
        "run_id": outcome.run,
        "status": outcome.status,
        "final_state": " + ".join(outcome.states),
        "states_visited": list(path.states),
        "events": [event for event in path.events if event in PUBLIC],
        "rounds": told["rounds"],
        "termination": told["termination"],
        "protocol": told["protocol"],
        "solution": told["solution"],
        "minority": told["minority"],
        "agents": [{**seat, "tool_calls": _calls_of(uses, seat["id"])} for seat in told["agents"]],
        "clarifications": told["clarifications"],
        "agreement": told["agreement"],
        "abstentions": told["abstentions"],
        "votes": told["votes"],
        "tool_calls": encode(uses),
        "usage": dict(outcome.spent),
        "notes": told["notes"],
        "reason": told["reason"] or outcome.reason,
        "questions": [
            {"id": question.id, "run": question.run, "prompt": question.prompt, "schema": question.schema}
            for question in outcome.questions
        ],
    }


def _calls_of(uses: Sequence[ToolUse], agent: str) -> int:
    return sum(use.agent == agent for use in uses)


def explain(result: Mapping[str, Any]) -> str:
    """The solution for people; where a closed question has none, why."""
    solution = result["solution"]
    is_closed = "counts" in result["votes"]
    if solution is None or (is_closed and not solution["answer"]):
        return _explain_failure(result, is_closed=is_closed)
    parts = []
    if solution["answer"]:
        parts.append(f"Answer: {solution['answer']}")
    parts.append(solution["description"])
    for title, key in (
        ("Trade-offs", "tradeoffs"),
        ("Recommendations", "recommendations"),
        ("Requirements that it does not meet", "unmet_requirements"),
        ("Open questions", "open_questions"),
    ):
        if solution[key]:
            parts.append(_list_of(title, solution[key]))
    if result["minority"]:
        parts.append(f"A minority holds: {result['minority']}")
    if result["abstentions"]:
        parts.append(_list_of("Abstained", describe_abstentions(result["abstentions"])))
    parts.append(_standing(result))
    return "\n\n".join(parts)


def _explain_failure(result: Mapping[str, Any], *, is_closed: bool) -> str:
    reason = result["reason"]
    if not is_closed:
        return f"The debate failed: {reason}" if reason else ""
    why = reason.removeprefix("no answer: ")
    told = [f"No answer: {why}" if why else "No answer"]
    if result["abstentions"]:
        told.append(_list_of("Abstained", describe_abstentions(result["abstentions"])))
    return "\n\n".join(told)


def _list_of(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {text}" for text in items)])


def _standing(result: Mapping[str, Any]) -> str:
    """How sure it is, and how it came about, in one line."""
    votes, rounds = result["votes"], result["rounds"]
    number = f"{rounds} round" + ("" if rounds == 1 else "s")
    why = describe_ending(result["termination"])
    voices = votes.get("effective_voices")
    worth = f"; {len(result['agents'])} agents ≈ {voices:g} independent voices" if voices else ""
    ending = f"ended by {why}" if why else "ended before its time"
    return f"Confidence {describe_confidence(result['solution']['confidence'])}, after {number}, {ending}{worth}."
