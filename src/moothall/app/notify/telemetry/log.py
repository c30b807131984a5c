"""A log of runs: a line of JSON for every entry, without what was said.

Reasons are left out with the prose: an exception may quote anything. `moot show RUN` has them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC
from errno import ENXIO
from pathlib import Path
from typing import Any

import orjson

from moothall.app.notify.telemetry.sights import Sight
from moothall.app.report.amounts import date_of
from moothall.app.report.projections.flight import DROPPED, who_of
from moothall.errors import DefinitionError
from moothall.kernel.events import AttemptFailed, Doubted, Exhausted

_WARNINGS = (AttemptFailed.name, Doubted.name, Exhausted.name)
_ADDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
_ENDS = {"failed": "error", "limited": "warning", "cancelled": "warning"}


class Log:
    """Writes a line for everything that it sees, to stderr or to a file, which may be moved away meanwhile.

    A named pipe holds nobody up: without a reader it is refused, and what a full one does not take is left out.
    """

    def __init__(self, file: str = "") -> None:
        self._file = Path(file).absolute() if file else None
        try:
            self._write("")
        except OSError as error:
            if error.errno == ENXIO:
                why = "is a named pipe that nobody reads; start its reader first, or name a file"
                raise DefinitionError(f"telemetry: the log {file} {why}") from error
            raise DefinitionError(f"telemetry: the log {file} cannot be written: {error.strerror}") from error

    def __call__(self, sight: Sight) -> None:
        """Write the line of one entry."""
        self._write(orjson.dumps(log_line(sight)).decode() + "\n")

    def _write(self, text: str) -> None:
        if self._file is None:
            sys.stderr.write(text)
            return
        rest = text.encode(errors="replace")
        with open(os.open(self._file, _ADDING, 0o666), "wb", buffering=0) as out:
            while rest and (taken := out.write(rest)):
                rest = rest[taken:]

    def close(self) -> None:
        """Nothing is kept open."""


def log_line(sight: Sight) -> dict[str, Any]:
    """What a line says."""
    entry, effect = sight.entry, sight.effect
    line = {
        "time": _time(entry["at"]),
        "level": level(entry),
        "run": sight.run,
        "machine": sight.subject.record.machine,
        "step": entry["seq"],
        "effect": effect.key if effect is not None else None,
        "event": entry["event"]["name"],
        "from": entry["from"],
        "to": entry["to"],
    }
    if effect is not None:
        line |= {"kind": effect.kind, "who": effect.who, "attempt": effect.attempts}
        line["seconds"] = round(sight.after.at - effect.since, 6)
    if usage := entry["event"].get("usage"):
        line["usage"] = usage
    if entry["effects"]:
        line["wants"] = [
            {"effect": wanted["key"], "kind": wanted["kind"], "who": who_of(wanted["kind"], wanted["effect"])}
            for wanted in entry["effects"]
        ]
    if dropped := [span.key for span in sight.after.ended if span.outcome == DROPPED]:
        line["drops"] = dropped
    if sight.is_over:
        line["status"] = entry["status"]
    return line


def level(entry: Mapping[str, Any]) -> str:
    """How much an entry matters to whoever looks after runs."""
    name = entry["event"]["name"]
    if name.split(".")[0] == "error":
        return "error"
    if "status" in entry:
        return _ENDS.get(entry["status"], "info")
    return "warning" if "ignored" in entry or name in _WARNINGS else "info"


def _time(at: float) -> str | float:
    """A moment as a date; as a number where a clock was so wrong that there is none."""
    date = date_of(at, UTC)
    return at if date is None else date.isoformat(timespec="milliseconds")
