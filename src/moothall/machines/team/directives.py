"""What the structured part of a reply directs: go on talking, hand off, approve and hand off, or ask for rework.

A reply has `content` and, where something is directed, `transition`, `next_agent`, `approval_status`, `rework_reason`
and `confidence`. Everything is taken exactly as it is written or not at all: no near name is corrected, no prose is
read as a directive, and a reply that could be meant in two ways is unusable, with a message for the model that wrote
it. `directive` never raises.

`promise` is a flag for the person who reads and for the repair of the reply, and nothing moves because of it: see
`promises`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal

from moothall.kernel.frozen import Frozen
from moothall.machines.team.promises import promises_handoff

CONTINUE = "CONTINUE"
APPROVE_AND_HANDOFF = "APPROVE_AND_HANDOFF"
HANDOFF_TO_AGENT = "HANDOFF_TO_AGENT"
REQUEST_REWORK = "REQUEST_REWORK"
APPROVED = "APPROVED"
USER = "RespondToUser"
"""The name by which a reply hands the turn to the user."""

TRANSITIONS = (APPROVE_AND_HANDOFF, REQUEST_REWORK, HANDOFF_TO_AGENT)
STATUSES = (APPROVED, REQUEST_REWORK)
KEYS = ("content", "transition", "next_agent", "approval_status", "rework_reason", "confidence")
REPLY_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "What you say."},
            "transition": {"enum": [*TRANSITIONS], "description": "Leave it out to go on talking."},
            "next_agent": {"type": "string", "description": "Whom you hand to, exactly as named below."},
            "approval_status": {"enum": [*STATUSES], "description": "What you say of the work before you."},
            "rework_reason": {"type": "string", "description": "What has to change. A REQUEST_REWORK needs it."},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "How sure you are."},
        },
        "required": ["content"],
    }
)
"""The shape of a persona's reply, as every prompt shows it."""

Reason = Literal[
    "malformed",
    "unknown_key",
    "unknown_value",
    "unknown_agent",
    "missing_agent",
    "missing_reason",
    "contradiction",
    "several",
    "confidence",
]


class Directive(Frozen):
    """What a reply directs. `next_agent` is None where the event names none."""

    event: str
    next_agent: str | None = None
    promise: bool = False


class Unusable(Frozen):
    """A reply that directs nothing that could be followed: of which class, and what the model is shown."""

    reason: Reason
    message: str


def directive(reply: object, *, allowed: Collection[str], accepts_user: bool = False) -> Directive | Unusable:
    """What a reply directs, or why it cannot be followed."""
    if not isinstance(reply, dict):
        return Unusable("malformed", "The reply is not a JSON object. Reply with one object that has `content`.")
    targets = (*allowed, USER) if accepts_user else tuple(allowed)
    if (fault := _key_fault(reply) or _type_fault(reply, targets) or _value_fault(reply)) is not None:
        return fault
    match reply.get("transition"):
        case None:
            return _talk(reply, targets)
        case "REQUEST_REWORK":
            return _rework(reply)
        case transition:
            return _handoff(reply, transition, targets)


def _talk(reply: dict[str, Any], targets: Collection[str]) -> Directive | Unusable:
    if reply.get("next_agent") is not None:
        remedy = f"Add `transition` ({HANDOFF_TO_AGENT} or {APPROVE_AND_HANDOFF}), or leave `next_agent` out."
        return Unusable("contradiction", f"The reply names a `next_agent` but no `transition`. {remedy}")
    if reply.get("approval_status") == REQUEST_REWORK:
        remedy = f"Set `transition` to {REQUEST_REWORK} as well, or leave `approval_status` out."
        return Unusable("contradiction", f"`approval_status` asks for rework but there is no `transition`. {remedy}")
    return Directive(CONTINUE, promise=promises_handoff(reply["content"], targets))


