"""The arena's table: from a request to an audited result, state by state as the seed draws it.

Identity → context → classification → plan → five rounds of debate, up to three passes → weighted consensus → sandboxed
execution, healing or the way back → memory → audit. Every way but the one of a false identity ends in the audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from moothall.agents.ask import Replied
from moothall.kernel.effects import ReadRecords
from moothall.kernel.events import (
    Answered,
    Cancelled,
    Conflicted,
    Exhausted,
    Expired,
    GaveUp,
    RecordsRead,
    RecordsWritten,
)
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, always
from moothall.machines.arena import debate, execution, records
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import MOST_PASSES
from moothall.machines.arena.effects import (
    ContextRead,
    IdentityRead,
    MemoryRead,
    TaskEnded,
    WorkspaceRestored,
    WorkspaceSaved,
)
from moothall.machines.arena.identity import COLLECTION, KEY
from moothall.machines.arena.instructions import prompts
from moothall.machines.arena.plan import PANEL
from moothall.machines.arena.replies import MOST_TASKS, REPLIES
from moothall.machines.arena.report import report_of

NAME = "arena"
FAILED: list[type[Any]] = [GaveUp, Exhausted]
ROUNDS = tuple(f"Round_{number}_{role.title()}" for number, role in enumerate(PANEL, start=1))
MOST_STARTS = MOST_TASKS + execution.MOST_REPAIRS * execution.SIDE_BY_SIDE
"""So many times tasks begin: each once, and again after each repair those that failed, which had run side by side."""
MOST_CANCELS = 9
"""So many times a run may be told to stop while it goes back; then it stops at once."""
MOST_CONFLICTS = 100
"""How often records are read again because others were quicker."""


@cache
def arena() -> Machine:
    """The machine of the arena."""
    return Machine(
        NAME,
        data=Case,
        kind=NAME,
        start="Idle",
        replies=REPLIES,
        prompts=prompts(),
        result=report_of,
        states=_states(),
        moves=[*_opening(), *_debate(), *_aggregation(), *_execution(), *_closing()],
    )


def _states() -> list[State | Final]:
    rounds = [State(name, enter=debate.ask_round(role)) for name, role in zip(ROUNDS, PANEL, strict=True)]
    checks = [State("AssertingOutcomes", enter=execution.assert_outcomes), State("Success"), State("Failure")]
    return [
        State(
            "Idle",
            [State("VerifyingIdentity", enter=ReadRecords(COLLECTION, KEY)), State("IdentityVerified")],
        ),
        State("LoadingContext", enter=debate.read_context),
        State("Classifying", enter=debate.ask_classifier),
        State(
            "Arena_Debate",
            [
                State("Planning", enter=debate.build_initial_plan),
                *rounds,
                State("Multi_Pass_Check", enter=debate.count_pass, max_visits=MOST_PASSES),
            ],
        ),
        State(
            "Aggregation_Engine",
            [
                State("Aggregating", enter=debate.collect_votes),
                State("CalculatingConsensus", enter=debate.weigh_votes),
                State("ELODuels", enter=debate.pair_duels),
                State("ResolvingDecision", enter=debate.resolve),
            ],
        ),
        State(
            "SandboxedExecution",
            [
                State("RunningTasks", enter=execution.execute_plan),
                State("ValidationCheck", checks),
                State("SelfHealingActive", enter=execution.diagnose),
                State("RollbackActive", enter=execution.begin_rollback),
            ],
        ),
        State("Blocked"),
        State("StoringMemory", enter=records.read_memory),
        State("Auditing", enter=records.audit_log),
        Final("Aborted"),
        Final("Audited"),
    ]


def _opening() -> Iterator[On]:
    yield On("VerifyingIdentity", RecordsRead, do=debate.look_around, at_most=1)
    yield On("VerifyingIdentity", IdentityRead, to="IdentityVerified", when=debate.identity_holds, do=debate.keep_trace)
    yield On("VerifyingIdentity", IdentityRead, to="Aborted", do=debate.abort)
    yield On("VerifyingIdentity", [RecordsRead, *FAILED], to="Aborted", do=debate.abort_unseen)
    yield On("IdentityVerified", always, to="LoadingContext")
    yield On("LoadingContext", ContextRead, to="Classifying", do=debate.keep_context)
    yield On("LoadingContext", FAILED, to="Classifying")
    yield On("Classifying", Replied, to="Planning", do=debate.keep_classification)
    yield On("Classifying", FAILED, to="Planning")


def _debate() -> Iterator[On]:
    yield On("Planning", Replied, to=ROUNDS[0], do=debate.run_debate)
    yield On("Planning", FAILED, to="Blocked", do=debate.block_unplanned)
    for here, following in pairwise((*ROUNDS, "Multi_Pass_Check")):
        yield On(here, Replied, to=following, do=debate.keep_opinion)
        yield On(here, FAILED, to=following, do=debate.lose_opinion)
    again, most = ROUNDS[1], MOST_PASSES - 1
    yield On("Multi_Pass_Check", always, to=again, when=debate.is_undecided, at_most=most)
    yield On("Multi_Pass_Check", always, to="Aggregating")


def _aggregation() -> Iterator[On]:
    yield On("Aggregating", always, to="CalculatingConsensus")
    yield On("CalculatingConsensus", always, to="ELODuels")
    yield On("ELODuels", always, to="ResolvingDecision")
    yield On("ResolvingDecision", always, to="Blocked", when=debate.is_blocked)
    yield On("ResolvingDecision", always, to="StoringMemory", when=debate.is_rehearsed)
    yield On("ResolvingDecision", always, to="SandboxedExecution", when=debate.may_proceed)
    yield On("ResolvingDecision", Answered, to="SandboxedExecution", when=debate.says_yes, do=debate.keep_yes)
    yield On("ResolvingDecision", Answered, to="Blocked", do=debate.keep_no)
    yield On("ResolvingDecision", Expired, to="Blocked", do=debate.keep_silence)


def _execution() -> Iterator[On]:
    yield On("RunningTasks", WorkspaceSaved, do=execution.keep_save, at_most=1)
    yield On("RunningTasks", TaskEnded, do=execution.keep_result, at_most=MOST_STARTS)
    yield On("RunningTasks", Replied, do=execution.keep_reply, at_most=MOST_STARTS)
    yield On("RunningTasks", FAILED, do=execution.keep_failure, at_most=MOST_STARTS)
    yield On("RunningTasks", [WorkspaceSaved, TaskEnded, Replied, *FAILED], to="ValidationCheck", do=execution.halt)
    starts, asks = execution.task_is_ready, execution.model_is_wanted
    yield On("RunningTasks", always, when=starts, do=execution.start_task, at_most=MOST_STARTS)
    yield On("RunningTasks", always, when=asks, do=execution.ask_model, at_most=MOST_STARTS)
    yield On("RunningTasks", always, to="ValidationCheck", when=execution.nothing_runs)
    yield On("AssertingOutcomes", always, to="Success", when=execution.all_succeeded)
    yield On("AssertingOutcomes", always, to="Failure")
    yield On("Success", always, to="StoringMemory", do=execution.succeed)
    yield On("Failure", always, to="SelfHealingActive")
    most = execution.MOST_REPAIRS
    yield On("SelfHealingActive", always, to="RollbackActive", when=execution.healing_is_over)
    sound = execution.repair_is_sound
    yield On("SelfHealingActive", Replied, to="RunningTasks", when=sound, do=execution.load_repair, at_most=most)
    yield On("SelfHealingActive", Replied, to="RollbackActive", do=execution.refuse_repair)
    yield On("SelfHealingActive", FAILED, to="RollbackActive", do=execution.lose_repair)
    yield On("RollbackActive", always, when=execution.can_undo, do=execution.undo_task, at_most=MOST_TASKS)
    yield On("RollbackActive", always, when=execution.can_restore, do=execution.restore_workspace, at_most=1)
    yield On("RollbackActive", TaskEnded, do=execution.keep_undone, at_most=MOST_TASKS)
    yield On("RollbackActive", WorkspaceRestored, do=execution.keep_restored, at_most=1)
    yield On("RollbackActive", FAILED, do=execution.keep_not_undone, at_most=MOST_TASKS + 1)
    yield On("RollbackActive", [TaskEnded, WorkspaceRestored, *FAILED], to="StoringMemory", do=execution.stop_rollback)
    yield On("RunningTasks", Cancelled, to="RollbackActive", do=execution.cancel)
    yield On("SelfHealingActive", Cancelled, to="RollbackActive", do=execution.cancel)
    yield On("RollbackActive", Cancelled, at_most=MOST_CANCELS)
    yield On("RollbackActive", always, to="StoringMemory", when=execution.rollback_is_over)


def _closing() -> Iterator[On]:
    yield On("Blocked", always, to="StoringMemory")
    yield On("StoringMemory", MemoryRead, do=records.store_all_in_memory, at_most=MOST_CONFLICTS + 1)
    yield On("StoringMemory", RecordsWritten, to="Auditing")
    yield On("StoringMemory", Conflicted, to="StoringMemory", at_most=MOST_CONFLICTS)
    yield On("StoringMemory", [MemoryRead, *FAILED], to="Auditing", do=records.keep_unstored)
    yield On("Auditing", [RecordsWritten, *FAILED], to="Audited")
