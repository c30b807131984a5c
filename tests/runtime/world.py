"""A small world to run machines in: one kind of effect, and hands that do what the test says."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, ClassVar

from moothall.kernel.effects import AskPerson, Effect
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Ask
from moothall.runtime.crew import PULSE, Crew
from moothall.runtime.decide import Decision
from moothall.runtime.hall import Hall, begin
from moothall.runtime.holder import name_of_this_process
from moothall.runtime.journal import Head, Record
from moothall.runtime.ports import Clock, Context, Lease, Performer, Store
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock

RUN = "trial"
HERE = "".join(name_of_this_process().partition("@")[1:])
"""What the names of holders end with, where tests run in a container."""
PROCESSES = (f"{socket.gethostname()}:{2**31 - 1}:{number}{HERE}" for number in count())
"""Holders of runs that are gone as soon as somebody else asks: their process does not exist."""
QUICK = 0.01
"""The pulse of a hall in which something happens with it."""
Costs = Mapping[str, Mapping[str, float]]


class Fetched(Event):
    """Something was fetched."""

    what: str
    usage: Mapping[str, float] = field(default_factory=dict)


class Fetch(Effect):
    """Fetch something."""

    kind = "fetch"
    outcomes = (Fetched,)
    costs: ClassVar[Mapping[str, float]] = {"calls": 1}
    what: str


ATTEMPTS = Fetch.attempts


@dataclass(frozen=True, slots=True)
class Basket:
    """The data of most machines here."""

    got: tuple[str, ...] = ()


def keep(basket: Basket, event: Fetched) -> Basket:
    """The move that puts what was fetched into the basket."""
    return Basket((*basket.got, event.what))


class Hands:
    """Performs `Fetch`: notes every call, waits where a gate is shut, raises or returns as told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Context]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.raising: dict[str, list[Exception]] = {}
        self.usage: dict[str, Mapping[str, float]] = {}
        self.finished: list[str] = []
        self.stopped: list[str] = []
        self._called = asyncio.Event()

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        self.calls.append((effect.what, context))
        self._called.set()
        if effect.what in self.gates:
            try:
                await self.gates[effect.what].wait()
            except asyncio.CancelledError:
                self.stopped.append(effect.what)
                raise
        if self.raising.get(effect.what):
            raise self.raising[effect.what].pop(0)
        self.finished.append(effect.what)
        return Fetched(effect.what, self.usage.get(effect.what, {}))

    def shut(self, *what: str) -> None:
        """Let these be under way until they are opened."""
        self.gates |= {one: asyncio.Event() for one in what}

    def open(self, what: str) -> None:
        """Let this one end."""
        self.gates[what].set()

    async def wait_for_calls(self, number: int) -> None:
        """Come back when so many calls have begun."""
        while len(self.calls) < number:
            self._called.clear()
            await self._called.wait()

    @property
    def asked(self) -> list[str]:
        """What was asked for, call by call."""
        return [what for what, _ in self.calls]


def hall_of(
    hands: Callable[..., Any], store: Store | None = None, clock: Clock | None = None, *, pulse: float = PULSE
) -> Hall:
    """A hall in which these hands fetch."""
    performers = {Fetch.kind: Performer(Fetch, hands)}
    crew = Crew(interval=pulse)
    return Hall(store or MemoryStore(), clock or HastyClock(), performers, owner=next(PROCESSES), crew=crew)


async def begun(hall: Hall, machine: Machine, data: Any = None, limits: Mapping[str, float] | None = None) -> Head:
    """A run of this machine, begun and not yet driven."""
    record = Record(RUN, machine.name, machine.digest, hall.clock.now(), limits=limits or machine_limits(machine))
    return await begin(hall, record, machine, Basket() if data is None else data)


def machine_limits(machine: Machine) -> Mapping[str, float]:
    """The limits that the machine itself sets."""
    return {} if machine.budget is None else machine.budget.limits()


def decided(decision: Decision | Ask) -> Decision:
    """A decision of a machine that asks no script."""
    assert isinstance(decision, Decision)
    return decision


async def journal(hall: Hall) -> list[Mapping[str, Any]]:
    """The entries of the run."""
    return await hall.store.entries(RUN)


async def happened(hall: Hall) -> list[str]:
    """The names of the run's events, in order."""
    return [entry["event"]["name"] for entry in await journal(hall)]


def line(*stops: str, costs: Costs | None = None) -> Machine:
    """A machine that fetches one thing after the other."""
    states = [State(f"fetching_{stop}", enter=Fetch(stop)) for stop in stops]
    names = [*(state.name for state in states), "home"]
    moves = [On(here, Fetched, to=there, do=keep) for here, there in pairwise(names)]
    return Machine("line", data=Basket, states=[*states, Final("home")], moves=moves, costs=costs or {})


def fan(*what: str, moves: Sequence[On] = (), costs: Costs | None = None) -> Machine:
    """A machine that fetches everything at once, and goes home with all of it."""
    return Machine(
        "fan",
        data=Basket,
        states=[State("fetching", enter=[Fetch(one) for one in what]), Final("home"), Final("poor")],
        moves=[
            *moves,
            On("fetching", Fetched, to="home", when=lambda basket, _: len(basket.got) + 1 == len(what), do=keep),
            On("fetching", Fetched, do=keep),
        ],
        costs=costs or {},
    )


def asking(within: float | None = None) -> Machine:
    """A machine that asks a person a question."""
    return Machine(
        "asking",
        data=Basket,
        states=[State("asking", enter=AskPerson("Well?", within=within)), Final("answered"), Final("expired")],
        moves=[On("asking", "answered", to="answered"), On("asking", "expired", to="expired")],
    )


def lease_in(hall: Hall) -> Lease:
    """The lease with which a hall holds the run."""
    lease = hall.lease_of(RUN)
    assert lease is not None
    return lease


def pause(hall: Hall) -> None:
    """Let a hall's pulse stand still, as that of a process that was stopped."""
    assert hall.crew.pulse is not None
    hall.crew.pulse.cancel()
