"""Durable steps per second of DBOS on PostgreSQL: dbos_steps.py ADDRESS RUNS STEPS."""

import asyncio
import sys
import time

from dbos import DBOS, DBOSConfig


@DBOS.step()
async def step(number: int) -> int:
    return number + 1


@DBOS.workflow()
async def walk(steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = await step(number)
    return number


async def measure(runs: int, steps: int) -> float:
    await walk(2)
    began = time.perf_counter()
    await asyncio.gather(*(walk(steps) for _ in range(runs)))
    return runs * steps / (time.perf_counter() - began)


if __name__ == "__main__":
    address, runs, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    config: DBOSConfig = {
        "name": "walk",
        "system_database_url": address,
        "log_level": "ERROR",
        "run_admin_server": False,
    }
    DBOS(config=config)
    DBOS.launch()
    print(asyncio.run(measure(runs, steps)))
    DBOS.destroy()
