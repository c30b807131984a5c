"""What happens in a run reaches everybody who watches, whoever drives it; who does not read holds nobody up."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from moothall import Moothall
from moothall.app.notify.speech import Heard, SpeechReader, SpeechWriter
from moothall.app.report.steps import Step
from moothall.app.runs.feed import BURST, OF_TIME, PIECES, Feed, FeedItem, Form, Gap, Over, Pace, Speech
from moothall.app.runs.news import Said
from tests.web.machines import LETTER, Letter

pytestmark = pytest.mark.anyio
Watching = AsyncIterator[list[FeedItem]]
AS_IT_IS: Form[FeedItem, list[FeedItem]] = Form(lambda happening: happening, list)


async def until(watching: Watching, kind: type[FeedItem]) -> list[FeedItem]:
    """Everything up to the first of a kind."""
    seen: list[FeedItem] = []
    async with asyncio.timeout(20):
        async for batch in watching:
            seen += batch
            if any(isinstance(happening, kind) for happening in batch):
                break
    return seen


async def test_steps_of_another_process_are_seen_and_each_once(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'runs.db'}"
    async with Moothall(store, listeners=()) as here, Moothall(store, listeners=()) as there:
        run = await there.start(LETTER, Letter("Eve"))
        await there.wait(run)
        feed = Feed(here, AS_IT_IS)
        watching = feed.watch(run)
        first = await until(watching, Step)
        await there.answer(run, True)
        rest = await until(watching, Over)
        steps = [happening.seq for happening in (*first, *rest) if isinstance(happening, Step)]
        assert steps == [0, 1, 2]
        feed.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_speech_of_another_process_is_heard_and_a_late_comer_hears_the_text_so_far(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = f"sqlite:{tmp_path / 'runs.db'}" if kind == "sqlite" else request.getfixturevalue("database")
    async with Moothall(store, listeners=()) as here:
        run = await here.start(LETTER, Letter("Eve"))
        await here.wait(run)
        feed = Feed(here, AS_IT_IS)
        await asyncio.sleep(0)
        other = Moothall(store, listeners=())
        speaking = other.context().broadcast
        hear = speaking.ear(run, "clerk")
        assert hear is not None, "nobody would write what is said"
        hear("Dear ")
        hear("Eve")
        watching = feed.watch(run, after=99)
        [early] = [spoken for spoken in await until(watching, Speech) if isinstance(spoken, Speech)]
        assert (early.agent, early.text, early.anew) == ("clerk", "Dear Eve", True)
        hear(", hello")
        [late] = [spoken for spoken in await until(watching, Speech) if isinstance(spoken, Speech)]
        assert (late.text, late.anew) == (", hello", False)
        feed.close()
        assert speaking.ear(run, "clerk") is None, "nobody listens any more"
        await other.close()


def test_who_begins_to_listen_in_the_middle_hears_the_text_so_far_and_nothing_once_it_is_kept(
    tmp_path: Path,
) -> None:
    writer, reader = SpeechWriter(tmp_path), SpeechReader(tmp_path)
    writer(Said("tides", "clerk", "Dear "))
    writer(Said("tides", "clerk", "Eve"))
    assert list(reader.news("tides")) == []
    reader.listen()
    writer(Said("tides", "clerk", ", hello"))
    assert list(reader.news("tides")) == [Heard("clerk", "Dear Eve, hello", True)]
    writer(Said("tides", "clerk", ""))
    writer(Said("tides", "clerk", "Dear Eve, hello again"))
    assert list(reader.news("tides")) == [Heard("clerk", "Dear Eve, hello again", True)], "it began anew"
    for spoken in tmp_path.glob(f"{sha256(b'tides').hexdigest()[:16]}-*"):
        whole = spoken.read_bytes()
        spoken.write_bytes(b"")
        assert list(reader.news("tides")) == [], "it is being written at this moment"
        spoken.write_bytes(whole + b".")
    assert list(reader.news("tides")) == [Heard("clerk", ".", False)]
    for spoken in tmp_path.glob(f"{sha256(b'tides').hexdigest()[:16]}-*"):
        spoken.unlink()
    assert list(reader.news("tides")) == [Heard("clerk", "", True)]
    assert list(reader.news("tides")) == []


async def test_a_slow_watcher_is_told_that_pieces_are_missing_and_misses_no_step(tmp_path: Path) -> None:
    async with Moothall(f"sqlite:{tmp_path / 'runs.db'}", listeners=()) as hall:
        run = await hall.start(LETTER, Letter("Eve"))
        await hall.wait(run)
        feed = Feed(hall, AS_IT_IS)
        watching = feed.watch(run)
        seen = await until(watching, Step)
        for number in range(PIECES + 10):
            feed.say(Said(run, "clerk", f"{number} "))
        told = await until(watching, Gap)
        [gap] = [happening for happening in told if isinstance(happening, Gap)]
        assert gap.pieces == 10
        assert len([happening for happening in told if isinstance(happening, Speech)]) == PIECES
        await hall.answer(run, True)
        rest = await until(watching, Over)
        assert [happening.seq for happening in (*seen, *told, *rest) if isinstance(happening, Step)] == [0, 1, 2]
        feed.close()


async def test_who_never_reads_holds_up_neither_the_run_nor_the_others(tmp_path: Path) -> None:
    async with Moothall(f"sqlite:{tmp_path / 'runs.db'}", listeners=()) as hall:
        run = await hall.start(LETTER, Letter("Eve"))
        feed = Feed(hall, AS_IT_IS)
        asleep = [feed.watch(run) for _ in range(20)]
        for watching in asleep:
            await anext(watching)
        await hall.wait(run)
        await hall.answer(run, True)
        steps = [happening for happening in await until(feed.watch(run), Over) if isinstance(happening, Step)]
        assert len(steps) == 3
        feed.close()
        for watching in asleep:
            await watching.aclose()  # type: ignore[attr-defined]


async def test_an_entry_is_rendered_and_joined_once_for_all_who_watch(tmp_path: Path) -> None:
    rendered: list[int] = []
    joined: list[list[FeedItem]] = []

    def render(happening: FeedItem) -> FeedItem:
        rendered.extend([happening.seq] if isinstance(happening, Step) else [])
        return happening

    def join(happenings: list[FeedItem]) -> list[FeedItem]:
        joined.extend([happenings] if any(isinstance(happening, Step) for happening in happenings) else [])
        return happenings

    async with Moothall(f"sqlite:{tmp_path / 'runs.db'}", listeners=()) as hall:
        run = await hall.start(LETTER, Letter("Eve"))
        await hall.wait(run)
        feed = Feed(hall, Form(render, join))
        watching = [asyncio.create_task(until(feed.watch(run), Over)) for _ in range(20)]
        await asyncio.sleep(0)
        await hall.answer(run, True)
        for seen in await asyncio.gather(*watching):
            assert [happening.seq for happening in seen if isinstance(happening, Step)] == [0, 1, 2]
        assert rendered == [0, 1, 2]
        assert len(joined) <= len(rendered), "those who are at one place get the same"
        feed.close()


def test_watchers_who_had_more_than_their_share_wait_and_are_even_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.process_time", lambda: 5.0)
    pace = Pace()
    pace.pay(BURST)
    assert not pace.owes()
    pace.pay(OF_TIME)
    assert pace.owes()
    now[0] += 1.1
    assert not pace.owes()
    now[0] += 1000
    assert not pace.owes()
    pace.pay(2 * BURST)
    assert pace.owes(), "what was not taken long ago does not add up"


async def test_watchers_who_owe_more_than_they_can_pay_are_told_again_when_their_patience_is_over() -> None:
    pace = Pace(patience=0.01)
    pace.pay(60.0)
    assert pace.owes()
    await pace.wait_until_even()
    assert not pace.owes()
