"""What changed since the time before: the same agent or tool asked again in the same state, and its replies.

Told from the journal alone. It is looked back over the latest `BACK` entries, no farther.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import unified_diff
from itertools import islice

from moothall.app.report.projections.hierarchy import Entry
from moothall.app.report.steps import Step, step_of
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import AttemptFailed
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import FAMILY, TIMERS, RunId
from moothall.runtime.ports import Store

BACK = 500
LINES = 200
"""How many lines of a difference are told."""


class Attempt(Frozen):
    """An attempt that failed, before what a step tells."""

    seq: int
    at: float
    why: str


class Difference(Frozen):
    """The same was asked, or said, in an earlier step: by whom, in which, and the lines that changed since."""

    what: str
    """`asked` or `said`."""
    who: str
    seq: int
    lines: tuple[str, ...]
    """Each begins with `-`, `+` or a blank; none where nothing changed."""


class Again(Frozen):
    """How a step differs from the time before."""

    attempts: tuple[Attempt, ...]
    differences: tuple[Difference, ...]


async def again(store: Store, run: RunId, entry: Entry) -> Again:
    """How an entry differs from those before it that did the same."""
    start = max(0, entry["seq"] - BACK)
    past = await store.entries(run, start, entry["seq"] - start)
    return Again(_attempts(past, entry), tuple(_differences(run, past, entry)))


def _attempts(past: Sequence[Entry], entry: Entry) -> tuple[Attempt, ...]:
    """The attempts that went wrong before this, of the effect that the entry is about."""
    key = str(entry["cause"]).partition("-")[0]
    failed = [earlier for earlier in past if earlier["event"]["name"] == AttemptFailed.name]
    return tuple(
        Attempt(earlier["seq"], earlier["at"], str(earlier["event"].get("reason") or ""))
        for earlier in failed
        if str(earlier["cause"]).partition("-")[0] == key
    )


def _differences(run: RunId, past: Sequence[Entry], entry: Entry) -> Iterable[Difference]:
    step = step_of(run, entry, whole=True)
    told = [step_of(run, earlier, whole=True) for earlier in reversed(past)]
    if step.who and step.text:
        same = (before for before in told if _said_alike(before, step))
        yield from (_difference("said", step.who, before.seq, before.text, step.text) for before in islice(same, 1))
    for wanted in step.wanted:
        if not wanted.who or wanted.kind in (AskPerson.kind, *TIMERS) or (wanted.kind in FAMILY and not wanted.child):
            continue
        asked = ((before.seq, old) for before in told for old in before.wanted if before.after == step.after)
        same_asked = ((seq, old) for seq, old in asked if (old.kind, old.who) == (wanted.kind, wanted.who))
        nearest = islice(same_asked, 1)
        yield from (_difference("asked", wanted.who, seq, old.text, wanted.text) for seq, old in nearest)


def _said_alike(before: Step, step: Step) -> bool:
    return (before.event, before.who, before.before) == (step.event, step.who, step.before) and not before.ignored


def _difference(what: str, who: str, seq: int, old: str, new: str) -> Difference:
    lines = list(unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm=""))[2:]
    changed = [line for line in lines if not line.startswith("@@")]
    return Difference(what, who, seq, tuple(changed[:LINES]))
