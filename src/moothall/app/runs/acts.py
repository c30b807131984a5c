"""What people do to runs at a page: it is in the journal when the call comes back, and the run goes on beside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moothall.app.kinds.kind import kind_of
from moothall.app.runs.context import family_of
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Committed, News
from moothall.errors import MoothallError, Refused
from moothall.kernel.events import Answered, Cancelled, Forked, Repeated, Retried
from moothall.kernel.machine import Budget
from moothall.runtime.journal import RunId

Kept = Callable[[Committed], bool]


class Acts:
    """Answers, cancels, retries, forks and tells; each comes back once that is kept, or raises why it is not."""

    def __init__(self, hall: Moothall) -> None:
        self._hall = hall
        self._waiting: dict[asyncio.Future[RunId], Kept] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        hall.listen(self)

    def __call__(self, news: News) -> None:
        """Something happened."""
        if isinstance(news, Committed):
            for future, is_kept in list(self._waiting.items()):
                if not future.done() and is_kept(news):
                    future.set_result(news.run)

    async def answer(self, run: RunId, value: Any, question: str | None, by: str) -> RunId:
        """Answer a question."""

        def is_kept(news: Committed) -> bool:
            is_answer = isinstance(news.entry.event, Answered | Repeated) or question == news.entry.cause
            return is_answer and question in (None, news.entry.cause.partition("-")[0])

        return await self._until_kept(self._hall.answer(run, value, question=question, by=by), is_kept, run)

    async def cancel(self, run: RunId, reason: str) -> RunId:
        """Ask a run to stop."""
        return await self._until_kept(self._hall.cancel(run, reason), _of(run, Cancelled), run)

    async def resume(self, run: RunId, by: str) -> RunId:
        """Go on with a run where its journal ends."""
        return await self._until_kept(self._hall.resume(run, by=by), lambda news: news.run == run, run)

    async def retry(self, run: RunId, by: str, budget: Budget | None = None) -> RunId:
        """Go on with a run that ended badly."""
        return await self._until_kept(self._hall.retry(run, by=by, budget=budget), _of(run, Retried), run)

    async def fork(self, run: RunId, at: int | None, *, repeats: bool) -> RunId:
        """Let a run go another way from an entry on."""

        def is_kept(news: Committed) -> bool:
            return isinstance(news.entry.event, Forked) and news.record.origin == run

        return await self._until_kept(self._hall.fork(run, at=at, repeats=repeats), is_kept, run)

    async def send(self, run: RunId, event: str, data: Any, by: str) -> RunId:
        """Tell a run an event of its machine's vocabulary."""
        return await self._until_kept(
            self._hall.send(run, event, data, by=by),
            lambda news: news.run == run and news.entry.event.name == event,
            run,
        )

    async def hear(self, run: RunId, line: str, by: str) -> str:
        """Tell a run what a person typed, in the way of its kind; what there is to say at once."""
        if not line.strip():
            raise Refused("nothing was typed; write something first")
        machine, _ = await family_of(self._hall.store, (await self._hall.store.load(run)).record, {})
        said: list[str] = []

        async def type_line() -> None:
            said.append(await kind_of(machine).hear(self._hall, machine, run, line, by))

        await self._until_kept(type_line(), lambda news: news.run == run, run)
        return said[0] if said else ""

    async def _until_kept(self, work: Coroutine[Any, Any, Any], is_kept: Kept, run: RunId) -> RunId:
        """Wait until something is in the journal, or the work is done or refused; the run where it was kept."""
        kept: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()
        self._waiting[kept] = is_kept
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            await asyncio.wait((kept, task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._waiting[kept]
        if task.done():
            outcome = task.result()
            return kept.result() if kept.done() else getattr(outcome, "run", run)
        task.add_done_callback(self._tell_failure)
        return kept.result()

    def _tell_failure(self, task: asyncio.Task[Any]) -> None:
        """Whoever asked was told that it is kept; what went wrong later is told as a notice."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, MoothallError):
            self._hall.context().broadcast.notice(str(error))

    async def close(self) -> None:
        """Let go of what is under way; others may go on with it."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)


def _of(run: RunId, event: type[Any]) -> Kept:
    return lambda news: news.run == run and isinstance(news.entry.event, event)
