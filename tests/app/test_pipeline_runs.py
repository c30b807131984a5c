"""`AgentOrchestrator` drives real, durable runs; its state machine, figures and observers are fed from the journal."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import ChildDone, EffectFailed, Reply, child
from moothall.analysis.certify import Certificate
from moothall.app.config.access import opened
from moothall.app.kinds.check import certificate
from moothall.app.kinds.pipeline.checks import as_checks, checker, read_checks
from moothall.app.kinds.source import child_machine, find, named_machine, source_of
from moothall.app.report.account import show
from moothall.app.runs.moothall import resume, run
from moothall.app.runs.replay import replay
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, always
from moothall.machines.pipeline import pipeline
from moothall.pipeline import (
    DEFAULT_CHECKS,
    AgentConfig,
    AgentOrchestrator,
    Draft,
    JobConfig,
    MetricsLogger,
    OrchestrationState,
    OrchestratorResult,
    Plan,
    StateTransition,
    Verdict,
)

PLAN = {"summary": "a boat", "steps": ["cut", "glue"]}
BRIEF = "a boat"
OTHER = Machine("pipeline", states=[State("waiting"), Final("over")], moves=[On("waiting", always, to="over")])


def judged(score: float, tokens: int = 30) -> dict[str, Any]:
    return {"value": {"score": score, "issues": ["it leaks"]}, "usage": {"tokens": tokens}}


def script(folder: Path, *scores: float, plan: Mapping[str, Any] = PLAN) -> str:
    """A model that plans and implements as often as it is asked, and judges with these scores."""
    lines = {
        "planner": [{"value": plan, "usage": {"tokens": 100}}] * 9,
        "implementer": [{"text": f"boat {number}", "usage": {"tokens": 200}} for number in range(1, 10)],
        "judge": [judged(score) for score in scores],
    }
    (folder / "script.json").write_text(json.dumps(lines))
    return f"scripted:{folder / 'script.json'}"


class Watching:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.seen: list[StateTransition] = []
        self.metrics: list[dict[str, Any]] = []

    def on_state_transition(self, transition: StateTransition) -> None:
        self.seen.append(transition)

    def on_metrics_update(self, metrics: dict[str, Any]) -> None:
        self.metrics.append(metrics)


def way(transitions: list[StateTransition]) -> list[str]:
    return [transitions[0].from_state.value, *(one.to_state.value for one in transitions)]


# the result


@pytest.mark.covers("P13")
def test_a_pipeline_that_succeeds_tells_what_it_made(tmp_path: Path) -> None:
    result = AgentOrchestrator(JobConfig(model=script(tmp_path, 5.5, 8), run_id="boat")).run(BRIEF)
    assert result == OrchestratorResult(
        run="boat",
        status="done",
        final_state=OrchestrationState.SUCCEEDED,
        iterations=1,
        score=8,
        plan=Plan("a boat", ("cut", "glue")),
        implementation="boat 2",
        verdicts=(Verdict(5.5, ("it leaks",)), Verdict(8, ("it leaks",))),
        reason="",
        usage={"calls": 5, "tokens": 560},
    )
    assert result.success


def test_a_pipeline_without_a_further_attempt_keeps_the_best(tmp_path: Path) -> None:
    config = JobConfig(AgentConfig(max_iterations=3), model=script(tmp_path, 4, 6, 2))
    result = AgentOrchestrator(config).run(BRIEF)
    assert (result.final_state, result.success) == (OrchestrationState.FAILED, False)
    assert (result.score, result.implementation, result.iterations) == (6, "boat 2", 2)
    assert result.reason == "no attempt is left after 3: the judge's score is 2 of 10; it leaks"


@pytest.mark.parametrize(
    ("tokens", "left", "implementation"),
    [(0, "planning", ""), (100, "validating", ""), (300, "judging", "boat 1"), (330, "implementing", "boat 1")],
)
@pytest.mark.covers("P13", "P5")
def test_a_token_budget_that_is_reached_ends_the_run_and_keeps_the_best(
    tmp_path: Path, tokens: int, left: str, implementation: str
) -> None:
    orchestrator = AgentOrchestrator(JobConfig(AgentConfig(token_budget=tokens), model=script(tmp_path, 6)))
    result = orchestrator.run(BRIEF)
    assert result.final_state == OrchestrationState.BUDGET_EXHAUSTED
    assert (result.implementation, result.usage.get("tokens", 0)) == (implementation, tokens)
    assert result.reason == f"limit of {tokens} tokens reached in {left}"
    assert orchestrator.state_machine.history[-1].from_state.value == left


def test_a_success_that_uses_up_the_budget_is_a_success(tmp_path: Path) -> None:
    config = JobConfig(AgentConfig(token_budget=330), model=script(tmp_path, 9))
    assert AgentOrchestrator(config).run(BRIEF).success


@pytest.mark.parametrize(("most", "calls"), [(0, 0), (1, 3), (2, 6)])
def test_no_more_attempts_are_made_than_are_allowed(tmp_path: Path, most: int, calls: int) -> None:
    orchestrator = AgentOrchestrator(JobConfig(AgentConfig(max_iterations=most), model=script(tmp_path, 1, 1, 1)))
    result = orchestrator.run(BRIEF)
    assert (result.final_state, result.usage.get("calls", 0)) == (OrchestrationState.FAILED, calls)
    assert orchestrator.state_machine.iteration_count == result.iterations == most
    assert orchestrator.state_machine.exceeded_max_iterations()


def test_zero_attempts_lead_from_initialized_to_failed(tmp_path: Path) -> None:
    orchestrator = AgentOrchestrator(JobConfig(AgentConfig(max_iterations=0), model="rehearsal"))
    orchestrator.run(BRIEF)
    [made] = orchestrator.state_machine.history
    assert (made.from_state, made.to_state) == (OrchestrationState.INITIALIZED, OrchestrationState.FAILED)


def test_the_scores_that_decide_are_those_of_the_configuration(tmp_path: Path) -> None:
    config = AgentConfig(max_iterations=2, pass_score=9, soft_fail_score=8)
    orchestrator = AgentOrchestrator(JobConfig(config, model=script(tmp_path, 7.9, 8.9)))
    assert orchestrator.run(BRIEF).final_state == OrchestrationState.FAILED
    assert way(orchestrator.state_machine.history)[-5:] == [
        "planning",
        "validating",
        "implementing",
        "judging",
        "failed",
    ]


def test_an_agent_that_gives_up_fails_the_run_with_its_reason(tmp_path: Path) -> None:
    async def implementer(prompt: str) -> str:
        raise EffectFailed("the wood is wet")

    orchestrator = AgentOrchestrator(JobConfig(agents={"implementer": implementer}, model=script(tmp_path)))
    result = orchestrator.run(BRIEF)
    assert result.final_state == OrchestrationState.FAILED
    assert result.plan == Plan("a boat", ("cut", "glue"))
    assert "the wood is wet" in result.reason
    assert orchestrator.state_machine.history[-1].reason == result.reason


def test_a_verdict_that_is_no_score_fails_the_run(tmp_path: Path) -> None:
    result = AgentOrchestrator(JobConfig(model=script(tmp_path, 85))).run(BRIEF)
    assert result.final_state == OrchestrationState.FAILED
    assert "a score is a number from 0 to 10, not 85" in result.reason
    assert result.implementation == "boat 1"


def test_own_functions_can_be_the_agents_and_see_brief_inputs_and_feedback() -> None:
    prompts: list[str] = []

    async def planner(prompt: str) -> Plan:
        prompts.append(prompt)
        return Plan("a boat", ("cut",))

    async def implementer(prompt: str) -> Reply:
        return Reply("a boat", usage={"tokens": 7})

    async def judge(prompt: str) -> Verdict:
        prompts.append(prompt)
        return Verdict(3 if len(prompts) == 2 else 9, ("it sinks",))

    agents = {"planner": planner, "implementer": implementer, "judge": judge}
    result = AgentOrchestrator(JobConfig(agents=agents, store="memory")).run(BRIEF, inputs={"wood": "oak"})
    assert (result.success, result.iterations, result.usage) == (True, 2, {"calls": 6, "tokens": 14})
    assert all('{"wood": "oak"}' in prompt for prompt in prompts)
    assert "it sinks" not in prompts[0]
    assert "it sinks" in prompts[2]
    assert '[{"score": 3, "issues": ["it sinks"]}]' in prompts[3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: AgentConfig(max_iterations=-1),
        lambda: AgentConfig(max_iterations=10**9),
        lambda: AgentConfig(max_iterations=1.5),  # type: ignore[arg-type]
        lambda: AgentConfig(token_budget=-1),
        lambda: AgentConfig(pass_score=4),
        lambda: AgentConfig(pass_score=11),
        lambda: AgentConfig(soft_fail_score="high"),  # type: ignore[arg-type]
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused_at_once(make: Callable[[], AgentConfig]) -> None:
    with pytest.raises(DefinitionError):
        make()


def test_an_empty_brief_is_refused() -> None:
    with pytest.raises(Refused, match="the brief is empty"):
        AgentOrchestrator(JobConfig(model="rehearsal")).run(" ")


# durable


def test_the_run_is_a_real_one_that_can_be_shown_and_replayed(tmp_path: Path) -> None:
    AgentOrchestrator(JobConfig(AgentConfig(max_iterations=4), model=script(tmp_path, 8), run_id="kept")).run(BRIEF)
    with opened(None) as store:
        shown, replayed = asyncio.run(show(store, "kept")), asyncio.run(replay(store, "kept"))
    assert (shown.summary.machine, shown.summary.states) == ("pipeline-4", ("succeeded",))
    assert (replayed.difference, replayed.is_changed) == (None, False)


def test_a_built_in_machine_is_found_again_by_its_name() -> None:
    assert find("pipeline") is pipeline()
    assert find("pipeline-5") is pipeline(5)
    assert [source_of(pipeline(most)) for most in (3, 5)] == ["pipeline", "pipeline-5"]
    for name in ("pipe", "pipeline-", "pipeline-x", "pipeline-²", "pipeline-" + "9" * 5000, "-3", ""):
        assert named_machine(name) is None


def test_another_machine_of_that_name_is_not_taken_for_it() -> None:
    assert source_of(OTHER).endswith(":OTHER")


@dataclass(frozen=True)
class Order:
    brief: str
    made: Any = None


COMMISSION = Machine(
    "commission",
    data=Order,
    states=[State("delegating", enter=child("pipeline-2", "brief")), Final("delivered")],
    moves=[On("delegating", ChildDone, to="delivered", do=lambda order, ended: replace(order, made=ended.data))],
)


def test_a_pipeline_can_be_the_child_of_another_machine_by_its_name(tmp_path: Path) -> None:
    outcome = run(COMMISSION, Order(BRIEF), model=script(tmp_path, 4, 8), run_id="order")
    assert outcome.result.made["implementation"] == "boat 2"
    assert (outcome.result.made["iterations"], outcome.spent["tokens"]) == (2, 660)
    bound = certificate(COMMISSION)
    assert isinstance(bound, Certificate)
    assert bound.resources["ask.agent"] == 6


def test_a_machine_in_the_same_file_comes_before_the_built_in_one() -> None:
    assert child_machine(COMMISSION, "pipeline") is OTHER
    assert child_machine(COMMISSION, "pipeline-2") is pipeline(2)


def test_a_run_that_is_over_says_the_same_when_it_is_resumed(tmp_path: Path) -> None:
    AgentOrchestrator(JobConfig(model=script(tmp_path, 8), run_id="over")).run(BRIEF)
    assert resume("over").result["implementation"] == "boat 1"


def test_a_pipeline_in_memory_lasts_as_long_as_its_orchestrator(tmp_path: Path) -> None:
    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 8), run_id="over", store="memory"))
    assert orchestrator.run(BRIEF) == orchestrator.resume("over")


def cut_off(folder: Path, score: float) -> JobConfig:
    """A pipeline that was stopped in the middle of implementing, and the configuration to go on with."""
    model = script(folder, score)

    async def implementer(prompt: str) -> str:
        raise KeyboardInterrupt

    checks = {"keel": lambda draft: True}
    config = JobConfig(checks=checks, agents={"implementer": implementer}, model=model, run_id="cut")
    with pytest.raises(KeyboardInterrupt):
        AgentOrchestrator(config).run(BRIEF)
    return JobConfig(checks=checks, model=model)


def test_a_run_that_was_cut_off_goes_on_and_its_view_knows_what_was_before(tmp_path: Path) -> None:
    orchestrator, watching = AgentOrchestrator(cut_off(tmp_path, 8)), Watching()
    orchestrator.add_observer(watching)
    result = orchestrator.resume("cut")
    assert (result.success, result.usage) == (True, {"calls": 3, "tokens": 330})
    assert way(orchestrator.state_machine.history) == [
        *("initialized", "planning", "validating", "implementing", "judging", "succeeded")
    ]
    assert way(watching.seen) == ["implementing", "judging", "succeeded"]
    assert watching.metrics[-1] == orchestrator.state_machine.get_total_metrics()


def test_without_its_functions_a_run_is_left_as_it_was_and_says_what_it_lacks(tmp_path: Path) -> None:
    cut_off(tmp_path, 8)
    with pytest.raises(DefinitionError, match="run cut cannot go on here: check 'keel' names the function 'keel'"):
        resume("cut")
    with opened(None) as store:
        assert asyncio.run(show(store, "cut")).summary.states == ("implementing",)


def test_a_run_that_is_no_pipeline_is_not_resumed_as_one() -> None:
    run(OTHER, run_id="other")
    with pytest.raises(Refused, match="run other is not a pipeline"):
        AgentOrchestrator(JobConfig()).resume("other")


# the view


@pytest.mark.covers("P13")
def test_the_state_machine_shows_the_run_with_true_figures(tmp_path: Path) -> None:
    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 6, 4, 9), run_id="seen"))
    result = orchestrator.run(BRIEF)
    states = orchestrator.state_machine
    assert way(states.history) == [
        *("initialized", "planning", "validating", "implementing", "judging"),
        *("implementing", "judging", "planning", "validating", "implementing", "judging", "succeeded"),
    ]
    assert [one.tokens_consumed for one in states.history] == [0, 100, 0, 200, 30, 200, 30, 100, 0, 200, 30]
    assert states.get_total_metrics()["total_tokens"] == result.usage["tokens"]
    assert states.iteration_count == result.iterations == 2
    assert [one.reason for one in states.history if one.reason] == [
        "Soft failure, refining implementation",
        "Hard failure, replanning",
    ]
    with opened(None) as store:
        entries = asyncio.run(show(store, "seen")).entries
    assert [one.timestamp for one in states.history] == [entry["at"] for entry in entries]
    total = states.get_total_metrics()["total_duration_seconds"]
    assert total == pytest.approx(entries[-1]["at"] - entries[0]["at"])


def test_a_transition_carries_what_the_state_has_brought(tmp_path: Path) -> None:
    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 9)))
    orchestrator.run(BRIEF)
    assert [one.context for one in orchestrator.state_machine.history] == [
        {},
        {"plan": PLAN},
        {"objections": []},
        {"implementation": "boat 1"},
        {"evaluation": {"score": 9, "issues": ["it leaks"]}},
    ]
    assert json.loads(json.dumps(encode(orchestrator.state_machine.history)))


def test_what_failed_attempts_used_counts_for_the_state_that_they_were_made_in(tmp_path: Path) -> None:
    tries: list[str] = []

    async def implementer(prompt: str) -> Reply:
        tries.append(prompt)
        if len(tries) == 1:
            raise EffectFailed("again", usage={"tokens": 11})
        return Reply("a boat", usage={"tokens": 5})

    orchestrator = AgentOrchestrator(JobConfig(agents={"implementer": implementer}, model=script(tmp_path, 9)))
    result = orchestrator.run(BRIEF)
    metrics = orchestrator.state_machine.get_state_metrics(OrchestrationState.IMPLEMENTING)
    assert (metrics.visit_count, metrics.total_tokens) == (1, 16)
    assert result.usage["tokens"] == 146


def test_each_run_has_a_view_of_its_own(tmp_path: Path) -> None:
    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 9)))
    orchestrator.run(BRIEF)
    orchestrator.run(BRIEF)
    assert len(orchestrator.state_machine.history) == 5


def test_the_report_is_logged_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "moothall.pipeline"):
        AgentOrchestrator(JobConfig(model=script(tmp_path, 9))).run(BRIEF)
    assert [message.split()[0] for message in caplog.messages] == ["State"] * 5 + ["==="]
    assert "Final State: succeeded\nIterations: 1 / 3" in caplog.text


# observers


@pytest.mark.covers("P17")
def test_observers_are_told_every_transition_and_the_figures_after_it(tmp_path: Path) -> None:
    orchestrator, watching = AgentOrchestrator(JobConfig(model=script(tmp_path, 6, 9))), Watching()
    orchestrator.add_observer(watching)
    orchestrator.run(BRIEF)
    assert watching.seen == orchestrator.state_machine.history
    assert [one["total_transitions"] for one in watching.metrics] == list(range(1, 8))
    assert watching.metrics[-1] == orchestrator.state_machine.get_total_metrics()


@pytest.mark.parametrize("part", ["on_state_transition", "on_metrics_update"])
@pytest.mark.covers("P17")
def test_an_observer_that_raises_is_logged_once_and_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    class Raising(Watching):
        pass

    def fail(self: Raising, told: object) -> None:
        raise RuntimeError("the monitor is down")

    setattr(Raising, part, fail)
    orchestrator, watching = AgentOrchestrator(JobConfig(model=script(tmp_path, 6, 9))), Watching()
    orchestrator.add_observer(Raising())
    orchestrator.add_observer(watching)
    assert orchestrator.run(BRIEF).success
    assert len(watching.seen) == len(orchestrator.state_machine.history) == 7
    assert [record.levelname for record in caplog.records].count("ERROR") == 1
    assert "Raising raised; it is told nothing more of this run" in caplog.text


def test_what_an_observer_does_to_what_it_is_told_changes_nothing(tmp_path: Path) -> None:
    class Meddling(Watching):
        def on_state_transition(self, transition: StateTransition) -> None:
            transition.tokens_consumed = 10**9
            transition.context.clear()

        def on_metrics_update(self, metrics: dict[str, Any]) -> None:
            metrics.clear()

    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 9)))
    orchestrator.add_observer(Meddling())
    orchestrator.run(BRIEF)
    assert orchestrator.state_machine.get_total_metrics()["total_tokens"] == 330
    assert orchestrator.state_machine.history[1].context == {"plan": PLAN}


@pytest.mark.covers("P17")
def test_the_metrics_logger_logs_transitions_and_figures(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    orchestrator = AgentOrchestrator(JobConfig(model=script(tmp_path, 9)))
    orchestrator.add_observer(MetricsLogger())
    with caplog.at_level(logging.INFO, "moothall.pipeline"):
        orchestrator.run(BRIEF)
    assert any(one.startswith("Transition: judging → succeeded, Duration: ") for one in caplog.messages)
    assert sum(one.startswith("Metrics: ") for one in caplog.messages) == 5


# checks


def has_a_keel(draft: Draft) -> bool | str:
    return "keel" in draft.plan.steps or f"{draft.brief} needs a keel of {draft.inputs['wood']}"


def test_a_plan_that_does_not_pass_is_made_anew_with_what_speaks_against_it(tmp_path: Path) -> None:
    plans = [{"value": {"summary": "a boat", "steps": steps}} for steps in (["cut"], ["cut", "keel"])]
    lines = {"planner": plans, "implementer": ["a boat"], "judge": [judged(9)]}
    (tmp_path / "script.json").write_text(json.dumps(lines))
    config = JobConfig(
        checks={"keel": has_a_keel, "steps": "plan.steps.length > 1"}, model=f"scripted:{tmp_path / 'script.json'}"
    )
    orchestrator = AgentOrchestrator(config)
    assert orchestrator.run(BRIEF, inputs={"wood": "oak"}).iterations == 2
    [again] = [one for one in orchestrator.state_machine.history if one.reason]
    assert again.reason == "Validation failed, retrying with feedback"
    assert again.context == {"objections": ["keel: a boat needs a keel of oak", "steps: it does not hold"]}


def objections(checks: Mapping[str, Any], plan: Mapping[str, Any] = PLAN) -> list[str]:
    functions = {name: one for name, one in checks.items() if callable(one)}
    return asyncio.run(checker(functions)(plan=plan, checks=encode(as_checks(checks)), brief=BRIEF, inputs={"a": 1}))


def test_expressions_see_plan_brief_and_inputs() -> None:
    assert objections({"all": "plan.steps.join() === 'cut,glue' && brief === 'a boat' && inputs.a === 1"}) == []


def test_the_usual_checks_pass_a_usual_plan() -> None:
    assert objections(DEFAULT_CHECKS) == []
    assert objections(DEFAULT_CHECKS, {"summary": "", "steps": []}) == [
        "has_summary: the plan has no summary; say in short what it does",
        "has_steps: the plan has no steps; list what is to be done",
    ]


@pytest.mark.parametrize(
    ("check", "complaint"),
    [
        ("plan.stepz.length > 1", "check 'mine', 'plan.stepz.length > 1': TypeError"),
        ("plan.steps.length", "check 'mine' gave 2; a check gives true or false"),
        ("undefined", "check 'mine' gave nothing; a check gives true or false"),
        ("while (true) {}", "check 'mine', 'while"),
        (lambda draft: None, "check 'mine' gave None; a check gives True, False or what is wrong"),
        (lambda draft: 1 / 0, "check 'mine': ZeroDivisionError: division by zero"),
        (lambda draft: sys.exit(0), "check 'mine': SystemExit: 0"),
    ],
    ids=["wrong name", "a number", "nothing", "no end", "None", "raising", "leaving"],
)
def test_a_check_that_goes_wrong_fails_the_run_and_is_never_taken_for_no(
    tmp_path: Path, check: Any, complaint: str
) -> None:
    orchestrator = AgentOrchestrator(JobConfig(checks={"mine": check}, model=script(tmp_path)))
    result = orchestrator.run(BRIEF)
    assert result.final_state == OrchestrationState.FAILED
    assert complaint in result.reason
    assert way(orchestrator.state_machine.history)[-2:] == ["validating", "failed"]


@pytest.mark.parametrize("checks", [{"": "true"}, {"empty": ""}, {"number": 3}])
def test_checks_that_are_none_are_refused_before_anything_begins(checks: Any) -> None:
    with pytest.raises(DefinitionError, match="checks="):
        AgentOrchestrator(JobConfig(checks=checks, model="rehearsal")).run(BRIEF)


def test_a_function_that_nobody_registered_here_fails_the_run_by_name() -> None:
    with pytest.raises(DefinitionError, match="names the function 'keel', which is not registered; there are has_sum"):
        asyncio.run(checker({})(plan=PLAN, checks=[{"name": "keel", "function": "keel"}], brief="", inputs={}))


def test_a_file_of_checks_is_read_with_its_feedback(tmp_path: Path) -> None:
    file = tmp_path / "checks.json"
    two = {"name": "two", "expression": "plan.steps.length > 2", "feedback": "more"}
    file.write_text(json.dumps([two, {"name": "steps", "function": "has_steps"}]))
    checks = read_checks(file)
    assert asyncio.run(checker({})(plan=PLAN, checks=encode(checks), brief="", inputs={})) == ["two: more"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ('{"name": "a"}', "expected a list"),
        ('[{"name": "a"}]', "either an expression or a function"),
        ('[{"name": "a", "expression": "1", "function": "has_steps"}]', "either an expression or a function"),
        ('[{"name": "a", "expresion": "true"}]', "unknown field 'expresion'"),
        ('[{"name": "a", "function": "os.system"}]', "which is not registered; there are has_summary"),
        ('[{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]', "two checks are called 'a'"),
    ],
)
def test_a_file_of_checks_that_is_wrong_is_refused_with_its_name(
    tmp_path: Path, text: str | None, complaint: str
) -> None:
    file = tmp_path / "checks.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DefinitionError, match=r"checks\.json: ") as refused:
        read_checks(file)
    assert complaint in str(refused.value)
