"""Small machines that a seed makes: a few stages in a row, each of one kind, and ends of all kinds.

Every stage is left after a bounded number of events, whatever they are, so that every run ends or waits for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, ReadRecords, Send, StartChild, WriteRecords
from moothall.kernel.events import (
    Answered,
    Cancelled,
    ChildDone,
    Conflicted,
    Done,
    Event,
    Exhausted,
    Expired,
    GaveUp,
    Named,
    RecordsRead,
    RecordsWritten,
    SharedRecord,
)
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, Node, On, Parallel, State, anywhere, emitting
from tests.runtime.world import Basket, Fetch, Fetched, keep

FAILURES = (GaveUp, Exhausted)
DEPTH = 2
REDIRECTED = "redirected"
"""What a person may say while an agent speaks."""
SPOKEN = "spoken"
FOUND = "found"
"""What a person says that an effect in doubt has brought."""
RATINGS, SHARED = "ratings", "shared"
"""The record that all runs of a world write, each over the version that it read."""


class Errand(Effect):
    """Something that is wanted; the kinds differ in what may happen to them after a crash."""

    outcomes: ClassVar[tuple[type[Event], ...]] = (Fetched,)
    costs: ClassVar[Mapping[str, float]] = {"calls": 1}
    what: str


class Stamp(Errand):
    """Stamp something: at most once."""

    kind = "stamp"
    repeats = "at-most-once"


class Enter(Errand):
    """Enter something into a register, after a look whether it is there."""

    kind = "enter"
    repeats = "check-first"


class Hurry(Errand):
    """Fetch something, but not for ever."""

    kind = "hurry"
    timeout = 8.0


class Sounded(Event):
    """A depth was sounded."""

    value: str


class Sound(Errand):
    """Sound a depth: an effect of an author's own, performed by a function that gives no event but its value."""

    kind = "sound"
    outcomes = (Sounded,)


class Moor(Sound):
    """Moor: at most once."""

    kind = "moor"
    repeats = "at-most-once"


