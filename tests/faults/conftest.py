from collections.abc import Iterator
from pathlib import Path

import pytest

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
def figure(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What a test counted, shown after it whatever pytest does with output."""
    said: list[str] = []
    yield said
    with capsys.disabled():
        for line in said:
            print(f"\n  {line}", end="")
