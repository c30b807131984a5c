"""A run's page: one HTML file with its picture, its figures and its journal. No network, no script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from moothall.app.spending import Account
from moothall.kernel.machine import Machine
from moothall.kernel.picture import picture

if TYPE_CHECKING:
    from moothall.app.looking import Summary

Entry = Mapping[str, Any]
LONG = 600
SHORT = 60


def page_of(summary: Summary, entries: Sequence[Entry], machine: Machine | None) -> str:
    """The whole page."""
    style = files("moothall.app").joinpath("report.css").read_text()
    title = f"{summary.run}: {summary.status}"
    body = [_heading(summary), _facts(summary, entries), _drawn(summary, entries, machine), _journal(entries)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _heading(summary: Summary) -> str:
    why = f"<p>{escape(summary.reason)}</p>" if summary.reason else ""
    where = " + ".join(summary.states)
    return (
        f'<h1>{escape(summary.run)} <span class="badge {escape(summary.status)}">{escape(summary.status)}</span></h1>\n'
        f'<p class="dim">machine {escape(summary.machine)}, began {escape(summary.began)}, stands in '
        f"<b>{escape(where)}</b></p>{why}"
    )


def _facts(summary: Summary, entries: Sequence[Entry]) -> str:
    calls = Counter(
        entry["event"].get("agent") or entry["event"].get("tool")
        for entry in entries
        if entry["event"]["name"] in ("replied", "returned")
    )
    seconds = entries[-1]["at"] - entries[0]["at"] if entries else 0
    spent = Account(summary.states, summary.seq, summary.spent, summary.limits, seconds).amounts()
    facts = [("entries", str(len(entries))), ("seconds", spent.pop("seconds", f"{seconds:.1f}"))]
    facts += [(f"calls of {name}", str(count)) for name, count in calls.items()]
    facts += [(f"{resource} spent", amount) for resource, amount in spent.items()]
    return (
        '<ul class="facts">'
        + "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for name, value in facts)
        + "</ul>"
    )


def _drawn(summary: Summary, entries: Iterable[Entry], machine: Machine | None) -> str:
    if machine is None:
        return '<p class="dim">The machine of this run can no longer be found, so there is no picture of it.</p>'
    visits = Counter(state for entry in entries if entry["taken"] or entry["cause"] == "start" for state in entry["to"])
    return f'<h2>The machine</h2>\n<div class="picture">{picture(machine, active=summary.states, visited=visits)}</div>'


def _journal(entries: Sequence[Entry]) -> str:
    began = entries[0]["at"] if entries else 0
    rows = "\n".join(_row(entry, began) for entry in entries)
    return (
        "<h2>The journal</h2>\n<table>\n<thead><tr><th>entry</th><th>after</th><th>from → to</th><th>event</th>"
        f"<th>what was said</th><th>then wanted</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    )


def _row(entry: Entry, began: float) -> str:
    event = entry["event"]
    before, after = " + ".join(entry["from"]), " + ".join(entry["to"])
    way = after if before in ("", after) else f"{before} → {after}"
    who = event.get("agent") or event.get("tool") or event.get("by") or ""
    wanted = ", ".join(_wanted(one) for one in entry["effects"])
    note = entry.get("ignored") or entry.get("reason") or ""
    return (
        f"<tr{' class=ignored' if 'ignored' in entry else ''}>"
        f'<td class="number">{entry["seq"]}</td><td class="number">{entry["at"] - began:.2f} s</td>'
        f'<td class="way">{escape(way)}</td><td><code>{escape(event["name"])}</code> {escape(who)}</td>'
        f'<td class="said">{_said(event)}{_dim(note)}</td><td>{escape(wanted)}</td></tr>'
    )


def _dim(note: str) -> str:
    return f' <span class="dim">{escape(note)}</span>' if note else ""


def _said(event: Mapping[str, Any]) -> str:
    said = event.get("text") or ""
    if not said and event.get("value") is not None:
        said = json.dumps(event["value"], ensure_ascii=False)
    if len(said) <= LONG:
        return escape(said)
    return f"<details><summary>{escape(said[:LONG])}…</summary><pre>{escape(said)}</pre></details>"


def _wanted(effect: Mapping[str, Any]) -> str:
    values = effect["effect"]
    who = values.get("agent") or values.get("tool") or values.get("prompt") or ""
    denied = f" (denied: no {effect['denied']} left)" if effect.get("denied") else ""
    return f"{effect['kind']} {who if len(who) <= SHORT else who[:SHORT] + '…'}{denied}"
