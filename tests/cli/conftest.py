from pathlib import Path

import pytest

from tests.cli.machines import MACHINES
from tests.cli.ran import Moot


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with `machines.py` in it."""
    (tmp_path / "machines.py").write_text(MACHINES)
    return tmp_path


@pytest.fixture
def moot(moot: Moot, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moot:
    """`moot` in this process, in an empty folder with `machines.py` in it, and no settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines.py").write_text(MACHINES)
    return moot


@pytest.fixture
def waiting(moot: Moot) -> Moot:
    """A run `mine` that asks whether to send a letter."""
    assert moot("run", "machines.py:SENT", "Ada", "--run-id", "mine").code == 5
    return moot
