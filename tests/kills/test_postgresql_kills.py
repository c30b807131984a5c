"""Several workers on one PostgreSQL store: killed, made to stand still, cut off, and the server restarted under them.

No run is lost and no payment is taken twice, whatever happens.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest

from moothall import Moothall
from moothall.app.kinds.source import find
from moothall.app.runs.replay import replay
from moothall.kernel.machine import Machine
from moothall.runtime.ports import SET_ASIDE, Store
from tests.cli.process import hired
from tests.postgres import PostgresServer, served

PATIENCE = 300.0


class Shop:
    """A folder with the machine in it, a database, and the workers that are at it."""

    def __init__(self, folder: Path, server: PostgresServer, address: str, seed: int) -> None:
        shutil.copy(Path(__file__).with_name("payments.py"), folder)
        self.folder, self.server, self.address = folder, server, address
        self.chance = random.Random(seed)
        self.options: tuple[str, ...] = ()
        self.workers: list[subprocess.Popen[bytes]] = []
        self.happened: Counter[str] = Counter()
        self.machine: Machine = find(f"{folder / 'payments.py'}:SHOP")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no worker behind."""
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def hire(self) -> None:
        """Start a worker."""
        self.workers.append(hired(self.folder, self.address, "--quiet", *self.options))

    def at_work(self) -> list[subprocess.Popen[bytes]]:
        """The workers that hold runs now."""
        owners = self.server.execute("SELECT DISTINCT owner FROM moothall.runs", self.address.rpartition("/")[2])
        holders = {owner.split(":")[1] for owner in owners.splitlines() if ":" in owner}
        return [worker for worker in self.workers if str(worker.pid) in holders]

    async def wait_for_work(self) -> None:
        """Wait until somebody is at work."""

        async def is_busy() -> bool:
            return bool(self.at_work())

        await wait_until(is_busy)

    def kill(self) -> None:
        """Kill a worker, one that is at work if there is one, and start another."""
        worker = self.chance.choice(self.at_work() or self.workers)
        self.workers.remove(worker)
        worker.kill()
        worker.wait()
        self.happened["kills"] += 1
        self.hire()

    def stall(self) -> subprocess.Popen[bytes]:
        """Make a worker stand still until its leases are over; everything that it holds is free to others."""
        worker = self.chance.choice(self.at_work() or self.workers)
        worker.send_signal(signal.SIGSTOP)
        late = f"UPDATE moothall.runs SET until = until - 90 WHERE owner LIKE '%:{worker.pid}:%'"
        self.server.execute(late, self.address.rpartition("/")[2])
        self.happened["stalls"] += 1
        return worker

    def restart(self) -> None:
        """Restart the server without a word to anybody."""
        self.server.restart()
        self.happened["restarts"] += 1

    def cut(self) -> None:
        """Cut off everybody."""
        self.happened["connections cut"] += self.server.cut_connections()

    def dismiss(self) -> None:
        """Stop all workers."""
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self.workers:
            worker.wait(60)

    def describe_runs(self) -> str:
        """How the runs are that have not ended, and how many workers are there."""
        living = sum(worker.poll() is None for worker in self.workers)
        columns = "run, status, seq, owner, token, to_timestamp(until), to_timestamp(wake), crashes"
        live = f"SELECT {columns} FROM moothall.runs WHERE status <> 'done'"
        return f"{living} workers, and of the runs:\n{self.server.execute(live, self.address.rpartition('/')[2])}"

    def calls(self, name: str) -> Counter[str]:
        """How often something was done for each order, as the world outside has seen it."""
        log = self.folder / "receiver.log"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return Counter(what for tool, what, _ in calls if tool == name)


async def begin_runs(shop: Shop, count: int) -> None:
    """Begin runs, and leave them to the workers."""
    async with Moothall(shop.address, listeners=()) as hall:
        for number in range(count):
            await hall.start(shop.machine, {"what": f"order {number}"}, run_id=f"order-{number}")


async def wait_until(done: Callable[[], Awaitable[bool]], describe: Callable[[], str] = lambda: "") -> None:
    until = time.monotonic() + PATIENCE
    while not await done():
        assert time.monotonic() < until, f"the runs do not come to their ends; {describe()}"
        await asyncio.sleep(0.2)


async def unsettled(store: Store) -> list[str]:
    """The runs that somebody should be at work on."""
    return [known.record.run for known in await store.runs() if known.status == "live" and not _doubts(known.head)]


