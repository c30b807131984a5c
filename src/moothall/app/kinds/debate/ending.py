"""What ended a debate, in words, with the numbers by which it did; what nobody stated is not stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def describe_ending(ended: Mapping[str, Any]) -> str:
    """What ended a debate, as it stands behind "ended by"; "" where nothing has."""
    score, threshold, measured = ended["confidence"], ended["threshold"], ended["agreement"]
    bar = f"threshold {threshold:g}" if threshold is not None else ""
    match ended["reason"]:
        case "":
            return ""
        case "vote" if score is None:
            return "a vote over the drafts, which are open answers"
        case "vote":
            return f"a vote over the drafts, of which the leader has {score:g} of 100"
        case "convergence" | "quality":
            return f"{_describe_score(ended)} ({', '.join(filter(None, (bar, _describe_measured(ended))))})"
        case "max_rounds" if score is None:
            return "the limit on rounds" + (f" (agreement {measured:g} of 100)" if measured is not None else "")
        case "max_rounds":
            return f"the limit on rounds (reached {score:g} of 100, {bar})"
        case "no_answers":
            return "a round in which nobody gave an answer that can be read"
        case "asked_for":
            return "a person's wish"
        case reason:
            return str(reason)


def _describe_score(ended: Mapping[str, Any]) -> str:
    score, measured, judged = ended["confidence"], ended["agreement"], ended["judged"]
    match ended["measure"]:
        case "agreement":
            return f"agreement of {score:g} of 100"
        case "judge":
            return f"the judge's confidence of {score:g} of 100"
        case "agreement and judge":
            return f"agreement of {measured:g} of 100 and the judge's confidence of {judged:g}"
        case "rubric":
            return f"the judge's rubric with {score:g} of 100"
        case _:  # journals of before do not say what was measured
            return f"a score of {score:g} of 100"


def _describe_measured(ended: Mapping[str, Any]) -> str:
    is_told = ended["measure"] in ("agreement", "agreement and judge")
    return "" if is_told or ended["agreement"] is None else f"measured agreement {ended['agreement']:g}"


def describe_confidence(confidence: float | None) -> str:
    """How sure somebody is; "not stated" where it does not say."""
    return "not stated" if confidence is None else f"{confidence:g} of 100"


def describe_abstentions(abstentions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who gave nothing that counts, when and why, a line each."""
    return [
        f"{known['agent']} ({'draft' if not known['round'] else 'round ' + str(known['round'])}): {known['reason']}"
        for known in abstentions
    ]
