"""What a store in PostgreSQL promises beside the contract of every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from moothall.errors import Conflict
from moothall.kernel.events import SharedRecord
from moothall.kernel.step import Append, Snapshot, Tail
from moothall.runtime.journal import Entry, Head
from moothall.runtime.ports import Lease
from moothall.stores.postgresql import PostgresStore
from moothall.stores.postgresql_mirror import PostgresMirror
from tests.postgres import PostgresServer, served
from tests.stores.values import entry, head, record

RUNS = [f"run-{number:02}" for number in range(12)]


@pytest.mark.anyio
async def test_who_looks_for_work_reads_no_run_that_waits_for_a_person(postgres_store: PostgresStore) -> None:
    await postgres_store.begin(record("one"), head(0), entry(0))
    looks: dict[str, tuple[Any, ...]] = {
        "due": (1.0, 2.0, [], 9, [], [], ""),
        "suspects": (1.0,),
        "owners": (),
        "next_wake": (1.0,),
    }
    for name, values in looks.items():
        plan = "\n".join(
            row[0] for row in await postgres_store._connections.fetch("EXPLAIN " + postgres_store._sql[name], *values)
        )
        assert "runs_by_wake" in plan, plan
        assert "Seq Scan" not in plan, plan


@pytest.mark.anyio
async def test_commits_find_their_runs_by_number_in_the_order_in_which_they_were_given(
    postgres_store: PostgresStore,
) -> None:
    await postgres_store.begin(record("one"), head(0), entry(0))
    no_rows: list[Any] = []
    for name, width in (("move_many", 16), ("move_all", 27)):
        plan = "EXPLAIN " + postgres_store._sql[name]
        told = "\n".join(row[0] for row in await postgres_store._connections.fetch(plan, *[no_rows] * width))
        assert "Seq Scan" not in told, told
        assert "runs_pkey" in told, told


@pytest.mark.anyio
async def test_whoever_waits_for_work_hears_of_what_others_tell_a_run(
    postgres_store: PostgresStore, database: str
) -> None:
    other = PostgresStore(database)
    await postgres_store.begin(record("one"), head(0), entry(0))
    await asyncio.wait_for(postgres_store.wait_for_work(0.0, 600.0), 30)  # from now on it listens
    waiting = asyncio.create_task(postgres_store.wait_for_work(0.0, 600.0))
    await postgres_store.load("one")
    assert not waiting.done()
    await other.commit("one", head(1), entry(1))
    await asyncio.wait_for(waiting, 30)
    assert await postgres_store.seq("one") == 1
    other.close()


@pytest.mark.anyio
async def test_a_commit_survives_that_everybody_is_cut_off_and_a_stale_token_does_not_commit(
    postgres_store: PostgresStore, postgres: PostgresServer
) -> None:
    await postgres_store.begin(record("one"), head(0), entry(0), Lease("ours", 1, 100.0))
    assert await asyncio.to_thread(postgres.cut_connections) > 0
    held = Lease("ours", 1, 100.0)
    await postgres_store.commit("one", head(1), entry(1), held, held)
    taken = await postgres_store.claim("one", held, "theirs", 200.0)
    assert taken == Lease("theirs", 2, 200.0, 1)
    with pytest.raises(Conflict):
        await postgres_store.commit("one", head(2), entry(2), held, held)
    await postgres_store.commit("one", head(2), entry(2), taken, taken)
    assert [one["seq"] for one in await postgres_store.entries("one")] == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_commit_outlives_a_server_that_is_set_to_answer_before_it_has_written() -> None:
    """Each time the server is stopped without a word right behind the last commit."""
    with served() as server, server.database() as address:
        assert server.execute("SHOW synchronous_commit") == "off"
        store = PostgresStore(address)
        await store.begin(record("one"), head(0), entry(0))
        for number in range(1, 6):
            await store.commit("one", head(number), entry(number))
            await asyncio.to_thread(server.restart)
            assert await store.seq("one") == number
        store.close()


@pytest.mark.anyio
async def test_a_commit_whose_answer_was_lost_counts_once(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await postgres_store.begin(record("one"), head(0), entry(0))
    tried, lost = postgres_store._connections._try, [ConnectionResetError("cut off after it was written")]

    async def cut_once(work: Any) -> Any:
        result: Any = await tried(work)
        if lost:
            raise lost.pop()
        return result

    monkeypatch.setattr(postgres_store._connections, "_try", cut_once)
    await postgres_store.commit("one", head(1), entry(1))
    lost.append(ConnectionResetError("cut off again"))
    claimed = await postgres_store.claim("one", Lease("", 1, 0.0), "ours", 100.0)
    assert claimed == Lease("ours", 2, 100.0)
    lost.append(ConnectionResetError("and again"))
    await postgres_store.begin(record("two"), head(0), entry(0))
    assert not lost
    assert [one["seq"] for one in await postgres_store.entries("one")] == [0, 1]
    with pytest.raises(Conflict):
        await postgres_store.begin(record("two"), head(0), entry(0))


def statements(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commits each statement has that the store writes from now on."""
    move, sizes = store._move, list[int]()

    async def count(connection: Any, commits: Any) -> Any:
        sizes.append(len(commits))
        return await move(connection, commits)

    monkeypatch.setattr(store, "_move", count)
    return sizes


