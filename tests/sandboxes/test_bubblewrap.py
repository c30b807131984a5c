"""The sandbox itself: it works, or says why not; it leaves nothing behind, whatever happens to whoever started it."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moothall.agents.workspace import SandboxUnavailable
from moothall.errors import DefinitionError, Refused
from moothall.sandboxes import bubblewrap
from moothall.sandboxes.bubblewrap import Bubblewrap
from moothall.sandboxes.limits import MEGABYTE, Limits
from tests.sandboxes.hostile import BWRAP, MOOT, processes_with

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


async def wait_until_gone(mark: str) -> None:
    async with asyncio.timeout(20):
        while processes_with(mark):  # noqa: ASYNC110 (processes of others tell nobody when they end)
            await asyncio.sleep(0.02)


async def wait_for(path: Path) -> None:
    async with asyncio.timeout(30):
        while not os.path.lexists(path):  # noqa: ASYNC110, ASYNC240 (a file tells nobody when it is made)
            await asyncio.sleep(0.02)


async def test_a_command_runs_and_its_result_says_what_protected_it(workspace: Path) -> None:
    execution = await Bubblewrap().run(["sh", "-c", "echo out; echo err >&2; exit 3"], workspace=workspace)
    assert (execution.exit_code, execution.stdout, execution.stderr) == (3, "out\n", "err\n")
    assert (execution.level, execution.killed) == ("bubblewrap", False)
    assert os.listdir(workspace) == []


async def test_a_machine_without_bubblewrap_is_told_what_to_install(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", "/nowhere")
    with pytest.raises(SandboxUnavailable, match=r"install the package bubblewrap.*--sandbox none"):
        await Bubblewrap().probe(workspace)


@pytest.mark.parametrize(
    "said",
    [
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
        "bwrap: setting up uid map: Permission denied",
        "bwrap: Creating new namespace failed: Operation not permitted",
    ],
)
async def test_a_machine_that_forbids_namespaces_is_told_the_remedy(workspace: Path, tmp_path: Path, said: str) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SandboxUnavailable) as caught:
        await Bubblewrap(program=str(broken)).run(["true"], workspace=workspace)
    assert said in str(caught.value)
    assert "user namespaces" in str(caught.value)
    assert isinstance(caught.value, DefinitionError)
    assert os.listdir(workspace) == []


async def test_a_sandbox_that_cannot_be_limited_runs_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(bubblewrap, "limit_process", refuse)
    with pytest.raises(SandboxUnavailable, match="under limits"):
        await Bubblewrap().run(["touch", "ran"], workspace=workspace)
    assert os.listdir(workspace) == []


async def test_a_command_that_is_too_long_is_refused(workspace: Path) -> None:
    with pytest.raises(Refused, match="too long"):
        await Bubblewrap().run(["true", *["x" * 100_000] * 40], workspace=workspace)
    assert os.listdir(workspace) == []


async def test_a_child_that_writes_on_is_gone_before_the_result_is_there(workspace: Path) -> None:
    mark = f"mark{secrets.token_hex(8)}"
    child = f"setsid sh -c 'while :; do echo {mark} >> late; done' > /dev/null 2>&1 &"
    execution = await Bubblewrap().run(["sh", "-c", f"{child} until [ -s late ]; do :; done"], workspace=workspace)
    left = (workspace / "late").stat().st_size
    assert processes_with(mark) == []
    assert (execution.exit_code, execution.killed) == (0, False)
    assert (workspace / "late").stat().st_size == left > 0


async def test_a_cancelled_command_is_gone_with_all_that_it_started(workspace: Path) -> None:
    mark = f"mark{secrets.token_hex(8)}"
    command = f"setsid sleep 600 & sh -c 'touch begun; sleep 600; : {mark}'"
    running = asyncio.create_task(Bubblewrap().run(["sh", "-c", command, mark], workspace=workspace))
    await wait_for(workspace / "begun")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert processes_with(mark) == []
    assert os.listdir(workspace) == ["begun"]


async def test_a_command_dies_with_whoever_started_it(workspace: Path) -> None:
    mark = f"mark{secrets.token_hex(8)}"
    command = [str(MOOT), "sandbox", "--", "sh", "-c", f"touch begun; trap '' TERM HUP; sleep 600; : {mark}"]
    door = await asyncio.create_subprocess_exec(*command, cwd=workspace)
    await wait_for(workspace / "begun")
    door.send_signal(signal.SIGKILL)
    await door.wait()
    await wait_until_gone(mark)
    left = {name: (workspace / name).is_dir() for name in os.listdir(workspace) if name != "begun"}
    assert all(left.values()), "a placeholder that is a file could be read"
    git = await asyncio.create_subprocess_exec("git", "rev-parse", "--git-dir", cwd=workspace, stderr=subprocess.PIPE)
    await git.communicate()
    assert git.returncode, "git takes the placeholder for a repository"
    await Bubblewrap().run(["true"], workspace=workspace)
    assert os.listdir(workspace) == ["begun"]


async def test_the_end_of_one_command_does_not_open_the_workspace_to_another(workspace: Path) -> None:
    plant = "touch first; while ! [ -e second ]; do sleep 0.05; done; mkdir .git moothall.toml; echo x > .git/config"
    long = asyncio.create_task(Bubblewrap().run(["sh", "-c", plant], workspace=workspace))
    await wait_for(workspace / "first")
    await Bubblewrap().run(["true"], workspace=workspace)
    (workspace / "second").touch()
    execution = await long
    assert "Read-only" in execution.stderr
    assert sorted(os.listdir(workspace)) == ["first", "second"]


async def test_ten_commands_at_once_in_one_workspace_leave_nothing(workspace: Path) -> None:
    commands = (["sh", "-c", f"echo {n} > f{n}; mkdir .git && echo planted"] for n in range(10))
    done = await asyncio.gather(*(Bubblewrap().run(command, workspace=workspace) for command in commands))
    assert [execution.stdout for execution in done] == [""] * 10
    assert sorted(os.listdir(workspace)) == [f"f{n}" for n in range(10)]


LIMITS: list[tuple[str, Limits, str]] = [
    ("time", Limits(wall=0.5), "sleep 60"),
    ("processor time", Limits(cpu=1), "while :; do :; done"),
    ("a file", Limits(file=MEGABYTE), "head -c 3000000 /dev/zero > big"),
    ("output", Limits(output=MEGABYTE, kept=1000), "yes"),
    ("memory", Limits(memory=64 * MEGABYTE), "head -c 300000000 /dev/zero | tail -c 200000000 | wc -c; exit 137"),
]


@pytest.mark.parametrize(("limits", "command"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS])
async def test_a_limit_ends_a_command_and_is_said(workspace: Path, limits: Limits, command: str) -> None:
    if limits.memory and os.geteuid() != 0:
        pytest.skip("without control groups a process is refused memory, and none is ended")
    execution = await Bubblewrap(limits).run(["sh", "-c", command], workspace=workspace)
    assert execution.killed
    assert execution.exit_code > 128
    assert len(execution.stdout) <= limits.kept + 100


async def test_long_output_is_cut_and_the_rest_counted(workspace: Path) -> None:
    execution = await Bubblewrap(Limits(kept=10)).run(["sh", "-c", "printf 123456789012345"], workspace=workspace)
    assert execution.stdout == "1234567890\n[… 5 bytes more]\n"
    assert not execution.killed


@pytest.mark.parametrize("place", ["/", "/usr", "/tmp", "/proc/self", "/dev", "/etc/passwd", "/nowhere", "/var"])
async def test_a_place_that_cannot_be_a_workspace_is_refused(place: str) -> None:
    with pytest.raises(Refused, match="workspace"):
        await Bubblewrap().run(["true"], workspace=Path(place))


async def test_a_workspace_with_the_state_directory_inside_is_refused(workspace: Path) -> None:
    hidden = workspace / "state"
    with pytest.raises(Refused, match="no command may see"):
        await Bubblewrap(hidden=(hidden,)).run(["true"], workspace=workspace)


async def test_a_folder_can_be_made_readable_but_not_writable(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "lent").mkdir()
    (tmp_path / "lent" / "a").write_text("lent\n")
    sandbox = Bubblewrap(readable=(tmp_path / "lent",))
    execution = await sandbox.run(["sh", "-c", "cat ../lent/a; echo x > ../lent/b"], workspace=workspace)
    assert execution.stdout == "lent\n"
    assert not (tmp_path / "lent" / "b").exists()


async def test_no_descriptor_is_left_open(workspace: Path) -> None:
    await Bubblewrap().run(["true"], workspace=workspace)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await Bubblewrap().run(["true"], workspace=workspace)
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_no_control_group_is_left(workspace: Path) -> None:
    await Bubblewrap(Limits(wall=0.3)).run(["sleep", "60"], workspace=workspace)
    left = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if f"/moothall-{os.getpid()}-" in folder]
    assert left == []


def test_modules_of_the_workspace_are_not_loaded_by_the_sandbox(workspace: Path) -> None:
    (workspace / "json.py").write_text("raise SystemExit(99)\n")
    done = subprocess.run(
        [sys.executable, str(MOOT), "sandbox", "--", "true"], cwd=workspace, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


async def test_a_workspace_with_more_sockets_than_can_be_covered_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "MOST_SOCKETS", 1)
    monkeypatch.chdir(workspace)
    for name in ("a", "b"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    with pytest.raises(Refused, match="holds 2 sockets, more than can be kept from commands; remove them"):
        await Bubblewrap().run(["true"], workspace=workspace)
