"""Spans of OpenTelemetry: one trace for a run and all its children, a span for every effect.

- The id of the trace follows from the id of the run at the top of the family, so that a run that goes on in another
  process, or a child that does, goes on in the same trace.
- An effect's span begins when the effect is wanted and ends when it does; attempts are events in it. One that is open
  when the process ends is not told; who goes on with the run tells it whole, from when it was wanted.
- A run has a span for each stretch in which something goes on in one process: waiting for a person ends it.

Where spans go is the business of the SDK that the program sets up; without one, of the variables of OpenTelemetry, and
else they go nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from moothall.agents.ask import AskAgent, CallTool
from moothall.app.notify.telemetry.exporter import set_up
from moothall.app.notify.telemetry.sights import Place, Sight, Subject
from moothall.app.report.projections.flight import DROPPED, Span
from moothall.kernel.events import AttemptFailed, Began, Doubted, Exhausted, Repeated
from moothall.runtime.journal import Record, RunId

NAME = "moothall"
ATTEMPTS = frozenset((Began.name, AttemptFailed.name, Doubted.name, Repeated.name))
PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "google": "gcp.gemini"}
"""The providers as the conventions call them."""
ERRORS = ("failed", "limited")
"""The ends of a run that count as errors."""
OPEN = 10_000
"""How many spans may be open."""
BILLION = 1_000_000_000
Attributes = dict[str, str | int | float | bool | tuple[str, ...]]


class Spans:
    """Makes spans of what it sees."""

    def __init__(self) -> None:
        self._provider = set_up()
        self._tracer = trace.get_tracer(NAME)
        self._stretches: dict[Place, tuple[trace.Span, float]] = {}
        self._effects: dict[tuple[str, RunId, str], trace.Span] = {}

    def __call__(self, sight: Sight) -> None:
        """Begin and end the spans of one entry."""
        if not sight.was_over:
            self._note(sight)
        for span in sight.before.spans.values():  # what was wanted before this process came
            self._open(sight.subject, span)
        self._mark(sight)
        for span in sight.after.ended:
            self._close(sight, span)
        for span in sight.after.spans.values():
            self._open(sight.subject, span)
        if (sight.is_over and not sight.was_over) or sight.after.does() in ("waiting", "nothing"):
            self._rest(sight)

    def _note(self, sight: Sight) -> None:
        """Begin a stretch of the run, or go on with it."""
        place, at = sight.subject.place, sight.after.at
        if place in self._stretches:
            self._stretches[place] = (self._stretches[place][0], at)
            return
        record = sight.subject.record
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": record.machine,
            "moothall.run": record.run,
            "moothall.machine": record.machine,
            "moothall.step": sight.entry["seq"],
        }
        span = self._tracer.start_span(
            f"invoke_workflow {record.machine}",
            self._above(sight.subject),
            attributes=attributes,
            start_time=_moment(at),
        )
        self._stretches[place] = (span, at)
        _forget_oldest(self._stretches)

    def _above(self, subject: Subject) -> Context:
        """What a run is part of: the effect that started it, or the trace alone where that is not here."""
        record = subject.record
        parent = self._effects.get((subject.store, record.parent, record.parent_key))
        return trace.set_span_in_context(parent or NonRecordingSpan(place_of(record)), Context())

    def _open(self, subject: Subject, effect: Span) -> None:
        key = (*subject.place, effect.key)
        if key in self._effects:
            return
        stretch = self._stretches.get(subject.place)
        above = self._above(subject) if stretch is None else trace.set_span_in_context(stretch[0], Context())
        attributes = attributes_of(subject, effect)
        operation = attributes.get("gen_ai.operation.name", effect.kind)
        whom = attributes.get("gen_ai.request.model", effect.who)
        kind = SpanKind.CLIENT if effect.kind == AskAgent.kind else SpanKind.INTERNAL
        self._effects[key] = self._tracer.start_span(
            f"{operation} {whom}", above, kind, attributes, start_time=_moment(effect.since)
        )
        _forget_oldest(self._effects)

    def _mark(self, sight: Sight) -> None:
        """Tell of an attempt at the effect that it belongs to."""
        event, effect = sight.entry["event"], sight.effect
        span = self._effects.get((*sight.subject.place, effect.key)) if effect is not None else None
        if span is not None and effect is not None and event["name"] in ATTEMPTS:
            attributes: Attributes = {"moothall.attempt": effect.attempts, "moothall.step": sight.entry["seq"]}
            span.add_event(event["name"], attributes, _moment(sight.after.at))

    def _close(self, sight: Sight, effect: Span) -> None:
        span = self._effects.pop((*sight.subject.place, effect.key), None)
        if span is None:
            return
        event = sight.entry["event"]
        span.set_attribute("moothall.outcome", effect.outcome)
        span.set_attribute("moothall.attempts", effect.attempts)
        if effect.outcome != DROPPED:
            span.set_attributes(usage_of(event.get("usage") or {}))
            if asked := event.get("model"):
                span.set_attribute("gen_ai.response.model", asked_model(asked)["gen_ai.request.model"])
        if effect.outcome.split(".")[0] == "error" or effect.outcome == Exhausted.name:
            span.set_attribute("error.type", effect.outcome)
            span.set_status(Status(StatusCode.ERROR, str(event.get("fault") or event.get("resource") or "")))
        span.end(_moment(sight.after.at))

    def _rest(self, sight: Sight) -> None:
        """End a stretch of the run."""
        stretch = self._stretches.pop(sight.subject.place, None)
        if stretch is None:
            return
        span, entry = stretch[0], sight.entry
        status = str(entry.get("status", "live"))
        span.set_attribute("moothall.status", status)
        span.set_attribute("moothall.state", tuple(entry["to"]))
        if status in ERRORS:
            span.set_attribute("error.type", entry["event"]["name"])
            span.set_status(Status(StatusCode.ERROR, status))
        span.end(_moment(sight.after.at))
        if status == "live":  # whoever sees the answer tells the whole question, and that may be elsewhere
            for key in sight.after.spans:
                self._effects.pop((*sight.subject.place, key), None)

    def close(self) -> None:
        """End the stretches that are open: nothing more is seen from here."""
        for span, at in self._stretches.values():
            span.end(_moment(at))
        self._stretches.clear()
        self._effects.clear()
        if self._provider is not None:
            self._provider.shutdown()


def place_of(record: Record) -> SpanContext:
    """The place of a run in the trace of its family, the same in every process."""
    top = record.run.rsplit("-", 2 * record.depth)[0] if record.depth else record.run
    return SpanContext(_number(top, 16), _number(record.run, 8), True, TraceFlags(TraceFlags.SAMPLED))


def _number(text: str, size: int) -> int:
    """A number of so many bytes that belongs to a text; 0 has another meaning."""
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest()) or 1


def attributes_of(subject: Subject, effect: Span) -> Attributes:
    """What is known of an effect when it is wanted."""
    found: Attributes = {
        "moothall.run": subject.record.run,
        "moothall.machine": subject.record.machine,
        "moothall.step": int(effect.key.partition(".")[0]),
        "moothall.effect": effect.key,
        "moothall.kind": effect.kind,
        "moothall.state": effect.state,
    }
    match effect.kind:
        case AskAgent.kind if effect.who in subject.players.functions or not subject.record.model:
            found |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": effect.who}
        case AskAgent.kind:
            found |= {
                "gen_ai.operation.name": "chat",
                "gen_ai.agent.name": effect.who,
                **asked_model(subject.record.model),
            }
        case CallTool.kind:
            found |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": effect.who}
    return found


def asked_model(model: str) -> Attributes:
    """A model as the conventions name it: provider, name and server where it is one of a provider."""
    kind, _, rest = model.partition(":")
    if kind not in PROVIDERS or "|" in model:
        return {"gen_ai.request.model": model}
    name, at, address = rest.partition("@http")
    asked: Attributes = {"gen_ai.provider.name": PROVIDERS[kind], "gen_ai.request.model": name}
    if not at:
        return asked
    server = urlsplit(f"http{address}")
    port: Attributes = {} if server.port is None else {"server.port": server.port}
    return {**asked, "server.address": server.hostname or "", **port}


def usage_of(usage: Mapping[str, float]) -> Attributes:
    """What an effect cost, as far as it is known; what goes in and out are told apart where whoever replied did."""
    found: Attributes = {}
    for name in ("input_tokens", "output_tokens"):
        if name in usage:
            found[f"gen_ai.usage.{name}"] = int(usage[name])
    if "tokens" in usage:
        found["gen_ai.usage.total_tokens"] = int(usage["tokens"])
    if "usd" in usage:
        found["moothall.usd"] = float(usage["usd"])
    return found


def _forget_oldest(kept: dict[Any, Any]) -> None:
    """Forget the oldest of many: runs may end elsewhere, and nobody here hears of it."""
    if len(kept) > OPEN:
        del kept[next(iter(kept))]


def _moment(at: float) -> int:
    return int(at * BILLION)
