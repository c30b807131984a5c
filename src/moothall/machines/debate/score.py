"""Scores of solutions by a rubric: every judge scores every solution from 1 to 10, without knowing whose it is.

All are asked at once, in one state; a judge that fails leaves its scores out, and the result says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from importlib.resources import files
from statistics import fmean
from typing import Any

from moothall.agents.ask import AskAgent, Replied
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.events import Event, GaveUp, Named
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting
from moothall.kernel.step import Move
from moothall.machines.debate.definition import JUDGE, SHAPE, AgentConfig
from moothall.machines.schema import Shape, objects, shape, texts

FAMILY = "debate-score"
MOST = 2_000
"""The most asks of one scoring."""

RUBRIC = Shape(
    "Moothall rubric",
    "Rubric",
    {
        "Rubric": shape(
            "What solutions are scored by, and who scores them.",
            ("criteria",),
            {
                "criteria": texts("What is scored, each from 1 to 10."),
                "judges": objects("Agent", "Who scores; one judge by default."),
            },
        ),
        "Agent": SHAPE.parts["Agent"],
        "Summarization": SHAPE.parts["Summarization"],
    },
)


class Rubric(Frozen):
    """What solutions are scored by, and who scores them."""

    criteria: tuple[str, ...]
    judges: tuple[AgentConfig, ...] = (JUDGE,)


class Point(Frozen):
    """What a judge gives for one criterion, from 1 to 10."""

    criterion: str
    points: float

    def __post_init__(self) -> None:
        if not 1 <= self.points <= 10:
            raise ValueError("points go from 1 to 10")


class Points(Frozen):
    """What a judge says of one solution: points for each criterion, and why."""

    points: tuple[Point, ...]
    reason: str = ""


class Scored(Frozen):
    """The points of one judge for one solution, by criterion, and why."""

    points: Mapping[str, float]
    reason: str = ""


class Subject(Frozen):
    """A solution that is scored: the run that it is of, what was asked, and what was answered."""

    run: str
    problem: str
    solution: str


class Scoring(Frozen):
    """Solutions, a rubric, and the points so far, by the key of judge and solution."""

    rubric: Rubric
    subjects: tuple[Subject, ...]
    points: Mapping[str, Scored] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, tuple[AgentConfig, Subject]]:
        """Every judge with every solution, by key."""
        return {
            f"{judge.id}.{place}": (judge, subject)
            for place, subject in enumerate(self.subjects, 1)
            for judge in self.rubric.judges
        }


def read_rubric(plain: Any, where: str) -> Rubric:
    """A rubric from JSON, or a word about what is wrong with it."""
    if not isinstance(plain, Mapping):
        raise DefinitionError(f'{where}: a rubric is an object, such as {{"criteria": ["correct", "clear"]}}')
    wrong = next((problem for problem in RUBRIC.misfits(plain) if problem.level == "error"), None)
    if wrong is not None:
        raise DefinitionError(f"{where}: {wrong.pointer or '/'}: {wrong.why}; {wrong.remedy}")
    try:
        rubric = decode(Rubric, RUBRIC.cleaned(plain), where)
    except Refused as error:
        raise DefinitionError(f"{where}: {error}") from error
    names = [judge.id for judge in rubric.judges]
    if not rubric.criteria or not names or len(set(names)) < len(names):
        raise DefinitionError(f"{where}: name at least one criterion and one judge, and no judge twice")
    return rubric


@lru_cache(maxsize=64)
def scoring(asks: int) -> Machine:
    """The machine that scores with so many asks."""
    if not 1 <= asks <= MOST:
        raise DefinitionError(f"a scoring has from 1 to {MOST} asks, not {asks}; score fewer runs at a time")

    @emitting(AskAgent, most=asks)
    def ask(data: Scoring, event: Event) -> Move[Scoring]:
        return ask_judges(data, event)

    return Machine(
        f"{FAMILY}-{asks}",
        data=Scoring,
        kind="debate",
        start="Scoring",
        result=scores_of,
        replies=[Points],
        inner=["SCORED"],
        prompts={"score": files(__package__).joinpath("prompts/score.md").read_text(encoding="utf-8").strip()},
        states=[State("Scoring", enter=ask, max_visits=1), Final("Complete")],
        moves=[
            On("Scoring", "SCORED", to="Complete"),
            On("Scoring", Replied, do=keep_points, at_most=asks),
            On("Scoring", GaveUp, do=lose_points, at_most=asks),
        ],
    )


def ask_judges(data: Scoring, _: Event) -> Move[Scoring]:
    """Ask every judge about every solution."""
    criteria = ", ".join(data.rubric.criteria)
    asks = tuple(
        AskAgent(
            judge.id,
            "score",
            {"criteria": criteria, "problem": subject.problem, "solution": subject.solution},
            "Points",
            id=key,
            role=judge.role,
            model=judge.played_by,
            temperature=judge.temperature,
            fallback=judge.fallback,
        )
        for key, (judge, subject) in data.keys.items()
    )
    return Move(data, asks)


def keep_points(data: Scoring, replied: Replied) -> Move[Scoring]:
    """Keep the points for the criteria of the rubric."""
    given: Points = replied.value
    said = {point.criterion.strip().casefold(): point.points for point in given.points}
    known = {name: said[name.casefold()] for name in data.rubric.criteria if name.casefold() in said}
    if not known:
        return _close(replace(data, failed={**data.failed, replied.id: "it scored none of the criteria"}))
    return _close(replace(data, points={**data.points, replied.id: Scored(known, given.reason)}))


def lose_points(data: Scoring, gave_up: GaveUp) -> Move[Scoring]:
    """Go on without the points of a judge that failed."""
    return _close(replace(data, failed={**data.failed, gave_up.id: gave_up.reason}))


def _close(data: Scoring) -> Move[Scoring]:
    """The same, with the end behind it where everybody has spoken."""
    is_over = len(data.points) + len(data.failed) == len(data.keys)
    return Move(data, raises=(Named("SCORED"),) if is_over else ())


def scores_of(data: Scoring) -> dict[str, Any]:
    """The scores of each run: by criterion, by judge, and in all."""
    return {
        "criteria": list(data.rubric.criteria),
        "judges": [judge.id for judge in data.rubric.judges],
        "runs": [_scores(data, subject) for subject in data.subjects],
        "failed": dict(data.failed),
    }


def _scores(data: Scoring, subject: Subject) -> dict[str, Any]:
    keys = {key: judge.id for key, (judge, scored) in data.keys.items() if scored == subject}
    given = {judge: data.points[key] for key, judge in keys.items() if key in data.points}
    by_criterion = {
        name: _mean([points.points[name] for points in given.values() if name in points.points])
        for name in data.rubric.criteria
    }
    return {
        "run": subject.run,
        "score": _mean([value for points in given.values() for value in points.points.values()]),
        "criteria": by_criterion,
        "judges": {name: encode(points) for name, points in given.items()},
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 2) if values else None
