"""Why runs ended as they did, and what became of those whose machine has one end for good and bad.

It is read from what is stored of a run: nobody who lists runs loads the kinds of their machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moothall.agents.ask import Unusable
from moothall.app.kinds.kind import KINDS, Listing, size_in
from moothall.kernel.codec import encode
from moothall.kernel.events import Exhausted
from moothall.kernel.frozen import Frozen

LINES, LONGEST = 5, 500
"""How many of the last lines that a command wrote to stderr are told, and how many characters of them."""


class End(Frozen):
    """What became of a run in a word or two, the reason for it, and whether it is a bad end."""

    name: str
    reason: str = ""
    is_bad: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}" if self.reason else self.name


def end_of(source: str, data: Any) -> End | None:
    """What became of a run that is done, by its machine's source and its data; None where its last state says all."""
    listing = _listing_of(source)
    if listing is None or not listing.bad_outcomes:
        return None
    plain = encode(data)
    if not isinstance(plain, Mapping):  # texts may be forgotten
        return None
    outcome = plain.get("outcome")
    if outcome not in listing.bad_outcomes:
        repairs = [repair for repair in plain.get("repairs") or () if repair["outcome"] == "repaired"]
        told = "; ".join(f"{format_failure(repair['failure'])}; {repair['diagnosis']}" for repair in repairs)
        return End("repaired", told, is_bad=False) if repairs else None
    is_left = bool((plain.get("rollback") or {}).get("left"))
    reasons = (*_failed_tasks(plain), plain.get("reason", ""))
    return End("rollback incomplete" if is_left else str(outcome).replace("_", " "), "; ".join(filter(None, reasons)))


def _failed_tasks(plain: Mapping[str, Any]) -> list[str]:
    results = {**(plain.get("former") or {}), **(plain.get("results") or {})}
    return [
        f"task {name} failed: {format_failure(result['failure'], result.get('stderr', ''))}"
        for name, result in results.items()
        if result.get("failure")
    ]


def format_failure(failure: str, stderr: str = "") -> str:
    """Why a command failed, with the last lines that it wrote to stderr, on one line."""
    why, _, said = failure.partition("\n")
    return ": ".join((why, *last_lines(f"{said}\n{stderr}")))


def last_lines(text: str) -> list[str]:
    """The last lines of what a command wrote that are not empty."""
    return [line.strip() for line in text[-LONGEST:].splitlines() if line.strip()][-LINES:]


def why_bad(source: str, states: Sequence[str], data: Any, event: Mapping[str, Any]) -> str:
    """Why a run came to a bad end: as its data say, else the failure that led there, else the name of the end."""
    listing, plain = _listing_of(source), encode(data)
    told = plain.get("reason") if listing is not None and listing.tells_reason and isinstance(plain, Mapping) else ""
    return str(told or _failure_in(event) or f"it ended in {states[0]}")


def _failure_in(event: Mapping[str, Any]) -> str:
    """What went wrong, where an event says that something did."""
    name = str(event.get("name", ""))
    if name == Exhausted.name:
        return f"limit of {event['limit']:g} {event['resource']} reached"
    return str(event.get("reason") or "") if name.startswith("error.") or name == Unusable.name else ""


def _listing_of(source: str) -> Listing | None:
    """The listing of a machine that comes with the package, perhaps with a size behind its name."""
    family = source.partition("-")[0]
    return KINDS.get(family) if size_in(source, family) is not None else None
