"""The values that the interpreter takes and gives: snapshots, moves, steps, questions to a script engine.

All of them are frozen. A `Step` explains itself: where the run stood, the event, what was taken, where it
stands, what it appends and what it wants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen, maker, slotted

D = TypeVar("D")
T = TypeVar("T")
Status = Literal["live", "done", "failed", "limited", "cancelled"]


class Append(Frozen):
    """A message that a move adds to the end of a thread."""

    thread: str
    message: Any


class Move(Frozen, Generic[D]):
    """What a move decided: the new data, and what it wants, appends and raises."""

    data: D
    effects: tuple[Effect, ...] = ()
    appends: tuple[Append, ...] = ()
    raises: tuple[Event, ...] = ()
    error: str = ""


class Tail(Frozen):
    """How far a thread has grown: the number of its messages and the digest of the last."""

    count: int
    head: str


@slotted
class Snapshot(Frozen):
    """Where a run stands: its atomic states in document order, its data, its counters."""

    active: tuple[str, ...]
    data: Any
    status: Status = "live"
    reason: str = ""
    output: Any = None
    counts: Mapping[str, int] = field(default_factory=dict)
    history: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    threads: Mapping[str, Tail] = field(default_factory=dict)


make_snapshot = maker(Snapshot)


class Microstep(Frozen):
    """One set of transitions taken together, and the event that they answered ("" where none was needed)."""

    event: str
    taken: tuple[str, ...]
    exited: tuple[str, ...]
    entered: tuple[str, ...]


@slotted
class Wanted(Frozen):
    """An effect and the state that wants it; when that state is left, the effect is no longer wanted."""

    effect: Effect
    owner: str | None


make_wanted = maker(Wanted)


@slotted
class Step(Frozen):
    """What one event did to a run."""

    before: Snapshot | None
    event: Event
    microsteps: tuple[Microstep, ...]
    snapshot: Snapshot
    effects: tuple[Wanted, ...] = ()
    appends: tuple[Append, ...] = ()
    answers: tuple[Answer, ...] = ()

    @property
    def taken(self) -> tuple[str, ...]:
        """The rows taken, in order."""
        if len(self.microsteps) == 1:
            return self.microsteps[0].taken
        return tuple(row for microstep in self.microsteps for row in microstep.taken)

    @property
    def raised(self) -> tuple[str, ...]:
        """The names of the events that were raised on the way and taken by a row, in order.

        Dotted names are those of the kernel and of machines that compile to it; nobody reads them in a journal.
        """
        return tuple(
            microstep.event
            for microstep in self.microsteps
            if microstep.event and "." not in microstep.event and microstep.event != self.event.name and microstep.taken
        )

    @property
    def left(self) -> frozenset[str]:
        """The states that were left, even if they were entered again."""
        if len(self.microsteps) == 1:
            return frozenset(self.microsteps[0].exited)
        return frozenset(state for microstep in self.microsteps for state in microstep.exited)


make_step = maker(Step)


class Ask(Frozen):
    """The interpreter met a script that it has no answer for: evaluate it and call again with the answer appended."""

    script: Any
    scope: Any


class Value(Frozen):
    """A script gave a value."""

    value: Any


class Absent(Frozen):
    """A script gave nothing: undefined."""


class Failed(Frozen):
    """A script went wrong or was stopped."""

    reason: str


Answer = Value | Absent | Failed


@slotted
class Instant(Frozen):
    """When a step is decided, in seconds since 1970, and what its draws are derived from: the run and the step."""

    at: float = 0.0
    seed: str = ""


NO_INSTANT = Instant()


class Moment(Frozen):
    """What a guard or move with a third parameter may use besides data and event: the time, and chance.

    Both are the same when the step is decided again: the time is that of the event, and a draw follows from the run,
    the step and its label. Two draws of a step with the same label are the same draw.
    """

    active: frozenset[str]
    evaluate: Callable[[Any, Any], Answer]
    instant: Instant = NO_INSTANT

    @property
    def now(self) -> float:
        """The time of the event, in seconds since 1970."""
        return self.instant.at

    def draw(self, label: str = "") -> float:
        """A number from 0 up to 1, and never 1 itself."""
        drawn = hashlib.blake2b(f"{self.instant.seed}/{label}".encode(errors="surrogatepass"), digest_size=8).digest()
        return (int.from_bytes(drawn, "big") >> 11) / 2**53

    def pick(self, choices: Sequence[T], label: str = "") -> T:
        """One of these, each as likely as the others."""
        return choices[int(self.draw(label) * len(choices))]

    def shuffled(self, items: Iterable[T], label: str = "") -> list[T]:
        """These in another order, each order as likely as the others."""
        numbered = [(self.draw(f"{label}/{number}"), number, item) for number, item in enumerate(items)]
        return [item for _, _, item in sorted(numbered, key=itemgetter(0, 1))]


class Scripted(Frozen):
    """A guard or move that needs to know the active states, or to have a script evaluated.

    A late entry move waits until nothing else is left to do, and is not done where its state was left by then.
    """

    run: Callable[[Any, Event, Moment], Any]
    label: str
    emits: Mapping[str, int] = field(default_factory=dict)
    _: KW_ONLY
    late: bool = False


def In(state: str) -> Scripted:
    """Whether a state is active, as a guard."""
    return Scripted(lambda data, event, moment: state in moment.active, f"In({state})")
