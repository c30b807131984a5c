"""A machine as a picture: an SVG that stands alone.

The picture has no script, no address and no identifier; its colours follow the reader's light or dark scheme. Every
text goes through one function that makes it harmless. `layout` says where everything stands. `data-state` and
`data-rows` name the states and the rows of the table, so that a page can light up where a run goes.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from moothall.drawing.layout import (
    CORNER,
    LINE,
    PAD,
    SMALL,
    TEXT,
    Arrow,
    Box,
    Label,
    Point,
    layout,
    small_print,
    text_line,
    text_width,
)
from moothall.drawing.text import inner, printable, row_text, states_to_mark
from moothall.kernel.chart import FINAL, HISTORY, PARALLEL, ROOT, Place
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import History


def picture(
    machine: Machine, *, active: Collection[str] = (), visited: Mapping[str, int] | None = None, styled: bool = True
) -> str:
    """The machine as an SVG that can stand alone or inside a page, with the states where a run stands marked.

    Without a style it is for a page that has one for all of its pictures.
    """
    return _Painter(machine, states_to_mark(machine, active), visited or {}).svg(styled)


_STYLE = """\
.moot text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;font-size:11px}
.moot .name{font-size:13px;font-weight:600}
.moot .event{font-weight:500}
.moot .line{fill:none;stroke-width:1.3;stroke-linecap:round;stroke-linejoin:round}
.moot .box,.moot .ring,.moot .nest{stroke-width:1.2}
.moot .ring{fill:none}
.moot .divider,.moot .default,.moot .anywhere .box{stroke-dasharray:4 4}
.moot .active>.box{stroke-width:2}
.moot .active>.nest,.moot .active>.ring{stroke-width:1.5}
"""
_COLOURS = """\
.moot text{fill:INK}
.moot .soft{fill:SOFT}
.moot .box{fill:BOX;stroke:EDGE}
.moot .nest,.moot .region{fill:NEST}
.moot .nest{stroke:EDGE}
.moot .ring{stroke:EDGE}
.moot .line{stroke:LINE}
.moot .head,.moot .start{fill:LINE}
.moot .divider{stroke:EDGE}
.moot .badge rect{fill:LINE}
.moot .badge text{fill:PAPER}
.moot .active>.box{fill:GLOW;stroke:ACCENT}
.moot .active>.nest,.moot .active>.ring{stroke:ACCENT}
.moot .active>.name{fill:ACCENT}
.moot:root{background:PAPER}
"""
_LIGHT = {
    "INK": "#1e293b",
    "SOFT": "#64748b",
    "BOX": "#ffffff",
    "NEST": "#64748b0d",
    "EDGE": "#b6c2d1",
    "LINE": "#7b8aa0",
    "GLOW": "#eff6ff",
    "ACCENT": "#2563eb",
    "PAPER": "#ffffff",
}
_DARK = {
    "INK": "#e2e8f0",
    "SOFT": "#94a3b8",
    "BOX": "#1b2536",
    "NEST": "#94a3b80f",
    "EDGE": "#475569",
    "LINE": "#7b8aa0",
    "GLOW": "#172a4d",
    "ACCENT": "#7ab2ff",
    "PAPER": "#0f172a",
}


def _style_of(colours: Mapping[str, str]) -> str:
    text = _COLOURS
    for name, colour in colours.items():
        text = text.replace(name, colour)
    return text


class _Painter:
    """Writes one picture: boxes from the outside in, then lines, then texts, so that nothing hides a text."""

    def __init__(self, machine: Machine, active: frozenset[int], visited: Mapping[str, int]) -> None:
        self.machine = machine
        self.chart = machine.chart
        self.active = active
        self.visited = visited
        self.layout = layout(machine)

    def svg(self, styled: bool) -> str:
        width, height = _number(self.layout.width), _number(self.layout.height)
        style = f"{_STYLE}{_style_of(_LIGHT)}@media(prefers-color-scheme:dark){{\n{_style_of(_DARK)}}}\n"
        own = ' style="max-width:100%;height:auto"' if styled else ""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="moot" role="img" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}"{own}>',
                f"<title>{_safe(self.machine.name)}</title>",
                *([f"<style>\n{style}</style>"] if styled else []),
                *(line for box in self.layout.boxes for line in self.box(box)),
                *(self.divider(*ends) for ends in self.layout.dividers),
                *(line for arrow in self.layout.arrows for line in self.arrow(arrow)),
                *(line for arrow in self.layout.arrows for label in arrow.labels for line in self.label(label)),
                *(line for box in self.layout.boxes for line in self.badge(box)),
                "</svg>\n",
            ]
        )

    def box(self, box: Box) -> Iterator[str]:
        if box.kind == "start":
            yield f'<circle class="start" {_centre(box)} r="{_number(box.width / 2)}"/>'
            return
        place = self.chart.places[box.state]
        marks = f"{box.kind} active" if box.state in self.active and box.state != ROOT else box.kind
        yield f'<g class="{marks}" data-state="{_safe(box.name)}"><title>{_safe(self.tooltip(box))}</title>'
        if box.kind == HISTORY:
            yield from self.history(box, place)
        elif inner(place) and box.state != ROOT:
            yield from self.nest(box, place)
        else:
            yield from self.plain(box, place)
        yield "</g>"

    def tooltip(self, box: Box) -> str:
        rows = [row_text(row) for row in self.chart.places[box.state].rows]
        return "\n".join([printable(box.name), *rows])

    def history(self, box: Box, place: Place) -> Iterator[str]:
        mark = "H*" if isinstance(place.node, History) and place.node.deep else "H"
        middle = box.y + box.height / 2 + 4
        yield f'<circle class="box" {_centre(box)} r="{_number(box.width / 2)}"/>'
        yield _text(box.x + box.width / 2, middle, mark, "event", anchor="middle")
        yield _text(box.x + box.width + TEXT - 2, middle, text_line(box.name), "soft")

    def nest(self, box: Box, place: Place) -> Iterator[str]:
        region = self.chart.places[place.parent].kind == PARALLEL
        yield f'<rect class="{"region" if region else "nest"}" {_frame(box)} rx="10"/>'
        yield _text(box.x + PAD, box.y + 21, text_line(box.name), "name")
        for at, line in enumerate(small_print(place)):
            yield _text(box.x + PAD, box.y + 36 + LINE * at, text_line(line), "soft")

    def plain(self, box: Box, place: Place) -> Iterator[str]:
        round_corner = box.height / 2 if box.state == ROOT else 8
        yield f'<rect class="box" {_frame(box)} rx="{_number(round_corner)}"/>'
        if box.kind == FINAL:
            yield f'<rect class="ring" {_frame(box, 3.5)} rx="5"/>'
        middle = box.x + box.width / 2
        look = "soft" if box.state == ROOT else "name"
        yield _text(middle, box.y + 20.5, text_line(box.name), look, anchor="middle")
        for at, line in enumerate(small_print(place)):
            yield _text(middle, box.y + 36 + LINE * at, text_line(line), "soft", anchor="middle")

    def divider(self, top: Point, bottom: Point) -> str:
        return f'<path class="line divider" d="M{_pair(top)}L{_pair(bottom)}"/>'

    def arrow(self, arrow: Arrow) -> Iterator[str]:
        look = "line default" if arrow.source > 0 and not arrow.rows else "line"
        path = _loop_path(arrow.points) if arrow.source == arrow.target else _path(arrow.points)
        rows = f' data-rows="{_safe(json.dumps(arrow.rows))}"' if arrow.rows else ""
        yield f'<path class="{look}"{rows} d="{path}"/>'
        yield f'<path class="head" d="{_head(arrow)}"/>'
        if 0 < arrow.source < arrow.target < self.chart.places[arrow.source].end:
            x, y = arrow.points[0]
            yield f'<circle class="head" cx="{_number(x)}" cy="{_number(y)}" r="3"/>'

    def label(self, label: Label) -> Iterator[str]:
        yield f"<g><title>{_safe(label.row)}</title>"
        for at, (event, rest) in enumerate(label.lines):
            spans = f'<tspan class="event">{_safe(event)}</tspan>' if event else ""
            spans += f'<tspan class="soft">{_safe(rest)}</tspan>' if rest else ""
            yield f'<text x="{_number(label.x)}" y="{_number(label.y + 11 + LINE * at)}">{spans}</text>'
        yield "</g>"

    def badge(self, box: Box) -> Iterator[str]:
        times = self.visited.get(box.name, 0) if box.state > ROOT else 0
        if times:
            text = f"×{times}"
            width = text_width(text, SMALL) + 8
            x, y = box.x - 8, box.y - 8
            yield f'<g class="badge"><rect {_frame(replace(box, x=x, y=y, width=width, height=16))} rx="8"/>'
            yield _text(x + width / 2, y + 12, text, "event", anchor="middle") + "</g>"


def _path(points: Sequence[Point]) -> str:
    """A line through points that leaves and enters every one of them upright, but for level parts with round ends."""
    parts = [f"M{_pair(points[0])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(x - to_x) < 0.5:
            parts.append(f"L{_pair((to_x, to_y))}")
        elif abs(y - to_y) < 0.5:
            side = math.copysign(CORNER, to_x - x)
            parts.append(f"Q{_pair((x, y + CORNER))} {_pair((x + side, y + CORNER))}")
            parts.append(f"L{_pair((to_x - side, y + CORNER))}Q{_pair((to_x, y + CORNER))} {_pair((to_x, y))}")
        else:
            half = (y + to_y) / 2
            parts.append(f"C{_pair((x, half))} {_pair((to_x, half))} {_pair((to_x, to_y))}")
    return "".join(parts)


def _loop_path(points: Sequence[Point]) -> str:
    begin, out, back, end = points
    return f"M{_pair(begin)}C{_pair(out)} {_pair(back)} {_pair(end)}"


def _head(arrow: Arrow) -> str:
    """The tip of an arrow: upright, or to the left where it returns to its own state."""
    x, y = arrow.points[-1]
    if arrow.source == arrow.target:
        return f"M{_pair((x, y))}L{_pair((x + 7.5, y - 4.5))}L{_pair((x + 7.5, y + 3))}Z"
    rise = -8 if arrow.points[-2][1] < y else 8
    return f"M{_pair((x, y))}L{_pair((x - 3.8, y + rise))}L{_pair((x + 3.8, y + rise))}Z"


def _safe(text: str) -> str:
    """Text that is only text in a document."""
    return html.escape("\n".join(printable(line) for line in text.split("\n")))


def _text(x: float, y: float, text: str, look: str, *, anchor: str = "start") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{look}" x="{_number(x)}" y="{_number(y)}"{where}>{_safe(text)}</text>'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _pair(point: Point) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _centre(box: Box) -> str:
    return f'cx="{_number(box.x + box.width / 2)}" cy="{_number(box.y + box.height / 2)}"'


def _frame(box: Box, inset: float = 0.0) -> str:
    x, y = _number(box.x + inset), _number(box.y + inset)
    return f'x="{x}" y="{y}" width="{_number(box.width - 2 * inset)}" height="{_number(box.height - 2 * inset)}"'
