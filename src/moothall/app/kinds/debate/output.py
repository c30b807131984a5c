"""What is written of a debate beside its journal: the whole state as JSON, or a document for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moothall.app.config.settings import cleaner
from moothall.app.kinds.debate.compare import Vote, bought_vote, vote_for
from moothall.app.kinds.debate.report import Told, comparison_text, sections_of
from moothall.app.kinds.debate.tools import tool_uses
from moothall.app.report.measures import measure
from moothall.app.report.tables import markdown_section, plain
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.app.toolbox import Given
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget
from moothall.machines.debate.state import Debate

ENDINGS = (".json", ".md")


async def text_of(hall: Moothall, outcome: Outcome, result: Mapping[str, Any], file: Path) -> str:
    """What a file says of a debate: `x.json` the result and the whole state, `x.md` a document."""
    if file.suffix == ".json":
        text = json.dumps({**result, "state": encode(outcome.data)}, ensure_ascii=False, indent=2)
    else:
        entries, measured = await hall.store.entries(outcome.run), await measure(hall.store, outcome.run)
        vote, uses = await bought_vote(hall.store, outcome.run), await tool_uses(hall.store, outcome.run, entries)
        told = Told(outcome.data, entries, measured.metrics.costs, vote, uses)
        head = f"# {plain(outcome.run)}: {plain(str(result['status']))}"
        text = "\n\n".join((head, *map(markdown_section, sections_of(told))))
    return str(cleaner()(text)) + "\n"


async def compare(
    hall: Moothall, outcome: Outcome, vote: Vote, *, model: str, budget: Budget | None, workspace: Given = None
) -> tuple[str, Mapping[str, Any]]:
    """Buy the vote of equal budget: what it says beside the debate, in words and for programs."""
    bought = await hall.run(vote.machine, vote.begun, model=model, budget=budget, run_id=vote.run, workspace=workspace)
    assert isinstance(bought.data, Debate)
    result = bought.result if isinstance(bought.result, Mapping) else {}
    solution = result.get("solution") or {}
    plain_vote = {
        "run_id": bought.run,
        "status": bought.status,
        "drafts": len(bought.data.drafts),
        "votes": result.get("votes"),
        "answer": solution.get("answer", ""),
        "usage": dict(bought.spent),
    }
    return comparison_text(outcome.data, bought.data), plain_vote


__all__ = ["ENDINGS", "compare", "text_of", "vote_for"]
