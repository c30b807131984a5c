"""Journals of earlier days replay as they were, for ever. `tools/golden` makes new ones, and rewrites none."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool
from moothall.app.kinds.source import child_machine
from moothall.kernel.codec import decode, encode
from moothall.kernel.machine import Machine
from moothall.runtime.journal import Reader, Record, Run, encode_head
from moothall.runtime.rebuild import Difference, compared, taken_back
from tests.golden import machines

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.json"))
MACHINES = {one.name: one for one in vars(machines).values() if isinstance(one, Machine)}
EFFECTS = {AskAgent.kind: AskAgent, CallTool.kind: CallTool}
LEAST = 22
Runs = Mapping[str, Any]


def machine_of(record: Record) -> Machine:
    """The machine of a run, by name; the built-in ones are those of today."""
    return MACHINES.get(record.machine) or child_machine(machines.AGENT, record.machine)


def run_of(name: str, runs: Runs) -> Run:
    """A run with those that it was forked from."""
    record = decode(Record, runs[name]["record"], "record")
    origin = run_of(record.origin, runs) if record.origin else None
    return Run(record, machine_of(record), origin)


@pytest.mark.parametrize("file", FILES, ids=[one.stem for one in FILES])
def test_a_golden_journal_replays_as_it_was_and_ends_where_it_did(file: Path) -> None:
    runs: Runs = json.loads(file.read_text())["runs"]
    for name, kept in runs.items():
        run = run_of(name, runs)
        head = compared(run, Reader(run.machine, EFFECTS), kept["entries"])
        assert not isinstance(head, Difference), f"{name}: {head}"
        assert encode(encode_head(head)) == kept["head"]


def decided_again(entries: list[Any]) -> list[Any]:
    """The entries that replay decides again: not what a retry took back, nor what came before somebody insisted."""
    insisted = max((entry["seq"] for entry in entries if entry["event"].get("difference")), default=0)
    undone = taken_back(entries)
    return [entry for entry in entries if entry["seq"] >= insisted and entry["seq"] not in undone]


@pytest.mark.parametrize("file", FILES, ids=[one.stem for one in FILES])
def test_a_golden_journal_that_says_something_else_is_noticed(file: Path) -> None:
    runs: Runs = json.loads(file.read_text())["runs"]
    for name, kept in runs.items():
        run = run_of(name, runs)
        for entry in decided_again(kept["entries"]):
            was, entry["to"] = entry["to"], ["nowhere"]
            found = compared(run, Reader(run.machine, EFFECTS), kept["entries"])
            assert isinstance(found, Difference)
            assert (found.seq, found.part) == (entry["seq"], "to")
            entry["to"] = was


def test_no_golden_journal_was_lost() -> None:
    assert len(FILES) >= LEAST
