"""A kill while any tool of a workspace is called, then a resume: nothing is lost, nothing is done twice unseen."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moothall import Final, GaveUp, Machine, On, Replied, State, Workspace, ask
from moothall.agents.workspace import BUILT_IN
from moothall.app.kinds.bindings import Provided, bind
from moothall.app.kinds.source import find
from moothall.app.toolbox import toolbox_of
from moothall.errors import Refused
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, answer, begin, questions, reopen
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock
from tests.runtime.family import Killed, killed
from tests.runtime.world import PROCESSES

RUN = "work"
COMMAND = "echo once >> log"
CALLS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "b.txt", "content": "new"},
    "edit_file": {"path": "a.txt", "old": "one", "new": "two"},
    "list_directory": {},
    "search_files": {"text": "one"},
    "execute_terminal": {"command": COMMAND},
    "git_status": {},
    "git_diff": {},
}
ALLOWED: Mapping[str, Any] = dict.fromkeys(BUILT_IN, "allow")


def machine_for(tool: str) -> Machine:
    return Machine(
        "work",
        data=str,
        states=[State("working", enter=ask("agent", "Work.", tools=[tool])), Final("worked")],
        moves=[On("working", (Replied, GaveUp), to="worked")],
    )


class Place:
    """A workspace, a store and a script of one call; each life is a process of its own."""

    def __init__(self, folder: Path, tool: str, policies: Mapping[str, Any]) -> None:
        self.folder, self.machine = folder / "ws", machine_for(tool)
        self.folder.mkdir(parents=True)
        (self.folder / "a.txt").write_text("one\n")
        self.store = SqliteStore(folder / "store.db", durability="normal")
        script = {"agent": [{"calls": [{"tool": tool, "arguments": CALLS[tool], "id": "c"}]}, {"text": "done"}]}
        (folder / "script.json").write_text(json.dumps(script))
        self.model = f"scripted:{folder / 'script.json'}"
        self.workspace = Workspace(str(self.folder), sandbox="none", policies=policies)

    async def live(self, store: Store) -> list[str]:
        """Drive the family to its end, with yes to every question and "done" to every doubt; what was in doubt."""
        hall = Hall(store, HastyClock(), {}, owner=next(PROCESSES))
        provided = Provided(self.model, toolbox=toolbox_of(self.workspace, RUN))

        async def open_run(run: RunId) -> None:
            name = (await store.load(run)).record.machine
            mine = self.machine if run == RUN else find(name)
            hall.bind(run, bind(mine, provided if run == RUN else provided.joined_by(self.machine)))
            await reopen(hall, run, mine)

        hall.opener = open_run
        hall.bind(RUN, bind(self.machine, provided))
        try:
            await hall.open(RUN)
        except Refused:
            record = Record(RUN, self.machine.name, self.machine.digest, hall.clock.now(), model=self.model)
            await begin(hall, record, self.machine, "x")
        doubts: list[str] = []
        while (await store.load(RUN)).status == "live":
            for run in [stored.record.run for stored in await store.runs() if stored.status == "live"]:
                await hall.open(run)
                await drive(hall, run)
                await hall.open(run)
                for pending in questions(hall.runs[run].head):
                    if pending.doubt:
                        doubts.append(pending.doubt)
                    said = {"outcome": "done", "value": "seen"} if pending.doubt else True
                    await hall.open(run)
                    await answer(hall, run, said, pending.key)
            assert not [owner for owner in await store.owners() if not is_gone(owner) and owner != hall.owner]
        return doubts


def state_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


ASKED: Mapping[str, Any] = dict.fromkeys(BUILT_IN, "ask")
WAYS = [*((tool, ALLOWED) for tool in CALLS), ("edit_file", ASKED), ("execute_terminal", ASKED)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "before", [pytest.param(True, id="before"), pytest.param(False, id="after", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("tool", "policies"), WAYS, ids=[*CALLS, "edit_file-approved", "execute_terminal-approved"])
async def test_a_kill_at_any_write_leaves_the_workspace_as_one_call_would(
    tmp_path: Path, tool: str, policies: Mapping[str, Any], before: bool
) -> None:
    calm = Place(tmp_path / "calm", tool, policies)
    assert await calm.live(calm.store) == []
    expected = state_of(calm.folder)
    calm.store.close()
    write, doubted = 0, 0
    while True:
        write += 1
        place = Place(tmp_path / str(write), tool, policies)
        try:
            await place.live(killed(place.store, write, before=before))
            break
        except Killed:
            doubts = await place.live(place.store)
        after = state_of(place.folder)
        if doubts:  # it had begun: a person found out, and nothing was done a second time
            assert tool == "execute_terminal"
            assert after.get("log", "once\n") == "once\n"
            doubted += 1
        else:
            assert after == expected
        place.store.close()
    place.store.close()
    assert write > 4
    assert (doubted > 0) == (tool == "execute_terminal")