def _rework(reply: dict[str, Any]) -> Directive | Unusable:
    if reply.get("approval_status") == APPROVED:
        return Unusable("contradiction", f"`transition` is {REQUEST_REWORK} but `approval_status` is {APPROVED}.")
    if reply.get("next_agent") is not None:
        why = f"{REQUEST_REWORK} goes back to whoever made the work"
        return Unusable("contradiction", f"{why}; leave `next_agent` out, or hand off with {HANDOFF_TO_AGENT}.")
    if not (reply.get("rework_reason") or "").strip():
        return Unusable("missing_reason", f"{REQUEST_REWORK} needs a `rework_reason` that says what has to change.")
    return Directive(REQUEST_REWORK)


def _handoff(reply: dict[str, Any], transition: str, targets: Collection[str]) -> Directive | Unusable:
    if reply.get("approval_status") == REQUEST_REWORK:
        return Unusable("contradiction", f"`transition` is {transition} but `approval_status` is {REQUEST_REWORK}.")
    if (reply.get("rework_reason") or "").strip():
        remedy = f"Use {REQUEST_REWORK}, or leave `rework_reason` out."
        return Unusable("contradiction", f"`transition` is {transition} but there is a `rework_reason`. {remedy}")
    agent = reply.get("next_agent")
    if agent is None or not agent.strip():
        return Unusable("missing_agent", f"{transition} needs a `next_agent`: {_choices(targets)}.")
    if agent in targets:
        return Directive(transition, agent)
    if _are_several(agent, targets):
        return Unusable("several", f"`next_agent` names more than one agent; name one of: {_choices(targets)}.")
    remedy = f"write exactly one of: {_choices(targets)}"
    return Unusable("unknown_agent", f"`next_agent` {agent[:60]!r} cannot be reached from here; {remedy}.")


def _key_fault(reply: dict[Any, Any]) -> Unusable | None:
    for key in reply:
        if isinstance(key, str) and key not in KEYS and (meant := _PLAIN_KEYS.get(_plain(key))) is not None:
            return Unusable("unknown_key", f"The key {key[:60]!r} is not known; write `{meant}`.")
    return None


def _plain(key: str) -> str:
    return re.sub(r"[\s_\-‐-―]+", "", key.casefold()) if len(key) < 100 else key


_PLAIN_KEYS = {_plain(key): key for key in KEYS}


def _type_fault(reply: dict[Any, Any], targets: Collection[str]) -> Unusable | None:
    if not isinstance(reply.get("content"), str):
        return Unusable("malformed", "The reply has no text as `content`.")
    for key, what in (("transition", "transition"), ("next_agent", "agent")):
        value = reply.get(key)
        if isinstance(value, list | tuple) and len(value) > 1:
            return Unusable("several", f"`{key}` names more than one {what}; a reply has one.")
    for key in ("transition", "next_agent", "approval_status", "rework_reason"):
        if not isinstance(reply.get(key), str | None):
            return Unusable("malformed", f"`{key}` is not a text.")
    return None


def _value_fault(reply: dict[Any, Any]) -> Unusable | None:
    for key, values in (("transition", TRANSITIONS), ("approval_status", STATUSES)):
        value = reply.get(key)
        if value is not None and value not in values:
            if key == "transition" and _are_several(value, values):
                return Unusable("several", "`transition` names more than one transition; a reply has one.")
            return Unusable("unknown_value", f"`{key}` is {value[:60]!r}; write exactly one of: {_choices(values)}.")
    if not _is_confidence(reply.get("confidence")):
        return Unusable("confidence", "`confidence` is not a number between 0 and 1.")
    return None


def _is_confidence(value: object) -> bool:
    if value is None:
        return True
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1 and not (isinstance(value, float) and math.isnan(value))  # type: ignore[operator]


def _are_several(text: str, names: Collection[str]) -> bool:
    parts = [part.strip() for part in re.split(r"[,;/|+&\n]|\band\b|\bor\b|\bthen\b", text[:1000]) if part.strip()]
    return len(parts) > 1 and all(part in names for part in parts)


def _choices(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:40])
    return f"{shown}, and {len(names) - 40} more" if len(names) > 40 else shown or "nobody can be reached"
