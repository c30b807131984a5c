import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.app.settings import VARIABLES
from moothall.cli.main import main
from tests.cli.machines import MACHINES
from tests.cli.ran import Moot, Ran


@pytest.fixture
def _quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder with `machines.py` in it, and no settings; the process's own handlers are put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    for name in (*VARIABLES.values(), "MOOTHALL_SECRETS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "machines.py").write_text(MACHINES)
    kept = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, kept)


@pytest.fixture
def moot(_quiet_place: None, capsys: pytest.CaptureFixture[str]) -> Moot:
    """`moot` in this process: arguments in, exit code and output out."""

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    return run
