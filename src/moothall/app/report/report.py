"""Reports of a run: a page, Markdown, CSV or JSON. The journal is read once, for the sums and for what is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from moothall.app.config.settings import cleaner
from moothall.app.kinds.kind import kind_of
from moothall.app.report.figures import plain_costs, plain_metrics
from moothall.app.report.measures import machine_of, measure
from moothall.app.report.page import Story, Told, page_of, row, speech_html
from moothall.app.report.projections.costs import Costs
from moothall.app.report.projections.flight import Span
from moothall.app.report.projections.hierarchy import Entry
from moothall.app.report.projections.metrics import Metrics
from moothall.app.report.projections.transcript import transcript
from moothall.app.report.section import Section
from moothall.app.report.tables import csv_of, csv_row, markdown_of, quote_markdown
from moothall.app.runs.view import summary
from moothall.errors import MoothallError
from moothall.kernel.codec import encode
from moothall.kernel.machine import Machine
from moothall.runtime.journal import Reader, RunId
from moothall.runtime.ports import Store, Stored


async def report(store: Store, run: RunId, format: str, *, machine: Machine | None = None) -> str:
    """A run, told in one of the formats, without its secrets; a machine in code is drawn only where it is named."""
    stored, writer = await store.load(run), WRITERS[format]()
    measured = await measure(store, run, writer.saw, machine=machine)
    machine = await machine_of(store, stored.record, machine)
    is_changed = machine is not None and not machine.is_defined_as(stored.definition())
    sections = await sections_of(store, stored, machine, measured.metrics.costs) if machine is not None else ()
    told = writer.whole(Told(await summary(store, stored), measured, machine, is_changed, sections))
    return str(cleaner()(told))


async def sections_of(store: Store, stored: Stored, machine: Machine, costs: Costs) -> tuple[Section, ...]:
    """What the kind of a run adds to its report; nothing where the machine of today cannot read its data."""
    kind = kind_of(machine)
    try:
        data = Reader(machine, dict(kind.effects)).data(stored.head["snapshot"]["data"])
    except (KeyError, TypeError, MoothallError):
        return ()
    return await kind.sections(store, stored.record.run, data, costs)


class Writer(Protocol):
    """Is shown every entry of a run with the metrics before and after it, and tells the whole in the end."""

    def saw(self, entry: Entry, before: Metrics, after: Metrics) -> None:
        """One more entry."""
        ...

    def whole(self, told: Told) -> str:
        """The report."""
        ...


class Page:
    """Writes one HTML page."""

    def __init__(self) -> None:
        self._story = Story()
        self._began = 0.0

    def saw(self, entry: Entry, before: Metrics, after: Metrics) -> None:
        self._began = self._began or after.began
        self._story.rows.append(row(entry, self._began))
        self._story.said += map(speech_html, transcript(entry, before.flight))
        self._story.lanes.add(after.flight.ended, after.at)

    def whole(self, told: Told) -> str:
        self._story.lanes.add(told.measured.metrics.flight.spans.values(), told.measured.until)
        return page_of(told, self._story)


class Markdown:
    """Writes Markdown."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def saw(self, entry: Entry, before: Metrics, after: Metrics) -> None:
        self._said += map(quote_markdown, transcript(entry, before.flight))

    def whole(self, told: Told) -> str:
        return markdown_of(told, self._said)


class Csv:
    """Writes a table with a row for each entry."""

    def __init__(self) -> None:
        self._rows: list[Sequence[str | float]] = []
        self._began = 0.0

    def saw(self, entry: Entry, before: Metrics, after: Metrics) -> None:
        self._began = self._began or after.began
        self._rows.append(csv_row(entry, self._began, before.flight, after.flight))

    def whole(self, told: Told) -> str:
        return csv_of(self._rows)


class Json:
    """Writes all projections as JSON."""

    def __init__(self) -> None:
        self._timeline: list[dict[str, Any]] = []
        self._said: list[dict[str, Any]] = []

    def saw(self, entry: Entry, before: Metrics, after: Metrics) -> None:
        self._timeline += map(_plain_span, after.flight.ended)
        self._said += map(encode, transcript(entry, before.flight))

    def whole(self, told: Told) -> str:
        metrics = told.measured.metrics
        whole = {
            "summary": told.summary,
            "metrics": plain_metrics(told.measured),
            "costs": plain_costs(metrics.costs),
            **({"sections": told.sections} if told.sections else {}),
            "timeline": [*self._timeline, *map(_plain_span, metrics.flight.spans.values())],
            "transcript": self._said,
        }
        return json.dumps(encode(whole), ensure_ascii=False, indent=2) + "\n"


def _plain_span(span: Span) -> dict[str, Any]:
    kept: dict[str, Any] = encode(span)
    del kept["joined"], kept["doubted"]
    return {**kept, "waits": span.waits}


WRITERS: Mapping[str, type[Writer]] = {"html": Page, "md": Markdown, "csv": Csv, "json": Json}
FORMATS = tuple(WRITERS)
