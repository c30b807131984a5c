"""What the anchors say is on the disk: at once where something follows that must not be done twice, else soon."""

import asyncio
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from moothall.kernel.events import Began
from moothall.runtime.journal import Pending
from moothall.stores import anchors as anchoring
from moothall.stores.sqlite import SqliteStore
from tests.runtime.world import Fetch
from tests.stores.values import entry, head, record

SOON = 20.0
MOVING = (Pending("0.0", Fetch("bread")),)


@pytest.fixture
def brought() -> threading.Event:
    """Is set when something was brought to the disk."""
    return threading.Event()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, brought: threading.Event) -> list[str]:
    """The files that Python brings to the disk from now on."""
    names, bring = list[str](), os.fdatasync

    def note(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent.name)
        bring(descriptor)
        brought.set()

    monkeypatch.setattr(os, "fdatasync", note)
    return names


@pytest.fixture
def anchored(file: Path, tmp_path: Path) -> Iterator[SqliteStore]:
    """A store whose anchors lie beside it, and whose commits are on the disk when they return."""
    store = SqliteStore(file, b"key", anchors=tmp_path / "anchors")
    yield store
    with suppress(sqlite3.ProgrammingError):  # a test has closed it
        store.close()


async def begin_moving(store: SqliteStore) -> None:
    await store.begin(record(), replace(head(0), pending=MOVING), entry(0))


@pytest.mark.anyio
@pytest.mark.parametrize("crowd", [1, 2])
async def test_before_something_begins_that_must_not_be_done_twice(
    anchored: SqliteStore, synced: list[str], crowd: int
) -> None:
    anchored.crowd = crowd
    await begin_moving(anchored)
    assert synced == []
    began = replace(entry(1), event=Began())
    await anchored.commit("one", replace(head(1), pending=MOVING), began)
    assert synced == ["anchors"]


@pytest.mark.anyio
async def test_when_a_run_was_deleted_or_accepted(anchored: SqliteStore, synced: list[str]) -> None:
    await anchored.begin(record(), head(0), entry(0))
    await anchored.accept("one")
    assert synced == ["anchors"]
    await anchored.forget("one")
    assert synced == ["anchors"] * 2


@pytest.mark.anyio
async def test_once_for_all_that_was_said_in_a_moment(
    anchored: SqliteStore, synced: list[str], brought: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "MOMENT", 0.0)
    await anchored.begin(record("one"), head(0), entry(0))
    await anchored.begin(record("two"), head(0), entry(0))
    assert await asyncio.to_thread(brought.wait, SOON)
    anchored.close()
    assert synced == ["anchors"]


@pytest.mark.anyio
async def test_at_the_latest_when_the_store_is_closed(anchored: SqliteStore, synced: list[str]) -> None:
    await anchored.begin(record(), head(0), entry(0))
    anchored.close()
    assert synced == ["anchors"]


@pytest.mark.anyio
async def test_not_where_commits_are_not_either(file: Path, tmp_path: Path, synced: list[str]) -> None:
    store = SqliteStore(file, b"key", anchors=tmp_path / "anchors", durability="normal")
    await store.begin(record(), head(0), entry(0))
    store.close()
    assert synced == []


@pytest.mark.anyio
async def test_a_disk_that_does_not_take_them_is_told_and_runs_go_on(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    store = SqliteStore(file, b"key", anchors=tmp_path / "anchors", tell=said.append)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)
    await begin_moving(store)
    await store.commit("one", replace(head(1), pending=MOVING), replace(entry(1), event=Began()))
    assert await store.seq("one") == 1
    (text,) = said
    assert text.endswith("Input/output error; runs go on, but audits cannot tell")
    store.close()


def test_what_was_said_here_is_known_without_reading_it_and_what_others_said_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (anchoring.Anchors(tmp_path, "name", tmp_path / "store.db") for _ in range(2))
    reads, read = list[int](), anchoring._read

    def noted(file: str, start: int, length: int) -> bytes:
        reads.append(start)
        return read(file, start, length)

    monkeypatch.setattr(anchoring, "_read", noted)
    assert dict(here.tips()) == {}
    here.say(anchoring.Anchor("moves", "mine", 0, b"0"))
    here.say(anchoring.Anchor("rests", "mine", 2, b"2"))
    assert (dict(here.tips()), reads) == ({"mine": (2, b"2")}, [])
    there.say(anchoring.Anchor("rests", "mine", 5, b"5"))
    here.say(anchoring.Anchor("moves", "mine", 4, b"4"))
    assert (dict(here.tips()), len(reads)) == ({"mine": (5, b"5")}, 1)
    here.say(anchoring.Anchor("gone", "mine", -1))
    assert (dict(here.tips()), len(reads)) == ({}, 1)
    assert dict(anchoring.Anchors(tmp_path, "name", tmp_path / "store.db").tips()) == {}
    here.close()
    there.close()


def test_a_line_that_was_cut_off_does_not_hide_the_ones_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "name.jsonl"
    file.write_bytes(b'["rests","mine",1,"31",""]\n["rests","mi')
    anchors = anchoring.Anchors(tmp_path, "name", tmp_path / "store.db")
    assert dict(anchors.tips()) == {"mine": (1, b"1")}
    anchors.say(anchoring.Anchor("rests", "other", 3, b"3"))
    assert dict(anchors.tips()) == {"mine": (1, b"1"), "other": (3, b"3")}
    anchors.close()


def test_places_that_cannot_be_read_for_a_moment_are_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchoring.note_place(tmp_path, "mine", "/there")

    def refuse(file: Path) -> bytes:
        raise OSError(errno.EMFILE, "too many open files", file)

    anchoring._names_in.cache_clear()
    anchoring._places_in.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        assert not anchoring.names_at(tmp_path, "/there")
    assert anchoring.names_at(tmp_path, "/there") == {"mine"}
