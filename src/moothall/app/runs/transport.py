"""Taking a run to another store in a file: `export` writes it, `import_runs` takes it in.

The file has two parts. One is for people and programs that read JSON: the record, the head and the entries. The other
is the parcel: the run as the store keeps it, seals and all, with the runs that it shares entries with and those that it
started. The parcel has a seal of its own, so that a damaged file is found before anything is written.

What an audit said where the run comes from stands in the parcel. Where the seal is of the same key, that counts here:
the run is anchored, and audited as it was there. Under another key nobody here can tell, and an audit says so.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from moothall.app.config.settings import cleaner
from moothall.app.runs.family import with_children
from moothall.app.runs.view import export as export_plain
from moothall.errors import Broken, Conflict, Refused
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store, Stored
from moothall.stores.luggage import PackedRun, Portable
from moothall.stores.postgresql import PostgresStore
from moothall.stores.sqlite import SqliteStore

FORMAT, VERSION = "moothall-run", 1
CAME = "it came from another store, where it may still be driven"


class Imported(Frozen):
    """What has come into a store: the run, all runs of the parcel with their entries, and what an audit says of it."""

    run: RunId
    runs: tuple[RunId, ...]
    entries: int
    verdict: str
    why: str
    is_live: bool
    """Whether the run is not over; it is set aside, because it may still be driven where it came from."""


async def export_run(store: Store, run: RunId) -> Mapping[str, Any]:
    """A run with all that is known of it, and its parcel.

    There is none where the store is in memory, or where a text in the journal has become a secret since.
    """
    plain = {"format": FORMAT, "version": VERSION, **await export_plain(store, run)}
    if not isinstance(store, SqliteStore | PostgresStore):
        return plain
    runs = {stored.record.run: stored for stored in await store.runs()}
    packed = [await store.pack_run(name) for name in _family(runs, run)]
    if any(_has_secret(parcel) for parcel in packed):
        return plain
    verdicts = {parcel.run: (await store.audit(parcel.run)).verdict for parcel in packed}
    content = {"run": run, "verdicts": verdicts, "runs": [_encode_run(parcel) for parcel in packed]}
    seal = await store.seal_parcel(_canonical(content))
    return {**plain, "parcel": {**content, "seal": seal.hex()}}


def _family(runs: Mapping[RunId, Stored], run: RunId) -> list[RunId]:
    """A run, those that it shares entries with, and those that any of these started; the oldest first."""
    wanted = {run}
    origin = runs[run].record.origin if run in runs else ""
    while origin and origin in runs:
        wanted.add(origin)
        origin = runs[origin].record.origin
    return [stored.record.run for stored in with_children([*runs.values()], wanted)]


def _has_secret(parcel: PackedRun) -> bool:
    clean = cleaner()
    bodies = [parcel.record, parcel.head, *(entry[2] for entry in parcel.entries), *(text for _, text in parcel.texts)]
    texts = [body.decode(errors="replace") for body in bodies]
    return any(clean(text) != text for text in texts)


async def import_runs(store: Store, text: bytes) -> Imported:
    """Take in the runs of a file that `export` wrote; all of them or none."""
    if not isinstance(store, SqliteStore | PostgresStore):
        raise Refused("a store in memory keeps nothing that comes from elsewhere; name another with --store")
    parcel = _parcel_in(text)
    content = {name: part for name, part in parcel.items() if name != "seal"}
    signed = await store.examine_parcel(_canonical(content), _unhex(parcel["seal"]))
    if signed is None:
        raise Refused("the file is damaged: it does not have what was exported; export the run again")
    packed = [_decode_run(plain) for plain in content["runs"]]
    there = {stored.record.run for stored in await store.runs()}
    if content["run"] in there:
        raise Conflict(f"run {content['run']} is in this store already; import it into another:  --store sqlite:FILE")
    fresh = [run for run in packed if run.run not in there]
    await _require_same(store, [run for run in packed if run.run in there])
    entries = await _take_in(store, fresh)
    for run in fresh:
        if signed == "ours" and content["verdicts"].get(run.run) == "intact":
            await store.vouch(run.run)
        if run.status == "live":
            await store.set_aside(run.run, CAME)
    audit = await store.audit(content["run"])
    is_live = any(run.run == content["run"] and run.status == "live" for run in fresh)
    names = tuple(run.run for run in fresh)
    return Imported(content["run"], names, entries, audit.verdict, audit.why, is_live)


async def _require_same(store: Portable, runs: list[PackedRun]) -> None:
    """Whether runs that are here already, such as one that a fork comes from, are those of the parcel."""
    for run in runs:
        here = await store.pack_run(run.run)
        if (here.record, here.entries[: len(run.entries)]) != (run.record, run.entries[: len(here.entries)]):
            raise Conflict(f"the store has another run {run.run}, which this one belongs to; import into another store")


async def _take_in(store: SqliteStore | PostgresStore, runs: list[PackedRun]) -> int:
    """Keep runs and read every entry back; where one does not hold, none is kept."""
    kept: list[RunId] = []
    entries = 0
    try:
        for run in runs:
            await store.unpack_run(run)
            kept.append(run.run)
            entries += len(await store.entries(run.run, run.entries[0][0] if run.entries else 0))
            if await store.pack_run(run.run) != run or (await store.audit(run.run)).verdict == "broken":
                raise Broken(f"run {run.run} is not whole in the file: an audit finds it broken; nothing was imported")
    except BaseException:
        for name in reversed(kept):
            await store.forget(name)
        raise
    return entries


# The file.


def _parcel_in(text: bytes) -> Mapping[str, Any]:
    remedy = "`moot export RUN -o FILE` writes a file that can be imported"
    try:
        plain = json.loads(text)
    except RecursionError as error:
        raise Refused(f"the file is nested too deeply; {remedy}") from error
    except ValueError as error:
        raise Refused(f"the file is not whole JSON ({error}); {remedy}") from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise Refused(f"the file is not an exported run; {remedy}")
    if plain.get("version") != VERSION:
        raise Refused(
            f"the file has format version {plain.get('version')!r}, and this Moothall reads {VERSION}; "
            "install the newer one:  pip install -U moothall"
        )
    parcel = plain.get("parcel")
    if parcel is None:
        raise Refused(
            "the file has the run for reading only: it was exported from a store in memory, or a text in it has "
            "become a secret since"
        )
    if not isinstance(parcel, dict) or not {"run", "verdicts", "runs", "seal"} <= parcel.keys():
        raise Refused(f"the file is damaged: parts of it are missing; {remedy}")
    return parcel


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _unhex(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        return b""


def _encode_run(packed: PackedRun) -> dict[str, Any]:
    return {field.name: _bytes_as_text(getattr(packed, field.name)) for field in fields(packed)}


def _bytes_as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"b64": b64encode(value).decode()}
    if isinstance(value, tuple | list):
        return [_bytes_as_text(item) for item in value]
    return value


def _decode_run(plain: Mapping[str, Any]) -> PackedRun:
    try:
        return PackedRun(**{name: _text_as_bytes(value) for name, value in plain.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise Refused(f"the file is damaged: a run in it cannot be read ({error})") from error


def _text_as_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return b64decode(value["b64"])
    if isinstance(value, list):
        return tuple(_text_as_bytes(item) for item in value)
    return value
