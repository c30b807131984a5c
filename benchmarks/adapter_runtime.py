"""Rows of Moothall that the contract has no name for: the loop through the runtime, SQLite where others use memory."""

from tempfile import TemporaryDirectory

from peers import moothall as ours

from moothall import arun
from moothall.app.config import access as running

PACKAGES = ["moothall"]
IMPORT = "moothall"


async def loop(n, agent, clock):
    machine = ours.loop_of(agent)
    with running.opened("memory"), clock:
        outcome = await arun(machine, ours.Count(n), store="memory")
    return outcome.data.n


async def fan_out(width, agent, clock):
    with TemporaryDirectory() as folder:
        return await ours.fan(width, agent, clock, f"sqlite:{folder}/moothall.db")


async def many(runs, agent, clock):
    with TemporaryDirectory() as folder:
        return await ours.crowd(runs, agent, clock, f"sqlite:{folder}/moothall.db")
