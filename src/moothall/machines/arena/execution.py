"""The moves of the arena that act: tasks, the check of their outcomes, healing, and the way back.

- The workspace is saved before the first task begins. Tasks that do not need each other run side by side; after a
  failure nothing new begins.
- Healing is tried twice at most. The repaired plan is held against the static rules again, may not touch the checks,
  and runs what failed only. The same failure twice is no progress and ends it.
- The way back undoes what was carried out, the last first, by declared reverse tasks, and then makes the workspace
  what it was: a task that failed can have left traces there only. What could not be undone is kept, word by word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from moothall.agents.ask import AskAgent, Replied
from moothall.errors import BadValue
from moothall.kernel.effects import Repeats
from moothall.kernel.events import Cancelled, Event, Exhausted, GaveUp
from moothall.kernel.nodes import emitting
from moothall.kernel.step import Move
from moothall.machines.arena.case import Case, Repair, Rollback, TaskResult
from moothall.machines.arena.debate import asking, deed, plain, why
from moothall.machines.arena.effects import (
    RestoreWorkspace,
    RunTask,
    SaveWorkspace,
    TaskEnded,
    WorkspaceRestored,
    WorkspaceSaved,
)
from moothall.machines.arena.instructions import DIAGNOSE
from moothall.machines.arena.plan import (
    Diagnosis,
    Expectation,
    Plan,
    Task,
    checks_touched,
    failed_expectations,
    is_same_failure,
    readable_failure,
    ready_tasks,
    reverse_tasks,
)
from moothall.machines.arena.replies import DiagnosisReply
from moothall.machines.arena.rules import static_rules

SIDE_BY_SIDE = 8
"""So many tasks run at the same time, at most."""
MOST_REPAIRS = 2
UNDO = "undo:"
"""What the id of an effect begins with that undoes a task."""
MODEL = "model"
"""The agent that a task of the kind model asks."""
TOLD = 1500
"""How much of a task's output the critic is shown, in characters."""


# tasks


@emitting(SaveWorkspace)
def execute_plan(case: Case, _: Event) -> Move[Case]:
    """Save the workspace before the first task; after a repair go on with what is to be run."""
    return Move(case, effects=() if case.save else (SaveWorkspace(case.workspace),))


def keep_save(case: Case, saved: WorkspaceSaved) -> Case:
    """Remember the save; tasks may begin."""
    return replace(case, save=saved.save)


def next_task(case: Case) -> Task | None:
    """The task that begins next: its needs are done, and there is room beside those that run; none after a failure."""
    if not case.save or case.halted or len(case.running) >= SIDE_BY_SIDE:
        return None
    if any(result.failure for result in case.results.values()):
        return None
    return next(iter(ready_tasks(case.plan, done=case.results, started=case.running)), None)


def task_is_ready(case: Case, _: Event) -> bool:
    """Whether a task begins that works in the workspace."""
    task = next_task(case)
    return task is not None and task.kind != "model"


@emitting(RunTask)
def start_task(case: Case, _: Event) -> Move[Case]:
    """Begin a task in the workspace."""
    task = _current_task(case)
    effect = RunTask(task, case.workspace, case.config.timeout, task.id, repeats=repeats_of(task))
    return Move(replace(case, running=(*case.running, task.id)), effects=(effect,))


def model_is_wanted(case: Case, _: Event) -> bool:
    """Whether a task begins that asks a model."""
    task = next_task(case)
    return task is not None and task.kind == "model"


@emitting(AskAgent)
def ask_model(case: Case, _: Event) -> Move[Case]:
    """Begin a task that asks a model."""
    task = _current_task(case)
    effect = AskAgent(MODEL, "{prompt}", {"prompt": task.prompt}, id=task.id)
    return Move(replace(case, running=(*case.running, task.id)), effects=(effect,))


def _current_task(case: Case) -> Task:
    task = next_task(case)
    assert task is not None
    return task


def repeats_of(task: Task) -> Repeats:
    """What may happen to a task whose worker was lost; what would have to be checked first is not run again unasked."""
    match task.effect:
        case "pure":
            return "pure"
        case "idempotent":
            return "idempotent"
    return "at-most-once"


