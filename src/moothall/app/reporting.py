"""Reports of a run: a page, Markdown, CSV or JSON. The journal is read twice, for the sums and for what is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from moothall.app.charts import Lanes
from moothall.app.looking import summary
from moothall.app.measuring import machine_of, measure, pieces, plain_costs, plain_metrics
from moothall.app.projections.flight import Flight, Span
from moothall.app.projections.nesting import Entry
from moothall.app.projections.transcript import transcript
from moothall.app.report import Story, Told, page_of, row, spoken
from moothall.app.tables import csv_of, csv_row, markdown_of, quoted
from moothall.kernel.codec import encode
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store


async def report(store: Store, run: RunId, format: str) -> str:
    """A run, told in one of the formats."""
    stored, measured = await store.load(run), await measure(store, run)
    machine = await machine_of(store, stored.record)
    is_changed = machine is not None and machine.digest != stored.record.digest
    return await _WRITERS[format](store, Told(await summary(store, stored), measured, machine, is_changed))


async def _walk(store: Store, told: Told) -> AsyncIterator[tuple[Entry, Flight, Flight]]:
    """The entries that were measured, each with what was under way before and after it."""
    metrics, flight = told.measured.metrics, Flight()
    async for piece in pieces(store, told.measured.run):
        for entry in piece[: max(0, metrics.entries - piece[0]["seq"])]:
            after = flight.after(entry, metrics.nesting.moved(entry).left)
            yield entry, flight, after
            flight = after


async def _html(store: Store, told: Told) -> str:
    metrics = told.measured.metrics
    story = Story(Lanes(metrics.began, metrics.began + metrics.seconds(told.measured.until)))
    async for entry, before, after in _walk(store, told):
        story.rows.append(row(entry, metrics.began))
        story.said += map(spoken, transcript(entry, before))
        story.lanes.add(after.ended)
    story.lanes.add(metrics.flight.spans.values())
    return page_of(told, story)


async def _markdown(store: Store, told: Told) -> str:
    said: list[str] = []
    async for entry, before, _ in _walk(store, told):
        said += map(quoted, transcript(entry, before))
    return markdown_of(told, said)


async def _csv(store: Store, told: Told) -> str:
    began = told.measured.metrics.began
    return csv_of([csv_row(entry, began, before, after) async for entry, before, after in _walk(store, told)])


async def _json(store: Store, told: Told) -> str:
    timeline: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    async for entry, before, after in _walk(store, told):
        timeline += map(_plain_span, after.ended)
        said += map(encode, transcript(entry, before))
    metrics = told.measured.metrics
    timeline += map(_plain_span, metrics.flight.spans.values())
    whole = {
        "summary": told.summary,
        "metrics": plain_metrics(told.measured),
        "costs": plain_costs(metrics.costs),
        "timeline": timeline,
        "transcript": said,
    }
    return json.dumps(encode(whole), ensure_ascii=False, indent=2) + "\n"


def _plain_span(span: Span) -> dict[str, Any]:
    kept: dict[str, Any] = encode(span)
    del kept["joined"], kept["doubted"]
    return {**kept, "waits": span.waits}


_WRITERS: Mapping[str, Callable[[Store, Told], Awaitable[str]]] = {
    "html": _html,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
}
FORMATS = tuple(_WRITERS)
