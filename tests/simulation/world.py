"""A world for durable runs in which one seed decides everything: who works, what fails, who answers, and when.

Several processes share one store, each with a hall, a clock and a line to the store of its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from moothall.errors import EffectFailed, MoothallError
from moothall.kernel.machine import Machine
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, ChildSpec, Hall, begin, let_go_unless_driven, reopen, visiting
from moothall.runtime.journal import Head, Record, RunId
from moothall.runtime.ports import Store
from moothall.runtime.serve import serve
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import FastClock
from tests.runtime.world import Basket, machine_limits
from tests.simulation.faults import Fate, Fault, FaultyStore
from tests.simulation.ledger import Ledger
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.machines import Drawing
from tests.simulation.provider import Hands, Receiver

EVER = 1e12
PATIENCE = 120.0
"""Of the loop's time: twenty minutes of the halls'."""


@dataclass
class Place:
    """A process, and the hall in it."""

    process: Process
    hall: Hall
    clock: FastClock


@dataclass
class Worker(Place):
    """A process that serves."""

    stop: asyncio.Event
    serving: asyncio.Task[None] | None = None


class World:
    """One world of one seed."""

    def __init__(self, seed: int, file: Path | None = None, connect: Callable[[], Store] | None = None) -> None:
        self.draw = Random(seed)
        self.loop = VirtualLoop(self.draw.random)
        self.fate = Fate(self.draw)
        self.receiver = Receiver()
        drawing = Drawing(self.draw)
        self.machines: dict[RunId, Machine] = {
            f"run-{number}": drawing.machine(f"machine-{number}") for number in range(self.draw.randint(1, 3))
        }
        self.known, self.mended = drawing.known, drawing.mended
        self.definitions = {machine.digest: machine for machine in self.known.values()}
        """All that the machines ever were, by digest."""
        self.workers: list[Worker] = []
        self.places: list[Place] = []
        self.looked_at: dict[RunId, int] = {}
        self._file, self._connect = file, connect
        self._stores: list[Store] = []
        self._memory = MemoryStore(strict=True)
        self.truth = self._connected()
        self.ledger = Ledger(self.truth)
        self.wrongs = self.ledger.wrongs

    def _connected(self) -> Store:
        """The store as a new process finds it."""
        store: Store
        if self._connect is not None:
            store = self._connect()
        elif self._file is None:
            return self._memory
        else:
            store = SqliteStore(self._file, durability="normal")
        self._stores.append(store)
        return store

    def close(self) -> None:
        """Let go of the files."""
        for store in self._stores:
            store.close()

    def place(self, kind: str) -> Place:
        """A new process with a hall."""
        name = f"{kind}-{len(self.places)}"
        process, clock = Process(name, self.loop), FastClock(self.loop)
        process.gone.add_done_callback(lambda _: self.fate.note(Fault.WORKER_KILLED))
        store: Any = FaultyStore(self._connected(), process, self.fate, self.ledger)
        owner = self._owner(name)
        performers = Hands(owner, self.fate, self.ledger, self.receiver).performers()
        hall = Hall(store, clock, performers, owner=owner)
        place = Place(process, hall, clock)
        hall.opener = partial(self.open, place)
        hall.ear = lambda run, who: lambda piece: None
        self.places.append(place)
        return place

    def bindings(self, place: Place) -> Bindings:
        """Who performs the effects of runs here, and the children that they may start."""

        def child(name: str) -> ChildSpec:
            return ChildSpec(self.known[name], "", False, lambda given: Basket(), self.bindings(place))

        return Bindings(place.hall.performers, child=child)

    async def open(self, place: Place, run: RunId) -> Head:
        """Open a run at a place, with the machine that it began with."""
        stored = await place.hall.store.load(run)
        place.hall.bind(run, self.bindings(place))
        return await reopen(place.hall, run, self.known[stored.record.machine])

    def redefine(self, name: str, machine: Machine) -> None:
        """Let a machine have another definition from now on, wherever runs are opened."""
        self.known[name] = self.definitions[machine.digest] = machine

    @property
    def runs(self) -> list[RunId]:
        """The runs that there are or will be, and their children."""
        return list(dict.fromkeys([*self.machines, *self.ledger.entries]))

    def _owner(self, name: str) -> str:
        """A holder that only time proves dead, or one that everybody takes for dead though it may live."""
        return f"{socket.gethostname()}:{2**31 - 1}:{name}" if self.draw.random() < 0.15 else f"far:1:{name}"

    def hire(self) -> Worker:
        """A new worker at work."""
        place = self.place("worker")
        worker = Worker(place.process, place.hall, place.clock, asyncio.Event())
        worker.serving = place.process.start(self._serve(worker))
        self.workers.append(worker)
        return worker

    async def _serve(self, worker: Worker) -> None:
        try:
            await serve(worker.hall, partial(self.open, worker), worker.stop, most=self.draw.choice((1, 2, 100)))
        except EffectFailed:
            worker.process.kill()
            await asyncio.sleep(0)

    @property
    def staff(self) -> list[Worker]:
        """The workers that live and have not been told to stop."""
        return [worker for worker in self.workers if worker.process.alive and not worker.stop.is_set()]

    async def begin(self, place: Place, run: RunId) -> None:
        """Somebody begins a run at this place, and drives it or leaves it to others."""
        machine, hall = self.machines[run], place.hall
        record = Record(run, machine.name, machine.digest, place.clock.now(), limits=machine_limits(machine))
        with visiting(hall, run):
            hall.bind(run, self.bindings(place))
            try:
                await begin(hall, record, machine, Basket())
                if self.fate.calm or self.draw.random() < 0.8:
                    await drive(hall, run)
                else:
                    await let_go_unless_driven(hall, run)
            except MoothallError as error:
                self.fate.say(f"begins {run}: {error}")
