"""Machines whose costs were counted by hand."""

from __future__ import annotations

from moothall.agents.ask import AskAgent, Replied, ask, days, question, yes
from moothall.analysis.certify import Certificate
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Answered, Done, Exhausted, Expired, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, On, State, always, anywhere, otherwise
from tests.kernel.checked.words import (
    CRITIC,
    FAILED,
    FINISHED,
    SAFE,
    WRITER,
    Came,
    Counted,
    Paused,
    Redirected,
    Resumed,
    Went,
    Work,
    good,
    keep,
    machine,
    note,
    regions,
    spread,
)

COUNTED = [
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
