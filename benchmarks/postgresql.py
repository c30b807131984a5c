"""Durable steps per second on PostgreSQL, beside peers; and what many waiting runs cost.

    python benchmarks/postgresql.py [--rounds 3] [--steps 60] [--waiting 10000] [--no-peers]

The server comes from a wheel and writes to the disk before it says so. Every step of everybody is kept before the next
one begins. The peers are installed into build/bench/postgresql; one that cannot be is left out, and it is said why.
Rounds alternate, and the best of each counts. `floor` is a row of 400 bytes inserted and committed through the driver,
with a connection for each run: what a step costs that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import asyncpg  # noqa: E402

from moothall import Answered, Budget, Final, Machine, Moothall, On, Returned, State, call, question, tool  # noqa: E402
from tests.postgres import PostgresServer, served  # noqa: E402

WORK = ROOT / "build" / "bench" / "postgresql"
PEERS = {
    "dbos": ("dbos_steps.py", ["dbos==3.3.0"]),
    "langgraph": (
        "langgraph_steps.py",
        ["langgraph==1.2.20", "langgraph-checkpoint-postgres==3.2.0", "psycopg[binary]==3.3.8", "psycopg-pool==3.3.3"],
    ),
}
AT_ONCE = (1, 4, 16)


@dataclass(frozen=True)
class Walk:
    steps: int
    number: int = 0


async def step(number: int) -> int:
    return number + 1


WALK = Machine(
    "walk",
    data=Walk,
    budget=Budget(transitions=100_000),
    states=[State("walking", enter=call(tool(step, repeats="pure"), "number")), Final("there")],
    moves=[
        On("walking", Returned, to="there", when=lambda walk, event: event.value >= walk.steps),
        On("walking", Returned, to="walking", do=lambda walk, event: replace(walk, number=event.value)),
    ],
)
WAIT = Machine(
    "wait",
    data=Walk,
    states=[State("asking", enter=question("Go on?")), Final("over")],
    moves=[On("asking", Answered, to="over")],
)


async def walk(address: str, runs: int, steps: int) -> float:
    async with Moothall(address, listeners=()) as hall:
        await hall.run(WALK, Walk(2))
        began = time.perf_counter()
        await asyncio.gather(*(hall.run(WALK, Walk(steps)) for _ in range(runs)))
        return runs * steps / (time.perf_counter() - began)


async def insert(address: str, runs: int, steps: int) -> float:
    connections = [await asyncpg.connect(address) for _ in range(runs)]
    await connections[0].execute("CREATE TABLE steps (number bigint, body bytea)")

    async def walk(connection: Any, count: int) -> None:
        for number in range(count):
            await connection.execute("INSERT INTO steps VALUES ($1, $2)", number, b"x" * 400)

    await asyncio.gather(*(walk(connection, 2) for connection in connections))
    began = time.perf_counter()
    await asyncio.gather(*(walk(connection, steps) for connection in connections))
    return runs * steps / (time.perf_counter() - began)


def peer(python: str, name: str, address: str, runs: int, steps: int) -> float:
    script = ROOT / "benchmarks" / "postgresql_peers" / PEERS[name][0]
    done = subprocess.run(
        [python, str(script), address, str(runs), str(steps)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return 0.0
    return float(done.stdout.strip().splitlines()[-1])


def prepare() -> tuple[str, list[str]]:
    """An environment with the peers, and the names of those that could be installed there."""
    python = str(WORK / "venv" / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "venv")], check=True)
    there = []
    for name, (_, wanted) in PEERS.items():
        installing = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
        done = subprocess.run(installing, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name} is left out, it cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        else:
            there.append(name)
    return python, there


def compare(server: PostgresServer, rounds: int, steps: int, python: str, peers: list[str]) -> None:
    print(f"durable steps per second, {steps} steps a run, best of {rounds}")
    for runs in AT_ONCE:
        best = dict.fromkeys(("floor", "moothall", *peers), 0.0)
        for name in [*best] * rounds:
            with server.database() as address:
                if name == "floor":
                    rate = asyncio.run(insert(address, runs, steps))
                elif name == "moothall":
                    rate = asyncio.run(walk(address, runs, steps))
                else:
                    rate = peer(python, name, address, runs, steps)
            best[name] = max(best[name], rate)
        told = "  ".join(f"{name} {rate:,.0f}" for name, rate in best.items())
        others = max((best[name] for name in peers), default=0.0)
        ratio = f"  ({best['moothall'] / others:.1f} times the best peer)" if others else ""
        print(f"{runs:>3} runs at once: {told}{ratio}", flush=True)


async def wait_for_people(address: str, count: int) -> tuple[float, float, float]:
    """Seconds of this process that a look at all that is due costs, that an answer takes, and of beginning a run."""
    async with Moothall(address, listeners=()) as hall:
        began = time.perf_counter()
        for first in range(0, count, 50):
            await asyncio.gather(
                *(hall.run(WAIT, Walk(0), run_id=f"w-{number}") for number in range(first, min(first + 50, count)))
            )
        beginning = (time.perf_counter() - began) / count
        looks, answers = [], []
        for _ in range(50):
            began = time.perf_counter()
            await hall.store.owners()
            await hall.store.suspects(time.time())
            await hall.store.due(time.time(), 100)
            looks.append(time.perf_counter() - began)
        for number in range(40):
            began = time.perf_counter()
            await hall.answer(f"w-{number}", True, machine=WAIT)
            answers.append(time.perf_counter() - began)
    return sorted(looks)[len(looks) // 2], sorted(answers)[len(answers) // 2], beginning


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rounds", type=int, default=3)
    cli.add_argument("--steps", type=int, default=60)
    cli.add_argument("--waiting", type=int, default=10_000, help="so many waiting runs; 0 leaves that out")
    cli.add_argument("--no-peers", action="store_true")
    chosen = cli.parse_args()
    python, peers = ("", []) if chosen.no_peers else prepare()
    with tempfile.TemporaryDirectory() as home, served(is_safe=True) as server:
        os.environ["MOOTHALL_HOME"] = home
        compare(server, chosen.rounds, chosen.steps, python, peers)
        for count in (100, chosen.waiting) if chosen.waiting else ():
            with server.database() as address:
                look, answer, beginning = asyncio.run(wait_for_people(address, count))
                print(
                    f"{count:>6} waiting runs: a look {look * 1e3:.2f} ms, an answer {answer * 1e3:.1f} ms, "
                    f"{beginning * 1e3:.2f} ms to begin one"
                )


if __name__ == "__main__":
    main()
