"""Where runs meet: begin one, open one again, and move one by one event.

`advance` is the durable heart: read, decide, commit. Answers, cancels, timers and the ends of effects all enter
through it, and nothing writes beside it. Their secrets are replaced first. A repeat of a cause returns the first
decision; a conflict with another writer means: read again, decide again. Scripts are evaluated before the commit,
which keeps what they said. Observers see entries after they are committed; one that raises is left out from then on,
so that watching cannot harm a run.

A run is opened under the definition that it has, or under one that adopts it (`adopt` says which may).

Who performs a run's effects holds its lease. It is taken and given back by the commits themselves: a run is born
held, and whoever commits the last thing that can be performed lets go. Commits from outside leave the lease alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from moothall.errors import Broken, Conflict, DefinitionError, Refused
from moothall.kernel.codec import decode, encode, read_back
from moothall.kernel.effects import AskPerson, Effect, StartChild
from moothall.kernel.events import (
    Adopted,
    Answered,
    Cancelled,
    Conflicted,
    Doubted,
    Drafted,
    Event,
    Exhausted,
    Expired,
    GaveUp,
    Repeated,
    Started,
)
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.interpreter import accepts, possible
from moothall.kernel.machine import Machine
from moothall.kernel.schema import misfits
from moothall.kernel.step import Answer, Ask
from moothall.runtime.adopt import Adoption, Insistence, adopt_anyway, adopt_steps, adopt_wording, refusal
from moothall.runtime.cleaner import cleaned, fitted
from moothall.runtime.crew import Crew
from moothall.runtime.decide import (
    Decision,
    Incoming,
    decide,
    first,
    in_flight,
    in_force,
    make_incoming,
    mark_cause,
    note,
    without_bill,
)
from moothall.runtime.holder import is_gone, is_near, name_of_this_process
from moothall.runtime.journal import Entry, Head, Pending, Reader, Record, Run, RunId, encode_event, shaped
from moothall.runtime.ports import (
    LEASE,
    SET_ASIDE,
    WHOLE,
    Clean,
    Clock,
    Ear,
    Evaluate,
    Excerpt,
    Lease,
    Notice,
    Outdated,
    Performer,
    ScriptContext,
    Store,
    Stored,
    as_it_is,
    nobody_is_told,
    nobody_listens,
)
from moothall.runtime.rebuild import Difference, compared, definition_after, rebuilt

Observer = Callable[[RunId, Entry, Head], None]
HALF_A_LEASE = LEASE / 2
"""A lease that lasts longer still is not renewed by a commit."""
NEAR_LOOKS, FAR_LOOKS = 6, 24
"""How often to look at a lease that seems overdue: a near holder sees the same clock and renews its lease within a
pulse; a far one may have another, and renews it when a third of a lease has passed."""


class NotStorable(DefinitionError):
    """What a step makes of the run's data is no JSON, or too large: it cannot be kept, and the run is where it was."""


class ChildSpec(Frozen):
    """A machine that may be started as a child: where it is found again, how its input is read, who performs it.

    `ended` makes of what it gives the event that its parent hears, `settled` of what a person says it gave.
    """

    machine: Machine
    source: str
    endless: bool
    read: Callable[[Any], Any]
    bindings: Bindings
    ended: Callable[[StartChild, Any], Event] = StartChild.settled
    settled: Callable[[StartChild, Any], Event] = StartChild.settled


def _nobody(name: str) -> ChildSpec:
    raise DefinitionError(f"nothing here knows the machine {name!r}")


async def _no_engine(ask: Ask, around: ScriptContext) -> Answer:
    raise Broken("this machine needs a script engine, and none is connected")


class Bindings(Frozen):
    """Who performs the effects of a run, by kind; the effects that nobody performs; the children that it may start.

    `evaluate` answers what scripts are asked. `beside` says that such a run may be told things that begin effects while
    others are under way: each is performed in a task of its own then.
    """

    performers: Mapping[str, Performer]
    effects: Mapping[str, type[Effect]] = field(default_factory=dict)
    child: Callable[[str], ChildSpec] = _nobody
    evaluate: Evaluate = _no_engine
    beside: bool = False


def effects_of(bindings: Bindings) -> dict[str, type[Effect]]:
    """The effects that a run with these bindings can want, by kind."""
    return {kind: performer.effect for kind, performer in bindings.performers.items()} | dict(bindings.effects)


