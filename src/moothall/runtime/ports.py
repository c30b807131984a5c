"""What the runtime needs from outside: a store, a clock, performers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from moothall.errors import Conflict, EffectFailed
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event, SharedRecord
from moothall.kernel.frozen import Frozen, maker, slotted
from moothall.kernel.step import Answer, Ask
from moothall.runtime.journal import Entry, Head, Lane, Record, RunId

LEASE = 30.0
MINUTE = 60.0
"""How long a run is held without a word, in seconds."""


Clean = Callable[[Any], Any]
"""Gives a value without the secrets in it; itself where there are none."""


def as_it_is(value: Any) -> Any:
    """The value itself, where nobody has registered a secret."""
    return value


@slotted
class Lease(Frozen):
    """Who holds a run, until when, and the token that fences others off. Crashes count lost holders in a row."""

    owner: str
    token: int
    until: float
    crashes: int = 0


class Stored(Frozen):
    """A run as the store has it: how it began, its head as JSON (empty where it is damaged), and who holds it."""

    record: Record
    head: Mapping[str, Any]
    seq: int
    status: str
    lease: Lease

    def definition(self) -> str:
        """The digest of the definition that the run has now."""
        adopted: str = self.head.get("definition", "")
        return adopted or self.record.digest


class Forgotten(Frozen):
    """Entries whose texts were taken out of a journal: when, by whom, and whether it was the run or a person."""

    at: float
    by: str
    what: Literal["run", "person"]
    entries: tuple[int, ...]


class Redaction(Frozen):
    """What takes the place of some entries of a run, as JSON, and of its head, and of records that it has written.

    The version of each record is the one that the run wrote.
    """

    run: RunId
    entries: Mapping[int, Mapping[str, Any]]
    head: Mapping[str, Any]
    records: tuple[SharedRecord, ...] = ()


class Audit(Frozen):
    """What an audit of a run has shown. Of a broken one, `entry` is the first that is wrong; the digest is its latest.

    Nobody can tell where nothing outside the store knows where the journal ends, or whose signatures these are.
    """

    run: RunId
    verdict: Literal["intact", "broken", "cannot tell"]
    why: str
    entry: int | None = None
    entries: int = 0
    digest: str = ""
    forgotten: tuple[Forgotten, ...] = ()
    """Whose texts are not there any more: that is no damage, and who has the key has vouched for it."""


SET_ASIDE = "set aside: "
"""What the status of a run begins with that workers leave alone; the reason follows."""


class Gone(EffectFailed):
    """The store was taken away while it was in use; nothing can be kept there any more."""


class Outdated(Conflict):
    """A record has another version than the one that was to be replaced; `version` is the one that it has."""

    def __init__(self, record: SharedRecord, version: int) -> None:
        super().__init__(
            f"the record {record.key!r} of {record.collection!r} has version {version}, not {record.version}; "
            "read it again"
        )
        self.record, self.version = record, version


class Outgoing(Frozen):
    """A record as a step has written it, and its place in the order in which all were written."""

    number: int
    record: SharedRecord


class Journals(Protocol):
    """Keeps runs, where they stand and what happened to them. A commit is whole or not at all."""

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        """Keep a new run with its first entry, or raise Conflict where the id is taken."""
        ...

    async def commit(
        self,
        run: RunId,
        head: Head,
        entry: Entry,
        lease: Lease | None = None,
        after: Lease | None = None,
        earlier: Sequence[Entry] = (),
        records: Sequence[SharedRecord] = (),
    ) -> None:
        """Keep the next entry and the head after it, or raise Conflict where another writer came first.

        Entries that came shortly before it share its transaction, and so do the records that it writes: Outdated where
        one of them has another version than the one that is replaced, and then nothing is kept.

        Who holds the run names the lease and the lease after the commit (None: it lets go). Without a lease the
        commit comes from outside and leaves the holder alone.
        """
        ...

    async def load(self, run: RunId) -> Stored:
        """A run by its id, or a refusal."""
        ...

    async def runs(self) -> list[Stored]:
        """All runs, the newest first."""
        ...

    async def entries(self, run: RunId, start: int = 0, limit: int | None = None) -> list[Mapping[str, Any]]:
        """The journal of a run as JSON, from an entry on, all of it or so many entries at most.

        What a fork shares with its origin is read there. Broken names the first entry that does not fit.
        """
        ...

    async def thread(self, run: RunId, name: str, start: int, end: int) -> list[Any]:
        """The messages of a thread as JSON, from one place in it up to another; the first has the place 0.

        They are found by an index, so that what was said before costs nothing. Broken where one of them is not there.
        """
        ...

    async def find(self, run: RunId, cause: str) -> int | None:
        """The number of the entry that this cause already has."""
        ...

    async def seq(self, run: RunId) -> int:
        """The number of a run's latest entry."""
        ...

    async def repair(self, run: RunId, head: Head) -> None:
        """Put a head back that was made anew from the journal."""
        ...

    async def set_aside(self, run: RunId, reason: str) -> None:
        """Keep workers away from a run; its status says why, until somebody moves it or takes it back."""
        ...

    async def take_back(self, run: RunId) -> None:
        """Let workers have a run again that was set aside; its crashes are forgotten."""
        ...

    async def forget(self, run: RunId) -> None:
        """Delete a run with all that is its own."""
        ...

    async def redact(self, redaction: Redaction) -> None:
        """Take texts out of a run that is over, all or none: other entries, another head and other records instead.

        Every entry keeps its seal, and a note vouches for what stands there now. Conflict where the run has moved.
        """
        ...

    async def scrub(self) -> str:
        """Take out of the files what was deleted or replaced there; why that could not be done, "" where it was."""
        ...

    async def audit(self, run: RunId, digest: tuple[int, bytes] | None = None) -> Audit:
        """Whether a run is as it was written; a digest is the number and seal of its latest entry, kept elsewhere."""
        ...

    async def anchored(self) -> list[RunId]:
        """The runs that should be there, as is known outside the store."""
        ...

    async def behind(self, run: RunId) -> str:
        """Why a run is not where it once was, as is known outside the store; "" where it is, or nobody knows."""
        ...

    async def strays(self) -> Mapping[RunId, str]:
        """The runs that are missing, or end before where they once were, and why that is known."""
        ...

    async def accept(self, run: RunId) -> None:
        """A person has looked: the run is to be as it is now, or gone where it is gone."""
        ...


