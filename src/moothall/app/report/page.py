"""A run's page: one HTML file with its picture, its figures, what was said and its journal. No network, no script.

Whatever stands in a journal may have been written by anybody: every text goes through `harmless`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import groupby
from typing import Any, assert_never

from moothall.app.report.amounts import Account, lasting
from moothall.app.report.charts import Bar, Lanes, bars, harmless
from moothall.app.report.figures import BILL, NOBODY, STATE, WAY, bill_rows, cost_notes, state_rows, tokens_of, way_rows
from moothall.app.report.measures import Measured
from moothall.app.report.picture import secret_in
from moothall.app.report.projections.transcript import Said
from moothall.app.report.section import Chart, Listed, Part, Section, Table, Talk, Tree
from moothall.app.runs.view import Summary
from moothall.drawing.svg import picture
from moothall.kernel.machine import Machine

Entry = Mapping[str, Any]
LONG = 600
SHORT = 60
WHOLE = 20_000
"""How much of a text a page has at most; `moot export` has all of it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A run as its report tells it, and its machine as it is today, where that can be found."""

    summary: Summary
    measured: Measured
    machine: Machine | None = None
    is_changed: bool = False
    sections: tuple[Section, ...] = ()
    """What its kind adds."""


@dataclass(slots=True)
class Story:
    """What a page has of each entry, as it is read: rows of the journal, what was said, lanes of time."""

    lanes: Lanes = field(default_factory=Lanes)
    rows: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def page_of(told: Told, story: Story) -> str:
    """The whole page."""
    style = files("moothall.app.report").joinpath("page.css").read_text()
    title = f"{told.summary.run}: {told.summary.status}"
    body = [
        _heading(told),
        _facts(told),
        *map(_section, told.sections),
        _picture_section(told),
        _states(told.measured),
        _timeline(told.measured, story.lanes),
        _costs(told.measured),
        _transitions(told.measured),
        _conversation(story.said),
        _journal(story.rows),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{harmless(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body>\n</html>\n"
    )


def _heading(told: Told) -> str:
    summary = told.summary
    why = f"<p>{harmless(summary.reason)}</p>" if summary.reason else ""
    notes = "".join(f'<p class="dim">{harmless(note)}</p>' for note in told.measured.notes)
    status, where = harmless(summary.status), " + ".join(summary.states) or "?"
    return (
        f'<h1>{harmless(summary.run)} <span class="badge {status}">{status}</span></h1>\n'
        f'<p class="dim">machine {harmless(summary.machine)}, began {harmless(summary.began)}, stands in '
        f"<b>{harmless(where)}</b></p>{why}{notes}"
    )


def _facts(told: Told) -> str:
    summary, metrics, until = told.summary, told.measured.metrics, told.measured.until
    seconds = metrics.seconds(until)
    unpriced = tuple(model for model, bill in metrics.costs.by("model").items() if bill.unpriced)
    spent = Account(summary.states, summary.seq, summary.spent, summary.limits, seconds, unpriced).amounts()
    facts = [("entries", str(metrics.entries)), ("seconds", spent.pop("seconds", f"{seconds:.1f}"))]
    spells = metrics.spent_on(until)
    facts += [("working", lasting(spells["working"])), ("waiting for people", lasting(spells["waiting"]))]
    facts += [(f"{resource} spent", amount) for resource, amount in spent.items()]
    shown = "".join(f"<li><b>{harmless(value)}</b>{harmless(name)}</li>" for name, value in facts)
    return f'<ul class="facts">{shown}</ul>'


def _picture_section(told: Told) -> str:
    if told.machine is None:
        return '<p class="dim">The machine of this run can no longer be found, so there is no picture of it.</p>'
    if text := secret_in(told.machine):
        return f'<p class="dim">The machine has a secret in its table, in {harmless(text)}: it is not drawn.</p>'
    visits = {state: stay.visits for state, stay in told.measured.metrics.stays.items()}
    changed = '<p class="dim">The machine was changed since; this is what it is today.</p>' if told.is_changed else ""
    drawn = picture(told.machine, active=told.summary.states, visited=visits)
    return f'<h2>The machine</h2>\n{changed}<div class="picture">{drawn}</div>'


def _section(section: Section) -> str:
    parts = []
    for is_chart, group in groupby(section.parts, lambda part: isinstance(part, Chart)):
        shown = "\n".join(map(_part, group))
        parts.append(f'<div class="charts">{shown}</div>' if is_chart else shown)
    return f"<h2>{harmless(section.title)}</h2>\n" + "\n".join(parts)


def _part(part: Part) -> str:
    match part:
        case str():
            return f"<p>{_text_html(part)}</p>"
        case Listed(title=title, items=items):
            return f"<p>{harmless(title)}:</p>\n<ul>{''.join(f'<li>{_text_html(item)}</li>' for item in items)}</ul>"
        case Table(head=head, rows=rows):
            return _table(head, rows)
        case Talk(lines=lines):
            said = (f"<dt>{harmless(who)}</dt><dd>{_text_html(text)}</dd>" for who, text in lines)
            return f'<dl class="talk">\n{"".join(said)}\n</dl>'
        case Tree(text=text):
            return f"<pre>{harmless(text)}</pre>"
        case Chart(title=title, bars=measures, most=most):
            shown = [Bar(measure.name, measure.value, measure.told, measure.other) for measure in measures]
            return bars(title, shown, most)
        case _:
            assert_never(part)


def _states(measured: Measured) -> str:
    states, hierarchy = measured.states(), measured.metrics.hierarchy
    atomic = [figures for figures in states if figures.state and hierarchy.is_atomic(figures.state)]
    time = [Bar(figures.state, figures.total, lasting(figures.total), figures.waited) for figures in atomic]
    tokens = [
        Bar(figures.state or NOBODY, figures.bill.tokens, tokens_of(figures.bill))
        for figures in states
        if figures.bill.tokens
    ]
    charts = bars("Time per state", time) + bars("Tokens per state", tokens)
    key = (
        '<p class="dim">In the other colour: people were waited for.</p>'
        if any(figures.waited for figures in atomic)
        else ""
    )
    return f'<h2>The states</h2>\n{_table(STATE, state_rows(states))}\n<div class="charts">{charts}</div>{key}'


def _timeline(measured: Measured, lanes: Lanes) -> str:
    looks = dict.fromkeys(look for look, _ in lanes.lanes)
    legend = " ".join(f'<span class="key {look}">{LOOKS[look]}</span>' for look in looks)
    chart = lanes.svg(measured.metrics.began, measured.metrics.seconds(measured.until))
    return f'<h2>The time</h2>\n{chart}<p class="dim">{legend}</p>' if chart else ""


LOOKS = {"work": "agents and other work", "tool": "tools", "child": "children", "wait": "people"}


def _costs(measured: Measured) -> str:
    costs = measured.metrics.costs
    if not costs.bills:
        return ""
    parts = (("model", costs.by("model")), ("agent", costs.by("agent")))
    tables = "".join(_table((part, *BILL), bill_rows(bills)) for part, bills in parts)
    notes = "".join(f'<p class="dim">{harmless(note)}</p>' for note in cost_notes(costs))
    return f'<h2>The costs</h2>\n<div class="charts">{tables}</div>{notes}'


def _transitions(measured: Measured) -> str:
    rows = way_rows(measured.metrics)
    return f"<h2>The transitions</h2>\n{_table(WAY, rows)}" if rows else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first, *others = head
    top = f"<th>{first}</th>" + "".join(f'<th class="number">{name}</th>' for name in others)
    lines = "\n".join(f"<tr><td>{harmless(row[0])}</td>{''.join(map(_figure, row[1:]))}</tr>" for row in rows)
    return f'<table class="figures">\n<thead><tr>{top}</tr></thead>\n<tbody>\n{lines}\n</tbody>\n</table>'


def _figure(text: str) -> str:
    return f'<td class="number">{harmless(text)}</td>'


def _conversation(said: Sequence[str]) -> str:
    lines = "\n".join(said)
    return f'<h2>What was said</h2>\n<dl class="talk">\n{lines}\n</dl>' if said else ""


def speech_html(said: Said) -> str:
    """One thing that was said, as the page shows it."""
    late = ", too late" if said.late else ""
    who = f"{harmless(said.who)} → {harmless(said.whom)}"
    return f'<dt>{who} <span class="dim">{harmless(said.kind)}{late}</span></dt><dd>{_text_html(said.text)}</dd>'


def _journal(rows: Sequence[str]) -> str:
    lines = "\n".join(rows)
    return (
        "<h2>The journal</h2>\n<table>\n<thead><tr><th>entry</th><th>after</th><th>from → to</th><th>event</th>"
        f"<th>what was said</th><th>then wanted</th></tr></thead>\n<tbody>\n{lines}\n</tbody>\n</table>"
    )


def row(entry: Entry, began: float) -> str:
    """One entry, as the page shows it."""
    event = entry["event"]
    before, after = " + ".join(entry["from"]), " + ".join(entry["to"])
    way = after if before in ("", after) else f"{before} → {after}"
    who = event.get("agent") or event.get("tool") or event.get("by") or ""
    wanted = ", ".join(_effect_html(effect) for effect in entry["effects"])
    note = entry.get("ignored") or entry.get("reason") or ""
    return (
        f"<tr{' class=ignored' if 'ignored' in entry else ''}>"
        f'<td class="number">{entry["seq"]}</td><td class="number">{entry["at"] - began:.2f} s</td>'
        f'<td class="way">{harmless(way)}</td><td><code>{harmless(event["name"])}</code> {harmless(str(who))}</td>'
        f'<td class="said">{_text_html(said_in(event))}{_dim(note)}</td><td>{harmless(wanted)}</td></tr>'
    )


def _dim(note: str) -> str:
    return f' <span class="dim">{harmless(note)}</span>' if note else ""


def said_in(event: Mapping[str, Any]) -> str:
    """What an event says, in its own words where it has some."""
    said = event.get("text") or ""
    if not said and event.get("value") is not None:
        said = json.dumps(event["value"], ensure_ascii=False)
    return str(said)


def _text_html(said: str) -> str:
    """A text, its end behind a click where it is long, and left out where it is huge."""
    if len(said) <= LONG:
        return harmless(said)
    more = len(said) - WHOLE
    cut = f"… and {more} more characters; `moot export` has them" if more > 0 else ""
    whole = f"<pre>{harmless(said[:WHOLE])}{cut}</pre>"
    return f"<details><summary>{harmless(said[:LONG])}…</summary>{whole}</details>"


def _effect_html(effect: Mapping[str, Any]) -> str:
    values = effect["effect"]
    who = str(values.get("agent") or values.get("tool") or values.get("prompt") or "")
    denied = f" (denied: no {effect['denied']} left)" if effect.get("denied") else ""
    return f"{effect['kind']} {who if len(who) <= SHORT else who[:SHORT] + '…'}{denied}"
