"""The data of an arena's run: a request, all that was said and done about it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from moothall.kernel.frozen import Frozen
from moothall.machines.arena.consensus import Consensus, Vote
from moothall.machines.arena.definition import Configuration
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.instructions import definition_of
from moothall.machines.arena.memory import KnownRating, Likeness, Trace
from moothall.machines.arena.plan import Classification, Opinion, Plan
from moothall.machines.arena.ratings import Duel, Rating, RatingKey, start_rating
from moothall.machines.arena.rules import Violation

Ending = Literal["", "succeeded", "blocked", "rolled_back", "aborted", "dry_run"]
STATIC_RULES = "static_rules"
"""Who vetoes where no agent does, but a rule."""


class Known(Frozen):
    """What is known from earlier runs, and which model plays whom."""

    models: Mapping[str, str] = field(default_factory=dict)
    ratings: tuple[KnownRating, ...] = ()
    decisions: tuple[Trace, ...] = ()
    nearest: tuple[Likeness, ...] = ()


class Veto(Frozen):
    """Who stopped the plan for good: an agent, or a rule, and why."""

    by: str
    rule: str | None = None
    reason: str = ""


class Pairing(Frozen):
    """A duel before its outcome is known: who against whom, and what Elo expects of the first."""

    first: str
    second: str
    expected: float


class TaskResult(Frozen):
    """What came of a task the last time that it was run."""

    id: str
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration: float = 0.0
    sandbox: str = ""
    failure: str = ""
    """Why it failed; empty where it did not."""
    attempts: int = 1
    is_unable: bool = False
    """Whether it could not even be begun, so that no repair of the plan would help."""


class Repair(Frozen):
    """One attempt at healing: the failure, the diagnosis, the tasks to run again, and what came of it."""

    failure: str
    diagnosis: str = ""
    tasks: tuple[str, ...] = ()
    outcome: Literal["running", "repaired", "failed", "refused"] = "running"
    reason: str = ""


class Rollback(Frozen):
    """The way back: what is still to be undone, what was, and what is left."""

    open: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    is_over: bool = False
    undoing: bool = False
    """Whether the first of what is open is being undone now."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is as it was before."""
        return self.is_over and not self.left


class Case(Frozen):
    """A request and all that is known about it."""

    request: str
    workspace: str = ""
    bands: Literal["seed", "cautious"] = "seed"
    dry_run: bool = False
    shows_trace: bool = False
    config: Configuration = Configuration()
    stored: Locks = Locks()
    mismatches: tuple[str, ...] = ()
    trace_id: str = ""
    context: Known = Known()
    classification: Classification = Classification("general")
    plan: Plan = Plan()
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    """Agents of the panel that gave no opinion in the last pass."""
    passes: int = 0
    votes: tuple[Vote, ...] = ()
    consensus: Consensus = Consensus(0.0)
    pairings: tuple[Pairing, ...] = ()
    decision: Literal["", "proceed", "ask", "blocked"] = ""
    violations: tuple[Violation, ...] = ()
    veto: Veto | None = None
    asked: str = ""
    """Why a person has to decide; empty where nobody has to."""
    judged: Literal["", "yes", "no", "expired"] = ""
    judge: str = ""
    save: str = ""
    running: tuple[str, ...] = ()
    results: Mapping[str, TaskResult] = field(default_factory=dict)
    finished: tuple[str, ...] = ()
    """Tasks that were carried out, in the order in which they ended."""
    former: Mapping[str, TaskResult] = field(default_factory=dict)
    """What came of tasks that are to be run again."""
    halted: str = ""
    """Why no further task begins."""
    repairs: tuple[Repair, ...] = ()
    healing_ended: str = ""
    rollback: Rollback | None = None
    outcome: Ending = ""
    reason: str = ""
    duels: tuple[Duel, ...] = ()
    unstored: str = ""
    """Why nothing could be remembered, where that is so."""

    def __post_init__(self) -> None:
        if not self.request.strip():
            raise ValueError("the request is empty; say what is to be done")

    def rating_key(self, agent: str) -> RatingKey:
        """Whose rating an agent's votes are weighed by here."""
        return RatingKey(agent, self.context.models.get(agent, ""), self.classification.kind, definition_of(agent))

    def ratings(self) -> dict[str, Rating]:
        """The rating of each agent that votes, for this kind of task."""
        known = {rating.key: rating.rating for rating in self.context.ratings}
        return {agent: start_rating(self.rating_key(agent), known) for agent in self.opinions}
