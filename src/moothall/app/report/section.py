"""A part of a report that a kind of machine adds: texts, lists, tables and bars, in no format yet."""

from __future__ import annotations

from moothall.kernel.frozen import Frozen


class Listed(Frozen):
    """A list below a title."""

    title: str
    items: tuple[str, ...]


class Table(Frozen):
    """A table: what stands in the first column is a name, the rest are figures or words."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Measure(Frozen):
    """A bar: its name, its length, what stands behind it, and how much of it is of the other colour."""

    name: str
    value: float
    told: str
    other: float = 0.0


class Chart(Frozen):
    """Bars below each other; a format without pictures leaves them out.

    `most` is what a bar of full length stands for; 0: the longest of them.
    """

    title: str
    bars: tuple[Measure, ...]
    most: float = 0.0


class Talk(Frozen):
    """What was said, by whom, the oldest first."""

    lines: tuple[tuple[str, str], ...]


class Tree(Frozen):
    """Lines whose indentation means something."""

    text: str


Part = str | Listed | Table | Chart | Talk | Tree


class Section(Frozen):
    """A heading and what stands below it; a text is a paragraph."""

    title: str
    parts: tuple[Part, ...]