def keep_result(case: Case, ended: TaskEnded) -> Case:
    """Keep what came of a task."""
    expect = case.plan.task(ended.task).expect
    code = 0 if ended.exit_code is None else ended.exit_code
    said = expect.stdout_contains or "" if ended.says_expected else ""
    wrong = failed_expectations(expect, exit_code=code, stdout=said, files=ended.files)
    result = TaskResult(
        ended.task,
        ended.exit_code,
        ended.stdout,
        ended.stderr,
        ended.duration,
        ended.sandbox,
        "; ".join(wrong),
    )
    return _with_result(case, result, is_done=code == 0)


def keep_reply(case: Case, replied: Replied) -> Case:
    """Keep what a model said to a task."""
    expect = case.plan.task(replied.id).expect
    wrong = failed_expectations(expect, exit_code=0, stdout=replied.text)
    said = replied.text[:TOLD]
    return _with_result(case, TaskResult(replied.id, None, said, failure="; ".join(wrong)), is_done=True)


def keep_failure(case: Case, event: GaveUp | Exhausted) -> Case:
    """Keep that a task, or the save before all of them, could not be done."""
    if not event.id:
        return replace(case, halted=f"the workspace could not be saved: {why(event)}")
    is_unable = isinstance(event, Exhausted) or event.fault == "definition"
    result = TaskResult(event.id, failure=why(event), is_unable=is_unable)
    return _with_result(case, result, is_done=False)


def _with_result(case: Case, result: TaskResult, *, is_done: bool) -> Case:
    earlier = case.results.get(result.id) or case.former.get(result.id)
    counted = replace(result, attempts=earlier.attempts + 1) if earlier is not None else result
    finished = tuple(name for name in case.finished if name != result.id)
    return replace(
        case,
        running=tuple(name for name in case.running if name != result.id),
        results={**case.results, result.id: counted},
        finished=(*finished, result.id) if is_done else finished,
        former={name: kept for name, kept in case.former.items() if name != result.id},
    )


def halt(case: Case, event: Event) -> Case:
    """No task begins any more: more has happened than a plan can want."""
    return replace(case, running=(), halted=why(event))


def nothing_runs(case: Case, _: Event) -> bool:
    """Whether no task is under way and none will begin."""
    return bool(case.halted) or (bool(case.save) and not case.running)


# validation


def assert_outcomes(case: Case, _: Event) -> Case:
    """Hold what came of the tasks against what was declared; a repair that ran has worked or has not."""
    if not case.repairs or case.repairs[-1].outcome != "running":
        return case
    repair = replace(case.repairs[-1], outcome="repaired" if all_succeeded(case, _) else "failed")
    return replace(case, repairs=(*case.repairs[:-1], repair))


def all_succeeded(case: Case, _: Event) -> bool:
    """Whether every task of the plan was carried out as declared."""
    results = case.results
    return not case.halted and all(task.id in results and not results[task.id].failure for task in case.plan.tasks)


def succeed(case: Case, _: Event) -> Case:
    """All is as declared."""
    return replace(case, outcome="succeeded")


# healing


def failed_tasks(case: Case) -> tuple[str, ...]:
    """The tasks that failed, in the order of the plan."""
    return tuple(task.id for task in case.plan.tasks if task.id in case.results and case.results[task.id].failure)


def failure_text(case: Case, tell: Callable[[str], str] = str) -> str:
    """What failed; `tell` is how what was said about it is told."""
    texts = []
    for name in failed_tasks(case):
        result = case.results[name]
        said = "\n".join(tell(part)[-TOLD:] for part in (result.stdout, result.stderr) if part.strip())
        texts.append(f"{name} ({deed(case.plan.task(name))}): {tell(result.failure)}" + (f"\n{said}" if said else ""))
    return "\n\n".join(texts) or case.halted


def normalised_text(case: Case) -> str:
    """What failed, as the critic reads it."""
    return failure_text(case, lambda text: readable_failure(text, case.workspace))


@emitting(AskAgent)
def diagnose(case: Case, _: Event) -> Move[Case]:
    """Ask the critic for the cause, or say why healing is over."""
    failure = failure_text(case)
    if ended := _no_healing(case, failure):
        return Move(replace(case, healing_ended=ended))
    asked = asking(case, "critic", {"plan": plain(case), "failure": normalised_text(case)}, template=DIAGNOSE)
    return Move(replace(case, repairs=(*case.repairs, Repair(failure))), effects=(asked,))


