"""Keeps secrets out of what a run wants, and out of refusals.

What enters a run is cleaned before it is decided on. A template of the machine may still bring a secret of its own:
what a step wants done is cleaned before it is kept, and so is it where a journal is decided again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from moothall.errors import Refused
from moothall.kernel.effects import Effect
from moothall.runtime.decide import Decision, unless_performed
from moothall.runtime.journal import CancelChild, Pending, Run, TellParent
from moothall.runtime.ports import Clean

T = TypeVar("T")


def cleaned(run: Run, decision: Decision, clean: Clean) -> Decision:
    """A decision whose new effects carry no secret; itself where they carry none.

    What the origin of a fork has done is known without its secrets, so it is compared once more.
    """
    for pending in decision.entry.effects:
        if clean(pending.effect) is not pending.effect:
            return _cleaned(run, decision, clean)
    return decision


def _cleaned(run: Run, decision: Decision, clean: Clean) -> Decision:
    head, entry = decision.head, decision.entry
    found = {pending.key: new for pending in entry.effects if (new := _without_secrets(pending, clean)) is not pending}
    changed = {key: unless_performed(run, pending) for key, pending in found.items()}
    return Decision(
        replace(head, pending=tuple(changed.get(pending.key, pending) for pending in head.pending)),
        replace(entry, effects=tuple(changed.get(pending.key, pending) for pending in entry.effects)),
        decision.records,
    )


def _without_secrets(pending: Pending, clean: Clean) -> Pending:
    match pending.effect:
        case TellParent() as told:  # whom to tell is no secret, and has to be found
            effect: Effect = replace(told, reason=clean(told.reason), output=clean(told.output))
        case CancelChild():
            return pending
        case wanted:
            effect = clean(wanted)
    return pending if effect is pending.effect else replace(pending, effect=effect)


def fitted(read: Callable[[Any], T], value: Any, clean: Clean) -> T:
    """What is read from a value as it came, or a refusal without secrets."""
    try:
        return read(value)
    except Refused:
        pass
    raise Refused(misfit(read, value, clean))


def misfit(read: Callable[[Any], object], value: Any, clean: Clean) -> str:
    """Why a value is refused. That quotes a part of it, so its secrets are replaced before."""
    try:
        read(clean(value))
    except Refused as refusal:
        return str(refusal)
    return "it has a secret where none can stand"
