"""What the agents of the arena reply, as types: their schema is what a model is told, and what is wrong is said there.

A reply that has the shape and still means nothing (a task without a command, needs in a circle, a confidence above 1)
is refused where it is made, so that the agent is shown the reason and may reply once more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from moothall.errors import BadValue
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.consensus import Verdict
from moothall.machines.arena.plan import (
    Classification,
    Diagnosis,
    Expectation,
    Opinion,
    Plan,
    TaskKind,
    decode_classification,
    decode_diagnosis,
    decode_opinion,
    decode_plan,
)

MOST_TASKS = 64
"""So many tasks a plan has at most."""
Confidence = Annotated[float, {"minimum": 0, "maximum": 1}]
TaskId = Annotated[str, {"minLength": 1, "description": "A name that no other task of the plan has."}]
Needs = Annotated[tuple[str, ...], {"description": "The ids of tasks of the plan that have to be done before."}]


class ReverseTask(Frozen):
    """A task that undoes another."""

    kind: TaskKind
    id: str = ""
    command: str = ""
    path: str = ""
    content: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    expect: Expectation | None = None
    effect: Literal["", "pure", "idempotent", "check-first", "at-most-once"] = ""
    description: str = ""


class PlannedTask(Frozen):
    """A task as an agent writes it down."""

    id: TaskId
    kind: TaskKind
    command: str = ""
    path: str = ""
    content: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    needs: Needs = ()
    expect: Expectation | None = None
    reverse: ReverseTask | Literal["irreversible"] | None = None
    effect: Literal["", "pure", "idempotent", "check-first", "at-most-once"] = ""
    description: str = ""


Tasks = Annotated[tuple[PlannedTask, ...], {"maxItems": MOST_TASKS, "uniqueItems": True}]


class PlanReply(Frozen):
    """What the planner replies."""

    tasks: Tasks = ()

    def __post_init__(self) -> None:
        plan_of(self)


class ClassificationReply(Frozen):
    """What the classifier replies."""

    kind: Annotated[str, {"minLength": 1}]
    tags: tuple[str, ...] = ()
    confidence: Confidence = 0.0

    def __post_init__(self) -> None:
        self.classification()

    def classification(self) -> Classification:
        """The same, checked."""
        return decode_classification(encode(self))


class OpinionReply(Frozen):
    """What an agent of the panel replies in its round."""

    verdict: Verdict
    confidence: Confidence
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.opinion("analyst")

    def opinion(self, role: str) -> Opinion:
        """The same as an opinion in this role."""
        return decode_opinion(encode(self), role=role)


class SolutionReply(Frozen):
    """What the solution replies in its round; its plan replaces the one under debate."""

    verdict: Verdict
    confidence: Confidence
    reasons: tuple[str, ...] = ()
    plan: PlanReply | None = None

    def __post_init__(self) -> None:
        self.opinion("solution")

    def opinion(self, role: str) -> Opinion:
        """The same as an opinion in this role, with the plan that it brings."""
        said = decode_opinion({**encode(self), "plan": None}, role=role)
        return said if self.plan is None else Opinion(said.verdict, said.confidence, said.reasons, plan_of(self.plan))


class DiagnosisTasks(Frozen):
    """The tasks to run again, as the critic writes them down."""

    tasks: Tasks = ()


class DiagnosisReply(Frozen):
    """What the critic replies when it is asked for a failure's cause."""

    diagnosis: str = ""
    plan: DiagnosisTasks | None = None

    def diagnosed(self, known: Collection[str]) -> Diagnosis:
        """The same, with tasks that may need those of the plan that failed; what does not decode raises `BadValue`."""
        plan = None if self.plan is None else plain_plan(self.plan)
        return decode_diagnosis({"diagnosis": self.diagnosis, "plan": plan}, known=known)


REPLIES = (ClassificationReply, PlanReply, OpinionReply, SolutionReply, DiagnosisReply)


def plan_of(reply: PlanReply) -> Plan:
    """The plan that was written down."""
    if len(reply.tasks) > MOST_TASKS:
        raise BadValue(f"the plan has {len(reply.tasks)} tasks; it may have {MOST_TASKS}")
    return decode_plan(plain_plan(reply))


def plain_plan(reply: PlanReply | DiagnosisTasks) -> dict[str, Any]:
    """A plan as plain JSON, without what nobody said."""
    return {"tasks": [_plain_task(encode(task)) for task in reply.tasks]}


def _plain_task(task: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in task.items() if value not in ("", None) or name in ("id", "content")}
    reverse = said.get("reverse")
    return {**said, "reverse": _plain_task(reverse)} if isinstance(reverse, Mapping) else said
