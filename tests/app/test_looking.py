"""Looking at runs changes nothing and tells what there is."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from moothall import Answered, Final, Machine, On, Replied, State, always, arun, ask, days, question
from moothall.app.config.access import opened
from moothall.app.kinds.ends import end_of
from moothall.app.report.account import show
from moothall.app.report.report import report
from moothall.app.runs import view as looking
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Said


async def clerk(prompt: str) -> str:
    return f"<b>{prompt}</b> & more" + " and more" * (100 if "at length" in prompt else 0)


OFFER = Machine(
    "offer",
    states=[
        State("writing", enter=ask(clerk, "Write")),
        State("adding", enter=ask(clerk, "Write at length")),
        State("approving", enter=question("Send it?", within=days(1))),
        Final("sent"),
    ],
    moves=[
        On("writing", Replied, to="adding"),
        On("adding", Replied, to="approving"),
        On("approving", Answered, to="sent"),
    ],
)


@pytest.mark.anyio
async def test_a_summary_says_where_a_run_stands_and_what_it_asks() -> None:
    await arun(OFFER, run_id="one")
    with opened(None) as store:
        [summary] = await looking.summaries(store)
    assert (summary.run, summary.machine, summary.status, summary.states) == ("one", "offer", "waiting", ("approving",))
    assert summary.spent == {"calls": 2}
    assert [(asked["id"], asked["prompt"]) for asked in summary.questions] == [("2.0", "Send it?")]


@pytest.mark.anyio
async def test_a_shown_run_has_its_whole_journal() -> None:
    await arun(OFFER, run_id="one")
    with opened(None) as store:
        shown = await show(store, "one")
    assert [entry["seq"] for entry in shown.entries] == [0, 1, 2]
    assert [entry["event"]["name"] for entry in shown.entries] == ["run.started", "replied", "replied"]


@pytest.mark.anyio
async def test_a_page_stands_alone_and_no_reply_becomes_markup() -> None:
    await arun(OFFER, run_id="one")
    with opened(None) as store:
        page = await report(store, "one", "html")
    assert page.startswith("<!doctype html>")
    assert "<b>Write" not in page
    assert "&lt;b&gt;Write&lt;/b&gt; &amp; more" in page
    assert "&lt;b&gt;Write at length&lt;/b&gt; &amp; more" in page
    assert not re.search(r"<script|<link|(src|href)=\"?(https?:)?//|@import|url\(", page)
    assert "<svg" in page


@pytest.mark.anyio
async def test_a_page_without_its_machine_says_so_and_is_still_a_page() -> None:
    machine = Machine(OFFER.name, states=OFFER.states, moves=OFFER.moves)
    await arun(machine, run_id="one")
    with opened(None) as store:
        page = await report(store, "one", "html")
    assert "The machine of this run can no longer be found" in page
    assert "approving" in page


@pytest.mark.anyio
async def test_looking_at_a_run_leaves_its_file_as_it_was(tmp_path: Path) -> None:
    await arun(OFFER, run_id="one", store=f"sqlite:{tmp_path / 'runs.db'}")
    before = (tmp_path / "runs.db").stat().st_mtime_ns
    with opened(f"sqlite:{tmp_path / 'runs.db'}") as store:
        await looking.summaries(store)
        await report(store, "one", "html")
    assert (tmp_path / "runs.db").stat().st_mtime_ns == before


# watching

SAID = Said("r", "clerk", "a word")


async def watched_with(*said: Said) -> list[Any]:
    """All that is seen of a run that is over, where this was said while nobody looked."""
    async with Moothall("memory", listeners=()) as hall:
        machine = Machine("note", data=str, states=[State("a"), Final("b")], moves=[On("a", always, to="b")])
        await hall.run(machine, "x", run_id="r")
        pieces: asyncio.Queue[Said] = asyncio.Queue()
        for piece in said:
            pieces.put_nowait(piece)
        return [news async for news in looking.follow(hall.store, "r", 0, pieces)]


def test_what_was_said_when_a_run_ended_between_two_looks_is_still_seen() -> None:
    entry, *rest = asyncio.run(watched_with(SAID, SAID))
    assert (entry["seq"], rest) == (0, [SAID, SAID])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"outcome": "rolled_back", "reason": "no"}, "rolled back: no"),
        ({"outcome": "rolled_back", "reason": "no", "rollback": {"left": ["x"]}}, "rollback incomplete: no"),
        ({"outcome": "blocked"}, "blocked"),
        ({"outcome": "succeeded", "reason": "all agreed"}, "None"),
        ("[forgotten]", "None"),
    ],
)
def test_a_bad_outcome_is_read_from_the_data_of_a_run_with_one_end_for_all(data: Any, told: str) -> None:
    assert str(end_of("arena", data)) == told
    assert end_of("mine.py:MINE", data) is None
