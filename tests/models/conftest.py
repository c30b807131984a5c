from pathlib import Path

import pytest

SET = (
    *("MOOTHALL_LEVEL_BASE", "MOOTHALL_LEVEL_SMART", "MOOTHALL_LEVEL_FAST"),
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    *("GOOGLE_API_KEY", "GEMINI_API_KEY"),
)


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here touches the user's own runs, settings or keys."""
    for name in SET:
        monkeypatch.delenv(name, raising=False)
