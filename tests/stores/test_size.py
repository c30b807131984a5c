"""A snapshot is kept whole at every step, so it must stay small; what grows is a thread."""

from pathlib import Path

import pytest

from moothall.errors import DefinitionError
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.stores.sqlite import SqliteStore
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, hall_of


@pytest.mark.anyio
async def test_a_snapshot_that_grows_beyond_the_limit_is_refused_and_the_run_stands_where_it_stood(
    tmp_path: Path,
) -> None:
    def hoard(basket: Basket, event: Fetched) -> Basket:
        return Basket(tuple(f"{event.what} {number}" for number in range(100_000)))

    machine = Machine(
        "hoarder",
        data=Basket,
        states=[State("fetching", enter=Fetch("bread")), Final("home")],
        moves=[On("fetching", Fetched, to="home", do=hoard)],
    )
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_of(Hands(), store)
    await begun(hall, machine)
    with pytest.raises(DefinitionError, match=r"its snapshot would have \d+ KB.*belongs into a thread"):
        await drive(hall, RUN)
    assert (await store.load(RUN)).seq == 0
    store.close()
