"""What a journal notes about attempts stays true in a fork: it counts anew, and its notes are its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from moothall.kernel.machine import Machine
from moothall.runtime.drive import drive
from moothall.runtime.fork import fork, origin_of
from moothall.runtime.hall import Hall, answer, questions, with_origin
from moothall.runtime.journal import Reader, Record
from moothall.runtime.rebuild import rebuilt
from tests.runtime.till import Till, paying
from tests.runtime.world import ATTEMPTS, RUN, Hands, begun, hall_of, journal, line

FORK = "fork"
GONE = OSError("gone")


async def forked(hall: Hall, machine: Machine, *, repeats: bool = True, at: int | None = None) -> None:
    """A fork of the run, driven as far as it goes."""
    origin = await origin_of(hall, RUN, at, machine)
    record = Record(FORK, machine.name, machine.digest, hall.clock.now(), origin=RUN)
    await fork(hall, origin, record, repeats=repeats)
    async with asyncio.timeout(10):
        await drive(hall, FORK)


async def require_sound(hall: Hall, machine: Machine) -> list[Any]:
    """The entries of the fork: no cause is there twice, and its head is the one that they give."""
    entries = await hall.store.entries(FORK)
    assert not [cause for cause, times in Counter(entry["cause"] for entry in entries).items() if times > 1]
    run = await with_origin(hall.store, hall.runs[FORK].run)
    assert rebuilt(run, Reader(machine, hall.effects(FORK)), entries) == hall.runs[FORK].head
    return entries


@pytest.mark.anyio
@pytest.mark.parametrize("before", range(1, ATTEMPTS))
@pytest.mark.parametrize("after", range(ATTEMPTS))
async def test_an_effect_that_faltered_before_the_fork_may_falter_as_often_after_it(before: int, after: int) -> None:
    hands, machine = Hands(), line("bread", "milk")
    hands.raising = {"bread": [GONE] * before}
    hall = hall_of(hands)
    await begun(hall, machine)
    await drive(hall, RUN)
    faltered = [entry["seq"] for entry in await journal(hall) if entry["event"]["name"] == "effect.faltered"]
    hands.raising = {"bread": [GONE] * after}
    await forked(hall, machine, at=faltered[before - 1])
    entries = await require_sound(hall, machine)
    names = [entry["event"]["name"] for entry in entries]
    assert names.count("effect.faltered") == before + after
    assert hall.runs[FORK].head.snapshot.active == ("home",)


@pytest.mark.anyio
async def test_a_call_that_had_begun_before_the_fork_begins_again_with_consent_and_is_noted_again() -> None:
    till, machine = Till(), paying("at-most-once")
    hall = till.hall()
    await begun(hall, machine)
    await drive(hall, RUN)
    marks = [entry["seq"] for entry in await journal(hall) if entry["event"]["name"] == "effect.began"]
    await forked(hall, machine, at=marks[0])
    names = [entry["event"]["name"] for entry in await require_sound(hall, machine)]
    assert names.count("effect.began") == 2
    assert hall.runs[FORK].head.snapshot.status == "done"


@pytest.mark.anyio
async def test_without_consent_a_person_may_have_it_done_again_in_the_fork() -> None:
    till, machine = Till(), paying("at-most-once")
    hall = till.hall()
    await begun(hall, machine)
    await drive(hall, RUN)
    marks = [entry["seq"] for entry in await journal(hall) if entry["event"]["name"] == "effect.began"]
    await forked(hall, machine, repeats=False, at=marks[0])
    (doubted,) = questions(hall.runs[FORK].head)
    await answer(hall, FORK, {"outcome": "again"}, doubted.key)
    await drive(hall, FORK)
    names = [entry["event"]["name"] for entry in await require_sound(hall, machine)]
    assert (names.count("effect.repeated"), names.count("effect.began")) == (1, 2)
    assert hall.runs[FORK].head.snapshot.status == "done"
