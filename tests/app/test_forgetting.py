"""Texts of runs and of persons are forgotten: nothing of them is left, and the journals are still whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from moothall import Answered, Final, Machine, Moothall, On, Replied, State, ask, question
from moothall.app.config.access import opened
from moothall.app.kinds.arena.records import Given as Locked
from moothall.app.kinds.arena.records import identity_of, lock_store
from moothall.app.report.account import show
from moothall.app.runs.forget import forget_person, forget_run
from moothall.app.runs.replay import replay
from moothall.app.runs.saves import list_saves, take_save
from moothall.app.runs.transport import export_run, import_runs
from moothall.errors import Broken, Refused
from moothall.kernel.effects import WriteRecords
from moothall.kernel.events import RecordsWritten, SharedRecord
from moothall.runtime.ports import Store
from moothall.runtime.redaction import PLACEHOLDER
from moothall.stores.memory import MemoryStore
from moothall.stores.mirror import SqliteMirror
from tests.simulation.shim import Given, StoreShim

SECRET, SAYING = "the tide table of Emden", "deliver it to Harbour Street 9"
LONG = f"{SECRET} " * 100


@dataclass(frozen=True)
class Letter:
    topic: str
    text: str = ""
    answer: str = ""


async def writer(prompt: str) -> str:
    return f"{prompt}: " + LONG


async def clerk(prompt: str) -> str:
    return f"Noted: {prompt}"


LETTER = Machine(
    "letter",
    data=Letter,
    states=[
        State("writing", enter=ask(writer, "{topic}")),
        State("asking", enter=question("Where to?", str)),
        State("noting", enter=ask(clerk, "They said {answer}.")),
        Final("sent"),
    ],
    moves=[
        On("writing", Replied, to="asking", do=lambda letter, reply: replace(letter, text=reply.text)),
        On("asking", Answered, to="noting", do=lambda letter, answer: replace(letter, answer=answer.value)),
        On("noting", Replied, to="sent"),
    ],
)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    return f"sqlite:{tmp_path / 'runs.db'}" if request.param == "sqlite" else request.getfixturevalue("database")


async def write_letter(address: str, run: str, person: str = "ada", *, is_answered: bool = True) -> None:
    async with Moothall(address) as hall:
        await hall.run(LETTER, Letter(SECRET), run_id=run)
        if is_answered:
            await hall.answer(run, SAYING, machine=LETTER, by=person)


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.anyio
async def test_a_run_without_its_texts_is_intact_and_says_what_was_forgotten(address: str, tmp_path: Path) -> None:
    await write_letter(address, "letter")
    await write_letter(address, "other")
    with opened(address) as store:
        before = await store.audit("letter")
        assert before.verdict == "intact"
        gone = await forget_run(store, "letter", by="olga", really=True)
        assert (gone.runs, gone.is_done) == (("letter",), True)
        after = await store.audit("letter")
        assert (after.verdict, after.digest) == ("intact", before.digest)
        assert [(note.by, note.what, len(note.entries)) for note in after.forgotten] == [
            ("olga", "run", before.entries)
        ]
        shown = str(await show(store, "letter"))
        assert PLACEHOLDER in shown
        assert SECRET not in shown
        assert SAYING not in shown
        assert SECRET in str(await show(store, "other"))
        await store.entries("letter")
        assert (await store.audit("other")).forgotten == ()


@pytest.mark.anyio
async def test_no_file_has_a_text_any_more_that_was_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    address = f"sqlite:{tmp_path / 'runs.db'}"
    await write_letter(address, "letter")
    assert SECRET.encode() in bytes_of(tmp_path)
    with opened(address) as store:
        assert (await forget_run(store, "letter", by="olga", really=True)).left == ()
        assert SECRET.encode() not in bytes_of(tmp_path)
        assert SAYING.encode() not in bytes_of(tmp_path)


class Dying(StoreShim):
    """A store before which somebody dies at one of the writes of forgetting, before it or after it."""

    def __init__(self, inner: Store, deadly: int) -> None:
        super().__init__(inner)
        self.points: list[str] = []
        self._deadly = deadly

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if name not in ("redact", "scrub"):
            return await call()
        self._pass(f"before {name}")
        done = await call()
        self._pass(f"after {name}")
        return done

    def _pass(self, point: str) -> None:
        self.points.append(point)
        if len(self.points) == self._deadly:
            raise KilledAtThisPoint(point)


class KilledAtThisPoint(BaseException):
    """Nothing of the process goes on after it."""


@pytest.mark.parametrize("deadly", range(1, 7))
@pytest.mark.anyio
async def test_who_dies_while_forgetting_forgets_the_rest_when_asked_again(
    deadly: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    address = f"sqlite:{tmp_path / 'runs.db'}"
    await write_letter(address, "letter")
    async with Moothall(address) as hall:
        await hall.fork("letter", LETTER, at=1, run_id="again")
        await hall.answer("again", f"{SAYING}, at noon", machine=LETTER, by="ada")
    with opened(address) as store:
        dying = Dying(store, deadly)
        with pytest.raises(KilledAtThisPoint):
            await forget_run(cast(Store, dying), "letter", by="olga", really=True)
    with opened(address) as store:
        for run in ("letter", "again"):
            assert (await store.audit(run)).verdict == "intact"
        dying = Dying(store, 0)
        await forget_run(cast(Store, dying), "letter", by="olga", really=True)
        assert dying.points == ["before redact", "after redact"] * 2 + ["before scrub", "after scrub"]
        for run in ("letter", "again"):
            assert (await store.audit(run)).verdict == "intact"
    assert SECRET.encode() not in bytes_of(tmp_path)
    assert SAYING.encode() not in bytes_of(tmp_path)


@pytest.mark.anyio
async def test_a_person_is_forgotten_wherever_the_words_stand_and_others_are_not(address: str) -> None:
    await write_letter(address, "hers")
    await write_letter(address, "his", "bob")
    with opened(address) as store:
        planned = await forget_person(store, "ada", by="olga", really=False)
        assert SAYING in str(await store.entries("hers"))
        gone = await forget_person(store, "ada", by="olga", really=True)
        assert (planned.runs, planned.entries) == (gone.runs, gone.entries) == (("hers",), gone.entries)
        hers, head = await store.entries("hers"), (await store.load("hers")).head
        assert SAYING not in str(hers) + str(head)
        assert "ada" not in str(hers)
        assert SECRET in str(hers)
        answered = next(entry["event"] for entry in hers if entry["event"]["name"] == "answered")
        assert (answered["by"], answered["value"]) == (PLACEHOLDER, PLACEHOLDER)
        assert f"They said {PLACEHOLDER}." in str(hers)
        audit = await store.audit("hers")
        assert (audit.verdict, [note.what for note in audit.forgotten]) == ("intact", ["person"])
        assert SAYING in str(await store.entries("his"))
        with pytest.raises(Refused, match="'carl' has answered or said nothing in this store"):
            await forget_person(store, "carl", by="olga", really=True)


@pytest.mark.anyio
async def test_a_replay_decides_what_is_left_again_and_says_where_it_cannot_go_on(address: str) -> None:
    await write_letter(address, "letter")
    with opened(address) as store:
        await forget_person(store, "ada", by="olga", really=True)
        replayed = await replay(store, "letter", LETTER)
        assert replayed.difference is None
        assert replayed.forgotten == replayed.entries > 1
        await forget_run(store, "letter", by="olga", really=True)
        assert (await replay(store, "letter", LETTER)).forgotten == 0
        notes = (await store.audit("letter")).forgotten
        assert [note.what for note in notes] == ["person", "run"]
    async with Moothall(address) as hall:
        with pytest.raises(Refused, match="texts of entry 0 were forgotten"):
            await hall.fork("letter", LETTER, at=1)
        with pytest.raises(Refused, match="its texts were forgotten"):
            await hall.resume("letter", machine=LETTER)


@pytest.mark.anyio
async def test_only_a_run_that_is_over_is_forgotten_and_only_with_what_has_its_texts(address: str) -> None:
    await write_letter(address, "letter", is_answered=False)
    with opened(address) as store:
        with pytest.raises(Refused, match=r"run letter is not over and needs its texts.*moot cancel letter"):
            await forget_run(store, "letter", by="olga", really=True)
        assert SECRET in str(await store.entries("letter"))
    async with Moothall(address) as hall:
        await hall.answer("letter", SAYING, machine=LETTER, by="ada")
        await hall.fork("letter", LETTER, at=1, run_id="fork")
    with opened(address) as store:
        with pytest.raises(Refused, match=r"fork, which was forked from run letter .* is not over.*moot cancel fork"):
            await forget_run(store, "letter", by="olga", really=True)
        with pytest.raises(Refused, match=r"run fork was forked from run letter.*moot forget letter"):
            await forget_run(store, "fork", by="olga", really=True)
    async with Moothall(address) as hall:
        await hall.answer("fork", "nowhere at all", machine=LETTER, by="bob")
    with opened(address) as store:
        gone = await forget_run(store, "letter", by="olga", really=True)
        assert set(gone.runs) == {"letter", "fork"}
        assert (await store.audit("fork")).verdict == "intact"
        assert SECRET not in str(await store.entries("fork"))
        assert "nowhere" not in str(await store.entries("fork"))


@pytest.mark.anyio
async def test_who_has_no_key_cannot_pretend_that_an_entry_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    file = tmp_path / "runs.db"
    await write_letter(f"sqlite:{file}", "letter")
    with opened(f"sqlite:{file}") as store:
        await forget_person(store, "ada", by="olga", really=True)
    with sqlite3.connect(file) as db:
        rows = db.execute("SELECT seq, body FROM entries ORDER BY seq").fetchall()
        seq, body = next((seq, body) for seq, body in rows if body[:1] == b"\0")
        db.execute("UPDATE entries SET body = ? WHERE seq = ?", (body.replace(b"olga", b"ivan"), seq))
    with opened(f"sqlite:{file}") as store:
        audit = await store.audit("letter")
        assert (audit.verdict, audit.entry) == ("broken", seq)
        with pytest.raises(Broken, match=f"entry {seq} of its journal was changed"):
            await store.entries("letter")
    with sqlite3.connect(file) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = ?", (body, seq))
        db.execute("UPDATE entries SET body = ? WHERE seq = 0", (body,))
    with opened(f"sqlite:{file}") as store:
        assert (await store.audit("letter")).entry == 0


TOPIC = SharedRecord("topics", "tides", {"topic": SECRET, "n": 1})
ARCHIVE = Machine(
    "archive",
    data=Letter,
    states=[
        State("keeping", enter=WriteRecords((SharedRecord("topics", "tides", {"topic": SECRET, "n": 1}),))),
        Final("kept"),
    ],
    moves=[On("keeping", RecordsWritten, to="kept")],
)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
async def test_records_of_a_run_and_the_copy_of_a_mirror_are_forgotten(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    monkeypatch.setenv("MOOTHALL_MIRROR", f"sqlite:{tmp_path / 'mirror.db'}")
    address: str | MemoryStore = f"sqlite:{tmp_path / 'runs.db'}"
    if kind != "sqlite":
        address = MemoryStore() if kind == "memory" else request.getfixturevalue("database")
    async with Moothall(address) as hall:
        await hall.run(ARCHIVE, Letter(SECRET), run_id="archive")
    mirror = SqliteMirror(tmp_path / "mirror.db")
    assert [record.value for record in mirror.records()] == [{"topic": SECRET, "n": 1}]
    with opened(address) as store:
        assert (await forget_run(store, "archive", by="olga", really=True)).records == 1
        expected = SharedRecord("topics", "tides", {"topic": PLACEHOLDER, "n": 1}, 1)
        assert await store.records("topics") == [expected]
        assert mirror.records() == [expected]
        assert SECRET not in str(await store.outbox("a mirror that begins today"))
        assert SECRET not in str(await store.entries("archive"))


@pytest.mark.anyio
async def test_the_saves_of_a_forgotten_run_are_gone_and_those_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    workspace, address = tmp_path / "workspace", f"sqlite:{tmp_path / 'runs.db'}"
    workspace.mkdir()
    async with Moothall(address) as hall:
        for run in ("letter", "other"):
            await hall.run(LETTER, Letter(SECRET), run_id=run, workspace=workspace)
            await hall.answer(run, SAYING, machine=LETTER)
    with opened(address) as store:
        for run in ("letter", "other"):
            (workspace / "note.txt").write_text(f"what {run} wrote")
            await take_save(store, run, "by hand")
        kept = len(await list_saves(store, "other"))
        gone = await forget_run(store, "letter", by="olga", really=True)
        assert gone.saves > 0
        assert await list_saves(store, "letter") == ()
        assert len(await list_saves(store, "other")) == kept > 0


@pytest.mark.anyio
async def test_a_forgotten_run_moves_to_another_store_without_its_texts(address: str, tmp_path: Path) -> None:
    await write_letter(address, "letter")
    with opened(address) as store, opened(f"sqlite:{tmp_path / 'other.db'}") as other:
        await forget_run(store, "letter", by="olga", really=True)
        exported = json.dumps(dict(await export_run(store, "letter")), default=vars).encode()
        assert SECRET.encode() not in exported
        assert (await import_runs(other, exported)).verdict == "intact"
        assert (await other.audit("letter")).forgotten == (await store.audit("letter")).forgotten


@pytest.mark.anyio
@pytest.mark.parametrize(("said", "rest"), [("yes", "They said yes."), ("maybe", f"They said {PLACEHOLDER}.")])
async def test_a_very_short_answer_is_forgotten_where_it_is_the_whole_value_and_stays_in_texts_of_others(
    said: str, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    address = f"sqlite:{tmp_path / 'runs.db'}"
    async with Moothall(address) as hall:
        await hall.run(LETTER, Letter(SECRET), run_id="letter")
        await hall.answer("letter", said, machine=LETTER, by="ada")
    with opened(address) as store:
        await forget_person(store, "ada", by="olga", really=True)
        entries, head = await store.entries("letter"), (await store.load("letter")).head
        answered = next(entry["event"] for entry in entries if entry["event"]["name"] == "answered")
        assert (answered["by"], answered["value"]) == (PLACEHOLDER, PLACEHOLDER)
        assert rest in str(entries)
        assert head["snapshot"]["data"]["answer"] == PLACEHOLDER
        assert (await store.audit("letter")).verdict == "intact"


@pytest.mark.anyio
async def test_a_person_whose_name_is_one_letter_leaves_every_other_text_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    address = f"sqlite:{tmp_path / 'runs.db'}"
    async with Moothall(address) as hall:
        await hall.run(LETTER, Letter(SECRET), run_id="letter")
        await hall.answer("letter", "no", machine=LETTER, by="a")
    with opened(address) as store:
        await forget_person(store, "a", by="olga", really=True)
        entries = await store.entries("letter")
        assert SECRET in str(entries)
        assert "They said no." in str(entries)
        assert '"by": "a"' not in json.dumps(entries)


@pytest.mark.anyio
async def test_the_lock_of_a_store_is_not_forgotten_while_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    address = f"sqlite:{tmp_path / 'runs.db'}"
    async with Moothall(address) as hall:
        await lock_store(hall, Locked(operator="ada"))
        [first] = await hall.list()
    with opened(address) as store:
        for really in (False, True):
            with pytest.raises(Refused, match=r"wrote the identity of this store.*moot identity init --force"):
                await forget_run(store, first.run, by="olga", really=really)
    async with Moothall(address) as hall:
        await lock_store(hall, Locked(operator="bob"), anew=True)
    with opened(address) as store:
        await forget_run(store, first.run, by="olga", really=True)
        assert (await identity_of(store, Locked(operator="bob")))["locks"]["operator"] == "bob"
        assert "ada" not in str(await store.entries(first.run))
