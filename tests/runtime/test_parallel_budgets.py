"""Eight branches spend one budget at the same time, each as much as chance has it.

What a call costs is known only afterwards. So a run may overspend, but by no more than what the one call that each
branch had under way cost beyond what was reserved for it; and once a resource is used up, no call begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from moothall.errors import EffectFailed
from moothall.kernel.effects import StartChild
from moothall.kernel.events import ChildDone, Done, Event, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, Parallel, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall
from moothall.runtime.ports import Context
from tests.runtime.family import family_hall, parent_begun
from tests.runtime.world import RUN, Basket, Fetch, Fetched

pytestmark = pytest.mark.slow

ROUNDS = 9
BRANCHES = tuple("abcdefgh")
RESERVED: tuple[Mapping[str, float], ...] = ({}, {"tokens": 150}, {"tokens": 60, "usd": 0.05}, {"usd": 0.2})


@dataclass
class Provider:
    """Takes as long, fails as often and costs as much as its seed says, and keeps book for itself."""

    random: Random
    reserved: Mapping[str, float]
    hall: Hall | None = None
    calls: int = 0
    late: int = 0
    most: int = 0
    flying: int = 0
    cost: dict[str, float] = field(default_factory=lambda: {"calls": 0.0, "tokens": 0.0, "usd": 0.0})
    excess: dict[str, dict[str, float]] = field(default_factory=lambda: {one: {} for one in BRANCHES})
    """The most that one call of a branch cost beyond its reservation."""

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        assert self.hall is not None
        self.calls += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        self.late += self._is_used_up(context.key.rpartition(".")[0].rpartition(".")[0])
        for _ in range(self.random.randrange(9)):
            await asyncio.sleep(0)
        usage = {"tokens": float(self.random.randrange(300)), "usd": self.random.randrange(2_000) / 10_000}
        for name, amount in {"calls": 1, **usage}.items():
            self.cost[name] += amount
            beyond = amount - {"calls": 1, **self.reserved}.get(name, 0)
            branch = self.excess[effect.what]
            branch[name] = max(branch.get(name, 0), beyond)
        self.flying -= 1
        if self.random.random() < 0.2:
            raise EffectFailed("busy", usage=usage)
        return Fetched(effect.what, usage)

    def _is_used_up(self, run: str) -> bool:
        """Whether something was used up when a call began, as far as the run that wants it knows."""
        assert self.hall is not None
        spent, limits = self.hall.runs[run].head.spent, self.hall.runs[run].record.limits
        return any(spent.get(name, 0) >= limits[name] for name in self.cost if name in limits)


def region(branch: str) -> State:
    """A branch that calls again and again."""
    return State(f"branch_{branch}", [State(f"calling_{branch}", enter=Fetch(branch)), Final(f"over_{branch}")])


def rows(branch: str) -> list[On]:
    calling, over = f"calling_{branch}", f"over_{branch}"
    return [On(calling, Fetched, to=calling, at_most=ROUNDS), On(calling, [Fetched, GaveUp], to=over)]


def regions(costs: Mapping[str, float]) -> tuple[Machine, ...]:
    """Eight regions of a parallel state."""
    return (
        Machine(
            "regions",
            data=Basket,
            states=[Parallel("working", [region(one) for one in BRANCHES]), Final("home")],
            moves=[*(row for one in BRANCHES for row in rows(one)), On("working", Done, to="home")],
            costs={"fetch": costs},
        ),
    )


def fans(costs: Mapping[str, float]) -> tuple[Machine, ...]:
    """Eight calls in one state, each followed by another."""
    return (
        Machine(
            "fans",
            data=Basket,
            states=[State("working", enter=[Fetch(one) for one in BRANCHES]), Final("home")],
            moves=[
                On("working", Fetched, do=lambda _, event: Fetch(event.what), emits={Fetch: 1}),
                On("working", GaveUp, do=lambda basket, _: basket),
            ],
            costs={"fetch": costs},
        ),
    )


def children(costs: Mapping[str, float]) -> tuple[Machine, ...]:
    """Eight children, each with its share."""

    def child(one: str) -> Machine:
        return Machine(
            f"child_{one}",
            data=Basket,
            states=[State(f"calling_{one}", enter=Fetch(one)), Final(f"over_{one}")],
            moves=rows(one),
            costs={"fetch": costs},
        )

    parent = Machine(
        "parent",
        data=Basket,
        states=[
            Parallel(
                "working",
                [
                    State(
                        f"branch_{one}",
                        [State(f"waiting_{one}", enter=StartChild(f"child_{one}")), Final(f"back_{one}")],
                    )
                    for one in BRANCHES
                ],
            ),
            Final("home"),
        ],
        moves=[
            *(On(f"waiting_{one}", [ChildDone, GaveUp], to=f"back_{one}") for one in BRANCHES),
            On("working", Done, to="home"),
        ],
    )
    return (parent, *map(child, BRANCHES))


Form = Callable[[Mapping[str, float]], tuple[Machine, ...]]


async def spent_by(seed: int, form: Form) -> tuple[Provider, Mapping[str, float], Mapping[str, float]]:
    """One run: its provider's book, what the run says it spent, and its limits."""
    random = Random(seed)
    reserved = random.choice(RESERVED)
    limits = {"tokens": random.randrange(1, 8_000), "usd": random.randrange(1, 50_000) / 10_000}
    limits |= {"calls": random.randrange(1, 80)} if random.random() < 0.5 else {}
    provider = Provider(random, reserved)
    machine, *others = form(reserved)
    provider.hall = hall = family_hall(provider, machine, *others)
    await parent_begun(hall, machine, limits=limits)
    head = await drive(hall, RUN)
    return provider, head.spent, limits


@pytest.mark.anyio
@pytest.mark.parametrize("seeds", [200, pytest.param(1_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("form", [regions, fans, children])
async def test_eight_branches_overspend_by_no_more_than_their_calls_under_way(form: Form, seeds: int) -> None:
    worst, stopped, kept = {"calls": 0.0, "tokens": 0.0, "usd": 0.0}, 0, []
    for seed in range(seeds):
        provider, spent, limits = await spent_by(seed, form)
        kept.append(provider)
        for name, limit in limits.items():
            over = provider.cost[name] - limit
            allowed = sum(branch.get(name, 0) for branch in provider.excess.values())
            assert over <= allowed + 1e-9, (seed, name, over, allowed)
            assert spent.get(name, 0) == pytest.approx(provider.cost[name]), (seed, name)
            worst[name] = max(worst[name], over)
        stopped += any(provider.cost[name] >= limit for name, limit in limits.items())
        assert (provider.late, provider.most <= len(BRANCHES)) == (0, True), seed
    calls = sum(one.calls for one in kept)
    print(f"{form.__name__}: {seeds} runs, {calls} calls, {stopped} runs used something up; worst overspend {worst}")
    assert stopped > seeds / 3
