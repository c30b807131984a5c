"""Plans and replies of the arena: typed tasks, decoded from what agents say, and what may be done with them.

Rules:
- A task is a command, a file edit, a tool call or a model call. Its `needs` name tasks of the same plan, without a
  cycle; independent tasks may run side by side.
- `expect` says what has to hold afterwards, besides exit code 0. `reverse` is a task that undoes it, or
  "irreversible", which needs a person's yes.
- A repaired plan may not touch the checks: it may add expectations, never change or drop one.
- The same failure twice is no progress: failures are compared without numbers, paths, addresses and times.

A reply that does not decode raises `BadValue`, which names the task and the field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.consensus import VERDICTS, Verdict, Vote
from moothall.machines.arena.figures import exact_number, names, nearest_float

KINDS = ("command", "edit", "tool", "model")
EFFECTS = ("pure", "idempotent", "check-first", "at-most-once")
AGENTS = ("classifier", "planner", "analyst", "solution", "critic", "security", "optimizer")
PANEL = ("analyst", "solution", "critic", "security", "optimizer")
IRREVERSIBLE = "irreversible"
REQUIRED = {"command": ("command",), "edit": ("path", "content"), "tool": ("tool",), "model": ("prompt",)}
USUAL_EFFECT = {"command": "at-most-once", "edit": "idempotent", "tool": "at-most-once", "model": "pure"}
TASK_FIELDS = names("id kind command path content tool arguments prompt needs expect reverse effect description")

TaskKind = Literal["command", "edit", "tool", "model"]


class Expectation(Frozen):
    """What has to hold after a task; what is not set is not looked at."""

    exit_code: int | None = None
    stdout_contains: str | None = None
    file_exists: str | None = None


class Task(Frozen):
    """One step of a plan, by its kind: a command, a file's new content, a tool's call or a model's prompt."""

    id: str
    kind: TaskKind
    command: str = ""
    path: str = ""
    content: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    needs: tuple[str, ...] = ()
    expect: Expectation = Expectation()
    reverse: Task | str | None = None
    effect: str = ""

    @property
    def is_irreversible(self) -> bool:
        """Whether the plan itself says that nothing brings this back."""
        return self.reverse == IRREVERSIBLE


class Plan(Frozen):
    """What is to be done, task by task."""

    tasks: tuple[Task, ...] = ()

    def task(self, name: str) -> Task:
        """The task of this id."""
        for task in self.tasks:
            if task.id == name:
                return task
        raise BadValue(f"the plan has no task {name!r}; it has {', '.join(task.id for task in self.tasks) or 'none'}")


class Classification(Frozen):
    """What kind of request it is, its tags, and how sure the classifier is."""

    kind: str
    tags: tuple[str, ...] = ()
    confidence: float = 0.0


class Opinion(Frozen):
    """What an agent of the panel says in its round; the solution may bring a plan that replaces the one debated."""

    verdict: Verdict
    confidence: float
    reasons: tuple[str, ...] = ()
    plan: Plan | None = None

    def vote(self, role: str, agent: str) -> Vote:
        """The same as a vote of this agent."""
        return Vote(role, agent, self.verdict, self.confidence, self.reasons)


class Diagnosis(Frozen):
    """What the critic says of a failure, and the tasks to run again; without a plan it cannot tell."""

    diagnosis: str = ""
    plan: Plan | None = None

    @property
    def can_tell(self) -> bool:
        """Whether there is something to try."""
        return bool(self.diagnosis.strip()) and self.plan is not None and bool(self.plan.tasks)


# ---------------------------------------------------------------------- decoding


def decode_plan(value: object, *, known: Collection[str] = ()) -> Plan:
    """A plan from a reply. `known` are tasks outside of it that its tasks may need, as in a repair."""
    if not isinstance(value, Mapping) or not isinstance(value.get("tasks"), list | tuple):
        raise BadValue("a plan is {tasks: [...]}; this reply has no list of tasks")
    tasks = tuple(decode_task(task, number=number) for number, task in enumerate(value["tasks"], start=1))
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise BadValue(f"two tasks have the id {task.id!r}; give each its own")
        seen.add(task.id)
    plan = Plan(tasks)
    check_needs(plan, known=known)
    return plan


