"""What tools the agents of a debate had called: read from the journals of their turns, nothing is kept beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from moothall.agents.ask import CallTool, Returned
from moothall.app.report.projections.flight import asked_in_turn
from moothall.app.runs.context import exists
from moothall.kernel.effects import StartChild
from moothall.kernel.frozen import Frozen
from moothall.runtime.children import child_id
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

Entry = Mapping[str, Any]


class ToolUse(Frozen):
    """A call of a tool: by whom, when, with what, and how it ended: `returned`, `failed`, or `open` until it has."""

    agent: str
    round: int
    node: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    end: str = "open"
    reason: str = ""


async def tool_uses(store: Store, run: RunId, entries: Sequence[Entry] = ()) -> tuple[ToolUse, ...]:
    """All calls of tools that agents of a debate had made, in the order of their turns."""
    uses: list[ToolUse] = []
    number = 0
    for entry in entries or await store.entries(run):
        number += list(entry.get("raised", ())).count("BEGIN_ROUND")
        for wanted in entry["effects"]:
            if wanted["kind"] == StartChild.kind and (ask := asked_in_turn(wanted["effect"])):
                turn = child_id(run, wanted["key"])
                journal = await store.entries(turn) if await exists(store, turn) else []
                place = ToolUse(str(ask["agent"]), number, str(wanted.get("owner") or ""), "")
                uses += _calls_in(journal, place)
    return tuple(uses)


def _calls_in(journal: Sequence[Entry], place: ToolUse) -> Iterator[ToolUse]:
    """The calls of one turn: each is an effect, or a run of its own where a person was asked first."""
    ends = {entry["cause"]: entry["event"] for entry in journal}
    for entry in journal:
        for wanted in entry["effects"]:
            effect = wanted["effect"]
            if wanted["kind"] == StartChild.kind:
                effect = effect["input"]["call"]
            elif wanted["kind"] != CallTool.kind:
                continue
            end = ends.get(wanted["key"])
            state = "open" if end is None else "returned" if end["name"] == Returned.name else "failed"
            reason = str(end.get("reason", "")) if end is not None else ""
            yield ToolUse(place.agent, place.round, place.node, effect["tool"], effect["arguments"], state, reason)
