"""Whether an attempt that went wrong is followed by another, and when: a decision, returned as a value.

The pause grows fourfold with each attempt and is spread by chance, so that many runs do not come back at once; the
chance is drawn from the effect's key, so that the decision can be made again from the journal. Where the other side
asks to be left alone for a while, it is. What may be done at most once is never tried again by itself.
"""

from __future__ import annotations

from zlib import crc32

from moothall.kernel.events import AttemptFailed
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import Pending, RunId

PAUSE = 0.2
LONGEST = 60.0
SPREAD = 0.5


class Again(Frozen):
    """Try again, so many seconds from now."""

    after: float


class NoMore(Frozen):
    """Give up, for this reason."""

    reason: str


def retry(run: RunId, pending: Pending, failed: AttemptFailed) -> Again | NoMore:
    """What follows an attempt that went wrong."""
    effect, attempt = pending.effect, pending.attempt
    if effect.repeats == "at-most-once":
        return NoMore(failed.reason)
    if attempt >= effect.attempts:
        return NoMore(f"{failed.reason}, {attempt} attempts")
    chance = crc32(f"{run}.{pending.key}.{attempt}".encode()) / 2**32
    pause = min(PAUSE * 4 ** (min(attempt, 10) - 1), LONGEST) * (1 - SPREAD / 2 + SPREAD * chance)
    return Again(max(pause, failed.after))
