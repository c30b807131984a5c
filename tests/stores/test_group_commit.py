"""Where several runs are driven, their commits share transactions, and each still stands for itself."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from moothall.errors import Conflict, EffectFailed, MoothallError
from moothall.runtime.ports import Lease
from moothall.stores.sqlite import SqliteStore
from moothall.stores.writer import BATCH
from tests.stores.values import entry, head, record

RUNS = [f"run-{number:02}" for number in range(20)]
WRITER = "moothall-writer"
SOON = 20.0


async def crowded(store: SqliteStore, runs: list[str] = RUNS) -> None:
    """A store with these runs, as if all of them were being driven."""
    for run in runs:
        await store.begin(record(run), head(0), entry(0))
    store.crowd = len(runs)


def begins(store: SqliteStore) -> list[str]:
    """The thread of every transaction that the store begins from now on."""
    threads: list[str] = []

    def note(text: str) -> None:
        if text.startswith("BEGIN"):
            threads.append(threading.current_thread().name)

    store._db.set_trace_callback(note)
    return threads


async def committed(store: SqliteStore, run: str, seq: int = 1) -> MoothallError | None:
    try:
        await store.commit(run, head(seq, run), entry(seq, run))
    except MoothallError as error:
        return error
    return None


async def seqs(store: SqliteStore, run: str) -> list[int]:
    return [one["seq"] for one in await store.entries(run)]


@pytest.mark.anyio
async def test_the_commits_of_a_crowd_share_one_transaction_in_the_writing_thread(store: SqliteStore) -> None:
    await crowded(store)
    threads = begins(store)
    assert await asyncio.gather(*(committed(store, run) for run in RUNS)) == [None] * len(RUNS)
    assert len(threads) == 1
    assert threads[0].startswith(WRITER)
    for run in RUNS:
        assert await seqs(store, run) == [0, 1]
        assert (await store.load(run)).head["snapshot"]["data"] == run


@pytest.mark.anyio
async def test_what_is_committed_while_a_batch_is_written_goes_into_the_next(store: SqliteStore) -> None:
    await crowded(store)
    threads = begins(store)

    async def walk(run: str) -> None:
        for seq in range(1, 6):
            await store.commit(run, head(seq), entry(seq))

    await asyncio.gather(*map(walk, RUNS))
    assert 5 <= len(threads) <= 10
    for run in RUNS:
        assert await seqs(store, run) == [0, 1, 2, 3, 4, 5]


@pytest.mark.anyio
async def test_a_crowd_larger_than_a_batch_is_written_in_several(store: SqliteStore) -> None:
    runs = [f"run-{number:03}" for number in range(BATCH + 10)]
    await crowded(store, runs)
    threads = begins(store)
    assert {*await asyncio.gather(*(committed(store, run) for run in runs))} == {None}
    assert len(threads) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("crowd", [0, 1])
async def test_a_lone_run_commits_in_place_without_a_thread(store: SqliteStore, crowd: int) -> None:
    await crowded(store, ["one"])
    store.crowd = crowd
    threads = begins(store)
    for seq in (1, 2, 3):
        await store.commit("one", head(seq), entry(seq))
    assert threads == [threading.current_thread().name] * 3
    assert store._writing._thread is None


@pytest.mark.anyio
async def test_a_conflict_of_one_member_does_not_harm_the_others(store: SqliteStore, file: Path) -> None:
    await crowded(store)
    elsewhere = SqliteStore(file)
    await elsewhere.commit("run-07", head(1, "winner"), entry(1, "winner"))
    threads = begins(store)
    results = dict(zip(RUNS, await asyncio.gather(*(committed(store, run) for run in RUNS)), strict=True))
    assert isinstance(results.pop("run-07"), Conflict)
    assert set(results.values()) == {None}
    assert len(threads) == 1
    assert (await store.load("run-07")).head["snapshot"]["data"] == "winner"
    assert await committed(store, "run-07", 2) is None
    elsewhere.close()


@pytest.mark.anyio
async def test_two_commits_of_one_run_in_a_batch_do_not_both_count(store: SqliteStore) -> None:
    await crowded(store)
    results = await asyncio.gather(committed(store, "run-00"), committed(store, "run-00"), committed(store, "run-01"))
    assert results[0] is None
    assert isinstance(results[1], Conflict)
    assert results[2] is None
    assert await seqs(store, "run-00") == [0, 1]


@pytest.mark.anyio
async def test_a_lost_lease_in_a_batch_is_a_conflict_for_its_run_only(store: SqliteStore) -> None:
    for run in ("mine", "lost"):
        await store.begin(record(run), head(0), entry(0), Lease("us:1:a", 1, 9_000.0))
    store.crowd = 2
    await store.claim("lost", Lease("us:1:a", 1, 9_000.0), "them:1:b", 9_000.0)
    held = Lease("us:1:a", 1, 9_000.0)
    results = await asyncio.gather(
        *(store.commit(run, head(1), entry(1), held, held) for run in ("mine", "lost")), return_exceptions=True
    )
    assert results[0] is None
    assert isinstance(results[1], Conflict)
    assert (await store.load("lost")).lease.owner == "them:1:b"


@pytest.mark.anyio
async def test_a_failure_of_one_member_does_not_harm_the_others(store: SqliteStore, file: Path) -> None:
    await crowded(store)
    number = store._place("run-11").number
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(
            f"CREATE TRIGGER cursed BEFORE UPDATE ON runs WHEN NEW.number = {number} "
            "BEGIN SELECT RAISE(ABORT, 'the disk has a hole here'); END"
        )
    db.close()
    results = dict(zip(RUNS, await asyncio.gather(*(committed(store, run) for run in RUNS)), strict=True))
    assert isinstance(results.pop("run-11"), MoothallError)
    assert set(results.values()) == {None}
    assert await seqs(store, "run-11") == [0]
    assert {tuple(await seqs(store, run)) for run in results} == {(0, 1)}


@pytest.mark.anyio
async def test_the_loop_goes_on_while_the_writer_waits_for_another_process(store: SqliteStore, file: Path) -> None:
    await crowded(store)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    work = asyncio.gather(*(committed(store, run) for run in RUNS))
    for _ in range(30):
        await asyncio.sleep(0.01)
    assert not work.done()
    assert (await store.load("run-00")).seq == 0
    other.execute("COMMIT")
    other.close()
    async with asyncio.timeout(SOON):
        assert await work == [None] * len(RUNS)


@pytest.mark.anyio
async def test_a_run_that_becomes_alone_commits_behind_the_batch_in_flight(store: SqliteStore) -> None:
    await crowded(store, ["one", "two"])
    first = asyncio.create_task(committed(store, "one"))
    await asyncio.sleep(0)
    store.crowd = 1
    threads = begins(store)
    assert await committed(store, "two") is None
    assert await first is None
    assert await committed(store, "two", 2) is None
    assert len(threads) == 2
    assert threads[0].startswith(WRITER)
    assert threads[1] == threading.current_thread().name


@pytest.mark.anyio
async def test_beginning_claiming_renewing_and_releasing_go_between_batches(store: SqliteStore) -> None:
    await crowded(store)
    over = asyncio.Event()

    async def walk(run: str) -> None:
        for seq in range(1, 30):
            await store.commit(run, head(seq), entry(seq))

    async def others() -> int:
        count = 0
        while not over.is_set():
            run = f"new-{count}"
            await store.begin(record(run), head(0), entry(0))
            taken = await store.claim(run, (await store.load(run)).lease, "us:1:a", 9_000.0)
            assert taken is not None
            assert await store.renew(run, taken, 9_999.0)
            await store.release(run, taken)
            count += 1
            await asyncio.sleep(0)
        return count

    busy = asyncio.create_task(others())
    await asyncio.gather(*map(walk, RUNS))
    over.set()
    assert await busy > 5
    assert {(await store.load(run)).seq for run in RUNS} == {29}


@pytest.mark.anyio
async def test_runs_that_begin_in_a_crowd_share_a_transaction_and_only_the_one_whose_id_is_taken_conflicts(
    store: SqliteStore,
) -> None:
    await crowded(store)
    threads = begins(store)
    ids = [*(f"new-{number}" for number in range(5)), RUNS[3], "new-3", "new-5"]
    work = [store.begin(record(run), head(0, number), entry(0, number)) for number, run in enumerate(ids)]
    results = await asyncio.gather(*work, return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * 5 + [Conflict] * 2 + [type(None)]
    assert len(threads) == 1
    for number, run in enumerate(ids[:5]):
        assert (await store.load(run)).head["snapshot"]["data"] == number
        assert await committed(store, run) is None
    assert (await store.load(RUNS[3])).head["snapshot"]["data"] is None


@pytest.mark.anyio
async def test_who_is_cancelled_while_it_takes_a_run_does_not_keep_it(store: SqliteStore) -> None:
    await crowded(store)
    seen = (await store.load("run-00")).lease
    work = asyncio.create_task(store.claim("run-00", seen, "us:1:a", 9_000.0))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await store.load("run-00")).lease.owner == ""
    assert await store.claim("run-00", (await store.load("run-00")).lease, "them:1:a", 9_000.0) is not None


@pytest.mark.anyio
async def test_who_is_cancelled_twice_leaves_at_once_and_its_commit_is_written(store: SqliteStore) -> None:
    await crowded(store)
    work = asyncio.create_task(store.commit("run-00", head(1), entry(1)))
    await asyncio.sleep(0)
    for _ in range(2):
        work.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await committed(store, "run-01") is None
    assert await seqs(store, "run-00") == [0, 1]


@pytest.mark.anyio
async def test_who_is_cancelled_while_its_commit_is_written_leaves_when_it_is(store: SqliteStore) -> None:
    await crowded(store)
    work = asyncio.create_task(store.commit("run-00", head(1), entry(1)))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await seqs(store, "run-00") == [0, 1]
    await store.commit("run-00", head(2), entry(2))


@pytest.mark.anyio
async def test_a_store_that_cannot_write_at_all_tells_everybody(store: SqliteStore, file: Path) -> None:
    await crowded(store)
    store._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    results = await asyncio.gather(*(committed(store, run) for run in RUNS))
    other.execute("ROLLBACK")
    other.close()
    assert {type(result) for result in results} == {EffectFailed}
    assert await asyncio.gather(*(committed(store, run) for run in RUNS)) == [None] * len(RUNS)
