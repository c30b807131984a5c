from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.app.config.settings import VARIABLES
from tests.cli.machines import MACHINES
from tests.cli.ran import Moot, in_this_process


@pytest.fixture
def moot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Moot]:
    """`moot` in this process, in an empty folder with `machines.py` in it, and no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    for name in (*VARIABLES.values(), "MOOTHALL_SECRETS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "machines.py").write_text(MACHINES)
    with in_this_process(capsys) as run:
        yield run