class Resolution(Frozen):
    """What a person found out about an effect whose outcome was unknown."""

    outcome: Literal["done", "failed", "again"]
    value: Any = None
    reason: str = ""


Received = Literal["taken", "ignored", "duplicate"]


@slotted
class Advanced(Frozen):
    """How an event was received: the entry's number, the effects now due, and whether it was new."""

    seq: int
    due: tuple[Pending, ...]
    received: Received


class OpenRun:
    """What a hall remembers of a run while somebody has to do with it.

    Who performs its effects is known first. `run` and `head` are there once it is open: how it began and its machine,
    and where it stands. `lease` is the one that this hall may hold it with, None where others hold it. `adoption` is
    what its next step begins with where it is open under another definition than its head has. `guests` counts those
    who are about to do something with it.
    """

    __slots__ = ("adoption", "bindings", "guests", "head", "lease", "run")
    run: Run
    head: Head

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.lease: Lease | None = None
        self.adoption: Adopted | None = None
        self.guests = 0

    @property
    def is_open(self) -> bool:
        """Whether it is known where the run stands."""
        return hasattr(self, "head")

    @property
    def machine(self) -> Machine:
        """The definition that the run is open under."""
        return self.run.machine

    @property
    def record(self) -> Record:
        """How the run began."""
        return self.run.record

    def effects(self) -> dict[str, type[Effect]]:
        """The effects that the run can want, by kind."""
        return effects_of(self.bindings)

    def reader(self) -> Reader:
        """Decodes what the store holds of the run."""
        return Reader(self.run.machine, self.effects())

    def stand(self, head: Head, lease: Lease | None) -> Head:
        """Remember where the run stands, with the limits that it has there, and the lease for it."""
        self.head, self.lease, self.run = head, lease, in_force(self.run, head)
        return head


@dataclass
class Hall:
    """A store, a clock and performers, and the runs that are open here."""

    store: Store
    clock: Clock
    performers: Mapping[str, Performer]
    observers: list[Observer] = field(default_factory=list)
    runs: dict[RunId, OpenRun] = field(default_factory=dict)
    """What is remembered here of runs."""
    owner: str = field(default_factory=name_of_this_process)
    crew: Crew = field(default_factory=Crew)
    opener: Callable[[RunId], Awaitable[object]] | None = None
    """Opens a run of the store that is not open here."""
    clean: Clean = as_it_is
    """Replaces the secrets in all that enters a run."""
    ear: Ear = nobody_listens
    """Knows who wants to hear what is said in a run as it is said."""
    notice: Notice = nobody_is_told
    """Is told what a person should know."""

    def remember(self, run: RunId) -> OpenRun:
        """What is remembered of a run, from now on if nothing was."""
        known = self.runs.get(run)
        if known is None:
            known = self.runs[run] = OpenRun(Bindings(self.performers))
        return known

    def bind(self, run: RunId, bindings: Bindings) -> None:
        """Let these perform the effects of a run."""
        self.remember(run).bindings = bindings

    def bindings_of(self, run: RunId) -> Bindings:
        """Who performs the effects of a run."""
        return self.runs[run].bindings if run in self.runs else Bindings(self.performers)

    def effects(self, run: RunId) -> dict[str, type[Effect]]:
        """The effects that a run can want, by kind."""
        return effects_of(self.bindings_of(run))

    def has_open(self, run: RunId) -> bool:
        """Whether a run is open here."""
        return run in self.runs and self.runs[run].is_open

    def lease_of(self, run: RunId) -> Lease | None:
        """The lease with which this hall may hold a run; None where it is not open here, or others hold it."""
        return self.runs[run].lease if run in self.runs else None

    async def open(self, run: RunId) -> None:
        """Open a run of the store, to tell it something."""
        if self.opener is None:
            raise Broken(f"run {run} is not open here")
        await self.opener(run)

    def held(self, token: int) -> Lease:
        """A lease of this hall with this token."""
        return Lease(self.owner, token, self.clock.now() + LEASE)


def leave(hall: Hall, run: RunId) -> None:
    """Forget what is remembered of a run here, unless somebody drives it or is about to; the store keeps it."""
    known = hall.runs.get(run)
    if known is not None and not known.guests and run not in hall.crew.drives:
        del hall.runs[run]


