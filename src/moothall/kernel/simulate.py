"""Runs a machine without waiting: a synchronous driver with a virtual clock, for tests, conformance and walks.

A simulation keeps what a runtime keeps in its store: a snapshot, the steps so far, events on their way, effects that
are open, children. It moves by `start` and `transition` alone, and it obeys the rules that a runtime obeys:

- Events reach a run one at a time. What is ready is delivered in the order in which it became ready, what is due
  later in the order of its time; a simulation and its children share one agenda, so a family has one order.
- Time is a number of seconds since the start. It stands still unless `advance`, `tick` or `settle` move it.
- A step's effects begin after the step. When a state is left, what it owned ends: its alarms are forgotten, its
  open effects are dropped, its children are cancelled. When a run ends, everything it still had on its way ends too.
- `Send`, `Alarm`, `CancelSend` and `StartChild` are carried out here. Any other effect goes to `perform`; the event
  that it gives goes to the state that wanted the effect, and where it gives None the effect stays open. A question
  to a person that stays open expires at its deadline.
- A child's end reaches the state that started it: `done.invoke.ID` with the child's outcome, or `error.effect`.

Scripts are answered by `evaluate`. Randomness comes in as an argument. No real clock is read here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Protocol, TypeVar

from moothall.errors import DefinitionError, MoothallError, Refused
from moothall.kernel.chart import Flight
from moothall.kernel.codec import decode
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Cancelled, ChildDone, Event, Expired, GaveUp, Named
from moothall.kernel.interpreter import possible, start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Answer, Ask, Instant, Snapshot, Step, Wanted

T = TypeVar("T")
Evaluate = Callable[[Any, Any], Answer]
Perform = Callable[[Effect], Event | None]
PATIENCE = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """An event on its way: to whom, from whom, and for which of the receiver's states (None: for all)."""

    to: Simulation
    event: Event
    source: Simulation | None = None
    owner: str | None = None
    id: str = ""
    ends: Wanted | None = None
    effect: Effect | None = None
    """The effect that ends with it."""


