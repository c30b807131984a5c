"""What the report of a pipeline adds: its attempts with their scores, its plan, and the best that was made."""

from __future__ import annotations

from moothall.app.report.section import Chart, Listed, Measure, Part, Section, Table
from moothall.machines.pipeline import Job


def sections_of(job: Job) -> tuple[Section, ...]:
    """All sections of a run."""
    sections = (Section("The brief", (job.brief,)), _attempts(job), _plan(job), _best(job))
    return tuple(section for section in sections if section.parts)


def _attempts(job: Job) -> Section:
    if not job.verdicts:
        return Section("The attempts", ())
    rows = tuple(
        (f"attempt {number}", f"{verdict.score:g}", _standing(job, verdict.score), "; ".join(verdict.issues))
        for number, verdict in enumerate(job.verdicts, 1)
    )
    bars = tuple(
        Measure(f"attempt {number}", verdict.score, f"{verdict.score:g} of 10, {_standing(job, verdict.score)}")
        for number, verdict in enumerate(job.verdicts, 1)
    )
    passes = f"An attempt passes with {job.pass_score:g}; below {job.soft_fail_score:g} the plan is made anew."
    return Section("The attempts", (passes, Chart("Scores", bars, 10), Table(("attempt", "score", "", "issues"), rows)))


def _standing(job: Job, score: float) -> str:
    if score >= job.pass_score:
        return "passed"
    return "planned anew" if score < job.soft_fail_score else "refined"


def _plan(job: Job) -> Section:
    if job.plan is None:
        return Section("The plan", ())
    return Section("The plan", (job.plan.summary, Listed("Steps", job.plan.steps)))


def _best(job: Job) -> Section:
    parts: list[Part] = [job.best.implementation] if job.best.implementation else []
    if parts and job.best.score is not None:
        parts.insert(0, f"Score {job.best.score:g} of 10.")
    return Section("The best so far", tuple(parts))