class visiting:
    """Do something with a run; what is remembered of it here is forgotten when the last visitor has left."""

    __slots__ = ("_hall", "_known", "_run")
    _known: OpenRun

    def __init__(self, hall: Hall, run: RunId) -> None:
        self._hall, self._run = hall, run

    def __enter__(self) -> None:
        self._known = self._hall.remember(self._run)
        self._known.guests += 1

    def __exit__(self, *error: object) -> None:
        self._known.guests -= 1
        leave(self._hall, self._run)


async def begin(hall: Hall, record: Record, machine: Machine, data: object) -> Head:
    """Begin a run: decide its first step and keep it."""
    run = Run(record, machine)
    return await begin_with(hall, run, await _decide_first(hall, run, hall.clean(data)))


async def begin_with(hall: Hall, run: Run, decision: Decision) -> Head:
    """Begin a run with a decision."""
    record, decision = run.record, cleaned(run, decision, hall.clean)
    if record.parent and (why := await hall.store.behind(record.run)):
        raise Broken(f"run {record.parent} cannot start {record.run} again: {why}; {looked(record.run)}")
    hall.store.crowd += 1
    try:
        await hall.crew.wait_for_turn()
        lease = None if decision.head.rests() else hall.held(1)
        await hall.store.begin(record, decision.head, decision.entry, lease)
    finally:
        hall.store.crowd -= 1
    known = hall.remember(record.run)
    known.run, known.lease = run, lease or Lease("", 1, 0.0)
    _keep(hall, known, (decision,))
    return decision.head


async def _decide_first(hall: Hall, run: Run, data: object) -> Decision:
    """The decision that begins a run, with what scripts say to it."""
    incoming = Incoming(Started(data), "start", run.record.began)
    while isinstance(decision := first(run, data, incoming.answers), Ask):
        incoming = await _evaluate(hall, run.record.run, decision, incoming)
    return decision


async def _decide(
    hall: Hall, known: OpenRun, head: Head, incoming: Incoming, earlier: Sequence[Decision] = ()
) -> Decision:
    """The decision on an event, with what scripts say to it; `earlier` ones are made and not kept yet."""
    while isinstance(decision := _decide_or_ask(hall, known.run, head, incoming), Ask):
        incoming = await _evaluate(hall, known.run.record.run, decision, incoming, earlier)
    return decision


