"""Machines as text: every state and every row is there once, and no name can mean more than itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings

from moothall.drawing.text import Form, draw, inner, printable, row_text, state_notes, title
from moothall.errors import Refused
from moothall.kernel.chart import FINAL, HISTORY, ROOT
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Answered, Cancelled, Done, Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, On, Parallel, State, anywhere, otherwise
from moothall.kernel.step import In, Scripted
from tests.kernel.machines import Draft, drafts

FORMS: tuple[Form, ...] = ("mermaid", "dot", "json", "tree")
SOME = settings(max_examples=100, deadline=None)


class Replied(Event):
    """What the agents of these machines answer."""


def ask(agent: str) -> Scripted:
    return Scripted(lambda data, event, moment: data, f"ask {agent}")


def unasked(data: Any, event: Any, moment: Any) -> bool:
    return True


def good_enough(data: Any, event: Any) -> bool:
    return True


def keep_notes(data: Any, event: Any) -> Any:
    return data


def count(data: Any, event: Any) -> Any:
    return data


ARTICLE = Machine(
    "article",
    states=[
        State("drafting", enter=ask("writer")),
        State("reviewing", enter=ask("critic"), max_visits=4),
        State("approving", enter=AskPerson("Publish?")),
        Final("published"),
        Final("shelved"),
    ],
    moves=[
        On("drafting", Replied, to="reviewing"),
        On("reviewing", Replied, to="approving", when=good_enough),
        On("reviewing", Replied, to="drafting", do=keep_notes, at_most=3),
        On("reviewing", otherwise, to="approving"),
        On("approving", Answered, to="published", when=good_enough),
        On("approving", "ticked", do=count),
        On("approving", otherwise, to="shelved"),
    ],
)

NESTED = Machine(
    "nested",
    start="working",
    states=[
        State(
            "working",
            [
                State("designing", [State("sketching", enter=ask("architect")), State("judging"), Final("designed")]),
                State(
                    "building",
                    [
                        State("coding"),
                        State("testing", [State("compiling"), State("running"), Final("tested")]),
                        History("resumed", "coding"),
                        Final("built"),
                    ],
                ),
                Final("worked"),
            ],
        ),
        State("pausing", enter=AskPerson("Go on?")),
        Final("shipped"),
        Final("abandoned"),
    ],
    moves=[
        On("sketching", Replied, to="judging"),
        On("judging", Replied, to="designed", when=good_enough),
        On("judging", otherwise, to="sketching", at_most=3),
        On("designing", Done, to="building"),
        On("coding", Replied, to="testing"),
        On("compiling", "compiled", to="running"),
        On("compiling", "broken", to="coding", at_most=5),
        On("running", "passed", to="tested"),
        On("running", "failed", to="coding", at_most=5),
        On("running", "restarted", to="testing"),
        On("testing", Done, to="built"),
        On("building", Done, to="worked"),
        On("building", "redesign", to="designing", at_most=1),
        On("building", "again", to="coding"),
        On("working", Done, to="shipped"),
        On("working", "interrupted", to="pausing"),
        On("working", "logged", do=count),
        On("working", "reset", to="working"),
        On("pausing", Answered, to="resumed"),
        On("pausing", otherwise, to="abandoned"),
        On(anywhere, Cancelled, to="abandoned"),
    ],
)

REGIONS = Machine(
    "regions",
    states=[
        State("idle"),
        Parallel(
            "serving",
            [
                State("talking", [State("listening"), State("answering"), History("spoke", "listening")]),
                State("watching", [State("calm"), State("alarmed", enter=AskPerson("What now?"))]),
                State("counting", [State("few"), State("many"), Final("full")]),
                History("was", "listening", deep=True),
            ],
        ),
        State("broken"),
        Final("closed"),
    ],
    moves=[
        On("idle", "opened", to="serving"),
        On("idle", "reopened", to="was"),
        On("listening", "asked", to="answering"),
        On("answering", Replied, to="listening"),
        On("answering", "panicked", to="alarmed"),
        On("calm", "heard", to="alarmed"),
        On("alarmed", Answered, to="calm"),
        On("alarmed", "burned", to="broken"),
        On("few", "came", to="many", when=In("calm")),
        On("many", ["came", "left"], to="full"),
        On("many", "left", to="few"),
        On("talking", "muted", to="closed"),
        On("serving", "rang", to="answering"),
        On("serving", "closed", to="closed"),
        On("serving", Done, to="closed"),
        On("broken", "fixed", to="was"),
        On("broken", "rushed", to=["answering", "alarmed"]),
    ],
)

NAMES = (
    "a b", 'say "hi"', "a:b;c", "end", "<script>alert(1)</script>", "naïve ☃ 状態", "-->", "%%{init: {}}%%", "{", "}",
    "back\\slash\\", "&amp;", "new\nline", "\x1b[31mred", "\u202eturned", "\ud800", "state", "constructor", "__proto__",
    "[*]", "`x`", "it's", "#35;", "s1", "S1", "direction LR", "1. list", "- x", "end note", "x_start", "root",
    "anywhere", "[[fork]]", "<br/>", "\\n", "n1", "]]>", "classDef active fill:red", "<<fork>>",
)  # fmt: skip

HOSTILE = Machine(
    '<b>"m"',
    states=[*(State(name, enter=ask(name)) for name in NAMES), State('out"er {', [State("in }ner"), Final("fin --")])],
    moves=[
        *(On(one, "go", to=other, when=Scripted(unasked, one)) for one, other in pairwise(NAMES)),
        On(NAMES[-1], "go", to='out"er {'),
        On("in }ner", "*", to="fin --"),
        On('out"er {', "again", to="in }ner"),
        On(anywhere, "stop", to="end"),
        On(anywhere, "tick", do=count),
    ],
)

MACHINES = {"article": ARTICLE, "nested": NESTED, "regions": REGIONS, "hostile": HOSTILE}
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))


def leaves(machine: Machine) -> list[str]:
    return [place.name for place in machine.chart.places if not inner(place) and place.kind != HISTORY]


# What a reader of mermaid reads: one statement per line, labels made of plain letters and numbered characters.

LABEL = r"(?:[\w .,()/\[\]+=?!'·→≤…-]|#\d+;|<br/>)*"
MERMAID = {
    "head": re.compile(r"stateDiagram-v2"),
    "opens": re.compile(rf'state "(?P<label>{LABEL})" as (?P<id>\w+) {{'),
    "state": re.compile(rf'state "(?P<label>{LABEL})" as (?P<id>\w+)'),
    "closes": re.compile(r"}"),
    "beside": re.compile(r"--"),
    "arrow": re.compile(rf"(?P<from>\w+|\[\*\]) --> (?P<to>\w+|\[\*\])(?: : (?P<label>{LABEL}))?"),
    "note": re.compile(rf"(?P<id>\w+) : (?P<label>{LABEL})"),
    "style": re.compile(r"classDef active [\w:#,]+"),
    "marks": re.compile(r"class (?P<id>\w+(?:,\w+)*) active"),
}


def statements(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """The lines of a diagram: what each is, its parts with labels decoded, and the state that it stands in."""
    around = [""]
    for line in map(str.strip, text.splitlines()):
        kind, found = next((kind, hit) for kind, rule in MERMAID.items() if (hit := rule.fullmatch(line)))
        parts = {name: part for name, part in found.groupdict().items() if part is not None}
        parts |= {"label": decoded(parts["label"])} if "label" in parts else {}
        yield kind, parts, around[-1]
        if kind == "opens":
            around.append(parts["id"])
        elif kind == "closes":
            around.pop()
    assert around == [""]


def decoded(label: str) -> str:
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label.replace("<br/>", "\n"))


def check_mermaid(machine: Machine, text: str) -> None:
    chart = machine.chart
    found = list(statements(text))
    places = [place for place in chart.places if place.index != ROOT or place.rows]
    made = [parts for kind, parts, _ in found if kind in ("state", "opens")]
    ids = {place.index: parts["id"] for place, parts in zip(places, made, strict=True)}
    assert len(set(ids.values())) == len(ids)
    arrows: Counter[tuple[str, str, str]] = Counter()
    boxes = {ids[place.index]: [title(place) if place.index else "anywhere", *state_notes(place)] for place in places}
    for row in chart.rows:
        near = [target for target in row.targets if row.source == ROOT or not related(machine, row.source, target)]
        arrows.update((ids[row.source], ids[target], row_text(row)) for target in near)
        if not near:
            names = ", ".join(printable(chart.places[target].name) for target in row.targets)
            boxes[ids[row.source]].append(f"{row_text(row)} → {names}" if names else row_text(row))
    assert arrows == Counter(
        (parts["from"], parts["to"], line)
        for kind, parts, _ in found
        for line in parts.get("label", "").splitlines()
        if kind == "arrow"
    )
    lines = {parts["id"]: parts["label"].split(" · ") for parts in made}
    for kind, parts, _ in found:
        if kind == "note":
            lines[parts["id"]].append(parts["label"])
    assert lines == boxes
    ends = [parts["from"] for kind, parts, _ in found if kind == "arrow" and parts["to"] == "[*]"]
    assert ends == [ids[place.index] for place in places if place.kind == FINAL]
    check_mermaid_places(found)


def related(machine: Machine, one: int, other: int) -> bool:
    low, high = sorted((one, other))
    return low < high < machine.chart.places[low].end


def check_mermaid_places(found: list[tuple[str, dict[str, str], str]]) -> None:
    """Mermaid moves a state to where it is named last, unless that is the top: so nothing is named elsewhere."""
    home = {parts["id"]: around for kind, parts, around in found if kind in ("state", "opens")}
    made: set[str] = set()
    for kind, parts, around in found:
        made |= {parts["id"]} if kind in ("state", "opens") else set()
        for end in (parts.get("from"), parts.get("to")):
            if end is not None and end != "[*]" and around and end in made:
                assert home[end] == around


# What a reader of Graphviz reads: quoted strings, braces, nodes, arrows, attributes.

QUOTED = r'"(?:[^"\\]|\\.)*"'
DOT = {
    "head": re.compile(rf"digraph {QUOTED} {{"),
    "opens": re.compile(r"subgraph cluster(?P<id>\d+) {"),
    "closes": re.compile(r"}"),
    "look": re.compile(rf"(?:node|edge) \[(?:\w+=(?:{QUOTED}|[\w.]+)(?:, )?)+\];"),
    "node": re.compile(rf"(?P<id>[a-z]+\d+) \[(?:\w+=(?:{QUOTED}|[\w.]+)(?:, )?)+\];"),
    "arrow": re.compile(rf"(?P<from>\w+) -> (?P<to>\w+)(?: \[(?P<look>(?:\w+=(?:{QUOTED}|\w+)(?:, )?)+)\])?;"),
    "set": re.compile(rf"(?:\w+=(?:{QUOTED}|[\w.]+);\s?)+"),
}


def check_dot(machine: Machine, text: str) -> None:
    chart = machine.chart
    found = []
    for line in map(str.strip, text.splitlines()):
        kind, hit = next((kind, hit) for kind, rule in DOT.items() if (hit := rule.fullmatch(line)))
        found.append((kind, hit.groupdict()))
    kinds = Counter(kind for kind, _ in found)
    assert kinds["closes"] == kinds["head"] + kinds["opens"]
    nodes = Counter(parts["id"] for kind, parts in found if kind == "node")
    assert set(nodes.values()) == {1}
    leaf = [place.index for place in chart.places if not inner(place) or (place.index == ROOT and place.rows)]
    assert {id for id in nodes if id.startswith("n")} == {f"n{index}" for index in leaf}
    clusters = [int(parts["id"]) for kind, parts in found if kind == "opens"]
    assert clusters == [place.index for place in chart.places if inner(place) and place.index != ROOT]
    arrows = [parts for kind, parts in found if kind == "arrow"]
    assert {parts[end] for parts in arrows for end in ("from", "to")} <= set(nodes)
    ends = sum(len(place.initial) + len(place.default) for place in chart.places)
    assert len(arrows) == ends + sum(len(row.targets) for row in chart.rows)


@every_machine
def test_mermaid_has_every_state_and_every_row_once(machine: Machine) -> None:
    check_mermaid(machine, draw(machine, "mermaid", active=leaves(machine)))


@every_machine
def test_dot_has_every_state_and_every_row_once(machine: Machine) -> None:
    check_dot(machine, draw(machine, "dot", active=leaves(machine)))


@every_machine
def test_the_tree_has_a_line_for_every_state_and_every_row(machine: Machine) -> None:
    lines = draw(machine, "tree").splitlines()
    assert len(lines) == len(machine.chart.places) + len(machine.chart.rows)
    for row in machine.chart.rows:
        assert any(line.strip("│ ").startswith(row_text(row)) for line in lines)


@every_machine
def test_the_json_says_what_the_table_says(machine: Machine) -> None:
    drawn = json.loads(draw(machine, "json"))
    chart = machine.chart
    assert drawn["machine"] == machine.name
    assert drawn["start"] == [chart.places[index].name for index in chart.places[ROOT].initial]
    assert [node["name"] for node in drawn["nodes"]] == [place.name for place in chart.places[1:]]
    assert [node["kind"] for node in drawn["nodes"]] == [place.kind for place in chart.places[1:]]
    assert [(row["id"], row["label"]) for row in drawn["rows"]] == [(row.id, row_text(row)) for row in chart.rows]
    parents = [None if place.parent == ROOT else chart.places[place.parent].name for place in chart.places[1:]]
    assert [node["parent"] for node in drawn["nodes"]] == parents
    assert len({tuple(node) for node in drawn["nodes"]}) == 1
    assert len({tuple(row) for row in drawn["rows"]}) == 1


@SOME
@given(drafts())
def test_any_machine_can_be_drawn_in_every_form(draft: Draft) -> None:
    machine = draft.machine()
    check_mermaid(machine, draw(machine, "mermaid"))
    check_dot(machine, draw(machine, "dot"))
    assert len(json.loads(draw(machine, "json"))["rows"]) == len(machine.moves)
    assert len(draw(machine, "tree").splitlines()) == len(machine.chart.places) + len(machine.chart.rows)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@every_machine
def test_graphviz_reads_it_without_a_warning(machine: Machine) -> None:
    text = draw(machine, "dot", active=leaves(machine))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.parametrize("form", FORMS)
def test_a_hostile_name_is_only_a_name(form: Form) -> None:
    text = draw(HOSTILE, form, active=leaves(HOSTILE))
    text.encode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    if form in ("mermaid", "json"):
        assert not re.search(r"<(?!br/>)", text)


def test_mermaid_ids_are_names_where_names_are_plain_words() -> None:
    names = {parts["label"]: parts["id"] for kind, parts, _ in statements(draw(HOSTILE, "mermaid")) if kind == "state"}
    assert names["S1"] == "S1"
    assert names["s1"] == "s1"
    assert names["a b"] == "s1x"
    assert names["n1"] == "n1"
    reserved = ("end", "state", "constructor", "x_start", "root", "direction LR", "__proto__")
    assert all(re.fullmatch(r"s\d+x*", names[name]) for name in reserved)


ARTICLE_MERMAID = """\
stateDiagram-v2
    [*] --> drafting
    state "drafting" as drafting
    drafting : ask writer
    state "reviewing" as reviewing
    reviewing : ask critic
    reviewing : ≤4 visits
    state "approving" as approving
    approving : ask.person
    approving : ticked / count
    state "published" as published
    published --> [*]
    state "shelved" as shelved
    shelved --> [*]
    drafting --> reviewing : Replied
    reviewing --> approving : Replied [good_enough]<br/>otherwise
    reviewing --> drafting : Replied / keep_notes (≤3)
    approving --> published : Answered [good_enough]
    approving --> shelved : otherwise
    classDef active fill:#fde68a,stroke:#b45309,color:#1f2937
    class reviewing active
