"""Random machines for properties: trees of states of all kinds, rows between any two, a small counter as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from moothall.kernel.events import Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, Guard, History, Node, On, Parallel, State, always, anywhere
from moothall.kernel.step import Moment, Move, Scripted, Value

EVENTS = ("a", "a.x", "b", "c")


@dataclass(frozen=True)
class Count:
    """What the moves of a random machine change, so that its guards have something to decide on."""

    n: int = 0


class Remainder:
    """A guard: n leaves this remainder when divided."""

    def __init__(self, by: int, rest: int) -> None:
        self.by, self.rest, self.label = by, rest, f"n % {by} == {rest}"

    def __call__(self, count: Count, event: Event) -> bool:
        return count.n % self.by == self.rest

    def scripted(self) -> Scripted:
        """The same guard, for a script engine."""

        def run(count: Count, event: Event, moment: Moment) -> bool:
            answer = moment.evaluate((self.by, self.rest), count.n)
            return isinstance(answer, Value) and bool(answer.value)

        return Scripted(run, self.label)


def counted(count: Count, event: Event) -> Count:
    """A move: one more."""
    return replace(count, n=count.n + 1)


def counted_and_told(count: Count, event: Event) -> Move[Count]:
    """A move: one more, and everybody hears of it."""
    return Move(replace(count, n=count.n + 1), raises=(Named("c"),))


@dataclass(frozen=True)
class Draft:
    """A machine before it is made, so that it can be made with plain guards and with scripted ones."""

    states: tuple[Node, ...]
    rows: tuple[On, ...]

    def machine(self, guard: Callable[[Any], Guard | None] = lambda given: given) -> Machine:
        """The machine, its guards as `guard` turns them."""
        moves = [replace(row, when=guard(row.when)) for row in self.rows]
        return Machine("random", data=Count, states=self.states, moves=moves, max_microsteps=30)


@st.composite
def drafts(draw: st.DrawFn, rows: int = 1) -> Draft:
    """Machines of up to about a dozen states, three levels deep, with so many rows at least."""
    names = (f"s{number}" for number in range(100))
    made: dict[str, str] = {}
    states = tuple(_node(draw, names, made, depth=3) for _ in range(draw(st.integers(2, 3))))
    if not any(isinstance(state, State | Parallel) for state in states):
        states = (State("first"), *states)
        made["first"] = "state"
    return Draft(states, tuple(draw(st.lists(_row(made), min_size=rows, max_size=rows + 13))))


def _node(draw: st.DrawFn, names: Any, made: dict[str, str], depth: int) -> Node:
    kind = draw(st.sampled_from(["state", "state", "state", "final", "compound", "compound", "parallel"]))
    name = next(names)
    if depth == 0 or kind in ("state", "final"):
        made[name] = "final" if kind == "final" else "state"
        return Final(name) if kind == "final" else State(name, enter=draw(_moves()), exit=draw(_moves()))
    made[name] = kind
    inner: list[Node] = [_node(draw, names, made, depth - 1) for _ in range(draw(st.integers(1, 3)))]
    if kind == "parallel":
        inner = [State(next(names), [node]) if isinstance(node, Final) else node for node in inner]
        made |= {node.name: "compound" for node in inner if node.name not in made}
    if draw(st.booleans()):
        memory = next(names)
        made[memory] = "history"
        inner.append(History(memory, inner[0].name, deep=draw(st.booleans())))
    return Parallel(name, inner) if kind == "parallel" else State(name, inner, enter=draw(_moves()))


def _moves() -> st.SearchStrategy[Any]:
    return st.sampled_from([(), (), counted])


def _row(made: dict[str, str]) -> st.SearchStrategy[On]:
    sources = [name for name, kind in made.items() if kind not in ("final", "history")] + [anywhere]
    guards = st.builds(Remainder, st.integers(2, 3), st.integers(0, 1))
    return st.builds(
        On,
        st.sampled_from(sources),
        st.sampled_from([*EVENTS, "*", "done.state", always]),
        to=st.one_of(st.none(), st.sampled_from(list(made))),
        when=st.one_of(st.none(), guards, guards),
        do=st.sampled_from([(), counted, counted_and_told]),
        at_most=st.one_of(st.none(), st.integers(0, 3)),
        internal=st.booleans(),
    )
