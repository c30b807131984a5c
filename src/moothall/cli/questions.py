"""Questions at a terminal: shown whole, with their deadline and the way to answer, and asked where a person sits."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moothall.app.looking import moment
from moothall.cli.screen import harmless, painted
from moothall.errors import DefinitionError, Refused

YES_NO = {"type": "boolean"}
WORDS = {"y": True, "yes": True, "n": False, "no": False}
LATER = object()


def shown(question: Mapping[str, Any], command: str) -> str:
    """A question as a person reads it later: what is asked, until when, and the command that answers."""
    until = question["due"]
    deadline = f" (until {moment(until)})" if until is not None else ""
    who = question.get("who", "")
    head = f"question {question['id']}{f' for {who}' if who else ''}{deadline}"
    asked = painted(f"{head}: {harmless(question['prompt'])}", "bold", sys.stderr)
    return f"{asked}\nanswer with:  {command} {_way(question['schema'])}" + (f" --as {who}" if who else "")


def _way(schema: Any) -> str:
    if schema == YES_NO:
        return "--yes | --no"
    if choices := _choices(schema):
        return f"--text {' | '.join(map(str, choices))}"
    return "--text TEXT" if schema == {"type": "string"} else "--json FILE (or - for stdin, or the JSON itself)"


def _choices(schema: Any) -> list[Any]:
    found = schema.get("enum", []) if isinstance(schema, Mapping) else []
    return found if all(isinstance(one, str) for one in found) else []


def prompted(question: Mapping[str, Any]) -> Any:
    """The answer of the person at the terminal; LATER where there is none now."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return LATER
    print(painted(harmless(question["prompt"]), "bold", sys.stderr), file=sys.stderr)
    while (said := _typed(f"{_hint(question['schema'])}, or Enter to answer later: ")) != "":
        try:
            return _meant(question["schema"], said)
        except ValueError:
            print(f"{said!r} is no answer to this", file=sys.stderr)
    return LATER


def _hint(schema: Any) -> str:
    if schema == YES_NO:
        return "[y]es, [n]o"
    if choices := _choices(schema):
        return ", ".join(map(str, choices))
    return "your answer" if schema == {"type": "string"} else "your answer as JSON"


def _meant(schema: Any, said: str) -> Any:
    if schema == YES_NO:
        if said.lower() not in WORDS:
            raise ValueError(said)
        return WORDS[said.lower()]
    if choices := _choices(schema):
        if said not in choices:
            raise ValueError(said)
        return said
    return said if schema == {"type": "string"} else json.loads(said)


def _typed(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def read_json(name: str) -> Any:
    """JSON from a file, from stdin (`-`), or as it stands."""
    if name != "-" and name.lstrip()[:1] in tuple('{["0123456789-tfn') and not os.path.exists(name):
        try:
            return json.loads(name)
        except RecursionError as error:
            raise Refused("the JSON is nested too deeply") from error
        except ValueError:
            pass
    try:
        return json.loads(sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise DefinitionError(f"{name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name} is no JSON: {error}") from error