def _no_healing(case: Case, failure: str) -> str:
    unable = [name for name in failed_tasks(case) if case.results[name].is_unable]
    if case.halted or unable:
        return case.halted or f"{unable[0]} cannot be run: {case.results[unable[0]].failure}"
    if len(case.repairs) >= MOST_REPAIRS:
        return f"it still fails after {MOST_REPAIRS} repairs"
    if case.repairs and is_same_failure(case.repairs[-1].failure, failure):
        return "the same failure came again: the repair made no progress"
    return ""


def healing_is_over(case: Case, _: Event) -> bool:
    """Whether nothing more is tried."""
    return bool(case.healing_ended)


def repair_fault(case: Case, reply: DiagnosisReply) -> str:
    """Why a repair is not carried out; empty where it is."""
    failed = failed_tasks(case)
    try:
        said = reply.diagnosed([task.id for task in case.plan.tasks])
    except BadValue as error:
        return f"the repaired plan cannot be read: {error}"
    if not said.can_tell:
        return "the critic cannot tell the cause"
    assert said.plan is not None
    known = {task.id for task in case.plan.tasks}
    if strange := [task.id for task in said.plan.tasks if task.id not in known]:
        return f"the repair adds the task {strange[0]}; it may hold tasks that failed, and no others"
    if not any(task.id in failed for task in said.plan.tasks):
        return f"the repair mends none of the tasks that failed: {', '.join(failed)}"
    mended = repaired_plan(case, said)
    if touched := checks_touched(case.plan, mended):
        return f"the repair touches the checks of {', '.join(touched)}"
    if violations := static_rules(mended):
        return f"{violations[0].rule} in task {violations[0].task}: {violations[0].reason}"
    before = {task.id for task in case.plan.tasks if task.is_irreversible}
    if irreversible := [task.id for task in mended.tasks if task.is_irreversible and task.id not in before]:
        return f"the repair makes {irreversible[0]} irreversible, which needs a person's yes"
    return ""


def repaired_plan(case: Case, said: Diagnosis) -> Plan:
    """The plan with the tasks that failed replaced; what is repaired without having failed stays as it was.

    A repaired task that is silent about its checks or its way back keeps those it had.
    """
    assert said.plan is not None
    failed = failed_tasks(case)
    mended = {}
    for task in said.plan.tasks:
        if task.id in failed:
            old = case.plan.task(task.id)
            expect = old.expect if task.expect == Expectation() else task.expect
            mended[task.id] = replace(task, expect=expect, reverse=task.reverse or old.reverse)
    return Plan(tuple(mended.get(task.id, task) for task in case.plan.tasks))


def repair_is_sound(case: Case, replied: Replied) -> bool:
    """Whether the repaired plan may be run."""
    return not repair_fault(case, replied.value)


def load_repair(case: Case, replied: Replied) -> Case:
    """Take the repaired tasks into the plan; what failed is to be run again, and nothing else."""
    reply: DiagnosisReply = replied.value
    said = reply.diagnosed([task.id for task in case.plan.tasks])
    failed = failed_tasks(case)
    repair = replace(case.repairs[-1], diagnosis=said.diagnosis, tasks=failed)
    return replace(
        case,
        plan=repaired_plan(case, said),
        results={name: result for name, result in case.results.items() if name not in failed},
        former={**case.former, **{name: case.results[name] for name in failed}},
        repairs=(*case.repairs[:-1], repair),
    )


def refuse_repair(case: Case, replied: Replied) -> Case:
    """End healing because the repair may not be run, or there is none."""
    reply: DiagnosisReply = replied.value
    return _end(case, repair_fault(case, reply), reply.diagnosis)


def lose_repair(case: Case, event: GaveUp | Exhausted) -> Case:
    """End healing because the critic did not answer."""
    return _end(case, f"the critic gave no diagnosis: {why(event)}", "")


def _end(case: Case, reason: str, diagnosis: str) -> Case:
    repair = replace(case.repairs[-1], outcome="refused", reason=reason, diagnosis=diagnosis)
    return replace(case, repairs=(*case.repairs[:-1], repair), healing_ended=reason)


# rollback


def cancel(case: Case, cancelled: Cancelled) -> Case:
    """Go back because somebody asked the run to stop; what is under way is cut off."""
    return replace(case, running=(), halted=f"cancelled: {cancelled.reason}")


