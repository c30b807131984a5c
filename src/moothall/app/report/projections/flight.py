"""What is under way in a run: every effect from the entry that wants it to the entry that ends it.

- An effect is no longer wanted when its state is left, and when the run is over. What it may have cost is told all the
  same: a call of an agent counts when it is dropped, and a late reply brings what it really cost.
- Late replies are recognised among the latest `LATE` effects that were dropped; of older ones only what the reply
  itself says is known. A child always says how it ended, however late.
- An attempt that went wrong is a call too. An effect that the budget denied was never begun; that only its next
  attempt was denied, no entry says, so it counts as one that was made if it is dropped then.
- Time does not go back: where a clock did, the entry counts as made when the one before it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

from moothall.agents.ask import TURN, AskAgent, CallTool
from moothall.app.report.projections.hierarchy import Entry
from moothall.kernel.effects import AskPerson, StartChild
from moothall.kernel.events import AttemptFailed, Began, Denied, Doubted, Exhausted, Repeated
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import FAMILY, TIMERS

LATE = 1_000
DROPPED = "dropped"
SOMEBODY = "a person"
_MARKS = frozenset((Began.name, Denied.name, AttemptFailed.name, Doubted.name, Repeated.name))
_BEFORE = _MARKS - {AttemptFailed.name}
"""Marks that do not end an attempt."""
_TRACED = frozenset((AskAgent.kind, CallTool.kind, *FAMILY))


class Span(Frozen):
    """The time of one effect: who was at it, for which state, since when, and how it ended if it has."""

    key: str
    kind: str
    who: str
    state: str
    since: float
    until: float | None = None
    outcome: str = ""
    attempts: int = 1
    denied: str = ""
    doubted: bool = False
    joined: bool = False
    """Whether what a child spent is known from its own journal, and not to be counted again when it ends."""

    @property
    def waits(self) -> bool:
        """Whether nothing happens until a person says something."""
        return self.kind == AskPerson.kind or self.doubted

    @property
    def works(self) -> bool:
        """Whether somebody is at work."""
        return not self.waits and self.kind not in TIMERS and not self.denied

    def ended(self, at: float, outcome: str) -> Span:
        """The same at its end."""
        parts = (self.attempts, self.denied, self.doubted, self.joined)
        return Span(self.key, self.kind, self.who, self.state, self.since, at, outcome, *parts)

    def seconds(self, until: float) -> float:
        """How long it took, or has taken so far."""
        return max(0.0, (until if self.until is None else self.until) - self.since)


class Charge(Frozen):
    """What one entry says was spent: by whom, for which state, how many calls, and of how many nobody told the cost."""

    state: str
    who: str
    kind: str
    calls: int = 0
    usage: Mapping[str, float] = field(default_factory=dict)
    unpriced: int = 0
    uncounted: int = 0
    model: str = ""


class Flight(Frozen):
    """The effects under way after an entry, and what that entry ended and charged."""

    at: float = 0.0
    spans: Mapping[str, Span] = field(default_factory=dict)
    late: Mapping[str, Span] = field(default_factory=dict)
    ended: tuple[Span, ...] = ()
    charges: tuple[Charge, ...] = ()

    def after(self, entry: Entry, left: Collection[str] = ()) -> Flight:
        """What is under way after one more entry, which left these states."""
        at = max(self.at, entry["at"])
        spans, late = dict(self.spans), self.late
        charges, ended = self._charges(entry), []
        event, cause = entry["event"]["name"], entry["cause"]
        key = cause.partition("-")[0] if event in _MARKS else cause
        if event in _MARKS and key in spans:
            spans[key] = _mark_span(spans[key], event)
        elif event not in _MARKS and key in spans:
            ended.append(spans.pop(key).ended(at, event))
        elif key in late and event not in _BEFORE:
            late = {other: span for other, span in late.items() if other != key}
        over = "status" in entry
        if left or over:
            for span in [span for span in spans.values() if over or span.state in left]:
                ended.append(spans.pop(span.key).ended(at, DROPPED))
                charges += _dropped_charges(span)
                late = _add_late(late, span)
        for wanted in entry["effects"]:
            spans[wanted["key"]] = _span(wanted, at)
        return Flight(at, spans, late, tuple(ended), tuple(charges))

    def of(self, cause: str) -> Span | None:
        """The effect that a cause belongs to, under way or dropped."""
        key = cause.partition("-")[0]
        return self.spans.get(key) or self.late.get(key)

    def joined(self, key: str) -> Flight:
        """The same, with a child whose own journal tells what it spends."""
        return replace(self, spans={**self.spans, key: replace(self.spans[key], joined=True)})

    def parted(self, at: float) -> Flight:
        """What is under way in a fork when it parts from its origin: the same, begun anew; late replies are not its."""
        spans = {key: Span(key, span.kind, span.who, span.state, at) for key, span in self.spans.items()}
        return Flight(at, spans)

    def does(self) -> str:
        """What the run does: somebody is `working`, or it is `waiting` for a person, or for `time`, or for nothing."""
        if any(span.works for span in self.spans.values()):
            return "working"
        if any(span.waits for span in self.spans.values()):
            return "waiting"
        return "time" if self.spans else "nothing"

    def _charges(self, entry: Entry) -> list[Charge]:
        """What the event of an entry says was spent. What was charged when its effect was dropped is taken back."""
        event, span = entry["event"], self.of(entry["cause"])
        usage: Mapping[str, float] = event.get("usage") or {}
        if span is None:
            return _stray(event, usage) if usage else []
        if span.joined:
            return []
        if span.kind == AskAgent.kind:
            before = [_charge_for(span, -1, {})] if span.key in self.late else []
            return [*before, _charge_for(span, 1, usage, _model(event))] if _is_call(event, span) else []
        calls = int(usage.get("calls", 0)) if span.kind in FAMILY else 0
        return [_charge_for(span, calls, usage, _model(event))] if usage else []


def _is_call(event: Mapping[str, Any], span: Span) -> bool:
    """Whether an agent was asked, as far as the event that ended the attempt tells."""
    name = event["name"]
    if name == Exhausted.name:  # what was under way is stopped when the time is over; all else was denied before
        return event["resource"] == "seconds" and not span.denied
    return name not in _MARKS or name == AttemptFailed.name


def _charge_for(span: Span, calls: int, usage: Mapping[str, float], model: str = "") -> Charge:
    unpriced, uncounted = (0 if name in usage else calls for name in ("usd", "tokens"))
    return Charge(span.state, span.who, span.kind, calls, usage, unpriced, uncounted, model)


def _stray(event: Mapping[str, Any], usage: Mapping[str, float]) -> list[Charge]:
    """What an event says was spent that belongs to no effect that is remembered."""
    who = event.get("agent") or event.get("tool") or ""
    return [Charge("", who, AskAgent.kind if "agent" in event else "", 0, usage, model=_model(event))]


def _model(event: Mapping[str, Any]) -> str:
    return str(event.get("model") or "")


def _dropped_charges(span: Span) -> list[Charge]:
    """What an effect may have cost that is no longer wanted."""
    if span.kind != AskAgent.kind or span.denied:
        return []
    return [_charge_for(span, 1, {})]


def _add_late(late: Mapping[str, Span], span: Span) -> Mapping[str, Span]:
    """The dropped effects with one more, and without the oldest where they are too many."""
    if span.kind not in _TRACED or span.denied:
        return late
    late = {**late, span.key: span}
    if len(late) > LATE:
        oldest = next((key for key, span in late.items() if span.kind not in FAMILY), "")
        late = {key: span for key, span in late.items() if key != oldest}
    return late


def _mark_span(span: Span, mark: str) -> Span:
    if mark in (AttemptFailed.name, Repeated.name):
        return replace(span, attempts=span.attempts + 1, doubted=False)
    if mark == Denied.name:
        return replace(span, denied="used up")
    return replace(span, doubted=True) if mark == Doubted.name else span


def _span(wanted: Mapping[str, Any], at: float) -> Span:
    kind = wanted["kind"]
    who, denied = who_of(kind, wanted["effect"]), wanted.get("denied", "")
    doubted = bool(wanted.get("doubt"))
    return Span(wanted["key"], kind, who, wanted.get("owner") or "", at, denied=denied, doubted=doubted)


def who_of(kind: str, effect: Mapping[str, Any]) -> str:
    """Whom an effect turns to: an agent, a tool, a person, a child; for timers what they bring."""
    if kind == AskPerson.kind:
        return str(effect.get("who") or SOMEBODY)
    if kind == StartChild.kind:
        return str(asked_in_turn(effect).get("agent") or effect["machine"])
    if kind in TIMERS:
        return str(effect["event"]["name"])
    return str(effect.get("agent") or effect.get("tool") or effect.get("parent") or kind)


def asked_in_turn(effect: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an agent with tools was asked, where this effect begins its turn; nothing where it is another child."""
    given = effect.get("input")
    if not effect["machine"].startswith(TURN) or not isinstance(given, dict):
        return {}
    found: Mapping[str, Any] = given.get("ask") or {}
    return found
