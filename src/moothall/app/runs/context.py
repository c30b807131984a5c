"""What a run needs around it: the hall with its store, who listens, the functions that its agents are, and who asks.

Opening a run again is here too: every way of going on with a run begins with it.
"""

from __future__ import annotations

import asyncio
import getpass
import time
from dataclasses import field, replace

from moothall.app.config.settings import strict_cleaner
from moothall.app.kinds.bindings import (
    ANYBODY,
    Functions,
    Provided,
    bind,
    known_agents,
    missing_agents,
    require_models,
    require_performers,
)
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.python import named_to_look
from moothall.app.kinds.source import child_machine, find, is_missing, restore_machine, source_of
from moothall.app.runs.news import Broadcast
from moothall.app.toolbox import Toolbox, toolbox_in
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Machine
from moothall.performers.own import OwnPerformers
from moothall.runtime import hall as halls
from moothall.runtime.adopt import Insistence
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Clock, Store

LOOK = 1.0


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
class RunContext(Frozen):
    """What is around the runs that a caller works with."""

    hall: Hall
    broadcast: Broadcast
    agents: Functions = field(default_factory=dict)
    person: str = ""
    """Who answers questions here."""
    performers: OwnPerformers = field(default_factory=dict)
    """Who performs effects of the author's own."""
    adopt: str = ""
    """Why runs are to go on although their definitions would have decided otherwise; "" where they are not."""

    @property
    def store(self) -> Store:
        """Where the runs are kept."""
        return self.hall.store


def new_hall(store: Store, broadcast: Broadcast, clock: Clock | None = None) -> Hall:
    """A hall over a store. It finds the machines of runs itself that it has to tell something."""
    hall = Hall(store, clock or SystemClock(), {}, clean=strict_cleaner())

    async def open_to_tell(run: RunId) -> None:
        machine, provided = await family_of(store, (await store.load(run)).record, {})
        hall.bind(run, bind(machine, provided))
        await halls.reopen(hall, run, machine)

    hall.opener = open_to_tell
    broadcast.observe(hall)
    return hall


async def reopen(context: RunContext, run: RunId, machine: Machine | None = None) -> Machine:
    """Open a run again, with the machine, the functions and the model that it began with."""
    hall = context.hall
    stored = await hall.store.load(run)
    record, is_named = stored.record, machine is not None
    machine, provided = await family_of(hall.store, record, context.agents, machine)
    if not is_named and (change := change_of(record, machine)):
        context.broadcast.notice(change)
    if not record.parent:
        known_agents(machine, context.agents)
        if not record.model and (missing := missing_agents(machine, context.agents)):
            name = next((name for name in missing if name != ANYBODY), "NAME")
            raise DefinitionError(
                f"no function plays {', '.join(missing)}: the run began with functions of its own; go on in Python, "
                f"with resume(…, agents={{{name!r}: …}}), or put the functions into the machine's table"
            )
    hall.bind(run, bind(machine, replace(provided, performers=context.performers)))
    insisted = Insistence(context.adopt, context.person or login_name()) if context.adopt else None
    await halls.reopen(hall, run, machine, stored, insisted)
    return machine


def login_name() -> str:
    """Who is logged in here; "" where nobody can tell."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # which of them it is depends on the version of Python
        return ""


async def reopen_to_drive(context: RunContext, run: RunId, machine: Machine | None = None) -> None:
    """Open a run again to go on with it, if all is here that it needs."""
    machine = await reopen(context, run, machine)
    snapshot = context.hall.runs[run].head.snapshot
    if snapshot.status != "live":
        return
    require_performers(machine, context.performers)
    require_models_of(context, run, machine)
    toolbox = _toolbox(context.hall.runs[run].record)
    if reason := kind_of(machine).lacking(machine, snapshot.data, {**toolbox.functions, **context.agents}):
        raise DefinitionError(f"run {run} cannot go on here: {toolbox.lacks or reason}")


def require_models_of(context: RunContext, run: RunId, machine: Machine) -> None:
    """Refuse to drive an open run whose models nobody can ask from here."""
    known = context.hall.runs[run]
    require_models(machine, known.head.snapshot.data, Provided(known.record.model, context.agents))


async def family_of(
    store: Store, record: Record, agents: Functions, machine: Machine | None = None
) -> tuple[Machine, Provided]:
    """The machine of a run, and what it brings with it; a child has both from its parent, a fork from its origin."""
    if record.origin and not record.source and machine is None:
        return await family_of(store, (await store.load(record.origin)).record, agents)
    if not record.parent:
        return await _machine_of(store, record, machine), Provided(record.model, agents, toolbox=_toolbox(record))
    try:
        above = (await store.load(record.parent)).record
    except Refused:  # it was deleted
        return machine_at(record), Provided(record.model, agents, toolbox=_toolbox(record))
    parent, provided = await family_of(store, above, agents, machine)
    return child_machine(parent, record.machine), provided.joined_by(parent)


async def _machine_of(store: Store, record: Record, named: Machine | None) -> Machine:
    """The machine of a run: its own, or the one that is named instead, with the tools that the run began with.

    Whoever names the machine that a run was begun with names it without those, and means the run's own.
    """
    if named is None:
        return await kept_machine(store, record)
    plain = source_of(named)
    source = kind_of(named).like(plain, record.source)
    if source == plain:
        return named
    return await kept_machine(store, record) if source == record.source else find(source)


def _toolbox(record: Record) -> Toolbox:
    return toolbox_in(record.tools, record.run)


async def kept_machine(store: Store, record: Record) -> Machine:
    """The machine of a run: of the definition that is stored with it, else found where it began.

    One that another definition has adopted since is found where that is.
    """
    if not record.definition:
        return machine_at(record)
    machine = restore_machine(record.source, record.definition)
    if machine.is_defined_as((await store.load(record.run)).definition()):
        return machine
    try:
        return machine_at(record)
    except DefinitionError:
        return machine


def change_of(record: Record, machine: Machine) -> str:
    """What a person should know where a run keeps a definition that its file no longer has; "" where it has it."""
    if not record.definition or record.parent:
        return ""
    place = record.source.partition("?")[0]
    path = place.rpartition(":")[0] or place
    kept = f"run {record.run} keeps the definition that it began with"
    try:
        now = find(record.source)
    except DefinitionError:
        return f"{path} cannot be used any more; {kept}"
    if now.is_defined_as(machine.digest):
        return ""
    return f"{path} has changed; {kept}. `--machine {path}:{machine.name}` goes on with what is there now"


def machine_at(record: Record) -> Machine:
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
        go_on = f"moot resume {record.run} --machine FILE:NAME"
        raise DefinitionError(f"{error}; put it back, or go on with it where it is now:  {go_on}") from error


async def exists(store: Store, run: RunId) -> bool:
    """Whether a store has this run."""
    try:
        await store.load(run)
    except Refused:
        return False
    return True
