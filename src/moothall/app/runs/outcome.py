"""How a run stands, in the words that people and scripts use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moothall.kernel.codec import encode, schema
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.interpreter import possible
from moothall.kernel.machine import Machine
from moothall.kernel.step import Snapshot
from moothall.runtime import hall as halls
from moothall.runtime.decide import outcome
from moothall.runtime.hall import Finding
from moothall.runtime.journal import Head, RunId


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
class Outcome(Frozen):
    """How a run stands: done, failed, limited, cancelled, stuck, waiting for a person, or running elsewhere."""

    run: RunId
    machine: str
    status: str
    states: tuple[str, ...]
    result: Any
    reason: str = ""
    questions: tuple[Question, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    data: Any = None
    fault: str = ""
    """Where it failed, if it did: in its `definition`, at the `provider` of a model, or elsewhere in the `world`."""


def outcome_of(machine: Machine, run: RunId, head: Head, below: tuple[Question, ...] = ()) -> Outcome:
    """How a run stands, for people and scripts; `below` are the questions of its children."""
    snapshot, asked = head.snapshot, questions_of(run, head) + below
    status, reason = standing(snapshot.status, bool(asked), bool(head.pending)), snapshot.reason
    if status == "stuck":
        reason = _stuck(machine, snapshot)
    result = outcome(machine, snapshot.output, snapshot.data)
    return Outcome(run, machine.name, status, snapshot.active, result, reason, asked, head.spent, snapshot.data)


def questions_of(run: RunId, head: Head) -> tuple[Question, ...]:
    """The questions of a run that wait for a person."""
    if not head.pending:
        return ()
    return tuple(
        Question(
            pending.key,
            *asked(encode(pending.effect), pending.doubt),
            pending.due,
            run,
            getattr(pending.effect, "who", ""),
        )
        for pending in halls.questions(head)
    )


def asked(effect: Mapping[str, Any], doubt: str) -> tuple[str, Any]:
    """What a person is asked, and the schema of the answer: by the machine, or because an outcome is unknown."""
    if doubt:
        return f"{doubt}. What became of it?", schema(Finding)
    return effect["prompt"], effect["schema"]


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
