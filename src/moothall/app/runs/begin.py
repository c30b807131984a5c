"""Starting, resuming and answering runs: what the Python API and all doors share.

Nothing here decides anything about a run: it gathers what a run needs (store, model, functions, budget), begins
or reopens it, lets the worker drive it, and says how it stands.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from moothall.app.config.models import BY_LEVEL, absolute_model, unpriced
from moothall.app.config.settings import (
    Files,
    checked_cleaner,
    configured_model,
    configured_telemetry,
    durability_of,
    level_model,
    open_store,
    store_address,
)
from moothall.app.kinds.bindings import (
    Functions,
    Troupe,
    cast,
    child_machine,
    endless,
    endless_below,
    input_data,
    known_agents,
    lacking,
    own_limits,
    slug,
    unplayed,
)
from moothall.app.kinds.python import (
    REMEDY,
    find,
    is_loading,
    is_missing,
    is_of_workflow,
    is_workflow,
    named_to_look,
    source_of,
)
from moothall.app.runs.idle import wait_for_end
from moothall.errors import DefinitionError, MoothallError, Refused
from moothall.kernel.codec import encode, schema
from moothall.kernel.effects import StartChild
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.interpreter import possible
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.step import Snapshot
from moothall.performers.agents import Hear
from moothall.runtime import hall as halls
from moothall.runtime.children import child_id
from moothall.runtime.cleaner import fitted
from moothall.runtime.decide import outcome
from moothall.runtime.drive import drive
from moothall.runtime.hall import Finding, Hall, Observer
from moothall.runtime.journal import FAMILY, CancelChild, Head, Reader, Record, RunId
from moothall.runtime.ports import SET_ASIDE, Clean, Store, as_it_is
from moothall.runtime.serve import serve

T = TypeVar("T")
Watcher = Callable[[Hall], Observer]
"""An observer that wants to know the hall: how its runs began, and of which machine they are."""
STAND_IN = "rehearsal"
LONGEST_ID = 128
"""How long an id may be that a run is given; those of its children add to it, and are still the name of a file."""
USABLE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9-]{{,{LONGEST_ID - 1}}}")
LOOK = 1.0


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


class SystemClock:
    """The machine's own clock; `now` are seconds since 1970."""

    def __init__(self) -> None:
        self.now = time.time  # each step looks at the clock several times

    async def wait_until(self, moment: float) -> None:
        """Come back at that time; the clock may be set meanwhile, so it is looked at from time to time."""
        while True:
            left = moment - time.time()
            await asyncio.sleep(max(0.0, min(left, LOOK)))
            if left <= LOOK and time.time() >= moment:
                return


@slotted
class Setting(Frozen):
    """What a run needs around it. `notice` is told what a person should know."""

    store: Store
    agents: Functions = field(default_factory=dict)
    observers: tuple[Observer, ...] = ()
    notice: Callable[[str], None] = lambda text: print(text, file=sys.stderr)
    tell: Callable[[str], None] = lambda text: None
    watchers: tuple[Watcher, ...] = ()
    person: str = ""
    """Who answers questions here."""
    hear: Hear | None = None
    """Who listens while a model replies."""
    telemetry: tuple[Watcher, ...] = ()
    """Who watches all runs of the store alike, so that these share a hall all the same."""
    files: Files | None = None
    """The settings that were read for the store; None: they are read for each run."""


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
    return wait_for(arun(machine, data, agents=agents, model=model, budget=budget, store=store, run_id=run_id))


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
    if not isinstance(machine, Machine):
        raise DefinitionError(f"run takes a Machine, not {machine!r}")
    if budget is not None and not isinstance(budget, Budget):
        raise DefinitionError(f"write budget=Budget(calls=20), not {budget!r}")
    if source := is_loading():
        raise DefinitionError(f"{source} starts a run while it is loaded; {REMEDY}")
    terms = Terms(run_id, model, budget)
    return await opened_for(store, agents, lambda setting: begin(setting, machine, data, terms))


@slotted
class Terms(Frozen):
    """What the caller decides about one run. Where it is given no id, it gets a new one."""

    run: RunId | None = None
    model: str = ""
    budget: Budget | None = None


