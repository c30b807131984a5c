"""A run goes to another store in a file: every entry as it was, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.app.config.access import opened
from moothall.app.runs.replay import replay
from moothall.app.runs.transport import export_run, import_runs
from moothall.app.values import encode
from moothall.errors import Broken, Conflict, Refused
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.app.test_forgetting import LETTER, SAYING, SECRET, Letter, write_letter


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))


async def exported(address: str, run: str) -> bytes:
    with opened(address) as store:
        return json.dumps(encode(await export_run(store, run))).encode()


@pytest.mark.anyio
async def test_a_run_comes_into_another_store_as_it_was_and_is_audited_and_replayed_alike(
    tmp_path: Path, database: str
) -> None:
    first, last = f"sqlite:{tmp_path / 'first.db'}", f"sqlite:{tmp_path / 'last.db'}"
    await write_letter(first, "letter")
    await write_letter(database, "already-there")
    for source, target in ((first, database), (database, last)):
        text = await exported(source, "letter")
        with opened(source) as one, opened(target) as other:
            imported = await import_runs(other, text)
            assert (imported.runs, imported.verdict, imported.is_live) == (("letter",), "intact", False)
            entries = await other.entries("letter")
            assert entries == await one.entries("letter")
            assert imported.entries == len(entries) > 3
            assert await other.audit("letter") == await one.audit("letter")
            assert await replay(other, "letter", LETTER) == await replay(one, "letter", LETTER)
            assert (await other.load("letter")).head == (await one.load("letter")).head


@pytest.mark.anyio
async def test_a_fork_brings_the_run_that_it_shares_entries_with(tmp_path: Path) -> None:
    first, last = f"sqlite:{tmp_path / 'first.db'}", f"sqlite:{tmp_path / 'last.db'}"
    await write_letter(first, "letter")
    async with Moothall(first) as hall:
        await hall.fork("letter", LETTER, at=1, run_id="fork")
        await hall.answer("fork", "to nobody", machine=LETTER)
        await hall.fork("letter", LETTER, at=1, run_id="second")
        await hall.answer("second", "to everybody", machine=LETTER)
    with opened(last) as store:
        assert (await import_runs(store, await exported(first, "fork"))).runs == ("letter", "fork")
        assert "to nobody" in str(await store.entries("fork"))
        assert (await store.audit("fork")).verdict == "intact"
        assert (await import_runs(store, await exported(first, "second"))).runs == ("second",)
    other = f"sqlite:{tmp_path / 'other.db'}"
    await write_letter(other, "letter")
    with opened(other) as store:
        with pytest.raises(Conflict, match="the store has another run letter, which this one belongs to"):
            await import_runs(store, await exported(first, "fork"))
        assert [stored.record.run for stored in await store.runs()] == ["letter"]


@pytest.mark.anyio
async def test_a_run_that_is_not_over_is_set_aside_so_that_nobody_drives_it_twice(tmp_path: Path) -> None:
    first, last = f"sqlite:{tmp_path / 'first.db'}", f"sqlite:{tmp_path / 'last.db'}"
    async with Moothall(first) as hall:
        await hall.start(LETTER, Letter(SECRET), run_id="letter")
    with opened(last) as store:
        assert (await import_runs(store, await exported(first, "letter"))).is_live
        assert (await store.load("letter")).status.startswith("set aside: it came from another store")
        assert await store.due(4e9, 10) == []
    async with Moothall(last) as hall:
        await hall.resume("letter", machine=LETTER)
        assert (await hall.answer("letter", SAYING, machine=LETTER)).status == "done"


@pytest.mark.anyio
async def test_an_import_under_another_key_is_whole_and_nobody_can_tell_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = f"sqlite:{tmp_path / 'first.db'}"
    await write_letter(first, "letter")
    text = await exported(first, "letter")
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "elsewhere"))
    with opened(f"sqlite:{tmp_path / 'last.db'}") as store:
        imported = await import_runs(store, text)
        assert (imported.verdict, imported.why) == ("cannot tell", "not all of it was signed with this key")
        assert SECRET in str(await store.entries("letter"))


def _changed(text: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    plain = json.loads(text)
    change(plain)
    return json.dumps(plain).encode()


def _swap_entries(plain: dict[str, Any]) -> None:
    entries = plain["parcel"]["runs"][0]["entries"]
    entries[0], entries[1] = entries[1], entries[0]


FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off": (lambda text: text[: len(text) // 2], "the file is not whole JSON"),
    "empty": (lambda text: b"", "the file is not whole JSON"),
    "no JSON": (lambda text: b"\xff\x00", "the file is not whole JSON"),
    "foreign": (lambda text: b'{"runs": []}', "the file is not an exported run; `moot export RUN -o FILE` writes"),
    "a list": (lambda text: b"[]", "the file is not an exported run"),
    "newer": (lambda text: _changed(text, lambda plain: plain.update(version=9)), "format version 9.*pip install -U"),
    "for reading": (lambda text: _changed(text, lambda plain: plain.pop("parcel")), "the run for reading only"),
    "no seal": (lambda text: _changed(text, lambda plain: plain["parcel"].pop("seal")), "parts of it are missing"),
    "false seal": (
        lambda text: _changed(text, lambda plain: plain["parcel"].update(seal="00")),
        "the file is damaged: it does not have what was exported",
    ),
    "swapped": (lambda text: _changed(text, _swap_entries), "the file is damaged"),
    "renamed": (lambda text: _changed(text, lambda plain: plain["parcel"].update(run="other")), "the file is damaged"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", FILES)
async def test_a_file_that_is_damaged_or_foreign_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    first, last = f"sqlite:{tmp_path / 'first.db'}", f"sqlite:{tmp_path / 'last.db'}"
    await write_letter(first, "letter")
    damage, message = FILES[name]
    text = damage(await exported(first, "letter"))
    with opened(last) as store:
        with pytest.raises(Refused, match=message):
            await import_runs(store, text)
        assert await store.runs() == []


@pytest.mark.anyio
async def test_a_journal_that_is_not_whole_is_not_taken_in_although_its_parcel_is_sealed(tmp_path: Path) -> None:
    first, last = f"sqlite:{tmp_path / 'first.db'}", f"sqlite:{tmp_path / 'last.db'}"
    await write_letter(first, "letter")
    plain = json.loads(await exported(first, "letter"))
    content = {name: part for name, part in plain["parcel"].items() if name != "seal"}
    content["runs"][0]["entries"].pop(1)
    with opened(first) as store:
        assert isinstance(store, SqliteStore)
        text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        plain["parcel"] = {**content, "seal": (await store.seal_parcel(text)).hex()}
    with opened(last) as store:
        with pytest.raises(Broken, match="run letter: entries of its journal are missing"):
            await import_runs(store, json.dumps(plain).encode())
        assert await store.runs() == []


@pytest.mark.anyio
async def test_an_id_that_is_taken_is_refused_and_the_run_there_stays(tmp_path: Path) -> None:
    first = f"sqlite:{tmp_path / 'first.db'}"
    await write_letter(first, "letter")
    text = await exported(first, "letter")
    with opened(first) as store:
        before = await store.entries("letter")
        with pytest.raises(Conflict, match=r"run letter is in this store already.*--store sqlite:FILE"):
            await import_runs(store, text)
        assert await store.entries("letter") == before
        assert (await store.audit("letter")).verdict == "intact"


@pytest.mark.anyio
async def test_a_store_in_memory_takes_nothing_in_and_exports_for_reading(tmp_path: Path) -> None:
    store = MemoryStore()
    async with Moothall(store) as hall:
        await hall.run(LETTER, Letter(SECRET), run_id="letter")
    assert "parcel" not in await export_run(store, "letter")
    with pytest.raises(Refused, match="a store in memory keeps nothing"):
        await import_runs(store, b"{}")
