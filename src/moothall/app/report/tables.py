"""A run's report as Markdown and as CSV. Whatever stands in a journal may have been written by anybody.

Markdown: no text becomes markup, a link or a line of its own. CSV: one row per entry; no cell is taken for a formula.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any, assert_never

from moothall.app.report.amounts import date_of
from moothall.app.report.figures import (
    BILL,
    STATE,
    WAY,
    bill_rows,
    bottlenecks,
    cost_notes,
    spent_of,
    state_rows,
    time_of,
    way_rows,
)
from moothall.app.report.page import Told, said_in
from moothall.app.report.projections.flight import Flight
from moothall.app.report.projections.transcript import Said
from moothall.app.report.section import Chart, Listed, Section, Table, Talk, Tree
from moothall.drawing.text import printable

Entry = Mapping[str, Any]
CELL = 32_000
"""How long a cell is at most: spreadsheets take no more than 32,767 characters."""
QUOTED = 2_000
"""How much of what was said Markdown has at most."""
COLUMNS = (
    "entry",
    "time",
    "seconds",
    "from",
    "to",
    "event",
    "who",
    "state",
    "calls",
    "tokens",
    "usd",
    "said",
    "wanted",
    "status",
    "ignored",
)
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20|%]")
_MARKUP = re.compile(r"([\\`*_{}\[\]#|~!$^])")
_LINK = re.compile(r"(?i):(?=//)|(?<=www)\.|@")


def csv_of(rows: Iterable[Sequence[str | float]]) -> str:
    """Rows as CSV, below the names of their columns."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return out.getvalue()


def csv_row(entry: Entry, began: float, before: Flight, after: Flight) -> list[str | float]:
    """One entry as a row: what it is, what it cost, what was said."""
    event, span = entry["event"], before.of(entry["cause"])
    bills = [(charge.calls, charge.usage) for charge in after.charges]
    who = event.get("agent") or event.get("tool") or event.get("by") or (span.who if span is not None else "")
    return [
        entry["seq"],
        _time(entry["at"]),
        round(entry["at"] - began, 3),
        cell(" + ".join(entry["from"])),
        cell(" + ".join(entry["to"])),
        cell(event["name"]),
        cell(str(who)),
        cell(span.state if span is not None else ""),
        sum(calls for calls, _ in bills) or "",
        _sum_usage("tokens", [usage for _, usage in bills]),
        _sum_usage("usd", [usage for _, usage in bills]),
        cell(said_in(event) or str(event.get("reason") or "")),
        cell(", ".join(effect["kind"] for effect in entry["effects"])),
        entry.get("status", ""),
        cell(entry.get("ignored", "")),
    ]


def _time(at: float) -> str | float:
    """A moment as a date; as a number where a clock was so wrong that there is none."""
    date = date_of(at)
    return at if date is None else date.isoformat(timespec="milliseconds")


def _sum_usage(resource: str, usages: Sequence[Mapping[str, float]]) -> str | float:
    known = [usage[resource] for usage in usages if resource in usage]
    return round(sum(known), 9) if known else ""


def cell(text: str) -> str:
    """A text that a spreadsheet shows as it is, on one line."""
    line = printable(text[:CELL]) + ("…" if len(text) > CELL else "")
    return f"'{line}" if _FORMULA.match(line) else line


def markdown_of(told: Told, said: Sequence[str]) -> str:
    """The whole report as Markdown."""
    summary, measured, costs = told.summary, told.measured, told.measured.metrics.costs
    where = " + ".join(summary.states) or "?"
    stands_out = [f"{name}: {plain(what)}" for name, what in bottlenecks(measured).items()]
    parts = [
        f"# {plain(summary.run)}: {plain(summary.status)}",
        f"Machine {plain(summary.machine)}, began {plain(summary.began)}, stands in **{plain(where)}**.",
        f"Because: {plain(summary.reason)}" if summary.reason else "",
        f"{time_of(measured)}.",
        *(f"Note: {plain(note)}" for note in measured.notes),
        *(markdown_section(section) for section in told.sections),
        "## States",
        _table(STATE, state_rows(measured.states())),
        "; ".join(stands_out),
        "## Costs",
        f"In all: {spent_of(costs.total()) or 'nothing'}.",
        *map(plain, cost_notes(costs)),
        _table(("model", *BILL), bill_rows(costs.by("model"))),
        _table(("agent", *BILL), bill_rows(costs.by("agent"))),
        "## Transitions",
        _table(WAY, way_rows(measured.metrics)),
        "## What was said",
        *said,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_section(section: Section) -> str:
    """A part of a report that a kind adds, as Markdown; the bars of charts are left out."""
    parts = [f"## {plain(section.title)}"]
    for part in section.parts:
        match part:
            case str():
                parts.append("\n\n".join(plain(line) for line in part.splitlines() if line.strip()))
            case Listed(title=title, items=items):
                parts.append("\n".join([f"{plain(title)}:", "", *(f"- {plain(item)}" for item in items)]))
            case Table(head=head, rows=rows):
                parts.append(_table(head, rows))
            case Talk(lines=lines):
                parts += [f"**{plain(who)}**: {plain(text)}" for who, text in lines]
            case Tree(text=text):
                parts.append("\n".join(f"    {printable(line)}" for line in text.splitlines()))
            case Chart():
                pass
            case _:
                assert_never(part)
    return "\n\n".join(filter(None, parts))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    texts = [f"| {' | '.join(line)} |" for line in lines]
    texts += [f"| {' | '.join(map(plain, row))} |" for row in rows]
    return "\n".join(texts)


def quote_markdown(said: Said) -> str:
    """One thing that was said, as Markdown."""
    late = ", too late" if said.late else ""
    text = plain(said.text[:QUOTED]) + ("…" if len(said.text) > QUOTED else "")
    return f"**{plain(said.who)} → {plain(said.whom)}** ({plain(said.kind)}{late}): {text}"


def plain(text: str) -> str:
    """Text that is only text in Markdown, on one line."""
    marked = _MARKUP.sub(r"\\\1", escape(printable(text), quote=False))
    return _LINK.sub(lambda found: f"\\{found[0]}", marked)
