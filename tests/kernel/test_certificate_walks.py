"""On machines too large to enumerate, the certificate is above every walk; the ratio to the largest is printed."""

from __future__ import annotations

from random import Random

import pytest

from moothall.analysis.certify import Certificate, certify
from moothall.kernel.events import Named
from moothall.kernel.interpreter import possible, start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, Node, On, Parallel, State, anywhere
from moothall.kernel.step import Snapshot, Step

WALKS = 10_000


def hopping(width: int, bound: int) -> Machine:
    """A chain whose states may be entered from anywhere, a few times each."""
    chain = [On(f"s{at}", "next", to=f"s{at + 1}") for at in range(width)]
    hops = [On(anywhere, f"hop{at}", to=f"s{at}", at_most=bound) for at in range(width)]
    states: list[Node] = [State(f"s{at}") for at in range(width)]
    return Machine("hopping", states=[*states, Final(f"s{width}")], moves=[*chain, *hops])


def regions(width: int, bound: int) -> Machine:
    """Regions that each go back a few times; together they have too many configurations to list."""
    rows, boxes = [], list[Node]()
    for region in range(width):
        a, b, end = f"a{region}", f"b{region}", f"end{region}"
        boxes.append(State(f"region{region}", [State(a), State(b), Final(end)]))
        rows += [On(a, f"on{region}", to=b), On(b, f"back{region}", to=a, at_most=bound), On(b, f"end{region}", to=end)]
    states: list[Node] = [Parallel("work", boxes), Final("done")]
    return Machine("regions", states=states, moves=[*rows, On("work", "done.state.work", to="done")])


def walk(machine: Machine, random: Random) -> int:
    """The rows that one run takes when it is told possible events at random until none is left."""
    step = start(machine, None)
    taken = 0
    while isinstance(step, Step) and (events := candidates(machine, step.snapshot)):
        step = transition(machine, step.snapshot, Named(random.choice(events)))
        assert isinstance(step, Step)
        taken += len(step.taken)
    return taken


def candidates(machine: Machine, snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(name for name in possible(machine, snapshot) if not name.startswith("done."))


@pytest.mark.soak
@pytest.mark.parametrize("machine", [hopping(12, 9), regions(9, 3)], ids=["hopping", "regions"])
def test_no_walk_exceeds_the_estimate(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    found = certify(machine)
    assert isinstance(found, Certificate)
    assert not found.exact
    longest = max(walk(machine, Random(seed)) for seed in range(WALKS))
    with capsys.disabled():
        ratio = found.transitions / longest
        print(f"\n{machine.name}: at most {found.transitions}, largest of {WALKS:,} walks {longest}, ratio {ratio:.2f}")
    assert longest <= found.transitions
