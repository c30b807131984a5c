"""What happens in runs as it happens, for any number of watchers.

- The journal is the queue: a watcher has a place in it and nothing else. One that reads slowly holds nobody up, costs
  no memory, misses no entry, and one that comes back says where it was.
- The newest entries of a run are read, rendered and joined once for all of its watchers, who are woken together.
  Entries that are committed here are seen at once, those of other processes within `LOOK` seconds.
- The run goes first. Where entries come fast, watchers get a small share of the time that the processor works, and
  hear more at once and less often; `Pace` says how often.
- What agents are saying is in no journal. A watcher that comes late gets the text so far; for one that reads slowly
  pieces are left out, and a gap says so.
- Nothing that is handed out has secrets: entries are cleaned here, and models see to it that speech has none.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from moothall.app.config.settings import cleaner
from moothall.app.report.steps import Step, step_of
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Committed, News, Said
from moothall.app.runs.view import Summary, summary
from moothall.errors import MoothallError
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId

LOOK = 0.1
BEAT = 5.0
PIECE = 512
"""How many entries are read, and handed out, at once."""
SLICE = 64
"""How many of them are rendered before others have their turn."""
RING = 2_048
SHARE, OF_TIME, OF_TIME_ELSEWHERE = 0.02, 0.001, 0.02
"""What watchers of one run get of the time that the processor works for this process, and of the time that passes: less
where the run is driven here, for then it waits meanwhile."""
BURST = 0.02
"""Seconds of the processor that they may take at once."""
PATIENCE, NAP = 4.0, 0.1
"""How long watchers are kept waiting at most, and how often it is looked whether they have waited enough."""
PAGES = 16
"""How many older pieces of a journal are kept rendered, and how many batches joined."""
PIECES = 512
"""How many pieces of what is said are kept for those who are behind."""
SO_FAR = 64_000
"""How many characters of what an agent is saying are kept for those who come late."""

T = TypeVar("T")
B = TypeVar("B")


class Speech(Frozen):
    """What an agent is saying: the next piece, or anew all of it so far."""

    agent: str
    text: str
    anew: bool = False


class Gap(Frozen):
    """Something was left out, because the watcher was slow."""

    pieces: int


class Over(Frozen):
    """The run is over, and all of its entries were told."""

    status: str


FeedItem = Step | Summary | Speech | Gap | Over


class Form(Frozen, Generic[T, B]):
    """How what happens is handed out: each thing rendered, and several joined."""

    render: Callable[[FeedItem], T]
    join: Callable[[list[T]], B]


class Pace:
    """How often watchers of a run are told something, so that they do not hold it up."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._left, self._at, self._worked = BURST, time.monotonic(), time.process_time()
        self.is_here = True
        """Whether the run is driven in this process."""

    def pay(self, seconds: float) -> None:
        """So long did the processor work for the watchers."""
        self._left -= seconds

    def owes(self) -> bool:
        """Whether they have had more than their share."""
        at, worked = time.monotonic(), time.process_time()
        of_time = OF_TIME if self.is_here else OF_TIME_ELSEWHERE
        share = (worked - self._worked) * SHARE + (at - self._at) * of_time
        self._left, self._at, self._worked = min(BURST, self._left + share), at, worked
        return self._left < 0

    async def wait_until_even(self) -> None:
        """Wait until they may be told again; what they still owe when they have waited long enough is forgiven.

        In a process that has nothing to do, a large debt would never be paid.
        """
        latest = time.monotonic() + self._patience
        while self.owes() and time.monotonic() < latest:  # noqa: ASYNC110  # nobody tells that time was spent
            await asyncio.sleep(NAP)
        self._left = max(self._left, 0.0)


