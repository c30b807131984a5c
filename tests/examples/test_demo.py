"""`make demo` runs to its end anywhere, repeats nothing, and leaves a page."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, environment

pytestmark = pytest.mark.slow


def test_the_demonstration_runs_to_its_end_and_repeats_no_completed_call(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "demo.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 calls completed, 0 of them repeated" in ran.stdout
    assert "made again, because the kill came before its reply: newsroom-demo." in ran.stdout
    assert "limit of 3 calls reached" in ran.stderr
    assert "\x1b[" not in ran.stdout + ran.stderr
    assert "Answer: SQLite" in ran.stdout
    page = (tmp_path / "demo-output" / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "newsroom-demo" in page
