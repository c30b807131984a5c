from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _home(home: Path) -> None:
    """Nothing here touches the user's own runs or settings."""
