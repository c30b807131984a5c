"""Checking many workflows together: how much is done is counted, because time would tell nothing for sure."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moothall.analysis.certify import Certificate, Unbounded
from moothall.app.kinds import check as checking
from moothall.app.kinds.check import Check
from moothall.app.kinds.workflow import files as workflows
from tests.machines.workflows import BASE


def plain(name: str) -> dict[str, Any]:
    """A workflow that asks nobody."""
    start = {"name": "start", "transition": [{"target": "stop", "condition": "true"}]}
    return {**BASE, "workflow_name": name, "agents": [], "states": [start, {"name": "stop", "input": "1"}]}


def starting(name: str, *children: str) -> dict[str, Any]:
    """A workflow that starts others, one after the other."""
    states: list[dict[str, Any]] = [
        {
            "name": f"step{at}" if at else "start",
            "action": {"sub_workflow": child, "sub_workflow_input": {"task": "'it'"}},
            "transition": [{"target": f"step{at + 1}" if at + 1 < len(children) else "stop", "condition": "true"}],
        }
        for at, child in enumerate(children)
    ]
    return {**plain(name), "states": [*states, {"name": "stop", "input": "1"}]}


def written(path: Path, *every: dict[str, Any]) -> Path:
    path.write_text(json.dumps(every))
    return path


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a file was checked, and how often each machine was certified."""
    counted: Counter[str] = Counter()

    def count(module: Any, function: str, key: Callable[[Any], str]) -> None:
        real = getattr(module, function)

        def counting(first: Any, *rest: Any) -> Any:
            counted[key(first)] += 1
            return real(first, *rest)

        monkeypatch.setattr(module, function, counting)

    count(workflows, "find_problems", lambda document: "file " + document.value[0]["workflow_name"])
    count(checking, "certify", lambda machine: machine.name)
    return counted


def bounds(check: Check, path: Path) -> dict[str, Certificate | Unbounded]:
    [examined] = check.examine(str(path))
    assert not [told for told in examined.told if told.level == "error"]
    return dict(examined.bounds)


def test_a_file_is_checked_once_however_many_workflows_it_has(work: Counter[str], tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(30)]
    found = bounds(Check(), written(tmp_path / "many.json", *map(plain, names)))
    assert all(isinstance(one, Certificate) for one in found.values())
    assert work == {"file w0": 1, **dict.fromkeys(names, 1)}


def test_a_child_is_certified_once_however_many_start_it(work: Counter[str], tmp_path: Path) -> None:
    layers = [starting(f"layer{at}", f"layer{at + 1}", f"layer{at + 1}") for at in range(5)]
    parents = [starting(f"parent{at}", "layer0", "far") for at in range(5)]
    written(tmp_path / "elsewhere.json", plain("far"), plain("farther"))
    found = bounds(Check(), written(tmp_path / "family.json", *parents, *layers, plain("layer5")))
    assert all(isinstance(one, Certificate) for one in found.values())
    assert work == {"file parent0": 1, "file far": 1, "far": 1, **dict.fromkeys(found, 1)}


def test_files_that_are_checked_together_share_what_they_start(work: Counter[str], tmp_path: Path) -> None:
    written(tmp_path / "shared.json", plain("shared"))
    check = Check()
    for name in ("one", "two", "three"):
        bounds(check, written(tmp_path / f"{name}.json", starting(name, "shared")))
    bounds(check, tmp_path / "shared.json")
    assert (work["file shared"], work["shared"]) == (1, 1)


def test_a_file_that_has_changed_is_checked_anew_by_the_next_check(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.json", starting("mine", "child"), plain("child"))
    [before, _] = bounds(Check(), path).values()
    written(path, starting("mine", "child", "child"), plain("child"))
    [after, _] = bounds(Check(), path).values()
    assert isinstance(before, Certificate)
    assert isinstance(after, Certificate)
    assert (before.resources["start.child"], after.resources["start.child"]) == (1, 2)


def test_a_link_is_checked_with_what_belongs_to_its_file(work: Counter[str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    written(tmp_path / "real" / "child.json", plain("child"))
    (tmp_path / "link.json").symlink_to(written(tmp_path / "real" / "mine.json", starting("mine", "child")))
    [found] = bounds(Check(), tmp_path / "link.json").values()
    assert isinstance(found, Certificate)
    assert work["file mine"] == 1
