"""Debates from Python, over the machine and `Moothall`: there is no state machine beside it.

A seat is a role by name, an `AgentConfig`, or an async function of a prompt; others are played by a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moothall.agents.roles import library_role
from moothall.agents.workspace import Workspace
from moothall.app.config.access import lasting_store
from moothall.app.kinds.debate import begin
from moothall.app.kinds.debate.files import digests_of
from moothall.app.kinds.debate.hooks import DebateHooks, HookListener
from moothall.app.kinds.debate.nodes import DebateNode, TransitionRule
from moothall.app.kinds.debate.present import result_of
from moothall.app.kinds.debate.start import default_model
from moothall.app.runs.moothall import Moothall, print_notices
from moothall.app.runs.news import Noticed
from moothall.app.runs.outcome import Outcome
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Budget, Machine
from moothall.machines.debate import debate, debate_with, size_of
from moothall.machines.debate.definition import (
    DEFAULT_AGENTS,
    JUDGE,
    AgentConfig,
    Configuration,
    DebateConfig,
    read_configuration,
)
from moothall.machines.debate.state import Clarification, Debate, Solution
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FUNCTION = "function:"
"""What stands in the place of a model where a function of the caller plays: several are no single model."""
Player = Callable[[str], Awaitable[Any]]
Seat = AgentConfig | str | Player
Answers = Mapping[str, str] | Sequence[Clarification]


class DebateResult(Frozen):
    """How a debate stands: its solution, or the questions that it waits for; `plain` is what `--json` prints."""

    debate_id: RunId
    status: str
    solution: Solution | None
    questions: tuple[Clarification, ...]
    state: Debate
    plain: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DebateTerms:
    """What else a debate is run with: who plays, what it may spend, nodes, rules, checks and tools from outside.

    A tool that is given here may be called again after a crash, with the same key.
    """

    model: str = ""
    budget: Budget | None = None
    nodes: tuple[DebateNode, ...] = ()
    rules: tuple[TransitionRule, ...] = ()
    checks: Mapping[str, Callable[..., Awaitable[Any]]] = field(default_factory=dict)
    tools: Mapping[str, Callable[..., Awaitable[Any]]] = field(default_factory=dict)


class StateMachineOrchestrator:
    """Runs debates with a panel and a judge; what is kept about them is kept in a store, so that they survive a crash.

    `tracing` are the parts of telemetry that are told of them (`"spans"`); the files of `context_directory` are
    recorded with their digests, seats whose `tools` name those that read may look into them, and nodes from outside are
    told where they are.
    """

    def __init__(
        self,
        agents: Sequence[Seat] = DEFAULT_AGENTS,
        judge: Seat = JUDGE,
        store: str | None = None,
        config: DebateConfig | Mapping[str, Any] | None = None,
        hooks: DebateHooks | None = None,
        tracing: str = "",
        context_directory: str | Path | None = None,
        *,
        terms: DebateTerms | None = None,
    ) -> None:
        self._players: dict[str, Any] = {}
        panel = tuple(map(self._seat, agents))
        chosen = config if isinstance(config, DebateConfig) else _config(config or {})
        self.configuration = Configuration(panel, self._seat(judge, is_judge=True), chosen)
        _require_panel(self.configuration)
        self._store: str | Store | None = store
        self._hooks, self._tracing = hooks or DebateHooks(), tracing
        self._folder = None if context_directory is None else Path(context_directory)
        self._terms = terms or DebateTerms()
        self._functions = {**self._players, **self._outside()}

    async def run_debate(
        self,
        problem: str,
        context: str = "",
        clarifications: Answers = (),
        debate_id: RunId | None = None,
    ) -> DebateResult:
        """Debate a problem to its end, or until a person has to answer."""
        try:
            begun = Debate(
                problem,
                context,
                self.configuration,
                digests_of(self._folder) if self._folder is not None else (),
                clarifications=_clarifications(clarifications),
            )
        except ValueError as error:
            raise Refused(str(error)) from error
        begun, terms = begin(begun), self._terms
        machine, model = self._machine(begun), self._model(begun)
        async with self._hall() as hall:
            outcome = await hall.run(
                machine,
                begun,
                agents=self._functions,
                model=model,
                budget=terms.budget,
                run_id=debate_id,
                workspace=self._workspace,
            )
            return await _result(hall, machine, outcome)

    async def resume(self, debate_id: RunId, answers: Answers | None = None) -> DebateResult:
        """Go on with a debate, with answers to the questions that it waits for where there are some."""
        async with self._hall() as hall:
            stored = await hall.store.load(debate_id)
            known = decode(Debate, stored.head["snapshot"]["data"], "data")
            machine = self._machine(known)
            if answers is None:
                outcome = await hall.resume(debate_id, machine, agents=self._functions)
            else:
                given = _by_id(known, answers)
                outcome = await hall.answer(debate_id, given, machine=machine, agents=self._functions)
            return await _result(hall, machine, outcome)

    def machine(self) -> Machine:
        """The machine that debates here are runs of, to check and to draw."""
        return self._machine(Debate("?", configuration=self.configuration))

    def _seat(self, seat: Seat, is_judge: bool = False) -> AgentConfig:
        if isinstance(seat, AgentConfig):
            return seat
        if isinstance(seat, str):
            library_role(seat)
            return AgentConfig(seat, seat, seat)
        name = str(getattr(seat, "__name__", type(seat).__name__))
        self._players[name] = seat
        return AgentConfig(name, name, "judge" if is_judge else "generalist", model=f"{FUNCTION}{name}")

    def _outside(self) -> dict[str, Any]:
        """Nodes and the check, as the tools that the machine calls, and the tools of its agents."""
        tools = {**self._terms.tools, **dict(node.tool(self._tracing, self._folder) for node in self._terms.nodes)}
        if wanted := self.configuration.debate.check:
            if wanted not in self._terms.checks:
                raise DefinitionError(f"no check is called {wanted!r}; pass checks={{{wanted!r}: …}}")
            tools[wanted] = self._terms.checks[wanted]
        return tools

    def _machine(self, begun: Debate) -> Machine:
        nodes, rules = self._terms.nodes, self._terms.rules
        if not nodes and not rules:
            return debate(size_of(begun))
        rows = [rule.row(self._tracing, self._folder) for rule in rules]
        return debate_with(size_of(begun), [node.row for node in nodes], rows)

    @property
    def _workspace(self) -> Workspace | None:
        reads = self._folder is not None and bool(self.configuration.tool_seats)
        return Workspace(str(self._folder), read_only=True) if reads else None

    def _model(self, begun: Debate) -> str:
        seats = (begun.configuration.judge, *begun.configuration.panel)
        played = [seat.played_by for seat in seats if not seat.person and seat.id not in self._players]
        if not played or self._terms.model:
            return self._terms.model
        if model := default_model(filter(None, played)):
            return model
        print_notices(Noticed("no model is set: rehearsal stands in for the panel; its replies mean nothing"))
        return "rehearsal"

    def _hall(self) -> Moothall:
        self._store = lasting_store(self._store)
        listeners = (print_notices, HookListener(self._hooks))
        return Moothall(self._store, listeners=listeners, telemetry=self._tracing)


def _config(plain: Mapping[str, Any]) -> DebateConfig:
    return read_configuration({"debate": dict(plain)}, "config").debate


def _require_panel(configuration: Configuration) -> None:
    """Refuse what a file would be refused for: nobody on the panel, or two seats of one name."""
    if not configuration.panel:
        raise DefinitionError("no agent is enabled; enable at least one, better three")
    ids = [seat.id for seat in (*configuration.agents, configuration.judge)]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise DefinitionError(f"two seats are called {twice[0]!r}; rename one")


def _clarifications(given: Answers) -> tuple[Clarification, ...]:
    """Questions that were answered before the debate begins."""
    if isinstance(given, Mapping):
        return tuple(Clarification(f"q{at}", "user", *pair) for at, pair in enumerate(given.items(), 1))
    return tuple(given)


def _by_id(known: Debate, answers: Answers) -> dict[str, str]:
    """Answers by the ids of their questions; they may be given by id or by text."""
    if not isinstance(answers, Mapping):
        return {asked.id: asked.answer for asked in answers}
    ids = {asked.text: asked.id for asked in known.clarifications}
    return {ids.get(name, name): answer for name, answer in answers.items()}


async def _result(hall: Moothall, machine: Machine, outcome: Outcome) -> DebateResult:
    plain = await result_of(hall.store, machine, outcome)
    data: Debate = outcome.data
    asked = tuple(question for question in data.clarifications if not question.answer) if outcome.questions else ()
    status = str(plain["status"])
    return DebateResult(outcome.run, status, data.solution, asked, data, encode(plain))
