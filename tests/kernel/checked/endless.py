"""States from which no way leads on, or none to an end."""

from __future__ import annotations

from moothall.agents.ask import Replied, Returned
from moothall.kernel.events import Cancelled, Done, GaveUp
from moothall.kernel.nodes import Final, History, On, Parallel, State, anywhere, otherwise
from tests.kernel.checked.words import (
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    WRITER,
    Call,
    Came,
    Judged,
    Paused,
    Resumed,
    Ticked,
    Went,
    broken,
    good,
    keep,
    machine,
    note,
)

ENDLESS = [
    broken(
        machine(
            "a state with no way out",
            [State("first"), State("stuck"), FINISHED],
            [On("first", Went, to="stuck"), On("first", Ticked, to="finished")],
        ),
        ("dead-end", "stuck"),
    ),
    broken(
        machine(
            "a state inside another with no way out",
            [State("outer", [State("inner"), State("stuck")]), FINISHED],
            [On("inner", Went, to="stuck"), On("inner", Ticked, to="finished")],
        ),
        ("dead-end", "stuck"),
    ),
    broken(
        machine(
            "cancelling is no way out",
            [State("first"), State("stuck"), FINISHED, FAILED],
            [On("first", Went, to="stuck"), On("first", Ticked, to="finished"), On(anywhere, Cancelled, to="failed")],
        ),
        ("dead-end", "stuck"),
    ),
    broken(
        machine(
            "a failure that cannot happen is no way out",
            [State("first", enter=Call()), State("stuck"), FINISHED, FAILED],
            [On("first", Returned, to="stuck"), On("first", Went, to="finished"), SAFE],
        ),
        ("dead-end", "stuck"),
    ),
    broken(
        machine(
            "an end inside that nobody notices",
            [State("outer", [State("inner"), Final("over")]), FINISHED],
            [On("inner", Went, to="over"), On("inner", Ticked, to="finished")],
        ),
        ("dead-end", "over"),
    ),
    broken(
        machine(
            "a region that never ends",
            [
                Parallel("both", [State("waiting"), State("right", [State("r1"), Final("r2")])]),
                FINISHED,
            ],
            [On("r1", Went, to="r2"), On("both", Done, to="finished")],
        ),
        ("dead-end", "waiting"),
        ("never-done", "both on Done"),
    ),
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
        ("dead-end", "limbo"),
        why="no row leaves limbo",
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
        ("no-end", "limbo"),
        ("no-otherwise", "limbo on Went"),
        why="the only row of limbo does not leave it",
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
        ("dead-end", "team_done"),
        why="when the team is done no row takes it, and nothing else can happen",
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
        ("dead-end", "left_done"),
        ("dead-end", "right_done"),
        why="both regions end, and no row takes that gathering is done",
    ),
    broken(
        machine(
            "only_the_safety_net",
            [State("drafting", enter=WRITER), State("limbo"), FINISHED, FAILED],
            [On("drafting", Replied, to="finished", when=good), On("drafting", otherwise, to="limbo"), SAFE],
        ),
        ("dead-end", "limbo"),
        why="limbo wants nothing that could give up, so the one row that could take it away never does",
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
        ("dead-end", "stuck"),
        why="stuck has no row, and gathering is left only when the right region ends",
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
        ("dead-end", "resting"),
        ("unreachable", "memory"),
        why="resting has no row, and so the memory of the team is never asked",
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
        ("dead-end", "limbo"),
        why="neither limbo nor a state around it has a row",
    ),
    broken(
        machine(
            "two states that lead to each other only",
            [State("first"), State("here"), State("there"), FINISHED],
            [
                On("first", Went, to="here", at_most=9),
                On("first", otherwise, to="finished"),
                On("here", Went, to="there"),
                On("there", Went, to="here", at_most=5),
                On("there", Went, do=keep),
            ],
        ),
        ("no-end", "here"),
    ),
    broken(
        machine(
            "a state that listens for ever",
            [State("first"), State("listening"), FINISHED],
            [On("first", Went, to="listening"), On("first", Ticked, to="finished"), On("listening", Went, do=keep)],
        ),
        ("no-end", "listening"),
    ),
    broken(
        machine(
            "a trap inside a compound state",
            [State("outer", [State("inner"), State("here"), State("there")]), FINISHED],
            [
                On("inner", Went, to="here"),
                On("inner", Ticked, to="finished"),
                On("here", Went, to="there"),
                On("there", Went, to="here"),
            ],
        ),
        ("no-end", "here"),
        ("paced-cycle", "here"),
    ),
    broken(
        machine(
            "a region that keeps its neighbour from ending",
            [
                Parallel(
                    "both",
                    [
                        State("left", [State("l1"), Final("l2")]),
                        State("right", [State("r1"), State("r2"), Final("r3")]),
                    ],
                ),
                FINISHED,
            ],
            [
                On("l1", Went, to="l2"),
                On("r1", Went, to="r3"),
                On("r1", Ticked, to="r2"),
                On("r2", Ticked, do=keep),
                On("both", Done, to="finished"),
            ],
        ),
        ("no-end", "r2"),
    ),
    broken(
        machine("a machine without a final state", [State("listening")], [On("listening", Went, do=keep)]),
        ("no-end", "a machine without a final state"),
    ),
    broken(
        machine(
            "no_end_at_all",
            [State("asking", enter=WRITER), State("telling", enter=CRITIC)],
            [
                On("asking", [Replied, GaveUp], to="telling"),
                On("telling", [Replied, GaveUp], to="asking"),
            ],
        ),
        ("no-end", "no_end_at_all"),
        ("unbounded-cycle", "asking"),
        why="the machine has no final state",
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
        ("no-end", "coming"),
        why="coming and going lead only to each other",
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
        ("no-end", "coming"),
        why="no row leaves the team",
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
        ("never-done", "gathering on Done"),
        ("no-end", "coming"),
        why="gathering is left when both regions are done, and the right one never is",
    ),
    broken(
        machine(
            "only_inner_ends",
            [State("team", [State("working"), Final("team_done")], max_visits=3), State("resting")],
            [On("working", Went, to="team_done"), On("team", Done, to="resting"), On("resting", Came, to="team")],
        ),
        ("no-end", "only_inner_ends"),
        why="the only final state ends the team, not the run",
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
        ("no-end", "end_behind_a_closed_row"),
        ("unreachable", "finished"),
        why="the only row to the end may be taken no time at all",
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
        ("no-end", "working"),
        why="from the team one comes to the break and back, and nowhere else",
    ),
]
