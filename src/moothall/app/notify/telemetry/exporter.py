"""Where spans go when the program has set nothing up: where OpenTelemetry's own variables say.

`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a collector that speaks OTLP over HTTP,
`OTEL_TRACES_EXPORTER=console` prints spans, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and the other variables of
the SDK count as everywhere. `OTEL_TRACES_EXPORTER=none` and `OTEL_SDK_DISABLED=true` turn it off.
"""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from moothall.errors import DefinitionError

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
LIBRARIES = {"otlp": "opentelemetry.exporter.otlp.proto.http", "console": "opentelemetry.sdk"}
USUAL = "http://localhost:4318"
"""Where a collector listens that nobody named."""


def chosen_exporter() -> str:
    """The exporter that the environment asks for: `otlp`, `console`, or "" where it asks for none."""
    named = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named == "none" or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    if not named:
        return "otlp" if endpoint_variable() else ""
    if named not in LIBRARIES:
        raise DefinitionError(f"OTEL_TRACES_EXPORTER={named}: spans are sent by otlp, printed by console, or none")
    return named


def _lacking(exporter: str) -> str:
    """Why an exporter cannot be used: its library is not installed; "" where it is."""
    try:
        is_installed = find_spec(LIBRARIES[exporter]) is not None
    except ModuleNotFoundError:
        is_installed = False
    return "" if is_installed else f"spans by {exporter} need more than is installed: pip install 'moothall[tracing]'"


def endpoint_variable() -> str:
    """The variable that names a collector; "" where none does."""
    return next((name for name in ENDPOINTS if os.environ.get(name)), "")


def collector() -> str:
    """The address of the collector that the environment names."""
    return os.environ.get(endpoint_variable(), USUAL)


def reach_collector(timeout: float = 2.0) -> str:
    """Try to connect to the collector; why that fails, or ""."""
    import socket  # the doctor asks, and nobody else

    parts = urlsplit(collector())
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout):
            return ""
    except (OSError, ValueError) as error:
        return f"{collector()} cannot be reached: {error}"


class _Reasons(logging.Handler):
    """Keeps what the exporter says of its failures, which it tells nobody else."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def try_exporter(timeout: float = 2.0) -> str:
    """Send the collector an empty batch, in the way in which a run would send it spans; why that fails, or ""."""
    if problem := reach_collector(timeout):
        return problem
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    exporter: Any = OTLPSpanExporter(timeout=timeout)
    reasons = _Reasons()
    logger = logging.getLogger(OTLPSpanExporter.__module__)
    logger.addHandler(reasons)
    try:
        is_taken = exporter.export(()) is SpanExportResult.SUCCESS
    finally:
        logger.removeHandler(reasons)
        exporter.shutdown()
    return "" if is_taken else f"{collector()} takes no spans: {'; '.join(reasons.said[:1]) or 'it does not say why'}"


def exporter_problem() -> str:
    """Why spans do not arrive where the environment sends them; "" where they do, or it says nothing."""
    try:
        named = chosen_exporter()
    except DefinitionError as error:
        return str(error)
    return (named and _lacking(named)) or (try_exporter() if named == "otlp" else "")


def set_up() -> Any:
    """The provider that sends spans where the environment says; None where it says nothing or the program has its own.

    It reads its own variables: the name of the service, attributes, headers, time-outs, sampling.
    """
    from opentelemetry import trace

    named = chosen_exporter()
    if not named or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    if problem := _lacking(named):
        raise DefinitionError(problem)
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    provider = TracerProvider()
    if named == "console":
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider
