"""Journals of debates that were made before the whole panel was counted: they open and replay.

What everybody said in an option's own words decides as it did. Where a rule counts otherwise now, replay says where.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool
from moothall.app.kinds.source import find
from moothall.kernel.codec import decode
from moothall.machines.debate.state import Debate
from moothall.runtime.journal import Head, Reader, Record, Run
from moothall.runtime.rebuild import Difference, compared

FOLDER = Path(__file__).parent / "debates"


def replayed(name: str) -> Head | Difference:
    kept: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    record = decode(Record, kept["record"], "record")
    machine = find(record.machine)
    return compared(
        Run(record, machine), Reader(machine, {AskAgent.kind: AskAgent, CallTool.kind: CallTool}), kept["entries"]
    )


@pytest.mark.parametrize("name", ["gated", "open", "tools"])
def test_an_older_debate_takes_the_same_steps_to_the_same_end(name: str) -> None:
    head = replayed(name)
    assert isinstance(head, Head), head
    assert head.snapshot.active == ("Complete",)
    assert isinstance(head.snapshot.data, Debate)


def test_an_older_debate_that_took_a_sentence_for_an_option_is_told_where_it_differs() -> None:
    difference = replayed("contains")
    assert isinstance(difference, Difference)
    assert (difference.seq, difference.part, difference.kept, difference.decided) == (
        3,
        "to",
        ["Synthesis"],
        ["Critique"],
    )
