"""What a run may spend: what its effects reserve, what was charged, and what is lacking.

- A reservation is part of the step that wants the effect, and settled by its event. What an event does not report is
  charged as reserved.
- What the budget does not cover is denied. An effect that was granted is denied after all where others have used up
  everything before it begins.
- A child gets a share of what is left, which stays reserved until the child says what it spent.
- A run that only its budget bounds is watched: what it wants is denied when it has taken too many steps, or when a row
  brings the same for the third time and leaves the data as they were then. Time passing counts as news.

Everything here is computed from how the run began and where it stands; nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from math import inf
from operator import attrgetter, itemgetter
from typing import Any
from zlib import crc32

import orjson

from moothall.kernel.codec import encode
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Event
from moothall.kernel.frozen import rare_fields
from moothall.kernel.machine import Machine
from moothall.kernel.step import Step
from moothall.runtime.journal import WAITING, Head, Pending, Record, Run, Same

TRANSITIONS = 100_000
"""The most steps of a run that is watched and has no limit of its own for them."""
SAME = 3
"""How often in a row the same is too often."""
NOTHING: Mapping[str, float] = {}
UNSHARED = frozenset(("seconds", "transitions"))
"""What a run does not use up for its children, nor they for it."""
_WHOLE = frozenset(("calls", "tokens"))
"""What comes in whole pieces."""
_NOT_YET = (0, 0, 0)
_times = itemgetter(2)


def reservation(run: Run, pending: Pending) -> Mapping[str, float]:
    """What an effect in flight has reserved of the budget."""
    if pending.denied:
        return NOTHING
    return cost_of(run.machine, pending.effect) if pending.share is None else pending.share


def charge(spent: Mapping[str, float], *bills: Mapping[str, float]) -> Mapping[str, float]:
    """What was spent, with these bills on top."""
    if not any(bills):
        return spent
    total = dict(spent)
    for bill in bills:
        for resource, amount in bill.items():
            total[resource] = round(total.get(resource, 0) + amount, 9)
    return total


def denial(run: Run, pending: Pending, head: Head, at: float) -> str:
    """The resource that the budget lacks for an effect that was denied or is tried again; "" where it is covered."""
    if pending.effect.kind in WAITING:
        return ""
    cost = cost_of(run.machine, pending.effect) if pending.share is None else pending.share
    return halt(run.record, head.steps, head.same, at) or shortage(run, cost, head.pending, head.spent)


def halt(record: Record, steps: int, same: Same, at: float) -> str:
    """Why a run should want nothing more: too many steps, the same again and again, no time left; "" where it may."""
    limits = record.limits
    if not limits and not record.endless:
        return ""
    if steps + 1 >= limits.get("transitions", TRANSITIONS):
        return "transitions"
    if same and max(map(_times, same.values())) >= SAME:
        return "repetitions"
    return "seconds" if "seconds" in limits and at - record.began >= limits["seconds"] else ""


def shortage(run: Run, cost: Mapping[str, float], others: Sequence[Pending], spent: Mapping[str, float]) -> str:
    """The resource of which less is left than this costs, beside what others have reserved; "" where none is."""
    limits = run.record.limits
    if not cost or not limits:
        return ""
    reserved = [reservation(run, pending) for pending in others]
    for resource, limit in limits.items():
        if resource not in UNSHARED:
            used = spent.get(resource, 0)
            promised = sum(bill.get(resource, 0) for bill in reserved)
            if used >= limit or used + promised + cost.get(resource, 0) > limit:
                return resource
    return ""


def used_up(run: Run, head: Head, effect: Effect) -> str:
    """The resource of which nothing is left for an effect that was granted and is about to begin; "" where it may."""
    limits = run.record.limits
    if not limits or not cost_of(run.machine, effect):
        return ""
    shared = (resource for resource in limits if resource not in UNSHARED)
    return next((resource for resource in shared if head.spent.get(resource, 0) >= limits[resource]), "")


def ends_at(record: Record) -> float | None:
    """When the time of a run is over."""
    return record.began + record.limits["seconds"] if "seconds" in record.limits else None


def is_rationed(record: Record) -> bool:
    """Whether a run may spend only so much of something that others can use up before an effect begins."""
    return not record.limits.keys() <= UNSHARED


def limit_of(run: Run, resource: str) -> float:
    """The limit that a run reached when an effect was denied."""
    return run.record.limits.get(resource, {"transitions": TRANSITIONS, "repetitions": SAME}.get(resource, 0))


def cost_of(machine: Machine, effect: Effect) -> Mapping[str, float]:
    """What an effect costs at most, as far as its machine says."""
    if not machine.costs or effect.kind not in machine.costs:
        return effect.costs
    return {**effect.costs, **machine.costs[effect.kind]}


def share_of(run: Run, step: Step, head: Head, wanted: Sequence[Pending], effect: StartChild) -> Mapping[str, float]:
    """What a child may spend: what its effect says; of what nobody else was promised as much as its siblings.

    Of what comes in whole pieces the last of them gets the rest.
    """
    shares = {resource: amount for resource, amount in effect.budget.items() if resource not in UNSHARED}
    for resource, limit in run.record.limits.items():
        if resource not in UNSHARED and resource not in shares:
            alike = sum(_shares_in(resource, new.effect) for new in step.effects)
            served = sum(_shares_in(resource, pending.effect) for pending in wanted)
            promised = sum(_promised(run, new.effect).get(resource, 0) for new in step.effects)
            reserved = sum(reservation(run, pending).get(resource, 0) for pending in head.pending)
            left = max(0, limit - head.spent.get(resource, 0) - reserved - promised)
            part = left // alike if resource in _WHOLE else left / alike
            shares[resource] = left - part * served if served == alike - 1 else part
    return shares


def _shares_in(resource: str, effect: Effect) -> bool:
    return isinstance(effect, StartChild) and resource not in effect.budget


def _promised(run: Run, effect: Effect) -> Mapping[str, float]:
    return effect.budget if isinstance(effect, StartChild) else cost_of(run.machine, effect)


def shrink(share: Mapping[str, float], shared: Mapping[str, float], left: Mapping[str, float]) -> Mapping[str, float]:
    """A child's share, less where all shares together are more than what is left."""
    part = {name: share[name] * left[name] / shared[name] for name in share if left.get(name, inf) < shared[name]}
    return {**share, **{name: amount // 1 if name in _WHOLE else amount for name, amount in part.items()}}


def watch(same: Same, step: Step, settled: Pending | None) -> Same:
    """What each row last brought and how often in a row, after one more step."""
    taken = step.taken
    if not taken:
        return same
    if step.appends or settled is None or settled.denied or settled.effect.kind in WAITING:
        return {}
    rows = taken[0] if len(taken) == 1 else " ".join(taken)
    kind: Any = type(step.event)
    brought = _content(_brought(kind)(step.event))
    last, left, times = same.get(rows, _NOT_YET)
    if brought != last:
        return {**same, rows: (brought, 0, 1)}
    data = _content(step.snapshot.data)
    return {**same, rows: (brought, data, times + 1 if left in (0, data) else 1)}


@lru_cache(maxsize=1024)
def _brought(kind: Any) -> Callable[[Event], Any]:
    """What an event of this class brings, and as what; what it cost does not count."""
    rare = rare_fields(kind)
    names = tuple(part.name for part in fields(kind) if part.name != "usage" and part.name not in rare)
    if not names:
        return lambda event: names
    picked = attrgetter(*names)
    if not rare:
        return lambda event: (names, picked(event))

    picked_rare, usual = attrgetter(*rare), tuple(rare.values()) if len(rare) > 1 else next(iter(rare.values()))

    def brought(event: Event) -> Any:
        if picked_rare(event) == usual:
            return names, picked(event)
        return names, picked(event), {name: part for name in rare if (part := getattr(event, name)) != rare[name]}

    return brought


def _content(value: Any) -> int:
    """A number that is the same for the same content, and hardly ever for another."""
    try:
        return crc32(orjson.dumps(value, default=encode))
    except orjson.JSONEncodeError:  # numbers and texts that are no JSON
        return crc32(repr(encode(value)).encode(errors="replace"))
