"""A machine as text that other programs draw, and as a tree for a terminal.

    mermaid   a stateDiagram-v2, for documents
    dot       a Graphviz digraph, nested states as clusters
    json      nodes and rows, for programs; the shape is in `as_json`
    tree      one line per state and one per row, for a terminal

Every state and every row of the table appears, in document order, and nothing that is not in the table. A row
reads `Event [guard] / move (≤3)`. Nothing is executed: guards and moves are only asked for their names.

Names are untrusted: they may come from a file. Each form has one function that makes text harmless, and no
text reaches the output around it. Identifiers are made up wherever a name is not a plain word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

from moothall.drawing.lambdas import lambda_text
from moothall.errors import Refused
from moothall.kernel.chart import COMPOUND, FINAL, HISTORY, PARALLEL, ROOT, Chart, Place, Row, sequence, trigger
from moothall.kernel.effects import Effect
from moothall.kernel.machine import Machine, label
from moothall.kernel.nodes import Final, History

Form = Literal["mermaid", "dot", "json", "tree"]
ANYWHERE = "anywhere"
LONGEST = 60

_JOINERS = "\u200c\u200d"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MERMAID_LETTER = re.compile(r"[\w .,()/\[\]+=?!'·→≤…-]")
# Words of mermaid's grammar, and names that every JavaScript object answers to.
_MERMAID_WORD = re.compile(
    r"acc(title|descr)|as|choice|class|classdef|click|default|direction|end|fork|hide|join|note|root|scale|state"
    r"|statediagram|style|constructor|hasownproperty|isprototypeof|propertyisenumerable|to(locale)?string|valueof"
    r"|.*_(start|end)",
    re.IGNORECASE,
)


def draw(machine: Machine, form: Form, *, active: Collection[str] = ()) -> str:
    """The machine as text in one of four forms, with the states where a run stands marked."""
    drawer = _FORMS.get(form)
    if drawer is None:
        raise Refused(f"a machine is drawn as {', '.join(_FORMS)}, not as {form!r}")
    return drawer(machine, states_to_mark(machine, active))


def states_to_mark(machine: Machine, active: Collection[str]) -> frozenset[int]:
    """The states to mark: those that are named and all that are around them."""
    unknown = [name for name in active if name not in machine.chart.by_name]
    if unknown:
        raise Refused(f"machine {machine.name} has no state {unknown[0]!r} that could be marked as active")
    return frozenset(machine.chart.around(tuple(active)) if active else ())


def row_text(row: Row) -> str:
    """What stands at the arrow of a row: `Event [guard] / move (≤3)`."""
    on = row.on
    parts = [trigger(on)]
    if on.when is not None:
        parts.append(f"[{brief(on.when)}]")
    if moves := [brief(action) for action in sequence(on.do)]:
        parts.append("/ " + ", ".join(moves))
    if on.at_most is not None:
        parts.append(f"(≤{on.at_most})")
    return printable(" ".join(parts))


def state_notes(place: Place) -> list[str]:
    """What a state does when it is entered and how often it may be: the small print below its name."""
    node = place.node
    if isinstance(node, History):
        return []
    notes = [printable(brief(action)) for action in sequence(node.enter)]
    if not isinstance(node, Final) and node.max_visits is not None:
        notes.append(f"≤{node.max_visits} visits")
    return notes


def brief(action: Any) -> str:
    """The short name of a guard or an action."""
    return shorten(action_text(action), LONGEST)


def action_text(action: Any) -> str:
    """What a guard or an action is drawn as: its label up to the prompt, else its kind or the end of its name."""
    if getattr(action, "label", None) is None:
        if isinstance(action, Effect):
            return action.kind or type(action).__name__
        if not hasattr(action, "__qualname__"):
            wrapped = getattr(action, "func", None)
            return action_text(wrapped) if wrapped is not None else type(action).__name__
        if action.__qualname__.endswith("<lambda>") and (text := lambda_text(action)):
            return text
        return label(action).rpartition("<locals>.")[2].replace("<lambda>", "λ")
    who, _, _ = label(action).partition(": ")
    return who if getattr(action, "emits", None) and " " in who else label(action)


def shorten(text: str, most: int) -> str:
    """Text of at most so many characters, with an ellipsis where something was left out."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def printable(text: str) -> str:
    """Text on one line that cannot steer a terminal, break a document or turn its direction."""
    if text.isprintable():
        return text
    before = ("", *text)
    return "".join(
        " " if letter in "\t\n\r" else "�" if _harmful(letter, before[place]) else letter
        for place, letter in enumerate(text)
    )


