"""Records outlive runs: read by an effect, written by a step in its own transaction, and only over what was read."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import DefinitionError
from moothall.kernel.effects import ReadRecords, WriteRecords
from moothall.kernel.events import Event, RecordsRead, RecordsWritten, SharedRecord
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.fork import fork, origin_of
from moothall.runtime.hall import Hall, answer, begin, questions
from moothall.runtime.journal import Head, Reader, Record, Run
from moothall.runtime.ports import Context, Store
from moothall.runtime.rebuild import compared
from moothall.runtime.retry import Retry, retry
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock
from tests.runtime.rated import ANN, RATED, RATINGS, Game
from tests.runtime.world import PROCESSES, Basket, Fetch, Fetched, hall_of


def hall_with(store: Store) -> Hall:
    return Hall(store, HastyClock(), {}, owner=next(PROCESSES))


async def played(hall: Hall, run: str, machine: Machine = RATED, data: Any = None) -> Head:
    """A run that has gone as far as it goes."""
    await begun(hall, run, machine, data)
    return await drive(hall, run)


async def begun(hall: Hall, run: str, machine: Machine = RATED, data: Any = None) -> Head:
    record = Record(run, machine.name, machine.digest, hall.clock.now())
    return await begin(hall, record, machine, Game(run) if data is None else data)


async def rating(store: Store, player: str = ANN) -> SharedRecord:
    (found,) = await store.records(RATINGS, key=player)
    return found


async def names(store: Store, run: str) -> list[str]:
    return [entry["event"]["name"] for entry in await store.entries(run)]


@pytest.mark.anyio
async def test_a_run_reads_what_another_has_written(each_store: Store) -> None:
    hall = hall_with(each_store)
    first, second = await played(hall, "one"), await played(hall, "two")
    assert (first.snapshot.data.version, second.snapshot.data.version) == (1, 2)
    assert await rating(each_store) == SharedRecord(RATINGS, ANN, {"games": 2, "by": ["one", "two"]}, 2)
    assert await names(each_store, "two") == ["run.started", "records.read", "records.written"]


@pytest.mark.anyio
async def test_who_comes_too_late_hears_of_it_and_reads_again(each_store: Store) -> None:
    hall = hall_with(each_store)
    heads = await asyncio.gather(*(played(hall, f"run-{number}") for number in range(12)))
    assert {head.snapshot.status for head in heads} == {"done"}
    entered = await rating(each_store)
    assert entered.version == entered.value["games"] == 12
    assert sorted(entered.value["by"]) == sorted(f"run-{number}" for number in range(12))
    assert sorted(head.snapshot.data.version for head in heads) == list(range(1, 13))
    lost = sum(head.snapshot.data.lost for head in heads)
    told = [name for number in range(12) for name in await names(each_store, f"run-{number}")]
    assert told.count("error.effect.conflict") == lost


@pytest.mark.anyio
async def test_a_conflict_that_no_row_takes_ends_the_run_and_says_which_record(each_store: Store) -> None:
    stubborn = Machine(
        "stubborn",
        states=[State("writing", enter=WriteRecords((SharedRecord(RATINGS, ANN, 1),))), Final("written")],
        moves=[On("writing", RecordsWritten, to="written")],
    )
    hall = hall_with(each_store)
    assert (await played(hall, "one", stubborn, {})).snapshot.status == "done"
    head = await played(hall, "two", stubborn, {})
    assert head.snapshot.status == "failed"
    assert "the record 'ann' of 'ratings' has version 1, not 0; read it again" in head.snapshot.reason
    assert (await rating(each_store)).version == 1


@pytest.mark.anyio
async def test_records_are_written_all_or_none(each_store: Store) -> None:
    hall = hall_with(each_store)
    await played(hall, "one", data=Game("one", "bob"))
    both = WriteRecords((SharedRecord(RATINGS, "eve", 1), SharedRecord(RATINGS, "bob", 1)))
    pair = Machine(
        "pair",
        states=[State("writing", enter=both), Final("written"), Final("unwritten")],
        moves=[On("writing", RecordsWritten, to="written"), On("writing", "error", to="unwritten")],
    )
    head = await played(hall, "two", pair, {})
    assert head.snapshot.active == ("unwritten",)
    assert [record.key for record in await each_store.records(RATINGS)] == ["bob"]


@pytest.mark.anyio
async def test_two_writes_of_one_run_at_the_same_record_do_not_both_count(each_store: Store) -> None:
    twice = Machine(
        "twice",
        data=Basket,
        states=[
            State(
                "writing",
                enter=[WriteRecords((SharedRecord(RATINGS, ANN, which),)) for which in ("first", "second")],
            ),
            Final("written"),
        ],
        moves=[
            On("writing", RecordsWritten, do=lambda basket, event: Basket((*basket.got, "written"))),
            On("writing", "error", to="written", do=lambda basket, event: Basket((*basket.got, event.key))),
        ],
    )
    head = await played(hall_with(each_store), "one", twice, Basket())
    assert head.snapshot.data.got == ("written", ANN)
    assert (await rating(each_store)) == SharedRecord(RATINGS, ANN, "first", 1)


def test_a_record_cannot_be_written_twice_by_one_effect() -> None:
    with pytest.raises(DefinitionError, match="the record 'a' of 'c' is to be written twice at once"):
        WriteRecords((SharedRecord("c", "a", 1), SharedRecord("c", "b", 1), SharedRecord("c", "a", 2)))


@pytest.mark.anyio
async def test_a_write_whose_state_was_left_is_not_made(each_store: Store) -> None:
    """The write waits behind a slow effect of the same state, which leads away first."""

    async def fetch(effect: Fetch, context: Context) -> Event:
        return Fetched(effect.what)

    racing = Machine(
        "racing",
        data=Basket,
        states=[
            State("both", enter=[Fetch("bread"), WriteRecords((SharedRecord(RATINGS, ANN, 1),))]),
            Final("away"),
        ],
        moves=[On("both", Fetched, to="away"), On("both", RecordsWritten)],
    )
    hall = hall_of(fetch, each_store)
    head = await played(hall, "one", racing, Basket())
    assert head.snapshot.status == "done"
    entries = {entry["event"]["name"]: entry for entry in await each_store.entries("one")}
    is_written = "records.written" in entries and "ignored" not in entries["records.written"]
    assert len(await each_store.records(RATINGS)) == is_written


@pytest.mark.anyio
async def test_a_journal_with_records_is_decided_again_without_touching_them(each_store: Store) -> None:
    hall = hall_with(each_store)
    heads = await asyncio.gather(*(played(hall, f"run-{number}") for number in range(3)))
    before = await each_store.records(RATINGS), await each_store.outbox("elsewhere")
    for head in heads:
        run = head.snapshot.data.name
        known = Run((await each_store.load(run)).record, RATED)
        again = compared(known, Reader(RATED, {}), await each_store.entries(run))
        assert isinstance(again, Head)
        assert again.snapshot == head.snapshot
    assert (await each_store.records(RATINGS), await each_store.outbox("elsewhere")) == before


@pytest.mark.anyio
async def test_a_fork_does_not_write_again_unasked_and_reads_again_when_told_to(each_store: Store) -> None:
    hall = hall_with(each_store)
    await played(hall, "one")
    origin = await origin_of(hall, "one", 1, RATED)
    record = Record("two", RATED.name, RATED.digest, hall.clock.now(), origin="one")
    await fork(hall, origin, record, repeats=False)
    head = await drive(hall, "two")
    (doubted,) = questions(head)
    assert "run one did the same after entry 1" in doubted.doubt
    assert (await rating(each_store)).version == 1
    await answer(hall, "two", {"outcome": "again"}, doubted.key)
    head = await drive(hall, "two")
    assert (head.snapshot.status, head.snapshot.data.lost, head.snapshot.data.version) == ("done", 1, 2)
    await fork(hall, origin, replace(record, run="three"), repeats=False)
    await answer(hall, "three", {"outcome": "done"}, doubted.key)
    head = await drive(hall, "three")
    assert (head.snapshot.status, head.snapshot.data.version) == ("done", 1)
    assert (await rating(each_store)).version == 2


@pytest.mark.anyio
async def test_secrets_do_not_enter_records(each_store: Store) -> None:
    hall = hall_with(each_store)
    hall.clean = _cleaned
    writing = WriteRecords((SharedRecord("notes", "a", {"text": "it is hunter2"}),))
    keeping = Machine(
        "keeping",
        states=[State("writing", enter=writing), Final("written")],
        moves=[On("writing", RecordsWritten, to="written")],
    )
    await played(hall, "one", keeping, {})
    (kept,) = await each_store.records("notes")
    (sent,) = await each_store.outbox("mirror")
    assert kept.value == {"text": "it is ***"}
    assert sent.record == kept


def _cleaned(value: Any) -> Any:
    if not isinstance(value, WriteRecords):
        return value
    return WriteRecords(tuple(replace(one, value={"text": "it is ***"}) for one in value.records))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (ReadRecords("notes"), ["a", "ab", "abc", "b"]),
        (ReadRecords("notes", "ab"), ["ab"]),
        (ReadRecords("notes", "c"), []),
        (ReadRecords("notes", prefix="ab"), ["ab", "abc"]),
        (ReadRecords("notes", most=2), ["a", "ab"]),
        (ReadRecords("nothing"), []),
    ],
)
async def test_what_is_read_is_one_record_or_those_whose_keys_begin_alike(
    each_store: Store, wanted: ReadRecords, keys: list[str]
) -> None:
    hall = hall_with(each_store)
    all_of_them = tuple(SharedRecord("notes", key, key.upper()) for key in ("b", "abc", "a", "ab"))
    reading = Machine(
        "reading",
        data=Basket,
        states=[State("writing", enter=WriteRecords(all_of_them)), State("reading", enter=wanted), Final("done")],
        moves=[
            On("writing", RecordsWritten, to="reading"),
            On("reading", RecordsRead, to="done", do=lambda basket, read: Basket(tuple(r.key for r in read.records))),
        ],
    )
    head = await played(hall, "one", reading, Basket())
    assert list(head.snapshot.data.got) == keys


@pytest.mark.anyio
async def test_records_stay_when_the_run_that_wrote_them_is_forgotten(each_store: Store) -> None:
    hall = hall_with(each_store)
    await played(hall, "one")
    await each_store.forget("one")
    assert (await rating(each_store)).value["games"] == 1
    assert len(await each_store.outbox("mirror")) == 1


@pytest.mark.anyio
async def test_a_damaged_record_concerns_those_alone_who_read_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", b"key")
    hall = hall_with(store)
    await played(hall, "one")
    await played(hall, "two", data=Game("two", "bob"))
    store._db.execute("UPDATE records SET body = CAST('{\"games\":99,\"by\":[]}' AS BLOB) WHERE key = 'ann'")
    assert (await played(hall, "three", data=Game("three", "bob"))).snapshot.status == "done"
    head = await played(hall, "four")
    assert head.snapshot.status == "failed"
    assert "the record 'ann' of 'ratings' was changed or damaged" in head.snapshot.reason
    store.close()


@pytest.mark.anyio
async def test_a_run_that_is_retried_does_not_write_its_records_again(each_store: Store) -> None:
    def counting(keep: Any) -> Machine:
        return Machine(
            "counting",
            data=Game,
            states=[State("writing", enter=WriteRecords((SharedRecord(RATINGS, ANN, 1),))), Final("written")],
            moves=[On("writing", RecordsWritten, to="written", do=keep)],
        )

    def fails(game: Game, written: RecordsWritten) -> Game:
        raise LookupError("a bug")

    def works(game: Game, written: RecordsWritten) -> Game:
        return replace(game, version=written.versions[0])

    works.__qualname__ = fails.__qualname__
    hall = hall_with(each_store)
    assert (await played(hall, "one", counting(fails))).snapshot.status == "failed"
    head = await retry(hall, "one", counting(works), Retry())
    assert (head.snapshot.status, head.snapshot.data.version) == ("done", 1)
    assert (await rating(each_store)).version == 1
    assert len(await each_store.outbox("mirror")) == 1
