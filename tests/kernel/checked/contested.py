"""Regions that write the same key, or do not say what they write."""

from __future__ import annotations

from typing import Any

from moothall.agents.ask import Replied
from moothall.kernel.events import Done
from moothall.kernel.nodes import Final, On, Parallel, State
from tests.kernel.checked.words import (
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    WRITER,
    Ticked,
    Went,
    both_regions,
    broken,
    keep,
    machine,
    note,
    regions,
    two_regions,
)


def writes_draft(data: Any, event: Any) -> Any:
    return data


writes_draft.writes = ("draft",)  # type: ignore[attr-defined]


CONTESTED = [
    broken(
        machine(
            "two rows that write one key",
            two_regions(),
            both_regions(
                On("l1", Went, to="l2", do=keep, writes=["draft", "left"]),
                On("r1", Ticked, to="r2", do=keep, writes=["draft"]),
            ),
        ),
        ("contested-key", "both"),
    ),
    broken(
        machine(
            "an entry and a row that write one key",
            [
                Parallel(
                    "both",
                    [
                        State("left", [State("l1", enter=writes_draft), Final("l2")]),
                        State("right", [State("r1"), Final("r2")]),
                    ],
                ),
                FINISHED,
            ],
            both_regions(On("l1", Went, to="l2"), On("r1", Ticked, to="r2", do=keep, writes=["draft"])),
        ),
        ("contested-key", "both"),
    ),
    broken(
        machine(
            "regions that do not say what they write",
            two_regions(),
            both_regions(On("l1", Went, to="l2", do=keep), On("r1", Ticked, to="r2", do=keep)),
        ),
        ("undeclared-writes", "both"),
    ),
    broken(
        machine(
            "one region that does not say what it writes",
            two_regions(),
            both_regions(On("l1", Went, to="l2", do=keep), On("r1", Ticked, to="r2", do=keep, writes=["draft"])),
        ),
        ("undeclared-writes", "both"),
    ),
    broken(
        machine(
            "regions inside a region",
            [
                State(
                    "outer",
                    [
                        Parallel(
                            "both",
                            [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])],
                        ),
                    ],
                ),
                FINISHED,
            ],
            [
                On("l1", Went, to="l2", do=keep, writes=["draft"]),
                On("r1", Ticked, to="r2", do=keep, writes=["draft"]),
                On("both", Done, to="finished"),
            ],
        ),
        ("contested-key", "both"),
    ),
    broken(
        regions(
            "same_key",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=keep, writes=["draft"]),
        ),
        ("contested-key", "gathering"),
        why="both regions write draft, and the last one wins",
    ),
    broken(
        regions(
            "one_key_of_many",
            On("left_asking", Replied, to="left_done", do=keep, writes=["topic", "draft"]),
            On("right_asking", Replied, to="right_done", do=keep, writes=["draft", "notes"]),
        ),
        ("contested-key", "gathering"),
        why="both regions write draft among others",
    ),
    broken(
        regions(
            "first_and_third",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=note, writes=["notes"]),
            On("third_asking", Replied, to="third_done", do=keep, writes=["draft"]),
            more=[State("third", [State("third_asking", enter=WRITER), Final("third_done")])],
        ),
        ("contested-key", "gathering"),
        why="the first region and the third write draft",
    ),
    broken(
        regions(
            "one_side_silent",
            On("left_asking", Replied, to="left_done", do=keep, writes=["draft"]),
            On("right_asking", Replied, to="right_done", do=keep),
        ),
        ("undeclared-writes", "gathering"),
        why="the right row changes the data and does not say what it writes",
    ),
    broken(
        regions(
            "both_silent",
            On("left_asking", Replied, to="left_done", do=keep),
            On("right_asking", Replied, to="right_done", do=note),
        ),
        ("undeclared-writes", "gathering"),
        why="neither row says what it writes",
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
        ("undeclared-writes", "gathering"),
        why="what the left region does when it is entered changes the data as well, and nothing says what",
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
        ("contested-key", "gathering"),
        why="the row deep inside the left region writes what the right one writes",
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
        ("contested-key", "gathering"),
        why="far, inside the left region, writes notes, and so does the right region",
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
        ("contested-key", "gathering"),
        why="the row that takes the end of the team belongs to the left region too",
    ),
]
