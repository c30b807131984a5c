"""What teams cost: to define 50 and 500 personas, to hand on in them, and a turn of 1 and of 200 conversations.

    python benchmarks/team.py [--json]

Definition and transition may grow at most linearly with the personas. A turn of one of 200 conversations that go on
together may take at most 1.2 times the CPU of a turn of one that goes on alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from moothall import Moothall
from moothall.agents.ask import Replied
from moothall.analysis.verify import endless
from moothall.app.kinds.team.session import Chosen, Session
from moothall.kernel.interpreter import start, transition
from moothall.kernel.step import Snapshot, Step
from moothall.machines.team.conversation import team_machine
from moothall.machines.team.definition import Group, Persona, Team
from moothall.machines.team.state import Conversation, UserSaid

SIZES = (50, 500)
CONVERSATIONS = 200
TURNS = 10
ROUNDS = 5


def large(size: int) -> Team:
    """A team of so many personas, in groups of ten."""
    personas = tuple(Persona(f"p{number}", f"Person {number}", "ceo.md") for number in range(size))
    starts = range(0, size, 10)
    groups = tuple(Group(f"G{at}", personas=tuple(known.id for known in personas[at : at + 10])) for at in starts)
    return Team("large", "p0", groups, personas)


def stepped(machine: Any, snapshot: Snapshot, event: Any) -> Snapshot:
    """Where a run stands after an event."""
    step = transition(machine, snapshot, event)
    assert isinstance(step, Step)
    return step.snapshot


def cost_of(size: int) -> dict[str, float]:
    """Milliseconds to define a team and to look whether it ends, and microseconds of a handoff that is new or known."""
    began = time.process_time()
    machine = team_machine(large(size), "team", "studio")
    endless(machine)
    defined = time.process_time() - began
    begun = start(machine, Conversation())
    assert isinstance(begun, Step)
    snapshot = stepped(machine, begun.snapshot, UserSaid(text="Go", at=1.0))
    known = {}
    for name in ("new", "known"):
        here, took = snapshot, 0.0
        for number in range(TURNS * 2):
            target = f"p{(number + 1) * (size // 25) % size}"
            reply = {"content": f"{name} {number}", "transition": "HANDOFF_TO_AGENT", "next_agent": target}
            event = Replied(here.data.speaker, "", reply, "Any", id=here.data.asked)
            began = time.process_time()
            here = stepped(machine, here, event)
            took += time.process_time() - began
        known[name] = took / (TURNS * 2) * 1e6
    return {"define_ms": defined * 1e3, "new_handoff_us": known["new"], "known_handoff_us": known["known"]}


async def replied(prompt: str) -> Any:
    """What everybody says."""
    return {"content": "Yes."}


async def cpu_per_turn(conversations: int) -> float:
    """Milliseconds of CPU that a turn takes where so many conversations go on together."""
    async with Moothall("memory", listeners=()) as hall:
        agents = {"creative_partner": replied}
        sessions = [await Session.begin(hall, Chosen(), agents) for _ in range(conversations)]
        turns = TURNS if conversations > 1 else TURNS * 20

        async def talk(session: Session) -> None:
            for number in range(turns):
                await session.say(f"Word {number % TURNS}")

        began = time.process_time()
        await asyncio.gather(*map(talk, sessions))
        return (time.process_time() - began) / (turns * conversations) * 1e3


def alone(turns: int = TURNS) -> float:
    """The same for conversations that go on one after the other, each as long as one of many."""

    async def work() -> float:
        async with Moothall("memory", listeners=()) as hall:
            agents, spent = {"creative_partner": replied}, 0.0
            for _ in range(20):
                session = await Session.begin(hall, Chosen(), agents)
                began = time.process_time()
                for number in range(turns):
                    await session.say(f"Word {number}")
                spent += time.process_time() - began
            return spent / (20 * turns) * 1e3

    return asyncio.run(work())


def measured() -> dict[str, Any]:
    """All figures; of several rounds the median."""
    sizes = {size: cost_of(size) for size in SIZES}
    alone()
    ones, many = [], []
    for _ in range(ROUNDS):
        ones.append(alone())
        many.append(asyncio.run(cpu_per_turn(CONVERSATIONS)))
    one, crowd = sorted(ones)[ROUNDS // 2], sorted(many)[ROUNDS // 2]
    return {
        "sizes": sizes,
        "growth": {name: sizes[500][name] / sizes[50][name] for name in sizes[50]},
        "one_ms_per_turn": one,
        "many_ms_per_turn": crowd,
        "ratio": crowd / one,
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    figures = measured()
    if parser.parse_args().json:
        print(json.dumps(figures, indent=2))
        return
    for size, cost in figures["sizes"].items():
        print(f"{size:>4} personas: " + ", ".join(f"{name} {value:.1f}" for name, value in cost.items()))
    print("growth for ten times the personas: " + ", ".join(f"{k} ×{v:.1f}" for k, v in figures["growth"].items()))
    print(
        f"one conversation {figures['one_ms_per_turn']:.2f} ms CPU per turn; {CONVERSATIONS} together "
        f"{figures['many_ms_per_turn']:.2f} ms: ×{figures['ratio']:.2f}"
    )


if __name__ == "__main__":
    main()
