"""A restored workspace equals its save, and the way there loses nothing."""

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from moothall.errors import Refused
from moothall.workspaces.saves import Saves
from tests.workspaces.trees import TREES, Node, build, clear, seen

pytestmark = pytest.mark.anyio
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # an example takes too long to be made smaller
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="modes that close a file to its owner hold for all but root")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


@pytest.fixture
def saves(workspace: Path, tmp_path: Path) -> Saves:
    return Saves(workspace, tmp_path / "state")


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def contents_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def there_and_back(first: Mapping[str, Node], second: Mapping[str, Node]) -> None:
    """Save one tree, make another of it, go back, and back again by the rescue save."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "ws"
        workspace.mkdir()
        saves = Saves(workspace, Path(folder) / "state")
        build(workspace, first)
        before = seen(workspace)
        save = asyncio.run(saves.save("first"))
        assert seen(workspace) == before
        clear(workspace)
        build(workspace, second)
        between = seen(workspace)
        restored = asyncio.run(saves.restore(save.id))
        assert restored.left == ()
        assert seen(workspace) == before
        assert asyncio.run(saves.restore(restored.rescue)).left == ()
        assert seen(workspace) == between
        clear(workspace)


@as_root
@given(first=TREES, second=TREES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
def test_a_restored_workspace_equals_its_save_and_the_rescue_save_has_what_was_there(
    first: Mapping[str, Node], second: Mapping[str, Node]
) -> None:
    there_and_back(first, second)


@as_root
@pytest.mark.soak
@given(first=TREES, second=TREES)
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
def test_a_thousand_restored_workspaces_equal_their_saves(
    first: Mapping[str, Node], second: Mapping[str, Node]
) -> None:
    there_and_back(first, second)


async def test_the_users_branch_index_and_ignored_files_stay_as_they_were(workspace: Path, saves: Saves) -> None:
    git(workspace, "init", "-q")
    (workspace / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (workspace / "a.txt").write_text("one\n")
    (workspace / "forced.log").write_text("tracked all the same\n")
    git(workspace, "add", "-f", ".gitignore", "a.txt", "forced.log")
    git(workspace, "commit", "-qm", "one")
    (workspace / "a.txt").write_text("staged\n")
    git(workspace, "add", "a.txt")
    (workspace / "a.txt").write_text("two\n")
    (workspace / "build").mkdir()
    (workspace / "build" / "out").write_text("built\n")
    (workspace / "run.log").write_text("said\n")
    (workspace / "keep.log").write_text("kept\n")
    repository = contents_below(workspace / ".git")
    save = await saves.save("before")
    for name in ("a.txt", "keep.log", "forced.log"):
        (workspace / name).write_text("spoilt\n")
    (workspace / "build" / "out").write_text("built again\n")
    (workspace / "run.log").write_text("said more\n")
    (workspace / "new.txt").write_text("new\n")
    restored = await saves.restore(save.id)
    assert restored.left == ()
    assert contents_below(workspace / ".git") == repository
    names = ("a.txt", "keep.log", "forced.log", "run.log")
    assert {name: (workspace / name).read_text() for name in names} == {
        "a.txt": "two\n",
        "keep.log": "kept\n",
        "forced.log": "tracked all the same\n",
        "run.log": "said more\n",
    }
    assert (workspace / "build" / "out").read_text() == "built again\n"
    assert not (workspace / "new.txt").exists()


async def test_nothing_of_the_users_git_runs(workspace: Path, saves: Saves, tmp_path: Path) -> None:
    git(workspace, "init", "-q")
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"):
        git(workspace, "config", key, str(evil))
    git(workspace, "config", "core.autocrlf", "true")
    (workspace / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        (workspace / ".git" / "hooks" / hook).symlink_to(evil)
    (workspace / ".gitattributes").write_text("* filter=evil text eol=crlf\n")
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\n")
    save = await saves.save("before")
    (workspace / "a.txt").write_bytes(b"three")
    await saves.diff(save.id)
    await saves.restore(save.id)
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\n"
    assert not (tmp_path / "pwned").exists()


async def test_a_repository_in_a_folder_below_is_saved_with_its_own_git_folder(workspace: Path, saves: Saves) -> None:
    (workspace / "demo").mkdir()
    git(workspace / "demo", "init", "-q")
    (workspace / "demo" / "a").write_text("a")
    git(workspace / "demo", "add", "a")
    git(workspace / "demo", "commit", "-qm", "one")
    save = await saves.save("before")
    git(workspace / "demo", "commit", "-qm", "two", "--allow-empty")
    await saves.restore(save.id)
    assert git(workspace / "demo", "log", "--format=%s") == "one\n"


async def test_what_no_save_can_know_stays_and_is_named(workspace: Path, saves: Saves) -> None:
    (workspace / "place").write_text("a file\n")
    save = await saves.save("before")
    (workspace / "place").unlink()
    os.mkfifo(workspace / "place")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(workspace)  # a path of a socket is a short one
        listener.bind("socket")
        os.chdir(here)
        restored = await saves.restore(save.id)
    assert restored.left == ("place",)
    assert (workspace / "place").is_fifo()
    assert (workspace / "socket").is_socket()
    rescue = next(known for known in await saves.every() if known.id == restored.rescue)
    assert rescue.skipped == dict.fromkeys(("place", "socket"), "neither file, link nor folder")


async def test_an_ignored_file_in_the_place_of_a_saved_one_is_in_the_rescue_save(workspace: Path, saves: Saves) -> None:
    (workspace / "data").write_text("saved\n")
    save = await saves.save("before")
    (workspace / ".gitignore").write_text("data\nother\n")
    (workspace / "data").unlink()
    (workspace / "data").mkdir()
    (workspace / "data" / "deep").write_text("precious\n")
    (workspace / "other").write_text("left alone\n")
    restored = await saves.restore(save.id)
    assert (workspace / "data").read_text() == "saved\n"
    assert (workspace / "other").read_text() == "left alone\n"
    await saves.restore(restored.rescue)
    assert (workspace / "data" / "deep").read_text() == "precious\n"


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "a"])
async def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(workspace: Path, saves: Saves, name: str) -> None:
    os.mkfifo(workspace / name)
    (workspace / "b").write_text("b\n")
    save = await saves.save("before")
    assert (save.files, tuple(save.skipped)) == (1, (name,))


async def test_a_link_in_the_place_of_a_folder_leads_nobody_outside(
    workspace: Path, saves: Saves, tmp_path: Path
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "f").write_text("inside\n")
    save = await saves.save("before")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("outside\n")
    (workspace / "d" / "f").unlink()
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to(outside)
    await saves.restore(save.id)
    assert (outside / "f").read_text() == "outside\n"
    assert not (workspace / "d").is_symlink()
    assert (workspace / "d" / "f").read_text() == "inside\n"


async def test_a_difference_names_what_was_added_removed_and_changed(workspace: Path, saves: Saves) -> None:
    for name in ("a", "b"):
        (workspace / name).write_text("one\n")
    save = await saves.save("before")
    (workspace / "a").write_text("two\n")
    (workspace / "b").unlink()
    (workspace / "c").write_text("three\n")
    difference = await saves.diff(save.id)
    assert (difference.added, difference.removed, difference.changed) == (("c",), ("b",), ("a",))
    assert "-one\n+two" in difference.text


async def test_saves_are_listed_in_their_order_with_their_names(workspace: Path, saves: Saves) -> None:
    (workspace / "a").write_text("one\n")
    first = await saves.save("Workflow: review")
    again = await saves.save("on request")
    assert [(save.id, save.name, save.files) for save in await saves.every()] == [
        (first.id, "Workflow: review", 1),
        (again.id, "on request", 1),
    ]


async def test_a_file_that_changed_without_changing_its_size_is_saved_anew(workspace: Path, saves: Saves) -> None:
    (workspace / "a").write_text("one\n")
    await saves.save("first")
    (workspace / "a").write_text("two\n")
    second = await saves.save("second")
    (workspace / "a").write_text("six\n")
    await saves.restore(second.id)
    assert (workspace / "a").read_text() == "two\n"


async def test_a_copy_is_a_workspace_of_its_own(workspace: Path, saves: Saves, tmp_path: Path) -> None:
    git(workspace, "init", "-q")
    (workspace / "a").write_text("one\n")
    save = await saves.save("before")
    (workspace / "a").write_text("two\n")
    await saves.copy(tmp_path / "now")
    await saves.copy(tmp_path / "then", save.id)
    assert (tmp_path / "now" / "a").read_text() == "two\n"
    assert (tmp_path / "then" / "a").read_text() == "one\n"
    assert (tmp_path / "then" / ".git" / "HEAD").exists()
    (tmp_path / "then" / "a").write_text("three\n")
    assert (workspace / "a").read_text() == "two\n"


@pytest.mark.parametrize("save", ["9", "nine", "../x", "", "1^{tree}"])
async def test_a_save_that_is_not_there_is_refused(workspace: Path, saves: Saves, save: str) -> None:
    (workspace / "a").write_text("one\n")
    with pytest.raises(Refused, match="save"):
        await saves.restore(save)
    assert (workspace / "a").read_text() == "one\n"


async def test_saves_inside_the_workspace_are_refused(workspace: Path) -> None:
    with pytest.raises(Refused, match="outside"):
        Saves(workspace, workspace / "state")


async def test_a_copy_does_not_overwrite_what_is_there(workspace: Path, saves: Saves, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("mine\n")
    with pytest.raises(Refused, match="not empty"):
        await saves.copy(tmp_path / "full")
    with pytest.raises(Refused, match="inside the workspace"):
        await saves.copy(workspace / "below")
