"""The turns that a worker takes of runs that Temporal pumps: what they hold, they give back."""

from __future__ import annotations

import asyncio

import pytest

from moothall.cluster.temporal import ROOM, Turns
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.hall import begin
from moothall.runtime.journal import Record
from moothall.runtime.ports import Lease
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import MovableClock
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, hall_of

pytestmark = pytest.mark.anyio
LOSSES = (0, 3)
"""How often a run lost its holder before: seldom, or so often that it is alone on trial."""
ERRAND = Machine(
    "errand",
    data=Basket,
    states=[State("fetching", enter=Fetch("bread")), Final("home")],
    moves=[On("fetching", Fetched, to="home")],
)


@pytest.mark.parametrize("losses", LOSSES)
async def test_a_turn_that_ends_before_its_trial_has_begun_gives_its_place_back(losses: int) -> None:
    hall = hall_of(Hands(), MemoryStore(), MovableClock())
    await begin(hall, Record(RUN, ERRAND.name, ERRAND.digest, 1_000.0), ERRAND, Basket())
    hall.runs[RUN].lease = Lease("elsewhere:1:gone", 1, 0.0, losses)
    turns = Turns(hall, hall.open)
    async with asyncio.timeout(10):
        for _ in range(max(ROOM) + 1):
            async with turns._trial(RUN):
                pass
