"""Which definition a run goes on under, where it is not the one that it has.

- The same in other words: the run is adopted as it stands. What was asked already was asked in the words of then.
- Another: its journal is decided again under the new definition, without a single effect. The same steps: adopted.
- Else it is refused with the first difference, unless somebody insists and says why. Then the run goes on from where
  it stands, if the new definition can stand there.

An adoption is a value: the head, and the event for the journal. Whoever opens the run commits it.
"""

from __future__ import annotations

from collections.abc import Sequence

from moothall.errors import Broken, DefinitionError
from moothall.kernel.events import Adopted
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import Head, Reader, Run, encode_head
from moothall.runtime.ports import Clean, Stored
from moothall.runtime.rebuild import Difference, Entries, compared

WORDING = "another wording"
"""Why a run is adopted that would take the same steps by its very definition."""


class Insistence(Frozen):
    """Somebody knows that a definition decides otherwise, and wants the run to go on under it: who, and why."""

    reason: str
    by: str = ""


class Adoption(Frozen):
    """Where a run stands under its new definition, and what its journal says about that."""

    head: Head
    event: Adopted


def adopt_wording(run: Run, reader: Reader, stored: Stored) -> Adoption | None:
    """The adoption by a definition that says the same in other words; None where it does not, or the head is lost."""
    if not run.machine.decides_as(stored.definition()):
        return None
    try:
        head = reader.head(stored.head)
    except Broken:
        return None
    return Adoption(head, Adopted(run.machine.digest, stored.definition(), WORDING))


def adopt_steps(run: Run, reader: Reader, stored: Stored, entries: Entries, clean: Clean) -> Adoption | Difference:
    """The adoption by a definition that would have taken the same steps, or the first difference."""
    head = compared(run, reader, entries, clean)
    if isinstance(head, Difference):
        return head
    return Adoption(head, Adopted(run.machine.digest, stored.definition()))


def adopt_anyway(run: Run, reader: Reader, stored: Stored, difference: Difference, insisted: Insistence) -> Adoption:
    """The adoption on which somebody insists, if the new definition can stand where the run does."""
    try:
        head = reader.head(stored.head)
    except Broken as error:
        raise DefinitionError(f"run {run.record.run} cannot be adopted by this definition: {error}") from error
    known = {place.name for place in run.machine.chart.places}
    owners = [pending.owner for pending in head.pending if pending.owner is not None]
    if missing := _missing((*head.snapshot.active, *owners), known):
        raise DefinitionError(
            f"run {run.record.run} cannot be adopted by this definition: it stands in {', '.join(missing)}, and "
            f"{run.machine.name!r} has no such state"
        )
    event = Adopted(
        run.machine.digest, stored.definition(), insisted.reason, insisted.by, str(difference), encode_head(head)
    )
    return Adoption(head, event)


def _missing(names: Sequence[str], known: set[str]) -> list[str]:
    return sorted({name for name in names if name not in known})


def refusal(run: Run, difference: Difference) -> DefinitionError:
    """Why a run cannot go on under a definition, and what to do."""
    record = run.record
    earlier = f", `moot fork {record.run} --at {difference.seq - 1}` from before it" if difference.seq else ""
    return DefinitionError(
        f"run {record.run} cannot go on under this definition of {run.machine.name!r}: {difference}; "
        f"bring the old one back{earlier}, or let it go on all the same:  moot resume {record.run} --adopt WHY"
    )
