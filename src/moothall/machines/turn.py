"""An agent with tools: asking → calling → asking … until it has replied, or its reply is unusable, or it is exhausted.

Every call of the model and every call of a tool is an effect of its own, so that a crash repeats at most those that
were under way. What is said stands in the thread `turn`; the data hold the question, the tools and what is open.

- Calls of tools that the agent does not have are answered with an error, and so are those beyond `CALLS` in a round
  and beyond the most that the whole turn may have: the agent may go on without them.
- A tool that fails does not end the turn. Its failure is shown to the agent. Where this machine is not set up for a
  tool, as without a sandbox, the turn ends: the agent can do nothing about it.
- A call of a tool with the policy `ask` is a run of its own, in which a person approves it; one with `deny` is answered
  with an error.
- A reply that cannot be used is shown back once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

from moothall.agents.ask import ASKS, TURN, UNUSABLE, AskAgent, CallTool, Replied, Returned, ToolCall, Unusable
from moothall.agents.workspace import Policy
from moothall.kernel.codec import encode
from moothall.kernel.effects import Effect, Repeats, StartChild
from moothall.kernel.events import Event, GaveUp
from moothall.kernel.frozen import RARE, Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, always, emitting
from moothall.kernel.step import Append, Move
from moothall.machines.assent import APPROVAL, approval_of, is_the_tools_own

THREAD = "turn"
CALLS = 16


class Use(Frozen):
    """A tool that the agent may have called."""

    name: str
    repeats: Repeats = "idempotent"
    timeout: float | None = None
    policy: Policy = field(default="allow", kw_only=True, metadata=RARE)
    roles: Mapping[str, Policy] = field(default_factory=dict, kw_only=True, metadata=RARE)
    """Policies that are others for some roles."""

    def policy_for(self, role: str) -> Policy:
        """Whether an agent of this role may have it called."""
        return self.roles.get(role, self.policy)

    def effect(self, agent: str, call: ToolCall) -> Effect:
        """What a call is that this agent wants."""
        if self.policy_for(agent) == "ask":
            return approval_of(agent, call, self.repeats, self.timeout)
        return CallTool(call.tool, call.arguments, call.id, repeats=self.repeats, timeout=self.timeout)


class Turn(Frozen):
    """The question, the tools, the calls that have not come back, and in the end the reply."""

    ask: AskAgent
    tools: tuple[Use, ...] = ()
    open: tuple[ToolCall, ...] = ()
    text: str = ""
    value: Any = None
    most: int = field(default=0, kw_only=True, metadata=RARE)
    """The most calls of the whole turn; 0: as many as its rounds allow."""
    called: int = field(default=0, kw_only=True, metadata=RARE)
    """How many were made, where they are counted."""

    @property
    def left(self) -> int:
        """How many calls may be made at once now."""
        return min(CALLS, self.most - self.called) if self.most else CALLS


@emitting(AskAgent)
def ask_agent(turn: Turn, _: Event) -> AskAgent:
    """Ask, with all that was said so far."""
    return replace(turn.ask, thread=THREAD, tools=tuple(use.name for use in turn.tools))


def wants_tools(turn: Turn, replied: Replied) -> bool:
    """Whether the agent wants tools to be called first."""
    return bool(replied.calls)


def note_calls(turn: Turn, replied: Replied) -> Move[Turn]:
    """Keep what the agent said, and answer at once what cannot be called."""
    known = {use.name: use for use in turn.tools}
    able = tuple(call for call in replied.calls[:CALLS] if may_be_called(call, known, turn.ask.agent))[: turn.left]
    refused = [call for call in replied.calls if call not in able]
    said = {"role": "assistant", "text": replied.text, "calls": encode(replied.calls)}
    errors = [_error(call.id, call.tool, _why_not(turn, call, known)) for call in refused]
    called = turn.called + len(able) if turn.most else 0
    appends = (Append(THREAD, said), *(Append(THREAD, error) for error in errors))
    return Move(replace(turn, open=able, called=called), appends=appends)


def _why_not(turn: Turn, call: ToolCall, known: Mapping[str, Use]) -> str:
    if turn.most and turn.left < CALLS and may_be_called(call, known, turn.ask.agent):
        return f"this turn has at most {turn.most} calls of tools, and they are made; reply with what you know"
    return why_not(call, known, turn.ask.agent)


def may_be_called(call: ToolCall, known: Mapping[str, Use], agent: str) -> bool:
    """Whether an agent may have this called, at once or after a person was asked."""
    return call.tool in known and known[call.tool].policy_for(agent) != "deny"


def why_not(call: ToolCall, known: Mapping[str, Use], agent: str) -> str:
    """Why a call is not made, for the agent to read."""
    if call.tool not in known:
        return f"there is no tool {call.tool!r}; there are {', '.join(sorted(known)) or 'none'}"
    if known[call.tool].policy_for(agent) == "deny":
        return f"{call.tool} is denied to {agent}; go on without it"
    return f"more than {CALLS} calls at once"


@emitting(CallTool, most=CALLS)
def call_tools(turn: Turn, _: Event) -> Move[Turn]:
    """Call what the agent wants called."""
    uses = {use.name: use for use in turn.tools}
    return Move(turn, effects=tuple(uses[call.tool].effect(turn.ask.agent, call) for call in turn.open))


@emitting(CallTool, StartChild, most=CALLS)
def call_or_ask(turn: Turn, event: Event) -> Move[Turn]:
    """Call what the agent wants called, or ask a person first."""
    return call_tools(turn, event)


call_or_ask.child = APPROVAL.name  # type: ignore[attr-defined]


def keep_result(turn: Turn, returned: Returned) -> Move[Turn]:
    """Show the agent what a tool returned."""
    said = {"role": "tool", "id": returned.id, "tool": returned.tool, "value": encode(returned.value)}
    return Move(_without(turn, returned.id), appends=(Append(THREAD, said),))


def keep_failure(turn: Turn, gave_up: GaveUp) -> Move[Turn]:
    """Show the agent that a tool failed."""
    tool = next((call.tool for call in turn.open if call.id == gave_up.id), "")
    return Move(_without(turn, gave_up.id), appends=(Append(THREAD, _error(gave_up.id, tool, gave_up.reason)),))


def _error(id: str, tool: str, reason: str) -> dict[str, Any]:
    return {"role": "tool", "id": id, "tool": tool, "error": reason}


def _without(turn: Turn, id: str) -> Turn:
    return replace(turn, open=tuple(call for call in turn.open if call.id != id))


def all_are_back(turn: Turn, _: Event) -> bool:
    """Whether every call has come back."""
    return not turn.open


def show_back(turn: Turn, unusable: Unusable) -> Move[Turn]:
    """Show the agent what was wrong with its reply."""
    said = {"role": "assistant", "text": unusable.text, "calls": []}
    asked = {"role": "user", "text": UNUSABLE.format(reason=unusable.reason)}
    return Move(turn, appends=(Append(THREAD, said), Append(THREAD, asked)))


def keep_reply(turn: Turn, replied: Replied) -> Turn:
    """Keep the reply."""
    return replace(turn, text=replied.text, value=replied.value)


def keep_reason(turn: Turn, event: Unusable | Replied) -> Turn:
    """Keep what was wrong in the end."""
    return replace(turn, text=event.reason if isinstance(event, Unusable) else event.text)


def the_reply(turn: Turn, _: Event) -> dict[str, Any]:
    """What the parent hears: the reply."""
    return {"end": "replied", "text": turn.text, "value": encode(turn.value)}


def the_failure(turn: Turn, _: Event) -> dict[str, Any]:
    """What the parent hears: that the reply cannot be used."""
    return {"end": "unusable", "text": turn.text}


def the_exhaustion(turn: Turn, _: Event) -> dict[str, Any]:
    """What the parent hears: that the agent never came to an end with its tools."""
    return {"end": "exhausted", "text": turn.text}


@lru_cache(maxsize=64)
def turn(rounds: int = 8, *, asks: bool = False) -> Machine:
    """The machine of an agent that may have tools called in so many rounds, and where so said asks a person first."""
    return Machine(
        f"{TURN}{rounds}{ASKS if asks else ''}",
        data=Turn,
        kind="turn",
        states=[
            State("asking", enter=ask_agent),
            State("calling", enter=call_or_ask if asks else call_tools),
            Final("replied", result=the_reply),
            Final("unusable", ends="failed", result=the_failure),
            Final("exhausted", ends="failed", result=the_exhaustion),
        ],
        moves=[
            On("asking", Replied, to="calling", when=wants_tools, do=note_calls, at_most=rounds),
            On("asking", Replied, to="exhausted", when=wants_tools, do=keep_reason),
            On("asking", Replied, to="replied", do=keep_reply),
            On("asking", Unusable, to="asking", do=show_back, at_most=1),
            On("asking", Unusable, to="unusable", do=keep_reason),
            On("calling", Returned, do=keep_result, at_most=CALLS * rounds),
            On("calling", GaveUp, when=is_the_tools_own, do=keep_failure, at_most=CALLS * rounds),
            On("calling", always, to="asking", when=all_are_back),
        ],
    )


def said_in_the_end(ask: AskAgent, output: Any) -> Event:
    """The event that the run which asked hears at the end of a turn."""
    if output["end"] == "replied":
        return Replied(ask.agent, output["text"], output["value"], ask.shape, id=ask.id)
    if output["end"] == "exhausted":
        return GaveUp(f"{ask.agent}: it still wanted tools after its last round", id=ask.id)
    return GaveUp(f"{ask.agent}: its reply cannot be used: {output['text']}", id=ask.id)
