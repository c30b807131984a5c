"""Runs imported documents in virtual time: a simulation whose sessions talk to each other, as SCXML says.

To what every simulation does, a session adds: messages between a session, its parent and what it invoked; events that
an invoked session is to hear as well (`autoforward`); `<finalize>` before an event from an invoked session is
offered; the ends of invoked sessions as `done.invoke.ID` and `error.communication`, which reach the whole session and
not only the state that invoked. A document that is known only at run time (by address, or as markup in a variable)
is read when it is invoked; `Library` does that, with a `fetch` that decides what may be read at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.errors import EffectFailed
from moothall.interop.scxml import Document, Fetch, read
from moothall.interop.scxml_content import Finalize, Invoke, Message, Post, without_engine
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.simulate import Delivery, Evaluate, Simulation, World
from moothall.kernel.step import Wanted


class Library(Mapping[str, Machine]):
    """The machines that the sessions of a document may invoke: its own by name, others by address or as markup."""

    def __init__(self, document: Document, fetch: Fetch | None = None) -> None:
        self._known = dict(document.children)
        self._fetch = fetch

    def __getitem__(self, name: str) -> Machine:
        if name not in self._known and name.lstrip().startswith("<"):
            self._add(name, read(name, file=f"markup {len(self._known)}", fetch=self._fetch))
        elif name not in self._known and self._fetch is not None:
            try:
                text = self._fetch(name)
            except (OSError, ValueError) as error:
                raise EffectFailed(f"{name!r} cannot be fetched: {error}") from error
            self._add(name, read(text, file=name, fetch=self._fetch))
        return self._known[name]

    def _add(self, name: str, document: Document) -> None:
        self._known = {**document.children, **self._known, name: document.machine}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Session(Simulation):
    """One session of an imported document."""

    def _set_up(self, machine: Machine, world: World) -> None:
        super()._set_up(machine, world)
        self._invoked: dict[str, tuple[Invoke, str | None]] = {}

    def _first_data(self, given: Any) -> Any:
        data = super()._first_data(given)
        if isinstance(self.parent, Session) and self.machine.data is dict:
            above = self.parent.session
            data = {**data, "_sessionid": f"{above}.{self.id}", "_parent": above, "_invokeid": self.id}
        return data

    @property
    def session(self) -> str:
        """The id by which other sessions know this one."""
        data = self.snapshot.data
        return str(data.get("_sessionid", self.machine.name)) if isinstance(data, dict) else self.machine.name

    def _receive(self, delivery: Delivery) -> None:
        event = delivery.event
        invocations = self._invocations()
        for invoke, _ in invocations:
            if invoke.forward and invoke.id in self.children:
                self.world.agenda.put(Delivery(self.children[invoke.id], event, self))
        for invoke, owner in invocations:
            if invoke.finalize and invoke.id == getattr(event, "invokeid", ""):
                self._offer(Finalize(invoke.finalize, cause=event), owner)
                return
        super()._receive(delivery)

    def _invocations(self) -> list[tuple[Invoke, str | None]]:
        """What the active states invoked, also where it has ended since."""
        chart = self.machine.chart
        active = {chart.places[index].name for index in chart.around(self.active)}
        return [(invoke, owner) for invoke, owner in self._invoked.values() if owner in active]

    def _carry_out(self, wanted: Wanted) -> None:
        match wanted.effect:
            case Post(target=target, event=event, delay=delay, id=id):
                to = self._at(target)
                if to is not None:
                    self.world.agenda.put(Delivery(to, event, self, None, id), delay)
                elif self.live and target not in ("#_parent", ""):
                    self._hear(Message("error.communication", type="platform", sendid=id), None)
            case effect:
                if isinstance(effect, Invoke):
                    self._invoked[effect.id] = (effect, wanted.owner)
                super()._carry_out(wanted)

    def _at(self, target: str) -> Simulation | None:
        if target == "#_parent":
            return self.parent
        if target.startswith("#_scxml_"):
            sessions = [
                session for session in (self, self.parent, *self.children.values()) if isinstance(session, Session)
            ]
            return next((session for session in sessions if f"#_scxml_{session.session}" == target), None)
        return self.children.get(target.removeprefix("#_"))

    def _hear(self, event: Event, owner: str | None) -> None:
        super()._hear(event, None)

    def _done(self, id: str, output: Any) -> Event:
        return Message(f"done.invoke.{id}", output, invokeid=id)

    def _failed(self, id: str, reason: str) -> Event:
        return Message("error.communication", {"reason": reason}, "platform", invokeid=id)


def session(document: Document, *, evaluate: Evaluate | None = None, fetch: Fetch | None = None) -> Session:
    """A session of a document, ready to be sent events."""
    return Session(document.machine, evaluate=evaluate or without_engine, machines=Library(document, fetch))