def _harmful(letter: str, before: str) -> bool:
    """Whether a letter steers, hides or is not seen; joiners are at home between letters that are not ASCII."""
    if letter in _JOINERS:
        return before.isascii()
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")


def title(place: Place) -> str:
    """The name of a state as a reader sees it; a history says that it is one, and how deep."""
    return f"{_history_mark(place)} {printable(place.name)}" if place.kind == HISTORY else printable(place.name)


def _history_mark(place: Place) -> str:
    return "H*" if isinstance(place.node, History) and place.node.deep else "H"


def inner(place: Place) -> list[int]:
    """What is directly inside a state, in document order, histories included."""
    return sorted(place.children + place.histories)


def _names(chart: Chart, indexes: Collection[int]) -> list[str]:
    return [chart.places[index].name for index in indexes]


def _are_nested(chart: Chart, one: int, other: int) -> bool:
    """Whether one state is inside the other, neither being the other."""
    low, high = min(one, other), max(one, other)
    return low < high < chart.places[low].end


def _sentence(chart: Chart, row: Row) -> str:
    """A row as a line of text, with its targets."""
    targets = ", ".join(printable(name) for name in _names(chart, row.targets))
    return f"{row_text(row)} → {targets}" if targets else row_text(row)


class _Mermaid:
    """Writes one state diagram."""

    def __init__(self, machine: Machine, active: frozenset[int]) -> None:
        self.machine = machine
        self.chart = machine.chart
        self.active = active
        self.ids = _mermaid_ids(machine.chart)
        self.arrows = self.gathered()

    def gathered(self) -> Mapping[tuple[int, int], list[str]]:
        """The texts of the rows between two states: two arrows between the same nested ones would hide each other."""
        found: dict[tuple[int, int], list[str]] = {}
        for row in self.chart.rows:
            for target in row.targets:
                if self.drawable(row.source, target):
                    found.setdefault((row.source, target), []).append(mermaid_text(row_text(row)))
        return found

    def text(self) -> str:
        lines = ["stateDiagram-v2", *self.inside(ROOT, "    ")]
        marked = [self.ids[index] for index in sorted(self.active) if not inner(self.chart.places[index])]
        if marked:
            lines += ["    classDef active fill:#fde68a,stroke:#b45309,color:#1f2937"]
            lines += [f"    class {','.join(marked)} active"]
        return "\n".join(lines) + "\n"

    def inside(self, index: int, indent: str) -> Iterator[str]:
        """The lines of everything inside a state."""
        place = self.chart.places[index]
        yield from (f"{indent}[*] --> {self.ids[target]}" for target in place.initial)
        if index == ROOT and place.rows:
            yield from self.box(place, ANYWHERE, indent)
        for position, child in enumerate(inner(place)):
            if position and place.kind == PARALLEL:
                yield f"{indent}--"
            yield from self.state(self.chart.places[child], indent)
        for (source, target), texts in self.arrows.items():
            if self.scope(source, target) == index:
                yield f"{indent}{self.ids[source]} --> {self.ids[target]} : {'<br/>'.join(texts)}"
        for history in self.chart.places:
            for target in history.default:
                if self.scope(history.index, target) == index:
                    yield f"{indent}{self.ids[history.index]} --> {self.ids[target]}"

    def state(self, place: Place, indent: str) -> Iterator[str]:
        if not inner(place):
            yield from self.box(place, title(place), indent)
            if place.kind == FINAL:
                yield f"{indent}{self.ids[place.index]} --> [*]"
            return
        heading = " · ".join([title(place), *state_notes(place), *self.unmoved(place)])
        yield f'{indent}state "{mermaid_text(heading)}" as {self.ids[place.index]} {{'
        yield from self.inside(place.index, indent + "    ")
        yield f"{indent}}}"

    def box(self, place: Place, name: str, indent: str) -> Iterator[str]:
        """A state without states inside, or the machine as the source of its own rows."""
        yield f'{indent}state "{mermaid_text(name)}" as {self.ids[place.index]}'
        for line in (*state_notes(place), *self.unmoved(place)):
            yield f"{indent}{self.ids[place.index]} : {mermaid_text(line)}"

    def unmoved(self, place: Place) -> list[str]:
        """The rows of a state that mermaid has no arrow for: without a target, or to a state around or inside it."""
        return [
            _sentence(self.chart, row)
            for row in place.rows
            if not any(self.drawable(place.index, target) for target in row.targets)
        ]

    def drawable(self, source: int, target: int) -> bool:
        return source == ROOT or not _are_nested(self.chart, source, target)

    def scope(self, source: int, target: int) -> int:
        """Where an arrow stands: mermaid moves a state to wherever it is named last, but never to the top."""
        here, there = self.chart.places[source].parent, self.chart.places[target].parent
        return here if here == there and self.chart.places[here].kind == COMPOUND else ROOT


