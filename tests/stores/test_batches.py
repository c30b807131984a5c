"""What several runs want written at once goes together, and nobody is kept waiting for those who do not come back."""

import asyncio
from collections.abc import Sequence

import pytest

from moothall.errors import Conflict
from moothall.stores.batches import MOST, Batches


class Server:
    """Takes its time to keep a batch, and remembers the batches; `bad` says what it does not keep."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds, self.batches = seconds, list[list[str]]()
        self.bad: dict[str, Exception] = {}
        self.batch = Batches(self.write)

    async def write(self, wishes: Sequence[str]) -> list[Exception | None]:
        await asyncio.sleep(self.seconds)
        self.batches.append([*wishes])
        if error := self.bad.get("everything"):
            raise error
        return [self.bad.get(wish) for wish in wishes]

    async def walk(self, who: str, steps: int, pause: float = 0.0) -> None:
        for step in range(steps):
            await self.batch.have_written(who, f"{who}{step}")
            await asyncio.sleep(pause)


@pytest.mark.anyio
async def test_what_comes_while_a_batch_is_written_goes_into_the_next() -> None:
    server = Server()
    first = asyncio.create_task(server.batch.have_written("a", "a0"))
    await asyncio.sleep(server.seconds / 4)
    await asyncio.gather(*(server.batch.have_written(who, f"{who}0") for who in "bcd"))
    await first
    assert server.batches == [["a0"], ["b0", "c0", "d0"]]


@pytest.mark.anyio
async def test_runs_in_step_come_to_share_every_batch() -> None:
    server = Server()
    late = asyncio.create_task(server.walk("a", 8))
    await asyncio.sleep(server.seconds / 4)
    await asyncio.gather(late, *(server.walk(who, 8) for who in "bcd"))
    assert sorted(wish for batch in server.batches for wish in batch) == sorted(
        f"{w}{n}" for w in "abcd" for n in range(8)
    )
    shared = [{wish[0] for wish in batch} for batch in server.batches]
    assert shared.count({*"abcd"}) >= 5, shared


@pytest.mark.anyio
async def test_nobody_waits_for_one_that_takes_its_time() -> None:
    server = Server()
    slow = asyncio.create_task(server.walk("s", 3, pause=5 * server.seconds))
    await server.walk("a", 12)
    slow.cancel()
    alone = [batch for batch in server.batches if batch[0][0] == "a" and len(batch) == 1]
    assert len(alone) >= 8, server.batches
    began = asyncio.get_running_loop().time()
    await server.batch.have_written("b", "b0")  # nobody who was here is expected any more
    assert asyncio.get_running_loop().time() - began < 20 * server.seconds


@pytest.mark.anyio
async def test_each_hears_of_its_own_end_and_everybody_of_a_failure_of_all() -> None:
    server = Server()
    server.bad = {"b0": Conflict("too late")}
    wishes = [server.batch.have_written(who, f"{who}0") for who in "abc"]
    ends = await asyncio.gather(*wishes, return_exceptions=True)
    assert [type(end) for end in ends] == [type(None), Conflict, type(None)]
    server.bad = {"everything": Conflict("the server is gone")}
    wishes = [server.batch.have_written(who, f"{who}1") for who in "abc"]
    assert [type(end) for end in await asyncio.gather(*wishes, return_exceptions=True)] == [Conflict] * 3


@pytest.mark.anyio
async def test_who_is_cancelled_leaves_when_it_is_written() -> None:
    server = Server()
    doing = asyncio.create_task(server.batch.have_written("a", "a0"))
    await asyncio.sleep(server.seconds / 4)
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert server.batches == [["a0"]]


@pytest.mark.anyio
async def test_more_than_a_batch_holds_is_written_in_several() -> None:
    server = Server(0.0)
    await asyncio.gather(*(server.batch.have_written(number, str(number)) for number in range(MOST + 10)))
    assert [len(batch) for batch in server.batches] == [MOST, 10]


def test_another_loop_begins_anew() -> None:
    server = Server(30.0)

    async def give_up() -> None:
        waiting = asyncio.create_task(server.batch.have_written("a", "a0"))
        await asyncio.sleep(0.01)
        assert not waiting.done()

    asyncio.run(give_up())
    server.seconds = 0.0
    asyncio.run(server.walk("a", 2))
    assert server.batches == [["a0"], ["a1"]]


def test_a_loop_that_ends_leaves_nobody_waiting() -> None:
    server = Server(30.0)

    async def give_up() -> None:
        tasks = [asyncio.create_task(server.batch.have_written("a", "a0"))]
        await asyncio.sleep(0.01)
        tasks += [asyncio.create_task(server.batch.have_written(who, who)) for who in "bcdef"]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks)

    asyncio.run(give_up())
    assert server.batches == []
