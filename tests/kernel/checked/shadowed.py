"""Rows that are never taken."""

from __future__ import annotations

from moothall.agents.ask import Replied, Returned
from moothall.kernel.events import Done, GaveUp
from moothall.kernel.nodes import Final, On, Parallel, State, always, anywhere, otherwise
from tests.kernel.checked.words import (
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    WRITER,
    Call,
    Came,
    Judged,
    Praised,
    Redirected,
    ReturnedLate,
    Ticked,
    Went,
    broken,
    good,
    keep,
    machine,
)

SHADOWED = [
    broken(
        machine(
            "the same event twice",
            [State("first"), FINISHED, FAILED],
            [On("first", Went, to="finished"), On("first", Went, to="failed")],
        ),
        ("shadowed", "first on Went"),
    ),
    broken(
        machine(
            "anything before something",
            [State("first"), FINISHED, FAILED],
            [On("first", "*", to="finished"), On("first", Went, to="failed", when=good)],
        ),
        ("shadowed", "first on Went"),
    ),
    broken(
        machine(
            "an event before its subclass",
            [State("first", enter=Call()), FINISHED, FAILED],
            [On("first", Returned, to="finished"), On("first", ReturnedLate, to="failed"), SAFE],
        ),
        ("shadowed", "first on ReturnedLate"),
    ),
    broken(
        machine(
            "otherwise after a row without a guard",
            [State("outer", [State("inner")]), FINISHED, FAILED],
            [On("inner", Went, to="finished"), On("inner", otherwise, to="failed")],
        ),
        ("shadowed", "inner on otherwise"),
    ),
    broken(
        machine(
            "two rows that together take all that a third names",
            [State("first"), FINISHED, FAILED],
            [
                On("first", Went, to="finished"),
                On("first", Ticked, to="finished"),
                On("first", [Went, Ticked], to="failed"),
            ],
        ),
        ("shadowed", "first on Went, Ticked"),
    ),
    broken(
        machine(
            "an event in a state that is left at once",
            [State("first"), FINISHED, FAILED],
            [On("first", Went, to="failed"), On("first", always, to="finished")],
        ),
        ("shadowed", "first on Went"),
    ),
    broken(
        machine(
            "a second row on always",
            [State("first"), FINISHED, FAILED],
            [On("first", always, to="failed"), On("first", always, to="finished", when=good)],
        ),
        ("shadowed", "first on always"),
    ),
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
        ("shadowed", "drafting on Replied"),
        why="the first row takes every reply, so the second never gets one",
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
        ("shadowed", "drafting on GaveUp"),
        why="GaveUp is error.effect, and the row for error takes all of these",
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
        ("shadowed", "waiting on Went"),
        why="the wildcard takes every event",
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
        ("shadowed", "drafting on Replied"),
        why="drafting waits for a reply, so otherwise takes it, and the row below never sees one",
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
        ("shadowed", "hearing on Praised"),
        why="Praised is a Judged, which the row above takes",
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
        ("shadowed", "drafting on GaveUp"),
        why="the first row takes GaveUp as well",
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
        ("shadowed", "waiting on Went, Came"),
        why="the two rows above take one event each, and together all of the third",
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
        ("shadowed", "drafting on Replied"),
        why="a guard is pure: where it holds the first row is taken, where it does not the second is not either",
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
        ("shadowed", "drafting on otherwise"),
        why="a reply is all that drafting waits for or names above, and the first row takes every one",
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
        ("shadowed", "routing on Went"),
        why="routing is left as soon as it is entered, so it never hears Went",
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
        ("shadowed", "team on Replied"),
        why="inner rows come first, and the only state of the team that waits takes every reply itself",
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
        ("shadowed", "reviewing on Replied"),
        why="the row above takes every reply, so the way back is never used",
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
        ("shadowed", "left_asking on Replied"),
        why="the row without a guard stands above the one with a guard",
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
        ("shadowed", "drafting on Replied"),
        why="the first row keeps every reply and stays, so the way out is never taken",
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
        ("shadowed", "* on error.effect"),
        why="both rows count anywhere and name the same event; the first takes all",
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
        ("shadowed", "drafting on Replied"),
        why="the row to polishing is never taken, so polishing is never entered",
    ),
]
