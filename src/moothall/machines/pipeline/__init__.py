"""The pipeline: plan, validate, implement, judge, until the judge is content or no attempt is left.

- A judge's score of `pass_score` or more is a success. Below `soft_fail_score` the failure is hard and the plan is made
  anew; in between it is soft and the implementation is refined. A plan that does not pass its checks is made anew.
- Each of these is a further attempt. A pipeline of size N has at most N, the first one included; then it has failed.
  Visits of `planning` and `implementing` are bounded by N as well, so that the certificate knows.
- What the last attempt was told is part of the next question; the judge is shown its earlier verdicts.
- The best so far is kept at every step, so that every end has it: what was judged counts more than what was not, then
  the score, and of two alike the later one.
- A limit that is reached anywhere leads to `budget_exhausted`, also on the way into a validation, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache, partial
from importlib.resources import files
from typing import Annotated, Any

from moothall.agents.ask import CallTool, Replied, Returned, ask, call, tool
from moothall.kernel.codec import encode
from moothall.kernel.events import Event, Exhausted, GaveUp
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, always
from moothall.machines.pipeline.plans import DEFAULT_CHECKS, Check, Plan

NAME = "pipeline"
MAX_ITERATIONS = 3
HIGHEST = 10.0
CHECK_PLAN = "check_plan"
"""The tool that evaluates the checks: what speaks against a plan, as texts; none where nothing does."""
WORKING = ("planning", "validating", "implementing", "judging")
NOTHING, PLANNED, SOUND, IMPLEMENTED, JUDGED = range(5)


class Verdict(Frozen):
    """What the judge says: a score from 0 to 10, and what is wrong."""

    score: Annotated[float, {"minimum": 0, "maximum": HIGHEST}]
    issues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.score <= HIGHEST:
            raise ValueError(f"a score is a number from 0 to {HIGHEST:g}, not {self.score:g}")


class Best(Frozen):
    """The best so far, and how far it came."""

    plan: Plan | None = None
    implementation: str = ""
    score: float | None = None
    stage: int = NOTHING


class Job(Frozen):
    """A brief, what is asked of the result, and all that was made for it."""

    brief: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    pass_score: float = 7.0
    soft_fail_score: float = 5.0
    checks: tuple[Check, ...] = tuple(Check(name, function=name) for name in DEFAULT_CHECKS)
    plan: Plan | None = None
    implementation: str = ""
    feedback: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    best: Best = field(default_factory=Best)
    attempts: int = 0
    iterations: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.brief.strip():
            raise ValueError("the brief is empty; say what is to be made")
        if not 0 <= self.soft_fail_score <= self.pass_score <= HIGHEST:
            raise ValueError(
                f"scores go from 0 to {HIGHEST:g}, and soft_fail_score ({self.soft_fail_score:g}) is not above "
                f"pass_score ({self.pass_score:g})"
            )


# guards


def has_attempts_left(job: Job, _: Event, *, most: int) -> bool:
    """Whether there may be one more attempt."""
    return job.attempts < most


def is_sound(job: Job, returned: Returned) -> bool:
    """Whether nothing speaks against the plan."""
    return not returned.value


def passes(job: Job, replied: Replied) -> bool:
    """Whether the judge is content."""
    score: float = replied.value.score
    return score >= job.pass_score


def may_be_refined(job: Job, replied: Replied, *, most: int) -> bool:
    """Whether the failure is soft and there may be one more attempt."""
    score: float = replied.value.score
    return score >= job.soft_fail_score and has_attempts_left(job, replied, most=most)


# moves


def begin(job: Job, _: Event) -> Job:
    """Begin the first attempt."""
    return replace(job, attempts=1)


def count_iteration(job: Job, _: Event) -> Job:
    """Planning was left: one more iteration."""
    return replace(job, iterations=job.iterations + 1)


def keep_plan(job: Job, replied: Replied) -> Job:
    """Keep the plan; what was made of an earlier one is no longer of use."""
    made = replace(job, plan=replied.value, implementation="", feedback=())
    return _keep_better(made, Best(replied.value, stage=PLANNED))


def keep_sound_plan(job: Job, _: Returned) -> Job:
    """Keep that nothing speaks against the plan."""
    return _keep_better(job, Best(job.plan, stage=SOUND))


def keep_implementation(job: Job, replied: Replied) -> Job:
    """Keep the implementation."""
    made = replace(job, implementation=replied.text, feedback=())
    return _keep_better(made, Best(job.plan, replied.text, stage=IMPLEMENTED))


def keep_verdict(job: Job, replied: Replied) -> Job:
    """Keep the verdict."""
    verdict: Verdict = replied.value
    judged = replace(job, verdicts=(*job.verdicts, verdict))
    return _keep_better(judged, Best(job.plan, job.implementation, verdict.score, JUDGED))


def _keep_better(job: Job, made: Best) -> Job:
    def rank(best: Best) -> tuple[int, float]:
        return best.stage, best.score or 0.0

    return replace(job, best=made) if rank(made) >= rank(job.best) else job


def plan_anew(job: Job, returned: Returned) -> Job:
    """Go on to the next attempt with what speaks against the plan."""
    return replace(job, attempts=job.attempts + 1, feedback=tuple(returned.value))


def mend(job: Job, replied: Replied) -> Job:
    """Go on to the next attempt with what the judge found."""
    return replace(keep_verdict(job, replied), attempts=job.attempts + 1, feedback=_faults_of(replied.value))


def _faults_of(verdict: Verdict) -> tuple[str, ...]:
    return (f"the judge's score is {verdict.score:g} of {HIGHEST:g}", *verdict.issues)


def refuse(job: Job, _: Event) -> Job:
    """End before the first attempt."""
    return replace(job, reason="no attempt is allowed: max_iterations is 0")


def end_unsound(job: Job, returned: Returned) -> Job:
    """End with what speaks against the last plan."""
    return replace(job, feedback=tuple(returned.value), reason=_no_more(job, tuple(returned.value)))


def end_unaccepted(job: Job, replied: Replied) -> Job:
    """End with what the judge found last."""
    found = _faults_of(replied.value)
    return replace(keep_verdict(job, replied), feedback=found, reason=_no_more(job, found))


def _no_more(job: Job, found: tuple[str, ...]) -> str:
    return f"no attempt is left after {job.attempts}: {'; '.join(found)}"


def give_up(job: Job, gave_up: GaveUp) -> Job:
    """End because somebody did not do their part."""
    return replace(job, reason=gave_up.reason)


def stop(job: Job, exhausted: Exhausted) -> Job:
    """End because a limit was reached."""
    return replace(job, reason=f"limit of {exhausted.limit:g} {exhausted.resource} reached in {exhausted.where}")


def the_best(job: Job) -> dict[str, Any]:
    """What the pipeline gives, however it ends; `reason` is empty where it succeeded."""
    best = job.best
    return {
        "implementation": best.implementation,
        "plan": encode(best.plan),
        "score": best.score,
        "verdicts": encode(job.verdicts),
        "iterations": job.iterations,
        "reason": job.reason,
    }


def _prompt(name: str) -> str:
    return files(__name__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8").strip()


@lru_cache(maxsize=64)
def pipeline(max_iterations: int = MAX_ITERATIONS) -> Machine:
    """The machine of a pipeline with at most so many attempts."""
    visits = max(1, max_iterations)  # a state that nothing may enter would be a mistake in the table
    attempt = partial(has_attempts_left, most=max_iterations)
    refinement = partial(may_be_refined, most=max_iterations)
    planner = ask("planner", _prompt("plan"), reply=Plan)
    checks = call(tool(CHECK_PLAN, repeats="pure"), "plan", "checks", "brief", "inputs")
    implementer = ask("implementer", _prompt("implement"))
    judge = ask("judge", _prompt("judge"), reply=Verdict)
    return Machine(
        NAME if max_iterations == MAX_ITERATIONS else f"{NAME}-{max_iterations}",
        data=Job,
        kind="pipeline",
        result=the_best,
        costs={CallTool.kind: {"calls": 0}},
        states=[
            State("initialized"),
            State("planning", enter=planner, exit=count_iteration, max_visits=visits),
            State("validating", enter=checks),
            State("implementing", enter=implementer, max_visits=visits),
            State("judging", enter=judge),
            Final("succeeded"),
            Final("failed", ends="failed"),
            Final("budget_exhausted", ends="limited"),
        ],
        moves=[
            On("initialized", always, to="planning", when=attempt, do=begin),
            On("initialized", always, to="failed", do=refuse),
            On("planning", Replied, to="validating", do=keep_plan),
            On("validating", Returned, to="implementing", when=is_sound, do=keep_sound_plan),
            On("validating", Returned, to="planning", when=attempt, do=plan_anew),
            On("validating", Returned, to="failed", do=end_unsound),
            On("implementing", Replied, to="judging", do=keep_implementation),
            On("judging", Replied, to="succeeded", when=passes, do=keep_verdict),
            On("judging", Replied, to="implementing", when=refinement, do=mend),
            On("judging", Replied, to="planning", when=attempt, do=mend),
            On("judging", Replied, to="failed", do=end_unaccepted),
            *(On(state, GaveUp, to="failed", do=give_up) for state in WORKING),
            *(On(state, Exhausted, to="budget_exhausted", do=stop) for state in WORKING),
        ],
    )
