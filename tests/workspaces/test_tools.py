"""The built-in tools do their work in the workspace, and nowhere else."""

import os
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.workspace import Execution, SandboxUnavailable
from moothall.errors import EffectFailed, Refused
from moothall.workspaces import files
from moothall.workspaces.tools import LINES, SHOWN, WorkspaceTool, workspace_tools

pytestmark = pytest.mark.anyio


class Stub:
    """A sandbox that says what it was asked to run."""

    level = "stub"

    async def run(self, command: Any, *, workspace: Path, within: float | None = None) -> Execution:
        if command[-1] == "refuse":
            raise Refused("the workspace cannot be protected")
        return Execution(128 * ("--cached" in command), repr(command), "no repository\n", 0.5, self.level)


@pytest.fixture(params=["openat2", "steps"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, with the kernel's own way to open files below it and with the one for older kernels."""
    if request.param == "steps":
        monkeypatch.setattr(files, "_system_call", lambda: None)
    place = tmp_path / "ws"
    place.mkdir()
    (tmp_path / "secret").write_text("secret\n")
    return place


@pytest.fixture
def tools(root: Path) -> Mapping[str, WorkspaceTool]:
    return workspace_tools(root, Stub())


def names_below(root: Path) -> list[str]:
    return sorted(str(entry) for entry in root.rglob("*"))


async def call(tools: Mapping[str, WorkspaceTool], name: str, /, **arguments: Any) -> Any:
    return await tools[name].function(**arguments)


async def failure(tools: Mapping[str, WorkspaceTool], name: str, /, **arguments: Any) -> str:
    with pytest.raises(EffectFailed) as caught:
        await call(tools, name, **arguments)
    assert caught.value.final
    return str(caught.value)


async def test_there_are_eight_tools_each_with_a_schema_a_kind_and_a_policy(
    tools: Mapping[str, WorkspaceTool],
) -> None:
    assert {name: (tool.repeats, tool.policy) for name, tool in tools.items()} == {
        "read_file": ("pure", "allow"),
        "write_file": ("idempotent", "allow"),
        "edit_file": ("check-first", "allow"),
        "list_directory": ("pure", "allow"),
        "search_files": ("pure", "allow"),
        "execute_terminal": ("at-most-once", "ask"),
        "git_status": ("pure", "allow"),
        "git_diff": ("pure", "allow"),
    }
    for tool in tools.values():
        assert tool.offer.description
        assert tool.offer.schema["additionalProperties"] is False
        assert tool.tool.function is tool.function
    assert tools["edit_file"].offer.schema["required"] == ["path", "old", "new"]
    assert tools["edit_file"].offer.schema["properties"]["every"] == {"type": "boolean"}


async def test_a_file_is_written_read_edited_and_found(root: Path, tools: Mapping[str, WorkspaceTool]) -> None:
    assert await call(tools, "write_file", path="a/b/c.txt", content="one\ntwö\n") == "a/b/c.txt was written: 9 bytes"
    assert await call(tools, "read_file", path="./a//b/c.txt") == "one\ntwö\n"
    assert await call(tools, "edit_file", path="a/b/c.txt", old="twö", new="three") == "a/b/c.txt was edited in 1 place"
    assert (root / "a" / "b" / "c.txt").read_text() == "one\nthree\n"
    assert await call(tools, "search_files", text="thr") == "a/b/c.txt:2: three"
    assert await call(tools, "search_files", text="thr", name="*.py") == "'thr' was not found"
    assert await call(tools, "list_directory") == "a/"
    assert await call(tools, "list_directory", path="a/b") == "c.txt  10 bytes"


WAYS_OUT = ["/etc/passwd", "../secret", "a/../../secret", "link", "links/secret", "deep/out/secret", "loop", "self"]


@pytest.mark.parametrize("path", WAYS_OUT)
async def test_no_path_leads_out(root: Path, tools: Mapping[str, WorkspaceTool], path: str) -> None:
    (root / "a").mkdir()
    (root / "link").symlink_to("../secret")
    (root / "links").symlink_to(root.parent)
    (root / "deep").mkdir()
    (root / "deep" / "out").symlink_to("../..")
    (root / "loop").symlink_to("loop")
    (root / "self").symlink_to("/proc/self/root/etc/passwd")
    said = await failure(tools, "read_file", path=path)
    assert "leads out" in said or "symbolic link" in said or "is not a folder" in said
    before = {file: file.read_text() for file in (root.parent / "secret", Path("/etc/passwd"))}
    for name, more in (
        ("write_file", {"content": "evil"}),
        ("edit_file", {"old": "secret", "new": "evil"}),
        ("list_directory", {}),
        ("search_files", {"text": "secret"}),
    ):
        await failure(tools, name, path=path, **more)
    assert {file: file.read_text() for file in before} == before
    assert sorted(entry.name for entry in root.parent.iterdir()) == ["secret", "ws"]


async def test_a_link_that_is_swapped_all_the_time_never_lets_a_secret_out(
    root: Path, tools: Mapping[str, WorkspaceTool]
) -> None:
    (root / "inside").mkdir()
    (root / "inside" / "secret").write_text("harmless\n")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for target in ("inside", ".."):
                (root / "fresh").symlink_to(target)
                os.rename(root / "fresh", root / "way")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(300):
            try:
                seen.add(await call(tools, "read_file", path="way/secret"))
                await call(tools, "write_file", path="way/pwned", content="x")
            except EffectFailed:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {"harmless\n"}
    assert not (root.parent / "pwned").exists()


@pytest.mark.parametrize(
    "path", [".git/config", ".git", "moothall.toml", "way/config", ".GIT/hooks/x", "HEAD", "sub/../moothall.toml"]
)
async def test_what_git_and_moothall_read_is_not_written(
    root: Path, tools: Mapping[str, WorkspaceTool], path: str
) -> None:
    (root / "sub").mkdir()
    if path.startswith("way"):
        (root / ".git").mkdir()
        (root / "way").symlink_to(".git")
    before = names_below(root)
    await failure(tools, "write_file", path=path, content="evil")
    assert names_below(root) == before


async def test_a_file_with_another_name_outside_is_replaced_not_written_into(
    root: Path, tools: Mapping[str, WorkspaceTool]
) -> None:
    os.link(root.parent / "secret", root / "mine")
    (root / "mine").chmod(0o640)
    await call(tools, "write_file", path="mine", content="new\n")
    assert (root.parent / "secret").read_text() == "secret\n"
    assert (root / "mine").stat().st_mode & 0o777 == 0o640


async def test_what_is_not_a_text_file_is_named_for_what_it_is(root: Path, tools: Mapping[str, WorkspaceTool]) -> None:
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"ab\0cd")
    (root / "latin").write_bytes("größe".encode("latin-1"))
    (root / "folder").mkdir()
    (root / "huge").touch()
    os.truncate(root / "huge", 2**31)
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root)
        listener.bind("socket")
        os.chdir(here)
    assert await failure(tools, "read_file", path="pipe") == "pipe is a named pipe, not a file"
    assert await failure(tools, "read_file", path="socket") == "socket is a socket, not a file"
    assert await failure(tools, "read_file", path="folder") == "folder is a folder, not a file"
    assert await failure(tools, "read_file", path="binary") == "binary is a binary file of 5 bytes"
    assert "not UTF-8" in await failure(tools, "read_file", path="latin")
    assert "more than" in await failure(tools, "read_file", path="huge")
    assert await failure(tools, "read_file", path="nowhere") == "nowhere does not exist"
    assert "is a named pipe" in await failure(tools, "write_file", path="pipe", content="x")
    assert "is a folder" in await failure(tools, "write_file", path="folder", content="x")
    assert await call(tools, "search_files", text="cd") == "'cd' was not found"
    assert "pipe  a named pipe" in (await call(tools, "list_directory")).splitlines()


