"""Whether a run is as it was written: what its file, its signatures and its anchors say together.

- A chain that does not hold, a signature that pretends to be ours, an entry that is missing, one too many, or one that
  an anchor knows differently: broken, and the first such entry is named.
- Signatures of another key, or none: nobody can tell.
- An end that no anchor vouches for may have been cut off: nobody can tell.
- Only what is whole, signed by us and anchored at its latest entry is intact.

Entries whose texts were forgotten are no damage, where who has the key vouches for each of them; it is said which.

A run that is not where its anchors know it is behind them: what was performed since might be performed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from moothall.runtime.journal import FORGOTTEN, Record, RunId
from moothall.runtime.ports import Audit, Forgotten
from moothall.stores.anchors import BEGINNING, Anchor, Tip
from moothall.stores.plain import read
from moothall.stores.seals import SIZE, Sealing, chain_start, note_of, without_note


class Link(NamedTuple):
    """An entry as it stands in the file, and whether it can be read."""

    seq: Any
    cause: Any
    body: Any
    seal: Any
    is_readable: bool


class Crown(NamedTuple):
    """A head as it stands in the file, with the seal of its entry, and whether it can be read."""

    body: Any
    tip: Any
    seal: Any
    is_readable: bool


class Trail(NamedTuple):
    """All that the file has of a run; of a run that another was forked from, up to what they share and without head."""

    run: RunId
    record: Record | None
    sealed: Any
    latest: Any
    links: tuple[Link, ...]
    head: Crown | None


class Fault(NamedTuple):
    """What is wrong with a run, and with which entry it begins."""

    why: str
    entry: int | None = None


def verdict(
    run: RunId,
    trails: Sequence[Trail],
    said: Mapping[RunId, Sequence[Anchor]],
    sealing: Sealing,
    digest: tuple[int, bytes] | None,
) -> Audit:
    """The verdict on the last of these runs; the others are those that it was forked from, the oldest first."""
    if not trails and all(anchor.seq == BEGINNING for anchor in said[run]):
        return Audit(run, "cannot tell", "it is not there, and the anchors know only that it was about to begin")
    if not trails:
        return Audit(run, "broken", "it is gone, although the anchors know it")
    shared = b""
    for trail in trails:
        faults = [*_faults(trail, shared, sealing), *_stray_faults(trail, said[trail.run])]
        if faults:
            fault = min(faults, key=lambda fault: inf if fault.entry is None else fault.entry)
            whose = "" if trail.run == run else f"run {trail.run}, which it was forked from: "
            return Audit(run, "broken", whose + fault.why, fault.entry)
        shared = trail.links[-1].seal
    return _verdict(trails, said[run], sealing, digest)


def behind(tip: Tip | None, latest: int, seal: bytes | None) -> str:
    """Why a run is not where its anchors know it; "" where it is.

    `latest` is the entry where it stands, -1 where it is not there; `seal` that of the entry that the anchors know.
    """
    if tip is None or tip[0] == BEGINNING:
        return ""
    if latest < 0:
        return f"it is gone, although the anchors know entry {tip[0]}"
    if latest < tip[0]:
        return f"it ends with entry {latest}, although the anchors know entry {tip[0]}"
    if tip[1] and seal != tip[1]:
        return f"entry {tip[0]}, or one before it, is not the one that the anchors know"
    return ""


def _faults(trail: Trail, shared: bytes, sealing: Sealing) -> Iterator[Fault]:
    """What is wrong with a trail, as far as the file alone can tell."""
    if trail.record is None:
        yield Fault("the record of how it began was changed")
        return
    before = chain_start(trail.run, shared)
    expected = trail.record.shared + 1
    for link in trail.links:
        if link.seq != expected:
            yield Fault(f"entry {expected} is missing", expected)
            return
        if not sealing.entry_holds(before, link.seq, link.body, link.seal) or not link.is_readable:
            yield Fault(f"entry {expected} was changed or does not belong there", expected)
            return
        before, expected = link.seal, expected + 1
    if trail.latest != (newest := expected - 1):
        first = min(trail.latest, newest) + 1 if type(trail.latest) is int else None
        yield Fault("its head does not know where its journal ends" if first is None else _ends(trail, first), first)
    elif trail.head is not None:
        head, tip, seal, is_readable = trail.head
        if tip != before or not sealing.head_holds(tip, trail.sealed[SIZE:], head, seal) or not is_readable:
            yield Fault("its head was changed")


def _ends(trail: Trail, first: int) -> str:
    return f"entry {first} is missing" if first <= trail.latest else f"entry {first} is not known to its head"


def _stray_faults(trail: Trail, said: Sequence[Anchor]) -> Iterator[Fault]:
    """Where a trail is not what the anchors say."""
    seals = {link.seq: link.seal for link in trail.links if type(link.seal) is bytes}
    if trail.head is None or trail.record is None:
        return
    newest = max((seq for seq in seals if type(seq) is int), default=trail.record.shared)
    for anchor in said:
        if anchor.seq > newest:
            yield Fault(f"entry {newest + 1} is missing: the anchors know entry {anchor.seq}", newest + 1)
        elif anchor.seal and anchor.seq in seals and seals[anchor.seq] != anchor.seal:
            yield Fault(f"entry {anchor.seq}, or one before it, is not the one that the anchors know", anchor.seq)
    heads = {anchor.head for anchor in said if anchor.seq == newest and anchor.head}
    if heads and trail.head.seal not in heads:
        yield Fault("its head is not the one that the anchors know")


def _verdict(
    trails: Sequence[Trail], said: Sequence[Anchor], sealing: Sealing, digest: tuple[int, bytes] | None
) -> Audit:
    """The verdict on a run of which nothing is wrong as far as can be seen."""
    trail = trails[-1]
    latest, seal = trail.latest, trail.links[-1].seal
    forgotten = _forgotten(trails)
    found = Audit(trail.run, "cannot tell", "", None, latest + 1, f"{latest}:{seal.hex()}", forgotten)
    if digest is not None and (fault := _against(trails, digest)) is not None:
        return Audit(trail.run, "broken", fault.why, fault.entry)
    links = [link for part in trails for link in part.links]
    signed = [sealing.signed(seal) for link in links for seal in (link.seal, note_of(link.body)) if seal]
    signed += [sealing.signed(part.sealed[:SIZE]) for part in trails]
    assert trail.head is not None
    if any(signer != "ours" for signer in (*signed, sealing.signed(trail.head.seal))):
        return _with(found, "cannot tell", "not all of it was signed with this key")
    if said and said[-1].said == "accepted":
        return _with(found, "cannot tell", f"a person has accepted it as it is, at entry {said[-1].seq}")
    rested = max((anchor.seq for anchor in said if anchor.said == "rests"), default=-1)
    moved = max((anchor.seq for anchor in said if anchor.said == "moves"), default=-1)
    whole = "every entry is as it was written, " + ("but for what was forgotten, " if forgotten else "")
    if rested == latest and moved < latest:
        return _with(found, "intact", f"{whole}and the latest is anchored")
    if digest is not None and digest[0] == latest:
        return _with(found, "intact", f"{whole}up to that of the digest, which is the latest")
    if not said:
        return _with(found, "cannot tell", "no anchor outside the store knows it, so its end may have been cut off")
    return _with(found, "cannot tell", f"no anchor knows where it rests after entry {max(rested, moved)}")


def _forgotten(trails: Sequence[Trail]) -> tuple[Forgotten, ...]:
    """Whose texts were forgotten, the oldest first."""
    known: dict[tuple[Any, ...], list[int]] = {}
    for trail in trails:
        for link in trail.links:
            if note_of(link.body):
                for note in read(without_note(link.body)).get(FORGOTTEN, ()):
                    known.setdefault((note["at"], note["by"], note["what"]), []).append(link.seq)
    return tuple(Forgotten(at, by, what, tuple(entries)) for (at, by, what), entries in sorted(known.items()))


def _against(trails: Sequence[Trail], digest: tuple[int, bytes]) -> Fault | None:
    """Where a run is not the one of which a digest was kept elsewhere."""
    (seq, seal), latest = digest, trails[-1].latest
    if seq > latest:
        return Fault(f"entry {latest + 1} is missing: the digest knows entry {seq}", latest + 1)
    if all((link.seq, link.seal) != (seq, seal) for trail in trails for link in trail.links):
        return Fault(f"entry {seq}, or one before it, is not that of the digest", seq)
    return None


def _with(audit: Audit, verdict: Any, why: str) -> Audit:
    return replace(audit, verdict=verdict, why=why)