def decode_task(value: object, *, number: int = 0, is_reverse: bool = False) -> Task:
    """A task from a reply; one that reverses another has no id."""
    place = "a reverse task" if is_reverse else f"task {number}" if number else "a task"
    if not isinstance(value, Mapping):
        raise BadValue(f"{place} is {type(value).__name__}; a task is an object with an id and a kind")
    name = value.get("id", "" if is_reverse else None)
    if not isinstance(name, str) or (not name.strip() and not is_reverse):
        raise BadValue(f"{place} has no id; give it a text that no other task has")
    place = f"task {name!r}" if name else place
    if unknown := sorted(set(map(str, value)) - TASK_FIELDS):
        raise BadValue(f"{place} has the unknown field {unknown[0]!r}; fields are {', '.join(sorted(TASK_FIELDS))}")
    kind = value.get("kind")
    if kind not in KINDS:
        raise BadValue(f"{place} has the kind {kind!r}; kinds are {', '.join(KINDS)}")
    for required in REQUIRED[kind]:
        given = value.get(required)
        if not isinstance(given, str) or (not given.strip() and required != "content"):
            raise BadValue(f"{place} of kind {kind} needs {required!r}, a text")
    effect = value.get("effect", USUAL_EFFECT[kind])
    if effect not in EFFECTS:
        raise BadValue(f"{place} has the effect {effect!r}; effects are {', '.join(EFFECTS)}")
    return Task(
        id=name,
        kind=kind,
        **{key: value[key] for key in ("command", "path", "content", "tool", "prompt") if key in REQUIRED[kind]},
        arguments=_arguments(value.get("arguments", {}), place),
        needs=_names(value.get("needs", ()), f"the needs of {place}"),
        expect=decode_expectation(value.get("expect") or {}, place),
        reverse=_reverse(value.get("reverse"), place, is_reverse=is_reverse),
        effect=effect,
    )