async def _nothing_said(thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
    """The messages of a run that has not begun."""
    return []


async def _said(
    hall: Hall, run: RunId, earlier: Sequence[Decision], thread: str, /, excerpt: Excerpt = WHOLE
) -> list[Any]:
    """The messages of a thread of a run, with those of decisions that are not kept yet."""
    appends = (append for decision in earlier for append in decision.entry.appends)
    return await _messages(hall, run, thread, excerpt, [encode(new.message) for new in appends if new.thread == thread])


async def _evaluate(hall: Hall, run: RunId, ask: Ask, incoming: Incoming, earlier: Sequence[Decision] = ()) -> Incoming:
    """An event with one more answer of a script."""
    said = partial(_said, hall, run, earlier) if hall.has_open(run) else _nothing_said
    around = ScriptContext(run, incoming.cause, incoming.at, said)
    answer = hall.clean(await hall.bindings_of(run).evaluate(ask, around))
    return replace(incoming, answers=(*incoming.answers, answer))


async def reopen(
    hall: Hall, run: RunId, machine: Machine, stored: Stored | None = None, insisted: Insistence | None = None
) -> Head:
    """Open a run of the store, under its definition or one that adopts it; who has just loaded it passes it on."""
    head = await _reopen(hall, run, machine, stored or await _load(hall, run), insisted)
    _tell_drive(hall, run, head)
    return head


async def _load(hall: Hall, run: RunId) -> Stored:
    """A run as it is stored; it is set aside if the store has lost what it took from this hall before."""
    known = hall.runs.get(run)
    committed = known.head.seq if known is not None and known.is_open else 0
    stored = await hall.store.load(run)
    if stored.seq < committed:
        reason = f"its journal ends at entry {stored.seq}, and entry {committed} was committed here"
        await hall.store.set_aside(run, reason)
        raise Broken(f"run {run} is set aside: {reason}; {looked(run)}")
    return stored


async def _reopen(hall: Hall, run: RunId, machine: Machine, stored: Stored, insisted: Insistence | None) -> Head:
    known = hall.remember(run)
    if not known.is_open:
        await require_anchored(hall.store, stored)
    elif known.head.seq > stored.seq:  # the answer is older than what was committed here meanwhile
        return known.head
    known.run, known.adoption = Run(stored.record, machine), None
    if stored.head and not machine.is_defined_as(stored.definition()):
        return await _adopted(hall, known, stored, insisted)
    known.head = head = await _head(hall, known, stored)
    if not machine.is_defined_as(head.definition or stored.record.digest):  # it was made anew, by another definition
        return await _reopen(hall, run, machine, await hall.store.load(run), None)
    return known.stand(head, stored.lease if is_free(hall, stored.lease) else None)


def _tell_drive(hall: Hall, run: RunId, head: Head) -> None:
    """Let whoever drives the run here look again, where somebody else here moved it or saw that it was moved."""
    drive = hall.crew.drives.get(run)
    if drive is not None and drive.task is not asyncio.current_task():
        drive.notice(head)


async def require_anchored(store: Store, stored: Stored, *, is_to_go_on: bool = False) -> None:
    """Set a run aside that is behind its anchors: what it has done since might be done again.

    Of one that is over nothing is done any more, unless it is to go on all the same.
    """
    run, status = stored.record.run, stored.status
    is_open = status == "live" or status.startswith(SET_ASIDE)
    if (is_open or is_to_go_on) and (why := await store.behind(run)):
        if status == "live":
            await store.set_aside(run, why)
        raise Broken(f"run {run} is behind its anchors: {why}; {looked(run)}")


def looked(run: RunId) -> str:
    """What a person has to do before a run goes on that is behind its anchors."""
    return f"nothing of it is performed before you look: `moot audit {run}`, and if it is to be so, `--accept` it there"


async def _head(hall: Hall, known: OpenRun, stored: Stored) -> Head:
    """The head of a run; where the stored one is damaged, it is made anew from the journal and put back."""
    run, reader = stored.record.run, known.reader()
    if stored.head:
        try:
            return reader.head(stored.head)
        except Broken:
            entries = await hall.store.entries(run)
            if not entries:
                raise
    else:
        entries = await hall.store.entries(run)
    whole = await with_origin(hall.store, known.run)
    if stored.head or not known.machine.is_defined_as(definition_after(entries, stored.record.digest)):
        head = compared(whole, reader, entries, hall.clean)
        if isinstance(head, Difference):
            raise refusal(whole, head)
    else:
        head = rebuilt(whole, reader, entries, hall.clean)
    await hall.store.repair(run, head)
    return head


async def with_origin(store: Store, run: Run) -> Run:
    """A run together with those that it was forked from, all under its machine."""
    if not run.record.origin:
        return run
    origin = Run((await store.load(run.record.origin)).record, run.machine)
    return Run(run.record, run.machine, await with_origin(store, origin))


async def _adopted(hall: Hall, known: OpenRun, stored: Stored, insisted: Insistence | None) -> Head:
    """Let the definition of today adopt a run, if it may; nothing is performed for that.

    In other words it may be read while somebody drives it in those of before; whoever takes its next step adopts it.
    """
    run, is_ours = stored.record.run, is_free(hall, stored.lease)
    if known.machine.name != stored.record.machine:
        raise DefinitionError(f"run {run} is of the machine {stored.record.machine!r}, not of {known.machine.name!r}")
    adoption = adopt_wording(known.run, known.reader(), stored)
    if adoption is None:
        is_ours = await is_forsaken(hall, run, stored.lease)
        if not is_ours:
            raise DefinitionError(
                f"run {run} is being driven under another definition of {known.machine.name!r}; "
                f"stop whoever drives it first"
            )
        adoption = await _adoption_by_replay(hall, known, stored, insisted)
    known.stand(adoption.head, stored.lease if is_ours else None)
    if adoption.head.snapshot.status == "live":
        known.adoption = adoption.event
        if is_ours:
            await _committed(hall, known, (_decide_adoption(hall, known, adoption.event),))
    return known.head


def _decide_adoption(hall: Hall, known: OpenRun, adopted: Adopted) -> Decision:
    """The note that goes before the next step of a run which is open under another definition than its head's."""
    incoming = Incoming(hall.clean(adopted), f"adopted-{known.head.seq + 1}", hall.clock.now())
    return note(known.run, known.head, incoming)


async def _adoption_by_replay(hall: Hall, known: OpenRun, stored: Stored, insisted: Insistence | None) -> Adoption:
    """The adoption of a run by a definition that would have taken the same steps, or on which somebody insists."""
    run, reader = known.run, known.reader()
    entries = await hall.store.entries(run.record.run)
    adoption = adopt_steps(await with_origin(hall.store, run), reader, stored, entries, hall.clean)
    if not isinstance(adoption, Difference):
        return adoption
    if insisted is not None:
        return adopt_anyway(run, reader, stored, adoption, insisted)
    if stored.head and stored.head["snapshot"]["status"] != "live":  # it decides nothing any more
        return Adoption(reader.head(stored.head), Adopted(run.machine.digest, stored.definition()))
    raise refusal(run, adoption)


async def let_go(hall: Hall, run: RunId) -> None:
    """Give back the lease of a run, where this hall has it."""
    known = hall.runs.get(run)
    if known is not None and (lease := known.lease) is not None and lease.owner == hall.owner:
        await hall.store.release(run, lease)
        known.lease = Lease("", lease.token, 0.0)


async def let_go_unless_driven(hall: Hall, run: RunId) -> None:
    """Give back a lease that a commit took along, where nobody here drives the run."""
    if run not in hall.crew.drives:
        await let_go(hall, run)


def is_free(hall: Hall, lease: Lease) -> bool:
    """Whether this hall may take a lease at once: nobody holds it, we do, or its holder is gone."""
    return lease.owner in ("", hall.owner) or is_gone(lease.owner)


async def is_forsaken(hall: Hall, run: RunId, lease: Lease) -> bool:
    """Whether this hall may take a lease that it has seen, after some looks at it where time alone speaks for that.

    The clock may have jumped, here or there: a holder that is at work notices that and renews its lease, so one that
    seems overdue is looked at until it would have. A lease that is to last longer than leases last was taken under a
    clock that went wrong.
    """
    if is_free(hall, lease):
        return True
    looks, is_told = NEAR_LOOKS if is_near(lease.owner) else FAR_LOOKS, False
    pause = hall.crew.interval
    for _ in range(looks):
        if 0 <= lease.until - hall.clock.now() <= 2 * LEASE:
            return False
        if not is_told:
            hall.notice(
                f"run {run} is held by {lease.owner}, whose time is over; "
                f"unless that process is heard of, the run is taken from it in {looks * pause:g} s"
            )
            is_told = True
        await _pause(hall.clock, pause)
        latest = (await hall.store.load(run)).lease
        if latest != lease:
            return is_free(hall, latest)
    return True


async def _pause(clock: Clock, seconds: float) -> None:
    """Wait by a clock, but no longer than that by the loop's: the clock may be set back meanwhile."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await clock.wait_until(clock.now() + seconds)


async def advance(
    hall: Hall, run: RunId, *ends: tuple[Event, str], check: Callable[[Head], None] | None = None
) -> Advanced:
    """Move a run by events, each with its cause: read, decide, commit. Nothing else happens here.

    Those that came at once are decided one after the other, and kept in one transaction; one that writes records is the
    last of its transaction. Where a record was written by others meanwhile, that is what has happened instead. `check`
    may refuse, each time that the run was read. What is returned is said of the last event.
    """
    known = hall.runs[run]
    while True:
        head, looked_at, earlier = known.head, 0, -1
        decisions: list[Decision] = []
        if check is not None:
            check(head)
        now = hall.clock.now()
        for event, cause in ends:
            looked_at += 1
            if in_flight(head, cause) is None and (seq := await hall.store.find(run, cause)) is not None:
                earlier = seq
                continue
            if known.adoption is not None and not decisions:
                decisions.append(_decide_adoption(hall, known, known.adoption))
                head = decisions[-1].head
            decision = await _decide(hall, known, head, make_incoming(event, cause, now, ()), decisions)
            decisions.append(decision)
            head = decision.head
            if decision.records:
                break
        if not decisions:
            if earlier > head.seq:  # others moved the run, and this hall has not noticed yet
                head = await reopen(hall, run, known.machine)
            return Advanced(earlier, head.pending, "duplicate")
        try:
            is_kept = await _committed(hall, known, decisions)
        except Outdated as outdated:
            ends = (*ends[: looked_at - 1], (_conflicted(outdated), cause), *ends[looked_at:])
            continue
        if is_kept and looked_at == len(ends):
            return Advanced(head.seq, head.pending, "ignored" if decision.entry.ignored else "taken")
        if is_kept:
            ends = ends[looked_at:]


def _conflicted(outdated: Outdated) -> Conflicted:
    record = outdated.record
    return Conflicted(str(outdated), collection=record.collection, key=record.key, version=outdated.version)


async def decide_again(hall: Hall, run: RunId, decision: Decision, ends: Sequence[tuple[Event, str]]) -> list[Decision]:
    """A decision, and those on events that are known already and are decided behind it; nothing is kept yet."""
    known, decisions, now = hall.runs[run], [decision], hall.clock.now()
    for number, (event, cause) in enumerate(ends):
        head = decisions[-1].head
        if number == 0 or counts_again(head, event, cause):
            incoming = Incoming(without_bill(known.run, head, event, cause), cause, now)
            decisions.append(await _decide(hall, known, head, incoming, decisions))
    return decisions


def counts_again(head: Head, event: Event, cause: str) -> bool:
    """Whether an event that is known already still says something.

    That there was nothing left for an effect does not, where the budget covers it now.
    """
    pending = in_flight(head, cause)
    return pending is not None and (bool(pending.denied) or not isinstance(event, Exhausted))


async def keep_all(hall: Hall, run: RunId, decisions: Sequence[Decision]) -> bool:
    """Keep decisions in one transaction; False where another writer came first."""
    return await _committed(hall, hall.runs[run], decisions)


def _decide_or_ask(hall: Hall, run: Run, head: Head, incoming: Incoming) -> Decision | Ask:
    """The decision on one event, without the secrets in it and in what it wants, or what a script has to say first."""
    clean, came = hall.clean, incoming.event
    try:
        event = clean(came)
    except Refused as refusal:
        event = clean(GaveUp(str(refusal), usage=getattr(came, "usage", {}), model=str(getattr(came, "model", ""))))
    if event is not came:
        incoming = Incoming(event, incoming.cause, incoming.at, incoming.answers)
    try:
        decision = decide(run, head, incoming)
        return decision if isinstance(decision, Ask) else cleaned(run, decision, clean)
    except (DefinitionError, RecursionError) as error:
        raise _not_storable(error) from error


def _not_storable(error: Exception) -> NotStorable:
    is_endless = isinstance(error, RecursionError)
    return NotStorable(
        "a value of the run holds itself, or is nested too deeply to be stored" if is_endless else str(error)
    )


async def _committed(hall: Hall, known: OpenRun, decisions: Sequence[Decision]) -> bool:
    """Keep what was decided; False where another writer came first, and the run was read again."""
    run, lease, last = known.run.record.run, known.lease, decisions[-1]
    head = last.head
    after = None if lease is None or head.rests() else _kept(hall, lease)
    earlier = () if len(decisions) == 1 else [decision.entry for decision in decisions[:-1]]
    try:
        await hall.store.commit(run, head, last.entry, lease, after, earlier, last.records)
    except Outdated:
        raise
    except Conflict:
        await reopen(hall, run, known.machine)
        return False
    except (DefinitionError, RecursionError) as error:
        raise _not_storable(error) from error
    known.adoption = None
    drive = hall.crew.drives.get(run)
    if after is not lease and lease is not None:
        if known.lease is lease:
            known.lease = after or Lease("", lease.token, 0.0)
        if drive is not None and lease.owner != hall.owner:  # it was somebody else's meanwhile, or might have been
            drive.begun.clear()
    _keep(hall, known, decisions)
    _tell_drive(hall, run, head)
    return True


def _kept(hall: Hall, lease: Lease) -> Lease:
    """The lease after a commit by this hall: its own, renewed from time to time, or one that it takes with it.

    What is decided may have happened long before: scripts take their time.
    """
    if lease.owner != hall.owner:
        return hall.held(lease.token + 1)
    if HALF_A_LEASE < lease.until - hall.clock.now() <= LEASE and not lease.crashes:
        return lease
    return hall.held(lease.token)


async def answer(hall: Hall, run: RunId, value: Any, question: str | None = None, by: str = "") -> Advanced:
    """Answer a question of a run. Answering the same question twice is harmless."""
    known = hall.runs[run]
    head, machine = known.head, known.machine
    asked = _question(run, head, question)
    if asked is None:
        assert question is not None
        return Advanced(await _answered(hall, run, question), head.pending, "duplicate")
    if asked.doubt:
        return await _resolve(hall, run, asked, _read(hall, Resolution, value), by)
    assert isinstance(asked.effect, AskPerson)
    _require_person(run, asked, by)
    if asked.due is not None and asked.due <= hall.clock.now():
        await advance(hall, run, (Expired(), asked.key))
        await let_go_unless_driven(hall, run)
        raise Refused(f"run {run}: the time to answer question {asked.key} is over")
    shape, value = asked.effect.shape, _completed(asked.effect.schema, value)
    if shape in machine.shapes:
        _read(hall, machine.shapes[shape], value)
    fitted(partial(_require_fit, asked.effect.schema), value, hall.clean)
    advanced = await advance(hall, run, (shaped(machine, Answered(value, shape, by)), asked.key))
    if advanced.received == "duplicate":  # somebody was quicker, or the deadline was
        await _answered(hall, run, asked.key)
    return advanced


async def draft(hall: Hall, run: RunId, fields: Mapping[str, Any], question: str, by: str = "") -> None:
    """Keep what a person filled in of a form that is left for later; a question that is answered stays answered."""
    head = hall.runs[run].head
    asked = _question(run, head, question)
    if asked is None:
        return
    _require_person(run, asked, by)
    known = asked.effect.schema.get("properties", {}) if isinstance(asked.effect, AskPerson) else {}
    part = {"type": "object", "properties": known, "additionalProperties": False}
    fitted(partial(_require_fit, part), fields, hall.clean)
    await advance(hall, run, (Drafted(hall.clean(fields), by), f"{asked.key}-drafted-{head.seq}"))


def _require_person(run: RunId, asked: Pending, by: str) -> None:
    who = getattr(asked.effect, "who", "")
    if who not in ("", by):
        raise Refused(f"run {run}: question {asked.key} is for {who}, not for {by or 'anybody else'}")


def _completed(schema: Any, value: Any) -> Any:
    """An answer with what was filled in before, where the answer leaves a field out that is needed."""
    if not isinstance(schema, Mapping) or not isinstance(value, Mapping):
        return value
    fields = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    return {**value, **{name: fields[name]["earlier"] for name in missing if "earlier" in fields.get(name, {})}}


def _require_fit(schema: Any, value: Any) -> None:
    """Refuse an answer that does not fit the schema of its question, and name every field."""
    if found := misfits(schema, value):
        raise Refused(f"the answer: {'; '.join(map(str, found))}")


def _read(hall: Hall, shape: Any, value: Any) -> Any:
    """An answer in its shape, or a refusal of one that does not fit, or would not without its secrets."""
    return hall.clean(fitted(lambda given: decode(shape, given, "the answer"), value, hall.clean))


async def _resolve(hall: Hall, run: RunId, doubted: Pending, resolution: Resolution, by: str) -> Advanced:
    """Go on with what a person found out about an effect whose outcome was unknown."""
    key, known = doubted.key, hall.runs[run]

    def still_doubted(head: Head) -> None:
        pending = in_flight(head, key)
        if pending is not None and not pending.doubt:
            raise Refused(f"run {run}: what became of {key} is not in doubt any more; it is being done again")

    end: tuple[Event, str]
    match resolution.outcome:
        case "done":
            end = _reported(known, doubted.effect, resolution.value), key
        case "failed":
            end = GaveUp(resolution.reason or "a person says that it failed"), key
        case "again":
            end = Repeated(by), mark_cause(known.run, doubted, "repeated")
    return await advance(hall, run, end, check=still_doubted)


def _reported(known: OpenRun, effect: Effect, value: Any) -> Event:
    """The event in which an effect ends that was done, as a person reports it; a value that does not fit is refused."""
    try:
        if isinstance(effect, StartChild):
            event = known.bindings.child(effect.machine).settled(effect, value)
        else:
            event = effect.settled(value)
        return known.reader().event(encode_event(event))
    except (Refused, TypeError) as misfit:
        given = "missing" if value is None else f"not what {effect.kind} ends in"
        raise Refused(f"the answer: value is {given}: {misfit}") from misfit


async def tell(hall: Hall, run: RunId, event: Event, cause: str) -> Advanced:
    """Tell a run an event from outside, if it accepts it now."""
    known = hall.runs[run]
    machine, snapshot = known.machine, known.head.snapshot
    event = read_back(type(event), event)
    if not accepts(machine, snapshot, event) and await hall.store.find(run, cause) is None:
        where = " and ".join(snapshot.active)
        accepted = ", ".join(possible(machine, snapshot)) or f"nothing: it is {snapshot.status}"
        raise Refused(f"{where} does not accept {event.name}; it accepts {accepted}")
    return await advance(hall, run, (event, cause))


async def cancel(
    hall: Hall, run: RunId, reason: str, cause: str, check: Callable[[Head], None] | None = None
) -> Advanced:
    """Ask a run to stop. A machine with a row for it may do so in its own way."""
    return await advance(hall, run, (Cancelled(reason), cause), check=check)


async def messages(hall: Hall, run: RunId, thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
    """The messages of a thread of a run, the oldest first: all of them, or an excerpt."""
    return await _messages(hall, run, thread, excerpt)


async def _messages(hall: Hall, run: RunId, thread: str, excerpt: Excerpt, fresh: Sequence[Any] = ()) -> list[Any]:
    """The messages of a thread, of which the fresh ones are not kept yet. The head says how far it has grown."""
    tail = hall.runs[run].head.snapshot.threads.get(thread)
    kept = tail.count if tail is not None else 0
    first = excerpt.first(kept + len(fresh))
    said = await hall.store.thread(run, thread, first, kept) if first < kept else []
    said += fresh[max(0, first - kept) :]
    return [excerpt.summary, *said] if first and excerpt.summary is not None else said


def questions(head: Head) -> tuple[Pending, ...]:
    """The questions that wait for a person: those of the machine, and what became of effects in doubt."""
    return tuple([pending for pending in head.pending if pending.doubt or isinstance(pending.effect, AskPerson)])


def _question(run: RunId, head: Head, question: str | None) -> Pending | None:
    open_ = questions(head)
    if question is not None:
        return next((pending for pending in open_ if pending.key == question), None)
    if len(open_) == 1:
        return open_[0]
    if not open_ and head.snapshot.status != "live":
        raise Refused(f"run {run} is {head.snapshot.status}; it accepts no answer")
    raise Refused(f"run {run}: {_open_questions(head)}" + ("; name the one that is answered" if open_ else ""))


async def _answered(hall: Hall, run: RunId, question: str) -> int:
    """The entry with the answer to a question that is no longer open, or a refusal."""
    entries = await hall.store.entries(run)
    ends = {entry["cause"]: entry for entry in entries}
    name = ends[question]["event"]["name"] if question in ends else ""
    marks = (entry for entry in entries if entry["cause"].startswith(f"{question}-"))
    if name and any(entry["event"]["name"] == Doubted.name for entry in marks):
        return int(ends[question]["seq"])
    if name == Expired.name:
        raise Refused(f"run {run}: the time to answer question {question} is over")
    if name != Answered.name:
        raise Refused(f"run {run} has no question {question!r}; {_open_questions(hall.runs[run].head)}")
    return int(ends[question]["seq"])


def _open_questions(head: Head) -> str:
    open_ = questions(head)
    if not open_:
        return "no question is open"
    return "open questions are " + ", ".join(f"{pending.key} ({_prompt(pending)})" for pending in open_)


def _prompt(question: Pending) -> str:
    return question.effect.prompt if isinstance(question.effect, AskPerson) else question.doubt


def _keep(hall: Hall, known: OpenRun, decisions: Sequence[Decision]) -> None:
    before, head = getattr(known, "head", None), decisions[-1].head
    if before is None or before.seq < head.seq:  # else the word came late, and others went on
        known.head = head
    if hall.observers:
        for decision in decisions:
            _show(hall, known.run.record.run, decision)


def _show(hall: Hall, run: RunId, decision: Decision) -> None:
    for observer in tuple(hall.observers):
        try:
            observer(run, decision.entry, decision.head)
        except (Exception, asyncio.CancelledError):  # an observer may do anything; the run goes on without it
            hall.observers.remove(observer)
