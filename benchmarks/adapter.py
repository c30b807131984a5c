"""Moothall as a peer of the shared benchmark: its contract, with the documented API and default settings.

`loop` and `nested` measure the kernel alone: the pure `transition`, with the agent awaited beside it.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

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
    from moothall.kernel.verify import reachable  # not needed by a hello run

    machine = chain(states)
    assert machine.digest
    assert len(reachable(machine)) == states
    return machine


def build_nested(leaves):
    return tree(leaves)
