"""Whether looking back at a long run stays quick and small: metrics and report of 1,000 steps against 10,000.

    python benchmarks/looking_back.py [--few 1000] [--many 10000]

Makes a run of each length on SQLite, then measures for its metrics and for its page the time, of the processor in
brackets, and the peak of the memory that Python takes. Metrics and page of 10,000 steps should take less than 2 s
together. The peak of the metrics should not depend on the length of the run; that of the page, which has a row for each
step, should not grow per step.
"""

import argparse
import asyncio
import gc
import os
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable

from moothall import Budget, Final, Machine, On, Replied, Reply, State, arun, ask, otherwise
from moothall.app.config.access import opened
from moothall.app.report.measures import measure
from moothall.app.report.report import report
from moothall.runtime.ports import Store

USAGE = {"tokens": 250, "usd": 0.001}


async def writer(prompt: str) -> Reply:
    return Reply("The sea rises and falls twice a day, and the harbour with it. " * 3, usage=USAGE)


async def critic(prompt: str) -> Reply:
    return Reply("Say how often, and why it is not once.", usage=USAGE)


def machine(steps: int) -> Machine:
    """Drafts and reviews that take so many steps together."""
    return Machine(
        "long",
        budget=Budget(calls=3 * steps),
        states=[
            State("drafting", enter=ask(writer, "Write about tides.")),
            State("reviewing", enter=ask(critic, "Judge this draft.")),
            Final("finished"),
        ],
        moves=[
            On("drafting", Replied, to="reviewing"),
            On("reviewing", Replied, to="drafting", at_most=steps // 2 - 1),
            On("reviewing", otherwise, to="finished"),
        ],
    )


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--few", type=int, default=1_000)
    cli.add_argument("--many", type=int, default=10_000)
    chosen = cli.parse_args()
    print("| steps | metrics, s | page, s | both, s | metrics, peak KB | page, peak KB | page, KB per step |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for steps in (chosen.few, chosen.many):
            times, sizes = asyncio.run(measured(steps, f"sqlite:{folder}/{steps}.db"))
            both = [sum(kind) for kind in zip(*times, strict=True)]
            told = " | ".join(f"{clock:.2f} ({processor:.2f})" for clock, processor in (*times, both))
            print(f"| {steps:,} | {told} | {sizes[0]:.0f} | {sizes[1]:.0f} | {sizes[1] / steps:.2f} |")


async def measured(steps: int, address: str) -> tuple[list[tuple[float, float]], list[float]]:
    """Seconds and kilobytes for the metrics and for the page of a run of so many steps."""
    outcome = await arun(machine(steps), run_id="long", store=address)
    assert outcome.status == "done", outcome
    with opened(address) as store:
        found = await measure(store, "long")
        assert found.metrics.entries == steps + 1, found.metrics.entries
        works = (lambda store: measure(store, "long"), lambda store: report(store, "long", "html"))
        return [await seconds(work, store) for work in works], [await peak(work, store) for work in works]


async def seconds(work: Callable[[Store], Awaitable[object]], store: Store) -> tuple[float, float]:
    """By the clock and of the processor, the quickest of three: neighbours on the same machine make the rest."""
    times = []
    for _ in range(3):
        began, worked = time.perf_counter(), time.process_time()
        await work(store)
        times.append((time.perf_counter() - began, time.process_time() - worked))
    return min(times)


async def peak(work: Callable[[Store], Awaitable[object]], store: Store) -> float:
    """The most memory that was taken at once, in kilobytes."""
    gc.collect()
    tracemalloc.start()
    await work(store)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1024


if __name__ == "__main__":
    main()
