"""Where everything stands in the picture of a machine, as a value.

The layout is layered. Inside each nested state the states are ranked by the longest path from its start; an arrow
against the ranks runs upwards. Labels and the bends of long arrows are cells of their own between the ranks, so
nothing can overlap: cells of one rank are kept apart, and so are ranks. An arrow that crosses the border of a nested
state does so at a port, which is a cell of the layout inside and a fixed point of the box outside. Arrows with the
same target share their bends: many rows to one state are one trunk, with a label at each source.

    ranks        a walk from the start in document order finds the arrows that close a cycle; the rest give the ranks
    order        means of the neighbours' places and exchanges of neighbours; the order with the fewest crossings wins
    columns      Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment", with ports; then polished
    ports        where on the side of its box an arrow begins or ends, so that it runs upright where it can
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from textwrap import wrap

from moothall.drawing.text import ANYWHERE, inner, printable, row_text, shorten, state_notes
from moothall.kernel.chart import HISTORY, PARALLEL, ROOT, Chart, Place, Row, trigger
from moothall.kernel.machine import Machine

Point = tuple[float, float]

NAME, SMALL, LINE = 13.0, 11.0, 15.0
SHORT_LINE, LONG_LINE = 24, 34
PAD, MARGIN, HEADER, TEXT = 16.0, 12.0, 32.0, 8.0
DOT, CIRCLE, LOOP, CORNER, PORT = 6.0, 12.0, 26.0, 8.0, 12.0
NARROWEST = 50.0
BETWEEN_BOXES, BETWEEN_LINES, BETWEEN_ROWS = 32.0, 16.0, 3.0
LEAST_GAP, WIDEST_GAP, TIP, TRACK = 8.0, 40.0, 9.0, 12.0
SWEEPS, PATIENCE, POLISHES, BEND = 24, 6, 6, 20.0


@dataclass(frozen=True, slots=True)
class Box:
    """Where a state stands, by its number; below zero it is the start inside ~number, zero is `anywhere`."""

    state: int
    name: str
    kind: str
    parent: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """The text of a row at its arrow: lines of an event and of what follows it, and the whole row."""

    lines: tuple[tuple[str, str], ...]
    row: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line from one state to another, through these points, with the labels of its rows."""

    source: int
    target: int
    points: tuple[Point, ...]
    labels: tuple[Label, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands: outer boxes before the inner ones."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    dividers: tuple[tuple[Point, Point], ...]


def layout(machine: Machine) -> Layout:
    """Where the states, arrows and labels of a machine stand on paper."""
    return _Sketch(machine.chart).finished()


@dataclass(frozen=True, slots=True)
class _Link:
    """One arrow to be drawn, for all rows between its ends. A source below zero is the start inside a state."""

    id: int
    source: int
    target: int
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of an arrow inside one state, between two nodes of it; None is the border of that state."""

    link: _Link
    tail: int | None
    head: int | None
    down: bool = True
    first: bool = False
    turns: bool = False


@dataclass(slots=True)
class _Level:
    """The inside of one state before it has a geometry: nodes, the arcs between them, their layers."""

    place: Place
    nodes: list[int]
    arcs: list[tuple[int, int]] = field(default_factory=list)
    loops: dict[int, _Link] = field(default_factory=dict)
    layer: dict[int, int] = field(default_factory=dict)
    pieces: list[_Piece] = field(default_factory=list)


class _Sketch:
    """Takes a machine apart into levels, lays them out from the inside, and puts them together."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.levels = {
            place.index: _Level(place, _nodes(place)) for place in chart.places if inner(place) or place.index == ROOT
        }
        self.routes: list[tuple[_Link, list[tuple[int, _Piece]]]] = []
        links = _links(chart)
        for link in links:
            self.lift(link)
        for level in self.levels.values():
            still = level.place.kind == PARALLEL
            level.layer = dict.fromkeys(level.nodes, 0) if still else _layers(level.nodes, level.arcs)
        for link in links:
            if link.source != link.target:
                self.routes.append((link, self.route(link)))
        self.sheets: dict[int, _Sheet] = {}
        for index in sorted(self.levels, reverse=True):
            self.sheets[index] = _Sheet(self.levels[index], chart, self.sheets)

    def chain(self, node: int) -> list[tuple[int, int]]:
        """The states around a node, innermost first, each with the node of it that has this one inside."""
        if node == ROOT:
            return [(ROOT, ROOT)]
        found = [(~node, node)] if node < 0 else []
        node = ~node if node < 0 else node
        while node != ROOT:
            found.append((self.chart.places[node].parent, node))
            node = self.chart.places[node].parent
        return found

    def meeting(self, link: _Link) -> tuple[int, int | None, int | None]:
        """The state inside which an arrow runs from one node to another, and these nodes."""
        source, target = link.source, link.target
        heads, tails = dict(self.chain(target)), dict(self.chain(source))
        if source > 0 and source in heads:
            return source, None, heads[source]
        if target in tails:
            return target, tails[target], None
        level = next(level for level in tails if level in heads)
        return level, tails[level], heads[level]

    def lift(self, link: _Link) -> None:
        """Note what an arrow means for the order of the nodes where its ends meet."""
        if link.source == link.target:
            self.levels[self.chart.places[link.source].parent].loops[link.source] = link
            return
        level, tail, head = self.meeting(link)
        if tail is not None and head is not None:
            self.levels[level].arcs.append((tail, head))

    def route(self, link: _Link) -> list[tuple[int, _Piece]]:
        """The pieces of an arrow, from its source to its target."""
        level, tail, head = self.meeting(link)
        layer = self.levels[level].layer
        turns = tail is not None and head is not None and self.chart.places[level].kind == PARALLEL
        down = tail is None or head is None or turns or layer[tail] < layer[head]
        found: list[tuple[int, _Piece]] = []
        for around, node in self.chain(link.source) if tail is not None else ():
            if around == level:
                break
            found.append((around, _Piece(link, node, None, down, not found)))
        found.append((level, _Piece(link, tail, head, down, not found, turns)))
        below = []
        for around, node in self.chain(link.target) if head is not None else ():
            if around == level:
                break
            below.append((around, _Piece(link, None, node, down and not turns)))
        found += reversed(below)
        for around, piece in found:
            self.levels[around].pieces.append(piece)
        return found

    def finished(self) -> Layout:
        origins: dict[int, Point] = {ROOT: (MARGIN, MARGIN)}
        boxes: list[Box] = []
        dividers: list[tuple[Point, Point]] = []
        loops: list[Arrow] = []
        for index in sorted(self.sheets):
            sheet, (x, y) = self.sheets[index], origins[index]
            for node in sheet.nodes:
                box = sheet.box(node, x, y)
                boxes.append(box)
                if node > ROOT:
                    origins[node] = (box.x, box.y)
            loops += [sheet.loop(link, x, y) for link in sheet.level.loops.values()]
            dividers += [((x + at, y + top), (x + at, y + sheet.height)) for at, top in sheet.dividers()]
        arrows = [self.arrow(link, route, origins) for link, route in self.routes]
        root = self.sheets[ROOT]
        return Layout(
            root.width + 2 * MARGIN, root.height + 2 * MARGIN, tuple(boxes), tuple(arrows + loops), tuple(dividers)
        )

    def arrow(self, link: _Link, route: list[tuple[int, _Piece]], origins: Mapping[int, Point]) -> Arrow:
        points: list[Point] = []
        labels: tuple[Label, ...] = ()
        for level, piece in route:
            x, y = origins[level]
            points += [(x + dx, y + dy) for dx, dy in self.sheets[level].points(piece)]
            labels += self.sheets[level].labels(piece, x, y)
        return Arrow(link.source, link.target, tuple(_thin_points(points)), labels, tuple(row.id for row in link.rows))


