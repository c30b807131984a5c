"""A file that is named and cannot be read or written was named wrongly: always 4, whoever reads it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moothall.app.kinds.workflow.files import SHIPPED
from tests.cli.ran import Moot

DEFINITION, PROVIDER = 4, 3
WORKFLOW = "begun.json"
READING: dict[str, Callable[[str], tuple[str, ...]]] = {
    "the machine of run": lambda bad: ("run", f"{bad}.py"),
    "the machine of check": lambda bad: ("check", f"{bad}.py"),
    "the machine of graph": lambda bad: ("graph", f"{bad}.py:NAME"),
    "the machine of replay": lambda bad: ("replay", "mine", "--machine", f"{bad}.py"),
    "the machine of fork": lambda bad: ("fork", "mine", "--machine", f"{bad}.py"),
    "the workflow of run": lambda bad: ("run", f"{bad}.json", "text"),
    "the workflow of check": lambda bad: ("check", f"{bad}.json"),
    "a workflow by its name": lambda bad: ("graph", f"{bad}.json:name"),
    "functions": lambda bad: ("run", WORKFLOW, "text", "--functions", f"{bad}.py"),
    "roles": lambda bad: ("run", WORKFLOW, "text", "--roles", f"{bad}.json"),
    "input": lambda bad: ("run", "machines.py:LETTER", "--input-json", f"{bad}.json"),
    "an answer": lambda bad: ("answer", "mine", "--json", f"{bad}.json"),
    "data": lambda bad: ("js", "1", "--data", f"{bad}.json"),
    "checks": lambda bad: ("pipeline", "text", "--checks", f"{bad}.json"),
    "a script": lambda bad: ("run", "machines.py:NAMED", "Ada", "--model", f"scripted:{bad}.json"),
    "a cassette": lambda bad: ("run", "machines.py:NAMED", "Ada", "--model", f"cassette:{bad}.json,mode=replay"),
    "a project": lambda bad: ("trust", f"{bad}.py/moothall.toml"),
    "a suite": lambda bad: ("conformance", f"{bad}.py"),
}
RARE = [pytest.param(bad, marks=pytest.mark.slow) for bad in ("dangling", "circle", "machines.py/below", "x" * 300)]
WRITING: dict[str, Callable[[str], tuple[str, ...]]] = {
    "an export": lambda place: ("export", "mine", "--output", place),
    "a report": lambda place: ("report", "mine", "--output", place),
    "a log": lambda place: ("run", "machines.py:LETTER", "Ada", "--telemetry", f"log:{place}"),
}


@pytest.fixture
def mine(moot: Moot) -> Moot:
    """A run that is there, a workflow that is well, and names that lead nowhere."""
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine").code == 0
    shutil.copy(SHIPPED / "templates" / "workflow.json", WORKFLOW)
    for ending in (".py", ".json"):
        Path(f"folder{ending}").mkdir()
        Path(f"dangling{ending}").symlink_to(f"nowhere{ending}")
        Path(f"circle{ending}").symlink_to(f"circle{ending}")
    return moot


@pytest.mark.parametrize("bad", ["missing", "folder", *RARE])
@pytest.mark.parametrize("what", READING)
def test_what_cannot_be_read_exits_with_4(mine: Moot, what: str, bad: str) -> None:
    ran = mine(*READING[what](bad))
    assert (ran.code, ran.out) == (DEFINITION, "")
    assert ran.err.startswith("moot ")
    assert "MOOTHALL_DEBUG" not in ran.err
    assert [one["run"] for one in mine("ls", "--json").json] == ["mine"]


OF_A_RUN = ("show", "watch", "export", "metrics", "costs", "report", "replay", "audit", "resume", "cancel", "fork")


@pytest.mark.parametrize(
    "arguments", [("ls",), ("prune",), ("answer", "mine", "--yes"), *((one, "mine") for one in OF_A_RUN)]
)
def test_a_store_that_is_not_there_is_not_made_by_who_looks_for_a_run(mine: Moot, arguments: tuple[str, ...]) -> None:
    ran = mine(*arguments, "--store", "sqlite:no/such/store.db")
    assert (ran.code, ran.out) == (DEFINITION, "")
    assert "there is no store sqlite:no/such/store.db; correct the name, or start a run in it first" in ran.err
    assert not Path("no").exists()


@pytest.mark.parametrize("place", ["folder.json", "circle.json", "machines.py/below", "no/such/folder", "x" * 300])
@pytest.mark.parametrize("what", WRITING)
def test_what_cannot_be_written_exits_with_4(mine: Moot, what: str, place: str) -> None:
    ran = mine(*WRITING[what](place))
    assert (ran.code, ran.out) == (DEFINITION, "")
    assert f"{place} cannot be written: " in ran.err


def test_a_full_disk_is_nobodys_mistake_and_exits_with_3(mine: Moot) -> None:
    ran = mine("export", "mine", "--output", "/dev/full")
    assert (ran.code, ran.err) == (PROVIDER, "moot export: /dev/full cannot be written: No space left on device\n")


@pytest.mark.parametrize("name", ["MOOTHALL_AUDIT_KEY", "MOOTHALL_HOME"])
@pytest.mark.parametrize("bad", ["circle.py", "machines.py/below", "x" * 300])
def test_a_place_of_the_settings_that_cannot_be_read_exits_with_4(
    mine: Moot, monkeypatch: pytest.MonkeyPatch, name: str, bad: str
) -> None:
    monkeypatch.setenv(name, bad)
    ran = mine("ls")
    assert (ran.code, ran.out) == (DEFINITION, "")
    assert f"{bad}" in ran.err


def test_settings_behind_a_link_that_leads_nowhere_are_not_passed_over(mine: Moot) -> None:
    Path("home/settings.toml").symlink_to("elsewhere.toml")
    ran = mine("ls")
    assert (ran.code, ran.out) == (DEFINITION, "")
    assert "settings.toml cannot be read: " in ran.err


def test_what_can_be_read_but_does_not_fit_is_refused_by_the_run(mine: Moot) -> None:
    Path("given.json").write_text(json.dumps({"to": 3}))
    assert mine("run", "machines.py:LETTER", "--input-json", "given.json").code == 1


@pytest.mark.parametrize("way", ["resume", "cancel", "replay", "answer", "fork"])
def test_where_the_machine_of_a_run_was_moved_the_way_to_go_on_is_told(moot: Moot, way: str) -> None:
    assert moot("run", "machines.py:SENT", "Ada", "--run-id", "mine").code == 5
    old = Path("machines.py").resolve()
    old.rename("moved.py")
    ran = moot(way, "mine", *(("--yes",) if way == "answer" else ()))
    told = (
        f"there is no file {old}; put it back, or go on with it where it is now:  moot resume mine --machine FILE:NAME"
    )
    assert (ran.code, ran.out, ran.err) == (DEFINITION, "", f"moot {way}: {told}\n")
    assert moot("fork", "mine", "--machine", "moved.py:SENT", "--run-id", "other").code == 5
    assert moot("answer", "other", "--yes").code == 0


def test_where_the_workflow_of_a_run_was_moved_the_run_has_its_definition(mine: Moot) -> None:
    assert mine("run", WORKFLOW, "text", "--model", "rehearsal", "--run-id", "flow").code == 0
    Path(WORKFLOW).rename("moved.json")
    assert mine("replay", "flow").out == "flow: the same again, 5 entries\n"
