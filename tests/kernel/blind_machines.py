"""Machines written without knowledge of the checker: broken ones, good ones, and ones whose costs were counted by hand.

Each broken machine has one fault, or says which; each good one has none that a reader could name. The expectations
follow from what the documentation says about rows, bounds and events, never from what the checker happens to print.
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
from typing import Any

from moothall.agents.ask import AskAgent, Replied, Returned, ask, call, days, hours, minutes, question, yes
from moothall.analysis.certify import Certificate
from moothall.kernel.effects import Alarm, StartChild
from moothall.kernel.events import Answered, Cancelled, Done, Event, Exhausted, Expired, GaveUp
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State, always, anywhere, otherwise
from moothall.kernel.step import Move


@dataclass(frozen=True)
class Defect:
    """What must be reported: one of these kinds, at one of these states."""

    kinds: tuple[str, ...]
    at: tuple[str, ...]


@dataclass(frozen=True)
class Broken:
    """A machine, what is wrong with it and why, and what may be said besides without being untrue."""

    machine: Machine
    why: str
    defects: tuple[Defect, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Good:
    """A machine about which there is nothing to say; `children` are the certificates of those that it starts."""

    machine: Machine
    children: Mapping[str, Certificate] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """A machine and the most that a run of it can do."""

    machine: Machine
    transitions: int
    asks: int
    children: Mapping[str, Certificate] = field(default_factory=dict)
    other: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """The data of all these machines."""

    topic: str = ""
    draft: str = ""
    notes: str = ""
    found: tuple[str, ...] = ()


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


class Judged(Event):
    """A judge spoke."""


class Praised(Judged):
    """A judge spoke well."""


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


def spread(work: Work, event: Any) -> Move[Work]:
    return Move(work, effects=tuple(AskAgent(name, "Go.") for name in ("press", "papers", "patents")))


def machine(name: str, states: Sequence[Node], moves: Sequence[On], budget: Budget | None = None) -> Machine:
    return Machine(name, data=Work, states=states, moves=moves, budget=budget)


WRITER = ask("writer", "Write.")
CRITIC = ask("critic", "Judge.")
SEARCH = call("search")
FAILED = Final("failed")
FINISHED = Final("finished")
SAFE = On(anywhere, GaveUp, to="failed")


def broken(made: Machine, why: str, *defects: Defect, also: tuple[str, ...] = ()) -> Broken:
    return Broken(made, why, defects, also)


def is_(kind: str, *at: str) -> Defect:
    """A defect of one kind, separated by bars where two words say the same of it."""
    return Defect(tuple(kind.split("|")), at)


UNREACHABLE = [
    broken(
        machine(
            "orphan",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("polishing", Replied, to="finished"), SAFE],
        ),
        "no row leads to polishing",
        is_("unreachable", "polishing"),
    ),
    broken(
        machine(
            "island",
            [State("drafting", enter=WRITER), State("polishing"), State("printing"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On("polishing", Went, to="printing"),
                On("printing", Went, to="finished"),
                SAFE,
            ],
        ),
        "printing is entered from polishing alone, and polishing from nowhere",
        is_("unreachable", "polishing"),
        is_("unreachable", "printing"),
    ),
    broken(
        machine(
            "skipped_start",
            [
                State("planning", enter=WRITER),
                State("team", [State("opening"), State("working", enter=WRITER)]),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="working"),
                On("opening", Went, to="working"),
                On("working", Replied, to="finished"),
                SAFE,
            ],
        ),
        "the team is only ever entered at working, so its start is never used",
        is_("unreachable", "opening"),
    ),
    broken(
        machine(
            "spare_in_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), State("spare"), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("spare", Went, to="left_done"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "no row of its region leads to spare",
        is_("unreachable", "spare"),
    ),
    broken(
        machine(
            "never_taken_row",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="polishing", at_most=0),
                On("drafting", otherwise, to="finished"),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "the only row to polishing may be taken no time at all",
        is_("unreachable", "polishing"),
        also=("shadowed",),
    ),
    broken(
        machine(
            "join_that_never_comes",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("watching")]),
                    ],
                ),
                State("joining", enter=CRITIC),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("gathering", Done, to="joining"),
                On("gathering", Went, to="finished"),
                On("joining", Replied, to="finished"),
                SAFE,
            ],
        ),
        "the right region has no end, so gathering is never done and joining never entered",
        is_("never-done", "gathering"),
    ),
    broken(
        machine(
            "done_of_an_endless_team",
            [State("team", [State("working", enter=WRITER)]), State("resting"), FINISHED, FAILED],
            [
                On("working", Replied, to="finished"),
                On("team", Done, to="resting"),
                On("resting", Went, to="finished"),
                SAFE,
            ],
        ),
        "the team has no final state inside, so it is never done",
        is_("never-done", "team"),
    ),
    broken(
        machine(
            "inner_end_without_a_way",
            [
                State("team", [State("working", enter=WRITER), Final("team_done")]),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="finished"),
                On("team", Done, to="resting"),
                On("resting", Went, to="finished"),
                SAFE,
            ],
        ),
        "nothing leads to the team's end, so the team is never done",
        is_("unreachable", "team_done"),
        also=("never-done",),
    ),
    broken(
        machine(
            "memory_nobody_uses",
            [
                State("team", [State("working", enter=WRITER), State("reading"), History("memory", "working")]),
                FINISHED,
                FAILED,
            ],
            [On("working", Replied, to="reading"), On("reading", Went, to="finished"), SAFE],
        ),
        "no row leads to the history state",
        is_("unreachable", "memory"),
    ),
    broken(
        machine(
            "closed_door",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER, max_visits=0), FINISHED, FAILED],
            [
                On("drafting", Replied, to="polishing", when=good),
                On("drafting", otherwise, to="finished"),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "polishing may be visited no time at all",
        is_("unreachable", "polishing"),
    ),
    broken(
        machine(
            "behind_an_orphan_parallel",
            [
                State("drafting", enter=WRITER),
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="finished"),
                On("left_asking", Replied, to="left_done"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "no row leads into the parallel state",
        is_("unreachable", "gathering"),
    ),
]

DEAD_ENDS = [
    broken(
        machine(
            "limbo",
            [State("drafting", enter=WRITER), State("limbo"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", otherwise, to="limbo"),
                On("drafting", GaveUp, to="failed"),
            ],
        ),
        "no row leaves limbo",
        is_("dead-end", "limbo"),
        also=("no-path-to-final",),
    ),
    broken(
        machine(
            "marking_time",
            [State("drafting", enter=WRITER), State("limbo"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", otherwise, to="limbo"),
                On("drafting", GaveUp, to="failed"),
                On("limbo", Went, do=note, at_most=5),
            ],
        ),
        "the only row of limbo does not leave it",
        is_("dead-end|no-path-to-final", "limbo"),
        also=("no-otherwise", "dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "done_and_nobody_hears",
            [State("team", [State("working", enter=WRITER), Final("team_done")]), FINISHED, FAILED],
            [
                On("working", Replied, to="finished", when=good),
                On("working", otherwise, to="team_done"),
                On("working", GaveUp, to="failed"),
            ],
        ),
        "when the team is done no row takes it, and nothing else can happen",
        is_("dead-end|no-path-to-final", "team", "team_done"),
        also=("dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "join_forgotten",
            [
                State("planning", enter=WRITER),
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="finished", when=good),
                On("planning", otherwise, to="gathering"),
                On("planning", GaveUp, to="failed"),
                On("left_asking", Replied, to="left_done"),
                On("left_asking", GaveUp, to="left_done"),
                On("right_asking", Replied, to="right_done"),
                On("right_asking", GaveUp, to="right_done"),
            ],
        ),
        "both regions end, and no row takes that gathering is done",
        is_("dead-end|no-path-to-final", "gathering", "left", "right", "left_done", "right_done"),
        also=("dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "only_the_safety_net",
            [State("drafting", enter=WRITER), State("limbo"), FINISHED, FAILED],
            [On("drafting", Replied, to="finished", when=good), On("drafting", otherwise, to="limbo"), SAFE],
        ),
        "limbo wants nothing that could give up, so the one row that could take it away never does",
        is_("dead-end|no-path-to-final", "limbo"),
        also=("dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "stuck_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), State("stuck"), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("left_asking", GaveUp, to="failed"),
                On("right_asking", Replied, to="right_done", when=good),
                On("right_asking", otherwise, to="stuck"),
                On("right_asking", GaveUp, to="failed"),
                On("gathering", Done, to="finished"),
            ],
        ),
        "stuck has no row, and gathering is left only when the right region ends",
        is_("dead-end|no-path-to-final", "stuck"),
        also=("dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "no_way_back_from_the_break",
            [
                State("team", [State("working", enter=WRITER), State("reading"), History("memory", "working")]),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="reading"),
                On("working", GaveUp, to="failed"),
                On("reading", Went, to="finished"),
                On("team", Paused, to="resting", at_most=2),
            ],
        ),
        "resting has no row, and so the memory of the team is never asked",
        is_("dead-end|no-path-to-final", "resting"),
        is_("unreachable", "memory"),
        also=("dead-end", "no-path-to-final"),
    ),
    broken(
        machine(
            "deep_dead_end",
            [
                State("outer", [State("inner", [State("drafting", enter=WRITER), State("limbo")])]),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", otherwise, to="limbo"),
                On("drafting", GaveUp, to="failed"),
            ],
        ),
        "neither limbo nor a state around it has a row",
        is_("dead-end", "limbo"),
        also=("no-path-to-final",),
    ),
]

SHADOWED = [
    broken(
        machine(
            "twice",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="polishing"),
                On("drafting", Replied, to="finished"),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "the first row takes every reply, so the second never gets one",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "prefix_first",
            [State("drafting", enter=WRITER), State("mending", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="mending"),
                On("drafting", "error", to="failed"),
                On("drafting", GaveUp, to="finished"),
                On("mending", Replied, to="finished"),
                On("mending", GaveUp, to="failed"),
            ],
        ),
        "GaveUp is error.effect, and the row for error takes all of these",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "wildcard_first",
            [State("waiting"), State("reading"), FINISHED],
            [
                On("waiting", "*", to="reading"),
                On("waiting", Went, to="finished"),
                On("reading", Went, to="finished"),
            ],
        ),
        "the wildcard takes every event",
        is_("shadowed", "waiting"),
    ),
    broken(
        machine(
            "otherwise_first",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", otherwise, to="polishing"),
                On("drafting", Replied, to="finished", when=good),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "drafting waits for a reply, so otherwise takes it, and the row below never sees one",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "parent_event_first",
            [State("hearing"), State("reading"), FINISHED],
            [
                On("hearing", Judged, to="reading"),
                On("hearing", Praised, to="finished"),
                On("reading", Went, to="finished"),
            ],
        ),
        "Praised is a Judged, which the row above takes",
        is_("shadowed", "hearing"),
    ),
    broken(
        machine(
            "one_of_a_list",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", [Replied, GaveUp], to="finished"),
                On("drafting", GaveUp, to="failed"),
                On("drafting", Redirected, to="failed"),
            ],
        ),
        "the first row takes GaveUp as well",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "covered_by_two",
            [State("waiting"), State("reading"), FINISHED],
            [
                On("waiting", Went, to="reading"),
                On("waiting", Came, to="finished"),
                On("waiting", [Went, Came], to="finished"),
                On("reading", Went, to="finished"),
            ],
        ),
        "the two rows above take one event each, and together all of the third",
        is_("shadowed", "waiting"),
    ),
    broken(
        machine(
            "same_guard_twice",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="polishing", when=good),
                On("drafting", otherwise, to="polishing"),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "a guard is pure: where it holds the first row is taken, where it does not the second is not either",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "nothing_left_over",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On("drafting", otherwise, to="failed"),
                On("drafting", GaveUp, to="failed"),
            ],
        ),
        "a reply is all that drafting waits for or names above, and the first row takes every one",
        is_("shadowed", "drafting"),
    ),
    broken(
        machine(
            "gone_before_it_can_hear",
            [State("drafting", enter=WRITER), State("routing"), State("reading"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="routing", when=good),
                On("drafting", otherwise, to="reading"),
                On("routing", always, to="finished"),
                On("routing", Went, to="reading"),
                On("reading", Went, to="finished"),
                SAFE,
            ],
        ),
        "routing is left as soon as it is entered, so it never hears Went",
        is_("shadowed", "routing"),
    ),
    broken(
        machine(
            "inner_takes_all",
            [
                State("team", [State("working", enter=WRITER), Final("team_done")]),
                State("reading"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="team_done", when=good),
                On("working", Replied, to="reading"),
                On("team", Replied, to="finished"),
                On("team", Done, to="finished"),
                On("reading", Went, to="finished"),
                SAFE,
            ],
        ),
        "inner rows come first, and the only state of the team that waits takes every reply itself",
        is_("shadowed", "team"),
    ),
    broken(
        machine(
            "bound_in_a_dead_row",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished"),
                On("reviewing", Replied, to="drafting", at_most=3),
                SAFE,
            ],
        ),
        "the row above takes every reply, so the way back is never used",
        is_("shadowed", "reviewing"),
    ),
    broken(
        machine(
            "shadow_in_a_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), State("left_mending"), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_mending"),
                On("left_asking", Replied, to="left_done", when=good),
                On("left_mending", Went, to="left_done"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the row without a guard stands above the one with a guard",
        is_("shadowed", "left_asking"),
    ),
    broken(
        machine(
            "swallowed",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, do=keep),
                On("drafting", Replied, to="finished"),
                On("drafting", GaveUp, to="failed"),
            ],
        ),
        "the first row keeps every reply and stays, so the way out is never taken",
        is_("shadowed", "drafting"),
        also=("unreachable", "unbounded-cycle", "no-path-to-final", "dead-end"),
    ),
    broken(
        machine(
            "second_net_below_the_first",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On(anywhere, GaveUp, to="failed"),
                On(anywhere, "error.effect", to="finished"),
            ],
        ),
        "both rows count anywhere and name the same event; the first takes all",
        is_("shadowed", "*", "second_net_below_the_first"),
    ),
    broken(
        machine(
            "leads_only_by_a_dead_row",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On("drafting", Replied, to="polishing", when=good),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        ),
        "the row to polishing is never taken, so polishing is never entered",
        is_("shadowed", "drafting"),
        also=("unreachable",),
    ),
]

NO_PATH = [
    broken(
        machine(
            "no_end_at_all",
            [State("asking", enter=WRITER), State("telling", enter=CRITIC)],
            [
                On("asking", [Replied, GaveUp], to="telling"),
                On("telling", [Replied, GaveUp], to="asking"),
            ],
        ),
        "the machine has no final state",
        is_("no-path-to-final", "asking", "telling", "no_end_at_all"),
        is_("unbounded-cycle", "asking", "telling"),
    ),
    broken(
        machine(
            "trap_of_two",
            [State("choosing"), State("coming", max_visits=3), State("going"), FINISHED],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="coming"),
                On("coming", Went, to="going"),
                On("going", Came, to="coming"),
            ],
        ),
        "coming and going lead only to each other",
        is_("no-path-to-final", "coming", "going"),
    ),
    broken(
        machine(
            "nested_trap",
            [State("choosing"), State("team", [State("coming", max_visits=3), State("going")]), FINISHED],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="team"),
                On("coming", Went, to="going"),
                On("going", Came, to="coming"),
            ],
        ),
        "no row leaves the team",
        is_("no-path-to-final", "team", "coming", "going"),
    ),
    broken(
        machine(
            "one_region_never_ends",
            [
                State("choosing"),
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_waiting"), Final("left_done")]),
                        State("right", [State("coming", max_visits=3), State("going")]),
                    ],
                ),
                FINISHED,
            ],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="gathering"),
                On("left_waiting", Judged, to="left_done"),
                On("coming", Went, to="going"),
                On("going", Came, to="coming"),
                On("gathering", Done, to="finished"),
            ],
        ),
        "gathering is left when both regions are done, and the right one never is",
        is_("no-path-to-final", "gathering", "left", "right", "left_waiting", "left_done", "coming", "going"),
        also=("never-done",),
    ),
    broken(
        machine(
            "only_inner_ends",
            [State("team", [State("working"), Final("team_done")], max_visits=3), State("resting")],
            [On("working", Went, to="team_done"), On("team", Done, to="resting"), On("resting", Came, to="team")],
        ),
        "the only final state ends the team, not the run",
        is_("no-path-to-final", "team", "working", "team_done", "resting", "only_inner_ends"),
    ),
    broken(
        machine(
            "end_behind_a_closed_row",
            [State("coming", max_visits=3), State("going"), FINISHED],
            [
                On("coming", Went, to="finished", at_most=0),
                On("coming", otherwise, to="going"),
                On("going", Came, to="coming"),
            ],
        ),
        "the only row to the end may be taken no time at all",
        is_("no-path-to-final", "coming", "going", "end_behind_a_closed_row"),
        is_("unreachable", "finished"),
        also=("shadowed",),
    ),
    broken(
        machine(
            "break_without_end",
            [
                State("choosing"),
                State(
                    "team",
                    [State("working", max_visits=3), State("reading"), History("memory", "working")],
                ),
                State("resting", max_visits=3),
                FINISHED,
            ],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="team"),
                On("working", Went, to="reading"),
                On("reading", Came, to="working"),
                On("team", Paused, to="resting"),
                On("resting", Resumed, to="memory"),
            ],
        ),
        "from the team one comes to the break and back, and nowhere else",
        is_("no-path-to-final", "team", "working", "reading", "resting", "memory"),
    ),
]

NO_OTHERWISE = [
    broken(
        machine(
            "one_guard",
            [State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [On("reviewing", Replied, to="finished", when=good), SAFE],
        ),
        "a reply that is not good goes nowhere",
        is_("no-otherwise", "reviewing"),
    ),
    broken(
        machine(
            "two_guards",
            [State("reviewing", enter=CRITIC), State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", when=urgent),
                On("drafting", Replied, to="finished"),
                SAFE,
            ],
        ),
        "nothing says that one of the two guards holds",
        is_("no-otherwise", "reviewing"),
    ),
    broken(
        machine(
            "bound_without_a_rest",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", at_most=3),
                SAFE,
            ],
        ),
        "when the way back is spent, a reply that is not good goes nowhere",
        is_("no-otherwise", "reviewing"),
    ),
    broken(
        machine(
            "polling_runs_out",
            [State("polling", enter=SEARCH), FINISHED, FAILED],
            [On("polling", Returned, to="polling", at_most=5), SAFE],
        ),
        "after the fifth time what the tool returns goes nowhere",
        is_("no-otherwise|dead-end", "polling"),
        also=("no-otherwise", "dead-end", "unreachable", "no-path-to-final"),
    ),
    broken(
        machine(
            "guard_in_a_team",
            [
                State("team", [State("working", enter=WRITER), Final("team_done")]),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="team_done", when=good),
                On("team", Paused, to="resting"),
                On("resting", Went, to="finished"),
                On("team", Done, to="finished"),
                SAFE,
            ],
        ),
        "the team has a row for another event, and none for the reply",
        is_("no-otherwise", "working"),
    ),
    broken(
        machine(
            "guarded_rest",
            [State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", otherwise, to="failed", when=urgent),
                SAFE,
            ],
        ),
        "an otherwise with a guard is not for every case",
        is_("no-otherwise", "reviewing"),
    ),
    broken(
        machine(
            "bounded_rest",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", otherwise, to="drafting", at_most=3),
                SAFE,
            ],
        ),
        "an otherwise that can be spent is not for every case",
        is_("no-otherwise", "reviewing"),
    ),
    broken(
        machine(
            "crossroads",
            [State("drafting", enter=WRITER), State("routing"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="routing"),
                On("routing", always, to="finished", when=good),
                On("routing", always, to="failed", when=urgent),
                SAFE,
            ],
        ),
        "where neither guard holds, routing waits for nothing for ever",
        is_("no-otherwise", "routing"),
        also=("dead-end",),
    ),
    broken(
        machine(
            "guarded_join",
            [State("team", [State("working", enter=WRITER), Final("team_done")]), FINISHED, FAILED],
            [On("working", Replied, to="team_done"), On("team", Done, to="finished", when=good), SAFE],
        ),
        "a team that is done and not good stays where it is",
        is_("no-otherwise", "team"),
    ),
    broken(
        machine(
            "rest_of_the_parent",
            [
                State("team", [State("working", enter=WRITER), Final("team_done")]),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="team_done", when=good),
                On("team", Paused, to="finished", when=urgent),
                On("team", otherwise, to="failed"),
                On("team", Done, to="finished"),
                SAFE,
            ],
        ),
        "the team's otherwise takes what rows of the team name, and they do not name the reply",
        is_("no-otherwise", "working"),
    ),
    broken(
        machine(
            "guard_in_a_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", when=good),
                On("left_asking", otherwise, to="left_done"),
                On("right_asking", Replied, to="right_done", when=good),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the left region's otherwise does not help the right one",
        is_("no-otherwise", "right_asking"),
    ),
    broken(
        machine(
            "no_is_no_answer",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED, Final("dropped")],
            [On("approving", Answered, to="finished", when=yes), On("approving", Expired, to="dropped")],
        ),
        "silence is provided for, and the answer no is not",
        is_("no-otherwise", "approving"),
    ),
    broken(
        machine(
            "silence_forgotten",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED, Final("dropped")],
            [On("approving", Answered, to="finished", when=yes), On("approving", Answered, to="dropped")],
        ),
        "the question has a deadline, and nothing says what happens when it passes",
        is_("unhandled-failure|no-otherwise|dead-end", "approving"),
    ),
]

UNHANDLED_FAILURES = [
    broken(
        machine(
            "trusting",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished")],
        ),
        "no row takes it when the writer gives up",
        is_("unhandled-failure", "drafting"),
    ),
    broken(
        machine(
            "trusting_a_tool",
            [State("searching", enter=SEARCH), FINISHED],
            [On("searching", Returned, to="finished")],
        ),
        "no row takes it when the tool gives up",
        is_("unhandled-failure", "searching"),
    ),
    broken(
        machine(
            "otherwise_is_no_net",
            [State("drafting", enter=WRITER), FINISHED, Final("shelved")],
            [On("drafting", Replied, to="finished", when=good), On("drafting", otherwise, to="shelved")],
        ),
        "otherwise takes replies, not failures that no row names",
        is_("unhandled-failure", "drafting"),
    ),
    broken(
        machine(
            "net_of_the_neighbour",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("drafting", GaveUp, to="failed"),
                On("reviewing", Replied, to="finished"),
            ],
        ),
        "drafting takes its own failures and not those of reviewing",
        is_("unhandled-failure", "reviewing"),
    ),
    broken(
        machine(
            "net_of_the_other_team",
            [
                State("writing", [State("drafting", enter=WRITER), Final("written")]),
                State("judging", [State("reviewing", enter=CRITIC), Final("judged")]),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="written"),
                On("writing", GaveUp, to="failed"),
                On("writing", Done, to="judging"),
                On("reviewing", Replied, to="judged"),
                On("judging", Done, to="finished"),
            ],
        ),
        "neither reviewing nor judging around it takes GaveUp",
        is_("unhandled-failure", "reviewing"),
    ),
    broken(
        machine(
            "net_of_the_other_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("left_asking", GaveUp, to="failed"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="finished"),
            ],
        ),
        "a failure goes to the state that asked, and the right region has no row for it",
        is_("unhandled-failure", "right_asking"),
    ),
    broken(
        machine(
            "net_with_a_hole",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="failed", when=urgent)],
        ),
        "where the guard does not hold the failure is taken by nobody",
        is_("unhandled-failure|no-otherwise", "drafting"),
        also=("unhandled-failure", "no-otherwise"),
    ),
    broken(
        machine(
            "net_that_wears_out",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="drafting", at_most=2)],
        ),
        "the third failure is taken by nobody",
        is_("unhandled-failure|no-otherwise", "drafting"),
        also=("unhandled-failure", "no-otherwise"),
    ),
    broken(
        machine(
            "asked_on_the_way",
            [State("drafting", enter=WRITER), State("reviewing"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing", do=CRITIC),
                On("drafting", GaveUp, to="failed"),
                On("reviewing", Replied, to="finished"),
            ],
        ),
        "the row asks the critic, the reply belongs to reviewing, and reviewing has no row for a failure",
        is_("unhandled-failure", "reviewing", "drafting"),
    ),
    broken(
        machine(
            "trusting_a_child",
            [State("delegating", enter=StartChild("debate", id="one")), FINISHED],
            [On("delegating", "done.invoke.one", to="finished")],
        ),
        "a child that fails ends in error.effect, which no row takes",
        is_("unhandled-failure", "delegating"),
    ),
    broken(
        machine(
            "child_cannot_catch_for_its_parent",
            [
                State("team", [State("reading"), State("resting"), Final("team_done")], enter=WRITER),
                FINISHED,
                FAILED,
            ],
            [
                On("reading", Went, to="resting"),
                On("reading", GaveUp, to="failed"),
                On("resting", Went, to="team_done"),
                On("team", Replied, to="finished"),
                On("team", Done, to="finished"),
            ],
        ),
        "the team asks, and when it stands in resting no row takes the failure",
        is_("unhandled-failure", "team", "resting"),
    ),
]

UNBOUNDED = [
    broken(
        machine(
            "endless",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting"),
                SAFE,
            ],
        ),
        "a critic who is never content keeps the writer busy for ever",
        is_("unbounded-cycle", "drafting", "reviewing"),
    ),
    broken(
        machine(
            "bound_on_the_way_in",
            [
                State("planning", enter=WRITER),
                State("drafting", enter=WRITER),
                State("reviewing", enter=CRITIC),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="drafting", at_most=1),
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting"),
                SAFE,
            ],
        ),
        "the bounded row leads into the cycle and is not part of it",
        is_("unbounded-cycle", "drafting", "reviewing"),
        also=("no-otherwise",),
    ),
    broken(
        machine(
            "bound_on_the_way_out",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good, at_most=3),
                On("reviewing", otherwise, to="drafting"),
                SAFE,
            ],
        ),
        "the bounded row leaves the cycle and is not part of it",
        is_("unbounded-cycle", "drafting", "reviewing"),
    ),
    broken(
        machine(
            "one_cycle_of_two",
            [
                State("drafting", enter=WRITER),
                State("reviewing", enter=CRITIC),
                State("searching", enter=SEARCH),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="searching", when=urgent),
                On("reviewing", Replied, to="drafting", at_most=3),
                On("reviewing", otherwise, to="finished"),
                On("searching", Returned, to="reviewing"),
                SAFE,
            ],
        ),
        "drafting and reviewing are bounded, reviewing and searching are not",
        is_("unbounded-cycle", "reviewing", "searching"),
    ),
    broken(
        machine(
            "across_the_border",
            [
                State("planning", enter=WRITER),
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)]),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="team"),
                On("working", Replied, to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="planning"),
                SAFE,
            ],
        ),
        "the cycle leaves the team and comes back into it",
        is_("unbounded-cycle", "planning", "team", "working", "checking"),
    ),
    broken(
        machine(
            "itself",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                SAFE,
            ],
        ),
        "drafting goes to itself, and nothing counts how often",
        is_("unbounded-cycle", "drafting"),
    ),
    broken(
        machine(
            "back_to_the_parent",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)]),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="team"),
                SAFE,
            ],
        ),
        "a row to the team begins it anew",
        is_("unbounded-cycle", "team", "working", "checking"),
    ),
    broken(
        machine(
            "one_region_of_two",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", when=good),
                On("left_asking", Replied, to="left_asking", at_most=3),
                On("left_asking", otherwise, to="left_done"),
                On("right_asking", Replied, to="right_done", when=good),
                On("right_asking", Replied, to="right_asking"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the left loop has a bound, the right one has none",
        is_("unbounded-cycle", "right_asking"),
    ),
    broken(
        machine(
            "both_regions",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                    max_visits=1,
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", when=good),
                On("left_asking", Replied, to="left_asking"),
                On("right_asking", Replied, to="right_done", when=good),
                On("right_asking", Replied, to="right_asking"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the visits of gathering are bounded, and the loops inside never leave it",
        is_("unbounded-cycle", "left_asking"),
        is_("unbounded-cycle", "right_asking"),
    ),
    broken(
        machine(
            "done_and_again",
            [
                State("planning", enter=WRITER),
                State("team", [State("working", enter=WRITER), Final("team_done")]),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="finished", when=good),
                On("planning", Replied, to="team"),
                On("working", Replied, to="team_done"),
                On("team", Done, to="planning"),
                SAFE,
            ],
        ),
        "the cycle goes through the end of the team",
        is_("unbounded-cycle", "planning", "team", "working", "team_done"),
    ),
    broken(
        machine(
            "join_and_again",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                State("judging", enter=CRITIC),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="judging"),
                On("judging", Replied, to="finished", when=good),
                On("judging", Replied, to="gathering"),
                SAFE,
            ],
        ),
        "fan out, join, judge, and again without a bound",
        is_(
            "unbounded-cycle",
            "gathering",
            "left",
            "right",
            "left_asking",
            "right_asking",
            "left_done",
            "right_done",
            "judging",
        ),
    ),
    broken(
        machine(
            "try_try_again",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="drafting")],
        ),
        "a writer who always gives up is asked for ever",
        is_("unbounded-cycle", "drafting"),
    ),
    broken(
        machine(
            "net_that_asks",
            [State("drafting", enter=WRITER), State("apologising", enter=WRITER), FINISHED],
            [
                On("drafting", Replied, to="finished"),
                On("apologising", Replied, to="finished"),
                On(anywhere, GaveUp, to="apologising"),
            ],
        ),
        "apologising asks too, and when that gives up the row takes it back to itself",
        is_("unbounded-cycle", "apologising", "*", "net_that_asks"),
    ),
    broken(
        machine(
            "reminding_for_ever",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED],
            [On("approving", Answered, to="finished"), On("approving", Expired, to="approving")],
        ),
        "a person who never answers is asked every two days for ever",
        is_("unbounded-cycle", "approving"),
    ),
    broken(
        machine(
            "limit_leads_back",
            [State("drafting", enter=WRITER, max_visits=2), State("salvaging", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                On("salvaging", Replied, to="finished", when=good),
                On("salvaging", Replied, to="drafting"),
                On(anywhere, Exhausted, to="salvaging"),
                SAFE,
            ],
        ),
        "when drafting is spent, each reply in salvaging ends in Exhausted, which leads to salvaging again",
        is_("unbounded-cycle", "salvaging", "drafting", "*", "limit_leads_back"),
    ),
    broken(
        machine(
            "limit_asks_again",
            [State("drafting", enter=WRITER, max_visits=1), State("salvaging", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="salvaging"),
                On("salvaging", Replied, to="finished", when=good),
                On("salvaging", Replied, to="drafting"),
                On("salvaging", Exhausted, do=CRITIC),
                SAFE,
            ],
        ),
        "salvaging is never left, and each Exhausted asks the critic again",
        is_("unbounded-cycle", "salvaging"),
    ),
    broken(
        machine(
            "budget_net_that_asks",
            [State("drafting", enter=WRITER), State("salvaging", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="drafting", at_most=9),
                On("drafting", otherwise, to="finished"),
                On("salvaging", Replied, to="finished"),
                On(anywhere, Exhausted, to="salvaging"),
                SAFE,
            ],
            Budget(calls=5),
        ),
        "salvaging wants a call that the budget does not cover either, and so hears Exhausted again",
        is_("unbounded-cycle", "salvaging", "*", "budget_net_that_asks"),
    ),
    broken(
        machine(
            "rest_leads_back",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", do=note, at_most=3),
                On("reviewing", otherwise, to="drafting"),
                SAFE,
            ],
        ),
        "when the bounded row is spent, otherwise goes the same way",
        is_("unbounded-cycle", "drafting", "reviewing"),
    ),
    broken(
        machine(
            "rest_leads_back_the_long_way",
            [
                State("planning", enter=WRITER),
                State("drafting", enter=WRITER),
                State("reviewing", enter=CRITIC),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="drafting"),
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", at_most=3),
                On("reviewing", otherwise, to="planning"),
                SAFE,
            ],
        ),
        "when the short way back is spent, the long one is open for ever",
        is_("unbounded-cycle", "planning", "drafting", "reviewing"),
    ),
    broken(
        machine(
            "bounded_twin",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", when=urgent, at_most=3),
                On("reviewing", Replied, to="drafting"),
                SAFE,
            ],
        ),
        "of two rows for the same way back only one has a bound",
        is_("unbounded-cycle", "drafting", "reviewing"),
    ),
    broken(
        machine(
            "restart_from_anywhere",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished"),
                On(anywhere, Redirected, to="drafting"),
                SAFE,
            ],
        ),
        "a person may redirect the run as often as they like",
        is_("unbounded-cycle", "drafting", "reviewing", "*", "restart_from_anywhere"),
    ),
    broken(
        machine(
            "pause_and_resume",
            [
                State("team", [State("working", enter=WRITER), State("reading"), History("memory", "working")]),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="reading"),
                On("reading", Went, to="finished"),
                On("team", Paused, to="resting"),
                On("resting", Resumed, to="memory"),
                SAFE,
            ],
        ),
        "each break ends where the team stood, which asks the writer again",
        is_("unbounded-cycle", "team", "working", "reading", "resting", "memory"),
    ),
    broken(
        machine(
            "asks_and_stays",
            [State("researching", enter=SEARCH), FINISHED, FAILED],
            [
                On("researching", Returned, to="finished", when=good),
                On("researching", Returned, do=SEARCH),
                SAFE,
            ],
        ),
        "the row does not leave researching, but it calls the tool again",
        is_("unbounded-cycle", "researching"),
    ),
    broken(
        machine(
            "bound_around_it",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)], max_visits=2),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="working"),
                SAFE,
            ],
        ),
        "the visits of the team are bounded, and the cycle never leaves it",
        is_("unbounded-cycle", "working", "checking"),
    ),
    broken(
        machine(
            "internal_is_no_visit",
            [
                State("team", [State("working", enter=WRITER), State("reading")], max_visits=2),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="reading"),
                On("reading", Went, to="finished"),
                On("team", Redirected, to="working", internal=True),
                SAFE,
            ],
        ),
        "an internal row does not leave the team, so the bound on its visits does not count it",
        is_("unbounded-cycle", "team", "working", "reading"),
    ),
    broken(
        machine(
            "way_around_the_bound",
            [
                State("reviewing", enter=CRITIC),
                State("drafting", enter=WRITER, max_visits=3),
                State("searching", enter=SEARCH),
                FINISHED,
                FAILED,
            ],
            [
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", when=urgent),
                On("reviewing", Replied, to="searching"),
                On("drafting", Replied, to="reviewing"),
                On("searching", Returned, to="reviewing"),
                SAFE,
            ],
        ),
        "the visits of drafting are bounded, those of searching are not",
        is_("unbounded-cycle", "reviewing", "searching"),
    ),
    broken(
        machine(
            "region_restarts_all",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", when=good),
                On("left_asking", Replied, to="gathering"),
                On("right_asking", Replied, to="right_done"),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "a row of the left region begins both regions anew",
        is_("unbounded-cycle", "gathering", "left", "left_asking", "right", "right_asking"),
    ),
    broken(
        machine(
            "long_way_round",
            [State("one"), State("two"), State("three"), State("four"), State("five"), State("six"), FINISHED],
            [
                On("one", Went, to="two"),
                On("two", Went, to="three"),
                On("three", Went, to="four"),
                On("three", Came, to="one", at_most=2),
                On("four", Went, to="five"),
                On("five", Went, to="six"),
                On("six", Went, to="finished", when=good),
                On("six", Went, to="one"),
            ],
        ),
        "the chord from three to one has a bound, the circle of six has none",
        is_("unbounded-cycle", "one", "two", "three", "four", "five", "six"),
    ),
    broken(
        machine(
            "nested_inner_loop",
            [
                State(
                    "outer",
                    [
                        State(
                            "inner",
                            [State("working", enter=WRITER), State("checking", enter=CRITIC), Final("inner_done")],
                        ),
                        State("judging", enter=CRITIC),
                        Final("outer_done"),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="inner_done", when=good),
                On("checking", Replied, to="working"),
                On("inner", Done, to="judging"),
                On("judging", Replied, to="outer_done", when=good),
                On("judging", Replied, to="inner", at_most=2),
                On("judging", otherwise, to="outer_done"),
                On("outer", Done, to="finished"),
                SAFE,
            ],
        ),
        "the outer loop has a bound, the inner one has none",
        is_("unbounded-cycle", "working", "checking"),
    ),
    broken(
        machine(
            "alarm_that_rings_for_ever",
            [State("drafting", enter=(WRITER, Alarm(Late(), minutes(5)))), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("drafting", Late, to="drafting"), SAFE],
        ),
        "a writer who is always late is asked anew every five minutes",
        is_("unbounded-cycle", "drafting"),
    ),
]

EVENTLESS = [
    broken(
        machine(
            "spinning",
            [State("drafting", enter=WRITER), State("routing"), State("weighing"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", otherwise, to="routing"),
                On("drafting", GaveUp, to="failed"),
                On("routing", always, to="weighing"),
                On("weighing", always, to="routing"),
            ],
        ),
        "routing and weighing follow each other without waiting",
        is_("eventless-cycle", "routing", "weighing"),
        also=("no-path-to-final", "unbounded-cycle"),
    ),
    broken(
        machine(
            "spinning_while",
            [State("drafting", enter=WRITER), State("routing"), State("weighing"), FINISHED, FAILED],
            [
                On("drafting", Replied, to="routing"),
                On("routing", always, to="weighing", when=bad),
                On("routing", always, to="finished"),
                On("weighing", always, to="routing"),
                SAFE,
            ],
        ),
        "as long as the guard holds nothing ever waits",
        is_("eventless-cycle", "routing", "weighing"),
        also=("unbounded-cycle",),
    ),
    broken(
        machine(
            "spinning_on_the_spot",
            [State("choosing"), State("spinning"), FINISHED],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="spinning"),
                On("spinning", always, do=keep),
                On("spinning", Went, to="finished"),
            ],
        ),
        "the row needs no event and does not leave its state, so it is taken again at once",
        is_("eventless-cycle", "spinning"),
        also=("shadowed", "no-path-to-final", "unbounded-cycle"),
    ),
    broken(
        machine(
            "spinning_into_itself",
            [State("choosing"), State("spinning"), FINISHED],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="spinning"),
                On("spinning", always, to="spinning", when=bad),
                On("spinning", always, to="finished"),
            ],
        ),
        "entered again and again as long as the guard holds",
        is_("eventless-cycle", "spinning"),
        also=("unbounded-cycle",),
    ),
    broken(
        machine(
            "done_at_once",
            [
                State("choosing"),
                State("team", [State("passing"), Final("team_done")]),
                FINISHED,
            ],
            [
                On("choosing", Came, to="finished"),
                On("choosing", Went, to="team"),
                On("passing", always, to="team_done"),
                On("team", Done, to="finished", when=good),
                On("team", Done, to="team"),
            ],
        ),
        "the team is done as soon as it begins, and that begins it again",
        is_("eventless-cycle|unbounded-cycle", "team", "passing", "team_done"),
        also=("eventless-cycle", "unbounded-cycle"),
    ),
    broken(
        machine(
            "spinning_across_the_border",
            [State("choosing"), State("team", [State("passing"), State("reading")]), State("routing"), FINISHED],
            [
                On("choosing", Went, to="team"),
                On("passing", always, to="routing", when=bad),
                On("passing", always, to="reading"),
                On("reading", Went, to="finished"),
                On("routing", always, to="team"),
            ],
        ),
        "the cycle leaves the team and enters it again, and never waits",
        is_("eventless-cycle", "team", "passing", "routing"),
        also=("unbounded-cycle",),
    ),
    broken(
        machine(
            "spinning_region",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_waiting"), Final("left_done")]),
                        State("right", [State("right_routing"), State("right_weighing"), Final("right_done")]),
                    ],
                ),
                FINISHED,
            ],
            [
                On("left_waiting", Went, to="left_done"),
                On("right_routing", always, to="right_weighing", when=bad),
                On("right_routing", always, to="right_done"),
                On("right_weighing", always, to="right_routing"),
                On("gathering", Done, to="finished"),
            ],
        ),
        "the right region turns without an event while the left one waits",
        is_("eventless-cycle", "right_routing", "right_weighing"),
        also=("unbounded-cycle",),
    ),
    broken(
        machine(
            "one_spin_of_two",
            [State("choosing"), State("routing"), State("weighing"), State("sorting"), FINISHED],
            [
                On("choosing", Went, to="routing"),
                On("routing", always, to="weighing", when=bad, at_most=3),
                On("routing", always, to="sorting", when=urgent),
                On("routing", always, to="finished"),
                On("weighing", always, to="routing"),
                On("sorting", always, to="routing"),
            ],
        ),
        "weighing has a bound, sorting has none",
        is_("eventless-cycle", "routing", "sorting"),
        also=("unbounded-cycle",),
    ),
]


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


CONTESTED = [
    broken(
        regions(
            "same_key",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=keep, writes=["draft"]),
        ),
        "both regions write draft, and the last one wins",
        is_("contested-write", "gathering", "left", "right", "left_asking", "right_asking"),
    ),
    broken(
        regions(
            "one_key_of_many",
            On("left_asking", Replied, to="left_done", do=keep, writes=["topic", "draft"]),
            On("right_asking", Replied, to="right_done", do=keep, writes=["draft", "notes"]),
        ),
        "both regions write draft among others",
        is_("contested-write", "gathering", "left", "right", "left_asking", "right_asking"),
    ),
    broken(
        regions(
            "first_and_third",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
            On("third_asking", Replied, to="third_done", do=keep, writes=["draft"]),
            more=[State("third", [State("third_asking", enter=WRITER), Final("third_done")])],
        ),
        "the first region and the third write draft",
        is_("contested-write", "gathering", "left", "third", "left_asking", "third_asking"),
    ),
    broken(
        regions(
            "one_side_silent",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=keep),
        ),
        "the right row changes the data and does not say what it writes",
        is_("undeclared-writes", "gathering", "right", "right_asking"),
    ),
    broken(
        regions(
            "both_silent",
            On("left_asking", Replied, to="left_done", do=keep),
            On("right_asking", Replied, to="right_done", do=note),
        ),
        "neither row says what it writes",
        is_("undeclared-writes", "gathering", "left", "right", "left_asking", "right_asking"),
    ),
    broken(
        machine(
            "silent_entry",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=(keep, WRITER)), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done"),
                On("right_asking", Replied, to="right_done", do=keep, writes=["draft"]),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "what the left region does when it is entered changes the data as well, and nothing says what",
        is_("undeclared-writes|contested-write", "gathering", "left", "left_asking"),
    ),
    broken(
        machine(
            "deep_clash",
            [
                Parallel(
                    "gathering",
                    [
                        State(
                            "left",
                            [State("team", [State("working", enter=WRITER), Final("team_done")]), Final("left_done")],
                        ),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="team_done", do=keep, writes=["draft"]),
                On("team", Done, to="left_done"),
                On("right_asking", Replied, to="right_done", do=keep, writes=["draft"]),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the row deep inside the left region writes what the right one writes",
        is_("contested-write", "gathering", "left", "right", "team", "working", "right_asking"),
    ),
    broken(
        machine(
            "parallel_in_parallel",
            [
                Parallel(
                    "gathering",
                    [
                        State(
                            "left",
                            [
                                Parallel(
                                    "splitting",
                                    [
                                        State("near", [State("near_asking", enter=WRITER), Final("near_done")]),
                                        State("far", [State("far_asking", enter=WRITER), Final("far_done")]),
                                    ],
                                ),
                                Final("left_done"),
                            ],
                        ),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("near_asking", Replied, to="near_done", do=keep, writes=["draft"]),
                On("far_asking", Replied, to="far_done", do=note, writes=["notes"]),
                On("splitting", Done, to="left_done"),
                On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "far, inside the left region, writes notes, and so does the right region",
        is_("contested-write", "gathering", "left", "right", "far", "far_asking", "right_asking"),
    ),
    broken(
        machine(
            "done_row_of_a_region",
            [
                Parallel(
                    "gathering",
                    [
                        State(
                            "left",
                            [State("team", [State("working", enter=WRITER), Final("team_done")]), Final("left_done")],
                        ),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="team_done"),
                On("team", Done, to="left_done", do=keep, writes=["draft"]),
                On("right_asking", Replied, to="right_done", do=keep, writes=["draft"]),
                On("gathering", Done, to="finished"),
                SAFE,
            ],
        ),
        "the row that takes the end of the team belongs to the left region too",
        is_("contested-write", "gathering", "left", "right", "team", "right_asking"),
    ),
]

BROKEN: Sequence[Broken] = [
    *UNREACHABLE,
    *DEAD_ENDS,
    *SHADOWED,
    *NO_PATH,
    *NO_OTHERWISE,
    *UNHANDLED_FAILURES,
    *UNBOUNDED,
    *EVENTLESS,
    *CONTESTED,
]

GOOD: Sequence[Good] = [
    Good(
        machine(
            "writer_and_critic",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing", do=keep),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", do=note, at_most=3),
                On("reviewing", otherwise, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "newsroom",
            [
                State("drafting", enter=WRITER),
                State("reviewing", enter=CRITIC),
                State("approving", enter=question("Publish?", within=days(2))),
                Final("published"),
                Final("shelved"),
            ],
            [
                On("drafting", Replied, to="reviewing", do=keep),
                On("drafting", GaveUp, to="shelved"),
                On("reviewing", Replied, to="approving", when=good),
                On("reviewing", Replied, to="drafting", do=note, at_most=3),
                On("reviewing", [otherwise, GaveUp], to="approving"),
                On("approving", Answered, to="published", when=yes),
                On("approving", otherwise, to="shelved"),
            ],
        )
    ),
    Good(
        machine(
            "approval_with_reminders",
            [
                State("writing", enter=WRITER),
                State("approving", enter=question("Send?", within=days(2))),
                State("sending", enter=call("send")),
                Final("sent"),
                Final("dropped"),
            ],
            [
                On("writing", Replied, to="approving"),
                On("writing", GaveUp, to="dropped"),
                On("approving", Answered, to="sending", when=yes),
                On("approving", Expired, to="approving", at_most=2),
                On("approving", otherwise, to="dropped"),
                On("sending", Returned, to="sent"),
                On("sending", GaveUp, to="sending", at_most=2),
                On("sending", GaveUp, to="dropped"),
            ],
        )
    ),
    Good(
        machine(
            "fan_out",
            [
                State("researching", enter=[ask(name, "What is new?") for name in ("press", "papers", "patents")]),
                State("editing", enter=ask("editor", "Join.")),
                FINISHED,
                FAILED,
            ],
            [
                On("researching", Replied, to="editing", do=keep, when=good),
                On("researching", Replied, do=keep, at_most=2),
                On("researching", otherwise, to="editing"),
                On("editing", Replied, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "fan_out_that_tolerates_gaps",
            [
                State("researching", enter=[ask(name, "What is new?") for name in ("press", "papers", "patents")]),
                State("editing", enter=ask("editor", "Join.")),
                FINISHED,
                FAILED,
            ],
            [
                On("researching", [Replied, GaveUp], do=note, at_most=2),
                On("researching", [Replied, GaveUp], to="editing"),
                On("editing", Replied, to="finished"),
                On("editing", GaveUp, to="failed"),
            ],
        )
    ),
    Good(
        machine(
            "nested_team",
            [
                State("planning", enter=ask("planner", "Plan.")),
                State(
                    "building",
                    [
                        State("coding", enter=WRITER),
                        State("testing", enter=call("test")),
                        State("reviewing", enter=CRITIC),
                        Final("built"),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="building"),
                On("coding", Replied, to="testing", do=keep),
                On("testing", Returned, to="reviewing", when=good),
                On("testing", Returned, to="coding", at_most=4),
                On("testing", otherwise, to="reviewing"),
                On("reviewing", Replied, to="built", when=good),
                On("reviewing", Replied, to="coding", do=note, at_most=2),
                On("reviewing", otherwise, to="built"),
                On("building", Done, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        regions(
            "two_at_once",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
        )
    ),
    Good(
        regions(
            "three_at_once_one_of_which_only_reads",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
            On("third_asking", Replied, to="third_done"),
            more=[State("third", [State("third_asking", enter=WRITER), Final("third_done")])],
        )
    ),
    Good(
        regions(
            "loops_in_both_regions",
            On("left_asking", Replied, to="left_done", do=keep, when=good, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=note, when=good, writes=["notes"]),
            On("left_asking", Replied, to="left_asking", do=keep, at_most=2, writes=["draft"]),
            On("left_asking", otherwise, to="left_done"),
            On("right_asking", Replied, to="right_asking", at_most=3),
            On("right_asking", otherwise, to="right_done"),
        )
    ),
    Good(
        regions(
            "only_one_region_writes",
            On("left_asking", Replied, to="left_done", do=keep),
            On("right_asking", Replied, to="right_done"),
        )
    ),
    Good(
        machine(
            "same_key_one_after_the_other",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                Parallel(
                    "judging",
                    [
                        State("near", [State("near_asking", enter=WRITER), Final("near_done")]),
                        State("far", [State("far_asking", enter=CRITIC), Final("far_done")]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
                On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
                On("gathering", Done, to="judging", do=keep),
                On("near_asking", Replied, to="near_done", do=note, writes=["notes"]),
                On("far_asking", Replied, to="far_done", do=keep, writes=["draft"]),
                On("judging", Done, to="finished", do=note),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "fan_out_judge_and_again",
            [
                Parallel(
                    "gathering",
                    [
                        State("left", [State("left_asking", enter=WRITER), Final("left_done")]),
                        State("right", [State("right_asking", enter=CRITIC), Final("right_done")]),
                    ],
                ),
                State("judging", enter=ask("judge", "Judge.")),
                FINISHED,
                FAILED,
            ],
            [
                On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
                On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
                On("gathering", Done, to="judging"),
                On("judging", Replied, to="finished", when=good),
                On("judging", Replied, to="gathering", at_most=2),
                On("judging", otherwise, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "break_with_memory",
            [
                State(
                    "team",
                    [
                        State("working", enter=WRITER),
                        State("reading", enter=CRITIC),
                        Final("team_done"),
                        History("memory", "working"),
                    ],
                ),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="reading"),
                On("reading", Replied, to="team_done"),
                On("team", Done, to="finished"),
                On("team", Paused, to="resting", at_most=3),
                On("resting", Resumed, to="memory"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "deep_memory",
            [
                State(
                    "project",
                    [
                        State("designing", [State("sketching", enter=WRITER), State("drawing", enter=WRITER)]),
                        State("building", [State("coding", enter=WRITER), Final("built")]),
                        Final("shipped"),
                        History("memory", "designing", deep=True),
                    ],
                ),
                State("asking_the_user", enter=question("Go on?", within=hours(8)), max_visits=3),
                FINISHED,
                FAILED,
            ],
            [
                On("sketching", Replied, to="drawing"),
                On("drawing", Replied, to="building"),
                On("coding", Replied, to="built"),
                On("building", Done, to="shipped"),
                On("project", Done, to="finished"),
                On("project", Redirected, to="asking_the_user"),
                On("asking_the_user", Answered, to="memory", when=yes),
                On("asking_the_user", otherwise, to="failed"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "tries_three_times",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished", do=keep),
                On("drafting", GaveUp, to="drafting", at_most=2),
                On("drafting", GaveUp, to="failed"),
            ],
        )
    ),
    Good(
        machine(
            "visits_bounded_and_told",
            [
                State("planning", enter=WRITER),
                State("drafting", enter=WRITER, max_visits=4),
                State("salvaging", enter=CRITIC),
                FINISHED,
                Final("stopped"),
                FAILED,
            ],
            [
                On("planning", Replied, to="drafting"),
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                On("drafting", Exhausted, to="salvaging"),
                On("salvaging", Replied, to="finished"),
                On("salvaging", Exhausted, to="stopped"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "visits_bounded_and_left_to_the_run",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)], max_visits=3),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="team"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "hurried",
            [
                State("drafting", enter=(WRITER, Alarm(Late(), minutes(5)))),
                State("asking_another", enter=ask("other", "Write.")),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="finished"),
                On("drafting", Late, to="asking_another"),
                On("asking_another", Replied, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "watched",
            [
                Parallel(
                    "working",
                    [
                        State("doing", [State("drafting", enter=WRITER), State("polishing", enter=WRITER)]),
                        State("watching", [State("quiet", enter=Alarm(Late(), hours(1)))]),
                    ],
                ),
                FINISHED,
                Final("late"),
                FAILED,
            ],
            [
                On("drafting", Replied, to="polishing"),
                On("polishing", Replied, to="finished"),
                On("quiet", Late, to="late"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "delegating",
            [
                State("planning", enter=WRITER),
                State("debating", enter=StartChild("debate", id="debate")),
                State("reporting", enter=WRITER),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="debating"),
                On("debating", "done.invoke.debate", to="reporting"),
                On("reporting", Replied, to="finished"),
                SAFE,
            ],
        ),
        children={"debate": Certificate(10, {"ask.agent": 12, "calls": 12}, True)},
    ),
    Good(
        machine(
            "choice",
            [
                State("classifying", enter=ask("classifier", "What is it?")),
                State("routing"),
                State("answering", enter=WRITER),
                State("escalating", enter=question("Who takes it?", str)),
                FINISHED,
                FAILED,
            ],
            [
                On("classifying", Replied, to="routing", do=keep),
                On("routing", always, to="escalating", when=urgent),
                On("routing", always, to="answering"),
                On("answering", Replied, to="finished"),
                On("escalating", Answered, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "turn",
            [
                State("asking", enter=WRITER),
                State("calling", enter=SEARCH),
                Final("replied"),
                Final("unusable"),
            ],
            [
                On("asking", Replied, to="calling", when=urgent, at_most=5),
                On("asking", otherwise, to="replied"),
                On("asking", GaveUp, to="unusable"),
                On("calling", Returned, to="asking", do=keep),
                On("calling", GaveUp, to="asking", do=note),
            ],
        )
    ),
    Good(
        machine(
            "pipeline",
            [
                State("planning", enter=ask("planner", "Plan.")),
                State("validating", enter=CRITIC),
                State("implementing", enter=WRITER),
                State("judging", enter=ask("judge", "Judge.")),
                FINISHED,
                FAILED,
            ],
            [
                On("planning", Replied, to="validating"),
                On("validating", Replied, to="implementing", when=good),
                On("validating", Replied, to="planning", at_most=2),
                On("validating", otherwise, to="failed"),
                On("implementing", Replied, to="judging"),
                On("judging", Replied, to="finished", when=good),
                On("judging", Replied, to="planning", when=urgent, at_most=1),
                On("judging", Replied, to="implementing", at_most=3),
                On("judging", otherwise, to="failed"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "debate",
            [
                State("clarifying", enter=question("What do you mean?", str, within=hours(1))),
                State("proposing", enter=[ask(name, "Propose.") for name in ("left", "right", "centre")]),
                State("evaluating", enter=ask("judge", "Do they agree?")),
                State("synthesising", enter=WRITER),
                FINISHED,
                FAILED,
            ],
            [
                On("clarifying", [Answered, Expired], to="proposing"),
                On("proposing", Replied, to="evaluating", when=good),
                On("proposing", Replied, do=keep, at_most=8),
                On("proposing", otherwise, to="evaluating"),
                On("evaluating", Replied, to="synthesising", when=good),
                On("evaluating", Replied, to="proposing", at_most=3),
                On("evaluating", otherwise, to="synthesising"),
                On("synthesising", Replied, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "same_guard_after_a_bound",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="drafting", when=bad, at_most=2),
                On("drafting", Replied, to="polishing", when=bad),
                On("drafting", otherwise, to="finished"),
                On("polishing", Replied, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "special_before_general",
            [State("hearing"), State("mending", enter=WRITER), FINISHED, Final("lost")],
            [
                On("hearing", Praised, to="finished"),
                On("hearing", Judged, to="mending"),
                On("hearing", "*", to="lost"),
                On("mending", Replied, to="finished"),
                On("mending", GaveUp, to="finished", when=good),
                On("mending", "error", to="lost"),
            ],
        )
    ),
    Good(
        machine(
            "net_that_asks_and_has_its_own",
            [State("drafting", enter=WRITER), State("apologising", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On("apologising", Replied, to="finished"),
                On("apologising", GaveUp, to="failed"),
                On(anywhere, GaveUp, to="apologising"),
            ],
        )
    ),
    Good(
        machine(
            "cleans_up_when_cancelled",
            [State("drafting", enter=WRITER), State("cleaning", enter=call("clean")), FINISHED, Final("stopped")],
            [
                On("drafting", Replied, to="finished"),
                On("drafting", GaveUp, to="cleaning"),
                On("cleaning", [Returned, GaveUp], to="stopped"),
                On(anywhere, Cancelled, to="cleaning", at_most=1),
            ],
        )
    ),
    Good(
        machine(
            "asks_again_without_leaving",
            [State("researching", enter=WRITER), FINISHED, FAILED],
            [
                On("researching", Replied, to="finished", when=good),
                On("researching", Replied, do=CRITIC, at_most=3),
                On("researching", otherwise, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "redirected_a_few_times",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished"),
                On(anywhere, Redirected, to="drafting", at_most=5),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "teams_in_regions",
            [
                Parallel(
                    "building",
                    [
                        State(
                            "backend",
                            [
                                State("backend_team", [State("serving", enter=WRITER), Final("served")]),
                                State("backend_review", enter=CRITIC),
                                Final("backend_done"),
                            ],
                        ),
                        State("frontend", [State("painting", enter=WRITER), Final("frontend_done")]),
                    ],
                ),
                State("releasing", enter=question("Release?", within=days(1))),
                Final("released"),
                Final("held"),
                FAILED,
            ],
            [
                On("serving", Replied, to="served", do=keep, writes=["draft"]),
                On("backend_team", Done, to="backend_review"),
                On("backend_review", Replied, to="backend_done", when=good),
                On("backend_review", Replied, to="backend_team", at_most=2),
                On("backend_review", otherwise, to="backend_done"),
                On("painting", Replied, to="frontend_done", do=note, writes=["notes"]),
                On("building", Done, to="releasing"),
                On("releasing", Answered, to="released", when=yes),
                On("releasing", otherwise, to="held"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "team_with_a_common_answer",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)]),
                State("mending", enter=WRITER),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking", when=good),
                On("checking", Replied, to="finished", when=good),
                On("team", Replied, to="mending"),
                On("mending", Replied, to="finished"),
                SAFE,
            ],
        )
    ),
]

# The most that a run can do. "n×" is how often a row is taken, the arithmetic is written out; asks are entries of
# states that ask, plus what rows ask. Failures (SAFE) end a run earlier and never raise a maximum.
COUNTED: Sequence[Counted] = [
    # drafting→reviewing 1×, reviewing→finished 1×: 2 transitions. Each state asks once: 2 asks.
    Counted(
        machine(
            "straight",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [On("drafting", Replied, to="reviewing"), On("reviewing", Replied, to="finished"), SAFE],
        ),
        transitions=2,
        asks=2,
    ),
    # back 3× ⇒ drafting entered 1+3 = 4×, so drafting→reviewing 4×; the end 1×: 4+3+1 = 8. Asks: 4 + 4 = 8.
    Counted(
        machine(
            "one_loop",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished", when=good),
                On("reviewing", Replied, to="drafting", at_most=3),
                On("reviewing", otherwise, to="finished"),
                SAFE,
            ],
        ),
        transitions=8,
        asks=8,
    ),
    # reviewing→drafting 2× and approving→drafting 1× in the whole run, for bounds are never reset.
    # drafting and reviewing entered 1+2+1 = 4× each, approving 1+1 = 2×.
    # Rows: drafting→reviewing 4, reviewing→drafting 2, reviewing→approving 2, approving→drafting 1, end 1 = 10.
    # Asks: 4 + 4 = 8 (approving asks a person).
    Counted(
        machine(
            "two_loops",
            [
                State("drafting", enter=WRITER),
                State("reviewing", enter=CRITIC),
                State("approving", enter=question("Send?", within=days(2))),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="approving", when=good),
                On("reviewing", Replied, to="drafting", at_most=2),
                On("reviewing", otherwise, to="approving"),
                On("approving", Answered, to="finished", when=yes),
                On("approving", otherwise, to="drafting", at_most=1),
                On("approving", [Answered, Expired], to="finished"),
                SAFE,
            ],
        ),
        transitions=10,
        asks=8,
        other={"ask.person": 2},
    ),
    # planning→drafting 1×, drafting→drafting 3× (4 visits); the fourth reply finds drafting spent: its row is not
    # taken, Exhausted comes and its row is, 1×: 1+3+1 = 5. Asks: 1 plan + 4 drafts = 5.
    Counted(
        machine(
            "stubborn",
            [
                State("planning", enter=WRITER),
                State("drafting", enter=WRITER, max_visits=4),
                FINISHED,
                Final("stopped"),
            ],
            [
                On("planning", Replied, to="drafting"),
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                On(anywhere, Exhausted, to="stopped"),
            ],
        ),
        transitions=5,
        asks=5,
    ),
    # drafting→drafting 1× (2 visits), then Exhausted→salvaging 1×, salvaging→finished 1× = 3. Asks: 2 + 1 = 3.
    Counted(
        machine(
            "limit_with_an_epilogue",
            [State("drafting", enter=WRITER, max_visits=2), State("salvaging", enter=CRITIC), FINISHED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                On("drafting", Exhausted, to="salvaging"),
                On("salvaging", Replied, to="finished"),
            ],
        ),
        transitions=3,
        asks=3,
    ),
    # Exhausted leads to the very state that is spent: that entry does not happen either, and the run ends limited.
    # drafting→drafting 1× (2 visits), drafting→finished 1× = 2. Asks: 2.
    Counted(
        machine(
            "limit_leads_to_the_limit",
            [State("drafting", enter=WRITER, max_visits=2), FINISHED],
            [
                On("drafting", Replied, to="finished", when=good),
                On("drafting", Replied, to="drafting"),
                On(anywhere, Exhausted, to="drafting"),
            ],
        ),
        transitions=2,
        asks=2,
    ),
    # GaveUp→drafting 2×, then the end 1× = 3. Asks: 1 + 2 = 3.
    Counted(
        machine(
            "tries",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [
                On("drafting", Replied, to="finished"),
                On("drafting", GaveUp, to="drafting", at_most=2),
                On("drafting", GaveUp, to="failed"),
            ],
        ),
        transitions=3,
        asks=3,
    ),
    # left 1×, right 1×, the join 1× = 3. Asks: 2.
    Counted(
        regions(
            "join",
            On("left_asking", Replied, to="left_done"),
            On("right_asking", Replied, to="right_done"),
        ),
        transitions=3,
        asks=2,
    ),
    # left: again 2×, end 1×; right: again 1×, end 1×; the join 1×: 3+2+1 = 6. Asks: (1+2) + (1+1) = 5.
    Counted(
        regions(
            "join_of_loops",
            On("left_asking", Replied, to="left_done", when=good),
            On("right_asking", Replied, to="right_done", when=good),
            On("left_asking", Replied, to="left_asking", at_most=2),
            On("left_asking", otherwise, to="left_done"),
            On("right_asking", Replied, to="right_asking", at_most=1),
            On("right_asking", otherwise, to="right_done"),
        ),
        transitions=6,
        asks=5,
    ),
    # two replies kept 2×, the third moves on 1×, the editor's ends it 1× = 4. Asks: 3 + 1 = 4.
    Counted(
        machine(
            "three_at_once",
            [
                State("researching", enter=[ask(name, "What?") for name in ("press", "papers", "patents")]),
                State("editing", enter=ask("editor", "Join.")),
                FINISHED,
                FAILED,
            ],
            [
                On("researching", Replied, to="editing", when=good),
                On("researching", Replied, do=keep, at_most=2),
                On("researching", otherwise, to="editing"),
                On("editing", Replied, to="finished"),
                SAFE,
            ],
        ),
        transitions=4,
        asks=4,
    ),
    # planning→researching 1×, kept 2×, the end 1× = 4. Asks: planning 1, the row at most 3 = 4.
    Counted(
        machine(
            "spread_by_a_row",
            [State("planning", enter=WRITER), State("researching"), FINISHED, FAILED],
            [
                On("planning", Replied, to="researching", do=spread, emits={AskAgent: 3}),
                On("researching", Replied, do=keep, at_most=2),
                On("researching", Replied, to="finished"),
                SAFE,
            ],
        ),
        transitions=4,
        asks=4,
    ),
    # Two breaks: Paused 2×, Resumed 2×; working→reading 1×, reading→team_done 1×, Done 1× = 7.
    # Asks: working 1, reading 1, and each return enters the remembered state, which asks again: 2 + 2 = 4.
    Counted(
        machine(
            "two_breaks",
            [
                State(
                    "team",
                    [
                        State("working", enter=WRITER),
                        State("reading", enter=CRITIC),
                        Final("team_done"),
                        History("memory", "working"),
                    ],
                ),
                State("resting"),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="reading"),
                On("reading", Replied, to="team_done"),
                On("team", Done, to="finished"),
                On("team", Paused, to="resting", at_most=2),
                On("resting", Resumed, to="memory"),
                SAFE,
            ],
        ),
        transitions=7,
        asks=4,
    ),
    # The long branch: drafting→routing, routing→first, first→second, second→finished = 4. Asks: 1 + 2 = 3.
    # The short one: drafting→routing, routing→finished = 2 transitions, 1 ask.
    Counted(
        machine(
            "longer_branch",
            [
                State("drafting", enter=WRITER),
                State("routing"),
                State("first", enter=WRITER),
                State("second", enter=WRITER),
                FINISHED,
                FAILED,
            ],
            [
                On("drafting", Replied, to="routing"),
                On("routing", always, to="finished", when=good),
                On("routing", always, to="first"),
                On("first", Replied, to="second"),
                On("second", Replied, to="finished"),
                SAFE,
            ],
        ),
        transitions=4,
        asks=3,
    ),
    # The branch with more transitions is not the one with more asks: each maximum is its own.
    # talking: choosing→talking, talking→finished = 2 transitions, 5 asks.
    # walking: choosing→one→two→three→finished = 4 transitions, no ask.
    Counted(
        machine(
            "two_maxima",
            [
                State("choosing"),
                State("talking", enter=[ask(name, "Say.") for name in "abcde"]),
                State("one"),
                State("two"),
                State("three"),
                FINISHED,
                FAILED,
            ],
            [
                On("choosing", Went, to="talking"),
                On("choosing", Came, to="one"),
                On("talking", Replied, to="finished"),
                On("one", Went, to="two"),
                On("two", Went, to="three"),
                On("three", Went, to="finished"),
                SAFE,
            ],
        ),
        transitions=4,
        asks=5,
    ),
    # The team is begun 3×: each time working→checking, 3×; checking→team 2×; the end 1× = 6. Asks: 3 × 2 = 6.
    # A fourth beginning does not happen: its row is not taken and the run ends limited.
    Counted(
        machine(
            "team_begun_anew",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC)], max_visits=3),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="team"),
                SAFE,
            ],
        ),
        transitions=6,
        asks=6,
    ),
    # Redirected 2×, each best used in reviewing: drafting→reviewing 3×, reviewing→finished 1×: 3+2+1 = 6.
    # Asks: drafting 3, reviewing 3 = 6.
    Counted(
        machine(
            "redirected_twice",
            [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [
                On("drafting", Replied, to="reviewing"),
                On("reviewing", Replied, to="finished"),
                On(anywhere, Redirected, to="drafting", at_most=2),
                SAFE,
            ],
        ),
        transitions=6,
        asks=6,
    ),
    # Asked again without leaving 3×, the end 1× = 4. Asks: 1 + 3 = 4, each attempted three times: 12 calls.
    # At 0.25 each that is 3.00.
    Counted(
        Machine(
            "priced",
            data=Work,
            costs={"ask.agent": {"usd": 0.25}},
            states=[State("researching", enter=WRITER), FINISHED, FAILED],
            moves=[
                On("researching", Replied, to="finished", when=good),
                On("researching", Replied, do=CRITIC, at_most=3),
                On("researching", otherwise, to="finished"),
                SAFE,
            ],
        ),
        transitions=4,
        asks=4,
        other={"usd": 3.0, "calls": 12},
    ),
    # A bounded row that leads into a bounded loop: outer back 1×, inner back 2× in the whole run.
    # working entered 1 + 2 + 1 = 4×, checking 4×, team_done 2×, judging 2×.
    # Rows: working→checking 4, checking→working 2, checking→team_done 2, Done→judging 2, judging→team 1, end 1 = 12.
    # Asks: 4 + 4 + 2 = 10.
    Counted(
        machine(
            "loop_in_a_loop",
            [
                State("team", [State("working", enter=WRITER), State("checking", enter=CRITIC), Final("team_done")]),
                State("judging", enter=ask("judge", "Judge.")),
                FINISHED,
                FAILED,
            ],
            [
                On("working", Replied, to="checking"),
                On("checking", Replied, to="team_done", when=good),
                On("checking", Replied, to="working", at_most=2),
                On("checking", otherwise, to="team_done"),
                On("team", Done, to="judging"),
                On("judging", Replied, to="finished", when=good),
                On("judging", Replied, to="team", at_most=1),
                On("judging", otherwise, to="finished"),
                SAFE,
            ],
        ),
        transitions=12,
        asks=10,
    ),
    # Own: planning→delegating 1, delegating→finished 1 = 2 transitions, 1 ask.
    # One child of at most 5 transitions and 4 asks: 2+5 = 7 and 1+4 = 5.
    Counted(
        machine(
            "one_child",
            [State("planning", enter=WRITER), State("delegating", enter=StartChild("kid", id="k")), FINISHED, FAILED],
            [On("planning", Replied, to="delegating"), On("delegating", "done.invoke.k", to="finished"), SAFE],
        ),
        transitions=7,
        asks=5,
        children={"kid": Certificate(5, {"ask.agent": 4}, True)},
    ),
    # delegating entered 1+1 = 2×, so two children: 2 × (2, 2).
    # Own: delegating→checking 2, back 1, end 1 = 4 transitions; checking asks 2×. Sum: 4+4 = 8 and 2+4 = 6.
    Counted(
        machine(
            "child_in_a_loop",
            [State("delegating", enter=StartChild("kid", id="k")), State("checking", enter=CRITIC), FINISHED, FAILED],
            [
                On("delegating", "done.invoke.k", to="checking"),
                On("checking", Replied, to="finished", when=good),
                On("checking", Replied, to="delegating", at_most=1),
                On("checking", otherwise, to="finished"),
                SAFE,
            ],
        ),
        transitions=8,
        asks=6,
        children={"kid": Certificate(2, {"ask.agent": 2}, True)},
    ),
    # Two different children at once: 3+4 transitions and 1+6 asks of theirs; own: keep 1×, end 1× = 2 and no ask.
    # 2+7 = 9 and 7.
    Counted(
        machine(
            "two_children",
            [
                State("delegating", enter=[StartChild("near", id="n"), StartChild("far", id="f")]),
                FINISHED,
                FAILED,
            ],
            [
                On("delegating", "done.invoke", do=note, at_most=1),
                On("delegating", "done.invoke", to="finished"),
                SAFE,
            ],
        ),
        transitions=9,
        asks=7,
        children={"near": Certificate(3, {"ask.agent": 1}, True), "far": Certificate(4, {"ask.agent": 6}, True)},
    ),
]

# For composition over three generations: kid asks twice; parent asks once and starts two kids, one after the other;
# grandparent starts one parent.
# kid: 2 transitions, 2 asks. parent: own 3 transitions and 1 ask, 2 kids: 3+4 = 7 and 1+4 = 5.
# grandparent: own 1 transition: 8 and 5.
KID = machine(
    "kid",
    [State("drafting", enter=WRITER), State("reviewing", enter=CRITIC), FINISHED, FAILED],
    [On("drafting", Replied, to="reviewing"), On("reviewing", Replied, to="finished"), SAFE],
)
PARENT = machine(
    "parent",
    [
        State("planning", enter=WRITER),
        State("first", enter=StartChild("kid", id="one")),
        State("second", enter=StartChild("kid", id="two")),
        FINISHED,
        FAILED,
    ],
    [
        On("planning", Replied, to="first"),
        On("first", "done.invoke.one", to="second"),
        On("second", "done.invoke.two", to="finished"),
        SAFE,
    ],
)
GRANDPARENT = machine(
    "grandparent",
    [State("delegating", enter=StartChild("parent", id="p")), FINISHED, FAILED],
    [On("delegating", "done.invoke.p", to="finished"), SAFE],
)
