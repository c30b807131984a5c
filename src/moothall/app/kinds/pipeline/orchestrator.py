"""Runs a pipeline from Python: a real, durable run, seen through the states of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moothall.app.config.access import lasting_store
from moothall.app.kinds.bindings import Functions
from moothall.app.kinds.kind import DIGITS
from moothall.app.kinds.pipeline.checks import as_checks, checker
from moothall.app.kinds.pipeline.observers import StateMachineObserver, View, telling
from moothall.app.kinds.pipeline.result import OrchestratorResult, result_of
from moothall.app.kinds.pipeline.states import OrchestrationStateMachine, logger
from moothall.app.runs.moothall import Moothall, print_notices, wait_for
from moothall.app.runs.news import Committed, News
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.replay import decisions_of
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget
from moothall.machines.pipeline import CHECK_PLAN, MAX_ITERATIONS, Job, pipeline
from moothall.machines.pipeline.plans import DEFAULT_CHECKS, CheckFunction
from moothall.runtime.hall import Observer
from moothall.runtime.journal import RunId
from moothall.runtime.observer import Aside
from moothall.runtime.ports import Store

Go = Callable[[Moothall, Functions], Coroutine[Any, Any, Outcome]]


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What the agents of a pipeline may use, and what is asked of the result.

    `max_iterations` is the most attempts, the first included. Without a `token_budget` tokens are not limited.
    """

    max_iterations: int = MAX_ITERATIONS
    token_budget: int | None = None
    pass_score: float = 7.0
    soft_fail_score: float = 5.0

    def __post_init__(self) -> None:
        if type(self.max_iterations) is not int or not 0 <= self.max_iterations < 10**DIGITS:
            raise DefinitionError(
                f"max_iterations is a whole number from 0 on, of at most {DIGITS} digits, not {self.max_iterations!r}"
            )
        try:
            Job("a brief", pass_score=self.pass_score, soft_fail_score=self.soft_fail_score)
        except (TypeError, ValueError) as error:
            raise DefinitionError(f"pass_score, soft_fail_score: {error}") from error
        Budget(tokens=self.token_budget)


@dataclass(frozen=True, slots=True)
class JobConfig:
    """All that a pipeline is run with.

    `checks` are functions and JavaScript expressions by name that every plan has to pass. `agents` are your own async
    functions for planner, implementer and judge; those that are missing are played by the model.
    """

    agent: AgentConfig = field(default_factory=AgentConfig)
    checks: Mapping[str, CheckFunction | str] = field(default_factory=lambda: DEFAULT_CHECKS)
    agents: Functions = field(default_factory=dict)
    model: str = ""
    store: str | None = None
    run_id: RunId | None = None


class AgentOrchestrator:
    """Runs pipelines. `state_machine` shows the latest run, fed from its journal."""

    def __init__(self, job_config: JobConfig) -> None:
        self.job_config = job_config
        self._stores: dict[str | None, str | Store | None] = {}
        self.state_machine = OrchestrationStateMachine(job_config.agent.max_iterations)
        self.observers: list[StateMachineObserver] = []

    def add_observer(self, observer: StateMachineObserver) -> None:
        """Tell somebody of every transition, and of the figures after it."""
        self.observers.append(observer)

    def run(self, brief: str, *, inputs: Mapping[str, Any] | None = None) -> OrchestratorResult:
        """Run a pipeline to its end. Durable: `moot resume` goes on after a crash."""
        config = self.job_config.agent
        job = {
            "brief": brief,
            "inputs": encode(inputs or {}),
            "pass_score": config.pass_score,
            "soft_fail_score": config.soft_fail_score,
            "checks": encode(as_checks(self.job_config.checks)),
        }
        machine = pipeline(config.max_iterations)
        budget = Budget(tokens=config.token_budget)
        named, model = self.job_config.run_id, self.job_config.model
        return self._watch(
            lambda hall, agents: hall.run(machine, job, agents=agents, model=model, budget=budget, run_id=named)
        )

    def resume(self, run: RunId) -> OrchestratorResult:
        """Go on with a pipeline that was cut off, with the functions of this configuration."""
        return self._watch(lambda hall, agents: hall.resume(run, agents=agents), run)

    def _watch(self, go: Go, begun: RunId = "") -> OrchestratorResult:
        """Let a run go on before the eyes of all who want to see."""
        self.state_machine.reset()
        views = [telling(observer, self.job_config.agent.max_iterations) for observer in self.observers]
        asides = [Aside(view) for view in views]
        own = View(self.state_machine, self.state_machine.log)
        outcome = wait_for(self._drive(go, (own, *asides), begun, (own, *views)))
        for aside in asides:
            aside.wait_until_seen()
        logger.info("\n" + self.state_machine.format_metrics_report())
        return result_of(outcome)

    async def _drive(self, go: Go, observers: tuple[Observer, ...], begun: RunId, views: Sequence[View]) -> Outcome:
        functions = {name: check for name, check in self.job_config.checks.items() if callable(check)}

        def listen(news: News) -> None:
            if isinstance(news, Committed):
                for observer in observers:
                    observer(news.run, news.entry, news.head)

        named = self.job_config.store
        if named not in self._stores:
            self._stores[named] = lasting_store(named)
        async with Moothall(self._stores[named], listeners=(print_notices, listen)) as hall:
            if begun:
                decisions = await decisions_of(hall.store, begun)
                if not isinstance(decisions[0].head.snapshot.data, Job):
                    raise Refused(f"run {begun} is not a pipeline; `moot resume {begun}` goes on with it")
                for view in views:
                    view.catch_up(begun, decisions)
            return await go(hall, {CHECK_PLAN: checker(functions), **self.job_config.agents})
