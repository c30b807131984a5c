"""Type checkers know what a table is about: they refuse its mistakes, and have nothing to say about what is right."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from moothall import Answered, Machine, On, Replied, Returned

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def complaints(*files: Path) -> tuple[set[int], str]:
    """The lines that mypy refuses, and all that it says."""
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, files)]
    around = {**os.environ, "MYPYPATH": str(ROOT / "examples")}
    checked = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, timeout=280, check=False)
    assert not checked.stderr
    return {int(line) for line in re.findall(r"\.py:(\d+): error:", checked.stdout)}, checked.stdout


def complaints_of_pyright(*files: Path) -> list[int]:
    """The lines that pyright refuses."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    if not checked.stdout.startswith("{"):
        pytest.skip("pyright cannot be fetched: it needs node and the registry of npm")
    findings = json.loads(checked.stdout)["generalDiagnostics"]
    return sorted(finding["range"]["start"]["line"] + 1 for finding in findings)


def marked(file: Path, mark: str) -> list[int]:
    """The lines of a file that have this mark."""
    return [number for number, line in enumerate(file.read_text().splitlines(), 1) if f"  # {mark}" in line]


def as_code(text: str, folder: Path) -> Path:
    """A text of this folder as a Python file; here it is a text, so that whoever checks the tests does not read it."""
    file = folder / f"{text}.py"
    file.write_text((HERE / f"{text}.txt").read_text())
    return file


@pytest.mark.slow
def test_mypy_refuses_every_mistake_in_a_table_and_nothing_else(tmp_path: Path) -> None:
    file = as_code("mistakes", tmp_path)
    wrong = marked(file, "wrong")
    assert len(wrong) == 17
    assert complaints(file)[0] == set(wrong)


@pytest.mark.slow
def test_mypy_takes_what_authors_write_every_day(tmp_path: Path) -> None:
    assert "Success" in complaints(as_code("right", tmp_path))[1]


@pytest.mark.slow
def test_the_examples_pass_a_strict_type_checker() -> None:
    assert "Success" in complaints(*sorted((ROOT / "examples").glob("*.py")))[1]


@pytest.mark.slow
def test_pyright_refuses_every_mistake_in_a_table_and_nothing_else(tmp_path: Path) -> None:
    file = as_code("mistakes", tmp_path)
    assert complaints_of_pyright(file) == marked(file, "wrong")


@pytest.mark.slow
def test_pyright_takes_what_authors_write_every_day(tmp_path: Path) -> None:
    file = as_code("right", tmp_path)
    assert complaints_of_pyright(file) == marked(file, "pyright wants a function")


@pytest.mark.slow
def test_the_examples_pass_pyright() -> None:
    assert complaints_of_pyright(*sorted((ROOT / "examples").glob("*.py"))) == []


def test_an_annotation_may_name_the_types_of_a_table_at_run_time() -> None:
    def move(
        machine: Machine[str], row: On[str, Replied], event: Replied[int] | Returned[int] | Answered[bool]
    ) -> None:
        pass

    hints = get_type_hints(move)
    assert hints["machine"].__origin__ is Machine
    assert hints["row"].__args__ == (str, Replied)
    assert On[str].__args__ == (str,)  # type: ignore[attr-defined]