def _doubts(head: Any) -> bool:
    return any(pending.get("doubt") for pending in head["pending"])


async def settle(shop: Shop, count: int) -> None:
    """Wait until the workers have done what they can, then do what a person does: look what became of a payment."""
    async with Moothall(shop.address, listeners=()) as hall:

        async def is_settled() -> bool:
            for known in await hall.store.runs():
                if known.status.startswith(SET_ASIDE):
                    shop.happened["set aside"] += 1
                    await hall.store.take_back(known.record.run)
            return not await unsettled(hall.store)

        await wait_until(is_settled, shop.describe_runs)
        shop.dismiss()
        for known in await hall.store.runs():
            if known.status == "live":
                shop.happened["payments looked up"] += 1
                number = known.record.run.rpartition("-")[2]
                was_paid = shop.calls("pay")[f"order {number}"] > 0
                finding = {"outcome": "done", "value": "paid"} if was_paid else {"outcome": "again"}
                await hall.answer(known.record.run, finding, machine=shop.machine)
        await check(shop, hall.store, count)


async def check(shop: Shop, store: Store, count: int) -> None:
    """Every run has come to its end, was paid for once, and its journal is decided the same again."""
    stored = await store.runs()
    assert Counter(known.status for known in stored) == {"done": count}
    assert shop.calls("pay") == {f"order {number}": 1 for number in range(count)}
    assert shop.calls("pack").keys() == {f"order {number}" for number in range(count)}
    for known in stored:
        entries = await store.entries(known.record.run)
        assert [entry["seq"] for entry in entries] == list(range(len(entries)))
        assert len({entry["cause"] for entry in entries}) == len(entries)
        assert (await replay(store, known.record.run, shop.machine)).difference is None


def told(shop: Shop, runs: int) -> str:
    happened = ", ".join(f"{count} {name}" for name, count in sorted(shop.happened.items()))
    return f"PostgreSQL: {runs} runs, {happened}: 0 lost, 0 doubled"


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.unreplayed("the journals are written by many processes, and replayed here")
async def test_workers_that_are_killed_stalled_and_cut_off_lose_no_run_and_take_no_payment_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: list[str]
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    monkeypatch.setenv("PAUSE", "2.0")
    with served() as server, server.database() as address, Shop(tmp_path, server, address, seed=1) as shop:
        await begin_runs(shop, 24)
        for _ in range(3):
            shop.hire()
        for turn in (shop.kill, shop.cut, shop.kill, shop.restart, shop.kill):
            await shop.wait_for_work()
            await asyncio.sleep(shop.chance.uniform(0.0, 0.5))
            turn()
        await shop.wait_for_work()
        stalled = shop.stall()
        await asyncio.sleep(6.0)
        stalled.send_signal(signal.SIGCONT)
        await settle(shop, 24)
        figure.append(told(shop, 24))
    assert (shop.happened["kills"], shop.happened["restarts"], shop.happened["stalls"]) == (3, 1, 1)
    assert shop.happened["connections cut"] > 0


@pytest.mark.soak
@pytest.mark.anyio
@pytest.mark.unreplayed("the journals are written by many processes, and replayed here")
async def test_two_hundred_kills_over_five_hundred_runs_lose_nothing_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: list[str]
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    monkeypatch.setenv("PAUSE", "1.0")
    with served() as server, server.database() as address, Shop(tmp_path, server, address, seed=2) as shop:
        await begin_runs(shop, 500)
        for _ in range(4):
            shop.hire()
        restart, stalled = time.monotonic() + 20, list[tuple[float, subprocess.Popen[bytes]]]()
        while shop.happened["kills"] < 200:
            await asyncio.sleep(shop.chance.uniform(0.0, 0.5))
            for until, worker in [known for known in stalled if known[0] < time.monotonic()]:
                worker.send_signal(signal.SIGCONT)
                stalled.remove((until, worker))
            if time.monotonic() > restart:
                restart = time.monotonic() + shop.chance.uniform(5, 40)
                shop.restart()
            elif shop.chance.random() < 0.05:
                shop.cut()
            elif shop.chance.random() < 0.05 and not stalled:
                stalled.append((time.monotonic() + 8.0, shop.stall()))
            else:
                shop.kill()
        await settle(shop, 500)
        figure.append(told(shop, 500))
