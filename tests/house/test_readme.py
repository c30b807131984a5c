"""The README has commands and marked programs, in the order in which a reader meets them; `test_docs` runs them.

Of a ```console block, lines that start with `$ moot` are run; a trailing comment `# exits N` states an exit code other
than 0, and a backslash at the end of a line joins the next one. A ```python block is run where its info string
is `python run`. All of them share one folder with a copy of `examples/`, one fresh MOOTHALL_HOME and a bare
environment.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from moothall.app.config.models import PROVIDERS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SECONDS = 120

FENCE = re.compile(r"^```(?P<kind>[^`\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
EXITS = re.compile(r"#\s*exits (\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Trial:
    """Something that the README says can be run."""

    title: str
    command: tuple[str, ...]
    exits: int = 0


def trials(text: str) -> Iterator[Trial]:
    for number, fence in enumerate(FENCE.finditer(text), start=1):
        match fence["kind"].split():
            case ["console", *_]:
                yield from map(of_line, moot_lines(fence["body"]))
            case ["python", "run"]:
                yield Trial(f"python block (fence {number})", (sys.executable, "-c", fence["body"]))
            case _:
                pass


def moot_lines(block: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", block)
    return [line.removeprefix("$ ") for line in joined.splitlines() if re.match(r"\$ moot\b", line)]


def of_line(line: str) -> Trial:
    stated = EXITS.search(line)
    return Trial(line, ("bash", "-c", line), int(stated[1]) if stated else 0)


def attempt(trial: Trial, *, folder: Path) -> str | None:
    """Run one trial; what went wrong, or None."""
    done = subprocess.run(
        trial.command,
        cwd=folder,
        env=bare_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode == trial.exits:
        return None
    return f"{trial.title}\nexits {done.returncode}, not {trial.exits}\n{done.stdout}{done.stderr}"


def bare_environment(folder: Path) -> dict[str, str]:
    here = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([here, os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "MOOTHALL_HOME": str(folder / "moothall-home"),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def readme() -> str:
    assert README.is_file(), "README.md is missing"
    return README.read_text("utf-8")


def test_the_readme_has_something_to_run() -> None:
    assert list(trials(readme())), "README.md has neither a `$ moot` line in a console block nor a `python run` block"


def test_every_python_block_of_the_readme_compiles() -> None:
    for fence in FENCE.finditer(readme()):
        if fence["kind"].split()[:1] == ["python"]:
            compile(fence["body"], str(README), "exec")


def test_the_line_that_installs_the_package_brings_the_providers() -> None:
    [extras] = re.findall(r'pip install "\.\[([a-z,]+)\]"', readme())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = " ".join(need for extra in extras.split(",") for need in project["optional-dependencies"][extra])
    assert all(provider.protocol in brought for provider in PROVIDERS.values())


SAMPLE = r"""
```console
$ moot run a.py \
    "tides"
a line of output
$ kill -9 1
$ mooted
$ moot show nothing  # exits 1
```

```python run
print("hello")
```

```python
never_run()
```
"""


def test_commands_and_programs_are_found_in_their_order() -> None:
    first, second, third = trials(SAMPLE)
    assert (first.title, first.exits) == ('moot run a.py "tides"', 0)
    assert (second.command[-1], second.exits) == ("moot show nothing  # exits 1", 1)
    assert third.command == (sys.executable, "-c", 'print("hello")\n')


def test_a_wrong_exit_code_is_noticed(tmp_path: Path) -> None:
    assert attempt(of_line("exit 3 # exits 3"), folder=tmp_path) is None
    fault = attempt(of_line("echo why; exit 3"), folder=tmp_path)
    assert fault is not None
    assert "exits 3, not 0" in fault
    assert "why" in fault
