"""The steps of a run as people read them: one entry of the journal at a time, without its JSON.

A step is told from its entry alone, so that a window of a long journal costs as much as it shows. Whom a sentence names
is taken from the event; what an effect turns to, from the effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from moothall.agents.ask import Replied, Returned, Unusable
from moothall.app.report.projections.flight import asked_in_turn, who_of
from moothall.app.report.projections.hierarchy import Entry
from moothall.kernel.effects import AskPerson, StartChild
from moothall.kernel.events import (
    Adopted,
    Answered,
    AttemptFailed,
    Began,
    Cancelled,
    ChildDone,
    Denied,
    Doubted,
    Drafted,
    Exhausted,
    Expired,
    Forked,
    GaveUp,
    Retried,
    Started,
)
from moothall.kernel.frozen import Frozen
from moothall.runtime.children import child_id
from moothall.runtime.journal import RunId

SHORT = 280
"""How much of a text a list of steps has; a step alone has all of it."""
WORDS: Mapping[str, str] = {
    Started.name: "The run began",
    Replied.name: "replied",
    Unusable.name: "gave a reply that cannot be used",
    Returned.name: "returned",
    Answered.name: "answered",
    Expired.name: "Nobody answered in time",
    GaveUp.name: "Something could not be done",
    Exhausted.name: "The budget is used up",
    Cancelled.name: "The run was cancelled",
    Forked.name: "The run went its own way",
    Retried.name: "The run was tried again",
    Adopted.name: "The run took on another definition",
    Began.name: "Something with consequences began",
    AttemptFailed.name: "An attempt failed",
    Denied.name: "The budget did not allow it",
    Drafted.name: "A form was filled in in part",
    Doubted.name: "Nobody knows whether it was done",
    ChildDone.name: "A child came to its end",
}


class Wanted(Frozen):
    """An effect that a step wants: its key, its kind, whom it turns to, what it says, and the run that it starts."""

    key: str
    kind: str
    who: str
    text: str
    child: RunId = ""
    denied: str = ""


class Choice(Frozen):
    """Who was chosen of several, by what, why, and the others with their scores, the best first."""

    chosen: str
    by: str
    why: str
    losers: tuple[tuple[str, float], ...]


class Step(Frozen):
    """One step: what happened, who did it, where the run went, what it cost, and what is wanted next."""

    seq: int
    at: float
    event: str
    who: str
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    taken: tuple[str, ...]
    sentence: str
    usage: Mapping[str, float]
    model: str = ""
    wanted: tuple[Wanted, ...] = ()
    status: str = ""
    note: str = ""
    """Why it was ignored, or why the run is over."""
    ignored: bool = False
    is_whole: bool = True
    """Whether the texts are whole."""
    choices: tuple[Choice, ...] = ()
    """What was decided among several in it."""


def step_of(run: RunId, entry: Entry, *, whole: bool = False) -> Step:
    """An entry as a step; its texts whole, or their beginnings."""
    event = entry["event"]
    text, who = _text(event), str(event.get("agent") or event.get("tool") or event.get("by") or "")
    wanted = tuple(_wanted_effect(run, effect, whole) for effect in entry["effects"])
    return Step(
        entry["seq"],
        entry["at"],
        event["name"],
        who,
        text if whole else shorten(text),
        tuple(entry["from"]),
        tuple(entry["to"]),
        tuple(entry["taken"]),
        _sentence(event["name"], who, entry),
        dict(event.get("usage") or {}),
        str(event.get("model") or ""),
        wanted,
        entry.get("status", ""),
        str(entry.get("ignored") or entry.get("reason") or event.get("reason") or ""),
        "ignored" in entry,
        whole or (len(text) <= SHORT and all(len(effect.text) <= SHORT for effect in wanted)),
        tuple(_choices(entry)) if "appends" in entry else (),
    )


def _choices(entry: Entry) -> Iterator[Choice]:
    """The decisions that an entry tells: messages that name who was not chosen."""
    for append in entry["appends"]:
        told = append["message"]
        if isinstance(told, Mapping) and told.get("losers"):
            losers = tuple((str(who), float(score)) for who, score in told["losers"])
            yield Choice(str(told.get("to", "")), str(told.get("by", "")), str(told.get("reason", "")), losers)


def shorten(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= SHORT else text[:SHORT] + "…"


def _text(event: Mapping[str, Any]) -> str:
    """What an event says, in its own words where it has some."""
    value = event.get("value")
    if value is None and event["name"].startswith(ChildDone.name):
        value = event.get("data")
    if value is None or (event.get("text") and not isinstance(value, Mapping)):
        value = event.get("text") or event.get("reason") or ""
    return format_value(value)


def format_value(value: Any, indent: str = "") -> str:
    """A value as people read it: a line for each field, a dash before each item."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, Mapping):
        lines = (f"{indent}{name}: {_below(inner, indent)}" for name, inner in value.items() if inner not in ("", None))
        return "\n".join(lines)
    if isinstance(value, list | tuple):
        return "\n".join(f"{indent}– {_below(inner, indent).lstrip()}" for inner in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _below(value: Any, indent: str) -> str:
    if isinstance(value, Mapping | list | tuple) and value:
        return f"\n{format_value(value, indent + '  ')}"
    return format_value(value)


def _sentence(name: str, who: str, entry: Entry) -> str:
    """Who did what, and where the run went."""
    words = WORDS[ChildDone.name] if name.startswith(ChildDone.name) else WORDS.get(name, name)
    did = f"{who} {words}" if who and words[:1].islower() else f"{who}: {name}" if who and words == name else words
    before, after = " + ".join(entry["from"]), " + ".join(entry["to"])
    if "ignored" in entry:
        return f"{did}; it was ignored"
    if entry.get("status") == "done":  # whether that is a good end, the run says, and not its last entry
        return f"{did} → {after}; the run is over"
    if entry.get("status"):
        return f"{did}; the run is {entry['status']}"
    return did if before == after or not after else f"{did} → {after}"


def _wanted_effect(run: RunId, pending: Mapping[str, Any], whole: bool) -> Wanted:
    kind, effect = pending["kind"], pending["effect"]
    text = _question_text(kind, effect)
    child = child_id(run, pending["key"]) if kind == StartChild.kind else ""
    denied = str(pending.get("denied") or "")
    return Wanted(pending["key"], kind, who_of(kind, effect), text if whole else shorten(text), child, denied)


def _question_text(kind: str, effect: Mapping[str, Any]) -> str:
    if kind == AskPerson.kind:
        return str(effect["prompt"])
    if kind == StartChild.kind:
        asked = asked_in_turn(effect)
        return _plain(asked.get("arguments") if asked else effect.get("input"))
    return _plain(effect.get("arguments"))


def _plain(value: Any) -> str:
    return "" if value is None else format_value(value)