class Scope(Frozen):
    """The runs that a worker takes up: those of some queues and of some tenants; where none are named, of all."""

    queues: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    after: str = ""
    """The tenant whose turn it was last; the next one behind it comes first."""

    def has(self, lane: Lane) -> bool:
        """Whether a run in this lane is taken up."""
        is_queue = not self.queues or lane.queue in self.queues
        return is_queue and (not self.tenants or lane.tenant in self.tenants)


EVERYTHING = Scope()


class Leases(Protocol):
    """Knows which runs want attention, and who holds them."""

    async def due(self, now: float, limit: int, gone: Sequence[str] = (), scope: Scope = EVERYTHING) -> list[RunId]:
        """Runs that want attention now and that nobody holds, or only a holder that is gone.

        The higher priority comes first, and within it the tenants take turns.
        """
        ...

    async def suspects(self, now: float) -> Mapping[RunId, int]:
        """Runs that want attention now and whose holder was lost, or others before it; how many in a row."""
        ...

    async def wait_for_work(self, now: float, seconds: float) -> None:
        """Come back when a run may want attention, or after so many seconds where nobody can tell."""
        ...

    async def owners(self) -> list[str]:
        """Who holds runs."""
        ...

    async def claim(self, run: RunId, seen: Lease, owner: str, until: float) -> Lease | None:
        """Hold a run until then, if its lease is still the one that was seen; else None."""
        ...

    async def renew(self, run: RunId, lease: Lease, until: float) -> bool:
        """Be heard of in time; False where the lease was lost."""
        ...

    async def release(self, run: RunId, lease: Lease) -> None:
        """Let go of a run."""
        ...

    async def forgive(self, run: RunId, lease: Lease) -> None:
        """Count the crashes of a run anew, where this lease is still its own."""
        ...


class Records(Protocol):
    """Keeps what outlives runs. Only the commit of a step writes it."""

    async def records(
        self, collection: str, *, key: str | None = None, prefix: str = "", most: int = 1000
    ) -> list[SharedRecord]:
        """The record with this key, or those whose keys begin like this, in the order of their keys."""
        ...

    async def outbox(self, mirror: str, most: int = 100) -> list[Outgoing]:
        """What was written since a mirror last said that it has everything up to some place, the oldest first."""
        ...

    async def mirrored(self, mirror: str, upto: int) -> None:
        """Remember that a mirror has everything up to this place; it never goes back."""
        ...


