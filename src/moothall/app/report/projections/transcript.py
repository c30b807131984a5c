"""Who said what to whom: prompts, replies, calls of tools, questions and answers, as one entry has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, Unusable, render
from moothall.app.report.projections.flight import SOMEBODY, Flight, asked_in_turn, who_of
from moothall.app.report.projections.hierarchy import Entry
from moothall.kernel.effects import AskPerson, StartChild
from moothall.kernel.events import Answered, AttemptFailed, ChildDone, Expired, GaveUp
from moothall.kernel.frozen import Frozen

MACHINE = "the machine"


class Said(Frozen):
    """One thing that was said. `kind` is what it was: prompt, reply, call, result, question, answer, failure …"""

    seq: int
    at: float
    who: str
    whom: str
    kind: str
    text: str
    late: bool = False
    """Whether nobody listened any more."""


def transcript(entry: Entry, before: Flight) -> Iterator[Said]:
    """What was said in an entry: first what it heard, then what it asks. `before` is what was under way before it."""
    seq, at, late = entry["seq"], entry["at"], "ignored" in entry
    for who, whom, kind, text in _heard_texts(entry["event"], _speaker(entry, before)):
        yield Said(seq, at, who, whom, kind, text, late)
    for wanted in entry["effects"]:
        if not wanted.get("denied"):
            for whom, kind, text in _asked_texts(wanted["kind"], wanted["effect"]):
                yield Said(seq, at, MACHINE, whom, kind, text)


def _speaker(entry: Entry, before: Flight) -> str:
    span = before.of(entry["cause"])
    return span.who if span is not None else ""


def _heard_texts(event: Mapping[str, Any], who: str) -> Iterator[tuple[str, str, str, str]]:
    name = event["name"]
    if name == Replied.name:
        agent = event["agent"]
        yield agent, MACHINE, "reply", event["text"] or _format_value(event["value"])
        for call in event.get("calls") or ():
            yield agent, call["tool"], "call", _format_value(call["arguments"])
    elif name == Unusable.name:
        yield event["agent"], MACHINE, "unusable reply", f"{event['text']}\n({event['reason']})"
    elif name == Returned.name:
        yield event["tool"], MACHINE, "result", _format_value(event["value"])
    elif name == Answered.name:
        yield event["by"] or who or SOMEBODY, MACHINE, "answer", _format_value(event["value"])
    elif name == Expired.name:
        yield who or SOMEBODY, MACHINE, "no answer", "the deadline passed"
    elif name in (GaveUp.name, AttemptFailed.name):
        yield who, MACHINE, "failure", event["reason"]
    elif name == ChildDone.name or name.startswith(ChildDone.name + "."):
        yield who or name, MACHINE, "result", _format_value(event["data"])


def _asked_texts(kind: str, effect: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    whom = who_of(kind, effect)
    if kind == AskAgent.kind:
        yield whom, "prompt", _render_request(effect)
    elif kind == CallTool.kind:
        yield whom, "call", _format_value(effect["arguments"])
    elif kind == AskPerson.kind:
        yield whom, "question", effect["prompt"]
    elif kind == StartChild.kind:
        asked = asked_in_turn(effect)
        yield whom, "prompt" if asked else "start", _render_request(asked) if asked else _format_value(effect["input"])


def _render_request(asked: Mapping[str, Any]) -> str:
    return render(asked["template"], asked["arguments"])


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