def begin_rollback(case: Case, _: Event) -> Case:
    """Note what there is to undo, the last first, and what nothing undoes."""
    known = {task.id for task in case.plan.tasks}
    finished = [name for name in case.finished if name in known]
    left = [f"task {name} is irreversible" for name in finished if case.plan.task(name).is_irreversible]
    ways = [(name, way) for name, way in reverse_tasks(case.plan, performed=finished) if way is not None]
    left += [f"task {name}: asking a model undoes nothing" for name, way in ways if way.kind == "model"]
    names = tuple(name for name, way in ways if way.kind != "model")
    rollback = Rollback(names, left=tuple(left), is_over=not case.save)
    return replace(case, rollback=rollback, outcome="rolled_back", reason=case.healing_ended or case.halted)


def can_undo(case: Case, _: Event) -> bool:
    """Whether the next task is to be undone now."""
    rollback = _rollback(case)
    return bool(rollback.open) and not rollback.undoing and not rollback.is_over


@emitting(RunTask)
def undo_task(case: Case, _: Event) -> Move[Case]:
    """Take a step back: run the reverse task of what was carried out last."""
    rollback = _rollback(case)
    name = rollback.open[0]
    reverse = case.plan.task(name).reverse
    assert isinstance(reverse, Task)
    effect = RunTask(reverse, case.workspace, case.config.timeout, UNDO + name)
    return Move(replace(case, rollback=replace(rollback, undoing=True)), effects=(effect,))


def can_restore(case: Case, _: Event) -> bool:
    """Whether the workspace is to be made what it was now: nothing else is left to undo."""
    rollback = _rollback(case)
    return not rollback.open and not rollback.is_over


@emitting(RestoreWorkspace)
def restore_workspace(case: Case, _: Event) -> RestoreWorkspace:
    """Make the workspace what it was before the first task."""
    return RestoreWorkspace(case.workspace, case.save)


def _rollback(case: Case) -> Rollback:
    assert case.rollback is not None
    return case.rollback


def _next_step(case: Case, *, left: str = "") -> Case:
    rollback = _rollback(case)
    name = rollback.open[0]
    undone = rollback.undone if left else (*rollback.undone, name)
    leaves = (*rollback.left, left) if left else rollback.left
    kept = replace(rollback, open=rollback.open[1:], undone=undone, left=leaves, undoing=False)
    return replace(case, rollback=kept)


def keep_undone(case: Case, ended: TaskEnded) -> Case:
    """Keep what came of a reverse task."""
    reverse = case.plan.task(ended.task.removeprefix(UNDO)).reverse
    assert isinstance(reverse, Task)
    said = reverse.expect.stdout_contains or "" if ended.says_expected else ""
    wrong = failed_expectations(reverse.expect, exit_code=ended.exit_code or 0, stdout=said, files=ended.files)
    name = ended.task.removeprefix(UNDO)
    return _next_step(case, left=f"task {name} was not undone: {'; '.join(wrong)}" if wrong else "")


def keep_not_undone(case: Case, event: GaveUp | Exhausted) -> Case:
    """Keep what could not be undone; the rest is still tried."""
    if event.id:
        name = event.id.removeprefix(UNDO)
        return _next_step(case, left=f"task {name} was not undone: {why(event)}")
    rollback = _rollback(case)
    left = (*rollback.left, f"the workspace was not restored: {why(event)}")
    return replace(case, rollback=replace(rollback, left=left, is_over=True))


def keep_restored(case: Case, restored: WorkspaceRestored) -> Case:
    """The way back is over; what the save could not bring back is left."""
    rollback = _rollback(case)
    left = (*rollback.left, *(f"{path} is not as it was" for path in restored.left))
    return replace(case, rollback=replace(rollback, left=left, is_over=True))


def stop_rollback(case: Case, event: Event) -> Case:
    """The way back ends here: more has happened than it can want."""
    rollback = _rollback(case)
    open_ways = tuple(f"task {name} was not undone" for name in rollback.open)
    return replace(case, rollback=Rollback((), rollback.undone, (*rollback.left, *open_ways, why(event)), is_over=True))


def rollback_is_over(case: Case, _: Event) -> bool:
    """Whether everything was tried that leads back."""
    return _rollback(case).is_over
