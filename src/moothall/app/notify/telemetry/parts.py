"""What a setting of telemetry names: `spans`, `counters:PORT` and `log` or `log:FILE`, with commas between."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen

WAYS = "spans, counters:PORT, log or log:FILE, with commas between"
LIBRARIES: Mapping[str, str] = {"spans": "opentelemetry", "counters": "prometheus_client"}
HIGHEST_PORT = 65_535


class Part(Frozen):
    """One way to be told: its name, and the port or the file that belongs to it."""

    name: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.where}" if self.where else self.name


def parts_of(text: str) -> tuple[Part, ...]:
    """What a setting names, each once."""
    parts = tuple(_part(part.strip()) for part in text.split(",") if part.strip())
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise DefinitionError(f"telemetry: {name} is named twice in {text!r}; name it once")
    return parts


def _part(text: str) -> Part:
    name, colon, where = text.partition(":")
    is_port = where.isascii() and where.isdigit() and len(where) <= 5 and int(where) <= HIGHEST_PORT
    is_known = is_port if name == "counters" else (name == "log" and bool(where or not colon)) or text == "spans"
    if not is_known:
        raise DefinitionError(f"telemetry: {text!r} is not telemetry; write {WAYS}")
    if name in LIBRARIES and find_spec(LIBRARIES[name]) is None:
        raise DefinitionError(f"telemetry: {name} needs more than is installed: pip install 'moothall[telemetry]'")
    return Part(name, where)
