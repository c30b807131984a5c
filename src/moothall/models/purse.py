"""What all runs of a user may spend in a day, kept in a file that every process of theirs shares.

A day is one of UTC. What a call costs is known when it has ended, so calls that are under way when the last of it is
spent are still paid: the limit can be passed by those, and by no others.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from moothall.agents.ports import Call, Model, Reply, Request, open_ahead
from moothall.errors import MOST_USED, DefinitionError, EffectFailed

LONGEST = 1_000
"""The most bytes that the file has."""


class Purse:
    """So many dollars a day."""

    def __init__(self, file: Path, limit: float, now: Callable[[], float]) -> None:
        self._file, self.limit, self._now = file, limit, now

    def spent_today(self) -> float:
        """What was spent today; the file is not made where there is none."""
        if not self._file.exists():
            return 0.0
        with self._opened() as opened:
            return self._spent(opened)

    def require_money(self) -> None:
        """Refuse a call where nothing is left of today; it may come back tomorrow."""
        spent = self.spent_today()
        if spent >= self.limit:
            why = f"usd {spent:.2f} were spent today, and daily_usd in the settings allows {self.limit:.2f}"
            later = "this call waits until tomorrow (UTC); once the limit is higher, `moot resume` tries it at once"
            raise EffectFailed(f"{why}; {later}", retry_after=self._seconds_left())

    async def pay_for(self, call: Call) -> Reply:
        """Make a call if there is money left for it, and pay what it cost, also where it failed."""
        self.require_money()
        try:
            reply = await call()
        except EffectFailed as failure:
            self.pay(failure.usage)
            raise
        self.pay(reply.usage)
        return reply

    def pay(self, usage: Any) -> None:
        """Write down what a call has cost, where that is known."""
        usd = usage.get("usd") if isinstance(usage, Mapping) else None
        if not isinstance(usd, int | float) or not 0 < usd <= MOST_USED:  # whoever counts the usage refuses the rest
            return
        with self._opened() as opened:
            content = json.dumps({"day": self._today(), "usd": round(self._spent(opened) + usd, 9)}).encode()
            os.pwrite(opened, content, 0)
            os.ftruncate(opened, len(content))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The file, which nobody else changes meanwhile."""
        try:
            opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise DefinitionError(f"{self._file} cannot be kept: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise DefinitionError(f"{self._file} is not a file; move it away")
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield opened
        finally:
            os.close(opened)

    def _spent(self, opened: int) -> float:
        """What was spent today. A file that cannot be read is refused: nobody knows what was spent."""
        content = os.pread(opened, LONGEST, 0)
        if not content:
            return 0.0
        try:
            kept = json.loads(content)
            day, usd = str(kept["day"]), float(kept["usd"])
        except (ValueError, KeyError, TypeError) as error:
            raise DefinitionError(f"{self._file} is damaged; delete it, and today's spending counts anew") from error
        return usd if day == self._today() else 0.0

    def _today(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()

    def _seconds_left(self) -> float:
        now = datetime.fromtimestamp(self._now(), UTC)
        tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
        return (tomorrow - now).total_seconds()


class PaidModel:
    """A model that no gate stands before; what it says that it costs is paid from a purse."""

    def __init__(self, model: Model, purse: Purse) -> None:
        self._model, self._purse = model, purse

    async def open(self) -> None:
        """Open the model within."""
        await open_ahead(self._model)

    async def reply(self, request: Request) -> Reply:
        return await self._purse.pay_for(lambda: self._model.reply(request))
