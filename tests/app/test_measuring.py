"""Figures of real runs, with children and all, from the store's file."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moothall import (
    Answered,
    Broken,
    ChildDone,
    Final,
    Machine,
    On,
    Refused,
    Replied,
    Reply,
    State,
    arun,
    ask,
    child,
    question,
)
from moothall.app.config.access import opened
from moothall.app.report import measures as measuring
from moothall.app.report.measures import measure, measure_all, pieces
from moothall.app.report.projections.costs import CHILDREN, OWN, Bill
from moothall.app.report.projections.hierarchy import hierarchy_of
from moothall.app.report.projections.metrics import Metrics
from moothall.runtime.journal import Entry, Head, encode_entry
from moothall.stores.sqlite import SqliteStore
from tests.app.journey import JOURNEY, RUN, as_far_as_the_question, clock, to_the_end

pytestmark = pytest.mark.anyio


async def test_a_run_with_retries_regions_a_question_a_child_and_tools_is_measured_to_the_figure(
    store: SqliteStore,
) -> None:
    hall = await as_far_as_the_question(store)
    await to_the_end(hall)
    found = await measure(store, RUN)
    states = {one.state: (one.visits, one.total, one.waited, one.bill) for one in found.states()}
    assert states == {
        "drafting": (1, 20, 0, Bill(2, 107, 0.01, unpriced=1)),
        "checking": (1, 63, 0, Bill()),
        "left": (1, 63, 0, Bill()),
        "reading": (1, 3, 0, Bill(1, 20, 0.02)),
        "right": (1, 63, 0, Bill()),
        "asking": (1, 63, 63, Bill()),
        "read": (1, 60, 0, Bill()),
        "asked": (1, 0, 0, Bill()),
        "delegating": (1, 2, 0, Bill(1, 30, 0.03)),
        "guiding": (1, 9, 0, Bill(2, 10, 0, unpriced=2)),
        "over": (1, 0, 0, Bill()),
    }
    assert found.metrics.spent_on(found.until) == {"working": 34, "waiting": 60, "time": 0, "nothing": 0}
    assert found.metrics.seconds(found.until) == clock.now() - 1_000 == 94
    assert found.status == "done"


async def test_children_count_by_agent_and_model_and_are_marked(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    costs = (await measure(store, RUN)).metrics.costs
    assert costs.by("agent") == {
        "scribe": Bill(1, 30, 0.03),
        "critic": Bill(1, 20, 0.02),
        "writer": Bill(2, 107, 0.01, unpriced=1),
        "guide": Bill(2, 10, 0, unpriced=2),
    }
    assert costs.by("model") == {OWN: costs.total()}
    assert costs.total() == Bill(6, 167, 0.06, unpriced=3)
    assert costs.total(children=True) == Bill(3, 40, 0.03, unpriced=2)
    spent = (await store.load(RUN)).head["spent"]
    assert (spent["calls"], spent["tokens"], spent["usd"]) == (6, 167, pytest.approx(0.06))


async def test_a_live_run_is_measured_as_far_as_it_is(store: SqliteStore) -> None:
    await as_far_as_the_question(store)
    found = await measure(store, RUN)
    assert found.status == "waiting"
    figures = {one.state: (one.is_open, one.total, one.waited) for one in found.metrics.states(until=1_033)}
    expected = {"asking": (True, 13, 13), "reading": (False, 3, 0), "drafting": (False, 20, 0)}
    assert {name: figures[name] for name in expected} == expected
    assert found.metrics.spent_on(1_033) == {"working": 23, "waiting": 10, "time": 0, "nothing": 0}


async def test_an_observer_counts_the_same_while_the_run_goes_on(store: SqliteStore) -> None:
    seen: list[Metrics] = []

    def saw(run: str, entry: Entry, head: Head) -> None:
        if run == RUN:
            before = seen[-1] if seen else Metrics(hierarchy_of(JOURNEY))
            seen.append(before.after(encode_entry(entry)))

    await as_far_as_the_question(store, observers=[saw])
    assert len(seen) == (await store.load(RUN)).seq + 1
    assert seen[-1].states() == (await measure(store, RUN)).metrics.states()
    assert seen[0].states(1_003)[0].total == 3


async def test_a_child_that_is_still_at_work_counts_so_far(tmp_path: Path) -> None:
    async def clerk(prompt: str) -> Reply:
        return Reply("Dear Ada", usage={"tokens": 9, "usd": 0.5})

    signing = Machine(
        "signing",
        states=[State("writing", enter=ask(clerk, "Write")), State("asking", enter=question("Sign?")), Final("signed")],
        moves=[On("writing", Replied, to="asking"), On("asking", Answered, to="signed")],
    )
    office = Machine(
        "office",
        states=[State("delegating", enter=child(signing)), Final("posted")],
        moves=[On("delegating", ChildDone, to="posted")],
    )
    address = f"sqlite:{tmp_path / 'runs.db'}"
    assert (await arun(office, run_id="office", store=address)).status == "waiting"
    with opened(address) as store:
        found = await measure(store, "office")
        every = await measure_all(store)
    assert found.status == "waiting"
    assert found.metrics.costs.by("state") == {"delegating": Bill(1, 9, 0.5)}
    assert found.metrics.costs.total(children=True) == every.costs.total() == Bill(1, 9, 0.5)


async def test_of_a_child_that_is_gone_its_last_word_counts(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    children = [one.record.run for one in await store.runs() if one.record.parent]
    assert len(children) == 2
    for one in children:
        await store.forget(one)
    costs = (await measure(store, RUN)).metrics.costs
    assert costs.total(children=True) == Bill(3, 40, 0.03, unpriced=2)
    assert costs.by("model")[CHILDREN] == Bill(3, 40, 0.03, unpriced=2)
    assert {"note", "guide"} <= costs.by("agent").keys()


async def test_of_a_child_that_is_damaged_its_last_word_counts_and_that_is_said(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    (gone,) = [one.record.run for one in await store.runs() if one.record.machine == "note"]
    store._db.execute("UPDATE entries SET body = x'7b7d' WHERE run = (SELECT number FROM runs WHERE run = ?)", (gone,))
    found = await measure(store, RUN)
    assert found.metrics.costs.total().tokens == 167
    (note,) = found.notes
    assert note.startswith(f"run {gone}: entry 0 of its journal was changed")


async def test_all_runs_together_count_each_call_once(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    found = await measure_all(store)
    assert found.runs == {"turn-8": 1, "note": 1, "journey": 1}
    assert found.costs.total() == Bill(6, 167, 0.06, unpriced=3)
    assert found.costs.total(children=True) == Bill(3, 40, 0.03, unpriced=2)
    assert found.costs.by("state")["note.noting"] == Bill(1, 30, 0.03)
    assert found.costs.by("state")["turn-8.asking"] == Bill(2, 10, 0, unpriced=2)
    (noting, *_) = found.states["note"]
    assert (noting.state, noting.visits, noting.total) == ("noting", 1, 2)
    assert not found.unread


async def test_a_damaged_run_is_left_out_of_all_and_refused_alone(store: SqliteStore) -> None:
    await to_the_end(await as_far_as_the_question(store))
    store._db.execute("DELETE FROM entries WHERE seq = 2 AND run = (SELECT number FROM runs WHERE run = ?)", (RUN,))
    found = await measure_all(store)
    assert list(found.unread) == [RUN]
    assert found.costs.total() == Bill(3, 40, 0.03, unpriced=2)
    with pytest.raises(Broken, match="run journey: entries of its journal are missing"):
        await measure(store, RUN)


async def test_an_entry_of_another_shape_is_named(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await as_far_as_the_question(store)
    whole = store.entries

    async def without_a_cause(run: str, start: int = 0, limit: int | None = None) -> list[dict[str, object]]:
        return [{name: one[name] for name in one if name != "cause"} for one in await whole(run, start, limit)]

    monkeypatch.setattr(store, "entries", without_a_cause)
    with pytest.raises(Broken, match=r"run journey: entry 0 of its journal cannot be read: KeyError\('cause'\)"):
        await measure(store, RUN)


async def test_a_run_that_is_not_there_is_refused(store: SqliteStore) -> None:
    with pytest.raises(Refused, match="there is no run 'nobody'"):
        await measure(store, "nobody")


async def test_a_machine_that_was_changed_since_explains_nothing(store: SqliteStore) -> None:
    other = Machine("journey", states=JOURNEY.states, moves=JOURNEY.moves[:-1])
    await as_far_as_the_question(store, other)
    states = [one.state for one in (await measure(store, RUN)).states()]
    assert states == ["drafting", "reading", "asking", "read"]


async def test_a_journal_is_read_in_pieces(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await to_the_end(await as_far_as_the_question(store))
    monkeypatch.setattr(measuring, "PIECE", 3)
    read = [len(piece) async for piece in pieces(store, RUN)]
    assert read[:-1] == [3] * (len(read) - 1)
    assert sum(read) == (await store.load(RUN)).seq + 1
    assert (await measure(store, RUN)).metrics.costs.total().tokens == 167


async def test_a_run_with_the_name_of_a_child_is_no_child(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    store = SqliteStore(file)
    await to_the_end(await as_far_as_the_question(store))
    (gone,) = [one.record.run for one in await store.runs() if one.record.machine == "note"]
    await store.forget(gone)
    store.close()
    await arun(Machine("idle", states=JOURNEY.states[-1:], moves=[]), run_id=gone, store=f"sqlite:{file}")
    store = SqliteStore(file)
    assert (await measure(store, RUN)).metrics.costs.total().tokens == 167
    assert (await measure_all(store)).costs.total().tokens == 167
    store.close()
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (3,)
