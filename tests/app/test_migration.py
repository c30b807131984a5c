"""All runs of a store move to another and back: every entry as it was, audits intact, and they go on there."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from moothall import Answered, Final, Machine, Moothall, On, Replied, State, ask, question
from moothall.app.config.access import opened
from moothall.app.runs.migration import Moved, migrate
from moothall.errors import Broken, MoothallError, Refused
from moothall.kernel.events import SharedRecord
from moothall.runtime.ports import Store
from tests.cli.process import EXAMPLES, moot
from tests.stores.values import entry, head, record

FEW, MANY = 4, 1_000


@dataclass(frozen=True)
class Letter:
    topic: str
    text: str = ""


async def writer(prompt: str) -> str:
    return f"{prompt} " * 200


LETTER = Machine(
    "letter",
    data=Letter,
    states=[State("writing", enter=ask(writer, "{topic}")), State("asking", enter=question("Send it?")), Final("sent")],
    moves=[
        On("writing", Replied, to="asking", do=lambda letter, reply: replace(letter, text=reply.text)),
        On("asking", Answered, to="sent"),
    ],
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))


async def write_letters(address: str, count: int) -> None:
    """Runs that wait, of which every other one is answered; the first was forked."""
    async with Moothall(address) as hall:
        for number in range(count):
            await hall.run(LETTER, Letter(f"tides {number}"), run_id=f"letter-{number}")
            if number % 2:
                await hall.answer(f"letter-{number}", True, machine=LETTER)
        await hall.fork("letter-0", LETTER, at=1, run_id="fork")


async def write_record(store: Store) -> None:
    """A record that outlives its run, with names that not every database could hold as texts."""
    await store.begin(record("rated"), head(0), entry(0))
    written = SharedRecord("notes", "a\x00b", {"n": 1}, 0)
    await store.commit("rated", head(1), entry(1), records=(written,))
    await store.mirrored("north", 1)


async def moved(source: str, target: str) -> Moved:
    with opened(source) as one, opened(target) as other:
        return await migrate(one, other)


async def check_letters(address: str, count: int) -> None:
    """Every run can be read and audited in its new place."""
    with opened(address) as store:
        verdicts = {known.record.run: (await store.audit(known.record.run)).verdict for known in await store.runs()}
        assert {run: verdict for run, verdict in verdicts.items() if verdict != "intact"} == {}
        assert len(verdicts) == count + 2
        assert await store.records("notes") == [SharedRecord("notes", "a\x00b", {"n": 1}, 1)]
        assert await store.outbox("north") == []


async def go_on(address: str, other: str) -> None:
    """Go on with a run; the copy of it that was left behind is known to be behind, and nobody goes on with that."""
    async with Moothall(address) as hall:
        assert (await hall.answer("letter-2", True, machine=LETTER)).status == "done"
    async with Moothall(other, listeners=()) as hall:
        assert "the anchors know entry" in await hall.store.behind("letter-2")
        with pytest.raises(MoothallError, match="the anchors know entry"):
            await hall.answer("letter-2", True, machine=LETTER)


async def there_and_back(folder: Path, database: str, count: int) -> tuple[Moved, Moved]:
    first, last = f"sqlite:{folder / 'first.db'}", f"sqlite:{folder / 'last.db'}"
    await write_letters(first, count)
    with opened(first) as store:
        await write_record(store)
    there = await moved(first, database)
    back = await moved(database, last)
    with opened(first) as one, opened(last) as other:
        for known in await one.runs():
            assert await other.entries(known.record.run) == await one.entries(known.record.run)
    await check_letters(database, count)
    await check_letters(last, count)
    await go_on(last, database)
    return there, back


@pytest.mark.anyio
async def test_runs_move_to_postgresql_and_back_and_go_on_in_either_place(tmp_path: Path, database: str) -> None:
    there, back = await there_and_back(tmp_path, database, FEW)
    assert there == back
    assert (there.runs, there.records, there.intact) == (FEW + 2, 1, FEW + 2)
    assert there.entries > 3 * FEW


@pytest.mark.soak
@pytest.mark.anyio
async def test_a_thousand_runs_move_to_postgresql_and_back(tmp_path: Path, database: str, figure: list[str]) -> None:
    there, back = await there_and_back(tmp_path, database, MANY)
    figure.append(f"{there.runs} runs, {there.entries} entries, {there.intact} intact; back: {back}")
    assert there == back
    assert there.intact == MANY + 2


@pytest.mark.anyio
async def test_who_was_interrupted_moves_the_rest_and_nothing_goes_over_runs_of_others(
    tmp_path: Path, database: str
) -> None:
    first = f"sqlite:{tmp_path / 'first.db'}"
    await write_letters(first, 2)
    with opened(first) as one, opened(database) as other:
        assert isinstance(await migrate(one, other), Moved)
        await other.forget("letter-1")
        assert (await migrate(one, other)).runs == 3
        await other.begin(record("stranger"), head(0), entry(0))
        with pytest.raises(Refused, match="has runs of its own, such as stranger; name an empty one"):
            await migrate(one, other)
        await other.forget("stranger")
        claimed = await one.claim("letter-0", (await one.load("letter-0")).lease, "far:1:x", 4e9)
        assert claimed is not None
        await one.renew("letter-0", claimed, time.time() + 20)
        with pytest.raises(Refused, match="far:1:x works on run letter-0; stop all workers"):
            await migrate(one, other)


@pytest.mark.anyio
async def test_a_run_that_did_not_arrive_as_it_was_is_told(tmp_path: Path, database: str) -> None:
    first = f"sqlite:{tmp_path / 'first.db'}"
    await write_letters(first, 2)
    with opened(first) as one, opened(database) as other:
        await migrate(one, other)
        await other.set_aside("letter-0", "somebody was here")
        with pytest.raises(Broken, match="run letter-0 did not arrive as it was"):
            await migrate(one, other)


def test_the_command_moves_runs_and_replay_says_the_same_in_the_new_place(tmp_path: Path, database: str) -> None:
    assert moot("run", f"{EXAMPLES}/approval.py:OFFER", "tides", "--run-id", "offer", home=tmp_path).returncode == 5
    ran = moot("migrate", f"sqlite:{tmp_path / 'moothall.db'}", database, "--json", home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["runs"] == 1
    answered = moot("answer", "offer", "--yes", "--store", database, home=tmp_path)
    assert answered.returncode == 0, answered.stderr
    place = ("--machine", f"{EXAMPLES}/approval.py", "--store", database)
    assert moot("replay", "offer", *place, home=tmp_path).returncode == 0
    assert moot("audit", "offer", "--store", database, home=tmp_path).returncode == 0
