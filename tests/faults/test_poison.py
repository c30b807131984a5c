"""A run that brings its worker down is set aside after five crashes; the others come to their end."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from moothall.runtime.drive import CRASHES
from moothall.runtime.hall import reopen
from moothall.runtime.ports import SET_ASIDE
from moothall.runtime.serve import serve
from moothall.stores.sqlite import SqliteStore
from tests.faults.place import Place, wait_for
from tests.faults.walks import left, statuses
from tests.runtime.clock import MovableClock
from tests.runtime.world import PROCESSES, RUN, Hands, begun, hall_of, line

pytestmark = pytest.mark.slow

POISON = "poison"
MOST_LIVES = 12


def one_life(place: Place, *options: str) -> int | None:
    """Let a worker work until it dies or nothing is left to do; its exit code where it died."""
    worker = place.start("worker", "--quiet", *options)
    wait_for(lambda: worker.poll() is not None or not statuses(place)["live"], "the end of the worker or of all runs")
    if worker.poll() is not None:
        return worker.returncode
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    return None


def worked(place: Place, *options: str) -> int:
    """Start workers, one after the other, until every run is over or set aside; how many died."""
    for deaths in range(MOST_LIVES):
        if (code := one_life(place, *options)) is None:
            return deaths
        assert code == 9
    return MOST_LIVES


def prepared(place: Place, before: int, after: int) -> None:
    """Healthy runs with a poisonous one among them."""
    runs = [f"good-{number}" for number in range(before + after)]
    asyncio.run(left(place, "SHORT", [*runs[:before], POISON, *runs[before:]]))
    (place.folder / f"die-{POISON}").touch()


def check_set_aside(place: Place, deaths: int) -> None:
    assert deaths == CRASHES
    assert Counter(place.calls())[f"{POISON} 1"] == CRASHES
    [shown] = [one for one in place.listed() if one["run"] == POISON]
    assert shown["status"] == "set aside"
    assert f"it brought its worker down {CRASHES} times in a row; `moot resume` tries once more" in shown["reason"]


def test_a_poisonous_run_is_set_aside_after_five_crashes(place: Place, figure: list[str]) -> None:
    prepared(place, 0, 0)
    deaths = worked(place, "--most", "1")
    check_set_aside(place, deaths)
    figure.append(f"a poisonous run: {deaths} workers died, then it was set aside")


@pytest.mark.parametrize("seconds", [0, pytest.param(0.5, marks=pytest.mark.soak)], ids=["quick ones", "slow ones"])
def test_a_poisonous_run_among_a_hundred_does_not_take_along_those_beside_it(
    place: Place, seconds: float, figure: list[str]
) -> None:
    (place.folder / "pause-1").write_text(str(seconds))
    prepared(place, 50, 50)
    deaths = worked(place)
    assert statuses(place) == {"done": 100, "set aside": 1}
    check_set_aside(place, deaths)
    figure.append(f"100 of 100 healthy runs done, 1 set aside after {deaths} crashes")


@pytest.mark.soak
def test_a_poisonous_run_among_a_hundred_that_are_driven_one_by_one_harms_nobody(
    place: Place, figure: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.faults.place.SOON", 120.0)
    prepared(place, 50, 50)
    deaths = worked(place, "--most", "1")
    assert statuses(place) == {"done": 100, "set aside": 1}
    check_set_aside(place, deaths)
    figure.append(f"100 of 100 healthy runs done, 1 set aside after {deaths} crashes")


@pytest.mark.anyio
async def test_the_reason_for_which_a_run_is_set_aside_is_told_once(tmp_path: Path) -> None:
    store, clock, stop, machine = SqliteStore(tmp_path / "runs.db"), MovableClock(), asyncio.Event(), line("bread")
    await begun(hall_of(Hands(), store, clock), machine)
    for _ in range(CRASHES - 1):
        await store.claim(RUN, (await store.load(RUN)).lease, next(PROCESSES), clock.now() + 30)
    hall = hall_of(Hands(), store, clock)

    async def open_run(run: str) -> None:
        await reopen(hall, run, machine)
        stop.set()

    await serve(hall, open_run, stop)
    await asyncio.sleep(0)
    status = (await store.load(RUN)).status
    store.close()
    assert status == f"{SET_ASIDE}it brought its worker down {CRASHES} times in a row"
