"""Recorded tool loops of an airline's agent, played again by a script: the same calls in the same order, once each."""

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moothall import Final, GaveUp, Machine, On, Replied, State, ask
from moothall.app.kinds.bindings import Provided, bind
from moothall.errors import Refused
from moothall.machines.turn import turn
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin, reopen
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store
from moothall.stores.sqlite import SqliteStore
from tests.runtime.clock import HastyClock
from tests.runtime.family import Killed, killed
from tests.runtime.world import PROCESSES

RECORDED = Path("../shared/evals/tau-bench/gpt-4o-airline.json.gz")
ROUNDS = 64
KILLS = [20, pytest.param(200, marks=pytest.mark.soak)]
RUN = "flight"

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded loops are not beside the project")


@dataclass(frozen=True)
class Loop:
    """One recorded conversation: what the agent said, as a script has it, and the calls that it made."""

    lines: Sequence[Mapping[str, Any]]
    calls: Sequence[tuple[str, str]]
    results: Mapping[str, str]

    @property
    def tools(self) -> list[str]:
        return sorted({name for name, _ in self.calls})


def loop_of(recorded: Mapping[str, Any]) -> Loop:
    """A conversation in which the agent's words to the customer are left out: of a turn, only the last word counts."""
    lines: list[Mapping[str, Any]] = []
    calls: list[tuple[str, str]] = []
    results: dict[str, str] = {}
    for message in recorded["traj"]:
        if message["role"] == "tool":
            results[message["tool_call_id"]] = message["content"]
        for wanted in message.get("tool_calls") or ():
            name, given = wanted["function"]["name"], json.loads(wanted["function"]["arguments"])
            calls.append((name, json.dumps(given, sort_keys=True)))
            lines.append({"calls": [{"tool": name, "arguments": given, "id": wanted["id"]}]})
    return Loop([*lines, {"text": "That is all."}], calls, results)


@pytest.fixture(scope="module")
def loops() -> list[Loop]:
    with gzip.open(RECORDED) as file:
        every = [loop_of(recorded) for recorded in json.load(file)]
    return [loop for loop in every if 2 <= len(loop.calls) <= ROUNDS]


class Counter:
    """Stub tools that note every call under its key."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, str]] = []

    def tool(self, name: str) -> Callable[..., Any]:
        async def stub(key: str, **given: Any) -> str:
            self.made.append((name, json.dumps(given, sort_keys=True), key))
            return "noted"

        stub.__name__ = name
        return stub

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(name, given) for name, given, _ in self.made]


def machine_for(loop: Loop, counter: Counter) -> Machine:
    tools = [counter.tool(name) for name in loop.tools]
    return Machine(
        "flight",
        data=str,
        states=[State("serving", enter=ask("agent", "Serve.", tools=tools, rounds=ROUNDS)), Final("served")],
        moves=[On("serving", (Replied, GaveUp), to="served")],
    )


async def played(machine: Machine, store: Store, model: str) -> str:
    """Play a run in a process of its own, from where it stands, as far as it goes."""
    hall = Hall(store, HastyClock(), {}, owner=next(PROCESSES))
    provided = Provided(model)

    async def open_run(run: RunId) -> None:
        mine = machine if run == RUN else turn(ROUNDS)
        hall.bind(run, bind(mine, provided if mine is machine else provided.joined_by(machine)))
        await reopen(hall, run, mine)

    hall.opener = open_run
    hall.bind(RUN, bind(machine, provided))
    try:
        await hall.open(RUN)
    except Refused:
        await begin(hall, Record(RUN, machine.name, machine.digest, hall.clock.now(), model=model), machine, "x")
    await drive(hall, RUN)
    for run in await store.due(hall.clock.now(), 10, [owner for owner in await store.owners() if is_gone(owner)]):
        await hall.open(run)
        await drive(hall, run)
    return (await store.load(RUN)).status


def script(tmp_path: Path, loop: Loop) -> str:
    (tmp_path / "script.json").write_text(json.dumps({"agent": loop.lines}))
    return f"scripted:{tmp_path / 'script.json'}"


@pytest.mark.anyio
@pytest.mark.parametrize("many", KILLS)
async def test_the_same_calls_are_made_in_the_same_order(tmp_path: Path, loops: Sequence[Loop], many: int) -> None:
    for number, loop in enumerate(loops[:: max(1, len(loops) // many)]):
        counter, store = Counter(), SqliteStore(tmp_path / f"{number}.db", durability="normal")
        assert await played(machine_for(loop, counter), store, script(tmp_path, loop)) == "done"
        assert counter.calls == list(loop.calls)
        store.close()


async def _completed(store: Store) -> set[str]:
    """The keys of the calls that the journal knows to have come back."""
    try:
        entries = await store.entries(f"{RUN}-0-0")
    except Refused:
        return set()
    return {f"{RUN}-0-0.{entry['cause']}" for entry in entries if entry["event"]["name"] == "returned"}


@pytest.mark.anyio
@pytest.mark.parametrize("many", KILLS)
async def test_no_completed_call_is_repeated_after_a_kill(tmp_path: Path, loops: Sequence[Loop], many: int) -> None:
    chance = random.Random(17)
    killed_at = repeated = 0
    for number in range(many):
        loop, counter = chance.choice(loops), Counter()
        machine, model = machine_for(loop, counter), script(tmp_path, loop)
        store = SqliteStore(tmp_path / f"kill-{number}.db", durability="normal")
        write, before = chance.randint(1, 2 * len(loop.calls) + 2), chance.random() < 0.5
        try:
            await played(machine, killed(store, write, before=before), model)
        except Killed:
            killed_at += 1
        completed = await _completed(store)
        made = len(counter.made)
        assert await played(machine, store, model) == "done"
        repeated += sum(key in completed for _, _, key in counter.made[made:])
        assert list(dict.fromkeys(counter.made)) == [
            (*call, key) for call, key in zip(loop.calls, dict.fromkeys(key for *_, key in counter.made), strict=True)
        ]
        store.close()
    assert killed_at >= many // 2
    assert repeated == 0
