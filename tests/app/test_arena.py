"""The arena as programs use it, what it keeps beyond its runs, and the mirror of that."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moothall import answer
from moothall.app.config.access import opened
from moothall.app.kinds.arena.records import Given, identity_of, judge_plan, lock_store, recall_traces
from moothall.app.kinds.arena.standings import standings
from moothall.app.report.account import show
from moothall.app.runs.mirror import Mirroring
from moothall.app.runs.moothall import Moothall
from moothall.arena import ArenaOptions, run_arena
from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.kernel.events import SharedRecord
from moothall.machines.arena.declaration import Declaration, declaration
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.memory import Trace, nearest
from moothall.runtime.mirror import pump
from moothall.stores.memory import MemoryStore
from moothall.stores.mirror import SqliteMirror
from moothall.stores.postgresql_mirror import PostgresMirror
from tests.machines.arena_world import task, vote
from tests.postgres import served

sandboxed = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and a home of one's own."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MOOTHALL_MIRROR", raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def agents(*tasks: Mapping[str, Any], **said: Any) -> dict[str, Any]:
    """Functions that play the whole arena; each of the panel says the same all the time."""

    async def classifier(prompt: str) -> Any:
        return said.get("classifier", {"kind": "chore", "tags": ["files"], "confidence": 0.9})

    async def planner(prompt: str) -> Any:
        return {"tasks": list(tasks)}

    def panelist(role: str) -> Any:
        async def opinion(prompt: str) -> Any:
            if "Tasks of the plan failed" in prompt:
                return said.get("diagnosis", {})
            return said.get(role, vote())

        return opinion

    panel = {role: panelist(role) for role in ("analyst", "solution", "critic", "security", "optimizer")}
    return {"classifier": classifier, "planner": planner, **panel}


# programs


@sandboxed
@pytest.mark.covers("A24")
def test_a_program_deals_with_a_request_and_gets_what_the_command_prints(workspace: Path) -> None:
    told = run_arena(
        "make a file", ArenaOptions(str(workspace)), agents=agents(task("a", "echo x > made")), run_id="case"
    )
    assert (told["status"], told["trace_id"], told["consensus"]) == ("succeeded", "case", 1.0)
    assert (workspace / "made").read_text() == "x\n"


@sandboxed
def test_a_program_answers_for_a_person(workspace: Path) -> None:
    bindings = agents(task("a", "touch made", reverse="irreversible"))
    told = run_arena("send it", ArenaOptions(str(workspace)), agents=bindings, run_id="case")
    assert told["status"] == "waiting"
    outcome = answer("case", True, agents=bindings, by="Ada")
    assert (outcome.status, outcome.data.judge, (workspace / "made").exists()) == ("done", "Ada", True)


@pytest.mark.parametrize(
    ("request_text", "settings", "why"),
    [
        (" ", ArenaOptions(), "the request is empty"),
        ("x", ArenaOptions("/no/such/folder"), "is not a folder"),
        ("x", ArenaOptions(config=Path("missing.json")), "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_run_begins(
    workspace: Path, request_text: str, settings: ArenaOptions, why: str
) -> None:
    with pytest.raises(DefinitionError, match=why):
        run_arena(request_text, settings, agents=agents())


@sandboxed
@pytest.mark.covers("A25", "A3")
def test_the_journal_shows_that_only_the_identity_was_looked_at_before_it_held(workspace: Path) -> None:
    run_arena("make it", ArenaOptions(str(workspace)), agents=agents(task("a")), run_id="case")
    with opened(None) as store:
        entries = asyncio.run(show(store, "case")).entries
    wanted = []
    for entry in entries:
        if "Idle" not in str(entry["to"]) and entry["to"] != ["VerifyingIdentity"]:
            break
        wanted += [(effect["kind"], effect["effect"].get("collection", "")) for effect in entry["effects"]]
    assert wanted == [("read.records", "identity"), ("arena.identity", "")]


@sandboxed
@pytest.mark.covers("A26", "A32")
def test_an_aborted_run_writes_no_record_and_other_runs_go_on(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "arena.json").write_text(json.dumps({"identity": {"database": "production"}}))
    locked = ArenaOptions(str(workspace), tmp_path / "arena.json")
    told = run_arena("make it", locked, agents=agents(task("a", "touch made")))
    assert (told["status"], told["votes"], told["tasks"]) == ("aborted", [], [])
    with opened(None) as store:
        assert asyncio.run(store.outbox("anybody")) == []
    assert run_arena("make it", ArenaOptions(str(workspace)), agents=agents(task("a")))["status"] == "succeeded"


# memory


@sandboxed
@pytest.mark.covers("A5", "A14")
def test_later_runs_know_ratings_and_the_traces_that_are_alike(workspace: Path) -> None:
    settings = ArenaOptions(str(workspace))
    careless = agents(task("a", "false"), critic=vote("reject", 0.2))
    for number, text in enumerate(["tidy the cellar", "paint the fence", "tidy the attic", "bake bread"]):
        run_arena(text, settings, agents=careless, run_id=f"old-{number}")
    run_arena("tidy the shed", settings, agents=careless, run_id="new")

    async def look() -> tuple[Any, Any, Any]:
        async with Moothall() as hall:
            told = await standings(hall.store)
            return told, await recall_traces(hall.store, "tidy cellar", 2), await show(hall.store, "new")

    told, found, run = asyncio.run(look())
    context = next(entry["event"] for entry in run.entries if entry["event"]["name"] == "arena.context")
    assert [near["trace"]["id"] for near in context["nearest"]] == ["old-2", "old-0"]
    assert {near["trace"]["outcome"] for near in context["nearest"]} == {"rolled_back"}
    assert {rating["key"]["agent"] for rating in context["ratings"]} == {"analyst", "critic", "optimizer", "solution"}
    assert len(context["ratings"]) == 12
    assert found[0].trace.id == "old-0"
    leaf = next(rating for rating in told["ratings"] if (rating["agent"], rating["kind"]) == ("critic", "chore"))
    assert (leaf["games"], leaf["wins"], leaf["model"]) == (5, 5, "function")
    assert leaf["elo"] > 1200
    assert leaf["fit"]["low"] < leaf["fit"]["rating"] < leaf["fit"]["high"]
    assert leaf["fit"]["status"] == "preliminary"
    assert [duel["trace_id"] for duel in told["history"]] == ["old-0", "old-1", "old-2", "old-3", "new"]
    moves = [(duel["first"]["before"], duel["first"]["after"]) for duel in told["history"]]
    assert all(after == before for (_, after), (before, _) in pairwise(moves))


@sandboxed
def test_runs_at_the_same_time_lose_no_duel(workspace: Path) -> None:
    async def run_all() -> dict[str, Any]:
        async with Moothall() as hall:
            case = {"workspace": str(workspace), "config": {}}
            bindings = agents(task("a", "false"), critic=vote("reject", 0.2))
            runs = (hall.run("arena", {"request": f"do {number}", **case}, agents=bindings) for number in range(6))
            outcomes = await asyncio.gather(*runs)
            assert {outcome.data.outcome for outcome in outcomes} == {"rolled_back"}
            return await standings(hall.store)

    told = asyncio.run(run_all())
    assert {rating["games"] for rating in told["ratings"]} == {6}
    assert len(told["history"]) == 6


def test_the_nearest_traces_come_first_and_of_two_alike_the_newer_one() -> None:
    traces = [Trace("a", "tidy the cellar", at=1), Trace("b", "bake bread"), Trace("c", "tidy the cellar", at=2)]
    assert [near.trace.id for near in nearest("tidy my cellar", traces)] == ["c", "a"]
    assert [near.trace.id for near in nearest("x", [Trace("a", "y", tags=("z",))], tags=("z",))] == ["a"]
    assert [(near.trace.id, near.similarity) for near in nearest("Do it", [Trace("a", "do it", tags=("z",))])] == [
        ("a", 1.0)
    ]


# a person judges what was blocked


def blocked(workspace: Path, run_id: str, *tasks: Any, **said: Any) -> None:
    """A run whose plan security vetoes, unless it is said otherwise."""
    panel = {"security": vote("reject", 1.0), **said}
    told = run_arena(
        "do it", ArenaOptions(str(workspace)), agents=agents(*(tasks or [task("a")]), **panel), run_id=run_id
    )
    assert told["status"] == "blocked"


def judged(run: str, *, is_good: bool) -> dict[str, Any]:
    """The standings after somebody judged a plan, each rating of an agent by its name."""

    async def work() -> dict[str, Any]:
        async with Moothall() as hall:
            assert await judge_plan(hall, run, is_good=is_good, by="Ada") == "Ada"
            told = await standings(hall.store)
            [decision] = await hall.store.records("decisions", key=run)
            return {**told, "decision": decision.value}

    return asyncio.run(work())


@pytest.mark.covers("A14", "A27")
@pytest.mark.parametrize(
    ("is_good", "said", "security", "analyst"), [(True, "refuted", 1184, 1), (False, "confirmed", 1216, 0)]
)
def test_a_veto_moves_ratings_once_a_person_has_confirmed_or_refuted_it(
    workspace: Path, is_good: bool, said: str, security: float, analyst: int
) -> None:
    blocked(workspace, "case")
    told = judged("case", is_good=is_good)
    leaves = {rating["agent"]: rating for rating in told["ratings"] if rating["kind"] == "chore"}
    assert (leaves["security"]["elo"], leaves["solution"]["elo"]) == (security, 2400 - security)
    assert (leaves["analyst"]["wins"], leaves["analyst"]["games"]) == (analyst, 1)
    assert [duel["trace_id"] for duel in told["history"]] == ["case"]
    assert (told["decision"]["judged"], told["decision"]["judge"]) == (said, "Ada")
    with pytest.raises(Refused, match="judged the plan of case already"):
        judged("case", is_good=not is_good)


def test_a_panel_that_did_not_reach_its_consensus_can_be_judged_too(workspace: Path) -> None:
    blocked(workspace, "case", security=vote("reject", 0.8), critic=vote("reject", 0.8))
    assert {duel["first"]["agent"] for duel in judged("case", is_good=False)["history"]} == {"critic", "security"}


@sandboxed
def test_what_is_judged_already_or_was_never_blocked_is_not_judged_by_a_person(workspace: Path) -> None:
    with pytest.raises(Refused, match="is remembered as 'nobody'"):
        judged("nobody", is_good=True)
    blocked(workspace, "ruled", task("a", "rm -rf /"))
    with pytest.raises(Refused, match="a rule cannot be refuted"):
        judged("ruled", is_good=True)
    run_arena("make it", ArenaOptions(str(workspace)), agents=agents(task("a")), run_id="done")
    with pytest.raises(Refused, match="was not blocked"):
        judged("done", is_good=True)


def test_nobody_judges_where_the_identity_does_not_hold(workspace: Path) -> None:
    blocked(workspace, "case")

    async def lock() -> None:
        async with Moothall() as hall:
            await lock_store(hall, Given(operator="bob"))

    asyncio.run(lock())
    with pytest.raises(Refused, match="locked to 'bob'"):
        judged("case", is_good=True)


# identity


def test_a_store_is_locked_once_and_its_locks_are_held_against_the_place(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "acme")

    async def lock_and_look() -> None:
        async with Moothall() as hall:
            told = await lock_store(hall, Given(workspace=str(workspace), operator="ada"))
            assert told["locks"] | {"database": ""} == {
                "cloud_project": "acme",
                "database": "",
                "workspace": str(workspace),
                "operator": "ada",
            }
            assert (await identity_of(hall.store, Given(workspace=str(workspace), operator="ada")))["holds"]
            monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "other")
            told = await identity_of(hall.store, Given(operator="ada"))
            assert told["mismatches"] == ["the cloud project is 'other'; the store is locked to 'acme'"]
            with pytest.raises(Refused, match="locked already"):
                await lock_store(hall, Given(operator="bob"))
            assert (await lock_store(hall, Given(operator="bob"), anew=True))["locks"]["operator"] == "bob"

    asyncio.run(lock_and_look())


# the mirror


class Flapping:
    """A mirror that is down at every other call, and slow or broken in the middle where it is told to be."""

    name = "flapping"

    def __init__(self, *, down: Sequence[bool]) -> None:
        self.kept: dict[tuple[str, str], SharedRecord] = {}
        self._down = list(down)
        self.calls = 0

    async def put(self, records: Sequence[SharedRecord]) -> None:
        """Keep these, or fail when half of them are kept."""
        self.calls += 1
        is_down = self._down.pop(0) if self._down else False
        for number, record in enumerate(records):
            if is_down and number >= len(records) // 2:
                raise EffectFailed("it is down")
            there = self.kept.get((record.collection, record.key))
            if there is None or there.version < record.version:
                self.kept[record.collection, record.key] = record


async def write(hall: Moothall, times: int) -> None:
    """Write the identity record so many times."""
    for number in range(times):
        await hall.run(declaration(), Declaration(Locks(operator=f"nobody {number}"), anew=True))


@pytest.mark.anyio
@pytest.mark.parametrize("down", [[], [True], [True, True, True], [False, True] * 6, [True, False] * 6])
async def test_a_mirror_that_comes_and_goes_ends_with_the_same_records(workspace: Path, down: list[bool]) -> None:
    async with Moothall("memory") as hall:
        await write(hall, 7)
        mirror = Flapping(down=down)
        for _ in range(40):
            try:
                await pump(hall.store, mirror, batch=2)
                break
            except EffectFailed:
                continue
        assert list(mirror.kept.values()) == await hall.store.records("identity")
        assert await hall.store.outbox("flapping") == []


@pytest.mark.anyio
async def test_a_mirror_that_never_answers_keeps_nobody_waiting(workspace: Path) -> None:
    class Stuck:
        name = "stuck"

        async def put(self, records: Sequence[SharedRecord]) -> None:
            await asyncio.Event().wait()

    store = MemoryStore()
    async with Moothall("memory") as hall:
        mirroring = Mirroring(hall.store, Stuck())
        await write(hall, 3)
        assert "the mirror is behind" in await mirroring.finish()
        assert len(await hall.store.outbox("stuck")) == 3
    assert await store.outbox("stuck") == []


@pytest.mark.anyio
async def test_a_mirror_that_does_not_even_let_itself_be_cancelled_keeps_nobody_waiting(workspace: Path) -> None:
    free = asyncio.Event()

    class Stubborn:
        name = "stubborn"

        async def put(self, records: Sequence[SharedRecord]) -> None:
            while not free.is_set():
                with suppress(asyncio.CancelledError):
                    await free.wait()

    async with Moothall("memory") as hall:
        mirroring = Mirroring(hall.store, Stubborn())
        await write(hall, 3)
        assert "the mirror is behind" in await asyncio.wait_for(mirroring.finish(), 30)
        free.set()


@pytest.mark.anyio
async def test_a_mirror_that_refuses_harms_nobody(workspace: Path) -> None:
    class Refusing:
        name = "refusing"

        async def put(self, records: Sequence[SharedRecord]) -> None:
            raise Refused("the password is wrong")

    async with Moothall("memory") as hall:
        mirroring = Mirroring(hall.store, Refusing())
        await write(hall, 1)
        assert await mirroring.finish() == "the mirror is behind, and gets the rest later: the password is wrong"
        assert len(await hall.store.outbox("refusing")) == 1


@pytest.mark.covers("A22")
def test_what_a_run_keeps_is_in_the_mirror_too(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_MIRROR", f"sqlite:{tmp_path / 'mirror.db'}")
    run_arena("look", ArenaOptions(str(workspace), dry_run=True), agents=agents(task("a")), run_id="case")
    mirrored = SqliteMirror(tmp_path / "mirror.db").records()
    with opened(None) as store:
        kept = [record for name in ("audit", "decisions", "traces") for record in asyncio.run(store.records(name))]
    assert mirrored == kept
    assert [record.key for record in kept] == ["case"] * 3


def test_a_second_store_that_is_locked_or_missing_gets_everything_later(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "elsewhere" / "mirror.db"
    monkeypatch.setenv("MOOTHALL_MIRROR", f"sqlite:{file}")

    async def write_once() -> list[SharedRecord]:
        async with Moothall() as hall:
            await write(hall, 1)
            return list(await hall.store.records("identity"))

    asyncio.run(write_once())
    assert "the mirror is behind" in capsys.readouterr().err
    file.parent.mkdir()
    mirror = SqliteMirror(file)
    assert asyncio.run(write_once()) == mirror.records()
    with sqlite3.connect(file, isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        kept = asyncio.run(write_once())
        assert "the mirror is behind" in capsys.readouterr().err
        holder.execute("ROLLBACK")
    holder.close()
    assert mirror.records() != kept
    assert asyncio.run(write_once()) == mirror.records()


@pytest.mark.slow
def test_a_mirror_on_a_server_that_stops_and_starts_loses_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def keep(caught_up: bool) -> list[SharedRecord]:
        async with Moothall() as hall:
            await write(hall, 1)
            if caught_up:
                await pump(hall.store, PostgresMirror(address))
            return list(await hall.store.records("identity"))

    async def mirrored() -> list[SharedRecord]:
        return await PostgresMirror(address).records()

    with served() as server, server.database() as address:
        monkeypatch.setenv("MOOTHALL_MIRROR", address)
        for _ in range(3):
            server.stop()
            asyncio.run(keep(caught_up=False))
            assert "the mirror is behind" in capsys.readouterr().err
            server.start()
            assert asyncio.run(keep(caught_up=True)) == asyncio.run(mirrored())


def test_without_a_sandbox_no_task_runs_and_the_remedy_is_one_that_the_arena_has(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moothall.sandboxes.bubblewrap.PLACES", "/nowhere")
    told = run_arena("make it", ArenaOptions(str(workspace)), agents=agents(task("a", "touch made")))
    assert (told["status"], (workspace / "made").exists()) == ("rolled_back", False)
    assert "install the package bubblewrap" in told["reason"]
    assert "moot doctor" in told["reason"]
    assert "--sandbox" not in told["reason"]
