"""A machine stepped by hand: the test says how each effect ends. Nothing is performed and nothing is stored."""

from __future__ import annotations

from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.app.kinds.kind import kind_of
from moothall.errors import Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson, Effect
from moothall.kernel.events import Answered, Event, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.simulate import Simulation
from moothall.kernel.step import Step, Wanted
from moothall.testing.paths import Steps, require_path, without_repeats


class Walk:
    """One run of a machine, event by event, in a time that only the test moves."""

    def __init__(self, machine: Machine[Any, Any], data: Any = None) -> None:
        self.machine = machine
        self._simulation = Simulation(machine, kind_of(machine).data(machine, data))

    @property
    def states(self) -> tuple[str, ...]:
        """The active states."""
        return self._simulation.active

    @property
    def data(self) -> Any:
        """The data of the run."""
        return self._simulation.snapshot.data

    @property
    def status(self) -> str:
        """`live`, or how the run has ended: done, failed, limited, cancelled."""
        return self._simulation.snapshot.status

    @property
    def reason(self) -> str:
        """Why it ended so; "" while it lives."""
        return self._simulation.snapshot.reason

    @property
    def wants(self) -> tuple[Effect, ...]:
        """The effects that are open: who is asked, what is called."""
        return tuple(wanted.effect for wanted in self._simulation.open)

    @property
    def path(self) -> tuple[str, ...]:
        """The states in which the run came to rest, in order."""
        return without_repeats(" and ".join(step.snapshot.active) for step in self._simulation.steps)

    def assert_path(self, *expected: Steps) -> None:
        """Fail the test if the run went another way; `...` stands for any number of states."""
        require_path(self.path, expected)

    def reply(self, text: str = "", *, value: Any = None, agent: str = "") -> Step:
        """The agent that was asked replies: with a text, or with a value of the shape that was asked for."""
        wanted = self._open(AskAgent, agent)
        asked: Any = wanted.effect
        shaped = self._shaped(asked.shape, value)
        return self._simulation.answer(wanted, Replied(asked.agent, text, shaped, asked.shape, id=asked.id))

    def give(self, value: Any = None, *, tool: str = "") -> Step:
        """The tool that was called returns a value."""
        wanted = self._open(CallTool, tool)
        called: Any = wanted.effect
        event: Returned = Returned(called.tool, id=called.id)
        value = self._shaped(event.shape, value) if event.shape in self.machine.shapes else value
        return self._simulation.answer(wanted, Returned(called.tool, value, id=called.id))

    def answer(self, value: Any) -> Step:
        """The person who was asked answers."""
        wanted = self._open(AskPerson, "")
        asked: Any = wanted.effect
        return self._simulation.answer(wanted, Answered(self._shaped(asked.shape, value), asked.shape, id=asked.id))

    def give_up(self, reason: str = "it could not be done", *, who: str = "") -> Step:
        """The agent that was asked, or the tool that was called, fails for good."""
        wanted = self._open(Effect, who)
        return self._simulation.answer(wanted, GaveUp(reason, id=getattr(wanted.effect, "id", "")))

    def tell(self, event: Event) -> Step:
        """The run hears an event from outside."""
        return self._simulation.send(event)

    def advance(self, seconds: float) -> None:
        """Let time pass: questions expire, alarms ring."""
        self._simulation.advance(seconds)

    def _open(self, kind: type[Effect], who: str) -> Wanted:
        """The first open effect of a kind, and of an agent or a tool where one is named."""
        for wanted in self._simulation.open:
            names = (getattr(wanted.effect, "agent", None), getattr(wanted.effect, "tool", None))
            if isinstance(wanted.effect, kind) and (not who or who in names):
                return wanted
        sought = f"{kind.kind or 'effect'} of {who}" if who else kind.kind or "effect"
        has = ", ".join(effect.kind for effect in self.wants) or "nothing"
        raise Refused(f"no {sought} is open in {' and '.join(self.states)}; open is: {has}")

    def _shaped(self, shape: str, value: Any) -> Any:
        """A value as the machine hears it, which is of the type that was asked for."""
        return decode(self.machine.shapes[shape], encode(value), shape) if shape in self.machine.shapes else value
