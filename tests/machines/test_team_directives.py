"""What a reply of a persona directs: exactly what its structured part says, or nothing with a reason."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.machines.team.directives import (
    KEYS,
    STATUSES,
    TRANSITIONS,
    USER,
    Directive,
    Unusable,
    directive,
)

VECTORS = Path(__file__).parents[3] / "shared" / "team" / "directives.json"
TEAM = ("CEO", "CFO", "CMO", "GameDesigner", "LeadEngineer")


def vectors() -> list[Any]:
    if not VECTORS.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason="the shared vectors are not here"))]
    return [pytest.param(vector, id=vector["id"]) for vector in json.loads(VECTORS.read_text("utf-8"))]


def as_meant(reply: Any) -> Any:
    """The reply of a vector: in numeric fields the texts NaN and Infinity stand for those floats."""
    if isinstance(reply, dict) and reply.get("confidence") in ("NaN", "Infinity"):
        return {**reply, "confidence": float(reply["confidence"])}
    return reply


@pytest.mark.covers("T17", "T44", "T45", "T47", "T48")
@pytest.mark.parametrize("vector", vectors())
def test_a_vector_of_the_team_comes_out_as_expected(vector: dict[str, Any]) -> None:
    got = directive(as_meant(vector["reply"]), allowed=vector["allowed"], accepts_user=vector["accepts_user"])
    expect = vector["expect"]
    if "unusable" in expect:
        assert isinstance(got, Unusable)
        assert got.reason in ([expect["unusable"]] if isinstance(expect["unusable"], str) else expect["unusable"])
        assert got.message
    else:
        assert isinstance(got, Directive)
        assert (got.event, got.next_agent) == (expect["event"], expect["next_agent"])
        assert got.promise == expect.get("promise", got.promise)


PROMISES = (
    "I'll hand off to the CFO.",
    "I’ll hand this off to the CFO.",
    "I will hand this over to the Game Designer.",
    "I'm handing off to the CFO.",
    "I am now handing this to LeadEngineer.",
    "Handing off to the CFO.",
    "Handing this over to the lead engineer for a feasibility check.",
    "Passing this on to the CMO.",
    "I'm passing this along to the art director.",
    "I pass this to the CFO now.",
    "Let me bring in the CFO.",
    "Let me bring the CFO in.",
    "Let me get the CFO involved.",
    "Let's bring in the Lead Engineer here.",
    "Let's loop in the CFO before we go further.",
    "I'm looping in marketing.",
    "Looping in the CFO.",
    "I'll loop the CFO in.",
    "I'd like to bring in the CFO for this.",
    "I would like to hand this to the CEO.",
    "Time to bring in the CFO.",
    "I am going to hand this to the CFO.",
    "We're going to pass it to the engineers.",
    "I'll transfer this to the CFO.",
    "Transferring to the CFO.",
    "I'm forwarding this to the CMO.",
    "I'll send this over to the CFO.",
    "I'll escalate this to the CEO.",
    "Escalating to the CEO.",
    "I'm delegating this to the Lead Engineer.",
    "I'll route this to finance.",
    "I'll turn this over to the CFO.",
    "Over to the CFO.",
    "Over to you, CFO.",
    "Okay, over to the CFO for the numbers.",
    "Good concept. Now over to the Lead Engineer!",
    "Approved. Passing to CEO.",
    "The concept is sound, so I'm handing it to the CFO.",
    "This isn't my field, so I'll hand off to the CFO.",
    "I can't judge the costs; I'll bring in the CFO.",
    "I don't know the price. Let me pull in the CFO.",
    "The CFO will take it from here.",
    "CFO, please take it from here.",
    "The Lead Engineer takes over from here.",
    "This now goes to the CFO.",
    "This goes back to the Game Designer.",
    "The concept is now being handed to the CFO.",
    "I've handed this to the CFO.",
    "I have just passed this on to the CMO.",
    "I'll ask the CFO to review the budget.",
    "I'll have the CFO check the numbers.",
    "Let the numbers speak: I'm bringing in the CFO.",
    "I'll leave this to the CFO.",
    "I'm calling in the Lead Engineer.",
    "I will now hand off.",
    "I'm handing it off now.",
    "**Handing off to CFO** for financial analysis.",
    "Which budget? I'll bring in the CFO to find out.",
    "I hereby hand this over to the CEO.",
    "And now I'll hand things over to the CMO, who knows the market.",
    "Handing off to the CFO, who will check the numbers.",
    "I need to bring in the CFO on this.",
    "Let me pass the baton to the Game Designer.",
    "I'm going to involve the Lead Engineer.",
    "Sounds good - handing over to game_designer.",
    "I'll be handing this to the CFO next.",
    "I'll refer this to legal.",
    "Bringing in the CFO to discuss budget implications.",
    "I'll go ahead and hand this to the CFO.",
    "Let me get the CFO.",
    "I'd better bring in the CFO.",
    "CFO, you're up.",
    "I will bring in the CMO to talk about launch.",
    "This is one for the CFO, I'm passing it on.",
)
NO_PROMISES = (
    "Should I hand this off to the CFO?",
    "Shall we bring in the CFO?",
    "Do you want me to hand off to the CFO?",
    "Can I hand this to the CFO?",
    "I'll hand this to the CFO, right?",
    "Why would I hand this to the CFO?",
    "Would it help if I handed this to the CFO?",
    "I will not hand this off to the CFO.",
    "I won't hand off to the CFO.",
    "I'm not handing this to the CFO yet.",
    "I am not going to bring in the CFO.",
    "Let's not bring in the CFO.",
    "Let me not hand this off to the CFO.",
    "I don't think I'll hand this to the CFO.",
    "There is no need to hand off to the CFO.",
    "No need to bring in the CFO.",
    "I'll never hand this to the CFO.",
    "I refuse to hand this to the CFO.",
    "I see no reason for handing this to the CFO.",
    "Rather than handing this to the CFO, we settle it here.",
    "Instead of bringing in the CFO, let us cut the feature.",
    "We can settle this without bringing in the CFO.",
    "I cannot hand this to the CFO.",
    "I'll hand this to nobody.",
    "The CFO handed us her numbers last week.",
    "The CEO handed this off to the CFO yesterday.",
    "Yesterday I handed the draft to the CFO.",
    "The hand-off to the CFO went well.",
    "Handing off to the CFO would be premature.",
    "Handing off to the CFO was a mistake.",
    "Handing this to the CFO means losing a week.",
    "Bringing in the CFO is an option.",
    "We talked about handing this off to the CFO.",
    "I thought about bringing in the CFO.",
    "You should hand this to the CFO.",
    "You could bring in the CFO.",
    "The user asked whether I hand this to the CFO.",
    "If the costs rise, I'll hand this to the CFO.",
    "I'll bring in the CFO if the costs rise.",
    "Unless you object, I'll hand off to the CFO.",
    "I could hand this to the CFO.",
    "I might bring in the CFO later.",
    "I can hand this to the CFO.",
    "I usually hand such things to the CFO.",
    "Before I hand this to the CFO, I want to check the scope.",
    "When I hand this to the CFO, she will ask for numbers.",
    'The CEO said: "I\'ll hand this to the CFO."',
    "The button reads “Handing off to CFO”.",
    "The template says `I'll hand off to the CFO`.",
    "```\nI'll hand off to the CFO\n```",
    "> I'll hand off to the CFO.\n\nThat was last month.",
    "The CEO will hand this to the CFO next week.",
    "The CFO brings in 2 million a year.",
    "Let me bring in some numbers.",
    "I'll hand out the flyers.",
    "Let me bring up one more point.",
    "I'll pass on that idea.",
    "I'll send the level design through another iteration.",
    "Let us look at the numbers again.",
    "The CFO is on vacation.",
    "I agree with the CFO.",
    "Players hand over coins to the merchant.",
    "The player hands the key to the guard.",
    "I'll take the CFO's numbers into account.",
    "I'm giving the hero a sword.",
    "The next level brings in a dragon.",
    "I wonder whether I'll hand this to the CFO.",
    "The CFO's hand-off document is attached.",
    "I suggest handing this to the CFO.",
    "What if I hand this to the CFO?",
    "Hand-offs to the CFO take a day.",
    "I'd hand this to the CFO, but the numbers are missing.",
    "We never hand off to the CFO on Fridays.",
    "My plan stays with me; the CFO stays out of it.",
    "I'm giving this to you as a draft.",
    "Let me get the CFO numbers right.",
    "I was about to bring in the CFO.",
    "Handing work to the CFO without numbers never ends well.",
    "Handing off to the CFO? Not yet.",
    "I'll keep the CFO informed.",
    "",
    "   ",
    '{"transition": "HANDOFF_TO_AGENT", "next_agent": "CFO"}',
)


@pytest.mark.parametrize("content", PROMISES)
def test_a_statement_of_handing_on_is_a_promise(content: str) -> None:
    assert directive({"content": content}, allowed=TEAM) == Directive("CONTINUE", None, True)


@pytest.mark.parametrize("content", NO_PROMISES)
def test_a_question_a_denial_a_mention_and_a_quotation_are_no_promise(content: str) -> None:
    assert directive({"content": content}, allowed=TEAM) == Directive("CONTINUE", None, False)


def test_with_a_directive_prose_promises_nothing() -> None:
    reply = {"content": "I'll hand off to the CFO.", "transition": "HANDOFF_TO_AGENT", "next_agent": "CFO"}
    assert directive(reply, allowed=TEAM) == Directive("HANDOFF_TO_AGENT", "CFO", False)


HAND = {"content": "x", "transition": "HANDOFF_TO_AGENT", "next_agent": "CFO"}
UNUSABLE: tuple[tuple[object, str], ...] = (
    ("I'll hand off", "malformed"),
    ([], "malformed"),
    (3, "malformed"),
    ({"content": None}, "malformed"),
    ({"content": 3}, "malformed"),
    ({"content": ["x"]}, "malformed"),
    ({**HAND, "next_agent": {"name": "CFO"}}, "malformed"),
    ({**HAND, "next_agent": ["CFO"]}, "malformed"),
    ({**HAND, "transition": True}, "malformed"),
    ({**HAND, "approval_status": 1}, "malformed"),
    ({"content": "x", "transition": "REQUEST_REWORK", "rework_reason": ["y"]}, "malformed"),
    ({"content": "x", "next-agent": "CFO"}, "unknown_key"),
    ({"content": "x", "NEXT_AGENT": "CFO"}, "unknown_key"),
    ({"content": "x", "next agent": "CFO"}, "unknown_key"),
    ({"content": "x", "approvalStatus": "APPROVED"}, "unknown_key"),
    ({"content": "x", "Rework-Reason": "y"}, "unknown_key"),
    ({"content": "x", " transition ": "HANDOFF_TO_AGENT"}, "unknown_key"),
    ({**HAND, "Confidence": 0.5}, "unknown_key"),
    ({**HAND, "transition": "HANDOFF"}, "unknown_value"),
    ({**HAND, "transition": ""}, "unknown_value"),
    ({**HAND, "transition": " HANDOFF_TO_AGENT"}, "unknown_value"),
    ({**HAND, "transition": "CONTINUE"}, "unknown_value"),
    ({**HAND, "approval_status": "REJECTED"}, "unknown_value"),
    ({**HAND, "approval_status": "approved"}, "unknown_value"),
    ({**HAND, "next_agent": "СFO"}, "unknown_agent"),
    ({**HAND, "next_agent": "CFO\n"}, "unknown_agent"),
    ({**HAND, "next_agent": "The CFO"}, "unknown_agent"),
    ({**HAND, "next_agent": "gamedesigner"}, "unknown_agent"),
    ({**HAND, "next_agent": USER}, "unknown_agent"),
    ({**HAND, "next_agent": None}, "missing_agent"),
    ({"content": "to the CFO", "transition": "APPROVE_AND_HANDOFF"}, "missing_agent"),
    ({"content": "Too long, cut it.", "transition": "REQUEST_REWORK"}, "missing_reason"),
    ({"content": "x", "transition": "REQUEST_REWORK", "rework_reason": "\n\t "}, "missing_reason"),
    ({"content": "x", "transition": "REQUEST_REWORK", "rework_reason": None}, "missing_reason"),
    ({**HAND, "rework_reason": "too long"}, "contradiction"),
    ({**HAND, "transition": "APPROVE_AND_HANDOFF", "approval_status": "REQUEST_REWORK"}, "contradiction"),
    (
        {"content": "x", "transition": "REQUEST_REWORK", "rework_reason": "y", "approval_status": "APPROVED"},
        "contradiction",
    ),
    ({"content": "x", "approval_status": "REQUEST_REWORK"}, "contradiction"),
    ({"content": "x", "next_agent": "nobody"}, "contradiction"),
    ({**HAND, "next_agent": ["CFO", "CMO"]}, "several"),
    ({**HAND, "next_agent": "CFO and CMO"}, "several"),
    ({**HAND, "transition": ["HANDOFF_TO_AGENT", "REQUEST_REWORK"]}, "several"),
    ({**HAND, "confidence": -0.1}, "confidence"),
    ({**HAND, "confidence": "0.5"}, "confidence"),
    ({**HAND, "confidence": True}, "confidence"),
    ({**HAND, "confidence": math.inf}, "confidence"),
    ({**HAND, "confidence": math.nan}, "confidence"),
    ({**HAND, "confidence": 10**400}, "confidence"),
    ({**HAND, "confidence": [0.5]}, "confidence"),
)


@pytest.mark.covers("T17", "T45", "T47", "T48")
@pytest.mark.parametrize(("reply", "reason"), UNUSABLE)
def test_a_reply_that_cannot_be_followed_says_of_which_class_it_is(reply: object, reason: str) -> None:
    got = directive(reply, allowed=TEAM)
    assert isinstance(got, Unusable)
    assert got.reason == reason
    assert got.message.endswith(".")


USABLE: tuple[tuple[dict[str, Any], str, str | None], ...] = (
    ({"content": ""}, "CONTINUE", None),
    ({"content": "x", "confidence": 0.3, "approval_status": "APPROVED"}, "CONTINUE", None),
    ({"content": "x", "rework_reason": None, "mood": "calm"}, "CONTINUE", None),
    ({**HAND, "rework_reason": ""}, "HANDOFF_TO_AGENT", "CFO"),
    ({**HAND, "confidence": 1}, "HANDOFF_TO_AGENT", "CFO"),
    ({**HAND, "next_agents": ["CMO"]}, "HANDOFF_TO_AGENT", "CFO"),
    ({**HAND, "transition": "APPROVE_AND_HANDOFF"}, "APPROVE_AND_HANDOFF", "CFO"),
    ({"content": "x", "transition": "REQUEST_REWORK", "rework_reason": "why"}, "REQUEST_REWORK", None),
)


@pytest.mark.covers("T17", "T44")
@pytest.mark.parametrize(("reply", "event", "agent"), USABLE)
def test_a_clear_reply_is_followed(reply: dict[str, Any], event: str, agent: str | None) -> None:
    assert directive(reply, allowed=TEAM) == Directive(event, agent)


def test_the_user_can_be_reached_where_that_is_open() -> None:
    reply = {**HAND, "next_agent": USER}
    assert directive(reply, allowed=(), accepts_user=True) == Directive("HANDOFF_TO_AGENT", USER)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from((*TEAM, *TRANSITIONS)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=12), anything, max_size=7) | anything)
def test_whatever_is_replied_it_is_followed_to_somebody_allowed_or_refused(reply: Any) -> None:
    got = directive(reply, allowed=TEAM)
    if isinstance(got, Directive):
        assert got.event in ("CONTINUE", *TRANSITIONS)
        assert (got.next_agent in TEAM) == got.event.endswith(("HANDOFF", "AGENT"))
        assert reply.get("transition") == (None if got.event == "CONTINUE" else got.event)
        assert reply.get("approval_status") in (None, *STATUSES)


@given(st.text(alphabet="I'll hand of to the CFO.?!,\n\"`>", max_size=200))
def test_no_prose_makes_a_transition(content: str) -> None:
    got = directive({"content": content}, allowed=TEAM)
    assert isinstance(got, Directive)
    assert (got.event, got.next_agent) == ("CONTINUE", None)
