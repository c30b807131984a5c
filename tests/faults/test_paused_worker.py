"""Who pauses beyond its lease loses the run: another takes over, and what the first brings then is not taken twice."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.errors import Refused
from moothall.runtime.drive import drive
from moothall.runtime.hall import reopen
from moothall.runtime.ports import LEASE
from moothall.stores.sqlite import SqliteStore
from tests.faults.machines import STEPS
from tests.faults.place import RUN, Place, check_whole, told, wait_for
from tests.runtime.clock import MovableClock
from tests.runtime.world import QUICK, Hands, begun, hall_of, line, pause
from tests.runtime.world import RUN as TRIAL

pytestmark = pytest.mark.slow

STOPS = ("a", "b", "c", "d")
CAUSES = ["start", *(f"{seq}.0" for seq in range(STEPS))]


def paused(process: subprocess.Popen[str]) -> None:
    """Stop a process without a word, and come back when it really stands."""
    process.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{process.pid}/status")
    wait_for(lambda: "State:\tT" in status.read_text(), "the pause")


@pytest.fixture
def stopped(place: Place) -> Iterator[subprocess.Popen[str]]:
    """A real command that was stopped in the middle of its third step."""
    place.hold(3)
    process = place.start("run", "machines.py:WALK", "ada", "--run-id", RUN)
    place.under_way(3)
    paused(process)
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)


def test_a_stopped_process_is_left_alone_while_its_lease_lasts(place: Place, stopped: subprocess.Popen[str]) -> None:
    ran = place.moot("resume", RUN)
    assert ran.returncode == 9
    assert f"run {RUN} is being driven by" in ran.stderr
    assert f":{stopped.pid}:" in ran.stderr


def taken_over(place: Place, first: subprocess.Popen[str]) -> str:
    """Another command ends the run; then the first goes on and finds out. What it said at its end."""
    place.let(3)
    ran = place.moot("resume", RUN)
    assert ran.returncode == 0, ran.stderr
    before = place.entries()
    assert [entry["cause"] for entry in before] == CAUSES
    assert place.calls() == [f"ada {step}" for step in (1, 2, 3, 3, 4, 5)]
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=30)
    assert "Traceback" not in err
    assert told(place.entries()) == told(before)
    assert place.calls() == [f"ada {step}" for step in (1, 2, 3, 3, 4, 5)]
    assert place.row()["owner"] is None
    return err


def test_a_process_that_awakes_after_its_lease_finds_its_commit_refused(
    place: Place, stopped: subprocess.Popen[str], figure: list[str]
) -> None:
    place.change("UPDATE runs SET until = ? WHERE run = ?", time.time() - 1, RUN)
    taken_over(place, stopped)
    assert stopped.returncode == 0
    figure.append("a process stopped beyond its lease: 1 takeover, 0 transitions lost, 0 doubled")


def test_a_process_that_awakes_while_the_other_drives_leaves_the_run_to_it(
    place: Place, stopped: subprocess.Popen[str]
) -> None:
    place.hold(4)
    place.change("UPDATE runs SET until = ? WHERE run = ?", time.time() - 1, RUN)
    place.let(3)
    second = place.start("resume", RUN)
    place.under_way(5)
    stopped.send_signal(signal.SIGCONT)
    _, err = stopped.communicate(timeout=30)
    assert stopped.returncode == 9
    assert f"run {RUN} is being driven by" in err
    assert f":{second.pid}:" in err
    assert "Traceback" not in err
    place.let(4)
    second.communicate(timeout=30)
    assert second.returncode == 0
    assert [entry["cause"] for entry in place.entries()] == CAUSES
    assert place.calls() == [f"ada {step}" for step in (1, 2, 3, 3, 4, 5)]


@pytest.mark.soak
def test_a_process_that_is_stopped_for_longer_than_a_lease_really_loses_the_run(
    place: Place, stopped: subprocess.Popen[str]
) -> None:
    time.sleep(LEASE + 1)
    taken_over(place, stopped)


@pytest.mark.anyio
@pytest.mark.parametrize("ended", [True, False], ids=["when the other has ended it", "before the other has"])
async def test_a_worker_that_paused_at_any_step_brings_its_result_once(
    tmp_path: Path, ended: bool, figure: list[str]
) -> None:
    machine = line(*STOPS)
    for position, stop in enumerate(STOPS):
        file, clock, hands, others = tmp_path / f"{stop}.db", MovableClock(), Hands(), Hands()
        one_store, other_store = SqliteStore(file, durability="normal"), SqliteStore(file, durability="normal")
        one, other = hall_of(hands, one_store, clock, pulse=QUICK), hall_of(others, other_store, clock, pulse=QUICK)
        one.owner, other.owner = (f"{socket.gethostname()}:{os.getpid()}:{word}" for word in ("one", "other"))
        hands.shut(stop)
        others.shut(*(() if ended else (stop,)))
        await begun(one, machine)
        paused = asyncio.create_task(drive(one, TRIAL))
        await hands.wait_for_calls(position + 1)
        pause(one)
        clock.move(LEASE + 1)
        await reopen(other, TRIAL, machine)
        second = asyncio.create_task(drive(other, TRIAL))
        await (asyncio.wait([second]) if ended else others.wait_for_calls(1))
        hands.open(stop)
        if ended:
            assert (await paused).snapshot.status == "done"
        else:
            with pytest.raises(Refused, match="driven by"):
                await paused
            others.open(stop)
        assert (await second).snapshot.status == "done"
        entries = await one_store.entries(TRIAL)
        check_whole(entries)
        assert [entry["event"].get("what") for entry in entries[1:]] == list(STOPS)
        assert (hands.asked, others.asked) == (list(STOPS[: position + 1]), list(STOPS[position:]))
        one_store.close()
        other_store.close()
    figure.append(
        f"paused at {len(STOPS)} of {len(STOPS)} steps: 0 lost, 0 doubled, only the call in flight made twice"
    )
