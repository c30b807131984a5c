"""What a run of a workflow knows, and the events by which it moves itself.

`common_data` is the author's; the rest is bookkeeping. Conversations are threads of the run and are not in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen


class LastReply(Frozen):
    """The last reply of an agent, as scripts see it."""

    last_response: str = ""
    tool_calls: tuple[Any, ...] = ()
    parsing_tool_calls: tuple[Any, ...] = ()


class Progress(Frozen):
    """How far an active state is: rounds of tools, whether a call was asked for, calls that have not come back."""

    rounds: int = 0
    reminded: bool = False
    open: tuple[ToolCall, ...] = ()


class Prepared(Frozen):
    """What was evaluated for a state before it was entered."""

    input: Any = None
    question: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)


class WorkflowData(Frozen):
    """The data of a run."""

    common_data: Mapping[str, Any] = field(default_factory=dict)
    agents: Mapping[str, LastReply] = field(default_factory=dict)
    speaker: str = ""
    sub_workflow_result: Any = None
    posts: Mapping[str, Progress] = field(default_factory=dict)
    ready: Mapping[str, Prepared] = field(default_factory=dict)
    fresh: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What was said since the last event from outside, where scripts read conversations."""
    visits: Mapping[str, int] = field(default_factory=dict)
    output: Any = None


class Inner(Event):
    """Something that a state of a workflow tells itself, by its number."""

    name = "workflow"
    state: int = 0


class Acted(Inner):
    """A state did what it does, and waits for nothing."""


class Chosen(Inner):
    """A transition is taken, by its place among those of its state; -1 is the way to stop where none matched."""

    transition: int = 0


class Again(Inner):
    """The agent of a state goes on."""


class TimedOut(Event):
    """A state waited too long."""

    name = "error.timeout"
    reason: str = ""
