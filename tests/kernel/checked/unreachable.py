"""States that are never entered, and ends that never come."""

from __future__ import annotations

from moothall.agents.ask import Replied
from moothall.kernel.events import Done
from moothall.kernel.nodes import Final, History, On, Parallel, State, otherwise
from tests.kernel.checked.words import CRITIC, FAILED, FINISHED, SAFE, WRITER, Ticked, Went, broken, good, machine

UNREACHABLE = [
    broken(
        machine(
            "an orphan among flat states",
            [State("first"), State("orphan"), FINISHED],
            [On("first", Went, to="finished"), On("orphan", Went, to="finished")],
        ),
        ("unreachable", "orphan"),
    ),
    broken(
        machine(
            "an orphan inside a compound state",
            [State("outer", [State("inner"), State("orphan")]), FINISHED],
            [On("outer", Went, to="finished")],
        ),
        ("unreachable", "orphan"),
    ),
    broken(
        machine(
            "a compound orphan is named once",
            [State("first"), State("orphan", [State("one"), State("two")]), FINISHED],
            [On("first", Went, to="finished"), On("one", Went, to="two"), On("two", Went, to="finished")],
        ),
        ("unreachable", "orphan"),
    ),
    broken(
        machine(
            "a region that is always entered elsewhere than at its start",
            [
                State("first"),
                Parallel(
                    "both", [State("left", [State("l1"), State("l2")]), State("right", [State("r1"), State("r2")])]
                ),
                FINISHED,
            ],
            [On("first", Went, to=["l2", "r2"]), On("both", Went, to="finished")],
        ),
        ("unreachable", "l1"),
        ("unreachable", "r1"),
    ),
    broken(
        machine(
            "a history that nothing leads to",
            [State("outer", [State("inner"), History("back", "inner")]), FINISHED],
            [On("outer", Went, to="finished")],
        ),
        ("unreachable", "back"),
    ),
    broken(
        machine(
            "orphan",
            [State("drafting", enter=WRITER), State("polishing", enter=WRITER), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("polishing", Replied, to="finished"), SAFE],
        ),
        ("unreachable", "polishing"),
        why="no row leads to polishing",
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
        ("unreachable", "polishing"),
        ("unreachable", "printing"),
        why="printing is entered from polishing alone, and polishing from nowhere",
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
        ("unreachable", "opening"),
        why="the team is only ever entered at working, so its start is never used",
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
        ("unreachable", "spare"),
        why="no row of its region leads to spare",
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
        ("unreachable", "polishing"),
        why="the only row to polishing may be taken no time at all",
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
        ("never-done", "gathering on Done"),
        why="the right region has no end, so gathering is never done and joining never entered",
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
        ("never-done", "team on Done"),
        why="the team has no final state inside, so it is never done",
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
        ("never-done", "team on Done"),
        ("unreachable", "team_done"),
        why="nothing leads to the team's end, so the team is never done",
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
        ("unreachable", "memory"),
        why="no row leads to the history state",
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
        ("unreachable", "polishing"),
        why="polishing may be visited no time at all",
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
        ("unreachable", "gathering"),
        why="no row leads into the parallel state",
    ),
    broken(
        machine(
            "done without a final state inside",
            [State("outer", [State("inner")]), FINISHED, FAILED],
            [On("outer", Done, to="finished"), On("outer", Went, to="failed")],
        ),
        ("never-done", "outer on Done"),
    ),
    broken(
        machine(
            "done of a plain state",
            [State("first"), FINISHED, FAILED],
            [On("first", Done, to="finished"), On("first", Went, to="failed")],
        ),
        ("never-done", "first on Done"),
    ),
    broken(
        machine(
            "done of regions of which one has no end",
            [
                Parallel("both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1")])]),
                FINISHED,
                FAILED,
            ],
            [On("l1", Went, to="l2"), On("both", Done, to="finished"), On("r1", Ticked, to="failed")],
        ),
        ("never-done", "both on Done"),
    ),
]