class Feed(Generic[T, B]):
    """The channels of the runs that somebody watches. It listens to everything that its Moothall tells."""

    hears = True

    def __init__(self, hall: Moothall, form: Form[T, B]) -> None:
        self._hall, self._form = hall, form
        self._channels: dict[RunId, _Channel[T, B]] = {}
        self._speech: dict[RunId, dict[str, str]] = {}
        self.closed = asyncio.Event()
        hall.listen(self)
        self._elsewhere = hall.hear_others()
        self._beacon = asyncio.create_task(self._keep_listening())

    async def _keep_listening(self) -> None:
        """Let others know that what their agents say is heard."""
        while self._elsewhere is not None:
            self._elsewhere.listen()
            await asyncio.sleep(BEAT)

    def _hear_others(self, run: RunId) -> None:
        """Pass on what agents of a run say in other processes."""
        for heard in self._elsewhere.news(run) if self._elsewhere is not None else ():
            if heard.anew:
                self.say(Said(run, heard.agent, ""))
            if heard.text:
                self.say(Said(run, heard.agent, heard.text))

    def __call__(self, news: News) -> None:
        """Something happened here."""
        if isinstance(news, Committed):
            self._drop_speech(news)
            if (channel := self._channels.get(news.run)) is not None:
                channel.poked.set()
        elif isinstance(news, Said):
            self.say(news)

    def say(self, said: Said) -> None:
        """An agent says something, here or elsewhere."""
        so_far = self._speech.setdefault(said.run, {})
        anew = said.piece == ""
        so_far[said.agent] = ("" if anew else so_far.get(said.agent, "") + said.piece)[-SO_FAR:]
        if (channel := self._channels.get(said.run)) is not None:
            channel.say(self._form.render(Speech(said.agent, said.piece, anew)))

    def _drop_speech(self, news: Committed) -> None:
        """What was said whole is in the journal now."""
        speech = self._speech.get(news.run)
        if speech is None:
            return
        if news.head.snapshot.status != "live":
            del self._speech[news.run]
        else:
            speech.pop(getattr(news.entry.event, "agent", ""), None)

    async def watch(self, run: RunId, after: int = -1) -> AsyncIterator[B]:
        """What happens in a run behind an entry, a few things at a time, until the run is over."""
        stored = await self._hall.store.load(run)
        channel = self._channels.get(run)
        if channel is None:
            channel = self._channels[run] = _Channel(self._hall, run, self._form, stored.seq, self._hear_others)
            self._hear_others(run)
        channel.watchers += 1
        try:
            async for batch in channel.follow(after + 1, self._so_far(run), self.closed):
                yield batch
        finally:
            channel.watchers -= 1
            if not channel.watchers:
                channel.close()
                self._channels.pop(run, None)

    def _so_far(self, run: RunId) -> list[T]:
        said = self._speech.get(run, {})
        return [self._form.render(Speech(agent, text, True)) for agent, text in said.items() if text]

    def close(self) -> None:
        """Send every watcher home."""
        self.closed.set()
        self._beacon.cancel()
        if self._elsewhere is not None:
            self._elsewhere.close()
        for channel in self._channels.values():
            channel.wake()


