"""What is told while runs go on, and who listens: one port for progress, telemetry, hooks, notices and streamed text.

A listener is one function of one piece of news. What it does cannot harm a run: one that raises is left out from then
on. Who wants to take its time stands aside (`runtime.observer`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from moothall.agents.ask import AskAgent
from moothall.app.report.amounts import Account
from moothall.kernel.effects import AskPerson
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Machine
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Entry, Head, Record, RunId, encode_entry
from moothall.runtime.observer import Aside


@slotted
class Committed(Frozen):
    """A step of a run is in the journal: the entry, where the run stands after it, how it began, and its machine.

    `functions` are the agents and tools that are functions here.
    """

    run: RunId
    entry: Entry
    head: Head
    record: Record
    machine: Machine
    functions: frozenset[str] = frozenset()

    @property
    def plain(self) -> Any:
        """The entry as JSON."""
        return encode_entry(self.entry)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Whom or what the run waits for, but for people."""
        effects = (pending.effect for pending in self.head.pending if not isinstance(pending.effect, AskPerson))
        return tuple(getattr(effect, "agent", "") or getattr(effect, "tool", "") or effect.kind for effect in effects)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that are at work."""
        return tuple(pending.effect.agent for pending in self.head.pending if isinstance(pending.effect, AskAgent))

    def account(self, now: float) -> Account:
        """How far the run has come, and what it has spent of its budget."""
        head, record = self.head, self.record
        limits = record.limits if head.limits is None else head.limits
        return Account(head.snapshot.active, head.seq, head.spent, limits, now - record.began)


@slotted
class Said(Frozen):
    """A piece of what an agent is saying; an empty piece where it begins anew. It is not a reply yet."""

    run: RunId
    agent: str
    piece: str


@slotted
class Noticed(Frozen):
    """Something that a person should know; what is not urgent is left out where silence was asked for."""

    text: str
    urgent: bool = True


News = Committed | Said | Noticed
Listener = Callable[[News], None]
"""Who wants to hear what agents say as they say it has `hears`; who wants only notices, `minds_no_steps`."""


class Occasional(Protocol):
    """A listener of ours that is mostly idle: while it is not busy, steps are not told for its sake."""

    @property
    def hears(self) -> bool:
        """Whether it wants to hear what agents say as they say it."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether it wants to be told of steps."""
        ...

    def __call__(self, news: News, /) -> None:
        """Something happened; it never raises."""
        ...


class StandingAside:
    """A listener that takes its time: it is told of steps in a thread of its own, and holds up no run."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._news = listener, dict[tuple[RunId, int], Committed]()
        self._aside = Aside(self._tell)

    def __call__(self, news: News) -> None:
        """Something happened."""
        if isinstance(news, Committed):
            self._news[news.run, news.entry.seq] = news
            self._aside(news.run, news.entry, news.head)

    def _tell(self, run: RunId, entry: Entry, head: Head) -> None:
        self._listener(self._news.pop((run, entry.seq)))

    def wait_until_seen(self) -> None:
        """Give it a moment to hear what is left."""
        self._aside.wait_until_seen()


class Broadcast:
    """Passes news on to whoever listens."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.listeners = list(listeners)
        self.occasional: list[Occasional] = []

    def __call__(self, news: News) -> None:
        """Tell everybody."""
        for listener in tuple(self.listeners):
            try:
                listener(news)
            except (Exception, asyncio.CancelledError):  # a listener may do anything; the run goes on without it
                self.listeners.remove(listener)
        for listener in self.occasional:
            listener(news)

    def notice(self, text: str) -> None:
        """Tell what a person should know."""
        self(Noticed(text))

    def tell(self, text: str) -> None:
        """Tell what a person may want to know."""
        self(Noticed(text, urgent=False))

    def ear(self, run: RunId, agent: str) -> Callable[[str], None] | None:
        """Who hears what an agent is saying; None where nobody wants to."""
        if not any(getattr(listener, "hears", False) for listener in (*self.listeners, *self.occasional)):
            return None
        return lambda piece: self(Said(run, agent, piece))

    def _minds_steps(self) -> bool:
        """Whether anybody wants to be told of a step. Every commit asks that."""
        minds = any(not getattr(listener, "minds_no_steps", False) for listener in self.listeners)
        return minds or any(listener.is_busy for listener in self.occasional)

    def observe(self, hall: Hall) -> None:
        """Tell of every step that is committed in a hall from now on, and of what is said there."""
        hall.ear, hall.notice = self.ear, self.notice

        def saw(run: RunId, entry: Entry, head: Head) -> None:
            if self._minds_steps():
                known, performer = hall.runs[run], hall.bindings_of(run).performers.get(AskAgent.kind)
                functions = getattr(performer.perform, "functions", {}) if performer is not None else {}
                self(Committed(run, entry, head, known.record, known.machine, frozenset(functions)))

        hall.observers.append(saw)