def _mermaid_ids(chart: Chart) -> Mapping[int, str]:
    """An identifier for every state: its name where that is a plain word, else a new one that no state has."""
    ids = {place.index: place.name for place in chart.places[1:] if _is_mermaid_id(place.name)}
    taken = set(ids.values())
    for place in chart.places:
        if place.index not in ids:
            found = ANYWHERE if place.index == ROOT else f"s{place.index}"
            while found in taken:
                found += "x"
            taken.add(found)
            ids[place.index] = found
    return ids


def _is_mermaid_id(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and not _MERMAID_WORD.fullmatch(name)


def mermaid_text(text: str) -> str:
    """Text for a label of mermaid: what could mean something there becomes a numbered character."""
    plain = "".join(letter if _MERMAID_LETTER.fullmatch(letter) else f"#{ord(letter)};" for letter in printable(text))
    plain = re.sub(r"^(\d+)\.", r"\1#46;", plain)
    plain = re.sub(r"^[-+]|(?<![^\W_])_+|_+(?![^\W_])", _number_rows, plain)
    plain = re.sub(r"\b(direction) ", r"\1#32;", plain, flags=re.IGNORECASE)
    return plain.replace("[[", "[#91;")


def _number_rows(found: re.Match[str]) -> str:
    return "".join(f"#{ord(letter)};" for letter in found[0])


def _mermaid(machine: Machine, active: frozenset[int]) -> str:
    return _Mermaid(machine, active).text()


_DOT_HEAD = """\
digraph {name} {{
    compound=true; rankdir=TB; nodesep=0.4; ranksep=0.5; fontname="Helvetica"; fontsize=11;
    node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="#94a3b8", fontname="Helvetica", fontsize=11];
    edge [color="#64748b", fontcolor="#334155", fontname="Helvetica", fontsize=9, arrowsize=0.7];
"""
_DOT_START = 'shape=point, width=0.12, color="#334155", fillcolor="#334155", label=""'
_DOT_INVISIBLE = 'shape=point, style=invis, label=""'
_DOT_ACTIVE = 'fillcolor="#fde68a", color="#b45309", penwidth=2'


class _Dot:
    """Writes one digraph. A nested state is a cluster; arrows end at a node inside it and are cut at its border."""

    def __init__(self, machine: Machine, active: frozenset[int]) -> None:
        self.machine = machine
        self.chart = machine.chart
        self.active = active

    def text(self) -> str:
        root = self.chart.places[ROOT]
        lines = list(self.inside(root, "    "))
        if root.rows:
            lines.append(f"    n0 [{self.label(root, ANYWHERE)}, shape=plaintext, style=solid];")
        for row in self.chart.rows:
            lines += [self.arrow(row.source, target, f"label={dot_text(row_text(row))}") for target in row.targets]
        for place in self.chart.places:
            lines += [self.arrow(place.index, target, "style=dashed") for target in place.default]
        return _DOT_HEAD.format(name=dot_text(self.machine.name)) + "\n".join(lines) + "\n}\n"

    def inside(self, place: Place, indent: str) -> Iterator[str]:
        yield f"{indent}start{place.index} [{_DOT_START if place.initial else _DOT_INVISIBLE}];"
        for target in place.initial:
            cut = f" [lhead=cluster{target}]" if inner(self.chart.places[target]) else ""
            yield f"{indent}start{place.index} -> {self.anchor(target)}{cut};"
        for child in inner(place):
            yield from self.state(self.chart.places[child], indent)

    def state(self, place: Place, indent: str) -> Iterator[str]:
        if not inner(place):
            yield f"{indent}n{place.index} [{', '.join(self.look(place))}];"
            return
        yield f"{indent}subgraph cluster{place.index} {{"
        line = "dashed" if self.chart.places[place.parent].kind == PARALLEL else "rounded"
        border = 'color="#b45309"; penwidth=2;' if place.index in self.active else 'color="#94a3b8"; penwidth=1;'
        yield f"{indent}    {self.label(place, title(place))}; style={line}; {border}"
        yield from self.inside(place, indent + "    ")
        yield f"{indent}}}"

    def look(self, place: Place) -> Iterator[str]:
        yield self.label(place, title(place))
        if place.kind == FINAL:
            yield "peripheries=2"
        if place.kind == HISTORY:
            yield "shape=ellipse, style=filled"
        if place.index in self.active:
            yield _DOT_ACTIVE

    def label(self, place: Place, name: str) -> str:
        """Name, small print, and the rows that move nothing, one below the other."""
        still = [row_text(row) for row in place.rows if not row.targets]
        lines = "\\n".join(dot_escaped(line) for line in (name, *state_notes(place), *still))
        return f'label="{lines}"'

    def anchor(self, index: int) -> str:
        """The node that stands for a state; for a nested one its start."""
        return f"start{index}" if index != ROOT and inner(self.chart.places[index]) else f"n{index}"

    def arrow(self, source: int, target: int, *attributes: str) -> str:
        """An arrow between two states. Graphviz cuts it only at a border that the other end lies beyond."""
        places, parts = self.chart.places, list(attributes)
        if inner(places[target]) and not places[target].index <= source < places[target].end:
            parts.append(f"lhead=cluster{target}")
        if source != ROOT and inner(places[source]) and not places[source].index <= target < places[source].end:
            parts.append(f"ltail=cluster{source}")
        return f"    {self.anchor(source)} -> {self.anchor(target)} [{', '.join(parts)}];"


def dot_escaped(text: str) -> str:
    """Text for the inside of a quoted string of Graphviz, which also reads entities."""
    return printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def dot_text(text: str) -> str:
    """Text as a quoted string of Graphviz."""
    return f'"{dot_escaped(text)}"'


def _dot(machine: Machine, active: frozenset[int]) -> str:
    return _Dot(machine, active).text()


def as_json(machine: Machine, active: frozenset[int]) -> dict[str, Any]:
    """The machine as plain values; every key is always there, states and rows are in document order.

        {"machine": name, "start": [state, …],
         "nodes": [{"name", "kind": "atomic" | "compound" | "parallel" | "final" | "history",
                    "parent": name or null at the top, "initial": [name, …], "default": [name, …], "deep": bool,
                    "enter": [label, …], "exit": [label, …], "max_visits": number or null, "active": bool}, …],
         "rows":  [{"id", "state": name or "*", "event", "guard": label or null, "do": [label, …],
                    "to": [name, …], "at_most": number or null, "internal": bool, "label"}, …]}

    `initial` is where a compound state begins, `default` where a history leads before its state was ever left.
    """
    chart = machine.chart
    return {
        "machine": machine.name,
        "start": _names(chart, chart.places[ROOT].initial),
        "nodes": [_json_node(chart, place, place.index in active) for place in chart.places[1:]],
        "rows": [_json_row(chart, row) for row in chart.rows],
    }


def _json_node(chart: Chart, place: Place, active: bool) -> dict[str, Any]:
    node = place.node
    enter, leave = ((), ()) if isinstance(node, History) else (node.enter, node.exit)
    return {
        "name": place.name,
        "kind": place.kind,
        "parent": chart.places[place.parent].name if place.parent != ROOT else None,
        "initial": _names(chart, place.initial),
        "default": _names(chart, place.default),
        "deep": isinstance(node, History) and node.deep,
        "enter": [brief(action) for action in sequence(enter)],
        "exit": [brief(action) for action in sequence(leave)],
        "max_visits": getattr(node, "max_visits", None),
        "active": active,
    }


def _json_row(chart: Chart, row: Row) -> dict[str, Any]:
    on = row.on
    return {
        "id": row.id,
        "state": on.state,
        "event": trigger(on),
        "guard": None if on.when is None else brief(on.when),
        "do": [brief(action) for action in sequence(on.do)],
        "to": _names(chart, row.targets),
        "at_most": on.at_most,
        "internal": on.internal,
        "label": row_text(row),
    }


def _json(machine: Machine, active: frozenset[int]) -> str:
    """The plain values as text in ASCII without angle brackets: it may stand inside a page."""
    text = json.dumps(as_json(machine, active), indent=2)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"


def _tree(machine: Machine, active: frozenset[int]) -> str:
    """Names after their mark: ○ a state, ◎ a final one, ● an active one, ∥ parallel, H history; ▸ begins."""
    chart = machine.chart
    lines = [printable(machine.name)]
    lines += [f"│   {_sentence(chart, row)}" for row in chart.places[ROOT].rows]
    lines += _branches(chart, chart.places[ROOT], active, "")
    return "\n".join(lines) + "\n"


def _branches(chart: Chart, around: Place, active: frozenset[int], indent: str) -> Iterator[str]:
    for child in inner(around):
        place = chart.places[child]
        last = child == inner(around)[-1]
        branch = ("└" if last else "├") + ("▸" if _begins(chart, place) else "─")
        below = indent + ("    " if last else "│   ")
        stem = "│" if inner(place) else " "
        notes = "".join(f" · {note}" for note in state_notes(place))
        yield f"{indent}{branch} {_mark(place, child in active)} {printable(place.name)}{notes}"
        yield from (f"{below}{stem}   {_sentence(chart, row)}" for row in place.rows)
        yield from _branches(chart, place, active, below)


def _begins(chart: Chart, place: Place) -> bool:
    return any(place.index in above.initial for above in chart.ancestors(place.index))


def _mark(place: Place, active: bool) -> str:
    if place.kind == HISTORY:
        return _history_mark(place)
    if place.kind == FINAL:
        return "◉" if active else "◎"
    if place.kind == PARALLEL:
        return "● ∥" if active else "∥"
    return "●" if active else "○"


_FORMS: Mapping[str, Callable[[Machine, frozenset[int]], str]] = {
    "mermaid": _mermaid,
    "dot": _dot,
    "json": _json,
    "tree": _tree,
}