def grown(seq: int, text: str) -> tuple[Head, Entry]:
    """An entry that appends to a thread and holds a long text, and the head after it."""
    said = replace(entry(seq, text), appends=(Append("talk", text),))
    snapshot = Snapshot((f"state-{seq}",), text, threads={"talk": Tail(seq, "x")})
    return replace(head(seq), snapshot=snapshot), said


@pytest.mark.anyio
async def test_commits_of_several_runs_share_a_statement_and_each_stands_or_falls_alone(
    postgres_store: PostgresStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = Lease("us:1:a", 1, 9_000.0), "them:1:b"
    for run in RUNS:
        await postgres_store.begin(record(run), head(0), entry(0), ours)
    other = PostgresStore(database)
    await other.commit("run-03", head(1, "winner"), entry(1, "winner"))
    await other.claim("run-05", ours, theirs, 9_000.0)
    sizes = statements(postgres_store, monkeypatch)
    ends = await asyncio.gather(
        *(postgres_store.commit(run, head(1, run), entry(1, run), ours, ours) for run in RUNS),
        postgres_store.commit("run-07", head(1, "twice"), entry(1, "twice"), ours, ours),
        return_exceptions=True,
    )
    assert sizes == [len(RUNS) + 1]
    late = {run for run, end in zip([*RUNS, "run-07"], ends, strict=True) if isinstance(end, Conflict)}
    assert late == {"run-03", "run-05", "run-07"}
    assert len([end for end in ends if end is not None]) == 3
    for run in RUNS:
        stored = await other.load(run)
        assert [kept["seq"] for kept in await other.entries(run)] == ([0] if run == "run-05" else [0, 1])
        assert stored.lease.owner == (theirs if run == "run-05" else "us:1:a")
        if run not in late:
            assert stored.head["snapshot"]["data"] == run
        assert (await postgres_store.audit(run)).verdict != "broken"
    assert (await other.load("run-03")).head["snapshot"]["data"] == "winner"
    other.close()


@pytest.mark.anyio
async def test_what_runs_say_in_one_statement_stands_in_their_own_threads(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in RUNS:
        await postgres_store.begin(record(run), head(0), entry(0))
    sizes = statements(postgres_store, monkeypatch)
    texts = {run: run * 1000 for run in RUNS}
    await asyncio.gather(
        *(postgres_store.commit(run, *grown(1, texts[run])) for run in RUNS[1:]),
        postgres_store.commit(RUNS[0], head(1, "plain"), entry(1, "plain")),
    )
    assert sizes == [len(RUNS)]
    assert await postgres_store.entries(RUNS[0], 1) != []
    for run in RUNS[1:]:
        assert await postgres_store.thread(run, "talk", 0, 1) == [texts[run]]
        assert (await postgres_store.load(run)).head["snapshot"]["data"] == texts[run]


@pytest.mark.anyio
async def test_a_run_whose_commit_fails_does_not_keep_the_others_from_being_written(
    postgres_store: PostgresStore, postgres: PostgresServer, database: str
) -> None:
    for run in RUNS:
        await postgres_store.begin(record(run), head(0), entry(0))
    postgres.execute(
        "CREATE FUNCTION moothall.curse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.run = 'run-04' THEN RAISE 'the disk has a hole here'; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER cursed BEFORE UPDATE ON moothall.runs FOR EACH ROW EXECUTE FUNCTION moothall.curse()",
        database.rpartition("/")[2],
    )
    ends = await asyncio.gather(
        *(postgres_store.commit(run, head(1, run), entry(1, run)) for run in RUNS), return_exceptions=True
    )
    failed = {run: str(end) for run, end in zip(RUNS, ends, strict=True) if end is not None}
    assert [*failed] == ["run-04"]
    assert "the disk has a hole here" in failed["run-04"]
    assert {tuple(kept["seq"] for kept in await postgres_store.entries(run)) for run in RUNS if run not in failed} == {
        (0, 1)
    }
    assert [kept["seq"] for kept in await postgres_store.entries("run-04")] == [0]


@pytest.mark.anyio
async def test_commits_whose_answer_was_lost_together_count_once_each(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in RUNS:
        await postgres_store.begin(record(run), head(0), entry(0))
    tried, lost = postgres_store._connections._try, [ConnectionResetError("cut off after it was written")]

    async def cut_once(work: Any) -> Any:
        result: Any = await tried(work)
        if lost:
            raise lost.pop()
        return result

    monkeypatch.setattr(postgres_store._connections, "_try", cut_once)
    sizes = statements(postgres_store, monkeypatch)
    await asyncio.gather(*(postgres_store.commit(run, head(1, run), entry(1, run)) for run in RUNS))
    assert sizes == [len(RUNS)] * 2
    assert {tuple(kept["seq"] for kept in await postgres_store.entries(run)) for run in RUNS} == {(0, 1)}


@pytest.mark.anyio
async def test_two_who_move_the_same_runs_in_batches_never_wait_for_each_other_for_good(
    postgres_store: PostgresStore, postgres: PostgresServer, database: str
) -> None:
    other = PostgresStore(database)
    for run in RUNS:
        await postgres_store.begin(record(run), head(0), entry(0))
    for run in RUNS:
        await other.load(run)

    async def move(writer: PostgresStore, run: str, seq: int) -> bool:
        try:
            await writer.load(run)
            await writer.commit(run, head(seq), entry(seq))
        except Conflict:
            return False
        return True

    for seq in range(1, 21):
        back = [*reversed(RUNS)]
        ends = await asyncio.gather(
            *(move(postgres_store, run, seq) for run in RUNS), *(move(other, run, seq) for run in back)
        )
        winners = [*zip(RUNS, ends[: len(RUNS)], strict=True), *zip(back, ends[len(RUNS) :], strict=True)]
        assert sorted(run for run, won in winners if won) == RUNS
    name = database.rpartition("/")[2]
    assert postgres.execute(f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{name}'") == "0"
    other.close()


@pytest.mark.anyio
async def test_the_mirror_keeps_the_newer_version_and_names_that_no_column_holds(database: str) -> None:
    mirror = PostgresMirror(database)
    await mirror.put([SharedRecord("notes", "a", 1, 1), SharedRecord("notes", "a", 2, 2)])
    await mirror.put([SharedRecord("notes", "a", 1, 1), SharedRecord("notes", "b\x00", {"text": "nul \x00"}, 1)])
    assert await mirror.records() == [
        SharedRecord("notes", "a", 2, 2),
        SharedRecord("notes", "b\u2400", {"text": "nul \x00"}, 1),
    ]
    assert "open-sesame" not in mirror.name


@pytest.mark.anyio
async def test_several_that_make_the_mirror_at_once_do_not_collide(database: str) -> None:
    mirrors = [PostgresMirror(database) for _ in range(8)]
    await asyncio.gather(*(mirror.put([SharedRecord("notes", "a", 1, 1)]) for mirror in mirrors))
    assert await mirrors[0].records() == [SharedRecord("notes", "a", 1, 1)]
