"""The ledger is true: who never began is charged nothing, and who is tried again is not starved by a child."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import ChildDone, Event, Exhausted, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import reopen
from moothall.runtime.ports import Context
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import MovableClock
from tests.runtime.family import errand, family_hall, parent_begun
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, hall_of, keep, line

ERRAND = errand("bread")


@pytest.mark.anyio
async def test_a_child_that_never_began_is_charged_nothing() -> None:
    machine = Machine(
        "sending",
        data=Basket,
        states=[State("waiting", enter=StartChild("nobody")), State("alone", enter=Fetch("milk")), Final("home")],
        moves=[On("waiting", GaveUp, to="alone"), On("alone", Fetched, to="home", do=keep)],
    )
    hall = family_hall(Hands(), machine)
    await parent_begun(hall, machine, limits={"calls": 5})
    head = await drive(hall, RUN)
    assert (head.snapshot.active, head.spent) == (("home",), {"calls": 1})


@pytest.mark.anyio
async def test_who_is_tried_again_beside_a_child_is_not_starved_by_what_the_child_has_reserved() -> None:
    tried: list[str] = []

    async def shaky(effect: Any, context: Context) -> Event:
        tried.append(effect.what)
        if effect.what == "milk" and context.attempt == 1:
            raise OSError("spilt")
        return Fetched(effect.what)

    wanted: list[Effect] = [StartChild("errand"), Fetch("milk")]
    machine = Machine(
        "both",
        data=Basket,
        states=[State("at_work", enter=wanted), Final("home"), Final("poor")],
        moves=[
            On("at_work", Exhausted, to="poor"),
            On("at_work", (ChildDone, Fetched), to="home", when=lambda basket, _: len(basket.got) == 1),
            On("at_work", Fetched, do=keep),
            On("at_work", ChildDone, do=lambda basket, event: Basket((*basket.got, *event.data["got"]))),
        ],
    )
    clock = MovableClock()
    hall = family_hall(shaky, machine, ERRAND, clock=clock)
    await parent_begun(hall, machine, limits={"calls": 10})
    driving = asyncio.create_task(drive(hall, RUN))
    while not driving.done():
        clock.move(1)
        await asyncio.sleep(0)
    head = await driving
    assert head.snapshot.active == ("home",)
    assert (sorted(tried), head.spent) == (["bread", "milk", "milk"], {"calls": 3})


@pytest.mark.anyio
@pytest.mark.parametrize("crashes", [0, 1, 3])
async def test_each_crash_lets_as_many_calls_pass_the_limit_as_were_under_way(crashes: int) -> None:
    store, asked, begun = MemoryStore(), [], asyncio.Event()

    async def fetch(effect: Any, context: Context) -> Event:
        asked.append(context.key)
        begun.set()
        if len(asked) <= crashes:
            await asyncio.sleep(3600)
        return Fetched(effect.what)

    machine = line("bread", "milk")
    hall = hall_of(fetch, store)
    await parent_begun(hall, machine, limits={"calls": 2})
    for _ in range(crashes):
        begun.clear()
        driving = asyncio.create_task(drive(hall, RUN))
        await begun.wait()
        driving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await driving
        hall = hall_of(fetch, store)
        await reopen(hall, RUN, machine)
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.spent, len(asked)) == ("done", {"calls": 2}, 2 + crashes)
