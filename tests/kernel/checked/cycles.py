"""Cycles without a bound."""

from __future__ import annotations

from moothall.agents.ask import Replied, Returned, days, minutes, question
from moothall.kernel.effects import Alarm, Send
from moothall.kernel.events import Answered, Done, ExecutionFailed, Exhausted, Expired, GaveUp
from moothall.kernel.machine import Budget
from moothall.kernel.nodes import Final, History, On, Parallel, State, always, anywhere, otherwise
from tests.kernel.checked.words import (
    ASK,
    ASK_UNTIL,
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    SEARCH,
    WRITER,
    Call,
    Calling,
    Came,
    Late,
    Paused,
    Redirected,
    Resumed,
    Ticked,
    Went,
    bad,
    broken,
    good,
    keep,
    keep_and_call,
    machine,
    note,
    urgent,
)

CYCLES = [
    broken(
        machine(
            "drafting and reviewing for ever",
            [State("drafting", enter=Call()), State("reviewing", enter=Call()), FINISHED, FAILED],
            [
                On("drafting", Returned, to="reviewing"),
                On("reviewing", Returned, to="finished", when=good),
                On("reviewing", otherwise, to="drafting"),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "drafting"),
    ),
    broken(
        machine(
            "a state that enters itself again",
            [State("trying", enter=Calling()), FINISHED, FAILED],
            [
                On("trying", Returned, to="finished", when=good),
                On("trying", Returned, to="trying"),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "trying"),
    ),
    broken(
        machine(
            "a retry without an end",
            [State("calling", enter=Call()), FINISHED, FAILED],
            [On("calling", Returned, to="finished"), On("calling", GaveUp, to="calling")],
        ),
        ("unbounded-cycle", "calling"),
        ("unreachable", "failed"),
    ),
    broken(
        machine(
            "a retry in a state that is bounded at the wrong place",
            [State("calling", enter=Call()), State("pausing", max_visits=3, enter=Call()), FINISHED, FAILED],
            [
                On("calling", Returned, to="pausing"),
                On("pausing", Returned, to="finished"),
                On("calling", GaveUp, to="calling"),
                On("pausing", GaveUp, to="failed"),
            ],
        ),
        ("unbounded-cycle", "calling"),
    ),
    broken(
        machine(
            "from inside a compound state out and in again",
            [
                State("outer", [State("one", enter=Call()), State("two", enter=Call())]),
                State("other", enter=Call()),
                FINISHED,
                FAILED,
            ],
            [
                On("one", Returned, to="two"),
                On("two", Returned, to="other"),
                On("other", Returned, to="outer"),
                On("other", Went, to="finished"),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "outer"),
    ),
    broken(
        machine(
            "a row around a state that leads back into it",
            [State("outer", [State("one", enter=Call()), State("two", enter=Call())]), FINISHED, FAILED],
            [
                On("one", Returned, to="two"),
                On("two", Returned, to="finished"),
                On("outer", GaveUp, to="outer"),
                On("outer", Went, to="failed"),
            ],
        ),
        ("unbounded-cycle", "outer"),
    ),
    broken(
        machine(
            "a region that goes round by itself",
            [
                Parallel(
                    "both",
                    [
                        State("left", [State("l1", enter=Call()), State("l2", enter=Call())]),
                        State("right", [State("r1", enter=ASK)]),
                    ],
                ),
                FINISHED,
                FAILED,
            ],
            [On("l1", Returned, to="l2"), On("l2", Returned, to="l1"), On("r1", Answered, to="finished"), SAFE],
        ),
        ("unbounded-cycle", "l1"),
    ),
    broken(
        machine(
            "a row without a target that feeds itself",
            [State("working", enter=Call()), FINISHED, FAILED],
            [
                On("working", Returned, to="finished", when=good),
                On("working", Returned, do=Call()),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "working"),
    ),
    broken(
        machine(
            "a row without a target whose function wants the next call",
            [State("working", enter=Call()), FINISHED, FAILED],
            [
                On("working", Returned, to="finished", when=good),
                On("working", Returned, do=keep_and_call, emits={Call: 1}),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "working"),
    ),
    broken(
        machine(
            "a question that is asked again when nobody answers",
            [State("asking", enter=ASK_UNTIL), FINISHED],
            [On("asking", Answered, to="finished"), On("asking", Expired, to="asking")],
        ),
        ("unbounded-cycle", "asking"),
    ),
    broken(
        machine(
            "an alarm that sets itself again",
            [State("sleeping", enter=Alarm(Ticked(), 60)), FINISHED],
            [On("sleeping", Ticked, to="sleeping"), On("sleeping", Went, to="finished")],
        ),
        ("unbounded-cycle", "sleeping"),
    ),
    broken(
        machine(
            "an event that the run sends to itself",
            [State("here", enter=Send(Ticked())), State("there", enter=Send(Ticked())), FINISHED],
            [On("here", Ticked, to="there"), On("there", Ticked, to="here"), On("there", Went, to="finished")],
        ),
        ("unbounded-cycle", "here"),
    ),
    broken(
        machine(
            "an end inside that begins again",
            [State("outer", [State("inner", enter=Call()), Final("over")]), FINISHED, FAILED],
            [
                On("inner", Returned, to="over"),
                On("outer", Done, to="outer"),
                On("inner", Went, to="finished"),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "outer"),
    ),
    broken(
        machine(
            "a way back by history",
            [
                State("outer", [State("one", enter=Call()), State("two", enter=Call()), History("back", "one")]),
                State("mending", enter=Call()),
                FINISHED,
                FAILED,
            ],
            [
                On("one", Returned, to="two"),
                On("two", Returned, to="finished"),
                On("outer", GaveUp, to="mending"),
                On("mending", Returned, to="back"),
                On("mending", GaveUp, to="failed"),
            ],
        ),
        ("unbounded-cycle", "one"),
    ),
    broken(
        machine(
            "a failure around everything that leads to something that may fail",
            [State("working", enter=Call()), State("apologising", enter=Call()), FINISHED],
            [
                On("working", Returned, to="finished"),
                On("apologising", Returned, to="finished"),
                On(anywhere, GaveUp, to="apologising"),
            ],
        ),
        ("unbounded-cycle", "apologising"),
    ),
    broken(
        machine(
            "a full state that is tried again and again",
            [State("working", enter=Call()), State("checking", enter=Call(), max_visits=2), FINISHED, FAILED],
            [
                On("working", Returned, to="checking"),
                On("checking", Returned, to="finished"),
                On(anywhere, Exhausted, to="working"),
                SAFE,
            ],
        ),
        ("unbounded-cycle", "working"),
    ),
    broken(
        machine(
            "a broken move that is done again",
            [State("working", enter=keep), FINISHED],
            [On("working", ExecutionFailed, to="working"), On("working", Went, to="finished")],
        ),
        ("unbounded-cycle", "working"),
    ),
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
        ("unbounded-cycle", "drafting"),
        why="a critic who is never content keeps the writer busy for ever",
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
        ("no-otherwise", "planning on Replied"),
        ("unbounded-cycle", "drafting"),
        why="the bounded row leads into the cycle and is not part of it",
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
        ("unbounded-cycle", "drafting"),
        why="the bounded row leaves the cycle and is not part of it",
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
        ("unbounded-cycle", "reviewing"),
        why="drafting and reviewing are bounded, reviewing and searching are not",
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
        ("unbounded-cycle", "planning"),
        why="the cycle leaves the team and comes back into it",
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
        ("unbounded-cycle", "drafting"),
        why="drafting goes to itself, and nothing counts how often",
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
        ("unbounded-cycle", "team"),
        why="a row to the team begins it anew",
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
        ("unbounded-cycle", "right_asking"),
        why="the left loop has a bound, the right one has none",
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
        ("unbounded-cycle", "left_asking"),
        ("unbounded-cycle", "right_asking"),
        why="the visits of gathering are bounded, and the loops inside never leave it",
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
        ("unbounded-cycle", "planning"),
        why="the cycle goes through the end of the team",
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
        ("unbounded-cycle", "gathering"),
        why="fan out, join, judge, and again without a bound",
    ),
    broken(
        machine(
            "try_try_again",
            [State("drafting", enter=WRITER), FINISHED],
            [On("drafting", Replied, to="finished"), On("drafting", GaveUp, to="drafting")],
        ),
        ("unbounded-cycle", "drafting"),
        why="a writer who always gives up is asked for ever",
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
        ("unbounded-cycle", "apologising"),
        why="apologising asks too, and when that gives up the row takes it back to itself",
    ),
    broken(
        machine(
            "reminding_for_ever",
            [State("approving", enter=question("Send?", within=days(2))), FINISHED],
            [On("approving", Answered, to="finished"), On("approving", Expired, to="approving")],
        ),
        ("unbounded-cycle", "approving"),
        why="a person who never answers is asked every two days for ever",
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
        ("unbounded-cycle", "salvaging"),
        why="when drafting is spent, each reply in salvaging ends in Exhausted, which leads to salvaging again",
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
        ("unbounded-cycle", "salvaging"),
        why="salvaging is never left, and each Exhausted asks the critic again",
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
        ("unbounded-cycle", "salvaging"),
        why="salvaging wants a call that the budget does not cover either, and so hears Exhausted again",
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
        ("unbounded-cycle", "drafting"),
        why="when the bounded row is spent, otherwise goes the same way",
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
        ("unbounded-cycle", "planning"),
        why="when the short way back is spent, the long one is open for ever",
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
        ("unbounded-cycle", "drafting"),
        why="of two rows for the same way back only one has a bound",
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
        ("paced-cycle", "drafting"),
        why="a person may redirect the run as often as they like",
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
        ("paced-cycle", "working"),
        why="each break ends where the team stood, which asks the writer again",
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
        ("unbounded-cycle", "researching"),
        why="the row does not leave researching, but it calls the tool again",
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
        ("unbounded-cycle", "working"),
        why="the visits of the team are bounded, and the cycle never leaves it",
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
        ("paced-cycle", "working"),
        why="an internal row does not leave the team, so the bound on its visits does not count it",
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
        ("unbounded-cycle", "reviewing"),
        why="the visits of drafting are bounded, those of searching are not",
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
        ("unbounded-cycle", "gathering"),
        why="a row of the left region begins both regions anew",
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
        ("paced-cycle", "one"),
        why="the chord from three to one has a bound, the circle of six has none",
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
        ("unbounded-cycle", "working"),
        why="the outer loop has a bound, the inner one has none",
    ),
    broken(
        machine(
            "alarm_that_rings_for_ever",
            [State("drafting", enter=(WRITER, Alarm(Late(), minutes(5)))), FINISHED, FAILED],
            [On("drafting", Replied, to="finished"), On("drafting", Late, to="drafting"), SAFE],
        ),
        ("unbounded-cycle", "drafting"),
        why="a writer who is always late is asked anew every five minutes",
    ),
    broken(
        machine(
            "a person who says no for ever",
            [State("drafting", enter=Call()), State("approving", enter=ASK), FINISHED, FAILED],
            [
                On("drafting", Returned, to="approving"),
                On("approving", Answered, to="finished", when=good),
                On("approving", otherwise, to="drafting"),
                SAFE,
            ],
        ),
        ("paced-cycle", "drafting"),
    ),
    broken(
        machine(
            "a message that begins again",
            [State("outer", [State("one"), State("two")]), FINISHED],
            [On("one", Went, to="two"), On("two", Went, to="finished"), On("outer", Ticked, to="outer")],
        ),
        ("paced-cycle", "outer"),
    ),
    broken(
        machine(
            "a region that a message turns round",
            [
                Parallel("both", [State("left", [State("l1"), State("l2")]), State("right", [State("r1")])]),
                FINISHED,
            ],
            [On("l1", Ticked, to="l2"), On("l2", Ticked, to="l1"), On("r1", Went, to="finished")],
        ),
        ("paced-cycle", "l1"),
    ),
    broken(
        machine(
            "a call from outside the cycle drives it once only",
            [State("outer", [State("one"), State("two")], enter=Call()), FINISHED, FAILED],
            [
                On("one", Returned, to="two"),
                On("two", Went, to="one"),
                On("two", Ticked, to="finished"),
                SAFE,
            ],
        ),
        ("paced-cycle", "one"),
    ),
    broken(
        machine(
            "two rows on always",
            [State("here"), State("there"), FINISHED],
            [
                On("here", always, to="there"),
                On("there", always, to="finished", when=good),
                On("there", always, to="here"),
            ],
        ),
        ("eventless-cycle", "here"),
    ),
    broken(
        machine(
            "a row on always that enters its own state",
            [State("here"), FINISHED],
            [On("here", always, to="here", when=good), On("here", Went, to="finished")],
        ),
        ("eventless-cycle", "here"),
    ),
    broken(
        machine(
            "a row on always without a target",
            [State("here"), FINISHED],
            [On("here", always, do=keep, when=good), On("here", Went, to="finished")],
        ),
        ("eventless-cycle", "here"),
    ),
    broken(
        machine(
            "a row on always around its target",
            [State("outer", [State("one"), State("two")]), FINISHED],
            [
                On("one", Went, to="two"),
                On("two", Went, to="finished"),
                On("outer", always, to="two", when=good),
            ],
        ),
        ("eventless-cycle", "two"),
    ),
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
        ("eventless-cycle", "routing"),
        ("no-end", "routing"),
        why="routing and weighing follow each other without waiting",
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
        ("eventless-cycle", "routing"),
        why="as long as the guard holds nothing ever waits",
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
        ("eventless-cycle", "spinning"),
        ("no-end", "spinning"),
        why="the row needs no event and does not leave its state, so it is taken again at once",
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
        ("eventless-cycle", "spinning"),
        why="entered again and again as long as the guard holds",
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
        ("unbounded-cycle", "team"),
        why="the team is done as soon as it begins, and that begins it again",
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
        ("eventless-cycle", "team"),
        why="the cycle leaves the team and enters it again, and never waits",
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
        ("eventless-cycle", "right_routing"),
        why="the right region turns without an event while the left one waits",
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
        ("eventless-cycle", "routing"),
        why="weighing has a bound, sorting has none",
    ),
]
