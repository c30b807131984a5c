"""A head that is damaged is made anew from the journal, equal to what it was."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import Broken
from moothall.kernel.effects import AskPerson, Send
from moothall.kernel.events import Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, On, Parallel, State
from moothall.kernel.step import Append, Move
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, advance, answer, reopen
from moothall.runtime.journal import Head, Reader
from moothall.runtime.ports import Lease
from moothall.runtime.rebuild import rebuilt
from moothall.stores.sqlite import SqliteStore
from tests.runtime.world import (
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    asking,
    begun,
    fan,
    hall_of,
    happened,
    keep,
    line,
)

LENGTHY = "The sea rises. " * 60
NUL = "\x00" + "ab" * 16


@pytest.fixture
def audit_key() -> bytes:
    return b"a key"


def damage(store: SqliteStore) -> None:
    """What a bad disk does to a head."""
    head = store._db.execute("SELECT head FROM runs").fetchone()[0]
    store._db.execute("UPDATE runs SET head = ?", (head[:-1] + b"!",))


async def same_after_damage(hall: Hall, machine: Machine) -> Head:
    """The head of the run, which is the same before and after its damage, also for the next who opens it."""
    store = hall.store
    assert isinstance(store, SqliteStore)
    reader = Reader(machine, hall.effects(RUN))
    before = await store.load(RUN)
    whole = reader.head(before.head)
    assert whole == hall.runs[RUN].head
    damage(store)
    assert (await store.load(RUN)).head == {}
    other = hall_of(Hands(), store)
    assert await reopen(other, RUN, machine) == whole
    after = await store.load(RUN)
    assert (after.head, after.seq, after.status) == (before.head, before.seq, before.status)
    assert reader.head(after.head) == whole
    return whole


async def driven(store: SqliteStore, machine: Machine, limits: Mapping[str, float] | None = None) -> Hall:
    hands = Hands()
    hands.usage = {"bread": {"usd": 0.125, "tokens": 7}}
    hall = hall_of(hands, store)
    await begun(hall, machine, limits=limits)
    await drive(hall, RUN)
    return hall


def remember(basket: Basket, event: Any) -> Move[Basket]:
    """A move that appends to a thread, and gathers a long text and one that begins with a NUL."""
    kept = Basket((*basket.got, event.what, LENGTHY, NUL))
    return Move(kept, appends=(Append("talk", {"said": event.what, "long": LENGTHY}),))


TALKING = Machine(
    "talking",
    data=Basket,
    states=[State("fetching", enter=Fetch("bread")), State("asking", enter=AskPerson(LENGTHY)), Final("over")],
    moves=[On("fetching", Fetched, to="asking", do=remember), On("asking", "answered", to="over")],
)
ASKED_TWICE = Machine(
    "asked twice",
    data=Basket,
    states=[
        Parallel(
            "both",
            [
                State("left", [State("asking_left", enter=AskPerson("Left?", within=600)), Final("left_done")]),
                State("right", [State("asking_right", enter=AskPerson("Right?")), Final("right_done")]),
            ],
        ),
        Final("over"),
    ],
    moves=[
        On("asking_left", "answered", to="left_done"),
        On("asking_right", "answered", to="right_done"),
        On("both", "done.state.both", to="over"),
    ],
)
RETURNING = Machine(
    "returning",
    data=Basket,
    states=[
        State(
            "work",
            [State("one", enter=Fetch("bread")), State("two", enter=AskPerson("Go on?")), History("back", "one")],
        ),
        State("pause", enter=Send(Named("rung"), 30)),
    ],
    moves=[
        On("one", Fetched, to="two", do=keep),
        On("work", "paused", to="pause", at_most=3),
        On("pause", "rung", to="back"),
    ],
)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("machine", "limits"),
    [
        (line("bread", "milk"), None),
        (fan("bread", "milk", "salt"), None),
        (asking(), None),
        (asking(within=60), None),
        (TALKING, None),
        (ASKED_TWICE, None),
        (line("bread", "milk", "salt"), {"calls": 2, "usd": 1}),
        (fan("bread", "milk", "salt"), {"calls": 2}),
        (line("bread", "milk"), {"seconds": 3_600}),
    ],
    ids=["line", "fan", "asking", "deadline", "appends", "regions", "budget", "fan beyond budget", "seconds"],
)
async def test_a_damaged_head_is_made_anew_as_it_was(
    store: SqliteStore, machine: Machine, limits: Mapping[str, float] | None
) -> None:
    await same_after_damage(await driven(store, machine, limits), machine)


@pytest.mark.anyio
@pytest.mark.parametrize("ends", range(4))
async def test_a_fan_is_made_anew_at_every_entry_with_the_rest_in_flight(store: SqliteStore, ends: int) -> None:
    machine = fan("a", "b", "c", "d", costs={"fetch": {"usd": 0.1}})
    hall = hall_of(Hands(), store)
    await begun(hall, machine, limits={"calls": 3, "usd": 5})
    for number in range(min(ends, 3)):
        await advance(hall, RUN, (Fetched("abc"[number], {"usd": 0.07}), f"0.{number}"))
    head = await same_after_damage(hall, machine)
    assert len(head.pending) == 4 - min(ends, 3)
    assert head.pending[-1].denied == "calls"


@pytest.mark.anyio
async def test_answers_late_replies_and_repeats_are_made_anew(store: SqliteStore) -> None:
    machine = fan("bread", "milk", moves=[On("fetching", "closed", to="poor")])
    hall = hall_of(Hands(), store)
    await begun(hall, machine)
    await advance(hall, RUN, (Fetched("bread", {"usd": 0.3}), "0.0"))
    await advance(hall, RUN, (Named("closed"), "close-1"))
    late = await advance(hall, RUN, (Fetched("milk", {"usd": 0.2}), "0.1"))
    assert late.received == "ignored"
    head = await same_after_damage(hall, machine)
    assert head.spent["usd"] == 0.5


@pytest.mark.anyio
async def test_a_run_with_two_questions_is_made_anew_between_their_answers(store: SqliteStore) -> None:
    hall = await driven(store, ASKED_TWICE)
    await answer(hall, RUN, {"long": LENGTHY, "nul": NUL}, "0.1", by="Ada")
    head = await same_after_damage(hall, ASKED_TWICE)
    assert [one.key for one in head.pending] == ["0.0"]


@pytest.mark.anyio
async def test_history_counters_and_timers_are_made_anew(store: SqliteStore) -> None:
    hall = await driven(store, RETURNING)
    await advance(hall, RUN, (Named("paused", [LENGTHY]), "pause-1"))
    head = await same_after_damage(hall, RETURNING)
    assert head.snapshot.history
    assert head.wake() is not None


@pytest.mark.anyio
async def test_long_texts_in_a_head_that_was_made_anew_are_still_kept_once(store: SqliteStore) -> None:
    hall = await driven(store, TALKING)
    head = await same_after_damage(hall, TALKING)
    assert head.snapshot.data == Basket(("bread", LENGTHY, NUL))
    assert store._db.execute("SELECT COUNT(*) FROM texts").fetchone() == (1,)


@pytest.mark.anyio
async def test_a_run_with_a_damaged_head_goes_on_where_it_stood_and_performs_nothing_again(store: SqliteStore) -> None:
    first = Hands()
    first.shut("milk")
    hall = hall_of(first, store)
    machine = line("bread", "milk", "salt")
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await first.wait_for_calls(2)
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)
    damage(store)
    second = Hands()
    other = hall_of(second, store)
    await reopen(other, RUN, machine)
    head = await drive(other, RUN)
    assert head.snapshot.data == Basket(("bread", "milk", "salt"))
    assert second.asked == ["milk", "salt"]
    assert await happened(other) == ["run.started", "fetched", "fetched", "fetched"]


@pytest.mark.anyio
async def test_repairing_a_head_leaves_the_lease_alone(store: SqliteStore) -> None:
    hall = hall_of(Hands(), store)
    await begun(hall, line("bread"))
    damage(store)
    await reopen(hall_of(Hands(), store), RUN, line("bread"))
    assert (await store.load(RUN)).lease == hall.runs[RUN].lease != Lease("", 1, 0.0)


@pytest.mark.anyio
async def test_a_head_is_not_made_from_a_journal_that_is_damaged_too(store: SqliteStore, file: Path) -> None:
    hall = await driven(store, line("bread", "milk"))
    damage(store)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DELETE FROM entries WHERE seq = 0")
    db.close()
    with pytest.raises(Broken, match="run trial: entries of its journal are missing"):
        await reopen(hall, RUN, line("bread", "milk"))


@pytest.mark.anyio
async def test_a_journal_that_says_something_else_than_its_machine_is_broken(store: SqliteStore) -> None:
    machine = line("bread", "milk")
    hall = await driven(store, machine)
    entries = [dict(entry) for entry in await store.entries(RUN)]
    reader = Reader(machine, hall.effects(RUN))
    assert rebuilt(hall.runs[RUN].run, reader, entries) == hall.runs[RUN].head
    entries[1]["to"] = ["home"]
    with pytest.raises(Broken, match="entry 1 does not follow from the ones before it"):
        rebuilt(hall.runs[RUN].run, reader, entries)
    for headless in ([], entries[1:]):
        with pytest.raises(Broken, match="its journal has no beginning"):
            rebuilt(hall.runs[RUN].run, reader, headless)


@pytest.mark.anyio
async def test_every_head_of_a_run_is_the_one_that_its_journal_makes(store: SqliteStore) -> None:
    heads: list[Head] = []
    hall = hall_of(Hands(), store)
    hall.observers.append(lambda run, entry, head: heads.append(head))
    machine = fan("a", "b", "c", costs={"fetch": {"usd": 0.1}})
    await begun(hall, machine, limits={"calls": 2})
    await drive(hall, RUN)
    entries, reader = await store.entries(RUN), Reader(machine, hall.effects(RUN))
    for seq, head in enumerate(heads):
        assert rebuilt(hall.runs[RUN].run, reader, entries[: seq + 1]) == head
