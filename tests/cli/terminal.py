"""`moot` on a terminal: a child whose output is a pseudo-terminal, and whose input may be one too."""

import os
import pty
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cli.process import command, environment, heed_signals


class Terminal:
    """Our side of a terminal: read what was said, type something."""

    def __init__(self, descriptor: int, process: "subprocess.Popen[bytes]") -> None:
        self._descriptor = descriptor
        self.process = process
        self.said = ""

    def read_until(self, text: str) -> None:
        """Read on until this was said."""
        while text not in self.said:
            assert self._read(), f"it ended before it said {text!r}: {self.said!r}"

    def read_more(self) -> None:
        """Read what comes next."""
        assert self._read(), f"it ended: {self.said!r}"

    def read_all(self) -> str:
        """Read to the end."""
        while self._read():
            pass
        return self.said

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._descriptor, text.encode())

    def _read(self) -> bool:
        try:
            part = os.read(self._descriptor, 4096)
        except OSError:  # the other side is closed
            return False
        self.said += part.decode(errors="replace")
        return bool(part)


@contextmanager
def terminal(
    *arguments: str, home: Path, keyboard: bool = False, more: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Start a command on a terminal of its own; only with a keyboard is its input one too."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        cwd=home,
        env=environment(home, {"TERM": "xterm", **(more or {})}),
        stdin=theirs if keyboard else subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
