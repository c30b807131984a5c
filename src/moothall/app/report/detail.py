"""One run as a page shows it: how it stands, its family, its figures, its picture, and any moment of its past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import lru_cache
from typing import Any

from moothall.app.kinds.kind import KINDS, kind_named, kind_of
from moothall.app.kinds.python import looking
from moothall.app.report.account import account_of
from moothall.app.report.again import Again, again
from moothall.app.report.figures import cost_notes, plain_all, plain_costs, plain_metrics
from moothall.app.report.measures import Tally, initial_metrics, measure, measure_all
from moothall.app.report.picture import secret_in
from moothall.app.report.projections.hierarchy import Entry, hierarchy_of
from moothall.app.report.report import sections_of
from moothall.app.report.section import Part, Section
from moothall.app.report.steps import Step, step_of
from moothall.app.runs.begin import warnings_of_run
from moothall.app.runs.context import family_of
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome, outcome_of
from moothall.app.runs.replay import decided_until
from moothall.app.runs.view import Summary, summary
from moothall.drawing.svg import picture
from moothall.errors import MoothallError, Refused
from moothall.kernel.chart import ROOT
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.kernel.interpreter import possible
from moothall.kernel.machine import Machine
from moothall.runtime.journal import Reader, Record, RunId
from moothall.runtime.ports import Store, Stored

PIECE = 512
TALLIES = 200
"""Of how many runs it is remembered what was counted."""
DECIDED_AGAIN = 2_000
"""How many entries are decided again at most to show the data of a moment."""


class Kin(Frozen):
    """Another run of the same family, in one line."""

    run: RunId
    machine: str
    status: str
    states: tuple[str, ...]


class Detail(Frozen):
    """A run as its page begins: how it stands, where it comes from, what it may spend, and what can be done with it."""

    summary: Summary
    began: float
    seconds: float | None
    amounts: Mapping[str, str]
    left: Mapping[str, float | None]
    source: str
    parent: RunId
    origin: RunId
    shared: int
    children: tuple[Kin, ...]
    forks: tuple[Kin, ...]
    project: str
    result: str
    typed: bool
    """Whether a person may type to it."""
    accepts: tuple[str, ...]
    """The events that it takes from outside now."""
    problem: str = ""
    """Why its machine is not known here."""
    warnings: tuple[str, ...] = ()
    """What a person should know of it."""
    unpriced: tuple[str, ...] = ()
    """The models that were asked without a price, where a budget limits money."""


class Moment(Frozen):
    """Where a run stood after an entry: states, visits, what was spent, and the data where they can be worked out."""

    step: Step
    states: tuple[str, ...]
    visits: Mapping[str, int]
    costs: Mapping[str, Any]
    data: Any = None
    problem: str = ""


class Looking:
    """Looks at the runs of a hall. Code that a run comes from is loaded only where `loads` says so."""

    def __init__(self, hall: Moothall, *, loads: bool = False) -> None:
        self.hall, self.loads = hall, loads
        self._tallies: dict[RunId, Tally] = {}

    @property
    def store(self) -> Store:
        """Where the runs are kept."""
        return self.hall.store

    async def machine(self, record: Record) -> Machine:
        """The machine of a run as it is today."""
        with nullcontext() if self.loads else looking():
            machine, _ = await family_of(self.store, record, {})
        return machine

    async def _machine_or_none(self, record: Record) -> Machine | None:
        try:
            return await self.machine(record)
        except MoothallError:
            return None

    async def detail(self, run: RunId) -> Detail:
        """A run as its page begins."""
        stored = await self.store.load(run)
        record, account = stored.record, await account_of(self.store, run)
        machine, problem = None, ""
        try:
            machine = await self.machine(record)
        except MoothallError as error:
            problem = str(error)
        text = await self._result(stored, machine) if machine is not None else ""
        return Detail(
            await summary(self.store, stored),
            record.began,
            account.seconds,
            account.amounts(),
            account.left(),
            record.source,
            record.parent,
            record.origin,
            record.shared,
            *await self._family(record),
            project_of(record),
            text,
            machine is not None and kind_of(machine).hears(machine),
            _accepted_events(machine, stored) if machine is not None else (),
            problem,
            self._warnings(stored, machine),
            account.unpriced,
        )

    def _warnings(self, stored: Stored, machine: Machine | None) -> tuple[str, ...]:
        """What a person should know of a run, as far as its model and its data can be read here."""
        warnings: list[str] = []
        with suppress(KeyError, TypeError, MoothallError), nullcontext() if self.loads else looking():
            warnings.extend(warnings_of_run(stored.record.model, stored.record.limits))
            if machine is not None and stored.status != "live":
                warnings.extend(kind_of(machine).notes(machine, self._outcome(stored, machine)))
        return tuple(warnings)

    async def _result(self, stored: Stored, machine: Machine) -> str:
        """The result for people, in the way of its kind; "" while there is none, or it cannot be read."""
        try:
            presented = await kind_of(machine).present(self.store, machine, self._outcome(stored, machine))
        except (KeyError, TypeError, MoothallError):
            return ""
        return presented.text

    def _outcome(self, stored: Stored, machine: Machine) -> Outcome:
        head = Reader(machine, dict(kind_of(machine).effects)).head(stored.head)
        return outcome_of(machine, stored.record.run, head)

    async def _family(self, record: Record) -> tuple[tuple[Kin, ...], tuple[Kin, ...]]:
        """The children of a run, and its forks."""
        runs = await self.store.runs()
        children = [await self._kin(run) for run in reversed(runs) if run.record.parent == record.run]
        forks = [await self._kin(run) for run in runs if run.record.origin == record.run]
        return tuple(children), tuple(forks)

    async def _kin(self, stored: Stored) -> Kin:
        told = await summary(self.store, stored)
        return Kin(told.run, told.machine, told.status, told.states)

    async def steps(self, run: RunId, start: int, limit: int) -> tuple[Step, ...]:
        """A window of a run's steps."""
        entries = await self.store.entries(run, start, limit)
        return tuple(step_of(run, entry) for entry in entries)

    async def step(self, run: RunId, seq: int) -> tuple[Step, Entry, Again]:
        """One step with whole texts, its entry as it stands in the journal, and what changed since the time before."""
        entry = await self._entry(run, seq)
        return step_of(run, entry, whole=True), entry, await again(self.store, run, entry)

    async def _entry(self, run: RunId, seq: int) -> Entry:
        await self.store.load(run)
        entries = await self.store.entries(run, seq, 1)
        if not entries:
            raise Refused(f"run {run} has no entry {seq}")
        return entries[0]

    def _tally(self, run: RunId) -> Tally:
        """What was counted of a run before; of those that nobody has looked at for long it is forgotten."""
        tally = self._tallies.pop(run, None) or Tally()
        self._tallies[run] = tally
        if len(self._tallies) > TALLIES:
            del self._tallies[next(iter(self._tallies))]
        return tally

    async def figures(self, run: RunId) -> Mapping[str, Any]:
        """The metrics and costs of a run, and what its kind adds to them."""
        stored = await self.store.load(run)
        machine = await self._machine_or_none(stored.record)
        tally = self._tally(run)
        measured = await measure(self.store, run, machine=machine, tally=tally)
        costs = measured.metrics.costs
        sections = await sections_of(self.store, stored, machine, costs) if machine is not None else ()
        return {
            "taken": dict(tally.taken),
            "metrics": plain_metrics(measured),
            "costs": {**plain_costs(costs), "notes": cost_notes(costs)},
            "sections": plain_sections(sections),
        }

    async def overview(self) -> Mapping[str, Any]:
        """The figures of all runs, and what kinds add to them."""
        measured = await measure_all(self.store)
        sections = [section for name in KINDS for section in await kind_named(name).overview(self.store)]
        return {
            **plain_all(measured),
            "costs": plain_costs(measured.costs),
            "sections": plain_sections(sections),
        }

    async def picture(self, run: RunId) -> Mapping[str, Any]:
        """The picture of a run's machine, and which states lie inside which."""
        stored = await self.store.load(run)
        machine = await self.machine(stored.record)
        return {**draw_machine(machine), "changed": not machine.is_defined_as(stored.definition())}

    async def moment(self, run: RunId, seq: int) -> Moment:
        """Where a run stood after an entry."""
        entry, stored = await self._entry(run, seq), await self.store.load(run)
        machine = await self._machine_or_none(stored.record)
        metrics, start = await initial_metrics(self.store, stored, machine), 0
        while start <= seq and (piece := await self.store.entries(run, start, min(PIECE, seq + 1 - start))):
            for past in piece:
                metrics = metrics.after(past)
            start += len(piece)
        visits = {state: stay.visits for state, stay in metrics.stays.items()}
        data, problem = await self._data(stored, machine, seq)
        costs = plain_costs(metrics.costs)
        return Moment(step_of(run, entry), tuple(entry["to"]), visits, costs, data, problem)

    async def _data(self, stored: Stored, machine: Machine | None, seq: int) -> tuple[Any, str]:
        """The data of a run after an entry: decided again from the journal, without asking anybody."""
        if machine is None:
            return None, "the machine is not known here, so its data cannot be worked out"
        if seq > DECIDED_AGAIN:
            return None, f"data are worked out for the first {DECIDED_AGAIN} steps only"
        try:
            return encode(await decided_until(self.store, stored.record.run, machine, seq)), ""
        except MoothallError as error:
            return None, str(error)


