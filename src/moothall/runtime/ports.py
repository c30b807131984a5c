"""What the runtime needs from outside: a store, a clock, performers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import Entry, Head, Record, RunId


class Stored(Frozen):
    """A run as the store has it: how it began, and its head as JSON."""

    record: Record
    head: Mapping[str, Any]


class Store(Protocol):
    """Keeps runs and their journals. A commit is whole or not at all."""

    async def begin(self, record: Record, head: Head, entry: Entry) -> None:
        """Keep a new run with its first entry, or raise Conflict where the id is taken."""
        ...

    async def commit(self, run: RunId, head: Head, entry: Entry) -> None:
        """Keep the next entry and the head after it, or raise Conflict where another writer came first."""
        ...

    async def load(self, run: RunId) -> Stored:
        """A run by its id, or a refusal."""
        ...

    async def runs(self) -> list[Stored]:
        """All runs, the newest first."""
        ...

    async def entries(self, run: RunId) -> list[Mapping[str, Any]]:
        """The journal of a run as JSON, from its first entry."""
        ...

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


class Context(Frozen):
    """What a performer knows besides its effect. The key stays the same when an effect is tried again."""

    run: RunId
    key: str
    nth: int
    attempt: int


Perform = Callable[[Any, Context], Awaitable[Event]]


class Performer(Frozen):
    """Who performs one kind of effect: one effect in, one event out. Raising means: try again with the same key."""

    effect: type[Effect]
    perform: Perform
