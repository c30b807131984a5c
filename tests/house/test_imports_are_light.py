"""`import moothall` and `moot --help` start at once: whatever is heavy is imported where it is used."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "anthropic",
    "asyncpg",
    "fastapi",
    "genai_prices",
    "google",
    "httpx2",
    "langchain_core",
    "numpy",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "pydantic_ai",
    "quickjs",
    "rich",
    "temporalio",
    "typer",
    "uvicorn",
    "xml",
}

IMPORT = "import moothall"
HELP = """
import sys
from moothall.cli.main import main
sys.argv = ["moot", "--help"]
try:
    code = main()
except SystemExit as stop:
    code = stop.code
assert not code, code
"""
LS = HELP.replace('"--help"', '"ls", "--store", "memory"')
REPORT = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded at the end of the program."""
    done = subprocess.run([sys.executable, "-c", program + REPORT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


PROGRAMS = {"import moothall": IMPORT, "moot --help": HELP, "moot ls": LS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_nothing_heavy_is_loaded(program: str) -> None:
    assert not loaded_by(program) & HEAVY


def test_a_heavy_import_is_noticed() -> None:
    assert loaded_by("import xml.dom") & HEAVY == {"xml"}
