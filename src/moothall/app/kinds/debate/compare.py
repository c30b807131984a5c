"""The vote of equal budget: as many calls as a debate made, spent on independent drafts instead.

It is a run of its own, called as the debate with `-vote` behind it: durable, never bought twice, and found by reports.
"""

from __future__ import annotations

from dataclasses import replace

from moothall.app.runs.context import exists
from moothall.errors import MoothallError
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import MOST_AGENTS
from moothall.machines.debate.state import Debate
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

SUFFIX = "-vote"


class Vote(Frozen):
    """A vote that can be bought: its run, what it begins with, and how many calls it makes."""

    run: RunId
    begun: Debate
    calls: int

    @property
    def machine(self) -> Machine:
        """The machine of its size."""
        return debate(size_of(self.begun))


async def vote_for(store: Store, run: RunId, data: Debate) -> Vote | None:
    """The vote that costs as many calls as a debate did; None where the debate was a vote itself, or too short."""
    calls = int((await store.load(run)).head["spent"].get("calls", 0))
    is_open = not data.configuration.debate.answer.is_closed
    drafts = min((calls - 1) // 2 if is_open else calls - 1, MOST_AGENTS)
    if data.termination.reason in ("", "vote") or drafts < 2:
        return None
    panel = [agent for agent in data.configuration.panel if not agent.person]
    seats = tuple(
        replace(panel[number % len(panel)], id=f"{panel[number % len(panel)].id}-{number // len(panel) + 1}")
        for number in range(drafts)
    )
    chosen = replace(data.configuration.debate, protocol="vote", rounds=1, interactiveClarifications=False, check="")
    begun = Debate(
        data.problem,
        data.context,
        replace(data.configuration, agents=seats, debate=chosen),
        data.files,
        f"{data.digest}{SUFFIX}",
        data.prompts,
        data.clarifications,
    )
    return Vote(f"{run}{SUFFIX}", begun, drafts * (2 if is_open and drafts > 2 else 1) + 1)


async def bought_vote(store: Store, run: RunId) -> Debate | None:
    """How the vote that was bought for a debate stands; None where none was."""
    if not await exists(store, f"{run}{SUFFIX}"):
        return None
    try:
        stored = await store.load(f"{run}{SUFFIX}")
        return decode(Debate, stored.head["snapshot"]["data"], "data")
    except (KeyError, TypeError, MoothallError):
        return None