def _nodes(place: Place) -> list[int]:
    """What is drawn inside a state: its start, its states, and at the top the machine where it has rows of its own."""
    start = [~place.index] if place.initial else []
    return start + inner(place) + ([ROOT] if place.index == ROOT and place.rows else [])


def _links(chart: Chart) -> list[_Link]:
    pairs: dict[tuple[int, int], list[Row]] = {}
    for place in chart.places:
        pairs.update({(~place.index, target): [] for target in place.initial})
        pairs.update({(place.index, target): [] for target in place.default})
    for row in chart.rows:
        for target in dict.fromkeys(row.targets):
            pairs.setdefault((row.source, target), []).append(row)
    return [_Link(id, source, target, tuple(rows)) for id, ((source, target), rows) in enumerate(pairs.items())]


def _thin_points(points: Iterable[Point]) -> Iterator[Point]:
    """Points without those in the middle of a straight line, and with room for a tip at the end."""
    kept: list[Point] = []
    for x, y in points:
        near = len(kept) > 1 and math.dist(kept[-1], (x, y)) < 0.5
        if near or (len(kept) > 1 and abs(kept[-1][0] - x) < 0.5 and abs(kept[-2][0] - x) < 0.5):
            kept.pop()
        kept.append((x, y))
    (_, before), (x, y) = kept[-2:]
    if abs(before - y) > TIP:
        kept.insert(-1, (x, y - math.copysign(TIP, y - before)))
    return iter(kept)


