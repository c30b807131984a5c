import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.cli.main import main
from tests.cli.ran import Moot, Ran

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
    kept = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    yield run
    signal.signal(signal.SIGTERM, kept)


@pytest.fixture
def figure(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What a test counted, shown after it whatever pytest does with output."""
    said: list[str] = []
    yield said
    with capsys.disabled():
        for line in said:
            print(f"\n  {line}", end="")
