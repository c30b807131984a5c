"""SCXML documents as a kind of machine: `FILE.scxml` is found, checked, drawn and run durably.

A document is kept with its run. Its expressions are evaluated by a JavaScript engine in a process of its own; nothing
in it is carried out while it is read. A run is told events by `moot send`. Documents that invoke others, or talk to
other sessions, can be checked and drawn; they are not run yet.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from os.path import realpath
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from moothall.analysis.certify import Certificate
from moothall.analysis.verify import verify
from moothall.app.kinds.bindings import Provided
from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.kind import Kind, Presented
from moothall.app.kinds.source import remember
from moothall.app.runs.outcome import Outcome
from moothall.errors import DefinitionError, Refused
from moothall.interop.scxml import read, write
from moothall.interop.scxml_content import Message
from moothall.kernel.chart import emitted
from moothall.kernel.effects import StartChild
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.step import Answer, Ask
from moothall.runtime.hall import Bindings
from moothall.runtime.ports import ScriptContext, Store
from moothall.scripting.javascript import JavaScript

NAME, ENDING = "statechart", ".scxml"
TRANSITIONS = 10_000
"""The most transitions of a run where nobody says otherwise: a statechart goes round as long as it is told events."""
USUAL = frozenset({"unbounded-cycle", "no-otherwise"})
"""What is found in nearly every statechart, and means nothing there: events that nobody takes are passed over."""
_texts: WeakKeyDictionary[Machine, str] = WeakKeyDictionary()


class StatechartKind(Kind):
    """Machines that SCXML documents describe."""

    name = NAME

    def find(self, source: str) -> Machine | None:
        """The machine of the document at this path."""
        return machine_at(Path(source)) if source.endswith(ENDING) else None

    def examine(self, source: str, check: Check) -> Iterator[Examined] | None:
        """What is wrong with a document; that it goes round in circles is usual."""
        if not source.endswith(ENDING):
            return None
        machine = machine_at(Path(source))
        findings = [finding for finding in verify(machine) if finding.code not in USUAL]
        told = tuple(
            Told(finding.level, finding.code, finding.place, finding.why, finding.remedy) for finding in findings
        )
        bound = check.certificate_or_reason(machine)
        bounds = {machine.name: bound} if isinstance(bound, Certificate) else {}
        plain = {"machine": machine.name, "findings": findings, "certificate": bound}
        errors = sum(finding.level == "error" for finding in findings)
        states = f"{len(machine.chart.by_name) - 1} states, {len(machine.chart.rows)} transitions"  # not the root
        warnings = len(findings) - errors
        counts = f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}"
        return iter((Examined(plain, told, bounds, f"{source}: {machine.name}: {states}; {counts}"),))

    def definition(self, machine: Machine) -> Mapping[str, Any]:
        """The document itself."""
        return {"text": _texts[machine]}

    def restored(self, source: str, definition: Mapping[str, Any]) -> Machine:
        """The machine of a document that was stored with a run."""
        return _machine(source, definition["text"])

    def data(self, machine: Machine, given: Any) -> Any:
        """First values of the document's variables, by name."""
        if given is None or given == "":
            return {}
        if not isinstance(given, dict):
            raise Refused(f"{machine.name} takes an object with values for its variables, or nothing")
        return given

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """An engine for its expressions; what it sends to itself the runtime carries out."""
        if any(StartChild.kind in emitted(action) for action in machine.actions()):
            why = "it invokes other sessions, and such a document cannot be run yet"
            raise DefinitionError(f"{machine.name}: {why}; `moot check` and `moot graph` know it")
        return Bindings({}, evaluate=_evaluate)

    def asked(self, machine: Machine) -> frozenset[str]:
        """A document asks nobody."""
        return frozenset()

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """What the final state says, else the document's variables; names with `_` before them are the system's."""
        if outcome.result is outcome.data:
            own = {name: value for name, value in outcome.data.items() if not name.startswith("_")}
            outcome = replace(outcome, result=own or None)
        return await super().present(store, machine, outcome)

    def way_to_run(self, file: str) -> str:
        """The command that runs a document."""
        return f"moot run {file}"


KIND: Kind = StatechartKind()


def machine_at(path: Path) -> Machine:
    """The machine of a document; it may name files beside it and no others."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return _machine(realpath(path), text)


@lru_cache(maxsize=64)
def _machine(source: str, text: str) -> Machine:
    folder = Path(source).parent

    def fetch(named: str) -> str:
        found = (folder / named.removeprefix("file:")).resolve()
        if not found.is_relative_to(folder):
            raise DefinitionError(f"{source}: {named!r} is not beside the document")
        return found.read_text("utf-8-sig")

    machine = read(text, file=Path(source).name, fetch=fetch).machine
    object.__setattr__(machine, "kind", NAME)
    object.__setattr__(machine, "message", Message)
    object.__setattr__(machine, "budget", Budget(transitions=TRANSITIONS))
    _texts[machine] = text
    remember(machine, source)
    return machine


def document_of(machine: Machine) -> str:
    """Any machine as an SCXML document."""
    return write(machine)


@lru_cache(maxsize=1)
def _engine() -> JavaScript:
    engine = JavaScript()
    atexit.register(engine.close)
    return engine


_one_at_a_time = asyncio.Lock()


async def _evaluate(ask: Ask, context: ScriptContext) -> Answer:
    """Ask the engine; the event loop goes on meanwhile."""
    async with _one_at_a_time:
        return await asyncio.to_thread(_engine(), str(ask.script), ask.scope)
