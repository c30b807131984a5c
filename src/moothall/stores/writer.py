"""One queue for all that is written to a SQLite file, whoever wants it.

What a lone run wants is written in place. Where several runs are busy, it is gathered and written by one thread, one
batch in flight: many share one fsync, and nobody waits for the disk but those who commit. A batch that fails is tried
again member by member. Both ways are one piece of code.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from moothall.errors import Broken, Conflict, EffectFailed, MoothallError

BATCH = 256
"""The most that is written in one transaction."""
AT_ONCE = 4
"""How many get their word before others have the loop."""

T = TypeVar("T")
W = TypeVar("W")


class Undone(Conflict):
    """Who came too late had written something already: the whole transaction is taken back."""


class _Wish:
    """Something to be written, and the word that whoever wants it waits for."""

    __slots__ = ("is_over", "what", "word", "work")

    def __init__(self, work: Callable[[Any], Any], what: Any, word: asyncio.Future[Any]) -> None:
        self.work, self.what, self.word, self.is_over = work, what, word, False


class Writing:
    """Writes by way of one connection. `crowd` says how many runs are busy, `is_busy` that the thread is."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.crowd = 0
        self.is_busy = False
        self._db = db
        self._cursor = db.cursor()
        self.execute = self._cursor.execute
        self._waiting: list[_Wish] = []
        self._thread: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()

    async def have_written(self, work: Callable[[W], T], what: W) -> T:
        """Have something written: in place where nobody else is busy here, else together with what others want."""
        if self.crowd <= 1 and not self.is_busy:
            return self._in_one(work, what)
        result = await self._wait_for_word(work, what)
        if isinstance(result, Exception):
            raise result
        given: T = result
        return given

    async def _wait_for_word(self, work: Callable[[W], Any], what: W) -> Any:
        loop = asyncio.get_running_loop()
        wish = _Wish(work, what, loop.create_future())
        self._waiting.append(wish)
        if not self.is_busy:
            self.is_busy = True
            loop.call_soon(self._flush)
        try:
            return await wish.word
        except asyncio.CancelledError:  # it is written all the same; who lets go of the run next comes after it
            if not wish.is_over:
                wish.word = loop.create_future()
                await wish.word
            raise

    def _flush(self) -> None:
        """Give the next batch to the writing thread, and the word to those who wait when it is done."""
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="moothall-writer")
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(self._thread, self._write, [(wish.work, wish.what) for wish in batch])
        writing.add_done_callback(lambda done: self._tell(loop, zip(batch, done.result(), strict=True)))

    def _tell(self, loop: asyncio.AbstractEventLoop, ends: Iterator[tuple[_Wish, Any]]) -> None:
        """Give the word to a few, and to the rest when others have had their turn."""
        told = 0
        for wish, result in islice(ends, AT_ONCE):
            told += 1
            wish.is_over = True
            if not wish.word.done():
                wish.word.set_result(result)
        if told == AT_ONCE:
            loop.call_soon(self._tell, loop, ends)
            return
        self.is_busy = bool(self._waiting)
        if self._waiting:
            self._flush()

    def _write(self, batch: Sequence[tuple[Callable[[Any], Any], Any]]) -> list[Any]:
        """Write a batch in one transaction; where that fails, each in its own. What each gave, or why it failed."""
        try:
            return self._in_one(_each, batch)
        except Exception as error:  # whatever one of them brings, the others who wait must get their word
            if len(batch) == 1:
                return [error]
        return [self._write((work,))[0] for work in batch]

    def _in_one(self, work: Callable[[W], T], what: W) -> T:
        """Do some work in one transaction, which is taken back where anything was raised. Threads take turns."""
        with self._turn:
            try:
                self.execute("BEGIN IMMEDIATE")
                given = work(what)
                self.execute("COMMIT")
                return given
            except BaseException as error:
                if self._db.in_transaction:
                    self.execute("ROLLBACK")
                if isinstance(error, sqlite3.IntegrityError):
                    raise Broken(f"the journal holds an entry that its head does not know: {error}") from error
                if isinstance(error, sqlite3.Error):
                    raise _unwritten(error) from error
                raise

    def close(self) -> None:
        """Wait for what is being written. A statement that failed would keep the file open."""
        if self._thread is not None:
            self._thread.shutdown()
        self._cursor.close()


def _each(batch: Sequence[tuple[Callable[[Any], Any], Any]]) -> list[Any]:
    """What each of a batch gave; one who came too late must not keep the others from being written."""
    results: list[Any] = []
    for work, what in batch:
        try:
            results.append(work(what))
        except Undone:
            raise
        except Conflict as conflict:
            results.append(conflict)
    return results


def _unwritten(error: sqlite3.Error) -> MoothallError:
    if isinstance(error, sqlite3.OperationalError):
        return EffectFailed(f"the store could not write: {error}; the run is as it was before")
    return damage_error(error)


def damage_error(error: Exception) -> Broken:
    """What to say of a file that SQLite cannot make sense of."""
    return Broken(f"the store is damaged: {error}; bring back a copy of the file")
