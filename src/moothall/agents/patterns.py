"""Which tools an entry of a role's lists means: a name, a name with `*`, or a `/regular expression/flags`.

The flags are those of JavaScript. An entry that looks like an expression is never taken for a name: an excluded tool
would stay allowed.

Role files come from others, and a regular expression can take for ever on a short name. Those with one repeat at most
are matched here. All others are matched in a process of their own, which is ended after a while.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

from moothall.errors import DefinitionError

codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

LONGEST = 500
"""The most characters of an entry."""
MANY = 10
"""For how many repeats something counts of which nobody knows what it costs."""
SECONDS = 2.0
FLAGS = {"g": 0, "i": int(re.IGNORECASE), "m": int(re.MULTILINE), "s": int(re.DOTALL), "u": 0}
"""What the flags of JavaScript mean here: every name is looked at once, and every text is Unicode."""
NO_MATCH = 3
"""What the process ends with that found nothing; one that could not look ends with something else."""
_SEARCH = f"import re, sys; sys.exit(0 if re.search(sys.argv[1], sys.argv[2], int(sys.argv[3])) else {NO_MATCH})"


def check_entry(entry: str) -> None:
    """Refuse an entry that no tool could be held against."""
    if len(entry) > LONGEST:
        raise ValueError(f"{entry[:40]!r}… has more than {LONGEST} characters")
    if not is_expression(entry):
        return
    pattern, _, flags = entry[1:].rpartition("/")
    if unknown := [flag for at, flag in enumerate(flags) if flag not in FLAGS or flag in flags[:at]]:
        told = "is there twice" if unknown[0] in FLAGS else f"is not a flag; there are {', '.join(FLAGS)}"
        raise ValueError(f"{entry!r} is not a regular expression: {unknown[0]!r} behind the last / {told}")
    try:
        re.compile(pattern, _flags(flags))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{entry!r} is not a regular expression: {error}") from error


def is_expression(entry: str) -> bool:
    """Whether an entry is a regular expression."""
    return entry.startswith("/") and entry.rfind("/") > 1


def _flags(letters: str) -> int:
    return sum(FLAGS[letter] for letter in letters)


@lru_cache(maxsize=4096)
def is_match(entry: str, tool: str) -> bool:
    """Whether an entry means a tool."""
    if not is_expression(entry):
        return _is_like(entry.split("*"), tool)
    pattern, _, letters = entry[1:].rpartition("/")
    flags = _flags(letters)
    if _repeats(parser.parse(pattern, flags)) <= 1:
        return re.search(pattern, tool, flags) is not None
    search = [sys.executable, "-I", "-c", _SEARCH, pattern, tool, str(flags)]
    try:
        asked = subprocess.run(search, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise DefinitionError(f"{entry!r} takes too long on the name {tool!r}; write it more simply") from error
    if asked.returncode not in (0, NO_MATCH):
        raise DefinitionError(f"{entry!r} cannot be held against the name {tool!r}; write it more simply")
    return asked.returncode == 0


def _is_like(parts: list[str], name: str) -> bool:
    """Whether a name has these parts in order, the first at its beginning and the last at its end."""
    first, *middle = parts
    if not middle:
        return name == first
    *middle, last = middle
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _repeats(parsed: Any) -> int:
    """How many repeats a pattern has; what is repeated and is more than one letter counts as many."""
    found = 0
    for code, value in parsed:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            found += 1 if [inner for inner, _ in value[2]] in _LETTERS else MANY
        elif code is codes.BRANCH:
            found += sum(map(_repeats, value[1]))
        elif code is codes.SUBPATTERN:
            found += _repeats(value[3])
        elif code not in _PLAIN:
            found += MANY
    return found


_LETTERS = [[codes.LITERAL], [codes.NOT_LITERAL], [codes.IN], [codes.ANY]]
_PLAIN = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY, codes.AT)