async def begin(setting: Setting, machine: Machine, data: Any, terms: Terms) -> Outcome:
    """Begin a run and drive it as far as it goes."""
    machine.require_types()
    hall = hall_of(setting)
    run = new_id(machine, hall.clean) if terms.run is None else usable_id(terms.run, hall.clean)
    if terms.run is not None and not await exists(hall.store, run) and (why := await hall.store.behind(run)):
        raise Refused(
            f"run {run} cannot begin: {why}; choose another id, or, if it is to be so, `moot audit {run} --accept`"
        )
    limits = own_limits(machine) if terms.budget is None else {**own_limits(machine), **terms.budget.limits()}
    unbounded = endless(machine)
    if not limits and (finding := unbounded or endless_below(machine)) is not None:
        raise DefinitionError(
            f"machine {machine.name} may never end: {finding.why}; {finding.remedy}, or give the run a budget"
        )
    model = absolute_model(terms.model or configured_model(setting.files))
    agents = known_agents(machine, setting.agents)
    model = model or _stand_in(setting, machine)
    if "usd" in limits and (names := unpriced(model)):
        setting.notice(f"nobody knows the price of {', '.join(names)}: what it costs does not count towards the budget")
    named, is_endless = hall.clean(model), unbounded is not None
    record = Record(run, machine.name, machine.digest, time.time(), source_of(machine), named, limits, is_endless)
    with halls.visiting(hall, run):
        hall.casts[run] = cast(machine, Troupe(model, agents, hear=setting.hear))
        await halls.begin(hall, record, machine, fitted(partial(input_data, machine), data, hall.clean))
        return _noted(setting, machine, await driven(hall, run))


def _noted(setting: Setting, machine: Machine, outcome: Outcome) -> Outcome:
    """The same; what a person should know about a workflow is told."""
    if is_of_workflow(machine):
        from moothall.app.kinds.workflow.runs import notes

        for note in notes(machine, outcome):
            setting.notice(note)
    return outcome


async def driven(hall: Hall, run: RunId) -> Outcome:
    """Drive a run as far as it goes, and say how it stands."""
    machine = hall.runs[run].machine
    head = await drive(hall, run)
    below = await _asked_by_children(hall, run, head) if head.pending else ()
    outcome = outcome_of(machine, run, head, below)
    return replace(outcome, fault=await _fault(hall.store, run)) if outcome.status == "failed" else outcome


async def _fault(store: Store, run: RunId) -> str:
    """Where a run failed, by the event with which it did."""
    entries = await store.entries(run)
    return next((str(one["event"].get("fault", "")) for one in reversed(entries) if "status" in one), "")


async def _asked_by_children(hall: Hall, run: RunId, head: Head) -> tuple[Question, ...]:
    """The questions that wait for a person in the children of a run, and in theirs."""
    found: tuple[Question, ...] = ()
    for one in head.pending:
        if one.effect.kind in FAMILY and one.began:
            child = child_id(run, one.key)
            stored = await hall.store.load(child)
            assert isinstance(one.effect, StartChild | CancelChild)
            part = hall.cast(run).child(one.effect.machine)
            hall.casts[child] = part.cast
            below = Reader(part.machine, hall.effects(child)).head(stored.head)
            found += questions_of(child, below) + await _asked_by_children(hall, child, below)
    return found


def resume(
    run: RunId, machine: Machine | None = None, *, agents: Functions | None = None, store: str | None = None
) -> Outcome:
    """Go on with a run where its journal ends. The machine is found by itself where it stands in a module."""
    return wait_for(opened_for(store, agents, lambda setting: go_on(setting, run, machine)))


def answer(
    run: RunId,
    value: Any,
    machine: Machine | None = None,
    *,
    question: str | None = None,
    agents: Functions | None = None,
    store: str | None = None,
    by: str = "",
) -> Outcome:
    """Answer a question of a waiting run and go on. A machine that stands in no module is named."""

    def work(setting: Setting) -> Coroutine[Any, Any, Outcome]:
        return go_on_with_answer(replace(setting, person=by), run, value, question, machine)

    return wait_for(opened_for(store, agents, work))


