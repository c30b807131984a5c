"""Looking at runs loads no code that a store names: the store may be somebody else's."""

from pathlib import Path

import pytest

from tests.cli.process import moot

CODE = """
from dataclasses import dataclass
from pathlib import Path
from moothall import Final, Machine, On, Replied, State, ask
Path("{mark}").touch()

@dataclass(frozen=True)
class Note:
    about: str = ""

async def writer(prompt: str) -> str:
    return "The sea rises."

NOTE = Machine("note", data=Note, states=[State("writing", enter=ask(writer, "Write")), Final("written")],
    moves=[On("writing", Replied, to="written")])
"""
WAYS = [
    ("metrics", "mine"),
    ("metrics",),
    ("costs", "mine"),
    ("costs",),
    *(("report", "mine", "--format", form) for form in ("html", "md", "csv", "json")),
    ("replay", "mine"),
    ("show", "mine"),
    ("ls",),
    ("export", "mine"),
    ("audit",),
    ("doctor",),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run is over whose machine leaves a mark whenever its file is loaded."""
    place = tmp_path_factory.mktemp("theirs")
    (place / "theirs.py").write_text(CODE.format(mark=place / "loaded"))
    ran = moot("run", str(place / "theirs.py"), "--run-id", "mine", home=place)
    assert "run " in ran.stderr
    assert (place / "loaded").exists()
    return place


@pytest.fixture
def mark(place: Path) -> Path:
    """The mark, which is not there yet."""
    mark = place / "loaded"
    mark.unlink(missing_ok=True)
    return mark


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_looking_loads_no_code(mark: Path, place: Path, way: tuple[str, ...]) -> None:
    ran = moot(*way, home=place)
    assert not mark.exists()
    assert "Traceback" not in ran.stderr
    if way[0] in ("metrics", "costs") and way[1:]:
        assert "not loaded unless you name it" in ran.stderr
        assert ran.returncode == 0


def test_a_replay_says_what_it_needs_and_takes_it(place: Path) -> None:
    refused = moot("replay", "mine", home=place)
    assert refused.returncode == 4
    assert f"--machine {place / 'theirs.py'}" in refused.stderr
    taken = moot("replay", "mine", "--machine", str(place / "theirs.py"), home=place)
    assert (taken.returncode, taken.stdout) == (0, "mine: the same again, 2 entries\n")


def test_figures_are_whole_with_the_machine_that_is_named(place: Path) -> None:
    ran = moot("costs", "mine", "--machine", str(place / "theirs.py"), home=place)
    assert ran.returncode == 0
    assert "not loaded unless you name it" not in ran.stderr
