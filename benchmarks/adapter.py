"""Moothall as a peer of the shared benchmark: its contract, with the documented API and default settings.

`loop` and `nested` measure the kernel alone: the pure `transition`, with the agent awaited beside it.
"""

import sys
from asyncio import gather
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from time import perf_counter

import moothall
from moothall import Event, Final, Machine, On, State, otherwise
from moothall.kernel.interpreter import start, transition

PACKAGES = ["moothall"]
IMPORT = "moothall"


class Ticked(Event):
    """The agent has worked."""


@dataclass(frozen=True, slots=True)
class Count:
    """How often the agent has worked, and how often it may."""

    limit: int
    n: int = 0


def more(count, ticked):
    return count.n < count.limit


def counted(count, ticked):
    return replace(count, n=count.n + 1)


def cycle():
    return Machine(
        "cycle",
        data=Count,
        states=[State("a"), State("b"), Final("end")],
        moves=[
            On("a", Ticked, to="b", when=more, do=counted),
            On("b", Ticked, to="a", when=more, do=counted),
            On("a", otherwise, to="end"),
            On("b", otherwise, to="end"),
        ],
    )


async def loop(n, agent, clock):
    machine = cycle()
    snapshot = start(machine, Count(n)).snapshot
    with clock:
        for i in range(n):
            await agent(i)
            snapshot = transition(machine, snapshot, Ticked()).snapshot
    return snapshot.data.n


def chain(states):
    names = [f"s{i}" for i in range(states)]
    boxes = [State(name) for name in names[:-1]]
    rows = [On(here, Ticked, to=there) for here, there in pairwise(names)]
    return Machine("chain", states=[*boxes, Final(names[-1])], moves=rows)


def tree(leaves):
    """Two halves of groups of five leaves; the event always crosses from one half to the other."""
    half = leaves // 2

    def group(g):
        return State(f"g{g}", [State(f"l{i}") for i in range(g * 5, g * 5 + 5)])

    halves = [State(f"h{h}", [group(g) for g in range(h * half // 5, (h + 1) * half // 5)]) for h in range(2)]
    rows = [
        On(f"l{i}", Ticked, to=f"l{i + half if i < half else (i - half + 1) % half}", do=counted) for i in range(leaves)
    ]
    return Machine("tree", data=Count, states=[State("root", halves)], moves=rows)


async def nested(n, agent, clock):
    machine = tree(50)
    snapshot = start(machine, Count(n)).snapshot
    with clock:
        for i in range(n):
            await agent(i)
            snapshot = transition(machine, snapshot, Ticked()).snapshot
    return snapshot.data.n


def build(states):
    """Building includes the definition's hash and the reachability that `moot check` looks at."""
    from moothall.analysis.graph import reachable  # not needed by a hello run

    machine = chain(states)
    assert machine.digest
    assert len(reachable(machine)) == states
    return machine


def build_nested(leaves):
    return tree(leaves)


# through the runtime: the agent is a tool, every step is journaled; its rooms are opened when they are used


def _running():
    return import_module("moothall.app.config.access")


def loop_of(agent, grow=False):
    """The cycle again, with the agent as a tool that each state calls."""

    async def work(n):
        return await agent(n)

    keep = with_message if grow else counted_return
    return Machine(
        "durable_cycle",
        data=Count,
        budget=moothall.Budget(seconds=86400),
        states=[State("a", enter=moothall.call(work, "n")), State("b", enter=moothall.call(work, "n")), Final("end")],
        moves=[
            On("a", moothall.Returned, to="b", when=more_to_come, do=keep),
            On("b", moothall.Returned, to="a", when=more_to_come, do=keep),
            On("a", otherwise, to="end", do=keep),
            On("b", otherwise, to="end", do=keep),
        ],
    )


def more_to_come(count, returned):
    return count.n + 1 < count.limit


def counted_return(count, returned):
    return replace(count, n=count.n + 1)


def with_message(count, returned):
    return moothall.Move(replace(count, n=count.n + 1), appends=(moothall.Append("messages", returned.value),))


async def durable(n, folder, agent, clock, grow):
    address, machine = f"sqlite:{folder}/moothall.db", loop_of(agent, grow)
    arun = moothall.arun  # its room is opened before the clock starts: importing is another workload
    with _running().opened(address):
        with clock:
            outcome = await arun(machine, Count(n), store=address, run_id="bench")
        return outcome.data.n


async def recorded(folder):
    with _running().opened(f"sqlite:{folder}/moothall.db") as store:
        return await store.seq("bench")


async def fan_out(width, agent, clock):
    return await fan(width, agent, clock, "memory")


@lru_cache
def fan_of(width, agent):
    """All tools at once, and a join when the last has returned; a machine is checked when it first runs, as others
    are when they are compiled."""

    def tool(i):
        async def work():
            return await agent(i)

        work.__name__ = f"work{i}"
        return work

    return Machine(
        "fan",
        data=Count,
        states=[State("working", enter=[moothall.call(tool(i)) for i in range(width)]), Final("joined")],
        moves=[
            On("working", moothall.Returned, do=counted_return, when=more_to_come),
            On("working", otherwise, to="joined", do=counted_return),
        ],
    )


async def fan(width, agent, clock, address):
    machine = fan_of(width, agent)
    with _running().opened(address), clock:
        outcome = await moothall.arun(machine, Count(width), store=address)
    return outcome.data.n


async def many(runs, agent, clock):
    return await crowd(runs, agent, clock, "memory")


async def crowd(runs, agent, clock, address):
    """Runs of a chain of five states, all at the same time."""

    async def work(n):
        return await agent(n)

    names = [f"s{i}" for i in range(5)]
    machine = Machine(
        "five",
        data=Count,
        states=[*(State(name, enter=moothall.call(work, "n")) for name in names), Final("end")],
        moves=[On(here, moothall.Returned, to=there, do=counted_return) for here, there in pairwise([*names, "end"])],
    )
    with _running().opened(address), clock:
        outcomes = await gather(*(moothall.arun(machine, Count(5), store=address) for _ in range(runs)))
    return sum(outcome.data.n == 5 for outcome in outcomes)


async def draft():
    return "text"


def __getattr__(name):
    """`WAITING` is made when it is first asked for, and found again by its name when a run is resumed."""
    if name != "WAITING":
        raise AttributeError(name)
    globals()[name] = Machine(
        "waiting",
        states=[
            State("drafting", enter=moothall.call(draft)),
            State("approving", enter=moothall.question("Publish?")),
            Final("end"),
        ],
        moves=[
            On("drafting", moothall.Returned, to="approving", do=lambda data, returned: {"draft": returned.value}),
            On("approving", moothall.Answered, to="end", do=lambda data, answered: {**data, "answer": answered.value}),
        ],
    )
    return globals()[name]


async def suspend(runs, folder):
    address = f"sqlite:{folder}/moothall.db"
    waiting, arun = sys.modules[__name__].WAITING, moothall.arun
    with _running().opened(address):
        for run in range(runs):
            await arun(waiting, store=address, run_id=f"run-{run}")


async def resume(runs, folder, times):
    done = 0
    async with moothall.Moothall(f"sqlite:{folder}/moothall.db") as hall:
        for run in range(runs):
            begin = perf_counter()
            outcome = await hall.answer(f"run-{run}", True)
            times.append(perf_counter() - begin)
            done += outcome.data == {"draft": "text", "answer": True}
    return done
