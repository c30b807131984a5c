"""Durable steps per second of LangGraph's PostgresSaver: langgraph_steps.py ADDRESS RUNS STEPS."""

import asyncio
import sys
import time
from typing import TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool


class Walk(TypedDict):
    number: int
    steps: int


async def step(walk: Walk) -> dict[str, int]:
    return {"number": walk["number"] + 1}


def next_of(walk: Walk) -> str:
    return "step" if walk["number"] < walk["steps"] else END


async def measure(address: str, runs: int, steps: int) -> float:
    graph = StateGraph(Walk)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", next_of)
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(address, max_size=16, kwargs=options, open=False) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        walking = graph.compile(checkpointer=saver)

        async def walk(name: str, count: int) -> None:
            config = {"configurable": {"thread_id": name}, "recursion_limit": count + 10}
            await walking.ainvoke({"number": 0, "steps": count}, config, durability="sync")

        await walk("warm", 2)
        began = time.perf_counter()
        await asyncio.gather(*(walk(f"run-{number}", steps) for number in range(runs)))
        return runs * steps / (time.perf_counter() - began)


if __name__ == "__main__":
    print(asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