"""

ARTICLE_TREE = """\
article
├▸ ○ drafting · ask writer
│       Replied → reviewing
├─ ● reviewing · ask critic · ≤4 visits
│       Replied [good_enough] → approving
│       Replied / keep_notes (≤3) → drafting
│       otherwise → approving
├─ ○ approving · ask.person
│       Answered [good_enough] → published
│       ticked / count
│       otherwise → shelved
├─ ◎ published
└─ ◎ shelved
"""

REGIONS_TREE = """\
regions
├▸ ○ idle
│       opened → serving
│       reopened → was
├─ ● ∥ serving
│   │   rang → answering
│   │   closed → closed
│   │   Done → closed
│   ├─ ○ talking
│   │   │   muted → closed
│   │   ├▸ ○ listening
│   │   │       asked → answering
│   │   ├─ ○ answering
│   │   │       Replied → listening
│   │   │       panicked → alarmed
│   │   └─ H spoke
│   ├─ ● watching
│   │   ├▸ ● calm
│   │   │       heard → alarmed
│   │   └─ ○ alarmed · ask.person
│   │           Answered → calm
│   │           burned → broken
│   ├─ ● counting
│   │   ├▸ ○ few
│   │   │       came [In(calm)] → many
│   │   ├─ ○ many
│   │   │       came, left → full
│   │   │       left → few
│   │   └─ ◉ full
│   └─ H* was
├─ ○ broken
│       fixed → was
│       rushed → answering, alarmed
└─ ◎ closed
"""


def test_mermaid_reads_like_the_table() -> None:
    assert draw(ARTICLE, "mermaid", active=["reviewing"]) == ARTICLE_MERMAID


def test_the_tree_reads_like_the_table() -> None:
    assert draw(ARTICLE, "tree", active=["reviewing"]) == ARTICLE_TREE
    assert draw(REGIONS, "tree", active=["calm", "full"]) == REGIONS_TREE


def test_rows_that_mermaid_has_no_arrow_for_stand_in_their_box() -> None:
    text = draw(NESTED, "mermaid")
    assert 'state "building · again → coding" as building {' in text
    assert 'state "working · logged / count" as working {' in text
    assert "running : restarted → testing" in text
    assert "working --> working : reset" in text


def test_regions_stand_beside_each_other_and_histories_say_so() -> None:
    found = list(statements(draw(REGIONS, "mermaid")))
    assert [around for kind, _, around in found if kind == "beside"] == ["serving"] * 3
    assert {"H spoke", "H* was"} <= {parts["label"] for kind, parts, _ in found if kind == "state"}
    assert any(parts.items() >= {"from": "was", "to": "listening"}.items() for _, parts, _ in found)


def test_the_active_states_and_all_around_them_are_marked() -> None:
    drawn = json.loads(draw(NESTED, "json", active=["running"]))
    assert [node["name"] for node in drawn["nodes"] if node["active"]] == ["working", "building", "testing", "running"]
    assert draw(NESTED, "mermaid", active=["running"]).endswith("    class running active\n")
    assert draw(NESTED, "dot", active=["running"]).count("penwidth=2") == 4
    assert "classDef" not in draw(NESTED, "mermaid")


def test_a_state_that_is_not_there_cannot_be_marked() -> None:
    with pytest.raises(Refused, match="machine article has no state 'revieving'"):
        draw(ARTICLE, "tree", active=["revieving"])


def test_an_unknown_form_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(Refused, match="mermaid, dot, json, tree, not as 'png'"):
        draw(ARTICLE, "png")  # type: ignore[arg-type]


class Prompting:
    """An action with a label as `ask` has it: who, then the whole prompt."""

    emits: ClassVar = {"ask.agent": 1}
    label = "ask writer -> Verdict: Write about {topic}, at length: " + "and more " * 20

    def __call__(self, data: Any, event: Any) -> Any:
        return data


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (count, "count"),
        (ask("writer"), "ask writer"),
        (Prompting(), "ask writer -> Verdict"),
        (Scripted(unasked, "question: Publish?", {"ask.person": 1}), "question: Publish?"),
        (Scripted(unasked, "ready ? 1 : 0"), "ready ? 1 : 0"),
        (Scripted(unasked, "x" * 100), "x" * 59 + "…"),
        (AskPerson("Publish?"), "ask.person"),
        (lambda data, event: data, "data"),
        (lambda data, event: lambda: data, "lambda: data"),
        ((lambda data, event: data + 1, lambda data, event: data + 2)[1], "data + 2"),
        (lambda data, event: "a text that is much too long to be drawn in a picture", "λ"),
        (eval("lambda data, event: data"), "λ"),
        (partial(keep_notes), "keep_notes"),
    ],
)
def test_an_action_is_shown_by_a_short_name(action: Any, shown: str) -> None:
    [place] = Machine("one", states=[State("only", enter=action)], moves=[]).chart.places[1:]
    assert state_notes(place) == [shown]
