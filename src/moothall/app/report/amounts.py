"""How far a run has come and what it has spent, in words. Only what is known is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

Amounts = Mapping[str, float]
FIRST = ("usd", "calls", "tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Account:
    """How far a run has come: its states, its step, what it spent, what it may spend, and how long it took."""

    states: tuple[str, ...]
    step: int
    spent: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    seconds: float | None = None
    unpriced: tuple[str, ...] = ()
    """The models that were asked without a price, as far as that is known."""

    def amounts(self) -> dict[str, str]:
        """What was spent of each resource, and of how much: `7 of 20`."""
        used = self.used()
        return {
            name: self._amount(name) + (f" of {amount_of(name, self.limits[name])}" if name in self.limits else "")
            for name in sorted({*used, *self.limits}, key=_rank)
        }

    def _amount(self, resource: str) -> str:
        """What was spent of a resource; what nobody told is not nothing."""
        if self._is_unknown(resource):
            return "unknown"
        at_least = "≥ " if resource == "usd" and self.unpriced else ""
        return at_least + amount_of(resource, self.used().get(resource, 0))

    def _is_unknown(self, resource: str) -> bool:
        """Whether calls were made, and none of them had a price."""
        return resource == "usd" and "usd" not in self.spent and bool(self.spent.get("calls"))

    def bill(self) -> str:
        """All of that on one line: `usd 0.12 of 0.50, calls 7 of 20`."""
        return ", ".join(f"{name} {amount}" for name, amount in self.amounts().items())

    def used(self) -> Amounts:
        """What was spent; time is money where it has a limit."""
        if "seconds" in self.limits and self.seconds is not None:
            return {**self.spent, "seconds": self.seconds}
        return self.spent

    def left(self) -> dict[str, float | None]:
        """What is left of each limit, at most where a price is missing; None where nobody knows what was spent."""
        used = self.used()
        limits = sorted(self.limits.items(), key=lambda item: _rank(item[0]))
        return {
            name: None if self._is_unknown(name) else max(0.0, round(limit - used.get(name, 0), 9))
            for name, limit in limits
        }

    def note(self) -> str:
        """What a person should know of a budget of money where a price is missing; "" where none is."""
        if "usd" not in self.limits or not self.unpriced:
            return ""
        return f"no price is known for {', '.join(self.unpriced)}: what it costs does not count towards the budget"

    def __str__(self) -> str:
        where = [f"in {' + '.join(self.states)}"] if self.states else []
        took = [duration_of(self.seconds)] if self.seconds is not None and "seconds" not in self.limits else []
        bill = self.bill()
        return ", ".join([*where, f"step {self.step}", *took]) + (f"; spent: {bill}" if bill else "")


def _rank(resource: str) -> tuple[int, str]:
    return (FIRST.index(resource) if resource in FIRST else len(FIRST), resource)


def amount_of(resource: str, value: float) -> str:
    """An amount as people write it: money with its cents, the rest with no more digits than it has."""
    if resource != "usd":
        return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
    whole, _, cents = f"{value:.6f}".rstrip("0").partition(".")
    return f"{whole}.{cents:0<2}"


def format_count(number: float, several: str, one: str = "") -> str:
    """So many of something; `one` is said where a single one is called otherwise than without its last letter."""
    shown = f"{number}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} " + ((one or several.removesuffix("s")) if number == 1 else several)


def duration_of(seconds: float) -> str:
    """A time in its two largest units."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def date_of(at: float, zone: tzinfo | None = None) -> datetime | None:
    """The date of a moment, here or in a zone; None where a clock was so wrong that there is none."""
    try:
        return datetime.fromtimestamp(at, zone).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return None


def lasting(seconds: float) -> str:
    """A time that may be short: below a second in milliseconds."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration_of(seconds)
