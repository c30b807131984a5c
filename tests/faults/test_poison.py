"""A run that brings its worker down is set aside after five crashes; the others come to their end."""

import asyncio
import signal
from collections import Counter

from moothall.runtime.worker import CRASHES
from tests.faults.place import Place, wait_for
from tests.faults.walks import left, statuses

HEALTHY = 100
POISON = "poison"
MOST_LIVES = 12
FINISHED = {"done": HEALTHY, "set aside: it brought its worker down 5 times in a row": 1}


def one_life(place: Place) -> int | None:
    """Let a worker work until it dies or nothing is left to do; its exit code where it died."""
    worker = place.start("worker", "--quiet")
    wait_for(lambda: worker.poll() is not None or not statuses(place)["live"], "the end of the worker or of all runs")
    if worker.poll() is not None:
        return worker.returncode
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    return None


def worked(place: Place) -> int:
    """Start workers, one after the other, until every run is over or set aside; how many died."""
    for deaths in range(MOST_LIVES):
        if (code := one_life(place)) is None:
            return deaths
        assert code == 9
    return MOST_LIVES


def prepared(place: Place, position: int) -> None:
    runs = [f"good-{number}" for number in range(HEALTHY)]
    asyncio.run(left(place, "SHORT", [*runs[:position], POISON, *runs[position:]]))
    (place.folder / f"die-{POISON}").touch()


def test_a_poisonous_run_among_a_hundred_is_set_aside_after_five_crashes(place: Place, figure: list[str]) -> None:
    prepared(place, 50)
    deaths = worked(place)
    assert statuses(place) == FINISHED
    assert deaths == CRASHES
    calls = Counter(place.calls())
    assert calls[f"{POISON} 1"] == CRASHES
    [shown] = [one for one in place.listed() if one["run"] == POISON]
    assert (shown["status"], shown["reason"]) == (
        "set aside",
        "it brought its worker down 5 times in a row; `moot resume` tries once more, `moot cancel` ends it",
    )
    repeated = calls.total() - CRASHES - HEALTHY
    figure.append(
        f"{HEALTHY} of {HEALTHY} healthy runs done, 1 set aside after {deaths} crashes, {repeated} calls repeated"
    )


def test_a_poisonous_run_does_not_take_along_those_that_were_under_way_beside_it(place: Place) -> None:
    (place.folder / "pause-1").write_text("0.5")
    prepared(place, 50)
    deaths = worked(place)
    assert (statuses(place), deaths) == (FINISHED, CRASHES)