async def opened_for(
    store: str | None, agents: Functions | None, work: Callable[[Setting], Coroutine[Any, Any, Outcome]]
) -> Outcome:
    """What comes of some work, with a store that is open for it. Telemetry that is set has a moment at the end."""
    place = opened(store)
    with place as kept:
        if not (parts := configured_telemetry(None, place.files)):
            return await work(Setting(kept, agents or {}, files=place.files))
        from moothall.app.notify.telemetry.listener import standing_telemetry  # most programs are not watched

        telemetry = standing_telemetry(parts)
        watchers = (telemetry.watcher(place.address),)
        try:
            return await work(Setting(kept, agents or {}, telemetry=watchers, files=place.files))
        finally:
            await asyncio.to_thread(telemetry.wait_until_seen)


async def go_on(setting: Setting, run: RunId, machine: Machine | None = None) -> Outcome:
    """Go on with a run where its journal ends."""
    hall = hall_of(setting)
    stored = await hall.store.load(run)
    if stored.status.startswith(SET_ASIDE):
        await halls.require_anchored(hall.store, stored)
        setting.notice(f"run {run} was set aside; it is tried once more")
        await hall.store.take_back(run)
    with halls.visiting(hall, run):
        await _reopen_to_drive(hall, setting, run, machine)
        head = hall.heads[run]
        if head.snapshot.status != "live":
            setting.tell(f"run {run} is over")
        elif run in hall.leases:
            setting.tell(f"run {run} goes on after entry {head.seq}")
        return await _driven_with_parents(hall, setting, run, machine)


async def _driven_with_parents(hall: Hall, setting: Setting, run: RunId, machine: Machine | None = None) -> Outcome:
    """Drive a run as far as it goes, and where that ends it, the run that started it, and so on."""
    outcome = _noted(setting, hall.runs[run].machine, await driven(hall, run))
    parent = hall.runs[run].record.parent
    if not parent or outcome.status in ("waiting", "running", "stuck") or not await exists(hall.store, parent):
        return outcome
    with halls.visiting(hall, parent):
        await reopen(hall, setting, parent, machine)
        return await _driven_with_parents(hall, setting, parent, machine) if parent in hall.leases else outcome


async def exists(store: Store, run: RunId) -> bool:
    """Whether a store has this run."""
    try:
        await store.load(run)
    except Refused:
        return False
    return True


def _machine_at(record: Record) -> Machine:
    """The machine of a run, found where the run says that it began."""
    if (named := named_to_look(record.machine)) is not None:
        return named
    if not record.source:
        raise DefinitionError(
            f"run {record.run} began with a machine that was made on the fly; give it a name in a module"
        )
    try:
        return find(record.source)
    except DefinitionError as error:
        if not is_missing(record.source):
            raise
        go_on = f"moot fork {record.run} --machine FILE:NAME"
        raise DefinitionError(f"{error}; put it back, or go on with it where it is now:  {go_on}") from error


async def go_on_with_answer(
    setting: Setting, run: RunId, value: Any, question: str | None = None, machine: Machine | None = None
) -> Outcome:
    """Answer a question of a run, or of its child where the run itself has none, and go on.

    `machine` is that of the run at the top of the family, where it stands in no module.
    """
    hall = hall_of(setting)
    with halls.visiting(hall, run):
        opened_machine = await reopen(hall, setting, run, machine)
        if (child := await _asking_child(hall, run, question)) is not None:
            return await go_on_with_answer(setting, child.run, value, child.id, machine)
        advanced = await halls.answer(hall, run, value, question, setting.person)
        if advanced.received == "duplicate":
            setting.notice("this question was answered before; the first answer stands")
        if run not in hall.leases or run in hall.crew.drives:
            setting.notice("a worker drives this run; it goes on there")
            return outcome_of(opened_machine, run, hall.heads[run])
        return await _driven_with_parents(hall, setting, run, machine)


async def _asking_child(hall: Hall, run: RunId, question: str | None) -> Question | None:
    """The only question of a run's children, where the run itself has none and none is named."""
    head = hall.heads[run]
    if question is not None or halls.questions(head):
        return None
    asked = await _asked_by_children(hall, run, head)
    return asked[0] if len(asked) == 1 else None


