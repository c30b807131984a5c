"""The map in CONTRIBUTING.md leads somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def places() -> list[str]:
    """The files and folders that the map names."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things are")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [name for row in rows for name in re.findall(r"`([a-z_]+/[\w/.]*)`", row)]


def test_every_place_of_the_map_is_there() -> None:
    found = places()
    assert len(found) > 20
    missing = [name for name in found if not (ROOT / "src" / "moothall" / name).exists()]
    assert not missing, f"CONTRIBUTING.md names what is not there: {', '.join(missing)}"
