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
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from moothall.errors import Broken, Conflict, DefinitionError, Refused
from moothall.kernel.codec import decode, encode, read_back
from moothall.kernel.effects import AskPerson, Effect, StartChild
from moothall.kernel.events import Answered, Cancelled, Conflicted, Doubted, Event, Expired, GaveUp, Repeated, Started
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
    Happening,
    Run,
    Unanswered,
    decide,
    first,
    in_flight,
    in_force,
    make_happening,
    mark_cause,
    without_bill,
)
from moothall.runtime.journal import Entry, Head, Pending, Reader, Record, RunId, encode_event, shaped
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
    Outdated,
    Performer,
    Scene,
    Store,
    Stored,
    as_it_is,
    nobody_listens,
)
from moothall.runtime.rebuild import Difference, compared, definition_after, rebuilt

Observer = Callable[[RunId, Entry, Head], None]
WHOLE_MACHINE = 0xEFFFFFFC
"""The number of the first namespace of processes, which Linux never gives to a container."""
HALF_A_LEASE = LEASE / 2
"""A lease that lasts longer still is not renewed by a commit."""
LOOK = 0.5
NEAR_LOOKS, FAR_LOOKS = 6, 24
"""How often to look at a lease that seems overdue: a near holder sees the same clock and renews its lease within a
pulse; a far one may have another, and renews it when a third of a lease has passed."""


class Unkept(DefinitionError):
    """What a step makes of the run's data is no JSON, or too large: it cannot be kept, and the run is where it was."""


class Part(Frozen):
    """A machine that may be started as a child: where it is found again, how its input is read, who performs it.

    `ended` makes of what it gives the event that its parent hears.
    """

    machine: Machine
    source: str
    endless: bool
    read: Callable[[Any], Any]
    cast: Cast
    ended: Callable[[StartChild, Any], Event] = StartChild.settled


def _nobody(name: str) -> Part:
    raise DefinitionError(f"nothing here knows the machine {name!r}")


async def _no_engine(ask: Ask, scene: Scene) -> Answer:
    raise Broken("this machine needs a script engine, and none is connected")


class Cast(Frozen):
    """Who performs the effects of a run, by kind; the effects that nobody performs; the children that it may start.

    `evaluate` answers what scripts are asked. `beside` says that such a run may be told things that begin effects while
    others are under way: each is performed in a task of its own then.
    """

    performers: Mapping[str, Performer]
    effects: Mapping[str, type[Effect]] = field(default_factory=dict)
    child: Callable[[str], Part] = _nobody
    evaluate: Evaluate = _no_engine
    beside: bool = False


class Finding(Frozen):
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


