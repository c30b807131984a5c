from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here touches the user's own runs or settings."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    for name in ("MOOTHALL_MODEL", "MOOTHALL_STORE", "MOOTHALL_DURABILITY", "MOOTHALL_ON_WAIT", "MOOTHALL_SECRETS"):
        monkeypatch.delenv(name, raising=False)
