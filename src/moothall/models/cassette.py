"""`cassette:FILE`: replies of another model, recorded and given again.

The file has one JSON object per line: what was asked (model, agent, how many times before, prompt with its hash,
messages, tools, shape) and what was replied. The same question gets the same reply; where it was recorded more than
once, the latest. What was never asked before is a mistake in `replay`, and the error names the nearest question and
what differs; `auto` asks the model then, and `record` always. Failures are not recorded. Nothing is compared, written
or given back before its secrets are replaced.

A line is appended in one piece, and other writers wait meanwhile; what a crash left without its end is passed over.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from errno import EACCES
from pathlib import Path
from typing import Any, Literal

from moothall.agents.ports import Model, Reply, Request
from moothall.agents.secrets import Cleaner
from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen

Mode = Literal["record", "replay", "auto"]
COMPARED = 2_000
"""How much of a prompt is compared to find the nearest one."""
AROUND = 20


class Asked(Frozen):
    """What makes two questions the same. Without a model's name, replies of any model will do."""

    model: str
    agent: str
    nth: int
    prompt_hash: str
    messages: tuple[Any, ...] = ()
    tools: tuple[Any, ...] = ()
    schema: Any = None


class Line(Frozen):
    """One line of a cassette."""

    asked: Asked
    prompt: str
    reply: Reply


class CassetteModel:
    """Gives recorded replies, and records new ones where it may."""

    def __init__(
        self, file: Path, mode: Mode, model: Model | None = None, name: str = "", *, clean: Cleaner | None = None
    ) -> None:
        if model is None and mode != "replay":
            raise DefinitionError(f"cassette {file}: mode={mode} asks a model; name one with ,model=NAME at the end")
        if model is None and not os.path.isfile(file):
            raise DefinitionError(f"cassette {file}: there is no such file; record one with ,mode=record,model=NAME")
        self._file = file
        self._mode = mode
        self._model = model
        self._clean = Cleaner() if clean is None else clean
        self._name: str = self._clean(name)
        self._read: tuple[int, list[Line]] = (0, [])

    async def reply(self, request: Request) -> Reply:
        request = self._clean(request)
        asked = asked_by(request, self._name)
        if self._mode != "record":
            lines = self._lines()
            found = [line.reply for line in lines if _is_same(line.asked, asked)]
            if found:
                return found[-1]
            if self._mode == "replay":
                raise DefinitionError(f"cassette {self._file}: {_miss(lines, asked, request.prompt)}")
        assert self._model is not None
        _check_that_it_can_be_written(self._file)
        reply: Reply = self._clean(await self._model.reply(request))
        append(self._file, Line(asked, request.prompt, reply))
        return reply

    def _lines(self) -> list[Line]:
        """What is recorded; the file is read again where it has changed in size."""
        size = self._file.stat().st_size if os.path.isfile(self._file) else 0
        if size != self._read[0]:
            self._read = (size, list(read(self._file)))
        return self._read[1]


def asked_by(request: Request, model: str) -> Asked:
    """What a request asks, as it is compared."""
    return Asked(
        model,
        request.agent,
        request.nth,
        hashlib.sha256(request.prompt.encode(errors="replace")).hexdigest()[:16],
        tuple(encode(request.messages)),
        tuple(encode(request.tools)),
        encode(request.schema),
    )


def _is_same(recorded: Asked, asked: Asked) -> bool:
    return not _differences(recorded, asked)


def _differences(recorded: Asked, asked: Asked) -> list[str]:
    """The fields in which two questions differ."""
    names = [name for name in asked.__dict__ if name != "model" or (asked.model and recorded.model)]
    return [name for name in names if getattr(recorded, name) != getattr(asked, name)]


def _miss(lines: Sequence[Line], asked: Asked, prompt: str) -> str:
    """What to say of a question that was never recorded."""
    who = f"{asked.agent}, question {asked.nth}"
    remedy = "record it with mode=auto"
    if not lines:
        return f"it is empty; {who}, was never asked; {remedy}"
    number, nearest = max(enumerate(lines, 1), key=lambda line: _nearness(line[1], asked, prompt))
    differ = "; ".join(_format_difference(name, nearest, asked, prompt) for name in _differences(nearest.asked, asked))
    return f"{who}, was never asked so; the nearest is line {number}, where it differs: {differ}; {remedy}"


def _nearness(line: Line, asked: Asked, prompt: str) -> tuple[int, float]:
    likeness = SequenceMatcher(None, line.prompt[:COMPARED], prompt[:COMPARED], autojunk=False).quick_ratio()
    return -len(_differences(line.asked, asked)), likeness


def _format_difference(name: str, line: Line, asked: Asked, prompt: str) -> str:
    """One difference: what stands in the cassette, and what is asked now."""
    if name == "prompt_hash":
        return f"prompt: {_first_difference(line.prompt, prompt)}"
    recorded, now = (json.dumps(encode(getattr(request, name)), ensure_ascii=False) for request in (line.asked, asked))
    return f"{name}: {_first_difference(recorded, now)}"


def _first_difference(recorded: str, now: str) -> str:
    at = next((at for at, (one, other) in enumerate(zip(recorded, now, strict=False)) if one != other), None)
    start = max(0, (min(len(recorded), len(now)) if at is None else at) - AROUND)
    parts = (f"{'…' if start else ''}{text[start : start + 3 * AROUND]}" for text in (recorded, now))
    return " is now ".join(map(repr, parts))


def read(file: Path) -> Iterator[Line]:
    """The lines of a cassette; the last one only where it has its end."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise EffectFailed(f"cassette {file} cannot be read: {error.strerror}") from error
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if not line.strip():
            continue
        try:
            yield decode(Line, json.loads(line), f"line {number}")
        except (ValueError, Refused) as error:
            raise DefinitionError(f"cassette {file}, line {number} cannot be read: {error}") from error


def _check_that_it_can_be_written(file: Path) -> None:
    """Before a model is paid for a reply that could not be kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(file):
            os.close(os.open(file, os.O_RDWR | os.O_APPEND))
        elif not os.access(file.parent, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise DefinitionError(f"cassette {file} cannot be written: {error.strerror}; nothing was asked") from error


def append(file: Path, line: Line) -> None:
    """Put a line at the end, in one piece."""
    text = json.dumps(encode(line), ensure_ascii=False).encode(errors="replace") + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        place = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(place, fcntl.LOCK_EX)
            _cut_to_whole_lines(place)
            _write(place, text)
        finally:
            os.close(place)
    except OSError as error:
        raise EffectFailed(f"cassette {file} cannot be written: {error.strerror}") from error


def _cut_to_whole_lines(place: int) -> None:
    """Take away what a crash left of a line."""
    size = end = os.fstat(place).st_size
    while end > 0:
        start = max(0, end - 4096)
        found = os.pread(place, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(place, end)


def _write(place: int, text: bytes) -> None:
    while text:
        text = text[os.write(place, text) :]
