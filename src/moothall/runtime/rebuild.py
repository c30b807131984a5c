"""A run decided anew from its journal: every event again, without a single effect.

The journal is the truth of a run. Its first entry has the data that the run began with; each further entry has its
event, its cause, its time and what scripts answered, and that is all that a decision needs. So a head that is lost can
be made anew, and a journal can be compared with what its machine says today.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.errors import Broken, DefinitionError, MoothallError, Refused
from moothall.kernel.events import Adopted, Forked, Named, Retried, Started
from moothall.kernel.frozen import Frozen
from moothall.kernel.interpreter import PLACE
from moothall.runtime.cleaner import cleaned
from moothall.runtime.decide import Decision, Happening, Run, Unanswered, decide, first, go_back, in_force
from moothall.runtime.journal import Head, Reader, answers_of, encode_entry, encode_pending
from moothall.runtime.ports import Clean, as_it_is

SHOWN = 160
Entries = Sequence[Mapping[str, Any]]


class Difference(Frozen):
    """The first place where a journal and its machine disagree: what stands there, and what would."""

    seq: int
    part: str
    kept: Any
    decided: Any

    def __str__(self) -> str:
        kept, decided = _shown(self.kept), _shown(self.decided)
        return f"entry {self.seq} differs in {self.part!r}: it says {kept}, now it would be {decided}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def rebuilt(run: Run, reader: Reader, entries: Entries, clean: Clean = as_it_is) -> Head:
    """The head after these entries, if they are the journal of this run and say the same as its machine does."""
    for entry, decision in decided_again(run, reader, entries, clean):
        head = decision.head
        if entry["seq"] and (list(head.snapshot.active) != entry["to"] or head.seq != entry["seq"]):
            raise Broken(f"run {run.record.run}: entry {entry['seq']} does not follow from the ones before it")
    return head


def compared(run: Run, reader: Reader, entries: Entries, clean: Clean = as_it_is) -> Head | Difference:
    """The head after these entries, or where they and what their machine says today disagree for the first time.

    The data that a run began with are given and not decided; they may have gained fields since. Both are compared
    without secrets: a journal may be older than the registration of one.
    """
    seq, undone = 0, taken_back(entries)
    try:
        for entry, decision in decided_again(run, reader, entries, clean):
            seq, again = entry["seq"], encode_entry(decision.entry)
            for part in dict.fromkeys((*entry, *again)):
                kept, decided = clean(entry.get(part)), clean(again.get(part))
                if kept != decided and not _is_the_same(reader, part, entry, again):
                    return Difference(seq, part, kept, decided)
            seq += 1
    except (Refused, DefinitionError) as error:
        wrong = next(entry for entry in entries if entry["seq"] >= seq and entry["seq"] not in undone)
        return Difference(wrong["seq"], "event", clean(wrong["event"]), clean(str(error)))
    return decision.head


def definition_after(entries: Entries, digest: str) -> str:
    """The digest of the definition that a run has after these entries, if it began with this one."""
    for entry in reversed(entries):
        if entry["event"]["name"] == Forked.name:
            return digest
        if entry["event"]["name"] in (Adopted.name, Retried.name):
            return str(entry["event"]["digest"])
    return digest


def _is_the_same(reader: Reader, part: str, entry: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Whether two parts of an entry that are written differently mean the same.

    Values may have gained fields since, and a reason may have gained advice. Why an event was ignored is only words.
    """
    try:
        match part:
            case "effects":
                return bool([encode_pending(reader.pending(one)) for one in entry[part]] == again[part])
            case "event":
                has_gained = entry[part].keys() < again[part].keys()
                is_kept = all(again[part].get(name) == value for name, value in entry[part].items())
                return (has_gained and is_kept) or _is_given(reader, entry, again)
            case "reason":
                kept, decided = (str(one[part]).partition(PLACE)[0] for one in (entry, again))
                return kept == decided or decided.startswith(f"{kept}; ")
            case "ignored":
                return part in entry and part in again
            case "raised":  # journals of before do not say what was raised
                return part not in entry
    except (MoothallError, LookupError, TypeError):
        return False
    return False


def _is_given(reader: Reader, entry: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Whether events differ only in what nothing was decided by: the first one's data, or a class that no row takes.

    Of an event whose class it does not know, a machine has read nothing but its name.
    """
    kept, decided = entry["event"], again["event"]
    if kept["name"] != decided["name"]:
        return False
    if kept["name"] == Started.name:
        return bool(kept.keys() == decided.keys())
    return not entry["taken"] and isinstance(reader.event(kept), Named)


def _lineage(run: Run | None) -> Iterator[Run]:
    """A run, the one that it was forked from, and so on."""
    while run is not None:
        yield run
        run = run.origin


def decided_again(
    run: Run, reader: Reader, entries: Entries, clean: Clean = as_it_is
) -> Iterator[tuple[Mapping[str, Any], Decision]]:
    """Each entry of a journal with the decision that its machine makes today."""
    if not entries or entries[0]["cause"] != "start":
        raise Broken(f"run {run.record.run}: its journal has no beginning")
    line = {f"forked-{one.record.run}": one for one in _lineage(run)}
    run = list(line.values())[-1]
    decision: Decision | None = None
    undone = taken_back(entries)
    for entry in entries:
        if entry["seq"] in undone:
            continue
        if entry["event"]["name"] == Forked.name:
            if entry["cause"] not in line:
                raise Broken(f"run {run.record.run}: entry {entry['seq']} is of a fork that it does not come from")
            run = line[entry["cause"]]
        try:
            decision = cleaned(run, _decision(run, reader, decision, entry), clean)
        except Unanswered as unanswered:
            script = str(unanswered.ask.script)[:SHOWN]
            raise DefinitionError(f"entry {entry['seq']} has no answer of the script {script}") from unanswered
        run = in_force(run, decision.head)
        yield entry, decision


def taken_back(entries: Entries) -> frozenset[int]:
    """The entries that count no more, because the run was retried from before them."""
    notes = [entry for entry in entries if entry["event"]["name"] == Retried.name]
    return frozenset(seq for note in notes for seq in range(note["event"]["entry"], note["seq"]))


def _decision(run: Run, reader: Reader, before: Decision | None, entry: Mapping[str, Any]) -> Decision:
    answers = answers_of(entry)
    if before is None:
        return first(run, reader.data(entry["event"]["data"]), answers)
    if entry["event"]["name"] == Retried.name:
        happening = Happening(reader.event(entry["event"]), entry["cause"], entry["at"])
        return go_back(run, before.head, happening, entry["seq"])
    return decide(run, before.head, Happening(reader.event(entry["event"]), entry["cause"], entry["at"], answers))
