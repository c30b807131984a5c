"""A tool to call in tests: it notes every call, waits where it is told to, raises or returns as told."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from moothall.agents.ask import CallTool, Returned
from moothall.kernel.effects import Repeats
from moothall.kernel.events import GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.performers.tools import ToolPerformer
from moothall.runtime.crew import PULSE, Crew
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, reopen
from moothall.runtime.ports import Clock, Performer, Store
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock
from tests.runtime.world import PROCESSES, RUN, Basket, begun

ARGUMENTS = {"amount": 3}


class Till:
    """Where money is paid: `pay` is the tool, `look` says what an earlier call returned."""

    def __init__(self) -> None:
        self.paid: list[tuple[int, str]] = []
        self.looked: list[tuple[int, str]] = []
        self.found: Any = None
        self.raising: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.before: Callable[[], Any] = lambda: None
        self._called = asyncio.Event()

    async def pay(self, amount: int, key: str) -> str:
        """Pay, and give a receipt."""
        self.before()
        self.paid.append((amount, key))
        self._called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.raising:
            raise self.raising.pop(0)
        return f"receipt {len(self.paid)}"

    async def look(self, amount: int, key: str) -> Any:
        """What a payment with this key returned; None where there was none."""
        self.looked.append((amount, key))
        if self.raising:
            raise self.raising.pop(0)
        return self.found

    async def wait_for_call(self) -> None:
        """Come back when a payment is under way."""
        await self._called.wait()

    def hall(self, store: Store | None = None, clock: Clock | None = None, *, pulse: float = PULSE) -> Hall:
        """A hall in a process of its own in which this till is used."""
        performer = Performer(CallTool, ToolPerformer({"pay": self.pay}, {"pay": self.look}))
        performers, crew = {CallTool.kind: performer}, Crew(interval=pulse)
        return Hall(
            store or MemoryStore(strict=True), clock or HastyClock(), performers, owner=next(PROCESSES), crew=crew
        )


def keep_receipt(basket: Basket, returned: Returned) -> Basket:
    """The move that keeps what the tool returned."""
    return Basket((*basket.got, returned.value))


def keep_reason(basket: Basket, gave_up: GaveUp) -> Basket:
    """The move that keeps why the tool was given up."""
    return Basket((*basket.got, gave_up.reason))


def paying(
    repeats: Repeats, *, timeout: float | None = None, costs: Mapping[str, Mapping[str, float]] | None = None
) -> Machine:
    """A machine that pays once."""
    wanted = CallTool("pay", ARGUMENTS, repeats=repeats, timeout=timeout)
    return Machine(
        "paying",
        data=Basket,
        states=[State("paying", enter=wanted), Final("paid"), Final("unpaid"), Final("shut")],
        moves=[
            On("paying", Returned, to="paid", do=keep_receipt),
            On("paying", GaveUp, to="unpaid", do=keep_reason),
            On("paying", "closed", to="shut"),
        ],
        costs=costs or {},
    )


async def lost_in_the_middle(till: Till, machine: Machine, store: Store, clock: Clock | None = None) -> None:
    """A run whose worker is gone while it pays: the call was made, and nobody heard what it returned."""
    till.gate = asyncio.Event()
    hall = till.hall(store, clock)
    await begun(hall, machine)
    driving = asyncio.create_task(drive(hall, RUN))
    await till.wait_for_call()
    driving.cancel()
    await asyncio.wait([driving])
    till.gate = None


async def opened(till: Till, machine: Machine, store: Store, clock: Clock | None = None) -> Hall:
    """The run in another process, not yet driven."""
    hall = till.hall(store, clock)
    await reopen(hall, RUN, machine)
    return hall


async def in_doubt(till: Till, machine: Machine, store: Store | None = None) -> Hall:
    """A run that was lost while it paid, and now waits for a person in another process."""
    kept = store or MemoryStore(strict=True)
    await lost_in_the_middle(till, machine, kept)
    hall = await opened(till, machine, kept)
    await drive(hall, RUN)
    return hall
