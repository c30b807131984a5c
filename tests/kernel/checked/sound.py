"""Machines about which there is nothing to say."""

from __future__ import annotations

from moothall.agents.ask import Replied, Returned, ask, call, days, hours, minutes, question, yes
from moothall.analysis.certify import Certificate
from moothall.kernel.effects import Alarm, Send, StartChild
from moothall.kernel.events import Answered, Cancelled, Done, Exhausted, Expired, GaveUp
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
    Good,
    Judged,
    Late,
    Paused,
    Praised,
    Redirected,
    Resumed,
    Ticked,
    Went,
    bad,
    both_regions,
    good,
    keep,
    keep_and_call,
    machine,
    note,
    regions,
    two_regions,
    urgent,
)

SOUND = [
    Good(machine("one step", [State("first"), FINISHED], [On("first", Went, to="finished")])),
    Good(machine("an end at once", [FINISHED], [])),
    Good(
        machine(
            "an article",
            [
                State("drafting", enter=Calling()),
                State("reviewing", enter=Calling()),
                State("approving", enter=ASK_UNTIL),
                Final("published"),
                Final("shelved"),
                FAILED,
            ],
            [
                On("drafting", Returned, to="reviewing", do=keep),
                On("reviewing", Returned, to="approving", when=good),
                On("reviewing", Returned, to="drafting", do=keep, at_most=3),
                On("reviewing", otherwise, to="approving"),
                On("approving", Answered, to="published", when=good),
                On("approving", otherwise, to="shelved"),
                SAFE,
            ],
            budget=Budget(usd=0.5),
        )
    ),
    Good(
        machine(
            "a cycle that a state bounds",
            [State("drafting", enter=Call(), max_visits=3), State("reviewing", enter=Call()), FINISHED, FAILED],
            [
                On("drafting", Returned, to="reviewing"),
                On("reviewing", Returned, to="finished", when=good),
                On("reviewing", otherwise, to="drafting"),
                On(anywhere, Exhausted, to="finished"),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "a person helps when something fails",
            [State("working", enter=Call()), State("asking", enter=ASK), FINISHED, FAILED],
            [
                On("working", Returned, to="finished"),
                On("asking", Answered, to="failed"),
                On(anywhere, GaveUp, to="asking"),
            ],
        )
    ),
    Good(
        machine(
            "a retry with an end",
            [State("calling", enter=Call()), FINISHED, FAILED],
            [
                On("calling", Returned, to="finished"),
                On("calling", GaveUp, to="calling", at_most=2),
                On("calling", GaveUp, to="failed"),
            ],
        )
    ),
    Good(
        machine(
            "an inner row keeps the outer one from going round",
            [State("outer", [State("one", enter=Call()), State("two", enter=Call())]), FINISHED, FAILED],
            [
                On("one", Returned, to="finished"),
                On("two", Returned, to="finished"),
                On("two", GaveUp, to="failed"),
                On("outer", GaveUp, to="two"),
            ],
        )
    ),
    Good(
        machine(
            "messages may be kept as they come",
            [State("listening", enter=ASK), FINISHED],
            [On("listening", Went, do=keep), On("listening", Answered, to="finished")],
        ),
        bounded=False,
    ),
    Good(
        machine(
            "regions that both end",
            two_regions(),
            both_regions(
                On("l1", Went, to="l2", do=keep, writes=["left"]), On("r1", Ticked, to="r2", do=keep, writes=["right"])
            ),
        )
    ),
    Good(
        machine(
            "the first region to answer wins, and both may write the answer",
            [
                Parallel(
                    "both", [State("left", [State("l1", enter=Call())]), State("right", [State("r1", enter=Call())])]
                ),
                FINISHED,
                FAILED,
            ],
            [
                On("l1", Returned, to="finished", do=keep, writes=["answer"]),
                On("r1", Returned, to="finished", do=keep, writes=["answer"]),
                SAFE,
            ],
        )
    ),
    Good(
        machine(
            "a watching region need not end",
            [
                Parallel("both", [State("watching"), State("right", [State("r1", enter=Call())])]),
                FINISHED,
                FAILED,
            ],
            [On("watching", Went, to="failed"), On("r1", Returned, to="finished"), SAFE],
        )
    ),
    Good(
        machine(
            "an end inside goes on outside",
            [State("outer", [State("inner"), Final("over")]), FINISHED],
            [On("inner", Went, to="over"), On("outer", Done, to="finished")],
        )
    ),
    Good(
        machine(
            "history with a bound",
            [
                State(
                    "outer", [State("one", enter=Call()), State("two", enter=Call()), History("back", "one", deep=True)]
                ),
                State("mending", enter=Call()),
                FINISHED,
                FAILED,
            ],
            [
                On("one", Returned, to="two"),
                On("two", Returned, to="finished"),
                On("outer", GaveUp, to="mending"),
                On("mending", Returned, to="back", at_most=2),
                On("mending", otherwise, to="failed"),
                On("mending", GaveUp, to="failed"),
            ],
        )
    ),
    Good(
        machine(
            "a choice with a last resort",
            [State("choosing"), FINISHED, FAILED],
            [On("choosing", always, to="finished", when=good), On("choosing", always, to="failed")],
        )
    ),
    Good(
        machine(
            "a fan of answers with a bound",
            [State("gathering", enter=[Call(), Call(), Call()]), FINISHED, FAILED],
            [
                On("gathering", Returned, to="finished", when=good),
                On("gathering", Returned, do=keep_and_call, emits={Call: 1}, at_most=4),
                On("gathering", Returned, do=keep),
                SAFE,
            ],
        ),
        bounded=False,
    ),
    Good(
        machine(
            "cancelling may clean up",
            [State("working", enter=Call()), State("cleaning", enter=Call()), FINISHED, FAILED],
            [
                On("working", Returned, to="finished"),
                On("cleaning", Returned, to="failed"),
                On(anywhere, Cancelled, to="cleaning"),
                SAFE,
            ],
        ),
        bounded=False,
    ),
    Good(
        machine(
            "alarms that come once",
            [State("waiting", enter=[ASK, Alarm(Ticked(), 60)]), FINISHED, FAILED],
            [On("waiting", Answered, to="finished"), On("waiting", Ticked, to="failed")],
        )
    ),
    Good(
        machine(
            "a wildcard after the rest",
            [State("first"), FINISHED, FAILED],
            [On("first", Went, to="finished", when=good), On("first", "*", to="failed")],
        )
    ),
    Good(
        machine(
            "an event that the run sends to itself once",
            [State("here", enter=Send(Ticked())), State("there"), FINISHED],
            [On("here", Ticked, to="there"), On("there", Went, to="finished")],
        )
    ),
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