class Turns(Protocol):
    """Counts what everybody who shares a store begins within a minute."""

    async def take_turn(self, name: str, per_minute: int) -> float:
        """Begin something now, and 0.0; or how many seconds it has to wait, where so many began within a minute."""
        ...


class Store(Journals, Leases, Records, Turns, Protocol):
    """All that a store is asked for."""

    crowd: int
    """How many runs are driven at the same time; a lone run commits in place."""

    def close(self) -> None:
        """Let go of the file."""
        ...


class Clock(Protocol):
    """Tells the time in seconds since 1970, and waits."""

    def now(self) -> float:
        """The time."""
        ...

    async def wait_until(self, moment: float) -> None:
        """Come back at that time or later."""
        ...


Ear = Callable[[RunId, str], Callable[[str], None] | None]
"""Who hears, piece by piece, what somebody says in a run; None where nobody wants to."""


def nobody_listens(run: RunId, speaker: str) -> None:
    """Nobody wants to hear it."""
    return


Notice = Callable[[str], None]
"""Is told what a person should know."""


def nobody_is_told(text: str) -> None:
    """Nobody wants to know it."""


@slotted
class Excerpt(Frozen):
    """Which messages of a thread are wanted: the last so many, and none before a mark, a place in the thread.

    A summary is a message that stands in front of them where others are left out.
    """

    last: int | None = None
    since: int = 0
    summary: Any = None

    def first(self, count: int) -> int:
        """The place of the first message that is wanted of a thread with so many."""
        return min(count, max(self.since, 0 if self.last is None else count - self.last))


WHOLE = Excerpt()
"""All that was said in a thread."""


class Messages(Protocol):
    """Gives the messages of a thread of one run, the oldest first."""

    def __call__(self, thread: str, /, excerpt: Excerpt = WHOLE) -> Awaitable[list[Any]]: ...


class Desk(Protocol):
    """Where a run is driven from: hears that a performer is still at work, and knows the run's threads."""

    def listen(self, key: str, run: RunId, speaker: str) -> Callable[[str], None] | None:
        """Who hears what the performer with this key says as it is said; None where nobody wants to."""
        ...

    def beat(self, key: str) -> None:
        """The performer with this key is still at work."""
        ...

    @property
    def messages(self) -> Messages:
        """The run's threads."""
        ...


@slotted
class Context(Frozen):
    """What a performer knows besides its effect. The key stays the same when an effect is tried again.

    `again` says that it may have been performed before, `deadline` when it will be stopped. What goes out to
    an agent, or is quoted, goes through `clean` first.
    """

    run: RunId
    key: str
    nth: int
    attempt: int
    again: bool = False
    deadline: float | None = None
    desk: Desk | None = None
    clean: Clean = as_it_is
    records: Records | None = None
    """What outlives runs, to be read; only a step writes it."""
    metered: bool = False
    """Whether the run may use only so many tokens or so much money."""
    turns: Turns | None = None
    """Who counts what begins within a minute, here and elsewhere."""

    def beat(self) -> None:
        """Tell that the performer is still at work, where its effect has a time-out."""
        if self.desk is not None:
            self.desk.beat(self.key)

    async def messages(self, thread: str, excerpt: Excerpt = WHOLE) -> list[Any]:
        """The messages of a thread of the run, the oldest first: all of them, or an excerpt."""
        return await self.desk.messages(thread, excerpt) if self.desk is not None else []

    def ear(self, speaker: str) -> Callable[[str], None] | None:
        """Who hears what somebody says as it is said; None where nobody wants to."""
        return self.desk.listen(self.key, self.run, speaker) if self.desk is not None else None


make_context = maker(Context)
Perform = Callable[[Any, Context], Awaitable[Event]]


class Performer(Frozen):
    """Who performs one kind of effect: one effect in, one event out. Raising means: try again with the same key."""

    effect: type[Effect]
    perform: Perform


class ScriptContext(Frozen):
    """What a script may know besides its scope: the run, the cause and time of the event, and the run's threads."""

    run: RunId
    cause: str
    at: float
    messages: Messages


Evaluate = Callable[[Ask, ScriptContext], Awaitable[Answer]]
"""Evaluates a script. What goes wrong in it is an answer too."""
