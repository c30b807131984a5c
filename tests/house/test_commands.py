"""Every command of `moot` explains itself and has a place in the reference."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pytest

from tests.cli.ran import in_this_process

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


class Command(Protocol):
    help: str


def commands() -> Mapping[str, Command]:
    found: Mapping[str, Command] = import_module("moothall.cli.main").COMMANDS
    assert found, "moot has no commands"
    return found


def description(help_text: str) -> str:
    """The paragraph between the usage and the first list of arguments, or nothing."""
    paragraphs = [paragraph.strip() for paragraph in help_text.split("\n\n")]
    return paragraphs[1] if len(paragraphs) > 1 and not paragraphs[1].splitlines()[0].endswith(":") else ""


def test_every_command_has_a_line_of_help() -> None:
    assert not [name for name, command in commands().items() if not command.help.strip()]


def test_every_command_prints_a_description_when_asked_for_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with in_this_process(capsys) as moot:
        answers = {name: moot(name, "--help") for name in commands()}
    assert not {name: answer.err for name, answer in answers.items() if answer.code != 0}
    assert not [name for name, answer in answers.items() if not description(answer.out)]


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
