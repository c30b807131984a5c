"""A minute with the game studio for the demonstration: a concept goes back once, is approved, and reaches the CEO.

`show(folder, moot)` is called by `demo.py`; on its own this file writes to `demo-output`.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
RUN = "studio-demo"


def show(folder: Path, moot: Callable[..., None]) -> None:
    """Talk with the studio, and write the conversation down."""
    moot(
        *("team", "--plain", "--quiet", "--script", str(HERE / "team_typed.txt"), "--run-id", RUN),
        *("--model", f"scripted:{HERE / 'team.json'}", "--transcript", str(folder / "team.md")),
    )
    print(f"\n  the conversation: {folder.name}/team.md; come back to one of your own: moot team --resume")


def main() -> None:
    folder = Path.cwd() / "demo-output"
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "MOOTHALL_HOME": str(folder / "home-team")}

    def moot(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "moothall", *arguments], env=environment, check=True)

    show(folder, moot)


if __name__ == "__main__":
    main()
