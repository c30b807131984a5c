from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here touches the user's own runs or settings."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MOOTHALL_MODEL", raising=False)
    monkeypatch.delenv("MOOTHALL_STORE", raising=False)
