"""What a performer sees of a thread: all of it, the last of it, from a mark on, with a summary in front."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.errors import Broken
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Append, Move
from moothall.runtime.drive import drive
from moothall.runtime.hall import messages
from moothall.runtime.ports import WHOLE, Context, Excerpt, Store
from moothall.stores.memory import MemoryStore
from tests.runtime.world import RUN, Basket, Fetch, Fetched, begun, hall_of

TURNS = 6
EARLIER = {"text": "earlier"}


def say(basket: Basket, fetched: Fetched) -> Move[Basket]:
    """Keep what was fetched in a thread."""
    return Move(Basket((*basket.got, "x")), appends=(Append("talk", fetched.what), Append("aside", len(basket.got))))


TALKING = Machine(
    "talking",
    data=Basket,
    states=[State("talking", enter=Fetch("word")), Final("silent")],
    moves=[
        On("talking", Fetched, to="silent", do=say, when=lambda basket, _: len(basket.got) + 1 == TURNS),
        On("talking", Fetched, to="talking", do=say),
    ],
)
EXCERPTS: list[tuple[Excerpt, list[Any]]] = [
    (WHOLE, ["w1", "w2", "w3", "w4", "w5", "w6"]),
    (Excerpt(last=2), ["w5", "w6"]),
    (Excerpt(last=0), []),
    (Excerpt(last=9), ["w1", "w2", "w3", "w4", "w5", "w6"]),
    (Excerpt(since=4), ["w5", "w6"]),
    (Excerpt(since=9), []),
    (Excerpt(last=3, since=5), ["w6"]),
    (Excerpt(last=1, since=2), ["w6"]),
    (Excerpt(last=2, summary=EARLIER), [EARLIER, "w5", "w6"]),
    (Excerpt(last=6, summary=EARLIER), ["w1", "w2", "w3", "w4", "w5", "w6"]),
]


class Speaker:
    """Says one word after the other, and remembers what it saw."""

    def __init__(self, excerpt: Excerpt) -> None:
        self.excerpt = excerpt
        self.seen: list[list[Any]] = []

    async def __call__(self, effect: Fetch, context: Context) -> Event:
        self.seen.append(await context.messages("talk", self.excerpt))
        return Fetched(f"w{len(self.seen)}")


@pytest.mark.anyio
@pytest.mark.parametrize(("excerpt", "expected"), EXCERPTS)
async def test_an_excerpt_shows_what_it_says_of_a_thread(excerpt: Excerpt, expected: list[Any]) -> None:
    hall = hall_of(Speaker(excerpt))
    await begun(hall, TALKING)
    await drive(hall, RUN)
    assert await messages(hall, RUN, "talk", excerpt) == expected
    assert await messages(hall, RUN, "nothing", excerpt) == []


@pytest.mark.anyio
async def test_a_performer_sees_the_excerpt_as_the_thread_grows() -> None:
    speaker = Speaker(Excerpt(2, summary="…"))
    hall = hall_of(speaker)
    await begun(hall, TALKING)
    await drive(hall, RUN)
    assert speaker.seen == [[], ["w1"], ["w1", "w2"], ["…", "w2", "w3"], ["…", "w3", "w4"], ["…", "w4", "w5"]]


class Counting(MemoryStore):
    """A store that counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__(strict=True)
        self.read: list[int] = []

    async def thread(self, run: str, name: str, start: int, end: int) -> list[Any]:
        self.read.append(end - start)
        return await super().thread(run, name, start, end)

    async def entries(self, run: str, start: int = 0, limit: int | None = None) -> list[Any]:
        raise Broken("nobody walks the journal here")


@pytest.mark.anyio
async def test_no_more_is_read_than_the_excerpt_shows() -> None:
    store: Store = Counting()
    hall = hall_of(Speaker(Excerpt(2)), store)
    await begun(hall, TALKING)
    await drive(hall, RUN)
    assert isinstance(store, Counting)
    assert store.read == [1, 2, 2, 2, 2]


@given(last=st.none() | st.integers(0, 30), since=st.integers(0, 30), count=st.integers(0, 30))
def test_an_excerpt_never_leaves_its_thread(last: int | None, since: int, count: int) -> None:
    first = Excerpt(last, since).first(count)
    shown = list(range(count))[first:]
    assert 0 <= first <= count
    assert shown == [place for place in range(count) if place >= since and (last is None or place >= count - last)]
