"""Machines in which directives count, and runs of them whose agents say what a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from moothall import Answered, Final, GaveUp, Machine, On, Replied, State, ask, otherwise, question, yes
from moothall.app.kinds.bindings import Provided, bind
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin
from moothall.runtime.journal import Head, Record
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import HastyClock

RUN = "attempt"


@dataclass(frozen=True)
class Verdict:
    decision: Literal["approve", "rework"]
    notes: str = ""
    final: bool = False


@dataclass(frozen=True)
class Work:
    topic: str
    draft: str = ""
    notes: str = ""
    final: bool = False


def keep_draft(work: Work, reply: Replied) -> Work:
    return replace(work, draft=reply.text)


def keep_notes(work: Work, reply: Replied) -> Work:
    return replace(work, notes=reply.value.notes, final=reply.value.final)


def approves(_: Work, reply: Replied) -> bool:
    return bool(reply.value.decision == "approve")


def reworks(_: Work, reply: Replied) -> bool:
    return bool(reply.value.decision == "rework")


REVIEW = Machine(
    "review",
    data=Work,
    states=[
        State("drafting", enter=ask("writer", "Write about {topic}. Notes: {notes}")),
        State("reviewing", enter=ask("critic", "Judge: {draft}", reply=Verdict)),
        State("approving", enter=question("Publish? {draft}", who="ada")),
        *(Final("published"), Final("shelved"), Final("stopped")),
    ],
    moves=[
        On("drafting", Replied, to="reviewing", do=keep_draft),
        On("reviewing", GaveUp, to="stopped"),
        On("reviewing", Replied, to="approving", when=approves, do=keep_notes),
        On("reviewing", Replied, to="drafting", when=reworks, do=keep_notes, at_most=1),
        On("reviewing", otherwise, to="shelved"),
        On("approving", Answered, to="published", when=yes),
        On("approving", otherwise, to="shelved"),
    ],
)

CONFIRMED = Machine(
    "confirmed",
    data=Work,
    states=[
        State("drafting", enter=ask("writer", "Write about {topic}.")),
        State("confirming", enter=question("Is this the topic? {topic}")),
        State("approving", enter=question("Publish? {draft}", who="ada")),
        *(Final("published"), Final("shelved")),
    ],
    moves=[
        On("drafting", Replied, to="confirming", do=keep_draft),
        On("confirming", Answered, to="approving", when=yes),
        On("confirming", otherwise, to="shelved"),
        On("approving", Answered, to="published", when=yes),
        On("approving", otherwise, to="shelved"),
    ],
)


@dataclass
class Desk:
    """Two tools that note every call, and what a file says."""

    file: str = "tide tables"
    calls: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    async def read_file(self, path: str, key: str) -> str:
        """Read a file."""
        self.calls.append(f"read_file {path}")
        self.keys.append(key)
        return self.file

    async def pay(self, to: str, amount: int) -> str:
        """Pay somebody."""
        self.calls.append(f"pay {to} {amount}")
        return "paid"


def office(desk: Desk) -> Machine:
    """A clerk reads and judges; a cashier, who alone may pay, is asked only after an approval."""
    return Machine(
        "office",
        data=Work,
        states=[
            State("judging", enter=ask("clerk", "Judge {topic}", reply=Verdict, tools=[desk.read_file], rounds=3)),
            State("paying", enter=ask("cashier", "Pay for {topic}", tools=[desk.pay], rounds=2)),
            *(Final("paid"), Final("refused"), Final("stopped")),
        ],
        moves=[
            On("judging", GaveUp, to="stopped"),
            On("judging", Replied, to="paying", when=approves),
            On("judging", otherwise, to="refused"),
            On("paying", Replied, to="paid"),
            On("paying", GaveUp, to="stopped"),
        ],
    )


Script = Mapping[str, Sequence[str | Mapping[str, Any]]]


@dataclass
class Hearing:
    """One run and those that it started, with what became of them."""

    hall: Hall
    head: Head
    log: Path

    async def path(self, run: str = RUN) -> list[str]:
        """The states in which the run stood, event by event."""
        return [" ".join(entry["to"]) for entry in await self.hall.store.entries(run)]

    async def events(self, run: str = RUN) -> list[Mapping[str, Any]]:
        return [entry["event"] for entry in await self.hall.store.entries(run)]

    async def names(self, run: str = RUN) -> list[str]:
        return [event["name"] for event in await self.events(run)]

    def asked(self, agent: str) -> int:
        """How often an agent was asked."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(line.endswith(f" {agent}") for line in lines)

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.head.snapshot.active)


async def heard(folder: Path, machine: Machine, data: Any, said: Script) -> Hearing:
    """A run to its end, or until it waits, with agents that say what is written down for them."""
    script, log = folder / "script.json", folder / "log"
    script.write_text(json.dumps(said))
    return await heard_from(f"scripted:{script},log={log}", machine, data, log)


async def heard_from(model: str, machine: Machine, data: Any, log: Path) -> Hearing:
    """The same with a model by its name."""
    hall = Hall(MemoryStore(), HastyClock(), {})
    hall.bind(RUN, bind(machine, Provided(model)))
    await begin(hall, Record(RUN, machine.name, machine.digest, hall.clock.now(), model=model), machine, data)
    return Hearing(hall, await drive(hall, RUN), log)
