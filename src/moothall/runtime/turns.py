"""Counts what begins within a minute in one process. Stores that several processes share count for themselves."""

from __future__ import annotations

from collections.abc import Callable

from moothall.runtime.ports import MINUTE


class OwnTurns:
    """What began within the last minute here, by its name."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun: dict[str, list[float]] = {}

    def take(self, name: str, per_minute: int) -> float:
        """Begin something now, and 0.0; or how many seconds it has to wait."""
        now = self._now()
        begun = self._begun[name] = [moment for moment in self._begun.get(name, ()) if moment > now - MINUTE]
        if len(begun) >= per_minute:
            return begun[-per_minute] + MINUTE - now
        begun.append(now)
        return 0.0
