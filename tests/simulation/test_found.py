"""What the simulation found, each in the smallest world that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from moothall.errors import EffectFailed, Refused
from moothall.kernel.effects import Alarm, AskPerson, StartChild
from moothall.kernel.events import Answered, AttemptFailed, ChildDone, Exhausted, Named
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.children import child_id
from moothall.runtime.crew import PULSE
from moothall.runtime.drive import drive
from moothall.runtime.hall import (
    Bindings,
    ChildSpec,
    Hall,
    advance,
    answer,
    begin,
    cancel,
    leave,
    let_go,
    reopen,
    visiting,
)
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import LEASE, Performer
from moothall.runtime.retry import Retry, retry
from moothall.runtime.serve import serve
from moothall.stores.memory import MemoryStore
from tests.runtime.clock import SPEED, FastClock
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, asking, fan, hall_of, keep, line, machine_limits
from tests.simulation.loop import VirtualLoop, complete
from tests.simulation.machines import Enter, Stamp, extended, reworded
from tests.simulation.shim import Given, StoreShim

Act = Callable[[], Awaitable[None]]


class Gate(StoreShim):
    """A store in which the next calls of a method meet what the test has put in their way."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(strict=True))
        self.in_the_way: dict[str, list[Act]] = {}
        self.on_the_way_back: dict[str, list[Act]] = {}

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.in_the_way.get(name):
            await self.in_the_way[name].pop(0)()
        found = await call()
        if self.on_the_way_back.get(name):
            await self.on_the_way_back[name].pop(0)()
        return found

    def fail(self, *names: str) -> None:
        """Let the next call of each of these fail."""

        async def failing() -> None:
            raise EffectFailed("the store is out of reach")

        for name in names:
            self.in_the_way.setdefault(name, []).append(failing)

    def hold(self, name: str, *, answer: bool = False) -> asyncio.Event:
        """Let the next call of this, or its answer, wait until the event is set."""
        gate = asyncio.Event()

        async def waiting() -> None:
            await gate.wait()

        where = self.on_the_way_back if answer else self.in_the_way
        where.setdefault(name, []).append(waiting)
        return gate


async def _nothing() -> None:
    """Nothing is in the way."""


def in_a_world(scene: Callable[[Hall, Gate, Hands], Coroutine[Any, Any, None]]) -> None:
    """Play a scene with one hall, its hands and its store, in virtual time."""
    loop = VirtualLoop()

    async def play() -> None:
        hands, store = Hands(), Gate()
        gated: Any = store
        await scene(
            Hall(gated, FastClock(loop), {Fetch.kind: Performer(Fetch, hands)}, owner="far:1:here"), store, hands
        )

    complete(loop, play())


async def begun(hall: Hall, run: RunId = RUN, machine: Machine | None = None) -> None:
    machine = machine or line("bread")
    limits = machine_limits(machine)
    await begin(hall, Record(run, machine.name, machine.digest, hall.clock.now(), limits=limits), machine, Basket())


def test_a_run_whose_release_failed_can_be_driven_again() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall)
        store.fail("commit", "release")
        with pytest.raises(EffectFailed):
            await drive(hall, RUN)
        await reopen(hall, RUN, line("bread"))
        assert (await drive(hall, RUN)).snapshot.status == "done"

    in_a_world(scene)


def test_a_lease_whose_release_failed_runs_out_and_another_worker_takes_over() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall)
        store.fail("commit", "release")
        with pytest.raises(EffectFailed):
            await drive(hall, RUN)
        await asyncio.sleep(2 * LEASE / SPEED)
        other = hall_of(hands, hall.store, hall.clock)
        await reopen(other, RUN, line("bread"))
        assert (await drive(other, RUN)).snapshot.status == "done"

    in_a_world(scene)


