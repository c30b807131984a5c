"""What one condition of a workflow file costs, warm, in processor time of parent and child together.

    python benchmarks/scripts.py [--rounds 7] [--conditions 300]

The condition reads one field of about 2 KB of data. Also measured: a state's whole batch (two conditions, a script and
an input in one call), and a state whose condition calls something. A condition should cost at most 2 ms, a state 3 ms.
"""

import argparse
import asyncio
import os
import statistics
from pathlib import Path

from moothall.scripting.workflow import Batch, Choice, Script, Scripts

SCOPE = {
    "common_data": {
        "iteration_count": 3,
        "task": "Optimise the query. " * 40,
        "notes": [{"at": number, "by": "reviewer", "text": "look at this again"} for number in range(16)],
    },
    "last_parsing_tool_calls": [
        {"function": {"name": "review_work", "arguments": {"improvement_needed": True, "continue_message": "go on"}}}
    ],
}
CONDITION = Batch((Choice("this.common_data.iteration_count < 5"),), SCOPE, now=1_700_000_000.0)
STATE = Batch(
    (
        Choice("function.review_work.arguments.improvement_needed === false"),
        Choice(
            "function.review_work.arguments.improvement_needed === true",
            (
                Script("script", "() => { this.common_data.task = function.review_work.arguments.continue_message; }"),
                Script("input", "'Task: ' + common_data.task"),
            ),
        ),
    ),
    SCOPE,
    now=1_700_000_000.0,
)

CALLS = "this.common_data.notes.some(note => note.text.includes('again'))"
CALLING = Batch((Choice(CALLS),), SCOPE, now=1_700_000_000.0)
CALLING_STATE = Batch((Choice(CALLS, STATE.choices[1].then),), SCOPE, now=1_700_000_000.0)


def spent(processes: list[int]) -> float:
    """Processor time that these processes have used so far, in seconds."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def children() -> list[int]:
    """The processes that this one started, from any of its threads."""
    return [int(number) for task in Path("/proc/self/task").glob("*/children") for number in task.read_text().split()]


async def cost(scripts: Scripts, batch: Batch, times: int) -> float:
    """Milliseconds of processor time for one evaluation."""
    processes = [os.getpid(), *children()]
    before = spent(processes)
    for _ in range(times):
        await scripts.evaluate(batch)
    return (spent(processes) - before) / times * 1000


async def main(rounds: int, times: int) -> None:
    with Scripts(most=1) as scripts:
        batches = {
            "one condition": CONDITION,
            "one condition that calls something": CALLING,
            "a whole state": STATE,
            "a whole state with a condition that calls something": CALLING_STATE,
        }
        for name, batch in batches.items():
            await cost(scripts, batch, 20)
            figures = [await cost(scripts, batch, times) for _ in range(rounds)]
            print(f"{name}: median {statistics.median(figures):.2f} ms, best {min(figures):.2f} ms of processor time")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conditions", type=int, default=300)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.rounds, chosen.conditions))
