"""What every store promises, whichever it is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moothall.errors import Conflict, DefinitionError, Refused
from moothall.kernel.events import SharedRecord
from moothall.runtime.ports import Lease, Outdated, Redaction, Store
from moothall.stores.memory import MemoryStore
from moothall.stores.postgresql import PostgresStore
from moothall.stores.sqlite import SqliteStore
from tests.stores.values import entry, head, record

TEXTS = ["plain", "Grüße, 你好, 🌊", 'quotes " and \\ and \n', "nul \x00 inside", ""]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def every_store(request: pytest.FixtureRequest, file: Path) -> AsyncIterator[Store]:
    """A store of every kind, also of the one that needs a server."""
    found: Store = MemoryStore(strict=True)
    if request.param == "sqlite":
        found = SqliteStore(file)
    elif request.param == "postgresql":
        found = PostgresStore(request.getfixturevalue("database"))
    yield found
    found.close()


async def begun(store: Store, run: str = "one") -> None:
    await store.begin(record(run), head(0), entry(0))


@pytest.mark.anyio
async def test_a_run_that_was_begun_can_be_loaded(every_store: Store) -> None:
    await begun(every_store)
    stored = await every_store.load("one")
    assert stored.record == record("one")
    assert stored.head["seq"] == 0
    assert stored.head["snapshot"]["active"] == ["state-0"]


@pytest.mark.anyio
async def test_an_id_that_is_taken_is_a_conflict_and_the_first_run_stays(every_store: Store) -> None:
    await begun(every_store)
    with pytest.raises(Conflict, match="run one exists already"):
        await every_store.begin(record("one"), head(0, "other"), entry(0, "other"))
    assert (await every_store.load("one")).head["snapshot"]["data"] is None
    assert len(await every_store.entries("one")) == 1


@pytest.mark.anyio
async def test_a_commit_keeps_the_entry_and_the_head_after_it(every_store: Store) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1, {"steps": 1}, "done"), entry(1, "far"))
    stored = await every_store.load("one")
    assert (stored.head["seq"], stored.head["snapshot"]["status"]) == (1, "done")
    assert stored.head["snapshot"]["data"] == {"steps": 1}
    assert stored.head["spent"] == {"calls": 1}
    assert (await every_store.entries("one"))[1]["event"] == {"name": "walked", "data": "far"}


@pytest.mark.anyio
@pytest.mark.parametrize("seq", [0, 1, 3], ids=["behind", "the same", "ahead"])
async def test_a_commit_that_does_not_follow_the_head_is_a_conflict_and_keeps_nothing(
    every_store: Store, seq: int
) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1), entry(1))
    with pytest.raises(Conflict, match="run one was moved by another writer"):
        await every_store.commit("one", head(seq, "late"), entry(seq, "late"))
    assert (await every_store.load("one")).head["seq"] == 1
    assert [one["seq"] for one in await every_store.entries("one")] == [0, 1]
    assert "late" not in str(await every_store.entries("one"))


@pytest.mark.anyio
async def test_a_commit_to_a_run_that_is_not_there_is_a_conflict(every_store: Store) -> None:
    with pytest.raises(Conflict):
        await every_store.commit("nowhere", head(1), entry(1))
    assert await every_store.entries("nowhere") == []


@pytest.mark.anyio
async def test_entries_that_came_at_once_share_a_commit_and_can_be_told_apart(every_store: Store) -> None:
    await begun(every_store, "one")
    await every_store.commit("one", head(3), entry(3), earlier=(entry(1), entry(2)))
    assert [one["seq"] for one in await every_store.entries("one")] == [0, 1, 2, 3]
    assert [await every_store.find("one", f"cause-{seq}") for seq in (1, 2, 3)] == [1, 2, 3]
    assert (await every_store.load("one")).head["seq"] == 3
    await every_store.commit("one", head(4), entry(4))
    assert len(await every_store.entries("one", 2)) == 3


@pytest.mark.anyio
async def test_entries_that_came_at_once_are_kept_all_or_none(every_store: Store) -> None:
    await begun(every_store, "one")
    await every_store.commit("one", head(1), entry(1))
    with pytest.raises(Conflict):
        await every_store.commit("one", head(3), entry(3), earlier=(entry(1), entry(2)))
    assert [one["seq"] for one in await every_store.entries("one")] == [0, 1]


@pytest.mark.anyio
async def test_entries_come_in_order_and_without_gaps(every_store: Store) -> None:
    await begun(every_store)
    for seq in range(1, 120):
        await every_store.commit("one", head(seq), entry(seq))
    assert [one["seq"] for one in await every_store.entries("one")] == list(range(120))


@pytest.mark.anyio
async def test_a_journal_can_be_read_a_few_entries_at_a_time(every_store: Store) -> None:
    await begun(every_store)
    for seq in range(1, 7):
        await every_store.commit("one", head(seq), entry(seq))
    read = [[one["seq"] for one in await every_store.entries("one", start, 3)] for start in (0, 3, 6, 7, 9)]
    assert read == [[0, 1, 2], [3, 4, 5], [6], [], []]
    assert await every_store.entries("nowhere", 0, 3) == []


@pytest.mark.anyio
async def test_the_runs_of_a_store_do_not_mix(every_store: Store) -> None:
    await begun(every_store, "one")
    await begun(every_store, "two")
    await every_store.commit("two", head(1), entry(1, "two only"))
    assert (await every_store.load("one")).head["seq"] == 0
    assert "two only" not in str(await every_store.entries("one"))


@pytest.mark.anyio
async def test_the_newest_run_is_listed_first(every_store: Store) -> None:
    for run in ("one", "two", "three"):
        await begun(every_store, run)
    await every_store.commit("one", head(1), entry(1))
    assert [stored.record.run for stored in await every_store.runs()] == ["three", "two", "one"]


@pytest.mark.anyio
async def test_an_empty_store_lists_nothing(every_store: Store) -> None:
    assert await every_store.runs() == []


@pytest.mark.anyio
@pytest.mark.parametrize("run", ["nowhere", "", "one'; DROP TABLE runs; --", "ONE"])
async def test_a_run_that_is_not_there_is_refused_by_name(every_store: Store, run: str) -> None:
    await begun(every_store)
    with pytest.raises(Refused) as refusal:
        await every_store.load(run)
    assert f"there is no run {run!r} in this store" in str(refusal.value)
    assert (await every_store.load("one")).record.run == "one"


@pytest.mark.anyio
@pytest.mark.parametrize("text", TEXTS)
async def test_any_text_comes_back_as_it_was(every_store: Store, text: str) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1, {"text": text}), entry(1, text))
    assert (await every_store.load("one")).head["snapshot"]["data"] == {"text": text}
    assert (await every_store.entries("one"))[1]["event"]["data"] == text


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value", [object(), {1: "a"}, float("nan"), float("inf"), 2**70, "\ud800", {"\ud800": 1}, [b"bytes"]], ids=repr
)
async def test_what_cannot_be_stored_is_the_author_s_mistake_and_leaves_the_run_where_it_stood(
    every_store: Store, value: Any
) -> None:
    await begun(every_store)
    with pytest.raises(DefinitionError):
        await every_store.commit("one", head(1, value), entry(1))
    with pytest.raises(DefinitionError):
        await every_store.commit("one", head(1), entry(1, value))
    assert (await every_store.load("one")).head["seq"] == 0
    assert len(await every_store.entries("one")) == 1
    await every_store.commit("one", head(1), entry(1))


@pytest.mark.anyio
async def test_what_cannot_be_stored_leaves_the_run_with_whoever_held_it(every_store: Store) -> None:
    await begun(every_store)
    held = await every_store.claim("one", (await every_store.load("one")).lease, "ours", 100.0)
    assert held is not None
    with pytest.raises(DefinitionError):
        await every_store.commit("one", head(1, object()), entry(1), held, Lease("theirs", held.token + 1, 200.0))
    assert (await every_store.load("one")).lease == held
    await every_store.commit("one", head(1), entry(1), held, held)


@pytest.mark.anyio
async def test_what_changes_after_the_commit_does_not_change_what_was_kept(every_store: Store) -> None:
    await begun(every_store)
    data = {"steps": [1, 2]}
    await every_store.commit("one", head(1, data), entry(1, data))
    data["steps"].append(3)
    assert (await every_store.load("one")).head["snapshot"]["data"] == {"steps": [1, 2]}
    assert (await every_store.entries("one"))[1]["event"]["data"] == {"steps": [1, 2]}


texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
json_values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.anyio
@given(value=json_values)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_json_reads_back_as_it_was(every_store: Store, value: Any) -> None:
    run = f"run-{len(await every_store.runs())}"
    await begun(every_store, run)
    await every_store.commit(run, head(1, value), entry(1, value))
    assert (await every_store.load(run)).head["snapshot"]["data"] == value
    assert (await every_store.entries(run))[1]["event"]["data"] == value


# records


def noted(key: str, value: Any, version: int = 0) -> SharedRecord:
    """A record that is to be written over this version."""
    return SharedRecord("notes", key, value, version)


@pytest.mark.anyio
async def test_a_commit_writes_its_records_over_the_versions_that_were_read(every_store: Store) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1), entry(1), records=(noted("a", {"n": 1}), noted("b", [None, "ü"])))
    await every_store.commit("one", head(2), entry(2), records=(noted("a", {"n": 2}, 1),))
    assert await every_store.records("notes") == [noted("a", {"n": 2}, 2), noted("b", [None, "ü"], 1)]
    assert await every_store.records("notes", key="b") == [noted("b", [None, "ü"], 1)]
    assert await every_store.records("other") == await every_store.records("notes", key="c") == []


@pytest.mark.anyio
@pytest.mark.parametrize(("version", "there"), [(0, 1), (2, 1)], ids=["behind", "ahead"])
async def test_a_commit_over_another_version_keeps_nothing_and_says_which_it_is(
    every_store: Store, version: int, there: int
) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1), entry(1), records=(noted("a", 1),))
    with pytest.raises(Outdated, match=f"has version {there}, not {version}") as outdated:
        await every_store.commit("one", head(2), entry(2), records=(noted("b", 1), noted("a", 2, version)))
    assert (outdated.value.record, outdated.value.version) == (noted("a", 2, version), there)
    assert (await every_store.load("one")).seq == 1
    assert await every_store.records("notes") == [noted("a", 1, 1)]
    assert [sent.number for sent in await every_store.outbox("mirror")] == [1]
    await every_store.commit("one", head(2), entry(2))


@pytest.mark.anyio
async def test_a_commit_that_conflicts_writes_no_record(every_store: Store) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1), entry(1))
    with pytest.raises(Conflict, match="moved by another writer"):
        await every_store.commit("one", head(1), entry(1), records=(noted("a", 1),))
    with pytest.raises(DefinitionError):
        await every_store.commit("one", head(2), entry(2), records=(noted("a", float("nan")),))
    assert await every_store.records("notes") == await every_store.outbox("mirror") == []


@pytest.mark.anyio
async def test_every_mirror_gets_every_write_in_order_from_where_it_was(every_store: Store) -> None:
    await begun(every_store)
    await every_store.commit("one", head(1), entry(1), records=(noted("a", 1), noted("b", 1)))
    await every_store.commit("one", head(2), entry(2), records=(noted("a", 2, 1),))
    written = [noted("a", 1, 1), noted("b", 1, 1), noted("a", 2, 2)]
    assert [sent.record for sent in await every_store.outbox("north")] == written
    await every_store.mirrored("north", (await every_store.outbox("north", 2))[-1].number)
    assert [sent.record for sent in await every_store.outbox("north")] == written[2:]
    assert [sent.record for sent in await every_store.outbox("south")] == written
    await every_store.mirrored("north", 1)
    assert [sent.record for sent in await every_store.outbox("north")] == written[2:]
    await every_store.mirrored("north", (await every_store.outbox("north"))[-1].number)
    assert await every_store.outbox("north") == []


@pytest.mark.anyio
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(keys=st.sets(st.text(max_size=3), max_size=8), prefix=st.text(max_size=2))
async def test_the_records_whose_keys_begin_alike_come_in_order(
    every_store: Store, keys: set[str], prefix: str
) -> None:
    run = collection = f"run-{len(await every_store.runs())}"
    await begun(every_store, run)
    await every_store.commit(run, head(1), entry(1), records=[SharedRecord(collection, key, key, 0) for key in keys])
    alike = [record.key for record in await every_store.records(collection, prefix=prefix)]
    assert alike == sorted(key for key in keys if key.startswith(prefix))


@pytest.mark.anyio
async def test_texts_are_taken_out_of_entries_head_and_records_and_all_else_stays(every_store: Store) -> None:
    long = "a long text " * 100
    await every_store.begin(record("one"), head(0, long), entry(0, long))
    kept = SharedRecord("notes", "a", {"text": "mine"})
    await every_store.commit("one", head(1, "second", "done"), entry(1, long), records=(kept,))
    await begun(every_store, "two")
    entries, plain = await every_store.entries("one"), (await every_store.load("one")).head
    first = {**entries[0], "event": {"name": "walked", "data": "gone"}, "forgotten": [NOTE]}
    other = {**plain, "snapshot": {**plain["snapshot"], "data": "gone"}}
    records = (SharedRecord("notes", "a", {"text": "gone"}, 1),)
    await every_store.redact(Redaction("one", {0: first}, other, records))
    assert await every_store.entries("one") == [first, entries[1]]
    loaded = await every_store.load("one")
    assert (loaded.head, loaded.status, loaded.seq) == (other, "done", 1)
    assert await every_store.records("notes") == list(records)
    assert [out.record for out in await every_store.outbox("any")] == [*records, *records]
    assert len(await every_store.entries("two")) == 1
    assert isinstance(await every_store.scrub(), str)
    assert await every_store.find("one", "cause-0") == 0


@pytest.mark.anyio
async def test_texts_are_not_taken_out_of_a_run_that_has_moved(every_store: Store) -> None:
    await begun(every_store)
    entries, plain = await every_store.entries("one"), (await every_store.load("one")).head
    await every_store.commit("one", head(1), entry(1))
    with pytest.raises(Conflict, match="run one was moved by another writer"):
        await every_store.redact(Redaction("one", {0: {**entries[0], "forgotten": [NOTE]}}, plain))
    assert (await every_store.entries("one"))[0] == entries[0]


NOTE = {"at": 1.5, "by": "olga", "what": "run"}


@pytest.mark.anyio
async def test_no_more_begins_within_a_minute_than_is_allowed(every_store: Store) -> None:
    assert [await every_store.take_turn("there", 3) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert 50.0 < await every_store.take_turn("there", 3) <= 60.0
    assert await every_store.take_turn("elsewhere", 3) == 0.0
    assert await every_store.take_turn("there", 4) == 0.0
    assert 50.0 < await every_store.take_turn("there", 3) <= 60.0


@pytest.mark.anyio
async def test_of_many_at_once_no_more_begin_than_are_allowed(every_store: Store) -> None:
    pauses = await asyncio.gather(*(every_store.take_turn("there", 5) for _ in range(40)))
    assert pauses.count(0.0) == 5
