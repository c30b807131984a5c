"""Workers of runs that Temporal pumps are killed, and so is Temporal: nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.kills.test_postgresql_kills import Shop, begin_runs, settle, told
from tests.postgres import PostgresServer
from tests.postgres import served as postgres_served
from tests.temporal import TemporalServer, served

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.unreplayed("the journals are written by many processes, and replayed here"),
]


class PumpedShop(Shop):
    """A shop whose runs Temporal pumps."""

    def __init__(self, folder: Path, server: PostgresServer, address: str, temporal: TemporalServer) -> None:
        super().__init__(folder, server, address, seed=3)
        self.temporal = temporal
        self.options = ("--engine", temporal.engine)

    def kill_temporal(self) -> None:
        """Kill Temporal and start it again."""
        self.temporal.kill()
        self.temporal.start()
        self.happened["kills of Temporal"] += 1

    def lose_temporal(self) -> None:
        """Kill Temporal and start it again without anything that it knew."""
        self.temporal.kill()
        self.temporal.forget()
        self.temporal.start()
        self.happened["losses of all that Temporal knew"] += 1


@pytest.mark.slow
async def test_workers_and_temporal_are_killed_and_no_run_is_lost_and_no_payment_taken_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: list[str]
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    monkeypatch.setenv("PAUSE", "1.0")
    with (
        postgres_served() as server,
        server.database() as address,
        served() as temporal,
        PumpedShop(tmp_path, server, address, temporal) as shop,
    ):
        await begin_runs(shop, 24)
        for _ in range(3):
            shop.hire()
        for turn in (shop.kill, shop.kill_temporal, shop.kill, shop.restart, shop.kill, shop.lose_temporal):
            await shop.wait_for_work()
            await asyncio.sleep(shop.chance.uniform(0.0, 0.5))
            turn()
        await settle(shop, 24)
        figure.append(told(shop, 24))
    assert shop.happened["kills"] == 3
