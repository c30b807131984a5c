"""What the machines of the table are written with, and the kinds of rows that it has.

Facts that several machines rest on:

- `otherwise` takes the events that earlier rows of its own state name and those in which the state's own effects end;
  GaveUp is not among the latter. A spent `at_most` makes a row pass. Inner rows are tried before outer ones.
- An entry that `max_visits` forbids does not happen, its row is not taken, and Exhausted comes where the run stands.
- An internal row does not leave its state, so it does not count as a visit of it.
- A reply that no row takes is lost, and a state that waited for nothing else is stuck.
- One fault is named once, at its cause: a row that is never taken, not the states that it would have led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from moothall.agents.ask import AskAgent, Returned, ask, call
from moothall.analysis.certify import Certificate
from moothall.kernel.effects import AskPerson, Effect
from moothall.kernel.events import Done, Event, GaveUp
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, Node, On, Parallel, State, anywhere
from moothall.kernel.step import Move


@dataclass(frozen=True)
class Broken:
    """A machine, all that is to be found in it (code and place), and why."""

    machine: Machine
    findings: frozenset[tuple[str, str]]
    why: str


@dataclass(frozen=True)
class Good:
    """A machine about which there is nothing to say; `children` are the certificates of those that it starts.

    One that takes as many messages as people send is not bounded, and has no certificate.
    """

    machine: Machine
    children: Mapping[str, Certificate] = field(default_factory=dict)
    bounded: bool = True


@dataclass(frozen=True)
class Counted:
    """A machine and the most that a run of it can do."""

    machine: Machine
    transitions: int
    asks: int
    children: Mapping[str, Certificate] = field(default_factory=dict)
    other: Mapping[str, float] = field(default_factory=dict)


def broken(made: Machine, *findings: tuple[str, str], why: str = "") -> Broken:
    """A row of the table; a machine whose name is a sentence needs no other reason."""
    return Broken(made, frozenset(findings), why or made.name)


@dataclass(frozen=True)
class Work:
    """The data of all these machines."""

    topic: str = ""
    draft: str = ""
    notes: str = ""
    found: tuple[str, ...] = ()


def machine(name: str, states: Sequence[Node], moves: Sequence[On], budget: Budget | None = None) -> Machine:
    return Machine(name, data=Work, states=states, moves=moves, budget=budget)


class Went(Event):
    """Someone moved on."""


class Came(Event):
    """Someone came back."""


class Paused(Event):
    """A person wants a break."""


class Resumed(Event):
    """The break is over."""


class Redirected(Event):
    """A person wants something else."""


class Late(Event):
    """It took too long."""


class Ticked(Event):
    """A timer went off."""


class Judged(Event):
    """A judge spoke."""


class Praised(Judged):
    """A judge spoke well."""


class ReturnedLate(Returned[Any]):
    """A call returned, later than it should have."""


class Call(Effect):
    """Something that a performer does."""

    kind = "call"
    outcomes = (Returned,)


class Notify(Effect):
    """Something that a performer does, and whose state need not be there any more."""

    kind = "notify"
    owned = False
    outcomes = (Returned,)


@dataclass(frozen=True, slots=True)
class Calling:
    """An action of a table that wants one call."""

    label: ClassVar[str] = "calling"
    emits: ClassVar[Mapping[str, int]] = {Call.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Returned,)

    def __call__(self, data: Any, event: Any) -> Call:
        return Call()


def good(work: Work, event: Any) -> bool:
    return bool(work.draft)


def bad(work: Work, event: Any) -> bool:
    return not work.draft


def urgent(work: Work, event: Any) -> bool:
    return work.topic == "fire"


def keep(work: Work, event: Any) -> Work:
    return replace(work, draft="kept")


def note(work: Work, event: Any) -> Work:
    return replace(work, notes="noted")


def keep_and_call(work: Work, event: Any) -> Move[Work]:
    return Move(work, effects=(Call(),))


def spread(work: Work, event: Any) -> Move[Work]:
    return Move(work, effects=tuple(AskAgent(name, "Go.") for name in ("press", "papers", "patents")))


WRITER = ask("writer", "Write.")
CRITIC = ask("critic", "Judge.")
SEARCH = call("search")
ASK = AskPerson("Publish?")
ASK_UNTIL = AskPerson("Publish?", within=60)
FAILED = Final("failed")
FINISHED = Final("finished")
SAFE = On(anywhere, GaveUp, to="failed")


def both_regions(left: On, right: On) -> list[On]:
    return [left, right, On("both", Done, to="finished")]


def two_regions() -> list[Node]:
    left, right = State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])
    return [Parallel("both", [left, right]), FINISHED]


def regions(name: str, left: On, right: On, *others: On, more: Sequence[Node] = ()) -> Machine:
    """Two askers at once; the rows say what they write."""
    return machine(
        name,
        [
            Parallel(
                "gathering",
                [
                    State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                    State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    *more,
                ],
            ),
            FINISHED,
            FAILED,
        ],
        [left, right, *others, On("gathering", Done, to="finished"), SAFE],
    )
