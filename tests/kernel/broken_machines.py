"""Machines that are wrong in one way each, with what `verify` has to say about them, and machines that are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from moothall.kernel.effects import Alarm, AskPerson, Effect, Send
from moothall.kernel.events import Answered, Cancelled, Done, Event, Exhausted, Expired, GaveUp, Misbehaved
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, History, On, Parallel, State, always, anywhere, otherwise
from moothall.kernel.step import Move


class Went(Event):
    """Someone outside moved the run on."""


class Returned(Event):
    """A call returned."""


class ReturnedLate(Returned):
    """A call returned, later than it should have."""


class Ticked(Event):
    """A timer went off."""


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


def good(data: Any, event: Any) -> bool:
    return True


def bad(data: Any, event: Any) -> bool:
    return False


def keep(data: Any, event: Any) -> Any:
    return data


def keep_and_call(data: Any, event: Any) -> Move[Any]:
    return Move(data, effects=(Call(),))


ask = AskPerson("Publish?")
ask_until = AskPerson("Publish?", within=60)
failed = On(anywhere, GaveUp, to="failed")
ends = (Final("finished"), Final("failed"))


@dataclass(frozen=True, slots=True)
class Broken:
    """A machine and all that is to be found in it: code and place."""

    machine: Machine
    findings: frozenset[tuple[str, str]]


def broken(name: str, *, states: list[Any], moves: list[On], finds: list[tuple[str, str]]) -> Broken:
    return Broken(Machine(name, states=states, moves=moves), frozenset(finds))


UNREACHABLE = [
    broken(
        "an orphan among flat states",
        states=[State("first"), State("orphan"), Final("finished")],
        moves=[On("first", Went, to="finished"), On("orphan", Went, to="finished")],
        finds=[("unreachable", "orphan")],
    ),
    broken(
        "an orphan inside a compound state",
        states=[State("outer", [State("inner"), State("orphan")]), Final("finished")],
        moves=[On("outer", Went, to="finished")],
        finds=[("unreachable", "orphan")],
    ),
    broken(
        "a compound orphan is named once",
        states=[State("first"), State("orphan", [State("one"), State("two")]), Final("finished")],
        moves=[On("first", Went, to="finished"), On("one", Went, to="two"), On("two", Went, to="finished")],
        finds=[("unreachable", "orphan")],
    ),
    broken(
        "a region that is always entered elsewhere than at its start",
        states=[
            State("first"),
            Parallel("both", [State("left", [State("l1"), State("l2")]), State("right", [State("r1"), State("r2")])]),
            Final("finished"),
        ],
        moves=[On("first", Went, to=["l2", "r2"]), On("both", Went, to="finished")],
        finds=[("unreachable", "l1"), ("unreachable", "r1")],
    ),
    broken(
        "a history that nothing leads to",
        states=[State("outer", [State("inner"), History("back", "inner")]), Final("finished")],
        moves=[On("outer", Went, to="finished")],
        finds=[("unreachable", "back")],
    ),
]

DEAD_ENDS = [
    broken(
        "a state with no way out",
        states=[State("first"), State("stuck"), Final("finished")],
        moves=[On("first", Went, to="stuck"), On("first", Ticked, to="finished")],
        finds=[("dead-end", "stuck")],
    ),
    broken(
        "a state inside another with no way out",
        states=[State("outer", [State("inner"), State("stuck")]), Final("finished")],
        moves=[On("inner", Went, to="stuck"), On("inner", Ticked, to="finished")],
        finds=[("dead-end", "stuck")],
    ),
    broken(
        "cancelling is no way out",
        states=[State("first"), State("stuck"), *ends],
        moves=[On("first", Went, to="stuck"), On("first", Ticked, to="finished"), On(anywhere, Cancelled, to="failed")],
        finds=[("dead-end", "stuck")],
    ),
    broken(
        "a failure that cannot happen is no way out",
        states=[State("first", enter=Call()), State("stuck"), *ends],
        moves=[On("first", Returned, to="stuck"), On("first", Went, to="finished"), failed],
        finds=[("dead-end", "stuck")],
    ),
    broken(
        "an end inside that nobody notices",
        states=[State("outer", [State("inner"), Final("over")]), Final("finished")],
        moves=[On("inner", Went, to="over"), On("inner", Ticked, to="finished")],
        finds=[("dead-end", "over")],
    ),
    broken(
        "a region that never ends",
        states=[
            Parallel("both", [State("waiting"), State("right", [State("r1"), Final("r2")])]),
            Final("finished"),
        ],
        moves=[On("r1", Went, to="r2"), On("both", Done, to="finished")],
        finds=[("dead-end", "waiting"), ("never-done", "both on Done")],
    ),
]

NO_END = [
    broken(
        "two states that lead to each other only",
        states=[State("first"), State("here"), State("there"), Final("finished")],
        moves=[
            On("first", Went, to="here", at_most=9),
            On("first", otherwise, to="finished"),
            On("here", Went, to="there"),
            On("there", Went, to="here", at_most=5),
            On("there", Went, do=keep),
        ],
        finds=[("no-end", "here")],
    ),
    broken(
        "a state that listens for ever",
        states=[State("first"), State("listening"), Final("finished")],
        moves=[On("first", Went, to="listening"), On("first", Ticked, to="finished"), On("listening", Went, do=keep)],
        finds=[("no-end", "listening")],
    ),
    broken(
        "a trap inside a compound state",
        states=[State("outer", [State("inner"), State("here"), State("there")]), Final("finished")],
        moves=[
            On("inner", Went, to="here"),
            On("inner", Ticked, to="finished"),
            On("here", Went, to="there"),
            On("there", Went, to="here"),
        ],
        finds=[("no-end", "here"), ("paced-cycle", "here")],
    ),
    broken(
        "a region that keeps its neighbour from ending",
        states=[
            Parallel(
                "both",
                [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), State("r2"), Final("r3")])],
            ),
            Final("finished"),
        ],
        moves=[
            On("l1", Went, to="l2"),
            On("r1", Went, to="r3"),
            On("r1", Ticked, to="r2"),
            On("r2", Ticked, do=keep),
            On("both", Done, to="finished"),
        ],
        finds=[("no-end", "r2")],
    ),
    broken(
        "a machine without a final state",
        states=[State("listening")],
        moves=[On("listening", Went, do=keep)],
        finds=[("no-end", "a machine without a final state")],
    ),
]

SHADOWED = [
    broken(
        "the same event twice",
        states=[State("first"), *ends],
        moves=[On("first", Went, to="finished"), On("first", Went, to="failed")],
        finds=[("shadowed", "first on Went")],
    ),
    broken(
        "anything before something",
        states=[State("first"), *ends],
        moves=[On("first", "*", to="finished"), On("first", Went, to="failed", when=good)],
        finds=[("shadowed", "first on Went")],
    ),
    broken(
        "an event before its subclass",
        states=[State("first", enter=Call()), *ends],
        moves=[On("first", Returned, to="finished"), On("first", ReturnedLate, to="failed"), failed],
        finds=[("shadowed", "first on ReturnedLate")],
    ),
    broken(
        "otherwise after a row without a guard",
        states=[State("outer", [State("inner")]), *ends],
        moves=[On("inner", Went, to="finished"), On("inner", otherwise, to="failed")],
        finds=[("shadowed", "inner on otherwise")],
    ),
    broken(
        "two rows that together take all that a third names",
        states=[State("first"), *ends],
        moves=[
            On("first", Went, to="finished"),
            On("first", Ticked, to="finished"),
            On("first", [Went, Ticked], to="failed"),
        ],
        finds=[("shadowed", "first on Went, Ticked")],
    ),
    broken(
        "an event in a state that is left at once",
        states=[State("first"), *ends],
        moves=[On("first", Went, to="failed"), On("first", always, to="finished")],
        finds=[("shadowed", "first on Went")],
    ),
    broken(
        "a second row on always",
        states=[State("first"), *ends],
        moves=[On("first", always, to="failed"), On("first", always, to="finished", when=good)],
        finds=[("shadowed", "first on always")],
    ),
]

NEVER_DONE = [
    broken(
        "done without a final state inside",
        states=[State("outer", [State("inner")]), *ends],
        moves=[On("outer", Done, to="finished"), On("outer", Went, to="failed")],
        finds=[("never-done", "outer on Done")],
    ),
    broken(
        "done of a plain state",
        states=[State("first"), *ends],
        moves=[On("first", Done, to="finished"), On("first", Went, to="failed")],
        finds=[("never-done", "first on Done")],
    ),
    broken(
        "done of regions of which one has no end",
        states=[
            Parallel("both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1")])]),
            *ends,
        ],
        moves=[On("l1", Went, to="l2"), On("both", Done, to="finished"), On("r1", Ticked, to="failed")],
        finds=[("never-done", "both on Done")],
    ),
]

NO_OTHERWISE = [
    broken(
        "a guard that may say no",
        states=[State("first"), Final("finished")],
        moves=[On("first", Went, to="finished", when=good)],
        finds=[("no-otherwise", "first on Went")],
    ),
    broken(
        "two guards that may both say no",
        states=[State("first"), *ends],
        moves=[On("first", Went, to="finished", when=good), On("first", Went, to="failed", when=bad)],
        finds=[("no-otherwise", "first on Went")],
    ),
    broken(
        "a bound with nothing after it",
        states=[State("first", enter=ask), Final("finished")],
        moves=[On("first", Answered, to="finished", when=good), On("first", Answered, to="first", at_most=2)],
        finds=[("no-otherwise", "first on Answered")],
    ),
    broken(
        "a guard in a region",
        states=[
            Parallel("both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])]),
            Final("finished"),
        ],
        moves=[On("l1", Went, to="l2"), On("r1", Ticked, to="r2", when=good), On("both", Done, to="finished")],
        finds=[("no-otherwise", "r1 on Ticked")],
    ),
    broken(
        "a choice that may choose nothing",
        states=[State("choosing"), *ends],
        moves=[On("choosing", always, to="finished", when=good), On("choosing", always, to="failed", when=bad)],
        finds=[("no-otherwise", "choosing on always")],
    ),
]

UNBOUNDED = [
    broken(
        "drafting and reviewing for ever",
        states=[State("drafting", enter=Call()), State("reviewing", enter=Call()), *ends],
        moves=[
            On("drafting", Returned, to="reviewing"),
            On("reviewing", Returned, to="finished", when=good),
            On("reviewing", otherwise, to="drafting"),
            failed,
        ],
        finds=[("unbounded-cycle", "drafting")],
    ),
    broken(
        "a state that enters itself again",
        states=[State("trying", enter=Calling()), *ends],
        moves=[
            On("trying", Returned, to="finished", when=good),
            On("trying", Returned, to="trying"),
            failed,
        ],
        finds=[("unbounded-cycle", "trying")],
    ),
    broken(
        "a retry without an end",
        states=[State("calling", enter=Call()), *ends],
        moves=[On("calling", Returned, to="finished"), On("calling", GaveUp, to="calling")],
        finds=[("unbounded-cycle", "calling"), ("unreachable", "failed")],
    ),
    broken(
        "a retry in a state that is bounded at the wrong place",
        states=[State("calling", enter=Call()), State("pausing", max_visits=3, enter=Call()), *ends],
        moves=[
            On("calling", Returned, to="pausing"),
            On("pausing", Returned, to="finished"),
            On("calling", GaveUp, to="calling"),
            On("pausing", GaveUp, to="failed"),
        ],
        finds=[("unbounded-cycle", "calling")],
    ),
    broken(
        "from inside a compound state out and in again",
        states=[
            State("outer", [State("one", enter=Call()), State("two", enter=Call())]),
            State("other", enter=Call()),
            *ends,
        ],
        moves=[
            On("one", Returned, to="two"),
            On("two", Returned, to="other"),
            On("other", Returned, to="outer"),
            On("other", Went, to="finished"),
            failed,
        ],
        finds=[("unbounded-cycle", "outer")],
    ),
    broken(
        "a row around a state that leads back into it",
        states=[State("outer", [State("one", enter=Call()), State("two", enter=Call())]), *ends],
        moves=[
            On("one", Returned, to="two"),
            On("two", Returned, to="finished"),
            On("outer", GaveUp, to="outer"),
            On("outer", Went, to="failed"),
        ],
        finds=[("unbounded-cycle", "outer")],
    ),
    broken(
        "a region that goes round by itself",
        states=[
            Parallel(
                "both",
                [
                    State("left", [State("l1", enter=Call()), State("l2", enter=Call())]),
                    State("right", [State("r1", enter=ask)]),
                ],
            ),
            *ends,
        ],
        moves=[On("l1", Returned, to="l2"), On("l2", Returned, to="l1"), On("r1", Answered, to="finished"), failed],
        finds=[("unbounded-cycle", "l1")],
    ),
    broken(
        "a row without a target that feeds itself",
        states=[State("working", enter=Call()), *ends],
        moves=[
            On("working", Returned, to="finished", when=good),
            On("working", Returned, do=Call()),
            failed,
        ],
        finds=[("unbounded-cycle", "working")],
    ),
    broken(
        "a row without a target whose function wants the next call",
        states=[State("working", enter=Call()), *ends],
        moves=[
            On("working", Returned, to="finished", when=good),
            On("working", Returned, do=keep_and_call, emits={Call: 1}),
            failed,
        ],
        finds=[("unbounded-cycle", "working")],
    ),
    broken(
        "a question that is asked again when nobody answers",
        states=[State("asking", enter=ask_until), Final("finished")],
        moves=[On("asking", Answered, to="finished"), On("asking", Expired, to="asking")],
        finds=[("unbounded-cycle", "asking")],
    ),
    broken(
        "an alarm that sets itself again",
        states=[State("sleeping", enter=Alarm(Ticked(), 60)), Final("finished")],
        moves=[On("sleeping", Ticked, to="sleeping"), On("sleeping", Went, to="finished")],
        finds=[("unbounded-cycle", "sleeping")],
    ),
    broken(
        "an event that the run sends to itself",
        states=[State("here", enter=Send(Ticked())), State("there", enter=Send(Ticked())), Final("finished")],
        moves=[On("here", Ticked, to="there"), On("there", Ticked, to="here"), On("there", Went, to="finished")],
        finds=[("unbounded-cycle", "here")],
    ),
    broken(
        "an end inside that begins again",
        states=[State("outer", [State("inner", enter=Call()), Final("over")]), *ends],
        moves=[
            On("inner", Returned, to="over"),
            On("outer", Done, to="outer"),
            On("inner", Went, to="finished"),
            failed,
        ],
        finds=[("unbounded-cycle", "outer")],
    ),
    broken(
        "a way back by history",
        states=[
            State("outer", [State("one", enter=Call()), State("two", enter=Call()), History("back", "one")]),
            State("mending", enter=Call()),
            *ends,
        ],
        moves=[
            On("one", Returned, to="two"),
            On("two", Returned, to="finished"),
            On("outer", GaveUp, to="mending"),
            On("mending", Returned, to="back"),
            On("mending", GaveUp, to="failed"),
        ],
        finds=[("unbounded-cycle", "one")],
    ),
    broken(
        "a failure around everything that leads to something that may fail",
        states=[State("working", enter=Call()), State("apologising", enter=Call()), Final("finished")],
        moves=[
            On("working", Returned, to="finished"),
            On("apologising", Returned, to="finished"),
            On(anywhere, GaveUp, to="apologising"),
        ],
        finds=[("unbounded-cycle", "apologising")],
    ),
    broken(
        "a full state that is tried again and again",
        states=[State("working", enter=Call()), State("checking", enter=Call(), max_visits=2), *ends],
        moves=[
            On("working", Returned, to="checking"),
            On("checking", Returned, to="finished"),
            On(anywhere, Exhausted, to="working"),
            failed,
        ],
        finds=[("unbounded-cycle", "working")],
    ),
    broken(
        "a broken move that is done again",
        states=[State("working", enter=keep), Final("finished")],
        moves=[On("working", Misbehaved, to="working"), On("working", Went, to="finished")],
        finds=[("unbounded-cycle", "working")],
    ),
]

PACED = [
    broken(
        "a person who says no for ever",
        states=[State("drafting", enter=Call()), State("approving", enter=ask), *ends],
        moves=[
            On("drafting", Returned, to="approving"),
            On("approving", Answered, to="finished", when=good),
            On("approving", otherwise, to="drafting"),
            failed,
        ],
        finds=[("paced-cycle", "drafting")],
    ),
    broken(
        "a message that begins again",
        states=[State("outer", [State("one"), State("two")]), Final("finished")],
        moves=[On("one", Went, to="two"), On("two", Went, to="finished"), On("outer", Ticked, to="outer")],
        finds=[("paced-cycle", "outer")],
    ),
    broken(
        "a region that a message turns round",
        states=[
            Parallel("both", [State("left", [State("l1"), State("l2")]), State("right", [State("r1")])]),
            Final("finished"),
        ],
        moves=[On("l1", Ticked, to="l2"), On("l2", Ticked, to="l1"), On("r1", Went, to="finished")],
        finds=[("paced-cycle", "l1")],
    ),
    broken(
        "a call from outside the cycle drives it once only",
        states=[State("outer", [State("one"), State("two")], enter=Call()), *ends],
        moves=[
            On("one", Returned, to="two"),
            On("two", Went, to="one"),
            On("two", Ticked, to="finished"),
            failed,
        ],
        finds=[("paced-cycle", "one")],
    ),
]

EVENTLESS = [
    broken(
        "two rows on always",
        states=[State("here"), State("there"), Final("finished")],
        moves=[
            On("here", always, to="there"),
            On("there", always, to="finished", when=good),
            On("there", always, to="here"),
        ],
        finds=[("eventless-cycle", "here")],
    ),
    broken(
        "a row on always that enters its own state",
        states=[State("here"), Final("finished")],
        moves=[On("here", always, to="here", when=good), On("here", Went, to="finished")],
        finds=[("eventless-cycle", "here")],
    ),
    broken(
        "a row on always without a target",
        states=[State("here"), Final("finished")],
        moves=[On("here", always, do=keep, when=good), On("here", Went, to="finished")],
        finds=[("eventless-cycle", "here")],
    ),
    broken(
        "a row on always around its target",
        states=[State("outer", [State("one"), State("two")]), Final("finished")],
        moves=[
            On("one", Went, to="two"),
            On("two", Went, to="finished"),
            On("outer", always, to="two", when=good),
        ],
        finds=[("eventless-cycle", "two")],
    ),
]

UNHANDLED = [
    broken(
        "a call that nobody minds",
        states=[State("working", enter=Call()), Final("finished")],
        moves=[On("working", Returned, to="finished")],
        finds=[("unhandled-failure", "working")],
    ),
    broken(
        "a call by an action",
        states=[State("outer", [State("inner", enter=Calling())]), Final("finished")],
        moves=[On("inner", Returned, to="finished")],
        finds=[("unhandled-failure", "inner")],
    ),
    broken(
        "a call that a row wants for the state it leads to",
        states=[State("first"), State("working"), Final("finished")],
        moves=[On("first", Went, to="working", do=Call()), On("working", Returned, to="finished")],
        finds=[("unhandled-failure", "working")],
    ),
    broken(
        "a failure that another region takes",
        states=[
            Parallel("both", [State("left", [State("l1", enter=Call())]), State("right", [State("r1", enter=Call())])]),
            Final("finished"),
        ],
        moves=[On("l1", Returned, to="finished"), On("l1", GaveUp, to="finished"), On("r1", Returned, to="finished")],
        finds=[("unhandled-failure", "r1")],
    ),
]


def both_regions(left: On, right: On) -> list[On]:
    return [left, right, On("both", Done, to="finished")]


def two_regions() -> list[Any]:
    left, right = State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])
    return [Parallel("both", [left, right]), Final("finished")]


def writes_draft(data: Any, event: Any) -> Any:
    return data


writes_draft.writes = ("draft",)  # type: ignore[attr-defined]

CONTESTED = [
    broken(
        "two rows that write one key",
        states=two_regions(),
        moves=both_regions(
            On("l1", Went, to="l2", do=keep, writes=["draft", "left"]),
            On("r1", Ticked, to="r2", do=keep, writes=["draft"]),
        ),
        finds=[("contested-key", "both")],
    ),
    broken(
        "an entry and a row that write one key",
        states=[
            Parallel(
                "both",
                [
                    State("left", [State("l1", enter=writes_draft), Final("l2")]),
                    State("right", [State("r1"), Final("r2")]),
                ],
            ),
            Final("finished"),
        ],
        moves=both_regions(On("l1", Went, to="l2"), On("r1", Ticked, to="r2", do=keep, writes=["draft"])),
        finds=[("contested-key", "both")],
    ),
    broken(
        "regions that do not say what they write",
        states=two_regions(),
        moves=both_regions(On("l1", Went, to="l2", do=keep), On("r1", Ticked, to="r2", do=keep)),
        finds=[("undeclared-writes", "both")],
    ),
    broken(
        "one region that does not say what it writes",
        states=two_regions(),
        moves=both_regions(On("l1", Went, to="l2", do=keep), On("r1", Ticked, to="r2", do=keep, writes=["draft"])),
        finds=[("undeclared-writes", "both")],
    ),
    broken(
        "regions inside a region",
        states=[
            State(
                "outer",
                [
                    Parallel(
                        "both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])]
                    ),
                ],
            ),
            Final("finished"),
        ],
        moves=[
            On("l1", Went, to="l2", do=keep, writes=["draft"]),
            On("r1", Ticked, to="r2", do=keep, writes=["draft"]),
            On("both", Done, to="finished"),
        ],
        finds=[("contested-key", "both")],
    ),
]

GOOD = [
    Machine("one step", states=[State("first"), Final("finished")], moves=[On("first", Went, to="finished")]),
    Machine("an end at once", states=[Final("finished")], moves=[]),
    Machine(
        "an article",
        states=[
            State("drafting", enter=Calling()),
            State("reviewing", enter=Calling()),
            State("approving", enter=ask_until),
            Final("published"),
            Final("shelved"),
            Final("failed"),
        ],
        moves=[
            On("drafting", Returned, to="reviewing", do=keep),
            On("reviewing", Returned, to="approving", when=good),
            On("reviewing", Returned, to="drafting", do=keep, at_most=3),
            On("reviewing", otherwise, to="approving"),
            On("approving", Answered, to="published", when=good),
            On("approving", otherwise, to="shelved"),
            failed,
        ],
        budget=Budget(usd=0.5),
    ),
    Machine(
        "a cycle that a state bounds",
        states=[State("drafting", enter=Call(), max_visits=3), State("reviewing", enter=Call()), *ends],
        moves=[
            On("drafting", Returned, to="reviewing"),
            On("reviewing", Returned, to="finished", when=good),
            On("reviewing", otherwise, to="drafting"),
            On(anywhere, Exhausted, to="finished"),
            failed,
        ],
    ),
    Machine(
        "a person helps when something fails",
        states=[State("working", enter=Call()), State("asking", enter=ask), *ends],
        moves=[
            On("working", Returned, to="finished"),
            On("asking", Answered, to="failed"),
            On(anywhere, GaveUp, to="asking"),
        ],
    ),
    Machine(
        "a retry with an end",
        states=[State("calling", enter=Call()), *ends],
        moves=[
            On("calling", Returned, to="finished"),
            On("calling", GaveUp, to="calling", at_most=2),
            On("calling", GaveUp, to="failed"),
        ],
    ),
    Machine(
        "an inner row keeps the outer one from going round",
        states=[State("outer", [State("one", enter=Call()), State("two", enter=Call())]), *ends],
        moves=[
            On("one", Returned, to="finished"),
            On("two", Returned, to="finished"),
            On("two", GaveUp, to="failed"),
            On("outer", GaveUp, to="two"),
        ],
    ),
    Machine(
        "messages may be kept as they come",
        states=[State("listening", enter=ask), Final("finished")],
        moves=[On("listening", Went, do=keep), On("listening", Answered, to="finished")],
    ),
    Machine(
        "regions that both end",
        states=two_regions(),
        moves=both_regions(
            On("l1", Went, to="l2", do=keep, writes=["left"]), On("r1", Ticked, to="r2", do=keep, writes=["right"])
        ),
    ),
    Machine(
        "the first region to answer wins, and both may write the answer",
        states=[
            Parallel("both", [State("left", [State("l1", enter=Call())]), State("right", [State("r1", enter=Call())])]),
            *ends,
        ],
        moves=[
            On("l1", Returned, to="finished", do=keep, writes=["answer"]),
            On("r1", Returned, to="finished", do=keep, writes=["answer"]),
            failed,
        ],
    ),
    Machine(
        "a watching region need not end",
        states=[
            Parallel("both", [State("watching"), State("right", [State("r1", enter=Call())])]),
            *ends,
        ],
        moves=[On("watching", Went, to="failed"), On("r1", Returned, to="finished"), failed],
    ),
    Machine(
        "an end inside goes on outside",
        states=[State("outer", [State("inner"), Final("over")]), Final("finished")],
        moves=[On("inner", Went, to="over"), On("outer", Done, to="finished")],
    ),
    Machine(
        "history with a bound",
        states=[
            State("outer", [State("one", enter=Call()), State("two", enter=Call()), History("back", "one", deep=True)]),
            State("mending", enter=Call()),
            *ends,
        ],
        moves=[
            On("one", Returned, to="two"),
            On("two", Returned, to="finished"),
            On("outer", GaveUp, to="mending"),
            On("mending", Returned, to="back", at_most=2),
            On("mending", otherwise, to="failed"),
            On("mending", GaveUp, to="failed"),
        ],
    ),
    Machine(
        "a choice with a last resort",
        states=[State("choosing"), *ends],
        moves=[On("choosing", always, to="finished", when=good), On("choosing", always, to="failed")],
    ),
    Machine(
        "a fan of answers with a bound",
        states=[State("gathering", enter=[Call(), Call(), Call()]), *ends],
        moves=[
            On("gathering", Returned, to="finished", when=good),
            On("gathering", Returned, do=keep_and_call, emits={Call: 1}, at_most=4),
            On("gathering", Returned, do=keep),
            failed,
        ],
    ),
    Machine(
        "cancelling may clean up",
        states=[State("working", enter=Call()), State("cleaning", enter=Call()), *ends],
        moves=[
            On("working", Returned, to="finished"),
            On("cleaning", Returned, to="failed"),
            On(anywhere, Cancelled, to="cleaning"),
            failed,
        ],
    ),
    Machine(
        "alarms that come once",
        states=[State("waiting", enter=[ask, Alarm(Ticked(), 60)]), *ends],
        moves=[On("waiting", Answered, to="finished"), On("waiting", Ticked, to="failed")],
    ),
    Machine(
        "a wildcard after the rest",
        states=[State("first"), *ends],
        moves=[On("first", Went, to="finished", when=good), On("first", "*", to="failed")],
    ),
    Machine(
        "an event that the run sends to itself once",
        states=[State("here", enter=Send(Ticked())), State("there"), Final("finished")],
        moves=[On("here", Ticked, to="there"), On("there", Went, to="finished")],
    ),
]

BROKEN = [
    one
    for group in (
        UNREACHABLE,
        DEAD_ENDS,
        NO_END,
        SHADOWED,
        NEVER_DONE,
        NO_OTHERWISE,
        UNBOUNDED,
        PACED,
        EVENTLESS,
        UNHANDLED,
        CONTESTED,
    )
    for one in group
]
