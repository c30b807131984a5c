from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.ran import Moot, in_this_process
from tests.faults.place import SOON, Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder with the machines in it; the processes that a test started there are ended after it."""
    place = Place(tmp_path)
    place.prepare()
    yield place
    for process in place.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SOON)


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Moot]:
    """`moot` in this process, on the store of the place, where what counts is the store and not the process."""
    monkeypatch.chdir(place.folder)
    monkeypatch.setenv("MOOTHALL_HOME", str(place.folder))
    for name in ("MOOTHALL_MODEL", "MOOTHALL_STORE"):
        monkeypatch.delenv(name, raising=False)
    with in_this_process(capsys) as run:
        yield run
