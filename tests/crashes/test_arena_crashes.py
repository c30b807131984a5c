"""The arena, cut off at every point of execution, healing and rollback, and gone on with by somebody else.

The world outlives every process. It notes every command that is really carried out, and a person who is asked what
became of one looks there. However often a process dies, a command that may run once runs once, and the way back ends
with the workspace as it was, or says exactly what is left.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.bindings import Provided, bind
from moothall.kernel.events import Event
from moothall.machines.arena.case import Case
from moothall.machines.arena.effects import (
    RestoreWorkspace,
    RunTask,
    SaveWorkspace,
    TaskEnded,
    WorkspaceRestored,
    WorkspaceSaved,
)
from moothall.machines.arena.machine import arena
from moothall.performers.own import OwnPerformers
from moothall.runtime.hall import answer, questions
from moothall.runtime.ports import Context
from moothall.stores.sqlite import SqliteStore
from tests.crashes.mortal import Life, Scenario, Stage, unmarked
from tests.machines.arena_world import task, vote
from tests.runtime.world import RUN
from tests.simulation.loop import VirtualLoop, complete

BEFORE = {"kept": "as it was"}


@dataclass
class Workshop:
    """A workspace with what was done in it: `make X` makes a file, `drop X` removes it, `fail …` fails."""

    tasks: Sequence[Mapping[str, Any]]
    repairs: Sequence[Any] = ()
    files: dict[str, str] = field(default_factory=lambda: dict(BEFORE))
    saves: list[dict[str, str]] = field(default_factory=list)
    done: dict[str, TaskEnded] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    async def run_task(self, effect: RunTask, context: Context) -> Event:
        """Carry out a command, and note it under its key."""
        word, _, what = effect.task.command.partition(" ")
        self.log.append(effect.task.command)
        if word == "make":
            self.files[what] = "made"
        elif word == "drop":
            self.files.pop(what, None)
        code = 1 if word == "fail" else 0
        self.done[context.key] = TaskEnded(effect.id, code, stderr=what if code else "", sandbox="none")
        return self.done[context.key]

    async def save(self, effect: SaveWorkspace) -> Event:
        """Keep a copy."""
        self.saves.append(dict(self.files))
        return WorkspaceSaved(str(len(self.saves)))

    async def restore(self, effect: RestoreWorkspace) -> Event:
        """Bring a copy back."""
        self.files = dict(self.saves[int(effect.save) - 1])
        return WorkspaceRestored()

    def scenario(self) -> Scenario:
        """The life of a run in this workspace."""

        async def classifier(prompt: str) -> Any:
            return {"kind": "chore", "confidence": 0.9}

        async def planner(prompt: str) -> Any:
            return {"tasks": list(self.tasks)}

        async def panel(prompt: str) -> Any:
            return vote()

        async def critic(prompt: str) -> Any:
            if "Tasks of the plan failed" not in prompt:
                return vote()
            commands = [repair["plan"]["tasks"][0]["command"] for repair in self.repairs]
            tried = sum(f'"command": "{command}"' in prompt for command in commands)
            return self.repairs[tried] if tried < len(self.repairs) else {}

        others = dict.fromkeys(("analyst", "solution", "security", "optimizer"), panel)
        agents = {"classifier": classifier, "planner": planner, "critic": critic, **others}
        performers: OwnPerformers = {RunTask: self.run_task, SaveWorkspace: self.save, RestoreWorkspace: self.restore}
        bindings = bind(arena(), Provided("", agents, performers=performers))
        return Scenario("arena", arena(), self.story, bindings, Case("tidy up", "/work"), same=unmarked)

    async def story(self, life: Life) -> None:
        """Drive to the end; a person who is asked what became of a command looks into the workspace's log."""
        await life.opened()
        await life.driven()
        while doubted := questions(life.hall.runs[RUN].head):
            ended = self.done.get(f"{RUN}.{doubted[0].key}")
            if ended is None:
                found: dict[str, Any] = {"outcome": "again"}
            elif ended.exit_code:
                found = {"outcome": "failed", "reason": f"it failed: {ended.stderr}"}
            else:
                found = {"outcome": "done"}
            await answer(life.hall, RUN, found, doubted[0].key)
            await life.driven()
        case = life.hall.runs[RUN].head.snapshot.data
        assert isinstance(case, Case)
        self.case = case


def repaired(*tasks: Any) -> Any:
    return {"diagnosis": "it was wrong", "plan": {"tasks": list(tasks)}}


def undo(name: str) -> dict[str, str]:
    return {"kind": "command", "command": f"drop {name}"}


