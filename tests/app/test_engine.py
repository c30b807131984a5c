"""A store knows its one engine: another one is refused with what to do, and the store can be taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from moothall.app.runs.engine import pump_of
from moothall.errors import DefinitionError, Refused
from moothall.runtime.ports import EVERYTHING, Scope
from moothall.stores.memory import MemoryStore
from moothall.stores.postgresql import PostgresStore
from tests.cli.process import moot

pytestmark = pytest.mark.anyio
HERE, THERE = "temporal://here:7233", "temporal://there:7233"
TAKE_BACK = "when no other worker runs, `moot worker --engine own` takes the store back"


@pytest.fixture
def engine_store(postgres_store: PostgresStore) -> PostgresStore:
    """A store that has no engine yet."""
    pytest.importorskip("temporalio", reason="Temporal's library is not installed")
    return postgres_store


async def test_the_first_worker_with_an_engine_binds_the_store_and_others_with_the_same_may_join(
    engine_store: PostgresStore,
) -> None:
    assert await pump_of(engine_store, "", EVERYTHING) is None
    assert await engine_store.engine() == ""
    assert await pump_of(engine_store, HERE, EVERYTHING) is not None
    assert await engine_store.engine() == f"{HERE}/default"
    for same in (HERE, f"{HERE}/", f"{HERE}/default"):
        assert await pump_of(engine_store, same, EVERYTHING) is not None


async def test_another_engine_and_a_worker_without_one_are_refused_with_what_to_do(engine_store: PostgresStore) -> None:
    await pump_of(engine_store, HERE, EVERYTHING)
    bound = f"{HERE}/default"
    with pytest.raises(Refused) as none:
        await pump_of(engine_store, "", EVERYTHING)
    assert str(none.value) == (
        f"the runs of this store are pumped by {bound}; start the worker with --engine {bound}, or {TAKE_BACK}"
    )
    for other in (THERE, f"{HERE}/another"):
        with pytest.raises(Refused, match="pumps the runs of this store, not") as refused:
            await pump_of(engine_store, other, EVERYTHING)
        assert str(refused.value).endswith(f"; {TAKE_BACK} first")
    assert await engine_store.engine() == bound


async def test_own_takes_the_store_back_and_then_another_engine_may_have_it(engine_store: PostgresStore) -> None:
    await pump_of(engine_store, HERE, EVERYTHING)
    assert await pump_of(engine_store, "own", EVERYTHING) is None
    assert await engine_store.engine() == ""
    assert await pump_of(engine_store, THERE, EVERYTHING) is not None
    assert await engine_store.engine() == f"{THERE}/default"


@pytest.mark.parametrize("scope", [Scope(queues=("night",)), Scope(tenants=("ada",))])
async def test_an_engine_serves_all_queues_and_tenants(engine_store: PostgresStore, scope: Scope) -> None:
    with pytest.raises(Refused, match="leave out --queue and --tenant"):
        await pump_of(engine_store, HERE, scope)
    assert await engine_store.engine() == ""


async def test_only_a_store_on_a_server_can_have_an_engine() -> None:
    pytest.importorskip("temporalio", reason="Temporal's library is not installed")
    with pytest.raises(Refused, match="an engine pumps runs of a PostgreSQL store only"):
        await pump_of(MemoryStore(), HERE, EVERYTHING)
    assert await pump_of(MemoryStore(), "own", EVERYTHING) is None


@pytest.mark.parametrize(
    "address", ["temporal", "temporal://", "temporal://host", "http://host:1", "temporal://h:1/a/b"]
)
async def test_what_is_not_the_address_of_an_engine_is_refused(address: str) -> None:
    with pytest.raises(DefinitionError, match="is not the address of an engine; write temporal://HOST:PORT or `own`"):
        await pump_of(MemoryStore(), address, EVERYTHING)


@pytest.mark.slow
async def test_the_doctor_says_which_engine_drives_a_store(
    engine_store: PostgresStore, tmp_path: Path, database: str
) -> None:
    own = moot("doctor", "--store", database, home=tmp_path).stdout
    assert "own: workers of this store" in own
    await pump_of(engine_store, HERE, EVERYTHING)
    bound = moot("doctor", "--store", database, home=tmp_path).stdout
    assert f"{HERE}/default pumps the runs" in bound
    assert f"start workers with --engine {HERE}/default; `moot worker --engine own` takes the store back" in bound


@pytest.mark.slow
async def test_a_worker_without_the_engine_of_its_store_ends_and_says_why(
    engine_store: PostgresStore, tmp_path: Path, database: str
) -> None:
    await pump_of(engine_store, HERE, EVERYTHING)
    ended = moot("worker", "--store", database, "--until-idle", home=tmp_path)
    assert ended.returncode == 1
    assert f"start the worker with --engine {HERE}/default" in ended.stderr
    taken = moot("worker", "--store", database, "--until-idle", "--engine", "own", home=tmp_path)
    assert taken.returncode == 0, taken.stderr
    assert await engine_store.engine() == ""
