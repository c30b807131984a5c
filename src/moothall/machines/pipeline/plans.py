"""Plans and what is checked of them before they are carried out.

A check is data: a name, and an expression or the name of a function. It is evaluated outside, by a tool; here stand
only the values and the predicates that come with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from moothall.kernel.frozen import Frozen

MOST_STEPS = 50
LONGEST_PLAN = 20_000


class Plan(Frozen):
    """What is to be done: in short, and step by step."""

    summary: str
    steps: tuple[str, ...]


class Check(Frozen):
    """A condition on plans: an expression in JavaScript, or a function that is registered under a name.

    `feedback` is what the planner is told where it does not hold.
    """

    name: str
    expression: str = ""
    function: str = ""
    feedback: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("a check needs a name")
        if bool(self.expression) == bool(self.function):
            raise ValueError(f"check {self.name!r} has either an expression or a function")


class Draft(Frozen):
    """What a check sees: a plan, and what it is a plan for."""

    plan: Plan
    brief: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)


CheckFunction = Callable[[Draft], bool | str]
"""Says True where a plan is well, else False, or a text that tells the planner what is wrong."""


def has_summary(draft: Draft) -> bool | str:
    """Whether the plan says in short what it is about."""
    return bool(draft.plan.summary.strip()) or "the plan has no summary; say in short what it does"


def has_steps(draft: Draft) -> bool | str:
    """Whether there is something to do, and every step says what."""
    if not draft.plan.steps:
        return "the plan has no steps; list what is to be done"
    empty = [str(number) for number, step in enumerate(draft.plan.steps, 1) if not step.strip()]
    return not empty or f"step {', '.join(empty)} is empty; say what is to be done, or leave it out"


def is_not_too_long(draft: Draft) -> bool | str:
    """Whether somebody could keep the plan in mind."""
    steps, length = len(draft.plan.steps), len(draft.plan.summary) + sum(map(len, draft.plan.steps))
    if steps > MOST_STEPS:
        return f"the plan has {steps} steps; do with {MOST_STEPS} or fewer"
    return length <= LONGEST_PLAN or f"the plan has {length} characters; do with {LONGEST_PLAN} or fewer"


DEFAULT_CHECKS: Mapping[str, CheckFunction] = {
    function.__name__: function for function in (has_summary, has_steps, is_not_too_long)
}
"""The checks that a plan has to pass where no others are named."""
