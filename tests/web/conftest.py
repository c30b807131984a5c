from pathlib import Path

import pytest

from moothall.app.config.settings import VARIABLES


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing here touches the user's own runs or settings."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    for name in (*VARIABLES.values(), "MOOTHALL_SECRETS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"