class _Channel(Generic[T, B]):
    """One run that is watched: its newest entries, how it stands, and what is being said."""

    def __init__(
        self, hall: Moothall, run: RunId, form: Form[T, B], seq: int, hear_others: Callable[[RunId], None]
    ) -> None:
        self._hall, self._run, self._form, self._hear_others = hall, run, form, hear_others
        self._next = max(0, seq + 1 - PIECE)
        self._clean: Callable[[Any], Any] = cleaner()
        self._pages: dict[int, list[T]] = {}
        self._paging = asyncio.Lock()
        self._ring: deque[T] = deque(maxlen=RING)
        self._stands: tuple[int, T] | None = None
        self._said: deque[tuple[int, T]] = deque(maxlen=PIECES)
        self._spoken = 0
        self._over: T | None = None
        self._batches: dict[tuple[int, int, int], tuple[B, int, int, int]] = {}
        self._changed = asyncio.Event()
        self._pace = Pace()
        self.poked = asyncio.Event()
        self.poked.set()
        self.watchers = 0
        self._pump = asyncio.create_task(self._look_again())

    def say(self, frame: T) -> None:
        """Hand out a piece of what is said."""
        self._spoken += 1
        self._said.append((self._spoken, frame))
        self.wake()

    def wake(self) -> None:
        """Let every watcher look."""
        self._batches.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Look no more."""
        self._pump.cancel()

    async def follow(self, place: int, so_far: list[T], closed: asyncio.Event) -> AsyncIterator[B]:
        """Everything from an entry on."""
        stood, heard = -1, self._spoken
        if so_far:
            yield self._form.join(so_far)
        while not closed.is_set():
            changed = self._changed
            batch, place, stood, heard = await self._batch(place, stood, heard)
            if batch is not None:
                yield batch
                continue
            if self._over is not None and place >= self._next:
                yield self._form.join([self._over])
                return
            await changed.wait()

    async def _batch(self, place: int, stood: int, heard: int) -> tuple[B | None, int, int, int]:
        """What a watcher who is there gets next, and where it is then; those who are at one place get the same."""
        key = place, stood, heard
        if (known := self._batches.get(key)) is not None:
            return known
        frames, place = await self._entries_from(place)
        if self._stands is not None and self._stands[0] != stood and place >= self._next:
            stood, stands = self._stands
            frames.append(stands)
        pieces, heard = self._pieces_after(heard)
        frames += pieces
        if not frames:
            return None, place, stood, heard
        self._batches[key] = batch = self._form.join(frames), place, stood, heard
        if len(self._batches) > PAGES:
            del self._batches[next(iter(self._batches))]
        return batch

    async def _entries_from(self, place: int) -> tuple[list[T], int]:
        """Some entries from a place on, and the place behind them."""
        if place >= self._next:
            return [], place
        oldest = self._next - len(self._ring)
        if oldest <= place:
            frames = list(islice(self._ring, place - oldest, place - oldest + PIECE))
        else:
            first = place - place % PIECE
            frames = (await self._page(first))[place - first : self._next - first]
        return frames, place + len(frames)

    async def _page(self, first: int) -> list[T]:
        """A piece of the journal that is no longer among the newest, rendered for whoever comes late."""
        async with self._paging:  # who comes at the same time finds it rendered
            frames = self._pages.pop(first, None)
            if frames is None:
                frames = await self._rendered(await self._hall.store.entries(self._run, first, PIECE))
            if len(frames) == PIECE:
                self._pages[first] = frames
                if len(self._pages) > PAGES:
                    del self._pages[next(iter(self._pages))]
        return frames

    async def _rendered(self, entries: Sequence[Mapping[str, Any]]) -> list[T]:
        """Entries as they are handed out; others have their turn meanwhile."""
        frames: list[T] = []
        for start in range(0, len(entries), SLICE):
            began = time.thread_time()
            frames += [
                self._form.render(self._clean(step_of(self._run, entry))) for entry in entries[start : start + SLICE]
            ]
            self._pace.pay(time.thread_time() - began)
            await asyncio.sleep(0)
        return frames

    def _pieces_after(self, heard: int) -> tuple[list[T], int]:
        """What was said behind what a watcher has heard."""
        if heard == self._spoken:
            return [], heard
        oldest = self._said[0][0]
        frames = [self._form.render(Gap(oldest - heard - 1))] if heard + 1 < oldest else []
        return [*frames, *(frame for number, frame in self._said if number > heard)], self._spoken

    async def _look_again(self) -> None:
        """Read what is new, as long as somebody watches."""
        while True:
            self._hear_others(self._run)
            try:
                if not await self._look():
                    continue
            except MoothallError:  # it is gone or damaged, which whoever asks for it is told
                await asyncio.sleep(1.0)
            try:
                async with asyncio.timeout(LOOK):
                    await self.poked.wait()
            except TimeoutError:
                pass

    async def _look(self) -> bool:
        """Tell what is new, and wait as long as that was dear; whether all was told.

        Watchers who had more than their share are told how the run stands, and its entries later.
        """
        store, moved = self._hall.store, self.poked.is_set()
        self.poked.clear()
        stood = self._stands[0] if self._stands is not None else -1
        if not moved and await store.seq(self._run) == stood < self._next:
            return True
        self._clean, self._pace.is_here = cleaner(), moved
        stored = await store.load(self._run)
        is_live = stored.status == "live"
        is_late = is_live and self._pace.owes()
        entries = [] if is_late else await store.entries(self._run, self._next, PIECE)
        self._ring.extend(frames := await self._rendered(entries))
        self._next += len(frames)
        stands = self._clean(await summary(store, stored))
        self._stands = (stored.seq, self._form.render(stands))
        is_all = stored.seq < self._next
        self._over = self._form.render(Over(stands.status)) if is_all and not is_live else None
        if frames or stored.seq != stood:
            await self._hand_out()
        if is_live:
            await self._pace.wait_until_even()
        return is_all or not (frames or is_late)

    async def _hand_out(self) -> None:
        """Wake every watcher, and count what they take: each has its turn before this goes on."""
        began = time.thread_time()
        self.wake()
        for _ in range(3):
            await asyncio.sleep(0)
        self._pace.pay(time.thread_time() - began)
