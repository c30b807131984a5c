"""A world for runs that belong together: machines by name, the same hands for all of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from moothall.errors import DefinitionError
from moothall.kernel.codec import decode
from moothall.kernel.effects import AskPerson, Effect, StartChild
from moothall.kernel.events import Answered, ChildDone
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.crew import PULSE
from moothall.runtime.hall import Bindings, ChildSpec, Hall, begin, reopen
from moothall.runtime.journal import Head, Record, RunId
from moothall.runtime.ports import Clock, Performer, Store
from tests.runtime.world import RUN, Basket, Fetch, Fetched, hall_of, keep

CHILD = f"{RUN}-0-0"
"""The run of the first child that a parent starts in its first step."""


@dataclass(frozen=True)
class Family:
    """The machines that may start each other, and who performs what they want."""

    machines: Mapping[str, Machine]
    performers: Mapping[str, Performer]
    endless: frozenset[str] = field(default=frozenset())

    def bindings_of(self) -> Bindings:
        """Who performs a run of any machine here."""
        return Bindings(self.performers, child=self.part)

    def part(self, name: str) -> ChildSpec:
        """A machine as a child."""
        if name not in self.machines:
            raise DefinitionError(f"no machine is called {name!r}")
        machine = self.machines[name]
        return ChildSpec(machine, "", name in self.endless, lambda given: _read(machine, given), self.bindings_of())


def _read(machine: Machine, given: Any) -> Any:
    return decode(machine.data or object, {} if given is None else given, "input")


def family_hall(
    hands: Callable[..., Any],
    *machines: Machine,
    store: Store | None = None,
    clock: Clock | None = None,
    pulse: float = PULSE,
) -> Hall:
    """A hall in which these machines may start each other."""
    hall = hall_of(hands, store, clock, pulse=pulse)
    family = Family({one.name: one for one in machines}, hall.performers)

    async def open_run(run: RunId) -> None:
        machine = family.machines[(await hall.store.load(run)).record.machine]
        hall.bind(run, family.bindings_of())
        await reopen(hall, run, machine)

    hall.opener = open_run
    hall.bind(RUN, family.bindings_of())
    return hall


async def parent_begun(
    hall: Hall, machine: Machine, *, limits: Mapping[str, float] | None = None, endless: bool = False
) -> Head:
    """A run of this machine that may start children, begun and not yet driven."""
    record = Record(RUN, machine.name, machine.digest, hall.clock.now(), limits=limits or {}, endless=endless)
    return await begin(hall, record, machine, Basket())


def gather(basket: Basket, event: ChildDone) -> Basket:
    """The move that puts what a child brought into the basket."""
    return Basket((*basket.got, *event.data["got"]))


def errand(*stops: str, name: str = "errand") -> Machine:
    """A child that fetches one thing after the other."""
    states = [State(f"fetching_{stop}", enter=Fetch(stop)) for stop in stops]
    names = [*(state.name for state in states), "back"]
    moves = [On(here, Fetched, to=there, do=keep) for here, there in pairwise(names)]
    return Machine(name, data=Basket, states=[*states, Final("back")], moves=moves)


def sending(*starts: StartChild, moves: Sequence[On] = (), more: Sequence[Any] = ()) -> Machine:
    """A parent that starts these children together, and is done when all of them are back."""
    wanted: list[Effect] = list(starts)
    return Machine(
        "sending",
        data=Basket,
        states=[State("waiting", enter=wanted), *more, Final("home")],
        moves=[
            *moves,
            On("waiting", ChildDone, to="home", when=lambda basket, _: len(basket.got) + 1 >= len(starts), do=gather),
            On("waiting", ChildDone, do=gather),
        ],
    )


class Killed(BaseException):
    """The process is gone; nothing below the test may catch this."""


class KilledStore:
    """A store whose process is killed before or after its k-th write, and writes nothing from then on."""

    def __init__(self, inner: Store, write: int, *, before: bool) -> None:
        self.crowd = 0
        self._inner, self._left, self._before = inner, write, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def begin(self, *given: Any) -> None:
        await self._written(self._inner.begin, given)

    async def commit(self, *given: Any) -> None:
        await self._written(self._inner.commit, given)

    async def release(self, *given: Any) -> None:
        if self._left:
            await self._inner.release(*given)

    async def _written(self, write: Callable[..., Awaitable[None]], given: Sequence[Any]) -> None:
        if self._left == 0 or (self._before and self._left == 1):
            self._left = 0
            raise Killed
        await write(*given)
        self._left -= 1
        if self._left == 0:
            raise Killed


def killed(inner: Store, write: int, *, before: bool) -> Store:
    """A store whose process is killed at this write."""
    return cast(Store, KilledStore(inner, write, before=before))


ASKING_CHILD = Machine(
    "errand",
    data=Basket,
    states=[State("asking", enter=AskPerson("Which shop?")), Final("back")],
    moves=[On("asking", Answered, to="back", do=lambda basket, event: Basket((*basket.got, event.value)))],
)


async def names(store: Store, run: RunId) -> list[str]:
    """The names of a run's events, in order."""
    return [entry["event"]["name"] for entry in await store.entries(run)]
