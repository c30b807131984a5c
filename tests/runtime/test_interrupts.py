"""Somebody interrupts a run: what is under way is cut off, what was said until then is kept, and it is charged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moothall.kernel.effects import Effect
from moothall.kernel.events import Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, tell
from moothall.runtime.journal import Reader
from moothall.runtime.ports import Context
from moothall.runtime.rebuild import rebuilt
from tests.runtime.world import RUN, Basket, Fetch, Fetched, begun, hall_of, journal, keep

PIECES = ("The sea ", "rises twice ", "a day.")


class Speaker:
    """A performer that says some pieces and then never comes to its end, unless it is asked for broth."""

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self.cut_off = 0

    async def __call__(self, effect: Any, context: Context) -> Event:
        if effect.what == "broth":
            return Fetched("broth")
        hear = context.ear("cook")
        for piece in PIECES:
            if hear is not None:
                hear(piece)
        self.said.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cut_off += 1
            raise
        raise AssertionError


def machine_of(*wanted: Effect) -> Machine:
    return Machine(
        "speaking",
        data=Basket,
        states=[State("speaking", enter=list(wanted)), State("changing", enter=Fetch("broth")), Final("home")],
        moves=[
            On("speaking", Fetched, do=keep),
            On("speaking", "redirected", to="changing"),
            On("speaking", "stopped", to="home"),
            On("changing", Fetched, to="home", do=keep),
        ],
    )


async def interrupted(machine: Machine, event: str, *, listens: bool = True) -> tuple[Hall, Speaker]:
    """A run that is told something while its agents speak."""
    speaker = Speaker()
    hall = hall_of(speaker)
    heard: list[str] = []
    hall.ear = lambda run, who: heard.append if listens else None
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await speaker.said.wait()
    await tell(hall, RUN, Named(event), "person-1")
    await driving
    return hall, speaker


@pytest.mark.anyio
@pytest.mark.parametrize("wanted", [(Fetch("soup"),), (Fetch("soup"), Fetch("stew"))], ids=["alone", "beside another"])
@pytest.mark.parametrize("event", ["redirected", "stopped"])
async def test_what_was_said_until_then_is_kept_and_charged(wanted: tuple[Effect, ...], event: str) -> None:
    machine = machine_of(*wanted)
    hall, speaker = await interrupted(machine, event)
    entries = await journal(hall)
    notes = [entry for entry in entries if entry["event"]["name"] == "effect.interrupted"]
    assert [note["event"]["text"] for note in notes] == ["".join(PIECES)] * len(wanted)
    assert speaker.cut_off == len(wanted)
    head = hall.runs[RUN].head
    more = 1 if event == "redirected" else 0
    assert head.spent == {"calls": len(wanted) + more, "tokens": 7.0 * len(wanted)}
    assert head.snapshot.active == ("home",)
    assert rebuilt(hall.runs[RUN].run, Reader(machine, hall.effects(RUN)), entries) == head


@pytest.mark.anyio
async def test_where_nobody_listens_nothing_is_kept_but_what_was_reserved_is_charged() -> None:
    hall, speaker = await interrupted(machine_of(Fetch("soup")), "stopped", listens=False)
    assert "effect.interrupted" not in [entry["event"]["name"] for entry in await journal(hall)]
    assert (speaker.cut_off, hall.runs[RUN].head.spent) == (1, {"calls": 1})
