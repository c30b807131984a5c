"""The pipeline as a machine: both loops, every end, and the best so far at each of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.analysis.certify import Certificate, certify
from moothall.analysis.verify import verify
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import Effect
from moothall.kernel.events import Cancelled, Event, Exhausted, GaveUp
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Step
from moothall.machines.pipeline import CHECK_PLAN, WORKING, Best, Job, Verdict, pipeline, the_best
from moothall.machines.pipeline.plans import DEFAULT_CHECKS, LONGEST_PLAN, MOST_STEPS, Check, Draft, Plan
from moothall.runtime.decide import outcome

PLAN, OTHER = Plan("a boat", ("cut", "glue")), Plan("a raft", ("tie",))
PLANNED, REPLANNED = Replied("planner", value=PLAN, shape="Plan"), Replied("planner", value=OTHER, shape="Plan")
SOUND, UNSOUND = Returned[list[str]](CHECK_PLAN, []), Returned(CHECK_PLAN, ["keel: it has none"])
MADE, MENDED = Replied("implementer", "a wooden boat"), Replied("implementer", "a better boat")


def judged(score: float, *issues: str) -> Replied:
    return Replied("judge", value=Verdict(score, issues), shape="Verdict")


GOOD, SOFT, HARD = judged(7.0), judged(5.0, "it leaks"), judged(4.9, "it sinks")


def walked(*events: Event, most: int = 3, job: Job | None = None) -> list[Step]:
    """The steps of a pipeline in which these things happen."""
    machine = pipeline(most)
    first = start(machine, job or Job("a boat"))
    assert isinstance(first, Step)
    steps = [first]
    for event in events:
        step = transition(machine, steps[-1].snapshot, event)
        assert isinstance(step, Step)
        steps.append(step)
    return steps


def states(steps: Sequence[Step]) -> list[str]:
    return [step.snapshot.active[0] for step in steps]


def data(steps: Sequence[Step]) -> Job:
    job = steps[-1].snapshot.data
    assert isinstance(job, Job)
    return job


def wanted(step: Step) -> Effect:
    [request] = step.effects
    return request.effect


def asked(step: Step) -> AskAgent:
    effect = wanted(step)
    assert isinstance(effect, AskAgent)
    return effect


# the paths


@pytest.mark.covers("P5")
def test_a_pipeline_that_goes_well_plans_validates_implements_and_judges() -> None:
    steps = walked(PLANNED, SOUND, MADE, GOOD)
    assert states(steps) == [*WORKING, "succeeded"]
    assert steps[-1].snapshot.status == "done"
    assert data(steps).reason == ""


@pytest.mark.parametrize(
    ("score", "state"),
    [
        (10, "succeeded"),
        (7.0, "succeeded"),
        (6.99, "implementing"),
        (5.0, "implementing"),
        (4.99, "planning"),
        (0, "planning"),
    ],
)
@pytest.mark.covers("P8")
def test_the_score_decides_between_success_soft_and_hard_failure(score: float, state: str) -> None:
    assert states(walked(PLANNED, SOUND, MADE, judged(score)))[-1] == state


@pytest.mark.parametrize(("score", "state"), [(9, "succeeded"), (8.9, "implementing"), (7.9, "planning")])
def test_the_scores_that_decide_can_be_set(score: float, state: str) -> None:
    job = Job("a boat", pass_score=9, soft_fail_score=8)
    assert states(walked(PLANNED, SOUND, MADE, judged(score), job=job))[-1] == state


def test_a_plan_that_does_not_pass_its_checks_is_made_anew() -> None:
    assert states(walked(PLANNED, UNSOUND))[-1] == "planning"


def test_a_soft_failure_is_refined_without_a_new_plan_and_judged_again() -> None:
    steps = walked(PLANNED, SOUND, MADE, SOFT, MENDED, GOOD)
    assert states(steps)[-3:] == ["implementing", "judging", "succeeded"]
    assert data(steps).iterations == 1


# attempts


LOOPS = {"soft": (SOFT, MENDED), "hard": (HARD, PLANNED, SOUND, MADE)}


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("loop", ["soft", "hard"])
def test_so_many_attempts_are_made_and_no_more(most: int, loop: str) -> None:
    events = [PLANNED, SOUND, MADE, *(LOOPS[loop] * (most - 1))]
    steps = walked(*events, most=most)
    assert (states(steps)[-1], data(steps).attempts) == ("judging", most)
    last = walked(*events, SOFT if loop == "soft" else HARD, most=most)
    assert states(last)[-1] == "failed"
    assert data(last).reason.startswith(f"no attempt is left after {most}: the judge's score is ")


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_so_many_plans_are_validated_and_no_more(most: int) -> None:
    steps = walked(*([PLANNED, UNSOUND] * most), most=most)
    assert states(steps)[-2:] == ["validating", "failed"]
    assert data(steps).reason == f"no attempt is left after {most}: keel: it has none"
    assert data(steps).iterations == most


def test_the_attempts_of_all_loops_are_counted_together() -> None:
    steps = walked(PLANNED, UNSOUND, PLANNED, SOUND, MADE, SOFT, MENDED, SOFT)
    assert states(steps)[-1] == "failed"
    assert data(steps).iterations == 2


def test_one_attempt_is_one_full_pass() -> None:
    assert states(walked(PLANNED, SOUND, MADE, GOOD, most=1))[-1] == "succeeded"


def test_without_any_attempt_the_pipeline_has_failed_before_it_asked_anybody() -> None:
    steps = walked(most=0)
    assert (states(steps), steps[0].snapshot.status, steps[0].effects) == (["failed"], "done", ())
    assert data(steps).reason == "no attempt is allowed: max_iterations is 0"


def test_iterations_are_exits_from_planning_however_it_is_left() -> None:
    for event in (PLANNED, GaveUp("no"), Exhausted("tokens", 1, "planning"), Cancelled("enough")):
        assert data(walked(event)).iterations == 1


# what is told to whom


def test_the_planner_is_told_what_speaks_against_its_plan() -> None:
    steps = walked(PLANNED, UNSOUND)
    assert asked(steps[0]).arguments == {"brief": "a boat", "inputs": {}, "plan": None, "feedback": []}
    assert asked(steps[2]).arguments["plan"] == encode(PLAN)
    assert asked(steps[2]).arguments["feedback"] == ["keel: it has none"]


def test_after_a_hard_failure_the_planner_is_told_what_the_judge_found() -> None:
    steps = walked(PLANNED, SOUND, MADE, HARD)
    assert asked(steps[-1]).agent == "planner"
    assert asked(steps[-1]).arguments["feedback"] == ["the judge's score is 4.9 of 10", "it sinks"]


def test_after_a_soft_failure_the_implementer_has_its_work_and_what_the_judge_found() -> None:
    steps = walked(PLANNED, SOUND, MADE, SOFT)
    assert asked(steps[-1]).agent == "implementer"
    assert asked(steps[-1]).arguments["implementation"] == "a wooden boat"
    assert asked(steps[-1]).arguments["feedback"] == ["the judge's score is 5 of 10", "it leaks"]


def test_a_new_plan_is_implemented_from_scratch() -> None:
    steps = walked(PLANNED, SOUND, MADE, HARD, REPLANNED, SOUND)
    arguments = asked(steps[-1]).arguments
    assert (arguments["plan"], arguments["implementation"], arguments["feedback"]) == (encode(OTHER), "", [])


def test_the_judge_sees_its_earlier_verdicts() -> None:
    steps = walked(PLANNED, SOUND, MADE, SOFT, MENDED)
    assert asked(steps[-1]).agent == "judge"
    assert asked(steps[-1]).arguments["verdicts"] == [{"score": 5.0, "issues": ["it leaks"]}]
    assert asked(steps[-1]).arguments["implementation"] == "a better boat"


def test_the_inputs_reach_everybody() -> None:
    steps = walked(PLANNED, SOUND, MADE, job=Job("a boat", {"wood": "oak"}))
    assert [getattr(wanted(step), "arguments", {})["inputs"] for step in steps] == [{"wood": "oak"}] * 4


def test_a_validation_is_a_pure_tool_that_gets_the_plan_and_its_checks() -> None:
    effect = wanted(walked(PLANNED)[-1])
    assert isinstance(effect, CallTool)
    assert (effect.tool, effect.repeats) == (CHECK_PLAN, "pure")
    assert effect.arguments["plan"] == encode(PLAN)
    assert [check["name"] for check in effect.arguments["checks"]] == list(DEFAULT_CHECKS)


# the ends


@pytest.mark.parametrize("number", range(4), ids=WORKING)
def test_a_limit_that_is_reached_leads_to_budget_exhausted_from_every_working_state(number: int) -> None:
    steps = walked(*(PLANNED, SOUND, MADE)[:number], Exhausted("tokens", 900, WORKING[number]))
    assert states(steps)[-2:] == [WORKING[number], "budget_exhausted"]
    assert data(steps).reason == f"limit of 900 tokens reached in {WORKING[number]}"


@pytest.mark.parametrize("number", range(4), ids=WORKING)
def test_somebody_who_gives_up_fails_the_pipeline_from_every_working_state(number: int) -> None:
    steps = walked(*(PLANNED, SOUND, MADE)[:number], GaveUp("the line is dead"))
    assert states(steps)[-1] == "failed"
    assert data(steps).reason == "the line is dead"


@pytest.mark.parametrize("end", [(PLANNED, SOUND, MADE, GOOD), (PLANNED, UNSOUND) * 3, (Exhausted("tokens", 1),)])
@pytest.mark.parametrize("event", [PLANNED, SOUND, GOOD, GaveUp("no"), Exhausted("tokens", 1), Cancelled("no")])
def test_a_finished_pipeline_takes_nothing_more(end: tuple[Event, ...], event: Event) -> None:
    before, after = walked(*end, event)[-2:]
    assert (after.taken, after.snapshot) == ((), before.snapshot)


# the best so far


ENDS: dict[str, Event] = {
    "failed": GaveUp("no"),
    "exhausted": Exhausted("tokens", 1, "planning"),
    "cancelled": Cancelled("enough"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("events", "best"),
    [
        ((), Best()),
        ((PLANNED,), Best(PLAN, stage=1)),
        ((PLANNED, UNSOUND), Best(PLAN, stage=1)),
        ((PLANNED, UNSOUND, REPLANNED), Best(OTHER, stage=1)),
        ((PLANNED, SOUND), Best(PLAN, stage=2)),
        ((PLANNED, SOUND, MADE), Best(PLAN, "a wooden boat", stage=3)),
        ((PLANNED, SOUND, MADE, SOFT), Best(PLAN, "a wooden boat", 5.0, 4)),
        ((PLANNED, SOUND, MADE, SOFT, MENDED), Best(PLAN, "a wooden boat", 5.0, 4)),
        ((PLANNED, SOUND, MADE, SOFT, MENDED, HARD), Best(PLAN, "a wooden boat", 5.0, 4)),
        ((PLANNED, SOUND, MADE, SOFT, MENDED, judged(6)), Best(PLAN, "a better boat", 6.0, 4)),
        ((PLANNED, SOUND, MADE, SOFT, MENDED, SOFT), Best(PLAN, "a better boat", 5.0, 4)),
        ((PLANNED, SOUND, MADE, HARD, REPLANNED, SOUND), Best(PLAN, "a wooden boat", 4.9, 4)),
    ],
)
def test_the_best_so_far_is_kept_whatever_happens_next(end: str, events: tuple[Event, ...], best: Best) -> None:
    steps = walked(*events, ENDS[end], most=9)
    assert steps[-1].snapshot.status != "live"
    assert data(steps).best == best
    given = outcome(pipeline(9), steps[-1].snapshot.output, steps[-1].snapshot.data)
    assert (given["implementation"], given["score"]) == (best.implementation, best.score)


def test_what_no_attempt_is_left_for_is_still_kept_with_its_verdict() -> None:
    job = data(walked(PLANNED, SOUND, MADE, SOFT, most=1))
    assert job.best == Best(PLAN, "a wooden boat", 5.0, 4)
    assert job.verdicts == (Verdict(5.0, ("it leaks",)),)


def test_the_result_says_what_was_made_how_it_was_judged_and_why_it_ended() -> None:
    assert the_best(data(walked(PLANNED, SOUND, MADE, SOFT, MENDED, GOOD))) == {
        "implementation": "a better boat",
        "plan": encode(PLAN),
        "score": 7.0,
        "verdicts": [{"score": 5.0, "issues": ["it leaks"]}, {"score": 7.0, "issues": []}],
        "iterations": 1,
        "reason": "",
    }


# values


@pytest.mark.parametrize("score", [-0.1, 10.1, 85])
def test_a_score_is_a_number_from_0_to_10(score: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 10"):
        Verdict(score)


@pytest.mark.parametrize(
    "given",
    [
        {"brief": " "},
        {"brief": "x", "pass_score": 11},
        {"brief": "x", "soft_fail_score": -1},
        {"brief": "x", "pass_score": 4},
    ],
)
def test_a_job_that_cannot_be_meant_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"empty|scores"):
        Job(**given)


@pytest.mark.parametrize("given", [("",), ("both", "1", "f"), ("neither",)])
def test_a_check_has_a_name_and_either_an_expression_or_a_function(given: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"name|either"):
        Check(*given)


def test_a_job_is_the_same_before_and_after_it_was_stored() -> None:
    for step in walked(PLANNED, UNSOUND, REPLANNED, SOUND, MADE, SOFT, MENDED, GOOD):
        assert decode(Job, encode(step.snapshot.data)) == step.snapshot.data


# the checks that come with the package


@pytest.mark.parametrize(
    ("plan", "objects"),
    [
        (PLAN, []),
        (replace(PLAN, summary=" "), ["has_summary"]),
        (replace(PLAN, steps=()), ["has_steps"]),
        (replace(PLAN, steps=("cut", "")), ["has_steps"]),
        (replace(PLAN, steps=("cut",) * MOST_STEPS), []),
        (replace(PLAN, steps=("cut",) * (MOST_STEPS + 1)), ["is_not_too_long"]),
        (replace(PLAN, steps=("x" * LONGEST_PLAN,)), ["is_not_too_long"]),
    ],
)
def test_the_usual_checks_object_to_plans_that_are_empty_or_endless(plan: Plan, objects: list[str]) -> None:
    said = {name: check(Draft(plan, "a boat")) for name, check in DEFAULT_CHECKS.items()}
    assert [name for name, word in said.items() if word is not True] == objects
    assert all(isinstance(word, str) and word for word in said.values() if word is not True)


# the machine itself


@pytest.mark.parametrize("most", [0, 1, 2, 3, 10])
def test_the_check_finds_nothing_and_the_loops_are_bounded(most: int) -> None:
    assert verify(pipeline(most)) == ()
    certificate = certify(pipeline(most))
    assert isinstance(certificate, Certificate)
    assert certificate.resources["ask.agent"] == 3 * max(1, most)
    assert certificate.transitions == 1 + 4 * max(1, most)


def test_the_certificate_of_the_usual_pipeline_is_exact() -> None:
    most = {"ask.agent": 9, "call.tool": 3, "calls": 27}
    assert certify(pipeline()) == Certificate(13, most, exact=True, once={"calls": 9})


def test_a_pipeline_is_called_by_its_size_unless_it_has_the_usual_one() -> None:
    named: list[Machine] = [pipeline(), pipeline(3), pipeline(5)]
    assert [machine.name for machine in named] == ["pipeline", "pipeline", "pipeline-5"]
    assert {machine.kind for machine in named} == {"pipeline"}
    assert pipeline(3).digest == pipeline().digest != pipeline(5).digest
