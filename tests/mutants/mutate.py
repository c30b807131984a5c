"""Planted mistakes: each is put into a copy of the source, and the tests must notice it.

A mutant names a function and what is changed in its syntax tree (`tests/mutants/tree.py`). The copy goes to a folder of
its own and is found through PYTHONPATH; the source and everybody who reads it meanwhile stay untouched. A mutant is
killed where a test fails (exit code 1). Anything else (all tests pass, the copy cannot be imported, time runs out)
means that the mutant or the tests need work.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from tests.mutants.tree import Change, find_function, find_place

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "moothall"
PROCESSES = 2
SECONDS = 90
KILLED = 1
PARSING = Lock()
"""Python 3.11 counts how deep a syntax tree is in one place for all threads."""
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "--assert=plain", "-p", "no:cacheprovider")

Stage = Sequence[str]
"""Arguments of one call of pytest: tests, and the plugins that they need (`-p NAME`); none is loaded by itself."""


@dataclass(frozen=True)
class Mutant:
    """A mistake: what it breaks, in which function of which module, and what is changed there."""

    breaks: str
    module: str
    function: str
    changes: tuple[tuple[str, Change], ...]

    @property
    def file(self) -> str:
        """The module's file in the package."""
        return f"{self.module.replace('.', '/')}.py"

    def applied(self, text: str) -> str:
        """The text with the mistake in it, as the syntax tree gives it."""
        tree = ast.parse(text)
        function = find_function(tree, self.function)
        for spot, change in [(find_place(function, place), change) for place, change in self.changes]:
            change(spot)
        return ast.unparse(ast.fix_missing_locations(tree))


@dataclass(frozen=True)
class Outcome:
    """How the tests ended, and what they said last."""

    code: int
    said: str

    @property
    def killed(self) -> bool:
        return self.code == KILLED


def mutated(mutant: Mutant) -> str:
    """The text of the mutant's file with the mistake in it."""
    with PARSING:
        return mutant.applied((SOURCE / mutant.file).read_text("utf-8"))


def tried(mutant: Mutant | None, stages: Sequence[Stage], folder: Path) -> Outcome:
    """What the tests say to a copy of the package with this mistake in it, or with none; stage after stage."""
    package = folder / "moothall"
    shutil.copytree(SOURCE, package)
    if mutant is not None:
        (package / mutant.file).write_text(mutated(mutant), "utf-8")
        for stale in (package / mutant.file).parent.glob(f"__pycache__/{Path(mutant.file).stem}.*"):
            stale.unlink()
    try:
        for stage in stages:
            outcome = _run(stage, folder)
            if outcome.code:
                break
        return outcome
    finally:
        shutil.rmtree(folder)


def _run(stage: Stage, folder: Path) -> Outcome:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))},
        "PYTHONPATH": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    try:
        ended = subprocess.run(
            [*PYTEST, *stage], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(-1, f"the tests still ran after {SECONDS} seconds")
    return Outcome(ended.returncode, "\n".join((ended.stdout + ended.stderr).splitlines()[-8:]))


@contextmanager
def trying(
    mutants: Iterable[Mutant | None], stages: Sequence[Stage], folder: Path
) -> Iterator[Mapping[Mutant | None, Future[Outcome]]]:
    """Try these mutants, at most two at a time; what is not awaited any more is not begun."""
    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            yield {
                mutant: pool.submit(tried, mutant, stages, folder / f"mutant-{number}")
                for number, mutant in enumerate(mutants)
            }
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
