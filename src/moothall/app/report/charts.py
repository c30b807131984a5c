"""Charts as SVG inside a page: bars, and lanes of time. No script, no address; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from moothall.agents.ask import CallTool
from moothall.app.report.amounts import lasting
from moothall.app.report.projections.flight import Span
from moothall.drawing.text import printable
from moothall.runtime.journal import FAMILY, TIMERS, TellParent

WIDTH = 1000
NAMES = 190
ROW = 26
MOST = 24
GRAIN = 400
"""How many pieces of time a lane can tell apart."""
TICKS = 5


def harmless(text: str) -> str:
    """Text that is only text in a page, line by line."""
    if text.isprintable():
        return escape(text)
    return escape("\n".join(printable(line) for line in text.split("\n")))


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its length, what stands behind it, and how much of it is of the other colour."""

    name: str
    value: float
    told: str
    other: float = 0.0


def bars(title: str, given: Sequence[Bar], most: float = 0.0) -> str:
    """Bars below each other; the shortest of many are left out.

    One of the value `most`, or where that is 0 the longest, is as long as there is room.
    """
    if not given or not (most or any(bar.value for bar in given)):
        return ""
    shown = sorted(given, key=lambda bar: -bar.value)[:MOST] if len(given) > MOST else given
    most, room = max(most, *(bar.value for bar in shown)), WIDTH / 2 - NAMES - 90
    rows = [_bar(bar, ROW * number, room / most) for number, bar in enumerate(shown)]
    note = f"{len(given) - len(shown)} more" if len(shown) < len(given) else ""
    return _chart(title, WIDTH / 2, ROW * len(shown), rows, note)


def _bar(bar: Bar, y: float, scale: float) -> str:
    length, other = bar.value * scale, min(bar.other, bar.value) * scale
    parts = [_name(bar.name, y, f"{bar.name}: {bar.told}")]
    parts.append(f'<rect class="work" x="{NAMES}" y="{y + 5:g}" width="{max(length, 1):.1f}" height="{ROW - 10}"/>')
    if other:
        x = NAMES + length - other
        parts.append(f'<rect class="wait" x="{x:.1f}" y="{y + 5:g}" width="{other:.1f}" height="{ROW - 10}"/>')
    parts.append(f'<text class="soft" x="{NAMES + length + 8:.1f}" y="{y + 17:g}">{harmless(bar.told)}</text>')
    return "".join(parts)


def _name(name: str, y: float, told: str) -> str:
    short = name if len(name) <= 26 else name[:25] + "…"
    text = f'<text x="{NAMES - 10}" y="{y + 17:g}" text-anchor="end">{harmless(short)}</text>'
    return f"<g><title>{harmless(told)}</title>{text}</g>"


@dataclass(slots=True)
class Lanes:
    """Who was at work when: a lane for each, with what lies close together drawn as one."""

    lanes: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    left_out: int = 0

    def add(self, spans: Iterable[Span], until: float) -> None:
        """Spans; those that have not ended reach until then."""
        for span in spans:
            if span.kind in TIMERS or span.kind == TellParent.kind or span.denied:
                continue
            lane = (look_of(span), span.who)
            if lane not in self.lanes and len(self.lanes) >= MOST:
                self.left_out += 1
                continue
            self.lanes.setdefault(lane, []).append((span.since, until if span.until is None else span.until))

    def svg(self, began: float, seconds: float) -> str:
        """The chart of so many seconds, with a scale below it."""
        if not self.lanes or seconds <= 0:
            return ""
        scale = (WIDTH - NAMES - 40) / seconds
        foot = ROW * len(self.lanes)
        rows = [_tick(seconds * tick / TICKS, foot, scale) for tick in range(TICKS + 1)]
        for number, ((look, who), lane) in enumerate(self.lanes.items()):
            rows.append(_name(who, ROW * number, who))
            seen = [(max(start, began), end) for start, end in lane if end > began]
            parts = _close_together(seen, seconds / GRAIN)
            rows += [_piece(look, start - began, end - began, ROW * number, scale) for start, end in parts]
        note = f"{self.left_out} effects of others are not drawn" if self.left_out else ""
        return _chart("Who was at work, and who was waited for", WIDTH, foot + 22, rows, note)


def _close_together(lane: Iterable[tuple[float, float]], grain: float) -> list[tuple[float, float]]:
    """What lies closer together than can be drawn, as one."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(lane):
        if found and start - found[-1][1] <= grain:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _piece(look: str, start: float, end: float, y: float, scale: float) -> str:
    x, width = NAMES + start * scale, max((end - start) * scale, 1.5)
    where = f'x="{x:.1f}" y="{y + 5:g}" width="{width:.1f}" height="{ROW - 10}"'
    return f'<rect class="{look}" {where}><title>{lasting(start)} to {lasting(end)}</title></rect>'


def _tick(seconds: float, y: float, scale: float) -> str:
    x = NAMES + seconds * scale
    line = f'<path class="grid" d="M{x:.1f},0V{y}"/>'
    return f'{line}<text class="soft" x="{x:.1f}" y="{y + 16}" text-anchor="middle">{lasting(seconds)}</text>'


def look_of(span: Span) -> str:
    """How an effect is drawn: people are waited for; tools, children and agents work."""
    if span.waits:
        return "wait"
    if span.kind in FAMILY:
        return "child"
    return "tool" if span.kind == CallTool.kind else "work"


def _chart(title: str, width: float, height: float, rows: Sequence[str], note: str) -> str:
    label = f'role="img" aria-label="{harmless(title)}"'
    svg = f'<svg class="chart" {label} viewBox="0 0 {width:g} {height:g}">{"".join(rows)}</svg>'
    more = f'<p class="dim">{harmless(note)}</p>' if note else ""
    return f"<figure><figcaption>{harmless(title)}</figcaption>{svg}{more}</figure>"
