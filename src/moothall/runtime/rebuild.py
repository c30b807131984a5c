"""A run decided anew from its journal: every event again, without a single effect.

The journal is the truth of a run. Its first entry has the data that the run began with; each further entry has its
event, its cause, its time and what scripts answered, and that is all that a decision needs. So a head that is lost can
be made anew, and a journal can be compared with what its machine says today.

What was said stands: where an entry was made under a definition with other words, its effects keep the words that they
have in the journal, and that is no difference. Where somebody insisted on a definition that decides otherwise, the
entry that says so has the head from which it went on, and what came before is taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.errors import Broken, DefinitionError, MoothallError, Refused
from moothall.kernel.events import Adopted, Forked, Named, Retried, Started
from moothall.kernel.frozen import Frozen
from moothall.kernel.interpreter import PLACE
from moothall.kernel.step import Ask
from moothall.runtime.cleaner import cleaned
from moothall.runtime.decide import Decision, Incoming, decide, first, go_back, in_force
from moothall.runtime.journal import FORGOTTEN, Head, Pending, Reader, Run, answers_of, encode_entry, encode_pending
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
    require_texts(entries)
    seq, undone = beginning(entries), taken_back(entries)
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


def remembered(entries: Entries) -> Entries:
    """The entries before the first whose texts were forgotten: only these can be decided again."""
    first = next((place for place, entry in enumerate(entries) if FORGOTTEN in entry), len(entries))
    return entries[:first]


def require_texts(entries: Entries) -> None:
    """Refuse entries of which one was forgotten."""
    if len(known := remembered(entries)) < len(entries):
        raise Refused(
            f"the texts of entry {entries[len(known)]['seq']} were forgotten: what they said cannot be decided again"
        )


def definition_after(entries: Entries, digest: str) -> str:
    """The digest of the definition that a run has after these entries, if it began with this one."""
    for entry in reversed(entries):
        if entry["event"]["name"] == Forked.name:
            return digest
        if entry["event"]["name"] in (Adopted.name, Retried.name):
            return str(entry["event"]["digest"])
    return digest


def beginning(entries: Entries) -> int:
    """The entry from which a journal can be decided again: the first, or the last on which somebody insisted."""
    undone = taken_back(entries)
    insisted = (entry["seq"] for entry in reversed(entries) if _is_insisted(entry) and entry["seq"] not in undone)
    return int(next(insisted, 0))


def _is_insisted(entry: Mapping[str, Any]) -> bool:
    return entry["event"]["name"] == Adopted.name and entry["event"].get("head") is not None


def _is_the_same(reader: Reader, part: str, entry: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Whether two parts of an entry that are written differently mean the same.

    Values may have gained fields since, and a reason may have gained advice. Why an event was ignored is only words.
    """
    try:
        match part:
            case "effects":
                return bool([encode_pending(reader.pending(effect)) for effect in entry[part]] == again[part])
            case "event":
                has_gained = entry[part].keys() < again[part].keys()
                is_kept = all(again[part].get(name) == value for name, value in entry[part].items())
                return (has_gained and is_kept) or _is_given(reader, entry, again)
            case "reason":
                kept, decided = (str(version[part]).partition(PLACE)[0] for version in (entry, again))
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
    require_texts(entries)
    if not entries or entries[0]["cause"] != "start":
        raise Broken(f"run {run.record.run}: its journal has no beginning")
    line = {f"forked-{ancestor.record.run}": ancestor for ancestor in _lineage(run)}
    run, start, undone = list(line.values())[-1], beginning(entries), taken_back(entries)
    definition, decision = run.record.digest, None
    for entry in entries:
        if entry["seq"] in undone:
            continue
        if entry["event"]["name"] == Forked.name:
            if entry["cause"] not in line:
                raise Broken(f"run {run.record.run}: entry {entry['seq']} is of a fork that it does not come from")
            run = line[entry["cause"]]
            definition = run.record.digest
        if entry["seq"] >= start:
            decision = _decision_without_secrets(run, reader, decision, entry, clean)
            if not run.machine.is_defined_as(definition):
                decision = as_said(decision, reader, entry, clean)
            run = in_force(run, decision.head)
            yield entry, decision
        if entry["event"]["name"] in (Adopted.name, Retried.name):
            definition = entry["event"]["digest"]


