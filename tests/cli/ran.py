"""`moot` in the process of a test, and what a command did: its exit code, its results, its notices."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from moothall.cli.main import main


@dataclass(frozen=True)
class Ran:
    """One command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The result, where it is JSON."""
        return json.loads(self.out)


Moot = Callable[..., Ran]


@contextmanager
def in_this_process(capsys: pytest.CaptureFixture[str]) -> Iterator[Moot]:
    """Arguments in, exit code and output out; the process's own way to take SIGTERM is put back."""

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    kept = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, kept)
