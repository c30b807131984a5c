"""A store is opened once per thread, with one durability, and nobody gets another one without knowing."""

from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from moothall.app.config.access import opened
from moothall.errors import Refused
from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore

NORMAL, FULL = 1, 2
FORKING = get_context("fork")


def synchronous(store: Store) -> int:
    """How the file is written, in SQLite's own numbers."""
    assert isinstance(store, SqliteStore)
    found: int = store._db.execute("PRAGMA synchronous").fetchone()[0]
    return found


@pytest.mark.parametrize(("durability", "level"), [(None, FULL), ("full", FULL), ("normal", NORMAL)])
def test_a_store_is_written_as_durably_as_was_asked_for(address: str, durability: str | None, level: int) -> None:
    with opened(address, durability) as store:
        assert synchronous(store) == level


def test_the_environment_decides_where_nothing_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_DURABILITY", "normal")
    with opened(address) as store:
        assert synchronous(store) == NORMAL
    with opened(address, "full") as store:
        assert synchronous(store) == FULL


@pytest.mark.parametrize(("first", "second"), [("full", "normal"), ("normal", "full"), (None, "normal")])
def test_another_durability_for_an_open_store_is_refused(address: str, first: str | None, second: str) -> None:
    with opened(address, first) as store:
        with pytest.raises(Refused, match=f"is open here with durability {first or 'full'}; it cannot be {second}"):
            opened(address, second).__enter__()
        with opened(address, first) as same:
            assert same is store
    with opened(address, second) as store:
        assert synchronous(store) == (NORMAL if second == "normal" else FULL)


def test_who_names_no_durability_shares_the_store_as_it_is_open(address: str) -> None:
    with opened(address, "normal") as store, opened(address) as same:
        assert same is store
        assert synchronous(same) == NORMAL


def test_a_process_that_was_forked_off_opens_the_store_anew(address: str) -> None:
    def look(given: Store, said: "Connection[bool]") -> None:
        with opened(address) as own:
            said.send(own is given)

    reader, writer = FORKING.Pipe(duplex=False)
    with opened(address) as store:
        process = FORKING.Process(target=look, args=(store, writer))
        process.start()
        assert reader.poll(60)
        assert reader.recv() is False
        process.join()


def test_a_process_that_was_forked_off_does_not_close_the_store_that_it_came_with(address: str) -> None:
    def leave(opening: opened, store: Store, said: "Connection[int]") -> None:
        opening.__exit__()
        said.send(synchronous(store))

    reader, writer = FORKING.Pipe(duplex=False)
    opening = opened(address)
    with opening as store:
        process = FORKING.Process(target=leave, args=(opening, store, writer))
        process.start()
        process.join(60)
        assert reader.poll()
        assert reader.recv() == FULL
