"""How a run stands, in the words that people and scripts use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from moothall.errors import DefinitionError, EffectFailed, MoothallError, Refused
from moothall.kernel.codec import encode, schema
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.interpreter import possible
from moothall.kernel.machine import Machine
from moothall.kernel.step import Snapshot
from moothall.runtime import hall as halls
from moothall.runtime.decide import outcome
from moothall.runtime.hall import Resolution
from moothall.runtime.journal import Head, RunId

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Question:
    """A question that waits for a person."""

    id: str
    prompt: str
    schema: Any
    due: float | None
    run: RunId = ""
    who: str = ""


@slotted
class Outcome(Frozen, Generic[R]):
    """How a run stands: done, failed, limited, cancelled, stuck, waiting for a person, or running elsewhere.

    `unwrap()` is the result of a run that is done. For all others it raises: `DefinitionError` where the run failed
    in its definition, `EffectFailed` where the world failed it, else `Refused`, also where its table led to a bad end.
    """

    run: RunId
    machine: str
    status: str
    states: tuple[str, ...]
    result: R
    reason: str = ""
    questions: tuple[Question, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    data: Any = None
    fault: str = ""
    """Where it failed, if it did: in its `definition`, at the `provider` of a model, or elsewhere in the `world`.

    A run that came to a bad end because its table says so has no fault.
    """

    def unwrap(self) -> R:
        """The result of a run that is done; for every other run, an error that says why there is none."""
        if self.status == "done":
            return self.result
        raise self._objection()

    def _objection(self) -> MoothallError:
        """Why there is no result, and what to do about it."""
        run, states = f"run {self.run} of {self.machine}", " and ".join(self.states)
        if self.status == "failed":
            if not self.fault:
                return Refused(f"{run} failed: {self.reason}; what it gave all the same is in `result`")
            blamed = DefinitionError if self.fault == "definition" else EffectFailed
            return blamed(f"{run} failed: {self.reason}")
        if self.status == "waiting":
            asked = "; ".join(question.prompt for question in self.questions)
            return Refused(
                f"{run} waits in {states} for an answer to: {asked}; answer it before you unwrap the outcome"
            )
        if self.status == "running":
            return Refused(f"{run} is still at work in {states}; wait for it before you unwrap the outcome")
        return Refused(f"{run} has no result, it is {self.status}: {self.reason}")


def outcome_of(machine: Machine, run: RunId, head: Head, below: tuple[Question, ...] = ()) -> Outcome:
    """How a run stands, for people and scripts; `below` are the questions of its children."""
    snapshot, asked = head.snapshot, questions_of(run, head) + below
    ended = ended_as(snapshot.status, snapshot.active, machine.bad_ends)
    status, reason = standing(ended, bool(asked), bool(head.pending)), snapshot.reason
    if ended != snapshot.status:
        reason = f"it ended in {snapshot.active[0]}"
    if status == "stuck" and machine.errors == "scxml":  # a statechart is told events, and waits for the next
        status, names = "waiting", ", ".join(possible(machine, snapshot)) or "nothing"
        reason = f"it waits to be told an event, such as {names}; tell it: moot send {run} EVENT"
    elif status == "stuck":
        reason = _stuck(machine, snapshot)
    result, fault = (
        outcome(machine, snapshot.output, snapshot.data),
        "definition" if snapshot.status == "failed" else "",
    )
    return Outcome(run, machine.name, status, snapshot.active, result, reason, asked, head.spent, snapshot.data, fault)


def questions_of(run: RunId, head: Head) -> tuple[Question, ...]:
    """The questions of a run that wait for a person."""
    if not head.pending:
        return ()
    return tuple(
        Question(
            pending.key,
            *question_of(encode(pending.effect), pending.doubt),
            pending.due,
            run,
            getattr(pending.effect, "who", ""),
        )
        for pending in halls.questions(head)
    )


def question_of(effect: Mapping[str, Any], doubt: str) -> tuple[str, Any]:
    """What a person is asked, and the schema of the answer: by the machine, or because an outcome is unknown."""
    if doubt:
        return f"{doubt}. What became of it?", schema(Resolution)
    return effect["prompt"], effect["schema"]


def ended_as(status: str, active: Sequence[str], bad_ends: Mapping[str, str]) -> str:
    """The status of a run, where it is done by the end that it came to: not every end is a good one."""
    return bad_ends.get(active[0], status) if status == "done" and bad_ends and active else status


def standing(status: str, asks: bool, busy: bool) -> str:
    """A run's status for people: one that lives is waiting, running, or stuck where nothing is under way."""
    if status != "live":
        return status
    return "waiting" if asks else "running" if busy else "stuck"


def _stuck(machine: Machine, snapshot: Snapshot) -> str:
    where, named = " and ".join(snapshot.active), ", ".join(possible(machine, snapshot)) or "nothing"
    return (
        f"nothing is under way in {where}, and no row took what happened last; its rows name {named}; "
        f"add On({snapshot.active[0]!r}, otherwise, …)"
    )