def _decision_without_secrets(
    run: Run, reader: Reader, before: Decision | None, entry: Mapping[str, Any], clean: Clean
) -> Decision:
    decision = _decision(run, reader, before, entry)
    if isinstance(decision, Ask):
        raise DefinitionError(f"entry {entry['seq']} has no answer of the script {str(decision.script)[:SHOWN]}")
    return cleaned(run, decision, clean)


def taken_back(entries: Entries) -> frozenset[int]:
    """The entries that count no more, because the run was retried from before them."""
    notes = [entry for entry in entries if entry["event"]["name"] == Retried.name]
    return frozenset(seq for note in notes for seq in range(note["event"]["entry"], note["seq"]))


def _decision(run: Run, reader: Reader, before: Decision | None, entry: Mapping[str, Any]) -> Decision | Ask:
    answers = answers_of(entry)
    if before is None and not _is_insisted(entry):
        return first(run, reader.data(entry["event"]["data"]), answers)
    head = reader.head(entry["event"]["head"]) if before is None else before.head
    if entry["event"]["name"] == Retried.name:
        return go_back(run, head, Incoming(reader.event(entry["event"]), entry["cause"], entry["at"]), entry["seq"])
    return decide(run, head, Incoming(reader.event(entry["event"]), entry["cause"], entry["at"], answers))


def as_said(decision: Decision, reader: Reader, entry: Mapping[str, Any], clean: Clean) -> Decision:
    """A decision whose effects have the words of the journal, where nothing else is different."""
    said: dict[str, Pending] = {}
    for kept, pending in zip(entry["effects"], decision.entry.effects, strict=False):
        try:
            known = reader.pending(kept)
        except (MoothallError, LookupError, TypeError):
            continue
        paths = (*pending.effect.words, *reader.machine.words.get(pending.effect.kind, ()))
        if paths and differs_in_words(clean(encode_pending(known)), clean(encode_pending(pending)), paths):
            said[pending.key] = replace(pending, effect=clean(known.effect))
    if not said:
        return decision
    head, entry_ = decision.head, decision.entry
    return Decision(
        replace(head, pending=tuple(said.get(pending.key, pending) for pending in head.pending)),
        replace(entry_, effects=tuple(said.get(pending.key, pending) for pending in entry_.effects)),
    )


def differs_in_words(kept: Any, decided: Any, paths: Iterable[str]) -> bool:
    """Whether two effects in flight, as JSON, differ in what is said at these paths of the effect, and nowhere else.

    What fills a template in counts as words too, but under the same name it has to be the same.
    """
    if kept == decided:
        return False
    for path in paths:
        parts = ("effect", *path.split("."))
        before, after = _at(kept, parts), _at(decided, parts)
        are_named = isinstance(before, Mapping) and isinstance(after, Mapping)
        if are_named and any(after[name] != value for name, value in before.items() if name in after):
            return False
        kept, decided = _without(kept, parts), _without(decided, parts)
    return bool(kept == decided)


def _at(plain: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        plain = plain.get(part) if isinstance(plain, Mapping) else None
    return plain


def _without(plain: Any, parts: Sequence[str]) -> Any:
    """The same JSON without what is at a path."""
    if not isinstance(plain, Mapping) or parts[0] not in plain:
        return plain
    rest = {name: value for name, value in plain.items() if name != parts[0]}
    return rest if len(parts) == 1 else {**rest, parts[0]: _without(plain[parts[0]], parts[1:])}