def name_of_this_process() -> str:
    """Who holds runs here: the host, the process, a word of its own, and behind it where processes are counted."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}{_counted_in()}"


def _counted_in() -> str:
    """Where the numbers of processes mean what they mean here: "" for the whole machine, `@NUMBER` in a container."""
    try:
        number = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return ""
    return "" if number == WHOLE_MACHINE else f"@{number}"


@dataclass
class Hall:
    """A store, a clock and performers, and the runs that are open here."""

    store: Store
    clock: Clock
    performers: Mapping[str, Performer]
    observers: list[Observer] = field(default_factory=list)
    runs: dict[RunId, Run] = field(default_factory=dict)
    heads: dict[RunId, Head] = field(default_factory=dict)
    leases: dict[RunId, Lease] = field(default_factory=dict)
    owner: str = field(default_factory=name_of_this_process)
    crew: Crew = field(default_factory=Crew)
    casts: dict[RunId, Cast] = field(default_factory=dict)
    """The casts of runs that bring their own."""
    guests: dict[RunId, int] = field(default_factory=dict)
    """How many are about to do something with a run."""
    opener: Callable[[RunId], Awaitable[object]] | None = None
    """Opens a run of the store that is not open here."""
    clean: Clean = as_it_is
    """Replaces the secrets in all that enters a run."""
    ear: Ear = nobody_listens
    """Knows who wants to hear what is said in a run as it is said."""

    def cast(self, run: RunId) -> Cast:
        """Who performs the effects of a run."""
        return self.casts[run] if run in self.casts else Cast(self.performers)

    def effects(self, run: RunId) -> dict[str, type[Effect]]:
        """The effects that a run can want, by kind."""
        cast = self.cast(run)
        return {kind: performer.effect for kind, performer in cast.performers.items()} | dict(cast.effects)

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
    if run in hall.crew.drives or run in hall.guests:
        return
    hall.runs.pop(run, None)
    hall.heads.pop(run, None)
    hall.leases.pop(run, None)
    hall.casts.pop(run, None)


class visiting:
    """Do something with a run; what is remembered of it here is forgotten when the last visitor has left."""

    __slots__ = ("_hall", "_run")

    def __init__(self, hall: Hall, run: RunId) -> None:
        self._hall, self._run = hall, run

    def __enter__(self) -> None:
        self._hall.guests[self._run] = self._hall.guests.get(self._run, 0) + 1

    def __exit__(self, *error: object) -> None:
        guests, run = self._hall.guests, self._run
        guests[run] -= 1
        if not guests[run]:
            del guests[run]
            leave(self._hall, run)


async def begin(hall: Hall, record: Record, machine: Machine, data: object) -> Head:
    """Begin a run: decide its first step and keep it."""
    run = Run(record, machine)
    return await begin_with(hall, run, await _first(hall, run, hall.clean(data)))


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
    hall.runs[record.run], hall.leases[record.run] = run, lease or Lease("", 1, 0.0)
    _keep(hall, record.run, (decision,))
    return decision.head


async def _first(hall: Hall, run: Run, data: object) -> Decision:
    """The decision that begins a run, with what scripts say to it."""
    happening = Happening(Started(data), "start", run.record.began)
    while True:
        try:
            return first(run, data, happening.answers)
        except Unanswered as unanswered:
            happening = await _answered_by_script(hall, run.record.run, unanswered.ask, happening)


async def _decided_with_scripts(
    hall: Hall, run: RunId, head: Head, happening: Happening, earlier: Sequence[Decision] = ()
) -> Decision:
    """The decision on an event, with what scripts say to it; `earlier` ones are made and not kept yet."""
    while True:
        try:
            return _decided(hall, run, head, happening)
        except Unanswered as unanswered:
            happening = await _answered_by_script(hall, run, unanswered.ask, happening, earlier)


async def _nothing_said(thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
    """The messages of a run that has not begun."""
    return []


async def _said(
    hall: Hall, run: RunId, earlier: Sequence[Decision], thread: str, /, excerpt: Excerpt = WHOLE
) -> list[Any]:
    """The messages of a thread of a run, with those of decisions that are not kept yet."""
    appends = (append for decision in earlier for append in decision.entry.appends)
    return await _messages(hall, run, thread, excerpt, [encode(new.message) for new in appends if new.thread == thread])


async def _answered_by_script(
    hall: Hall, run: RunId, ask: Ask, happening: Happening, earlier: Sequence[Decision] = ()
) -> Happening:
    said = partial(_said, hall, run, earlier) if run in hall.runs else _nothing_said
    scene = Scene(run, happening.cause, happening.at, said)
    answer = hall.clean(await hall.cast(run).evaluate(ask, scene))
    return replace(happening, answers=(*happening.answers, answer))


async def reopen(
    hall: Hall, run: RunId, machine: Machine, stored: Stored | None = None, insisted: Insistence | None = None
) -> Head:
    """Open a run of the store, under its definition or one that adopts it; who has just loaded it passes it on."""
    stored = stored or await hall.store.load(run)
    known = hall.heads.get(run)
    if known is not None and known.seq > stored.seq:  # the answer is older than what was committed here meanwhile
        return known
    if known is None:
        await require_anchored(hall.store, stored)
    hall.runs[run] = Run(stored.record, machine)
    if stored.head and not machine.is_defined_as(stored.definition()):
        return await _adopted(hall, run, stored, insisted)
    hall.heads[run] = head = await _head(hall, run, stored)
    if not machine.is_defined_as(head.definition or stored.record.digest):  # it was made anew, by another definition
        return await reopen(hall, run, machine)
    hall.runs[run] = in_force(hall.runs[run], head)
    hall.leases.pop(run, None)
    if is_free(hall, stored.lease):
        hall.leases[run] = stored.lease
    return head


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


async def _head(hall: Hall, run: RunId, stored: Stored) -> Head:
    """The head of a run; where the stored one is damaged, it is made anew from the journal and put back."""
    reader = Reader(hall.runs[run].machine, hall.effects(run))
    if stored.head:
        try:
            return reader.head(stored.head)
        except Broken:
            entries = await hall.store.entries(run)
            if not entries:
                raise
    else:
        entries = await hall.store.entries(run)
    known = await with_origin(hall.store, hall.runs[run])
    if stored.head or not known.machine.is_defined_as(definition_after(entries, stored.record.digest)):
        head = compared(known, reader, entries, hall.clean)
        if isinstance(head, Difference):
            raise refusal(known, head)
    else:
        head = rebuilt(known, reader, entries, hall.clean)
    await hall.store.repair(run, head)
    return head


async def with_origin(store: Store, run: Run) -> Run:
    """A run together with those that it was forked from, all under its machine."""
    if not run.record.origin:
        return run
    origin = Run((await store.load(run.record.origin)).record, run.machine)
    return Run(run.record, run.machine, await with_origin(store, origin))


async def _adopted(hall: Hall, run: RunId, stored: Stored, insisted: Insistence | None) -> Head:
    """Let the definition of today adopt a run, if it may; nothing is performed for that.

    In other words it may be read while somebody drives it in those of before; who comes next adopts it.
    """
    known, is_ours = hall.runs[run], is_free(hall, stored.lease)
    if known.machine.name != stored.record.machine:
        raise DefinitionError(f"run {run} is of the machine {stored.record.machine!r}, not of {known.machine.name!r}")
    adoption = adopt_wording(known, Reader(known.machine, hall.effects(run)), stored)
    if adoption is None:
        is_ours = await is_forsaken(hall, run, stored.lease)
        if not is_ours:
            raise DefinitionError(
                f"run {run} is being driven under another definition of {known.machine.name!r}; "
                f"stop whoever drives it first"
            )
        adoption = await _adoption_by_replay(hall, run, stored, insisted)
    hall.heads[run] = adoption.head
    hall.runs[run] = in_force(known, adoption.head)
    hall.leases.pop(run, None)
    if is_ours:
        hall.leases[run] = stored.lease
    if is_ours and adoption.head.snapshot.status == "live":
        happening = Happening(hall.clean(adoption.event), f"adopted-{adoption.head.seq + 1}", hall.clock.now())
        await _committed(hall, run, (decide(hall.runs[run], adoption.head, happening),))
    return hall.heads[run]


async def _adoption_by_replay(hall: Hall, run: RunId, stored: Stored, insisted: Insistence | None) -> Adoption:
    """The adoption of a run by a definition that would have taken the same steps, or on which somebody insists."""
    known, reader = hall.runs[run], Reader(hall.runs[run].machine, hall.effects(run))
    entries = await hall.store.entries(run)
    adoption = adopt_steps(await with_origin(hall.store, known), reader, stored, entries, hall.clean)
    if not isinstance(adoption, Difference):
        return adoption
    if insisted is None:
        raise refusal(known, adoption)
    return adopt_anyway(known, reader, stored, adoption, insisted)


async def let_go(hall: Hall, run: RunId) -> None:
    """Give back the lease of a run, where this hall has it."""
    lease = hall.leases.get(run)
    if lease is not None and lease.owner == hall.owner:
        await hall.store.release(run, lease)
        hall.leases[run] = Lease("", lease.token, 0.0)


async def let_go_unless_driven(hall: Hall, run: RunId) -> None:
    """Give back a lease that a commit took along, where nobody here drives the run."""
    if run not in hall.crew.drives:
        await let_go(hall, run)


def is_free(hall: Hall, lease: Lease) -> bool:
    """Whether this hall may take a lease at once: nobody holds it, we do, or its holder is gone."""
    return lease.owner in ("", hall.owner) or is_gone(lease.owner)


async def is_forsaken(hall: Hall, run: RunId, lease: Lease, pause: float = LOOK) -> bool:
    """Whether this hall may take a lease that it has seen, after some looks at it where time alone speaks for that.

    The clock may have jumped, here or there: a holder that is at work notices that and renews its lease, so one that
    seems overdue is looked at until it would have. A lease that is to last longer than leases last was taken under a
    clock that went wrong.
    """
    if is_free(hall, lease):
        return True
    for _ in range(NEAR_LOOKS if _is_near(lease.owner) else FAR_LOOKS):
        if 0 <= lease.until - hall.clock.now() <= 2 * LEASE:
            return False
        await asyncio.sleep(pause)
        latest = (await hall.store.load(run)).lease
        if latest != lease:
            return is_free(hall, latest)
    return True


def is_gone(owner: str) -> bool:
    """Whether a holder is a process of this machine that no longer exists; of others only time can tell."""
    process = owner.split(":")[1:2]
    if not _is_near(owner) or not process[0].isdigit():
        return False
    try:
        os.kill(int(process[0]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    except OverflowError:  # no process has such a number
        return True
    return False


def _is_near(owner: str) -> bool:
    """Whether a holder is a process of this machine, or of this container."""
    host, _, rest = owner.partition(":")
    word = rest.partition(":")[2]
    return bool(rest) and host == socket.gethostname() and "".join(word.partition("@")[1:]) == _counted_in()


async def advance(
    hall: Hall, run: RunId, event: Event, cause: str, check: Callable[[Head], None] | None = None
) -> Advanced:
    """Move a run by one event: read, decide, commit. Nothing else happens here.

    `check` may refuse it, each time that the run was read.
    """
    while True:
        head = hall.heads[run]
        if check is not None:
            check(head)
        if in_flight(head, cause) is None and (earlier := await hall.store.find(run, cause)) is not None:
            if earlier > head.seq:  # others moved the run, and this hall has not noticed yet
                head = await reopen(hall, run, hall.runs[run].machine)
            return Advanced(earlier, head.pending, "duplicate")
        happening = Happening(event, cause, hall.clock.now())
        decision = await _decided_with_scripts(hall, run, head, happening)
        if await _committed(hall, run, (decision,)):
            received: Received = "ignored" if decision.entry.ignored else "taken"
            return Advanced(decision.head.seq, decision.head.pending, received)


async def advance_all(hall: Hall, run: RunId, ends: Sequence[tuple[Event, str]]) -> None:
    """Move a run by several events that came at once: decided one after the other, in one transaction.

    One that writes records is the last of its transaction. Where a record was written by others meanwhile, that is
    what has happened instead.
    """
    while True:
        head, now = hall.heads[run], hall.clock.now()
        decisions: list[Decision] = []
        looked_at = 0
        for event, cause in ends:
            looked_at += 1
            if in_flight(head, cause) is not None or await hall.store.find(run, cause) is None:
                happening = make_happening(event, cause, now, ())
                decision = await _decided_with_scripts(hall, run, head, happening, decisions)
                decisions.append(decision)
                head = decision.head
                if decision.records:
                    break
        if not decisions:
            return
        try:
            if await _committed(hall, run, decisions):
                ends = ends[looked_at:]
        except Outdated as outdated:
            ends = (*ends[: looked_at - 1], (_conflicted(outdated), cause), *ends[looked_at:])
        if not ends:
            return


def _conflicted(outdated: Outdated) -> Conflicted:
    record = outdated.record
    return Conflicted(str(outdated), collection=record.collection, key=record.key, version=outdated.version)


async def decide_again(hall: Hall, run: RunId, decision: Decision, ends: Sequence[tuple[Event, str]]) -> list[Decision]:
    """A decision, and those on events that are known already and are decided behind it; nothing is kept yet."""
    decisions, now = [decision], hall.clock.now()
    for number, (event, cause) in enumerate(ends):
        head = decisions[-1].head
        if number == 0 or in_flight(head, cause) is not None:
            happening = Happening(without_bill(hall.runs[run], head, event, cause), cause, now)
            decisions.append(await _decided_with_scripts(hall, run, head, happening, decisions))
    return decisions


async def keep_all(hall: Hall, run: RunId, decisions: Sequence[Decision]) -> bool:
    """Keep decisions in one transaction; False where another writer came first."""
    return await _committed(hall, run, decisions)


def _decided(hall: Hall, run: RunId, head: Head, happening: Happening) -> Decision:
    """The decision on one event, without the secrets in it and in what it wants."""
    clean, known, came = hall.clean, hall.runs[run], happening.event
    try:
        event = clean(came)
    except Refused as refusal:
        event = clean(GaveUp(str(refusal), usage=getattr(came, "usage", {})))
    if event is not came:
        happening = Happening(event, happening.cause, happening.at, happening.answers)
    try:
        return cleaned(known, decide(known, head, happening), clean)
    except (DefinitionError, RecursionError) as error:
        raise _unkept(error) from error


def _unkept(error: Exception) -> Unkept:
    is_endless = isinstance(error, RecursionError)
    return Unkept("a value of the run holds itself, or is nested too deeply to be stored" if is_endless else str(error))


async def _committed(hall: Hall, run: RunId, decisions: Sequence[Decision]) -> bool:
    """Keep what was decided; False where another writer came first, and the run was read again."""
    lease, last = hall.leases.get(run), decisions[-1]
    head, entry = last.head, last.entry
    after = None if lease is None or head.rests() else _kept(hall, lease)
    earlier = () if len(decisions) == 1 else [one.entry for one in decisions[:-1]]
    try:
        await hall.store.commit(run, head, entry, lease, after, earlier, last.records)
    except Outdated:
        raise
    except Conflict:
        await reopen(hall, run, hall.runs[run].machine)
        return False
    except (DefinitionError, RecursionError) as error:
        raise _unkept(error) from error
    doing = hall.crew.drives.get(run)
    if after is not lease and lease is not None:
        if hall.leases.get(run) is lease:
            hall.leases[run] = after or Lease("", lease.token, 0.0)
        if doing is not None and lease.owner != hall.owner:  # it was somebody else's meanwhile, or might have been
            doing.begun.clear()
    _keep(hall, run, decisions)
    if doing is not None and (doing.key or doing.flying) and doing.task is not asyncio.current_task():
        doing.notice(head)
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
    head, machine = hall.heads[run], hall.runs[run].machine
    asked = _question(run, head, question)
    if asked is None:
        assert question is not None
        return Advanced(await _answered(hall, run, question), head.pending, "duplicate")
    if asked.doubt:
        return await _resolve(hall, run, asked, _read(hall, Finding, value), by)
    assert isinstance(asked.effect, AskPerson)
    if asked.effect.who not in ("", by):
        raise Refused(f"run {run}: question {asked.key} is for {asked.effect.who}, not for {by or 'anybody else'}")
    if asked.due is not None and asked.due <= hall.clock.now():
        await advance(hall, run, Expired(), asked.key)
        await let_go_unless_driven(hall, run)
        raise Refused(f"run {run}: the time to answer question {asked.key} is over")
    shape = asked.effect.shape
    if shape in machine.shapes:
        _read(hall, machine.shapes[shape], value)
    fitted(partial(_require_fit, asked.effect.schema), value, hall.clean)
    advanced = await advance(hall, run, shaped(machine, Answered(value, shape, by)), asked.key)
    if advanced.received == "duplicate":  # somebody was quicker, or the deadline was
        await _answered(hall, run, asked.key)
    return advanced


def _require_fit(schema: Any, value: Any) -> None:
    """Refuse an answer that does not fit the schema of its question, and name every field."""
    if found := misfits(schema, value):
        raise Refused(f"the answer: {'; '.join(map(str, found))}")


def _read(hall: Hall, shape: Any, value: Any) -> Any:
    """An answer in its shape, or a refusal of one that does not fit, or would not without its secrets."""
    return hall.clean(fitted(lambda given: decode(shape, given, "the answer"), value, hall.clean))


async def _resolve(hall: Hall, run: RunId, doubted: Pending, finding: Finding, by: str) -> Advanced:
    """Go on with what a person found out about an effect whose outcome was unknown."""
    key, reader = doubted.key, Reader(hall.runs[run].machine, hall.effects(run))

    def still_doubted(head: Head) -> None:
        pending = in_flight(head, key)
        if pending is not None and not pending.doubt:
            raise Refused(f"run {run}: what became of {key} is not in doubt any more; it is being done again")

    match finding.outcome:
        case "done":
            event = reader.event(encode_event(doubted.effect.settled(finding.value)))
            return await advance(hall, run, event, key, still_doubted)
        case "failed":
            gave_up = GaveUp(finding.reason or "a person says that it failed")
            return await advance(hall, run, gave_up, key, still_doubted)
        case "again":
            return await advance(
                hall, run, Repeated(by), mark_cause(hall.runs[run], doubted, "repeated"), still_doubted
            )


async def tell(hall: Hall, run: RunId, event: Event, cause: str) -> Advanced:
    """Tell a run an event from outside, if it accepts it now."""
    machine, snapshot = hall.runs[run].machine, hall.heads[run].snapshot
    event = read_back(type(event), event)
    if not accepts(machine, snapshot, event) and await hall.store.find(run, cause) is None:
        where = " and ".join(snapshot.active)
        accepted = ", ".join(possible(machine, snapshot)) or f"nothing: it is {snapshot.status}"
        raise Refused(f"{where} does not accept {event.name}; it accepts {accepted}")
    return await advance(hall, run, event, cause)


async def cancel(
    hall: Hall, run: RunId, reason: str, cause: str, check: Callable[[Head], None] | None = None
) -> Advanced:
    """Ask a run to stop. A machine with a row for it may do so in its own way."""
    return await advance(hall, run, Cancelled(reason), cause, check)


async def messages(hall: Hall, run: RunId, thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
    """The messages of a thread of a run, the oldest first: all of them, or an excerpt."""
    return await _messages(hall, run, thread, excerpt)


async def _messages(hall: Hall, run: RunId, thread: str, excerpt: Excerpt, fresh: Sequence[Any] = ()) -> list[Any]:
    """The messages of a thread, of which the fresh ones are not kept yet. The head says how far it has grown."""
    tail = hall.heads[run].snapshot.threads.get(thread)
    kept = tail.count if tail is not None else 0
    first = excerpt.first(kept + len(fresh))
    said = await hall.store.thread(run, thread, first, kept) if first < kept else []
    said += fresh[max(0, first - kept) :]
    return [excerpt.summary, *said] if first and excerpt.summary is not None else said


def questions(head: Head) -> tuple[Pending, ...]:
    """The questions that wait for a person: those of the machine, and what became of effects in doubt."""
    return tuple([one for one in head.pending if one.doubt or isinstance(one.effect, AskPerson)])


def _question(run: RunId, head: Head, question: str | None) -> Pending | None:
    open_ = questions(head)
    if question is not None:
        return next((one for one in open_ if one.key == question), None)
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
    marks = (one for one in entries if one["cause"].startswith(f"{question}-"))
    if name and any(one["event"]["name"] == Doubted.name for one in marks):
        return int(ends[question]["seq"])
    if name == Expired.name:
        raise Refused(f"run {run}: the time to answer question {question} is over")
    if name != Answered.name:
        raise Refused(f"run {run} has no question {question!r}; {_open_questions(hall.heads[run])}")
    return int(ends[question]["seq"])


def _open_questions(head: Head) -> str:
    open_ = questions(head)
    if not open_:
        return "no question is open"
    return "open questions are " + ", ".join(f"{one.key} ({_prompt(one)})" for one in open_)


def _prompt(question: Pending) -> str:
    return question.effect.prompt if isinstance(question.effect, AskPerson) else question.doubt


def _keep(hall: Hall, run: RunId, decisions: Sequence[Decision]) -> None:
    heads, head = hall.heads, decisions[-1].head
    if run not in heads or heads[run].seq < head.seq:  # else the word came late, and others went on
        heads[run] = head
    if hall.observers:
        for decision in decisions:
            _show(hall, run, decision)


def _show(hall: Hall, run: RunId, decision: Decision) -> None:
    for observer in tuple(hall.observers):
        try:
            observer(run, decision.entry, decision.head)
        except (Exception, asyncio.CancelledError):  # an observer may do anything; the run goes on without it
            hall.observers.remove(observer)