class Agenda:
    """What is ready and what is due later, for a simulation and all its children."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ready: deque[Delivery] = deque()
        self._later: list[tuple[float, int, Delivery]] = []
        self._order = 0

    def put(self, delivery: Delivery, delay: float = 0) -> None:
        if delay <= 0:
            self.ready.append(delivery)
        else:
            self._order += 1
            heappush(self._later, (self.now + delay, self._order, delivery))

    @property
    def due(self) -> float | None:
        """When the next delayed event is due."""
        return self._later[0][0] if self._later else None

    def coming(self, to: Simulation) -> list[Delivery]:
        """What is ready for a simulation."""
        return [delivery for delivery in self.ready if delivery.to is to]

    def next_due(self) -> None:
        """Go to the moment at which the next delayed event is due, and make that event ready."""
        self.now, _, delivery = heappop(self._later)
        self.ready.append(delivery)

    def forget(self, unwanted: Callable[[Delivery], bool]) -> None:
        """Drop deliveries that are not due yet."""
        self._later = [entry for entry in self._later if not unwanted(entry[2])]
        heapify(self._later)

    def forget_all(self, unwanted: Callable[[Delivery], bool]) -> None:
        """Drop deliveries, also those that are ready."""
        self.forget(unwanted)
        self.ready = deque(delivery for delivery in self.ready if not unwanted(delivery))


@dataclass(frozen=True, slots=True)
class World:
    """What a family of simulations shares."""

    agenda: Agenda
    evaluate: Evaluate | None
    perform: Perform | None
    machines: Mapping[str, Machine]


class Simulation:
    """One run of a machine in virtual time, with the children that it starts."""

    def __init__(
        self,
        machine: Machine,
        data: Any = None,
        *,
        evaluate: Evaluate | None = None,
        perform: Perform | None = None,
        machines: Mapping[str, Machine] | None = None,
    ) -> None:
        self._set_up(machine, World(Agenda(), evaluate, perform, {} if machines is None else machines))
        self._begin(self._first_data(data))
        self._drain()

    def _set_up(self, machine: Machine, world: World) -> None:
        self.machine = machine
        self.world = world
        self.snapshot = Snapshot((), None)
        self.steps: list[Step] = []
        self.open: list[Wanted] = []
        self.children: dict[str, Simulation] = {}
        self.parent: Simulation | None = None
        self.id = ""
        self.owner: str | None = None

    # what one asks

    @property
    def active(self) -> tuple[str, ...]:
        """The active atomic states, in document order; after the end, those in which the run ended."""
        return self.snapshot.active

    @property
    def now(self) -> float:
        """The virtual time in seconds since the start."""
        return self.world.agenda.now

    @property
    def live(self) -> bool:
        """Whether the run can still move."""
        return self.snapshot.status == "live"

    @property
    def due(self) -> float | None:
        """When the next delayed event of the family is due; None where nothing is."""
        return self.world.agenda.due

    @property
    def effects(self) -> tuple[Wanted, ...]:
        """Every effect that the steps so far wanted, in order."""
        return tuple(wanted for step in self.steps for wanted in step.effects)

    # what one does

    def send(self, event: Event, *, within: str | None = None, effect: Effect | None = None) -> Step:
        """Deliver an event now, and everything that becomes ready because of it; the event's own step comes back."""
        if not self.live:
            return Step(self.snapshot, event, (), self.snapshot)
        position = len(self.steps)
        self.world.agenda.put(Delivery(self, event, owner=within, effect=effect))
        self._drain()
        return self.steps[position]

    def answer(self, wanted: Wanted, event: Event) -> Step:
        """End an open effect with this event, which goes to the state that wanted it."""
        if not self._awaits(wanted):
            raise Refused(f"{wanted.effect.kind} is not open; open are: {', '.join(_kinds(self.open)) or 'none'}")
        return self.send(event, within=wanted.owner, effect=wanted.effect)

    def advance(self, seconds: float) -> None:
        """Let time pass, and deliver in its order what becomes due."""
        agenda = self.world.agenda
        until = agenda.now + seconds
        for _ in range(PATIENCE):
            if agenda.due is None or agenda.due > until:
                agenda.now = until
                return
            self.tick()
        raise self._restless()

    def tick(self) -> None:
        """Let time pass until the next delayed event is due, and deliver it."""
        if self.due is not None:
            self.world.agenda.next_due()
            self._drain()

    def settle(self) -> None:
        """Let time pass until nothing is due any more."""
        for _ in range(PATIENCE):
            if self.due is None:
                return
            self.tick()
        raise self._restless()

    # how it moves

    def _begin(self, data: Any) -> None:
        self._keep(self._decided(lambda answers: start(self.machine, data, answers, instant=self._instant())))

    def _first_data(self, given: Any) -> Any:
        kind = self.machine.data
        if kind is None or type(given) is kind:
            return given
        return decode(kind, {} if given is None else given, f"the data of {self.machine.name}")

    def _drain(self) -> None:
        agenda = self.world.agenda
        for _ in range(PATIENCE):
            if not agenda.ready:
                return
            delivery = agenda.ready.popleft()
            if delivery.to.live and delivery.to._awaits(delivery.ends):
                delivery.to._receive(delivery)
        raise self._restless()

    def _awaits(self, ended: Wanted | None) -> bool:
        """Whether an effect that ends now was still open; nothing else ends by itself."""
        if ended is None:
            return True
        before = len(self.open)
        self.open = [wanted for wanted in self.open if wanted is not ended]
        return len(self.open) < before

    def _receive(self, delivery: Delivery) -> None:
        self._offer(delivery.event, delivery.owner, delivery.effect)

    def _offer(self, event: Event, within: str | None, ended: Effect | None = None) -> None:
        machine, snapshot = self.machine, self.snapshot
        flight = Flight(ended, within, self._in_flight()) if machine.chart.joins else None
        instant = self._instant()
        self._keep(
            self._decided(
                lambda answers: transition(
                    machine, snapshot, event, answers, within=within, flight=flight, instant=instant
                )
            )
        )

    def _instant(self) -> Instant | None:
        """When the next step is decided, and what its draws are derived from, for machines that ask."""
        if not self.machine.chart.asks_moment:
            return None
        return Instant(self.now, f"{self.machine.name}.{len(self.steps)}")

    def _in_flight(self) -> tuple[Wanted, ...]:
        """The effects that have not ended, and those whose end is on its way."""
        coming = self.world.agenda.coming(self)
        ending = [Wanted(pending.effect, pending.owner) for pending in coming if pending.effect is not None]
        children = [Wanted(StartChild(child.machine.name), child.owner) for child in self.children.values()]
        return (*self.open, *ending, *children)

    def _decided(self, decide: Callable[[tuple[Answer, ...]], Step | Ask]) -> Step:
        """Decide again with one more answer until no script is left without one."""
        answers: tuple[Answer, ...] = ()
        while isinstance(decided := decide(answers), Ask):
            if self.world.evaluate is None:
                raise DefinitionError(
                    f"machine {self.machine.name} needs a script engine for {decided.script!r}; "
                    "give the simulation `evaluate`"
                )
            answers += (self.world.evaluate(decided.script, decided.scope),)
        return decided

    def _keep(self, step: Step) -> None:
        self.steps.append(step)
        self.snapshot = step.snapshot
        if self.live and step.left:
            self._release(step.left)
        for wanted in step.effects:
            if self.live or wanted.owner is None:
                self._carry_out(wanted)
        if not self.live:
            self._drop_everything()
            self._tell_parent()

    # effects

    def _carry_out(self, wanted: Wanted) -> None:
        agenda, owner = self.world.agenda, wanted.owner
        match wanted.effect:
            case Send(event=event, delay=delay, id=id):
                agenda.put(Delivery(self, event, self, None, id), delay)
            case Alarm(event=event, delay=delay):
                agenda.put(Delivery(self, event, self, owner), delay)
            case CancelSend(id=id):
                agenda.forget(lambda delivery: delivery.source is self and delivery.id == id != "")
            case StartChild() as effect:
                self._start_child(effect, owner)
            case effect:
                outcome = self.world.perform(effect) if self.world.perform is not None else None
                if outcome is None:
                    self._leave_open(wanted)
                else:
                    agenda.put(Delivery(self, outcome, self, owner, effect=effect))

    def _leave_open(self, wanted: Wanted) -> None:
        self.open.append(wanted)
        effect = wanted.effect
        if isinstance(effect, AskPerson) and effect.within is not None:
            expiry = Delivery(self, Expired(), self, wanted.owner, ends=wanted, effect=effect)
            self.world.agenda.put(expiry, effect.within)

    def _release(self, left: Collection[str]) -> None:
        """End what belonged to the states that were left."""
        self.world.agenda.forget_all(lambda delivery: delivery.source is self and delivery.owner in left)
        self.open = [wanted for wanted in self.open if wanted.owner not in left]
        for child in [child for child in self.children.values() if child.owner in left]:
            self._cancel(child)

    def _drop_everything(self) -> None:
        agenda = self.world.agenda
        agenda.forget(lambda delivery: delivery.source is self or delivery.to is self)
        self.open = []
        for child in list(self.children.values()):
            self._cancel(child)

    # children

    def _start_child(self, effect: StartChild, owner: str | None) -> None:
        id = effect.id or f"{owner or self.machine.name}.{len(self.steps)}.{len(self.children)}"
        child = type(self).__new__(type(self))
        try:
            if id in self.children:
                raise Refused("another child has this id and is still running")
            child._set_up(self.world.machines[effect.machine], self.world)
            child.parent, child.id, child.owner = self, id, owner
            data = child._first_data(effect.input)
        except KeyError:
            self._hear(self._failed(id, f"no machine is called {effect.machine!r}"), owner)
        except MoothallError as error:
            self._hear(self._failed(id, str(error)), owner)
        else:
            self.children[id] = child
            child._begin(data)

    def _cancel(self, child: Simulation) -> None:
        """Ask a child to stop. Whatever it does from now on, its parent does not hear of it."""
        del self.children[child.id]
        child.parent = None
        child._offer(Cancelled(f"{self.machine.name} left {child.owner}"), None)

    def _tell_parent(self) -> None:
        parent = self.parent
        if parent is not None and parent.children.get(self.id) is self:
            del parent.children[self.id]
            snapshot = self.snapshot
            if snapshot.status == "done":
                parent._hear(parent._done(self.id, snapshot.output), self.owner)
            else:
                parent._hear(parent._failed(self.id, f"{snapshot.status}: {snapshot.reason}"), self.owner)

    def _hear(self, event: Event, owner: str | None) -> None:
        self.world.agenda.put(Delivery(self, event, self, owner, effect=StartChild("")))

    def _done(self, id: str, output: Any) -> Event:
        return ChildDone(f"{ChildDone.name}.{id}", output)

    def _failed(self, id: str, reason: str) -> Event:
        return GaveUp(f"child {id}: {reason}")

    def _restless(self) -> DefinitionError:
        return DefinitionError(
            f"machine {self.machine.name} does not come to rest: {PATIENCE} deliveries at {self.now:g} s, "
            f"and it still goes on in {', '.join(self.active)}; look for a timer or a send that renews itself"
        )