def test_a_worker_that_is_stopped_while_it_lets_go_drives_nothing_any_more() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread")
        await begun(hall)
        store.hold("release")
        driving = asyncio.create_task(drive(hall, RUN))
        for _ in range(2):
            await asyncio.sleep(0.01)
            driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert not hall.crew.drives
        assert hall.crew.pulse is None

    in_a_world(scene)


def test_the_pulse_outlives_a_run_that_ends_while_it_asks_for_news() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        await begun(hall)
        await begun(hall, "other", line("milk"))
        gate = store.hold("seq")
        first, second = (asyncio.create_task(drive(hall, run)) for run in (RUN, "other"))
        await asyncio.sleep(1.5 * PULSE)
        hands.open("bread")
        await first
        leave(hall, RUN)
        gate.set()
        await asyncio.sleep(2 * LEASE / SPEED)
        lease = (await store.inner.load("other")).lease
        hands.open("milk")
        await second
        assert lease.until > hall.clock.now()

    in_a_world(scene)


def test_the_pulse_outlives_a_run_that_ends_while_it_asks_for_another() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        await begun(hall)
        await begun(hall, "other", line("milk"))
        gate = store.hold("seq")
        first, second = (asyncio.create_task(drive(hall, run)) for run in (RUN, "other"))
        await asyncio.sleep(1.5 * PULSE)
        hands.open("milk")
        await second
        leave(hall, "other")
        gate.set()
        await asyncio.sleep(2 * LEASE / SPEED)
        lease = (await store.inner.load(RUN)).lease
        hands.open("bread")
        await first
        assert lease.until > hall.clock.now()

    in_a_world(scene)


def test_an_old_answer_of_the_store_does_not_bring_back_what_was_done() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        await begun(hall, RUN, fan("bread", "milk"))
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(2)
        other = hall_of(hands, hall.store, hall.clock)
        await reopen(other, RUN, fan("bread", "milk"))
        await advance(other, RUN, (Named("knock"), "knock-1"))
        gate = store.hold("load", answer=True)
        await asyncio.sleep(1.5 * PULSE)
        hands.open("bread")
        await asyncio.sleep(0.1)
        gate.set()
        await asyncio.sleep(0.1)
        hands.open("milk")
        await driving
        assert hands.asked == ["bread", "milk"]

    in_a_world(scene)


def test_a_late_acknowledgement_does_not_bring_back_what_was_done() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        await begun(hall, RUN, fan("bread", "milk"))
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(2)
        gate = store.hold("commit", answer=True)
        telling = asyncio.create_task(advance(hall, RUN, (Named("knock"), "knock-1")))
        await asyncio.sleep(1.5 * PULSE)
        hands.open("bread")
        await asyncio.sleep(0.1)
        gate.set()
        await telling
        await asyncio.sleep(0.1)
        hands.open("milk")
        await driving
        assert hands.asked == ["bread", "milk"]

    in_a_world(scene)


def test_an_attempt_that_ends_late_does_not_count_for_the_next_one() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        hands.raising = {"bread": [OSError("spilt")]}
        await begun(hall, RUN, fan("bread", "milk"))
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(2)
        other = hall_of(hands, hall.store, hall.clock)
        await reopen(other, RUN, fan("bread", "milk"))
        await advance(other, RUN, (AttemptFailed("spilt elsewhere"), "0.0-1"))
        await asyncio.sleep(2 * PULSE)
        hands.open("bread")
        await asyncio.sleep(2 * PULSE)
        hands.open("milk")
        await driving
        causes = [entry["cause"] for entry in await store.inner.entries(RUN)]
        assert causes == ["start", "0.0-1", "0.0", "0.1"]

    in_a_world(scene)


def test_what_the_budget_does_not_cover_is_not_covered_after_one_more_failure() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        machine = Machine(
            "poor", data=Basket, budget=Budget(calls=1), states=[State("one", enter=Fetch("bread"))], moves=[]
        )
        await begun(hall, RUN, machine)
        await advance(hall, RUN, (AttemptFailed("spilt"), "0.0-1"))
        assert hall.runs[RUN].head.pending[0].denied == "calls"
        await advance(hall, RUN, (AttemptFailed("spilt again"), "0.0-2"))
        assert hall.runs[RUN].head.pending[0].denied == "calls"

    in_a_world(scene)


