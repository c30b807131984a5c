"""Two hundred runs at once on a real disk: how many commits a second, and how long another coroutine has to wait.

    python benchmarks/disk.py [--runs 200] [--steps 25] [--folder FOLDER]

The folder should be on a disk, not on a tmpfs. One run alone, which pays for every fsync by itself, is the measure.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import adapter

import moothall
from moothall.app.config import access as running

TICK = 0.001


async def agent(number):
    return number


async def lag(delays):
    """Note by how much a coroutine that wants to run every millisecond is late."""
    while True:
        begun = perf_counter()
        await asyncio.sleep(TICK)
        delays.append(perf_counter() - begun - TICK)


async def measured(folder, runs, steps):
    """Commits per second, and the delays of another coroutine meanwhile, in milliseconds."""
    address, delays = f"sqlite:{folder}/{runs}.db", []
    machine = adapter.loop_of(agent)
    with running.opened(address):
        ticking = asyncio.create_task(lag(delays))
        begun = perf_counter()
        done = await asyncio.gather(*(moothall.arun(machine, adapter.Count(steps), store=address) for _ in range(runs)))
        seconds = perf_counter() - begun
        ticking.cancel()
    assert all(outcome.data.n == steps for outcome in done)
    return runs * steps / seconds, [delay * 1000 for delay in delays]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--folder", type=Path, default=Path.cwd() / "build")
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        alone, _ = asyncio.run(measured(folder, 1, chosen.steps * 8))
        many, delays = asyncio.run(measured(folder, chosen.runs, chosen.steps))
    late = quantiles(delays, n=100)[98]
    print(f"one run alone: {alone:,.0f} commits a second")
    print(f"{chosen.runs} runs at once: {many:,.0f} commits a second, {many / alone:.1f} times as many")
    print(f"another coroutine is late by {median(delays):.1f} ms (median), {late:.1f} ms (p99)")


if __name__ == "__main__":
    main()