def rolled_back() -> Workshop:
    return Workshop(
        [
            task("a", "make a", reverse=undo("a")),
            task("b", "make b", needs=["a"], reverse=undo("b")),
            task("side", "make side", effect="idempotent"),
            task("c", "fail first", needs=["b"]),
        ],
        [repaired(task("c", "fail second", needs=["b"])), repaired(task("c", "fail third", needs=["b"]))],
    )


def healed() -> Workshop:
    tasks = [task("a", "make a"), task("c", "fail first", needs=["a"]), task("d", "make d", needs=["c"])]
    return Workshop(tasks, [repaired(task("c", "make c", needs=["a"]))])


def lived(workshop: Workshop, file: Path, *deaths: int) -> list[list[str]]:
    """The points that some lives passed, of which all but the last died."""
    stage = Stage(workshop.scenario(), lambda: SqliteStore(file, durability="normal"), VirtualLoop())

    async def tell() -> list[list[str]]:
        return [await stage.live(deadly) for deadly in (*deaths, 0)]

    return complete(stage.loop, tell())


def check_rolled_back(workshop: Workshop, where: str) -> None:
    """The way back is complete, and nothing that may run once ran twice."""
    case, ran = workshop.case, Counter(workshop.log)
    assert case.outcome == "rolled_back", where
    assert case.rollback is not None
    assert case.rollback.is_complete, f"{where}: {case.rollback.left}"
    assert workshop.files == BEFORE, where
    twice = {command: times for command, times in ran.items() if times > 1 and command != "make side"}
    assert not twice, f"{where}: {twice}"
    assert len(case.repairs) <= 2, where


def check_healed(workshop: Workshop, where: str) -> None:
    assert workshop.case.outcome == "succeeded", where
    assert workshop.files == {**BEFORE, "a": "made", "c": "made", "d": "made"}, where
    assert set(Counter(workshop.log).values()) == {1}, f"{where}: {workshop.log}"


SCENES = [
    pytest.param(rolled_back, check_rolled_back, id="rolled back", marks=pytest.mark.slow),
    pytest.param(healed, check_healed, id="healed"),
]


@pytest.mark.covers("A20", "A21")
@pytest.mark.parametrize(("scene", "check"), SCENES)
def test_who_dies_at_any_point_leaves_a_run_that_heals_or_rolls_back_once(
    scene: Any, check: Any, empty: Path, tmp_path: Path, figure: list[str]
) -> None:
    [points] = lived(whole := scene(), Path(shutil.copy(empty, tmp_path / "whole.db")))
    check(whole, "nobody died")
    acting = [number for number, name in enumerate(points, 1) if number > points.index("before arena.save")]
    for point in acting:
        lived(workshop := scene(), Path(shutil.copy(empty, tmp_path / f"{point}.db")), point)
        check(workshop, f"died at point {point}, {points[point - 1]}")
    figure.append(f"{scene.__name__}: {len(acting)} points from the save on")


@pytest.mark.slow
@pytest.mark.covers("A20", "A21")
@pytest.mark.parametrize(("scene", "check"), SCENES)
def test_who_dies_again_on_the_way_leaves_a_run_that_heals_or_rolls_back_once(
    scene: Any, check: Any, empty: Path, tmp_path: Path
) -> None:
    [points] = lived(scene(), Path(shutil.copy(empty, tmp_path / "whole.db")))
    for point in range(points.index("before arena.save") + 1, len(points) + 1, 2):
        deaths = (point, 1 + point * 7 % 23, 1 + point * 5 % 11)
        lived(workshop := scene(), Path(shutil.copy(empty, tmp_path / f"{point}.db")), *deaths)
        check(workshop, f"died at {deaths}")


def test_a_reverse_task_that_a_person_says_failed_is_told_as_left(empty: Path, tmp_path: Path) -> None:
    tasks = [task("a", "make a", reverse={"kind": "command", "command": "fail undo"}), task("c", "fail", needs=["a"])]
    [points] = lived(Workshop(tasks), Path(shutil.copy(empty, tmp_path / "whole.db")))
    last = max(number for number, name in enumerate(points, 1) if name == "after arena.task")
    lived(workshop := Workshop(tasks), Path(shutil.copy(empty, tmp_path / "cut.db")), last)
    assert workshop.case.rollback is not None
    assert workshop.case.rollback.left == ("task a was not undone: it failed: undo",)
    assert workshop.files == BEFORE
    assert Counter(workshop.log)["fail undo"] == 1
