"""Observers that cannot harm a run: each has a thread of its own and a copy of what it is shown.

One that is slow gets behind, one that hangs sees nothing more, one that raises is left out from then on. The run goes
on in all cases. At the end it waits a moment for those that are behind.
"""

from __future__ import annotations

from copy import deepcopy
from queue import Full, Queue
from threading import Thread
from time import monotonic, sleep

from moothall.runtime.hall import Observer
from moothall.runtime.journal import Entry, Head, RunId

MOST = 10_000
GRACE = 2.0


class Aside:
    """An observer that stands aside: it is told what happened while the run goes on."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._queue: Queue[tuple[RunId, Entry, Head]] = Queue(MOST)
        self._thread: Thread | None = None
        self.missed = 0

    def __call__(self, run: RunId, entry: Entry, head: Head) -> None:
        """One entry was committed."""
        if self._thread is None:
            self._thread = Thread(target=self._tell, daemon=True, name="moothall-observer")
            self._thread.start()
        try:
            self._queue.put_nowait(deepcopy((run, entry, head)))
        except Full:
            self.missed += 1

    def _tell(self) -> None:
        while True:
            run, entry, head = self._queue.get()
            try:
                self._observer(run, entry, head)
            except BaseException:  # an observer may do anything; it is not told any more
                self._observer = _nobody
            self._queue.task_done()

    def wait_until_seen(self, seconds: float = GRACE) -> bool:
        """Give the observer a moment to see what is left; whether it has."""
        end = monotonic() + seconds
        while self._queue.unfinished_tasks and monotonic() < end:
            sleep(0.001)
        return not self._queue.unfinished_tasks


def _nobody(run: RunId, entry: Entry, head: Head) -> None:
    """Looks the other way."""
