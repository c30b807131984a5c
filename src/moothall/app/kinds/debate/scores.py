"""Scores of debates: read from a rubric and from runs, and shown as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from moothall.app.config.settings import cleaner
from moothall.app.kinds.debate.files import read_plain
from moothall.app.kinds.debate.report import solution_of
from moothall.app.kinds.kind import Presented
from moothall.app.report.section import Part, Section, Table
from moothall.app.report.tables import cell, markdown_section
from moothall.app.runs.outcome import Outcome
from moothall.errors import Refused
from moothall.kernel.codec import decode
from moothall.kernel.machine import Machine
from moothall.machines.debate.score import Rubric, Scoring, Subject, read_rubric, scores_of, scoring
from moothall.machines.debate.state import Debate, Solution
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FORMS = (".md", ".csv", ".json")


def rubric_at(path: Path) -> Rubric:
    """The rubric in a file."""
    return read_rubric(read_plain(path, "the rubric"), str(path))


async def scoring_of(store: Store, rubric: Rubric, runs: Iterable[RunId]) -> Scoring:
    """What is to be scored: the solutions of these debates."""
    return Scoring(rubric, tuple([await _subject(store, run) for run in runs]))


def machine_of_scoring(begun: Scoring) -> Machine:
    """The machine of the size that a scoring needs."""
    return scoring(len(begun.keys))


async def _subject(store: Store, run: RunId) -> Subject:
    stored = await store.load(run)
    data = stored.head.get("snapshot", {}).get("data") if stored.head else None
    if not isinstance(data, Mapping) or "problem" not in data or "configuration" not in data:
        raise Refused(f"run {run} is not a debate; only debates can be scored")
    debate = decode(Debate, data, "data")
    solution = solution_of(debate)
    if solution is None:
        raise Refused(f"run {run} has no solution yet; `moot resume {run}` goes on with it")
    return Subject(run, debate.problem, _text(solution))


def _text(solution: Solution) -> str:
    """A solution as judges see it: without how sure anybody is."""
    parts = [f"Answer: {solution.answer}" if solution.answer else "", solution.description]
    for title, items in (("Trade-offs", solution.tradeoffs), ("Recommendations", solution.recommendations)):
        parts.append("\n".join([f"{title}:", *(f"- {item}" for item in items)]) if items else "")
    return "\n\n".join(filter(None, parts))


def present_scores(outcome: Outcome) -> Presented:
    """Scores for programs and for people; a scoring in which every judge failed has failed."""
    assert isinstance(outcome.data, Scoring)
    result = {"run_id": outcome.run, "status": outcome.status, **scores_of(outcome.data), "usage": dict(outcome.spent)}
    if outcome.status != "done":
        return Presented(result, "", outcome.status)
    return Presented(result, _markdown(result), outcome.status if outcome.data.points else "failed")


def scores_in(result: Mapping[str, Any], form: str) -> str:
    """Scores in a form that files have."""
    match form:
        case ".json":
            text = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
        case ".csv":
            text = _csv(result)
        case _:
            text = _markdown(result) + "\n"
    return str(cleaner()(text))


def _markdown(result: Mapping[str, Any]) -> str:
    rows = tuple(
        (
            run["run"],
            *(_format_points(run["criteria"][name]) for name in result["criteria"]),
            _format_points(run["score"]),
        )
        for run in sorted(result["runs"], key=lambda run: -(run["score"] or 0))
    )
    failed = tuple(f"{key}: {why}" for key, why in result["failed"].items())
    table = Table(("run", *result["criteria"], "score"), rows)
    parts: tuple[Part, ...] = (table, *(f"Without its points: {text}" for text in failed))
    return markdown_section(Section("Scores, 1 to 10", parts))


def _format_points(points: float | None) -> str:
    return "none" if points is None else f"{points:g}"


def _csv(result: Mapping[str, Any]) -> str:
    """A row for each judge and criterion."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("run", "judge", "criterion", "points", "reason"))
    for run in result["runs"]:
        for judge, given in run["judges"].items():
            for name, points in given["points"].items():
                writer.writerow((cell(run["run"]), cell(judge), cell(name), points, cell(given["reason"])))
    return text.getvalue()
