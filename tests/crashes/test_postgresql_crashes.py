"""The crash matrix and the simulated worlds over a PostgreSQL server: nothing lost, doubled or made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ashore import Shore
from tests.crashes.mortal import Scenario
from tests.crashes.scenarios import SCENARIOS
from tests.crashes.test_crash_matrix import BOTH, NAMES, Lived, difference, live
from tests.postgres import PostgresServer
from tests.simulation.story import world_of

pytestmark = pytest.mark.unreplayed("one database has the runs of many lives, one after the other")

EVERY = 11
"""In a hurry, one of so many points is tried."""
WORLDS, MANY = 20, 3_000


@pytest.fixture(scope="module")
def shore(postgres: PostgresServer) -> Iterator[Shore]:
    with postgres.database() as address:
        shore = Shore(address)
        yield shore
        shore.close()


def lives(shore: Shore, scenario: Scenario, serving: bool, *deaths: int) -> Lived:
    shore.clear()
    return live(scenario, serving, deaths, shore.open_store)


def try_points(shore: Shore, scenario: Scenario, serving: bool, step: int) -> int:
    """Die at every so-manieth point; how many that were."""
    clean = lives(shore, scenario, serving)
    points = list(enumerate(clean.passed[0], 1))[step // 2 :: step]
    for point, name in points:
        found = difference(lives(shore, scenario, serving, point), clean, scenario.same)
        assert not found, f"point {point}, {name}: {found}"
    return len(points)


@pytest.mark.slow
def test_who_dies_at_any_point_leaves_a_run_in_postgresql_that_goes_on_as_if_nothing_had_happened(
    shore: Shore, figure: list[str]
) -> None:
    tried = sum(try_points(shore, scenario, index % 2 == 0, EVERY) for index, scenario in enumerate(SCENARIOS))
    figure.append(f"PostgreSQL: {tried} points of {len(SCENARIOS)} scenarios, none differs")
    assert tried > len(SCENARIOS)


@pytest.mark.soak
@pytest.mark.parametrize(("scenario", "serving"), BOTH, ids=NAMES)
def test_who_dies_at_each_point_leaves_a_run_in_postgresql_that_goes_on_as_if_nothing_had_happened(
    shore: Shore, scenario: Scenario, serving: bool, figure: list[str]
) -> None:
    tried = try_points(shore, scenario, serving, 1)
    figure.append(f"PostgreSQL: {tried} points")
    assert tried


def live_worlds(shore: Shore, folder: Path, seeds: range) -> tuple[Counter[str], int]:
    """Let worlds live; what happened in them, and how many entries they left."""
    happened: Counter[str] = Counter()
    entries = 0
    for seed in seeds:
        shore.clear()
        ended = world_of(seed, folder, shore.open_store)
        assert not ended.wrongs, f"seed {seed}: {' | '.join(ended.wrongs)}"
        happened += Counter({fault.name: count for fault, count in ended.happened.items()})
        entries += ended.entries
    return happened, entries


@pytest.mark.slow
def test_in_twenty_worlds_over_postgresql_nothing_is_lost_doubled_or_made_up(
    shore: Shore, tmp_path: Path, figure: list[str]
) -> None:
    happened, entries = live_worlds(shore, tmp_path, range(WORLDS))
    figure.append(f"PostgreSQL: {WORLDS} worlds, {entries} entries, {sum(happened.values())} faults, 0 violations")
    assert entries > 200
    assert happened["COMMIT_UNHEARD"] > 0


@pytest.mark.soak
def test_in_three_thousand_worlds_over_postgresql_nothing_is_lost_doubled_or_made_up(
    shore: Shore, tmp_path: Path, figure: list[str]
) -> None:
    happened, entries = live_worlds(shore, tmp_path, range(MANY))
    figure.append(f"PostgreSQL: {MANY} worlds, {entries} entries, {sum(happened.values())} faults, 0 violations")
    assert entries > 20_000
