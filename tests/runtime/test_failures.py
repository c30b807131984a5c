"""What goes wrong at the edge of the world stays an event; what watches a run cannot harm it."""

import asyncio
from pathlib import Path

import pytest

from moothall.errors import Broken, DefinitionError, EffectFailed
from moothall.kernel.events import Event, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Scripted
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Entry, Head, RunId
from moothall.runtime.ports import Context
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock, MovableClock
from tests.runtime.world import (
    ATTEMPTS,
    RUN,
    Basket,
    Fetch,
    Fetched,
    Hands,
    begun,
    fan,
    hall_of,
    happened,
    journal,
    keep,
    line,
)


@pytest.mark.anyio
async def test_a_performer_that_raises_is_tried_again_with_the_same_key() -> None:
    hands = Hands()
    hands.raising = {"bread": [EffectFailed("busy"), OSError("gone")]}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    contexts = [context for _, context in hands.calls]
    assert head.snapshot.status == "done"
    assert [context.attempt for context in contexts] == [1, 2, 3]
    assert {context.key for context in contexts} == {"trial.0.0"}
    assert await happened(hall) == ["run.started", "effect.faltered", "effect.faltered", "fetched"]


class Wordless(Exception):
    """An error that raises another when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("raised", "told"), [(SystemExit(0), "fetch: SystemExit: 0 ("), (Wordless(), "fetch: Wordless (")]
)
async def test_a_performer_that_ends_the_program_or_has_no_words_for_it_has_failed_like_any_other(
    raised: BaseException, told: str
) -> None:
    async def hands(effect: Fetch, context: Context) -> Event:
        raise raised

    hall = hall_of(hands)
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    assert head.snapshot.status == "failed"
    assert head.snapshot.reason.startswith(told)


@pytest.mark.anyio
async def test_it_pauses_longer_before_each_further_attempt() -> None:
    hands, clock = Hands(), HastyClock()
    hands.raising = {"bread": [OSError("gone"), OSError("gone")]}
    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread"))
    await drive(hall, RUN)
    assert len(clock.jumps) == 2
    assert 0 < clock.jumps[0] < clock.jumps[1]


@pytest.mark.anyio
async def test_no_second_attempt_is_made_before_the_pause_is_over() -> None:
    hands, clock = Hands(), MovableClock()
    hands.raising = {"bread": [OSError("gone")]}
    hall = hall_of(hands, clock=clock)
    await begun(hall, line("bread"))
    driving = asyncio.create_task(drive(hall, RUN))
    await clock.wait_for_waiting()
    assert len(hands.calls) == 1
    clock.move(60)
    assert (await driving).snapshot.status == "done"
    assert len(hands.calls) == 2


@pytest.mark.anyio
async def test_after_the_last_attempt_the_run_fails_and_names_the_reason() -> None:
    hands = Hands()
    hands.raising = {"bread": [OSError("the shop is closed")] * ATTEMPTS}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    assert len(hands.calls) == ATTEMPTS
    assert head.snapshot.status == "failed"
    assert head.snapshot.reason.startswith("fetch: OSError: the shop is closed (")
    assert head.snapshot.reason.endswith(f"world.py:{raising_line()}), {ATTEMPTS} attempts")
    assert await happened(hall) == ["run.started", "effect.faltered", "effect.faltered", "error.effect"]


@pytest.mark.anyio
async def test_a_row_for_gave_up_takes_the_run_on() -> None:
    machine = Machine(
        "stubborn",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("baking", enter=Fetch("flour")), Final("home")],
        moves=[
            On("fetching", Fetched, to="home", do=keep),
            On("fetching", GaveUp, to="baking"),
            On("baking", Fetched, to="home", do=keep),
        ],
    )
    hands = Hands()
    hands.raising = {"bread": [OSError("closed")] * ATTEMPTS}
    hall = hall_of(hands)
    await begun(hall, machine)
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("flour",)))


@pytest.mark.anyio
async def test_a_wrong_definition_is_not_tried_again() -> None:
    hands = Hands()
    hands.raising = {"bread": [DefinitionError("nobody sells bread here")]}
    hall = hall_of(hands)
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    assert len(hands.calls) == 1
    assert head.snapshot.reason == "fetch: nobody sells bread here"
    assert (await journal(hall))[-1]["event"]["fault"] == "definition"


@pytest.mark.anyio
async def test_an_effect_that_nobody_performs_fails_the_run_and_is_named() -> None:
    hall = Hall(MemoryStore(), HastyClock(), {})
    await begun(hall, line("bread"))
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.snapshot.reason) == ("failed", "nothing here performs fetch")


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [line("bread"), fan("bread", "milk")], ids=["alone", "beside another"])
async def test_a_performer_that_cancels_itself_counts_as_one_that_raises(machine: Machine) -> None:
    attempts = 0

    async def faint(effect: Fetch, context: Context) -> Event:
        nonlocal attempts
        attempts += 1
        assert attempts < 20, "it is tried for ever"
        if effect.what == "bread":
            raise asyncio.CancelledError
        return Fetched(effect.what)

    hall = hall_of(faint)
    await begun(hall, machine)
    head = await drive(hall, RUN)
    assert head.snapshot.status == "failed"
    assert "CancelledError" in head.snapshot.reason


@pytest.mark.anyio
async def test_a_machine_that_needs_a_script_engine_says_so_where_there_is_none() -> None:
    guard = Scripted(lambda data, event, moment: moment.evaluate("1 < 2", {}), "1 < 2")
    machine = Machine(
        "scripted",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("home")],
        moves=[On("fetching", Fetched, to="home", when=guard)],
    )
    hall = hall_of(Hands())
    await begun(hall, machine)
    with pytest.raises(Broken, match="needs a script engine, and none is connected"):
        await drive(hall, RUN)
    assert hall.runs[RUN].head.seq == 0


@pytest.mark.anyio
async def test_an_observer_sees_every_entry_after_it_was_committed() -> None:
    hall = hall_of(Hands())
    seen: list[tuple[RunId, int, int]] = []
    hall.observers.append(lambda run, entry, head: seen.append((run, entry.seq, head.seq)))
    await begun(hall, line("bread", "milk"))
    await drive(hall, RUN)
    assert seen == [(RUN, 0, 0), (RUN, 1, 1), (RUN, 2, 2)]


@pytest.mark.anyio
async def test_an_observer_that_raises_is_dropped_and_the_run_goes_on() -> None:
    hall = hall_of(Hands())
    seen: list[int] = []

    def clumsy(run: RunId, entry: Entry, head: Head) -> None:
        seen.append(entry.seq)
        raise RuntimeError("clumsy")

    watched: list[int] = []
    hall.observers += [clumsy, lambda run, entry, head: watched.append(entry.seq)]
    await begun(hall, line("bread", "milk"))
    head = await drive(hall, RUN)
    assert head.snapshot.status == "done"
    assert seen == [0]
    assert watched == [0, 1, 2]


def raising_line() -> int:
    """The line of the world's hands that raises what a test told them to."""
    lines = Path(__file__).with_name("world.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith("raise self.raising"))
