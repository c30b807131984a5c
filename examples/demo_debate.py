"""A short debate for the demonstration: a recorded panel, its report and its picture.

`show(folder, moot)` is called by `demo.py`; on its own this file writes to `demo-output`.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PROBLEM = "Where should the till of a small shop keep its sales?"
RUN = "till-demo"


def show(folder: Path, moot: Callable[..., None]) -> None:
    """Debate, and write the report as a page, with the picture of the machine, and the solution as a document."""
    moot(
        *("debate", PROBLEM, "--options", "SQLite,PostgreSQL,Redis", "--run-id", RUN),
        *("--model", f"scripted:{HERE / 'debate.json'}"),
        *("-o", str(folder / "debate.md"), "--report", str(folder / "debate.html")),
    )
    print(f"\n  how the answer came about, with its picture: {folder.name}/debate.html; as a document: {folder.name}/debate.md")


def main() -> None:
    folder = Path.cwd() / "demo-output"
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "MOOTHALL_HOME": str(folder / "home-debate")}

    def moot(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "moothall", *arguments], env=environment, check=True)

    show(folder, moot)


if __name__ == "__main__":
    main()
