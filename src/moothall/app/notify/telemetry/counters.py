"""Counters of runs for Prometheus, served at /metrics on the loopback.

What a child spends is counted where the child is seen, and not once more when it tells its parent. What nobody told is
not counted: `moothall_unpriced_calls_total` says how many calls have no price.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

from moothall.app.notify.telemetry.sights import Sight
from moothall.app.report.projections.flight import DROPPED, Charge, Span
from moothall.kernel.events import Exhausted, Expired
from moothall.runtime.journal import FAMILY

HOST = "127.0.0.1"
SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 86_400)
"""Calls take seconds, and people days."""


class Counters:
    """Counts what it sees, and serves it at a port; 0 is any that is free."""

    def __init__(self, port: int) -> None:
        self.registry = CollectorRegistry()
        self._runs = self._counter("runs", "Runs that began, and that ended, by how", "machine", "status")
        self._transitions = self._counter("transitions", "Transitions into a state", "machine", "state")
        self._effects = self._counter("effects", "Effects that came to an end", "machine", "kind", "outcome")
        self._tokens = self._counter("tokens", "Tokens, as far as they are known", "model", "agent")
        self._usd = self._counter("usd", "Money in USD, as far as it is known", "model", "agent")
        self._unpriced = self._counter("unpriced_calls", "Calls whose price is not known", "model", "agent")
        self._seconds = Histogram(
            "moothall_effect_seconds",
            "From when an effect was wanted to its end",
            ("machine", "kind"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._server, self._thread = start_http_server(port, HOST, self.registry)
        self.address = f"http://{HOST}:{self._server.server_port}/metrics"

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"moothall_{name}", says, labels, registry=self.registry)

    def __call__(self, sight: Sight) -> None:
        """Count one entry."""
        machine = sight.subject.record.machine
        if sight.entry["seq"] == 0:
            self._runs.labels(machine, "began").inc()
        if sight.entry["taken"]:
            for state in (*sight.moved.entered, *sight.moved.passed):
                self._transitions.labels(machine, state).inc()
        for span in sight.after.ended:
            self._effects.labels(machine, span.kind, outcome(span)).inc()
            self._seconds.labels(machine, span.kind).observe(span.seconds(sight.after.at))
        for charge in sight.after.charges:
            if charge.kind not in FAMILY:
                self._charge(charge, sight.subject.players.model_of(charge))
        if sight.is_over and not sight.was_over:
            self._runs.labels(machine, sight.entry["status"]).inc()

    def _charge(self, charge: Charge, model: str) -> None:
        for counter, amount in (
            (self._tokens, charge.usage.get("tokens", 0)),
            (self._usd, charge.usage.get("usd", 0)),
            (self._unpriced, charge.unpriced),
        ):
            if amount > 0:
                counter.labels(model, charge.who).inc(amount)

    def close(self) -> None:
        """Nobody is served any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def outcome(span: Span) -> str:
    """How an effect ended, in one of a few words."""
    name = span.outcome
    if span.denied:
        return "denied"
    if name == DROPPED:
        return DROPPED
    if name.split(".")[0] == "error":
        return "failed"
    return {Exhausted.name: "stopped", Expired.name: "expired"}.get(name, "done")