def draw_machine(machine: Machine) -> Mapping[str, Any]:
    """A machine's picture, and for each state those around it."""
    if text := secret_in(machine):
        raise Refused(f"the machine has a secret in its table, in {text}: it is not drawn")
    hierarchy = hierarchy_of(machine)
    places = [place for place in machine.chart.places if place.index != ROOT]
    around = {place.name: list(hierarchy.around(place.name)) for place in places}
    return {"svg": _picture(machine), "around": around, "states": len(places), "name": machine.name}


@lru_cache(maxsize=32)
def _picture(machine: Machine) -> str:
    return picture(machine, styled=False)


def project_of(record: Record) -> str:
    """The folder that a run belongs to: the one that its agents work in, or where its definition is; "" without."""
    if folder := record.tools.get("folder"):
        return str(folder)
    path = record.source.partition("?")[0]
    path = path.rpartition(":")[0] if ":" in path else path
    return path.rpartition("/")[0] if path.startswith("/") else ""


def _accepted_events(machine: Machine, stored: Stored) -> tuple[str, ...]:
    if stored.status != "live":
        return ()
    try:
        snapshot = Reader(machine, dict(kind_of(machine).effects)).head(stored.head).snapshot
        names = possible(machine, snapshot)
    except (KeyError, TypeError, MoothallError):
        return ()
    return tuple(name for name in names if name in machine.vocabulary or name.isupper())


def plain_sections(sections: Sequence[Section]) -> list[Mapping[str, Any]]:
    """Sections for JSON: each part says what it is."""
    return [{"title": section.title, "parts": [_plain_part(part) for part in section.parts]} for section in sections]


def _plain_part(part: Part) -> Mapping[str, Any]:
    if isinstance(part, str):
        return {"kind": "text", "text": part}
    plain: dict[str, Any] = encode(part)
    return {"kind": type(part).__name__.lower(), **plain}
