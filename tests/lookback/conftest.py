import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.ran import Moot, in_this_process

SETTINGS = ("MODEL", "STORE", "DURABILITY", "ON_WAIT", "ANCHORS", "AUDIT_KEY")


def settle(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in this folder, with the machines in it and no settings."""
    patch.chdir(folder)
    patch.setenv("MOOTHALL_HOME", str(folder))
    patch.setenv("MOOTHALL_DURABILITY", "normal")
    for name in SETTINGS:
        if name != "DURABILITY":
            patch.delenv(f"MOOTHALL_{name}", raising=False)
    shutil.copy(Path(__file__).with_name("works.py"), folder)


@pytest.fixture
def moot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Moot]:
    """`moot` in this process, in a folder of its own: arguments in, exit code and output out."""
    settle(tmp_path, monkeypatch)
    with in_this_process(capsys) as run:
        yield run
