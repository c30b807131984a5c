"""Debates as programs start them: one with a node of its own, and that of the demonstration with its report."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, environment


def ran(name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """An example, run to its end."""
    return subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.covers("D4", "D36")
def test_a_fact_check_of_ones_own_stands_between_proposals_and_critiques(tmp_path: Path) -> None:
    example = ran("debate.py", tmp_path)
    assert example.returncode == 0, example.stderr
    lines = example.stdout.splitlines()
    at = lines.index("FactCheck –FACTS_CHECKED→")
    assert (lines[at - 1], lines[at + 1]) == ("Proposal –PROPOSALS_COMPLETE→", "Critique –CRITIQUES_COMPLETE→")
    assert lines.count("FactCheck –FACTS_CHECKED→") == 1
    assert lines[-3:] == [
        "unsafe drafts: performance",
        "SQLite: Keep the sales in SQLite, in WAL mode, and copy the file to another machine every night.",
        "flips: {'architect': 1, 'performance': 2, 'kiss': 0}",
    ]


def test_the_debate_of_the_demonstration_leaves_a_document_and_a_page_with_the_picture(tmp_path: Path) -> None:
    example = ran("demo_debate.py", tmp_path)
    assert example.returncode == 0, example.stdout + example.stderr
    assert "Answer: SQLite\n" in example.stdout
    assert "## Who moved whom" in (tmp_path / "demo-output" / "debate.md").read_text()
    page = (tmp_path / "demo-output" / "debate.html").read_text()
    assert "<h2>The machine</h2>" in page
    assert "RoundManager" in page
