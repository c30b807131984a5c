"""Starting, resuming and answering runs: what the Python API and all doors share.

Nothing here decides anything about a run: it gathers what a run needs (store, model, functions, budget), begins
or reopens it, lets the worker drive it, and says how it stands.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moothall.agents.asking import AskAgent, Asking, Calling, CallTool
from moothall.app.finding import REMEDY, find, is_loading, source_of
from moothall.app.settings import absolute_model, configured_model, open_model, open_store
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson
from moothall.kernel.machine import Budget, Machine
from moothall.performers.agents import AgentPerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime import hall as halls
from moothall.runtime.hall import Hall, Observer
from moothall.runtime.journal import Head, Record, RunId
from moothall.runtime.ports import Performer, Store
from moothall.runtime.worker import drive

T = TypeVar("T")
Functions = Mapping[str, Callable[..., Any]]
STAND_IN = "rehearsal"


@dataclass(frozen=True, slots=True)
class Question:
    """A question that waits for a person."""

    id: str
    prompt: str
    schema: Any
    due: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run stands: done, failed, limited, cancelled, or waiting for a person."""

    run: RunId
    machine: str
    status: str
    states: tuple[str, ...]
    result: Any
    reason: str = ""
    questions: tuple[Question, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    data: Any = None


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def wait_until(self, moment: float) -> None:
        """Come back at that time."""
        await asyncio.sleep(max(0.0, moment - time.time()))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run needs around it. `notice` is told what a person should know."""

    store: Store
    agents: Functions = field(default_factory=dict)
    observers: tuple[Observer, ...] = ()
    notice: Callable[[str], None] = lambda text: print(text, file=sys.stderr)


def run(
    machine: Machine,
    data: Any = None,
    *,
    agents: Functions | None = None,
    model: str = "",
    budget: Budget | None = None,
    store: str | None = None,
    run_id: RunId | None = None,
) -> Outcome:
    """Run a machine to its end, or until it waits for a person. Durable: `moot resume` goes on after a crash."""
    return _wait(arun(machine, data, agents=agents, model=model, budget=budget, store=store, run_id=run_id))


async def arun(
    machine: Machine,
    data: Any = None,
    *,
    agents: Functions | None = None,
    model: str = "",
    budget: Budget | None = None,
    store: str | None = None,
    run_id: RunId | None = None,
) -> Outcome:
    """The same as `run`, for code that is already async."""
    if source := is_loading():
        raise DefinitionError(f"{source} starts a run while it is loaded; {REMEDY}")
    with opened(store) as kept:
        setting = Setting(kept, agents or {})
        return await begin(setting, machine, data, Terms(run_id or new_id(machine), model, budget))


@dataclass(frozen=True, slots=True)
class Terms:
    """What the caller decides about one run."""

    run: RunId
    model: str = ""
    budget: Budget | None = None


async def begin(setting: Setting, machine: Machine, data: Any, terms: Terms) -> Outcome:
    """Begin a run and drive it as far as it goes."""
    model = absolute_model(terms.model or configured_model()) or _stand_in(setting, machine)
    limits = (machine.budget or Budget()).limits() | (terms.budget or Budget()).limits()
    record = Record(terms.run, machine.name, machine.digest, time.time(), source_of(machine), model, limits)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", terms.run):
        raise Refused(f"{terms.run!r} is no run id; use letters, digits and dashes")
    hall = _hall(setting, machine, model)
    await halls.begin(hall, record, machine, input_data(machine, data))
    return _outcome(hall, record.run, await drive(hall, record.run))


def resume(
    run: RunId, machine: Machine | None = None, *, agents: Functions | None = None, store: str | None = None
) -> Outcome:
    """Go on with a run where its journal ends. The machine is found by itself where it stands in a module."""
    return _wait(_opened(store, agents, lambda setting: go_on(setting, run, machine)))


def answer(
    run: RunId, value: Any, *, question: str | None = None, agents: Functions | None = None, store: str | None = None
) -> Outcome:
    """Answer a question of a waiting run and go on."""
    return _wait(_opened(store, agents, lambda setting: go_on_with_answer(setting, run, value, question)))


async def _opened(
    store: str | None, agents: Functions | None, work: Callable[[Setting], Coroutine[Any, Any, Outcome]]
) -> Outcome:
    with opened(store) as kept:
        return await work(Setting(kept, agents or {}))


async def go_on(setting: Setting, run: RunId, machine: Machine | None = None) -> Outcome:
    """Go on with a run where its journal ends."""
    machine = machine or await machine_of(setting.store, run)
    hall = await _reopened(setting, machine, run)
    return _outcome(hall, run, await drive(hall, run))


async def exists(store: Store, run: RunId) -> bool:
    """Whether a store has this run."""
    try:
        await store.load(run)
    except Refused:
        return False
    return True


async def machine_of(store: Store, run: RunId) -> Machine:
    """The machine of a run, found where the run says that it began."""
    source = (await store.load(run)).record.source
    if not source:
        raise DefinitionError(f"run {run} began with a machine that was made on the fly; give it a name in a module")
    return find(source)


async def go_on_with_answer(setting: Setting, run: RunId, value: Any, question: str | None = None) -> Outcome:
    """Answer a question of a run and go on."""
    machine = await machine_of(setting.store, run)
    hall = await _reopened(setting, machine, run)
    advanced = await halls.answer(hall, run, value, question)
    if advanced.received == "duplicate":
        setting.notice("this question was answered before; the first answer stands")
    return _outcome(hall, run, await drive(hall, run))


async def _reopened(setting: Setting, machine: Machine, run: RunId) -> Hall:
    stored = await setting.store.load(run)
    hall = _hall(setting, machine, stored.record.model)
    await halls.reopen(hall, run, machine)
    return hall


def _hall(setting: Setting, machine: Machine, model: str) -> Hall:
    """A hall with the functions and the model that play this machine's agents."""
    functions = {**bound_functions(machine), **setting.agents}
    if not model and (missing := _unplayed(setting, machine)):
        raise DefinitionError(
            f"nobody plays {', '.join(missing)}: the run began with functions of its own; go on in Python, with "
            f"resume(…, agents={{{missing[0]!r}: …}}), or put the functions into the machine's table"
        )
    played = open_model(model) if model else None
    performers = {
        AskAgent.kind: Performer(AskAgent, AgentPerformer(functions, played, machine.shapes)),
        CallTool.kind: Performer(CallTool, ToolPerformer(functions)),
    }
    return Hall(setting.store, SystemClock(), performers, list(setting.observers))


def _stand_in(setting: Setting, machine: Machine) -> str:
    """The model for a run that names none: the stand-in, announced, where an agent has no function."""
    unplayed = _unplayed(setting, machine)
    if not unplayed:
        return ""
    setting.notice(f"no model is set: {STAND_IN} stands in for {', '.join(unplayed)}; its replies mean nothing")
    return STAND_IN


def _unplayed(setting: Setting, machine: Machine) -> list[str]:
    """The agents of a machine that are no functions."""
    asked = {one.agent for one in machine.actions() if isinstance(one, Asking)}
    return sorted(asked - bound_functions(machine).keys() - setting.agents.keys())


def bound_functions(machine: Machine) -> dict[str, Callable[..., Any]]:
    """The functions that stand in the table itself, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for action in machine.actions():
        if isinstance(action, Asking | Calling) and action.function is not None:
            name = action.agent if isinstance(action, Asking) else action.tool
            if found.setdefault(name, action.function) is not action.function:
                raise DefinitionError(f"machine {machine.name}: two functions are called {name!r}; rename one")
    return found


def input_data(machine: Machine, given: Any) -> Any:
    """A run's first data: the machine's own type, from a value, from JSON, or from a text for its first field."""
    kind = machine.data
    if kind is None:
        return encode(given)
    if isinstance(given, kind):
        return given
    if isinstance(given, str) and kind is not str:
        fields = list(getattr(kind, "__dataclass_fields__", {}))
        if not fields:
            raise Refused(f"{machine.name} takes a {kind.__name__}, not a text")
        given = {fields[0]: given}
    return decode(kind, {} if given is None else given, "input")


def outcome_of(machine: Machine, run: RunId, head: Head) -> Outcome:
    """How a run stands, for people and scripts."""
    snapshot = head.snapshot
    open_questions = tuple(
        Question(one.key, one.effect.prompt, one.effect.schema, one.due)
        for one in halls.questions(head)
        if isinstance(one.effect, AskPerson)
    )
    status: str = snapshot.status
    if status == "live":
        status = "waiting" if open_questions else "running"
    result = snapshot.output
    if result is None:
        result = _result(machine, snapshot.data)
    return Outcome(
        run, machine.name, status, snapshot.active, result, snapshot.reason, open_questions, head.spent, snapshot.data
    )


def _result(machine: Machine, data: Any) -> Any:
    if machine.result is None:
        return data
    try:
        return machine.result(data)
    except Exception as error:  # the author's code may raise anything
        raise DefinitionError(f"machine {machine.name}, result: {type(error).__name__}: {error}") from error


def _outcome(hall: Hall, run: RunId, head: Head) -> Outcome:
    return outcome_of(hall.runs[run].machine, run, head)


def new_id(machine: Machine) -> RunId:
    """A new run id that says which machine it is."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", machine.name).strip("-") or "run"
    return f"{slug}-{secrets.token_hex(3)}"


@contextmanager
def opened(address: str | None) -> Iterator[Store]:
    """A store, closed again at the end."""
    store = open_store(address)
    try:
        yield store
    finally:
        store.close()


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Wait for async work from sync code, also where a loop is already running, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    found: list[T] = []
    errors: list[BaseException] = []

    def aside() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:  # carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=aside)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return found[0]
