from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.ran import Moot
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
def here(moot: Moot, place: Place, monkeypatch: pytest.MonkeyPatch) -> Moot:
    """`moot` in this process, on the store of the place, where what counts is the store and not the process."""
    monkeypatch.chdir(place.folder)
    monkeypatch.setenv("MOOTHALL_HOME", str(place.folder))
    for name in ("MOOTHALL_MODEL", "MOOTHALL_STORE"):
        monkeypatch.delenv(name, raising=False)
    return moot
