"""Time and chance: a guard or move with a third parameter may ask for both, and they are the same for ever."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.errors import DefinitionError
from moothall.kernel.effects import Alarm
from moothall.kernel.events import Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.simulate import Simulation
from moothall.kernel.step import Instant, Moment
from moothall.runtime.drive import drive
from moothall.runtime.fork import fork, origin_of
from moothall.runtime.hall import Hall, begin
from moothall.runtime.journal import Head, Reader, Record, Run
from moothall.runtime.rebuild import compared
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock
from tests.runtime.world import PROCESSES


@dataclass(frozen=True, slots=True)
class Dice:
    """What was thrown, and when."""

    throws: tuple[float, ...] = ()
    at: tuple[float, ...] = ()
    order: tuple[str, ...] = ()


def throw(dice: Dice, event: Event, moment: Moment) -> Dice:
    """Throw a die and note the time."""
    return replace(dice, throws=(*dice.throws, moment.draw("die")), at=(*dice.at, moment.now))


def is_late(dice: Dice, event: Event, moment: Moment) -> bool:
    return moment.now - dice.at[0] >= 25


def seat(dice: Dice, event: Event, moment: Moment) -> Dice:
    return replace(dice, order=tuple(moment.shuffled(("ann", "bob", "eve"))))


THROWING = Machine(
    "throwing",
    data=Dice,
    states=[State("throwing", enter=[throw, Alarm(Named("rung"), 10)]), Final("over", enter=seat)],
    moves=[
        On("throwing", "rung", to="over", when=is_late),
        On("throwing", "rung", to="throwing", do=throw),
    ],
)
PLAIN = Machine("plain", data=Dice, states=[State("here")], moves=[On("here", "x", do=lambda dice, event: dice)])


def hall_on(store: SqliteStore) -> Hall:
    return Hall(store, HastyClock(), {}, owner=next(PROCESSES))


async def thrown(hall: Hall, run: str) -> Head:
    await begin(hall, Record(run, THROWING.name, THROWING.digest, hall.clock.now()), THROWING, Dice())
    return await drive(hall, run)


@pytest.mark.anyio
async def test_a_run_decided_again_sees_the_same_time_and_the_same_draws(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_on(store)
    head = await thrown(hall, "one")
    dice = head.snapshot.data
    entries = await store.entries("one")
    assert head.snapshot.status == "done"
    assert set(dice.at) == {entry["at"] for entry in entries[:-1]}
    assert dice.at[-1] - dice.at[0] >= 20
    assert sorted(dice.order) == ["ann", "bob", "eve"]
    again = compared(Run((await store.load("one")).record, THROWING), Reader(THROWING, {}), entries)
    assert isinstance(again, Head)
    assert again.snapshot == head.snapshot
    store.close()


@pytest.mark.anyio
async def test_draws_differ_from_run_to_run_and_from_step_to_step(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_on(store)
    one, two = (await thrown(hall, "one")).snapshot.data, (await thrown(hall, "two")).snapshot.data
    steps = len({*one.at}) + len({*two.at})
    assert len({*one.throws, *two.throws}) == steps >= 4
    store.close()


@pytest.mark.anyio
async def test_a_fork_shares_the_draws_up_to_where_it_parts_and_has_its_own_behind(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_on(store)
    one = (await thrown(hall, "one")).snapshot.data
    origin = await origin_of(hall, "one", 1, THROWING)
    record = Record("two", THROWING.name, THROWING.digest, hall.clock.now(), origin="one")
    await fork(hall, origin, record, repeats=True)
    head = await drive(hall, "two")
    shared = len(origin.head.snapshot.data.throws)
    two = head.snapshot.data
    assert two.throws[:shared] == one.throws[:shared]
    assert not {*two.throws[shared:]} & {*one.throws}
    known = Run((await store.load("two")).record, THROWING, Run((await store.load("one")).record, THROWING))
    again = compared(known, Reader(THROWING, {}), await store.entries("two"))
    assert isinstance(again, Head)
    assert again.snapshot == head.snapshot
    store.close()


def test_only_machines_that_ask_for_the_moment_are_given_one() -> None:
    assert THROWING.chart.asks_moment
    assert not PLAIN.chart.asks_moment


def test_a_simulation_has_a_time_and_draws_too() -> None:
    one, two = Simulation(THROWING, Dice()), Simulation(THROWING, Dice())
    one.advance(30)
    two.advance(30)
    assert one.snapshot.data == two.snapshot.data
    assert one.snapshot.data.at[-1] == 20
    assert one.snapshot.status == "done"


@pytest.mark.parametrize("many", [lambda: None, lambda data: data, lambda a, b, c, d: a])
def test_a_move_with_another_number_of_parameters_is_refused(many: Any) -> None:
    with pytest.raises(DefinitionError, match="has to take two arguments"):
        Machine("odd", states=[State("here")], moves=[On("here", "x", do=many)])


def moment_of(seed: str) -> Moment:
    def nobody(script: Any, scope: Any) -> Any:
        raise AssertionError("nobody evaluates scripts here")

    return Moment(frozenset(), nobody, Instant(1.0, seed))


@given(seed=st.text(), label=st.text(), items=st.lists(st.integers(), min_size=1, max_size=9))
def test_a_draw_follows_from_its_seed_and_label_alone(seed: str, label: str, items: list[int]) -> None:
    moment, again = moment_of(seed), moment_of(seed)
    assert 0 <= moment.draw(label) < 1
    assert moment.draw(label) == again.draw(label)
    assert moment.pick(items, label) == again.pick(items, label)
    assert moment.pick(items, label) in items
    assert moment.shuffled(items, label) == again.shuffled(items, label)
    assert sorted(moment.shuffled(items, label)) == sorted(items)


def test_draws_are_spread_evenly() -> None:
    draws = [moment_of(f"run.{step}").draw() for step in range(10_000)]
    tenths = [sum(tenth <= 10 * draw < tenth + 1 for draw in draws) for tenth in range(10)]
    assert all(850 <= number <= 1_150 for number in tenths), tenths
