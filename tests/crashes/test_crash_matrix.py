"""Wherever a worker dies, the next one goes on as if nothing had happened: nothing lost, nothing doubled.

Each scenario is lived once without a death, and its points are counted. Then it is lived anew for every point: a life
that dies there, and one that goes on. In a second dimension the life that goes on dies too, at each of its own points.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore
from tests.crashes.mortal import Desk, Scenario, Stage, Told
from tests.crashes.scenarios import SCENARIOS
from tests.simulation.loop import VirtualLoop, complete
from tests.simulation.shim import WRITES

POINTS = 1_286
"""So many points there are at least; fewer means that something is no longer looked at."""
TWICE = 10_010
"""So many pairs of points there are at least."""
EVERY = 37
"""In a hurry, one of so many pairs is tried."""
UNUSED = frozenset(("forget", "accept", "redact", "scrub", "take_turn"))
"""Writes that are in no life of a run: those of a person's commands (their deaths: tests/app/test_forgetting.py), and
the turn of a call to a provider, which changes nothing of a run: who dies behind it has used it up.
"""


@dataclass(frozen=True, slots=True)
class Lived:
    """What several lives left: the points that each passed, the journals, and the world outside."""

    passed: list[list[str]]
    told: Told
    desk: Desk


class Matrix:
    """Lives of all scenarios, each on a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._known: dict[tuple[str, bool, tuple[int, ...]], Lived] = {}
        SqliteStore(folder / "empty.db").close()

    def lives(self, scenario: Scenario, serving: bool, *deaths: int) -> Lived:
        """Lives that die at these points, one after the other, and a last one that does not."""
        if len(deaths) > 1:  # ten thousand of these, and nobody asks for one again
            return self._live(scenario, serving, deaths)
        key = (scenario.name, serving, deaths)
        if key not in self._known:
            self._known[key] = self._live(scenario, serving, deaths)
        return self._known[key]

    def _live(self, scenario: Scenario, serving: bool, deaths: tuple[int, ...]) -> Lived:
        self._files += 1
        file = self._folder / f"{self._files}.db"
        shutil.copy(self._folder / "empty.db", file)
        lived = live(scenario, serving, deaths, lambda: SqliteStore(file, durability="normal"))
        file.unlink()
        return lived


def live(scenario: Scenario, serving: bool, deaths: tuple[int, ...], open_store: Callable[[], Store]) -> Lived:
    """Lives that die at these points, one after the other, and a last one that does not."""
    stage = Stage(scenario, open_store, VirtualLoop(), serving)

    async def tell() -> Lived:
        passed = [await stage.live(deadly) for deadly in (*deaths, 0)]
        assert stage.deaths == len(deaths), "somebody lived who should have died"
        return Lived(passed, stage.told, stage.desk)

    return complete(stage.loop, tell())


def difference(lived: Lived, clean: Lived, same: Callable[[Told], Any] | None = None) -> str:
    """How lives with deaths differ from one without; "" where nobody could tell."""
    deaths = len(lived.passed) - 1
    told, done = (lived.told, clean.told), (lived.desk.done, clean.desk.done)
    if same is not None:
        told, done = (same(lived.told), same(clean.told)), (outcomes(lived.desk), outcomes(clean.desk))
    if told[0] != told[1]:
        return "\n".join(f"{run}: {_first_difference(told[0][run], told[1][run])}" for run in told[1])
    if done[0] != done[1]:
        return f"what was done outside is {done[0]}\nand not {done[1]}"
    doubled = {key: what for key, what in lived.desk.register.items() if len(what) > 1}
    often = {key: number for key, number in lived.desk.asked.items() if number > clean.desk.asked[key] + deaths}
    return f"done twice: {doubled}" if doubled else f"asked for more often than anybody died: {often}" if often else ""


def _first_difference(found: Any, expected: Any) -> str:
    pairs = zip_longest(found, expected)
    return next((f"found    {one}\n    expected {other}" for one, other in pairs if one != other), "is the same")


def outcomes(desk: Desk) -> Any:
    """What was done outside, whatever its keys were."""
    return sorted(repr(one) for one in desk.done.values())


BOTH = [(scenario, serving) for scenario in SCENARIOS for serving in (False, True)]
NAMES = [f"{scenario.name}-{'served' if serving else 'driven'}" for scenario, serving in BOTH]
CASES = [
    pytest.param(scenario, serving, id=name, marks=[pytest.mark.slow] if serving else [])
    for (scenario, serving), name in zip(BOTH, NAMES, strict=True)
]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(tmp_path_factory.mktemp("crashes"))


@pytest.mark.parametrize(("scenario", "serving"), CASES)
def test_who_dies_at_any_point_leaves_a_run_that_goes_on_as_if_nothing_had_happened(
    matrix: Matrix, scenario: Scenario, serving: bool
) -> None:
    clean = matrix.lives(scenario, serving)
    for point, name in enumerate(clean.passed[0], 1):
        lived = matrix.lives(scenario, serving, point)
        assert not (found := difference(lived, clean, scenario.same)), f"point {point}, {name}: {found}"


def pairs(matrix: Matrix, scenario: Scenario, serving: bool) -> Iterator[tuple[int, int]]:
    """Every point, with every point of the life after a death there."""
    for point in range(1, len(matrix.lives(scenario, serving).passed[0]) + 1):
        recovery = matrix.lives(scenario, serving, point).passed[1]
        yield from ((point, again) for again in range(1, len(recovery) + 1))


@pytest.mark.parametrize(("scenario", "serving"), BOTH, ids=NAMES)
@pytest.mark.slow
def test_who_goes_on_after_a_death_may_die_as_well(matrix: Matrix, scenario: Scenario, serving: bool) -> None:
    clean = matrix.lives(scenario, serving)
    tried = list(pairs(matrix, scenario, serving))[::EVERY]
    assert tried
    for point, again in tried:
        lived = matrix.lives(scenario, serving, point, again)
        assert not (found := difference(lived, clean, scenario.same)), f"points {point} and {again}: {found}"


@pytest.mark.soak
@pytest.mark.unreplayed("the journals of lives with one death are decided again, and these are thousands")
@pytest.mark.parametrize(("scenario", "serving"), BOTH, ids=NAMES)
def test_who_goes_on_after_a_death_may_die_at_any_point_as_well(
    matrix: Matrix, scenario: Scenario, serving: bool
) -> None:
    clean = matrix.lives(scenario, serving)
    for point, again in pairs(matrix, scenario, serving):
        lived = matrix.lives(scenario, serving, point, again)
        assert not (found := difference(lived, clean, scenario.same)), f"points {point} and {again}: {found}"


@pytest.mark.soak
@pytest.mark.unreplayed("nothing is kept that was not kept above")
def test_there_are_as_many_pairs_of_points_as_there_were(matrix: Matrix) -> None:
    tried = sum(1 for scenario, serving in BOTH for _ in pairs(matrix, scenario, serving))
    print(f"{tried} pairs of points")
    assert tried >= TWICE


def test_there_are_as_many_points_as_there_were_and_every_write_is_one(matrix: Matrix) -> None:
    passed = [name for scenario, serving in BOTH for name in matrix.lives(scenario, serving).passed[0]]
    print(f"{len(passed)} points")
    assert len(passed) >= POINTS
    assert {f"before {name}" for name in WRITES - UNUSED} <= {*passed}
    assert {f"after {name}" for name in WRITES - UNUSED} <= {*passed}
