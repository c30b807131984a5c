"""Rows that are missing: for the rest of the cases, for a failure."""

from __future__ import annotations

from moothall.agents.ask import Replied, Returned, days, question, yes
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Answered, Done, Expired, GaveUp
from moothall.kernel.nodes import Final, On, Parallel, State, always, otherwise
from tests.kernel.checked.words import (
    ASK,
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    SEARCH,
    WRITER,
    Call,
    Calling,
    Paused,
    Ticked,
    Went,
    bad,
    broken,
    good,
    machine,
    urgent,
)

UNANSWERED = [
    broken(
        machine("a guard that may say no", [State("first"), FINISHED], [On("first", Went, to="finished", when=good)]),
        ("no-otherwise", "first on Went"),
    ),
    broken(
        machine(
            "two guards that may both say no",
            [State("first"), FINISHED, FAILED],
            [On("first", Went, to="finished", when=good), On("first", Went, to="failed", when=bad)],
        ),
        ("no-otherwise", "first on Went"),
    ),
    broken(
        machine(
            "a bound with nothing after it",
            [State("first", enter=ASK), FINISHED],
            [On("first", Answered, to="finished", when=good), On("first", Answered, to="first", at_most=2)],
        ),
        ("no-otherwise", "first on Answered"),
    ),
    broken(
        machine(
            "a guard in a region",
            [
                Parallel(
                    "both", [State("left", [State("l1"), Final("l2")]), State("right", [State("r1"), Final("r2")])]
                ),
                FINISHED,
            ],
            [On("l1", Went, to="l2"), On("r1", Ticked, to="r2", when=good), On("both", Done, to="finished")],
        ),
        ("no-otherwise", "r1 on Ticked"),
    ),
    broken(
        machine(
            "a choice that may choose nothing",
            [State("choosing"), FINISHED, FAILED],
            [On("choosing", always, to="finished", when=good), On("choosing", always, to="failed", when=bad)],
        ),
        ("no-otherwise", "choosing on always"),
    ),
    broken(
        machine(
            "one_guard",
            [State("reviewing", enter=CRITIC), FINISHED, FAILED],
            [On("reviewing", Replied, to="finished", when=good), SAFE],
        ),
        ("no-otherwise", "reviewing on Replied"),
        why="a reply that is not good goes nowhere",
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
        ("no-otherwise", "reviewing on Replied"),
        why="nothing says that one of the two guards holds",
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
        ("no-otherwise", "reviewing on Replied"),
        why="when the way back is spent, a reply that is not good goes nowhere",
    ),
    broken(
        machine(
            "polling_runs_out",
            [State("polling", enter=SEARCH), FINISHED, FAILED],
            [On("polling", Returned, to="polling", at_most=5), SAFE],
        ),
        ("no-otherwise", "polling on Returned"),
        ("unreachable", "finished"),
        why="after the fifth time what the tool returns goes nowhere",
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
        ("no-otherwise", "working on Replied"),
        why="the team has a row for another event, and none for the reply",
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
        ("no-otherwise", "reviewing on Replied"),
        why="an otherwise with a guard is not for every case",
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
        ("no-otherwise", "reviewing on Replied"),
        why="an otherwise that can be spent is not for every case",
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
        ("no-otherwise", "routing on always"),
        why="where neither guard holds, routing waits for nothing for ever",
    ),
    broken(
        machine(
            "guarded_join",
            [State("team", [State("working", enter=WRITER), Final("team_done")]), FINISHED, FAILED],
            [On("working", Replied, to="team_done"), On("team", Done, to="finished", when=good), SAFE],
        ),
        ("no-otherwise", "team on Done"),
        why="a team that is done and not good stays where it is",
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
        ("no-otherwise", "working on Replied"),
        why="the team's otherwise takes what rows of the team name, and they do not name the reply",
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
        ("no-otherwise", "right_asking on Replied"),
        why="the left region's otherwise does not help the right one",
    ),
    broken(
        machine(
            "no_is_no_answer",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED, Final("dropped")],
            [On("approving", Answered, to="finished", when=yes), On("approving", Expired, to="dropped")],
        ),
        ("no-otherwise", "approving on Answered"),
        why="silence is provided for, and the answer no is not",
    ),
    broken(
        machine(
            "silence_forgotten",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED, Final("dropped")],
            [On("approving", Answered, to="finished", when=yes), On("approving", Answered, to="dropped")],
        ),
        ("unhandled-failure", "approving"),
        why="the question has a deadline, and nothing says what happens when it passes",
    ),
    broken(
        machine(
            "a call that nobody minds",
            [State("working", enter=Call()), FINISHED],
            [On("working", Returned, to="finished")],
        ),
        ("unhandled-failure", "working"),
    ),
    broken(
        machine(
            "a call by an action",
            [State("outer", [State("inner", enter=Calling())]), FINISHED],
            [On("inner", Returned, to="finished")],
        ),
        ("unhandled-failure", "inner"),
    ),
    broken(
        machine(
            "a call that a row wants for the state it leads to",
            [State("first"), State("working"), FINISHED],
            [On("first", Went, to="working", do=Call()), On("working", Returned, to="finished")],
        ),
        ("unhandled-failure", "working"),
    ),
    broken(
        machine(
            "a failure that another region takes",
            [
                Parallel(
                    "both", [State("left", [State("l1", enter=Call())]), State("right", [State("r1", enter=Call())])]
                ),
                FINISHED,
            ],
            [On("l1", Returned, to="finished"), On("l1", GaveUp, to="finished"), On("r1", Returned, to="finished")],
        ),
        ("unhandled-failure", "r1"),
    ),
    broken(
        machine(
            "trusting",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished")],
        ),
        ("unhandled-failure", "drafting"),
        why="no row takes it when the writer gives up",
    ),
    broken(
        machine(
            "trusting_a_tool",
            [State("searching", enter=SEARCH), FINISHED],
            [On("searching", Returned, to="finished")],
        ),
        ("unhandled-failure", "searching"),
        why="no row takes it when the tool gives up",
    ),
    broken(
        machine(
            "otherwise_is_no_net",
            [State("drafting", enter=WRITER), FINISHED, Final("shelved")],
            [On("drafting", Replied, to="finished", when=good), On("drafting", otherwise, to="shelved")],
        ),
        ("unhandled-failure", "drafting"),
        why="otherwise takes replies, not failures that no row names",
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
        ("unhandled-failure", "reviewing"),
        why="drafting takes its own failures and not those of reviewing",
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
        ("unhandled-failure", "reviewing"),
        why="neither reviewing nor judging around it takes GaveUp",
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
        ("unhandled-failure", "right_asking"),
        why="a failure goes to the state that asked, and the right region has no row for it",
    ),
    broken(
        machine(
            "net_with_a_hole",
            [State("drafting", enter=WRITER), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="failed", when=urgent)],
        ),
        ("unhandled-failure", "drafting"),
        why="where the guard does not hold the failure is taken by nobody",
    ),
    broken(
        machine(
            "net_that_wears_out",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="drafting", at_most=2)],
        ),
        ("unhandled-failure", "drafting"),
        why="the third failure is taken by nobody",
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
        ("unhandled-failure", "reviewing"),
        why="the row asks the critic, the reply belongs to reviewing, and reviewing has no row for a failure",
    ),
    broken(
        machine(
            "trusting_a_child",
            [State("delegating", enter=StartChild("debate", id="one")), FINISHED],
            [On("delegating", "done.invoke.one", to="finished")],
        ),
        ("unhandled-failure", "delegating"),
        why="a child that fails ends in error.effect, which no row takes",
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
        ("unhandled-failure", "team"),
        why="the team asks, and when it stands in resting no row takes the failure",
    ),
]