def _arguments(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue(f"the arguments of {place} are {type(value).__name__}; give an object")
    return dict(value)


def _names(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise BadValue(f"{place} are not a list of texts; give a list")
    return tuple(value)


def _reverse(value: object, place: str, *, is_reverse: bool) -> Task | str | None:
    if value is None or value == IRREVERSIBLE:
        return value if isinstance(value, str) else None
    if is_reverse:
        raise BadValue("a reverse task has a reverse of its own; leave it out")
    if not isinstance(value, Mapping):
        raise BadValue(f'the reverse of {place} is neither a task nor the text "{IRREVERSIBLE}"')
    return decode_task(value, is_reverse=True)


def decode_expectation(value: object, place: str) -> Expectation:
    """What a task expects, from a reply."""
    if not isinstance(value, Mapping):
        raise BadValue(f"the expectation of {place} is {type(value).__name__}; give an object")
    if unknown := sorted(set(map(str, value)) - {"exit_code", "stdout_contains", "file_exists"}):
        raise BadValue(
            f"{place} expects the unknown {unknown[0]!r}; it may expect exit_code, stdout_contains and file_exists"
        )
    code = value.get("exit_code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, int)):
        raise BadValue(f"{place} expects the exit code {code!r}; give a whole number")
    for name in ("stdout_contains", "file_exists"):
        if value.get(name) is not None and not isinstance(value[name], str):
            raise BadValue(f"{place} expects {name} {value[name]!r}; give a text")
    return Expectation(code, value.get("stdout_contains"), value.get("file_exists"))


def decode_classification(value: object) -> Classification:
    """What the classifier replies: `{kind, tags, confidence}`."""
    reply = _object(value, "the classifier")
    kind = reply.get("kind")
    if not isinstance(kind, str) or not kind.strip():
        raise BadValue("the classifier names no kind; give a text")
    return Classification(
        kind, _names(reply.get("tags", ()), "the classifier's tags"), _confidence(reply, "the classifier")
    )


def decode_opinion(value: object, *, role: str) -> Opinion:
    """What an agent of the panel replies: `{verdict, confidence, reasons}`, the solution perhaps with a plan."""
    reply = _object(value, role)
    verdict = reply.get("verdict")
    if verdict not in VERDICTS:
        raise BadValue(f"{role} gives the verdict {verdict!r}; verdicts are {', '.join(VERDICTS)}")
    plan = reply.get("plan")
    if plan is not None and role != "solution":
        raise BadValue(f"{role} brings a plan; only the solution may replace the plan")
    return Opinion(
        verdict=verdict,
        confidence=_confidence(reply, role),
        reasons=_names(reply.get("reasons", ()), f"the reasons of {role}"),
        plan=None if plan is None else decode_plan(plan),
    )


def decode_diagnosis(value: object, *, known: Collection[str] = ()) -> Diagnosis:
    """What the critic replies when it is asked for a failure's cause: `{diagnosis, plan}`."""
    reply = _object(value, "the critic")
    diagnosis = reply.get("diagnosis") or ""
    if not isinstance(diagnosis, str):
        raise BadValue(f"the critic's diagnosis is {type(diagnosis).__name__}; give a text")
    plan = reply.get("plan")
    return Diagnosis(diagnosis, None if plan is None else decode_plan(plan, known=known))


def _object(value: object, who: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue(f"{who} replies {type(value).__name__}; the reply is an object")
    return value


def _confidence(reply: Mapping[str, Any], who: str) -> float:
    return nearest_float(exact_number(reply.get("confidence"), f"the confidence of {who}", least=0, most=1))


# ---------------------------------------------------------------------- order


def check_needs(plan: Plan, *, known: Collection[str] = ()) -> None:
    """Refuse a plan whose tasks need what is not there, or each other in a circle."""
    names = {task.id for task in plan.tasks} | set(known)
    for task in plan.tasks:
        for need in task.needs:
            if need == task.id:
                raise BadValue(f"task {task.id!r} needs itself")
            if need not in names:
                raise BadValue(f"task {task.id!r} needs {need!r}, which is not in the plan")
    left = {task.id: set(task.needs) - set(known) for task in plan.tasks}
    while free := [name for name, needs in left.items() if not needs & set(left)]:
        for name in free:
            del left[name]
    if left:
        raise BadValue(f"the tasks {', '.join(left)} need each other in a circle; take one of the needs out")


def ready_tasks(plan: Plan, *, done: Collection[str], started: Collection[str] = ()) -> tuple[Task, ...]:
    """The tasks that may begin: not begun yet, and all that they need is done. Needs outside of the plan are done."""
    inside = {task.id for task in plan.tasks}
    return tuple(
        task
        for task in plan.tasks
        if task.id not in done and task.id not in started and all(need in done for need in task.needs if need in inside)
    )


def tasks_for_a_person(plan: Plan) -> tuple[Task, ...]:
    """The tasks that need a person's yes, because nothing brings them back."""
    return tuple(task for task in plan.tasks if task.is_irreversible)


def reverse_tasks(plan: Plan, *, performed: Sequence[str]) -> tuple[tuple[str, Task | None], ...]:
    """How the tasks performed are undone, last first; None where the plan declares no way back."""
    undone: list[tuple[str, Task | None]] = []
    for name in reversed(performed):
        reverse = plan.task(name).reverse
        undone.append((name, reverse if isinstance(reverse, Task) else None))
    return tuple(undone)


# ---------------------------------------------------------------------- repair


def checks_touched(old: Plan, repaired: Plan) -> tuple[str, ...]:
    """The tasks whose expectations a repaired plan changed or dropped; it may add some, and leave tasks out."""
    before = {task.id: task.expect for task in old.tasks}
    return tuple(task.id for task in repaired.tasks if task.id in before and _is_weaker(before[task.id], task.expect))


def _is_weaker(before: Expectation, after: Expectation) -> bool:
    pairs = (
        (before.exit_code, after.exit_code),
        (before.stdout_contains, after.stdout_contains),
        (before.file_exists, after.file_exists),
    )
    return any(old is not None and old != new for old, new in pairs)


VOLATILE = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "<address>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"(?<![\w:])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|min|minutes|h|hours)\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<number>"),
)
"""What is another every time although the failure is the same, and what stands in its place."""
FOR_READERS = (
    *VOLATILE,
    (
        re.compile(r"(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/[\w.@+~-]+)*/(?=[\w-]+\.\w)"),
        "<path>/",
    ),
    (re.compile(r"(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/[\w.@+~-]+)+/?"), "<path>"),
    (re.compile(r"\b(pid|process|thread)(\W{1,3}|\W?id\W{1,3})\d+\b", re.IGNORECASE), r"\1\2<number>"),
    (re.compile(r"(?<=\w\[)\d{3,7}(?=\]:)|(?<===)\d+(?===)"), "<number>"),
    (re.compile(r"(?<=: )\s*\d+(?= (?:Killed|Aborted|Terminated|Segmentation fault|Bus error|Trace))"), "<number>"),
)
"""What is taken out where somebody looks for the cause: files of the workspace, lines and other numbers stay."""
NORMAL = (
    *VOLATILE,
    (re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+~-]+)+/?|\b[A-Za-z]:\\[^\s'\"]+|\b[\w.-]+(?:/[\w.@+-]+)+"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"), "<number>"),
    (re.compile(r"(?<!the exit code is )(?<!\d)\d+(?:[.,]\d+)*"), "<number>"),
    (re.compile(r"\s+"), " "),
)
"""What is taken out of a failure's text, in this order."""


def normalised_failure(text: str) -> str:
    """A failure's text without paths, addresses, times and numbers but the exit code: equal where it is the same."""
    for pattern, instead in NORMAL:
        text = pattern.sub(instead, text)
    return text.strip().lower()


def readable_failure(text: str, workspace: str = "") -> str:
    """A failure's text for whoever looks for its cause: without times, addresses, process ids and temporary folders.

    Paths in the workspace begin there.
    """
    if len(workspace) > 1:
        text = re.sub(rf"{re.escape(workspace)}(?![\w.-])", ".", text)
    for pattern, instead in FOR_READERS:
        text = pattern.sub(instead, text)
    return text


def is_same_failure(first: str, second: str) -> bool:
    """Whether two failures say the same; then another repair would be no progress."""
    return normalised_failure(first) == normalised_failure(second)


def failed_expectations(
    expect: Expectation, *, exit_code: int, stdout: str, files: Iterable[str] = ()
) -> tuple[str, ...]:
    """What of a task's outcome is not as declared, a sentence each; an exit code other than 0 fails every task."""
    wrong: list[str] = []
    if exit_code != 0:
        wrong.append(f"the exit code is {exit_code}")
    if expect.exit_code is not None and exit_code != expect.exit_code and exit_code == 0:
        wrong.append(f"the exit code is {exit_code} and {expect.exit_code} was expected")
    if expect.stdout_contains is not None and expect.stdout_contains not in stdout:
        wrong.append(f"the output does not contain {expect.stdout_contains!r}")
    if expect.file_exists is not None and expect.file_exists not in set(files):
        wrong.append(f"the file {expect.file_exists} is not there")
    return tuple(wrong)
