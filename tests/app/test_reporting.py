"""Reports tell a run in four formats, and nothing that a journal holds can be more than text in them."""

import csv
import json
import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest

from moothall import Final, Machine, On, Replied, Reply, State, arun, ask
from moothall.app.config.access import opened
from moothall.app.report.report import FORMATS, report
from moothall.app.report.tables import cell, plain
from moothall.stores.sqlite import SqliteStore
from tests.app.journey import JOURNEY, RUN, as_far_as_the_question, to_the_end

pytestmark = pytest.mark.anyio
MARKUP = "</td></dd></details></pre><script>alert(1)</script><img src=x onerror=alert(1)>"
EVIL = MARKUP + " \" ' & \u202etxet\u2066 \x1b[31m \x00"
LINES = "first\n# second\n| third |\n```\n=1+1"


class Seen(HTMLParser):
    """The tags of a page and where they are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes something else"


async def told(text: str, format: str) -> str:
    """The report of a run in which somebody says this."""

    async def clerk(prompt: str) -> Reply:
        return Reply(text, usage={"tokens": 3})

    machine = Machine(
        "told",
        states=[State("writing", enter=ask(clerk, "Say it.")), Final("written")],
        moves=[On("writing", Replied, to="written")],
    )
    await arun(machine, run_id="one")
    with opened(None) as store:
        return await report(store, "one", format)


# a page


@pytest.mark.parametrize("text", [EVIL, LINES, EVIL * 40, "x" * 300_000], ids=["evil", "lines", "much evil", "huge"])
async def test_a_page_is_whole_and_has_no_script_whatever_was_said(text: str) -> None:
    page = await told(text, "html")
    seen = Seen(page)
    assert seen.open == []
    assert not {"script", "img", "link", "iframe", "object", "a"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "href")]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", page)
    assert len(page) < 200_000


async def test_a_page_says_how_much_of_a_huge_text_it_leaves_out() -> None:
    assert "… and 280000 more characters; `moot export` has them" in await told("x" * 300_000, "html")


async def test_a_page_needs_nothing_from_outside() -> None:
    page = await told("hello", "html")
    assert not re.search(r"@import|url\(|(src|href)=", page)
    assert page.startswith("<!doctype html>")


async def test_a_page_has_the_figures_the_charts_and_the_talk_of_a_whole_journey(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    page = await report(store, RUN, "html")
    assert Seen(page).open == []
    assert "<b>94.0</b>seconds" in page
    assert "<b>1 min 0 s</b>waiting for people" in page
    assert re.search(r"<td>guiding</td>(<td class=\"number\">[^<]*</td>){7}<td class=\"number\">10</td>", page)
    assert "Without a price: 3 of 6 calls. Without their tokens: 0." in page
    assert "Of all this children spent usd ≥ 0.03, tokens 40, calls 3." in page
    for caption in ("Time per state", "Tokens per state", "Who was at work, and who was waited for"):
        assert f"<figcaption>{caption}</figcaption><svg" in page
    assert "guide → the machine" in page
    assert 'class="moot"' in page, "the picture of the machine"


async def test_a_page_of_a_live_run_has_its_open_visit(store: SqliteStore) -> None:
    await as_far_as_the_question(store)
    page = await report(store, RUN, "html")
    assert "<td>asking (open)</td>" in page
    assert "<td>reading</td>" in page
    assert 'badge waiting">waiting' in page


async def test_a_page_says_that_its_machine_was_changed(store: SqliteStore) -> None:
    await as_far_as_the_question(store)
    assert "The machine was changed since" not in await report(store, RUN, "html")
    await store.forget(RUN)
    await as_far_as_the_question(store, Machine("journey", states=JOURNEY.states, moves=JOURNEY.moves[:-1]))
    assert "The machine was changed since" in await report(store, RUN, "html")


# Markdown


@pytest.mark.parametrize("text", [EVIL, LINES, "![x](http://a.b) www.c.d <http://e.f> @ada"])
async def test_in_markdown_what_was_said_stays_one_line_of_text(text: str) -> None:
    said = await told(text, "md")
    (line,) = [line for line in said.splitlines() if "(reply)" in line]
    assert line.startswith("**clerk → the machine** (reply): ")
    body = line.partition("(reply): ")[2]
    assert not re.search(r"<|>|(?<!\\)[`*_\[\]|]|(?<!\\)://|www\.|(?<!\\)@", body)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", said)


async def test_markdown_has_the_figures_of_a_whole_journey(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    said = (await report(store, RUN, "md")).splitlines()
    assert said[0] == "# journey: done"
    assert "| drafting | 1 | 20 s | 20 s | 20 s | 20 s |  | 2 | 107 | ≥ 0.01 |" in said
    assert "| guiding | 1 | 9.0 s | 9.0 s | 9.0 s | 9.0 s |  | 2 | 10 | unknown |" in said
    assert "slowest: asking (1 min 3 s); most tokens: drafting (107)" in said
    assert "In all: usd ≥ 0.06, tokens 167, calls 6." in said
    assert "**ada → the machine** (answer): true" in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain words", "plain words"), ("a*b", r"a\*b"), ("a|b", r"a\|b"), ("<b>", "&lt;b&gt;"), ("a\nb", "a b")],
)
def test_markdown_is_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


# CSV


async def test_a_table_has_a_row_for_each_entry(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    rows = list(csv.DictReader(StringIO(await report(store, RUN, "csv"))))
    assert [row["entry"] for row in rows] == [str(seq) for seq in range(len(await store.entries(RUN)))]
    faltered = next(row for row in rows if row["event"] == "effect.faltered")
    assert [faltered[name] for name in ("seconds", "who", "state", "calls", "tokens", "usd")] == [
        "5.0",
        "writer",
        "drafting",
        "1",
        "7",
        "",
    ]
    assert rows[-1]["status"] == "done"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\t=1", "' =1"),
        ("\n=1", "' =1"),
        ("\uff1d1", "'\uff1d1"),
        ("a=1", "a=1"),
        ("", ""),
        ("x" * 40_000, "x" * 32_000 + "…"),
    ],
)
def test_no_cell_of_a_table_is_taken_for_a_formula(text: str, shown: str) -> None:
    assert cell(text) == shown


@pytest.mark.parametrize("text", [EVIL, LINES, '=HYPERLINK("http://x","y")', 'a","=1'])
async def test_what_was_said_stays_in_its_cell(text: str) -> None:
    rows = list(csv.reader(StringIO(await told(text, "csv"))))
    assert {len(row) for row in rows} == {15}
    assert not [one for row in rows for one in row if re.match(r"\s*[=+\-@]", one)]


# JSON


async def test_json_has_all_projections(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    found = json.loads(await report(store, RUN, "json"))
    assert set(found) == {"summary", "metrics", "costs", "timeline", "transcript"}
    assert found["costs"]["total"] == {"calls": 6, "tokens": 167, "usd": 0.06, "unpriced": 3, "uncounted": 0}
    assert found["costs"]["by_agent"]["guide"]["usd"] is None
    spans: list[dict[str, Any]] = found["timeline"]
    times = [(one["who"], one["since"] - 1_000, one["until"] - 1_000, one["outcome"]) for one in spans]
    assert times == [
        ("writer", 0, 20, "replied"),
        ("critic", 20, 23, "replied"),
        ("a person", 20, 83, "answered"),
        ("note", 83, 85, "done.invoke"),
        ("guide", 85, 94, "replied"),
    ]
    assert [one["attempts"] for one in spans] == [2, 1, 1, 1, 1]
    assert [one["waits"] for one in spans] == [False, False, True, False, False]
    failure, reply = (one["text"] for one in found["transcript"] if one["who"] == "writer")
    assert failure.startswith("writer: EffectFailed: no line")
    assert reply == "A draft."
    assert found["metrics"]["slowest"] == "asking"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", [EVIL, LINES])
async def test_a_report_is_the_same_twice(format: str, text: str) -> None:
    first = await told(text, format)
    with opened(None) as store:
        assert await report(store, "one", format) == first
