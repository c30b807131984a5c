"""Journals as the runtime decides them, step by step, from what a test says happened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from moothall import (
    Answered,
    Done,
    Event,
    Exhausted,
    Final,
    GaveUp,
    Machine,
    On,
    Parallel,
    Replied,
    State,
    always,
    ask,
    otherwise,
    question,
)
from moothall.app.report.projections.metrics import Metrics
from moothall.kernel.events import AttemptFailed, Forked
from moothall.runtime.decide import Decision, Incoming, decide, first
from moothall.runtime.journal import Head, Pending, Record, Run, encode_entry
from tests.runtime.world import decided

BEGAN = 1_000.0
Entries = list[Mapping[str, Any]]

FLAT = Machine(
    "flat",
    states=[
        State("drafting", enter=ask("writer", "Write.")),
        State("reviewing", enter=ask("critic", "Judge.")),
        State("approving", enter=question("Publish?")),
        Final("published"),
    ],
    moves=[
        On("drafting", Replied, to="reviewing"),
        On("drafting", GaveUp, to="drafting", at_most=2),
        On("drafting", otherwise, to="approving"),
        On("reviewing", Replied, to="drafting", at_most=2),
        On("reviewing", otherwise, to="approving"),
        On("reviewing", GaveUp, to="approving"),
        On("approving", Answered, to="published"),
    ],
)
"""A machine without states in states; a state may be left and entered again in one step."""

DEEP = Machine(
    "deep",
    states=[
        State("racing", enter=[ask("hare", "Run."), ask("tortoise", "Walk.")]),
        State("sorting"),
        Parallel(
            "checking",
            [
                State("left", [State("reading", enter=ask("critic", "Read.")), Final("read")]),
                State("right", [State("asking", enter=question("Is it true?")), Final("asked")]),
            ],
            enter=ask("clerk", "Note."),
        ),
        Final("over"),
    ],
    moves=[
        On("racing", Replied, to="sorting"),
        On("racing", GaveUp, to="racing", at_most=2),
        On("racing", otherwise, to="over"),
        On("sorting", always, to="checking"),
        On("reading", Replied, to="read"),
        On("reading", GaveUp, to="read"),
        On("asking", Answered, to="asked"),
        On("checking", Done, to="racing", at_most=2),
        On("checking", Done, to="over"),
        On("checking", [Replied, GaveUp]),
    ],
)
"""A machine with states in states, regions, a state that is passed through, and effects that lose their state."""


@dataclass
class Telling:
    """A run that is told what happened, and keeps its journal."""

    machine: Machine
    limits: Mapping[str, float] = field(default_factory=dict)
    now: float = BEGAN
    entries: Entries = field(default_factory=list)
    dropped: list[Pending] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.head: Head
        record = Record("one", self.machine.name, self.machine.digest, BEGAN, limits=self.limits)
        self.run = Run(record, self.machine)
        self._keep(decided(first(self.run, None)))

    def _keep(self, decision: Decision) -> None:
        before = self.head.pending if self.entries else ()
        self.head = decision.head
        kept = {one.key for one in self.head.pending}
        ended = decision.entry.cause
        self.dropped += [one for one in before if one.key not in kept and one.key != ended]
        self.entries.append(encode_entry(decision.entry))

    def part(self) -> None:
        """Go on as a fork of what it was so far."""
        record = Record("two", self.machine.name, self.machine.digest, self.now, origin="one", shared=self.head.seq)
        self.run = Run(record, self.machine)
        self.dropped.clear()
        self.tell(Forked("one"), "forked-two")

    @property
    def is_live(self) -> bool:
        return self.head.snapshot.status == "live"

    def after(self, seconds: float) -> "Telling":
        """Let time pass."""
        self.now += seconds
        return self

    def tell(self, event: Event, cause: str) -> None:
        """An event with its cause."""
        self._keep(decided(decide(self.run, self.head, Incoming(event, cause, self.now))))

    def find(self, who: str) -> Pending:
        """The effect in flight that asks this agent, or the person."""
        return next(one for one in self.head.pending if getattr(one.effect, "agent", "person") == who)

    def reply(self, who: str, usage: Mapping[str, float] | None = None) -> None:
        """An agent replies."""
        self.tell(Replied(who, f"{who} says so", usage=usage or {}), self.find(who).key)

    def falter(self, who: str, usage: Mapping[str, float] | None = None) -> None:
        """An attempt goes wrong."""
        pending = self.find(who)
        self.tell(AttemptFailed("no line", usage=usage or {}), f"{pending.key}-{pending.attempt}")

    def answer(self, value: Any = True, by: str = "ada") -> None:
        """A person answers."""
        self.tell(Answered(value, by=by), self.find("person").key)

    def late(self, usage: Mapping[str, float] | None = None) -> None:
        """The first effect that was dropped replies all the same."""
        pending = self.dropped.pop(0)
        self.tell(Replied(pending.effect.__dict__["agent"], "too late", usage=usage or {}), pending.key)


def folded(entries: Sequence[Mapping[str, Any]], metrics: Metrics) -> Metrics:
    """The metrics after these entries."""
    for entry in entries:
        metrics = metrics.after(entry)
    return metrics


@dataclass(frozen=True)
class Act:
    """Something that may happen: to which effect, what, what it cost, and how long that took."""

    which: int
    what: str
    usage: Mapping[str, float]
    seconds: float


usages = st.fixed_dictionaries(
    {}, optional={"tokens": st.integers(0, 5_000), "usd": st.integers(0, 900_000).map(lambda micro: micro / 1_000_000)}
)
acts = st.builds(
    Act,
    st.integers(0, 9),
    st.sampled_from(["reply", "reply", "reply", "give up", "falter", "late", "part"]),
    usages,
    st.integers(0, 10_000).map(lambda millis: millis / 1_000),
)


def lived(machine: Machine, story: Sequence[Act], limits: Mapping[str, float] | None = None) -> Telling:
    """A run to which all that happened, as far as it could."""
    telling = Telling(machine, limits or {})
    for act in story:
        telling.after(act.seconds)
        if act.what == "part" and telling.is_live:
            telling.part()
        for event, cause in _happening(telling, act):
            telling.tell(event, cause)
    return telling


def _happening(telling: Telling, act: Act) -> Iterator[tuple[Event, str]]:
    late = [one for one in telling.dropped if hasattr(one.effect, "agent") and not one.denied]
    if act.what == "late" and late:
        telling.dropped.remove(late[0])
        yield Replied(late[0].effect.__dict__["agent"], "too late", usage=act.usage), late[0].key
    elif telling.is_live and telling.head.pending:
        pending = telling.head.pending[act.which % len(telling.head.pending)]
        agent = pending.effect.__dict__.get("agent")
        if pending.denied:
            yield Exhausted(pending.denied, 1), pending.key
        elif agent is None:
            yield Answered(True), pending.key
        elif act.what == "falter":
            yield AttemptFailed("no line", usage=act.usage), f"{pending.key}-{pending.attempt}"
        elif act.what == "give up":
            yield GaveUp("no line", usage=act.usage), pending.key
        else:
            yield Replied(agent, "so be it", usage=act.usage), pending.key
