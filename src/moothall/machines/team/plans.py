"""`!plan`: a model drafts a workflow from the conversation; it is checked, drawn and shown, and begins after approval.

The draft is asked for while the conversation goes on. One that has errors is shown back with them, once; after that
the user hears what is wrong. What was checked is known by the hash in the name of its file.
"""

from __future__ import annotations

from dataclasses import replace

from moothall.agents.ask import Replied, Unusable, Window
from moothall.kernel.codec import encode
from moothall.kernel.events import GaveUp, Named
from moothall.kernel.step import Append, Move
from moothall.machines.team.definition import AWAIT_APPROVAL, USER_STATES
from moothall.machines.team.state import (
    BY_USER,
    SYSTEM,
    THREAD,
    AskPlan,
    CheckPlan,
    Command,
    Conversation,
    Decision,
    Draft,
    PlanChecked,
)
from moothall.machines.team.summary import object_in

PLANNER = "planner"
TRIES = 2
"""How often a draft is asked for."""
WENT_ON = "WENT_ON"
NEWEST = 40
"""How much of the conversation whoever drafts is shown."""
Moved = Move[Conversation]


def ask_plan(data: Conversation, command: Command) -> Moved:
    """The user wants a plan: it is asked for."""
    draft = Draft(command.text, number=data.drafts + 1)
    data = replace(data, now=command.at or data.now, draft=draft, drafts=draft.number)
    return Move(data, (_ask(draft),), (_line(BY_USER, f"!plan {command.text}", data),))


def _ask(draft: Draft) -> AskPlan:
    wrong = f"Your last draft cannot be used:\n{draft.problems}\n\n" if draft.problems else ""
    asked = {"text": draft.text, "problems": wrong}
    windows = {"talk": Window(THREAD, NEWEST)}
    return AskPlan(PLANNER, "plan", asked, "Any", id=_id(draft), level="smart", windows=windows)


def _id(draft: Draft) -> str:
    return f"{PLANNER}-{draft.number}-{draft.tries}"


def is_draft(data: Conversation, event: Replied | Unusable | GaveUp) -> bool:
    """Whether it is the draft that was asked for last."""
    return data.draft is not None and event.id == _id(data.draft)


def is_checked(data: Conversation, event: PlanChecked) -> bool:
    """Whether it is the draft that was asked for last that was checked."""
    return data.draft is not None and event.id == _id(data.draft)


def hear_draft(data: Conversation, event: Replied | Unusable | GaveUp) -> Moved:
    """A draft came: it is checked. Where there is none, it is asked for again or given up."""
    draft = data.draft
    assert draft is not None
    if isinstance(event, GaveUp):
        return _given_up(data, event.reason)
    plan = object_in(event) if isinstance(event, Replied) else None
    if plan is None:
        return _again(data, "The reply is not one JSON object of a workflow.")
    return Move(data, (CheckPlan(plan, draft.text, data.workspace, id=_id(draft)),))


def hear_check(data: Conversation, checked: PlanChecked) -> Moved:
    """A draft was checked: shown where it can run, else asked for again with what is wrong."""
    if checked.problems:
        return _again(data, "\n".join(checked.problems))
    assert data.draft is not None
    reason = f"{checked.path} was drafted; it begins when you approve it"
    data = replace(data, proposed=checked.path, proposed_input=data.draft.text, proposed_by=BY_USER, draft=None)
    notes = [f"note: {note}" for note in checked.notes]
    shown = "\n".join([f"drafted {checked.path}", *notes, checked.drawing, "!approve starts it"])
    told = (_line(SYSTEM, shown, data),)
    if data.place not in USER_STATES:
        return Move(data, appends=told)
    decided = Decision(AWAIT_APPROVAL, BY_USER, "user", reason, "PLAN")
    return Move(replace(data, decided=decided, reason=reason), (), told, (Named(WENT_ON),))


def _again(data: Conversation, problems: str) -> Moved:
    draft = data.draft
    assert draft is not None
    if draft.tries >= TRIES:
        return _given_up(data, f"what was drafted cannot be used:\n{problems}")
    draft = replace(draft, tries=draft.tries + 1, problems=problems)
    return Move(replace(data, draft=draft), (_ask(draft),))


def _given_up(data: Conversation, why: str) -> Moved:
    return Move(replace(data, draft=None), appends=(_line(SYSTEM, f"there is no plan: {why}", data),))


def _line(by: str, text: str, data: Conversation) -> Append:
    message = {"role": "user" if by == BY_USER else "assistant", "by": by, "text": text, "number": data.turn}
    return Append(THREAD, encode(message))
