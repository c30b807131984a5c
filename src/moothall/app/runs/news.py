"""What is told while runs go on, and who listens: one port for progress, telemetry, hooks, notices and streamed text.

A listener is one function of one piece of news. What it does cannot harm a run: one that raises is left out from then
on. Who wants to take its time stands aside (`runtime.observer`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from moothall.agents.ask import AskAgent
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Machine
from moothall.runtime.hall import Hall
from moothall.runtime.journal import Entry, Head, Record, RunId


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


@slotted
class Said(Frozen):
    """A piece of what an agent is saying; an empty piece where it begins anew. It is no reply yet."""

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
"""Who wants to hear what agents say as they say it has the attribute `hears`."""


class Broadcast:
    """Passes news on to whoever listens."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.listeners = list(listeners)

    def __call__(self, news: News) -> None:
        """Tell everybody."""
        for listener in tuple(self.listeners):
            try:
                listener(news)
            except (Exception, asyncio.CancelledError):  # a listener may do anything; the run goes on without it
                self.listeners.remove(listener)

    def notice(self, text: str) -> None:
        """Tell what a person should know."""
        self(Noticed(text))

    def tell(self, text: str) -> None:
        """Tell what a person may want to know."""
        self(Noticed(text, urgent=False))

    def ear(self, run: RunId, agent: str) -> Callable[[str], None] | None:
        """Who hears what an agent is saying; None where nobody wants to."""
        if not any(getattr(listener, "hears", False) for listener in self.listeners):
            return None
        return lambda piece: self(Said(run, agent, piece))

    def observe(self, hall: Hall) -> None:
        """Tell of every step that is committed in a hall from now on, and of what is said there."""
        hall.ear = self.ear

        def saw(run: RunId, entry: Entry, head: Head) -> None:
            if self.listeners:
                known, performer = hall.runs[run], hall.cast(run).performers.get(AskAgent.kind)
                functions = getattr(performer.perform, "functions", {}) if performer is not None else {}
                self(Committed(run, entry, head, known.record, known.machine, frozenset(functions)))

        hall.observers.append(saw)
