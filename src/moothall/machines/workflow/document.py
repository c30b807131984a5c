"""A JSON text, read with suspicion: its value, and the line of everything in it.

Everything that two readers of one file could understand differently is a problem here and never a guess: a key that
stands twice, numbers that are none, half a character, an encoding other than UTF-8. What comes out has no depth that
could exhaust anybody, and every value has a place, so that whoever finds fault with it later can say where it stands.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from moothall.kernel.frozen import Frozen

LARGEST = 1024 * 1024
DEEPEST = 100
MOST = 150_000
"""The most texts, objects and lists in a file."""
_EXACT = 2**53
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]')
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00")

Level = Literal["error", "warning"]


class Problem(Frozen):
    """Something that is wrong with a file, and what to do about it. The pointer says where in its workflow."""

    level: Level
    code: str
    pointer: str
    why: str
    remedy: str
    line: int = 0
    workflow: str = ""


class Document(Frozen):
    """What a text says, and the line of each value by its pointer; nothing but problems where it says nothing."""

    value: Any
    lines: Mapping[str, int]
    problems: tuple[Problem, ...] = ()

    def line(self, pointer: str) -> int:
        """The line of a value, or of what should have it inside."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1)


def read(raw: bytes) -> Document:
    """Read the content of a file."""
    if len(raw) > LARGEST:
        return _unread("E_LIMIT_SIZE", f"it has {len(raw)} bytes", f"keep it below {LARGEST} bytes", 0)
    if raw.startswith(_OTHER_ENCODINGS) or b"\x00" in raw[:4]:
        return _unread("E_ENCODING", "it is not UTF-8 but looks like UTF-16 or UTF-32", _AS_UTF8, 1)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return _unread("E_ENCODING", f"it is not UTF-8: byte {error.start} is {raw[error.start]:#04x}", _AS_UTF8, line)
    return _parse(text)


def _parse(text: str) -> Document:
    if (beyond := _beyond(text)) is not None:
        return beyond
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        return _unread(
            "E_JSON", f"it is not JSON: {error.msg}, column {error.colno}", _remedy(text, error), error.lineno
        )
    except _NoNumber as error:
        line = text.count("\n", 0, max(text.find(str(error)), 0)) + 1
        return _unread("E_JSON", f"{str(error)[:40]} is not a number in JSON", "write null or a finite number", line)
    lines: dict[str, int] = {}
    problems = [*_twice(text, lines), *_halved_characters(value)]
    return Document(value, lines, tuple(_at(problem, lines) for problem in problems))


class _NoNumber(Exception):
    """A number that JSON does not have."""


def _refuse_constant(text: str) -> float:
    raise _NoNumber(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _whole(text: str) -> float:
    """A whole number; beyond what a script can count exactly it is rounded, as scripts do."""
    number = int(text) if len(text) < 20 else _finite(text)
    return number if -_EXACT <= number <= _EXACT else float(number)


def _beyond(text: str) -> Document | None:
    """What is said of a text that is too deep or too much for everybody behind."""
    depth = 0
    for number, match in enumerate(_BRACKET.finditer(text)):
        if match[0] in "{[":
            depth += 1
        elif match[0] in "}]":
            depth -= 1
        if depth > DEEPEST or number > MOST:
            line = text.count("\n", 0, match.start()) + 1
            if depth > DEEPEST:
                why = f"more than {DEEPEST} levels stand inside each other"
                return _unread("E_LIMIT_DEPTH", why, "make it flatter", line)
            return _unread("E_LIMIT_SIZE", f"it has more than {MOST} texts, objects and lists", "make it smaller", line)
    return None


def _twice(text: str, lines: dict[str, int]) -> Iterator[Problem]:
    """Fill in the line of every value of a text that is JSON; the keys that stand twice in one object."""
    breaks = [match.start() for match in re.finditer("\n", text)]
    pointer, key, index = "", None, -1
    around: list[tuple[str, str | None, int]] = []
    for match in _TOKEN.finditer(text):
        token, line = match[0], bisect_left(breaks, match.start()) + 1
        if token in "}]":
            pointer, key, index = around.pop()
        elif token == ",":
            key, index = None, index + 1 if index >= 0 else index
        elif around and index < 0 and key is None:
            key = json.loads(token)
            inside = f"{pointer}/{escape_key(key)}"
            if inside in lines:
                yield _twofold(inside, lines[inside], line)
            lines[inside] = line
        elif token != ":":
            inside = pointer if not around else f"{pointer}/{index if index >= 0 else escape_key(key or '')}"
            lines.setdefault(inside, line)
            if token in "{[":
                around.append((pointer, key, index))
                pointer, key, index = inside, None, 0 if token == "[" else -1


def _twofold(pointer: str, first: int, second: int) -> Problem:
    why = f"{pointer} stands on line {first} and again on line {second}; readers disagree which of them counts"
    return Problem("error", "E_DUP_KEY", "", why, "keep one of them", second)


def _halved_characters(value: Any) -> Iterator[Problem]:
    """Texts that end in the middle of a character."""
    for pointer, text in _texts(value, ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            yield Problem("error", "E_ENCODING", pointer, "it has half a character (a lone surrogate)", _AS_UTF8)


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    todo = [(pointer, value)]
    while todo:
        pointer, value = todo.pop()
        if isinstance(value, str):
            if not value.isascii():
                yield pointer, value
        elif isinstance(value, list):
            todo += [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
        elif isinstance(value, dict):
            yield from ((pointer, key) for key in value if not key.isascii())
            todo += [(f"{pointer}/{escape_key(key)}", item) for key, item in value.items()]


def _at(problem: Problem, lines: Mapping[str, int]) -> Problem:
    if problem.line:
        return problem
    return Problem(**{**problem.__dict__, "line": Document(None, lines).line(problem.pointer)})


def escape_key(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _unread(code: str, why: str, remedy: str, line: int) -> Document:
    return Document(None, {}, (Problem("error", code, "", why, remedy, line),))


def _remedy(text: str, error: json.JSONDecodeError) -> str:
    """What to do where a text is not JSON: by what stands there, else by what the parser says."""
    before, rest = text[: error.pos].rstrip(), text[error.pos :].lstrip()
    if not text.strip():
        return "the file is empty; `moot new workflow NAME` writes one to begin with"
    for starts, remedy in _REMEDIES_BY_TEXT.items():
        if rest.startswith(starts):
            return remedy
    if not before:
        return "write JSON: it begins with { or [, and its keys stand in double quotes"
    if before.endswith(",") and rest.startswith(("}", "]")):
        return _TRAILING
    by_message = (remedy for starts, remedy in _REMEDIES_BY_MESSAGE.items() if error.msg.startswith(starts))
    usual = "correct the text around it"
    return next(by_message, usual) if rest else "the file ends too early; close what is open"


_TRAILING = "remove the comma before the bracket"
_REMEDIES_BY_TEXT = {
    ("//", "/*", "#"): 'JSON has no comments; write "$comment": "…" instead',
    ("'", "“", "”", "„", "‘", "’"): 'write keys and texts in straight double quotes: "…"',
    ("None", "True", "False", "undefined"): "write null, true or false",
}
_REMEDIES_BY_MESSAGE = {
    "Illegal trailing comma": _TRAILING,
    "Expecting ',' delimiter": 'write a comma before it; a " inside a text is written \\"',
    "Invalid control character": "write a line break inside a text as \\n, and a tab as \\t",
    "Invalid \\": "write a backslash inside a text as \\\\",
    "Unterminated string": 'close the text with a "',
    "Extra data": "a file has one value; put several workflows into an array",
}
_AS_UTF8 = "save the file as UTF-8"
