"""How the arena is begun: by doors, and by programs with `run_arena`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from moothall.app.kinds.arena.files import read_arena
from moothall.app.kinds.arena.place import workspace_at
from moothall.app.kinds.bindings import Functions
from moothall.app.runs.moothall import Moothall, shared_hall, wait_for
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.present import present
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Budget, Machine
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import BANDS as BANDS
from moothall.machines.arena.definition import Configuration
from moothall.machines.arena.machine import arena

ASKING = ("ResolvingDecision",)
"""Where the arena stands when a person has to decide about a plan."""


def arena_machine() -> Machine:
    """The machine of the arena."""
    return arena()


class ArenaOptions(Frozen):
    """How a request is to be dealt with; what is empty is as the configuration says."""

    workspace: str = ""
    config: Path | Configuration | None = None
    bands: Literal["", "seed", "cautious"] = ""
    dry_run: bool = False
    trace: bool = False


def case_of(request: str, options: ArenaOptions) -> Case:
    """The data that a run begins with."""
    config = options.config if isinstance(options.config, Configuration) else read_arena(options.config)
    workspace = workspace_at(options.workspace, request)
    return Case(
        request,
        str(workspace),
        bands=options.bands or config.bands,
        dry_run=options.dry_run,
        shows_trace=options.trace,
        config=config,
    )


async def agree(hall: Moothall, outcome: Outcome, by: str = "") -> Outcome:
    """How the run stands after a yes to its plan; what became of a task is another question, and a veto is none."""
    if outcome.status == "waiting" and outcome.states == ASKING and len(outcome.questions) == 1:
        return await hall.answer(outcome.run, True, question=outcome.questions[0].id, by=by)
    return outcome


def run_arena(
    request: str,
    options: ArenaOptions | None = None,
    *,
    agents: Functions | None = None,
    model: str = "",
    budget: Budget | None = None,
    store: str | None = None,
    run_id: str | None = None,
) -> dict[str, Any]:
    """Deal with a request in the arena; the result has the keys of `moot arena --json`.

    Where a person has to decide its status is `waiting`: `moot answer RUN --yes`, or `answer(run_id, True)`.
    """
    case = case_of(request, options or ArenaOptions())

    async def work() -> dict[str, Any]:
        async with shared_hall(store) as hall:
            outcome = await hall.run(arena(), case, agents=agents, model=model, budget=budget, run_id=run_id)
            told: dict[str, Any] = (await present(hall, outcome)).plain
            return told

    return wait_for(work())
