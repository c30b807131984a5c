"""`scripted:FILE`: replies that were written down before, for demonstrations and tests.

The file is a JSON object: an agent's name, and the list of its replies in the order of its calls. A reply is a
text, or an object with `text`, `value`, `usage`, `calls` (of tools) and `seconds`, the time that it takes. The n-th
call of an agent in a run takes its n-th reply, so a run that is resumed goes on where it was.

`scripted:FILE,log=LOG` also notes the key of every call in LOG, so that calls can be counted across a crash.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode


@dataclass(frozen=True, slots=True)
class Line:
    """One reply of a script."""

    text: str = ""
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0
    calls: tuple[ToolCall, ...] = ()


class ScriptedModel:
    """Says what its script says, agent by agent, in order."""

    def __init__(self, lines: Mapping[str, Sequence[Line]], where: str = "the script", log: Path | None = None) -> None:
        self._lines = lines
        self._where = where
        self._log = log

    @classmethod
    def from_file(cls, path: Path, log: Path | None = None) -> ScriptedModel:
        """Read a script; mistakes name the file and the place in it."""
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DefinitionError(f"{path}: the script cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"{path}: the script is no JSON: {error}") from error
        try:
            agents = decode(dict[str, list[Any]], plain, "the script")
            lines = {
                agent: [_line(one, f"{agent}[{at}]") for at, one in enumerate(said)] for agent, said in agents.items()
            }
        except Refused as refusal:
            raise DefinitionError(f"{path}: {refusal}") from refusal
        return cls(lines, str(path), log)

    async def reply(self, request: Request) -> Reply:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"{request.key} {request.agent}\n")
        said = self._lines.get(request.agent, ())
        if request.nth > len(said):
            raise DefinitionError(
                f"{self._where} has {len(said)} replies for {request.agent!r}; this would be number {request.nth}"
            )
        line = said[request.nth - 1]
        if line.seconds:
            await asyncio.sleep(line.seconds)
        return Reply(line.text, line.value, line.usage, line.calls)


def _line(plain: Any, where: str) -> Line:
    if isinstance(plain, str):
        return Line(plain)
    if not isinstance(plain, dict):
        raise Refused(f"{where}: expected a text, or an object with text, value, usage and seconds, got {plain!r}")
    return decode(Line, plain, where)