KINDS: tuple[type[Effect], ...] = (Fetch, Stamp, Enter, Hurry)
"""What performers perform here."""
OWN: tuple[type[Effect], ...] = (Sound, Moor)
"""What authors' own functions perform."""
FORM = {
    "type": "object",
    "properties": {"when": {"type": "string", "minLength": 1}, "berths": {"type": "integer"}},
    "required": ["when", "berths"],
}
"""The fields of a question with several."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a machine: its node, and its rows."""

    node: Node
    rows: tuple[On, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The chance that machines are drawn with, and the machines that were drawn, by name."""

    draw: Random
    known: dict[str, Machine] = field(default_factory=dict)
    mended: dict[str, Machine] = field(default_factory=dict)
    """The machines that lack rows for failures, as they are with them."""

    def errand(self) -> Callable[[str], Effect]:
        """A kind of errand; most are idempotent."""
        kinds: tuple[Callable[[str], Effect], ...] = (Fetch, Fetch, Fetch, Hurry, Stamp, Enter)
        return self.draw.choice(kinds)

    def machine(self, name: str, depth: int = 0) -> Machine:
        """A new machine of one to four stages, and those of its children."""
        self.known[name] = machine = _machine(self, name, depth)
        return machine


Maker = Callable[[Drawing, str, str], Stage]


def noted(basket: Basket, event: Event) -> Basket:
    """The move that remembers that something came instead of what was fetched."""
    return Basket((*basket.got, event.name))


def fetching(drawing: Drawing, name: str, then: str) -> Stage:
    """Do one errand; a failure is as good as success."""
    wanted = drawing.errand()(name)
    return Stage(State(name, enter=wanted), (*_arrivals(name, then), *_failures(name, then)))


def all_of(drawing: Drawing, name: str, then: str) -> Stage:
    """Do several errands at once and wait for all of them."""
    number = drawing.draw.randint(2, 4)

    def complete(basket: Basket, event: Event) -> bool:
        return (len(basket.got) + 1) % number == 0

    wanted = [drawing.errand()(f"{name}-{one}") for one in range(number)]
    rows = [On(name, [Fetched, *FAILURES], to=then, when=complete, do=noted), On(name, [Fetched, *FAILURES], do=noted)]
    return Stage(State(name, enter=[_emptied, *wanted]), tuple(rows))


def first_of(drawing: Drawing, name: str, then: str) -> Stage:
    """Do several errands at once and go on with the first."""
    wanted = [Fetch(f"{name}-{one}") for one in range(drawing.draw.randint(2, 3))]
    return Stage(State(name, enter=wanted), (*_arrivals(name, then), *_failures(name, then)))


def looping(drawing: Drawing, name: str, then: str) -> Stage:
    """Do the same errand again and again, so often and no more."""
    again = On(name, Fetched, to=name, do=keep, at_most=drawing.draw.randint(1, 3))
    rows = (again, On(name, Fetched, to=then, do=keep), *_failures(name, then))
    return Stage(State(name, enter=Fetch(name)), rows)


def waiting(drawing: Drawing, name: str, then: str) -> Stage:
    """Wait for an alarm."""
    rung = f"rung.{name}"
    delay = drawing.draw.choice((1.0, 7.0, 40.0))
    timer: Effect = Alarm(Named(rung), delay) if drawing.draw.random() < 0.5 else Send(Named(rung), delay)
    return Stage(State(name, enter=timer), (On(name, rung, to=then, do=noted),))


def hurrying(drawing: Drawing, name: str, then: str) -> Stage:
    """Do an errand, but not for ever: what comes first wins, and the other is forgotten."""
    tired = f"tired.{name}"
    timer = Send(Named(tired), drawing.draw.choice((0.5, 3.0, 20.0)), id=name)
    state = State(name, enter=[Fetch(name), timer], exit=CancelSend(name))
    return Stage(state, (*_arrivals(name, then), On(name, tired, to=then, do=noted), *_failures(name, then)))


def asking(drawing: Drawing, name: str, then: str) -> Stage:
    """Ask a person, with or without a deadline."""
    question = AskPerson(f"{name}?", within=drawing.draw.choice((None, 5.0, 45.0)))
    return Stage(State(name, enter=question), (On(name, [Answered, Expired], to=then, do=noted),))


def filling_in(drawing: Drawing, name: str, then: str) -> Stage:
    """Ask a person for several things at once."""
    question = AskPerson(f"{name}: when, and for how many?", FORM, within=drawing.draw.choice((None, 45.0)))
    return Stage(State(name, enter=question), (On(name, [Answered, Expired], to=then, do=noted),))


def sounding(drawing: Drawing, name: str, then: str) -> Stage:
    """Do something that authors perform themselves, alone or with an errand beside it."""
    own = drawing.draw.choice((Sound, Sound, Moor))
    if drawing.draw.random() < 0.5:
        rows = (On(name, Sounded, to=then, do=noted), *_failures(name, then))
        return Stage(State(name, enter=own(name)), rows)
    ends = [Sounded, Fetched, *FAILURES]

    def complete(basket: Basket, event: Event) -> bool:
        return len(basket.got) == 1

    rows = (On(name, ends, to=then, when=complete, do=noted), On(name, ends, do=noted))
    return Stage(State(name, enter=[_emptied, own(name), Fetch(name)]), rows)


def asking_beside(drawing: Drawing, name: str, then: str) -> Stage:
    """Ask a person while an errand is done; the answer ends both."""
    question = AskPerson(f"{name}?", within=drawing.draw.choice((None, 15.0)))
    rows = (
        On(name, [Answered, Expired], to=then, do=noted),
        On(name, Fetched, do=keep),
        On(name, FAILURES, do=noted),
    )
    return Stage(State(name, enter=[Fetch(name), question]), rows)


def speaking(drawing: Drawing, name: str, then: str) -> Stage:
    """Let somebody speak, until the end or until a person has heard enough."""
    rows = (*_arrivals(name, then), On(name, REDIRECTED, to=then, do=noted), *_failures(name, then))
    return Stage(State(name, enter=Fetch(f"{SPOKEN} {name}")), rows)


@emitting(WriteRecords)
def count_game(basket: Basket, read: RecordsRead) -> WriteRecords:
    """One game more than those that were read."""
    rating = read.records[0] if read.records else SharedRecord(RATINGS, SHARED, {"games": 0})
    return WriteRecords((replace(rating, value={"games": rating.value["games"] + 1}),))


def rating(drawing: Drawing, name: str, then: str) -> Stage:
    """Count a game in a record that others write as well, and read it again where somebody was quicker."""
    looking, entering = f"{name}-looking", f"{name}-entering"
    rows = (
        On(looking, RecordsRead, to=entering, do=count_game),
        On(entering, Conflicted, to=looking, do=noted),
        On(entering, RecordsWritten, to=looking, do=noted, at_most=drawing.draw.randint(1, 3)),
        On(entering, RecordsWritten, to=then, do=noted),
        *_failures(name, then),
    )
    return Stage(State(name, [State(looking, enter=ReadRecords(RATINGS, SHARED)), State(entering)]), rows)


def side_by_side(drawing: Drawing, name: str, then: str) -> Stage:
    """Regions that each go their own way, and meet at the end."""
    makers = [drawing.draw.choice(REGIONS) for _ in range(drawing.draw.randint(2, 3))]
    regions, rows = [], [On(name, Done, to=then)]
    for number, make in enumerate(makers):
        stage = make(drawing, f"{name}-{number}", f"{name}-{number}-done")
        regions.append(State(f"{name}-{number}-side", [stage.node, Final(f"{name}-{number}-done")]))
        rows += stage.rows
    return Stage(Parallel(name, regions), tuple(rows))


def delegating(drawing: Drawing, name: str, then: str) -> Stage:
    """Let a child do it; sometimes there is only so much time for it."""
    child = StartChild(f"child-{len(drawing.known)}")
    drawing.machine(child.machine, DEPTH)
    tired = f"tired.{name}"
    timer = [Alarm(Named(tired), 6.0)] if drawing.draw.random() < 0.3 else []
    rows = (On(name, [ChildDone.name, *FAILURES], to=then, do=noted), On(name, tired, to=then, do=noted))
    return Stage(State(name, enter=[child, *timer]), rows)


REGIONS: tuple[Maker, ...] = (fetching, fetching, looping, first_of, waiting, asking)
LEAVES: tuple[Maker, ...] = (
    fetching,
    fetching,
    fetching,
    all_of,
    all_of,
    first_of,
    looping,
    waiting,
    hurrying,
    asking,
    asking_beside,
    side_by_side,
    speaking,
    rating,
    rating,
    filling_in,
    sounding,
)
STAGES: tuple[Maker, ...] = (*LEAVES, delegating, delegating)


def _machine(drawing: Drawing, name: str, depth: int) -> Machine:
    draw = drawing.draw
    names = [f"s{number}" for number in range(draw.randint(1, 4 - depth))]
    stages = [
        draw.choice(LEAVES if depth else STAGES)(drawing, here, there) for here, there in pairwise([*names, "home"])
    ]
    clearing, rows = _ways_out(draw)
    farewell = [Fetch("farewell")] if draw.random() < 0.2 else []
    states: list[Node] = [*(stage.node for stage in stages), *clearing, Final("home", enter=farewell), Final("away")]
    moves = [*(row for stage in stages for row in stage.rows), *rows]
    is_unfinished = draw.random() < 0.2
    costs = {Fetch.kind: {"calls": 1, "tokens": 3}} if draw.random() < 0.5 else {}
    machine = Machine(name, data=Basket, states=states, moves=moves, budget=_budget(draw), costs=costs)
    if not is_unfinished:
        return machine
    drawing.mended[name] = machine
    return replace(machine, moves=[row for row in moves if row.event is not FAILURES])


def reworded(machine: Machine, words: str) -> Machine:
    """The machine with every question in other words."""
    return replace(machine, states=[_reworded(node, words) for node in machine.states])


def _reworded(node: Node, words: str) -> Node:
    if not isinstance(node, State | Parallel):
        return node
    enter: list[Any] = list(node.enter) if isinstance(node.enter, list | tuple) else [node.enter]
    said = [
        replace(action, prompt=f"{words}: {action.prompt}") if isinstance(action, AskPerson) else action
        for action in enter
    ]
    return replace(node, enter=said, states=[_reworded(inner, words) for inner in node.states])


def extended(machine: Machine, name: str) -> Machine:
    """The machine with one end more, to which no move leads: another definition that takes the same steps."""
    return replace(machine, states=[*machine.states, Final(name)])


def _budget(draw: Random) -> Budget | None:
    """Mostly none; else a few calls, or some time."""
    chance = draw.random()
    if chance < 0.3:
        return Budget(calls=draw.randint(1, 6), tokens=draw.choice((None, 20)))
    return Budget(seconds=draw.choice((2.0, 30.0))) if chance < 0.4 else None


def _ways_out(draw: Random) -> tuple[Sequence[Node], Sequence[On]]:
    """What the machine does when it is cancelled: end, or clear up first."""
    if draw.random() < 0.5:
        return (), ()
    rows = (On(anywhere, Cancelled, to="clearing"), On("clearing", [Fetched, *FAILURES], to="away", do=noted))
    return (State("clearing", enter=Fetch("clearing")),), rows


def _arrivals(name: str, then: str) -> tuple[On, ...]:
    return (On(name, Fetched, to=then, do=keep),)


def _failures(name: str, then: str) -> tuple[On, ...]:
    return (On(name, FAILURES, to=then, do=noted),)


def _emptied(basket: Basket, event: Any) -> Basket:
    return Basket()
