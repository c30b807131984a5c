"""Commands that try to get out through `moot sandbox` do not, and commands that have a right to work do."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.sandboxes.hostile import BWRAP, SHARED, Case, cases, played

OWN = Path(__file__).with_name("escapes.json")
ESCAPES = cases(SHARED / "sandbox.json")
CONTROLS = cases(SHARED / "sandbox_controls.json")
MORE = cases(OWN)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed"),
    pytest.mark.unreplayed("commands are run, and no runs"),
]
shared_only = pytest.mark.skipif(not ESCAPES, reason="the shared cases are not here")


SLOW = {"memory", "memory-by-many"}


def table(found: Iterable[Case], expect: str) -> list[ParameterSet]:
    """The cases as parameters; what fills gigabytes is left to the long tests."""
    return [
        pytest.param(case, id=case["id"], marks=[pytest.mark.soak] if case["id"] in SLOW else [])
        for case in found
        if case["expect"] == expect
    ]


@shared_only
@pytest.mark.parametrize("case", table(ESCAPES, "contained"))
def test_a_shared_escape_is_contained(case: Case, tmp_path: Path) -> None:
    assert played(case, tmp_path) == []


@shared_only
@pytest.mark.parametrize("case", table(CONTROLS, "works"))
def test_a_shared_control_works(case: Case, tmp_path: Path) -> None:
    assert played(case, tmp_path) == []


@pytest.mark.parametrize("case", table(MORE, "contained"))
def test_another_escape_is_contained(case: Case, tmp_path: Path) -> None:
    assert played(case, tmp_path) == []


@pytest.mark.parametrize("case", table(MORE, "works"))
def test_another_control_works(case: Case, tmp_path: Path) -> None:
    assert played(case, tmp_path) == []


def test_the_runner_notices_an_escape(tmp_path: Path) -> None:
    """A door that is open: what the runner watches does not hold."""
    case = {
        "id": "open",
        "setup": [],
        "command": "echo x > made",
        "expect": "contained",
        "watch": [{"kind": "file_absent", "path": "@WS@/made"}],
    }
    [complaint] = played(case, tmp_path)
    assert "file_absent" in complaint


def test_there_are_at_least_25_escapes_of_other_kinds(figure: list[str]) -> None:
    own = [case for case in MORE if case["expect"] == "contained"]
    assert len({case["id"] for case in own}) == len(own) >= 25
    figure.append(f"escapes: {len(ESCAPES)} shared and {len(own)} more; controls: {len(CONTROLS)} shared")
