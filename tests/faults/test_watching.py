"""Watching cannot harm a run: neither observers that raise or hang, nor watchers that never read."""

import asyncio
import select
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pytest

from moothall.app.runs import view as looking
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Observer, begin
from moothall.runtime.journal import Entry, Head, Record, RunId
from moothall.runtime.observer import Aside
from moothall.runtime.ports import Context
from moothall.stores.sqlite import SqliteStore
from tests.faults.place import RUN, Entries, Place, told
from tests.runtime.clock import MovableClock
from tests.runtime.world import Basket, Fetch, Fetched, hall_of, line

STOPS = tuple(f"stop_{number}" for number in range(6))
LINE = line(*STOPS)
ENTRIES = len(STOPS) + 1
FOLLOWERS, READERS = 200, 5
NAMES = [f"stop_{number}" for number in range(30)]
LONG_WAY = Machine(
    "long way",
    data=Basket,
    states=[*(State(name, enter=Fetch(name)) for name in NAMES), Final("home")],
    moves=[On(here, Fetched, to=there) for here, there in pairwise([*NAMES, "home"])],
)
WORDY = "The sea rises. " * 200
PIPE = 65_536


async def fetch(effect: Fetch, context: Context) -> Event:
    await asyncio.sleep(0)
    return Fetched(effect.what)


@pytest.fixture
def file(place: Place) -> Path:
    """The store is the one that commands find in the place."""
    return place.file


async def journal_of(store: SqliteStore, *observers: Observer, run: RunId = RUN) -> Entries:
    """The journal of a run that these observers watched."""
    hall = hall_of(fetch, store, MovableClock())
    hall.observers.extend(observers)
    await begin(hall, Record(run, LINE.name, LINE.digest, 1_000.0), LINE, Basket())
    await drive(hall, run)
    return told(await store.entries(run))


class Calm:
    """An observer that notes what it sees."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, run: RunId, entry: Entry, head: Head) -> None:
        self.seen.append(entry.seq)


def raising(error: BaseException, at: int) -> Observer:
    """An observer that raises this when it sees that entry."""

    def observe(run: RunId, entry: Entry, head: Head) -> None:
        if entry.seq == at:
            raise error

    return observe


@pytest.mark.anyio
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("I have seen enough"),
        OSError(28, "No space left on device"),
        RecursionError(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_observer_that_raises_at_any_entry_leaves_the_journal_as_it_is(
    store: SqliteStore, error: BaseException, figure: list[str]
) -> None:
    expected = await journal_of(store, run="unwatched")
    for at in range(ENTRIES):
        calm = Calm()
        assert await journal_of(store, raising(error, at), calm, run=f"watched-{at}") == expected
        assert calm.seen == list(range(ENTRIES))
    figure.append(f"{type(error).__name__} in an observer at {ENTRIES} of {ENTRIES} entries: the same journal")


@pytest.mark.anyio
async def test_an_observer_that_takes_its_time_leaves_the_journal_as_it_is(store: SqliteStore) -> None:
    expected = await journal_of(store, run="unwatched")
    assert await journal_of(store, lambda run, entry, head: time.sleep(0.02)) == expected


def test_an_observer_that_hangs_does_not_stop_the_run(tmp_path: Path) -> None:
    release, file = threading.Event(), tmp_path / "runs.db"

    def hang(run: RunId, entry: Entry, head: Head) -> None:
        if entry.seq == 2:
            release.wait(10)

    def work() -> None:
        store = SqliteStore(file)
        asyncio.run(journal_of(store, Aside(hang)))
        store.close()

    elsewhere = SqliteStore(file)
    running = threading.Thread(target=work)
    running.start()
    end = time.monotonic() + 1
    while time.monotonic() < end and asyncio.run(elsewhere.seq(RUN)) < ENTRIES - 1:
        time.sleep(0.01)
    reached = asyncio.run(elsewhere.seq(RUN))
    release.set()
    running.join()
    assert len(asyncio.run(elsewhere.entries(RUN))) == ENTRIES
    elsewhere.close()
    assert reached == ENTRIES - 1


@pytest.mark.anyio
async def test_an_observer_that_changes_what_it_is_shown_changes_nothing_in_the_run(store: SqliteStore) -> None:
    machine = Machine(
        "untyped",
        states=[State("fetching", enter=Fetch("bread")), Final("home")],
        moves=[On("fetching", Fetched, to="home")],
    )
    hall = hall_of(fetch, store, MovableClock())
    shown = Aside(lambda run, entry, head: head.snapshot.data.update(seen=entry.seq))
    hall.observers.append(shown)
    await begin(hall, Record(RUN, machine.name, machine.digest, 1_000.0), machine, {"count": 1})
    await drive(hall, RUN)
    assert shown.wait_until_seen()
    assert (await store.load(RUN)).head["snapshot"]["data"] == {"count": 1}


# watchers


async def say_much(effect: Fetch, context: Context) -> Event:
    await asyncio.sleep(0.01)
    return Fetched(f"{effect.what}: {WORDY}")


def written(store: SqliteStore) -> list[str]:
    """Every transaction that the store begins from now on."""
    begun: list[str] = []
    store._db.set_trace_callback(lambda text: begun.append(text) if text.startswith("BEGIN") else None)
    return begun


def has_said_something(pipe: IO[str]) -> bool:
    """Whether something stands in a pipe, without reading it."""
    return bool(select.select([pipe], [], [], 30)[0])


async def walked(store: SqliteStore, run: RunId, watching: Any) -> tuple[Entries, int]:
    """The journal of a long run that is watched from its first entry on, and how many transactions it took."""
    hall = hall_of(say_much, store, MovableClock())
    await begin(hall, Record(run, LONG_WAY.name, LONG_WAY.digest, 1_000.0), LONG_WAY, Basket())
    await watching()
    transactions = written(store)
    assert (await drive(hall, run)).snapshot.status == "done"
    return told(await store.entries(run)), len(transactions)


@pytest.mark.anyio
async def test_two_hundred_and_five_watchers_that_never_read_change_nothing(
    place: Place, store: SqliteStore, figure: list[str]
) -> None:
    elsewhere, unread = SqliteStore(place.file), [list[Any]() for _ in range(FOLLOWERS)]
    followers: list[asyncio.Task[str]] = []

    async def watching() -> None:
        readers = [place.start("watch", RUN, "--json") for _ in range(READERS)]
        followers.extend(
            asyncio.create_task(looking.Following(RUN).wait_for_end(elsewhere, kept.append)) for kept in unread
        )
        for reader in readers:
            assert reader.stdout is not None
            assert await asyncio.to_thread(has_said_something, reader.stdout)

    async def nobody() -> None:
        return

    expected, unwatched = await walked(store, "unwatched", nobody)
    found, watched = await walked(store, RUN, watching)
    assert [entry["seq"] for entry in found] == list(range(len(NAMES) + 1))
    assert (found, watched) == (expected, unwatched)
    assert set(await asyncio.gather(*followers)) == {"done"}
    assert {tuple(entry["seq"] for entry in kept) for kept in unread} == {tuple(range(len(found)))}
    stuck = [process for process in place.processes if process.poll() is None]
    assert len(stuck) == READERS
    assert sum(len(str(entry)) for entry in found) > PIPE
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert place.file.with_name("moothall.db-wal").stat().st_size == 0
    elsewhere.close()
    figure.append(
        f"{FOLLOWERS} followers and {READERS} `moot watch` that nobody reads: {watched} transactions for "
        f"{len(found)} entries, as without them"
    )
