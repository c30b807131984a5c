"""What the JavaScript of a document finds again later: markup as trees of nodes, and the functions it defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moothall.interop.scxml import read
from moothall.interop.scxml_dom import text_of, trees_in
from moothall.interop.scxml_session import Session, session
from moothall.kernel.events import Named
from moothall.kernel.simulate import Evaluate
from moothall.scripting.children import is_installed
from moothall.scripting.javascript import JavaScript

NAMESPACE = "http://www.w3.org/2005/07/scxml"
SHELF = '<shelf xmlns="urn:shelf"><jar of="rice">half</jar><jar of="salt"/></shelf>'
FILES = {"shelf.xml": SHELF, "words.txt": "two  words"}

pytestmark = pytest.mark.skipif(not is_installed(), reason="no JavaScript engine is installed")


@pytest.fixture(scope="module")
def evaluate() -> Iterator[Evaluate]:
    with JavaScript() as engine:
        yield engine


def run(inside: str, evaluate: Evaluate) -> Session:
    text = f'<scxml xmlns="{NAMESPACE}" version="1.0" datamodel="ecmascript">{inside}</scxml>'
    return session(read(text, file="d.scxml", fetch=FILES.__getitem__), evaluate=evaluate)


def said(running: Session) -> list[Any]:
    """What the document logged, in order."""
    return [append.message["value"] for step in running.steps for append in step.appends]


def logging(*expressions: str) -> str:
    return "".join(f'<log expr="{expression}"/>' for expression in expressions)


# markup

READ = "{0}.getElementsByTagName('jar').length", "{0}.getElementsByTagName('jar')[0].getAttribute('of')"


def reads(where: str) -> str:
    return logging(*(expression.format(where) for expression in READ))


@pytest.mark.parametrize(
    "inside",
    [
        f'<datamodel><data id="x">{SHELF}</data></datamodel><state id="a"><onentry>{reads("x")}</onentry></state>',
        f"""<datamodel><data id="x"/></datamodel>
        <state id="a"><onentry><assign location="x">{SHELF}</assign>{reads("x")}</onentry></state>""",
        f"""<state id="a"><onentry><send event="e"><content>{SHELF}</content></send></onentry>
        <transition event="e">{reads("_event.data")}</transition></state>""",
        f"""<state id="a"><final id="f"><donedata><content>{SHELF}</content></donedata></final>
        <transition event="done.state.a">{reads("_event.data")}</transition></state>""",
        f"""<datamodel><data id="x" src="shelf.xml"/></datamodel>
        <state id="a"><onentry>{reads("x")}</onentry></state>""",
    ],
    ids=["data", "assign", "a message", "the data of a final state", "a file"],
)
def test_a_document_is_a_tree_of_nodes_wherever_it_stands(inside: str, evaluate: Evaluate) -> None:
    assert said(run(inside, evaluate)) == [2, "rice"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("x.documentElement.tagName", "shelf"),
        ("x.documentElement.namespaceURI", "urn:shelf"),
        ("x.documentElement.textContent", "half"),
        ("x.documentElement.firstChild.firstChild.nodeValue", "half"),
        ("x.documentElement.children[1].childNodes.length", 0),
        ("x.documentElement.children[1].getAttribute('none')", None),
        ("x.documentElement.children[1].hasAttribute('toString')", False),
        ("x.getElementsByTagName('*').length", 3),
        ("x.documentElement.children[0].parentNode === x.documentElement", True),
        ("x.getElementsByTagName('jar')[1]", {"#markup": '<jar xmlns="urn:shelf" of="salt"/>'}),
        ("x.getElementsByTagName('jar')[0].firstChild", "half"),
    ],
)
def test_a_tree_can_be_read(expression: str, value: Any, evaluate: Evaluate) -> None:
    inside = f'<datamodel><data id="x">{SHELF}</data></datamodel><state id="a"><onentry>{logging(expression)}</onentry>'
    assert said(run(f"{inside}</state>", evaluate)) == [value]


def test_a_tree_and_its_parts_can_be_handed_on(evaluate: Evaluate) -> None:
    inside = f"""
    <datamodel><data id="x">{SHELF}</data><data id="y"/></datamodel>
    <state id="a">
      <onentry><script>y = {{ jars: [x.getElementsByTagName('jar')[0]], all: x }};</script>
        {logging("y.jars[0].documentElement.textContent")}
        <send event="e"><param name="k" expr="y"/></send></onentry>
      <transition event="e">{reads("_event.data.k.all")}</transition>
    </state>"""
    assert said(run(inside, evaluate)) == ["half", 2, "rice"]


def test_a_tree_reaches_an_invoked_session(evaluate: Evaluate) -> None:
    child = """<datamodel><data id="x"/></datamodel><state id="c"><onentry><send event="found" target="#_parent">
      <param name="many" expr="x.getElementsByTagName('jar').length"/></send></onentry></state>"""
    inside = f"""
    <datamodel><data id="x">{SHELF}</data></datamodel>
    <state id="a"><invoke namelist="x"><content><scxml version="1.0">{child}</scxml></content></invoke>
      <transition event="found">{logging("_event.data.many")}</transition></state>"""
    assert said(run(inside, evaluate)) == [2]


def test_a_text_from_a_file_that_is_no_markup_stays_a_text(evaluate: Evaluate) -> None:
    inside = '<datamodel><data id="x" src="words.txt"/></datamodel><state id="a"/>'
    assert run(inside, evaluate).snapshot.data["x"] == "two words"


@pytest.mark.parametrize(
    "value", [{"#markup": "no markup"}, {"#markup": 1}, {"#markup": "<a/>", "more": 1}, "<a/>", ["<a/>"]]
)
def test_only_what_is_markup_is_taken_for_it(value: Any) -> None:
    assert list(trees_in(value)) == []
    assert text_of("<a/>") is None


# functions


def test_a_function_that_content_defined_is_known_from_then_on(evaluate: Evaluate) -> None:
    inside = f"""
    <state id="a">
      <onentry><script>function twice(n) {{ return 2 * n; }}</script>{logging("twice(1)")}</onentry>
      <transition event="again">{logging("twice(2)")}</transition>
      <transition event="change"><script>twice = function (n) {{ return 'two ' + n; }};</script></transition>
    </state>"""
    running = run(inside, evaluate)
    for event in ("again", "change", "again"):
        running.send(Named(event))
    assert said(running) == [2, 4, "two 2"]


def test_a_variable_that_was_a_function_can_be_a_value_again(evaluate: Evaluate) -> None:
    inside = f"""
    <datamodel><data id="x" expr="1"/></datamodel>
    <state id="a">
      <onentry><script>x = function () {{ return 7; }}; y = x;</script>{logging("x() + y()")}
        <assign location="x" expr="5"/><script>y = 6;</script>{logging("x + y")}</onentry>
    </state>"""
    assert said(run(inside, evaluate)) == [14, 11]


def test_functions_of_the_documents_own_script_take_no_room_in_the_data(evaluate: Evaluate) -> None:
    inside = f"""
    <datamodel><data id="thrice" expr="function (n) {{ return 3 * n; }}"/></datamodel>
    <script>function twice(n) {{ return 2 * n; }}</script>
    <state id="a"><onentry><script>x = twice(4) + thrice(4);</script>{logging("x")}</onentry></state>"""
    running = run(inside, evaluate)
    assert (said(running), "_functions" in running.snapshot.data) == ([20], False)
