"""Whether a turn of a long conversation costs more than an early one: turn 2,000 beside turn 100.

    python benchmarks/conversation.py [--turns 2000] [--around 50]

Measures the processor time of a turn, median over the turns around each, on SQLite through the runtime: of a machine
in Python whose agent sees the last 20 messages, and of a workflow file whose agents see what `max_length` leaves and
whose script reads the conversation. No ratio should exceed 1.2.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from moothall.agents.conversation import Converse
from moothall.agents.ports import Reply
from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.workflow.kind import bind_workflow, first_work_of
from moothall.app.kinds.workflow.spot import machine_at, source_with
from moothall.app.runs.context import SystemClock
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Append, Move
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, Hall, begin
from moothall.runtime.journal import Record
from moothall.runtime.ports import Excerpt, Performer
from moothall.stores.sqlite import SqliteStore

FIRST = 100
TEXT = "The tide comes in twice a day, and nobody in the village has ever asked it to. "


class Spoke(Event):
    name = "spoke"
    text: str = ""


class Speak(Effect):
    kind = "speak"
    outcomes = (Spoke,)
    thread: str


@dataclass(frozen=True, slots=True)
class Talk:
    turns: int
    done: int = 0


def keep(talk: Talk, spoke: Spoke) -> Move[Talk]:
    said = ({"role": "assistant", "text": spoke.text}, {"role": "user", "text": TEXT})
    return Move(replace(talk, done=talk.done + 1), appends=tuple(Append("talk", message) for message in said))


TALKING = Machine(
    "talking",
    data=Talk,
    states=[State("speaking", enter=Speak("talk")), Final("silent")],
    moves=[
        On("speaking", Spoke, to="silent", do=keep, when=lambda talk, _: talk.done + 1 >= talk.turns),
        On("speaking", Spoke, to="speaking", do=keep),
    ],
)
CONTEXT = {"name": "talk", "max_length": 4_000}
AGENTS = [{"agent_role": name, "context": "talk", "role": role} for name, role in (("a", "assistant"), ("b", "user"))]


def speaking(name: str, agent: str, target: str) -> dict[str, object]:
    """A state in which an agent speaks, and behind which a script counts what is left of the conversation."""
    count = "() => { this.common_data.turns += 1; this.common_data.seen = this.contexts.talk.messages.length; }"
    stop = {"target": "stop", "condition": "common_data.turns >= common_data.most"}
    ways = [stop, {"target": target, "condition": "true", "before": count}]
    return {"name": name, "max_visits": 1_000_000, "agent": agent, "input": f"'{TEXT}'", "transition": ways}


def workflow(turns: int) -> dict[str, object]:
    return {
        "workflow_name": "talking",
        "description": "two agents talk",
        "input": {"name": "task", "type": "string", "description": "about what"},
        "output": {"name": "turns", "type": "number", "description": "how often"},
        "variables": {"turns": 0, "most": turns, "seen": 0},
        "contexts": [CONTEXT],
        "agents": AGENTS,
        "states": [
            {"name": "start", "transition": [{"target": "one", "condition": "true"}]},
            speaking("one", "a", "two"),
            speaking("two", "b", "one"),
            {"name": "stop", "input": "common_data.turns"},
        ],
    }


class Speaker:
    """Says something new every time, and remembers what the processor had done by then."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def text(self) -> str:
        self.moments.append(time.process_time())
        return f"{len(self.moments)}: {TEXT}"

    async def reply(self, request: object) -> Reply:
        return Reply(self.text())


async def talk(folder: Path, turns: int) -> list[float]:
    """The machine in Python."""
    speaker = Speaker()

    async def speak(effect: Speak, context) -> Spoke:
        said = await context.messages(effect.thread, Excerpt(20))
        assert len(said) == min(20, 2 * len(speaker.moments))
        return Spoke(speaker.text())

    bindings = Bindings({Speak.kind: Performer(Speak, speak)})
    await driven(folder / "talk.db", TALKING, Talk(turns), bindings)
    return speaker.moments


async def follow(folder: Path, turns: int) -> list[float]:
    """The workflow file."""
    speaker = Speaker()
    path = folder / "talking.json"
    path.write_text(json.dumps(workflow(turns)))
    machine = machine_at(source_with(f"{path}:talking", roles="", functions=""))
    bindings = bind_workflow(machine, Provided("rehearsal"))
    converse = replace(bindings.performers[Converse.kind].perform, model=lambda level: speaker)
    performers = {**bindings.performers, Converse.kind: Performer(Converse, converse)}
    spoken = Bindings(performers, child=bindings.child, evaluate=bindings.evaluate)
    await driven(folder / "workflow.db", machine, first_work_of(machine, "tides"), spoken)
    return speaker.moments


async def driven(file: Path, machine: Machine, data: object, bindings: Bindings) -> None:
    hall = Hall(SqliteStore(file), SystemClock(), {})
    hall.bind("talk", bindings)
    await begin(hall, Record("talk", machine.name, machine.digest, hall.clock.now()), machine, data)
    head = await drive(hall, "talk")
    assert head.snapshot.status == "done", head.snapshot.reason
    hall.store.close()


def around(moments: list[float], turn: int, breadth: int) -> float:
    """The processor time of a turn near this one, in milliseconds."""
    near = moments[turn - breadth : turn + breadth + 1]
    return 1000 * statistics.median(after - before for before, after in pairwise(near))


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--turns", type=int, default=2_000)
    cli.add_argument("--around", type=int, default=50, help="how many turns on each side are looked at")
    chosen = cli.parse_args()
    print(f"| conversation | turn {FIRST}, ms | turn {chosen.turns}, ms | ratio |\n|---|---:|---:|---:|")
    for name, work in (("machine, the last 20 messages", talk), ("workflow file, max_length 4,000", follow)):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
            moments = asyncio.run(work(Path(folder), chosen.turns + chosen.around + 1))
        early, late = (around(moments, turn, chosen.around) for turn in (FIRST, chosen.turns))
        print(f"| {name} | {early:.2f} | {late:.2f} | {late / early:.2f} |")


if __name__ == "__main__":
    main()
