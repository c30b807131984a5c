"""Nodes and rules from outside, as programs write them: a node gets all that the debate knows and gives an event.

A node is performed as a tool of the machine, so that it survives a crash and is not done again on replay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.machines.debate import EVENTS, NODE, Node, Rule
from moothall.machines.debate.definition import AgentConfig, DebateConfig
from moothall.machines.debate.state import Debate, FileDigest

DEBATE_EVENTS: Mapping[str, str] = MappingProxyType({event: event for event in EVENTS})
"""The events of a debate by name; nodes from outside may give others."""


class NodeType(StrEnum):
    """The nodes of a debate; each is a state of its machine."""

    INITIALIZATION = "Initialization"
    CLARIFICATION = "Clarification"
    CLARIFICATION_INPUT = "ClarificationInput"
    ROUND_MANAGER = "RoundManager"
    SUMMARIZATION = "Summarization"
    PROPOSAL = "Proposal"
    CRITIQUE = "Critique"
    REFINEMENT = "Refinement"
    EVALUATION = "Evaluation"
    SYNTHESIS = "Synthesis"


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a node from outside gets: the state of the debate, who takes part, and what is around it."""

    state: Debate
    tracing: str = ""
    context_directory: Path | None = None

    @property
    def config(self) -> DebateConfig:
        """How the debate runs."""
        return self.state.configuration.debate

    @property
    def agents(self) -> tuple[AgentConfig, ...]:
        """The agents that take part now."""
        return self.state.panel

    @property
    def judge(self) -> AgentConfig:
        """The judge."""
        return self.state.configuration.judge

    @property
    def prepared_contexts(self) -> Mapping[str, str]:
        """What each agent is shown of the past, where that was summarised."""
        return self.state.contexts

    @property
    def files(self) -> tuple[FileDigest, ...]:
        """The files of the context directory, with their digests from the beginning of the debate."""
        return self.state.files


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What a node gives: the event that it raises, and what it adds to the debate, kept under the node's name."""

    event: str
    updated_context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DebateNode:
    """A node from outside: its name, and an async function of a context."""

    node_type: str
    execute: Callable[[NodeContext], Awaitable[NodeResult]]

    def __post_init__(self) -> None:
        if self.node_type in (*NodeType, "Complete", "Failed"):
            raise DefinitionError(f"the debate has a node {self.node_type} already; choose another name")
        if not self.node_type.isidentifier():
            raise DefinitionError(f"{self.node_type!r} cannot be a node; use letters, digits and _, a letter first")

    @property
    def row(self) -> Node:
        """The node as a state of the machine."""
        return Node(self.node_type)

    def tool(self, tracing: str, folder: Path | None) -> tuple[str, Callable[..., Awaitable[Any]]]:
        """The node as a tool of the machine: its name, and the function."""

        async def perform(state: Any) -> dict[str, Any]:
            result = await self.execute(NodeContext(decode(Debate, state, "state"), tracing, folder))
            if not isinstance(result, NodeResult):
                raise DefinitionError(f"node {self.node_type} gave {result!r}; let it return a NodeResult")
            return {"event": str(result.event), "updated_context": encode(result.updated_context)}

        return f"{NODE}{self.node_type}", perform


@dataclass(frozen=True, slots=True)
class TransitionRule:
    """A transition from outside, tried before those of the debate: from a node, on an event, to a node.

    `to` None ends the debate. A condition is a pure function: it is asked again on replay.
    """

    source: str
    event: str
    to: str | None
    condition: Callable[[NodeContext], bool] | None = None

    def row(self, tracing: str, folder: Path | None) -> Rule:
        """The rule as a row of the machine."""
        condition = self.condition
        if condition is None:
            return Rule(str(self.source), str(self.event), self.to)
        return Rule(
            str(self.source),
            str(self.event),
            self.to,
            lambda debate: condition(NodeContext(debate, tracing, folder)),
        )
