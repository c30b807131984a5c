"""Runs statechart tests from outside: rows of an index, each a document and what it must do.

The index is FOLDER/index.tsv, with the columns id, tier, category, conformance, section_or_trace, document, expected.
A row that names a trace passes if exactly the traced atomic states are active at the start and after every event; a
row without one passes if the document ends in its final state `pass`. Time is virtual: nothing waits.

Documents may name files beside them and no others. Without `evaluate`, a document whose course depends on an
expression fails, and the reason says that it needs a script engine.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moothall.errors import DefinitionError
from moothall.interop.scxml import read
from moothall.interop.scxml_session import Session, session
from moothall.kernel.events import Named
from moothall.kernel.simulate import Evaluate
from moothall.scripting.children import is_installed
from moothall.scripting.javascript import JavaScript

LEGACY = "legacySemantics"


@dataclass(frozen=True, slots=True)
class Row:
    """One test: its document, and the trace that it must show (None: it judges itself)."""

    id: str
    tier: str
    document: Path
    expected: Path | None = None
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that did not pass, and why, in one line."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """How many tests passed and failed, and what was wrong with those that failed."""

    passed: int
    failed: int
    failures: tuple[Failure, ...] = ()


def run_folder(folder: Path, tiers: frozenset[str] | None = None, evaluate: Evaluate | None = None) -> Score:
    """Run the tests of a folder: all, or those of some tiers ("A", or "A-topology")."""
    rows = [row for row in rows_of(folder) if tiers is None or tiers & {row.tier, row.tier.partition("-")[0]}]
    reasons = [(row.id, run_row(row, evaluate)) for row in rows]
    failures = tuple(Failure(id, reason) for id, reason in reasons if reason is not None)
    return Score(len(rows) - len(failures), len(failures), failures)


def rows_of(folder: Path) -> Iterator[Row]:
    """The rows of a folder's index."""
    index = folder / "index.tsv"
    try:
        lines = index.read_text("utf-8").splitlines()
    except OSError as error:
        raise DefinitionError(f"{index} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # half a character in its name, or no text in the file
        raise DefinitionError(f"{index} cannot be read: {error}") from error
    for number, plain in enumerate(csv.DictReader(lines, delimiter="\t"), start=2):
        try:
            expected = folder / plain["expected"] if plain["expected"] else None
            legacy = LEGACY in plain["section_or_trace"]
            yield Row(plain["id"], plain["tier"], folder / plain["document"], expected, legacy)
        except (KeyError, TypeError) as error:
            raise DefinitionError(f"{index}, line {number}: a column is missing: {error}") from error


def run_row(row: Row, evaluate: Evaluate | None = None) -> str | None:
    """Run one test: None where it passes, else what was wrong, in one line."""
    try:
        running = start(row.document, evaluate)
        if row.expected is None:
            return _verdict(running)
        trace = json.loads(row.expected.read_text("utf-8-sig"))
        return _trace_difference(running, trace[LEGACY] if row.legacy else trace)
    except Exception as error:  # a document that breaks us is a failed row, not the end of the run
        return f"{type(error).__name__}: {error}".splitlines()[0]


def start(path: Path, evaluate: Evaluate | None = None) -> Session:
    """A session of a document; it may read files of its own folder."""
    folder = path.parent.resolve()

    def fetch(source: str) -> str:
        found = (folder / source.removeprefix("file:")).resolve()
        if not found.is_relative_to(folder):
            raise DefinitionError(f"{path}: {source!r} is not beside the document")
        return found.read_text("utf-8-sig")

    document = read(path.read_text("utf-8-sig"), file=path.name, fetch=fetch)
    return session(document, evaluate=evaluate, fetch=fetch)


def _verdict(running: Session) -> str | None:
    running.settle()
    if running.snapshot.status == "done" and "pass" in running.active:
        return None
    return f"it ended {running.snapshot.status} in {_states(running.active)}, not in pass"


def _trace_difference(running: Session, trace: dict[str, Any]) -> str | None:
    wrong = _difference("at the start", running, trace["initialConfiguration"])
    for number, event in enumerate(trace["events"], start=1):
        if wrong is not None:
            return wrong
        running.advance(event.get("after", 0) / 1000)
        name = event["event"]["name"]
        running.send(Named(name, event["event"].get("data")))
        wrong = _difference(f"after event {number}, {name}", running, event["nextConfiguration"])
    return wrong


def _difference(when: str, running: Session, expected: list[str]) -> str | None:
    if set(running.active) == set(expected):
        return None
    return f"{when} it is in {_states(running.active)}, not in {_states(expected)}"


def _states(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names)) or "no state"


def score_folder(folder: Path, tiers: frozenset[str] | None) -> Score:
    """The same with a script engine, where one is installed."""
    with JavaScript() if is_installed() else nullcontext() as evaluate:
        return run_folder(folder, tiers, evaluate)
