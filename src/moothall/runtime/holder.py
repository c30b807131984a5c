"""Who holds runs: the name of a process, and whether the process behind such a name is certainly gone.

A name says the host, the process, a word of its own, when the process began, and in a container where its processes
are counted: `host:1234:9f3c01aa+88123@4026532281`. Of a process of another host, or of another container, only time
can tell.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import lru_cache
from pathlib import Path

from moothall.kernel.frozen import Frozen

WHOLE_MACHINE = 0xEFFFFFFC
"""The number of the first namespace of processes, which Linux never gives to a container."""
STATE, BEGAN = 0, 19
"""Where the kernel's line on a process says these, counted from behind the name of its program."""
ENDED = frozenset("ZXx")
"""The states of a process that has ended and whose parent has not been told yet."""


class _Holder(Frozen):
    """A name, taken apart; `began` is "" where it does not say."""

    host: str
    process: str
    began: str
    counted_in: str


def name_of_this_process() -> str:
    """Who holds runs here: no other process, before or later, has the same name."""
    process = os.getpid()
    return f"{socket.gethostname()}:{process}:{secrets.token_hex(4)}{_known_by(process)}"


@lru_cache(maxsize=1)
def _known_by(process: int) -> str:
    """What tells a process from others with its number: when it began, and where that number was given to it."""
    return "".join(f"+{began}" for began in _line_of(process)[BEGAN:][:1]) + _counted_in()


def is_gone(owner: str) -> bool:
    """Whether a holder is a process of this machine that is certainly gone; of others only time can tell."""
    holder = _read(owner)
    if not _is_here(holder) or not holder.process.isdigit():
        return False
    process = int(holder.process)
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    except OverflowError:  # no process has such a number
        return True
    line = _line_of(process)
    if len(line) <= BEGAN:  # nobody here may know more of it
        return False
    return line[STATE] in ENDED or (holder.began != "" and holder.began != line[BEGAN])


def is_near(owner: str) -> bool:
    """Whether a holder is a process of this machine, or of this container."""
    return _is_here(_read(owner))


def _read(owner: str) -> _Holder:
    host, _, rest = owner.partition(":")
    process, _, word = rest.partition(":")
    word, mark, number = word.partition("@")
    return _Holder(host, process, word.partition("+")[2], mark + number)


def _is_here(holder: _Holder) -> bool:
    is_named = bool(holder.process)
    return is_named and holder.host == socket.gethostname() and holder.counted_in == _counted_in()


def _line_of(process: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing where it does not say."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return line.rpartition(")")[2].split()


def _counted_in() -> str:
    """Where the numbers of processes mean what they mean here: "" for the whole machine, `@NUMBER` in a container."""
    try:
        number = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return ""
    return "" if number == WHOLE_MACHINE else f"@{number}"