def test_two_people_at_one_door_do_not_forget_the_run_for_each_other() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall, RUN, asking())

        async def person() -> str:
            with visiting(hall, RUN):
                await reopen(hall, RUN, asking())
                return (await answer(hall, RUN, "well", "0.0")).received

        gate = store.hold("commit")
        first, second = asyncio.create_task(person()), asyncio.create_task(person())
        assert await second == "taken"
        gate.set()
        assert await first == "duplicate"

    in_a_world(scene)


def test_a_worker_that_is_stopped_leaves_no_task_behind() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread", "milk")
        await begun(hall, RUN, fan("bread", "milk"))
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(2)
        await asyncio.sleep(0.01)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_a_world(scene)


def test_a_run_is_driven_once_in_a_hall_however_slow_the_store_is() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread")
        await begun(hall)
        await let_go(hall, RUN)
        store.in_the_way["load"] = [_nothing]
        gate = store.hold("load")
        driving = [asyncio.create_task(drive(hall, RUN)) for _ in range(2)]
        await asyncio.sleep(0.1)
        gate.set()
        await asyncio.sleep(0.1)
        hands.open("bread")
        ends = await asyncio.gather(*driving, return_exceptions=True)
        assert hands.asked == ["bread"]
        assert [type(end) for end in ends].count(Refused) == 1

    in_a_world(scene)


STAMPING = Machine(
    "stamping",
    data=Basket,
    states=[State("stamping", enter=Stamp("deed")), Final("stamped")],
    moves=[On("stamping", Fetched, to="stamped", do=keep)],
)


async def taken_over(hall: Hall, store: Gate, hands: Hands) -> None:
    """A run whose holder was silent for too long; another one began what it wants, and lost the store then."""
    hall.performers = {Stamp.kind: Performer(Stamp, hands)}
    await begun(hall, RUN, STAMPING)
    await asyncio.sleep(2 * LEASE / SPEED)
    other = hall_of(hands, hall.store, hall.clock)
    other.performers = hall.performers
    await reopen(other, RUN, STAMPING)
    store.in_the_way["commit"] = [_nothing]
    store.fail("commit")
    with pytest.raises(EffectFailed):
        await drive(other, RUN)


def test_what_may_be_done_once_is_not_done_by_a_worker_that_comes_back_late() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await taken_over(hall, store, hands)
        head = await drive(hall, RUN)
        assert hands.asked == ["deed"]
        assert head.pending[0].doubt

    in_a_world(scene)


def test_what_may_be_done_once_is_not_done_again_by_a_worker_that_lost_the_run_for_a_while() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hall.performers = {Stamp.kind: Performer(Stamp, hands)}
        hands.shut("deed")
        await begun(hall, RUN, STAMPING)
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(1)
        await store.claim(RUN, (await store.load(RUN)).lease, "far:1:there", hall.clock.now())
        await asyncio.sleep(LEASE / SPEED)
        hands.open("deed")
        head = await driving
        assert hands.asked == ["deed"]
        assert head.pending[0].doubt

    in_a_world(scene)


def test_a_worker_that_comes_back_late_does_not_go_in_circles() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await taken_over(hall, store, hands)
        await drive(hall, RUN)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        assert loop.circles == 0

    in_a_world(scene)


