"""A run that was set aside goes on with the commit of the note that says so, and with nothing before it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moothall.errors import DefinitionError, EffectFailed
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Answered
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall
from moothall.runtime.retry import Retry, retry
from moothall.stores.memory import MemoryStore
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, hall_of, happened, keep
from tests.simulation.shim import WRITES, Given, StoreShim

ASIDE = "set aside: it brought its worker down"


def asking(prompt: str, what: str = "bread") -> Machine:
    """Fetches something and asks a question, in these words."""
    return Machine(
        "asking",
        data=Basket,
        states=[State("fetching", enter=Fetch(what)), State("asking", enter=AskPerson(prompt)), Final("home")],
        moves=[On("fetching", Fetched, to="asking", do=keep), On("asking", Answered, to="home")],
    )


class Counting(StoreShim):
    """A store that notes what is written, and loses the next commit where it is told to."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(strict=True))
        self.written: list[str] = []
        self.is_lost = False

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        if name in WRITES:
            self.written.append(name)
            if self.is_lost:
                raise EffectFailed("the disk is full")
        return await call()


async def hall_with_a_run_aside() -> tuple[Hall, Counting, Hands]:
    store, hands = Counting(), Hands()
    hall = hall_of(hands, store)
    await begun(hall, asking("Well?"))
    await store.inner.set_aside(RUN, "it brought its worker down")
    store.written.clear()
    return hall, store, hands


@pytest.mark.anyio
@pytest.mark.parametrize("machine", [asking("Well?"), asking("Is it well?")], ids=["same", "in other words"])
async def test_it_is_taken_back_by_one_commit(machine: Machine) -> None:
    hall, store, hands = await hall_with_a_run_aside()
    await retry(hall, RUN, machine, Retry("ada"))
    assert (store.written, (await store.inner.load(RUN)).status) == (["commit"], "live")
    assert (await drive(hall, RUN)).snapshot.active == ("asking",)
    assert (await happened(hall), hands.asked) == (["run.started", "run.retried", "fetched"], ["bread"])


@pytest.mark.anyio
async def test_where_that_commit_is_lost_it_stays_aside() -> None:
    hall, store, _ = await hall_with_a_run_aside()
    store.is_lost = True
    with pytest.raises(EffectFailed, match="the disk is full"):
        await retry(hall, RUN, asking("Well?"), Retry("ada"))
    assert (await store.inner.load(RUN)).status == ASIDE


@pytest.mark.anyio
async def test_under_a_definition_that_decides_otherwise_it_stays_aside() -> None:
    hall, store, _ = await hall_with_a_run_aside()
    with pytest.raises(DefinitionError, match="cannot go on under this definition"):
        await retry(hall, RUN, asking("Well?", "milk"), Retry("ada"))
    assert (store.written, (await store.inner.load(RUN)).status) == ([], ASIDE)
