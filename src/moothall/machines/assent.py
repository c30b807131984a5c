"""A call of a tool that a person has to approve: inspecting → approving → calling, until it was made or turned down.

The run that wants the call hears the same as of a call that nobody is asked about: `Returned`, or `GaveUp` with the
reason. What was approved is what is called. If it has changed meanwhile, the person is asked again, `AGAIN` times at
most; then the call counts as turned down.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from moothall.agents.approval import Altered, InspectCall, Inspected, Waiting
from moothall.agents.ask import CallTool, Returned, ToolCall
from moothall.agents.workspace import INFRASTRUCTURE
from moothall.kernel.codec import encode
from moothall.kernel.effects import AskPerson, Repeats, StartChild
from moothall.kernel.events import Answered, Event, GaveUp
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting

NAME = "assent"
AGAIN = 3
NOTHING = {"calls": 0.0, "tokens": 0.0, "usd": 0.0}
"""What a call may spend of what the run has for models."""


class Approval(Frozen):
    """The call, how it is made, what the person is shown, and in the end what came of it."""

    call: Waiting
    repeats: Repeats = "idempotent"
    timeout: float | None = None
    inspected: Inspected | None = None
    value: Any = None
    executed: str = ""
    reason: str = ""


def approval_of(agent: str, call: ToolCall, repeats: Repeats, timeout: float | None) -> StartChild:
    """A call of a tool that a person has to approve first."""
    waiting = encode(Waiting(agent, call.tool, call.arguments, call.id))
    return StartChild(NAME, {"call": waiting, "repeats": repeats, "timeout": timeout}, call.id, NOTHING)


@emitting(InspectCall)
def inspect(approval: Approval, _: Event) -> InspectCall:
    """Find out what the call would do now."""
    return InspectCall(approval.call.tool, approval.call.arguments)


def keep_inspected(approval: Approval, inspected: Inspected) -> Approval:
    """Keep what the person is shown."""
    return replace(approval, inspected=inspected)


@emitting(AskPerson)
def ask_person(approval: Approval, _: Event) -> AskPerson:
    """Show the person the exact call, and ask."""
    call, inspected = approval.call, approval.inspected
    assert inspected is not None
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=1, sort_keys=True)
    files = [f"{path}: sha256 {digest}" for path, digest in sorted(inspected.operands.items())]
    lines = [f"{call.agent} wants to call {call.tool} with", arguments, *files, f"hash of this: {inspected.digest}"]
    prompt = "\n".join([*lines, "Shall it be called?"])
    return AskPerson(prompt, {"type": "boolean"}, id=inspected.digest)


def is_yes(approval: Approval, answered: Answered) -> bool:
    """Whether the person approves what was shown."""
    return answered.value is True


@emitting(CallTool)
def call_tool(approval: Approval, _: Event) -> CallTool:
    """Call what was approved, and nothing else."""
    call, inspected = approval.call, approval.inspected
    assert inspected is not None
    effect = CallTool(call.tool, call.arguments, call.id, repeats=approval.repeats, timeout=approval.timeout)
    return replace(effect, approved=inspected.digest)


def keep_value(approval: Approval, returned: Returned) -> Approval:
    """Keep what the tool returned."""
    return replace(approval, value=returned.value, executed=returned.executed)


def refuse(approval: Approval, answered: Answered) -> Approval:
    """Keep that the person said no."""
    by = f" ({answered.by})" if answered.by else ""
    return replace(approval, reason=f"{approval.call.tool} was not called: a person{by} said no")


def keep_altered(approval: Approval, altered: Altered) -> Approval:
    """Keep that what was approved does not stay as it was."""
    reason = f"{approval.call.tool} was not called: what it would do changed each time after it was approved"
    return replace(approval, reason=reason)


def keep_failure(approval: Approval, gave_up: GaveUp) -> Approval:
    """Keep why the call failed."""
    return replace(approval, reason=gave_up.reason)


def is_the_tools_own(data: Any, gave_up: GaveUp) -> bool:
    """Whether a failure is for the agent to read; of how this machine is set up it can change nothing."""
    return gave_up.fault != INFRASTRUCTURE


def the_value(approval: Approval, _: Event) -> dict[str, Any]:
    """What the run hears that wants the call."""
    return {"value": encode(approval.value), "executed": approval.executed}


def the_reason(approval: Approval, _: Event) -> dict[str, Any]:
    """What the run hears instead."""
    return {"reason": approval.reason}


APPROVAL = Machine(
    NAME,
    data=Approval,
    kind=NAME,
    states=[
        State("inspecting", enter=inspect),
        State("approving", enter=ask_person),
        State("calling", enter=call_tool),
        Final("returned", result=the_value),
        Final("refused", result=the_reason),
    ],
    moves=[
        On("inspecting", Inspected, to="approving", do=keep_inspected),
        On("inspecting", GaveUp, to="refused", when=is_the_tools_own, do=keep_failure),
        On("approving", Answered, to="calling", when=is_yes),
        On("approving", Answered, to="refused", do=refuse),
        On("calling", Returned, to="returned", do=keep_value),
        On("calling", Altered, to="inspecting", at_most=AGAIN),
        On("calling", Altered, to="refused", do=keep_altered),
        On("calling", GaveUp, to="refused", when=is_the_tools_own, do=keep_failure),
    ],
)


def said_in_the_end(call: Waiting, output: Any) -> Event:
    """The event that the run hears which wanted the call."""
    if "reason" in output:
        return GaveUp(output["reason"], id=call.id)
    return Returned(call.tool, output["value"], id=call.id, executed=output["executed"])
