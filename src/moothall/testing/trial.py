"""A machine on trial: run as users run it, on a store in memory, with fakes and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from moothall.app.config.settings import Settings
from moothall.app.runs.moothall import Moothall, wait_for
from moothall.app.runs.outcome import Outcome
from moothall.errors import Refused
from moothall.kernel.events import Event
from moothall.kernel.machine import Budget, Machine
from moothall.performers.own import OwnPerformers
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from moothall.testing.clock import TestClock
from moothall.testing.fakes import Fake, fakes_of
from moothall.testing.paths import Steps, path_of, require_path

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
    R = TypeVar("R", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    D, R = TypeVar("D"), TypeVar("R")


class Trial(Generic[D, R]):
    """Runs of one machine in a test.

    `agents` are agents and tools by name, also those whose functions stand in the table: a list is a script, a function
    is itself, everything else is the reply to every call. Each method is a program of its own that opens the store,
    does its part and closes: whatever the run needs later has to be in the store, as after a restart.
    """

    def __init__(
        self,
        machine: Machine[D, R],
        *,
        agents: Mapping[str, Any] | None = None,
        performers: OwnPerformers | None = None,
        model: str = "",
        store: Store | None = None,
        clock: TestClock | None = None,
    ) -> None:
        self.machine = machine
        self.agents = fakes_of(agents)
        self.store: Store = MemoryStore(strict=True) if store is None else store
        self.clock = TestClock() if clock is None else clock
        self.run_id: RunId = ""
        self._performers, self._model = performers, model

    def fake(self, name: str) -> Fake:
        """The fake of an agent or a tool, to see what it was asked."""
        found = self.agents[name]
        if not isinstance(found, Fake):
            raise Refused(f"{name} is a function of the test's own; ask it yourself")
        return found

    def run(self, data: Any = None, *, budget: Budget | None = None, run_id: RunId | None = None) -> Outcome[R]:
        """Begin a run and go on until it is over or waits for a person."""
        return self._go(
            lambda hall: hall.run(
                self.machine,
                data,
                agents=self.agents,
                performers=self._performers,
                model=self._model,
                budget=budget,
                run_id=run_id,
            )
        )

    def answer(self, value: Any, *, question: str | None = None, by: str = "") -> Outcome[R]:
        """Answer the run's question and go on."""
        return self._go(
            lambda hall: hall.answer(
                self._begun(),
                value,
                question=question,
                machine=self.machine,
                agents=self.agents,
                performers=self._performers,
                by=by,
            )
        )

    def send(self, event: Event | str, data: Mapping[str, Any] | None = None) -> Outcome[R]:
        """Tell the run an event from outside and go on."""
        return self._go(
            lambda hall: hall.send(
                self._begun(), event, data, machine=self.machine, agents=self.agents, performers=self._performers
            )
        )

    def advance(self, seconds: float) -> Outcome[R]:
        """Let time pass and go on: questions expire, alarms ring."""
        self.clock.advance(seconds)
        return self.resume()

    def resume(self) -> Outcome[R]:
        """Go on with the run where its journal ends, as another process would."""
        return self._go(
            lambda hall: hall.resume(self._begun(), self.machine, agents=self.agents, performers=self._performers)
        )

    def cancel(self) -> Outcome[R]:
        """Cancel the run."""
        return self._go(
            lambda hall: hall.cancel(
                self._begun(), machine=self.machine, agents=self.agents, performers=self._performers
            )
        )

    @property
    def journal(self) -> list[Mapping[str, Any]]:
        """The entries of the run's journal."""
        entries: list[Mapping[str, Any]] = self._within(lambda hall: hall.store.entries(self._begun()))
        return entries

    @property
    def path(self) -> tuple[str, ...]:
        """The states in which the run came to rest, in order."""
        return path_of(self.journal)

    def assert_path(self, *expected: Steps) -> None:
        """Fail the test if the run went another way; `...` stands for any number of states."""
        require_path(self.path, expected)

    def _begun(self) -> RunId:
        if not self.run_id:
            raise Refused("this trial has no run yet; call run(…) first")
        return self.run_id

    def _go(self, work: Callable[[Moothall], Awaitable[Outcome[Any]]]) -> Outcome[R]:
        outcome: Outcome[R] = self._within(work)
        self.run_id = outcome.run
        return outcome

    def _within(self, work: Callable[[Moothall], Awaitable[Any]]) -> Any:
        async def program() -> Any:
            async with Moothall(self.store, settings=Settings(), clock=self.clock, listeners=()) as hall:
                return await work(hall)

        return wait_for(program())
