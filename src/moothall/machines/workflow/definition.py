"""What a workflow file says, as values; the names are those of the file.

What is not in the file is None or empty. `schema` describes the same as JSON Schema, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from moothall.kernel.frozen import RARE, Frozen

START, STOP = "start", "stop"
"""The states in which a run begins and ends."""

Type = Literal["string", "number", "boolean", "object", "array"]
"""The types of inputs and outputs; an input is never a boolean, as the schema says."""
ContextRole = Literal["user", "assistant"]
Function = Literal["sendUserMessage", "addUserMessage", "clearConversation", "script"]
OnNoMatch = Literal["fail", "stop"]


class Parameter(Frozen):
    """The input or the output."""

    name: str
    type: Type = "string"
    description: str = ""


class Message(Frozen):
    """Something that was said before the workflow begins."""

    role: Literal["system", "user", "assistant"]
    content: str


class Context(Frozen):
    """A conversation that agents share."""

    name: str
    starting_messages: tuple[Message, ...] = ()
    max_length: int = 50_000


class Agent(Frozen):
    """A role at work in a context: there it is the one who asks, or the one who answers."""

    agent_role: str
    context: str
    role: ContextRole


class Transition(Frozen):
    """Where to go next, if the condition holds."""

    target: str
    condition: str = "true"
    before: str = ""


class Action(Frozen):
    """What a state does when it is entered."""

    function: Function | None = None
    script: str = ""
    sub_workflow: str = ""
    sub_workflow_input: Mapping[str, str] = field(default_factory=dict)


class Question(Frozen):
    """What a person is asked; the answer is kept in common_data under a name."""

    question: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "boolean"})
    answer: str = "answer"
    within: float | None = None
    who: str = ""


class Retry(Frozen):
    """How often a call that fails is tried."""

    attempts: int = 3


class Limits(Frozen):
    """The most that may be spent."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None
    transitions: int | None = None


class StateDefinition(Frozen):
    """One state: who speaks there and with what input, what is done, and where it leads."""

    name: str
    description: str = ""
    agent: str = ""
    input: str | None = None
    action: Action | None = None
    ask: Question | None = None
    transition: tuple[Transition, ...] | None = None
    states: tuple[StateDefinition, ...] = ()
    parallel: tuple[StateDefinition, ...] = ()
    join: Literal["all", "first"] = "all"
    history: Literal["none", "shallow", "deep"] = "none"
    on_entry: str = ""
    on_exit: str = ""
    on_error: str = ""
    on_limit: str = field(default="", kw_only=True, metadata=RARE)
    on_no_match: OnNoMatch | None = None
    timeout: float | None = None
    retry: Retry | None = None
    budget: Limits | None = None
    max_visits: int | None = None


class Workflow(Frozen):
    """A whole workflow."""

    workflow_name: str
    input: Parameter
    output: Parameter
    states: tuple[StateDefinition, ...]
    description: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    contexts: tuple[Context, ...] = ()
    agents: tuple[Agent, ...] = ()
    on_error: str = ""
    on_limit: str = field(default="", kw_only=True, metadata=RARE)
    on_no_match: OnNoMatch = "fail"
    max_tool_rounds: int = 50
    budget: Limits | None = None
