"""Killed at every write, with a workflow and a panel in flight: nothing is said twice, and nothing is lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.source import find
from moothall.app.runs import begin as beginning
from moothall.app.runs import resume as resuming
from moothall.app.runs.begin import Terms
from moothall.app.runs.context import RunContext, exists, new_hall
from moothall.app.runs.news import Broadcast
from moothall.kernel.events import Event
from moothall.machines.team.state import THREAD, TRANSITIONS, Conversation, StartWorkflow, UserSaid
from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore
from tests.runtime.family import Killed, killed
from tests.runtime.world import PROCESSES

pytestmark = pytest.mark.anyio
RUN = "talk"
PANEL = {"task": "the panel's question", "source": "studio", "personas": ["ceo", "cfo"]}
STORY: dict[str, Event] = {
    "panel": StartWorkflow(text="", machine="team-panel", input=PANEL, at=1.0),
    "flow": StartWorkflow(text="", machine="coder_reviewer", input={"input": "sum two numbers"}, at=2.0),
    "word": UserSaid(text="Begin", at=3.0),
}


async def creative_partner(prompt: str) -> Any:
    await asyncio.sleep(0)
    return {"content": "A concept.", "transition": "HANDOFF_TO_AGENT", "next_agent": "game_designer"}


async def game_designer(prompt: str) -> Any:
    await asyncio.sleep(0)
    return {"content": "A design."}


async def ceo(prompt: str) -> Any:
    await asyncio.sleep(0)
    return {"content": "Joined." if "Put together" in prompt else "Yes."}


async def cfo(prompt: str) -> Any:
    await asyncio.sleep(0)
    return {"content": "No."}


AGENTS = {"creative_partner": creative_partner, "game_designer": game_designer, "ceo": ceo, "cfo": cfo}


async def live(store: Store) -> None:
    """One life: begin or go on, and tell the run what is to be told, each thing once."""
    broadcast = Broadcast()
    hall = new_hall(store, broadcast)
    hall.owner = next(PROCESSES)
    context = RunContext(hall, broadcast, AGENTS)
    machine = find("team")
    if await exists(store, RUN):
        await resuming.resume(context, RUN, machine)
    else:
        await beginning.begin(context, machine, Conversation(seed="x"), Terms(RUN, "rehearsal"))
    sends = [resuming.send(context, RUN, (event, None), key=key, machine=machine) for key, event in STORY.items()]
    ended = await asyncio.gather(*sends, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error
    await resuming.resume(context, RUN, machine)


async def told(store: Store) -> tuple[list[str], list[tuple[str, str]], dict[str, str]]:
    """What was said, sorted, who handed to whom, and how what went on beside has ended."""
    entries = await store.entries(RUN)
    appends = [append for entry in entries for append in entry.get("appends", ())]
    said = sorted(append["message"]["text"] for append in appends if append["thread"] == THREAD)
    moves = [append["message"] for append in appends if append["thread"] == TRANSITIONS]
    beside = (await store.load(RUN)).head["snapshot"]["data"]["beside"]
    ends = sorted((known["machine"], known["ended"]) for known in beside.values())
    return said, [(move["from"], move["to"]) for move in moves], dict(ends)


def opened(folder: Path, name: str) -> SqliteStore:
    return SqliteStore(folder / f"{name}.db")


@pytest.mark.covers("T5", "T57")
async def test_killed_at_every_write_nothing_is_said_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    store = opened(tmp_path, "whole")
    await live(store)
    whole = await told(store)
    writes = len(await store.entries(RUN)) + sum(
        [len(await store.entries(summary.run)) for summary in await _children(store)]
    )
    store.close()
    assert whole[2] == {"team-panel": "done", "coder_reviewer": "done"}
    assert whole[1] == [
        ("RespondToUser", "creative_partner"),
        ("creative_partner", "game_designer"),
        ("game_designer", "RespondToUser"),
    ]
    deaths = 0
    for write in range(1, writes + 1):
        store = opened(tmp_path, f"killed-{write}")
        try:
            await live(killed(store, write, before=write % 2 == 0))
        except Killed:
            deaths += 1
            await live(store)
        assert await told(store) == whole, f"killed at write {write}"
        store.close()
    assert deaths >= 18


async def _children(store: SqliteStore) -> list[Any]:
    return [summary for summary in await _summaries(store) if summary.run != RUN]


async def _summaries(store: SqliteStore) -> Any:
    from moothall.app.runs.view import summaries

    return await summaries(store)
