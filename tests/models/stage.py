"""Runs that ask a model by its name, driven by the real runtime with a clock that does not wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moothall import Final, Machine, On, Replied, State, ask
from moothall.app.kinds.bindings import Provided, bind
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin
from moothall.runtime.journal import Head, Record
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from tests.models.loopback import Loopback
from tests.runtime.clock import HastyClock


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str = ""


@dataclass(frozen=True)
class Task:
    topic: str
    text: str = ""
    good: bool = False


async def look(place: str) -> str:
    """Look somewhere."""
    return f"fog in {place}"


def keep_text(task: Task, reply: Replied) -> Task:
    return replace(task, text=reply.text)


def keep_good(task: Task, reply: Replied) -> Task:
    return replace(task, good=reply.value.good)


def one_question(name: str, asking: Any, move: Any) -> Machine:
    return Machine(
        name,
        data=Task,
        states=[State("asking", enter=asking), Final("over")],
        moves=[On("asking", Replied, to="over", do=move)],
    )


WRITING = one_question("writing", ask("writer", "Write about {topic}"), keep_text)
JUDGING = one_question("judging", ask("critic", "Judge {topic}", reply=Verdict), keep_good)
LOOKING = one_question("looking", ask("scout", "Look at {topic}", tools=[look]), keep_text)


@dataclass
class Stage:
    """Where runs are driven that ask one model."""

    model: str
    store: Store = field(default_factory=MemoryStore)
    clock: HastyClock = field(default_factory=HastyClock)

    async def run(self, machine: Machine, topic: str, limits: Mapping[str, float] | None = None) -> Head:
        """One run to its end; its id is its topic."""
        hall = Hall(self.store, self.clock, {})
        hall.bind(topic, bind(machine, Provided(self.model)))
        record = Record(topic, machine.name, machine.digest, self.clock.now(), model=self.model, limits=limits or {})
        await begin(hall, record, machine, Task(topic))
        return await drive(hall, topic)

    async def events(self, run: str) -> list[Mapping[str, Any]]:
        """What happened in a run, event by event."""
        return [entry["event"] for entry in await self.store.entries(run)]

    async def names(self, run: str) -> list[str]:
        return [event["name"] for event in await self.events(run)]


def stage_at(served: Loopback, home: Path, *lines: str) -> Stage:
    """A stage whose model is asked at a loopback server, with these settings for its address."""
    write_settings(home, f'[addresses."{served.address}"]', *lines)
    return Stage(f"openai:m@{served.address}")


def write_settings(home: Path, *lines: str) -> None:
    (home / "home").mkdir(exist_ok=True)
    (home / "home" / "settings.toml").write_text("\n".join(lines))


def counted(events: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(event["name"] == name for event in events)
