"""The document's classes, thin over the machine and the `Moothall` object: no state machine of their own beside it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from moothall.app.config.access import lasting_store
from moothall.app.kinds.source import remember, source_of
from moothall.app.kinds.team.files import machine_of, source_of_team, team_file
from moothall.app.kinds.team.present import change_line, messages_of, state_tree, status_line
from moothall.app.kinds.team.session import Chosen, Session
from moothall.app.runs.moothall import shared_hall, wait_for
from moothall.kernel.machine import Machine
from moothall.machines.team.arbitration import Arbitration, Proposal, arbitrate
from moothall.machines.team.conversation import team_machine
from moothall.machines.team.definition import Hooks, Roster, Team, shipped_team
from moothall.machines.team.directives import (
    APPROVE_AND_HANDOFF,
    APPROVED,
    REQUEST_REWORK,
    Directive,
    Unusable,
    directive,
)
from moothall.machines.team.rules import Route, Situation, route_of
from moothall.machines.team.state import THREAD, Conversation
from moothall.runtime.ports import Store

T = TypeVar("T")
UNAPPROVED = "it is not approved as it is"
"""What a persona says that approves nothing and does not say what has to change."""


class AgentState:
    """A persona in Python: subclass it, and give it to an orchestrator under the persona's id.

    What it is asked is one text, with the work before it and its author. Each method has a default, so that a persona
    says only what it does otherwise.
    """

    async def respond(self, prompt: str) -> str:
        """What the persona says."""
        raise NotImplementedError(f"{type(self).__name__} says nothing; write respond(self, prompt)")

    def can_approve_input(self, prompt: str) -> bool:
        """Whether the work before it is approved; what is not goes back to its author, or to the user."""
        return True

    def determine_next_agent(self, prompt: str) -> str | None:
        """Who is next; nobody means: go on talking."""
        return None

    def request_rework(self, prompt: str) -> str:
        """What has to change in the work before it; "" where nothing has to."""
        return ""

    async def on_entry(self, state: str) -> None:
        """The persona gets the floor."""

    async def on_exit(self, state: str) -> None:
        """The persona leaves the floor."""

    async def reply(self, prompt: str) -> dict[str, Any]:
        """The structured reply that its methods make."""
        content = await self.respond(prompt)
        why = self.request_rework(prompt)
        if not why and not self.can_approve_input(prompt):
            why = UNAPPROVED
        if why:
            return {"content": content, "transition": REQUEST_REWORK, "rework_reason": why}
        target = self.determine_next_agent(prompt)
        if target is None:
            return {"content": content}
        approval = {"transition": APPROVE_AND_HANDOFF, "approval_status": APPROVED}
        return {"content": content, "next_agent": target, **approval}


class FSMOrchestrator:
    """A session with a team for programs: say something, give a command, look where it stands."""

    def __init__(
        self,
        team: str = "studio",
        *,
        agents: Mapping[str, Any] | None = None,
        model: str = "",
        store: str | None = None,
        run_id: str | None = None,
    ) -> None:
        self._given = dict(agents or {})
        self._store: str | Store | None = store
        self._functions = _functions(self._given)
        self._machine = _machine(source_of_team(team), self._given)
        self._chosen = Chosen(team, model=model, run_id=run_id)
        self.run_id = ""

    def say(self, text: str) -> str:
        """Say something to the team; what it said until you have the word again."""
        return self._talk(lambda session: session.say(text))

    def command(self, line: str) -> str:
        """Give a command, such as `!handoff CEO`; its answer, else what the team said."""
        return self._talk(lambda session: session.command(line))

    @property
    def state(self) -> str:
        """The state in which the conversation stands."""
        return self._work(_place)

    def history(self) -> list[dict[str, Any]]:
        """What was said, the oldest first."""

        async def look(session: Session) -> list[dict[str, Any]]:
            return await messages_of(session.hall.store, session.run, THREAD)

        return self._work(look)

    def close(self) -> None:
        """End the conversation; it stays in the store."""
        if self.run_id and self.state != "Closed":
            self.command("!exit")

    def _talk(self, tell: Callable[[Session], Coroutine[Any, Any, Any]]) -> str:
        async def talk(session: Session) -> str:
            before = len(await messages_of(session.hall.store, session.run, THREAD))
            answer = await tell(session)
            said = await messages_of(session.hall.store, session.run, THREAD)
            spoken = "\n".join(f"{message['by']}: {message['text']}" for message in said[before:])
            return answer if isinstance(answer, str) and answer else spoken

        return self._work(talk)

    def _work(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        async def within() -> T:
            self._store = lasting_store(self._store)
            async with shared_hall(self._store) as hall:
                if self.run_id:
                    session = Session(hall, self._machine, self.run_id, self._functions)
                else:
                    session = await Session.begin(hall, self._chosen, self._functions, self._machine)
                done = await work(session)
                self.run_id = session.run
                return done

        return wait_for(within())


async def _place(session: Session) -> str:
    snapshot = await session.snapshot()
    return snapshot.active[0] if snapshot.active else ""


def _functions(given: Mapping[str, Any]) -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for name, agent in given.items():
        if isinstance(agent, AgentState):
            functions |= {name: agent.reply, f"{name}.entry": agent.on_entry, f"{name}.exit": agent.on_exit}
        else:
            functions[name] = agent
    return functions


def _machine(source: str, given: Mapping[str, Any]) -> Machine:
    """The machine of the team, in which personas in Python have their hooks called."""
    machine, found = machine_of(source), team_file(source)
    assert machine is not None
    assert found is not None
    own = {name for name, agent in given.items() if isinstance(agent, AgentState)}
    if not own:
        return machine
    personas = tuple(
        replace(persona, hooks=Hooks(f"{persona.id}.entry", f"{persona.id}.exit")) if persona.id in own else persona
        for persona in found.team.personas
    )
    hooked = team_machine(replace(found.team, personas=personas), machine.name, found.source)
    remember(hooked, source_of(machine))
    return hooked


def _team(team: str | Team) -> Roster:
    if isinstance(team, Team):
        return Roster(team)
    found = team_file(source_of_team(team))
    return Roster(found.team if found is not None else shipped_team(team))


class TransitionEngine:
    """Reads what a persona directs, and says who is next; the machine of the conversation asks the same functions."""

    def __init__(self, team: str | Team = "studio") -> None:
        self._roster = _team(team)

    def parse(self, reply: Any, *, speaker: str) -> Directive | Unusable:
        """What a reply directs, or why it cannot be followed."""
        accepts = self._roster.personas[speaker].accepts_user
        return directive(reply, allowed=self._roster.targets(speaker), accepts_user=accepts)

    def route(self, situation: Situation) -> Route | None:
        """Where a rule of the team leads; None where none holds."""
        return route_of(self._roster.team.rules, situation)

    def evaluate_transition(self, proposals: Sequence[Proposal | Mapping[str, Any]]) -> Arbitration:
        """Who is next among competing proposals."""
        arbiter = self._roster.team.arbitration
        return arbitrate(proposals, blocking=arbiter.blocking, weights=dict(arbiter.weights) or None)


class StateVisualizer:
    """Shows where a conversation stands."""

    def __init__(self, team: str | Team = "studio") -> None:
        self._roster = _team(team)

    def change(self, current: str, pending: str) -> str:
        """The line of a change: `Current State: [CEO_State] → Pending: CFO_State`."""
        return change_line(self._roster, {"from": current, "to": pending})

    def status(self, conversation: Conversation) -> str:
        """Where a conversation stands, in one line of at most 80 columns."""
        return status_line(self._roster, conversation)

    def tree(self, conversation: Conversation) -> str:
        """Where it stands among the groups, who is warm, and what goes on beside."""
        return state_tree(self._roster, conversation)