def test_a_worker_that_takes_a_run_back_with_a_commit_does_not_trust_its_marks_from_before() -> None:
    entering = Machine(
        "entering",
        data=Basket,
        states=[State("entering", enter=[Enter("deed"), Enter("will")]), Final("entered")],
        moves=[
            On("entering", Fetched, to="entered", when=lambda basket, _: len(basket.got) == 1, do=keep),
            On("entering", Fetched, do=keep),
        ],
    )

    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hall.performers = {Enter.kind: Performer(Enter, hands)}
        await begun(hall, RUN, entering)
        store.in_the_way["commit"] = [_nothing]
        gate = store.hold("commit")
        driving = asyncio.create_task(drive(hall, RUN))
        await asyncio.sleep(0.01)
        other = await store.claim(RUN, (await store.load(RUN)).lease, "far:1:there", hall.clock.now() + LEASE)
        await store.release(RUN, other)
        gate.set()
        await driving
        assert {what: context.again for what, context in hands.calls} == {"deed": True, "will": False}

    in_a_world(scene)


def with_child(hall: Hall, child: Machine) -> None:
    """Let the run of a hall start this child."""
    own = Bindings(hall.performers)
    part = ChildSpec(child, "", False, lambda given: Basket(), own)
    hall.bind(RUN, Bindings(hall.performers, child=lambda name: part))


PATIENT = Machine(
    "patient",
    data=Basket,
    states=[State("waiting", enter=[StartChild("line"), Alarm(Named("tired"), 5.0)]), Final("home")],
    moves=[On("waiting", "tired", to="home")],
)


def test_a_child_that_is_called_off_is_stopped_by_whoever_drives_it() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("bread")
        with_child(hall, line("bread"))
        await begun(hall, RUN, PATIENT)
        async with asyncio.timeout(3):
            head = await drive(hall, RUN)
        assert (head.snapshot.status, head.pending) == ("done", ())

    in_a_world(scene)


async def called_off(hall: Hall, hands: Hands) -> None:
    """A run that was told to stop after its driver had gone, while its child was at work."""
    hands.shut("bread")
    with_child(hall, line("bread"))
    await begun(hall, RUN, PATIENT)
    driving = asyncio.create_task(drive(hall, RUN))
    await hands.wait_for_calls(1)
    driving.cancel()
    await asyncio.wait([driving])
    await cancel(hall, RUN, "enough", "stop-1")


def test_a_child_that_is_called_off_ends_also_when_its_driver_is_gone() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await called_off(hall, hands)
        async with asyncio.timeout(3):
            head = await drive(hall, RUN)
        assert (head.snapshot.status, head.pending) == ("cancelled", ())

    in_a_world(scene)


def test_a_child_that_is_called_off_is_not_forgotten_because_somebody_else_leaves_it() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await called_off(hall, hands)
        gate, child = store.hold("commit"), child_id(RUN, "0.0")
        driving = asyncio.create_task(drive(hall, RUN))
        await asyncio.sleep(0.1)
        with visiting(hall, child):
            await reopen(hall, child, line("bread"))
            await advance(hall, child, (Named("knock"), "knock-1"))
        gate.set()
        head = await driving
        assert (head.snapshot.status, head.pending) == ("cancelled", ())

    in_a_world(scene)


def test_a_child_that_is_called_off_may_be_just_being_opened_by_somebody_else() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await called_off(hall, hands)
        gate, child, changed = store.hold("entries"), child_id(RUN, "0.0"), extended(line("bread"), "never")
        with_child(hall, changed)
        with visiting(hall, child):
            opening = asyncio.create_task(reopen(hall, child, changed))
            await asyncio.sleep(0.01)
            driving = asyncio.create_task(drive(hall, RUN))
            await asyncio.sleep(0.01)
            gate.set()
            await opening
        head = await driving
        assert (head.snapshot.status, head.pending) == ("cancelled", ())

    in_a_world(scene)


def test_a_child_that_the_budget_does_not_cover_ends_in_exhausted() -> None:
    poor = Machine(
        "poor",
        data=Basket,
        budget=Budget(calls=0),
        states=[State("delegating", enter=StartChild("line")), Final("away")],
        moves=[On("delegating", Exhausted, to="away")],
    )

    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        with_child(hall, line("bread"))
        await begun(hall, RUN, poor)
        assert (await drive(hall, RUN)).snapshot.active == ("away",)

    in_a_world(scene)