async def test_a_long_file_is_read_in_pieces(root: Path, tools: Mapping[str, WorkspaceTool]) -> None:
    (root / "long").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    first = await call(tools, "read_file", path="long")
    assert first.splitlines()[-2:] == [str(LINES), f"[… 3000 lines more; read on with offset={LINES + 1}]"]
    last = await call(tools, "read_file", path="long", offset=4999)
    assert last == "4999\n5000\n"
    assert (
        await call(tools, "read_file", path="long", offset=2, limit=1)
        == "2\n[… 4998 lines more; read on with offset=3]\n"
    )
    assert "5000 lines" in await failure(tools, "read_file", path="long", offset=5001)
    (root / "wide").write_text("x" * (SHOWN * 3))
    assert len(await call(tools, "read_file", path="wide")) < SHOWN + 100
    (root / "empty").write_text("")
    assert await call(tools, "read_file", path="empty") == ""


async def test_an_edit_needs_one_place(root: Path, tools: Mapping[str, WorkspaceTool]) -> None:
    (root / "a").write_text("x x\n")
    assert "2 times" in await failure(tools, "edit_file", path="a", old="x", new="y")
    assert "does not hold" in await failure(tools, "edit_file", path="a", old="z", new="y")
    assert "does not hold" in await failure(tools, "edit_file", path="a", old="", new="y")
    assert (root / "a").read_text() == "x x\n"
    assert await call(tools, "edit_file", path="a", old="x", new="y", every=True) == "a was edited in 2 places"
    assert (root / "a").read_text() == "y y\n"