async def cancel(setting: Setting, run: RunId, reason: str) -> Outcome:
    """Ask a run to stop, wherever it is driven; one that is over, or gets there first, is left as it is."""

    def still_lives(head: Head) -> None:
        if head.snapshot.status != "live":
            raise Refused(f"run {run} is {head.snapshot.status} already")

    hall = hall_of(setting)
    with halls.visiting(hall, run):
        machine = await reopen(hall, setting, run)
        await halls.cancel(hall, run, reason, f"cancel-{secrets.token_hex(4)}", still_lives)
        if run not in hall.crew.drives and any(one.effect.kind in FAMILY for one in hall.heads[run].pending):
            await drive(hall, run)
        await halls.let_go_unless_driven(hall, run)
        return outcome_of(machine, run, hall.heads[run])


async def work(setting: Setting, stop: asyncio.Event, most: int, *, until_idle: bool = False) -> int:
    """Drive every run of the store that wants attention, until told to stop or idle; how many it then let go of."""
    hall = _watched_hall(setting)
    await _leave_strays(setting)
    tried: dict[RunId, int] | None = {} if until_idle else None
    ending = asyncio.create_task(wait_for_end(hall, stop, tried))

    async def open_run(run: RunId) -> None:
        if tried is not None:
            tried[run] = await hall.store.seq(run)
        try:
            await _reopen_to_drive(hall, setting, run)
        except MoothallError as error:
            setting.notice(f"run {run} is left alone for now: {error}")
            raise

    await serve(hall, open_run, stop, most)
    return await ending


async def _leave_strays(setting: Setting) -> None:
    """Set the runs aside that are behind their anchors, and tell of them and of those that are gone."""
    store = setting.store
    for run, why in (await store.strays()).items():
        setting.notice(f"run {run}: {why}; {halls.looked(run)}")
        if await exists(store, run) and (await store.load(run)).status == "live":
            await store.set_aside(run, why)


async def reopen(hall: Hall, setting: Setting, run: RunId, machine: Machine | None = None) -> Machine:
    """Open a run again, with the machine, the functions and the model that it began with."""
    stored = await hall.store.load(run)
    record = stored.record
    machine, troupe = await family_of(hall.store, record, setting.agents, machine)
    if setting.hear is not None:
        troupe = replace(troupe, hear=setting.hear)
    if not record.parent:
        known_agents(machine, setting.agents)
        if not record.model and (missing := unplayed(machine, setting.agents)):
            raise DefinitionError(
                f"nobody plays {', '.join(missing)}: the run began with functions of its own; go on in Python, with "
                f"resume(…, agents={{{missing[0]!r}: …}}), or put the functions into the machine's table"
            )
    hall.casts[run] = cast(machine, troupe)
    await halls.reopen(hall, run, machine, stored)
    return machine


async def _reopen_to_drive(hall: Hall, setting: Setting, run: RunId, machine: Machine | None = None) -> None:
    """Open a run again to go on with it, if all is here that it needs."""
    machine, head = await reopen(hall, setting, run, machine), hall.heads[run]
    if head.snapshot.status == "live" and (reason := lacking(machine, head.snapshot.data, setting.agents)):
        raise DefinitionError(f"run {run} cannot go on here: {reason}")


async def family_of(
    store: Store, record: Record, agents: Functions, machine: Machine | None = None
) -> tuple[Machine, Troupe]:
    """The machine of a run, and what it brings with it; a child has both from its parent, a fork from its origin."""
    if record.origin and not record.source and machine is None:
        return await family_of(store, (await store.load(record.origin)).record, agents)
    if not record.parent:
        return machine or _machine_at(record), Troupe(record.model, agents)
    try:
        above = (await store.load(record.parent)).record
    except Refused:  # it was deleted
        return _machine_at(record), Troupe(record.model, agents)
    parent, troupe = await family_of(store, above, agents, machine)
    return child_machine(parent, record.machine), troupe.joined_by(parent)


_halls: WeakKeyDictionary[Store, Hall] = WeakKeyDictionary()


def hall_of(setting: Setting) -> Hall:
    """The hall of a store: one for all runs, so that they share its commits; who watches gets one of their own."""
    if setting.observers or setting.watchers:
        return _watched_hall(setting)
    hall = _halls.get(setting.store)
    if hall is None:
        hall = _halls[setting.store] = _watched_hall(Setting(setting.store, telemetry=setting.telemetry))
    return hall


