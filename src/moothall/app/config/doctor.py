"""Looks at an installation and a store, and says what is well, what is worth knowing, and what is wrong.

It makes no store, brings none up to date and moves no run. The journals of runs that are over are not read: they
may be many, and a damaged one harms nobody until it is looked at.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import shutil
import socket
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from moothall.agents.workspace import SandboxUnavailable
from moothall.app.config.access import opened
from moothall.app.config.models import LIBRARY, PROVIDERS, daily_purse, open_model, own_address
from moothall.app.config.settings import (
    LEVELS,
    Registered,
    Sourced,
    anchors_directory,
    audit_key_file,
    audit_key_variable,
    durability_of,
    hook_setting,
    is_on_server,
    known_secrets,
    level_model,
    own_settings,
    project,
    prune_setting,
    secret_variables,
    setting,
    settings,
    settings_file,
    store_address,
    store_file,
    usual_store,
)
from moothall.app.config.store import (
    Level,
    filesystem_of,
    free_space,
    is_elsewhere,
    look_at,
    may_be_made_in,
    nearest,
    others_at,
)
from moothall.app.notify.hook import Patience, ear_of
from moothall.app.notify.telemetry.exporter import endpoint_variable, exporter_problem
from moothall.app.notify.telemetry.parts import parts_of
from moothall.app.runs.begin import STAND_IN
from moothall.app.runs.view import summary_of
from moothall.app.sandbox import counts_memory, execute
from moothall.errors import DefinitionError, MoothallError
from moothall.models.purse import Purse
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import RunId
from moothall.runtime.ports import SET_ASIDE, Lease, Store
from moothall.scripting.children import is_installed
from moothall.stores.anchors import Anchors
from moothall.stores.connections import public_address
from moothall.stores.postgresql import PostgresStore

GIGABYTE = 1e9
LITTLE, TOO_LITTLE = 0.5, 0.05
NAMED = 5
SKEW = 2.0
"""So many seconds the clock of a server may differ from ours."""
ASIDE = SET_ASIDE.rstrip(": ")
MENDED = {(3, 44): 6, (3, 50): 7}
"""Where the WAL-reset bug of SQLite was mended too (sqlite.org/wal.html#walresetbug); it is in 3.7.0 to 3.51.2."""

TOOLS = {
    "chromium": "only the tests use it",
    "dot": "it draws what `moot graph --format dot` writes",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    level: Level
    says: str


@dataclass(slots=True)
class Census:
    """What the runs of a store come to."""

    counted: Counter[str] = field(default_factory=Counter)
    held: dict[str, list[Lease]] = field(default_factory=dict)
    ailing: dict[str, list[str]] = field(default_factory=dict)


def examine(address: str | None = None) -> tuple[Check, ...]:
    """Look at everything. What is named and is not an address of a store is refused."""
    if address is not None:
        store_file(address)
    looked = (*_store_checks(_store_address() if address is None else address), *_settings())
    return (python(), sqlite(sqlite3.sqlite_version_info), *looked, *_tools())


def _store_address() -> str:
    """The store that is set; the usual one where the settings cannot be read, which is told elsewhere."""
    try:
        return store_address()
    except DefinitionError:
        return usual_store()


def _store_checks(address: str) -> Iterator[Check]:
    try:
        file = store_file(address)
    except DefinitionError as error:
        yield Check("store", "problem", f"{setting('store').origin}: {error}")
        return
    if is_on_server(address):
        yield from _server(address)
    elif file is None:
        yield Check("store", "ok", "memory: it is gone when the process is")
    else:
        yield from _store(address, file)
        yield from _place(file)


def _server(address: str) -> Iterator[Check]:
    """A store on a server: whether it lets us in, what its runs come to, and whether its clock is ours."""
    shown, census = public_address(address), Census()
    try:
        with opened(address, "full") as store:
            strays, skew, engine = asyncio.run(_look_at_server(census, store))
    except MoothallError as error:
        yield Check("store", "problem", str(error))
        return
    yield Check("store", "ok", f"{shown}: it lets us in")
    yield server_clock(skew)
    remedy = f"start workers with --engine {engine}; `moot worker --engine own` takes the store back"
    yield Check("engine", "ok", f"{engine} pumps the runs; {remedy}" if engine else "own: workers of this store")
    yield from _census_checks(census, is_shared=True)
    yield from _stray_checks(strays)


async def _look_at_server(census: Census, store: Store) -> tuple[Mapping[RunId, str], float, str]:
    assert isinstance(store, PostgresStore)
    skew, engine = await store.clock() - time.time(), await store.engine()
    await _count(census, store, [stored.record.run for stored in await store.runs()])
    return await store.strays(), skew, engine


def server_clock(skew: float) -> Check:
    """How far the clock of the server is from ours: leases and timers go by the clocks of the workers."""
    if abs(skew) < SKEW:
        return Check("clock", "ok", f"within {SKEW:g} s of the server's")
    side = "behind" if skew > 0 else "ahead of"
    remedy = "let NTP set the clocks of all hosts, or workers take runs from each other"
    return Check("clock", "warning", f"{abs(skew):.0f} s {side} the server's; {remedy}")


def python() -> Check:
    """The interpreter."""
    return Check("python", "ok", platform.python_version())


def sqlite(number: tuple[int, ...]) -> Check:
    """The database library, and whether it has a bug that we know of."""
    said = ".".join(map(str, number))
    if not has_reset_bug(number):
        return Check("sqlite", "ok", said)
    why = "several processes that write to one store at the same moment may, very rarely, damage it"
    return Check("sqlite", "warning", f"{said} has the WAL-reset bug: {why}; mended in 3.51.3, 3.50.7 and 3.44.6")


def has_reset_bug(number: tuple[int, ...]) -> bool:
    """Whether a version of SQLite has the bug, by its number; a distributor may have mended it all the same."""
    mended = MENDED.get((number[0], number[1]))
    return (3, 7, 0) <= number < (3, 51, 3) and (mended is None or number[2] < mended)


def _store(address: str, file: Path) -> Iterator[Check]:
    seen = look_at(file)
    yield Check("store", seen.level, f"{address}: {seen.says}")
    if seen.runs is not None and file.stat().st_mode & 0o077:
        yield Check("store", "warning", f"others may read or change {file}; `chmod 600` it")
    census = Census()
    if seen.runs is not None and seen.has_log:
        yield Check("log", "ok", "the write-ahead log is on")
        try:
            with opened(address, "full") as store:
                asyncio.run(_count(census, store, seen.runs))
                strays = asyncio.run(store.strays())
            yield from _census_checks(census)
            yield from _stray_checks(strays)
        except DefinitionError as error:
            yield Check("runs", "problem", f"they cannot be read: {error}")
    elif seen.runs is not None:
        yield Check("log", "warning", "the write-ahead log is off; the next command turns it on, if the disk allows it")
    else:
        lost = Anchors(anchors_directory(), "", file).lost()
        yield from _stray_checks(dict.fromkeys(lost, "it is gone, although the anchors know it"))
    yield from sharing(others_at(file) | _alive(census.held))


async def _count(census: Census, store: Store, runs: Sequence[RunId]) -> None:
    for run in runs:
        try:
            stored = await store.load(run)
            summary = summary_of(stored)
            if stored.status == "live" or not stored.head:
                await store.entries(run)
        except MoothallError as error:
            census.counted["unreadable"] += 1
            census.ailing.setdefault("unreadable", []).append(f"{run} ({error})")
            continue
        census.counted[summary.status] += 1
        if summary.status in ("damaged", ASIDE):
            census.ailing.setdefault(summary.status, []).append(run)
        if stored.lease.owner:
            census.held.setdefault(stored.lease.owner.rpartition(":")[0], []).append(stored.lease)


AILMENTS: Mapping[str, tuple[Level, str]] = {
    "unreadable": ("problem", "bring back a copy of the file"),
    "damaged": ("warning", "`moot resume` makes the head of each anew from its journal"),
    ASIDE: ("warning", "`moot show` says why; `moot resume` tries one once more, `moot cancel` ends it"),
}


def _census_checks(census: Census, *, is_shared: bool = False) -> Iterator[Check]:
    counted = ", ".join(f"{count} {status}" for status, count in sorted(census.counted.items()))
    yield Check("runs", "ok", counted or "none yet")
    for holder, leases in sorted(census.held.items()):
        yield holding(holder, leases, time.time(), is_shared=is_shared)
    for ailment, (level, remedy) in AILMENTS.items():
        if runs := census.ailing.get(ailment):
            more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
            yield Check(ailment, level, f"{', '.join(runs[:NAMED])}{more}; {remedy}")


def _stray_checks(strays: Mapping[RunId, str]) -> Iterator[Check]:
    """The runs that are behind their anchors, or gone: the store was deleted, or is an older copy, or lost its log."""
    if strays:
        named = ", ".join(f"{run} ({why})" for run, why in list(strays.items())[:NAMED])
        more = f" and {len(strays) - NAMED} more" if len(strays) > NAMED else ""
        remedy = "bring the newest copy back, or `moot audit RUN --accept` each that is to be as it is"
        yield Check("behind", "problem", f"{named}{more}; nothing of them is performed; {remedy}")


def holding(holder: str, leases: Sequence[Lease], now: float, *, is_shared: bool = False) -> Check:
    """Who holds runs, and whether it can still be heard of."""
    held = f"{holder} holds {len(leases)} run{'s' if len(leases) > 1 else ''}"
    if is_gone(leases[0].owner):
        return Check("holder", "warning", f"{held}, but is gone; `moot worker` or `moot resume` goes on with them")
    if max(lease.until for lease in leases) < now:
        return Check("holder", "warning", f"{held}, but was not heard of in time; others may go on with them")
    if is_shared and holder.partition(":")[0] != socket.gethostname():
        return Check("holder", "ok", f"{held}, and was heard of in time")
    if holder.partition(":")[0] != socket.gethostname():
        return Check("holder", "warning", f"{held} from another host, which a write-ahead log does not allow")
    return Check("holder", "ok", f"{held}, and is alive")


def _alive(held: Mapping[str, Sequence[Lease]]) -> set[int]:
    """The processes of this host that hold runs and are there."""
    here = socket.gethostname()
    parts = [holder.partition(":") for holder, leases in held.items() if not is_gone(leases[0].owner)]
    return {int(process) for host, _, process in parts if host == here and process.isdigit()} - {os.getpid()}


def sharing(processes: set[int]) -> Iterator[Check]:
    """Who has the store open besides us."""
    named = ", ".join(map(str, sorted(processes)))
    if len(processes) == 1:
        yield Check("sharing", "ok", f"process {named} has the store open")
    elif processes:
        bug = "; this SQLite has the WAL-reset bug" if has_reset_bug(sqlite3.sqlite_version_info) else ""
        said = f"{len(processes)} processes have the store open ({named}), and write in turns{bug}"
        yield Check("sharing", "warning", said)


def _place(file: Path) -> Iterator[Check]:
    if kind := filesystem_of(Path(os.path.realpath(nearest(file)))):
        yield filesystem(kind)
    free = free_space(file) / GIGABYTE
    yield Check("disk", "problem" if free < TOO_LITTLE else "warning" if free < LITTLE else "ok", f"{free:.1f} GB free")


def filesystem(kind: str) -> Check:
    """What the store lies on: a write-ahead log needs memory that all who open the file share."""
    if not is_elsewhere(kind):
        return Check("filesystem", "ok", kind)
    why = "SQLite's write-ahead log works only where all who open the file run on one host"
    return Check("filesystem", "warning", f"{kind} is or may be a network filesystem, and {why}")


def _settings() -> Iterator[Check]:
    """What is set, where the files can be read; where they cannot, that."""
    try:
        settings()
    except DefinitionError as error:
        yield Check("settings", "problem", f"{error}; every other command stops at that")
        yield from _secrets(secret_variables())
    else:
        yield from _files()
        yield from _model_checks()
        yield from _secrets(known_secrets())
    yield key(audit_key_file())
    yield anchors(anchors_directory())


def _model_checks() -> Iterator[Check]:
    named = setting("model")
    instead = "those of the levels play" if level_model("base").value else f"{STAND_IN} stands in, and says so"
    yield model("model", named) if named.value else Check("model", "ok", f"none is set; {instead}")
    yield from (model(level, found) for level in LEVELS if (found := level_model(level)).value)
    yield from _keys()
    try:
        kept = durability_of()
        yield Check("durability", "ok" if kept == "full" else "warning", f"{kept}{_from(setting('durability'))}")
    except MoothallError as error:
        yield Check("durability", "problem", f"{setting('durability').origin}: {error}")
    yield retention()
    if (purse := daily_purse()) is not None:
        yield spending(purse)
    if target := hook_setting():
        yield hook(target)
    if (found := setting("telemetry")).value:
        yield telemetry(found)
    elif variable := endpoint_variable():
        said = f'{variable} is set, and nothing is sent there: set telemetry = "spans", or MOOTHALL_TELEMETRY=spans'
        yield Check("telemetry", "warning", said)


def retention() -> Check:
    """Whether workers delete old runs."""
    try:
        days = prune_setting()
    except MoothallError as error:
        return Check("retention", "problem", f"{setting('prune').origin}: {error}")
    if days is None:
        return Check("retention", "ok", "no run is deleted by itself; prune = DAYS in the settings does it")
    return Check("retention", "ok", f"workers delete runs {days:g} days after their end{_from(setting('prune'))}")


def spending(purse: Purse) -> Check:
    """What is left of what all runs may spend today."""
    try:
        spent = purse.spent_today()
    except MoothallError as error:
        return Check("spending", "problem", str(error))
    told = f"usd {spent:.2f} of {purse.limit:.2f} were spent today (daily_usd)"
    if spent < purse.limit:
        return Check("spending", "ok", told)
    return Check("spending", "warning", f"{told}; calls wait until tomorrow (UTC)")


def _secrets(found: Registered) -> Iterator[Check]:
    """Which secrets are known by name; their values are nobody's business."""
    names = ", ".join(secret.name for secret in found.secrets)
    yield Check("secrets", "ok", f"{names or 'none'} registered; keys of known formats are replaced too")
    for name, why in found.passed_over.items():
        yield Check("secrets", "warning", f"{name} is not replaced: {why}")
    for name, why in found.refused.items():
        yield Check("secrets", "problem", f"MOOTHALL_SECRETS: {name}: {why}")


def _from(found: Sourced) -> str:
    return f" ({found.origin})" if found.origin else ""


def _files() -> Iterator[Check]:
    file = settings_file()
    if not os.path.isfile(file):
        yield Check("settings", "ok", f"{file} is not there; nothing needs it")
    elif any(address.key for address in own_settings().addresses.values()) and file.stat().st_mode & 0o077:
        yield Check("settings", "warning", f"{file} has a key in it, and others may read it; `chmod 600` it")
    else:
        yield Check("settings", "ok", str(file))
    found = project()
    if found is not None:
        said = f"not used: {found.file}: {found.unused}" if found.unused else f"{found.file} is trusted"
        yield Check("project", "warning" if found.unused else "ok", said)


def model(name: str, found: Sourced) -> Check:
    """A model that is set, and whether it can be opened."""
    try:
        open_model(found.value)
    except MoothallError as error:
        return Check(name, "problem", f"{found.origin}: {error}")
    return Check(name, "ok", f"{found.value}{_from(found)}")


def _keys() -> Iterator[Check]:
    """Which keys are set and where they go; never what they are."""
    for provider in PROVIDERS.values():
        for name in provider.keys:
            if os.environ.get(name):
                yield Check("key", "ok", f"{name} is set; it goes to {own_address(provider)} alone")
    for address, bound in settings().addresses.items():
        if bound.key_from and not os.environ.get(bound.key_from):
            yield Check("key", "warning", f"{bound.key_from} is not set; {address} gets no key")
        elif bound.key_from or bound.key:
            yield Check("key", "ok", f"{bound.key_from or 'the one in settings.toml'} goes to {address}")


def hook(target: str) -> Check:
    """Who is told when a run waits, and whether it can be."""
    origin = setting("on_wait").origin
    try:
        name = ear_of(target, Patience()).name
    except MoothallError as error:
        return Check("on wait", "problem", f"{origin}: {error}")
    if not name.startswith("http") and shutil.which(shlex.split(target)[0]) is None:
        return Check("on wait", "problem", f"{origin}: there is no command {name}")
    return Check("on wait", "ok", f"{name} is told")


def key(file: Path) -> Check:
    """The key that journals are signed with: who else can read it can sign what they like."""
    try:
        mode, body = file.stat().st_mode, file.read_bytes()
    except FileNotFoundError:
        if audit_key_variable():
            return Check("signing", "problem", f"MOOTHALL_AUDIT_KEY: {file} is not there")
        return Check("signing", "ok", f"{file} is not there yet; the first run makes it")
    except OSError as error:
        return Check("signing", "problem", f"it cannot be read: {error}")
    if not body:
        return Check("signing", "warning", f"{file} is empty: nothing is signed, and audits cannot tell")
    if mode & 0o077:
        return Check("signing", "warning", f"others may read or change {file}; `chmod 600` it")
    return Check("signing", "ok", f"{file}")


def anchors(folder: Path) -> Check:
    """Where the ends of journals are remembered outside the store: without that, audits cannot tell."""
    if not may_be_made_in(folder):
        return Check("anchors", "problem", f"{folder} cannot be written; audits will not be able to tell")
    if nearest(folder) != folder.absolute():
        return Check("anchors", "ok", f"{folder} is not there yet; the first run makes it")
    locked = [file.name for file in folder.glob("*.jsonl") if not os.access(file, os.W_OK)]
    if locked:
        return Check("anchors", "problem", f"{folder / locked[0]} cannot be written; audits will not be able to tell")
    if any(path.stat().st_mode & 0o022 for path in (folder, *folder.glob("*.jsonl"))):
        return Check("anchors", "warning", f"others may change {folder}, and with it what audits go by")
    return Check("anchors", "ok", f"{folder}, can be written")


def telemetry(found: Sourced) -> Check:
    """Who else is told what goes on, and whether it can be."""
    try:
        parts = parts_of(found.value)
    except MoothallError as error:
        return Check("telemetry", "problem", f"{found.origin}: {error}")
    said = f"{', '.join(map(str, parts))}{_from(found)}"
    has_spans = "spans" in {part.name for part in parts}
    if has_spans and (problem := exporter_problem()):
        return Check("telemetry", "warning", f"{said}; {problem}")
    if has_spans and find_spec("opentelemetry.sdk") is None:
        lacking = "spans go nowhere without an SDK: pip install 'moothall[tracing]', or another"
        return Check("telemetry", "warning", f"{said}; {lacking}")
    return Check("telemetry", "ok", said)


def _tools() -> Iterator[Check]:
    missing = "not found; expressions in JavaScript cannot be evaluated without it"
    yield Check("quickjs", "ok", "found") if is_installed() else Check("quickjs", "warning", missing)
    lacking = "not found; models of providers need it: pip install 'moothall[models]'"
    yield Check("pydantic-ai", "ok", lacking if find_spec(LIBRARY) is None else "found")
    yield _sandbox()
    for tool, use in TOOLS.items():
        there = shutil.which(tool)
        yield Check(tool, "ok", there if there is not None else f"not found; {use}")


def _sandbox() -> Check:
    """What protects this machine from the commands of agents: found out by running one."""
    try:
        with tempfile.TemporaryDirectory(prefix="moothall-") as folder:
            execution = execute(["true"], workspace=folder)
    except SandboxUnavailable as error:
        return Check("sandbox", "warning", f"nothing protects this machine, so agents run no commands: {error}")
    except (MoothallError, OSError) as error:
        return Check("sandbox", "warning", f"it cannot be tried: {error}")
    if execution.exit_code:
        return Check("sandbox", "warning", f"a command that does nothing ended with {execution.exit_code}")
    apart = "" if counts_memory() else "; without control groups the limit of memory holds for each process"
    return Check("sandbox", "ok", f"{execution.level} protects this machine from the commands of agents{apart}")
