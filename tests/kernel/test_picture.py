"""Pictures of machines: nothing is missing, nothing overlaps, and no name can mean more than itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from moothall.drawing.layout import Arrow, Box, Label, Layout, layout
from moothall.drawing.svg import picture
from moothall.drawing.text import printable, row_text
from moothall.errors import Refused
from moothall.kernel.chart import ROOT
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, On, Parallel, State, anywhere
from tests.kernel.machines import Draft, drafts
from tests.kernel.test_draw import ARTICLE, HOSTILE, MACHINES, NESTED, REGIONS, count

SVG = "{http://www.w3.org/2000/svg}"
SOME = settings(max_examples=150, deadline=None)

STAGES = tuple(f"stage{number}" for number in range(18))
PIPELINE = Machine(
    "pipeline",
    states=[*map(State, STAGES), Final("done"), Final("failed")],
    moves=[
        *(On(one, "went_on", to=other) for one, other in pairwise((*STAGES, "done"))),
        *(On(stage, "failed", to="failed") for stage in STAGES[::3]),
        On("stage7", "went_back", to="stage4", at_most=3),
        On("stage12", "went_back", to="stage3", at_most=2),
        On("stage9", "tried_again", to="stage9", at_most=5),
    ],
)

KNOTS = Machine(
    "knots",
    start=["a2", "b2"],
    states=[
        State("booting"),
        Parallel(
            "both",
            [
                State("left", [State("a1"), State("a2")], start="a2"),
                State("right", [State("b1"), State("b2"), Parallel("pair", [State("p", [State("x")]), State("q")])]),
                State("plain"),
                History("before", ["a1", "b1"], deep=True),
            ],
        ),
        State("box", [State("middle", [State("first"), State("deep")]), State("side")], start="deep"),
        State("lonely"),
        State("lonelier"),
        Final("over"),
    ],
    moves=[
        On("booting", "went", to="both"),
        On("both", "entered", to="b2"),
        On("both", "repeated", to="both"),
        On("left", "left", to="box"),
        On("plain", "hopped", to="a1"),
        On("plain", "stayed", to="plain", at_most=4),
        On("a1", "restarted_everything_in_this_region_at_once", to="left", do=[count, count, count]),
        On("x", "jumped", to="deep"),
        On("deep", "rose", to="x"),
        On("q", "crossed", to="x"),
        On("box", "split", to=["a1", "b1"]),
        On("box", "looped", to="box"),
        On("box", "ticked", do=count),
        On("middle", "moved", to="side"),
        On("side", "remembered", to="before"),
        On("side", "ended", to="over"),
        On(anywhere, "run.cancelled", to="over"),
        On(anywhere, "ticked", do=count),
    ],
)

PICTURES = MACHINES | {"pipeline": PIPELINE, "knots": KNOTS}
every_machine = pytest.mark.parametrize("machine", PICTURES.values(), ids=list(PICTURES))


def overlap(one: Box | Label, other: Box | Label) -> bool:
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across > 0.1 and down > 0.1


def contains(outer: Box, inside: Box | Label) -> bool:
    across = outer.x <= inside.x and inside.x + inside.width <= outer.x + outer.width
    return across and outer.y <= inside.y and inside.y + inside.height <= outer.y + outer.height


def boxes_by_state(found: Layout) -> dict[int, Box]:
    boxes = {box.state: box for box in found.boxes}
    assert len(boxes) == len(found.boxes)
    return boxes


def check_geometry(machine: Machine) -> None:
    found = layout(machine)
    boxes = boxes_by_state(found)
    assert boxes.keys() >= {place.index for place in machine.chart.places[1:]}
    for box in found.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= found.width
        assert box.y + box.height <= found.height
        assert box.parent == ROOT or contains(boxes[box.parent], box)
    for one, other in combinations(found.boxes, 2):
        assert one.parent != other.parent or not overlap(one, other)
    check_labels(machine, found)
    for arrow in found.arrows:
        check_arrow(machine, arrow, boxes)


def check_labels(machine: Machine, found: Layout) -> None:
    labels = [label for arrow in found.arrows for label in arrow.labels]
    expected = [(row.id, row_text(row)) for row in machine.chart.rows for _ in dict.fromkeys(row.targets)]
    assert Counter(label.row for label in labels) == Counter(text for _, text in expected)
    assert Counter(id for arrow in found.arrows for id in arrow.rows) == Counter(id for id, _ in expected)
    nested = {box.parent for box in found.boxes}
    for label in labels:
        for box in found.boxes:
            assert not overlap(label, box) or (box.state in nested and contains(box, label))
    for one, other in combinations(labels, 2):
        assert not overlap(one, other)


def check_arrow(machine: Machine, arrow: Arrow, boxes: dict[int, Box]) -> None:
    assert on_border(arrow.points[0], boxes[arrow.source])
    assert on_border(arrow.points[-1], boxes[arrow.target])
    nested = {box.parent for box in boxes.values()}
    for x, y in () if arrow.source == arrow.target else passed(arrow):
        for box in boxes.values():
            if box.state not in nested and box.state not in (arrow.source, arrow.target):
                assert not (box.x + 1 < x < box.x + box.width - 1 and box.y + 1 < y < box.y + box.height - 1)


def on_border(point: tuple[float, float], box: Box) -> bool:
    x, y = point
    beside = min(abs(x - box.x), abs(x - box.x - box.width)) < 0.1 and box.y <= y <= box.y + box.height
    return beside or (min(abs(y - box.y), abs(y - box.y - box.height)) < 0.1 and box.x <= x <= box.x + box.width)


def passed(arrow: Arrow) -> Iterator[tuple[float, float]]:
    """Points along the curves of an arrow, which are upright at their ends."""
    for (x, y), (to_x, to_y) in pairwise(arrow.points):
        half = (y + to_y) / 2
        for step in range(21):
            t = step / 20
            a, b, c, d = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            yield (a + b) * x + (c + d) * to_x, a * y + (b + c) * half + d * to_y


@every_machine
def test_nothing_overlaps_and_nothing_is_missing(machine: Machine) -> None:
    check_geometry(machine)


@SOME
@given(drafts())
def test_nothing_overlaps_in_any_machine(draft: Draft) -> None:
    machine = draft.machine()
    check_geometry(machine)
    ElementTree.fromstring(picture(machine))


@every_machine
def test_a_picture_is_a_document_that_needs_nothing_else(machine: Machine) -> None:
    root = ElementTree.fromstring(picture(machine))
    assert root.tag == f"{SVG}svg"
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "style", "g", "rect", "circle", "path", "text", "tspan",
    }  # fmt: skip
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or "href" in name or name == "id"}
    [style] = root.iter(f"{SVG}style")
    assert style.text is not None
    assert "prefers-color-scheme:dark" in style.text
    assert "url(" not in style.text
    assert "import" not in style.text


@every_machine
def test_every_state_and_every_row_can_be_read_in_full(machine: Machine) -> None:
    root = ElementTree.fromstring(picture(machine))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    first_lines = {text.split("\n")[0] for text in titles}
    assert {printable(place.name) for place in machine.chart.places[1:]} <= first_lines
    assert {row_text(row) for row in machine.chart.rows if row.targets} <= first_lines


def test_a_hostile_name_is_only_a_name() -> None:
    text = picture(HOSTILE)
    assert "<script" not in text
    assert "<b>" not in text
    assert "]]>" not in text
    assert not set(text) & set("\x1b\u202e\ud800\x00")
    text.encode()


def test_the_same_machine_gives_the_same_picture() -> None:
    for machine in PICTURES.values():
        twin = Machine(machine.name, states=machine.states, moves=machine.moves, start=machine.start)
        assert picture(machine) == picture(twin)


def test_a_pipeline_runs_straight_down_and_its_retries_run_up_beside_it() -> None:
    found = layout(PIPELINE)
    boxes = {box.name: box for box in found.boxes if box.state > ROOT}
    middles = {round(boxes[stage].x + boxes[stage].width / 2, 3) for stage in (*STAGES, "done")}
    assert len(middles) == 1
    assert [boxes[one].y < boxes[other].y for one, other in pairwise((*STAGES, "done"))] == [True] * len(STAGES)
    back = next(arrow for arrow in found.arrows if arrow.rows == ("stage12/2",))
    assert back.points[0][1] > back.points[-1][1]
    assert max(x for x, _ in back.points) > max(boxes[stage].x + boxes[stage].width for stage in STAGES)


def test_arrows_to_the_same_state_share_their_way() -> None:
    found = layout(PIPELINE)
    target = PIPELINE.chart.by_name["failed"]
    arrows = [arrow for arrow in found.arrows if arrow.target == target]
    assert len(arrows) == 6
    assert len({arrow.points[-1] for arrow in arrows}) == 1


def test_rows_between_the_same_states_are_one_arrow_with_a_label_each() -> None:
    reviewing, approving = (ARTICLE.chart.by_name[name] for name in ("reviewing", "approving"))
    [arrow] = [arrow for arrow in layout(ARTICLE).arrows if (arrow.source, arrow.target) == (reviewing, approving)]
    assert arrow.rows == ("reviewing/0", "reviewing/2")
    assert [label.row for label in arrow.labels] == ["Replied [good_enough]", "otherwise"]


def test_regions_stand_beside_each_other_with_a_line_between_them() -> None:
    found = layout(REGIONS)
    boxes = {box.name: box for box in found.boxes if box.state > ROOT}
    regions = [boxes[name] for name in ("talking", "watching", "counting", "was")]
    assert [one.x + one.width < other.x for one, other in pairwise(regions)] == [True] * 3
    assert len({(region.y, region.height) for region in regions[:3]}) == 1
    lines = [top[0] for top, _ in found.dividers]
    assert [one.x + one.width < x < other.x for x, (one, other) in zip(lines, pairwise(regions), strict=True)] == [
        True, True, True,
    ]  # fmt: skip


def marked(machine: Machine, text: str) -> set[str]:
    groups = (group for group in ElementTree.fromstring(text).iter(f"{SVG}g") if "active" in group.get("class", ""))
    return {(group.findtext(f"{SVG}title") or "").split("\n")[0] for group in groups}


def test_the_active_states_and_all_around_them_are_marked() -> None:
    assert marked(NESTED, picture(NESTED, active=["running"])) == {"running", "testing", "building", "working"}
    assert marked(NESTED, picture(NESTED)) == set()
    with pytest.raises(Refused, match="machine nested has no state 'jogging'"):
        picture(NESTED, active=["jogging"])


def test_visits_are_counted_in_badges() -> None:
    root = ElementTree.fromstring(picture(ARTICLE, visited={"drafting": 3, "reviewing": 0, "gone": 7}))
    badges = [group for group in root.iter(f"{SVG}g") if group.get("class") == "badge"]
    assert [badge.findtext(f"{SVG}text") for badge in badges] == ["×3"]


def test_a_long_label_is_broken_into_lines_and_kept_in_full_in_its_title() -> None:
    label = next(label for arrow in layout(KNOTS).arrows for label in arrow.labels if "restarted" in label.row)
    assert label.lines == (("restarted_everything_in_this_regi…", ""), ("", "/ count, count, count"))
    assert label.row == "restarted_everything_in_this_region_at_once / count, count, count"