def test_a_parent_hears_of_its_childs_end_also_from_a_hall_that_knows_it_from_before() -> None:
    parent = Machine(
        "parent",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), State("delegating", enter=StartChild("line")), Final("home")],
        moves=[On("fetching", Fetched, to="delegating", do=keep), On("delegating", ChildDone.name, to="home")],
    )

    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        hands.shut("milk")
        other = hall_of(hands, hall.store, hall.clock)
        other.owner = "far:1:there"
        for one in (hall, other):
            with_child(one, line("milk"))
        await begun(hall, RUN, parent)
        await let_go(hall, RUN)
        await reopen(other, RUN, parent)
        driving = asyncio.create_task(drive(other, RUN))
        await hands.wait_for_calls(2)
        driving.cancel()
        await asyncio.wait([driving])
        hands.open("milk")
        child = child_id(RUN, "1.0")
        await reopen(hall, child, line("milk"))
        await drive(hall, child)
        assert [entry["event"]["name"] for entry in await store.inner.entries(RUN)][-1] == ChildDone.name

    in_a_world(scene)


def test_a_worker_that_cannot_look_for_work_for_a_moment_looks_again() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall)
        await store.release(RUN, hall.runs[RUN].lease)
        leave(hall, RUN)
        store.fail("due", "owners")
        stop = asyncio.Event()
        serving = asyncio.create_task(serve(hall, lambda run: reopen(hall, run, line("bread")), stop))
        await asyncio.sleep(10 * PULSE)
        stop.set()
        await serving
        assert hands.asked == ["bread"]

    in_a_world(scene)


def test_a_step_in_other_words_begins_with_their_adoption() -> None:
    held = Machine(
        "held",
        data=Basket,
        states=[
            State("asking", enter=[Fetch("bread"), AskPerson("Well?")]),
            State("asking_again", enter=AskPerson("Really?")),
            Final("home"),
        ],
        moves=[On("asking", Answered, to="asking_again"), On("asking_again", Answered, to="home")],
    )

    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall, RUN, held)
        other, words = hall_of(hands, hall.store, hall.clock), reworded(held, "Please say")
        await reopen(other, RUN, words)
        await answer(other, RUN, "well", "0.1")
        names = [entry["event"]["name"] for entry in await store.inner.entries(RUN)]
        assert names == ["run.started", "run.adopted", "answered"]
        stored = await store.inner.load(RUN)
        assert stored.definition() == words.digest
        assert [one["effect"]["prompt"] for one in stored.head["pending"]] == ["Please say: Really?"]

    in_a_world(scene)


def test_a_run_that_is_over_may_be_opened_whatever_its_machine_would_decide_today() -> None:
    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        await begun(hall, RUN, line("bread"))
        await drive(hall, RUN)
        head = await reopen(hall_of(hands, hall.store, hall.clock), RUN, line("milk"))
        assert (head.snapshot.status, len(await store.inner.entries(RUN))) == ("done", 2)

    in_a_world(scene)


def test_a_retry_with_a_larger_budget_covers_all_that_was_denied_at_once() -> None:
    poor = fan("bread", "milk", "salt")

    async def scene(hall: Hall, store: Gate, hands: Hands) -> None:
        record = Record(RUN, poor.name, poor.digest, hall.clock.now(), limits={"calls": 1})
        await begin(hall, record, poor, Basket())
        hands.shut("bread")
        driving = asyncio.create_task(drive(hall, RUN))
        await hands.wait_for_calls(1)
        hands.open("bread")
        assert (await driving).snapshot.status == "limited"
        await retry(hall, RUN, poor, Retry("ada", {"calls": 3}))
        head = await drive(hall, RUN)
        assert (head.snapshot.status, head.spent, sorted(hands.asked)) == (
            "done",
            {"calls": 3},
            ["bread", "milk", "salt"],
        )

    in_a_world(scene)
