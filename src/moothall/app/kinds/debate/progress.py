"""A debate while it goes on, in words: who said what, where it went, and how far the panel agrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.agents.ask import Replied, Returned
from moothall.app.kinds.kind import Line
from moothall.app.runs.news import Committed
from moothall.kernel.events import Answered, Event, GaveUp
from moothall.machines.debate import INNER, PUBLIC
from moothall.machines.debate.state import (
    Critique,
    Debate,
    Evaluation,
    Proposal,
    Questions,
    Ranking,
    Round,
    Solution,
    Summary,
)

SHORT = 100
BOOKKEEPING = frozenset(INNER) - PUBLIC
"""Events of a node's own, which lead nowhere."""


def lines_of(news: Committed, *, whole: bool) -> tuple[Line, ...]:
    """A step of a debate, told to people."""
    data, entry = news.head.snapshot.data, news.plain
    assert isinstance(data, Debate)
    parts = [*_event_lines(news.entry.event, data, where=" + ".join(entry["from"]), whole=whole)]
    if entry.get("ignored"):
        parts = [Line(part.head, f"{part.text} (too late: {entry['ignored']})".strip()) for part in parts]
    parts += _went(entry, data)
    if "status" in entry and entry.get("reason"):
        parts.append(Line("", f"{entry['status']}: {entry['reason']}"))
    return tuple(parts)


def _event_lines(event: Event, data: Debate, *, where: str, whole: bool) -> Iterator[Line]:
    match event:
        case Replied(agent=agent, value=value):
            head, text = _speech(agent, value, where)
            yield Line(head, text if whole else _short(text))
        case Answered(id=seat) if where != "ClarificationInput":
            yield Line(seat or "a person", "has spoken")
        case Answered():
            yield Line("you", "answered the questions")
        case GaveUp(id=name, reason=reason):
            yield Line(name or "somebody", f"failed: {_short(reason)}")
        case Returned(tool=tool, value=value):
            yield Line(tool, f"says {value!r}" if data.check or value is not True else "accepts the answer")
        case _:
            pass


def _speech(agent: str, value: Any, where: str) -> tuple[str, str]:
    match value:
        case Questions(questions=questions):
            return agent, "asks: " + " ".join(questions) if questions else "asks nothing"
        case Proposal(text=text, answer=answer):
            verb = "refines" if where == "Refinement" else "proposes"
            return agent, f"{verb}{f' {answer}' if answer else ''}: {text}"
        case Critique(reviews=reviews):
            return agent, "reviews " + "; ".join(f"{review.label}: {review.text}" for review in reviews)
        case Evaluation(confidence=confidence, reason=reason):
            return agent, f"sees {confidence:g} of 100{f': {reason}' if reason else ''}"
        case Solution(description=description):
            return agent, f"writes the solution: {description}"
        case Ranking(ranking=ranking):
            return agent, f"ranks the drafts {', '.join(ranking)}"
        case Summary(text=text):
            return agent, f"sums up: {text}"
        case _:
            return agent, "replied"


def _went(entry: Mapping[str, Any], data: Debate) -> list[Line]:
    """Where the debate went, by the events of the document; a round that is over tells how far all agree."""
    events = [event for event in entry.get("raised", ()) if event not in BOOKKEEPING]
    if entry["event"]["name"] in PUBLIC:
        events = [entry["event"]["name"], *events]
    if not events:
        return []
    lines = []
    if data.history and {"CONTINUE", "CONSENSUS_REACHED", "MAX_ROUNDS_REACHED"} & set(events):
        lines.append(Line(f"round {data.history[-1].number}", agreement_of(data.history[-1])))
    after = " + ".join(entry["to"])
    number = f", round {data.round} of {data.configuration.debate.rounds}" if "BEGIN_ROUND" in events else ""
    return [*lines, Line(f"→ {after}{number}", f"({', '.join(events)})")]


def agreement_of(known: Round) -> str:
    """How far a round came, in a few words."""
    judged = f", confidence {known.confidence:g} of 100" if known.confidence is not None else ""
    silent = f", abstained: {', '.join(known.abstained)}" if known.abstained else ""
    return f"agreement {100 * known.agreement:.0f} of 100{judged}{silent}"


def standing_of(news: Committed) -> str:
    """How far a debate has come, in a few words."""
    data, states = news.head.snapshot.data, " + ".join(news.head.snapshot.active)
    assert isinstance(data, Debate)
    parts = [states]
    if data.round:
        parts.insert(0, f"round {data.round} of {data.configuration.debate.rounds}")
    if data.history:
        parts.append(agreement_of(data.history[-1]))
    return " · ".join(parts)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"