@pytest.mark.parametrize(("text", "old", "new"), [("one\n", "one", "two"), ("a\n", "a", "ab"), ("a b\n", " b", "")])
async def test_an_edit_that_was_lost_is_recognised(
    root: Path, tools: Mapping[str, WorkspaceTool], text: str, old: str, new: str
) -> None:
    (root / "a").write_text(text)
    check = tools["edit_file"].check
    assert check is not None
    assert await check(path="a", old=old, new=new) is None
    said = await call(tools, "edit_file", path="a", old=old, new=new)
    assert await check(path="a", old=old, new=new) == said


async def test_a_command_goes_to_the_sandbox_and_its_result_is_shortened(tools: Mapping[str, WorkspaceTool]) -> None:
    result = await call(tools, "execute_terminal", command="ls " + "x" * 2 * SHOWN)
    assert {key: result[key] for key in ("exit_code", "level", "killed", "duration")} == {
        "exit_code": 0,
        "level": "stub",
        "killed": False,
        "duration": 0.5,
    }
    assert len(result["stdout"]) < SHOWN + 100
    assert "characters left out" in result["stdout"]
    assert "above 0" in await failure(tools, "execute_terminal", command="ls", timeout=0)
    assert "null" in await failure(tools, "execute_terminal", command="l\0s")


async def test_that_there_is_no_sandbox_is_not_an_error_of_the_tool(tools: Mapping[str, WorkspaceTool]) -> None:
    with pytest.raises(SandboxUnavailable):
        await call(tools, "execute_terminal", command="refuse")


@pytest.mark.parametrize("place", [".gitignore", "deep/below/.gitattributes"])
async def test_git_is_not_asked_where_it_would_wait_for_a_pipe(
    root: Path, tools: Mapping[str, WorkspaceTool], place: str
) -> None:
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(root / place)
    for name in ("git_status", "git_diff"):
        assert f"{place} is not a file, and git would wait for it" in await failure(tools, name)
    (root / place).unlink()
    (root / place).symlink_to("nowhere")
    assert "--porcelain=v1" in await call(tools, "git_status")


async def test_git_is_asked_in_the_sandbox_without_monitor_filter_or_pager(tools: Mapping[str, WorkspaceTool]) -> None:
    said = await call(tools, "git_diff", path="a b")
    assert "core.fsmonitor=false" in said
    assert said.endswith("'--', 'a b')")
    assert "git diff failed: no repository" in await failure(tools, "git_diff", staged=True)
    assert "--porcelain=v1" in await call(tools, "git_status")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "", "/", ".", "..", "\ud800"])
async def test_a_path_that_names_no_file_is_refused(tools: Mapping[str, WorkspaceTool], path: str) -> None:
    await failure(tools, "read_file", path=path)
    await failure(tools, "write_file", path=path, content="x")
