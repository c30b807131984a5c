"""The sandbox for a user who is not root: `moot sandbox`, started as nobody, holds and limits as it does for root."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pytest

import moothall

SECONDS = 60
SOURCE = str(Path(moothall.__file__).parents[1])
PACKAGES = str(Path(orjson.__file__).parents[1])


@lru_cache(maxsize=1)
def nobody() -> tuple[int, str]:
    """Another user, and a Python that this user may start; a skip where there is neither."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if os.geteuid() != 0:
        return os.geteuid(), sys.executable
    try:
        user = pwd.getpwnam("nobody").pw_uid
    except KeyError:
        pytest.skip("there is no user nobody to be")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            ran = _as(user, [python, "-c", "import moothall.cli.sandbox"], Path("/"))
        except OSError:
            continue
        if ran.returncode == 0:
            return user, python
    pytest.skip(f"nobody may not start Moothall here: no {version} that every user can read")


def _as(user: int, command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "MOOTHALL_HOME": str(folder / "home"),
        "PYTHONPATH": f"{SOURCE}:{PACKAGES}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    other = user if user != os.geteuid() else None
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        user=other,
        group=other,
        extra_groups=None if other is None else [],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of that user, with a workspace, below folders that everybody may pass."""
    user, _ = nobody()
    folder = tmp_path_factory.mktemp("other")
    for above in (folder.parent, folder.parent.parent):
        above.chmod(0o711)
    for name in (folder, folder / "ws", folder / "home"):
        name.mkdir(exist_ok=True)
        os.chown(name, user, -1)
    return folder


def run(place: Path, command: str, *options: str) -> Any:
    user, python = nobody()
    words = [python, "-m", "moothall", "sandbox", "--workspace", str(place / "ws"), "--json", *options]
    ran = _as(user, [*words, "--", "sh", "-c", command], place)
    if "--sandbox none" in ran.stderr:
        pytest.skip(f"the sandbox does not work for another user here: {ran.stderr.strip()}")
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_a_command_works_in_the_workspace_and_nowhere_else(place: Path) -> None:
    (place / "secret").write_text("secret")
    said = run(
        place, f"echo hi > made; cat {place}/secret; echo x > {place}/escaped; ls /run /sys 2>&1; ls /proc/net; id -u"
    )
    assert (said["level"], said["killed"]) == ("bubblewrap", False)
    assert (place / "ws" / "made").stat().st_uid == nobody()[0]
    assert "secret" not in said["stdout"]
    assert not (place / "escaped").exists()


@pytest.mark.slow
def test_there_is_no_network(place: Path) -> None:
    said = run(place, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '")
    assert said["stdout"].split() == ["lo"]


@pytest.mark.slow
def test_processes_are_counted_and_none_outlives_its_time(place: Path) -> None:
    many = "i=0; while [ $i -lt 3000 ]; do sleep 987654 & i=$((i+1)); done; wait"
    said = run(place, many, "--timeout", "20")
    assert said["exit_code"] != 0
    assert "fork" in said["stderr"].lower()
    assert _sleeping() == 0


def _sleeping() -> int:
    """How many of those processes there are."""
    lines = (entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return sum(_reads(line) == b"sleep\x00987654\x00" for line in lines)


def _reads(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
