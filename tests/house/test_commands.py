"""Every command of `moot` explains itself and has a place in the reference."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Protocol

MOOT = Path(sys.executable).with_name("moot")
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


class Command(Protocol):
    help: str


def commands() -> Mapping[str, Command]:
    found: Mapping[str, Command] = import_module("moothall.cli.main").COMMANDS
    assert found, "moot has no commands"
    return found


def help_of(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MOOT, name, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100"},
    )


def description(help_text: str) -> str:
    """The paragraph between the usage and the first list of arguments, or nothing."""
    paragraphs = [paragraph.strip() for paragraph in help_text.split("\n\n")]
    return paragraphs[1] if len(paragraphs) > 1 and not paragraphs[1].splitlines()[0].endswith(":") else ""


def test_every_command_has_a_line_of_help() -> None:
    assert not [name for name, command in commands().items() if not command.help.strip()]


def test_every_command_prints_a_description_when_asked_for_help() -> None:
    names = list(commands())
    with ThreadPoolExecutor() as pool:
        answers = dict(zip(names, pool.map(help_of, names), strict=True))
    failed = {name: answer.stderr for name, answer in answers.items() if answer.returncode != 0}
    assert not failed
    assert not [name for name, answer in answers.items() if not description(answer.stdout)]


def test_every_command_is_in_the_reference() -> None:
    overview = REFERENCE / "commands.md"
    text = overview.read_text("utf-8") if overview.exists() else ""
    sections = set(re.findall(r"^#+ +`?moot ([a-z-]+)", text, re.MULTILINE))
    pages = {page.stem for page in (REFERENCE / "commands").glob("*.md")}
    undocumented = sorted(set(commands()) - sections - pages)
    assert not undocumented, f"neither a page in docs/reference/commands nor a section: {', '.join(undocumented)}"


def test_a_help_text_without_description_is_noticed() -> None:
    bare = "usage: moot ls [-h]\n\noptions:\n  -h, --help  show this help message and exit\n"
    assert description(bare) == ""
    assert description(bare.replace("\n\n", "\n\nList the runs.\n\n")) == "List the runs."
