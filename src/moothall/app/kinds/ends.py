"""What became of runs whose machine has one end for what went well and what did not.

It is read from what is stored of a run: nobody who lists runs loads the kinds of their machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moothall.app.kinds.kind import KINDS
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen


class BadEnd(Frozen):
    """A bad end in a word or two, and the reason for it."""

    name: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}" if self.reason else self.name


def bad_end(source: str, data: Any) -> BadEnd | None:
    """The bad end of a run that is done, by its machine's source and its data; None where the end is a good one."""
    listing = KINDS.get(source)
    if listing is None or not listing.bad_outcomes:
        return None
    plain = encode(data)
    if not isinstance(plain, Mapping) or plain.get("outcome") not in listing.bad_outcomes:  # texts may be forgotten
        return None
    is_left = bool((plain.get("rollback") or {}).get("left"))
    return BadEnd("rollback incomplete" if is_left else plain["outcome"].replace("_", " "), plain.get("reason", ""))
