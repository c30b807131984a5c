"""What a person can start from a page: machines that have a name, and those that runs of the store began with.

Who starts something from a page names no code but what stands in the folder that the page is served from, or what the
store knows already: whoever answers questions there need not be able to load any file of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os.path import realpath
from pathlib import Path
from typing import Any

from moothall.app.config.settings import LEVELS, level_model, model_setting
from moothall.app.kinds.kind import KINDS, Offer, kind_named, kind_of
from moothall.app.kinds.source import find
from moothall.app.runs.begin import STAND_IN
from moothall.app.runs.moothall import Moothall
from moothall.errors import Refused
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Budget
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store


class Order(Frozen):
    """What a person has chosen for a run: the machine, its data, its model, its budget and perhaps its id."""

    source: str
    given: Any = None
    model: str = ""
    budget: Budget | None = None
    run_id: RunId | None = None


class Form(Frozen):
    """What a person fills in to start a machine, as JSON Schema."""

    source: str
    machine: str
    kind: str
    schema: Mapping[str, Any]


class Preview(Frozen):
    """What a person is told before a run begins: what to know of it, and the folder that it changes by itself."""

    warnings: tuple[str, ...]
    folder: str = ""


async def offers(store: Store) -> tuple[Offer, ...]:
    """Everything that can be started from here, the named machines first."""
    named = {offer.source: offer for name in KINDS for offer in kind_named(name).offers()}
    for stored in await store.runs():
        record = stored.record
        if record.source and not record.parent and record.machine not in named and "?" not in record.source:
            named.setdefault(record.source, Offer(record.source, f"{record.machine}, which a run began with"))
    return tuple(named.values())


def models() -> tuple[str, ...]:
    """Who can play agents here: what is set, and the stand-in, which needs nothing."""
    levels = [level for level in LEVELS if level_model(level).value]
    return tuple(dict.fromkeys((*filter(None, (model_setting(),)), *levels, STAND_IN)))


async def form_of(hall: Moothall, source: str, folder: Path) -> Form:
    """What a person fills in to start the machine at a source."""
    await _require_known(hall.store, source, folder)
    machine = find(_absolute(source, folder))
    kind = kind_of(machine)
    return Form(source, machine.name, kind.name, kind.form(machine))


async def preview(hall: Moothall, order: Order, folder: Path) -> Preview:
    """What a person should know before what they have ordered begins; the form need not be filled in yet."""
    await _require_known(hall.store, order.source, folder)
    machine = find(_absolute(order.source, folder))
    warnings = hall.warnings(machine, model=order.model, budget=order.budget)
    return Preview(warnings, kind_of(machine).folder(order.given))


async def start(hall: Moothall, order: Order, folder: Path) -> RunId:
    """Start what a person has ordered from what can be started here; it goes on beside."""
    await _require_known(hall.store, order.source, folder)
    return await start_order(hall, replace(order, source=_absolute(order.source, folder)))


async def start_order(hall: Moothall, order: Order) -> RunId:
    """Start what was ordered; it goes on beside."""
    machine = find(order.source)
    machine, given = kind_of(machine).filled_in(machine, order.given)
    return await hall.start(machine, given, model=order.model, budget=order.budget, run_id=order.run_id)


def _absolute(source: str, folder: Path) -> str:
    return str(folder / source) if _is_path(source) and not Path(source).is_absolute() else source


def _is_path(source: str) -> bool:
    return "/" in source or source.partition(":")[0].endswith((".py", ".json", ".yaml", ".yml"))


async def _require_known(store: Store, source: str, folder: Path) -> None:
    """Refuse what would load code from anywhere."""
    if source in {offer.source for offer in await offers(store)} or _is_name(source):
        return
    if _is_path(source) and _is_inside(source.rpartition(":")[0] or source, folder):
        return
    raise Refused(
        f"{source!r} cannot be started from here; name a machine of the list, or a file in {folder}. "
        "`moot run` starts anything"
    )


def _is_inside(path: str, folder: Path) -> bool:
    return Path(realpath(folder / path)).is_relative_to(realpath(folder))


def _is_name(source: str) -> bool:
    """Whether a source is a built-in machine with a size behind its name, which loads nothing."""
    family = source.partition("-")[0]
    return family in KINDS and bool(KINDS[family].help) and ":" not in source and "?" not in source
