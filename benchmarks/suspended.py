"""Whether runs that wait for a person cost anything while they wait: 1,000 of them against 10,000.

    python benchmarks/suspended.py [--few 1000] [--many 10000]

Measures, for each number of runs on SQLite: the memory and the processor time of an idle `moot worker`, and the time
that `moothall.answer` takes for one run, from opening the store to the end of the run (the lower quartile: neighbours
on the same machine make the rest). No ratio should exceed 1.2.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import moothall
from moothall import Final, Machine, On, State

ANSWERS = 200
IDLE = 5.0


async def draft():
    return "text"


WAITING = Machine(
    "waiting",
    states=[
        State("drafting", enter=moothall.call(draft)),
        State("approving", enter=moothall.question("Publish?")),
        Final("end"),
    ],
    moves=[
        On("drafting", moothall.Returned, to="approving", do=lambda data, returned: {"draft": returned.value}),
        On("approving", moothall.Answered, to="end"),
    ],
)


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--few", type=int, default=1_000)
    cli.add_argument("--many", type=int, default=10_000)
    chosen = cli.parse_args()
    few, many = measured(chosen.few, chosen.many)
    print("| runs | worker, MB | worker idle, CPU ms/s | answer, ms | answer, CPU ms |\n|---:|---:|---:|---:|---:|")
    for count, row in ((chosen.few, few), (chosen.many, many)):
        print(f"| {count:,} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
    print("| ratio | " + " | ".join(f"{more / less:.2f}" for less, more in zip(few, many, strict=True)) + " |")


def measured(*numbers: int) -> list[list[float]]:
    """For so many waiting runs an idle worker's memory and processor time, and how long an answer takes."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        addresses = {runs: f"sqlite:{folder}/{runs}.db" for runs in numbers}
        for runs, address in addresses.items():
            asyncio.run(suspend(runs, address))
        idle = {runs: watched_worker(address) for runs, address in addresses.items()}
        times: dict[int, list[tuple[float, float]]] = {runs: [] for runs in numbers}
        for turn in range(ANSWERS):
            for runs, address in addresses.items():
                times[runs].append(answer_time(turn * runs // ANSWERS, address))
    quick = {runs: [statistics.quantiles(kind)[0] for kind in zip(*times[runs], strict=True)] for runs in numbers}
    return [[*idle[runs], *quick[runs]] for runs in numbers]


async def suspend(runs: int, address: str) -> None:
    for first in range(0, runs, 100):
        await asyncio.gather(
            *(moothall.arun(WAITING, store=address, run_id=f"run-{number}") for number in range(first, first + 100))
        )


def watched_worker(address: str) -> tuple[float, float]:
    """Megabytes and milliseconds per second of a worker that has nothing to do."""
    command = [sys.executable, "-m", "moothall", "worker", "--quiet", "--store", address]
    with subprocess.Popen(command, cwd=Path(__file__).parent) as worker:
        time.sleep(IDLE / 2)
        before = processor_time(worker.pid)
        time.sleep(IDLE)
        idle = (processor_time(worker.pid) - before) / IDLE * 1e3
        memory = resident(worker.pid)
        worker.terminate()
    return memory, idle


def resident(process: int) -> float:
    """Megabytes of its own that a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise LookupError("RssAnon")


def processor_time(process: int) -> float:
    """Seconds that a process has been running, all its threads together."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e9


def answer_time(number: int, address: str) -> tuple[float, float]:
    """Milliseconds that an answer takes, by the clock and of the processor."""
    begin, worked = time.perf_counter(), time.process_time()
    outcome = moothall.answer(f"run-{number}", True, store=address)
    taken = (time.perf_counter() - begin) * 1e3, (time.process_time() - worked) * 1e3
    assert outcome.status == "done", outcome
    return taken


if __name__ == "__main__":
    main()
