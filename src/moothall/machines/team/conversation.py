"""A conversation as a machine: the team file's groups and personas as nested states, and who hands to whom.

Everybody hands on by way of one state, Arbitration, which decides by data who is next. So n personas need n rows, and
not a row for every pair. Rows for what the user does stand at the top and hold everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.agents.ask import Unusable as UnusableReply
from moothall.kernel.effects import AskPerson, StartChild
from moothall.kernel.events import Answered, ChildDone, Event, Exhausted, GaveUp
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, On, State, anywhere
from moothall.machines.assent import APPROVAL
from moothall.machines.team import plans
from moothall.machines.team.definition import AWAIT_APPROVAL, Group, Limits, Roster, Team
from moothall.machines.team.directives import USER
from moothall.machines.team.floor import CALLS, GO, SUMMARISER, Floor
from moothall.machines.team.plans import WENT_ON
from moothall.machines.team.prompt import shipped_prompt
from moothall.machines.team.state import (
    ARBITRATION,
    Approve,
    AskPlan,
    CallAgent,
    CallHooks,
    CheckPlan,
    Continue,
    Conversation,
    FactRead,
    FileWritten,
    Handoff,
    HooksCalled,
    Leave,
    PlanChecked,
    ReadFact,
    Rework,
    StartLine,
    StartWorkflow,
    Summarise,
    SwitchMode,
    SwitchTo,
    UserSaid,
    WantPlan,
    WarmedUp,
    WarmUp,
    WriteFile,
)
from moothall.machines.team.summary import summary_prompt

NAME = "team"
USER_GROUP = "USER_INTERACTION"
MOST = 100
"""How many times the limit of turns a conversation may go on in all, with the user in between."""


def team_machine(team: Team, name: str, source: str) -> Machine:
    """The machine of the conversations of a team; `source` says where its prompts are found again."""
    roster = Roster(team)
    floor = Floor(roster, source)
    decide = _wanting(floor.decide, {CallHooks: 1, Summarise: 1, WarmUp: 1})
    groups = [_group(group, floor) for group in team.groups]
    if not any(group.states for group in team.groups):
        groups.append(_group(Group(USER_GROUP, states=(USER, AWAIT_APPROVAL)), floor))
    return Machine(
        name,
        data=Conversation,
        kind=NAME,
        start=USER,
        replies=[Any],
        prompts={"summarise": summary_prompt(), **{name: shipped_prompt(f"{name}.md") for name in ("speak", "plan")}},
        budget=_budget(team.limits),
        result=_result,
        states=[
            *groups,
            State(ARBITRATION, enter=decide, max_visits=team.limits.turns * MOST),
            Final("Closed"),
            Final("Limited"),
        ],
        moves=[*_rows(floor), *(On(ARBITRATION, f"{GO}{place}", to=place) for place in _places(team))],
    )


def _places(team: Team) -> tuple[str, ...]:
    return (*(persona.id for persona in team.personas), USER, AWAIT_APPROVAL)


def _group(group: Group, floor: Floor) -> State:
    asks = {
        USER: _wanting(floor.ask_user, {AskPerson: 1}),
        AWAIT_APPROVAL: _wanting(floor.ask_what_waits, {AskPerson: 1}),
    }
    asks[AWAIT_APPROVAL].decides = "Floor.ask_approval"  # runs of before ask the same thing in other words
    speak = _wanting(floor.speak, {AskAgent: 1, CallTool: CALLS, StartChild: CALLS})
    speak.child = APPROVAL.name
    return State(
        group.name,
        [
            *(State(persona, enter=speak) for persona in group.personas),
            *(State(name, enter=asks[name]) for name in group.states),
            *(_group(inner, floor) for inner in group.groups),
        ],
    )


def _rows(floor: Floor) -> list[On]:
    reads = {ReadFact: len(floor.team.sources)} if floor.team.sources else {}
    said, answered = _wanting(floor.hear_user, reads), _wanting(floor.hear_answer, reads)
    begin, drafted = {StartChild: 1}, {AskPlan: 1, CheckPlan: 1}
    waiting, most = (USER, AWAIT_APPROVAL), floor.team.limits.turns * MOST
    return [
        *(On(place, Answered, to=ARBITRATION, do=answered) for place in waiting),
        *(On(place, Approve, to=ARBITRATION, when=has_no_proposal, do=floor.approve) for place in waiting),
        On(anywhere, Approve, when=has_proposal, do=_wanting(floor.start_proposed, begin), at_most=most),
        On(anywhere, UserSaid, to=ARBITRATION, do=said),
        On(anywhere, Rework, to=ARBITRATION, do=floor.rework),
        On(anywhere, Handoff, to=ARBITRATION, do=floor.hand_off),
        On(anywhere, CallAgent, to=ARBITRATION, do=floor.call_agent),
        On(anywhere, SwitchTo, to=ARBITRATION, do=floor.switch_to),
        On(anywhere, Continue, to=ARBITRATION, do=floor.go_on),
        On(anywhere, StartLine, to=ARBITRATION, do=floor.start_line),
        On(anywhere, WantPlan, do=_wanting(plans.ask_plan, {AskPlan: 1}), at_most=most),
        On(anywhere, SwitchMode, do=floor.switch_mode, at_most=most),
        On(anywhere, StartWorkflow, do=_wanting(floor.start_beside, begin), at_most=most),
        On(anywhere, Leave, to="Closed"),
        On(
            anywhere,
            [Replied, UnusableReply, GaveUp],
            when=plans.is_draft,
            do=_wanting(plans.hear_draft, drafted),
            at_most=most,
        ),
        On(anywhere, PlanChecked, when=plans.is_checked, do=_wanting(plans.hear_check, {AskPlan: 1}), at_most=most),
        On(anywhere, Replied, to=ARBITRATION, when=is_awaited, do=_wanting(floor.hear_reply, {WriteFile: 1})),
        On(anywhere, Replied, when=is_early, do=_wanting(floor.hear_reply, {WriteFile: 1}), at_most=most),
        On(anywhere, UnusableReply, to=ARBITRATION, when=is_awaited, do=floor.hear_unusable),
        On(anywhere, [Returned, GaveUp], when=is_called, do=floor.hear_tool, at_most=most),
        On(anywhere, GaveUp, to=ARBITRATION, when=is_awaited, do=floor.hear_failure),
        On(anywhere, [Replied, GaveUp], when=is_summary, do=floor.hear_summary, at_most=most),
        On(anywhere, [ChildDone, GaveUp], do=floor.hear_beside, at_most=most),
        On(anywhere, WENT_ON, to=ARBITRATION, when=_can_go_on(floor)),
        On(anywhere, HooksCalled, do=floor.hear_hooks, at_most=most),
        On(anywhere, WarmedUp, do=floor.hear_warm, at_most=most),
        On(anywhere, FactRead, do=floor.hear_fact, at_most=most),
        On(anywhere, FileWritten, do=floor.hear_file, at_most=most),
        On(anywhere, Exhausted, to="Limited", do=floor.hear_limit),
    ]


def is_awaited(data: Conversation, event: Replied | GaveUp | UnusableReply) -> bool:
    """Whether it is the end of the ask that is under way."""
    return bool(data.asked) and event.id == data.asked and not (data.reading and isinstance(event, Replied))


def is_early(data: Conversation, event: Replied) -> bool:
    """Whether it is the reply that is awaited, and facts are not known yet by which it is decided who is next."""
    return bool(data.asked) and event.id == data.asked and bool(data.reading)


def is_summary(data: Conversation, event: Replied | GaveUp) -> bool:
    """Whether it is the end of summing up."""
    return data.summing > 0 and event.id.startswith(f"{SUMMARISER}-")


def is_called(data: Conversation, event: Returned | GaveUp) -> bool:
    """Whether it is the end of a call that whoever speaks waits for."""
    return any(call.id == event.id for call in data.calls)


def has_proposal(data: Conversation, _: Event) -> bool:
    """Whether something waits to be started, and the user is asked about it."""
    return bool(data.proposed) and data.place in (USER, AWAIT_APPROVAL)


def has_no_proposal(data: Conversation, _: Event) -> bool:
    """Whether nothing waits to be started."""
    return not data.proposed


def _can_go_on(floor: Floor) -> Callable[[Conversation, Event], bool]:
    def can_go_on(data: Conversation, _: Event) -> bool:
        """Whether the machine itself has something to decide; outsiders cannot say so."""
        return data.decided is not None or (not data.reading and floor.has_replied(data))

    return can_go_on


def _result(data: Conversation) -> Mapping[str, Any]:
    return {"speaker": data.speaker, "turns": data.turn, "reason": data.reason}


def _budget(limits: Limits) -> Budget | None:
    budget = Budget(usd=limits.usd, tokens=limits.tokens, calls=limits.calls, seconds=limits.seconds)
    return budget if budget.limits() else None


def _wanting(move: Callable[..., Any], wanted: Mapping[Any, int]) -> Any:
    """The same move, which says what it may want at most."""

    def moved(data: Conversation, event: Any) -> Any:
        return move(data, event)

    moved.__name__, moved.__qualname__, moved.__doc__ = move.__name__, move.__qualname__, move.__doc__
    moved.emits = {effect.kind: most for effect, most in wanted.items()}  # type: ignore[attr-defined]
    moved.effects = tuple(wanted)  # type: ignore[attr-defined]
    moved.outcomes = tuple(outcome for effect in wanted for outcome in effect.outcomes)  # type: ignore[attr-defined]
    return moved