def _watched_hall(setting: Setting) -> Hall:
    hall = _new_hall(setting.store, setting.observers)
    hall.observers += [watcher(hall) for watcher in (*setting.watchers, *setting.telemetry)]
    return hall


def _new_hall(store: Store, observers: Sequence[Observer] = ()) -> Hall:
    hall = Hall(store, SystemClock(), {}, list(observers), clean=checked_cleaner())

    async def open_to_tell(run: RunId) -> None:
        machine, troupe = await family_of(store, (await store.load(run)).record, {})
        hall.casts[run] = cast(machine, troupe)
        await halls.reopen(hall, run, machine)

    hall.opener = open_to_tell
    return hall


def _stand_in(setting: Setting, machine: Machine) -> str:
    """The model for a run that names none: those of the levels, else the stand-in, where an agent has no function."""
    missing = unplayed(machine, setting.agents)
    if not missing:
        return ""
    if level_model("base").value:
        return BY_LEVEL
    setting.notice(f"no model is set: {STAND_IN} stands in for {', '.join(missing)}; its replies mean nothing")
    return STAND_IN


async def shown(store: Store, outcome: Outcome) -> Any:
    """An outcome as programs are shown it; that of a workflow has the names that workflows have."""
    source = (await store.load(outcome.run)).record.source
    if not is_workflow(source):
        return outcome
    from moothall.app.kinds.workflow.runs import machine_at, result_of

    return await result_of(store, machine_at(source), outcome)


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
        Question(one.key, *asked(encode(one.effect), one.doubt), one.due, run, getattr(one.effect, "who", ""))
        for one in halls.questions(head)
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


def usable_id(run: RunId, clean: Clean) -> RunId:
    """A run id that can be written everywhere, or a refusal."""
    if not USABLE.fullmatch(run):
        raise Refused(f"{run[:LONGEST_ID]!r} is no run id; use letters, digits and dashes, at most {LONGEST_ID}")
    if (shown := clean(run)) != run:
        raise Refused(f"the run id {shown} has a secret in it; choose another")
    return run


def new_id(machine: Machine, clean: Clean = as_it_is) -> RunId:
    """A new run id that says which machine it is; what is behind the name is chance, and has no secret."""
    return f"{usable_id(slug(machine), clean)}-{secrets.token_hex(4)}"


class _Opened:
    """A store that is open, how often, with which durability, and the settings that were read for it."""

    __slots__ = ("durability", "files", "store", "users")

    def __init__(self, store: Store, durability: str, files: Files) -> None:
        self.store, self.durability, self.files, self.users = store, durability, files, 0


_open: dict[tuple[str, int, int], _Opened] = {}
"""By address, process and thread: a process that was forked off must not use the connection that it came with."""


class opened:
    """A store, closed again at the end; whoever opens it meanwhile in the same thread shares it.

    So all of them have its durability, and the files of settings as they were read for the first. `address` and
    `files` are there once it is open.
    """

    __slots__ = ("_key", "_named", "address", "files")

    def __init__(self, address: str | None, durability: str | None = None) -> None:
        self._named = address, durability

    def __enter__(self) -> Store:
        address, durability = self._named
        files = Files()
        self.address = store_address(address, files)
        self._key = self.address, os.getpid(), threading.get_ident()
        kept = _open.get(self._key)
        if kept is None:
            durability = durability_of(durability, files)
            kept = _open[self._key] = _Opened(open_store(self.address, durability), durability, files)
        elif durability not in (None, kept.durability):
            is_open = f"{self.address} is open here with durability {kept.durability}"
            raise Refused(f"{is_open}; it cannot be {durability} at the same time")
        kept.users += 1
        self.files = kept.files
        return kept.store

    def __exit__(self, *error: object) -> None:
        if self._key[1] != os.getpid():  # forked off in between: it is for the process that opened the store to close
            return
        kept = _open[self._key]
        kept.users -= 1
        if not kept.users:
            del _open[self._key]
            kept.store.close()


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Wait for async work from sync code, also where a loop is already running, as in notebooks."""
    if not _loop_is_running():
        return asyncio.run(work)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as aside:
        waiting = aside.submit(asyncio.run, noted())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for loop, task in begun:
                loop.call_soon_threadsafe(task.cancel)
            wait([waiting])
            raise


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