def _layers(nodes: Sequence[int], arcs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The layer of each node: one below the lowest node that leads to it; nodes without arcs in rows at the end."""
    order = {node: position for position, node in enumerate(nodes)}
    after = {node: sorted({head for tail, head in arcs if tail == node}, key=order.__getitem__) for node in nodes}
    back = _back(nodes, after)
    forward = [(tail, head) for tail in nodes for head in after[tail] if (tail, head) not in back]
    before: dict[int, set[int]] = {node: set() for node in nodes}
    for tail, head in forward:
        before[head].add(tail)
    layer: dict[int, int] = {}
    for node in TopologicalSorter(before).static_order():
        layer[node] = max((layer[other] + 1 for other in before[node]), default=0)
    touched = {node for arc in forward for node in arc}
    for node in nodes:
        if node in touched and not before[node]:
            layer[node] = min(layer[head] for tail, head in forward if tail == node) - 1
    last = max((layer[node] for node in touched), default=-1)
    for position, node in enumerate(node for node in nodes if node not in touched):
        layer[node] = last + 1 + position // 5
    return layer


def _back(nodes: Sequence[int], after: Mapping[int, Sequence[int]]) -> set[tuple[int, int]]:
    """The arcs that close a cycle, when one walks from the start in document order."""
    found: set[tuple[int, int]] = set()
    seen: set[int] = set()
    for first in nodes:
        if first in seen:
            continue
        seen.add(first)
        path = {first: iter(after[first])}
        while path:
            node, rest = next(reversed(path.items()))
            step = next(rest, None)
            if step is None:
                del path[node]
            elif step in path:
                found.add((node, step))
            elif step not in seen:
                seen.add(step)
                path[step] = iter(after[step])
    return found


_Key = tuple[bool, int]  # a port: (True, target) is shared by all that goes there, (False, link) is one arrow's own


@dataclass(slots=True)
class _Cell:
    """Something with a place in a rank. `x` is where its line runs: the middle of a box, the left of a label."""

    rank: int
    left: float = 1.0
    right: float = 1.0
    width: float = 0.0
    height: float = 0.0
    room: float = 0.0
    node: int | None = None
    bends: bool = False
    ports: dict[tuple[bool, _Key], float] = field(default_factory=dict)
    fixed: frozenset[tuple[bool, _Key]] = frozenset()
    x: float = 0.0
    y: float = 0.0

    @property
    def reach(self) -> float:
        """How far from its middle a line may leave or enter a cell."""
        if self.node is None or self.width <= 2 * DOT:
            return 0.0
        return max(self.width / 2 - PORT, CIRCLE / 2)

    def port(self, bottom: bool, key: _Key) -> float:
        """How far from its middle a line leaves or enters a cell."""
        return self.ports.get((bottom, key), 0.0)


@dataclass(frozen=True, slots=True)
class _Wire:
    """A line between cells of neighbouring ranks, from the bottom of the one to the top of the other."""

    above: int
    out: _Key
    below: int
    into: _Key


@dataclass(frozen=True, slots=True)
class _Tag:
    """The texts of an arrow, one below the other, before they have a place."""

    texts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    width: float
    height: float

    def labels(self, x: float, y: float) -> Iterator[Label]:
        for row, lines in self.texts:
            yield Label(lines, row, x, y, self.width, LINE * len(lines))
            y += LINE * len(lines) + BETWEEN_ROWS


def _tag(rows: Sequence[Row]) -> _Tag:
    texts = tuple((row_text(row), _break_row(row)) for row in rows)
    widths = [text_width(event, SMALL, 1.08) + text_width(rest, SMALL) for _, lines in texts for event, rest in lines]
    height = sum(LINE * len(lines) for _, lines in texts) + BETWEEN_ROWS * (len(texts) - 1)
    return _Tag(texts, max(widths, default=0.0), height)


def _break_row(row: Row) -> tuple[tuple[str, str], ...]:
    """A row in up to three short lines: what happened, then under which condition and with which consequence."""
    event = printable(trigger(row.on))
    rest = row_text(row)[len(event) :].strip()
    if len(event) + len(rest) < SHORT_LINE:
        return ((event, f" {rest}" if rest else ""),)
    lines = wrap(rest, SHORT_LINE, max_lines=2, placeholder=" …")
    return ((shorten(event, LONG_LINE), ""), *(("", shorten(line, LONG_LINE)) for line in lines))


def text_width(text: str, size: float, weight: float = 1.0) -> float:
    """About how wide a text is; fonts differ, so rather too wide than too narrow."""
    return sum(map(_letter_width, text)) * size * weight


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "mwMW@%≤→…—":
        return 0.9
    if letter in " ijl.,:;|!'()[]/·":
        return 0.36
    return 0.44 if letter in "frt-" else 0.72 if letter.isupper() else 0.61


def small_print(place: Place) -> list[str]:
    """The lines below a state's name: what it does on entry, and its rows that do not leave it."""
    return [*state_notes(place), *(row_text(row) for row in place.rows if not row.targets)]


def _face(name: str, lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of a box with this text."""
    across = max(
        NARROWEST, text_width(text_line(name), NAME, 1.1), *(text_width(text_line(line), SMALL) for line in lines)
    )
    return across + 2 * PAD, HEADER + LINE * len(lines)


def text_line(text: str) -> str:
    """Text as one line of a box."""
    return shorten(printable(text), LONG_LINE)


def _heading(place: Place) -> tuple[float, float]:
    """Width and height of what stands at the top of a nested state."""
    if place.index == ROOT:
        return 0.0, 0.0
    across, down = _face(place.name, small_print(place))
    return across - PAD, down


class _Sheet:
    """The inside of one state with its geometry, in coordinates of its own."""

    def __init__(self, level: _Level, chart: Chart, sheets: Mapping[int, _Sheet]) -> None:
        self.level = level
        self.chart = chart
        self.heading = _heading(level.place)
        self.cells: list[_Cell] = []
        self.nodes: dict[int, int] = {}
        self.borders: dict[tuple[bool, _Key], int] = {}
        self.bends: dict[tuple[str, int, int], int] = {}
        self.tags: dict[int, _Tag] = {}
        self.tracks: dict[int, int] = {}
        self.still = level.place.kind == PARALLEL
        self.bottom = 2 * max(level.layer.values(), default=0) + (6 if any(p.turns for p in level.pieces) else 4)
        if self.still:
            _level_out([sheets[node] for node in level.nodes if node in sheets])
        for node in level.nodes:
            self.nodes[node] = self.add(self.node_cell(node, sheets.get(node) if node > ROOT else None))
        self.stops = {piece: self.turn(piece) if piece.turns else self.run(piece) for piece in level.pieces}
        if self.tracks:
            self.add(_Cell(self.bottom - 2, 0, 0, room=TRACK * len(self.tracks)))
        self.arrange()

    def arrange(self) -> None:
        wires = list(dict.fromkeys(wire for stops in self.stops.values() for wire in self.wires(stops)))
        order = _Order(self.cells, wires, fixed=2 if self.still else None)
        order.settle()
        spine = self.spine()
        _Columns(self.cells, wires, order, spine).settle()
        _straighten_ports(self.cells, wires, spine)
        self.width = self.place_across(order)
        self.spans: dict[int, tuple[float, float]] = {}
        self.height = self.place_down(wires, order)

    def spine(self) -> set[_Wire]:
        """The lines that lead from layer to layer in document order, at most one from and one to each node."""
        found: set[_Wire] = set()
        tails: set[int | None] = {None}
        heads: set[int | None] = {None}
        for piece, stops in self.stops.items():
            near = len(stops) == 3 and piece.down
            if near and piece.tail not in tails and piece.head not in heads:
                found.update(self.wires(stops))
                tails.add(piece.tail)
                heads.add(piece.head)
        return found

    def add(self, cell: _Cell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def node_cell(self, node: int, sheet: _Sheet | None) -> _Cell:
        rank = 2 * self.level.layer[node] + 2
        if node < 0:
            return _Cell(rank, DOT, DOT, 2 * DOT, 2 * DOT, 2 * DOT, node)
        place = self.chart.places[node]
        if place.kind == HISTORY:
            name = text_width(text_line(place.name), SMALL) + TEXT
            return _Cell(rank, CIRCLE, CIRCLE + name, 2 * CIRCLE, 2 * CIRCLE, 2 * CIRCLE, node)
        if sheet is not None:
            width, height = sheet.width, sheet.height
        else:
            width, height = _face(ANYWHERE if node == ROOT else place.name, small_print(place))
        cell = _Cell(rank, width / 2, width / 2, width, height, height, node)
        if sheet is not None:
            cell.ports = {at: x - width / 2 for at, x in sheet.ports()}
            cell.fixed = frozenset(cell.ports)
        if loop := self.level.loops.get(node):
            tag = _tag(loop.rows)
            cell.right += LOOP + TEXT + tag.width
            cell.room = max(height, tag.height)
        return cell

    def ports(self) -> Iterator[tuple[tuple[bool, _Key], float]]:
        """Where lines cross the border of this state: at the bottom or not, for whom, and how far from the left."""
        for at, index in self.borders.items():
            yield at, self.cells[index].x

    def bend(self, way: str, target: int, cell: _Cell) -> int:
        """The cell where lines to the same target run together through a rank."""
        key = (way, target, cell.rank)
        if key not in self.bends:
            self.bends[key] = self.add(cell)
        return self.bends[key]

    def end(self, node: int | None, key: _Key, *, bottom: bool) -> tuple[int, _Key]:
        """Where a line begins or ends: at a node, or at the border of this state."""
        if node is not None:
            return self.nodes[node], key
        if (bottom, key) not in self.borders:
            self.borders[bottom, key] = self.add(_Cell(self.bottom if bottom else 0, 4, 4, bends=True))
        return self.borders[bottom, key], key

    def run(self, piece: _Piece) -> list[tuple[int, _Key]]:
        """The cells that a piece passes, from its tail to its head."""
        link, shared = piece.link, (True, piece.link.target)
        own = (False, link.id) if piece.first else shared
        tail = self.end(piece.tail, own, bottom=not piece.down if piece.tail is None else piece.down)
        head = self.end(piece.head, shared, bottom=piece.down)
        begin, end = self.cells[tail[0]].rank, self.cells[head[0]].rank
        stops = [tail]
        for rank in range(begin + 1, end) if piece.down else range(begin - 1, end, -1):
            stops.append(self.passage(piece, rank, labelled=len(stops) == 1))
        return [*stops, head]

    def turn(self, piece: _Piece) -> list[tuple[int, _Key]]:
        """The cells of a piece between two regions: below both of them, and up again."""
        link, shared = piece.link, (True, piece.link.target)
        rank = self.bottom - 2
        tail, own = self.end(piece.tail, (False, link.id) if piece.first else shared, bottom=True)
        head, _ = self.end(piece.head, shared, bottom=True)
        self.tracks.setdefault(link.target, len(self.tracks))
        down = self.passage(piece, rank - 1, labelled=True)
        up = self.bend("up", link.target, _Cell(rank - 1, bends=True))
        return [(tail, own), down, (up, shared), (head, shared)]

    def passage(self, piece: _Piece, rank: int, *, labelled: bool) -> tuple[int, _Key]:
        shared = (True, piece.link.target)
        if labelled and piece.first and piece.link.rows:
            tag = _tag(piece.link.rows)
            index = self.add(_Cell(rank, 2, TEXT + tag.width, tag.width, tag.height, tag.height))
            self.tags[index] = tag
            return index, shared
        return self.bend("down" if piece.down else "up", piece.link.target, _Cell(rank, bends=True)), shared

    def wires(self, stops: Sequence[tuple[int, _Key]]) -> Iterator[_Wire]:
        for (one, key), (other, into) in pairwise(stops):
            if self.cells[one].rank < self.cells[other].rank:
                yield _Wire(one, key, other, into)
            elif self.cells[one].rank > self.cells[other].rank:
                yield _Wire(other, into, one, key)

    def place_across(self, order: _Order) -> float:
        """Move everything to the right of the border, and the lines at the top out of the title's way."""
        pad = PAD if self.level.place.index != ROOT else 0.0
        left = min((cell.x - cell.left for cell in self.cells), default=0.0)
        right = max((cell.x + cell.right for cell in self.cells), default=0.0)
        width = max(right - left + 2 * pad, self.heading[0] + pad)
        shift = (width - (right - left)) / 2 - left
        for cell in self.cells:
            cell.x += shift
        least = self.heading[0] + pad
        for index in order.at(0):
            self.cells[index].x = max(self.cells[index].x, least)
            least = self.cells[index].x + BETWEEN_LINES
            width = max(width, self.cells[index].x + pad)
        return width

    def place_down(self, wires: Sequence[_Wire], order: _Order) -> float:
        """Give every rank its height, and more room between two ranks the farther lines have to go sideways."""
        y, before = self.heading[1], 0
        self.spans = {0: (0.0, y), self.bottom: (y, y)}
        for rank in (rank for rank in order.ranks if rank not in (0, self.bottom)):
            y += self.gap(wires, rank, first=before == 0)
            height = max(self.cells[index].room for index in order.at(rank))
            self.spans[rank] = (y, y + height)
            for index in order.at(rank):
                self.cells[index].y = y + (height - self.cells[index].height) / 2
            y, before = y + height, rank
        if order.at(self.bottom):
            y += self.gap(wires, self.bottom, first=False)
            self.spans[self.bottom] = (y, y)
        return y + (PAD if self.level.place.index != ROOT else 0.0)

    def gap(self, wires: Sequence[_Wire], rank: int, *, first: bool) -> float:
        """How far a rank stands from the one above: room for tips, and for lines that go sideways."""
        between = [wire for wire in wires if self.cells[wire.below].rank == rank]
        if not between:
            return 0.0 if first else BETWEEN_BOXES
        far = max((abs(self.at_bottom(wire) - self.at_top(wire)) for wire in between), default=0.0)
        tips = any(self.ends(wire.below, wire.into) or self.ends(wire.above, wire.out) for wire in between)
        least = LEAST_GAP + (TIP if tips else 0.0)
        return least if far < 0.5 else least + min(LEAST_GAP + far / 8, WIDEST_GAP)

    def ends(self, index: int, key: _Key) -> bool:
        """Whether this is where arrows end."""
        return key == (True, self.cells[index].node)

    def at_bottom(self, wire: _Wire) -> float:
        return self.cells[wire.above].x + self.cells[wire.above].port(True, wire.out)

    def at_top(self, wire: _Wire) -> float:
        return self.cells[wire.below].x + self.cells[wire.below].port(False, wire.into)

    def points(self, piece: _Piece) -> list[Point]:
        """The way of a piece, from its tail to its head."""
        stops = self.stops[piece]
        ranks = [self.cells[index].rank for index, _ in stops]
        found = self.edge(stops[0], bottom=ranks[1] > ranks[0])
        for at in range(1, len(stops) - 1):
            cell = self.cells[stops[at][0]]
            top, bottom = self.spans[cell.rank]
            through = [(cell.x, top), (cell.x, bottom)]
            if ranks[at] > ranks[at - 1]:
                found += through
            elif ranks[at] < ranks[at - 1]:
                found += reversed(through)
            else:
                below = self.spans[self.bottom - 2][0] + TRACK * self.tracks[piece.link.target]
                found += [(found[-1][0], below), (cell.x, below), (cell.x, bottom), (cell.x, top)]
        return found + self.edge(stops[-1], bottom=ranks[-2] > ranks[-1])[::-1]

    def edge(self, stop: tuple[int, _Key], *, bottom: bool) -> list[Point]:
        """From the outline of a cell to the outline of its rank."""
        cell = self.cells[stop[0]]
        span = self.spans[cell.rank]
        x = cell.x + cell.port(bottom, stop[1])
        if cell.node is None:
            return [(x, self.height if cell.rank == self.bottom else 0.0), (x, span[0 if not bottom else 1])]
        return [(x, cell.y + cell.height if bottom else cell.y), (x, span[1] if bottom else span[0])]

    def labels(self, piece: _Piece, x: float, y: float) -> tuple[Label, ...]:
        found: list[Label] = []
        for index, _ in self.stops[piece]:
            if tag := self.tags.get(index):
                cell = self.cells[index]
                found += tag.labels(x + cell.x + TEXT, y + cell.y)
        return tuple(found)

    def box(self, node: int, x: float, y: float) -> Box:
        cell = self.cells[self.nodes[node]]
        kind = "start" if node < 0 else ANYWHERE if node == ROOT else self.chart.places[node].kind
        name = ANYWHERE if node == ROOT else self.chart.places[~node if node < 0 else node].name
        left = x + cell.x - cell.width / 2
        return Box(node, name, kind, self.level.place.index, left, y + cell.y, cell.width, cell.height)

    def loop(self, link: _Link, x: float, y: float) -> Arrow:
        """An arrow from a state to itself, at its right."""
        box, tag = self.box(link.source, x, y), _tag(link.rows)
        right, middle = box.x + box.width, box.y + min(box.height, max(tag.height, 2 * HEADER)) / 2
        reach = right + LOOP
        points = ((right, middle - 8), (reach, middle - 8), (reach, middle + 8), (right, middle + 8))
        labels = tuple(tag.labels(reach - 2, middle - tag.height / 2))
        return Arrow(link.source, link.target, points, labels, tuple(row.id for row in link.rows))

    def dividers(self) -> Iterator[tuple[float, float]]:
        """Between the regions of a parallel state: how far from the left, and from where downwards."""
        regions = sorted((self.cells[index] for index in self.nodes.values()), key=lambda cell: cell.x)
        for one, other in pairwise(regions) if self.still else ():
            yield (one.x + one.right + other.x - other.left) / 2, self.heading[1]


def _level_out(sheets: Sequence[_Sheet]) -> None:
    """Make regions equally high."""
    highest = max((sheet.height for sheet in sheets), default=0.0)
    for sheet in sheets:
        sheet.height = highest


class _Order:
    """The cells of each rank from left to right, with few crossings."""

    def __init__(self, cells: Sequence[_Cell], wires: Sequence[_Wire], *, fixed: int | None) -> None:
        self.fixed = fixed
        self.ranks: dict[int, list[int]] = {}
        for index, cell in sorted(enumerate(cells), key=lambda pair: pair[1].rank):
            self.ranks.setdefault(cell.rank, []).append(index)
        self.position: dict[int, int] = {}
        for rank in self.ranks:
            self.number(rank)
        self.ends: dict[tuple[int, bool], list[tuple[int, float]]] = {}
        for wire in wires:
            above, below = cells[wire.above], cells[wire.below]
            out, into = above.port(True, wire.out), below.port(False, wire.into)
            self.ends.setdefault((wire.below, True), []).append((wire.above, out / (above.left + above.right)))
            self.ends.setdefault((wire.above, False), []).append((wire.below, into / (below.left + below.right)))

    def at(self, rank: int) -> list[int]:
        return self.ranks.get(rank, [])

    def number(self, rank: int) -> None:
        self.position.update({index: place for place, index in enumerate(self.ranks[rank])})

    def settle(self) -> None:
        """Sweep down and up, and keep the best that was seen."""
        best, fewest, since = self.ranks, math.inf, 0
        for turn in range(min(SWEEPS, max(4, 12_000 // len(self.position)))):
            self.sweep(above=turn % 2 == 0)
            self.exchange()
            crossings = self.crossings()
            since += 1
            if crossings < fewest:
                best, fewest, since = {rank: list(order) for rank, order in self.ranks.items()}, crossings, 0
            if fewest == 0 or since > PATIENCE:
                break
        self.ranks = best
        for rank in best:
            self.number(rank)

    def spots(self, index: int, *, above: bool) -> list[float]:
        """Where the other ends of a cell's lines are, in the rank above or below."""
        return [self.position[other] + aside for other, aside in self.ends.get((index, above), ())]

    def sweep(self, *, above: bool) -> None:
        for rank in self.ranks if above else reversed(self.ranks):
            if rank != self.fixed:
                means = {index: self.mean(index, above=above) for index in self.ranks[rank]}
                self.ranks[rank].sort(key=means.__getitem__)
                self.number(rank)

    def mean(self, index: int, *, above: bool) -> float:
        spots = self.spots(index, above=above)
        return sum(spots) / len(spots) if spots else float(self.position[index])

    def exchange(self) -> None:
        """Exchange neighbours where that saves crossings."""
        for rank, order in self.ranks.items():
            for at in range(len(order) - 1) if rank != self.fixed else ():
                one, other = order[at], order[at + 1]
                spots = [(self.spots(one, above=above), self.spots(other, above=above)) for above in (True, False)]
                now = sum(left > right for lefts, rights in spots for left in lefts for right in rights)
                then = sum(left < right for lefts, rights in spots for left in lefts for right in rights)
                if then < now:
                    order[at], order[at + 1] = other, one
                    self.number(rank)

    def crossings(self) -> int:
        found = 0
        for order in self.ranks.values():
            seen: list[float] = []
            for index in order:
                spots = self.spots(index, above=True)
                found += sum(len(seen) - bisect_right(seen, spot) for spot in spots)
                for spot in spots:
                    insort(seen, spot)
        return found


def _straighten_ports(cells: Sequence[_Cell], wires: Sequence[_Wire], spine: Set[_Wire]) -> None:
    """Move ports along their side of a box to where their lines come from, apart from each other."""
    sides: dict[tuple[int, bool], dict[_Key, list[float]]] = {}
    for wire in wires:
        sides.setdefault((wire.above, True), {}).setdefault(wire.out, []).append(cells[wire.below].x)
        sides.setdefault((wire.below, False), {}).setdefault(wire.into, []).append(cells[wire.above].x)
    straight = {(wire.above, True, wire.out): cells[wire.below].x for wire in spine}
    straight |= {(wire.below, False, wire.into): cells[wire.above].x for wire in spine}
    for (index, bottom), keys in sides.items():
        cell = cells[index]
        if cell.reach > CIRCLE / 2 or (cell.reach and len(keys) > 1):
            fixed = {key: x for (side, key), x in cell.ports.items() if side == bottom and (side, key) in cell.fixed}
            for key in keys:
                if key not in fixed and (index, bottom, key) in straight:
                    fixed[key] = max(-cell.reach, min(cell.reach, straight[index, bottom, key] - cell.x))
            wanted = {key: sorted(xs)[(len(xs) - 1) // 2] - cell.x for key, xs in keys.items() if key not in fixed}
            placed = fixed | _apart(wanted, fixed, cell.reach)
            cell.ports.update({(bottom, key): x for key, x in placed.items()})


def _apart(wanted: Mapping[_Key, float], fixed: Mapping[_Key, float], most: float) -> dict[_Key, float]:
    """Ports within a side of a box, in the order in which they are wanted, none on top of another."""
    found = {key: max(-most, min(most, x)) for key, x in wanted.items()}
    order = sorted([*wanted, *fixed], key=lambda key: wanted.get(key, fixed.get(key, 0.0)))
    step = min(PORT - 2, most / max(len(order) - 1, 1))
    least = -most
    for key in order:
        if key in found:
            found[key] = max(found[key], least)
        least = found.get(key, fixed.get(key, 0.0)) + step
    highest = most
    for key in reversed(order):
        if key in found:
            found[key] = min(found[key], highest)
        highest = found.get(key, fixed.get(key, 0.0)) - step
    return found


class _Columns:
    """Where the cells of each rank stand from left to right: straight long lines, little width, nothing overlaps.

    Four times, from above and from below, from the left and from the right, each cell is aligned with the middle one
    of its neighbours in the rank before; aligned cells form blocks, which are pushed together. The result is the mean
    of the two middle positions of the four, which keeps all distances.
    """

    def __init__(self, cells: Sequence[_Cell], wires: Sequence[_Wire], order: _Order, spine: Set[_Wire]) -> None:
        self.cells = cells
        self.wires = wires
        self.order = order
        self.spine = spine
        self.above: dict[int, list[_Wire]] = {index: [] for index in range(len(cells))}
        self.below: dict[int, list[_Wire]] = {index: [] for index in range(len(cells))}
        for wire in wires:
            self.above[wire.below].append(wire)
            self.below[wire.above].append(wire)
        self.blocked = self.conflicts()

    def settle(self) -> None:
        if not self.cells:
            return
        found = [self.variant(flip, mirror) for flip in (False, True) for mirror in (False, True)]
        spans = [self.span(xs) for xs in found]
        low, high = min(spans, key=lambda span: span[1] - span[0])
        for at, xs in enumerate(found):
            shift = high - spans[at][1] if at % 2 else low - spans[at][0]
            found[at] = [x + shift for x in xs]
        for index, cell in enumerate(self.cells):
            middle = sorted(xs[index] for xs in found)[1:3]
            cell.x = sum(middle) / 2
        for _ in range(POLISHES):
            if not sum([self.polish(group) for group in self.groups()]):
                break

    def groups(self) -> list[set[int]]:
        """Cells that upright lines hold together."""
        group = {index: {index} for index in range(len(self.cells))}
        for wire in self.wires:
            if abs(self.bend(wire)) < 0.5 and group[wire.above] is not group[wire.below]:
                group[wire.above] |= group[wire.below]
                for index in group[wire.below]:
                    group[index] = group[wire.above]
        return list({id(cells): cells for cells in group.values()}.values())

    def bend(self, wire: _Wire) -> float:
        """How far to the right a line has to go on its way down."""
        return self.cells[wire.below].x - self.cells[wire.above].x - self.slant(wire, False)

    def polish(self, group: Set[int]) -> bool:
        """Move cells together to where fewer of their lines are bent, as far as there is room."""
        upper = [(wire, self.bend(wire), 1) for i in group for wire in self.above[i] if wire.above not in group]
        lower = [(wire, self.bend(wire), -1) for i in group for wire in self.below[i] if wire.below not in group]
        signed = upper + lower

        def price(shift: float) -> float:
            return sum(self.cost(wire, bend + sign * shift) for wire, bend, sign in signed)

        low, high = self.room(group)
        wanted = [-sign * (bend + slack) for wire, bend, sign in signed for slack in self.slack(wire)]
        best = min((shift for shift in wanted if low <= shift <= high), key=lambda x: (price(x), abs(x)), default=0.0)
        if price(best) > price(0.0) - 0.5:
            return False
        for index in group:
            self.cells[index].x += best
        return True

    def room(self, group: Set[int]) -> tuple[float, float]:
        """How far a group can go to the left and to the right."""
        low, high = -math.inf, math.inf
        for index in group:
            rank, at = self.order.ranks[self.cells[index].rank], self.order.position[index]
            if at > 0 and rank[at - 1] not in group:
                low = max(low, self.cells[rank[at - 1]].x + self.distance(rank[at - 1], index) - self.cells[index].x)
            if at + 1 < len(rank) and rank[at + 1] not in group:
                high = min(high, self.cells[rank[at + 1]].x - self.distance(index, rank[at + 1]) - self.cells[index].x)
        return min(low, 0.0), max(high, 0.0)

    def slack(self, wire: _Wire) -> tuple[float, ...]:
        """By how much the port of a line can be moved instead of the line."""
        ends = ((self.cells[wire.above], True, wire.out), (self.cells[wire.below], False, wire.into))
        reach = max(cell.reach if (bottom, key) not in cell.fixed else 0.0 for cell, bottom, key in ends)
        return (0.0,) if wire in self.spine or reach == 0 else (-reach, 0.0, reach)

    def cost(self, wire: _Wire, bend: float) -> float:
        beyond = abs(bend) - max(self.slack(wire))
        return 0.0 if beyond < 0.5 else (4 if wire in self.spine else 1) * (BEND + beyond)

    def span(self, xs: Sequence[float]) -> tuple[float, float]:
        return (
            min(x - cell.left for x, cell in zip(xs, self.cells, strict=True)),
            max(x + cell.right for x, cell in zip(xs, self.cells, strict=True)),
        )

    def trunk(self, wire: _Wire) -> bool:
        """Whether a line is part of a long one, and should be upright."""
        return wire in self.spine or (self.cells[wire.above].bends and self.cells[wire.below].bends)

    def conflicts(self) -> set[_Wire]:
        """The lines that begin or end with the spine or cross it, or cross a long one, and so cannot be upright."""
        tails, heads = {wire.above for wire in self.spine}, {wire.below for wire in self.spine}
        found = {wire for wire in self.wires if wire.above in tails or wire.below in heads} - self.spine
        position = self.order.position
        ranks: dict[int, list[tuple[int, int, int, _Wire]]] = {}
        for wire in self.wires:
            strength = 2 if wire in self.spine else 1 if self.trunk(wire) else 0
            mark = (strength, position[wire.above], position[wire.below], wire)
            ranks.setdefault(self.cells[wire.above].rank, []).append(mark)
        for marks in ranks.values():
            strong = [mark for mark in marks if mark[0] > 0]
            for mine, above, below, wire in marks:
                if any(mark > mine and (above - x) * (below - y) < 0 for mark, x, y, _ in strong):
                    found.add(wire)
        return found

    def variant(self, flip: bool, mirror: bool) -> list[float]:
        ranks = list(self.order.ranks.values())
        ranks = [order[::-1] if mirror else order for order in (reversed(ranks) if flip else ranks)]
        block, shift = self.aligned(ranks, flip, mirror)
        xs = self.compacted(ranks, block, shift, mirror)
        return [-x if mirror else x for x in xs]

    def aligned(self, ranks: Sequence[Sequence[int]], flip: bool, mirror: bool) -> tuple[list[int], list[float]]:
        """For each cell its block, named by the first of it, and how far it stands from that one."""
        block = list(range(len(self.cells)))
        shift = [0.0] * len(self.cells)
        sign = -1 if mirror else 1
        for order in ranks:
            last = -math.inf
            for index in order:
                for wire in self.middle(index, flip, sign):
                    other = wire.below if flip else wire.above
                    if block[index] == index and last < sign * self.order.position[other]:
                        last = sign * self.order.position[other]
                        block[index] = block[other]
                        shift[index] = shift[other] + sign * self.slant(wire, flip)
        return block, shift

    def middle(self, index: int, flip: bool, sign: int) -> list[_Wire]:
        """The line, or the two, in the middle of those to the rank before; a long line goes first."""
        wires = self.below[index] if flip else self.above[index]
        wires = [wire for wire in wires if self.trunk(wire)] or wires
        wires = sorted(wires, key=lambda wire: sign * self.order.position[wire.below if flip else wire.above])
        return [wire for wire in wires[(len(wires) - 1) // 2 : len(wires) // 2 + 1] if wire not in self.blocked]

    def slant(self, wire: _Wire, flip: bool) -> float:
        """How far a cell stands from its neighbour when the line between their ports is upright."""
        slant = self.cells[wire.above].port(True, wire.out) - self.cells[wire.below].port(False, wire.into)
        return -slant if flip else slant

    def compacted(
        self, ranks: Sequence[Sequence[int]], block: Sequence[int], shift: Sequence[float], mirror: bool
    ) -> list[float]:
        """Blocks as far to the left as their distances allow, then as near as possible to what is at their right."""
        apart: dict[int, dict[int, float]] = {index: {} for index in block}
        for order in ranks:
            for one, other in pairwise(order):
                distance = self.distance(one, other, mirror) + shift[one] - shift[other]
                left, right = block[one], block[other]
                apart[right][left] = max(distance, apart[right].get(left, -math.inf))
        x: dict[int, float] = {}
        order = list(TopologicalSorter(apart).static_order())
        for index in order:
            x[index] = max((x[left] + distance for left, distance in apart[index].items()), default=0.0)
        slack = dict.fromkeys(order, math.inf)
        for index in reversed(order):
            if slack[index] < math.inf:
                x[index] = max(x[index], slack[index])
            for left, distance in apart[index].items():
                slack[left] = min(slack[left], x[index] - distance)
        return [x[block[index]] + shift[index] for index in range(len(block))]

    def distance(self, one: int, other: int, mirror: bool = False) -> float:
        left, right = self.cells[one], self.cells[other]
        gap = BETWEEN_BOXES if left.node is not None and right.node is not None else BETWEEN_LINES
        return gap + (left.left + right.right if mirror else left.right + right.left)
