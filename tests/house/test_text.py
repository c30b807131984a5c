"""What the repository holds is its own: no path of one machine, no address of a registry, nothing huge."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEGABYTE = 1_000_000

# Each pattern is written so that it does not match itself.
UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:root|work)/|(?<![\w.])/(?:home|Users)/\w"),
    "a package index option": re.compile(r"index[-_]url", re.IGNORECASE),
    "an address of a registry": re.compile(
        r"""://[^\s"'<>()]*(?:pypi|pythonhosted|npmjs|yarnpkg|crates\.io|rubygems|golang\.org)""", re.IGNORECASE
    ),
}


def files() -> list[Path]:
    """Everything that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [path for name in sorted(set(listing.stdout.split("\0")) - {""}) if (path := ROOT / name).is_file()]
    assert found, "git lists no file"
    return found


def unwanted(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        yield from ((number, what) for what, pattern in UNWANTED.items() if pattern.search(line))


def test_no_file_names_one_machine_or_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}, line {number}: {what}"
        for path in files()
        for number, what in unwanted(path.read_bytes().decode("utf-8", errors="replace"))
    ]
    assert not found, "\n".join(found)


def test_no_lock_file_that_names_a_registry_is_there() -> None:
    assert not [path for path in files() if path.name == "uv.lock"]


def test_no_file_is_over_a_megabyte() -> None:
    assert not [str(path.relative_to(ROOT)) for path in files() if path.stat().st_size > MEGABYTE]


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (("see /ro", "ot/notes"), "a path of one machine"),
        (("cd /wo", "rk/main"), "a path of one machine"),
        (('"/ho', 'me/ada/x"'), "a path of one machine"),
        (("--extra-index", "-url x"), "a package index option"),
        (("https:/", "/pypi.org/simple"), "an address of a registry"),
        (("https:/", "/files.pythonhosted.org/x"), "an address of a registry"),
        (("https:/", "/registry.npmjs.org/x"), "an address of a registry"),
    ],
)
def test_a_planted_text_is_noticed(parts: tuple[str, str], what: str) -> None:
    assert list(unwanted("".join(parts))) == [(1, what)]


@pytest.mark.parametrize("text", ["https://example.org/work/of/art", "framework/x", "/usr/bin/env", "docs/root/x"])
def test_an_innocent_text_is_left_alone(text: str) -> None:
    assert list(unwanted(text)) == []