# walks


class Chance(Protocol):
    """What a walk needs of `random.Random`."""

    def choice(self, seq: Sequence[T], /) -> T: ...


Choose = Callable[[Simulation, str], Event | None]


def walk(machine: Machine, data: Any = None, *, chance: Chance, steps: int, choose: Choose | None = None) -> Simulation:
    """Walk through a machine at random, from its start; see `wander`."""
    return wander(Simulation(machine, data), chance=chance, steps=steps, choose=choose)


def wander(simulation: Simulation, *, chance: Chance, steps: int, choose: Choose | None = None) -> Simulation:
    """Go on at random: offer one possible event after the other, or let time pass where something is due.

    `choose` makes the event for a name (None: pass this turn); without it, the event is made without fields.
    It ends after so many turns, at the end of the run, or where nothing is possible.
    """
    make = choose or _plain
    for _ in range(steps):
        names: list[str | None] = [*possible(simulation.machine, simulation.snapshot)]
        if simulation.due is not None:
            names.append(None)
        if not names:
            break
        name = chance.choice(names)
        if name is None:
            simulation.tick()
        elif (event := make(simulation, name)) is not None:
            simulation.send(event)
    return simulation


def _plain(simulation: Simulation, name: str) -> Event | None:
    kind = simulation.machine.vocabulary.get(name)
    if kind is None:
        return Named("anything" if name == "*" else name)
    try:
        return kind()
    except TypeError:
        return None


def _kinds(open: Sequence[Wanted]) -> list[str]:
    return [wanted.effect.kind for wanted in open]
